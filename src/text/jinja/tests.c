/* SPDX-License-Identifier: MIT
 * Tests: value is name(arguments). */
#include <math.h>

#include "text/jinja/characters.h"
#include "text/jinja/rows.h"
#include "text/utf8.h"

/* A test is an expression of its value `v`, and perhaps of its argument `a`. */
#define TEST_OF(name, expression)                                                                              \
  rung_status rung_jtest_##name(rung_jrun *run, rung_jvalue v, const rung_jcall *call, const rung_jvalue *arg, \
                                rung_jvalue *out) {                                                            \
    (void)run, (void)v, (void)call, (void)arg;                                                                 \
    *out = rung_j_bool(expression);                                                                            \
    return RUNG_OK;                                                                                            \
  }
TEST_OF(defined, v.kind != RUNG_J_UNDEFINED)
TEST_OF(undefined, v.kind == RUNG_J_UNDEFINED)
TEST_OF(none, v.kind == RUNG_J_NONE)
TEST_OF(boolean, v.kind == RUNG_J_BOOL)
TEST_OF(true, v.kind == RUNG_J_BOOL && v.as.truth)
TEST_OF(false, v.kind == RUNG_J_BOOL && !v.as.truth)
TEST_OF(integer, v.kind == RUNG_J_INT || v.kind == RUNG_J_BIG)
TEST_OF(float, v.kind == RUNG_J_FLOAT)
TEST_OF(number, rung_j_is_number(v) || v.kind == RUNG_J_BIG)
TEST_OF(string, v.kind == RUNG_J_STRING)
TEST_OF(mapping, v.kind == RUNG_J_DICT)
TEST_OF(escaped, v.kind == RUNG_J_STRING && v.as.string->safe)
TEST_OF(callable, v.kind == RUNG_J_MACRO || v.kind == RUNG_J_FUNCTION || v.kind == RUNG_J_METHOD ||
                      v.kind == RUNG_J_LOOP || v.kind == RUNG_J_JOINER || v.kind == RUNG_J_UNDEFINED)
TEST_OF(iterable, rung_j_is_list(v) || v.kind == RUNG_J_STRING || v.kind == RUNG_J_DICT || v.kind == RUNG_J_UNDEFINED ||
                      v.kind == RUNG_J_LOOP)
TEST_OF(filter, v.kind == RUNG_J_STRING && rung_jrow_filter(v.as.string->data, v.as.string->length) != NULL)
TEST_OF(test, v.kind == RUNG_J_STRING && rung_jrow_test(v.as.string->data, v.as.string->length) != NULL)

/* What has both len() and []: Undefined raises when it is asked for []. */
rung_status rung_jtest_sequence(rung_jrun *run, rung_jvalue v, const rung_jcall *call, const rung_jvalue *arg,
                                rung_jvalue *out) {
  (void)run, (void)call, (void)arg;
  *out = rung_j_bool(v.kind == RUNG_J_STRING || v.kind == RUNG_J_LIST || v.kind == RUNG_J_TUPLE ||
                     v.kind == RUNG_J_RANGE || v.kind == RUNG_J_DICT || v.kind == RUNG_J_UNDEFINED);
  return RUNG_OK;
}

#define COMPARISON(name, how)                                                                                  \
  rung_status rung_jtest_##name(rung_jrun *run, rung_jvalue v, const rung_jcall *call, const rung_jvalue *arg, \
                                rung_jvalue *out) {                                                            \
    int order;                                                                                                 \
    (void)call;                                                                                                \
    RUNG_TRY(rung_j_order(run, v, arg[0], #how, &order));                                                      \
    *out = rung_j_bool(order how 0);                                                                           \
    return RUNG_OK;                                                                                            \
  }
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

#define ROW(name)                                                                                              \
  rung_status rung_jtest_##name(rung_jrun *run, rung_jvalue v, const rung_jcall *call, const rung_jvalue *arg, \
                                rung_jvalue *out)
ROW(eq) {
  bool same;
  (void)call;
  RUNG_TRY(rung_j_equal(run, v, arg[0], &same));
  *out = rung_j_bool(same);
  return RUNG_OK;
}
ROW(ne) {
  bool same;
  (void)call;
  RUNG_TRY(rung_j_equal(run, v, arg[0], &same));
  *out = rung_j_bool(!same);
  return RUNG_OK;
}
ROW(in) {
  bool found;
  (void)call;
  RUNG_TRY(rung_j_contains(run, arg[0], v, &found));
  *out = rung_j_bool(found);
  return RUNG_OK;
}

/* Identity: only of values that Python has once, and of objects of the template. */
ROW(sameas) {
  (void)call;
  bool same = v.kind == arg[0].kind;
  switch (v.kind) {
    case RUNG_J_NONE:
      break;
    case RUNG_J_BOOL:
      same = same && v.as.truth == arg[0].as.truth;
      break;
    case RUNG_J_INT:
    case RUNG_J_FLOAT:
    case RUNG_J_STRING:
    case RUNG_J_BIG:
      if (same)
        return rung_j_refuse(run, RUNG_UNSUPPORTED, "whether two values of type %s are the same object",
                             rung_j_type(v));
      break;
    default:
      same = same && v.as.list == arg[0].as.list;
  }
  *out = rung_j_bool(same);
  return RUNG_OK;
}

static rung_status remainder_of(rung_jrun *run, rung_jvalue v, rung_jvalue by, int64_t *out) {
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (v.kind == RUNG_J_FLOAT && by.kind != RUNG_J_FLOAT && rung_j_is_integer(by) && rung_j_integer(by)) {
    const double rest = fabs(fmod(v.as.number, (double)rung_j_integer(by)));
    *out = rest == 0 ? 0 : rest == 1 ? 1 : 2;
    return RUNG_OK;
  }
  if (!rung_j_is_integer(v) || !rung_j_is_integer(by))
    return rung_j_fail(run, "unsupported operand type(s) for %%: '%s' and '%s'", rung_j_type(v), rung_j_type(by));
  const int64_t divisor = rung_j_integer(by);
  if (!divisor) return rung_j_fail(run, "integer modulo by zero");
  *out = divisor == -1 ? 0 : rung_j_integer(v) % divisor;
  return RUNG_OK;
}
ROW(divisibleby) {
  int64_t rest;
  (void)call;
  RUNG_TRY(remainder_of(run, v, arg[0], &rest));
  *out = rung_j_bool(rest == 0);
  return RUNG_OK;
}
ROW(even) {
  int64_t rest;
  (void)call, (void)arg;
  RUNG_TRY(remainder_of(run, v, rung_j_int(2), &rest));
  *out = rung_j_bool(rest == 0);
  return RUNG_OK;
}
ROW(odd) {
  int64_t rest;
  (void)call, (void)arg;
  RUNG_TRY(remainder_of(run, v, rung_j_int(2), &rest));
  *out = rung_j_bool(rest == 1 || rest == -1);
  return RUNG_OK;
}

/* str(value).islower(): a letter of that case, none of another. */
static rung_status has_case(rung_jrun *run, rung_jvalue v, rung_jclass wanted, rung_jclass other, rung_jvalue *out) {
  rung_jvalue text;
  bool any = false, all = true;
  RUNG_TRY(rung_j_str(run, v, &text));
  RUNG_TRY(rung_j_work(run, text.as.string->length * 8));
  for (size_t at = 0; at < text.as.string->length;) {
    uint32_t c = 0;
    at += (size_t)rung_utf8_read((const uint8_t *)text.as.string->data + at, text.as.string->length - at, &c);
    any = any || rung_jclass_is(c, wanted);
    all = all && !rung_jclass_is(c, other) && !rung_jclass_is(c, RUNG_J_TITLE);
  }
  *out = rung_j_bool(any && all);
  return RUNG_OK;
}
ROW(lower) {
  (void)call, (void)arg;
  return has_case(run, v, RUNG_J_LOWER, RUNG_J_UPPER, out);
}
ROW(upper) {
  (void)call, (void)arg;
  return has_case(run, v, RUNG_J_UPPER, RUNG_J_LOWER, out);
}
