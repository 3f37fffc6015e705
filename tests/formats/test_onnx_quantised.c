/* SPDX-License-Identifier: MIT
 * Integer products of ONNX at the ends of their ranges: u8 activations of 255 with s8 weights of +-127 and -128 are the
 * same integers on every device and instruction set, however long the sum; nothing saturates in 16 bits on the way. */
#define _GNU_SOURCE
#include "formats/make_onnx.h"

enum { K = 64, N = 40, M = 5 };

typedef struct ends {
  uint8_t a[M * K];
  int8_t b[K * N];
} ends;
/* Row 0 of a all 255, others mixed; columns of b all of one end, or ends in turn. */
static void fill(ends *e) {
  uint64_t random = 5;
  for (int i = 0; i < M * K; i++) e->a[i] = i < 2 * K ? 255 : (uint8_t)test_below(&random, 256);
  for (int k = 0; k < K; k++)
    for (int n = 0; n < N; n++)
      e->b[k * N + n] = (int8_t)(n % 5 == 0   ? 127
                                 : n % 5 == 1 ? -127
                                 : n % 5 == 2 ? -128
                                 : n % 5 == 3 ? (k & 1 ? 127 : -127)
                                              : test_below(&random, 256) - 128);
}
static double dot(const ends *e, int row, int column, int a_zero, int b_zero) {
  int64_t sum = 0;
  for (int k = 0; k < K; k++) sum += (int64_t)(e->a[row * K + k] - a_zero) * (e->b[k * N + column] - b_zero);
  return (double)sum;
}

static void test_matmul_integer(void) {
  static ends e;
  static double want[M * N];
  fill(&e);
  for (int zeros = 0; zeros < 3; zeros++)
    for (int known = 0; known < 2; known++) {
      static const uint8_t a_zeros[] = {0, 128, 255};
      static const int8_t b_zeros[] = {0, -128, 127};
      maker m;
      for (int i = 0; i < M * N; i++) want[i] = dot(&e, i / N, i % N, a_zeros[zeros], b_zeros[zeros]);
      make_begin(&m, 13);
      make_given(&m, "a", RUNG_TYPE_U8, "5,64", e.a);
      if (known)
        make_tensor(&m, "b", RUNG_TYPE_I8, "64,40", e.b);
      else
        make_given(&m, "b", RUNG_TYPE_I8, "64,40", e.b);
      make_tensor(&m, "az", RUNG_TYPE_U8, "", &a_zeros[zeros]),
          make_tensor(&m, "bz", RUNG_TYPE_I8, "", &b_zeros[zeros]);
      make_node(&m, "MatMulInteger", "a b az bz", "y");
      make_output(&m, "y");
      make_expect(&m, 0, "5,40", want, __FILE__, __LINE__);
      make_end(&m);
    }
}
/* The same sums through a convolution of 64 channels at 5 places. */
static void test_conv_integer(void) {
  static ends e;
  static uint8_t x[K * M];
  static int8_t w[N * K];
  static double want[N * M];
  fill(&e);
  for (int k = 0; k < K; k++)
    for (int i = 0; i < M; i++) x[k * M + i] = e.a[i * K + k];
  for (int n = 0; n < N; n++)
    for (int k = 0; k < K; k++) w[n * K + k] = e.b[k * N + n];
  for (int n = 0; n < N; n++)
    for (int i = 0; i < M; i++) want[n * M + i] = dot(&e, i, n, 3, 0);
  maker m;
  const uint8_t zero = 3;
  make_begin(&m, 13);
  make_given(&m, "x", RUNG_TYPE_U8, "1,64,1,5", x);
  make_tensor(&m, "w", RUNG_TYPE_I8, "40,64,1,1", w);
  make_tensor(&m, "z", RUNG_TYPE_U8, "", &zero);
  make_node(&m, "ConvInteger", "x w z", "y");
  make_output(&m, "y");
  make_expect(&m, 0, "1,40,1,5", want, __FILE__, __LINE__);
  make_end(&m);
}
/* Scales that are powers of two: what is rounded is known exactly, ties to even. */
static void test_qlinear_matmul(void) {
  static ends e;
  static double want[M * N];
  static const float a_scale = 0.5f, b_scale = 0.25f, y_scale = 512;
  static const uint8_t a_zero = 2, y_zero = 100;
  static const int8_t b_zero = 0;
  fill(&e);
  for (int i = 0; i < M * N; i++) {
    const double y = nearbyint(dot(&e, i / N, i % N, a_zero, b_zero) * 0.125 / 512) + y_zero;
    want[i] = y < 0 ? 0 : y > 255 ? 255 : y;
  }
  maker m;
  make_begin(&m, 13);
  make_given(&m, "a", RUNG_TYPE_U8, "5,64", e.a);
  make_tensor(&m, "b", RUNG_TYPE_I8, "64,40", e.b);
  make_f32(&m, "as", a_scale), make_f32(&m, "bs", b_scale), make_f32(&m, "ys", y_scale);
  make_tensor(&m, "az", RUNG_TYPE_U8, "", &a_zero), make_tensor(&m, "yz", RUNG_TYPE_U8, "", &y_zero);
  make_tensor(&m, "bz", RUNG_TYPE_I8, "", &b_zero);
  make_node(&m, "QLinearMatMul", "a as az b bs bz ys yz", "y");
  make_output(&m, "y");
  make_expect(&m, 0, "5,40", want, __FILE__, __LINE__);
  make_end(&m);
}
/* 3000 over 32 elements, and one channel of 1000 times the others, quantised by what is in it and back: finite, and
 * within half a step of (max - min) / 255. */
static void test_dynamic_quantisation_stays_near(void) {
  enum { ROOM = 32 };
  for (int one_channel = 0; one_channel < 2; one_channel++) {
    float x[ROOM];
    uint64_t random = 9;
    for (int i = 0; i < ROOM; i++) {
      const float s = test_uniform(&random, -3, 3);
      x[i] = one_channel ? (i == 7 ? 3000 : s) : 3000;
    }
    maker m;
    make_begin(&m, 13);
    make_given(&m, "x", RUNG_TYPE_F32, "32", x);
    make_node(&m, "DynamicQuantizeLinear", "x", "q s z");
    make_node(&m, "DequantizeLinear", "q s z", "y");
    make_output(&m, "y"), make_output(&m, "q");
    for (int mode = 0; mode < MAKE_MODES; mode++) {
      CHECK_OK(make_run(&m, mode));
      float low = 0, high = 0;
      for (int i = 0; i < ROOM; i++) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
      for (int i = 0; i < ROOM && m.results; i++)
        CHECK(fabs(make_number(&m.result[0].tensor, i) - (double)x[i]) <= (double)(high - low) / 255 * 0.51);
    }
    make_end(&m);
  }
}

int main(void) {
  RUN(test_matmul_integer);
  RUN(test_conv_integer);
  RUN(test_qlinear_matmul);
  RUN(test_dynamic_quantisation_stays_near);
  return TEST_END();
}
