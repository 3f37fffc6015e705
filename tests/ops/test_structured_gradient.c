/* SPDX-License-Identifier: MIT
 * Gradients of the structured ops against central differences, and decompositions against the op, with open extents,
 * all in float64: what the generic tests of single ops leave out. */
#include <math.h>

#include "structured_run.h"

typedef struct graph_case {
  const char *name;        /* of the op */
  const char *symbols;     /* "n=3 m=5" */
  const char *operands[4]; /* types; i64 ones are indices from `low` to below `high` */
  const char *attrs;
  int64_t low, high;
} graph_case;

static const graph_case gradients[] = {
    {"matmul", "", {"f64[5,7]", "f64[7,3]"}, "type=f64", 0, 0},
    {"matmul", "", {"f64[5,7]", "f64[3,7]"}, "type=f64, transpose_b=true", 0, 0},
    {"matmul", "n=3", {"f64[n,2,4,5]", "f64[2,5,3]"}, "type=f64", 0, 0},
    {"matmul", "n=3", {"f64[2,1,4,5]", "f64[n,6,5]"}, "type=f64, transpose_b=true", 0, 0},
    {"matmul", "n=3", {"f64[2,n,5]", "f64[5,6]"}, "type=f64", 0, 0},
    {"rope", "n=4", {"f64[n,3,8]", "i64[n]"}, "dims=6", 0, 50},
    {"rope", "", {"f64[4,3,8]", "i64[4]", "f64[4]"}, "mode=adjacent, magnitude=1.5", 0, 50},
    {"rotate", "n=4", {"f64[2,n,3,8]", "f64[n,1,3]", "f64[n,1,3]"}, "", 0, 0},
    {"rotate", "n=4", {"f64[n,8]", "f64[n,6]", "f64[n,6]"}, "mode=adjacent, table=channel", 0, 0},
    {"rotate", "", {"f64[3,7]", "f64[3,3]", "f64[3,3]"}, "mode=adjacent", 0, 0},
    {"rotate", "n=3", {"f64[n,5,4]", "f64[4]", "f64[4]"}, "table=channel", 0, 0},
    {"gather", "n=4", {"f64[5,6,3]", "i64[2,n]"}, "axis=1", -6, 6},
    {"gather", "n=5", {"f64[n,6]", "i64[7]"}, "", -5, 5},
    {"gather_elements", "", {"f64[5,6]", "i64[5,4]"}, "axis=1", -6, 6},
    {"gather_nd", "", {"f64[5,6,3]", "i64[4,2]"}, "", -5, 5},
    {"scatter_elements", "", {"f64[5,6]", "i64[3,4]", "f64[3,4]"}, "axis=1, mode=add", -6, 6},
    {"scatter_nd", "n=4", {"f64[5,6,3]", "i64[n,2]", "f64[n,3]"}, "mode=add", -5, 5},
    {"conv", "", {"f64[2,3,7,8]", "f64[4,3,3,3]", "f64[4]"}, "pad_before=[1,1], pad_after=[1,1]", 0, 0},
    {"conv", "", {"f64[2,4,9,7]", "f64[6,2,3,2]"}, "stride=[2,3], dilation=[1,2], pad_before=[0,1], groups=2", 0, 0},
    {"conv", "n=2 h=6", {"f64[n,3,h]", "f64[4,3,3]"}, "stride=[2]", 0, 0},
    {"conv_transpose",
     "",
     {"f64[2,3,4,5]", "f64[3,4,3,3]", "f64[4]"},
     "stride=[2,2], pad_before=[1,1], pad_after=[1,0]",
     0,
     0},
    {"conv_transpose", "n=2 h=5", {"f64[n,4,h]", "f64[4,3,4]"}, "stride=[2], dilation=[2], groups=2", 0, 0},
    {"average_pool", "", {"f64[2,3,7,8]"}, "kernel=[3,2], stride=[2,2], pad_before=[1,0], pad_after=[1,1]", 0, 0},
    {"average_pool", "h=6", {"f64[2,3,h]"}, "kernel=[3], pad_before=[1], pad_after=[1], count_pad=true", 0, 0},
    {"average_pool", "h=6", {"f64[2,3,h,4]"}, "", 0, 0}};

static const graph_case decompositions[] = {
    {"grouped_matmul", "n=3", {"f64[n,6]", "f64[9,6]"}, "sizes=[4,2,3], type=f64", 0, 0},
    {"grouped_matmul", "n=3", {"f64[2,n,6]", "f64[12,6]"}, "sizes=[6,6], interleave=3, type=f64", 0, 0},
    {"rotate", "n=4", {"f64[2,n,3,8]", "f64[n,1,3]", "f64[n,1,3]"}, "", 0, 0},
    {"rotate", "n=4", {"f64[n,8]", "f64[n,6]", "f64[n,6]"}, "mode=adjacent, table=channel", 0, 0},
    {"rotate", "n=3", {"f64[2,n,7]", "f64[2,1,3]", "f64[2,1,3]"}, "mode=adjacent", 0, 0},
    {"rotate", "n=3", {"f64[n,5,4]", "f64[5,4]", "f64[5,4]"}, "table=channel", 0, 0},
    {"attention", "n=5 m=7", {"f64[2,4,n,8]", "f64[2,2,m,8]", "f64[2,2,m,6]"}, "", 0, 0},
    {"attention",
     "n=5 m=7",
     {"f64[2,4,n,8]", "f64[2,2,m,8]", "f64[2,2,m,6]"},
     "causal=true, window=3, soft_cap=2",
     0,
     0},
    {"attention", "n=7 m=4", {"f64[2,4,n,8]", "f64[2,2,m,8]", "f64[2,2,m,6]"}, "causal=true, scale=0.25", 0, 0},
    {"attention", "n=3 m=4", {"f64[1,2,n,8]", "f64[1,2,m,8]", "f64[1,2,m,6]", "f64[n,1]"}, "window=2", 0, 0},
    {"attention", "n=3 m=4", {"f64[1,2,n,8]", "f64[1,2,m,8]", "f64[1,2,m,6]", "bool[1,2,n,m]"}, "", 0, 2}};

/* ---- from a case to a graph */

typedef struct built {
  rung_host *host;
  rung_graph *g;
  rung_value in[4], y[8];
  uint32_t n_in, n_out;
  const rung_node *node;
} built;

/* The graph of the op alone, by its text. */
static bool build(const graph_case *c, built *b) {
  rung_text text;
  rung_text_init(&text, b->host);
  rung_text_puts(&text, "rung 1\n");
  char symbols[64];
  snprintf(symbols, sizeof symbols, "%s", c->symbols);
  for (char *p = symbols; *p; p++) {
    if (*p != ' ' && (p == symbols || p[-1] == ' ')) rung_text_printf(&text, "symbol %c 1..99\n", *p);
  }
  for (b->n_in = 0; b->n_in < 4 && c->operands[b->n_in]; b->n_in++)
    rung_text_printf(&text, "%%%u = input {name=\"%u\"} : %s\n", b->n_in, b->n_in, c->operands[b->n_in]);
  rung_error error = {RUNG_OK, ""};
  const rung_status status = rung_graph_parse(b->host, text.data, text.length, &error, &b->g);
  rung_text_finish(&text);
  const rung_op *op = rung_op_find(c->name, strlen(c->name));
  if (status || !op) {
    TEST_FAIL_("%s: %s", c->name, error.message);
    return false;
  }
  for (uint32_t i = 0; i < b->n_in; i++) b->in[i] = (rung_value){b->g->serial, b->g->node[b->g->input[i]].first_value};
  void *attrs = rung_arena_alloc(&b->g->arena, op->attrs_bytes);
  const char *end;
  CHECK_OK(rung_attrs_parse(op, b->g->dims, &b->g->arena, c->attrs, c->attrs + strlen(c->attrs), &end, attrs, &error));
  b->node = rung_graph_append(b->g, op, b->in, b->n_in, attrs, NULL, 0);
  if (!b->node) {
    TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, rung_graph_message(b->g));
    return false;
  }
  b->n_out = b->node->results;
  for (uint32_t r = 0; r < b->n_out; r++) b->y[r] = rung_node_result(b->g, b->node, r);
  return true;
}

static void bind(run_state *run, const built *b, const graph_case *c, uint64_t *random) {
  for (const char *p = c->symbols; *p; p++) {
    if (p[0] != '=') continue;
    run->symbol[rung_dims_find_symbol(b->g->dims, p - 1, 1)] = atoi(p + 1);
  }
  int64_t *dim = (int64_t *)run_hold(run, b->g->dims->count * sizeof *dim);
  CHECK_OK(rung_dims_evaluate(b->g->dims, run->symbol, dim, NULL));
  for (uint32_t i = 0; i < b->g->inputs; i++) {
    const rung_node *node = &b->g->node[b->g->input[i]];
    const rung_value_type *type = rung_graph_value_type(b->g, node->first_value);
    int64_t extent[RUNG_MAX_RANK];
    for (int axis = 0; axis < type->rank; axis++) extent[axis] = dim[type->extent[axis].id];
    run_tensor t = run_tensor_new(run, type->type, type->rank, extent);
    const rung_operand o = run_operand(&t);
    for (int64_t e = 0; e < run_count(&t); e++) {
      if (rung_operand_is_integer(&o))
        rung_store_i64(&o, e, c->low + test_below(random, c->high - c->low));
      else
        rung_store_f64(&o, e, (double)test_uniform(random, 0.5f, 2));
    }
    run_name(run, rung_attrs_name(node->op, node->attrs))->tensor = t;
  }
}

/* ---- gradients */

/* The sum over all results of gy * y. */
static double weighted(run_state *run, const built *b) {
  run_tensor out[16];
  const rung_status status = run_graph(run, b->g, out);
  if (status) {
    TEST_FAIL_("%s: %s", b->node->op->name, run->error.message);
    return (double)NAN;
  }
  const rung_operand y = run_operand(&out[0]), gy = run_operand(&run_name(run, "gy")->tensor);
  double sum = 0;
  for (int64_t e = 0; e < run_count(&out[0]); e++) sum += rung_load_f64(&y, e) * rung_load_f64(&gy, e);
  return sum;
}

static void check_operand(run_state *run, const built *b, const graph_case *c, uint32_t i, const run_tensor *gx) {
  const double step = 1e-4;
  char name[16];
  snprintf(name, sizeof name, "%u", i);
  const run_tensor *x = &run_name(run, name)->tensor;
  const rung_operand o = run_operand(x), g = run_operand(gx);
  const int64_t stride = run_count(x) / 24 + 1; /* some 24 elements each */
  for (int64_t e = 0; e < run_count(x); e += stride) {
    const double keep = rung_load_f64(&o, e);
    rung_store_f64(&o, e, keep + step);
    const double up = weighted(run, b);
    rung_store_f64(&o, e, keep - step);
    const double down = weighted(run, b);
    rung_store_f64(&o, e, keep);
    const double want = (up - down) / (2 * step), have = rung_load_f64(&g, e);
    test_state.checks++;
    if (!(fabs(want - have) <= 1e-6 * (1 + fabs(want))))
      TEST_FAIL_("%s {%s}: operand %u element %lld: %g, differences give %g", c->name, c->attrs, i, (long long)e, have,
                 want);
  }
}

static void check_gradient(const graph_case *c, rung_host *host) {
  built b = {.host = host};
  if (!build(c, &b)) {
    rung_graph_destroy(b.g);
    return;
  }
  const rung_value_type y = *rung_graph_value_type(b.g, b.y[0].id);
  const rung_value gy = rung_graph_input(b.g, "gy", y.type, y.rank, y.extent);
  rung_value gx[4] = {{0, 0}};
  const rung_node node = *b.node;
  rung_graph_output(b.g, "y", b.y[0]);
  node.op->gradient(b.g, &node, b.in, b.y, &gy, gx);
  for (uint32_t i = 0; i < b.n_in; i++) {
    const char *names[] = {"0", "1", "2", "3"};
    if (gx[i].id) rung_graph_output(b.g, names[i], gx[i]);
  }
  b.node = &node;
  if (rung_graph_status(b.g)) TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, rung_graph_message(b.g));
  rung_error error = {RUNG_OK, ""};
  if (rung_graph_verify(b.g, &error)) TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, error.message);
  run_state *run = (run_state *)calloc(1, sizeof *run);
  run_init(run, host);
  uint64_t random = 11;
  run_tensor out[16];
  bind(run, &b, c, &random);
  if (run_graph(run, b.g, out)) TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, run->error.message);
  uint32_t k = 1, checked = 0;
  for (uint32_t i = 0; i < b.n_in; i++) {
    if (!gx[i].id) continue;
    CHECK(run_count(&out[k]) > 0);
    check_operand(run, &b, c, i, &out[k++]);
    checked++;
  }
  CHECK(checked > 0);
  run_finish(run);
  free(run);
  rung_graph_destroy(b.g);
}

static void test_gradients(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  for (size_t i = 0; i < RUNG_COUNT(gradients); i++) check_gradient(&gradients[i], host);
  rung_host_release(host);
}

/* ---- decompositions */

static void check_decomposition(const graph_case *c, rung_host *host) {
  built b = {.host = host};
  if (!build(c, &b)) {
    rung_graph_destroy(b.g);
    return;
  }
  rung_value parts[8];
  const rung_node node = *b.node;
  node.op->decompose(b.g, &node, b.in, parts);
  for (uint32_t r = 0; r < b.n_out; r++) {
    char name[16];
    snprintf(name, sizeof name, "whole%u", r);
    rung_graph_output(b.g, name, b.y[r]);
    snprintf(name, sizeof name, "parts%u", r);
    rung_graph_output(b.g, name, parts[r]);
  }
  if (rung_graph_status(b.g)) TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, rung_graph_message(b.g));
  run_state *run = (run_state *)calloc(1, sizeof *run);
  run_init(run, host);
  uint64_t random = 12;
  run_tensor out[16];
  bind(run, &b, c, &random);
  if (run_graph(run, b.g, out))
    TEST_FAIL_("%s {%s}: %s", c->name, c->attrs, run->error.message);
  else {
    for (uint32_t r = 0; r < b.n_out; r++) {
      const rung_operand whole = run_operand(&out[2 * r]), part = run_operand(&out[2 * r + 1]);
      CHECK_EQ_I64(run_count(&out[2 * r]), run_count(&out[2 * r + 1]));
      for (int64_t e = 0; e < run_count(&out[2 * r]); e++) {
        const double have = rung_load_f64(&part, e), want = rung_load_f64(&whole, e);
        test_state.checks++;
        if (!(fabs(have - want) <= 1e-12 * (1 + fabs(want))))
          TEST_FAIL_("%s {%s}: result %u element %lld: %g, not %g", c->name, c->attrs, r, (long long)e, have, want);
      }
    }
  }
  run_finish(run);
  free(run);
  rung_graph_destroy(b.g);
}

static void test_decompositions(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  for (size_t i = 0; i < RUNG_COUNT(decompositions); i++) check_decomposition(&decompositions[i], host);
  rung_host_release(host);
}

int main(void) {
  RUN(test_gradients);
  RUN(test_decompositions);
  return TEST_END();
}
