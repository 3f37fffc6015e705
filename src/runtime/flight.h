/* SPDX-License-Identifier: MIT
 * Submitted runs from inside. */
#ifndef RUNG_RUNTIME_FLIGHT_H
#define RUNG_RUNTIME_FLIGHT_H

#include "base/runner.h"
#include "base/thread.h"
#include "runtime/runtime.h"

/* Memory of the heap, or pinned where a device writes it behind the caller's back. */
typedef struct rung_block_memory {
  uint8_t *data;
  size_t bytes;
} rung_block_memory;

typedef enum rung_flight_stage {
  RUNG_FLIGHT_FREE,
  RUNG_FLIGHT_PENDING,
  RUNG_FLIGHT_DONE,
  RUNG_FLIGHT_WAITED
} rung_flight_stage;

/* Ticket t is flight t % count. */
typedef struct rung_flight {
  rung_context run; /* what is bound, resolved and found: bindings are copies of those of main */
  uint64_t ticket;
  rung_flight_stage stage; /* under the lock */
  rung_status status;
  bool in_state; /* reads or writes states */
  bool fed;      /* an input is what the run before made */
  bool launched; /* far: `mark` is behind all that it does */
  bool doomed;   /* a run before it failed, and what it would go on with is gone; under the lock */
  bool late;     /* outputs are kept once the run has found their extents */
  rung_resolved *now;
  rung_run_rows rows;
  rung_table *table;
  rung_block_memory inputs, outputs; /* outputs, far: in front of them the backend's note */
  void *mark;
} rung_flight;

struct rung_flights {
  rung_context *main;
  rung_mutex lock;
  rung_cond ended;
  rung_job job;
  rung_flight *flight;
  uint32_t count; /* one more than may be in flight: where a submit that is refused has looked */
  uint64_t first; /* ticket */
  uint64_t next;  /* ticket to be run next; those below have ended. Under the lock, as all that follows */
  bool running;   /* somebody runs it */
  bool fed_well;  /* the run before it left what it feeds */
  bool broken;    /* a run has failed, and states are not put back yet */
  uint64_t broken_by;
  _Atomic uint64_t bytes; /* of class load */
};

void rung_flights_run(void *flights); /* submit.c: runs what is queued */
/* flights.c */
rung_status rung_flights_make(rung_context *main);
void rung_flights_destroy(rung_flights *flights);
static inline rung_flight *rung_flight_of(const rung_flights *f, uint64_t ticket) {
  return &f->flight[ticket % f->count];
}
/* What main has bound, for a run of its own: inputs are copied where they may change. */
rung_status rung_flight_take(rung_flights *flights, rung_flight *flight);
/* Memory for its outputs, where their extents are known; and behind the steps, where they were not. */
rung_status rung_flight_keep_outputs(rung_flights *flights, rung_flight *flight);
rung_status rung_flight_keep_late(rung_flights *flights, rung_flight *flight);
/* Far devices: what the host needs of the results, queued behind the launches, and a mark behind that. */
rung_status rung_flight_read_later(rung_flights *flights, rung_flight *flight);
/* Waits for the mark, and has results where the caller wants them. */
rung_status rung_flight_read(rung_flight *flight);

#endif
