/* SPDX-License-Identifier: MIT
 * bitcast: the same bytes as elements of another type of the same width. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/structured.h"

static bool same_width(rung_type a, rung_type b) {
  const rung_type_row *x = rung_type_get(a), *y = rung_type_get(b);
  return x && y && x->bytes == y->bytes && x->block == y->block && x->class_ != RUNG_CLASS_BLOCK &&
         y->class_ != RUNG_CLASS_BLOCK;
}

static rung_status infer(rung_infer *infer) {
  const rung_type to = ((const rung_cast_attrs *)infer->attrs)->type;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN | RUNG_TAKES_STORAGE));
  if (!same_width(infer->in[0].type, to))
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s is not as wide", rung_type_name(to));
  infer->out[0] = rung_value_type_like(&infer->in[0], to);
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  rung_operand from = args->in[0];
  from.type = args->out[0].type;
  rung_copy_operand(&from, &args->out[0]);
  return RUNG_OK;
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {
    {"type", RUNG_ATTR_TYPE, offsetof(rung_cast_attrs, type), NULL, NULL, "element type of the result"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", "type=i32"},
                                       {"i64[3,2]{-9,9}", "type=u64"},
                                       {"bf16[9]", "type=u16"},
                                       {"u8[33]{0,255}", "type=i8"},
                                       {"i4[3,5]", "type=u4"},
                                       {"f32[0,3]", "type=u32"},
                                       {NULL, NULL}};

const rung_op rung_op_bitcast = {
    .name = "bitcast",
    .doc = "the same bytes as elements of another type of the same width",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_cast_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "bits have none",
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
