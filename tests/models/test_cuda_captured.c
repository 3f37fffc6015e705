/* SPDX-License-Identifier: MIT
 * Captured graphs on the CUDA device: the same bits as plain launches, for every size of a ladder in any order, any
 * buffers and generation of the weights; nothing is captured or compiled once a ladder is warm. Skipped where there is
 * no GPU. */
#define _POSIX_C_SOURCE 200809L
#include <rung/cache.h>
#include <rung/ops.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/run.h"
#include "cuda_device.h"
#include "runtime/runtime.h"
#include "tiny_world.h"

enum { WIDTH = 64, LAYERS = 4, SIZES = 512, MEMBERS = 2 * LAYERS };

/* ---- a ladder of small networks */

typedef struct side {
  rung_host *host;
  rung_device *device;
  rung_weights *weights;
  rung_view *view;
  rung_ladder *ladder;
  rung_error error;
} side;

static const rung_cuda *cuda_of(const rung_device *device) { return device->self; }

static float number(int64_t i) { return (float)((i * 2654435761 % 2003) - 1001) * 1e-3f; }

static rung_status build(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  (void)self, (void)key, (void)error;
  const rung_dim extent[] = {rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 0, SIZES), rung_graph_constant_dim(g, WIDTH)};
  rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  const rung_value scale = rung_graph_weight(g, "scale", RUNG_TYPE_F32, 1, (int64_t[]){WIDTH});
  for (int l = 0; l < LAYERS; l++) {
    rung_value w[2];
    for (int i = 0; i < 2; i++) {
      char name[16];
      snprintf(name, sizeof name, "w%d", 2 * l + i);
      w[i] = rung_graph_weight(g, name, RUNG_TYPE_F16, 2, (int64_t[]){WIDTH, WIDTH});
    }
    const rung_value h = rung_gelu(g, rung_matmul(g, rung_rms_norm(g, x, scale, 1e-6), w[0], true, RUNG_TYPE_F32));
    x = rung_add(g, x, rung_matmul(g, h, w[1], true, RUNG_TYPE_F32));
  }
  rung_graph_output(g, "y", rung_softmax(g, x, -1));
  return RUNG_OK;
}

static rung_status set_weights(side *s, int64_t seed) {
  static float data[WIDTH * WIDTH];
  rung_status status = RUNG_OK;
  for (int i = 0; i <= MEMBERS && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, i < MEMBERS ? "w%d" : "scale", i);
    const int64_t n = i < MEMBERS ? WIDTH * WIDTH : WIDTH;
    for (int64_t k = 0; k < n; k++) data[k] = number(k + seed + 7919 * i);
    status = rung_weights_set(s->weights, name, RUNG_TYPE_F32, data, (uint64_t)n * sizeof *data, &s->error);
  }
  return status ? status : rung_weights_commit(s->weights, &s->error);
}

static rung_status make_weights(side *s) {
  rung_status status = rung_weights_create(s->host, &s->error, &s->weights);
  for (int i = 0; i <= MEMBERS && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, i < MEMBERS ? "w%d" : "scale", i);
    const int64_t extent[2] = {WIDTH, WIDTH};
    status = rung_weights_declare(s->weights, name, i < MEMBERS ? RUNG_TYPE_F16 : RUNG_TYPE_F32, i < MEMBERS ? 2 : 1,
                                  extent, &s->error);
  }
  return status ? status : set_weights(s, 1);
}

static bool open_side(side *s, const char *graphs) {
  *s = (side){0};
  setenv("RUNG_CUDA_GRAPHS", graphs, 1);
  rung_status status = rung_host_create(NULL, &s->error, &s->host);
  if (!status) status = rung_device_create(s->host, "cuda", NULL, &s->error, &s->device);
  unsetenv("RUNG_CUDA_GRAPHS");
  if (!status) status = make_weights(s);
  if (!status) status = rung_view_create(s->weights, &s->error, &s->view);
  rung_range range[RUNG_MAX_RANGES];
  size_t ranges = 0;
  if (!status) status = rung_ranges_power_of_two(1, SIZES, &s->error, range, &ranges);
  rung_build b = rung_build_default();
  b.fn = build;
  b.view = s->view;
  rung_ladder_options o = rung_ladder_options_default();
  o.keep_all = true;
  if (!status) status = rung_ladder_create(s->device, &b, range, ranges, &o, &s->error, &s->ladder);
  if (!status) status = rung_ladder_warm(s->ladder, NULL, 0, &s->error);
  CHECK_OK(status);
  if (status) fprintf(stderr, "  %s\n", s->error.message);
  return !status;
}

static void close_side(side *s) {
  rung_ladder_destroy(s->ladder);
  rung_view_release(s->view);
  rung_weights_release(s->weights);
  rung_device_release(s->device);
  rung_host_release(s->host);
}

static void run_side(side *s, int64_t rows, float *x, float *y) {
  rung_io in = {.name = "x", .tensor = rung_tensor_dense(RUNG_TYPE_F32, 2, (int64_t[]){rows, WIDTH}, x)};
  rung_io out = {.name = "y", .tensor = rung_tensor_dense(RUNG_TYPE_F32, 2, (int64_t[]){rows, WIDTH}, y)};
  CHECK_OK(rung_ladder_run(s->ladder, NULL, rows, &in, 1, &out, 1, &s->error));
}

static _Alignas(64) float x[2 * SIZES * WIDTH], y[2][2 * SIZES * WIDTH];

/* 1 to 512 in an order of no pattern; every size is met. */
static int64_t size_at(int64_t i) { return 1 + i * 197 % SIZES; }

static void check_sizes(side *captured, side *plain, int64_t step, size_t offset) {
  for (int64_t i = 0; i < SIZES; i += step) {
    const int64_t rows = size_at(i);
    const size_t bytes = (size_t)(rows * WIDTH) * sizeof(float);
    memset(y[0] + offset, 0xff, bytes);
    run_side(captured, rows, x + offset, y[0] + offset);
    run_side(plain, rows, x + offset, y[1] + offset);
    CHECK(memcmp(y[0] + offset, y[1] + offset, bytes) == 0);
  }
}

static void test_ladder(void) {
  side captured, plain;
  for (size_t i = 0; i < RUNG_COUNT(x); i++) x[i] = number((int64_t)i);
  const bool one = open_side(&captured, "1"), both = open_side(&plain, "0") && one;
  if (both) {
    const rung_cuda *cuda = cuda_of(captured.device);
    const uint64_t warm = cuda->counters.captures, launches = cuda->counters.launches;
    CHECK(warm > 0);
    CHECK_EQ_I64(launches, 0); /* being warmed runs nothing */
    const rung_cuda_module *modules = cuda->module;
    check_sizes(&captured, &plain, 1, 0);
    CHECK_EQ_I64(cuda->counters.captures, warm);
    CHECK(cuda->counters.replays > 0 && cuda->module == modules);
    /* Another place, another generation of the weights. */
    check_sizes(&captured, &plain, 16, SIZES * WIDTH);
    CHECK_OK(set_weights(&captured, 1000));
    CHECK_OK(set_weights(&plain, 1000));
    check_sizes(&captured, &plain, 16, 0);
    CHECK_EQ_I64(cuda->counters.captures, warm);
    CHECK_EQ_I64(cuda_of(plain.device)->counters.captures + cuda_of(plain.device)->counters.replays, 0);
    const rung_cuda_graph_report r = rung_cuda_graphs_report(cuda);
    CHECK_EQ_I64(r.refused + r.evicted, 0);
    printf("ladder: %llu captures, %llu launches in them changed, %llu replays, %llu launches alone\n",
           (unsigned long long)warm, (unsigned long long)cuda->counters.patches,
           (unsigned long long)cuda->counters.replays, (unsigned long long)cuda->counters.launches);
  }
  close_side(&captured);
  close_side(&plain);
}

/* ---- whole models */

typedef struct talk {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *g;
  rung_error error;
} talk;

static bool open_talk(talk *t, const char *path, const char *graphs, int64_t blocks) {
  *t = (talk){0};
  setenv("RUNG_CUDA_GRAPHS", graphs, 1);
  const rung_source source = rung_source_path(path);
  rung_generate_options o = tiny_options(3, 256, 64);
  o.logits = 3;
  o.kv = RUNG_TYPE_F16;
  o.blocks = blocks;
  rung_status status = rung_host_create(NULL, &t->error, &t->host);
  if (!status) status = rung_device_create(t->host, "cuda", NULL, &t->error, &t->device);
  unsetenv("RUNG_CUDA_GRAPHS");
  if (!status) status = rung_model_open(t->device, &source, NULL, &t->error, &t->model);
  if (!status) status = rung_generator_create(t->model, &o, &t->error, &t->g);
  CHECK_OK(status);
  if (status) fprintf(stderr, "  %s\n", t->error.message);
  return !status;
}

static void close_talk(talk *t) {
  rung_generator_destroy(t->g);
  rung_model_release(t->model);
  rung_device_release(t->device);
  rung_host_release(t->host);
}

static void run_talks(talk *t, const rung_rows *rows, int32_t count, int32_t total, int64_t vocabulary) {
  int32_t ids[64], wanted[3];
  const float *logits[2] = {NULL, NULL};
  for (int32_t i = 0; i < total; i++) ids[i] = (int32_t)((i * 37 + total) % vocabulary);
  for (int32_t i = 0; i < count; i++) wanted[i] = total - count + i;
  for (int k = 0; k < 2; k++) CHECK_OK(rung_generator_run(t[k].g, rows, count, ids, wanted, count, &logits[k]));
  if (logits[0] && logits[1]) CHECK(memcmp(logits[0], logits[1], (size_t)(count * vocabulary) * sizeof(float)) == 0);
}

/* Prompts of many sizes, then decoding, one sequence and three: contiguous and paged. */
static void check_model(const char *path, int64_t blocks) {
  talk t[2];
  const bool one = open_talk(&t[0], path, "1", blocks), both = open_talk(&t[1], path, "0", blocks) && one;
  if (both) {
    rung_model_info info;
    rung_model_get_info(t[0].model, &info);
    const rung_cuda *cuda = cuda_of(t[0].device);
    static const int32_t sizes[] = {1, 5, 17, 2, 40, 9, 1, 3};
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++)
      run_talks(t, (const rung_rows[]){{0, sizes[i]}}, 1, sizes[i], info.vocabulary);
    run_talks(t, (const rung_rows[]){{1, 20}, {2, 9}, {0, 1}}, 3, 30, info.vocabulary);
    run_talks(t, (const rung_rows[]){{0, 1}}, 1, 1, info.vocabulary);
    run_talks(t, (const rung_rows[]){{0, 1}, {1, 1}, {2, 1}}, 3, 3, info.vocabulary);
    const rung_device_counters warm = cuda->counters;
    for (int i = 0; i < 60; i++) {
      run_talks(t, (const rung_rows[]){{0, 1}}, 1, 1, info.vocabulary);
      run_talks(t, (const rung_rows[]){{0, 1}, {1, 1}, {2, 1}}, 3, 3, info.vocabulary);
    }
    CHECK_EQ_I64(cuda->counters.captures, warm.captures);
    CHECK_EQ_I64(cuda->counters.launches, warm.launches);
    CHECK_EQ_I64(cuda->counters.patches, warm.patches); /* each has its graph, and nothing in them changes */
    CHECK_EQ_I64(rung_cuda_graphs_report(cuda).refused, 0);
  }
  close_talk(&t[0]);
  close_talk(&t[1]);
}

static void test_models(void) {
  for (size_t i = 0; i < RUNG_COUNT(tiny_paths); i++) {
    check_model(tiny_paths[i], 0);
    check_model(tiny_paths[i], 12);
  }
}

int main(void) {
  if (!cuda_is_here()) return 77;
  RUN(test_ladder);
  RUN(test_models);
  return TEST_END();
}
