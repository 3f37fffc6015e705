/* SPDX-License-Identifier: MIT
 * JSON in place: one checking pass, then walks that rely on it. */
#include "text/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "text/utf8.h"

/* ---- checking */

typedef struct checker {
  const char *begin, *at, *end;
  uint64_t offset;
  rung_error *error;
} checker;

static rung_status bad(const checker *c, const char *what) {
  return rung_fail(c->error, RUNG_CORRUPT_FILE, "JSON: %s expected at offset %" PRIu64, what,
                   c->offset + (uint64_t)(c->at - c->begin));
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static void skip_blanks(checker *c) {
  while (c->at < c->end && is_blank(*c->at)) c->at++;
}
static bool take(checker *c, char want) {
  skip_blanks(c);
  if (c->at == c->end || *c->at != want) return false;
  c->at++;
  return true;
}

static int hex_of(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/* Four hex digits, -1 if they are none. */
static int32_t unit_of(const char *at, const char *end) {
  if (end - at < 4) return -1;
  int32_t unit = 0;
  for (int i = 0; i < 4; i++) {
    const int digit = hex_of(at[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}
/* The character of \uXXXX at `at` (behind the u), a pair of surrogates as one; -1: none. */
static int32_t escaped(const char *at, const char *end, size_t *out_length) {
  const int32_t first = unit_of(at, end);
  *out_length = 4;
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first > 0xDBFF || end - at < 6 || at[4] != '\\' || at[5] != 'u') return -1;
  const int32_t second = unit_of(at + 6, end);
  if (second < 0xDC00 || second > 0xDFFF) return -1;
  *out_length = 10;
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

static rung_status check_string(checker *c) {
  if (!take(c, '"')) return bad(c, "a string");
  while (c->at < c->end && *c->at != '"') {
    if ((uint8_t)*c->at < 0x20) return bad(c, "no control character");
    if (*c->at++ != '\\') continue;
    if (c->at == c->end) break;
    const char kind = *c->at;
    size_t length;
    if (!kind || !strchr("\"\\/bfnrtu", kind)) return bad(c, "an escape");
    c->at++;
    if (kind != 'u') continue;
    if (escaped(c->at, c->end, &length) < 0) return bad(c, "four hex digits of a character");
    c->at += length;
  }
  if (c->at == c->end) return bad(c, "the end of a string");
  c->at++;
  return RUNG_OK;
}

static bool take_digits(checker *c) {
  const char *from = c->at;
  while (c->at < c->end && is_digit(*c->at)) c->at++;
  return c->at > from;
}
static rung_status check_number(checker *c) {
  if (*c->at == '-') c->at++;
  if (c->at < c->end && *c->at == '0')
    c->at++;
  else if (!take_digits(c))
    return bad(c, "a digit");
  if (c->at < c->end && *c->at == '.') {
    c->at++;
    if (!take_digits(c)) return bad(c, "a digit");
  }
  if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
    c->at++;
    if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
    if (!take_digits(c)) return bad(c, "a digit");
  }
  return RUNG_OK;
}

static bool take_word(checker *c, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
  c->at += n;
  return true;
}

/* A value that is no container, or the opening of one, which is put on the stack. */
static rung_status check_one(checker *c, char *stack, int *depth) {
  skip_blanks(c);
  if (c->at == c->end) return bad(c, "a value");
  if (*c->at == '{' || *c->at == '[') {
    if (*depth == RUNG_JSON_DEPTH) return bad(c, "no deeper nesting");
    stack[(*depth)++] = *c->at++;
    return RUNG_OK;
  }
  if (*c->at == '"') return check_string(c);
  if (*c->at == '-' || is_digit(*c->at)) return check_number(c);
  if (take_word(c, "true") || take_word(c, "false") || take_word(c, "null")) return RUNG_OK;
  return bad(c, "a value");
}

static rung_status check_name(checker *c) {
  RUNG_TRY(check_string(c));
  return take(c, ':') ? RUNG_OK : bad(c, "':'");
}

static rung_status check_value(checker *c) {
  char stack[RUNG_JSON_DEPTH];
  int depth = 0;
  RUNG_TRY(check_one(c, stack, &depth));
  bool fresh = true; /* has the innermost container no element yet? */
  while (depth) {
    const bool object = stack[depth - 1] == '{';
    if (take(c, object ? '}' : ']')) {
      depth--;
      fresh = false;
      continue;
    }
    if (!fresh && !take(c, ',')) return bad(c, object ? "',' or '}'" : "',' or ']'");
    if (object) RUNG_TRY(check_name(c));
    const int before = depth;
    RUNG_TRY(check_one(c, stack, &depth));
    fresh = depth > before;
  }
  return RUNG_OK;
}

rung_status rung_json_check(const char *text, size_t bytes, uint64_t offset, rung_error *error, rung_json *out_value) {
  const size_t valid = rung_utf8_valid_prefix((const uint8_t *)text, bytes);
  if (valid != bytes)
    return rung_fail(error, RUNG_CORRUPT_FILE, "JSON: no UTF-8 at offset %" PRIu64, offset + (uint64_t)valid);
  checker c = {text, text, text + bytes, offset, error};
  skip_blanks(&c);
  const char *from = c.at;
  RUNG_TRY(check_value(&c));
  *out_value = (rung_json){from, (size_t)(c.at - from)};
  skip_blanks(&c);
  return c.at == c.end ? RUNG_OK : bad(&c, "the end");
}

/* ---- walking: all of this relies on the check */

rung_json_kind rung_json_kind_of(rung_json value) {
  if (!value.length) return RUNG_JSON_NONE;
  switch (value.text[0]) {
    case '{':
      return RUNG_JSON_OBJECT;
    case '[':
      return RUNG_JSON_ARRAY;
    case '"':
      return RUNG_JSON_STRING;
    case 't':
    case 'f':
      return RUNG_JSON_BOOL;
    case 'n':
      return RUNG_JSON_NULL;
    default:
      return RUNG_JSON_NUMBER;
  }
}

const char *rung_json_kind_name(rung_json_kind kind) {
  static const char *const names[] = {"nothing",  "null",   "a truth value", "a number",
                                      "a string", "a list", "an object"};
  return names[kind];
}

static const char *blanks_end(const char *at) {
  while (is_blank(*at)) at++;
  return at;
}
static const char *string_end(const char *at) {
  for (at++; *at != '"'; at++) at += *at == '\\';
  return at + 1;
}
static const char *value_end(const char *at) {
  if (*at == '"') return string_end(at);
  if (*at != '{' && *at != '[') { /* a scalar at the very end of the text is never walked to */
    while (*at != ',' && *at != '}' && *at != ']' && !is_blank(*at)) at++;
    return at;
  }
  int depth = 0;
  do {
    if (*at == '"') {
      at = string_end(at);
      continue;
    }
    depth += *at == '{' || *at == '[';
    depth -= *at == '}' || *at == ']';
    at++;
  } while (depth);
  return at;
}

rung_json_walk rung_json_begin(rung_json container) {
  const rung_json_kind kind = rung_json_kind_of(container);
  if (kind != RUNG_JSON_ARRAY && kind != RUNG_JSON_OBJECT) return (rung_json_walk){NULL, false};
  return (rung_json_walk){container.text + 1, kind == RUNG_JSON_OBJECT};
}

bool rung_json_next(rung_json_walk *walk, rung_json *out_name, rung_json *out_value) {
  if (!walk->at) return false;
  const char *at = blanks_end(walk->at);
  if (*at == ',') at = blanks_end(at + 1);
  if (*at == '}' || *at == ']') return false;
  rung_json name = {NULL, 0};
  if (walk->object) {
    const char *end = string_end(at);
    name = (rung_json){at, (size_t)(end - at)};
    at = blanks_end(blanks_end(end) + 1);
  }
  const char *end = value_end(at);
  if (out_name) *out_name = name;
  *out_value = (rung_json){at, (size_t)(end - at)};
  walk->at = end;
  return true;
}

size_t rung_json_count(rung_json container) {
  rung_json_walk walk = rung_json_begin(container);
  rung_json value;
  size_t count = 0;
  while (rung_json_next(&walk, NULL, &value)) count++;
  return count;
}

rung_json rung_json_find(rung_json object, const char *name, bool *out_twice) {
  rung_json_walk walk = rung_json_begin(object);
  rung_json found = {NULL, 0}, key, value;
  if (out_twice) *out_twice = false;
  while (walk.object && rung_json_next(&walk, &key, &value)) {
    if (!rung_json_equals(key, name)) continue;
    if (found.length) {
      if (out_twice) *out_twice = true;
      break;
    }
    found = value;
    if (!out_twice) break;
  }
  return found;
}

/* ---- scalars */

static uint32_t simple_escape(char kind) {
  switch (kind) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return (uint8_t)kind;
  }
}

size_t rung_json_string(rung_json value, char *out, size_t bytes) {
  if (rung_json_kind_of(value) != RUNG_JSON_STRING) return 0;
  const char *at = value.text + 1, *end = value.text + value.length - 1;
  size_t length = 0;
  while (at < end) {
    uint8_t piece[4] = {(uint8_t)*at++};
    int n = 1;
    if (piece[0] == '\\') {
      const char kind = *at++;
      size_t taken = 0;
      const uint32_t character = kind == 'u' ? (uint32_t)escaped(at, end, &taken) : simple_escape(kind);
      at += taken;
      n = rung_utf8_write(character, piece);
    }
    for (int i = 0; i < n; i++, length++)
      if (length < bytes) out[length] = (char)piece[i];
  }
  return length;
}

bool rung_json_plain(rung_json value, const char **out_text, size_t *out_length) {
  if (rung_json_kind_of(value) != RUNG_JSON_STRING || memchr(value.text, '\\', value.length)) return false;
  *out_text = value.text + 1;
  *out_length = value.length - 2;
  return true;
}

bool rung_json_equals(rung_json value, const char *text) {
  const size_t n = strlen(text);
  const char *plain;
  size_t length;
  if (rung_json_plain(value, &plain, &length)) return length == n && memcmp(plain, text, n) == 0;
  char copy[256];
  if (rung_json_kind_of(value) != RUNG_JSON_STRING || n >= sizeof copy) return false;
  return rung_json_string(value, copy, sizeof copy) == n && memcmp(copy, text, n) == 0;
}

bool rung_json_i64(rung_json value, int64_t *out) {
  const char *end, *limit = value.text + value.length;
  int64_t number;
  if (rung_json_kind_of(value) != RUNG_JSON_NUMBER || !rung_parse_i64(value.text, limit, &number, &end) || end != limit)
    return false;
  *out = number;
  return true;
}

bool rung_json_f64(rung_json value, double *out) {
  const char *end, *limit = value.text + value.length;
  double number;
  if (rung_json_kind_of(value) != RUNG_JSON_NUMBER || !rung_parse_f64(value.text, limit, &number, &end) || end != limit)
    return false;
  *out = number;
  return true;
}
