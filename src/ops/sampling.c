/* SPDX-License-Identifier: MIT
 * An exponential with the same bits everywhere, and the largest logit. */
#include "ops/sampling.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

/* 2^k with k from rounding x / ln 2, times a Taylor polynomial of the rest, |r| <= ln 2 / 2: the first term left out is
 * below 2^-58. ln 2 is split so that k * LN2_HIGH is exact. Results that would be denormal are 0, so that it does not
 * matter whether the calling thread flushes them. */
double rung_sample_exp(double x) {
  static const double INVERSE_LN2 = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
  static const double coefficient[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                       1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                       1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        1.0 / 2.0};
  if (!(x > -708.0)) return 0.0;                      /* NaN too */
  const int64_t k = (int64_t)(x * INVERSE_LN2 - 0.5); /* towards zero, which is up for x <= 0: rounds to nearest */
  const double r = (x - (double)k * LN2_HIGH) - (double)k * LN2_LOW;
  double p = coefficient[0];
  for (size_t i = 1; i < RUNG_COUNT(coefficient); i++) p = p * r + coefficient[i];
  p = (p * r + 1.0) * r + 1.0;
  const uint64_t bits = (uint64_t)(1023 + k) << 52;
  double scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

enum { BLOCK = 256, LANES = 16 };

/* The largest of a few logits. Independent lanes become vector instructions; NaN never wins a comparison. */
static float largest_of(const float *logits, int64_t count) {
  float lane[LANES];
  for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
  for (; i < count; i++) lane[0] = logits[i] > lane[0] ? logits[i] : lane[0];
  for (int j = 1; j < LANES; j++) lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
  return lane[0];
}

int32_t rung_sample_greedy(const float *logits, int64_t count) {
  float largest = -INFINITY;
  int64_t block = 0;
  for (int64_t i = 0; i < count; i += BLOCK) {
    const float here = largest_of(logits + i, count - i < BLOCK ? count - i : BLOCK);
    if (!(here > largest)) continue;
    largest = here;
    block = i;
  }
  if (!(largest > -INFINITY)) return -1;
  while (logits[block] != largest) block++;
  return (int32_t)block;
}
