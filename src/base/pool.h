/* SPDX-License-Identifier: MIT
 * Threads: one process-wide pool, aware of affinity and cgroup quota, that lends helpers to whoever runs.
 *
 * A job is executed by its caller; helpers that are idle join it. Tasks are claimed one by one, so that the caller
 * can always finish alone: concurrent and nested jobs cannot deadlock. Idle helpers spin for a bounded time (dispatch
 * within 0.1 us while work keeps coming), then park. Helpers run with denormals flushed; a caller that wants the same
 * sets its own state with rung_float_state_set before its first job and restores it after the last. After fork the
 * child starts a fresh pool; forking inside a task is not supported. */
#ifndef RUNG_BASE_POOL_H
#define RUNG_BASE_POOL_H

#include "base/host.h"

typedef struct rung_pool rung_pool;

/* task in [0, tasks); thread in [0, max_threads), 0 being the caller: an index for per-thread scratch, unique among
 * those at work on this job. */
typedef void rung_task_fn(void *self, int64_t task, int thread);

/* The shared pool, started on first use; threads that cannot be started are done without (logged). Never NULL. */
rung_pool *rung_pool_shared(rung_host *host);
/* Runs all tasks; returns when all are done. max_threads counts the caller; 1 runs everything in the caller. */
void rung_pool_run(rung_pool *pool, int max_threads, int64_t tasks, rung_task_fn *fn, void *self);
/* Of so many tasks the first ones, which the caller and every second helper begin with, in order; the others begin with
 * the rest. Tasks that are numbered along the same rows in every job meet those rows in the same thread's cache. */
static inline int64_t rung_pool_front(int64_t tasks) { return (tasks + 1) / 2; }
/* What one process may use well: the smallest of online processors, affinity mask and cgroup quota (v1 and v2), at
 * least 1. `cgroup_root` NULL means the system's; tests pass a folder of their own. */
int rung_pool_default_threads(const char *cgroup_root);
/* The cgroup memory limit (v1 and v2) and physical memory: the smaller, 0 if unknown. */
uint64_t rung_memory_limit(const char *cgroup_root);
int rung_pool_threads(const rung_pool *pool); /* most threads a job can get, the caller included */
/* Starts helpers until a job can get `threads`, also above the default; returns what a job can get now. Runs never
 * start threads, so whoever lets a caller ask for more than the default calls this when the caller asks. */
int rung_pool_ensure(rung_pool *pool, rung_host *host, int threads);
/* Ends all helpers, which must be idle; rung_pool_shared starts new ones. For tests, and done when the library unloads.
 */
void rung_pool_stop(rung_pool *pool);

/* Flush-to-zero and denormals-are-zero for the calling thread; returns the state to restore. */
uint64_t rung_float_state_set(void);
void rung_float_state_restore(uint64_t state);

/* Locks, conditions and once, so that no other folder calls the system. */
typedef struct rung_mutex {
  void *opaque[8];
} rung_mutex;
bool rung_mutex_init(rung_mutex *mutex);
void rung_mutex_finish(rung_mutex *mutex);
void rung_mutex_lock(rung_mutex *mutex);
void rung_mutex_unlock(rung_mutex *mutex);

#endif
