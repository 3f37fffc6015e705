/* SPDX-License-Identifier: MIT
 * quantize_rows: activations to blocks of 32 int8 with their scale and sums.
 *
 * For each block of 32 numbers x, all in f32:
 *   scale = max|x| / 127, or 0 where that is below the smallest normal number (kernels flush denormals; so does this)
 *   q     = x * (1 / scale), rounded to nearest, ties to even, held in [-127, 127]; 0 where scale is 0
 *   sums  = of q[0..15] and q[16..31]
 * A NaN among the 32 makes scale NaN, an infinity makes it infinite; q is 0 then, and since 0 times either is NaN,
 * every product with the block is NaN, as it would be in float. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/structured.h"

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 1));
  const rung_dim rest =
      rung_dims_combine(infer->dims, RUNG_DIM_MOD, x->extent[x->rank - 1], rung_dims_constant(infer->dims, 32));
  RUNG_TRY(rung_infer_dim(infer, rest));
  RUNG_TRY(rung_infer_agree(infer, rest, rung_dims_constant(infer->dims, 0), "the last axis and a multiple of 32"));
  infer->out[0] = rung_value_type_like(x, RUNG_TYPE_A8);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_product(dims, in[0].extent, 0, in[0].rank - 1);
  out_role[1] = in[0].extent[in[0].rank - 1];
}

static rung_a8 quantize(const float *x) {
  rung_a8 block = {.scale = 0};
  float largest = 0;
  for (int j = 0; j < 32; j++) {
    if (!(fabsf(x[j]) <= largest)) largest = fabsf(x[j]); /* a NaN enters, and nothing is greater than it */
    if (isnan(x[j])) break;
  }
  block.scale = largest / 127.0f;
  if (block.scale < FLT_MIN) block.scale = 0;
  if (!(block.scale > 0 && block.scale <= FLT_MAX)) return block;
  const float inverse = 1.0f / block.scale;
  for (int j = 0; j < 32; j++) {
    const float level = rintf(x[j] * inverse);
    block.q[j] = (int8_t)(level > 127 ? 127 : level < -127 ? -127 : level);
    int16_t *sum = j < 16 ? &block.sum_low : &block.sum_high;
    *sum = (int16_t)(*sum + block.q[j]);
  }
  return block;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *x = &args->in[0];
  const rung_units y = rung_units_of(&args->out[0]);
  const int64_t step = rung_axis_step(x, x->rank - 1);
  int64_t stride[2][RUNG_MAX_RANK];
  memcpy(stride[0], y.stride, sizeof stride[0]);
  rung_element_strides(x, stride[1]);
  stride[1][x->rank - 1] = 32 * step;
  rung_walk w;
  for (rung_walk_begin_strides(&w, y.rank, y.extent, 2, stride); w.live; rung_walk_next(&w)) {
    float in_block[32];
    for (int j = 0; j < 32; j++) in_block[j] = (float)rung_load_f64(x, w.offset[1] + j * step);
    const rung_a8 block = quantize(in_block);
    memcpy(rung_unit_at(&y, w.offset[0]), &block, sizeof block);
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"f32[5,64]", ""}, {"f32[1,32]", ""}, {"f32[3,2,576]", ""},
                                       {"f16[4,96]", ""}, {"f32[0,32]", ""}, {0}};

/* Exact: the definition fixes every rounding. */
const rung_op rung_op_quantize_rows = {
    .name = "quantize_rows",
    .doc = "blocks of 32 numbers along the last axis as int8 with an f32 scale and two sums",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_ROW_LOCAL,
    .roles = (const char *const[]){"rows", "columns", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "rounds to whole levels: flat between them",
    .test_lo = -4,
    .test_hi = 4,
    .tests = cases,
};
