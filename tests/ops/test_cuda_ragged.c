/* SPDX-License-Identifier: MIT
 * Ragged rows and experts on the CUDA device, which the op table's cases cannot say: sequences of many lengths, numbers
 * that are none in other sequences' values, packed experts, few and many rows; both profiles, against the cpu device.
 * Skipped where there is no GPU. */
#include <math.h>
#include <rung/rung.h>

#include "ir/type.h"
#include "test.h"

enum { MOST_INPUTS = 4, EXPERTS = 6, PLACES = 3, HIDDEN = 96, FEED = 512 };

static rung_host *host;
static rung_device *gpu, *cpu;
static uint64_t seed = 5;

typedef struct input {
  int64_t extent[3];
  const void *data;
  size_t bytes;
} input;

static rung_status run_on(rung_device *device, bool deterministic, const char *text, rung_weights *weights,
                          const input *in, int inputs, float *out, int64_t count, rung_error *error) {
  rung_compile_options o = rung_compile_options_default();
  rung_graph *graph = NULL;
  rung_template *template_ = NULL;
  rung_program *program = NULL;
  rung_view *view = NULL;
  rung_context *context = NULL;
  o.deterministic = deterministic;
  rung_status status = rung_graph_parse(host, text, strlen(text), error, &graph);
  if (!status) status = rung_template_create(device, graph, &o, error, &template_);
  if (!status) status = rung_program_create(template_, NULL, 0, error, &program);
  if (!status && weights) status = rung_view_create(weights, error, &view);
  if (!status) status = rung_context_create(template_, view, NULL, NULL, error, &context);
  if (!status) status = rung_context_use(context, program);
  for (int i = 0; i < inputs && !status; i++) {
    void *to;
    status = rung_context_input(context, i, in[i].extent, &to);
    if (!status) memcpy(to, in[i].data, in[i].bytes);
  }
  for (int round = 0; round < 3 && !status; round++) status = rung_context_run(context); /* the third is captured */
  rung_tensor y;
  if (!status) status = rung_context_output(context, 0, &y);
  if (!status) memcpy(out, y.data, (size_t)count * sizeof *out);
  if (status && context && !error->message[0])
    snprintf(error->message, sizeof error->message, "%s", rung_context_message(context));
  rung_context_destroy(context);
  rung_view_release(view);
  rung_program_release(program);
  rung_template_release(template_);
  rung_graph_destroy(graph);
  return status;
}

/* `near`: how far results may be apart, of the largest number that there is. */
static void check(const char *what, const char *text, rung_weights *weights, const input *in, int inputs, int64_t count,
                  double near) {
  float *want = calloc((size_t)count + 1, sizeof *want), *got = calloc((size_t)count + 1, sizeof *got);
  rung_error error = {RUNG_OK, ""};
  rung_status status = run_on(cpu, false, text, weights, in, inputs, want, count, &error);
  for (int profile = 0; profile < 2 && !status; profile++) {
    double largest = 0;
    status = run_on(gpu, profile, text, weights, in, inputs, got, count, &error);
    if (status) break;
    for (int64_t i = 0; i < count; i++)
      if (isfinite(want[i])) largest = fmax(largest, fabs((double)want[i]));
    test_state.checks++;
    for (int64_t i = 0; i < count; i++) {
      if (isnan(want[i]) ? isnan(got[i]) : fabs((double)want[i] - (double)got[i]) <= near * largest) continue;
      TEST_FAIL_("%s, profile %d: number %lld is %g, not %g", what, profile, (long long)i, (double)got[i],
                 (double)want[i]);
      break;
    }
  }
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", what, error.message);
  free(want);
  free(got);
}

static float *numbers(int64_t count) {
  float *x = malloc(sizeof *x * (size_t)(count + 1));
  for (int64_t i = 0; i < count; i++) x[i] = test_uniform(&seed, -1, 1);
  return x;
}

/* ---- ragged rows */

enum { HEADS = 4, KV_HEADS = 2, KEY = 40, VALUE = 72, WIDTH = 100, MOST_SEQUENCES = 40 };

static void try_sequences(const int32_t *offsets, int64_t sequences, const char *attrs) {
  const int64_t rows = offsets[sequences];
  float *q = numbers(rows * HEADS * KEY), *k = numbers(rows * KV_HEADS * KEY), *v = numbers(rows * KV_HEADS * VALUE);
  for (int64_t i = 0; sequences > 2 && i < VALUE; i++) v[(int64_t)offsets[1] * KV_HEADS * VALUE + i] = NAN;
  const input of_attention[] = {{{rows, HEADS, KEY}, q, sizeof *q * (size_t)(rows * HEADS * KEY)},
                                {{rows, KV_HEADS, KEY}, k, sizeof *k * (size_t)(rows * KV_HEADS * KEY)},
                                {{rows, KV_HEADS, VALUE}, v, sizeof *v * (size_t)(rows * KV_HEADS * VALUE)},
                                {{sequences + 1}, offsets, sizeof *offsets * (size_t)(sequences + 1)}};
  char text[900];
  snprintf(text, sizeof text,
           "rung 1\nsymbol r 0..600\nsymbol s 1..%d\n%%0 = input {name=\"q\"} : f32[r,%d,%d]\n"
           "%%1 = input {name=\"k\"} : f32[r,%d,%d]\n%%2 = input {name=\"v\"} : f32[r,%d,%d]\n"
           "%%3 = input {name=\"o\"} : i32[s]\n"
           "%%4 = attention_ragged %%0, %%1, %%2, %%3%s : f32[r,%d,%d]\noutput \"y\" %%4\n",
           MOST_SEQUENCES + 1, HEADS, KEY, KV_HEADS, KEY, KV_HEADS, VALUE, attrs, HEADS, VALUE);
  check(attrs, text, NULL, of_attention, 4, rows * HEADS * VALUE, 4e-6);
  free(q);
  free(k);
  free(v);
}

static void try_pool(const int32_t *offsets, int64_t sequences, const char *mode) {
  const int64_t rows = offsets[sequences];
  float *x = numbers(rows * WIDTH);
  const input in[] = {{{rows, WIDTH}, x, sizeof *x * (size_t)(rows * WIDTH)},
                      {{sequences + 1}, offsets, sizeof *offsets * (size_t)(sequences + 1)}};
  char text[400];
  snprintf(text, sizeof text,
           "rung 1\nsymbol r 0..600\nsymbol s 1..%d\n%%0 = input {name=\"x\"} : f32[r,%d]\n"
           "%%1 = input {name=\"o\"} : i32[s]\n%%2 = pool_ragged %%0, %%1 {mode=%s} : f32[s-1,%d]\noutput \"y\" %%2\n",
           MOST_SEQUENCES + 1, WIDTH, mode, WIDTH);
  check(mode, text, NULL, in, 2, sequences * WIDTH, 2e-6);
  free(x);
}

static void test_ragged(void) {
  static const char *const attrs[] = {"", " {causal=true}", " {window=9}", " {causal=true, window=70, soft_cap=2.5}"};
  static const char *const modes[] = {"mean", "first", "last", "max"};
  static const int longest[] = {1, 9, 150};
  for (size_t i = 0; i < RUNG_COUNT(longest); i++)
    for (size_t a = 0; a < RUNG_COUNT(attrs); a++) {
      int32_t offsets[MOST_SEQUENCES + 1] = {0};
      const int64_t sequences = 1 + (int64_t)test_below(&seed, i == 2 ? 4 : MOST_SEQUENCES);
      for (int64_t s = 0; s < sequences; s++)
        offsets[s + 1] = offsets[s] + (s == 1 ? 1 : (int32_t)test_below(&seed, (uint64_t)longest[i] + 1));
      try_sequences(offsets, sequences, attrs[a]);
      try_pool(offsets, sequences, modes[a]);
    }
}

/* ---- experts */

static rung_status make_experts(rung_type type, rung_error *error, rung_weights **out) {
  const rung_type_row *row = rung_type_get(type);
  const int64_t count = (int64_t)EXPERTS * HIDDEN * FEED;
  const uint64_t bytes = rung_type_bytes(type, (uint64_t)count);
  float *x = numbers(count);
  uint8_t *data = malloc(bytes);
  row->from_f32(x, data, (size_t)count);
  RUNG_TRY(rung_weights_create(host, error, out));
  rung_status status = rung_weights_declare(*out, "w", type, 3, (int64_t[]){EXPERTS, HIDDEN, FEED}, error);
  if (!status) status = rung_weights_set(*out, "w", type, data, bytes, error);
  if (!status) status = rung_weights_commit(*out, error);
  free(x);
  free(data);
  return status;
}

static void try_experts(rung_type type, double near) {
  static const int64_t sizes[] = {1, 7, 31, 32, 300};
  rung_error error = {RUNG_OK, ""};
  rung_weights *weights = NULL;
  char text[400];
  const rung_status status = make_experts(type, &error, &weights);
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", rung_type_name(type), error.message);
  snprintf(text, sizeof text,
           "rung 1\nsymbol r 0..300\n%%0 = input {name=\"x\"} : f32[r,1,%d]\n%%1 = weight {name=\"w\"} : %s[%d,%d,%d]\n"
           "%%2 = input {name=\"i\"} : i32[r,%d]\n%%3 = expert_matmul %%0, %%1, %%2 {experts=%d} : f32[r,%d,%d]\n"
           "output \"y\" %%3\n",
           FEED, rung_type_name(type), EXPERTS, HIDDEN, FEED, PLACES, EXPERTS, PLACES, HIDDEN);
  for (size_t i = 0; i < RUNG_COUNT(sizes) && !status; i++) {
    const int64_t rows = sizes[i];
    float *x = numbers(rows * FEED);
    int32_t index[300 * PLACES];
    for (int64_t p = 0; p < rows * PLACES; p++) index[p] = (int32_t)test_below(&seed, EXPERTS);
    const input in[] = {{{rows, 1, FEED}, x, sizeof *x * (size_t)(rows * FEED)},
                        {{rows, PLACES}, index, sizeof *index * (size_t)(rows * PLACES)}};
    check(rung_type_name(type), text, weights, in, 2, rows * PLACES * HIDDEN, near);
    free(x);
  }
  rung_weights_release(weights);
}

/* Quantised weights meet quantised rows on both sides, the device's many rows in halves. */
static void test_experts(void) {
  try_experts(RUNG_TYPE_F32, 4e-6);
  try_experts(RUNG_TYPE_F16, 4e-6);
  try_experts(RUNG_TYPE_Q4_K, 1e-3);
  try_experts(RUNG_TYPE_Q8_0, 1e-3);
  try_experts(RUNG_TYPE_Q6_K, 1e-3);
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
  RUN(test_ragged);
  RUN(test_experts);
  rung_device_release(gpu);
  rung_device_release(cpu);
  rung_host_release(host);
  return TEST_END();
}
