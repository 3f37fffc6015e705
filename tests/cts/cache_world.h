/* SPDX-License-Identifier: MIT
 * Caches with builders that count, for tests of exact caches, template entries and ladders. */
#ifndef RUNG_TESTS_CTS_CACHE_WORLD_H
#define RUNG_TESTS_CTS_CACHE_WORLD_H

#include <rung/cache.h>
#include <rung/ops.h>
#include <stdatomic.h>

#include "../test.h"
#include "runtime/cache/ladder.h"
#include "runtime/runtime.h"

enum { CACHE_WIDTH = 4 };

typedef struct cache_world {
  rung_host *host;
  rung_device *device;
  rung_error error;
  atomic_int built;  /* calls of the builder */
  rung_status fails; /* what the builder gives */
} cache_world;

/* threads: 0 for the device's own choice. */
static inline bool cache_open_on(cache_world *w, const char *device, int threads) {
  *w = (cache_world){0};
  rung_device_options o = rung_device_options_default();
  o.threads = threads;
  rung_status s = rung_host_create(NULL, &w->error, &w->host);
  if (!s) s = rung_device_create(w->host, device, &o, &w->error, &w->device);
  CHECK_OK(s);
  return !s;
}
static inline bool cache_open(cache_world *w, const char *device) { return cache_open_on(w, device, 0); }

static inline void cache_close(cache_world *w) {
  rung_device_release(w->device);
  if (w->host) {
    const rung_memory m = rung_host_memory(w->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(w->host);
}

/* y = x * 2 + seq, x [seq, 4]: what a row gives depends on how many there are, so that a wrong extent shows. */
static inline rung_status cache_build_open(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  cache_world *w = (cache_world *)self;
  (void)key;
  atomic_fetch_add(&w->built, 1);
  if (w->fails) {
    if (error) {
      error->status = w->fails;
      snprintf(error->message, sizeof error->message, "no graph today");
    }
    return w->fails;
  }
  const rung_dim extent[] = {rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 0, 1 << 20),
                             rung_graph_constant_dim(g, CACHE_WIDTH)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  const rung_value ones = rung_sign(g, rung_add(g, rung_abs(g, x), rung_graph_scalar(g, RUNG_TYPE_F32, 1)));
  const rung_value rows = rung_reduce_sum(g, ones, 1, (const int64_t[]){0}, true);
  rung_graph_output(g, "y", rung_add(g, rung_mul(g, x, rung_graph_scalar(g, RUNG_TYPE_F32, 2)), rows));
  return RUNG_OK;
}

/* y = x * key, x [key, 4]: a graph of its own for every key. */
static inline rung_status cache_build_exact(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  cache_world *w = (cache_world *)self;
  (void)error;
  atomic_fetch_add(&w->built, 1);
  if (w->fails) return w->fails;
  const rung_dim extent[] = {rung_graph_constant_dim(g, (int64_t)key), rung_graph_constant_dim(g, CACHE_WIDTH)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  rung_graph_output(g, "y", rung_mul(g, x, rung_graph_scalar(g, RUNG_TYPE_F32, (double)key)));
  return RUNG_OK;
}

static inline rung_build cache_build_of(cache_world *w, rung_build_fn *fn) {
  rung_build b = rung_build_default();
  b.fn = fn;
  b.self = w;
  return b;
}

static inline rung_io cache_io(const char *name, int64_t rows, float *data) {
  return (rung_io){.name = name,
                   .tensor = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {rows, CACHE_WIDTH}, .data = data}};
}

/* A program of cache_build_exact, run once on ones. */
static inline void cache_check_exact(cache_world *w, rung_program *program, int64_t key) {
  rung_context *c = NULL;
  void *x;
  rung_tensor y = {0};
  rung_status s = rung_context_create(rung_program_template(program), NULL, NULL, NULL, &w->error, &c);
  if (!s) s = rung_context_use(c, program);
  if (!s) s = rung_context_input(c, 0, (const int64_t[]){key, CACHE_WIDTH}, &x);
  for (int64_t i = 0; !s && i < key * CACHE_WIDTH; i++) ((float *)x)[i] = 1;
  if (!s) s = rung_context_run(c);
  if (!s) s = rung_context_output(c, 0, &y);
  CHECK_OK(s);
  CHECK(!s && y.extent[0] == key);
  for (int64_t i = 0; !s && i < key * CACHE_WIDTH; i++) CHECK(((float *)y.data)[i] == (float)key);
  rung_context_destroy(c);
}

#endif
