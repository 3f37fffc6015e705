/* SPDX-License-Identifier: MIT
 * Jobs that nobody waits for yet: threads of the process do them one after another, beside the pool's helpers, which only
 * join what a caller does. A job that no thread has begun can be taken back, so that whoever needs its result does it
 * himself: then nothing depends on a thread being free, or there at all. */
#ifndef RUNG_BASE_RUNNER_H
#define RUNG_BASE_RUNNER_H

#include "base/host.h"

/* Lies where its owner puts it; zeroed, with fn and self, is ready. The rest is the runners'. */
typedef struct rung_job {
  void (*fn)(void *self);
  void *self;
  struct rung_job *next;
  int stage;
  bool again; /* posted while it ran */
} rung_job;

/* Queues the job, and starts a thread for it if all are busy and fewer than the machine runs at once are there. Threads
 * that cannot be started are done without. Nothing happens where the job is queued already. */
void rung_job_post(rung_job *job, rung_host *host);
/* Afterwards no thread has the job: it leaves the queue, or its end is waited for. */
void rung_job_withdraw(rung_job *job);
/* Ends the threads, which must have nothing to do. For tests, and done when the library unloads. */
void rung_runners_stop(void);
int rung_runners(void); /* threads there are */

#endif
