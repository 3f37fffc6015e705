/* SPDX-License-Identifier: MIT
 * Filters of one value: texts, numbers, JSON. Those of sequences are in filters_list.c. */
#include "text/jinja/filter.h"

#include <math.h>
#include <stdio.h>

#include "text/jinja/characters.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

ROW(unsupported) {
  UNUSED, (void)out;
  return rung_j_refuse(run, RUNG_UNSUPPORTED, "this filter is not supported");
}

/* ---- texts */

ROW(string) {
  UNUSED;
  return rung_j_str(run, self, out);
}

#define FORM(name, form)                                                  \
  ROW(name) {                                                             \
    UNUSED;                                                               \
    rung_jvalue text;                                                     \
    RUNG_TRY(rung_j_str(run, self, &text));                               \
    return rung_jtext_form(run, text.as.string, RUNG_J_FORM_##form, out); \
  }
FORM(upper, UPPER)
FORM(lower, LOWER)
FORM(capitalize, CAPITAL)
FORM(title, WORDS)

ROW(trim) {
  UNUSED;
  rung_jvalue text;
  const rung_jstring *chars = NULL;
  RUNG_TRY(rung_j_str(run, self, &text));
  if (arg[0].kind != RUNG_J_MISSING && arg[0].kind != RUNG_J_NONE)
    RUNG_TRY(rung_jarg_text(run, arg[0], "chars", &chars));
  return rung_jtext_strip(run, text.as.string, chars, RUNG_J_LEFT | RUNG_J_RIGHT, out);
}

/* str(value) as a plain text. */
static rung_status plain(rung_jrun *run, rung_jvalue v, rung_jvalue *out) {
  RUNG_TRY(rung_j_str(run, v, out));
  if (!out->as.string->safe) return RUNG_OK;
  return rung_j_text(run, out->as.string->data, out->as.string->length, out);
}

static rung_status marked(rung_jrun *run, rung_jvalue v, rung_jvalue *out) {
  RUNG_TRY(plain(run, v, out));
  RUNG_TRY(rung_j_text(run, out->as.string->data, out->as.string->length, out));
  out->as.string->safe = true;
  return RUNG_OK;
}

ROW(replace) {
  UNUSED;
  rung_jvalue text, old, new_;
  int64_t count = -1;
  RUNG_TRY(plain(run, self, &text));
  RUNG_TRY(plain(run, arg[0], &old));
  RUNG_TRY(plain(run, arg[1], &new_));
  if (arg[2].kind != RUNG_J_NONE) RUNG_TRY(rung_jarg_integer(run, arg[2], "count", -1, &count));
  return rung_jtext_replace(run, text.as.string, old.as.string, new_.as.string, count, out);
}

ROW(safe) {
  UNUSED;
  return marked(run, self, out);
}

static rung_status escape(rung_jrun *run, rung_jvalue v, rung_jvalue *out) {
  rung_jvalue text;
  rung_jtext escaped = {0};
  RUNG_TRY(rung_j_str(run, v, &text));
  RUNG_TRY(rung_j_escape(run, &escaped, text.as.string));
  RUNG_TRY(rung_j_take(run, &escaped, &text));
  return marked(run, text, out);
}
ROW(escape) {
  UNUSED;
  if (self.kind == RUNG_J_STRING && self.as.string->safe) {
    *out = self;
    return RUNG_OK;
  }
  return escape(run, self, out);
}
ROW(forceescape) {
  UNUSED;
  return escape(run, self, out);
}

ROW(center) {
  UNUSED;
  rung_jvalue text;
  int64_t width;
  RUNG_TRY(rung_j_str(run, self, &text));
  RUNG_TRY(rung_jarg_integer(run, arg[0], "width", 80, &width));
  return rung_jtext_pad(run, text.as.string, width, " ", 1, '^', out);
}

ROW(indent) {
  UNUSED;
  rung_jvalue blanks, lines, whole;
  rung_jtext text = {0};
  const rung_jstring *s;
  int64_t width = 4;
  RUNG_TRY(rung_jarg_text(run, self, "indent", &s));
  if (arg[0].kind == RUNG_J_STRING) {
    blanks = arg[0];
  } else {
    RUNG_TRY(rung_jarg_integer(run, arg[0], "width", 4, &width));
    RUNG_TRY(rung_j_text(run, "", 0, &blanks));
    RUNG_TRY(rung_jtext_pad(run, blanks.as.string, width, " ", 1, '<', &blanks));
  }
  const bool blank = rung_j_true(arg[2]);
  const rung_jstring *indent = blanks.as.string;
  RUNG_TRY(rung_j_join(run, self, "\n", 1, &whole)); /* so that a line end at the end makes one more line */
  RUNG_TRY(rung_jtext_lines(run, whole.as.string, false, &lines));
  if (rung_j_true(arg[1])) RUNG_TRY(rung_j_put(run, &text, indent->data, indent->length));
  for (size_t i = 0; i < lines.as.list->count; i++) {
    const rung_jstring *line = lines.as.list->item[i].as.string;
    if (i) RUNG_TRY(rung_j_puts(run, &text, "\n"));
    if (i && (line->length || blank)) RUNG_TRY(rung_j_put(run, &text, indent->data, indent->length));
    RUNG_TRY(rung_j_put(run, &text, line->data, line->length));
  }
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = s->safe;
  return RUNG_OK;
}

ROW(truncate) {
  UNUSED;
  rung_jvalue end, cut, one = {.kind = RUNG_J_NONE};
  int64_t length, leeway;
  const rung_jstring *s;
  RUNG_TRY(rung_jarg_text(run, self, "truncate", &s));
  RUNG_TRY(rung_jarg_integer(run, arg[0], "length", 255, &length));
  RUNG_TRY(rung_jarg_integer(run, arg[3].kind == RUNG_J_NONE ? (rung_jvalue){0} : arg[3], "leeway", 5, &leeway));
  if (arg[2].kind == RUNG_J_MISSING)
    RUNG_TRY(rung_j_text(run, "...", 3, &end));
  else
    RUNG_TRY(rung_j_str(run, arg[2], &end));
  const int64_t room = length - rung_j_characters(end.as.string);
  if (room < 0 || leeway < 0) return rung_j_fail(run, "truncate: length is shorter than end, or leeway negative");
  RUNG_TRY(rung_j_work(run, s->length));
  *out = self;
  if (rung_j_characters(self.as.string) <= length || rung_j_characters(self.as.string) - length <= leeway)
    return RUNG_OK;
  const rung_jvalue bound[3] = {one, rung_j_int(room), one};
  RUNG_TRY(rung_j_slice(run, self, bound, &cut));
  if (!rung_j_true(arg[1])) { /* whole words only */
    size_t to = cut.as.string->length;
    while (to && cut.as.string->data[to - 1] != ' ') to--;
    if (to) RUNG_TRY(rung_j_part(run, cut.as.string, 0, to - 1, &cut));
  }
  return rung_j_join(run, cut, end.as.string->data, end.as.string->length, out);
}

ROW(wordcount) {
  UNUSED;
  rung_jvalue text;
  int64_t count = 0;
  bool inside = false;
  RUNG_TRY(rung_j_str(run, self, &text));
  RUNG_TRY(rung_j_work(run, text.as.string->length * 8));
  for (size_t at = 0; at < text.as.string->length;) {
    uint32_t c = 0;
    at += (size_t)rung_utf8_read((const uint8_t *)text.as.string->data + at, text.as.string->length - at, &c);
    const bool word = c == '_' || rung_jclass_is(c, RUNG_J_ALPHA) || rung_jclass_is(c, RUNG_J_NUMERIC);
    count += word && !inside;
    inside = word;
  }
  *out = rung_j_int(count);
  return RUNG_OK;
}

static rung_status put_quoted(rung_jrun *run, rung_jtext *text, rung_jvalue v, bool query) {
  rung_jvalue s;
  RUNG_TRY(rung_j_str(run, v, &s));
  for (size_t i = 0; i < s.as.string->length; i++) {
    const char c = s.as.string->data[i];
    const bool letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9');
    char code[4];
    if (letter || (c && strchr(query ? "_.-~" : "_.-~/", c)))
      RUNG_TRY(rung_j_put(run, text, &c, 1));
    else if (query && c == ' ')
      RUNG_TRY(rung_j_puts(run, text, "+"));
    else if (snprintf(code, sizeof code, "%%%02X", (unsigned)(uint8_t)c))
      RUNG_TRY(rung_j_puts(run, text, code));
  }
  return RUNG_OK;
}

ROW(urlencode) {
  UNUSED;
  rung_jtext text = {0};
  rung_jlist *pairs, *pair;
  if (self.kind != RUNG_J_DICT && !rung_j_is_list(self)) {
    RUNG_TRY(put_quoted(run, &text, self, false));
    return rung_j_take(run, &text, out);
  }
  rung_jvalue items = self;
  if (self.kind == RUNG_J_DICT) RUNG_TRY(rung_jmethod_items(run, self, call, arg, &items));
  RUNG_TRY(rung_j_elements(run, items, &pairs));
  for (size_t i = 0; i < pairs->count; i++) {
    RUNG_TRY(rung_j_elements(run, pairs->item[i], &pair));
    if (pair->count != 2) return rung_j_fail(run, "urlencode: pairs expected");
    if (i) RUNG_TRY(rung_j_puts(run, &text, "&"));
    RUNG_TRY(put_quoted(run, &text, pair->item[0], true));
    RUNG_TRY(rung_j_puts(run, &text, "="));
    RUNG_TRY(put_quoted(run, &text, pair->item[1], true));
  }
  return rung_j_take(run, &text, out);
}

ROW(format) {
  UNUSED;
  rung_jvalue text, values;
  if (call->count && call->named)
    return rung_j_fail(run, "can't handle positional and keyword arguments at the same time");
  RUNG_TRY(rung_j_str(run, self, &text));
  if (call->named) {
    RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &values));
    *values.as.dict = *call->named;
  } else {
    RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, call->count, &values));
    for (size_t i = 0; i < call->count; i++) RUNG_TRY(rung_j_append(run, values.as.list, call->item[i]));
  }
  return rung_j_percent(run, text.as.string, values, out);
}

/* ---- anything */

ROW(default) {
  UNUSED;
  *out = self;
  if (self.kind != RUNG_J_UNDEFINED && !(rung_j_true(arg[1]) && !rung_j_true(self))) return RUNG_OK;
  *out = arg[0];
  return arg[0].kind == RUNG_J_MISSING ? rung_j_text(run, "", 0, out) : RUNG_OK;
}

ROW(attr) {
  UNUSED;
  const rung_jstring *name;
  bool found;
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  RUNG_TRY(rung_jarg_text(run, arg[0], "name", &name));
  RUNG_TRY(rung_j_own(run, self, name->data, name->length, out, &found));
  return found ? RUNG_OK : rung_j_undefined(run, out, "%s object has no such attribute", rung_j_type(self));
}

static rung_status read_layout(rung_jrun *run, const rung_jvalue *arg, rung_jlayout *out) {
  rung_jvalue blanks = arg[1];
  *out = (rung_jlayout){.ascii = rung_j_true(arg[0]),
                        .sort = rung_j_true(arg[3]),
                        .item = ", ",
                        .item_length = 2,
                        .member = ": ",
                        .member_length = 2};
  if (blanks.kind != RUNG_J_MISSING && blanks.kind != RUNG_J_NONE) {
    int64_t width;
    out->lines = true;
    out->item_length = 1;
    if (blanks.kind != RUNG_J_STRING) {
      RUNG_TRY(rung_jarg_integer(run, blanks, "indent", 0, &width));
      RUNG_TRY(rung_j_text(run, "", 0, &blanks));
      RUNG_TRY(rung_jtext_pad(run, blanks.as.string, width, " ", 1, '<', &blanks));
    }
    out->indent = blanks.as.string->data;
    out->indent_length = blanks.as.string->length;
  }
  if (arg[2].kind == RUNG_J_MISSING || arg[2].kind == RUNG_J_NONE) return RUNG_OK;
  rung_jlist *pair;
  const rung_jstring *item, *member;
  RUNG_TRY(rung_j_elements(run, arg[2], &pair));
  if (pair->count != 2) return rung_j_fail(run, "separators: two texts expected");
  RUNG_TRY(rung_jarg_text(run, pair->item[0], "separators", &item));
  RUNG_TRY(rung_jarg_text(run, pair->item[1], "separators", &member));
  out->item = item->data;
  out->item_length = item->length;
  out->member = member->data;
  out->member_length = member->length;
  return RUNG_OK;
}

ROW(tojson) {
  UNUSED;
  rung_jlayout layout;
  rung_jtext text = {0};
  RUNG_TRY(read_layout(run, arg, &layout));
  RUNG_TRY(rung_j_put_json(run, &text, self, &layout));
  return rung_j_take(run, &text, out);
}

/* ---- numbers */

ROW(abs) {
  UNUSED;
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  if (!rung_j_is_number(self)) return rung_j_fail(run, "bad operand type for abs(): '%s'", rung_j_type(self));
  if (self.kind == RUNG_J_FLOAT) {
    *out = rung_j_float(fabs(self.as.number));
    return RUNG_OK;
  }
  const int64_t i = rung_j_integer(self);
  if (i == INT64_MIN) return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
  *out = rung_j_int(i < 0 ? -i : i);
  return RUNG_OK;
}

/* The text without blanks around it and without the _ between its digits; false: it is no number then. */
static bool bare(const rung_jstring *s, char *out, size_t bytes) {
  const char *at = s->data, *end = s->data + s->length;
  size_t n, length = 0;
  while ((n = rung_jspace_at(at, (size_t)(end - at))) != 0) at += n;
  while ((n = rung_jspace_before(at, (size_t)(end - at))) != 0) end -= n;
  for (; at < end; at++) {
    if (*at == '_' && length && at + 1 < end && at[-1] != '_' && at[1] != '_' && at[-1] != '-' && at[-1] != '+')
      continue;
    if (length + 1 >= bytes) return false;
    out[length++] = *at;
  }
  out[length] = 0;
  return length > 0;
}

typedef enum reading { READ, NO_NUMBER, TOO_LARGE } reading;

static reading read_integer(const rung_jstring *s, int64_t base, int64_t *out) {
  char text[256];
  if (!bare(s, text, sizeof text)) return s->length >= sizeof text ? TOO_LARGE : NO_NUMBER;
  const char *at = text;
  const bool negative = *at == '-';
  at += *at == '-' || *at == '+';
  const char letter = at[0] == '0' && at[1] ? (char)(at[1] | 0x20) : 0;
  const int64_t own = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (own && (base == own || base == 0)) {
    at += 2;
    base = own;
  }
  if (base == 0) base = 10;
  int64_t value = 0;
  bool over = false;
  if (!*at) return NO_NUMBER;
  for (; *at; at++) {
    const char low = (char)(*at | 0x20);
    const int digit = *at >= '0' && *at <= '9' ? *at - '0' : low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
    if (digit >= base) return NO_NUMBER;
    over = over || rung_mul_overflows(value, base, &value) || rung_sub_overflows(value, (int64_t)digit, &value);
  }
  if (!over && !negative) over = rung_sub_overflows((int64_t)0, value, &value);
  *out = value;
  return over ? TOO_LARGE : READ;
}

static reading read_float(const rung_jstring *s, double *out) {
  char text[256];
  if (!bare(s, text, sizeof text)) return s->length >= sizeof text ? TOO_LARGE : NO_NUMBER;
  const char *at = text + (*text == '-' || *text == '+');
  char word[12] = "";
  for (size_t i = 0; at[i] && i + 1 < sizeof word; i++) word[i] = (char)(at[i] | 0x20);
  if (strcmp(word, "inf") == 0 || strcmp(word, "infinity") == 0 || strcmp(word, "nan") == 0) {
    *out = word[0] == 'n' ? (double)NAN : *text == '-' ? -HUGE_VAL : HUGE_VAL;
    return READ;
  }
  if (word[0] == 'i' || word[0] == 'n') return NO_NUMBER;
  const char *end;
  return rung_parse_f64(text, NULL, out, &end) && !*end ? READ : NO_NUMBER;
}

ROW(float) {
  UNUSED;
  double number = 0;
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  const rung_jvalue standard = arg[0].kind == RUNG_J_MISSING ? rung_j_float(0) : arg[0];
  if (self.kind == RUNG_J_BIG) return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
  if (rung_j_is_number(self))
    *out = rung_j_float(rung_j_number(self));
  else
    *out = self.kind == RUNG_J_STRING && read_float(self.as.string, &number) == READ ? rung_j_float(number) : standard;
  return RUNG_OK;
}

ROW(int) {
  UNUSED;
  double number = 0;
  int64_t base, value = 0;
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  RUNG_TRY(rung_jarg_integer(run, arg[1], "base", 10, &base));
  *out = arg[0].kind == RUNG_J_MISSING ? rung_j_int(0) : arg[0];
  if (rung_j_is_integer(self)) {
    *out = rung_j_int(rung_j_integer(self));
    return RUNG_OK;
  }
  if (self.kind == RUNG_J_BIG) {
    *out = self;
    return RUNG_OK;
  }
  if (self.kind == RUNG_J_STRING) {
    if (base != 0 && (base < 2 || base > 36)) return RUNG_OK; /* ValueError: then as a float */
    const reading read = read_integer(self.as.string, base, &value);
    if (read == TOO_LARGE) return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
    if (read == READ) {
      *out = rung_j_int(value);
      return RUNG_OK;
    }
    if (read_float(self.as.string, &number) != READ || isnan(number) || isinf(number)) return RUNG_OK;
  } else if (self.kind == RUNG_J_FLOAT) {
    number = self.as.number;
    if (isnan(number)) return RUNG_OK;
    if (isinf(number)) return rung_j_fail(run, "cannot convert float infinity to integer");
  } else {
    return RUNG_OK;
  }
  if (fabs(number) >= 9.2e18) return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
  *out = rung_j_int((int64_t)number);
  return RUNG_OK;
}

ROW(round) {
  UNUSED;
  int64_t precision;
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  if (!rung_j_is_number(self)) return rung_j_fail(run, "type %s doesn't define __round__ method", rung_j_type(self));
  RUNG_TRY(rung_jarg_integer(run, arg[0], "precision", 0, &precision));
  const bool up = rung_j_is_text(arg[1], "ceil"), down = rung_j_is_text(arg[1], "floor");
  if (!up && !down && arg[1].kind != RUNG_J_MISSING && !rung_j_is_text(arg[1], "common"))
    return rung_j_fail(run, "method must be common, ceil or floor");
  if (precision < 0 || precision > 300) return rung_j_refuse(run, RUNG_UNSUPPORTED, "this precision");
  const double number = rung_j_number(self), scale = pow(10, (double)precision);
  if (up || down) {
    const double scaled = up ? ceil(number * scale) : floor(number * scale);
    *out = rung_j_float(scaled / scale);
    return RUNG_OK;
  }
  if (rung_j_is_integer(self)) {
    *out = rung_j_int(rung_j_integer(self));
    return RUNG_OK;
  }
  *out = self;
  if (isnan(number) || isinf(number)) return RUNG_OK;
  rung_text text;
  rung_text_init(&text, run->host);
  rung_text_printf(&text, "%.*f", (int)precision, number);
  const rung_status status = rung_text_status(&text, run->error);
  if (!status) (void)rung_parse_f64(text.data, NULL, &out->as.number, NULL);
  rung_text_finish(&text);
  return status;
}
