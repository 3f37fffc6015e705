/* SPDX-License-Identifier: MIT
 * Elements of operands: every type loads what its row says, every store rounds once. */
#include <math.h>

#include "ir/args.h"
#include "ops/structured.h"
#include "test.h"

static void test_load_agrees_with_rows(void) {
  uint64_t seed = 7;
  for (size_t t = 0; t < rung_type_count(); t++) {
    const rung_type type = rung_type_at(t);
    const rung_type_row *row = rung_type_get(type);
    enum { N = 512 };
    uint8_t bytes[N * 8];
    float want[N];
    double row_values[N];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)test_random(&seed);
    if (type == RUNG_TYPE_BOOL) {
      for (size_t i = 0; i < sizeof bytes; i++) bytes[i] &= 1;
    }
    row->to_f32(bytes, want, N);
    const int64_t extent[1] = {N}, stride[1] = {1};
    const rung_operand o = {.base = bytes, .extent = extent, .stride = stride, .rank = 1, .type = (uint8_t)type};
    rung_load_row_f64(&o, 0, row_values);
    for (int i = 0; i < N; i++) {
      const double value = rung_load_f64(&o, i);
      CHECK(isnan(value) ? isnan(want[i]) : (float)value == want[i]);
      CHECK(isnan(value) ? isnan(row_values[i]) : value == row_values[i]);
    }
  }
}

static double stored(rung_type type, double value) {
  uint8_t bytes[8] = {0};
  const rung_operand o = {.base = bytes, .type = (uint8_t)type};
  rung_store_f64(&o, 0, value);
  return rung_load_f64(&o, 0);
}

/* What a type can hold comes back as it was, whatever else is stored beside it. */
static void test_store_round_trip(void) {
  uint64_t seed = 11;
  for (size_t t = 0; t < rung_type_count(); t++) {
    const rung_type type = rung_type_at(t);
    const rung_type_row *row = rung_type_get(type);
    if (row->class_ == RUNG_CLASS_BLOCK) continue;
    enum { N = 64 };
    uint8_t bytes[N * 8], again[N * 8] = {0};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)test_random(&seed);
    if (type == RUNG_TYPE_BOOL) {
      for (size_t i = 0; i < sizeof bytes; i++) bytes[i] &= 1;
    }
    const rung_operand from = {.base = bytes, .type = (uint8_t)type}, to = {.base = again, .type = (uint8_t)type};
    for (int i = N; i-- > 0;) {
      if (row->class_ == RUNG_CLASS_INT || row->class_ == RUNG_CLASS_UINT) {
        rung_store_i64(&to, i, rung_load_i64(&from, i));
      } else {
        rung_store_f64(&to, i, rung_load_f64(&from, i));
      }
    }
    for (int i = 0; i < N; i++) {
      const double a = rung_load_f64(&from, i), b = rung_load_f64(&to, i);
      if (isinf(a) && row->class_ == RUNG_CLASS_STORAGE) continue; /* narrow floats saturate */
      const bool same = isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
      test_state.checks++;
      if (!same) TEST_FAIL_("%s: %g became %g", row->name, a, b);
    }
  }
}

static void test_rounding(void) {
  CHECK(stored(RUNG_TYPE_F32, 1 + 0x1p-24) == 1);
  CHECK(stored(RUNG_TYPE_F32, 1 + 0x1.8p-23) == 1 + 0x1p-22);
  CHECK(stored(RUNG_TYPE_F16, 1 + 0x1p-11) == 1);
  CHECK(stored(RUNG_TYPE_F16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10); /* two roundings would give 1 */
  CHECK(stored(RUNG_TYPE_BF16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  CHECK(stored(RUNG_TYPE_F8E4M3, 1 + 0x1p-4 + 0x1p-40) == 1.125);
  CHECK(stored(RUNG_TYPE_F8E4M3, 1 + 0x1p-4) == 1);
  CHECK(stored(RUNG_TYPE_F8E5M2, 1 + 0x1p-3 + 0x1p-40) == 1.25);
  CHECK(stored(RUNG_TYPE_F4E2M1, 2.5) == 2);
  CHECK(stored(RUNG_TYPE_F4E2M1, 2.5 + 0x1p-40) == 3);
  CHECK(isinf(stored(RUNG_TYPE_F16, 1e6)));
  CHECK(isinf(stored(RUNG_TYPE_F32, -1e300)));
  CHECK(isnan(stored(RUNG_TYPE_BF16, (double)NAN)));
  CHECK(stored(RUNG_TYPE_F16, 0x1p-24) == 0x1p-24);
  CHECK(signbit(stored(RUNG_TYPE_F32, -0.0)));
}

static void test_integers(void) {
  CHECK(stored(RUNG_TYPE_I8, 2.5) == 2);
  CHECK(stored(RUNG_TYPE_I8, 3.5) == 4);
  CHECK(stored(RUNG_TYPE_I8, -1000) == -128);
  CHECK(stored(RUNG_TYPE_U8, -3) == 0);
  CHECK(stored(RUNG_TYPE_U8, 300) == 255);
  CHECK(stored(RUNG_TYPE_I16, 1e9) == 32767);
  CHECK(stored(RUNG_TYPE_U16, 1e9) == 65535);
  CHECK(stored(RUNG_TYPE_I32, -1e19) == -2147483648.0);
  CHECK(stored(RUNG_TYPE_U32, 1e19) == 4294967295.0);
  CHECK(stored(RUNG_TYPE_I64, 1e30) == 0x1p63);
  CHECK(stored(RUNG_TYPE_I64, (double)NAN) == 0);
  CHECK(stored(RUNG_TYPE_U64, 0x1p63) == 0x1p63);
  CHECK(stored(RUNG_TYPE_U64, 1e30) == 0x1p64);
  CHECK(stored(RUNG_TYPE_BOOL, 0.25) == 1);
  CHECK(stored(RUNG_TYPE_BOOL, (double)NAN) == 1);
  CHECK(stored(RUNG_TYPE_I4, 100) == 7);
  CHECK(stored(RUNG_TYPE_U2, 100) == 3);
  uint8_t bytes[8] = {0};
  rung_operand o = {.base = bytes, .type = RUNG_TYPE_I8};
  rung_store_i64(&o, 0, 200);
  CHECK_EQ_I64(rung_load_i64(&o, 0), -56); /* integers wrap */
  o.type = RUNG_TYPE_I4;
  rung_store_i64(&o, 1, 9);
  CHECK_EQ_I64(rung_load_i64(&o, 1), -7);
  CHECK_EQ_I64(rung_load_i64(&o, 0), -8);
  o.type = RUNG_TYPE_I64;
  rung_store_i64(&o, 0, INT64_MAX);
  CHECK_EQ_I64(rung_load_i64(&o, 0), INT64_MAX); /* not through double */
  o.type = RUNG_TYPE_F32;
  rung_store_i64(&o, 0, INT64_C(0x100000100000001)); /* just above a tie of f32 */
  CHECK(rung_load_f64(&o, 0) == 0x1.000002p56);
  o.type = RUNG_TYPE_BF16;
  rung_store_i64(&o, 0, (INT64_C(1) << 62) + (INT64_C(1) << 54) + 1); /* above a tie of bf16, on it in f64 */
  CHECK(rung_load_f64(&o, 0) == 0x1.02p62);
  o.type = RUNG_TYPE_F64;
  rung_store_f64(&o, 0, -2.75);
  CHECK_EQ_I64(rung_load_i64(&o, 0), -2);
  rung_store_f64(&o, 0, 1e300);
  CHECK_EQ_I64(rung_load_i64(&o, 0), INT64_MAX);
}

static void test_rows(void) {
  int16_t data[2 * 3 * 4];
  for (int i = 0; i < 24; i++) data[i] = (int16_t)i;
  const int64_t extent[3] = {3, 2, 4}, stride[3] = {4, 12, 1}; /* transposed: a view */
  const rung_operand o = {
      .base = (uint8_t *)data, .extent = extent, .stride = stride, .rank = 3, .type = RUNG_TYPE_I16};
  double row[4];
  rung_load_row_f64(&o, 3, row); /* index [1, 1] */
  for (int i = 0; i < 4; i++) CHECK(row[i] == 12 + 4 + i);
  const rung_operand scalar = {.base = (uint8_t *)&data[5], .rank = 0, .type = RUNG_TYPE_I16};
  rung_load_row_f64(&scalar, 0, row);
  CHECK(row[0] == 5);
  /* Rows of blocks: strides count blocks. */
  float source[4 * 64];
  uint8_t blocks[8 * 34];
  for (int i = 0; i < 256; i++) source[i] = (float)(i % 97) - 48;
  rung_type_get(RUNG_TYPE_Q8_0)->from_f32(source, blocks, 256);
  const int64_t block_extent[2] = {4, 64}, block_stride[2] = {2, 1};
  const rung_operand q = {
      .base = blocks, .extent = block_extent, .stride = block_stride, .rank = 2, .type = RUNG_TYPE_Q8_0};
  double values[64];
  rung_load_row_f64(&q, 3, values);
  for (int i = 0; i < 64; i++) {
    CHECK(fabs(values[i] - (double)source[192 + i]) < 0.3);
    CHECK(values[i] == rung_load_f64(&q, 192 + i));
  }
}

/* Vectors of weights may lie at any byte of a file; sanitizers see a load that minds. */
static void test_vectors_at_any_byte(void) {
  static const int64_t wide[] = {7, INT64_MIN, -3};
  static const int32_t narrow[] = {7, INT32_MIN, -3};
  uint8_t bytes[8 * 4];
  for (size_t at = 0; at < 8; at++)
    for (int i = 0; i < 3; i++) {
      const int64_t extent = 3, step = 1;
      rung_operand o = {.base = bytes + at, .extent = &extent, .stride = &step, .rank = 1, .type = RUNG_TYPE_I32};
      memcpy(bytes + at, narrow, sizeof narrow);
      CHECK_EQ_I64(rung_vector_at(&o, i), narrow[i]);
      o.type = RUNG_TYPE_I64;
      memcpy(bytes + at, wide, sizeof wide);
      CHECK_EQ_I64(rung_vector_at(&o, i), wide[i]);
    }
}

int main(void) {
  RUN(test_load_agrees_with_rows);
  RUN(test_store_round_trip);
  RUN(test_rounding);
  RUN(test_integers);
  RUN(test_rows);
  RUN(test_vectors_at_any_byte);
  return TEST_END();
}
