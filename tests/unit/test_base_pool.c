/* SPDX-License-Identifier: MIT
 * The pool: every task once, distinct thread indices, nested and concurrent jobs, parking, fork, denormals, and limits
 * read from a fake tree of control groups. */
#define _GNU_SOURCE
#include <float.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/thread.h"
#include "test.h"

static rung_host *host;
static rung_pool *pool;

enum { MOST_TASKS = 5000, MOST_THREADS = 8 };
typedef struct job {
  atomic_int runs[MOST_TASKS];
  atomic_int inside[MOST_THREADS];
  atomic_int clashes, nested_runs;
  int nest, most;
} job;

static void touch(void *self, int64_t task, int thread) {
  job *j = (job *)self;
  if (thread < 0 || thread >= j->most) {
    atomic_fetch_add(&j->clashes, 1);
    return;
  }
  if (atomic_fetch_add(&j->inside[thread], 1)) atomic_fetch_add(&j->clashes, 1);
  atomic_fetch_add(&j->runs[task], 1);
  atomic_fetch_sub(&j->inside[thread], 1);
}

static void check_job(int most, int64_t tasks) {
  static job j;
  memset(&j, 0, sizeof j);
  j.most = most;
  rung_pool_run(pool, most, tasks, touch, &j);
  int64_t wrong = 0;
  for (int64_t t = 0; t < MOST_TASKS; t++) wrong += atomic_load(&j.runs[t]) != (t < tasks);
  CHECK_EQ_I64(wrong, 0);
  CHECK_EQ_I64(atomic_load(&j.clashes), 0);
}

static void test_every_task_once(void) {
  static const int64_t tasks[] = {0, 1, 2, 3, 7, 64, 1000, MOST_TASKS};
  for (int most = 1; most <= 6; most++)
    for (size_t t = 0; t < RUNG_COUNT(tasks); t++)
      for (int repeat = 0; repeat < 20; repeat++) check_job(most, tasks[t]);
}

static void count_only(void *self, int64_t task, int thread) {
  (void)task;
  (void)thread;
  atomic_fetch_add_explicit((_Atomic int64_t *)self, 1, memory_order_relaxed);
}

static void test_many_tasks(void) {
  static const int64_t tasks[] = {259999, 260000, 260001, 520001, 1000003};
  for (size_t t = 0; t < RUNG_COUNT(tasks); t++) {
    _Atomic int64_t sum = 0;
    rung_pool_run(pool, 4, tasks[t], count_only, &sum);
    CHECK_EQ_I64(sum, tasks[t]);
  }
}

/* Plain memory written by tasks is seen by the caller, and the caller's by the tasks. */
typedef struct handover {
  int64_t in, out[16];
} handover;
static void copy_over(void *self, int64_t task, int thread) {
  (void)thread;
  handover *h = (handover *)self;
  h->out[task] = h->in + task;
}
static void test_handover(void) {
  handover h;
  int64_t wrong = 0;
  for (int64_t i = 0; i < 20000; i++) {
    h.in = i * 100;
    rung_pool_run(pool, 3, 2 + i % 8, copy_over, &h);
    for (int64_t t = 0; t < 2 + i % 8; t++) wrong += h.out[t] != i * 100 + t;
  }
  CHECK_EQ_I64(wrong, 0);
}

static void nested(void *self, int64_t task, int thread) {
  (void)thread;
  (void)task;
  job *j = (job *)self;
  if (j->nest == 0) {
    atomic_fetch_add(&j->nested_runs, 1);
    return;
  }
  job inner = {.nest = j->nest - 1};
  rung_pool_run(pool, 4, 5, nested, &inner);
  atomic_fetch_add(&j->nested_runs, atomic_load(&inner.nested_runs));
}
static void test_nested(void) {
  for (int i = 0; i < 50; i++) {
    job j = {.nest = 3};
    rung_pool_run(pool, 4, 5, nested, &j);
    CHECK_EQ_I64(j.nested_runs, 5 * 5 * 5 * 5);
  }
}

static atomic_int caller_errors;
static void caller_main(void *self) {
  const int64_t seed = (int64_t)(intptr_t)self;
  for (int64_t i = 0; i < 300; i++) {
    if (i % 10 == seed % 10) {
      job j = {.nest = 1};
      rung_pool_run(pool, 4, 5, nested, &j);
      if (j.nested_runs != 25) atomic_fetch_add(&caller_errors, 1);
    }
    _Atomic int64_t sum = 0;
    rung_pool_run(pool, 1 + (int)(i % 4), 1 + i % 40, count_only, &sum);
    if (sum != 1 + i % 40) atomic_fetch_add(&caller_errors, 1);
  }
}
/* More callers than slots of the board: the rest work alone. */
static void test_concurrent(void) {
  enum { CALLERS = 80 };
  static rung_thread threads[CALLERS];
  rung_error error;
  int started = 0;
  for (int i = 0; i < CALLERS; i++, started++)
    if (rung_thread_start(&threads[i], host, caller_main, (void *)(intptr_t)i, &error)) break;
  CHECK_EQ_I64(started, CALLERS);
  for (int i = 0; i < started; i++) rung_thread_join(&threads[i]);
  CHECK_EQ_I64(caller_errors, 0);
}

static void slow(void *self, int64_t task, int thread) {
  (void)thread;
  if (task == 1) usleep(20000); /* the caller outwaits its spinning */
  atomic_fetch_add((_Atomic int64_t *)self, 1);
}
static void test_parking(void) {
  for (int i = 0; i < 5; i++) {
    usleep(20000); /* helpers park */
    check_job(3, 64);
    _Atomic int64_t sum = 0;
    rung_pool_run(pool, 3, 3, slow, &sum);
    CHECK_EQ_I64(sum, 3);
  }
}

static void test_fork(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    _Atomic int64_t sum = 0;
    for (int i = 0; i < 100; i++) rung_pool_run(pool, 3, 100, count_only, &sum);
    const bool helpers = rung_pool_threads(pool) >= 3; /* restarted by the first run */
    _exit(sum == 10000 && helpers && rung_pool_shared(NULL) == pool ? 0 : 1);
  }
  int result = -1;
  CHECK(child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0);
  check_job(3, 1000);
}

static void test_stop_and_faults(void) {
  rung_pool_stop(pool);
  CHECK_EQ_I64(rung_pool_threads(pool), 1);
  check_job(4, 100);
  test_fault fault = {.kind = RUNG_FAULT_THREAD, .at = 2};
  rung_host_set_fault(host, test_fault_hit, &fault);
  CHECK(rung_pool_shared(host) == pool);
  CHECK(fault.hit && rung_pool_threads(pool) == 2);
  check_job(4, 100);
  rung_host_set_fault(host, NULL, NULL);
  CHECK(rung_pool_ensure(pool, host, 4) >= 4);
  check_job(4, 100);
  fault = (test_fault){.kind = RUNG_FAULT_THREAD, .at = 1};
  rung_host_set_fault(host, test_fault_hit, &fault);
  rung_thread thread;
  rung_error error;
  CHECK_STATUS(rung_thread_start(&thread, host, caller_main, NULL, &error), RUNG_SYSTEM);
  rung_host_set_fault(host, NULL, NULL);
  rung_thread_join(&thread);
}

static volatile float smallest = FLT_MIN;
static void flushes(void *self, int64_t task, int thread) {
  (void)task;
  if (thread && smallest * 0.5f != 0) atomic_fetch_add((_Atomic int64_t *)self, 1);
  if (thread) usleep(10);
}
static void test_denormals(void) {
  CHECK(smallest * 0.5f != 0);
  const uint64_t state = rung_float_state_set();
  const uint64_t inner = rung_float_state_set();
  CHECK(smallest * 0.5f == 0);
  rung_float_state_restore(inner);
  CHECK(smallest * 0.5f == 0);
  rung_float_state_restore(state);
  CHECK(smallest * 0.5f != 0);
  _Atomic int64_t kept = 0;
  for (int i = 0; i < 200; i++) rung_pool_run(pool, 3, 64, flushes, &kept);
  CHECK_EQ_I64(kept, 0);
}

/* ---- limits ---- */

static char root[] = "/tmp/rung-cgroup-XXXXXX";
static void put(const char *name, const char *text) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
  FILE *f = fopen(path, "w");
  CHECK(f != NULL);
  if (!f) return;
  fputs(text, f);
  fclose(f);
}
static void clear_root(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s/*", root);
  CHECK(system(command) == 0);
}

static void test_limits(void) {
  CHECK(mkdtemp(root) != NULL);
  const int all = rung_pool_default_threads(root); /* an empty tree limits nothing */
  const int two = all < 2 ? all : 2;
  const uint64_t ram = rung_memory_limit(root);
  CHECK(all >= 1 && ram > (uint64_t)1 << 26);
  put("cpu.max", "200000 100000\n");
  put("memory.max", "1048576\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), two);
  CHECK_EQ_I64(rung_memory_limit(root), 1048576);
  put("cpu.max", "max 100000\n");
  put("memory.max", "max\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), all);
  CHECK(rung_memory_limit(root) == ram);
  put("cpu.max", "50000 100000\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), 1);
  clear_root();
  /* Version 2, nested: a folder above binds too. */
  put("self", "0::/a/b\n");
  put("a/b/cpu.max", "400000 100000\n");
  put("a/cpu.max", "100000 100000\n");
  put("a/b/memory.max", "5000000\n");
  put("memory.max", "9000000\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), 1);
  CHECK_EQ_I64(rung_memory_limit(root), 5000000);
  clear_root();
  /* Version 1. */
  put("cpu/cpu.cfs_quota_us", "200000\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  put("memory/memory.limit_in_bytes", "7000000\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), two);
  CHECK_EQ_I64(rung_memory_limit(root), 7000000);
  put("cpu/cpu.cfs_quota_us", "-1\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), all);
  put("self", "4:memory:/box\n3:cpu,cpuacct:/box/inner\n");
  put("cpu,cpuacct/box/cpu.cfs_quota_us", "100000\n");
  put("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  put("memory/box/memory.limit_in_bytes", "6000000\n");
  CHECK_EQ_I64(rung_pool_default_threads(root), 1);
  CHECK_EQ_I64(rung_memory_limit(root), 6000000);
  put("self", "nonsense\n\n:::\n");
  put("cpu/cpu.cfs_quota_us", "x\n");
  CHECK_EQ_I64(rung_memory_limit(root), 7000000);
  clear_root();
  CHECK(rmdir(root) == 0);
}

static void test_affinity(void) {
  cpu_set_t old, one;
  if (sched_getaffinity(0, sizeof old, &old)) SKIP("no affinity here");
  int first = 0;
  while (!CPU_ISSET(first, &old)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK_EQ_I64(rung_pool_default_threads(NULL), 1);
  check_job(4, 500); /* three threads on one processor still finish */
  CHECK(sched_setaffinity(0, sizeof old, &old) == 0);
}

/* ---- locks ---- */

static rung_mutex mutex;
static rung_cond cond;
static int turn;
static void answer(void *self) {
  (void)self;
  rung_mutex_lock(&mutex);
  for (int i = 0; i < 100; i++) {
    while (turn % 2 == 0) rung_cond_wait(&cond, &mutex);
    turn++;
    rung_cond_broadcast(&cond);
  }
  rung_mutex_unlock(&mutex);
}
static int once_runs;
static void once_fn(void) { once_runs++; }

static void test_locks(void) {
  CHECK(rung_mutex_init(&mutex) && rung_cond_init(&cond));
  rung_thread thread;
  CHECK_OK(rung_thread_start(&thread, host, answer, NULL, NULL));
  rung_mutex_lock(&mutex);
  for (int i = 0; i < 100; i++) {
    turn++;
    rung_cond_signal(&cond);
    while (turn % 2) rung_cond_wait(&cond, &mutex);
  }
  rung_mutex_unlock(&mutex);
  rung_thread_join(&thread);
  rung_thread_join(&thread);
  CHECK_EQ_I64(turn, 200);
  const uint64_t before = rung_clock_ns();
  rung_mutex_lock(&mutex);
  while (rung_cond_wait_for(&cond, &mutex, 5000000)) {
  }
  rung_mutex_unlock(&mutex);
  CHECK(rung_clock_ns() - before >= 5000000);
  rung_cond_finish(&cond);
  rung_mutex_finish(&mutex);
  rung_once once = {0};
  for (int i = 0; i < 3; i++) rung_once_run(&once, once_fn);
  CHECK_EQ_I64(once_runs, 1);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  pool = rung_pool_shared(host);
  CHECK(rung_pool_ensure(pool, host, 4) >= 4); /* more on a larger machine */
  RUN(test_every_task_once);
  RUN(test_many_tasks);
  RUN(test_handover);
  RUN(test_nested);
  RUN(test_concurrent);
  RUN(test_parking);
  RUN(test_fork);
  RUN(test_stop_and_faults);
  RUN(test_denormals);
  RUN(test_limits);
  RUN(test_affinity);
  RUN(test_locks);
  rung_host_release(host);
  return TEST_END();
}
