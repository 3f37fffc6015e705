/* SPDX-License-Identifier: MIT
 * The deterministic profile of the CUDA device: a row of a feed-forward block (norm, products, gating, residual) has the
 * same bits alone and among any number of others, for all types of weights, and is right. Skipped where there is no
 * GPU. */
#include <math.h>
#include <rung/rung.h>

#include "ir/type.h"
#include "test.h"

enum {
  WIDTH = 512,
  FEED = 4640,
  ROWS = 70,
  RUNS = 3
}; /* FEED: in tiles of 128 with a rest; tiles of 256 want FEED_256 */
enum { FEED_256 = 4608 };

static rung_host *host;
static rung_device *gpu, *cpu;
static uint64_t seed = 11;

/* Rows from random floats, or, for types that nothing is converted to here, from bytes with tame factors. */
static uint8_t *make_rows(rung_type type, int64_t rows, int64_t k, uint64_t *out_bytes) {
  const rung_type_row *row = rung_type_get(type);
  const uint64_t bytes = rung_type_bytes(type, (uint64_t)k);
  uint8_t *data = malloc(bytes * (uint64_t)rows);
  float *x = malloc((size_t)k * sizeof *x);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < k; i++) x[i] = test_uniform(&seed, -0.1f, 0.1f);
    if (row->from_f32)
      row->from_f32(x, data + (uint64_t)r * bytes, (size_t)k);
    else
      for (uint64_t i = 0; i < bytes; i++) data[(uint64_t)r * bytes + i] = (uint8_t)test_below(&seed, 40);
  }
  free(x);
  *out_bytes = bytes * (uint64_t)rows;
  return data;
}

static rung_status add_weight(rung_weights *store, const char *name, rung_type type, int rank, const int64_t *extent,
                              rung_error *error) {
  uint64_t bytes;
  uint8_t *data = make_rows(type, rank > 1 ? extent[0] : 1, extent[rank - 1], &bytes);
  rung_status status = rung_weights_declare(store, name, type, rank, extent, error);
  if (!status) status = rung_weights_set(store, name, type, data, bytes, error);
  free(data);
  return status;
}

static rung_status make_weights(rung_type type, int64_t feed, rung_error *error, rung_weights **out) {
  RUNG_TRY(rung_weights_create(host, error, out));
  RUNG_TRY(add_weight(*out, "norm", RUNG_TYPE_F32, 1, (int64_t[]){WIDTH}, error));
  RUNG_TRY(add_weight(*out, "gate", type, 2, (int64_t[]){feed, WIDTH}, error));
  RUNG_TRY(add_weight(*out, "up", type, 2, (int64_t[]){feed, WIDTH}, error));
  RUNG_TRY(add_weight(*out, "down", type, 2, (int64_t[]){WIDTH, feed}, error));
  return rung_weights_commit(*out, error);
}

static rung_status make_graph(rung_type type, int64_t feed, rung_error *error, rung_graph **out) {
  char text[1400];
  const char *t = rung_type_name(type);
  const long long f = (long long)feed;
  const int n = snprintf(text, sizeof text,
                         "rung 1\nsymbol n 0..%d\n"
                         "%%0 = input {name=\"x\"} : f32[n,%d]\n"
                         "%%1 = weight {name=\"norm\"} : f32[%d]\n"
                         "%%2 = rms_norm %%0, %%1 {epsilon=1e-05} : f32[n,%d]\n"
                         "%%3 = weight {name=\"gate\"} : %s[%lld,%d]\n"
                         "%%4 = matmul %%2, %%3 {transpose_b=true} : f32[n,%lld]\n"
                         "%%5 = weight {name=\"up\"} : %s[%lld,%d]\n"
                         "%%6 = matmul %%2, %%5 {transpose_b=true} : f32[n,%lld]\n"
                         "%%7 = silu %%4 : f32[n,%lld]\n"
                         "%%8 = mul %%7, %%6 : f32[n,%lld]\n"
                         "%%9 = weight {name=\"down\"} : %s[%d,%lld]\n"
                         "%%10 = matmul %%8, %%9 {transpose_b=true} : f32[n,%d]\n"
                         "%%11 = add %%10, %%0 : f32[n,%d]\n"
                         "output \"y\" %%11\n",
                         ROWS, WIDTH, WIDTH, WIDTH, t, f, WIDTH, f, t, f, WIDTH, f, f, f, t, WIDTH, f, WIDTH, WIDTH);
  CHECK(n > 0 && n < (int)sizeof text);
  return rung_graph_parse(host, text, strlen(text), error, out);
}

typedef struct side {
  rung_template *template_;
  rung_program *program;
  rung_view *view;
  rung_context *context;
} side;

static rung_status open_side(rung_device *device, const rung_graph *graph, rung_weights *weights, rung_quant quant,
                             rung_error *error, side *out) {
  rung_compile_options o = rung_compile_options_default();
  o.quant = quant;
  o.deterministic = true;
  *out = (side){0};
  RUNG_TRY(rung_template_create(device, graph, &o, error, &out->template_));
  RUNG_TRY(rung_program_create(out->template_, NULL, 0, error, &out->program));
  RUNG_TRY(rung_view_create(weights, error, &out->view));
  RUNG_TRY(rung_context_create(out->template_, out->view, NULL, NULL, error, &out->context));
  return rung_context_use(out->context, out->program);
}
static void close_side(side *s) {
  rung_context_destroy(s->context);
  rung_view_release(s->view);
  rung_program_release(s->program);
  rung_template_release(s->template_);
}

/* Rows first .. first + n - 1 of x. */
static const float *run_rows(side *s, const float *x, int64_t first, int64_t n) {
  void *to;
  rung_tensor y;
  rung_status status = rung_context_input(s->context, 0, (int64_t[]){n, WIDTH}, &to);
  if (!status) memcpy(to, x + first * WIDTH, (size_t)(n * WIDTH) * sizeof *x);
  if (!status) status = rung_context_run(s->context);
  if (!status) status = rung_context_output(s->context, 0, &y);
  test_state.checks++;
  if (status) TEST_FAIL_("%lld rows: %s", (long long)n, rung_context_message(s->context));
  return status ? NULL : y.data;
}

static double distance(const float *a, const float *b, int64_t n) {
  double off = 0, all = 0;
  for (int64_t i = 0; i < n; i++) {
    off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    all += (double)b[i] * (double)b[i];
  }
  return sqrt(off / all);
}

static void compare_runs(side *s, const float *x, const float *alone, const char *what) {
  static const int64_t sizes[] = {2, 3, 7, 8, 9, 16, 17, 32, 33, 40, 64, 65, ROWS};
  for (size_t i = 0; i < RUNG_COUNT(sizes); i++)
    for (int run = 0; run < RUNS; run++) { /* the second run of a size is captured, the third replays it */
      const int64_t n = sizes[i], first = run * (ROWS - n) / (RUNS - 1);
      const float *y = run_rows(s, x, first, n);
      int64_t differ = 0;
      for (int64_t r = 0; y && r < n; r++)
        differ += memcmp(y + r * WIDTH, alone + (first + r) * WIDTH, WIDTH * sizeof *y) != 0;
      test_state.checks++;
      if (differ)
        TEST_FAIL_("%s: %lld of %lld rows from %lld on are not as alone", what, (long long)differ, (long long)n,
                   (long long)first);
    }
}

static void check_type(rung_type type, rung_quant quant, double bound) {
  const int64_t feed = rung_type_get(type)->block > 32 ? FEED_256 : FEED;
  char what[80];
  rung_error error = {RUNG_OK, ""};
  rung_weights *weights = NULL;
  rung_graph *graph = NULL;
  side there = {0}, here = {0};
  float *x = malloc(sizeof(float) * ROWS * WIDTH), *alone = malloc(sizeof(float) * ROWS * WIDTH);
  for (int64_t i = 0; i < ROWS * WIDTH; i++) x[i] = test_uniform(&seed, -2, 2);
  snprintf(what, sizeof what, "%s %s", rung_type_name(type), quant == RUNG_QUANT_FAST ? "fast" : "exact");
  rung_status status = make_weights(type, feed, &error, &weights);
  if (!status) status = make_graph(type, feed, &error, &graph);
  if (!status) status = open_side(gpu, graph, weights, quant, &error, &there);
  if (!status) status = open_side(cpu, graph, weights, quant, &error, &here);
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", what, error.message);
  bool good = !status;
  for (int64_t r = 0; r < ROWS && good; r++) {
    const float *y = run_rows(&there, x, r, 1);
    good = y != NULL;
    if (good) memcpy(alone + r * WIDTH, y, WIDTH * sizeof *y);
  }
  if (good) {
    const float *y = run_rows(&here, x, 0, ROWS);
    const double far = y ? distance(alone, y, ROWS * WIDTH) : (double)INFINITY;
    test_state.checks++;
    if (!(far <= bound)) TEST_FAIL_("%s: %g from the cpu device, the bound is %g", what, far, bound);
    compare_runs(&there, x, alone, what);
  }
  close_side(&there);
  close_side(&here);
  rung_graph_destroy(graph);
  rung_weights_release(weights);
  free(x);
  free(alone);
}

static void test_fast(void) {
  static const rung_type types[] = {
      RUNG_TYPE_Q4_K,   RUNG_TYPE_Q8_0,    RUNG_TYPE_Q6_K,   RUNG_TYPE_Q4_0,  RUNG_TYPE_Q5_1,    RUNG_TYPE_Q3_K,
      RUNG_TYPE_IQ4_XS, RUNG_TYPE_F16,     RUNG_TYPE_BF16,   RUNG_TYPE_F32,   RUNG_TYPE_Q8_1,    RUNG_TYPE_IQ1_S,
      RUNG_TYPE_IQ1_M,  RUNG_TYPE_IQ2_XXS, RUNG_TYPE_IQ2_XS, RUNG_TYPE_IQ2_S, RUNG_TYPE_IQ3_XXS, RUNG_TYPE_IQ3_S,
      RUNG_TYPE_TQ1_0,  RUNG_TYPE_TQ2_0,   RUNG_TYPE_MXFP4};
  for (size_t i = 0; i < RUNG_COUNT(types); i++) check_type(types[i], RUNG_QUANT_FAST, 2e-2);
}

static void test_exact(void) {
  static const rung_type types[] = {RUNG_TYPE_Q4_K, RUNG_TYPE_Q8_0,  RUNG_TYPE_Q6_K,  RUNG_TYPE_F16,
                                    RUNG_TYPE_BF16, RUNG_TYPE_IQ1_M, RUNG_TYPE_IQ3_S, RUNG_TYPE_TQ1_0};
  for (size_t i = 0; i < RUNG_COUNT(types); i++) check_type(types[i], RUNG_QUANT_EXACT, 2e-5);
}

int main(void) {
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  /* Without a GPU the cpu device is held to the same with RUNG_TEST_DEVICE=cpu. */
  const char *name = getenv("RUNG_TEST_DEVICE");
  if (rung_device_create(host, name ? name : "cuda", NULL, &error, &gpu)) {
    printf("skipped: %s\n", error.message);
    rung_host_release(host);
    return 77;
  }
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &cpu));
  RUN(test_fast);
  RUN(test_exact);
  rung_device_release(gpu);
  rung_device_release(cpu);
  rung_host_release(host);
  return TEST_END();
}
