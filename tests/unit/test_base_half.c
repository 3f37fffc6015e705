/* SPDX-License-Identifier: MIT
 * Narrow floats: every pattern reads back, and rounding agrees with a search over all patterns. */
#include <math.h>

#include "base/half.h"
#include "test.h"

static uint32_t bits32(float f) {
  uint32_t b;
  memcpy(&b, &f, sizeof b);
  return b;
}

static void test_f16_all(void) {
  for (uint32_t h = 0; h < 65536; h++) {
    const float f = rung_f16_to_f32((uint16_t)h);
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31 && mantissa) {
      CHECK(isnan(f) && isnan(rung_f16_to_f32(rung_f16_from_f32(f))));
      continue;
    }
    double want = exponent == 31 ? HUGE_VAL : exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    if (h >> 15) want = -want;
    CHECK((double)f == want && !!signbit(f) == !!(h >> 15));
    CHECK_EQ_I64(rung_f16_from_f32(f), h);
    CHECK_EQ_I64(rung_f16_from_f64((double)f), h);
  }
}

/* Halfway between two neighbours goes to the even one; a hair beside it to the nearer. */
static void test_f16_rounding(void) {
  for (uint16_t h = 0; h < 0x7C00; h++) {
    const double low = (double)rung_f16_to_f32(h),
                 high = h == 0x7BFF ? 65536 : (double)rung_f16_to_f32((uint16_t)(h + 1));
    const double half = (low + high) / 2;
    const uint16_t even = h & 1 ? (uint16_t)(h + 1) : h;
    CHECK_EQ_I64(rung_f16_from_f64(half), even);
    CHECK_EQ_I64(rung_f16_from_f32((float)half), even);
    CHECK_EQ_I64(rung_f16_from_f64(nextafter(half, 0)), h);
    CHECK_EQ_I64(rung_f16_from_f64(nextafter(half, HUGE_VAL)), h + 1);
    CHECK_EQ_I64(rung_f16_from_f64(-nextafter(half, HUGE_VAL)), (h + 1) | 0x8000);
    CHECK_EQ_I64(rung_f16_from_f32(nextafterf((float)half, 0)), h);
  }
  CHECK_EQ_I64(rung_f16_from_f64(1e300), 0x7C00);
  CHECK_EQ_I64(rung_f16_from_f64(-HUGE_VAL), 0xFC00);
  CHECK_EQ_I64(rung_f16_from_f64(1e-300), 0);
  CHECK_EQ_I64(rung_f16_from_f32(-1e-45f), 0x8000);
  /* Through float this would be rounded twice, to the wrong side. */
  CHECK_EQ_I64(rung_f16_from_f64(1 + 0x1p-11 + 0x1p-40), 0x3C01);
}

static void test_bf16(void) {
  uint64_t seed = 7;
  for (uint32_t h = 0; h < 65536; h++) {
    const float f = rung_bf16_to_f32((uint16_t)h);
    CHECK_EQ_I64(bits32(f), (int64_t)h << 16);
    if (isnan(f)) {
      CHECK(isnan(rung_bf16_to_f32(rung_bf16_from_f32(f))) && isnan(rung_bf16_to_f32(rung_bf16_from_f64((double)f))));
      continue;
    }
    CHECK_EQ_I64(rung_bf16_from_f32(f), h);
    CHECK_EQ_I64(rung_bf16_from_f64((double)f), h);
  }
  for (int i = 0; i < 200000; i++) {
    const uint32_t bits = (uint32_t)test_random(&seed);
    float f;
    memcpy(&f, &bits, sizeof f);
    if (!isnan(f)) CHECK_EQ_I64(rung_bf16_from_f32(f), rung_bf16_from_f64((double)f));
  }
  CHECK_EQ_I64(rung_bf16_from_f64(1e300), 0x7F80);
  CHECK_EQ_I64(rung_bf16_from_f64(1 + 0x1p-8 + 0x1p-50), 0x3F81);
  CHECK_EQ_I64(rung_bf16_from_f64(ldexp(1, -133)), 1);
}

typedef float read_fn(uint8_t h);
typedef uint8_t write_fn(float f);

/* The nearest of all patterns, ties to the even one, saturating. */
static uint8_t nearest(read_fn *read, int patterns, float f) {
  int best = -1;
  double least = HUGE_VAL;
  for (int h = 0; h < patterns; h++) {
    const double value = (double)read((uint8_t)h);
    if (isnan(value) || isinf(value)) continue;
    const double distance = fabs(fabs((double)f) - value);
    if (distance < least || (distance == least && !(h & 1))) {
      best = h;
      least = distance;
    }
  }
  return (uint8_t)(best | (signbit(f) ? patterns : 0));
}

static void check_small(read_fn *read, write_fn *write, int patterns, float top) {
  uint64_t seed = 99;
  for (int i = 0; i < 20000; i++) {
    const float fraction = test_uniform(&seed, -1, 1);
    const float f = ldexpf(fraction, (int)test_below(&seed, 40) - 25);
    if (fabsf(f) <= top) CHECK_EQ_I64(write(f), nearest(read, patterns, f));
  }
  for (int h = 0; h < patterns; h++) {
    const float f = read((uint8_t)h);
    if (isnan(f) || isinf(f)) continue;
    CHECK_EQ_I64(write(f), h);
    CHECK_EQ_I64(write(-f), h | patterns);
    if (h && !isnan(read((uint8_t)(h - 1)))) {
      const float half = (f + read((uint8_t)(h - 1))) / 2;
      CHECK_EQ_I64(write(half), h & 1 ? h - 1 : h);
    }
  }
}

static void test_eight_and_four(void) {
  check_small(rung_f8e4m3_to_f32, rung_f8e4m3_from_f32, 128, 448);
  check_small(rung_f8e5m2_to_f32, rung_f8e5m2_from_f32, 128, 57344);
  check_small(rung_f4e2m1_to_f32, rung_f4e2m1_from_f32, 8, 6);
  CHECK(rung_f8e4m3_to_f32(0x7E) == 448.0f && isnan(rung_f8e4m3_to_f32(0xFF)));
  CHECK(rung_f8e5m2_to_f32(0x7B) == 57344.0f && isinf(rung_f8e5m2_to_f32(0x7C)));
  CHECK_EQ_I64(rung_f8e4m3_from_f32(1e9f), 0x7E);
  CHECK_EQ_I64(rung_f8e4m3_from_f32(-INFINITY), 0xFE);
  CHECK_EQ_I64(rung_f8e5m2_from_f32(INFINITY), 0x7B);
  CHECK(isnan(rung_f8e4m3_to_f32(rung_f8e4m3_from_f32(NAN))) && isnan(rung_f8e5m2_to_f32(rung_f8e5m2_from_f32(NAN))));
  CHECK(rung_f8e4m3fnuz_to_f32(0x7F) == 240.0f && isnan(rung_f8e4m3fnuz_to_f32(0x80)));
  CHECK(rung_f8e5m2fnuz_to_f32(0x7F) == 57344.0f && isnan(rung_f8e5m2fnuz_to_f32(0x80)));
  CHECK_EQ_I64(rung_f8e4m3fnuz_from_f32(-0.0f), 0);
  CHECK_EQ_I64(rung_f8e5m2fnuz_from_f32(-INFINITY), 0xFF);
  for (int h = 0; h < 256; h++) {
    if (h == 0x80) continue;
    CHECK_EQ_I64(rung_f8e4m3fnuz_from_f32(rung_f8e4m3fnuz_to_f32((uint8_t)h)), h);
    CHECK_EQ_I64(rung_f8e5m2fnuz_from_f32(rung_f8e5m2fnuz_to_f32((uint8_t)h)), h);
    CHECK_EQ_I64(rung_e8m0_from_f32(rung_e8m0_to_f32((uint8_t)h)), h);
  }
  CHECK_EQ_I64(rung_e8m0_from_f32(1.0001f), 128);
  CHECK_EQ_I64(rung_f4e2m1_from_f32(100), 7);
  CHECK(rung_e8m0_to_f32(127) == 1.0f && rung_e8m0_to_f32(254) == 0x1p127f && rung_e8m0_to_f32(0) == 0x1p-127f);
  CHECK(isnan(rung_e8m0_to_f32(255)));
}

int main(void) {
  RUN(test_f16_all);
  RUN(test_f16_rounding);
  RUN(test_bf16);
  RUN(test_eight_and_four);
  return TEST_END();
}
