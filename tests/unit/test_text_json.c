/* SPDX-License-Identifier: MIT
 * JSON read in place: what is accepted and what walking it gives, compared with jansson over texts that are changed at
 * random; places of refusals; strings with escapes; depth. */
#include "base/status.h"
#include "test.h"
#include "text/json.h"
#include "text/utf8.h"

#if RUNG_HAVE_JANSSON
#include <jansson.h>
#endif

static rung_error error;

/* In memory of its own size, so that a sanitizer sees a read past the end. */
static rung_status check_text(const char *text, size_t bytes, char **out_copy, rung_json *out) {
  char *copy = malloc(bytes ? bytes : 1);
  if (bytes) memcpy(copy, text, bytes);
  *out = (rung_json){NULL, 0};
  *out_copy = copy;
  return rung_json_check(copy, bytes, 100, &error, out);
}

static void test_refused(void) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "a value expected at offset 100"},
      {"   ", "a value expected at offset 103"},
      {"{", "a string expected at offset 101"},
      {"{}}", "the end expected at offset 102"},
      {"{\"a\"}", "':' expected at offset 104"},
      {"{\"a\":}", "a value expected at offset 105"},
      {"{\"a\":1 \"b\":2}", "',' or '}' expected at offset 107"},
      {"{\"a\":1,}", "a string expected at offset 107"},
      {"[1,]", "a value expected at offset 103"},
      {"[1 2]", "',' or ']' expected at offset 103"},
      {"[,1]", "a value expected at offset 101"},
      {"01", "the end expected at offset 101"},
      {"-", "a digit expected at offset 101"},
      {"+1", "a value expected"},
      {".5", "a value expected"},
      {"1.", "a digit expected at offset 102"},
      {"1e", "a digit expected at offset 102"},
      {"tru", "a value expected at offset 100"},
      {"NaN", "a value expected at offset 100"},
      {"nulls", "the end expected at offset 104"},
      {"\"a", "the end of a string expected at offset 102"},
      {"\"a\\", "the end of a string expected"},
      {"\"\\x\"", "an escape expected at offset 102"},
      {"\"\\u12g4\"", "four hex digits"},
      {"\"\\ud800\"", "four hex digits"},
      {"\"\\ud800\\u0041\"", "four hex digits"},
      {"\"\\udc00\"", "four hex digits"},
      {"\"a\nb\"", "no control character expected at offset 102"},
      {"[\"\xC3\"]", "no UTF-8 at offset 102"},
      {"\xEF\xBB\xBF{}", "a value expected at offset 100"},
      {"{'a':1}", "a string expected"},
      {"[1] // no", "the end expected"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    char *copy;
    rung_json value;
    CHECK_STATUS(check_text(cases[i].text, strlen(cases[i].text), &copy, &value), RUNG_CORRUPT_FILE);
    CHECK(strstr(error.message, cases[i].says) != NULL);
    if (!strstr(error.message, cases[i].says)) fprintf(stderr, "  %s: %s\n", cases[i].text, error.message);
    free(copy);
  }
}

static void test_depth(void) {
  enum { MOST = 100 };
  char text[2 * MOST + 1];
  for (int depth = 1; depth <= MOST; depth++) {
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    char *copy;
    rung_json value;
    const rung_status status = check_text(text, 2 * (size_t)depth, &copy, &value);
    CHECK_EQ_I64(status, depth <= RUNG_JSON_DEPTH ? RUNG_OK : RUNG_CORRUPT_FILE);
    if (!status) CHECK_EQ_I64(value.length, 2 * depth);
    free(copy);
  }
}

static void test_values(void) {
  static const char text[] =
      " { \"whole\" : -12 , \"large\":9223372036854775808,\"real\":2.5e-1,\"on\":true,\"off\":false,\"none\":null,"
      "\"esc\\u0061pe\":\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\",\"list\":[ ],\"twice\":1,\"twice\":2,"
      "\"deep\":{\"]\":[{\"}\":\"{\\\"\"}]}} ";
  char *copy, out[64];
  rung_json whole;
  CHECK_OK(check_text(text, strlen(text), &copy, &whole));
  CHECK_EQ_I64(rung_json_count(whole), 11);
  int64_t i = 7;
  double f = 7;
  bool twice;
  CHECK(rung_json_i64(rung_json_find(whole, "whole", &twice), &i) && i == -12 && !twice);
  CHECK(rung_json_f64(rung_json_find(whole, "whole", NULL), &f) && f == -12);
  CHECK(!rung_json_i64(rung_json_find(whole, "large", NULL), &i) && i == -12);
  CHECK(rung_json_f64(rung_json_find(whole, "large", NULL), &f) && f == 9223372036854775808.0);
  CHECK(!rung_json_i64(rung_json_find(whole, "real", NULL), &i));
  CHECK(rung_json_f64(rung_json_find(whole, "real", NULL), &f) && f == 0.25);
  CHECK(!rung_json_f64(rung_json_find(whole, "on", NULL), &f) && !rung_json_i64(rung_json_find(whole, "x", NULL), &i));
  CHECK(rung_json_kind_of(rung_json_find(whole, "on", NULL)) == RUNG_JSON_BOOL);
  CHECK(rung_json_kind_of(rung_json_find(whole, "none", NULL)) == RUNG_JSON_NULL);
  CHECK(rung_json_kind_of(rung_json_find(whole, "list", NULL)) == RUNG_JSON_ARRAY);
  CHECK(rung_json_count(rung_json_find(whole, "list", NULL)) == 0);
  CHECK(rung_json_kind_of(rung_json_find(whole, "missing", NULL)) == RUNG_JSON_NONE);
  CHECK(rung_json_i64(rung_json_find(whole, "twice", &twice), &i) && i == 1 && twice);
  const rung_json escaped = rung_json_find(whole, "escape", NULL);
  const char want[] = "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80", *plain;
  size_t length;
  CHECK_EQ_I64(rung_json_string(escaped, out, sizeof out), sizeof want - 1);
  CHECK(memcmp(out, want, sizeof want - 1) == 0);
  CHECK_EQ_I64(rung_json_string(escaped, out, 3), sizeof want - 1);
  CHECK(rung_json_equals(escaped, want) && !rung_json_equals(escaped, "a") &&
        !rung_json_plain(escaped, &plain, &length));
  const rung_json deep = rung_json_find(whole, "deep", NULL);
  rung_json_walk walk = rung_json_begin(deep);
  rung_json name, value;
  CHECK(rung_json_next(&walk, &name, &value) && rung_json_equals(name, "]") && rung_json_count(value) == 1);
  CHECK(!rung_json_next(&walk, &name, &value) && !rung_json_next(&walk, &name, &value));
  walk = rung_json_begin(escaped);
  CHECK(!rung_json_next(&walk, &name, &value) && rung_json_count(escaped) == 0 && rung_json_string(deep, out, 1) == 0);
  free(copy);
}

/* ---- beside jansson */

#if RUNG_HAVE_JANSSON
static bool same(rung_json ours, const json_t *theirs) {
  rung_json_walk walk = rung_json_begin(ours);
  rung_json name, value;
  int64_t whole;
  double number;
  char text[512], key[512];
  switch (json_typeof(theirs)) {
    case JSON_OBJECT:
      for (bool twice; rung_json_next(&walk, &name, &value);) {
        const size_t n = rung_json_string(name, key, sizeof key);
        if (n >= sizeof key || memchr(key, 0, n)) continue;
        key[n] = 0;
        (void)rung_json_find(ours, key, &twice); /* jansson keeps the last of two */
        const json_t *other = json_object_get(theirs, key);
        if (!other || (!twice && !same(value, other))) return false;
      }
      return rung_json_kind_of(ours) == RUNG_JSON_OBJECT;
    case JSON_ARRAY:
      for (size_t i = 0; rung_json_next(&walk, NULL, &value); i++)
        if (!same(value, json_array_get(theirs, i))) return false;
      return rung_json_kind_of(ours) == RUNG_JSON_ARRAY && rung_json_count(ours) == json_array_size(theirs);
    case JSON_STRING:
      return rung_json_string(ours, text, sizeof text) == json_string_length(theirs) &&
             memcmp(text, json_string_value(theirs), json_string_length(theirs)) == 0;
    case JSON_INTEGER:
      return rung_json_i64(ours, &whole) && whole == json_integer_value(theirs);
    case JSON_REAL:
      return !rung_json_i64(ours, &whole) && rung_json_f64(ours, &number) && !(number < json_real_value(theirs)) &&
             !(number > json_real_value(theirs));
    case JSON_TRUE:
    case JSON_FALSE:
      return rung_json_kind_of(ours) == RUNG_JSON_BOOL && (ours.text[0] == 't') == json_is_true(theirs);
    case JSON_NULL:
      return rung_json_kind_of(ours) == RUNG_JSON_NULL;
  }
  return false;
}

static void test_beside_jansson(void) {
  static const char *const seeds[] = {
      "{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,30],\"data_offsets\":[0,240]},\"__metadata__\":{\"x\":\"y\"}}",
      "[1,-2.5e3,0.125,true,false,null,\"\\u00e9\\n\\\\\",{},[],[[{\"k\":[0]}]]]",
      " { \"k\" : [ 1 , 2 ] , \"l\" : \"\xC3\xA9\" } ", "\"\\ud83d\\ude00 \\/\"", "-0.0e-2"};
  static const char pieces[] = "{}[],:\"\\u0dD8eE+-.1 tfn\x01\xC3\x80";
  uint64_t random = 11;
  int64_t accepted = 0, rounds = test_slow() ? 20000 : 200000;
  for (int64_t i = 0; i < rounds; i++) {
    char text[256], *copy;
    const char *seed = seeds[test_below(&random, RUNG_COUNT(seeds))];
    size_t n = strlen(seed);
    memcpy(text, seed, n);
    for (int64_t change = test_below(&random, 4); change > 0; change--) {
      const size_t at = (size_t)test_below(&random, (int64_t)n);
      const char piece = pieces[test_below(&random, sizeof pieces - 1)];
      if (test_below(&random, 3) == 0 && n > 1) {
        memmove(text + at, text + at + 1, n - at - 1);
        n--;
      } else if (test_below(&random, 2)) {
        memmove(text + at + 1, text + at, n - at);
        text[at] = piece;
        n++;
      } else {
        text[at] = piece;
      }
    }
    rung_json ours;
    json_error_t why;
    const rung_status status = check_text(text, n, &copy, &ours);
    json_t *theirs = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    /* Numbers beyond its types are refused there, and here only when they are asked for; a name with a NUL always. */
    const enum json_error_code code = theirs ? json_error_unknown : json_error_code(&why);
    const bool skip = code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
    CHECK(skip || (status == RUNG_OK) == (theirs != NULL));
    if (!skip && (status == RUNG_OK) != (theirs != NULL))
      fprintf(stderr, "  %.*s: %s, jansson: %s\n", (int)n, text, status ? error.message : "good", why.text);
    if (!status && theirs) CHECK(same(ours, theirs));
    accepted += !status && theirs;
    json_decref(theirs);
    free(copy);
  }
  CHECK(accepted > rounds / 10);
}
#else
static void test_beside_jansson(void) { SKIP("built without jansson"); }
#endif

int main(void) {
  RUN(test_refused);
  RUN(test_depth);
  RUN(test_values);
  RUN(test_beside_jansson);
  return TEST_END();
}
