/* SPDX-License-Identifier: MIT
 * Choosing the next token from one row of logits.
 *
 * From equal logits a seed gives the same tokens on every instruction set and with any number of threads: the
 * arithmetic is double precision, additions in a fixed order, with an exponential of its own (the C library's differ by
 * processor).
 *
 * The chain, in llama.cpp's default order: top-k, top-p, min-p, temperature, draw. Each of the first three keeps the
 * best tokens (larger logit first, ties to the lower id) of what the one before it left, and keeps at least one. The
 * draw: with w[i] = exp((logit[i] - largest) / temperature) over the tokens left, in rising order of their ids, and u
 * one uniform in [0, 1), the first id whose running sum exceeds u * total. The n-th drawn token of a sampler uses block
 * n (from 0) of Philox 4x32-10 with the seed as key, see rung_philox_double. NaN counts as minus infinity.
 */
#ifndef RUNG_MODELS_SAMPLE_H
#define RUNG_MODELS_SAMPLE_H

#include "base/status.h"

typedef struct rung_sampler_options {
  size_t size;        /* sizeof(rung_sampler_options) */
  double temperature; /* 0: the largest logit (ties: the lowest id), no random number is used; default 0.8 */
  int64_t top_k;      /* at most this many tokens; 0: all; default 40 */
  double top_p;       /* the fewest best tokens whose probabilities reach this sum; 1: all; default 0.95 */
  double min_p;       /* tokens at least this probable relative to the best one; 0: all; default 0.05 */
  uint64_t seed;      /* default 0 */
} rung_sampler_options;
rung_sampler_options rung_sampler_options_default(void);

/* In place, no memory of its own; copying the struct copies the state. */
typedef struct rung_sampler {
  rung_sampler_options options;
  uint64_t drawn; /* tokens drawn so far: the random counter */
} rung_sampler;

/* Refuses (INVALID_ARGUMENT, naming the option): NaN or negative temperature, negative top_k, top_p outside (0, 1],
 * min_p outside [0, 1]. options NULL: defaults. */
RUNG_CHECKED rung_status rung_sampler_init(rung_sampler *sampler, const rung_sampler_options *options,
                                           rung_error *error);

/* Bytes of scratch (aligned to 16) that choosing from `count` logits needs; 0 if none. Monotonic in count. */
size_t rung_sampler_scratch(const rung_sampler *sampler, int64_t count);

/* Chooses from logits[0 .. count). INVALID_ARGUMENT if no logit is above minus infinity, or count is 0. Allocates
 * nothing. The counter moves only when a token is drawn. */
RUNG_CHECKED rung_status rung_sampler_pick(rung_sampler *sampler, const float *logits, int64_t count, void *scratch,
                                           rung_error *error, int32_t *out_id);

/* The largest logit, ties to the lowest id; -1 if there is none above minus infinity. */
int32_t rung_sample_greedy(const float *logits, int64_t count);

/* exp(x) for x <= 0, the same bits everywhere; relative error below 1e-15; 0 from -708 down. */
double rung_sample_exp(double x);

#endif
