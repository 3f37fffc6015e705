/* SPDX-License-Identifier: MIT
 * Building: the public builders of rung/ops.h and their refusals, and every op's building, gradient and decomposition
 * when memory runs out at any point. */
#include <rung/ops.h>

#include "cases.h"

static rung_host *host;

static rung_graph *new_graph(void) {
  rung_graph *g = NULL;
  CHECK_OK(rung_graph_create(host, NULL, &g));
  return g;
}
static rung_value input(rung_graph *g, const char *name, rung_type type, int rank, const int64_t *extent) {
  rung_dim dim[RUNG_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) dim[axis] = rung_graph_constant_dim(g, extent[axis]);
  return rung_graph_input(g, name, type, rank, dim);
}
#define EXTENTS(...) ((const int64_t[]){__VA_ARGS__})
static void check_extents(rung_graph *g, rung_value v, int rank, const int64_t *extent) {
  CHECK_EQ_I64(rung_graph_rank_of(g, v), rank);
  for (int axis = 0; axis < rank; axis++)
    CHECK_EQ_I64(rung_graph_extent_of(g, v, axis).id, rung_graph_constant_dim(g, extent[axis]).id);
}
static void check_fails(rung_graph *g, rung_status status, const char *text) {
  CHECK_STATUS(rung_graph_status(g), status);
  test_state.checks++;
  if (!strstr(rung_graph_message(g), text)) TEST_FAIL_("\"%s\" does not say \"%s\"", rung_graph_message(g), text);
  rung_graph_destroy(g);
}

static void test_builders(void) {
  rung_graph *g = new_graph();
  const rung_value x = input(g, "x", RUNG_TYPE_F32, 2, EXTENTS(4, 6)), w = input(g, "w", RUNG_TYPE_F32, 1, EXTENTS(6));
  check_extents(g, rung_add(g, x, w), 2, EXTENTS(4, 6));
  check_extents(g, rung_leaky_relu(g, x, 0.1), 2, EXTENTS(4, 6));
  check_extents(g, rung_reduce_sum(g, x, 1, EXTENTS(-1), false), 1, EXTENTS(4));
  check_extents(g, rung_reduce_sum(g, x, 0, NULL, true), 2, EXTENTS(1, 1));
  check_extents(g, rung_rms_norm(g, x, (rung_value){0, 0}, 1e-6), 2, EXTENTS(4, 6));
  check_extents(g, rung_rms_norm(g, x, w, 1e-6), 2, EXTENTS(4, 6));
  check_extents(g, rung_transpose(g, x, 2, EXTENTS(1, 0)), 2, EXTENTS(6, 4));
  const rung_dim two = rung_graph_constant_dim(g, 2), none = rung_graph_constant_dim(g, 0);
  const rung_dim shape[] = {two, two, rung_graph_constant_dim(g, 6)};
  check_extents(g, rung_reshape(g, x, 3, shape), 3, EXTENTS(2, 2, 6));
  check_extents(g, rung_slice(g, x, 2, (rung_dim[]){two, none}, (rung_dim[]){two, two}, EXTENTS(1, 3)), 2,
                EXTENTS(2, 2));
  check_extents(g, rung_concat(g, (rung_value[]){x, x, x}, 3, 1), 2, EXTENTS(4, 18));
  rung_pad_options pad = rung_pad_options_default();
  pad.mode = RUNG_PAD_MODE_EDGE;
  check_extents(g, rung_pad(g, x, 2, (rung_dim[]){two, none}, (rung_dim[]){none, two}, &pad), 2, EXTENTS(6, 8));
  rung_value top[2];
  rung_top_k(g, x, two, NULL, top);
  check_extents(g, top[0], 2, EXTENTS(4, 2));
  CHECK_EQ_I64(rung_graph_type_of(g, top[1]), RUNG_TYPE_I64);
  CHECK_EQ_I64(rung_graph_type_of(g, rung_cast(g, x, RUNG_TYPE_BF16)), RUNG_TYPE_BF16);
  CHECK_EQ_I64(rung_graph_type_of(g, rung_less(g, x, w)), RUNG_TYPE_BOOL);
  CHECK_STR(rung_graph_message(g), "");
  rung_graph_destroy(g);
}

static void test_refusals(void) {
  rung_graph *g = new_graph();
  rung_value x = input(g, "x", RUNG_TYPE_F32, 2, EXTENTS(4, 6));
  const rung_value y = rung_add(g, x, input(g, "w", RUNG_TYPE_F32, 1, EXTENTS(5)));
  CHECK_EQ_I64(y.id, 0);
  CHECK_EQ_I64(rung_relu(g, y).id, 0); /* sticky */
  check_fails(g, RUNG_SHAPE_MISMATCH, "add(a f32[4,6], b f32[5]): axis 0 of b does not broadcast");
  g = new_graph();
  rung_relu(g, (rung_value){0, 0});
  check_fails(g, RUNG_INVALID_ARGUMENT, "null");
  g = new_graph();
  x = input(g, "x", RUNG_TYPE_F32, 2, EXTENTS(4, 6));
  const rung_pad_options nothing = {0};
  const rung_dim zero[2] = {rung_graph_constant_dim(g, 0), rung_graph_constant_dim(g, 0)};
  rung_pad(g, x, 2, zero, zero, &nothing);
  check_fails(g, RUNG_INVALID_ARGUMENT, "options of size 0");
  g = new_graph();
  x = input(g, "x", RUNG_TYPE_F32, 2, EXTENTS(4, 6));
  rung_transpose(g, x, 9, EXTENTS(0, 1, 2, 3, 4, 5, 6, 7, 8));
  check_fails(g, RUNG_INVALID_ARGUMENT, "transpose: a list is NULL, or its length is not in 0 .. 8");
  g = new_graph();
  input(g, "", RUNG_TYPE_F32, 0, NULL);
  check_fails(g, RUNG_INVALID_ARGUMENT, "input: a name is needed");
  g = new_graph();
  rung_graph_scalar(g, RUNG_TYPE_Q4_0, 1);
  check_fails(g, RUNG_TYPE_MISMATCH, "scalar: q4_0 has no single elements");
  g = new_graph();
  rung_graph_scalar(g, RUNG_TYPE_I32, 1e30);
  check_fails(g, RUNG_OUT_OF_RANGE, "scalar: 1e+30 does not fit i32");
  g = new_graph();
  rung_graph_weight(g, "w", RUNG_TYPE_F32, 1, EXTENTS(-3));
  check_fails(g, RUNG_OUT_OF_RANGE, "weight: extent 0 is -3");
  g = new_graph();
  rung_graph_constant(g, RUNG_TYPE_F32, 2, EXTENTS(INT64_MAX, 3), "");
  CHECK(rung_graph_status(g) != RUNG_OK);
  rung_graph_destroy(g);
  g = new_graph();
  rung_graph_constant(g, RUNG_TYPE_F32, 1, EXTENTS(3), NULL);
  check_fails(g, RUNG_INVALID_ARGUMENT, "constant: no data is given");
}

static void test_states(void) {
  rung_graph *g = new_graph();
  rung_state_desc desc = {sizeof desc, RUNG_STATE_DENSE, RUNG_TYPE_F32, 2, {3, 4}, 0};
  const rung_value s = rung_graph_state(g, "s", &desc);
  CHECK_EQ_I64(rung_graph_rank_of(g, s), 2);
  desc = (rung_state_desc){sizeof desc, RUNG_STATE_KV, RUNG_TYPE_F16, 3, {2, 64, 64}, 512};
  CHECK(rung_graph_state(g, "kv", &desc).id != 0);
  CHECK_STR(rung_graph_message(g), "");
  desc.rank = 2;
  rung_graph_state(g, "kv2", &desc);
  check_fails(g, RUNG_SHAPE_MISMATCH, "state \"kv2\": the extents of a kv state are kv_heads, key_dim and value_dim");
  g = new_graph();
  desc = (rung_state_desc){sizeof desc, RUNG_STATE_KV, RUNG_TYPE_I32, 3, {2, 64, 64}, 0};
  rung_graph_state(g, "kv", &desc);
  check_fails(g, RUNG_TYPE_MISMATCH, "bf16 or q8_0, not i32");
  g = new_graph();
  rung_graph_state(g, "kv", NULL);
  check_fails(g, RUNG_INVALID_ARGUMENT, "state: no description");
}

/* The op's node, its decomposition and its gradient in one graph. */
static void build_all(const op_case *c) {
  built b;
  rung_graph *g = NULL;
  if (rung_graph_create(host, NULL, &g)) return;
  memset(&b, 0, sizeof b);
  for (int i = 0; i < c->n; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    b.in[i] = input(g, name, c->operand[i].type, c->operand[i].rank, c->operand[i].extent);
  }
  rung_error error;
  void *attrs = rung_graph_status(g) ? NULL : case_attrs(c, g, BUILD_CLOSED, &error);
  const rung_node *node =
      attrs ? rung_graph_append(g, c->op, b.in, (uint32_t)c->n, c->op->attrs_bytes ? attrs : NULL, NULL, 0) : NULL;
  if (node) {
    const rung_node copy = *node;
    rung_value y[CASE_OPERANDS], gx[CASE_OPERANDS], out[CASE_OPERANDS];
    for (uint32_t r = 0; r < copy.results; r++) {
      const rung_value_info *info = &g->value[copy.first_value + r];
      y[r] = rung_type_is_float(info->type.type) ? (rung_value){g->serial, copy.first_value + r} : (rung_value){0, 0};
    }
    if (c->op->decompose) c->op->decompose(g, &copy, b.in, out);
    if (c->op->gradient) {
      rung_value all[CASE_OPERANDS];
      for (uint32_t r = 0; r < copy.results; r++) all[r] = (rung_value){g->serial, copy.first_value + r};
      c->op->gradient(g, &copy, b.in, all, y, gx);
    }
  }
  rung_graph_destroy(g);
}

static void test_out_of_memory(void) {
  int64_t failed = 0;
  const uint64_t before = rung_host_memory(host).host;
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    op_case c;
    if (!op->tests || !op->tests->operands || !read_case(op, op->tests, &c)) continue;
    for (int64_t n = 1;; n++) {
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      rung_host_set_fault(host, test_fault_hit, &fault);
      build_all(&c);
      rung_host_set_fault(host, NULL, NULL);
      if (!fault.hit) break;
      failed++;
    }
    test_state.checks++;
    if (rung_host_memory(host).host != before) TEST_FAIL_("%s leaks when memory runs out", op->name);
  }
  printf("%lld failed allocations\n", (long long)failed);
  CHECK(failed > 500);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_builders);
  RUN(test_refusals);
  RUN(test_states);
  RUN(test_out_of_memory);
  rung_host_release(host);
  return TEST_END();
}
