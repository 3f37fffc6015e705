/* SPDX-License-Identifier: MIT
 * Products with chosen experts: pairs of a row and a place are put in order by expert, the rows of each expert side by
 * side, and each lot is a plain product with that expert's panels. An expert that no index names is not read, and tiles
 * give a row the same bits whatever stands beside it. Tasks are ranges of columns. */
#include <string.h>

#include "backends/cpu/matmul.h"
#include "ops/attrs.h"

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Bytes of a row of a as it lies. */
static int64_t row_bytes(const rung_operand *a) {
  return (int64_t)rung_type_bytes((rung_type)a->type, (uint64_t)a->extent[2]);
}

typedef struct experts {
  const rung_args *args;
  int64_t count, places, pairs; /* experts; pairs of row and place */
  int32_t *order;               /* pairs by expert, then as they come */
  int32_t *start;               /* where each expert's begin, and the end */
  uint8_t *rows;                /* of a, for one lot */
  void *scratch;                /* of the product */
} experts;

/* Of a thread: order | starts | rows of a lot | what a product of as many rows needs. */
static void place_scratch(experts *x, uint8_t *base) {
  x->order = (int32_t *)base;
  base += aligned(x->pairs * (int64_t)sizeof *x->order);
  x->start = (int32_t *)base;
  base += aligned((x->count + 1) * (int64_t)sizeof *x->start);
  x->rows = base;
  x->scratch = base + aligned(min64(x->pairs, RUNG_TASK_ROWS) * row_bytes(&x->args->in[0]));
}

rung_dim rung_experts_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role,
                              const rung_product_kernel *kernel) {
  const rung_expert_matmul_attrs *attrs = match->node->attrs;
  int64_t k = 0;
  rung_dims_is_constant(dims, match->in[0]->extent[2], &k);
  const rung_dim pairs = rung_dims_mul(dims, role[0], role[3]), of_pairs[3] = {pairs, role[1], role[2]};
  const rung_dim lot = rung_dims_combine(dims, RUNG_DIM_MIN, pairs, rung_dims_constant(dims, RUNG_TASK_ROWS));
  const rung_dim row = rung_dims_constant(dims, (int64_t)rung_type_bytes(match->in[0]->type, (uint64_t)k));
  const int64_t fixed = (attrs->experts + 1) * (int64_t)sizeof(int32_t) + 3 * 64;
  rung_dim bytes = rung_dims_mul(dims, pairs, rung_dims_constant(dims, sizeof(int32_t)));
  bytes = rung_dims_add(dims, bytes, rung_dims_mul(dims, lot, row));
  bytes = rung_dims_add(dims, bytes, rung_dims_constant(dims, fixed));
  return rung_dims_add(dims, bytes, rung_product_scratch(dims, match, of_pairs, kernel));
}

static int64_t index_at(const experts *x, int64_t pair) {
  const rung_operand *index = &x->args->in[2];
  return rung_load_i64(index, pair / x->places * index->stride[0] + pair % x->places * index->stride[1]);
}

static rung_status put_in_order(const experts *x) {
  memset(x->start, 0, (size_t)(x->count + 1) * sizeof *x->start);
  for (int64_t pair = 0; pair < x->pairs; pair++) {
    const int64_t expert = index_at(x, pair);
    if (expert < 0 || expert >= x->count)
      return rung_fail(x->args->error, RUNG_OUT_OF_RANGE,
                       "expert_matmul: index %lld of row %lld is not in 0 .. %lld, the experts", (long long)expert,
                       (long long)(pair / x->places), (long long)x->count - 1);
    x->start[expert + 1]++;
  }
  for (int64_t e = 0; e < x->count; e++) x->start[e + 1] += x->start[e];
  for (int64_t pair = 0; pair < x->pairs; pair++) x->order[x->start[index_at(x, pair)]++] = (int32_t)pair;
  memmove(x->start + 1, x->start, (size_t)x->count * sizeof *x->start); /* each now stands at its end */
  x->start[0] = 0;
  return RUNG_OK;
}

/* A strip: results of rows of a lot go to their rows and places. */
static void store_pair(const void *program, const rung_args *args, int64_t row, int64_t rows, int64_t col, int64_t n,
                       float *const *value, int64_t value_row) {
  const experts *x = program;
  const rung_operand *y = &args->out[0];
  const rung_type_row *type = rung_type_get((rung_type)y->type);
  for (int64_t r = 0; r < rows; r++) {
    const int64_t pair = x->order[row + r], place = pair % x->places;
    const int64_t at = pair / x->places * y->stride[0] + place * y->stride[1] + col;
    type->from_f32(value[0] + r * value_row, y->base + at * type->bytes, (size_t)n);
  }
}

static void gather_rows(const experts *x, int64_t first, int64_t count) {
  const rung_operand *a = &x->args->in[0];
  const int64_t bytes = row_bytes(a), unit = rung_type_get((rung_type)a->type)->bytes;
  for (int64_t i = 0; i < count; i++) {
    const int64_t pair = x->order[first + i], place = a->extent[1] == 1 ? 0 : pair % x->places;
    const uint8_t *from = a->base + (pair / x->places * a->stride[0] + place * a->stride[1]) * unit;
    memcpy(x->rows + i * bytes, from, (size_t)bytes);
  }
}

static rung_product product_of(const experts *x) {
  const rung_operand *a = &x->args->in[0], *b = &x->args->in[1];
  const int64_t a_unit = rung_type_get((rung_type)a->type)->bytes, b_unit = rung_type_get((rung_type)b->type)->bytes;
  return (rung_product){.args = x->args,
                        .a_operand = a,
                        .b_operand = b,
                        .batches = 1,
                        .n = x->args->out[0].extent[2],
                        .k = a->extent[2],
                        .members = 1,
                        .strip = {store_pair, x},
                        .packed = b->layout != 0,
                        .transposed = true,
                        .a_row = row_bytes(a),
                        .a_k = a_unit,
                        .b_n = b->stride[b->rank - 2] * b_unit,
                        .b_k = b->stride[b->rank - 1] * b_unit};
}

/* Bytes from one expert to the next. */
static int64_t expert_bytes(const rung_product *p) {
  const rung_operand *b = p->b_operand;
  if (p->packed) return p->n / RUNG_PANEL * (int64_t)rung_cpu_layout_of((rung_type)b->type)->panel_bytes(p->k);
  return b->rank == 3 ? b->stride[0] * (int64_t)rung_type_get((rung_type)b->type)->bytes : p->n * p->b_n;
}

int64_t rung_experts_tasks(const rung_args *args, const rung_product_kernel *kernel) {
  const rung_operand *y = &args->out[0];
  const int64_t units = (y->extent[2] + 31) / 32;
  if (args->threads == 1 || units < 2) return 1;
  const double products =
      (double)y->extent[0] * (double)y->extent[1] * (double)y->extent[2] * (double)args->in[0].extent[2];
  const double grains = products / (double)kernel->grain;
  return grains < 2 ? 1 : min64(units, args->threads);
}

rung_status rung_experts_run(const rung_args *args, const rung_product_kernel *kernel, int64_t task, int thread) {
  const rung_operand *y = &args->out[0];
  const rung_expert_matmul_attrs *attrs = args->attrs;
  experts x = {.args = args, .count = attrs->experts, .places = y->extent[1]};
  x.pairs = y->extent[0] * x.places;
  if (!x.pairs || !y->extent[2]) return RUNG_OK;
  place_scratch(&x, (uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  RUNG_TRY(put_in_order(&x));
  rung_product p = product_of(&x);
  const int64_t units = (p.n + 31) / 32, panels = (p.n + RUNG_PANEL - 1) / RUNG_PANEL;
  const int64_t tasks = rung_experts_tasks(args, kernel), bytes = expert_bytes(&p);
  const int64_t panel0 = units * task / tasks * 2, panel1 = min64(units * (task + 1) / tasks * 2, panels);
  for (int64_t e = 0; e < x.count; e++) {
    p.b = p.b_operand->base + e * bytes;
    for (int64_t first = x.start[e]; first < x.start[e + 1]; first += RUNG_TASK_ROWS) {
      p.m = min64(x.start[e + 1] - first, RUNG_TASK_ROWS);
      p.first_row = first;
      p.a = x.rows;
      gather_rows(&x, first, p.m);
      rung_product_panels(&p, kernel, panel0, panel1, x.scratch);
    }
  }
  return RUNG_OK;
}

bool rung_experts_fit(const rung_match *match, int a, char *why) {
  const rung_value_type *b = match->in[1];
  int64_t n = 0;
  if (!rung_product_takes(match, a, why)) return false;
  if (!b->layout) return true;
  if (rung_dims_is_constant(match->graph->dims, match->out[0].extent[2], &n) && n % RUNG_PANEL == 0) return true;
  strncpy(why, "takes packed experts of whole panels only", 119);
  return false;
}
