/* SPDX-License-Identifier: MIT
 * Eight threads on one exact cache, one cache of template entries and one ladder over weights that change: random keys,
 * runs, evictions, notes, clears. Every result must be what its size and one generation of the weights make it. For the
 * short test and the long one. */
#ifndef RUNG_TESTS_CTS_CACHE_THREADS_H
#define RUNG_TESTS_CTS_CACHE_THREADS_H

#include "base/clock.h"
#include "cts/cache_world.h"

enum { STORM_THREADS = 8, STORM_KEYS = 12, STORM_ROWS = 40 };

typedef struct storm {
  cache_world w;
  rung_cache *exact, *entries;
  rung_ladder *ladder;
  rung_weights *store;
  rung_view *view;
  atomic_int stop;
  atomic_llong done, wrong, unexpected;
  uint64_t until; /* ns */
} storm;

static _Alignas(64) float storm_ones[64 * CACHE_WIDTH]; /* what every input holds; read only once the threads run */

/* y = x * w + seq, w all one number in each generation. */
static inline rung_status storm_build(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  (void)self, (void)key, (void)error;
  const rung_dim extent[] = {rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 1, STORM_ROWS),
                             rung_graph_constant_dim(g, CACHE_WIDTH)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  const rung_value w = rung_graph_weight(g, "w", RUNG_TYPE_F32, 1, (const int64_t[]){CACHE_WIDTH});
  const rung_value rows = rung_reduce_sum(g, rung_abs(g, x), 1, (const int64_t[]){0}, true); /* x is all ones */
  rung_graph_output(g, "y", rung_add(g, rung_mul(g, x, w), rows));
  return RUNG_OK;
}

static inline bool storm_open(storm *s) {
  memset(s, 0, sizeof *s);
  for (size_t i = 0; i < RUNG_COUNT(storm_ones); i++) storm_ones[i] = 1;
  if (!cache_open(&s->w, "cpu")) return false;
  rung_error *e = &s->w.error;
  const float one[CACHE_WIDTH] = {1, 1, 1, 1};
  CHECK_OK(rung_weights_create(s->w.host, e, &s->store));
  CHECK_OK(rung_weights_declare(s->store, "w", RUNG_TYPE_F32, 1, (const int64_t[]){CACHE_WIDTH}, e));
  CHECK_OK(rung_weights_set(s->store, "w", RUNG_TYPE_F32, one, sizeof one, e));
  CHECK_OK(rung_weights_commit(s->store, e));
  CHECK_OK(rung_view_create(s->store, e, &s->view));
  rung_cache_options o = rung_cache_options_default();
  o.entries = 4;
  CHECK_OK(rung_cache_create(s->w.device, &o, e, &s->exact));
  rung_build b = rung_build_default();
  b.fn = storm_build;
  b.view = s->view;
  o.bytes = 1 << 20;
  CHECK_OK(rung_cache_create_template(s->w.device, &b, &o, e, &s->entries));
  static const rung_range range[] = {{1, 4}, {4, 9}, {9, 17}, {17, 33}, {33, STORM_ROWS + 1}};
  rung_ladder_options l = rung_ladder_options_default();
  l.large_bytes = 1;
  l.large_rungs = 3;
  CHECK_OK(rung_ladder_create(s->w.device, &b, range, RUNG_COUNT(range), &l, e, &s->ladder));
  return s->exact && s->entries && s->ladder;
}

static inline void storm_close(storm *s) {
  rung_ladder_destroy(s->ladder);
  rung_cache_destroy(s->entries);
  rung_cache_destroy(s->exact);
  rung_view_release(s->view);
  rung_weights_release(s->store);
  cache_close(&s->w);
}

/* One factor for all elements: a run sees one generation. */
static inline void storm_check(storm *s, const float *y, int64_t rows) {
  const float w = y[0] - (float)rows;
  bool good = w >= 1 && w <= 1000 && w == (float)(int)w;
  for (int64_t i = 0; i < rows * CACHE_WIDTH; i++) good = good && y[i] == y[0];
  if (!good) atomic_fetch_add(&s->wrong, 1);
}

static inline rung_status storm_run_program(rung_program *p, rung_view *view, int64_t rows, float *y,
                                            rung_error *error) {
  rung_context *c = NULL;
  const rung_tensor in = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {rows, CACHE_WIDTH}, .data = storm_ones};
  rung_tensor out = in;
  out.data = y;
  RUNG_TRY(rung_context_create(rung_program_template(p), view, NULL, NULL, error, &c));
  rung_status status = rung_context_use(c, p);
  if (!status) status = rung_context_bind_input(c, 0, &in);
  if (!status) status = rung_context_bind_output(c, 0, &out);
  if (!status) status = rung_context_run(c);
  if (status) rung_fail(error, status, "%s", rung_context_message(c));
  rung_context_destroy(c);
  return status;
}

static inline rung_status storm_exact(storm *s, uint64_t *random, float *y, rung_error *error) {
  const uint64_t key = 1 + (uint64_t)test_below(random, STORM_KEYS);
  const rung_build b = cache_build_of(&s->w, cache_build_exact);
  rung_program *p;
  RUNG_TRY(rung_cache_get_or_compile(s->exact, key, &b, error, &p));
  const rung_status status = storm_run_program(p, NULL, (int64_t)key, y, error);
  for (uint64_t i = 0; !status && i < key * CACHE_WIDTH; i++)
    if (y[i] != (float)key) atomic_fetch_add(&s->wrong, 1);
  rung_program_release(p);
  return status;
}

static inline rung_status storm_entry(storm *s, uint64_t *random, float *y, rung_error *error) {
  const int64_t key = 1 + test_below(random, STORM_KEYS), rows = 1 + test_below(random, key * 3);
  const rung_binding binding = {RUNG_SYMBOL_SEQ, key * 3};
  rung_program *p;
  RUNG_TRY(rung_cache_specialise(s->entries, (uint64_t)key, &binding, 1, error, &p));
  const rung_status status = storm_run_program(p, s->view, rows, y, error);
  if (!status) storm_check(s, y, rows);
  rung_program_release(p);
  return status;
}

static inline rung_status storm_rung(storm *s, uint64_t *random, float *y, rung_error *error) {
  const int64_t rows = 1 + test_below(random, STORM_ROWS);
  rung_io in = cache_io("x", rows, storm_ones), out = cache_io("y", STORM_ROWS, y);
  RUNG_TRY(rung_ladder_run(s->ladder, NULL, rows, &in, 1, &out, 1, error));
  if (out.tensor.extent[0] != rows) atomic_fetch_add(&s->wrong, 1);
  storm_check(s, y, rows);
  return RUNG_OK;
}

static inline rung_status storm_weights(storm *s, uint64_t *random, rung_error *error) {
  const float k = (float)(1 + test_below(random, 1000)), w[CACHE_WIDTH] = {k, k, k, k};
  rung_status status = rung_weights_set(s->store, "w", RUNG_TYPE_F32, w, sizeof w, error);
  return status ? status : rung_weights_commit(s->store, error);
}

static inline rung_status storm_disturb(storm *s, uint64_t *random, rung_error *error) {
  rung_cache *const all[] = {s->exact, s->entries, rung_ladder_cache(s->ladder)};
  rung_cache *cache = all[test_below(random, 3)];
  rung_cache_counters counters;
  char *text;
  size_t bytes;
  switch (test_below(random, 9)) {
    case 0:
      (void)rung_cache_evict(cache, 1 + (uint64_t)test_below(random, STORM_KEYS));
      break;
    case 1:
      rung_cache_note_bytes(cache, 1 + (uint64_t)test_below(random, STORM_KEYS), (uint64_t)test_below(random, 3 << 18));
      break;
    case 2:
      if (test_below(random, 8) == 0) rung_cache_clear(cache);
      break;
    case 3:
      rung_cache_get_counters(cache, &counters);
      break;
    case 4:
      RUNG_TRY(rung_cache_print(cache, error, &text, &bytes));
      rung_text_free(s->w.host, text, bytes);
      break;
    case 5:
      (void)rung_ladder_evict_one_except(s->ladder, test_below(random, 6) - 1);
      break;
    case 6:
      rung_ladder_evict_except(s->ladder, (size_t)test_below(random, 5));
      break;
    case 7:
      rung_ladder_trim(s->ladder);
      break;
    default:
      return storm_weights(s, random, error);
  }
  return RUNG_OK;
}

typedef struct storm_thread {
  rung_thread thread;
  storm *s;
  uint64_t seed;
  bool started;
} storm_thread;

static inline void storm_loop(void *self) {
  const storm_thread *t = (const storm_thread *)self;
  storm *s = t->s;
  uint64_t random = t->seed;
  static _Thread_local _Alignas(64) float y[STORM_ROWS * CACHE_WIDTH];
  while (rung_clock_ns() < s->until) {
    rung_error error = {0};
    const int64_t what = test_below(&random, 8);
    const rung_status status = what < 2   ? storm_exact(s, &random, y, &error)
                               : what < 4 ? storm_entry(s, &random, y, &error)
                               : what < 7 ? storm_rung(s, &random, y, &error)
                                          : storm_disturb(s, &random, &error);
    atomic_fetch_add(&s->done, 1);
    /* A cap that programs in use fill is an answer; so is a clear between the template and its program. */
    if (!status || status == RUNG_OVER_BUDGET) continue;
    if (atomic_fetch_add(&s->unexpected, 1) < 5) fprintf(stderr, "  %s: %s\n", rung_status_name(status), error.message);
  }
}

static inline void storm_run(double seconds) {
  static storm s;
  if (storm_open(&s)) {
    static storm_thread t[STORM_THREADS];
    s.until = rung_clock_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < STORM_THREADS; i++) {
      t[i] = (storm_thread){.s = &s, .seed = 77 + (uint64_t)i};
      t[i].started = !rung_thread_start(&t[i].thread, s.w.host, storm_loop, &t[i], NULL);
      CHECK(t[i].started);
    }
    for (int i = 0; i < STORM_THREADS; i++)
      if (t[i].started) rung_thread_join(&t[i].thread);
    CHECK(atomic_load(&s.done) > STORM_THREADS);
    CHECK_EQ_I64(atomic_load(&s.wrong), 0);
    CHECK_EQ_I64(atomic_load(&s.unexpected), 0);
    rung_cache *const all[] = {s.exact, s.entries, rung_ladder_cache(s.ladder)};
    for (int i = 0; i < 3; i++) {
      rung_cache_sync(all[i]);
      rung_cache_clear(all[i]);
      rung_cache_counters c;
      rung_cache_get_counters(all[i], &c);
      CHECK(c.programs == 0 && c.noted == 0 && c.entries == 0 && c.misses > 0);
      CHECK_EQ_I64(c.memory.activations + c.memory.scratch, 0);
    }
    printf("  %lld calls\n", (long long)atomic_load(&s.done));
  }
  storm_close(&s);
}

#endif
