/* SPDX-License-Identifier: MIT
 * Models come and go: after 1,000 rounds of loading, running and unloading (300 on the false driver) the GPU has as much free memory as after 100,
 * the process is as large, and all that is counted is what it was; the same for devices that are made anew. On a GPU, or
 * on the false driver. */
#define _GNU_SOURCE
#include <rung/model.h>
#include <unistd.h>

#include "../held.h"
#include "device/fake_world.h"
#include "process.h"

enum { ROUNDS = 1000, SETTLED = 100, DEVICES = 20, ROWS = 9 };

static bool real;

/* Free memory of the GPU by its driver, which other processes use, too; 0 without one. */
static uint64_t free_there(void) {
  int (*retain)(void **, int) = NULL, (*release)(int) = NULL, (*set)(void *) = NULL, (*info)(size_t *, size_t *) = NULL;
  void *library = rung_library_open((const char *const[]){real ? "libcuda.so.1" : FAKE_CUDA, NULL});
  const struct {
    const char *name;
    void *to;
  } symbol[] = {{"cuDevicePrimaryCtxRetain", &retain},
                {"cuDevicePrimaryCtxRelease_v2", &release},
                {"cuCtxSetCurrent", &set},
                {"cuMemGetInfo_v2", &info}};
  size_t free_ = 0, total = 0;
  void *context = NULL;
  for (size_t i = 0; i < RUNG_COUNT(symbol); i++) {
    void *address = rung_library_symbol(library, symbol[i].name);
    CHECK(address != NULL);
    memcpy(symbol[i].to, &address, sizeof address);
  }
  if (retain && release && set && info && !retain(&context, 0)) {
    CHECK_EQ_I64(set(context), 0);
    CHECK_EQ_I64(info(&free_, &total), 0);
    CHECK_EQ_I64(set(NULL), 0);
    CHECK_EQ_I64(release(0), 0);
  }
  rung_library_close(library);
  return free_;
}

static rung_status one_round(rung_device *device, int round, rung_error *error) {
  static const char *const paths[] = {RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf",
                                      RUNG_SOURCE_DIR "/tests/models/tiny/gemma3.gguf"};
  rung_model *model = NULL;
  rung_generator *g = NULL;
  const rung_source source = rung_source_path(paths[round % 2]);
  rung_generate_options o = rung_generate_options_default();
  o.sequences = 2;
  o.context = 128;
  o.chunk = ROWS;
  o.blocks = round % 4 < 2 ? 0 : 4;
  int32_t ids[ROWS], wanted[1] = {0};
  const float *logits;
  for (int i = 0; i < ROWS; i++) ids[i] = (round + i * 5) % 100;
  rung_status s = rung_model_open(device, &source, NULL, error, &model);
  if (!s) s = rung_generator_create(model, &o, error, &g);
  if (!s) s = rung_generator_run(g, (const rung_rows[]){{0, ROWS}}, 1, ids, wanted, 1, &logits);
  for (int i = 0; i < 4 && !s; i++)
    s = rung_generator_run(g, (const rung_rows[]){{0, 1}}, 1, ids + i, wanted, 1, &logits);
  if (s && g) s = rung_fail(error, s, "%s", rung_generator_message(g));
  rung_generator_destroy(g);
  rung_model_release(model);
  return s;
}

typedef struct sizes {
  uint64_t counted, buffers, pages, there, process;
} sizes;

static sizes sizes_of(const rung_host *host, const rung_device *device) {
  rung_device_counters c;
  rung_device_get_counters(device, &c);
  return (sizes){held(host), c.buffers, c.pages, free_there(), process_bytes("VmRSS")};
}

/* What the process may grow by: pages that the allocator of the system, and the driver, hold in pieces. */
enum { NOISE = 2 << 20 };

static void compare(const sizes *a, const sizes *b, const char *what) {
  CHECK_EQ_I64(b->counted, a->counted);
  CHECK_EQ_I64(b->buffers, a->buffers);
  CHECK_EQ_I64(b->pages, a->pages);
  printf("%s: counted %llu bytes, on the device %llu; free there %lld bytes less, the process %lld bytes more\n", what,
         (unsigned long long)b->counted, (unsigned long long)(b->buffers + b->pages),
         (long long)a->there - (long long)b->there, (long long)b->process - (long long)a->process);
  CHECK(a->there <= b->there + NOISE);
  if (!test_slow()) CHECK(b->process <= a->process + NOISE); /* a sanitizer keeps what was freed */
}

static void test_models(void) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  sizes settled = {0}, last = {0};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "cuda", NULL, &error, &device));
  rung_device_counters before = {0}, after;
  const int rounds = test_slow() ? SETTLED + 20 : real ? ROUNDS : 3 * SETTLED;
  for (int i = 0; device && i < rounds; i++) {
    const rung_status s = one_round(device, i, &error);
    test_state.checks++;
    if (s) {
      TEST_FAIL_("round %d: %s", i, error.message);
      break;
    }
    if (i == SETTLED - 1) {
      settled = sizes_of(host, device);
      rung_device_get_counters(device, &before);
    }
  }
  last = sizes_of(host, device);
  rung_device_get_counters(device, &after);
  compare(&settled, &last, "models");
  CHECK_EQ_I64(after.compiles, before.compiles);
  CHECK_EQ_I64(after.pages, 0);
  rung_device_release(device);
  const rung_memory m = rung_host_memory(host);
  CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  rung_host_release(host);
  if (!real) fake_check("models");
}

static void test_devices(void) {
  rung_host *host = NULL;
  rung_error error = {RUNG_OK, ""};
  sizes settled = {0}, last;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  for (int i = 0; i < DEVICES; i++) {
    rung_device *device = NULL;
    rung_status s = rung_device_create(host, "cuda", NULL, &error, &device);
    if (!s) s = one_round(device, i % 2 * 2, &error);
    test_state.checks++;
    if (s) TEST_FAIL_("device %d: %s", i, error.message);
    rung_device_release(device);
    if (i == DEVICES / 2) settled = sizes_of(host, NULL);
  }
  last = sizes_of(host, NULL);
  compare(&settled, &last, "devices");
  rung_host_release(host);
  if (!real) fake_check("devices");
}

int main(void) {
  /* Devices are made anew without compiling anew, as in a process that keeps its kernels. */
  char folder[] = "/tmp/rung_cuda_leaks_XXXXXX", command[100];
  if (!mkdtemp(folder)) return 1;
  real = fake_unless_real();
  if (!getenv("RUNG_CUDA_CACHE")) setenv("RUNG_CUDA_CACHE", folder, 1);
  RUN(test_models);
  RUN(test_devices);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) return 1;
  return TEST_END();
}
