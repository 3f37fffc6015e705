/* SPDX-License-Identifier: MIT
 * Log-probabilities. */
#include <math.h>

#include "models/sample.h"

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
