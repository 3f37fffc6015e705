/* SPDX-License-Identifier: MIT
 * Sizes that change on the CUDA device, 1 to 512 rows in random order: after warming, nothing is compiled, nothing is
 * captured, no memory is taken beyond what the reports say; rungs are evicted under a cap of bytes; a window of keys and
 * values that goes round, and a change of rung, copy no byte. On a GPU results are compared with the cpu device's and the
 * time of a size with that of a program made for it alone (printed); elsewhere on the false driver, without numbers. */
#define _GNU_SOURCE
#include <math.h>
#include <rung/cache.h>

#include "base/clock.h"
#include "cts/world.h"
#include "device/fake_world.h"
#include "runtime/cache/ladder.h"

enum { WIDTH = 64, FEED = 160, LAYERS = 2, MOST = 512, CAPACITY = 2048, LONG = 1 << 16, WINDOW = 100, IN_X = 3 };

static bool real;
static int64_t capacity = CAPACITY; /* of states that are made */

typedef struct weight {
  const char *name;
  int rank;
  int64_t extent[2];
} weight;
static const weight layer_weights[] = {
    {"norm", 1, {WIDTH}},       {"q", 2, {WIDTH, WIDTH}}, {"k", 2, {WIDTH, 32}},
    {"v", 2, {WIDTH, 32}},      {"o", 2, {WIDTH, WIDTH}}, {"norm2", 1, {WIDTH}},
    {"gate", 2, {WIDTH, FEED}}, {"up", 2, {WIDTH, FEED}}, {"down", 2, {FEED, WIDTH}}};

/* Layers as language models have them; the second one's keys and values are kept for a window. */
static const char *text_of(void) {
  static char text[8000];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "rung 1\nsymbol rows 0..%d\nsymbol sequences 0..1\n"
                               "%%offsets = input {name=\"offsets\"} : i32[sequences+1]\n"
                               "%%slot = input {name=\"slot\"} : i32[sequences]\n"
                               "%%past = input {name=\"past\"} : i32[sequences]\n"
                               "%%x0 = input {name=\"x\"} : f32[rows,%d]\n"
                               "%%at = positions %%offsets, %%past {rows=rows}\n",
                               MOST, WIDTH);
  for (int i = 0; i < LAYERS; i++) {
    char window[24] = "", limit[24] = "";
    if (i) snprintf(window, sizeof window, ", window=%d", WINDOW), snprintf(limit, sizeof limit, "{window=%d}", WINDOW);
    for (size_t w = 0; w < RUNG_COUNT(layer_weights); w++) {
      const weight *l = &layer_weights[w];
      at += (size_t)snprintf(text + at, sizeof text - at,
                             l->rank == 1 ? "%%%s%d = weight {name=\"%s%d\"} : f32[%d]\n"
                                          : "%%%s%d = weight {name=\"%s%d\"} : f32[%d,%d]\n",
                             l->name, i, l->name, i, (int)l->extent[0], (int)l->extent[1]);
    }
    at += (size_t)snprintf(
        text + at, sizeof text - at,
        "%%n%d = rms_norm %%x%d, %%norm%d\n"
        "%%qm%d = matmul %%n%d, %%q%d\n%%km%d = matmul %%n%d, %%k%d\n%%vm%d = matmul %%n%d, %%v%d\n"
        "%%qh%d = reshape %%qm%d {shape=[rows,2,32]}\n%%kh%d = reshape %%km%d {shape=[rows,1,32]}\n"
        "%%vh%d = reshape %%vm%d {shape=[rows,1,32]}\n"
        "%%qr%d = rope %%qh%d, %%at {base=10000}\n%%kr%d = rope %%kh%d, %%at {base=10000}\n"
        "%%s%d = state {name=\"kv%d\"%s} : kv f16[1,32,32]\n"
        "%%t%d = append %%s%d, %%kr%d, %%vh%d, %%offsets, %%slot, %%past\n"
        "%%a%d = attention_kv %%qr%d, %%t%d, %%offsets, %%slot, %%past %s\n"
        "%%am%d = reshape %%a%d {shape=[rows,%d]}\n%%om%d = matmul %%am%d, %%o%d\n%%r%d = add %%x%d, %%om%d\n"
        "%%m%d = rms_norm %%r%d, %%norm2%d\n%%g%d = matmul %%m%d, %%gate%d\n%%u%d = matmul %%m%d, %%up%d\n"
        "%%si%d = silu %%g%d\n%%gu%d = mul %%si%d, %%u%d\n%%d%d = matmul %%gu%d, %%down%d\n%%x%d = add %%r%d, %%d%d\n",
        i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, window, i, i, i, i, i, i, i, limit, i,
        i, WIDTH, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
  }
  snprintf(text + at, sizeof text - at, "output \"y\" %%x%d\n", LAYERS);
  return text;
}

/* ---- a device with the graph, its weights, a ladder over rows, a context with a state */

typedef struct side {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_weights *weights;
  rung_view *view;
  rung_ladder *ladder;
  rung_template *template_;
  rung_state *state;
  rung_context *context;
  uint64_t set_bytes; /* of weights, here */
  rung_error error;
} side;

static rung_status fill_weights(side *s) {
  static float value[FEED * WIDTH];
  uint64_t random = 77;
  RUNG_TRY(rung_weights_create(s->host, &s->error, &s->weights));
  for (int i = 0; i < LAYERS; i++)
    for (size_t w = 0; w < RUNG_COUNT(layer_weights); w++) {
      const weight *l = &layer_weights[w];
      char name[16];
      snprintf(name, sizeof name, "%s%d", l->name, i);
      const int64_t n = l->extent[0] * (l->rank > 1 ? l->extent[1] : 1);
      const float spread = l->rank > 1 ? 1.7F / sqrtf((float)l->extent[0]) : 0.3F;
      for (int64_t e = 0; e < n; e++) value[e] = (l->rank > 1 ? 0.0F : 1.0F) + test_uniform(&random, -spread, spread);
      RUNG_TRY(rung_weights_declare(s->weights, name, RUNG_TYPE_F32, l->rank, l->extent, &s->error));
      s->set_bytes += (uint64_t)n * 4;
      RUNG_TRY(rung_weights_set(s->weights, name, RUNG_TYPE_F32, value, (uint64_t)n * 4, &s->error));
    }
  return rung_weights_commit(s->weights, &s->error);
}

static rung_status add_context(side *s, rung_state **state, rung_context **context) {
  rung_state_options so = rung_state_options_default();
  so.sequences = 1;
  so.capacity = capacity;
  so.chunk = MOST;
  RUNG_TRY(rung_state_create(s->template_, &so, &s->error, state));
  return rung_context_create(s->template_, s->view, *state, NULL, &s->error, context);
}

static bool open_side(side *s, const char *device, uint64_t cap) {
  const char *text = text_of();
  rung_range range[RUNG_MAX_RANGES];
  size_t ranges = 0;
  rung_ladder_options lo = rung_ladder_options_default();
  lo.symbol = "rows";
  lo.bytes = cap;
  rung_build build = rung_build_default();
  *s = (side){0};
  rung_status status = rung_host_create(NULL, &s->error, &s->host);
  if (!status) status = rung_device_create(s->host, device, NULL, &s->error, &s->device);
  if (!status) status = rung_graph_parse(s->host, text, strlen(text), &s->error, &s->graph);
  if (!status) status = fill_weights(s);
  if (!status) status = rung_view_create(s->weights, &s->error, &s->view);
  if (!status) status = rung_ranges_power_of_two(1, MOST, &s->error, range, &ranges);
  build.graph = s->graph;
  build.view = s->view;
  if (!status) status = rung_ladder_create(s->device, &build, range, ranges, &lo, &s->error, &s->ladder);
  if (!status) status = rung_ladder_template(s->ladder, &s->error, &s->template_);
  if (!status) status = add_context(s, &s->state, &s->context);
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", device, s->error.message);
  return !status;
}

static void close_side(side *s) {
  rung_context_destroy(s->context);
  rung_state_release(s->state);
  rung_template_release(s->template_);
  rung_ladder_destroy(s->ladder);
  rung_view_release(s->view);
  rung_weights_release(s->weights);
  rung_graph_destroy(s->graph);
  rung_device_release(s->device);
  if (s->host) {
    const rung_memory m = rung_host_memory(s->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(s->host);
  if (!real) fake_check("a ladder");
}

static rung_device_counters counters(const side *s) {
  rung_device_counters c;
  rung_device_get_counters(s->device, &c);
  return c;
}

static void fill_rows(float *x, int64_t position, int64_t rows) {
  for (int64_t r = 0; r < rows; r++) {
    uint64_t random = 1 + (uint64_t)(position + r) * 7919;
    for (int e = 0; e < WIDTH; e++) x[r * WIDTH + e] = test_uniform(&random, -1, 1);
  }
}

/* Binds and runs with the program that the context has; NULL where that failed. */
static const float *run_bound(side *s, rung_context *context, const rung_state *state, int32_t rows) {
  const rung_rows one = {0, rows};
  void *x = NULL;
  rung_tensor y = {0};
  rung_status status = rung_context_set_rows(context, &one, 1);
  if (!status) status = rung_context_input(context, IN_X, (int64_t[]){rows, WIDTH}, &x);
  if (!status) fill_rows(x, rung_state_length(state, 0), rows);
  if (!status) status = rung_context_run(context);
  if (!status) status = rung_context_output(context, 0, &y);
  test_state.checks++;
  if (status) TEST_FAIL_("%d rows: %s", rows, rung_context_message(context));
  (void)s;
  return status ? NULL : y.data;
}

static const float *run_side(side *s, int32_t rows) {
  const rung_status status = rung_ladder_use(s->ladder, s->context, rows, &s->error);
  test_state.checks++;
  if (status) TEST_FAIL_("%d rows: %s", rows, s->error.message);
  return status ? NULL : run_bound(s, s->context, s->state, rows);
}

/* Empties the sequence where it would not hold the next rows. */
static void make_room(side *s, int32_t rows) {
  if (rung_state_length(s->state, 0) + rows > CAPACITY) CHECK_OK(rung_state_truncate(s->state, 0, 0, &s->error));
}

/* f32 products of width 64 and 160 over two layers, keys and values rounded to f16 on both sides: what is rounded
 * differently there is 2^-11 of a key, rarely. */
static void compare(const float *a, const float *b, int32_t rows) {
  double off = 0, all = 0;
  for (int64_t i = 0; a && b && i < (int64_t)rows * WIDTH; i++) {
    off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    all += (double)b[i] * (double)b[i];
  }
  test_state.checks++;
  if (!(off <= 0x1p-22 * all)) TEST_FAIL_("%d rows: %g apart", rows, sqrt(off / all));
}

static void shuffled(int32_t *size, uint64_t *random) {
  for (int32_t i = 0; i < MOST; i++) size[i] = i + 1;
  for (int32_t i = MOST - 1; i > 0; i--) {
    const int64_t k = test_below(random, i + 1);
    const int32_t swap = size[i];
    size[i] = size[k];
    size[k] = swap;
  }
}

/* ---- the tests */

static void test_sizes(void) {
  side s, cpu;
  int32_t size[MOST];
  uint64_t random = 5;
  const bool there = open_side(&s, "cuda", 0), both = open_side(&cpu, "cpu", 0) && there;
  if (both) {
    CHECK_OK(rung_ladder_warm(s.ladder, NULL, 0, &s.error));
    const rung_device_counters warm = counters(&s);
    CHECK(warm.compiles > 0);
    rung_device_counters before = warm;
    for (int pass = 0; pass < 5; pass++) {
      shuffled(size, &random);
      if (pass == 3) before = counters(&s); /* behind it every size was met three times */
      for (int i = 0; i < MOST; i++) {
        make_room(&s, size[i]);
        run_side(&s, size[i]);
        if (!real || i % (pass ? 37 : 7)) continue;
        CHECK_OK(rung_state_truncate(s.state, 0, 0, &s.error));
        CHECK_OK(rung_state_truncate(cpu.state, 0, 0, &cpu.error));
        const float *y = run_side(&s, size[i]);
        compare(y, run_side(&cpu, size[i]), size[i]);
      }
    }
    const rung_device_counters after = counters(&s);
    CHECK_EQ_I64(after.compiles, warm.compiles);
    CHECK_EQ_I64(after.modules, warm.modules);
    CHECK_EQ_I64(after.host_steps, 0);
    CHECK_EQ_I64(after.allocations, before.allocations);
    CHECK_EQ_I64(after.buffers, before.buffers);
    CHECK_EQ_I64(after.pages, before.pages);
    CHECK_EQ_I64(after.on_device, 0);
    CHECK_EQ_I64(rung_state_moved(s.state), 0);
    printf("captures while warming %d, behind it %d; patches %d, replays %d, launches %d\n", (int)before.captures,
           (int)(after.captures - before.captures), (int)(after.patches - before.patches),
           (int)(after.replays - before.replays), (int)(after.launches - before.launches));
    /* Captures that serve a range of sizes are changed, not made again. */
    if (after.patches) CHECK_EQ_I64(after.captures, before.captures);
  }
  close_side(&s);
  close_side(&cpu);
}

/* What a fresh context takes at a size is what the program's report says, page by page. */
static void test_memory(void) {
  static const int32_t sizes[] = {1, 2, 7, 64, 100, 300, 512};
  side s;
  if (open_side(&s, "cuda", 0)) {
    CHECK_OK(rung_ladder_warm(s.ladder, NULL, 0, &s.error));
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
      rung_state *state = NULL;
      rung_context *context = NULL;
      rung_program *program = NULL;
      const rung_device_counters before = counters(&s);
      CHECK_OK(add_context(&s, &state, &context));
      CHECK_OK(rung_ladder_get(s.ladder, sizes[i], &s.error, &program));
      CHECK_OK(rung_context_use(context, program));
      run_bound(&s, context, state, sizes[i]);
      const rung_device_counters after = counters(&s);
      const int64_t length = sizes[i];
      const rung_lengths lengths = {.sequences = 1, .length = &length, .capacity = CAPACITY, .chunk = MOST};
      const rung_binding rows[] = {{"rows", sizes[i]}, {"sequences", 1}};
      rung_memory m = {0};
      CHECK_OK(rung_program_memory(program, rows, 2, &lengths, &s.error, &m));
      CHECK_EQ_I64(after.pages - before.pages, m.activations + m.scratch + m.state);
      /* Beside them a context has one block of words for its kernels. */
      CHECK(after.buffers - before.buffers <= (i ? 0 : 4096));
      rung_context_destroy(context);
      rung_state_release(state);
      rung_program_release(program);
      CHECK_EQ_I64(counters(&s).pages, before.pages);
      CHECK_EQ_I64(counters(&s).buffers, after.buffers); /* the words wait for the next context */
    }
    /* Weights, forms and constants are all in the account, where values that were set are, too: those are here. */
    const rung_memory held = rung_host_memory(s.host);
    CHECK_EQ_I64(counters(&s).buffers - 4096, held.packed + held.weights - s.set_bytes);
  }
  close_side(&s);
}

/* Rungs come and go under a cap that holds few of them. Planning again compiles no kernel: the device keeps them. */
static void test_eviction(void) {
  side s;
  uint64_t random = 9, most = 0;
  if (open_side(&s, "cuda", 0)) {
    CHECK_OK(rung_ladder_warm(s.ladder, NULL, 0, &s.error));
    rung_cache_counters all;
    rung_cache_get_counters(rung_ladder_cache(s.ladder), &all);
    most = all.programs;
  }
  close_side(&s);
  if (open_side(&s, "cuda", most / 3)) {
    for (int i = 0; i < 10; i++) run_side(&s, 1 << i);
    const rung_device_counters before = counters(&s);
    for (int i = 0; i < 100; i++) {
      const int32_t rows = (int32_t)(1 + test_below(&random, MOST));
      make_room(&s, rows);
      run_side(&s, rows);
      rung_cache_counters c;
      rung_cache_get_counters(rung_ladder_cache(s.ladder), &c);
      CHECK(c.programs <= most / 3);
    }
    rung_cache_counters c;
    rung_cache_get_counters(rung_ladder_cache(s.ladder), &c);
    printf("%d evictions under %d of %d bytes\n", (int)c.evictions, (int)(most / 3), (int)most);
    CHECK(c.evictions > 10);
    CHECK_EQ_I64(counters(&s).compiles, before.compiles);
    rung_ladder_clear(s.ladder);
  }
  close_side(&s);
}

/* A window's blocks are used again in a ring, and the others' addresses are there already: lengths grow by mapping. */
static void test_rollover(void) {
  side s, cpu;
  capacity = LONG;
  const bool there = open_side(&s, "cuda", 0), both = open_side(&cpu, "cpu", 0) && there;
  capacity = CAPACITY;
  if (both) {
    int64_t position = 0;
    uint64_t pages = 0, grown = 0;
    for (int i = 0; position + MOST <= LONG; i++) {
      const bool longer = position > 1000;
      const int32_t rows = longer ? MOST : i % 7 == 3 ? 40 : i % 7 + 1;
      const float *a = run_side(&s, rows), *b = longer ? NULL : run_side(&cpu, rows);
      if (real && !longer) compare(a, b, rows);
      grown += counters(&s).pages > pages;
      pages = counters(&s).pages;
      position += rows;
    }
    CHECK_EQ_I64(rung_state_length(s.state, 0), position);
    CHECK(rung_state_held(s.state, 0) > 0 && position - rung_state_held(s.state, 0) <= WINDOW + 2 * MOST); /* round */
    CHECK(grown >= 4);
    CHECK_EQ_I64(counters(&s).on_device, 0);
    CHECK_EQ_I64(rung_state_moved(s.state), 0);
    printf("%d positions, memory grew %d times\n", (int)position, (int)grown);
  }
  close_side(&s);
  close_side(&cpu);
}

/* ---- what a size costs in a program for all of them, by one that was made for it */

static double run_time(side *s, rung_context *context, rung_state *state, int32_t rows) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 40; i++) {
    CHECK_OK(rung_state_truncate(state, 0, 0, &s->error));
    const uint64_t from = rung_clock_ns();
    run_bound(s, context, state, rows);
    const uint64_t took = rung_clock_ns() - from;
    if (i > 4 && took < best) best = took;
  }
  return (double)best * 1e-3;
}

static void test_cost(void) {
  static const int32_t sizes[] = {1, 7, 37, 100, 300, 500};
  side s;
  if (!real) SKIP("no GPU to time");
  if (open_side(&s, "cuda", 0))
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
      const int64_t n = sizes[i];
      double took[2] = {0, 0};
      for (int exact = 0; exact < 2; exact++) {
        rung_state *state = NULL;
        rung_context *context = NULL;
        rung_program *program = NULL;
        const rung_binding ceiling = {"rows", exact ? n : MOST};
        CHECK_OK(add_context(&s, &state, &context));
        CHECK_OK(rung_program_create(s.template_, &ceiling, 1, &s.error, &program));
        CHECK_OK(rung_context_use(context, program));
        took[exact] = run_time(&s, context, state, sizes[i]);
        rung_context_destroy(context);
        rung_state_release(state);
        rung_program_release(program);
      }
      printf("%d rows: %.1f us in a program for %d, %.1f us in one for %d: ratio %.3f\n", sizes[i], took[0], MOST,
             took[1], sizes[i], took[0] / took[1]);
    }
  close_side(&s);
}

int main(void) {
  real = fake_unless_real();
  RUN(test_sizes);
  RUN(test_memory);
  RUN(test_eviction);
  RUN(test_rollover);
  RUN(test_cost);
  return TEST_END();
}
