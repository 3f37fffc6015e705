/* SPDX-License-Identifier: MIT
 * What steps of the sampler chain see. A step is one constant in sample_row.c or sample_set.c and a line in sample.c. */
#ifndef RUNG_MODELS_SAMPLE_STEPS_H
#define RUNG_MODELS_SAMPLE_STEPS_H

#include "models/sample.h"

/* A token that is still in the race. `weight` is its unscaled probability, exp(logit - largest), where a step needs it. */
typedef struct rung_candidate {
  float logit;
  int32_t id;
  double weight;
} rung_candidate;

/* One choice. As long as `gathered` is false, the tokens left are those of the row whose logits are at least `floor`. */
typedef struct rung_race {
  const rung_sampler *sampler;
  const rung_sample_input *input;
  const float *row;
  float *copy; /* the row where steps change it, else NULL */
  int64_t *work;
  double floor;
  bool gathered;
  rung_candidate *left;
  int64_t count;
  float largest;      /* of the tokens left */
  double xtc_uniform; /* in [0, 1) */
  int32_t chosen;     /* by the caller's own function; -1: none */
} rung_race;

/* A field of rung_sample_options and what may be in it. */
typedef struct rung_sample_option {
  const char *name;
  size_t offset;
  bool integer; /* int64_t, else double */
  double low, high;
  bool above;           /* low itself is refused */
  const char *expected; /* for the message: "a finite number from 0 is" */
} rung_sample_option;

enum { RUNG_STEP_OPTIONS = 4 };
typedef struct rung_sample_step {
  const char *name;
  rung_sample_option option[RUNG_STEP_OPTIONS]; /* those with a name */
  bool (*active)(const rung_sample_options *options);
  /* Narrows the race, or changes race->copy. A status only for what a caller can cause. NULL: the draw does it. */
  rung_status (*apply)(rung_race *race, rung_error *error);
  bool changes_row;      /* needs the copy */
  bool reads_text;       /* needs work for each id of the text */
  bool keeps_best;       /* never removes the best token: nothing to do at temperature 0 */
  bool before_gathering; /* works on the row */
} rung_sample_step;

/* sample_row.c */
extern const rung_sample_step rung_step_bias, rung_step_own, rung_step_penalties, rung_step_dry, rung_step_sigma;
/* sample_set.c */
extern const rung_sample_step rung_step_top_k, rung_step_typical, rung_step_top_p, rung_step_min_p, rung_step_xtc;

/* sample.c: the chain without the draw, and the draw's random number. */
RUNG_CHECKED rung_status rung_sampler_race(const rung_sampler *sampler, const rung_sample_input *input, void *scratch,
                                           rung_error *error, rung_race *out_race, double *out_uniform);

/* sample_set.c */
void rung_race_gather(rung_race *race); /* all that are left, unless it was done */
int32_t rung_race_best(rung_race *race);
int32_t rung_race_draw(rung_race *race, double temperature, double uniform);

#endif
