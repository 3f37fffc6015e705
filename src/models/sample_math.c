/* SPDX-License-Identifier: MIT
 * Numbers under the sampler: an exponential with the same bits everywhere, the largest logit, log-probabilities. */
#include <math.h>
#include <string.h>

#include "models/sample.h"

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

double rung_sample_log_sum(const float *logits, int64_t count) {
  const int32_t best = rung_sample_greedy(logits, count);
  if (best < 0) return -(double)INFINITY;
  const double largest = (double)logits[best];
  if (isinf(largest)) return largest;
  double sum = 0;
  for (int64_t i = 0; i < count; i++)
    if (logits[i] > -INFINITY) sum += rung_sample_exp((double)logits[i] - largest);
  return largest + log(sum);
}

static double minus_log_sum(float logit, double log_sum) {
  if (!(logit > -INFINITY)) return -(double)INFINITY; /* NaN too */
  if (isinf(log_sum)) return isinf(logit) ? 0.0 : -(double)INFINITY;
  return (double)logit - log_sum;
}

double rung_sample_log_probability(const float *logits, int64_t count, int32_t id) {
  return minus_log_sum(logits[id], rung_sample_log_sum(logits, count));
}

/* Is entry a of a heap worse than b? */
static bool worse(const float *logits, int32_t a, int32_t b) {
  return logits[a] < logits[b] || (logits[a] == logits[b] && a > b);
}
static void sift(const float *logits, rung_log_probability *heap, int64_t at, int64_t count) {
  const rung_log_probability value = heap[at];
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && worse(logits, heap[child + 1].id, heap[child].id)) child++;
    if (!worse(logits, heap[child].id, value.id)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = value;
}

int64_t rung_sample_best(const float *logits, int64_t count, int64_t n, rung_log_probability *out) {
  int64_t filled = 0;
  const double log_sum = rung_sample_log_sum(logits, count);
  for (int64_t i = 0; i < count && n > 0; i++) {
    if (!(logits[i] > -INFINITY)) continue;
    const rung_log_probability here = {(int32_t)i, 0};
    if (filled < n) { /* the worst comes to the top once there are n */
      out[filled++] = here;
      for (int64_t at = n / 2; filled == n && at-- > 0;) sift(logits, out, at, n);
    } else if (worse(logits, out[0].id, here.id)) {
      out[0] = here;
      sift(logits, out, 0, n);
    }
  }
  for (int64_t at = filled / 2; filled < n && at-- > 0;) sift(logits, out, at, filled);
  for (int64_t last = filled; last-- > 1;) {
    const rung_log_probability worst = out[0];
    out[0] = out[last];
    out[last] = worst;
    sift(logits, out, 0, last);
  }
  for (int64_t i = 0; i < filled; i++) out[i].value = minus_log_sum(logits[out[i].id], log_sum);
  return filled;
}
