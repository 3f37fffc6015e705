/* SPDX-License-Identifier: MIT
 * quantize_linear, dequantize_linear, dynamic_quantize: numbers as integers with a scale and a zero point, as ONNX
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_quantize_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(axis), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "axis whose indices have scales of their own"},
    {FIELD(block), .kind = RUNG_ATTR_I64, .text_default = "0", .doc = "indices along axis that share a scale; 0: one"},
    {FIELD(type), .kind = RUNG_ATTR_TYPE, .text_default = "u8", .doc = "of the result"},
    {0}};
static const rung_attr back_attributes[] = {
    {FIELD(axis), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "axis whose indices have scales of their own"},
    {FIELD(block), .kind = RUNG_ATTR_I64, .text_default = "0", .doc = "indices along axis that share a scale; 0: one"},
    {FIELD(type), .kind = RUNG_ATTR_TYPE, .text_default = "f32", .doc = "of the result"},
    {0}};
#undef FIELD

/* ---- scales and zero points */

static bool is_single(const rung_infer *infer, const rung_value_type *p) {
  return p->rank == 0 || (p->rank == 1 && rung_dim_is(infer->dims, p->extent[0], 1));
}

static rung_status infer_parameter(rung_infer *infer, uint32_t i) {
  const rung_quantize_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0], *p = &infer->in[i];
  int axis;
  if (attrs->block < 0) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "block is negative");
  if (!attrs->block && is_single(infer, p)) return RUNG_OK;
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, x->rank, &axis));
  if (!attrs->block) {
    RUNG_TRY(rung_infer_rank(infer, i, 1));
    return rung_infer_extent(infer, i, 0, x->extent[axis]);
  }
  RUNG_TRY(rung_infer_rank(infer, i, x->rank));
  for (int k = 0; k < x->rank; k++) {
    rung_dim want = x->extent[k];
    if (k == axis)
      want = rung_dims_div(infer->dims,
                           rung_dims_add(infer->dims, want, rung_dims_constant(infer->dims, attrs->block - 1)),
                           rung_dims_constant(infer->dims, attrs->block));
    RUNG_TRY(rung_infer_extent(infer, i, k, want));
  }
  return RUNG_OK;
}

/* Where the parameter of an element lies. */
static int64_t parameter_at(const rung_operand *p, const rung_quantize_attrs *attrs, const rung_walk *place) {
  if (p->rank == 0 || (p->rank == 1 && p->extent[0] == 1 && !attrs->block)) return 0;
  const int axis = rung_axis_of(attrs->axis, place->rank);
  if (!attrs->block) return place->index[axis] * p->stride[0];
  int64_t at[RUNG_MAX_RANK];
  for (int i = 0; i < place->rank; i++) at[i] = i == axis ? place->index[i] / attrs->block : place->index[i];
  return rung_element_offset(p, at);
}

static bool is_levels(rung_type type) {
  switch (type) {
    case RUNG_TYPE_I8:
    case RUNG_TYPE_U8:
    case RUNG_TYPE_I16:
    case RUNG_TYPE_U16:
    case RUNG_TYPE_I4:
    case RUNG_TYPE_U4:
    case RUNG_TYPE_I2:
    case RUNG_TYPE_U2:
      return true;
    default:
      return false;
  }
}

/* ---- quantize_linear */

static rung_status infer_quantize(rung_infer *infer) {
  const rung_quantize_attrs *attrs = infer->attrs;
  const rung_type type = attrs->type;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT | RUNG_TAKES_INT));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_FLOAT));
  if (rung_type_is_integer(infer->in[0].type) && infer->in[0].type != RUNG_TYPE_I32)
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "of integers, x may only be i32");
  if (!is_levels(type) && rung_type_takes(type) != RUNG_TAKES_STORAGE)
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "the result cannot be %s", rung_type_name(type));
  RUNG_TRY(infer_parameter(infer, 1));
  if (infer->n_in == 3) {
    RUNG_TRY(rung_infer_class(infer, 2, RUNG_TAKES_INT | RUNG_TAKES_STORAGE));
    if (infer->in[2].type != type)
      return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "zero must have the result's type, %s", rung_type_name(type));
    RUNG_TRY(infer_parameter(infer, 2));
  }
  infer->out[0] = rung_value_type_like(&infer->in[0], type);
  return RUNG_OK;
}

static rung_status quantize_reference(const rung_args *args) {
  const rung_quantize_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *scale = &args->in[1], *y = &args->out[0];
  const rung_operand *zero = args->n_in == 3 ? &args->in[2] : NULL;
  const bool levels = is_levels(attrs->type);
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 2, (const rung_operand *[]){y, x}); w.live; rung_walk_next(&w)) {
    /* The quotient is rounded to f32 before it is rounded to a level, as everyone computes it. */
    const float divisor = (float)rung_load_f64(scale, parameter_at(scale, attrs, &w));
    const float quotient = (float)rung_load_f64(x, w.offset[1]) / divisor;
    double value = levels ? rint((double)quotient) : (double)quotient;
    if (zero) value += rung_load_f64(zero, parameter_at(zero, attrs, &w));
    rung_store_f64(y, w.offset[0], value);
  }
  return RUNG_OK;
}

static const rung_test_case quantize_cases[] = {{"f32[3,40] f32[]{0.01,0.05} u8[]{100,140}", ""},
                                                {"f32[2,5,33] f32[5]{0.01,0.05} i8[5]{-9,9}", "type=i8"},
                                                {"f32[2,5,33] f32[33]{0.01,0.05}", "axis=-1, type=i16"},
                                                {"f32[4,12] f32[4,3]{0.01,0.05} u8[4,3]", "block=4"},
                                                {"f16[3,9] f16[1]{0.01,0.05}", "type=u16"},
                                                {"f32[0,9] f32[]{0.01,0.05}", ""},
                                                {0}};

/* Exact: the definition fixes every rounding. */
const rung_op rung_op_quantize_linear = {
    .name = "quantize_linear",
    .doc = "round(x / scale) + zero, ties to even, held in the range of the result's type",
    .operands = (const char *const[]){"x", "scale", "zero", NULL},
    .in_lo = 2,
    .in_hi = 3,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_quantize_attrs),
    .infer = infer_quantize,
    .role_dims = rung_role_elements,
    .reference = quantize_reference,
    .no_gradient = "rounds to whole levels: flat between them",
    .test_lo = -4,
    .test_hi = 4,
    .tests = quantize_cases,
};

/* ---- dequantize_linear */

static rung_status infer_dequantize(rung_infer *infer) {
  const rung_quantize_attrs *attrs = infer->attrs;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_INT | RUNG_TAKES_STORAGE));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_FLOAT));
  if (!rung_type_is_float(attrs->type))
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "the result cannot be %s", rung_type_name(attrs->type));
  RUNG_TRY(infer_parameter(infer, 1));
  if (infer->n_in == 3) {
    RUNG_TRY(rung_infer_class(infer, 2, RUNG_TAKES_INT | RUNG_TAKES_STORAGE));
    RUNG_TRY(rung_infer_same_type(infer, 2, 0));
    RUNG_TRY(infer_parameter(infer, 2));
  }
  infer->out[0] = rung_value_type_like(&infer->in[0], attrs->type);
  return RUNG_OK;
}

static rung_status dequantize_reference(const rung_args *args) {
  const rung_quantize_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *scale = &args->in[1], *y = &args->out[0];
  const rung_operand *zero = args->n_in == 3 ? &args->in[2] : NULL;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 2, (const rung_operand *[]){y, x}); w.live; rung_walk_next(&w)) {
    double level = rung_load_f64(x, w.offset[1]);
    if (zero) level -= rung_load_f64(zero, parameter_at(zero, attrs, &w));
    rung_store_f64(y, w.offset[0], level * rung_load_f64(scale, parameter_at(scale, attrs, &w)));
  }
  return RUNG_OK;
}

static const rung_test_case dequantize_cases[] = {{"u8[3,40]{0,255} f32[]{0.01,0.05} u8[]{100,140}", ""},
                                                  {"i8[2,5,33]{-128,127} f32[5]{0.01,0.05} i8[5]{-9,9}", ""},
                                                  {"i32[2,33]{-9999,9999} f32[33]{0.01,0.05}", "axis=-1"},
                                                  {"u8[4,12] f16[4,3]{0.01,0.05} u8[4,3]", "block=4, type=f16"},
                                                  {"i16[0,9] f32[]{0.01,0.05}", ""},
                                                  {0}};

/* Exact up to the one rounding of the product. */
const rung_op rung_op_dequantize_linear = {
    .name = "dequantize_linear",
    .doc = "(x - zero) * scale",
    .operands = (const char *const[]){"x", "scale", "zero", NULL},
    .in_lo = 2,
    .in_hi = 3,
    .results = 1,
    .attrs = back_attributes,
    .attrs_bytes = sizeof(rung_quantize_attrs),
    .infer = infer_dequantize,
    .role_dims = rung_role_elements,
    .reference = dequantize_reference,
    .no_gradient = "of integers; that of scale is not written yet",
    .test_lo = -4,
    .test_hi = 4,
    .tests = dequantize_cases,
    .tolerance = {.relative = 1e-7, .absolute = 1e-35},
};

/* ---- dynamic_quantize: the range always holds 0; all zeros have scale 1 */

static rung_status infer_dynamic(rung_infer *infer) {
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  infer->out[0] = rung_value_type_like(&infer->in[0], RUNG_TYPE_U8);
  rung_infer_result(infer, 1, RUNG_TYPE_F32, 0, NULL);
  rung_infer_result(infer, 2, RUNG_TYPE_U8, 0, NULL);
  return RUNG_OK;
}

static rung_status dynamic_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  float low = 0, high = 0;
  rung_walk w;
  for (rung_walk_begin(&w, x->rank, x->extent, 1, &x); w.live; rung_walk_next(&w)) {
    const float v = (float)rung_load_f64(x, w.offset[0]);
    if (v < low) low = v;
    if (v > high) high = v;
  }
  const float scale = high == low ? 1 : (high - low) / 255;
  const float zero = rintf(fminf(fmaxf(0 - low / scale, 0), 255));
  for (rung_walk_begin(&w, y->rank, y->extent, 2, (const rung_operand *[]){y, x}); w.live; rung_walk_next(&w)) {
    const float quotient = (float)rung_load_f64(x, w.offset[1]) / scale;
    rung_store_f64(y, w.offset[0], rint((double)quotient) + (double)zero);
  }
  rung_store_f64(&args->out[1], 0, (double)scale);
  rung_store_f64(&args->out[2], 0, (double)zero);
  return RUNG_OK;
}

static const rung_test_case dynamic_cases[] = {{"f32[5,67]", ""},
                                               {"f32[33]{1,5}", ""},
                                               {"f32[9]{-3,-1}", ""},
                                               {"f32[7]{0,0}", ""},
                                               {"f32[0,3]", ""},
                                               {"f16[2,40]", ""},
                                               {0}};

/* Exact: the definition fixes every rounding. */
const rung_op rung_op_dynamic_quantize = {
    .name = "dynamic_quantize",
    .doc = "x as u8 with the scale and zero point that its own smallest and largest number give",
    .operands = (const char *const[]){"x", NULL},
    .results_named = (const char *const[]){"y", "scale", "zero", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 3,
    .infer = infer_dynamic,
    .role_dims = rung_role_elements,
    .reference = dynamic_reference,
    .no_gradient = "rounds to whole levels: flat between them",
    .test_lo = -4,
    .test_hi = 4,
    .tests = dynamic_cases,
};
