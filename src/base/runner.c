/* SPDX-License-Identifier: MIT
 * The process's runners: a queue of jobs and up to a few threads. */
#define _GNU_SOURCE
#include "base/runner.h"

#include <pthread.h>

#include "base/thread.h"

enum { MOST = 16 };
enum { IDLE, QUEUED, RUNNING };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  rung_job *first, *last;
  int started, idle, queued, most;
  bool stop;
  rung_thread thread[MOST];
} runners = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* ---- the queue; under the lock */

static void push(rung_job *job) {
  job->stage = QUEUED;
  job->next = NULL;
  if (runners.last)
    runners.last->next = job;
  else
    runners.first = job;
  runners.last = job;
  runners.queued++;
}

static rung_job *pop(void) {
  rung_job *job = runners.first;
  if (!job) return NULL;
  runners.first = job->next;
  if (!runners.first) runners.last = NULL;
  runners.queued--;
  return job;
}

static void take_out(rung_job *job) {
  rung_job *before = NULL, *at = runners.first;
  while (at && at != job) before = at, at = at->next;
  if (at) {
    if (before)
      before->next = job->next;
    else
      runners.first = job->next;
    if (runners.last == job) runners.last = before;
    runners.queued--;
  }
  job->stage = IDLE;
}

/* ---- threads */

static void run_one(rung_job *job) {
  job->stage = RUNNING;
  job->again = false;
  pthread_mutex_unlock(&runners.lock);
  job->fn(job->self);
  pthread_mutex_lock(&runners.lock);
  job->stage = IDLE;
  if (job->again) push(job);
  pthread_cond_broadcast(&runners.done);
}

static void runner_main(void *self) {
  (void)self;
  pthread_mutex_lock(&runners.lock);
  while (!runners.stop) {
    rung_job *job = pop();
    if (job) {
      run_one(job);
      continue;
    }
    runners.idle++;
    pthread_cond_wait(&runners.work, &runners.lock);
    runners.idle--;
  }
  pthread_mutex_unlock(&runners.lock);
}

static void start_one(rung_host *host) {
  rung_error error;
  if (rung_thread_start(&runners.thread[runners.started], host, runner_main, NULL, &error))
    rung_host_log(host, RUNG_LOG_WARNING, "submitted runs: %s; whoever waits for them runs them", error.message);
  else
    runners.started++;
}

/* The lock is held over a fork; the child has no runners, and what was queued belongs to those who wait for it. */
static void before_fork(void) { pthread_mutex_lock(&runners.lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&runners.lock); }
static void after_fork_child(void) {
  runners.first = runners.last = NULL;
  runners.started = runners.idle = runners.queued = 0;
  pthread_cond_init(&runners.work, NULL);
  pthread_cond_init(&runners.done, NULL);
  pthread_mutex_unlock(&runners.lock);
}

static void set_up(void) {
  runners.most = rung_pool_default_threads(NULL);
  if (runners.most > MOST) runners.most = MOST;
  (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- jobs */

void rung_job_post(rung_job *job, rung_host *host) {
  static rung_once once;
  rung_once_run(&once, set_up);
  pthread_mutex_lock(&runners.lock);
  if (job->stage == IDLE) push(job);
  if (job->stage == RUNNING) job->again = true;
  if (job->stage == QUEUED) {
    if (runners.queued > runners.idle && runners.started < runners.most) start_one(host);
    pthread_cond_signal(&runners.work);
  }
  pthread_mutex_unlock(&runners.lock);
}

void rung_job_withdraw(rung_job *job) {
  pthread_mutex_lock(&runners.lock);
  job->again = false;
  if (job->stage == QUEUED) take_out(job);
  while (job->stage == RUNNING) {
    pthread_cond_wait(&runners.done, &runners.lock);
    job->again = false;
    if (job->stage == QUEUED) take_out(job);
  }
  pthread_mutex_unlock(&runners.lock);
}

int rung_runners(void) {
  pthread_mutex_lock(&runners.lock);
  const int count = runners.started;
  pthread_mutex_unlock(&runners.lock);
  return count;
}

void rung_runners_stop(void) {
  pthread_mutex_lock(&runners.lock);
  runners.stop = true;
  pthread_cond_broadcast(&runners.work);
  const int count = runners.started;
  pthread_mutex_unlock(&runners.lock);
  for (int i = 0; i < count; i++) rung_thread_join(&runners.thread[i]);
  pthread_mutex_lock(&runners.lock);
  runners.started = 0;
  runners.stop = false;
  pthread_mutex_unlock(&runners.lock);
}

/* Without this a thread would be left running code that dlclose has unmapped. */
static RUNG_AT_UNLOAD void end_runners(void) {
  if (runners.started) rung_runners_stop();
}
