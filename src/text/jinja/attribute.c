/* SPDX-License-Identifier: MIT
 * value.name, value[key] and value[a:b:c], as the sandbox of jinja2 resolves them. */
#include <stdio.h>

#include "text/jinja/ast.h"
#include "text/utf8.h"

rung_status rung_j_undefined_error(rung_jrun *run, rung_jvalue v) {
  return rung_j_fail(run, "%.*s", (int)v.as.string->length, v.as.string->data);
}

/* Python's attributes of a value: methods, and what objects of the template have. *out_found false: there is none. */
rung_status rung_j_own(rung_jrun *run, rung_jvalue v, const char *name, size_t length, rung_jvalue *out,
                       bool *out_found) {
  *out_found = false;
  if (v.kind == RUNG_J_NAMESPACE) {
    const rung_jvalue *found = rung_j_find(v.as.dict, name, length);
    *out_found = found != NULL;
    if (found) *out = *found;
    return RUNG_OK;
  }
  if (v.kind == RUNG_J_LOOP) return rung_jloop_attribute(run, v.as.loop, name, length, out, out_found);
  if (v.kind == RUNG_J_MACRO && length == 4 && memcmp(name, "name", 4) == 0) {
    *out_found = true;
    *out = v.as.macro->node->name->value;
    return RUNG_OK;
  }
  if (v.kind == RUNG_J_TUPLE && v.as.list->name) { /* of groupby */
    const bool first = length == 7 && memcmp(name, "grouper", 7) == 0;
    if (first || (length == 4 && memcmp(name, "list", 4) == 0)) {
      *out_found = true;
      *out = v.as.list->item[!first];
      return RUNG_OK;
    }
  }
  const rung_jfunction *function = rung_jrow_method(v.kind, name, length);
  if (!function) return RUNG_OK;
  *out_found = true;
  if (!function->call)
    return rung_j_undefined(run, out, "access to attribute '%s' of '%s' object is unsafe", function->name,
                            rung_j_type(v));
  rung_jmethod *method;
  RUNG_TRY(rung_j_alloc(run, sizeof *method, &method));
  *method = (rung_jmethod){function, v};
  *out = (rung_jvalue){.kind = RUNG_J_METHOD, .as.method = method};
  return RUNG_OK;
}

static rung_status missing(rung_jrun *run, rung_jvalue v, rung_jvalue key, rung_jvalue *out) {
  rung_jtext text = {0};
  RUNG_TRY(rung_j_puts(run, &text, rung_j_type(v)));
  RUNG_TRY(
      rung_j_puts(run, &text, key.kind == RUNG_J_STRING ? " object has no attribute " : " object has no element "));
  if (key.kind <= RUNG_J_STRING)
    RUNG_TRY(rung_j_put_repr(run, &text, key));
  else
    RUNG_TRY(rung_j_puts(run, &text, rung_j_type(key)));
  return rung_j_undefined(run, out, "%.*s", text.length < 200 ? (int)text.length : 200, text.data);
}

/* Python's value[key] where it does not raise. */
static rung_status subscript(rung_jrun *run, rung_jvalue v, rung_jvalue key, rung_jvalue *out, bool *out_found) {
  *out_found = false;
  if (v.kind == RUNG_J_DICT) {
    const rung_jvalue *found;
    if (key.kind == RUNG_J_LIST || key.kind == RUNG_J_DICT) return RUNG_OK; /* no key can be one */
    RUNG_TRY(rung_j_get(run, v.as.dict, key, &found));
    *out_found = found != NULL;
    if (found) *out = *found;
    return RUNG_OK;
  }
  const bool list = v.kind == RUNG_J_LIST || v.kind == RUNG_J_TUPLE || v.kind == RUNG_J_RANGE;
  if (!rung_j_is_integer(key) || (!list && v.kind != RUNG_J_STRING)) return RUNG_OK;
  int64_t length, i = rung_j_integer(key);
  RUNG_TRY(rung_j_length(run, v, &length));
  if (i < 0) i += length;
  if (i < 0 || i >= length) return RUNG_OK;
  *out_found = true;
  if (list) {
    *out = v.as.list->item[i];
    return RUNG_OK;
  }
  RUNG_TRY(rung_j_work(run, v.as.string->length));
  const size_t from = rung_j_offset(v.as.string, i);
  return rung_j_part(run, v.as.string, from, from + rung_utf8_announced((uint8_t)v.as.string->data[from]), out);
}

rung_status rung_j_attribute(rung_jrun *run, rung_jvalue v, const char *name, size_t length, rung_jvalue *out) {
  bool found;
  rung_jvalue key;
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  RUNG_TRY(rung_j_own(run, v, name, length, out, &found));
  if (found) return RUNG_OK;
  RUNG_TRY(rung_j_text(run, name, length, &key));
  RUNG_TRY(subscript(run, v, key, out, &found));
  return found ? RUNG_OK : missing(run, v, key, out);
}

rung_status rung_j_item(rung_jrun *run, rung_jvalue v, rung_jvalue key, rung_jvalue *out) {
  bool found;
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  RUNG_TRY(subscript(run, v, key, out, &found));
  if (!found && key.kind == RUNG_J_STRING)
    RUNG_TRY(rung_j_own(run, v, key.as.string->data, key.as.string->length, out, &found));
  return found ? RUNG_OK : missing(run, v, key, out);
}

rung_status rung_j_path(rung_jrun *run, rung_jvalue v, rung_jvalue path, rung_jvalue *out) {
  *out = v;
  if (path.kind != RUNG_J_STRING) return rung_j_item(run, v, path, out);
  const char *at = path.as.string->data, *end = at + path.as.string->length;
  for (;;) {
    const char *dot = at < end ? memchr(at, '.', (size_t)(end - at)) : NULL, *stop = dot ? dot : end;
    rung_jvalue key;
    int64_t number;
    const char *behind;
    if (stop > at && *at >= '0' && *at <= '9' && rung_parse_i64(at, stop, &number, &behind) && behind == stop)
      key = rung_j_int(number);
    else
      RUNG_TRY(rung_j_text(run, at, (size_t)(stop - at), &key));
    RUNG_TRY(rung_j_item(run, *out, key, out));
    if (!dot) return RUNG_OK;
    at = dot + 1;
  }
}

/* ---- slices */

static rung_status bound_of(rung_jrun *run, rung_jvalue v, int64_t length, int64_t least, int64_t most,
                            int64_t standard, int64_t *out) {
  *out = standard;
  if (v.kind == RUNG_J_NONE) return RUNG_OK;
  if (v.kind == RUNG_J_UNDEFINED || !rung_j_is_integer(v))
    return rung_j_fail(run, "slice indices must be integers or None or have an __index__ method");
  int64_t i = rung_j_integer(v);
  if (i < 0) i = i < -length ? least : i + length;
  *out = i < least ? least : i > most ? most : i;
  return RUNG_OK;
}

static rung_status slice_text(rung_jrun *run, rung_jstring *s, int64_t start, int64_t count, int64_t step,
                              rung_jvalue *out) {
  RUNG_TRY(rung_j_work(run, s->length));
  if (count == 0 || step == 1)
    return rung_j_part(run, s, rung_j_offset(s, count ? start : 0), rung_j_offset(s, count ? start + count : 0), out);
  rung_jtext text = {0};
  RUNG_TRY(rung_j_work(run, rung_j_characters(s) == (int64_t)s->length ? 1 : s->length * (size_t)count));
  for (int64_t i = 0; i < count; i++) {
    const size_t at = rung_j_offset(s, start + i * step);
    RUNG_TRY(rung_j_put(run, &text, s->data + at, rung_utf8_announced((uint8_t)s->data[at])));
  }
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = s->safe;
  return RUNG_OK;
}

rung_status rung_j_slice(rung_jrun *run, rung_jvalue v, const rung_jvalue bound[3], rung_jvalue *out) {
  int64_t step = 1, length, start, stop;
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (v.kind != RUNG_J_STRING && v.kind != RUNG_J_LIST && v.kind != RUNG_J_TUPLE && v.kind != RUNG_J_RANGE)
    return rung_j_fail(run, "'%s' object cannot be sliced", rung_j_type(v));
  RUNG_TRY(rung_j_length(run, v, &length));
  if (bound[2].kind != RUNG_J_NONE) {
    if (!rung_j_is_integer(bound[2])) return rung_j_fail(run, "slice indices must be integers or None");
    step = rung_j_integer(bound[2]);
    if (!step) return rung_j_fail(run, "slice step cannot be zero");
    if (step > length) step = length + 1; /* the same elements: products stay small */
    if (step < -length) step = -length - 1;
  }
  const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? length - 1 : length;
  RUNG_TRY(bound_of(run, bound[0], length, least, most, step < 0 ? most : least, &start));
  RUNG_TRY(bound_of(run, bound[1], length, least, most, step < 0 ? least : most, &stop));
  int64_t count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (step > 0 ? start >= stop : start <= stop) count = 0;
  if (v.kind == RUNG_J_STRING) return slice_text(run, v.as.string, start, count, step, out);
  const rung_jlist *from = v.as.list;
  RUNG_TRY(rung_j_list(run, v.kind, (size_t)count, out));
  for (int64_t i = 0; i < count; i++) RUNG_TRY(rung_j_append(run, out->as.list, from->item[start + i * step]));
  out->as.list->start = from->start + start * from->step;
  out->as.list->stop = from->start + stop * from->step;
  out->as.list->step = from->step * step;
  return RUNG_OK;
}

/* ---- loop.index and so on */

static rung_status loop_length(rung_jrun *run, rung_jloop *loop, int64_t *out) {
  if (loop->node->c && !loop->filtered) {
    rung_jvalue rest, next;
    RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &rest));
    for (;;) {
      RUNG_TRY(rung_jloop_pull(run, loop, &next));
      if (next.kind == RUNG_J_MISSING) break;
      RUNG_TRY(rung_j_append(run, rest.as.list, next));
    }
    loop->source = rest.as.list;
    loop->at = 0;
    loop->filtered = true;
    loop->skipped = loop->index + 1 + (loop->after.kind != RUNG_J_MISSING);
  }
  *out = (int64_t)loop->source->count + loop->skipped;
  return RUNG_OK;
}

static rung_status loop_peek(rung_jrun *run, rung_jloop *loop, rung_jvalue *out) {
  if (loop->after.kind == RUNG_J_MISSING) RUNG_TRY(rung_jloop_pull(run, loop, &loop->after));
  *out = loop->after;
  return RUNG_OK;
}

typedef enum loop_field {
  INDEX,
  INDEX0,
  REVINDEX,
  REVINDEX0,
  FIRST,
  LAST,
  LENGTH,
  PREVIOUS,
  NEXT,
  DEPTH,
  DEPTH0
} loop_field;
static const char *const loop_fields[] = {"index",  "index0",   "revindex", "revindex0", "first", "last",
                                          "length", "previtem", "nextitem", "depth",     "depth0"};

static rung_status loop_field_of(rung_jrun *run, rung_jloop *loop, loop_field field, rung_jvalue *out) {
  int64_t length = 0;
  if (field == REVINDEX || field == REVINDEX0 || field == LENGTH) RUNG_TRY(loop_length(run, loop, &length));
  const int64_t numbers[] = {[INDEX] = loop->index + 1,
                             [INDEX0] = loop->index,
                             [REVINDEX] = length - loop->index,
                             [REVINDEX0] = length - loop->index - 1,
                             [LENGTH] = length,
                             [DEPTH] = loop->depth + 1,
                             [DEPTH0] = loop->depth};
  switch (field) {
    case FIRST:
      *out = rung_j_bool(loop->index == 0);
      return RUNG_OK;
    case LAST:
      RUNG_TRY(loop_peek(run, loop, out));
      *out = rung_j_bool(out->kind == RUNG_J_MISSING);
      return RUNG_OK;
    case PREVIOUS:
      *out = loop->before;
      return loop->index ? RUNG_OK : rung_j_undefined(run, out, "there is no previous item");
    case NEXT:
      RUNG_TRY(loop_peek(run, loop, out));
      return out->kind == RUNG_J_MISSING ? rung_j_undefined(run, out, "there is no next item") : RUNG_OK;
    default:
      *out = rung_j_int(numbers[field]);
      return RUNG_OK;
  }
}

rung_status rung_jloop_attribute(rung_jrun *run, rung_jloop *loop, const char *name, size_t length, rung_jvalue *out,
                                 bool *out_found) {
  for (size_t i = 0; i < RUNG_COUNT(loop_fields); i++) {
    if (strlen(loop_fields[i]) != length || memcmp(loop_fields[i], name, length) != 0) continue;
    *out_found = true;
    return loop_field_of(run, loop, (loop_field)i, out);
  }
  const rung_jfunction *function = rung_jrow_method(RUNG_J_LOOP, name, length);
  *out_found = function != NULL;
  if (!function) return RUNG_OK;
  rung_jmethod *method;
  RUNG_TRY(rung_j_alloc(run, sizeof *method, &method));
  *method = (rung_jmethod){function, {.kind = RUNG_J_LOOP, .as.loop = loop}};
  *out = (rung_jvalue){.kind = RUNG_J_METHOD, .as.method = method};
  return RUNG_OK;
}
