/* SPDX-License-Identifier: MIT
 * Methods of texts. */
#include "text/jinja/characters.h"
#include "text/jinja/rows.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

#define ROW(name)                                                                                                   \
  rung_status rung_jmethod_##name(rung_jrun *run, rung_jvalue self, const rung_jcall *call, const rung_jvalue *arg, \
                                  rung_jvalue *out)
#define UNUSED (void)run, (void)self, (void)call, (void)arg

ROW(unsupported) {
  UNUSED, (void)out;
  return rung_j_refuse(run, RUNG_UNSUPPORTED, "this method is not supported");
}

/* ---- case and blanks */

#define FORM(name, form)                                                  \
  ROW(name) {                                                             \
    UNUSED;                                                               \
    return rung_jtext_form(run, self.as.string, RUNG_J_FORM_##form, out); \
  }
FORM(upper, UPPER)
FORM(lower, LOWER)
FORM(capitalize, CAPITAL)
FORM(title, TITLE)

static rung_status strip(rung_jrun *run, rung_jvalue self, rung_jvalue chars, unsigned ends, rung_jvalue *out) {
  const rung_jstring *set = NULL;
  if (chars.kind != RUNG_J_MISSING && chars.kind != RUNG_J_NONE) RUNG_TRY(rung_jarg_text(run, chars, "chars", &set));
  return rung_jtext_strip(run, self.as.string, set, ends, out);
}
ROW(strip) {
  UNUSED;
  return strip(run, self, arg[0], RUNG_J_LEFT | RUNG_J_RIGHT, out);
}
ROW(lstrip) {
  UNUSED;
  return strip(run, self, arg[0], RUNG_J_LEFT, out);
}
ROW(rstrip) {
  UNUSED;
  return strip(run, self, arg[0], RUNG_J_RIGHT, out);
}

static rung_status pad(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, char how, rung_jvalue *out) {
  int64_t width;
  const rung_jstring *fill = NULL;
  RUNG_TRY(rung_jarg_integer(run, arg[0], "width", 0, &width));
  if (arg[1].kind != RUNG_J_MISSING) RUNG_TRY(rung_jarg_text(run, arg[1], "fillchar", &fill));
  if (fill && rung_j_characters(arg[1].as.string) != 1)
    return rung_j_fail(run, "The fill character must be exactly one character long");
  return rung_jtext_pad(run, self.as.string, width, fill ? fill->data : " ", fill ? fill->length : 1, how, out);
}
ROW(center) {
  UNUSED;
  return pad(run, self, arg, '^', out);
}
ROW(ljust) {
  UNUSED;
  return pad(run, self, arg, '<', out);
}
ROW(rjust) {
  UNUSED;
  return pad(run, self, arg, '>', out);
}
ROW(zfill) {
  UNUSED;
  rung_jvalue rest, sign;
  int64_t width;
  const rung_jstring *s = self.as.string;
  RUNG_TRY(rung_jarg_integer(run, arg[0], "width", 0, &width));
  const size_t signs = s->length && (s->data[0] == '-' || s->data[0] == '+');
  RUNG_TRY(rung_j_part(run, s, 0, signs, &sign));
  RUNG_TRY(rung_j_part(run, s, signs, s->length, &rest));
  RUNG_TRY(rung_jtext_pad(run, rest.as.string, width - (int64_t)signs, "0", 1, '>', &rest));
  return rung_j_join(run, sign, rest.as.string->data, rest.as.string->length, out);
}

/* ---- what it is made of */

static rung_status all_are(rung_jrun *run, rung_jvalue self, unsigned classes, bool inverted, bool empty,
                           rung_jvalue *out) {
  const rung_jstring *s = self.as.string;
  bool all = s->length ? true : empty;
  RUNG_TRY(rung_j_work(run, s->length * 8));
  for (size_t at = 0; all && at < s->length;) {
    uint32_t c = 0;
    bool is = false;
    at += (size_t)rung_utf8_read((const uint8_t *)s->data + at, s->length - at, &c);
    for (int i = 0; i < RUNG_J_CLASSES; i++) is = is || ((classes >> i & 1) && rung_jclass_is(c, (rung_jclass)i));
    all = is != inverted;
  }
  *out = rung_j_bool(all);
  return RUNG_OK;
}
#define MADE_OF(name, classes, inverted, empty)               \
  ROW(name) {                                                 \
    UNUSED;                                                   \
    return all_are(run, self, classes, inverted, empty, out); \
  }
MADE_OF(isalpha, 1u << RUNG_J_ALPHA, false, false)
MADE_OF(isdecimal, 1u << RUNG_J_DECIMAL, false, false)
MADE_OF(isdigit, 1u << RUNG_J_DIGIT, false, false)
MADE_OF(isnumeric, 1u << RUNG_J_NUMERIC, false, false)
MADE_OF(isalnum, 1u << RUNG_J_ALPHA | 1u << RUNG_J_DECIMAL | 1u << RUNG_J_DIGIT | 1u << RUNG_J_NUMERIC, false, false)
MADE_OF(isspace, 1u << RUNG_J_SPACE, false, false)
MADE_OF(isprintable, 1u << RUNG_J_UNPRINTABLE, true, true)
ROW(isascii) {
  UNUSED;
  *out = rung_j_bool(rung_j_characters(self.as.string) == (int64_t)self.as.string->length);
  return RUNG_OK;
}
ROW(islower) {
  UNUSED;
  return rung_jtest_lower(run, self, call, arg, out);
}
ROW(isupper) {
  UNUSED;
  return rung_jtest_upper(run, self, call, arg, out);
}

/* ---- looking for a part */

/* start and end, in characters, as bytes. *out_empty: start lies behind the end, so that not even nothing is found. */
static rung_status window(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, rung_jvalue *out, size_t *out_from,
                          bool *out_empty) {
  rung_jstring *s = self.as.string;
  const int64_t length = rung_j_characters(s);
  int64_t start = 0, end = length;
  RUNG_TRY(rung_j_work(run, s->length));
  if (arg[0].kind != RUNG_J_NONE) RUNG_TRY(rung_jarg_integer(run, arg[0], "start", 0, &start));
  if (arg[1].kind != RUNG_J_NONE) RUNG_TRY(rung_jarg_integer(run, arg[1], "end", length, &end));
  if (start < 0) start = start + length < 0 ? 0 : start + length;
  if (end < 0) end = end + length < 0 ? 0 : end + length;
  if (end > length) end = length;
  *out_empty = start > end;
  if (*out_empty) start = end;
  *out_from = rung_j_offset(s, start);
  return rung_j_part(run, s, *out_from, rung_j_offset(s, end), out);
}

static bool has_at_end(const rung_jstring *s, const rung_jstring *part, bool at_start) {
  return part->length <= s->length && (!part->length || memcmp(at_start ? s->data : s->data + s->length - part->length,
                                                               part->data, part->length) == 0);
}

static rung_status ends_with(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, bool at_start,
                             rung_jvalue *out) {
  rung_jvalue part;
  size_t from;
  bool found = false, empty;
  RUNG_TRY(window(run, self, arg + 1, &part, &from, &empty));
  const bool tuple = arg[0].kind == RUNG_J_TUPLE;
  for (size_t i = 0; i < (tuple ? arg[0].as.list->count : 1) && !found; i++) {
    const rung_jstring *one;
    RUNG_TRY(rung_jarg_text(run, tuple ? arg[0].as.list->item[i] : arg[0], at_start ? "startswith" : "endswith", &one));
    RUNG_TRY(rung_j_work(run, one->length));
    found = !empty && has_at_end(part.as.string, one, at_start);
  }
  *out = rung_j_bool(found);
  return RUNG_OK;
}
ROW(startswith) {
  UNUSED;
  return ends_with(run, self, arg, true, out);
}
ROW(endswith) {
  UNUSED;
  return ends_with(run, self, arg, false, out);
}

/* The last place of a part that ends at or before `to`. */
static rung_status search_last(rung_jrun *run, const rung_jstring *s, const rung_jstring *part, size_t to,
                               size_t *out) {
  *out = SIZE_MAX;
  if (part->length > to) return RUNG_OK;
  for (size_t at = to - part->length + 1; at-- > 0;) {
    if (part->length && s->data[at] != part->data[0]) continue;
    RUNG_TRY(rung_j_work(run, part->length));
    if (part->length && memcmp(s->data + at, part->data, part->length) != 0) continue;
    *out = at;
    break;
  }
  return rung_j_work(run, to);
}

static rung_status find(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, bool last, bool must,
                        rung_jvalue *out) {
  const rung_jstring *sub;
  rung_jvalue part, before;
  size_t from, at = SIZE_MAX;
  bool empty;
  RUNG_TRY(rung_jarg_text(run, arg[0], "sub", &sub));
  RUNG_TRY(window(run, self, arg + 1, &part, &from, &empty));
  if (!empty)
    RUNG_TRY(last ? search_last(run, part.as.string, sub, part.as.string->length, &at)
                  : rung_j_search(run, part.as.string, sub, 0, &at));
  if (at == SIZE_MAX) {
    *out = rung_j_int(-1);
    return must ? rung_j_fail(run, "substring not found") : RUNG_OK;
  }
  RUNG_TRY(rung_j_part(run, self.as.string, 0, from + at, &before));
  *out = rung_j_int(rung_j_characters(before.as.string));
  return RUNG_OK;
}
ROW(find) {
  UNUSED;
  return find(run, self, arg, false, false, out);
}
ROW(index) {
  UNUSED;
  return find(run, self, arg, false, true, out);
}
ROW(rfind) {
  UNUSED;
  return find(run, self, arg, true, false, out);
}
ROW(rindex) {
  UNUSED;
  return find(run, self, arg, true, true, out);
}

ROW(count) {
  UNUSED;
  const rung_jstring *sub;
  rung_jvalue part;
  size_t from, at = 0;
  bool empty;
  int64_t count = 0;
  RUNG_TRY(rung_jarg_text(run, arg[0], "sub", &sub));
  RUNG_TRY(window(run, self, arg + 1, &part, &from, &empty));
  if (!sub->length) count = empty ? 0 : rung_j_characters(part.as.string) + 1;
  while (sub->length && !empty) {
    RUNG_TRY(rung_j_search(run, part.as.string, sub, at, &at));
    if (at == SIZE_MAX) break;
    at += sub->length;
    count++;
  }
  *out = rung_j_int(count);
  return RUNG_OK;
}

/* ---- taking apart and putting together */

static rung_status cut_fix(rung_jrun *run, rung_jvalue self, rung_jvalue fix, bool at_start, rung_jvalue *out) {
  const rung_jstring *s = self.as.string, *part;
  RUNG_TRY(rung_jarg_text(run, fix, at_start ? "prefix" : "suffix", &part));
  RUNG_TRY(rung_j_work(run, part->length));
  const size_t n = has_at_end(s, part, at_start) ? part->length : 0;
  return rung_j_part(run, s, at_start ? n : 0, at_start ? s->length : s->length - n, out);
}
ROW(removeprefix) {
  UNUSED;
  return cut_fix(run, self, arg[0], true, out);
}
ROW(removesuffix) {
  UNUSED;
  return cut_fix(run, self, arg[0], false, out);
}

ROW(replace) {
  UNUSED;
  const rung_jstring *old, *new_;
  int64_t count;
  RUNG_TRY(rung_jarg_text(run, arg[0], "old", &old));
  RUNG_TRY(rung_jarg_text(run, arg[1], "new", &new_));
  RUNG_TRY(rung_jarg_integer(run, arg[2], "count", -1, &count));
  return rung_jtext_replace(run, self.as.string, old, new_, count, out);
}

ROW(splitlines) {
  UNUSED;
  return rung_jtext_lines(run, self.as.string, rung_j_true(arg[0]), out);
}

static rung_status add_part(rung_jrun *run, rung_jlist *list, const rung_jstring *s, size_t from, size_t to) {
  rung_jvalue part;
  RUNG_TRY(rung_j_part(run, s, from, to, &part));
  return rung_j_append(run, list, part);
}

/* At runs of whitespace; blanks at both ends separate nothing. */
static rung_status split_blanks(rung_jrun *run, const rung_jstring *s, int64_t most, rung_jlist *list) {
  size_t at = 0, n;
  while (at < s->length) {
    while ((n = rung_jspace_at(s->data + at, s->length - at)) != 0) at += n;
    if (at == s->length) break;
    size_t to = at;
    if (most-- == 0) return add_part(run, list, s, at, s->length);
    while (to < s->length && !rung_jspace_at(s->data + to, s->length - to))
      to += rung_utf8_announced((uint8_t)s->data[to]);
    RUNG_TRY(add_part(run, list, s, at, to));
    at = to;
  }
  return RUNG_OK;
}

static rung_status split_blanks_last(rung_jrun *run, const rung_jstring *s, int64_t most, rung_jlist *list) {
  size_t to = s->length, n;
  while (to) {
    while ((n = rung_jspace_before(s->data, to)) != 0) to -= n;
    if (!to) break;
    size_t from = to;
    if (most-- == 0) return add_part(run, list, s, 0, to);
    while (from && !rung_jspace_before(s->data, from)) from--;
    RUNG_TRY(add_part(run, list, s, from, to));
    to = from;
  }
  return RUNG_OK;
}

static void turn(rung_jlist *list) {
  for (size_t i = 0, k = list->count; i + 1 < k; i++) {
    const rung_jvalue last = list->item[--k];
    list->item[k] = list->item[i];
    list->item[i] = last;
  }
}

static rung_status split_at(rung_jrun *run, const rung_jstring *s, const rung_jstring *sep, int64_t most, bool last,
                            rung_jlist *list) {
  size_t from = 0, to = s->length, at;
  while (most-- != 0) {
    RUNG_TRY(last ? search_last(run, s, sep, to, &at) : rung_j_search(run, s, sep, from, &at));
    if (at == SIZE_MAX) break;
    RUNG_TRY(last ? add_part(run, list, s, at + sep->length, to) : add_part(run, list, s, from, at));
    if (last)
      to = at;
    else
      from = at + sep->length;
  }
  return add_part(run, list, s, from, to);
}

static rung_status split(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, bool last, rung_jvalue *out) {
  const rung_jstring *s = self.as.string, *sep;
  int64_t most;
  RUNG_TRY(rung_jarg_integer(run, arg[1], "maxsplit", -1, &most));
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, out));
  if (arg[0].kind == RUNG_J_MISSING || arg[0].kind == RUNG_J_NONE) {
    RUNG_TRY(rung_j_work(run, s->length * 2));
    RUNG_TRY(last ? split_blanks_last(run, s, most, out->as.list) : split_blanks(run, s, most, out->as.list));
  } else {
    RUNG_TRY(rung_jarg_text(run, arg[0], "sep", &sep));
    if (!sep->length) return rung_j_fail(run, "empty separator");
    RUNG_TRY(split_at(run, s, sep, most, last, out->as.list));
  }
  if (last) turn(out->as.list);
  return RUNG_OK;
}
ROW(split) {
  UNUSED;
  return split(run, self, arg, false, out);
}
ROW(rsplit) {
  UNUSED;
  return split(run, self, arg, true, out);
}

static rung_status partition(rung_jrun *run, rung_jvalue self, rung_jvalue sep, bool last, rung_jvalue *out) {
  const rung_jstring *s = self.as.string, *part;
  size_t at;
  RUNG_TRY(rung_jarg_text(run, sep, "sep", &part));
  if (!part->length) return rung_j_fail(run, "empty separator");
  RUNG_TRY(last ? search_last(run, s, part, s->length, &at) : rung_j_search(run, s, part, 0, &at));
  const bool found = at != SIZE_MAX;
  const size_t from = found ? at : last ? 0 : s->length, to = found ? at + part->length : from;
  RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, 3, out));
  RUNG_TRY(add_part(run, out->as.list, s, 0, from));
  RUNG_TRY(add_part(run, out->as.list, s, from, to));
  return add_part(run, out->as.list, s, to, s->length);
}
ROW(partition) {
  UNUSED;
  return partition(run, self, arg[0], false, out);
}
ROW(rpartition) {
  UNUSED;
  return partition(run, self, arg[0], true, out);
}

ROW(join) {
  UNUSED;
  rung_jlist *list;
  rung_jtext text = {0};
  RUNG_TRY(rung_j_elements(run, arg[0], &list));
  for (size_t i = 0; i < list->count; i++) {
    const rung_jstring *one;
    if (list->item[i].kind != RUNG_J_STRING)
      return rung_j_fail(run, "sequence item %zu: expected str instance, %s found", i, rung_j_type(list->item[i]));
    RUNG_TRY(rung_jarg_text(run, list->item[i], "join", &one));
    if (i) RUNG_TRY(rung_j_put(run, &text, self.as.string->data, self.as.string->length));
    if (self.as.string->safe && !one->safe)
      RUNG_TRY(rung_j_escape(run, &text, one));
    else
      RUNG_TRY(rung_j_put(run, &text, one->data, one->length));
  }
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = self.as.string->safe;
  return RUNG_OK;
}

ROW(format) {
  UNUSED;
  return rung_j_format(run, self.as.string, call, out);
}
