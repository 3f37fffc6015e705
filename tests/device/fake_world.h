/* SPDX-License-Identifier: MIT
 * Tests of the CUDA device that also run without a GPU: on the false driver, where kernels do nothing. */
#ifndef RUNG_TESTS_FAKE_WORLD_H
#define RUNG_TESTS_FAKE_WORLD_H

#include <dlfcn.h>
#include <rung/rung.h>

#include "base/library.h"
#include "device/fake_cuda.h"
#include "test.h"

static fake_cuda *fake;
static fake_cuda_reset_fn *fake_reset;

/* From now on "cuda" is the false driver. False, and a failed check: it could not be opened. */
static inline bool fake_begin(void) {
  void *library = rung_library_open((const char *const[]){FAKE_CUDA, NULL});
  fake_cuda_state_fn *state_of = NULL;
  void *symbol[2] = {rung_library_symbol(library, "fake_cuda_state"), rung_library_symbol(library, "fake_cuda_reset")};
  CHECK(symbol[0] && symbol[1]);
  if (!symbol[0] || !symbol[1]) return false;
  memcpy(&state_of, &symbol[0], sizeof state_of);
  memcpy(&fake_reset, &symbol[1], sizeof fake_reset);
  fake = state_of();
  setenv("RUNG_CUDA_DRIVER", FAKE_CUDA, 1);
  setenv("RUNG_NVRTC", FAKE_CUDA, 1);
  setenv("RUNG_CUBLASLT", FAKE_CUDA, 1);
  unsetenv("RUNG_CUDA_CACHE"); /* what the false compiler makes must not be kept for a real one */
  return true;
}

/* The GPU that there is (true), or else the false driver: what is counted is checked on both, numbers on a GPU alone. */
static inline bool fake_unless_real(void) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const bool real = !getenv("RUNG_CUDA_DRIVER") && rung_device_create(host, "cuda", NULL, &error, &device) == RUNG_OK;
  printf("on %s\n", real ? rung_device_name(device) : "the false driver");
  rung_device_release(device);
  rung_host_release(host);
  if (!real) fake_begin();
  return real;
}

/* Nothing is left there, and nothing wrong was done. */
static inline void fake_check(const char *when) {
  test_state.checks++;
  if (fake->wrongs) TEST_FAIL_("%s: %d times wrong, first: %s", when, (int)fake->wrongs, fake->wrong);
  const struct {
    int64_t left;
    const char *name;
  } kind[] = {{fake->contexts, "contexts"}, {fake->streams, "streams"},
              {fake->events, "events"},     {fake->modules, "modules"},
              {fake->graphs, "graphs"},     {fake->executables, "executables"},
              {fake->buffers, "buffers"},   {fake->reservations, "reservations"},
              {fake->pages, "pages"},       {fake->pinned, "pinned memories"},
              {fake->programs, "programs"}, {fake->products, "descriptions of products"}};
  for (size_t i = 0; i < RUNG_COUNT(kind); i++) {
    test_state.checks++;
    if (kind[i].left) TEST_FAIL_("%s: %d %s are left", when, (int)kind[i].left, kind[i].name);
  }
  CHECK_EQ_I64(fake->used, 0);
}

#endif
