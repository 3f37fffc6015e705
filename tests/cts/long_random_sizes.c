/* SPDX-License-Identifier: MIT
 * Ten thousand runs at random sizes on two threads: after a warm-up nothing is compiled, which the counters of the cache
 * say, and nothing grows, which the system says. A transformer with open batch and length, and a convolutional net with
 * open batch, height and width. */
#include <malloc.h>

#include "../process.h"
#include "cts/cache_world.h"
#include "cts/encoder_graph.h"

enum { RUNS = 10000, WARM = 500 };

static uint64_t resident(void) {
  malloc_trim(0); /* what the C library keeps of freed memory is not ours */
  return process_bytes("VmRSS");
}

typedef struct walk {
  cache_world w;
  rung_weights *store;
  rung_view *view;
  rung_cache *cache;
  rung_context *context;
  uint64_t before; /* bytes resident after the warm-up */
  rung_memory held;
} walk;

static bool open_walk(walk *a, rung_build_fn *fn, const void *self, rung_weights *store) {
  rung_error *e = &a->w.error;
  rung_build b = rung_build_default();
  b.fn = fn;
  b.self = (void *)(uintptr_t)self;
  a->store = store;
  rung_status s = store ? rung_view_create(store, e, &a->view) : RUNG_OK;
  b.view = a->view;
  if (!s) s = rung_cache_create_template(a->w.device, &b, NULL, e, &a->cache);
  CHECK_OK(s);
  return !s;
}
static void close_walk(walk *a) {
  rung_context_destroy(a->context);
  rung_cache_destroy(a->cache);
  rung_view_release(a->view);
  rung_weights_release(a->store);
  cache_close(&a->w);
}
static bool two_threads(walk *a) {
  memset(a, 0, sizeof *a);
  return cache_open_on(&a->w, "cpu", 2);
}

/* Asks the cache as a server would, for each run anew, and runs at the sizes of `x`. */
static bool run_at(walk *a, const rung_binding *ceiling, size_t count, const rung_tensor *x) {
  rung_error *e = &a->w.error;
  rung_program *p = NULL;
  rung_status s = rung_cache_specialise(a->cache, 1, ceiling, count, e, &p);
  if (!s && !a->context) s = rung_context_create(rung_program_template(p), a->view, NULL, NULL, e, &a->context);
  if (!s) s = rung_context_use(a->context, p);
  if (!s) s = rung_context_bind_input(a->context, 0, x);
  if (!s) s = rung_context_run(a->context);
  rung_program_release(p);
  CHECK_OK(s);
  return !s;
}

static void note(walk *a, int run) {
  if (run != WARM) return;
  a->before = resident();
  a->held = rung_context_memory(a->context);
}
static void check_flat(walk *a, const char *what) {
  rung_cache_counters n;
  rung_cache_get_counters(a->cache, &n);
  CHECK_EQ_I64(n.compiles[RUNG_COMPILE_FIRST], 1);
  CHECK_EQ_I64(n.compiles[RUNG_COMPILE_AGAIN] + n.compiles[RUNG_COMPILE_WARM], 0);
  CHECK_EQ_I64(n.builds, 1);
  CHECK_EQ_I64(n.misses, 1);
  CHECK_EQ_I64(n.hits, RUNS - 1);
  const rung_memory now = rung_context_memory(a->context);
  CHECK_EQ_I64(now.activations, a->held.activations);
  CHECK_EQ_I64(now.scratch, a->held.scratch);
  const int64_t grown = (int64_t)(resident() - a->before);
  CHECK(grown < 256 << 10);
  printf("%s: %d runs, 1 compile, %lld bytes more resident than after the first %d\n", what, RUNS, (long long)grown,
         WARM);
}

static void test_transformer(void) {
  static const encoder e = {2, 64, 4, 128, 8, 96};
  walk a;
  rung_weights *store = NULL;
  if (two_threads(&a)) CHECK_OK(encoder_store(a.w.host, &e, 3, &a.w.error, &store));
  if (store && open_walk(&a, encoder_build, &e, store)) {
    static _Alignas(64) float x[8 * 96 * 64];
    uint64_t random = 1;
    for (size_t i = 0; i < RUNG_COUNT(x); i++) x[i] = (float)test_below(&random, 200) * 0.01f - 1;
    const rung_binding ceiling[] = {{RUNG_SYMBOL_BATCH, e.batch}, {RUNG_SYMBOL_SEQ, e.seq}};
    bool good = true;
    for (int run = 0; run < RUNS && good; run++) {
      /* The largest comes once in the warm-up. */
      const int64_t batch = run ? 1 + test_below(&random, e.batch) : e.batch;
      const int64_t seq = run ? 1 + test_below(&random, e.seq) : e.seq;
      const rung_tensor in = {.type = RUNG_TYPE_F32, .rank = 3, .extent = {batch, seq, e.width}, .data = x};
      good = run_at(&a, ceiling, 2, &in);
      note(&a, run);
    }
    if (good) check_flat(&a, "transformer, batch 1 to 8, length 1 to 96");
    store = NULL;
  }
  rung_weights_release(store);
  close_walk(&a);
}

enum { PIXELS = 200, CHANNELS = 2 };

/* Two convolutions, the first one with a stride, and a relu between them; a mean over each image. */
static rung_status build_net(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  (void)self, (void)key, (void)error;
  const rung_dim batch = rung_graph_symbol(g, RUNG_SYMBOL_BATCH, 1, 2);
  const rung_dim shape[] = {batch, rung_graph_constant_dim(g, 1), rung_graph_symbol(g, "height", 30, PIXELS),
                            rung_graph_symbol(g, "width", 30, PIXELS)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 4, shape);
  rung_conv_options o = rung_conv_options_default();
  o.pad_before_count = o.pad_after_count = 2;
  o.pad_before[0] = o.pad_before[1] = o.pad_after[0] = o.pad_after[1] = 1;
  static const float first[CHANNELS * 9] = {0.1f,  0.2f, -0.1f, 0.3f, 0.5f, -0.2f, 0.1f,  0,    0.4f,
                                            -0.3f, 0.2f, 0.1f,  0,    0.6f, 0.2f,  -0.1f, 0.1f, 0.2f};
  static const float second[CHANNELS] = {0.5f, -0.25f};
  const rung_value w1 = rung_graph_constant(g, RUNG_TYPE_F32, 4, (const int64_t[]){CHANNELS, 1, 3, 3}, first);
  const rung_value w2 = rung_graph_constant(g, RUNG_TYPE_F32, 4, (const int64_t[]){1, CHANNELS, 1, 1}, second);
  o.stride_count = 2;
  o.stride[0] = o.stride[1] = 2;
  const rung_value h = rung_relu(g, rung_conv(g, x, w1, (rung_value){0, 0}, &o));
  o = rung_conv_options_default();
  const rung_value y = rung_conv(g, h, w2, (rung_value){0, 0}, &o);
  rung_graph_output(g, "y", y);
  rung_graph_output(g, "mean", rung_reduce_mean(g, y, 2, (const int64_t[]){2, 3}, false));
  return RUNG_OK;
}

static void test_net(void) {
  walk a;
  if (two_threads(&a) && open_walk(&a, build_net, NULL, NULL)) {
    static _Alignas(64) float x[2 * PIXELS * PIXELS];
    uint64_t random = 2;
    for (size_t i = 0; i < RUNG_COUNT(x); i++) x[i] = (float)test_below(&random, 256) / 255;
    const rung_binding ceiling[] = {{RUNG_SYMBOL_BATCH, 2}, {"height", PIXELS}, {"width", PIXELS}};
    bool good = true;
    for (int run = 0; run < RUNS && good; run++) {
      const int64_t height = run ? 30 + test_below(&random, PIXELS - 29) : PIXELS;
      const int64_t width = run ? 30 + test_below(&random, PIXELS - 29) : PIXELS, batch = run ? 1 + run % 2 : 2;
      const rung_tensor in = {.type = RUNG_TYPE_F32, .rank = 4, .extent = {batch, 1, height, width}, .data = x};
      good = run_at(&a, ceiling, 3, &in);
      note(&a, run);
      rung_tensor y = {0};
      if (!good || run % 1000) continue;
      CHECK_OK(rung_context_output(a.context, 0, &y));
      CHECK(y.extent[0] == batch && y.extent[2] == (height - 1) / 2 + 1 && y.extent[3] == (width - 1) / 2 + 1);
    }
    if (good) check_flat(&a, "convolutional net, batch 1 and 2, height and width 30 to 200");
  }
  close_walk(&a);
}

int main(void) {
  RUN(test_transformer);
  RUN(test_net);
  return TEST_END();
}
