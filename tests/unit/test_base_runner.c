/* SPDX-License-Identifier: MIT
 * Jobs that nobody waits for: each post is followed by a run, a job never runs twice at once, one that is taken back does
 * not run, and without threads nothing happens until somebody does it himself. */
#include <stdatomic.h>

#include "base/runner.h"
#include "base/thread.h"
#include "test.h"

static rung_host *host;

typedef struct counter {
  atomic_int runs, inside, twice, hold;
} counter;

static void count(void *self) {
  counter *c = self;
  if (atomic_fetch_add(&c->inside, 1)) atomic_fetch_add(&c->twice, 1);
  atomic_fetch_add(&c->runs, 1);
  while (atomic_load(&c->hold)) rung_thread_yield();
  atomic_fetch_sub(&c->inside, 1);
}

static void test_posts(void) {
  static counter c[8];
  static rung_job job[8];
  for (int i = 0; i < 8; i++) job[i] = (rung_job){.fn = count, .self = &c[i]};
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < 8; i++) {
      const int before = atomic_load(&c[i].runs);
      rung_job_post(&job[i], host);
      if (round % 7 == i) rung_job_post(&job[i], host); /* queued already, or once more behind */
      while (round % 3 == 0 && atomic_load(&c[i].runs) == before) rung_thread_yield();
    }
  }
  for (int i = 0; i < 8; i++) {
    rung_job_withdraw(&job[i]);
    const int runs = atomic_load(&c[i].runs);
    rung_thread_yield();
    CHECK_EQ_I64(atomic_load(&c[i].runs), runs);
    CHECK_EQ_I64(atomic_load(&c[i].twice), 0);
    CHECK_EQ_I64(atomic_load(&c[i].inside), 0);
  }
  CHECK(rung_runners() >= 1);
}

/* Posted while it runs, a job runs again; withdrawn while it runs, it does not. */
static void test_again(void) {
  for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
    counter c = {0};
    rung_job job = {.fn = count, .self = &c};
    atomic_store(&c.hold, 1);
    rung_job_post(&job, host);
    while (!atomic_load(&c.inside)) rung_thread_yield();
    if (!withdrawn) rung_job_post(&job, host);
    atomic_store(&c.hold, 0);
    while (!withdrawn && atomic_load(&c.runs) < 2) rung_thread_yield();
    rung_job_withdraw(&job);
    CHECK_EQ_I64(atomic_load(&c.runs), withdrawn ? 1 : 2);
  }
}

static void test_without_threads(void) {
  counter c = {0};
  rung_job job = {.fn = count, .self = &c}, other = job;
  rung_runners_stop();
  test_fault fault = {.kind = RUNG_FAULT_THREAD, .at = 1};
  rung_host_set_fault(host, test_fault_hit, &fault);
  rung_job_post(&job, host);
  CHECK(fault.hit && rung_runners() == 0);
  rung_job_withdraw(&job);
  rung_host_set_fault(host, NULL, NULL);
  rung_job_post(&other, host);
  while (!atomic_load(&c.runs)) rung_thread_yield();
  rung_job_withdraw(&other);
  CHECK_EQ_I64(atomic_load(&c.runs), 1);
  rung_runners_stop();
  CHECK_EQ_I64(rung_runners(), 0);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_posts);
  RUN(test_again);
  RUN(test_without_threads);
  rung_host_release(host);
  return TEST_END();
}
