/* SPDX-License-Identifier: MIT
 * Many threads, one model: generators that run at once give what each gives alone; programs run alternately from two
 * threads; generators made and dropped meanwhile; cancelling from another thread; one pool for everything. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/pool.h"
#include "tiny_world.h"

enum { MOST_THREADS = 8 };

typedef struct worker {
  pthread_t thread;
  tiny *t;
  int which;   /* text */
  bool remake; /* a generator of its own each time */
  int rounds, tokens;
  tiny_texts texts;
  bool good;
} worker;

static void *work(void *self) {
  worker *w = (worker *)self;
  w->good = true;
  rung_generator *g = NULL;
  for (int round = 0; round < w->rounds && w->good; round++) {
    rung_generate_options o = tiny_options(2, 96, 24);
    o.kv = w->which % 2 ? RUNG_TYPE_F32 : RUNG_TYPE_F16;
    if (!g) w->good = !rung_generator_create(w->t->model, &o, NULL, &g);
    rung_sample_options greedy = rung_sample_options_default();
    greedy.temperature = 0;
    tiny_texts texts = {0};
    for (int32_t s = 0; s < 2 && w->good; s++)
      w->good = !rung_generator_reset(g, s) && !rung_generator_sampling(g, s, &greedy) &&
                !tiny_prompt(w->t, g, s, w->which + s, 31 - 7 * s);
    for (int i = 0; i < w->tokens && w->good; i++) {
      rung_token out[2];
      size_t n;
      w->good = !rung_generator_step(g, out, &n, NULL);
      for (size_t k = 0; k < n && w->good; k++) texts.id[out[k].slot][texts.count[out[k].slot]++] = out[k].id;
    }
    if (round)
      w->good = w->good && memcmp(&texts, &w->texts, sizeof texts) == 0;
    else
      w->texts = texts;
    if (w->remake) rung_generator_destroy(g), g = NULL;
  }
  rung_generator_destroy(g);
  return NULL;
}

static void run_at_once(tiny *t, int threads, bool remake, int rounds) {
  static worker alone[MOST_THREADS], together[MOST_THREADS];
  for (int i = 0; i < threads; i++) {
    alone[i] = (worker){.t = t, .which = i, .rounds = 1, .tokens = 10};
    together[i] = (worker){.t = t, .which = i, .rounds = rounds, .tokens = 10, .remake = remake};
    if (!remake) work(&alone[i]); /* else everything, forms of weights too, is made while others run */
  }
  for (int i = 0; i < threads; i++) CHECK(!pthread_create(&together[i].thread, NULL, work, &together[i]));
  for (int i = 0; i < threads; i++) pthread_join(together[i].thread, NULL);
  for (int i = 0; i < threads; i++) {
    if (remake) work(&alone[i]);
    CHECK(alone[i].good && together[i].good);
    CHECK(memcmp(&alone[i].texts, &together[i].texts, sizeof alone[i].texts) == 0);
  }
}

static void test_two_threads(void) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) run_at_once(&t, 2, false, 3);
    tiny_close(&t);
  }
}

static void test_eight_contexts(void) {
  tiny t;
  if (tiny_open(&t, tiny_paths[1], 3)) run_at_once(&t, 8, false, 2);
  tiny_close(&t);
}

static void test_made_and_dropped_at_once(void) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) run_at_once(&t, 4, true, 3);
    tiny_close(&t);
  }
}

/* ---- cancelling */

typedef struct canceller {
  rung_context *context;
  atomic_bool stop;
} canceller;

static void *cancel_often(void *self) {
  canceller *c = (canceller *)self;
  while (!atomic_load(&c->stop)) {
    rung_context_cancel(c->context);
    usleep(150);
  }
  return NULL;
}

/* Twenty steps, cancelled ones made again; false on an error. */
static bool twenty_steps(tiny *t, rung_generator *g, tiny_texts *texts, canceller *c, int64_t *cancelled) {
  CHECK_OK(rung_generator_reset(g, 0));
  CHECK_OK(tiny_prompt(t, g, 0, 1, 50));
  for (int step = 0; step < 20;) {
    rung_token out[1];
    size_t n;
    bool busy;
    const rung_status status = rung_generator_step(g, out, &n, &busy);
    if (status == RUNG_CANCELLED) {
      if (++*cancelled == 5) atomic_store(&c->stop, true); /* where steps are slower than it, none would get through */
      continue;
    }
    CHECK_OK(status);
    if (status) return false;
    if (n) texts->id[0][texts->count[0]++] = out[0].id;
    if (!busy) break;
    step++;
  }
  return true;
}

/* Steps end with OK or CANCELLED, and all in all give what they give undisturbed. */
static void test_cancel_from_another_thread(void) {
  tiny t;
  tiny_texts want = {0};
  int64_t cancelled = 0;
  if (tiny_open(&t, tiny_paths[0], 2)) {
    const rung_generate_options o = tiny_options(1, 96, 16);
    rung_generator *g = tiny_generator(&t, &o);
    if (g) {
      tiny_greedy(g, 1);
      canceller c = {.context = rung_generator_context(g)};
      CHECK(twenty_steps(&t, g, &want, &c, &cancelled));
      pthread_t thread;
      CHECK(!pthread_create(&thread, NULL, cancel_often, &c));
      for (int round = 0; round < 300 && cancelled < 5; round++) {
        tiny_texts got = {0};
        CHECK(twenty_steps(&t, g, &got, &c, &cancelled));
        CHECK(memcmp(&want, &got, sizeof got) == 0);
      }
      atomic_store(&c.stop, true);
      pthread_join(thread, NULL);
      rung_generator_destroy(g);
    }
    printf("%" PRId64 " steps cancelled on the way\n", cancelled);
  }
  tiny_close(&t);
}

/* ---- cases 47 and 48 */

/* Two programs, each run by both threads in turn: nobody waits for the other to be idle. */
static void test_two_programs_alternately(void) {
  tiny t[2];
  const bool open = tiny_open(&t[0], tiny_paths[0], 2);
  if (tiny_open(&t[1], tiny_paths[1], 2) && open) {
    static worker w[4];
    for (int i = 0; i < 4; i++) w[i] = (worker){.t = &t[i % 2], .which = i / 2, .rounds = 3, .tokens = 8};
    for (int i = 0; i < 4; i++) CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
    for (int i = 0; i < 4; i++) pthread_join(w[i].thread, NULL);
    for (int i = 0; i < 4; i++) CHECK(w[i].good);
  }
  tiny_close(&t[1]);
  tiny_close(&t[0]);
}

static int threads_of_process(void) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  int n = -1;
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "Threads: %d", &n) == 1) break;
  if (f) fclose(f);
  return n;
}

/* However many models: one pool. */
static void test_one_pool_for_all_models(void) {
  const int count = test_slow() ? 60 : 1000;
  tiny t;
  if (tiny_open(&t, tiny_paths[0], 3)) {
    const rung_generate_options o = tiny_options(1, 32, 8);
    rung_generator *g = tiny_generator(&t, &o);
    int32_t id = 1;
    CHECK_OK(rung_generator_run(g, &(rung_rows){0, 1}, 1, &id, NULL, 0, NULL));
    const int before = threads_of_process();
    rung_model **more = calloc((size_t)count, sizeof *more);
    rung_device **devices = calloc((size_t)count, sizeof *devices);
    int failed = 0;
    for (int i = 0; i < count && more && devices; i++) {
      const rung_source source = rung_source_path(tiny_paths[i % 2]);
      rung_device_options d = rung_device_options_default();
      d.threads = 3;
      failed += rung_device_create(t.host, "cpu", &d, &t.error, &devices[i]) != RUNG_OK;
      failed += rung_model_open(devices[i], &source, NULL, &t.error, &more[i]) != RUNG_OK;
    }
    CHECK_EQ_I64(failed, 0);
    if (failed) fprintf(stderr, "  %s\n", t.error.message);
    CHECK_EQ_I64(threads_of_process(), before);
    for (int i = 0; i < count && more && devices; i++) rung_model_release(more[i]), rung_device_release(devices[i]);
    free(more);
    free(devices);
    rung_generator_destroy(g);
  }
  tiny_close(&t);
}

/* What the caller had set is there after a run, and a run does not depend on it. */
static void test_float_state_of_the_caller(void) {
  tiny t;
  if (tiny_open(&t, tiny_paths[0], 2)) {
    const int rounding[] = {FE_TONEAREST, FE_UPWARD};
    for (int r = 0; r < 2; r++) {
      const rung_generate_options o = tiny_options(1, 32, 8);
      rung_generator *g = tiny_generator(&t, &o);
      int32_t ids[4] = {1, 2, 3, 4};
      fesetround(rounding[r]);
      feclearexcept(FE_ALL_EXCEPT);
      CHECK_OK(rung_generator_run(g, &(rung_rows){0, 4}, 1, ids, NULL, 0, NULL));
      CHECK(fegetround() == rounding[r]);
      volatile float tiny_number = 0x1p-126f;
      CHECK(tiny_number / 4 > 0); /* denormals are not flushed here */
      fesetround(FE_TONEAREST);
      rung_generator_destroy(g);
    }
  }
  tiny_close(&t);
}

int main(void) {
  RUN(test_float_state_of_the_caller);
  RUN(test_two_threads);
  RUN(test_two_programs_alternately);
  RUN(test_cancel_from_another_thread);
  RUN(test_made_and_dropped_at_once);
  RUN(test_eight_contexts);
  RUN(test_one_pool_for_all_models);
  return TEST_END();
}
