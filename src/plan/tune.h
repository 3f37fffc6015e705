/* SPDX-License-Identifier: MIT
 * Between a tuner and a backend whose kernels can be done in several ways: which kernels of a plan those are, trying one
 * of the ways, and asking what won. A tuner knows no kernel, a backend no table.
 *
 * Winners are asked for while a plan is prepared, never in a run: a program keeps the ways that it was made with. */
#ifndef RUNG_PLAN_TUNE_H
#define RUNG_PLAN_TUNE_H

#include "plan/plan.h"
#include "target/candidate.h"

/* Texts that head a table, terminated: one line without tabs. */
enum { RUNG_TUNE_TEXT = 200 };

/* A kernel with candidates, as a plan has it. */
typedef struct rung_tunable {
  char signature[RUNG_TUNE_TEXT]; /* all that decides which candidate is best, but for the number of rows */
  rung_candidate_space space;
  int64_t least_rows, most_rows; /* of a run that it does */
  uint32_t step;                 /* the backend's */
} rung_tunable;

/* One kernel at one size, on operands of its own. */
typedef struct rung_bench {
  void *self;
  /* Makes a candidate the one that is tried: compiles it. RUNG_UNSUPPORTED: this device cannot, which is no failure. */
  rung_status (*choose)(void *self, const rung_candidate *candidate, rung_error *error);
  /* Does it once; how long the device took. */
  rung_status (*run)(void *self, rung_error *error, uint64_t *out_ns);
  /* What the last run made, `count` numbers, valid until the next call. */
  rung_status (*output)(void *self, rung_error *error, const float **out, size_t *count);
  /* The same numbers from the op's reference. */
  rung_status (*reference)(void *self, rung_error *error, const float **out, size_t *count);
  void (*close)(void *self);
} rung_bench;

/* What preparing asks. *out_found false: there is no winner. Fails without memory only. */
typedef struct rung_winner_source {
  void *self;
  rung_status (*find)(void *self, const char *signature, int64_t rows, rung_error *error, bool *out_found,
                      rung_candidate *out);
} rung_winner_source;

/* A backend's part (rung_backend.tuning). */
typedef struct rung_tuning {
  /* The device's name in tables: results of one are of no use on another. */
  void (*device)(void *self, char out[RUNG_TUNE_TEXT]);
  /* Whom to ask from now on; before the first plan is prepared. `source` stays where it is. */
  void (*ask)(void *self, const rung_winner_source *source);
  /* Prepares a plan as for a program; `out_session` is what the calls below take. */
  rung_status (*begin)(void *self, const rung_plan *plan, rung_error *error, void **out_session);
  void (*end)(void *session);
  /* The index-th kernel that has candidates; false: there are no more. Kernels that do the same come once. */
  bool (*at)(void *session, uint32_t index, rung_tunable *out);
  /* What is done without a winner. */
  rung_candidate (*standard)(const rung_tunable *tunable, int64_t rows, int64_t keys);
  /* Memory and operands to try it with `rows` rows of one sequence over `keys` keys, its own rows among them. */
  rung_status (*open)(void *session, const rung_tunable *tunable, int64_t rows, int64_t keys, rung_error *error,
                      rung_bench *out);
} rung_tuning;

#endif
