/* SPDX-License-Identifier: MIT
 * Products with an epilogue: a fused step gives the bits of the product and of the ops behind it one by one, whatever
 * the height, the division among threads and the width of the last strip. */
#include "cpu_product.h"
#include "ops/build.h"

/* An input of graph and body alike. */
typedef struct operand {
  rung_type type;
  uint16_t layout;
  int rank;
  int64_t extent[2];
  const void *data;
} operand;

static rung_value declare(rung_graph *g, const char *name, const operand *o) {
  const rung_input_attrs attrs = {name};
  rung_value_type type = {.type = o->type, .layout = o->layout, .rank = (int8_t)o->rank};
  for (int i = 0; i < o->rank; i++) type.extent[i] = rung_dims_constant(g->dims, o->extent[i]);
  const rung_node *node = rung_graph_declare(g, &rung_op_input, &attrs, &type);
  return node ? rung_node_result(g, node, 0) : (rung_value){0};
}

/* Builds what follows the root in a body; `in` are the body's inputs. Gives the output. */
typedef rung_value epilogue(rung_graph *body, const rung_value *in);

/* Runs a fused step of the epilogue on operands and one output [m, n] of `type`. */
static const char *run_fused(const level *l, epilogue *build, const operand *o, uint32_t count, rung_type type,
                             int64_t m, int64_t n, void *out, int threads) {
  static const char *const names[] = {"a", "b", "c", "d"};
  rung_graph *g = NULL;
  CHECK_OK(rung_graph_create(host, NULL, &g));
  rung_graph *body = rung_graph_body(g);
  rung_value outer[4], inner[4];
  for (uint32_t i = 0; i < count; i++) {
    outer[i] = declare(g, names[i], &o[i]);
    inner[i] = declare(body, names[i], &o[i]);
  }
  rung_graph_output(body, "y", build(body, inner));
  const rung_node *node = rung_graph_append(g, &rung_op_fused, outer, count, NULL, &body, 1);
  CHECK_OK(rung_graph_status(g));
  rung_match match;
  rung_match_init(&match, g, node);
  int64_t stride[5][2];
  rung_operand in[4];
  for (uint32_t i = 0; i < count; i++) {
    const int64_t last = o[i].extent[o[i].rank - 1] / rung_type_get(o[i].type)->block;
    stride[i][o[i].rank - 1] = 1;
    if (o[i].rank == 2) stride[i][0] = last;
    in[i] = (rung_operand){.base = (uint8_t *)o[i].data,
                           .extent = o[i].extent,
                           .stride = stride[i],
                           .rank = (uint8_t)o[i].rank,
                           .type = (uint8_t)o[i].type,
                           .layout = o[i].layout};
  }
  const int64_t y_extent[] = {m, n}, y_stride[] = {n / rung_type_get(type)->block, 1};
  const rung_operand y = {(uint8_t *)out, y_extent, y_stride, 2, (uint8_t)type, 0, NULL};
  const rung_args args = {.in = in, .out = &y, .n_in = (uint16_t)count, .n_out = 1, .threads = threads};
  const char *name = run_match(l, g->dims, &match, args, m, o[1].extent[0], o[1].extent[1]);
  rung_graph_destroy(g);
  return name;
}

/* ---- y = a b + bias + residual */

static rung_value add_bias_and_residual(rung_graph *body, const rung_value *in) {
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  const rung_value y = rung_graph_op(body, &rung_op_matmul, in, 2, &attrs);
  return rung_build_add(body, rung_build_add(body, y, in[2]), in[3]);
}

static void check_residual(const level *l, rung_type a_type, rung_type b_type, int64_t m, int64_t n) {
  const int64_t k = 256;
  uint8_t *a = make_rows(a_type, m, k), *b = make_rows(b_type, n, k);
  const rung_layout *layout = l->target->layout_of(b_type);
  uint8_t *form = pack(layout, b, n, k);
  const size_t values = (size_t)(m * n + 1);
  float *residual = malloc(values * sizeof(float)), *bias = malloc((size_t)n * sizeof(float));
  float *want = malloc(values * sizeof(float)), *have = malloc(values * sizeof(float));
  fill_floats(residual, m * n, 1);
  fill_floats(bias, n, 1);
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  const int64_t a_extent[] = {m, k}, a_stride[] = {k / rung_type_get(a_type)->block, 1}, b_extent[] = {n, k},
                b_stride[] = {k / rung_type_get(b_type)->block, 1}, y_extent[] = {m, n}, y_stride[] = {n, 1};
  const product p = {.op = &rung_op_matmul,
                     .attrs = &attrs,
                     .in = {{a, a_extent, a_stride, 2, (uint8_t)a_type, 0, NULL},
                            {form, b_extent, b_stride, 2, (uint8_t)b_type, layout->id, NULL}},
                     .out = {{(uint8_t *)want, y_extent, y_stride, 2, RUNG_TYPE_F32, 0, NULL}},
                     .n_out = 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .threads = 1};
  run(l, &p);
  for (int64_t i = 0; i < m * n; i++) want[i] = (want[i] + bias[i % n]) + residual[i];
  const operand o[] = {{a_type, 0, 2, {m, k}, a},
                       {b_type, layout->id, 2, {n, k}, form},
                       {RUNG_TYPE_F32, 0, 1, {n}, bias},
                       {RUNG_TYPE_F32, 0, 2, {m, n}, residual}};
  for (int threads = 1; threads <= 5; threads += 2) {
    memset(have, 0x55, values * sizeof(float));
    const char *name = run_fused(l, add_bias_and_residual, o, 4, RUNG_TYPE_F32, m, n, have, threads);
    test_state.checks++;
    if (strncmp(name, "matmul_strip_", 13) != 0 || memcmp(want, have, (size_t)(m * n) * sizeof(float)) != 0)
      TEST_FAIL_("%s (%s) M %d N %d: not the bits of the ops alone", name, l->name, (int)m, (int)n);
  }
  free(a), free(b), free(form), free(residual), free(bias), free(want), free(have);
}

static void test_residual(void) {
  static const int64_t heights[] = {0, 1, 2, 7, 13, 100}, widths[] = {16, 37, 256, 300};
  for (int i = 0; i < level_count; i++)
    for (size_t h = 0; h < RUNG_COUNT(heights); h++)
      for (size_t w = 0; w < RUNG_COUNT(widths); w++) {
        check_residual(&levels[i], RUNG_TYPE_A8, RUNG_TYPE_Q4_1, heights[h], widths[w]);
        check_residual(&levels[i], RUNG_TYPE_A8, RUNG_TYPE_Q6_K, heights[h], widths[w]);
        check_residual(&levels[i], RUNG_TYPE_F32, RUNG_TYPE_F32, heights[h], widths[w]);
        check_residual(&levels[i], RUNG_TYPE_F32, RUNG_TYPE_Q5_0, heights[h], widths[w]);
      }
}

/* ---- two members in turn, multiplied and quantised: what a gated feed-forward needs */

static rung_value gate(rung_graph *body, const rung_value *in) {
  int64_t rows = 0;
  rung_dims_is_constant(body->dims, rung_build_type(body, in[1])->extent[0], &rows);
  const rung_grouped_matmul_attrs attrs = {
      .sizes = {.count = 2, .value = {rows / 2, rows / 2}}, .interleave = 16, .type = RUNG_TYPE_F32};
  const rung_node *root = rung_graph_append(body, &rung_op_grouped_matmul, in, 2, &attrs, NULL, 0);
  if (!root) return (rung_value){0};
  const rung_value first = rung_node_result(body, root, 0), second = rung_node_result(body, root, 1);
  const rung_value y = rung_build_mul(body, first, second);
  return rung_graph_op(body, &rung_op_quantize_rows, &y, 1, NULL);
}

static void check_gate(const level *l, rung_type b_type, int64_t m, int64_t n) {
  const int64_t k = 512;
  uint8_t *a = make_rows(RUNG_TYPE_A8, m, k), *b = make_rows(b_type, 2 * n, k);
  const rung_layout *layout = l->target->layout_of(b_type);
  uint8_t *form = pack(layout, b, 2 * n, k);
  float *both = malloc((size_t)(m * 2 * n + 1) * sizeof(float)), *product_row = malloc((size_t)n * sizeof(float));
  rung_a8 *want = malloc((size_t)(m * n / 32 + 1) * sizeof *want),
          *have = malloc((size_t)(m * n / 32 + 1) * sizeof *have);
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  const int64_t a_extent[] = {m, k}, a_stride[] = {k / 32, 1}, b_extent[] = {2 * n, k},
                b_stride[] = {k / rung_type_get(b_type)->block, 1}, y_extent[] = {m, 2 * n}, y_stride[] = {2 * n, 1};
  const product p = {.op = &rung_op_matmul,
                     .attrs = &attrs,
                     .in = {{a, a_extent, a_stride, 2, RUNG_TYPE_A8, 0, NULL},
                            {form, b_extent, b_stride, 2, (uint8_t)b_type, layout->id, NULL}},
                     .out = {{(uint8_t *)both, y_extent, y_stride, 2, RUNG_TYPE_F32, 0, NULL}},
                     .n_out = 1,
                     .m = m,
                     .n = 2 * n,
                     .k = k,
                     .threads = 1};
  run(l, &p);
  for (int64_t r = 0; r < m; r++) {
    for (int64_t c = 0; c < n; c++) {
      const float *panel = both + r * 2 * n + c / 16 * 32 + c % 16;
      product_row[c] = panel[0] * panel[16];
    }
    rung_type_get(RUNG_TYPE_A8)->from_f32(product_row, want + r * (n / 32), (size_t)n);
  }
  const operand o[] = {{RUNG_TYPE_A8, 0, 2, {m, k}, a}, {b_type, layout->id, 2, {2 * n, k}, form}};
  for (int threads = 1; threads <= 7; threads += 3) {
    memset(have, 0x55, (size_t)(m * n / 32) * sizeof *have);
    const char *name = run_fused(l, gate, o, 2, RUNG_TYPE_A8, m, n, have, threads);
    test_state.checks++;
    if (strncmp(name, "grouped_matmul_strip_", 21) != 0 || memcmp(want, have, (size_t)(m * n / 32) * sizeof *have) != 0)
      TEST_FAIL_("%s (%s) M %d N %d: not the bytes of the ops alone", name, l->name, (int)m, (int)n);
  }
  free(a), free(b), free(form), free(both), free(product_row), free(want), free(have);
}

static void test_gate(void) {
  static const int64_t heights[] = {0, 1, 3, 6, 20, 97};
  for (int i = 0; i < level_count; i++)
    for (size_t h = 0; h < RUNG_COUNT(heights); h++)
      for (int64_t n = 32; n <= 320; n += 96) {
        check_gate(&levels[i], RUNG_TYPE_Q4_K, heights[h], n);
        check_gate(&levels[i], RUNG_TYPE_Q8_0, heights[h], n);
      }
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  open_levels();
  RUN(test_residual);
  RUN(test_gate);
  close_levels();
  rung_host_release(host);
  return TEST_END();
}
