/* SPDX-License-Identifier: MIT
 * iota: 0, 1, 2, ... along an axis. With mul and add: any range, and position numbers. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_iota_attrs *attrs = (const rung_iota_attrs *)infer->attrs;
  int axis;
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, attrs->shape.count, &axis));
  if (!(rung_type_takes(attrs->type) & RUNG_TAKES_NUMBER))
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s is no type of numbers", rung_type_name(attrs->type));
  infer->out[0] = rung_value_type_of(attrs->type, attrs->shape.count);
  for (int i = 0; i < attrs->shape.count; i++) {
    infer->out[0].extent[i] = attrs->shape.dim[i];
    RUNG_TRY(rung_infer_dim(infer, attrs->shape.dim[i]));
  }
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *y = &args->out[0];
  const rung_operand *const operand[1] = {y};
  const int axis = rung_axis_of(((const rung_iota_attrs *)args->attrs)->axis, y->rank);
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, operand); w.live; rung_walk_next(&w)) {
    if (rung_operand_is_integer(y))
      rung_store_i64(y, w.offset[0], w.index[axis]);
    else
      rung_store_f64(y, w.offset[0], (double)w.index[axis]);
  }
  return RUNG_OK;
}

static const char *const operands[] = {NULL};
static const rung_attr attrs[] = {
    {"shape", RUNG_ATTR_DIMS, offsetof(rung_iota_attrs, shape), NULL, NULL, "extents of the result"},
    {"axis", RUNG_ATTR_I64, offsetof(rung_iota_attrs, axis), "-1", NULL, "along which it counts"},
    {"type", RUNG_ATTR_TYPE, offsetof(rung_iota_attrs, type), "i64", NULL, "element type of the result"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {
    {"", "shape=[5,17]"}, {"", "shape=[5,17], axis=0, type=f32"},  {"", "shape=[300], axis=0, type=u8"},
    {"", "shape=[0]"},    {"", "shape=[2,3,4], axis=1, type=i32"}, {NULL, NULL}};

const rung_op rung_op_iota = {
    .name = "iota",
    .doc = "0, 1, 2, ... along an axis",
    .operands = operands,
    .in_lo = 0,
    .in_hi = 0,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_iota_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "has no operands",
    .tests = tests,
};
