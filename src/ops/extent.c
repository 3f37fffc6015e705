/* SPDX-License-Identifier: MIT
 * extent: a dimension as a number that other ops compute with (a divisor, a loop's trip count, what a model makes of
 * its own lengths). */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  RUNG_TRY(rung_infer_dim(infer, ((const rung_extent_attrs *)infer->attrs)->value));
  infer->out[0] = rung_value_type_of(RUNG_TYPE_I64, 0);
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  rung_store_i64(&args->out[0], 0, rung_args_dim(args, ((const rung_extent_attrs *)args->attrs)->value));
  return RUNG_OK;
}

static const char *const operands[] = {NULL};
static const rung_attr attrs[] = {
    {"value", RUNG_ATTR_DIM, offsetof(rung_extent_attrs, value), NULL, NULL, "the dimension"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"", "value=7"}, {"", "value=0"}, {NULL, NULL}};

const rung_op rung_op_extent = {
    .name = "extent",
    .doc = "a dimension as an i64 scalar",
    .operands = operands,
    .in_lo = 0,
    .in_hi = 0,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_extent_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "has no operands",
    .tests = tests,
};
