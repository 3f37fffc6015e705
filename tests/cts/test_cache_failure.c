/* SPDX-License-Identifier: MIT
 * Caches with the n-th allocation or commit failing, for every n: a status with a message each time, the same calls on
 * the same objects succeed next, and nothing is held at the end. */
#include "../held.h"
#include "cts/cache_threads.h"

typedef struct objects {
  rung_cache *exact, *entries;
  rung_ladder *ladder;
  rung_weights *store;
  rung_view *view;
} objects;

static rung_status make_store(rung_host *host, objects *o, rung_error *error) {
  const float w[CACHE_WIDTH] = {3, 3, 3, 3};
  if (o->view) return RUNG_OK;
  rung_weights_release(o->store);
  o->store = NULL;
  RUNG_TRY(rung_weights_create(host, error, &o->store));
  RUNG_TRY(rung_weights_declare(o->store, "w", RUNG_TYPE_F32, 1, (const int64_t[]){CACHE_WIDTH}, error));
  RUNG_TRY(rung_weights_set(o->store, "w", RUNG_TYPE_F32, w, sizeof w, error));
  RUNG_TRY(rung_weights_commit(o->store, error));
  return rung_view_create(o->store, error, &o->view);
}

static rung_status make_caches(cache_world *w, objects *o, rung_error *error) {
  rung_cache_options c = rung_cache_options_default();
  c.entries = 2;
  if (!o->exact) RUNG_TRY(rung_cache_create(w->device, &c, error, &o->exact));
  rung_build b = rung_build_default();
  b.fn = storm_build;
  b.view = o->view;
  if (!o->entries) RUNG_TRY(rung_cache_create_template(w->device, &b, &c, error, &o->entries));
  static const rung_range range[] = {{1, 9}, {9, STORM_ROWS + 1}};
  rung_ladder_options l = rung_ladder_options_default();
  l.large_bytes = 1;
  l.large_rungs = 1;
  return o->ladder ? RUNG_OK : rung_ladder_create(w->device, &b, range, 2, &l, error, &o->ladder);
}

static rung_status check_rows(const float *y, int64_t rows, rung_error *error) {
  for (int64_t i = 0; i < rows * CACHE_WIDTH; i++)
    if (y[i] != 3 + (float)rows) return rung_fail(error, RUNG_INTERNAL, "wrong result");
  return RUNG_OK;
}

static rung_status use_all(cache_world *w, objects *o, rung_error *error) {
  static _Alignas(64) float y[STORM_ROWS * CACHE_WIDTH];
  rung_program *p;
  for (uint64_t key = 1; key < 4; key++) {
    const rung_build b = cache_build_of(w, cache_build_exact);
    RUNG_TRY(rung_cache_get_or_compile(o->exact, key, &b, error, &p));
    const rung_status status = storm_run_program(p, NULL, (int64_t)key, y, error);
    rung_program_release(p);
    RUNG_TRY(status);
  }
  for (int64_t rows = 5; rows < 8; rows++) {
    const rung_io in = cache_io("x", rows, storm_ones);
    RUNG_TRY(rung_cache_specialise_for(o->entries, (uint64_t)rows, &in, 1, error, &p));
    const rung_status status = storm_run_program(p, o->view, rows, y, error);
    rung_program_release(p);
    RUNG_TRY(status);
    RUNG_TRY(check_rows(y, rows, error));
  }
  for (int64_t rows = 7; rows < 12; rows += 2) {
    rung_io in = cache_io("x", STORM_ROWS, storm_ones), out = cache_io("y", STORM_ROWS, y);
    in.ceiling = out.ceiling = true;
    in.tensor.data = storm_ones + 1; /* at an odd address: gathered */
    RUNG_TRY(rung_ladder_run(o->ladder, NULL, rows, &in, 1, &out, 1, error));
    RUNG_TRY(check_rows(y, rows, error));
  }
  char *text;
  size_t bytes, length;
  void *padded;
  RUNG_TRY(rung_cache_print(o->exact, error, &text, &bytes));
  rung_text_free(w->host, text, bytes);
  RUNG_TRY(rung_pad_rows(w->host, storm_ones, 8, 4, 4, 5, error, &padded, &length));
  rung_rows_free(w->host, padded, length, 4);
  rung_cache_clear(o->entries);
  return rung_ladder_warm(o->ladder, NULL, 0, error);
}

static rung_status scenario(cache_world *w, objects *o, rung_error *error) {
  RUNG_TRY(make_store(w->host, o, error));
  RUNG_TRY(make_caches(w, o, error));
  return use_all(w, o, error);
}

static void drop(objects *o) {
  rung_ladder_destroy(o->ladder);
  rung_cache_destroy(o->entries);
  rung_cache_destroy(o->exact);
  rung_view_release(o->view);
  rung_weights_release(o->store);
  *o = (objects){0};
}

static void fail_each(rung_fault kind, int64_t least) {
  cache_world w;
  if (!cache_open(&w, "cpu")) return;
  for (size_t i = 0; i < RUNG_COUNT(storm_ones); i++) storm_ones[i] = 1;
  const uint64_t before = held(w.host);
  int64_t total = 0;
  for (int64_t n = 0; n <= total; n++) {
    objects o = {0};
    rung_error error = {0};
    test_fault f = {.kind = kind, .at = n};
    rung_host_set_fault(w.host, test_fault_hit, &f);
    const rung_status status = scenario(&w, &o, &error);
    if (!n) total = f.count[kind];
    rung_host_set_fault(w.host, NULL, NULL);
    if (f.hit) {
      CHECK(status != RUNG_OK && error.message[0] != 0);
      CHECK(status == RUNG_OUT_OF_MEMORY);
      if (status != RUNG_OUT_OF_MEMORY)
        fprintf(stderr, "  %" PRId64 ": %s: %s\n", n, rung_status_name(status), error.message);
      CHECK_OK(scenario(&w, &o, &error));
    } else {
      CHECK_OK(status);
      if (status) fprintf(stderr, "  %" PRId64 ": %s\n", n, error.message);
    }
    drop(&o);
    CHECK_EQ_I64(held(w.host), before);
  }
  CHECK(total >= least);
  cache_close(&w);
}

static void test_allocations(void) { fail_each(RUNG_FAULT_ALLOC, 300); }
static void test_commits(void) { fail_each(RUNG_FAULT_COMMIT, 3); }

int main(void) {
  RUN(test_allocations);
  RUN(test_commits);
  return TEST_END();
}
