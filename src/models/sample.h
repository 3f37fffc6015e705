/* SPDX-License-Identifier: MIT
 * Choosing the next token from one row of logits.
 *
 * From equal logits a seed gives the same tokens on every instruction set and with any number of threads: the
 * arithmetic is double precision, additions in a fixed order, with an exponential of its own (the C library's differ by
 * processor).
 *
 * The chain is a list of steps (sample.c) in llama.cpp's default order; rung/model.h says what each does. Steps that
 * change logits come first and work on a copy of the row; the others narrow a set of tokens. "Best" is the larger logit,
 * ties to the lower id, and every step leaves at least one token.
 *
 * The draw: with w[i] = exp((logit[i] - largest) / temperature) over the tokens left, in rising order of their ids, and u
 * one uniform in [0, 1), the first id whose running sum exceeds u * total. The n-th drawn token of a sampler uses block
 * n (from 0) of Philox 4x32-10 with the seed as key: words 0 and 1 for u (rung_philox_double), words 2 and 3 for XTC. NaN
 * counts as minus infinity.
 */
#ifndef RUNG_MODELS_SAMPLE_H
#define RUNG_MODELS_SAMPLE_H

#include <rung/model.h>

#include "base/host.h"
#include "ops/sampling.h"

/* Sequences of tokens that end a repetition for DRY: a token that begins one, and the tokens that must follow it. */
typedef struct rung_breaker {
  int32_t head, first, count; /* tail[first .. first + count) */
} rung_breaker;
typedef struct rung_breakers {
  rung_host *host;
  rung_breaker *breaker; /* by rising head */
  size_t count, capacity;
  int32_t *tail;
  size_t tail_count, tail_capacity;
} rung_breakers;
void rung_breakers_finish(rung_breakers *breakers);
/* Adds one, of at least one id. */
rung_status rung_breakers_add(rung_breakers *breakers, const int32_t *ids, size_t count, rung_error *error);
void rung_breakers_order(rung_breakers *breakers); /* after the last one */

/* init, finish; a zeroed one may be finished. One thread at a time. */
typedef struct rung_sampler {
  rung_sample_options options; /* bias is a copy of its own; dry_breakers is not kept */
  rung_host *host;
  rung_breakers breakers; /* the sampler's own; empty after init */
  uint64_t drawn;         /* tokens drawn so far: the random counter */
} rung_sampler;

/* Refuses what the table of steps does not allow (INVALID_ARGUMENT, naming the option). options NULL: defaults. */
RUNG_CHECKED rung_status rung_sampler_init(rung_sampler *sampler, rung_host *host, const rung_sample_options *options,
                                           rung_error *error);
void rung_sampler_finish(rung_sampler *sampler);

/* Bytes of scratch (aligned to 16) that choosing from `count` logits behind at most `history` ids needs; 0 if none. */
size_t rung_sampler_scratch(const rung_sampler *sampler, int64_t count, int64_t history);

typedef struct rung_sample_input {
  const float *logits;
  int64_t count;
  const int32_t *ids; /* the text so far, oldest first; -1 where it is not known */
  int64_t id_count;
  int32_t slot; /* told to the caller's own function */
} rung_sample_input;
/* Chooses. INVALID_ARGUMENT if no logit is above minus infinity, or count is 0; whatever the caller's own function
 * returns. Allocates nothing. The counter moves only when a random number was used, and not on failure. */
RUNG_CHECKED rung_status rung_sampler_pick(rung_sampler *sampler, const rung_sample_input *input, void *scratch,
                                           rung_error *error, int32_t *out_id);

/* Does the chain look at nothing but a row, and do no more than the op `sample` does? Then that op chooses the same token
 * (ops/sampling.h; sums in another order may move a token that stands at the very edge of top-p). */
bool rung_sampler_is_plain(const rung_sampler *sampler);
/* Such a chain's row of parameters for the next token; and what the op chose, of `count` logits: -1 is refused as
 * rung_sampler_pick does. */
void rung_sampler_parameters(const rung_sampler *sampler, double out[RUNG_SAMPLE_COLUMNS]);
RUNG_CHECKED rung_status rung_sampler_take(rung_sampler *sampler, int32_t id, int64_t count, rung_error *error);

/* ln of the sum of exp(logit): what is taken from a logit to get its log-probability. Minus infinity if no logit is
 * above that. */
double rung_sample_log_sum(const float *logits, int64_t count);
/* One logit's log-probability; of an infinite one 0, minus infinity beside such. */
double rung_sample_log_probability(const float *logits, int64_t count, int32_t id);
/* The best n of a row, best first; returns how many there are above minus infinity, at most n. */
int64_t rung_sample_best(const float *logits, int64_t count, int64_t n, rung_log_probability *out);

#endif
