/* SPDX-License-Identifier: MIT
 * Every call of the driver fails once, alone and together with all that follow it, and every allocation of the host does:
 * each time there is a status and no crash, the driver is used rightly, and the host gets back what it counted. On the
 * false driver. */
#define _GNU_SOURCE
#include <rung/model.h>

#include "device/fake_world.h"

enum { ROWS = 70, STEPS = 5 };

/* What the rounds below do: a model with paged keys and values, a prompt through the library of products, decoding until
 * it is captured, two sequences, a state saved and put back. */
static int rows = ROWS;

static rung_status use_generator(rung_generator *g, int32_t vocabulary) {
  int32_t ids[ROWS], wanted[2] = {0, 1};
  const float *logits;
  for (int i = 0; i < ROWS; i++) ids[i] = (i * 37 + 11) % vocabulary;
  RUNG_TRY(rung_generator_run(g, (const rung_rows[]){{0, rows}}, 1, ids, wanted, 1, &logits));
  for (int i = 0; i < STEPS; i++)
    RUNG_TRY(rung_generator_run(g, (const rung_rows[]){{0, 1}, {1, 1}}, 2, ids + i, wanted, 2, &logits));
  RUNG_TRY(rung_generator_copy(g, 1, 0, rows));
  return rung_generator_reset(g, 0);
}

static rung_status use_model(rung_host *host, rung_quant quant, rung_error *error) {
  rung_device *device = NULL;
  rung_model *model = NULL;
  rung_generator *g = NULL;
  rung_model_info info;
  const rung_source source = rung_source_path(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf");
  rung_model_options mo = rung_model_options_default();
  mo.quant = quant;
  rung_generate_options go = rung_generate_options_default();
  go.sequences = 2;
  go.context = 128;
  go.chunk = ROWS;
  go.logits = 2;
  go.kv = RUNG_TYPE_F16;
  go.blocks = 4;
  rung_status s = rung_device_create(host, "cuda", NULL, error, &device);
  if (!s) s = rung_model_open(device, &source, &mo, error, &model);
  if (!s) rung_model_get_info(model, &info);
  if (!s) s = rung_generator_create(model, &go, error, &g);
  if (!s && (s = use_generator(g, (int32_t)info.vocabulary)) != RUNG_OK)
    s = rung_fail(error, s, "%s", rung_generator_message(g));
  rung_generator_destroy(g);
  rung_model_release(model);
  rung_device_release(device);
  return s;
}

static bool in_host(const rung_host *host, const rung_memory *before, const char *what, int64_t n) {
  const rung_memory m = rung_host_memory(host);
  test_state.checks++;
  if (m.activations + m.scratch + m.packed + m.state + m.weights + m.load == 0 && m.host == before->host) return true;
  TEST_FAIL_("%s %lld (%s): left are host %lld, activations %llu, scratch %llu, packed %llu, state %llu, weights %llu",
             what, (long long)n, fake->failed ? fake->failed : "nothing", (long long)m.host - (long long)before->host,
             (unsigned long long)m.activations, (unsigned long long)m.scratch, (unsigned long long)m.packed,
             (unsigned long long)m.state, (unsigned long long)m.weights);
  return false;
}

static int64_t whole_round(rung_quant quant) {
  rung_host *host = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const rung_memory before = rung_host_memory(host);
  fake_reset();
  const rung_status s = use_model(host, quant, &error);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", error.message);
  in_host(host, &before, "a whole round", 0);
  fake_check("a whole round");
  rung_host_release(host);
  return fake->calls;
}

/* How many rounds failed. */
static int fail_calls(int64_t calls, int64_t stride, bool from, int with, rung_quant quant) {
  int failed = 0, off = 0;
  for (int64_t n = 1; n <= calls && off < 5; n += n < 80 ? 1 : stride) {
    rung_host *host = NULL;
    rung_error error = {RUNG_OK, ""};
    if (rung_host_create(NULL, &error, &host)) return -1;
    const rung_memory before = rung_host_memory(host);
    fake_reset();
    fake->fail_at = n;
    fake->fail_from = from;
    fake->fail_with = with;
    const rung_status s = use_model(host, quant, &error);
    failed += s != RUNG_OK;
    test_state.checks += 2;
    if (s && !error.message[0]) TEST_FAIL_("call %lld (%s): no message", (long long)n, fake->failed);
    if (fake->wrongs) TEST_FAIL_("call %lld (%s): %s", (long long)n, fake->failed, fake->wrong);
    if (!in_host(host, &before, from ? "from call" : "call", n) || fake->wrongs) off++;
    rung_host_release(host);
  }
  return failed;
}

static void check_calls(rung_quant quant) {
  const int64_t calls = whole_round(quant), stride = calls / (test_slow() ? 40 : 60) + 1;
  int64_t wave = whole_round(quant);
  CHECK_EQ_I64(wave, calls);
  /* Most calls matter: those that may fail without harm are captures, hints and giving back. */
  const int alone = fail_calls(calls, stride, false, 700, quant), from = fail_calls(calls, stride, true, 700, quant),
            memory = fail_calls(calls, stride, false, 2, quant);
  printf("%lld calls; rounds that failed: %d by one call, %d by all from one on, %d by one without memory\n",
         (long long)calls, alone, from, memory);
  CHECK(alone > 0 && from >= alone && memory > 0);
}

static void test_calls(void) { check_calls(RUNG_QUANT_FAST); }
static void test_calls_without_kernels(void) {
  setenv("RUNG_CUDA_KERNELS", "0", 1);
  rows = 3; /* each number of a step on the host may be a call */
  check_calls(RUNG_QUANT_EXACT);
  unsetenv("RUNG_CUDA_KERNELS");
  rows = ROWS;
}

/* ---- allocations of the host */

typedef struct nth {
  int64_t left;
} nth;
static bool refuse(void *self, rung_fault what) {
  (void)what;
  return --((nth *)self)->left == 0;
}

static void test_allocations(void) {
  int failed = 0, whole = 0, off = 0;
  for (int64_t n = 1; whole < 1 && off < 5; n += n < 300 ? 1 : test_slow() ? 211 : 41) {
    rung_host *host = NULL;
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(rung_host_create(NULL, &error, &host));
    const rung_memory before = rung_host_memory(host);
    nth counter = {n};
    fake_reset();
    rung_host_set_fault(host, refuse, &counter);
    const rung_status s = use_model(host, RUNG_QUANT_FAST, &error);
    rung_host_set_fault(host, NULL, NULL);
    failed += s != RUNG_OK;
    whole += counter.left > 0;
    test_state.checks++;
    if (s && !error.message[0]) TEST_FAIL_("allocation %lld: no message", (long long)n);
    if (!in_host(host, &before, "allocation", n)) off++;
    fake_check("an allocation");
    rung_host_release(host);
  }
  printf("%d allocations refused\n", failed);
  CHECK(failed > 100);
}

int main(void) {
  if (!fake_begin()) return TEST_END();
  RUN(test_calls);
  RUN(test_calls_without_kernels);
  RUN(test_allocations);
  return TEST_END();
}
