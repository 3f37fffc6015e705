/* SPDX-License-Identifier: MIT
 * The ops that the rows of unary.def, binary.def and ternary.def are. */
#include "ops/elementwise.h"

#include <stddef.h>

#include "ops/op_table.h"
#include "ops/shape.h"

/* ---- shape rules: one for each combination of what a row takes and gives */
static rung_status infer_row(rung_infer *infer, uint32_t takes, uint32_t first, bool to_bool) {
  for (uint32_t i = first; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_class(infer, i, takes));
    RUNG_TRY(rung_infer_same_type(infer, i, first));
  }
  infer->out[0] = rung_value_type_of(to_bool ? RUNG_TYPE_BOOL : infer->in[first].type, 0);
  infer->out[0].place = infer->in[0].place;
  return rung_infer_broadcast(infer, 0, infer->n_in, &infer->out[0]);
}
#define INFER(takes)                                                                                             \
  static rung_status infer_##takes(rung_infer *infer) { return infer_row(infer, RUNG_TAKES_##takes, 0, false); } \
  static RUNG_UNUSED rung_status compare_##takes(rung_infer *infer) {                                            \
    return infer_row(infer, RUNG_TAKES_##takes, 0, true);                                                        \
  }
INFER(FLOAT)
INFER(INT)
INFER(BOOL)
INFER(NUMBER)
#undef INFER
static rung_status compare_PLAIN(rung_infer *infer) { return infer_row(infer, RUNG_TAKES_PLAIN, 0, true); }
static rung_status select_PLAIN(rung_infer *infer) {
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_BOOL));
  return infer_row(infer, RUNG_TAKES_PLAIN, 1, false);
}

/* ---- test cases: scalar, empty, a vector's tail, broadcast in either direction, every class that the row takes */
#define CASES(name, ...) static const rung_test_case name[] = {__VA_ARGS__, {NULL, NULL}};
#define FLOATS1                                                                                               \
  {"f32[5,67]", ""}, {"f32[]", ""}, {"f32[0,3]", ""}, {"f32[1]", ""}, {"f64[2,3,17]", ""}, {"f16[33]", ""}, { \
    "bf16[4,16]", ""                                                                                          \
  }
#define INTS1                                                                                         \
  {"i32[5,67]{-9,9}", ""}, {"i64[3,1,5]{-9,9}", ""}, {"u8[33]{0,255}", ""}, {"i8[33]{-128,127}", ""}, \
      {"u64[7]{0,9}", ""}, {                                                                          \
    "i16[0]", ""                                                                                      \
  }
#define FLOATS2                                                                                                  \
  {"f32[5,67] f32[5,67]", ""}, {"f32[5,67] f32[67]", ""}, {"f32[1] f32[5,67]", ""}, {"f32[4,1,9] f32[3,1]", ""}, \
      {"f32[] f32[17]", ""}, {"f32[30] f32[1]", ""}, {"f32[0,3] f32[1,3]", ""}, {"f64[2,33] f64[2,33]", ""},     \
      {"f16[33] f16[33]", ""}, {                                                                                 \
    "bf16[16] bf16[]", ""                                                                                        \
  }
#define INTS2                                                                                                   \
  {"i32[5,67]{-9,9} i32[67]{-9,9}", ""}, {"i64[9]{-9,9} i64[9]{-9,9}", ""}, {"u8[33]{0,255} u8[1]{0,255}", ""}, \
      {"i8[2,33]{-128,127} i8[33]{-128,127}", ""}, {"u64[7]{0,9} u64[7]{0,9}", ""}, {                           \
    "i16[0] i16[1]", ""                                                                                         \
  }
#define BOOLS1 \
  {"bool[5,67]", ""}, {"bool[]", ""}, { "bool[0]", "" }
#define BOOLS2 \
  {"bool[5,67] bool[67]", ""}, {"bool[3] bool[3]", ""}, { "bool[0] bool[0]", "" }
CASES(cases1_FLOAT, FLOATS1)
CASES(cases1_NUMBER, FLOATS1, INTS1)
CASES(cases1_INT, INTS1)
CASES(cases1_BOOL, BOOLS1)
CASES(cases2_FLOAT, FLOATS2)
CASES(cases2_NUMBER, FLOATS2, INTS2)
CASES(cases2_INT, INTS2)
CASES(cases2_BOOL, BOOLS2)
CASES(cases2_PLAIN, FLOATS2, INTS2, BOOLS2)
CASES(cases3_NUMBER, {"f32[5,67] f32[67] f32[]", ""}, {"f32[30] f32[1] f32[1]", ""}, {"f64[9] f64[9] f64[9]", ""},
      {"f16[0] f16[] f16[]", ""}, {"i32[5,67]{-9,9} i32[]{-5,-2} i32[]{2,5}", ""})
CASES(cases_select, {"bool[5,67] f32[5,67] f32[67]", ""}, {"bool[67] f32[] f32[5,67]", ""},
      {"bool[] f32[0,3] f32[3]", ""}, {"bool[9] i64[9]{-9,9} i64[]{-9,9}", ""},
      {"bool[3,1] u8[5]{0,255} u8[3,5]{0,255}", ""}, {"bool[4] bool[4] bool[4]", ""}, {"bool[4] f64[4] f64[4]", ""},
      {"bool[16] f16[16] f16[16]", ""})

#define TOLERANCE_EXACT \
  { 0, 0 }
#define TOLERANCE_ROUND \
  { 0x1p-23, 1.2e-38 }
#define TOLERANCE_CLOSE \
  { 0x1p-20, 1.2e-38 }
#define TOLERANCE_NEAR \
  { 0x1p-20, 0x1p-21 }

/* ---- the ops */
enum { ROW_FLAGS = RUNG_OP_ELEMENTWISE | RUNG_OP_ROW_LOCAL | RUNG_OP_IN_PLACE };
static const char *const operands_x[] = {"x", NULL};
static const char *const operands_ab[] = {"a", "b", NULL};

#define DECOMPOSE_COMPOSITE(name) rung_decompose_##name
#define DECOMPOSE_PRIMITIVE(name) NULL
#define COMMON(name_, n, operands_, text)                                                                       \
  .name = #name_, .doc = text, .operands = operands_, .in_lo = n, .in_hi = n, .results = 1, .flags = ROW_FLAGS, \
  .role_dims = rung_role_elements, .reference = rung_reference_##name_
#define FLOAT_ROW(name_, lo, hi, tol) \
  .gradient = rung_gradient_##name_, .test_lo = lo, .test_hi = hi, .tolerance = TOLERANCE_##tol

#define UNARY(name, takes, form, value, integer, gradient_, lo, hi, tol, text)                   \
  const rung_op rung_op_##name = {                                                               \
      COMMON(name, 1, operands_x, text),   FLOAT_ROW(name, lo, hi, tol), .infer = infer_##takes, \
      .decompose = DECOMPOSE_##form(name), .expression = #value,         .tests = cases1_##takes};
#define ATTR(name_, field, default_)                                                                             \
  {                                                                                                              \
    .name = #name_, .kind = RUNG_ATTR_F64, .offset = offsetof(rung_row_attrs, field), .text_default = #default_, \
    .doc = NULL                                                                                                  \
  }
#define PARAMETERS(name, value, lo, hi, tol, text)                       \
  const rung_op rung_op_##name = {COMMON(name, 1, operands_x, text),     \
                                  FLOAT_ROW(name, lo, hi, tol),          \
                                  .attrs = attrs_##name,                 \
                                  .attrs_bytes = sizeof(rung_row_attrs), \
                                  .infer = infer_FLOAT,                  \
                                  .decompose = rung_decompose_##name,    \
                                  .expression = #value,                  \
                                  .tests = cases1_FLOAT};
#define UNARY1(name, value, gradient_, p_, p_default, lo, hi, tol, text)                            \
  static const rung_attr attrs_##name[] = {ATTR(p_, p, p_default), {NULL, 0, 0, NULL, NULL, NULL}}; \
  PARAMETERS(name, value, lo, hi, tol, text)
#define UNARY2(name, value, gradient_, p_, p_default, q_, q_default, lo, hi, tol, text) \
  static const rung_attr attrs_##name[] = {                                             \
      ATTR(p_, p, p_default), ATTR(q_, q, q_default), {NULL, 0, 0, NULL, NULL, NULL}};  \
  PARAMETERS(name, value, lo, hi, tol, text)
#define INTEGER1(name, takes, integer, text)                                                                         \
  const rung_op rung_op_##name = {COMMON(name, 1, operands_x, text), .infer = infer_##takes, .expression = #integer, \
                                  .no_gradient = "integers and bool have none", .tests = cases1_##takes};
#define PREDICATE(name, value, text)                                   \
  const rung_op rung_op_##name = {COMMON(name, 1, operands_x, text),   \
                                  .infer = compare_FLOAT,              \
                                  .expression = #value,                \
                                  .no_gradient = "the result is bool", \
                                  .test_lo = -4,                       \
                                  .test_hi = 4,                        \
                                  .tests = cases1_FLOAT};
#define BINARY(name, takes, form, value, integer, for_a, for_b, lo, hi, tol, text)               \
  const rung_op rung_op_##name = {                                                               \
      COMMON(name, 2, operands_ab, text),  FLOAT_ROW(name, lo, hi, tol), .infer = infer_##takes, \
      .decompose = DECOMPOSE_##form(name), .expression = #value,         .tests = cases2_##takes};
#define INTEGER2(name, takes, integer, text)                                                                          \
  const rung_op rung_op_##name = {COMMON(name, 2, operands_ab, text), .infer = infer_##takes, .expression = #integer, \
                                  .no_gradient = "integers and bool have none", .tests = cases2_##takes};
#define COMPARE(name, takes, value, integer, text)                     \
  const rung_op rung_op_##name = {COMMON(name, 2, operands_ab, text),  \
                                  .infer = compare_##takes,            \
                                  .expression = #value,                \
                                  .no_gradient = "the result is bool", \
                                  .test_lo = -4,                       \
                                  .test_hi = 4,                        \
                                  .tests = cases2_##takes};
#define TERNARY(name, n1, n2, n3, takes, form, value, integer, for_a, for_b, for_c, lo, hi, tol, text) \
  static const char *const operands_##name[] = {#n1, #n2, #n3, NULL};                                  \
  const rung_op rung_op_##name = {                                                                     \
      COMMON(name, 3, operands_##name, text), FLOAT_ROW(name, lo, hi, tol), .infer = infer_##takes,    \
      .decompose = DECOMPOSE_##form(name),    .expression = #value,         .tests = cases3_##takes};
#define SELECTION(name, n1, n2, n3, takes, value, integer, for_b, for_c, lo, hi, text)                    \
  static const char *const operands_##name[] = {#n1, #n2, #n3, NULL};                                     \
  const rung_op rung_op_##name = {COMMON(name, 3, operands_##name, text), FLOAT_ROW(name, lo, hi, EXACT), \
                                  .infer = select_##takes, .expression = #value, .tests = cases_select};
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef INTEGER1
#undef PREDICATE
#undef BINARY
#undef INTEGER2
#undef COMPARE
#undef TERNARY
#undef SELECTION

/* ---- rows as data */
#define INTEGER_TEXT(takes, text) (RUNG_TAKES_##takes & RUNG_TAKES_INT ? text : NULL)
static const rung_row rows[] = {
#define UNARY(name, takes_, form, value_, integer_, ...) \
  {&rung_op_##name, #value_, INTEGER_TEXT(takes_, #integer_), RUNG_TAKES_##takes_, 1, 0, false, false},
#define UNARY1(name, value_, ...) {&rung_op_##name, #value_, NULL, RUNG_TAKES_FLOAT, 1, 1, false, false},
#define UNARY2(name, value_, ...) {&rung_op_##name, #value_, NULL, RUNG_TAKES_FLOAT, 1, 2, false, false},
#define INTEGER1(name, takes_, integer_, ...) \
  {&rung_op_##name, NULL, #integer_, RUNG_TAKES_##takes_, 1, 0, false, false},
#define PREDICATE(name, value_, ...) {&rung_op_##name, #value_, NULL, RUNG_TAKES_FLOAT, 1, 0, true, false},
#define BINARY(name, takes_, form, value_, integer_, ...) \
  {&rung_op_##name, #value_, INTEGER_TEXT(takes_, #integer_), RUNG_TAKES_##takes_, 2, 0, false, false},
#define INTEGER2(name, takes_, integer_, ...) \
  {&rung_op_##name, NULL, #integer_, RUNG_TAKES_##takes_, 2, 0, false, false},
#define COMPARE(name, takes_, value_, integer_, ...) \
  {&rung_op_##name, #value_, #integer_, RUNG_TAKES_##takes_, 2, 0, true, false},
#define TERNARY(name, n1, n2, n3, takes_, form, value_, integer_, ...) \
  {&rung_op_##name, #value_, #integer_, RUNG_TAKES_##takes_, 3, 0, false, false},
#define SELECTION(name, n1, n2, n3, takes_, value_, integer_, ...) \
  {&rung_op_##name, #value_, #integer_, RUNG_TAKES_##takes_, 3, 0, false, true},
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
};

const rung_row *rung_row_of(const rung_op *op) {
  for (size_t i = 0; i < RUNG_COUNT(rows); i++)
    if (rows[i].op == op) return &rows[i];
  return NULL;
}
size_t rung_row_count(void) { return RUNG_COUNT(rows); }
const rung_row *rung_row_at(size_t index) { return index < RUNG_COUNT(rows) ? &rows[index] : NULL; }
