/* SPDX-License-Identifier: MIT
 * Tuning on the CUDA device: every candidate of decode attention is as near to the reference as the kernels are without
 * one, winners are found again, and what runs with winners computes what runs without. Skipped where there is no GPU. */
#define _GNU_SOURCE
#include <math.h>
#include <rung/tune.h>
#include <unistd.h>

#include "cts/world.h"
#include "cuda_device.h"

enum { HEADS = 8, SHARED = 2, DIM = 64, MOST = 40, STEPS = 700, IN_OFFSETS = 0, IN_Q = 3, IN_K = 4, IN_V = 5 };

/* One layer's attention as models have it; narrow: operands may be rounded. */
static const char *text_of(bool narrow, int window) {
  static char text[2000];
  char limit[40] = "", keep[40] = "";
  if (window) {
    snprintf(limit, sizeof limit, ", window=%d", window);
    snprintf(keep, sizeof keep, ", window=%d", window);
  }
  snprintf(text, sizeof text,
           "rung 1\nsymbol rows 0..40\nsymbol sequences 0..1\n"
           "%%offsets = input {name=\"offsets\"} : i32[sequences+1]\n"
           "%%slot = input {name=\"slot\"} : i32[sequences]\n"
           "%%past = input {name=\"past\"} : i32[sequences]\n"
           "%%q = input {name=\"q\"} : f32[rows,8,64]\n"
           "%%k = input {name=\"k\"} : f32[rows,2,64]\n"
           "%%v = input {name=\"v\"} : f32[rows,2,64]\n"
           "%%at = positions %%offsets, %%past {rows=rows}\n"
           "%%q1 = rope %%q, %%at {base=10000}\n"
           "%%k1 = rope %%k, %%at {base=10000}\n"
           "%%s0 = state {name=\"kv\"%s} : kv f16[2,64,64]\n"
           "%%s1 = append %%s0, %%k1, %%v, %%offsets, %%slot, %%past\n"
           "%%y = attention_kv %%q1, %%s1, %%offsets, %%slot, %%past {narrow=%s%s}\n"
           "output \"y\" %%y\n",
           keep, narrow ? "true" : "false", limit);
  return text;
}

static bool open_on(world *w, const char *device, const char *text) {
  rung_state_options so = rung_state_options_default();
  so.sequences = 1;
  so.capacity = 1200;
  so.chunk = MOST;
  return world_open(w, text, &(world_options){.device = device, .state = &so});
}

/* Runs `rows` rows that are functions of their positions. */
static bool run_rows(world *w, int64_t position, int32_t rows) {
  static float q[MOST][HEADS * DIM], k[MOST][SHARED * DIM], v[MOST][SHARED * DIM];
  for (int32_t r = 0; r < rows; r++) {
    uint64_t random = 1 + (uint64_t)(position + r) * 7919;
    for (int e = 0; e < HEADS * DIM; e++) q[r][e] = test_uniform(&random, -2, 2);
    for (int e = 0; e < SHARED * DIM; e++) k[r][e] = test_uniform(&random, -2, 2);
    for (int e = 0; e < SHARED * DIM; e++) v[r][e] = test_uniform(&random, -2, 2);
  }
  const rung_rows one = {0, rows};
  if (rung_context_set_rows(w->context, &one, 1)) return false;
  return world_put(w, IN_Q, (int64_t[]){rows, HEADS, DIM}, q, (size_t)rows * sizeof q[0]) &&
         world_put(w, IN_K, (int64_t[]){rows, SHARED, DIM}, k, (size_t)rows * sizeof k[0]) &&
         world_put(w, IN_V, (int64_t[]){rows, SHARED, DIM}, v, (size_t)rows * sizeof v[0]) && world_run(w);
}

static void compare(world *gpu, world *cpu, int64_t position, int32_t rows, double bound) {
  if (!run_rows(gpu, position, rows) || !run_rows(cpu, position, rows)) return;
  const rung_tensor a = world_output(gpu, 0), b = world_output(cpu, 0);
  const float *x = a.data, *y = b.data;
  double off = 0, all = 0;
  for (int64_t i = 0; i < world_count(&b); i++) {
    off += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    all += (double)y[i] * (double)y[i];
  }
  test_state.checks++;
  if (!(off <= bound * bound * all))
    TEST_FAIL_("%d rows at %lld: %g apart, the bound is %g", rows, (long long)position, sqrt(off / all), bound);
}

static void note(void *count, const rung_tune_winner *w) {
  ++*(int *)count;
  printf("  %s bucket %u: %s\n", w->signature, w->bucket, w->tag);
}

static void check_graph(bool narrow, int window) {
  world gpu = {0}, cpu = {0};
  const char *text = text_of(narrow, window);
  rung_tune_options o = rung_tune_options_default();
  rung_tune_report r = {0};
  const double bound = narrow ? 1e-2 : 1e-4; /* keys turned on both sides round to f16 */
  int winners = 0;
  if (open_on(&gpu, "cuda", text)) {
    CHECK_OK(rung_tune(gpu.template_, NULL, 0, &o, &gpu.error, &r));
    if (gpu.error.status) fprintf(stderr, "%s\n", gpu.error.message);
    CHECK_OK(rung_tune_winners(gpu.device, note, &winners, &gpu.error));
  }
  world_close(&gpu);
  if (!r.kernels) return; /* chips before 9.0 have one way */
  CHECK_EQ_I64(r.kernels, 2);
  CHECK_EQ_I64(r.sizes, 1 + 5);
  CHECK_EQ_I64(r.refused, 0);
  CHECK_EQ_I64(r.recorded, 6);
  CHECK_EQ_I64(winners, 6);
  /* A later process: winners are there before anything is measured, and programs take them. */
  const bool there = open_on(&gpu, "cuda", text), both = open_on(&cpu, "cpu", text) && there;
  if (both) {
    CHECK_OK(rung_tune(gpu.template_, NULL, 0, NULL, &gpu.error, &r));
    CHECK_EQ_I64(r.sizes, 0);
    static const int32_t sizes[] = {1, 2, 4, 7, 8, 9, 16, 31, 32, 33, 40};
    int64_t position = 0;
    for (int i = 0; position < STEPS; i++) {
      const int32_t rows = sizes[(size_t)i % RUNG_COUNT(sizes)];
      compare(&gpu, &cpu, position, rows, bound);
      position += rows;
      for (int k = 0; k < 3; k++, position++) compare(&gpu, &cpu, position, 1, bound);
    }
  }
  world_close(&gpu);
  world_close(&cpu);
}

static void test_exact(void) {
  setenv("RUNG_TUNE_PROFILE", "accurate", 1);
  check_graph(false, 0);
  check_graph(false, 100);
}
static void test_narrow(void) {
  setenv("RUNG_TUNE_PROFILE", "latency", 1);
  check_graph(true, 0);
}

int main(void) {
  if (!cuda_is_here()) return 77;
  char folder[] = "/tmp/rung_cuda_tune_XXXXXX", command[100];
  if (!mkdtemp(folder)) return 1;
  setenv("RUNG_TUNE", folder, 1);
  RUN(test_exact);
  RUN(test_narrow);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) return 1;
  return TEST_END();
}
