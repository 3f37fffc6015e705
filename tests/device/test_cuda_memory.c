/* SPDX-License-Identifier: MIT
 * Memory of the device that is not there: weights, arenas and states beyond a budget and beyond what the GPU has are
 * statuses that say how many bytes are missing, and what was in use goes on as before. On a GPU, or on the false driver. */
#define _GNU_SOURCE
#include <rung/model.h>

#include "cts/world.h"
#include "device/fake_world.h"

enum { MOST = 1 << 30 }; /* positions: 512 GiB of keys and values */

static bool real;

/* y = x w + x, with a state that grows with the rows it is given. */
static const char text[] =
    "rung 1\nsymbol rows 0..1000000000\nsymbol sequences 0..2\n"
    "%0 = input {name=\"offsets\"} : i32[sequences+1]\n"
    "%1 = input {name=\"slot\"} : i32[sequences]\n"
    "%2 = input {name=\"past\"} : i32[sequences]\n"
    "%3 = input {name=\"x\"} : f32[rows,64]\n"
    "%4 = reshape %3 {shape=[rows,1,64]}\n"
    "%5 = state {name=\"kv\"} : kv f32[1,64,64]\n"
    "%6 = append %5, %4, %4, %0, %1, %2\n"
    "%7 = attention_kv %4, %6, %0, %1, %2\n"
    "%8 = reduce_sum %7 {axes=[1]}\n"
    "output \"y\" %8\n";

static void numbers_in(const char *message, uint64_t least) {
  uint64_t most = 0;
  for (const char *at = message; *at; at++)
    if (*at >= '0' && *at <= '9') {
      char *end;
      const uint64_t n = strtoull(at, &end, 10);
      if (n > most) most = n;
      at = end - 1;
    }
  test_state.checks++;
  if (most < least) TEST_FAIL_("\"%s\" does not say that %llu bytes are needed", message, (unsigned long long)least);
}

/* Runs four rows; what they give is remembered and must not change. */
static bool run_some(world *w, float *out) {
  float x[4][64];
  const rung_rows rows = {0, 4};
  for (int i = 0; i < 4 * 64; i++) x[i / 64][i % 64] = (float)(i % 7) - 3;
  CHECK_OK(rung_state_truncate(w->state, 0, 0, &w->error));
  CHECK_OK(rung_context_set_rows(w->context, &rows, 1));
  if (!world_put(w, 3, (int64_t[]){4, 64}, x, sizeof x) || !world_run(w)) return false;
  const rung_tensor y = world_output(w, 0);
  if (y.data) memcpy(out, y.data, 4 * 64 * sizeof *out);
  return y.data != NULL;
}

static void check_same(world *w, const float *want) {
  float have[4 * 64];
  if (run_some(w, have)) CHECK(memcmp(have, want, sizeof have) == 0);
}

/* An arena, a state, and what does not fit beside them; then all works as before. */
static void check_world(uint64_t budget, rung_status wanted, int64_t rows) {
  world w;
  rung_state_options so = rung_state_options_default();
  so.sequences = 2;
  so.capacity = MOST;
  so.chunk = INT64_C(1) << 24;
  float want[4 * 64];
  if (world_open(&w, text, &(world_options){.device = "cuda", .state = &so, .budget = budget}) && run_some(&w, want)) {
    /* Keys and values: positions that nobody wrote, taken at once. */
    rung_device_counters before, after;
    rung_device_get_counters(w.device, &before);
    const rung_memory held = rung_host_memory(w.host);
    CHECK_STATUS(rung_state_extend(w.state, 1, rows, &w.error), wanted);
    numbers_in(w.error.message, (uint64_t)rows * 64 * 2 * 4);
    rung_device_get_counters(w.device, &after);
    CHECK_EQ_I64(after.pages, before.pages);
    CHECK_EQ_I64(rung_host_memory(w.host).state, held.state);
    CHECK_EQ_I64(rung_state_length(w.state, 1), 0);
    check_same(&w, want);
    /* Another context of the same program that takes its ceiling at once. */
    rung_context_options co = rung_context_options_default();
    rung_context *second = NULL;
    rung_state *state = NULL;
    co.commit_all = true;
    CHECK_OK(rung_state_create(w.template_, &so, &w.error, &state));
    CHECK_OK(rung_context_create(w.template_, NULL, state, &co, &w.error, &second));
    const rung_status used = rung_context_use(second, w.program);
    CHECK_STATUS(used, wanted);
    numbers_in(rung_context_message(second), UINT64_C(1000000000) * 64 * 4);
    rung_context_destroy(second);
    rung_state_release(state);
    rung_device_get_counters(w.device, &after);
    CHECK_EQ_I64(after.pages, before.pages);
    check_same(&w, want);
  }
  world_close(&w);
  if (!real) fake_check("a world");
}

static void test_budget(void) { check_world(UINT64_C(64) << 20, RUNG_OVER_BUDGET, INT64_C(1) << 22); }
static void test_beyond(void) { check_world(UINT64_MAX >> 1, RUNG_OUT_OF_MEMORY, MOST); }

/* ---- weights */

/* All bytes of one class as the budget is: a model whose forms do not fit, and one that does, on the same device. */
static void test_weights(void) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  rung_host_options ho = rung_host_options_default();
  const rung_source source = rung_source_path(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf");
  rung_generate_options go = rung_generate_options_default();
  go.context = 128;
  go.chunk = 8;
  ho.memory_budget = 60000; /* less than the forms are, but not less than the file that is mapped */
  CHECK_OK(rung_host_create(&ho, &error, &host));
  CHECK_OK(rung_device_create(host, "cuda", NULL, &error, &device));
  rung_model *model = NULL;
  rung_generator *g = NULL;
  rung_status s = rung_model_open(device, &source, NULL, &error, &model);
  if (!s) s = rung_generator_create(model, &go, &error, &g);
  CHECK_STATUS(s, RUNG_OVER_BUDGET);
  numbers_in(error.message, 1000);
  rung_generator_destroy(g);
  rung_model_release(model);
  rung_device_counters c;
  rung_device_get_counters(device, &c);
  CHECK(c.buffers <= 4096 && c.pages == 0);
  rung_device_release(device);
  rung_host_release(host);
  if (!real) fake_check("weights");
}

/* The GPU is full but for some bytes: every amount that is left ends in a status or works. */
static void test_small_gpu(void) {
  if (real) SKIP("the GPU cannot be made small");
  const rung_source source = rung_source_path(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf");
  int refused = 0, worked = 0;
  for (uint64_t memory = 0; memory < UINT64_C(24) << 20 && worked < 3; memory += memory < 400000 ? 8192 : 1 << 20) {
    rung_host *host = NULL;
    rung_device *device = NULL;
    rung_model *model = NULL;
    rung_generator *g = NULL;
    rung_error error = {RUNG_OK, ""};
    rung_generate_options go = rung_generate_options_default();
    const int32_t ids[4] = {1, 2, 3, 4}, wanted[1] = {3};
    const float *logits;
    go.context = 128;
    go.chunk = 8;
    fake_reset();
    fake->memory = memory;
    CHECK_OK(rung_host_create(NULL, &error, &host));
    rung_status s = rung_device_create(host, "cuda", NULL, &error, &device);
    if (!s) s = rung_model_open(device, &source, NULL, &error, &model);
    if (!s) s = rung_generator_create(model, &go, &error, &g);
    for (int i = 0; i < 2; i++) {
      if (!g) break;
      s = rung_generator_run(g, (const rung_rows[]){{0, 4}}, 1, ids, wanted, 1, &logits);
      if (s) s = rung_fail(&error, s, "%s", rung_generator_message(g));
    }
    test_state.checks++;
    if (s && s != RUNG_OUT_OF_MEMORY) TEST_FAIL_("%llu bytes: %s", (unsigned long long)memory, error.message);
    if (s && g) { /* more memory has come: the same generator works */
      fake->memory = UINT64_C(1) << 30;
      CHECK_OK(rung_generator_reset(g, 0));
      CHECK_OK(rung_generator_run(g, (const rung_rows[]){{0, 4}}, 1, ids, wanted, 1, &logits));
    }
    refused += s != RUNG_OK;
    worked += s == RUNG_OK;
    rung_generator_destroy(g);
    rung_model_release(model);
    rung_device_release(device);
    rung_host_release(host);
    fake_check("a small GPU");
  }
  printf("%d sizes of a GPU were too small\n", refused);
  CHECK(refused > 20 && worked > 0);
}

int main(void) {
  real = fake_unless_real();
  RUN(test_budget);
  RUN(test_beyond);
  RUN(test_weights);
  RUN(test_small_gpu);
  return TEST_END();
}
