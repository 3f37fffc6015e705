/* SPDX-License-Identifier: MIT
 * conv_integer: conv of x - x_zero with w - w_zero, exact in 32 bits, which wrap; padding has the value of x_zero, so
 * that it adds nothing. As ONNX ConvInteger. */
#include "ops/spatial.h"

static rung_status check_levels(const rung_infer *infer, uint32_t i) {
  const rung_type type = infer->in[i].type;
  RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_INT));
  if (type == RUNG_TYPE_I8 || type == RUNG_TYPE_U8) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "operands must be i8 or u8");
}

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  rung_dim extent[RUNG_MAX_RANK];
  for (uint32_t i = 0; i < infer->n_in; i++) RUNG_TRY(check_levels(infer, i));
  RUNG_TRY(rung_infer_ranks(infer, 0, 3, 2 + RUNG_SPATIAL));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  RUNG_TRY(rung_conv_extents(infer, extent));
  if (infer->n_in > 2) RUNG_TRY(rung_infer_scalar(infer, 2, x->type));
  if (infer->n_in > 3) {
    const rung_value_type *zero = &infer->in[3];
    RUNG_TRY(rung_infer_same_type(infer, 3, 1));
    if (zero->rank != 0 && !(zero->rank == 1 && rung_dim_is(infer->dims, zero->extent[0], 1))) {
      RUNG_TRY(rung_infer_rank(infer, 3, 1));
      RUNG_TRY(rung_infer_extent(infer, 3, 0, extent[1]));
    }
  }
  rung_infer_result(infer, 0, RUNG_TYPE_I32, x->rank, extent);
  return RUNG_OK;
}

static int64_t compute(const rung_args *args, const rung_spatial *s, const rung_walk *place) {
  const rung_operand *x = &args->in[0], *w = &args->in[1];
  const int64_t channels = w->extent[1], o = place->index[1];
  const int64_t first = o / (w->extent[0] / ((const rung_conv_attrs *)args->attrs)->groups) * channels;
  const int64_t x_zero = args->n_in > 2 ? rung_load_i64(&args->in[2], 0) : 0;
  int64_t w_zero = 0, sum = 0;
  if (args->n_in > 3) {
    const rung_operand *zero = &args->in[3];
    w_zero = rung_vector_at(zero, zero->rank && zero->extent[0] != 1 ? o : 0);
  }
  int64_t at_x[RUNG_MAX_RANK] = {place->index[0]}, at_w[RUNG_MAX_RANK] = {o};
  rung_window window;
  for (int64_t c = 0; c < channels; c++) {
    at_x[1] = first + c;
    at_w[1] = c;
    for (rung_window_begin(&window, s, place->index + 2, x->extent + 2); window.walk.live;
         rung_window_next(&window, s, place->index + 2, x->extent + 2)) {
      if (!window.inside) continue;
      for (int axis = 0; axis < s->axes; axis++) at_x[2 + axis] = window.at[axis];
      for (int axis = 0; axis < s->axes; axis++) at_w[2 + axis] = window.walk.index[axis];
      sum += (rung_load_i64(x, rung_element_offset(x, at_x)) - x_zero) *
             (rung_load_i64(w, rung_element_offset(w, at_w)) - w_zero);
    }
  }
  return sum;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *w = &args->in[1], *y = &args->out[0];
  rung_spatial s;
  rung_conv_fill(&s, args->attrs, y->rank - 2);
  for (int axis = 0; axis < s.axes; axis++) s.kernel[axis] = w->extent[2 + axis];
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place))
    rung_store_i64(y, place.offset[0], compute(args, &s, &place));
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"u8[2,3,7,8]{0,255} i8[4,3,3,3]{-128,127} u8[]{100,140}", "pad_before=[1,1], pad_after=[1,1]"},
    {"u8[1,4,9,40]{0,255} u8[14,2,3,2]{0,255} u8[1]{0,255} u8[14]{0,255}",
     "stride=[2,1], dilation=[1,2], pad_before=[0,1], groups=2"},
    {"i8[1,5,11]{-128,127} i8[5,1,3]{-128,127} i8[]{-9,9} i8[]{-9,9}",
     "stride=[3], pad_before=[2], pad_after=[1], groups=5"},
    {"u8[1,2,4,5,3] i8[3,2,2,2,2]", "dilation=[2,1,1]"},
    {"u8[0,3,7] i8[4,3,3]", ""},
    {0}};

const rung_op rung_op_conv_integer = {
    .name = "conv_integer",
    .doc = "convolution of 8-bit integers, zero points taken away, exact in i32",
    .operands = (const char *const[]){"x", "w", "x_zero", "w_zero", NULL},
    .in_lo = 2,
    .in_hi = 4,
    .results = 1,
    .attrs = rung_conv_attributes,
    .attrs_bytes = sizeof(rung_conv_attrs),
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .infer = infer,
    .role_dims = rung_conv_roles,
    .reference = reference,
    .no_gradient = "integers",
    .tests = cases,
};
