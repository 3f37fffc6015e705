/* SPDX-License-Identifier: MIT
 * Asking values of templates: truth, equality, order, length, membership, elements. */
#include <math.h>

#include "text/jinja/value.h"
#include "text/utf8.h"

const char *rung_j_type(rung_jvalue v) {
  static const char *const names[] = {[RUNG_J_MISSING] = "missing",  [RUNG_J_UNDEFINED] = "Undefined",
                                      [RUNG_J_NONE] = "NoneType",    [RUNG_J_BOOL] = "bool",
                                      [RUNG_J_INT] = "int",          [RUNG_J_BIG] = "int",
                                      [RUNG_J_FLOAT] = "float",      [RUNG_J_STRING] = "str",
                                      [RUNG_J_LIST] = "list",        [RUNG_J_TUPLE] = "tuple",
                                      [RUNG_J_RANGE] = "range",      [RUNG_J_DICT] = "dict",
                                      [RUNG_J_LOOP] = "LoopContext", [RUNG_J_NAMESPACE] = "Namespace",
                                      [RUNG_J_MACRO] = "Macro",      [RUNG_J_FUNCTION] = "function",
                                      [RUNG_J_METHOD] = "method",    [RUNG_J_CYCLER] = "Cycler",
                                      [RUNG_J_JOINER] = "Joiner"};
  if (v.kind == RUNG_J_VIEW || v.kind == RUNG_J_ITERATOR) return v.as.list->name;
  return v.kind == RUNG_J_STRING && v.as.string->safe ? "Markup" : names[v.kind];
}

bool rung_j_true(rung_jvalue v) {
  switch (v.kind) {
    case RUNG_J_MISSING:
    case RUNG_J_UNDEFINED:
    case RUNG_J_NONE:
      return false;
    case RUNG_J_BOOL:
      return v.as.truth;
    case RUNG_J_INT:
      return v.as.integer != 0;
    case RUNG_J_FLOAT:
      return v.as.number != 0;
    case RUNG_J_STRING:
      return v.as.string->length != 0;
    case RUNG_J_LIST:
    case RUNG_J_TUPLE:
    case RUNG_J_RANGE:
    case RUNG_J_VIEW:
      return v.as.list->count != 0;
    case RUNG_J_DICT:
      return v.as.dict->count != 0;
    default:
      return true;
  }
}

bool rung_j_is_number(rung_jvalue v) { return v.kind == RUNG_J_BOOL || v.kind == RUNG_J_INT || v.kind == RUNG_J_FLOAT; }
double rung_j_number(rung_jvalue v) { return v.kind == RUNG_J_FLOAT ? v.as.number : (double)rung_j_integer(v); }
bool rung_j_is_integer(rung_jvalue v) { return v.kind == RUNG_J_BOOL || v.kind == RUNG_J_INT; }
int64_t rung_j_integer(rung_jvalue v) { return v.kind == RUNG_J_BOOL ? (int64_t)v.as.truth : v.as.integer; }

int64_t rung_j_characters(rung_jstring *s) {
  if (s->characters < 0) {
    int64_t count = 0;
    for (size_t i = 0; i < s->length; i++) count += ((uint8_t)s->data[i] & 0xC0) != 0x80;
    s->characters = count;
  }
  return s->characters;
}

size_t rung_j_offset(rung_jstring *s, int64_t i) {
  if (rung_j_characters(s) == (int64_t)s->length) return (size_t)i;
  size_t at = 0;
  for (; i > 0; i--) at += rung_utf8_announced((uint8_t)s->data[at]);
  return at;
}

/* ---- equality and order */

static int order_texts(const rung_jstring *a, const rung_jstring *b) {
  const size_t least = a->length < b->length ? a->length : b->length;
  const int order = least ? memcmp(a->data, b->data, least) : 0; /* UTF-8 sorts as its characters do */
  if (order) return order < 0 ? -1 : 1;
  return a->length < b->length ? -1 : a->length > b->length;
}

static int order_numbers(rung_jvalue a, rung_jvalue b) {
  if (rung_j_is_integer(a) && rung_j_is_integer(b)) {
    const int64_t x = rung_j_integer(a), y = rung_j_integer(b);
    return x < y ? -1 : x > y;
  }
  const double x = rung_j_number(a), y = rung_j_number(b);
  return x < y ? -1 : x > y;
}

static rung_status equal_lists(rung_jrun *run, const rung_jlist *a, const rung_jlist *b, bool *out) {
  *out = a->count == b->count;
  for (size_t i = 0; *out && i < a->count; i++) RUNG_TRY(rung_j_equal(run, a->item[i], b->item[i], out));
  return RUNG_OK;
}

static rung_status equal_dicts(rung_jrun *run, const rung_jdict *a, const rung_jdict *b, bool *out) {
  *out = a->count == b->count;
  for (uint32_t i = 0; *out && i < a->count; i++) {
    const rung_jvalue *other;
    RUNG_TRY(rung_j_get(run, b, a->entry[i].key, &other));
    *out = other != NULL;
    if (other) RUNG_TRY(rung_j_equal(run, a->entry[i].value, *other, out));
  }
  return RUNG_OK;
}

static rung_status equal(rung_jrun *run, rung_jvalue a, rung_jvalue b, bool *out) {
  *out = false;
  if (rung_j_is_number(a) && rung_j_is_number(b)) {
    *out = rung_j_is_integer(a) && rung_j_is_integer(b) ? rung_j_integer(a) == rung_j_integer(b)
                                                        : rung_j_number(a) == rung_j_number(b);
    return RUNG_OK;
  }
  if (a.kind != b.kind) return RUNG_OK;
  switch (a.kind) {
    case RUNG_J_UNDEFINED:
    case RUNG_J_NONE:
    case RUNG_J_MISSING:
      *out = true;
      return RUNG_OK;
    case RUNG_J_STRING:
    case RUNG_J_BIG:
      RUNG_TRY(rung_j_work(run, a.as.string->length));
      *out = a.as.string->length == b.as.string->length && order_texts(a.as.string, b.as.string) == 0;
      return RUNG_OK;
    case RUNG_J_LIST:
    case RUNG_J_TUPLE:
    case RUNG_J_RANGE:
      return equal_lists(run, a.as.list, b.as.list, out);
    case RUNG_J_DICT:
      return equal_dicts(run, a.as.dict, b.as.dict, out);
    case RUNG_J_METHOD:
    case RUNG_J_VIEW:
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "comparing two values of type %s", rung_j_type(a));
    default: /* the same object */
      *out = a.as.list == b.as.list;
      return RUNG_OK;
  }
}

rung_status rung_j_equal(rung_jrun *run, rung_jvalue a, rung_jvalue b, bool *out) {
  RUNG_TRY(rung_j_enter(run));
  rung_status status = rung_j_steps(run, 1);
  if (!status) status = equal(run, a, b, out);
  rung_j_leave(run);
  return status;
}

static rung_status order_lists(rung_jrun *run, const rung_jlist *a, const rung_jlist *b, const char *what, int *out) {
  for (size_t i = 0; i < a->count && i < b->count; i++) {
    bool same;
    RUNG_TRY(rung_j_equal(run, a->item[i], b->item[i], &same));
    if (!same) return rung_j_order(run, a->item[i], b->item[i], what, out);
  }
  *out = a->count < b->count ? -1 : a->count > b->count;
  return RUNG_OK;
}

rung_status rung_j_order(rung_jrun *run, rung_jvalue a, rung_jvalue b, const char *what, int *out) {
  RUNG_TRY(rung_j_steps(run, 1));
  if (a.kind == RUNG_J_UNDEFINED || b.kind == RUNG_J_UNDEFINED) {
    const rung_jstring *why = (a.kind == RUNG_J_UNDEFINED ? a : b).as.string;
    return rung_j_fail(run, "%.*s", (int)why->length, why->data);
  }
  if (rung_j_is_number(a) && rung_j_is_number(b)) {
    *out = order_numbers(a, b);
    return RUNG_OK;
  }
  if (a.kind == RUNG_J_STRING && b.kind == RUNG_J_STRING) {
    RUNG_TRY(rung_j_work(run, a.as.string->length));
    *out = order_texts(a.as.string, b.as.string);
    return RUNG_OK;
  }
  if (a.kind == b.kind && (a.kind == RUNG_J_LIST || a.kind == RUNG_J_TUPLE)) {
    RUNG_TRY(rung_j_enter(run));
    const rung_status status = order_lists(run, a.as.list, b.as.list, what, out);
    rung_j_leave(run);
    return status;
  }
  if (a.kind == RUNG_J_BIG || b.kind == RUNG_J_BIG)
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "comparing integers of more than 64 bits");
  return rung_j_fail(run, "'%s' not supported between instances of '%s' and '%s'", what, rung_j_type(a),
                     rung_j_type(b));
}

/* ---- containers */

static bool has_text(const rung_jstring *s, const rung_jstring *part) {
  if (part->length > s->length) return false;
  if (!part->length) return true;
  const char *at = s->data, *last = s->data + s->length - part->length;
  for (; at <= last; at++) {
    at = memchr(at, part->data[0], (size_t)(last - at) + 1);
    if (!at) return false;
    if (memcmp(at, part->data, part->length) == 0) return true;
  }
  return false;
}

rung_status rung_j_contains(rung_jrun *run, rung_jvalue container, rung_jvalue item, bool *out) {
  *out = false;
  if (container.kind == RUNG_J_UNDEFINED) return RUNG_OK; /* it has no elements */
  if (container.kind == RUNG_J_STRING) {
    if (item.kind != RUNG_J_STRING)
      return rung_j_fail(run, "'in <string>' requires string as left operand, not %s", rung_j_type(item));
    RUNG_TRY(rung_j_work(run, container.as.string->length));
    RUNG_TRY(rung_j_work(run, item.as.string->length));
    *out = has_text(container.as.string, item.as.string);
    return RUNG_OK;
  }
  if (container.kind == RUNG_J_DICT) {
    const rung_jvalue *found;
    RUNG_TRY(rung_j_get(run, container.as.dict, item, &found));
    *out = found != NULL;
    return RUNG_OK;
  }
  if (!rung_j_is_list(container))
    return rung_j_fail(run, "argument of type '%s' is not iterable", rung_j_type(container));
  rung_jlist *list = container.as.list;
  size_t i = container.kind == RUNG_J_ITERATOR ? list->at : 0;
  while (!*out && i < list->count) RUNG_TRY(rung_j_equal(run, list->item[i++], item, out));
  if (container.kind == RUNG_J_ITERATOR) list->at = i;
  return RUNG_OK;
}

rung_status rung_j_length(rung_jrun *run, rung_jvalue v, int64_t *out) {
  switch (v.kind) {
    case RUNG_J_UNDEFINED:
      *out = 0;
      return RUNG_OK;
    case RUNG_J_STRING:
      RUNG_TRY(rung_j_work(run, v.as.string->length));
      *out = rung_j_characters(v.as.string);
      return RUNG_OK;
    case RUNG_J_LIST:
    case RUNG_J_TUPLE:
    case RUNG_J_RANGE:
    case RUNG_J_VIEW:
      *out = (int64_t)v.as.list->count;
      return RUNG_OK;
    case RUNG_J_DICT:
      *out = v.as.dict->count;
      return RUNG_OK;
    default:
      return rung_j_fail(run, "object of type '%s' has no len()", rung_j_type(v));
  }
}

static rung_status characters_of(rung_jrun *run, const rung_jstring *s, rung_jlist *list) {
  for (size_t at = 0; at < s->length;) {
    const size_t n = rung_utf8_announced((uint8_t)s->data[at]);
    rung_jvalue one;
    RUNG_TRY(rung_j_text(run, s->data + at, n, &one));
    one.as.string->safe = s->safe;
    RUNG_TRY(rung_j_append(run, list, one));
    at += n;
  }
  return RUNG_OK;
}

rung_status rung_j_elements(rung_jrun *run, rung_jvalue v, rung_jlist **out) {
  rung_jvalue made;
  if (rung_j_is_list(v) && v.kind != RUNG_J_ITERATOR) {
    *out = v.as.list;
    return rung_j_work(run, v.as.list->count);
  }
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &made));
  *out = made.as.list;
  if (v.kind == RUNG_J_UNDEFINED) return RUNG_OK;
  if (v.kind == RUNG_J_ITERATOR) {
    rung_jlist *left = v.as.list;
    if (left->item) made.as.list->item = left->item + left->at;
    made.as.list->count = made.as.list->capacity = left->count - left->at;
    left->at = left->count;
    return RUNG_OK;
  }
  if (v.kind == RUNG_J_STRING) return characters_of(run, v.as.string, made.as.list);
  if (v.kind != RUNG_J_DICT) return rung_j_fail(run, "'%s' object is not iterable", rung_j_type(v));
  for (uint32_t i = 0; i < v.as.dict->count; i++) RUNG_TRY(rung_j_append(run, made.as.list, v.as.dict->entry[i].key));
  return RUNG_OK;
}
