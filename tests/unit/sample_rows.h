/* SPDX-License-Identifier: MIT
 * Rows of logits of every kind and ways to choose from them. */
#ifndef RUNG_TESTS_SAMPLE_ROWS_H
#define RUNG_TESTS_SAMPLE_ROWS_H

#include <math.h>

#include "models/sample.h"
#include "test.h"

enum { SAMPLE_KINDS = 9 };

static inline void sample_fill(float *row, int64_t count, int kind, uint64_t *seed) {
  for (int64_t i = 0; i < count; i++) {
    row[i] = test_uniform(seed, -8, 8);
    if (kind == 1) row[i] = (float)(int)row[i]; /* ties, and zeros of both signs */
    if (kind == 2) row[i] *= 0.01f;
    if (kind == 3 && test_below(seed, 3) == 0) row[i] = test_below(seed, 2) ? NAN : -INFINITY;
    if (kind == 4 && test_below(seed, 40) == 0) row[i] = INFINITY;
    if (kind == 5) row[i] = NAN;
    if (kind == 6) row[i] = test_below(seed, 2) ? 0.0f : -0.0f;
    if (kind == 7) row[i] *= 1e37f;
    if (kind == 8) /* as models have them: few that matter */
      row[i] = row[i] + test_uniform(seed, -8, 8) + test_uniform(seed, -8, 8) + (test_below(seed, 50) ? 0.0f : 6.0f);
  }
}

static inline double sample_one_of(uint64_t *seed, const double *from, size_t n) {
  return from[test_below(seed, (int64_t)n)];
}
#define SAMPLE_ONE_OF(seed, ...) \
  sample_one_of(seed, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static inline rung_sample_options sample_some_options(uint64_t *seed) {
  rung_sample_options o = rung_sample_options_default();
  o.temperature = SAMPLE_ONE_OF(seed, 0, 0.3, 0.8, 1, 2, 1e-3);
  o.top_k = (int64_t)SAMPLE_ONE_OF(seed, 0, 1, 2, 7, 40, 40, 200, 1000, 3000);
  o.top_p = SAMPLE_ONE_OF(seed, 1, 0.95, 0.5, 1e-9, 0.999);
  o.min_p = SAMPLE_ONE_OF(seed, 0, 0.05, 0.5, 1);
  o.seed = test_random(seed);
  return o;
}

/* -1: none could be chosen. */
static inline int32_t sample_by_host(rung_sampler *sampler, const float *row, int64_t count, void *scratch,
                                     size_t bytes) {
  CHECK(rung_sampler_scratch(sampler, count, 0) <= bytes);
  const rung_sample_input input = {.logits = row, .count = count};
  rung_error error = {0};
  int32_t id = -1;
  return rung_sampler_pick(sampler, &input, scratch, &error, &id) ? -1 : id;
}

#endif
