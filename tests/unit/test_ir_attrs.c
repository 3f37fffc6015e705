/* SPDX-License-Identifier: MIT
 * Attributes by their list: an op with every kind stands for all ops. */
#include <math.h>
#include <stddef.h>

#include "ir/lex.h"
#include "ir/op.h"
#include "test.h"

static rung_host *host;

typedef enum color { RED, GREEN, BLUE } color;
typedef struct every {
  int64_t count;
  double real;
  bool flag;
  const char *text;
  rung_type type;
  int32_t mode;
  rung_dim dim;
  rung_dim_list dims;
  rung_i64_list numbers;
  rung_blob data;
  const char *given;
} every;
#define FIELD(field) .name = #field, .offset = offsetof(every, field)
static const char *const colors[] = {"red", "green", "blue", NULL};
static const rung_attr list[] = {{FIELD(count), .kind = RUNG_ATTR_I64, .text_default = "7"},
                                 {FIELD(real), .kind = RUNG_ATTR_F64, .text_default = "1e-5"},
                                 {FIELD(flag), .kind = RUNG_ATTR_BOOL, .text_default = "true"},
                                 {FIELD(text), .kind = RUNG_ATTR_TEXT, .text_default = ""},
                                 {FIELD(type), .kind = RUNG_ATTR_TYPE, .text_default = "f32"},
                                 {FIELD(mode), .kind = RUNG_ATTR_ENUM, .text_default = "green", .names = colors},
                                 {FIELD(dim), .kind = RUNG_ATTR_DIM, .text_default = "none"},
                                 {FIELD(dims), .kind = RUNG_ATTR_DIMS, .text_default = "[]"},
                                 {FIELD(numbers), .kind = RUNG_ATTR_I64S, .text_default = "[1,2]"},
                                 {FIELD(data), .kind = RUNG_ATTR_CONSTANT, .text_default = "hex\"\""},
                                 {FIELD(given), .kind = RUNG_ATTR_TEXT},
                                 {0}};
#undef FIELD
static const rung_op op = {.name = "every", .attrs = list, .attrs_bytes = sizeof(every)};

static rung_dims *dims;
static rung_arena arena;

static rung_status read(const char *text, every *out, rung_error *error) {
  const char *end;
  const rung_status status = rung_attrs_parse(&op, dims, &arena, text, text + strlen(text), &end, out, error);
  return status ? status : *end ? rung_fail(error, RUNG_CORRUPT_FILE, "'%s' is left", end) : RUNG_OK;
}
static const char *write(const every *attrs, const rung_value_type *type) {
  static char out[4096];
  rung_text text;
  rung_text_init(&text, host);
  rung_attrs_print(&op, dims, attrs, type, &text);
  snprintf(out, sizeof out, "%s", text.length ? text.data : "");
  rung_text_finish(&text);
  return out;
}

static void test_defaults(void) {
  every attrs;
  rung_attrs_default(&op, dims, &attrs);
  CHECK_EQ_I64(attrs.count, 7);
  CHECK(attrs.real == 1e-5 && attrs.flag);
  CHECK_STR(attrs.text, "");
  CHECK_EQ_I64(attrs.type, RUNG_TYPE_F32);
  CHECK_EQ_I64(attrs.mode, GREEN);
  CHECK_EQ_I64(attrs.dim.id, 0);
  CHECK_EQ_I64(attrs.dims.count, 0);
  CHECK(attrs.numbers.count == 2 && attrs.numbers.value[1] == 2);
  CHECK(attrs.given == NULL);
  rung_error error;
  CHECK_STATUS(rung_attrs_check(&op, dims, &attrs, &error), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "given") != NULL);
  attrs.given = "x";
  CHECK_OK(rung_attrs_check(&op, dims, &attrs, &error));
  CHECK_STR(write(&attrs, NULL), "given=\"x\"");
}

static void test_round_trip(void) {
  static const char *const texts[] = {
      "given=\"x\"",
      "count=-9223372036854775808, given=\"\"",
      "count=9223372036854775807, given=\"a\\\"b\\\\c\\n\\t\\x01\"",
      "real=0.1, given=\"\"",
      "real=-inf, given=\"\"",
      "real=nan, given=\"\"",
      "real=5e-324, given=\"\"",
      "real=-0, given=\"\"",
      "flag=false, text=\"some\", type=q4_k, mode=blue, given=\"\"",
      "dim=8*rows + 3, dims=[rows,max(n, rows),1], numbers=[], given=\"\"",
      "dim=0, numbers=[1,2,3,4,5,6,7,-8], given=\"\"",
      "data=hex\"00ff10\", given=\"\"",
  };
  for (size_t i = 0; i < RUNG_COUNT(texts); i++) {
    every attrs, again;
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(read(texts[i], &attrs, &error));
    CHECK_OK(rung_attrs_check(&op, dims, &attrs, &error));
    CHECK_STR(write(&attrs, NULL), texts[i]);
    every *copy = (every *)rung_attrs_copy(&op, &arena, &attrs);
    CHECK(rung_attrs_equal(&op, &attrs, copy));
    CHECK(copy->given != attrs.given);
    CHECK_EQ_I64(rung_attrs_hash(&op, &attrs), rung_attrs_hash(&op, copy));
    CHECK_STR(rung_attrs_name(&op, copy) ? "named" : "nameless", "nameless");
    CHECK_OK(read("given=\"other\"", &again, &error));
    CHECK(!rung_attrs_equal(&op, &attrs, &again));
  }
  every attrs;
  CHECK_OK(read(" count = 3 ,given = \"y\" , dims=[ rows , 2 ]", &attrs, NULL));
  CHECK_STR(write(&attrs, NULL), "count=3, dims=[rows,2], given=\"y\"");
}

static void test_refusals(void) {
  static const char *const texts[][2] = {
      {"", "needs attribute given"},
      {"count=1", "needs attribute given"},
      {"count=1, count=2, given=\"\"", "twice"},
      {"unknown=1", "no attribute 'unknown'"},
      {"count", "'='"},
      {"count=", "64 bits"},
      {"count=9223372036854775808", "64 bits"},
      {"given=\"\", count=1.5", "left"},
      {"real=1e999", "number"},
      {"flag=yes", "true or false"},
      {"text=abc", "quotes"},
      {"text=\"abc", "closing quote"},
      {"text=\"a\\q\"", "escape"},
      {"text=\"a\\x0\"", "escape"},
      {"text=\"a\\x00\"", "byte 0"},
      {"type=f99", "type"},
      {"mode=purple", "purple"},
      {"dim=unknown", "symbol"},
      {"dims=[1,2", "','"},
      {"dims=[1,2,3,4,5,6,7,8,9]", "more than 8"},
      {"numbers=[1,x]", "64 bits"},
      {"data=hex\"0\"", "pairs"},
      {"data=hex\"0g\"", "pairs"},
      {"data=hex\"00", "pairs"},
      {"data=base64\"AAA\"", "four"},
      {"data=base64\"AA!=\"", "malformed"},
      {"data=base64\"AAB=\"", "malformed"},
      {"data=base64\"A===\"", "malformed"},
      {"data=base64\"AAA=AAAA\"", "malformed"},
      {"data=q4_0(1)", "plain"},
      {"data=f32(1,)", "number"},
      {"data=f32 1", "'('"},
      {"data=raw", "hex"},
  };
  for (size_t i = 0; i < RUNG_COUNT(texts); i++) {
    every attrs;
    rung_error error = {RUNG_OK, ""};
    CHECK_STATUS(read(texts[i][0], &attrs, &error), RUNG_CORRUPT_FILE);
    test_state.checks++;
    if (!strstr(error.message, texts[i][1])) TEST_FAIL_("'%s': %s", texts[i][0], error.message);
  }
  every attrs;
  CHECK_OK(read("given=\"\"", &attrs, NULL));
  rung_error error;
  every bad = attrs;
  bad.mode = 3;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.dims.count = 9;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.dims.count = 1;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.numbers.count = -1;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.dim.id = 1u << 30;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.type = (rung_type)25;
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
  bad = attrs;
  bad.data = (rung_blob){NULL, 1};
  CHECK_STATUS(rung_attrs_check(&op, dims, &bad, &error), RUNG_INVALID_ARGUMENT);
}

/* Short constants of plain types show as numbers when that is exact; all others as bytes. */
static void test_constants(void) {
  static const struct {
    const char *text;
    rung_type type;
  } rows[] = {
      {"data=f32(1, -2.5, 1e-30, inf, nan, -0)", RUNG_TYPE_F32},
      {"data=f64(0.1, 5e-324)", RUNG_TYPE_F64},
      {"data=f16(0.3333)", RUNG_TYPE_F16},
      {"data=bf16(-3, 0.1)", RUNG_TYPE_BF16},
      {"data=i64(-9223372036854775808)", RUNG_TYPE_I64},
      {"data=u64(9223372036854775807)", RUNG_TYPE_U64},
      {"data=hex\"ffffffffffffffff\"", RUNG_TYPE_U64},
      {"data=bool(0, 1, 1)", RUNG_TYPE_BOOL},
      {"data=hex\"02\"", RUNG_TYPE_BOOL},
      {"data=u8(255, 0)", RUNG_TYPE_U8},
      {"data=i8(-128)", RUNG_TYPE_I8},
      {"data=hex\"0100c07f\"", RUNG_TYPE_F32},
      {"data=hex\"00\"", RUNG_TYPE_I4},
      {"data=hex\"010203\"", RUNG_TYPE_F32},
  };
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    char text[256];
    snprintf(text, sizeof text, "%s, given=\"\"", rows[i].text);
    every attrs;
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(read(text, &attrs, &error));
    const rung_value_type type = {.type = rows[i].type};
    CHECK_STR(write(&attrs, &type), text);
  }
  uint64_t seed = 3;
  for (size_t bytes = 0; bytes < 200; bytes++) { /* every length, both forms */
    uint8_t data[200];
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)test_random(&seed);
    every attrs, again;
    CHECK_OK(read("given=\"\"", &attrs, NULL));
    attrs.data = (rung_blob){data, bytes};
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(read(write(&attrs, NULL), &again, &error));
    CHECK(rung_attrs_equal(&op, &attrs, &again));
  }
}

static rung_dim twice(void *self, rung_dim dim) { return dim.id ? rung_dims_add((rung_dims *)self, dim, dim) : dim; }

static void test_remap(void) {
  every attrs;
  CHECK_OK(read("dim=rows, dims=[n,3], given=\"\"", &attrs, NULL));
  rung_attrs_remap(&op, &attrs, twice, dims);
  CHECK_STR(write(&attrs, NULL), "dim=2*rows, dims=[2*n,6], given=\"\"");
}

static void test_memory(void) {
  for (int64_t at = 1;; at++) {
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = at};
    rung_arena local;
    rung_arena_init(&local, host);
    rung_host_set_fault(host, test_fault_hit, &fault);
    every attrs;
    const char text[] = "text=\"abc\", dims=[1,2], data=f32(1, 2, 3), given=\"x\"", *end;
    rung_error error;
    const rung_status status = rung_attrs_parse(&op, dims, &local, text, text + strlen(text), &end, &attrs, &error);
    CHECK(status == RUNG_OK || (status == RUNG_OUT_OF_MEMORY && fault.hit));
    if (!status) rung_attrs_copy(&op, &local, &attrs);
    rung_host_set_fault(host, NULL, NULL);
    rung_arena_finish(&local);
    if (!fault.hit) break;
  }
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  dims = rung_dims_create(host);
  rung_arena_init(&arena, host);
  rung_dims_symbol(dims, "rows", 1, 512);
  rung_dims_symbol(dims, "n", 0, 1000);
  RUN(test_defaults);
  RUN(test_round_trip);
  RUN(test_refusals);
  RUN(test_constants);
  RUN(test_remap);
  RUN(test_memory);
  rung_arena_finish(&arena);
  rung_dims_release(dims);
  rung_host_release(host);
  return TEST_END();
}
