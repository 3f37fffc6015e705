/* SPDX-License-Identifier: MIT
 * Text that grows, and reading numbers. Every conversion runs under the C locale, whatever the program has set. */
#define _GNU_SOURCE
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- locale ---- */

static locale_t c_locale; /* (locale_t)0 if it could not be made: then the thread's own stays */
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static locale_t enter_c_locale(void) {
  pthread_once(&c_locale_once, make_c_locale);
  return c_locale ? uselocale(c_locale) : (locale_t)0;
}
static void leave_c_locale(locale_t old) {
  if (old) uselocale(old);
}

/* ---- buffer ---- */

void rung_text_init(rung_text *text, rung_host *host) { *text = (rung_text){.host = host}; }

void rung_text_finish(rung_text *text) {
  if (!text || !text->host) return;
  rung_host_free(text->host, RUNG_MEMORY_host, text->data, text->capacity);
  *text = (rung_text){.host = text->host};
}

/* Room for `more` bytes and the terminator. */
static bool make_room(rung_text *text, size_t more) {
  size_t need;
  void *data = text->data;
  if (text->failed) return false;
  if (rung_add_overflows(text->length, more, &need) || rung_add_overflows(need, (size_t)1, &need) ||
      !rung_host_grow(text->host, &data, &text->capacity, need, 1)) {
    text->failed = true;
    return false;
  }
  text->data = (char *)data;
  return true;
}

void rung_text_add(rung_text *text, const char *data, size_t length) {
  if (!length || !make_room(text, length)) return;
  memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

void rung_text_puts(rung_text *text, const char *string) { rung_text_add(text, string, strlen(string)); }

void rung_text_printf(rung_text *text, const char *format, ...) {
  char small[256];
  va_list args, again;
  const locale_t old = enter_c_locale();
  va_start(args, format);
  va_copy(again, args);
  const int length = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (length < 0) {
    text->failed = true;
  } else if (length < (int)sizeof small) {
    rung_text_add(text, small, (size_t)length);
  } else if (make_room(text, (size_t)length)) {
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
  leave_c_locale(old);
}

void rung_text_double(rung_text *text, double value) {
  if (isnan(value)) {
    rung_text_puts(text, "nan");
    return;
  }
  if (isinf(value)) {
    rung_text_puts(text, value < 0 ? "-inf" : "inf");
    return;
  }
  /* Up to 15 digits survive the way through a normal double, so %.15g (which drops zeros) is shortest if it reads back.
   * Denormals have fewer digits and are tried from one up. */
  char small[40];
  const locale_t old = enter_c_locale();
  for (int digits = fpclassify(value) == FP_SUBNORMAL ? 1 : 15; digits <= 17; digits++) {
    snprintf(small, sizeof small, "%.*g", digits, value);
    const double back = strtod(small, NULL);
    if (back == value && !signbit(back) == !signbit(value)) break;
  }
  leave_c_locale(old);
  rung_text_puts(text, small);
}

/* Bytes of the valid UTF-8 character at p, 0 if there is none: what is no text is written as \xHH. */
static size_t utf8_length(const unsigned char *p, size_t left) {
  const size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xC0) != 0x80) return 0;
  const bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
  const bool surrogate = p[0] == 0xED && p[1] > 0x9F, beyond = p[0] == 0xF4 && p[1] > 0x8F;
  return overlong || surrogate || beyond ? 0 : n;
}

void rung_text_quoted(rung_text *text, const char *data, size_t length) {
  static const char digits[] = "0123456789abcdef";
  rung_text_add(text, "\"", 1);
  for (size_t i = 0; i < length;) {
    const unsigned char c = (unsigned char)data[i];
    if (c >= 0x80) {
      const size_t n = utf8_length((const unsigned char *)data + i, length - i);
      if (n) {
        rung_text_add(text, data + i, n);
        i += n;
        continue;
      }
    }
    if (c == '"' || c == '\\') {
      rung_text_add(text, (const char[]){'\\', (char)c}, 2);
    } else if (c == '\n' || c == '\t') {
      rung_text_add(text, c == '\n' ? "\\n" : "\\t", 2);
    } else if (c < 0x20 || c >= 0x7F) {
      rung_text_add(text, (const char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, 4);
    } else {
      rung_text_add(text, data + i, 1);
    }
    i++;
  }
  rung_text_add(text, "\"", 1);
}

rung_status rung_text_status(const rung_text *text, rung_error *error) {
  if (!text->failed) return RUNG_OK;
  return rung_fail(error, RUNG_OUT_OF_MEMORY, "text: no memory behind %zu bytes", text->length);
}

/* ---- reading ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static const char *end_of(const char *text, const char *limit) { return limit ? limit : text + strlen(text); }

bool rung_parse_i64(const char *text, const char *limit, int64_t *out, const char **end) {
  const char *p = text;
  limit = end_of(text, limit);
  const bool negative = p < limit && *p == '-';
  if (p < limit && (*p == '-' || *p == '+')) p++;
  if (p == limit || !is_digit(*p)) return false;
  int64_t value = 0; /* kept negative: the range reaches further there */
  for (; p < limit && is_digit(*p); p++)
    if (rung_mul_overflows(value, 10, &value) || rung_sub_overflows(value, *p - '0', &value)) return false;
  if (!negative && rung_sub_overflows((int64_t)0, value, &value)) return false;
  *out = value;
  if (end) *end = p;
  return true;
}

/* Behind the digits, fraction and exponent that start at p; p itself if there is no digit. */
static const char *scan_number(const char *p, const char *limit) {
  const char *start = p;
  int digits = 0;
  for (; p < limit && is_digit(*p); p++) digits = 1;
  if (p < limit && *p == '.')
    for (p++; p < limit && is_digit(*p); p++) digits = 1;
  if (!digits) return start;
  if (p < limit && (*p == 'e' || *p == 'E')) {
    const char *exponent = p + 1;
    if (exponent < limit && (*exponent == '-' || *exponent == '+')) exponent++;
    if (exponent < limit && is_digit(*exponent)) {
      for (p = exponent; p < limit && is_digit(*p);) p++;
    }
  }
  return p;
}

static bool starts_with(const char *p, const char *limit, const char *word) {
  const size_t n = strlen(word);
  return (size_t)(limit - p) >= n && memcmp(p, word, n) == 0;
}

bool rung_parse_f64(const char *text, const char *limit, double *out, const char **end) {
  limit = end_of(text, limit);
  const char *p = text;
  const bool negative = p < limit && *p == '-';
  if (p < limit && (*p == '-' || *p == '+')) p++;
  if (starts_with(p, limit, "inf") || starts_with(p, limit, "nan")) {
    *out = *p == 'i' ? (negative ? -HUGE_VAL : HUGE_VAL) : (double)NAN;
    if (end) *end = p + 3;
    return true;
  }
  const char *stop = scan_number(p, limit);
  char small[1024]; /* no double needs more digits than that to be told from its neighbours */
  if (stop == p || (size_t)(stop - text) >= sizeof small) return false;
  memcpy(small, text, (size_t)(stop - text));
  small[stop - text] = 0;
  const locale_t old = enter_c_locale();
  const double value = strtod(small, NULL);
  leave_c_locale(old);
  if (isinf(value)) return false;
  *out = value;
  if (end) *end = stop;
  return true;
}

bool rung_parse_bytes(const char *text, uint64_t *out) {
  static const char units[] = "KMGT";
  int64_t number;
  const char *end;
  if (!is_digit(*text) || !rung_parse_i64(text, NULL, &number, &end)) return false;
  uint64_t value = (uint64_t)number;
  if (*end) {
    const char upper = *end >= 'a' ? (char)(*end - 'a' + 'A') : *end;
    const char *unit = strchr(units, upper);
    if (!unit || end[1]) return false;
    for (const char *u = units; u <= unit; u++)
      if (rung_mul_overflows(value, (uint64_t)1024, &value)) return false;
  }
  *out = value;
  return true;
}
