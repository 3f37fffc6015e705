/* SPDX-License-Identifier: MIT
 * The backend interface: what the runtime calls to run a plan's kernel steps. Control steps (if, loop, bind) are the
 * runtime's. */
#ifndef RUNG_PLAN_BACKEND_H
#define RUNG_PLAN_BACKEND_H

#include <stdatomic.h>

#include "base/pool.h"
#include "plan/tune.h"

/* A step as the trace and the profile see it. */
typedef struct rung_step_event {
  const rung_plan *plan;
  uint32_t step;
  const rung_kernel *kernel;
  const rung_operand *in, *out;
  uint64_t start_ns, end_ns;
  int tasks;
} rung_step_event;

/* One run of a context: everything resolved. Lives below backends so that they can read it. */
typedef struct rung_run {
  const rung_plan *plan;
  const int64_t *dim;          /* values of all dims */
  const rung_operand *operand; /* one per plan->ref, bases set */
  const int64_t *role;         /* one per plan->role */
  const uint8_t *variant;      /* chosen per step: index from the step's first variant */
  const uint8_t *left_out;     /* one per step: nobody needs its results, it may be skipped; NULL: all are needed */
  uint8_t *scratch;
  rung_pool *pool;
  int threads;
  uint64_t *random;
  const atomic_int *cancel;
  void (*on_step)(void *self, const rung_step_event *event); /* NULL when nobody listens */
  void *on_step_self;
  void **kept; /* the backend's own of the context, NULL at first (see forget) */
  rung_error *error;
} rung_run;

enum { RUNG_NOTE = 64 };
typedef struct rung_backend {
  const char *name;
  rung_status (*open)(rung_host *host, rung_error *error, void **out_self);
  void (*close)(void *self);
  const rung_target *(*target)(void *self);
  /* What steps need beyond the plan (compiled regions), made once per plan; NULL image allowed. */
  rung_status (*prepare)(void *self, rung_host *host, const rung_plan *plan, rung_error *error, void **out_image);
  void (*finish)(void *self, void *image);
  uint64_t (*image_bytes)(void *self, const void *image); /* that it holds */
  /* Runs kernel steps [first, first + count) in order; all of them are RUNG_STEP_KERNEL. */
  rung_status (*steps)(void *self, void *image, rung_run *run, uint32_t first, uint32_t count);
  /* What steps kept for a context (captured steps) goes; NULL where nothing is kept. `kept` may be NULL. */
  void (*forget)(void *self, void *kept);
  /* Waits until all steps of a run are done, and says whether one of them refused its operands; NULL where `steps`
   * does. */
  rung_status (*settle)(void *self, void *kept, rung_error *error);
  /* The same for runs that nobody waits for yet, on devices whose memory has marks (base/far.h): queues behind the run's
   * steps that what `settle` looks at is written to `note` (RUNG_NOTE bytes, pinned) and cleared for the next run; and
   * reads it once it is there. NULL where `settle` is. */
  void (*settle_later)(void *self, void *kept, void *note);
  rung_status (*settle_note)(void *self, const void *note, rung_error *error);
  const rung_tuning *tuning; /* NULL: no kernel has candidates */
} rung_backend;

#endif
