/* SPDX-License-Identifier: MIT
 * Threads of one's own, conditions and once; mutexes are in pool.h. */
#ifndef RUNG_BASE_THREAD_H
#define RUNG_BASE_THREAD_H

#include "base/pool.h"

typedef struct rung_cond {
  void *opaque[8];
} rung_cond;
bool rung_cond_init(rung_cond *cond);
void rung_cond_finish(rung_cond *cond);
void rung_cond_wait(rung_cond *cond, rung_mutex *mutex); /* wakes up without reason at times, as all conditions do */
/* False once `nanoseconds` from now have passed. */
bool rung_cond_wait_for(rung_cond *cond, rung_mutex *mutex, uint64_t nanoseconds);
void rung_cond_signal(rung_cond *cond);
void rung_cond_broadcast(rung_cond *cond);

/* Zeroed is ready. The function runs once, before the first call returns. */
typedef struct rung_once {
  void *opaque[1];
} rung_once;
void rung_once_run(rung_once *once, void (*fn)(void));

/* The struct must stay where it is until the join. Signals are blocked in the thread, denormals flushed. */
typedef struct rung_thread {
  void *opaque[2];
  void (*fn)(void *self);
  void *self;
} rung_thread;
rung_status rung_thread_start(rung_thread *thread, rung_host *host, void (*fn)(void *self), void *self,
                              rung_error *error);
void rung_thread_join(rung_thread *thread); /* zeroed allowed */
void rung_thread_yield(void);

#endif
