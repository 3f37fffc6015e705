/* SPDX-License-Identifier: MIT
 * slice: along each axis, `length` elements from `start` on, `step` apart (step may be negative). Starts and lengths
 * are resolved by the builder: nothing is clamped here, what leaves the operand is refused. Always a view. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* First and last index must lie inside the operand, unless nothing is taken. */
static rung_status check_axis(rung_infer *infer, const rung_slice_attrs *attrs, int axis) {
  rung_dims *dims = infer->dims;
  const rung_dim start = attrs->start.dim[axis], length = attrs->length.dim[axis], zero = rung_dims_constant(dims, 0);
  const int64_t step = attrs->step.value[axis];
  RUNG_TRY(rung_infer_dim(infer, start));
  RUNG_TRY(rung_infer_dim(infer, length));
  if (step == 0) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "the step of axis %d is 0", axis);
  if (rung_dim_is(dims, length, 0)) return RUNG_OK;
  const rung_dim steps =
      rung_dims_mul(dims, rung_dims_sub(dims, length, rung_one(dims)), rung_dims_constant(dims, step));
  const rung_dim last = rung_dims_add(dims, start, steps), low = step > 0 ? start : last,
                 high = step > 0 ? last : start;
  RUNG_TRY(rung_infer_dim(infer, last));
  const rung_dim end = rung_dims_add(dims, high, rung_one(dims));
  if (rung_infer_at_least(infer, length, zero) && rung_infer_at_least(infer, low, zero) &&
      rung_infer_at_least(infer, infer->in[0].extent[axis], end))
    return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "the slice of axis %d leaves the operand", axis);
}

static rung_status check_block(rung_infer *infer, const rung_slice_attrs *attrs) {
  const rung_value_type *x = &infer->in[0];
  const rung_type_row *row = rung_type_get(x->type);
  if (rung_type_takes(x->type) != RUNG_TAKES_BLOCK || x->rank == 0) return RUNG_OK;
  const int last = x->rank - 1;
  const rung_dim block = rung_dims_constant(infer->dims, row->block);
  const rung_dim first = rung_dims_combine(infer->dims, RUNG_DIM_MOD, attrs->start.dim[last], block);
  const rung_dim length = rung_dims_combine(infer->dims, RUNG_DIM_MOD, attrs->length.dim[last], block);
  if (attrs->step.value[last] == 1 && rung_dim_is(infer->dims, first, 0) && rung_dim_is(infer->dims, length, 0))
    return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "the last axis of %s is cut at multiples of %d only", row->name,
                           row->block);
}

static rung_status infer(rung_infer *infer) {
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_ALL));
  if (attrs->start.count != x->rank || attrs->length.count != x->rank || attrs->step.count != x->rank)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "start, length and step must have %d entries", x->rank);
  infer->out[0] = rung_value_type_like(x, x->type);
  for (int axis = 0; axis < x->rank; axis++) {
    RUNG_TRY(check_axis(infer, attrs, axis));
    infer->out[0].extent[axis] = attrs->length.dim[axis];
  }
  return check_block(infer, attrs);
}

static rung_status reference(const rung_args *args) {
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)args->attrs;
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  int64_t offset = 0, stride[2][RUNG_MAX_RANK] = {{0}};
  for (int axis = 0; axis < x.rank; axis++) {
    const int64_t start = rung_args_dim(args, attrs->start.dim[axis]);
    offset += (axis == x.rank - 1 ? start / x.block : start) * x.stride[axis];
    stride[0][axis] = y.stride[axis];
    stride[1][axis] = x.stride[axis] * attrs->step.value[axis];
  }
  rung_walk w;
  for (rung_walk_begin_strides(&w, y.rank, y.extent, 2, stride); w.live; rung_walk_next(&w))
    rung_unit_copy(&y, w.offset[0], &x, offset + w.offset[1]);
  return RUNG_OK;
}

/* Zeros around, and between where the step leaves elements out. */
static rung_value spread(rung_graph *g, rung_value gy, int axis, int64_t step, rung_dim extent) {
  rung_dims *dims = g->dims;
  const rung_value wide = rung_build_unsqueeze(g, gy, axis + 1);
  const rung_value_type type = *rung_build_type(g, wide);
  rung_pad_attrs pad = {.before = {.count = type.rank}, .after = {.count = type.rank}};
  for (int i = 0; i < type.rank; i++) pad.before.dim[i] = pad.after.dim[i] = rung_dims_constant(dims, 0);
  pad.after.dim[axis + 1] = rung_dims_constant(dims, step - 1);
  const rung_value padded = rung_graph_op(g, &rung_op_pad, &wide, 1, &pad);
  rung_dim merged[RUNG_MAX_RANK];
  for (int i = 0; i < type.rank - 1; i++) merged[i] = i < axis ? type.extent[i] : type.extent[i == axis ? i : i + 1];
  merged[axis] = rung_dims_mul(dims, extent, rung_dims_constant(dims, step));
  const rung_value flat = rung_build_reshape(g, padded, type.rank - 1, merged);
  /* The last element has no gap after it. */
  return rung_build_slice(g, flat, axis, rung_dims_constant(dims, 0),
                          rung_dims_sub(dims, merged[axis], rung_dims_constant(dims, step - 1)));
}

static rung_value reversed(rung_graph *g, rung_value x, int axis, rung_dim last) {
  const rung_value_type type = *rung_build_type(g, x);
  rung_slice_attrs attrs = {
      .start = {.count = type.rank}, .length = {.count = type.rank}, .step = {.count = type.rank}};
  for (int i = 0; i < type.rank; i++) {
    attrs.start.dim[i] = i == axis ? last : rung_dims_constant(g->dims, 0);
    attrs.length.dim[i] = type.extent[i];
    attrs.step.value[i] = i == axis ? -1 : 1;
  }
  return rung_graph_op(g, &rung_op_slice, &x, 1, &attrs);
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  rung_dims *dims = g->dims;
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)node->attrs;
  const rung_value_type x = *rung_build_type(g, in[0]);
  rung_value value = gy[0];
  rung_pad_attrs pad = {.before = {.count = x.rank}, .after = {.count = x.rank}};
  for (int axis = 0; axis < x.rank; axis++) {
    int64_t step = attrs->step.value[axis];
    const rung_dim length = attrs->length.dim[axis];
    rung_dim start = attrs->start.dim[axis];
    const bool empty = rung_dim_is(dims, length, 0);
    if (step < 0 && !empty) { /* from the last element taken on, forwards */
      const rung_dim last = rung_dims_sub(dims, length, rung_one(dims));
      start = rung_dims_add(dims, start, rung_dims_mul(dims, last, rung_dims_constant(dims, step)));
      value = reversed(g, value, axis, last);
      step = -step;
    }
    if (empty)
      start = rung_dims_constant(dims, 0);
    else if (step > 1)
      value = spread(g, value, axis, step, length);
    pad.before.dim[axis] = start;
    pad.after.dim[axis] =
        rung_dims_sub(dims, rung_dims_sub(dims, x.extent[axis], start), rung_build_type(g, value)->extent[axis]);
  }
  out_gx[0] = rung_graph_op(g, &rung_op_pad, &value, 1, &pad);
}

static bool view(rung_view_rule *rule) {
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)rule->attrs;
  rung_dims *dims = rule->dims;
  const rung_value_type *x = &rule->in[0];
  const bool blocks = rung_type_takes(x->type) == RUNG_TAKES_BLOCK;
  const int64_t block = rung_type_get(x->type)->block;
  if (block > 1 && !blocks) return false; /* a slice of narrow storage may begin inside a byte */
  for (int axis = 0; axis < x->rank; axis++) {
    rung_dim start = attrs->start.dim[axis];
    if (blocks && attrs->step.value[axis] < 0) return false; /* offsets of blocks count forwards */
    if (blocks && axis == x->rank - 1) start = rung_dims_div(dims, start, rung_dims_constant(dims, block));
    rule->out_stride[axis] =
        rung_dims_mul(dims, rule->in_stride[axis], rung_dims_constant(dims, attrs->step.value[axis]));
    if (rung_dim_is(dims, attrs->length.dim[axis], 0)) continue; /* an empty slice may start anywhere */
    rule->out_offset = rung_dims_add(dims, rule->out_offset, rung_dims_mul(dims, start, rule->in_stride[axis]));
  }
  return true;
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {
    {"start", RUNG_ATTR_DIMS, offsetof(rung_slice_attrs, start), NULL, NULL, "first index along each axis"},
    {"length", RUNG_ATTR_DIMS, offsetof(rung_slice_attrs, length), NULL, NULL, "extents of the result"},
    {"step", RUNG_ATTR_I64S, offsetof(rung_slice_attrs, step), NULL, NULL, "distance along each axis, not 0"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", "start=[1,3], length=[3,60], step=[1,1]"},
                                       {"f32[10]", "start=[9], length=[5], step=[-2]"},
                                       {"i32[4,9]{-9,9}", "start=[0,1], length=[4,3], step=[1,3]"},
                                       {"f32[10]", "start=[10], length=[0], step=[1]"},
                                       {"f32[0,3]", "start=[0,1], length=[0,2], step=[1,1]"},
                                       {"f64[4,9]", "start=[1,1], length=[2,3], step=[1,3]"},
                                       {"f64[7]", "start=[0], length=[4], step=[2]"},
                                       {"f64[7,2]", "start=[6,1], length=[3,2], step=[-2,-1]"},
                                       {"bool[3]", "start=[2], length=[1], step=[1]"},
                                       {"q8_0[6,96]", "start=[1,32], length=[4,64], step=[1,1]"},
                                       {"q4_0[6,32]", "start=[5,0], length=[3,32], step=[-2,1]"},
                                       {"u4[5,7]", "start=[1,3], length=[3,3], step=[1,1]"},
                                       {NULL, NULL}};

const rung_op rung_op_slice = {
    .name = "slice",
    .doc = "along each axis, length elements from start on, step apart",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_VIEW,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_slice_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .view = view,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
