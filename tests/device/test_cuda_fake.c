/* SPDX-License-Identifier: MIT
 * The host side of the CUDA device on a false driver (fake_cuda.c): every symbol is asked for as it is declared, drivers
 * that are missing or too old are refused by name, and steps on the host compute through the device's memory what the
 * reference device computes, with every page and buffer given back. */
#define _GNU_SOURCE
#include <math.h>
#include <rung/model.h>

#include "cts/random_run.h"
#include "cts/world.h"
#include "device/fake_world.h"
#include "formats/npy.h"

/* ---- what is missing */

static void check_refused(const char *says, const char *also) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const uint64_t before = rung_host_memory(host).host;
  CHECK_STATUS(rung_device_create(host, "cuda", NULL, &error, &device), RUNG_UNSUPPORTED);
  CHECK(!device);
  test_state.checks++;
  if (!strstr(error.message, says) || !strstr(error.message, also))
    TEST_FAIL_("\"%s\" does not say \"%s\" and \"%s\"", error.message, says, also);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  fake_check(says);
  fake_reset();
}

static void test_missing(void) {
  setenv("RUNG_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  check_refused("RUNG_CUDA_DRIVER", "/nowhere/libcuda.so.1");
  unsetenv("RUNG_CUDA_DRIVER");
  if (!rung_library_open((const char *const[]){"libcuda.so.1", "libcuda.so", NULL}))
    check_refused("libcuda.so.1", "not on this machine");
  setenv("RUNG_CUDA_DRIVER", FAKE_CUDA_LACKS, 1);
  check_refused("cuLaunchKernelEx", "too old");
  setenv("RUNG_CUDA_DRIVER", FAKE_CUDA, 1);
  setenv("RUNG_NVRTC", "/nowhere/libnvrtc.so", 1);
  check_refused("libnvrtc", "RUNG_NVRTC");
  setenv("RUNG_NVRTC", FAKE_CUDA, 1);
  fake->version = 12030;
  check_refused("CUDA 12.3", "12.4");
  fake->version = 11080;
  check_refused("CUDA 11.8", "12.4");
  fake->devices = 0;
  check_refused("no GPU", "none is listed");
  fake->major = 7;
  fake->minor = 5;
  check_refused("7.5", "8.0");
  setenv("RUNG_CUDA_DEVICE", "1", 1);
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_STATUS(rung_device_create(host, "cuda", NULL, &error, &device), RUNG_OUT_OF_RANGE);
  CHECK(strstr(error.message, "RUNG_CUDA_DEVICE is 1"));
  rung_host_release(host);
  unsetenv("RUNG_CUDA_DEVICE");
  fake_check("a device that is not there");
}

/* What the backend asks for is all there: a symbol that is new needs a line in fake_cuda.c. */
static void test_symbols(void) {
  static const char *const names[] = {
#define DRIVER(name, symbol, parameters) symbol,
#define COMPILER(name, symbol, parameters) symbol,
#define PRODUCTS(name, symbol, parameters) symbol,
#include "backends/cuda/symbols.def"
#undef DRIVER
#undef COMPILER
#undef PRODUCTS
  };
  void *library = rung_library_open((const char *const[]){FAKE_CUDA, NULL});
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    test_state.checks++;
    if (!rung_library_symbol(library, names[i])) TEST_FAIL_("fake_cuda.c has no %s", names[i]);
  }
  rung_library_close(library);
}

/* ---- steps on the host */

/* Policies, each with how far it may move a number: that of test_precision_graphs. */
static const struct {
  const char *name;
  double unit;
} policies[] = {{"f32", 0}, {"mixed", 0x1p-8}, {"mixed-f16", 0x1p-11}, {"bf16", 0x1p-8}, {"f16", 0x1p-11}};

static void test_random_policies(void) {
  rg_run run = {0};
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &run.host));
  CHECK_OK(rung_device_create(run.host, "ref", NULL, &error, &run.ref));
  CHECK_OK(rung_device_create(run.host, "cuda", NULL, &error, &run.cpu));
  const double step = rg_step;
  for (size_t p = 1; p < RUNG_COUNT(policies) && run.cpu; p++) {
    CHECK(rung_precision_find(policies[p].name, &run.precision));
    rg_stored = 3 * policies[p].unit;
    rg_step = step + 4 * policies[p].unit;
    for (int i = 0; i < 6; i++) {
      rg_choices c = {.random = 7001 + 100 * p + 2 * (uint64_t)i};
      const bool good = rg_once(&run, &c, 2);
      test_state.checks++;
      if (!good) TEST_FAIL_("%s, random graph %d: %s", policies[p].name, i, run.why);
    }
  }
  rg_stored = 0;
  rg_step = step;
  rung_device_release(run.cpu);
  rung_device_release(run.ref);
  rung_host_release(run.host);
  fake_check("random graphs under policies");
}

static void test_random_graphs(void) {
  rung_host *host = NULL;
  rung_device *reference = NULL, *device = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "ref", NULL, &error, &reference));
  CHECK_OK(rung_device_create(host, "cuda", NULL, &error, &device));
  rg_run run = {.host = host, .ref = reference, .cpu = device};
  for (int i = 0; device && i < 12; i++) {
    rg_choices c = {.random = 9001 + 2 * (uint64_t)i};
    const bool good = rg_once(&run, &c, 3);
    test_state.checks++;
    if (!good) TEST_FAIL_("random graph %d: %s", i, run.why);
  }
  rung_device_counters counters;
  rung_device_get_counters(device, &counters);
  CHECK(counters.host_steps > 0 && counters.launches == 0 && counters.compiles == 0);
  CHECK_EQ_I64(counters.pages, 0);
  CHECK(counters.buffers <= 2 * 4096); /* words that wait for contexts */
  rung_device_release(device);
  rung_device_release(reference);
  rung_host_release(host);
  fake_check("random graphs");
}

/* Logits of the recorded float64 oracle (tests/models/tiny): as the reference device has them. */
static const double TINY_EXACT = 2e-6;
enum { MOST = 64 };

static int read_ids(const char *family, int32_t *out) {
  char path[600];
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.a.ids", family);
  FILE *f = fopen(path, "r");
  int n = 0;
  while (f && n < MOST && fscanf(f, "%d", &out[n]) == 1) n++;
  if (f) fclose(f);
  return n;
}

typedef struct tiny {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_model_info info;
  rung_generator *generator;
  rung_error error;
} tiny;

static bool open_tiny(tiny *t, const char *family, int64_t blocks) {
  char path[600];
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.gguf", family);
  const rung_source source = rung_source_path(path);
  rung_model_options mo = rung_model_options_default();
  mo.quant = RUNG_QUANT_EXACT;
  rung_generate_options go = rung_generate_options_default();
  go.sequences = 2;
  go.chunk = go.logits = MOST;
  go.context = 256;
  go.kv = RUNG_TYPE_F32;
  go.blocks = blocks;
  *t = (tiny){0};
  rung_status s = rung_host_create(NULL, &t->error, &t->host);
  if (!s) s = rung_device_create(t->host, "cuda", NULL, &t->error, &t->device);
  if (!s) s = rung_model_open(t->device, &source, &mo, &t->error, &t->model);
  if (!s) rung_model_get_info(t->model, &t->info);
  if (!s) s = rung_generator_create(t->model, &go, &t->error, &t->generator);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", family, t->error.message);
  return !s;
}

static void close_tiny(tiny *t) {
  rung_generator_destroy(t->generator);
  rung_model_release(t->model);
  rung_device_release(t->device);
  if (t->host) {
    const rung_memory m = rung_host_memory(t->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(t->host);
}

/* The text in pieces of `piece` rows, into sequence `slot`. */
static void check_logits(tiny *t, const char *family, int32_t slot, int piece) {
  char path[600];
  int32_t ids[MOST], wanted[MOST];
  const int n = read_ids(family, ids);
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.a.logits.npy", family);
  const rung_source source = rung_source_path(path);
  rung_npy want;
  CHECK(n > 0);
  const rung_status opened = rung_npy_open(&want, t->host, &source, &t->error);
  CHECK_OK(opened);
  if (opened) return;
  CHECK_OK(rung_generator_reset(t->generator, slot));
  double largest = 0, worst = 0;
  for (int at = 0; at < n; at += piece) {
    const int32_t rows = n - at < piece ? n - at : piece;
    const float *got = NULL;
    for (int32_t i = 0; i < rows; i++) wanted[i] = i;
    const rung_status s = rung_generator_run(t->generator, &(rung_rows){slot, rows}, 1, ids + at, wanted, rows, &got);
    test_state.checks++;
    if (s) {
      TEST_FAIL_("%s: %s", family, rung_generator_message(t->generator));
      break;
    }
    const double *exact = (const double *)want.data + (int64_t)at * t->info.vocabulary;
    for (int64_t i = 0; i < (int64_t)rows * t->info.vocabulary; i++) {
      largest = fmax(largest, fabs(exact[i]));
      worst = fmax(worst, isnan(got[i]) ? (double)INFINITY : fabs(exact[i] - (double)got[i]));
    }
  }
  test_state.checks++;
  if (!(worst <= TINY_EXACT * largest))
    TEST_FAIL_("%s in pieces of %d: %g of the largest logit", family, piece, worst / largest);
  rung_npy_close(&want);
}

static void check_family(const char *family, int64_t blocks) {
  tiny t;
  if (open_tiny(&t, family, blocks)) {
    check_logits(&t, family, 0, MOST);
    check_logits(&t, family, 1, 7);
    check_logits(&t, family, 0, 13);
    rung_device_counters c;
    rung_device_get_counters(t.device, &c);
    const rung_memory m = rung_host_memory(t.host);
    CHECK_EQ_I64(c.pages, m.activations + m.scratch + m.state);
    CHECK(c.host_steps > 0 && c.launches == 0);
    CHECK(fake->buffers > 0 && (uint64_t)fake->pages * (2 << 20) == c.pages);
  }
  close_tiny(&t);
  fake_check(family);
}

static void test_models(void) {
  check_family("llama", 0);
  if (!test_slow()) check_family("gemma3", 0);
  check_family("llama", 6);
}

/* Steps that the host takes in a run of two rows. */
static int64_t host_steps(const char *path, const char *policy) {
  tiny t = {0};
  const rung_source source = rung_source_path(path);
  rung_model_options mo = rung_model_options_default();
  rung_generate_options go = rung_generate_options_default();
  CHECK(rung_precision_find(policy, &mo.precision));
  go.chunk = go.logits = 2;
  rung_status s = rung_host_create(NULL, &t.error, &t.host);
  if (!s) s = rung_device_create(t.host, "cuda", NULL, &t.error, &t.device);
  if (!s) s = rung_model_open(t.device, &source, &mo, &t.error, &t.model);
  if (!s) s = rung_generator_create(t.model, &go, &t.error, &t.generator);
  test_state.checks++;
  if (s) TEST_FAIL_("%s, %s: %s", path, policy, t.error.message);
  const float *got = NULL;
  const int32_t ids[] = {1, 2}, wanted[] = {0, 1};
  if (!s) CHECK_OK(rung_generator_run(t.generator, &(rung_rows){0, 2}, 1, ids, wanted, 2, &got));
  rung_device_counters c = {0};
  if (t.device) rung_device_get_counters(t.device, &c);
  CHECK(c.launches > 0);
  close_tiny(&t);
  return (int64_t)c.host_steps;
}

/* No policy leaves steps to the host that f32 does not. */
static void test_policies(void) {
  static const char *const paths[] = {RUNG_SOURCE_DIR "/tests/models/tiny/llama-f32",
                                      RUNG_SOURCE_DIR "/tests/models/tiny/gemma3-bf16"};
  for (size_t i = 0; i < RUNG_COUNT(paths); i++) {
    const int64_t plain = host_steps(paths[i], "f32");
    for (size_t p = 1; p < RUNG_COUNT(policies); p++) CHECK_EQ_I64(host_steps(paths[i], policies[p].name), plain);
  }
  fake_check("policies");
}

int main(void) {
  if (!fake_begin()) return TEST_END();
  RUN(test_symbols);
  RUN(test_missing);
  RUN(test_policies);
  setenv("RUNG_CUDA_KERNELS", "0", 1);
  RUN(test_random_graphs);
  RUN(test_random_policies);
  RUN(test_models);
  return TEST_END();
}
