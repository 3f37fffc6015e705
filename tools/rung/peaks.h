/* SPDX-License-Identifier: MIT
 * Loops that do nothing but multiply and add: what kernels are measured against. Each call is PEAK_LOOPS times CHAINS
 * vector instructions; tasks of a pool, or called with nothing. */
#ifndef RUNG_TOOLS_PEAKS_H
#define RUNG_TOOLS_PEAKS_H

#include <stdint.h>

#include "backends/cpu/isa.h"
#include "base/clock.h"
#include "base/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static volatile float sink;

/* Chains enough for five cycles of latency on two pipes; with an operand and a product they fit 16 registers. */
enum { PEAK_LOOPS = 8000, CHAINS = 10 };

/* CHAINS independent sums; what the empty statement hides keeps the compiler from merging them. */
#define CHAIN_LOOP(vector, constraint, step)                    \
  for (int i = 0; i < PEAK_LOOPS; i++) {                        \
    _Pragma("GCC unroll 16") for (int j = 0; j < CHAINS; j++) { \
      vector b = a;                                             \
      __asm__ volatile("" : "+" constraint(b));                 \
      step;                                                     \
    }                                                           \
  }

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vnni"))) static void fma_avx512(void *self, int64_t task, int thread) {
  (void)self, (void)task, (void)thread;
  __m512 c[CHAINS], a = _mm512_set1_ps(1e-9f);
  for (int j = 0; j < CHAINS; j++) c[j] = _mm512_set1_ps((float)j);
  CHAIN_LOOP(__m512, "v", c[j] = _mm512_fmadd_ps(b, a, c[j]))
  for (int j = 0; j < CHAINS; j++) sink = _mm512_cvtss_f32(c[j]);
}
__attribute__((target("avx512f,avx512vnni"))) static void dot_avx512(void *self, int64_t task, int thread) {
  (void)self, (void)task, (void)thread;
  __m512i c[CHAINS], a = _mm512_set1_epi32(0x01010101);
  for (int j = 0; j < CHAINS; j++) c[j] = _mm512_set1_epi32(j);
  CHAIN_LOOP(__m512i, "v", c[j] = _mm512_dpbusd_epi32(c[j], b, a))
  for (int j = 0; j < CHAINS; j++) sink = _mm512_cvtss_f32(_mm512_castsi512_ps(c[j]));
}
__attribute__((target("avx2,fma"))) static void fma_avx2(void *self, int64_t task, int thread) {
  (void)self, (void)task, (void)thread;
  __m256 c[CHAINS], a = _mm256_set1_ps(1e-9f);
  for (int j = 0; j < CHAINS; j++) c[j] = _mm256_set1_ps((float)j);
  CHAIN_LOOP(__m256, "x", c[j] = _mm256_fmadd_ps(b, a, c[j]))
  for (int j = 0; j < CHAINS; j++) sink = _mm256_cvtss_f32(c[j]);
}
/* A multiplication of bytes into pairs and an addition: what a step of a dot product takes. */
__attribute__((target("avx2,fma"))) static void dot_avx2(void *self, int64_t task, int thread) {
  (void)self, (void)task, (void)thread;
  __m256i c[CHAINS], a = _mm256_set1_epi32(0x01010101);
  for (int j = 0; j < CHAINS; j++) c[j] = _mm256_set1_epi32(j);
  for (int i = 0; i < PEAK_LOOPS; i++) {
    _Pragma("GCC unroll 16") for (int j = 0; j < CHAINS; j++) {
      __m256i product;
      __asm__ volatile("vpmaddubsw %1, %1, %0" : "=x"(product) : "x"(a));
      c[j] = _mm256_add_epi16(c[j], product);
    }
  }
  for (int j = 0; j < CHAINS; j++) sink = _mm256_cvtss_f32(_mm256_castsi256_ps(c[j]));
}
#endif
#if defined(__aarch64__)
#define VECTOR_REGISTER "w"
#elif defined(__x86_64__)
#define VECTOR_REGISTER "x"
#else
#define VECTOR_REGISTER "m"
#endif
static void fma_plain(void *self, int64_t task, int thread) {
  (void)self, (void)task, (void)thread;
  typedef float four __attribute__((vector_size(16)));
  four c[CHAINS], a = {1e-9f, 1e-9f, 1e-9f, 1e-9f};
  for (int j = 0; j < CHAINS; j++) c[j] = (four){(float)j, 0, 0, 0};
  CHAIN_LOOP(four, VECTOR_REGISTER, c[j] = c[j] + b * a)
  for (int j = 0; j < CHAINS; j++) sink = c[j][0];
}

/* The instruction set's loops, and how many floats a vector has. out_dot: NULL where products of bytes are no faster. */
static rung_task_fn *peak_fma(uint32_t isa, double *out_lanes, rung_task_fn **out_dot) {
  *out_lanes = 4;
  *out_dot = NULL;
#if defined(__x86_64__)
  if (isa & RUNG_ISA_AVX512) return *out_lanes = 16, *out_dot = dot_avx512, fma_avx512;
  if (isa & RUNG_ISA_AVX2) return *out_lanes = 8, *out_dot = dot_avx2, fma_avx2;
#endif
  (void)isa;
  return fma_plain;
}

/* Operations per second with `threads` of the pool, a product and a sum being two: the best of `passes`. Where products
 * of bytes are no faster, `dot` is what multiply-adds do. */
typedef struct peak_rates {
  double multiply_add, dot;
} peak_rates;
RUNG_INLINE double peak_of(rung_pool *pool, int threads, int passes, rung_task_fn *loop) {
  double best = 0;
  for (int i = 0; i < passes; i++) {
    const uint64_t start = rung_clock_ns();
    rung_pool_run(pool, threads, threads, loop, NULL);
    const double rate = 1e9 * threads / (double)(rung_clock_ns() - start);
    if (rate > best) best = rate;
  }
  return best * PEAK_LOOPS * CHAINS;
}
RUNG_INLINE peak_rates peak_measure(rung_pool *pool, int threads, int passes, uint32_t isa) {
  double lanes;
  rung_task_fn *dot, *fma = peak_fma(isa, &lanes, &dot);
  peak_rates r = {.multiply_add = 2 * lanes * peak_of(pool, threads, passes, fma)};
  r.dot = dot ? 8 * lanes * peak_of(pool, threads, passes, dot) : r.multiply_add;
  return r;
}

#endif
