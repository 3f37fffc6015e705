/* SPDX-License-Identifier: MIT
 * pool_ragged: one row for every sequence of a ragged batch: the mean, the first, the last or the largest of its rows.
 * A sequence without rows gives zeros. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

static const char *const modes[] = {"mean", "first", "last", "max", NULL};
static const rung_attr attributes[] = {{.name = "mode",
                                        .kind = RUNG_ATTR_ENUM,
                                        .offset = offsetof(rung_pool_ragged_attrs, mode),
                                        .text_default = "mean",
                                        .names = modes,
                                        .doc = "what is made of a sequence's rows; max: NaN if any is"},
                                       {0}};

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *offsets = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 0, 2));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_rank(infer, 1, 1));
  const rung_dim sequences = rung_dims_sub(infer->dims, offsets->extent[0], rung_one(infer->dims));
  rung_infer_result(infer, 0, x->type, 2, (const rung_dim[]){sequences, x->extent[1]});
  return rung_infer_dim(infer, sequences);
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[0].extent[0];
  out_role[1] = in[0].extent[1];
}

/* Of column `column` of rows [first, end), at least one. */
static double pooled(const rung_operand *x, int64_t first, int64_t end, int64_t column, int32_t mode) {
#define AT(row) rung_load_f64(x, (row)*x->stride[0] + column * x->stride[1])
  if (mode == RUNG_POOL_FIRST) return AT(first);
  if (mode == RUNG_POOL_LAST) return AT(end - 1);
  double sum = AT(first);
  for (int64_t row = first + 1; row < end; row++) {
    const double value = AT(row);
    if (mode == RUNG_POOL_MEAN)
      sum += value;
    else if (value > sum || value != value)
      sum = value;
  }
#undef AT
  return mode == RUNG_POOL_MEAN ? sum / (double)(end - first) : sum;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *offsets = &args->in[1], *y = &args->out[0];
  RUNG_TRY(rung_check_ragged(args, "pool_ragged", offsets, x->extent[0]));
  for (int64_t s = 0; s < y->extent[0]; s++) {
    const int64_t first = rung_vector_at(offsets, s), end = rung_vector_at(offsets, s + 1);
    for (int64_t column = 0; column < y->extent[1]; column++) {
      const int32_t mode = ((const rung_pool_ragged_attrs *)args->attrs)->mode;
      const double value = first < end ? pooled(x, first, end, column, mode) : 0;
      rung_store_f64(y, s * y->stride[0] + column * y->stride[1], value);
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[0,24] i32[4]{0,0}", ""}, {"f16[0,5] i64[1]{0,0}", "mode=max"}, {"f64[0,3] i32[2]{0,0}", "mode=first"}, {0}};

/* Sums of runs of rows: some ten roundings of terms no larger than the largest. */
const rung_op rung_op_pool_ragged = {
    .name = "pool_ragged",
    .doc =
        "the mean, first, last or largest of the rows of every sequence, which offsets [n+1] delimit; zeros for none",
    .operands = (const char *const[]){"x", "offsets", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_pool_ragged_attrs),
    .roles = (const char *const[]){"rows", "columns", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "not yet: wants the sequence of every row",
    .test_lo = -2,
    .test_hi = 2,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-6},
};
