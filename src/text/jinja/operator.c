/* SPDX-License-Identifier: MIT
 * a op b, as Python has it. Integers of more than 64 bits are refused. */
#include <math.h>

#include "text/jinja/ast.h"

static rung_status too_large(rung_jrun *run) {
  return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
}

static rung_status wrong(rung_jrun *run, int kind, rung_jvalue a, rung_jvalue b) {
  rung_jnode node = {.kind = (rung_jnode_kind)kind};
  char what[16];
  rung_jnode_describe(&node, what, sizeof what);
  if (a.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, a);
  if (b.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, b);
  if (a.kind == RUNG_J_BIG || b.kind == RUNG_J_BIG) return too_large(run);
  return rung_j_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", what, rung_j_type(a), rung_j_type(b));
}

/* Floor division and modulo: the sign is the divisor's. */
static rung_status divide_integers(rung_jrun *run, int kind, int64_t a, int64_t b, rung_jvalue *out) {
  if (!b)
    return rung_j_fail(run, kind == RUNG_J_NODE_DIVIDE ? "division by zero" : "integer division or modulo by zero");
  if (kind == RUNG_J_NODE_DIVIDE) {
    *out = rung_j_float((double)a / (double)b);
    return RUNG_OK;
  }
  if (a == INT64_MIN && b == -1) {
    *out = rung_j_int(0);
    return kind == RUNG_J_NODE_FLOOR ? too_large(run) : RUNG_OK;
  }
  const int64_t rest = a % b, adjust = rest && (rest < 0) != (b < 0);
  *out = rung_j_int(kind == RUNG_J_NODE_FLOOR ? a / b - adjust : rest + (adjust ? b : 0));
  return RUNG_OK;
}

static rung_status power_integers(rung_jrun *run, int64_t a, int64_t b, rung_jvalue *out) {
  if (b < 0) {
    if (!a) return rung_j_fail(run, "0.0 cannot be raised to a negative power");
    *out = rung_j_float(pow((double)a, (double)b));
    return RUNG_OK;
  }
  int64_t result = 1;
  if (a == 0 || a == 1 || a == -1) { /* any exponent */
    *out = rung_j_int(b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a);
    return RUNG_OK;
  }
  for (; b > 0; b--)
    if (rung_mul_overflows(result, a, &result)) return too_large(run);
  *out = rung_j_int(result);
  return RUNG_OK;
}

static rung_status integers(rung_jrun *run, int kind, int64_t a, int64_t b, rung_jvalue *out) {
  int64_t result = 0;
  bool over = false;
  if (kind == RUNG_J_NODE_ADD)
    over = rung_add_overflows(a, b, &result);
  else if (kind == RUNG_J_NODE_SUBTRACT)
    over = rung_sub_overflows(a, b, &result);
  else if (kind == RUNG_J_NODE_MULTIPLY)
    over = rung_mul_overflows(a, b, &result);
  else
    return kind == RUNG_J_NODE_POWER ? power_integers(run, a, b, out) : divide_integers(run, kind, a, b, out);
  *out = rung_j_int(result);
  return over ? too_large(run) : RUNG_OK;
}

static rung_status floats(rung_jrun *run, int kind, double a, double b, rung_jvalue *out) {
  double result = 0;
  const bool divides = kind == RUNG_J_NODE_DIVIDE || kind == RUNG_J_NODE_FLOOR || kind == RUNG_J_NODE_MODULO;
  if (divides && b == 0) return rung_j_fail(run, "float division or modulo by zero");
  double rest = divides ? fmod(a, b) : 0;
  switch (kind) {
    case RUNG_J_NODE_ADD:
      result = a + b;
      break;
    case RUNG_J_NODE_SUBTRACT:
      result = a - b;
      break;
    case RUNG_J_NODE_MULTIPLY:
      result = a * b;
      break;
    case RUNG_J_NODE_DIVIDE:
      result = a / b;
      break;
    case RUNG_J_NODE_POWER:
      result = pow(a, b);
      if (isnan(result) && !isnan(a) && !isnan(b)) return rung_j_refuse(run, RUNG_UNSUPPORTED, "a complex number");
      if (isinf(result) && !isinf(a) && !isinf(b)) return rung_j_fail(run, "(34, 'Numerical result out of range')");
      break;
    default:
      result = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        result -= 1;
      }
      if (rest == 0) rest = copysign(0.0, b);
      result = floor(result + 0.5);
      if (kind == RUNG_J_NODE_MODULO) result = rest;
  }
  *out = rung_j_float(result);
  return RUNG_OK;
}

static rung_status add_texts(rung_jrun *run, const rung_jstring *a, const rung_jstring *b, rung_jvalue left,
                             rung_jvalue *out) {
  if (a->safe == b->safe) return rung_j_join(run, left, b->data, b->length, out);
  rung_jtext text = {0}; /* markup and text: the text is escaped */
  RUNG_TRY(a->safe ? rung_j_put(run, &text, a->data, a->length) : rung_j_escape(run, &text, a));
  RUNG_TRY(b->safe ? rung_j_put(run, &text, b->data, b->length) : rung_j_escape(run, &text, b));
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = true;
  return RUNG_OK;
}

static rung_status repeat(rung_jrun *run, rung_jvalue v, int64_t times, rung_jvalue *out) {
  if (times < 0) times = 0;
  if (v.kind == RUNG_J_STRING) {
    rung_jtext text = {0};
    if (!v.as.string->length) times = 0;
    for (int64_t i = 0; i < times; i++) RUNG_TRY(rung_j_put(run, &text, v.as.string->data, v.as.string->length));
    RUNG_TRY(rung_j_take(run, &text, out));
    out->as.string->safe = v.as.string->safe;
    return RUNG_OK;
  }
  const rung_jlist *list = v.as.list;
  RUNG_TRY(rung_j_list(run, v.kind, 0, out));
  if (!list->count) times = 0;
  for (int64_t i = 0; i < times; i++)
    for (size_t k = 0; k < list->count; k++) RUNG_TRY(rung_j_append(run, out->as.list, list->item[k]));
  return RUNG_OK;
}

static rung_status add_lists(rung_jrun *run, const rung_jlist *a, const rung_jlist *b, rung_jkind kind,
                             rung_jvalue *out) {
  RUNG_TRY(rung_j_list(run, kind, a->count + b->count, out));
  for (size_t i = 0; i < a->count; i++) RUNG_TRY(rung_j_append(run, out->as.list, a->item[i]));
  for (size_t i = 0; i < b->count; i++) RUNG_TRY(rung_j_append(run, out->as.list, b->item[i]));
  return RUNG_OK;
}

static bool repeats(rung_jvalue v) {
  return v.kind == RUNG_J_STRING || v.kind == RUNG_J_LIST || v.kind == RUNG_J_TUPLE;
}

rung_status rung_j_binary(rung_jrun *run, int kind, rung_jvalue a, rung_jvalue b, rung_jvalue *out) {
  if (rung_j_is_integer(a) && rung_j_is_integer(b))
    return integers(run, kind, rung_j_integer(a), rung_j_integer(b), out);
  if (rung_j_is_number(a) && rung_j_is_number(b)) return floats(run, kind, rung_j_number(a), rung_j_number(b), out);
  if (kind == RUNG_J_NODE_ADD && a.kind == b.kind) {
    if (a.kind == RUNG_J_STRING) return add_texts(run, a.as.string, b.as.string, a, out);
    if (a.kind == RUNG_J_LIST || a.kind == RUNG_J_TUPLE) return add_lists(run, a.as.list, b.as.list, a.kind, out);
  }
  if (kind == RUNG_J_NODE_MULTIPLY && repeats(a) && rung_j_is_integer(b)) return repeat(run, a, rung_j_integer(b), out);
  if (kind == RUNG_J_NODE_MULTIPLY && repeats(b) && rung_j_is_integer(a)) return repeat(run, b, rung_j_integer(a), out);
  if (kind == RUNG_J_NODE_MODULO && a.kind == RUNG_J_STRING && b.kind != RUNG_J_UNDEFINED)
    return rung_j_percent(run, a.as.string, b, out);
  return wrong(run, kind, a, b);
}
