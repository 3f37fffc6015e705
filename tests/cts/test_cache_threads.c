/* SPDX-License-Identifier: MIT
 * Caches under eight threads, briefly; and first users of one key, who compile it once. long_cache_threads.c goes on for
 * a minute. */
#include "cts/cache_threads.h"

static void test_storm(void) { storm_run(test_slow() ? 6 : 2); }

/* ---- first users */

typedef struct crowd {
  cache_world w;
  rung_cache *cache;
  rung_ladder *ladder;
  atomic_int waiting, compiled_for[STORM_THREADS];
  rung_program *program[STORM_THREADS];
  rung_status status[STORM_THREADS];
  rung_error error[STORM_THREADS];
} crowd;
typedef struct crowd_thread {
  rung_thread thread;
  crowd *c;
  int index;
} crowd_thread;

/* Waits a moment in the builder, so that the others come while it works. */
static rung_status build_slowly(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  crowd *c = self;
  const uint64_t until = rung_clock_ns() + 20000000;
  while (rung_clock_ns() < until) rung_thread_yield();
  if (c->w.fails) {
    atomic_fetch_add(&c->w.built, 1);
    return rung_fail(error, c->w.fails, "not for anyone");
  }
  return cache_build_open(&c->w, key, g, error);
}

static void ask(void *self) {
  const crowd_thread *t = self;
  crowd *c = t->c;
  atomic_fetch_add(&c->waiting, 1);
  while (atomic_load(&c->waiting) < STORM_THREADS) rung_thread_yield();
  rung_build b = cache_build_of(&c->w, build_slowly);
  b.self = c;
  c->status[t->index] = c->ladder
                            ? rung_ladder_get(c->ladder, 5, &c->error[t->index], &c->program[t->index])
                            : rung_cache_get_or_compile(c->cache, 5, &b, &c->error[t->index], &c->program[t->index]);
}

static void all_ask(crowd *c) {
  static crowd_thread t[STORM_THREADS];
  atomic_store(&c->waiting, 0);
  for (int i = 0; i < STORM_THREADS; i++) {
    c->program[i] = NULL;
    t[i] = (crowd_thread){.c = c, .index = i};
    CHECK_OK(rung_thread_start(&t[i].thread, c->w.host, ask, &t[i], NULL));
  }
  for (int i = 0; i < STORM_THREADS; i++) rung_thread_join(&t[i].thread);
}

static void test_first_users(void) {
  static crowd c;
  for (int k = 0; k < 2; k++) {
    memset(&c, 0, sizeof c);
    if (cache_open(&c.w, "ref")) {
      static const rung_range range = {1, 9};
      rung_build b = cache_build_of(&c.w, build_slowly);
      b.self = &c;
      if (k)
        CHECK_OK(rung_ladder_create(c.w.device, &b, &range, 1, NULL, &c.w.error, &c.ladder));
      else
        CHECK_OK(rung_cache_create(c.w.device, NULL, &c.w.error, &c.cache));
      /* A failure is everybody's who asked meanwhile, and nothing stays. */
      c.w.fails = RUNG_IO;
      all_ask(&c);
      for (int i = 0; i < STORM_THREADS; i++) {
        CHECK_STATUS(c.status[i], RUNG_IO);
        CHECK_STR(c.error[i].message, "not for anyone");
      }
      CHECK(c.w.built >= 1);
      c.w.fails = RUNG_OK;
      c.w.built = 0;
      all_ask(&c);
      CHECK_EQ_I64(c.w.built, 1);
      rung_cache_counters n;
      rung_cache_get_counters(k ? rung_ladder_cache(c.ladder) : c.cache, &n);
      CHECK(n.compiles[RUNG_COMPILE_FIRST] == 1 && n.entries == 1);
      for (int i = 0; i < STORM_THREADS; i++) {
        CHECK_OK(c.status[i]);
        CHECK(c.program[i] == c.program[0]);
        rung_program_release(c.program[i]);
      }
      rung_ladder_destroy(c.ladder);
      rung_cache_destroy(c.cache);
    }
    cache_close(&c.w);
  }
}

int main(void) {
  RUN(test_first_users);
  RUN(test_storm);
  return TEST_END();
}
