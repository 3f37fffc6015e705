/* SPDX-License-Identifier: MIT
 * Text buffers and numbers, also under a locale that writes a decimal comma. */
#include <locale.h>
#include <math.h>

#include "base/text.h"
#include "test.h"

static rung_host *host;

static void check_double(double value, const char *want) {
  rung_text text;
  rung_text_init(&text, host);
  rung_text_double(&text, value);
  if (want) CHECK_STR(text.data, want);
  double back = 0;
  const char *end = NULL;
  CHECK(rung_parse_f64(text.data, text.data + text.length, &back, &end) && end == text.data + text.length);
  CHECK(isnan(value) ? isnan(back) : memcmp(&back, &value, sizeof back) == 0);
  rung_text_finish(&text);
}

static void test_doubles(void) {
  check_double(0, "0");
  check_double(-0.0, "-0");
  check_double(1, "1");
  check_double(0.1, "0.1");
  check_double(0.1 + 0.2, "0.30000000000000004");
  check_double(1e300, "1e+300");
  check_double(5e-324, "5e-324");
  check_double(1.7976931348623157e308, "1.7976931348623157e+308");
  check_double(2.2250738585072014e-308, NULL);
  check_double(2.2250738585072009e-308, NULL);
  check_double(9007199254740993.0, "9007199254740992");
  check_double((double)0.1f, "0.10000000149011612");
  check_double(HUGE_VAL, "inf");
  check_double(-HUGE_VAL, "-inf");
  check_double((double)NAN, "nan");
  uint64_t seed = 3;
  for (int i = 0; i < 100000; i++) {
    const uint64_t bits = test_random(&seed);
    double d;
    memcpy(&d, &bits, sizeof d);
    if (!isnan(d)) check_double(d, NULL);
  }
}

static void test_locale(void) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  const char *set = NULL;
  for (size_t i = 0; i < RUNG_COUNT(names) && !set; i++) set = setlocale(LC_ALL, names[i]);
  check_double(0.5, "0.5");
  check_double(-1.25e-9, "-1.25e-09");
  rung_text text;
  rung_text_init(&text, host);
  rung_text_printf(&text, "%.3f %d", 1.5, 7);
  CHECK_STR(text.data, "1.500 7");
  rung_text_finish(&text);
  setlocale(LC_ALL, "C");
  if (!set) SKIP("no locale with a decimal comma is installed");
}

static void test_buffer(void) {
  rung_text text;
  rung_text_init(&text, host);
  for (int i = 0; i < 1000; i++) rung_text_printf(&text, "%d,", i);
  CHECK_EQ_I64(text.length, 3890);
  CHECK(text.data[text.length] == 0);
  char long_word[2000];
  memset(long_word, 'x', sizeof long_word - 1);
  long_word[sizeof long_word - 1] = 0;
  rung_text_printf(&text, "[%s]", long_word);
  CHECK_EQ_I64(text.length, 3890 + 2001);
  CHECK(text.data[text.length - 1] == ']' && text.data[text.length] == 0);
  CHECK_OK(rung_text_status(&text, NULL));
  rung_text_finish(&text);
  rung_text_finish(&text);
  rung_text_finish(NULL);
}

static void test_quoted(void) {
  static const struct {
    const char *in;
    size_t length;
    const char *want;
  } rows[] = {
      {"plain", 5, "\"plain\""},
      {"a\"b\\c\nd\te", 9, "\"a\\\"b\\\\c\\nd\\te\""},
      {"\0\x01\x7F\r", 4, "\"\\x00\\x01\\x7f\\x0d\""},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
      {"\xC3", 1, "\"\\xc3\""},
      {"\x80z\xED\xA0\x80\xC0\xAF", 7, "\"\\x80z\\xed\\xa0\\x80\\xc0\\xaf\""},
      {"", 0, "\"\""},
  };
  for (size_t r = 0; r < RUNG_COUNT(rows); r++) {
    rung_text text;
    rung_text_init(&text, host);
    rung_text_quoted(&text, rows[r].in, rows[r].length);
    CHECK_STR(text.data, rows[r].want);
    rung_text_finish(&text);
  }
}

static void test_integers(void) {
  int64_t v = 0;
  const char *end;
  CHECK(rung_parse_i64("9223372036854775807,", NULL, &v, &end) && v == INT64_MAX && *end == ',');
  CHECK(rung_parse_i64("-9223372036854775808", NULL, &v, &end) && v == INT64_MIN && !*end);
  CHECK(!rung_parse_i64("9223372036854775808", NULL, &v, &end));
  CHECK(!rung_parse_i64("-9223372036854775809", NULL, &v, &end));
  CHECK(rung_parse_i64("+12x", NULL, &v, &end) && v == 12 && *end == 'x');
  const char *digits = "12345";
  CHECK(rung_parse_i64(digits, digits + 2, &v, &end) && v == 12 && end == digits + 2);
  CHECK(!rung_parse_i64("", NULL, &v, &end) && !rung_parse_i64("-", NULL, &v, &end) &&
        !rung_parse_i64(" 1", NULL, &v, &end));
}

static void test_reals(void) {
  double d = 0;
  const char *end;
  CHECK(rung_parse_f64("1.5e3]", NULL, &d, &end) && d == 1500 && *end == ']');
  CHECK(rung_parse_f64(".5", NULL, &d, &end) && d == 0.5);
  CHECK(rung_parse_f64("5.", NULL, &d, &end) && d == 5 && !*end);
  CHECK(rung_parse_f64("2e", NULL, &d, &end) && d == 2 && *end == 'e');
  CHECK(rung_parse_f64("-inf", NULL, &d, &end) && d == -HUGE_VAL);
  CHECK(!rung_parse_f64("1e999", NULL, &d, &end) && !rung_parse_f64(".", NULL, &d, &end) &&
        !rung_parse_f64("e5", NULL, &d, &end));
  CHECK(!rung_parse_f64("-", NULL, &d, &end));
  CHECK(rung_parse_f64("0x1", NULL, &d, &end) && d == 0 && *end == 'x');
  char many[3000];
  memset(many, '1', sizeof many);
  CHECK(!rung_parse_f64(many, many + sizeof many, &d, &end));
  CHECK(rung_parse_f64(many, many + 300, &d, &end) && end == many + 300);
}

static void test_bytes(void) {
  uint64_t v = 0;
  CHECK(rung_parse_bytes("1024", &v) && v == 1024);
  CHECK(rung_parse_bytes("64K", &v) && v == 65536);
  CHECK(rung_parse_bytes("512M", &v) && v == UINT64_C(512) << 20);
  CHECK(rung_parse_bytes("2g", &v) && v == UINT64_C(2) << 30);
  CHECK(!rung_parse_bytes("", &v) && !rung_parse_bytes("-1", &v) && !rung_parse_bytes("1X", &v) &&
        !rung_parse_bytes("1KB", &v));
  CHECK(!rung_parse_bytes("9000000000000000000K", &v));
}

static void test_no_memory(void) {
  test_fault fault = {.kind = RUNG_FAULT_ALLOC};
  for (fault.at = 1;; fault.at++) {
    memset(fault.count, 0, sizeof fault.count);
    fault.hit = false;
    rung_host_set_fault(host, test_fault_hit, &fault);
    rung_text text;
    rung_text_init(&text, host);
    for (int i = 0; i < 100; i++) rung_text_printf(&text, "line %d\n", i);
    rung_host_set_fault(host, NULL, NULL);
    CHECK_STATUS(rung_text_status(&text, NULL), fault.hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
    rung_text_finish(&text);
    if (!fault.hit) break;
  }
  CHECK(fault.at > 3);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_doubles);
  RUN(test_locale);
  RUN(test_buffer);
  RUN(test_quoted);
  RUN(test_integers);
  RUN(test_reals);
  RUN(test_bytes);
  RUN(test_no_memory);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  return TEST_END();
}
