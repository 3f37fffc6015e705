/* SPDX-License-Identifier: MIT
 * Measuring the candidates of one kernel at one size, and choosing. */
#ifndef RUNG_RUNTIME_TUNE_MEASURE_H
#define RUNG_RUNTIME_TUNE_MEASURE_H

#include "plan/tune.h"

typedef struct rung_measuring {
  int warmups, repeats;
  double bound; /* largest distance from the reference */
} rung_measuring;

typedef struct rung_measured {
  bool found; /* some candidate is within the bound */
  rung_candidate winner;
  uint64_t winner_ns, standard_ns; /* medians; standard 0: it is not within the bound, or the device cannot do it */
  uint32_t candidates, refused;    /* tried, and of these not to be used */
} rung_measured;

/* `standard` is what is done without a winner; it is measured first, whether the space has it or not. The fastest of
 * those within the bound wins, unless measured again, the two in turn, the standard is faster. Fails as the bench does,
 * but for candidates that it calls RUNG_UNSUPPORTED, and without memory. */
rung_status rung_measure(rung_host *host, const rung_bench *bench, const rung_candidate_space *space,
                         const rung_candidate *standard, const rung_measuring *how, rung_error *error,
                         rung_measured *out);

/* Root of the mean square of a - b over that of b; of a - b alone where b is all zeros; infinite where one of them has
 * a number that the other lacks (NaN, infinity). */
double rung_tune_distance(const float *a, const float *b, size_t count);
/* Sorts the times. Of an even number the mean of the two in the middle. */
uint64_t rung_tune_median(uint64_t *ns, size_t count);

#endif
