/* SPDX-License-Identifier: MIT
 * What choosing a token by probability is computed with, in the op `sample` and in the host's sampler alike: double
 * precision and an exponential of its own, so that equal logits give the same tokens everywhere. */
#ifndef RUNG_OPS_SAMPLING_H
#define RUNG_OPS_SAMPLING_H

#include <math.h>
#include <stdint.h>

/* The columns of the op's parameters, f64. What each does is in rung/model.h (rung_sample_options); top_k below 1, top_p
 * from 1 and min_p up to 0 keep all tokens, a temperature up to 0 takes the best one. NaN counts as 0, as top_p as 1. */
typedef enum rung_sample_column {
  RUNG_SAMPLE_TEMPERATURE,
  RUNG_SAMPLE_TOP_K,
  RUNG_SAMPLE_TOP_P,
  RUNG_SAMPLE_MIN_P,
  RUNG_SAMPLE_UNIFORM,
  RUNG_SAMPLE_COLUMNS
} rung_sample_column;

/* exp(x) for x <= 0, the same bits everywhere; relative error below 1e-15; 0 from -708 down. */
double rung_sample_exp(double x);

/* The largest logit, ties to the lowest id; -1 if there is none above minus infinity. */
int32_t rung_sample_greedy(const float *logits, int64_t count);

/* exp(logit - largest), 1 for the largest even if it is infinite. */
static inline double rung_sample_weight(float logit, float largest) {
  return logit == largest ? 1.0 : rung_sample_exp((double)logit - (double)largest);
}
static inline double rung_sample_weight_at(float logit, float largest, double temperature) {
  return logit == largest ? 1.0 : rung_sample_exp(((double)logit - (double)largest) / temperature);
}

#endif
