/* SPDX-License-Identifier: MIT
 * Submitted runs on every kind of device that is here: the host's two, and one whose memory is far (far_world.h). With the
 * argument "cuda" the tests of such a program run on the GPU instead. */
#ifndef RUNG_TESTS_CTS_SUBMIT_WORLD_H
#define RUNG_TESTS_CTS_SUBMIT_WORLD_H

#include "base/runner.h"
#include "cts/far_world.h"

enum { SUBMIT_REF, SUBMIT_CPU, SUBMIT_FAR, SUBMIT_DEVICES, SUBMIT_CUDA = SUBMIT_DEVICES };

/* Devices that tests go over. */
static struct {
  int first, end;
  rung_host *host; /* of the GPU, which stays open from test to test */
  rung_device *gpu;
} submit_on = {.first = SUBMIT_REF, .end = SUBMIT_DEVICES};

/* False, and why is printed, where there is no GPU to run on. */
static inline bool submit_begin(int argc, char **argv) {
  rung_error error = {RUNG_OK, ""};
  if (argc < 2 || strcmp(argv[1], "cuda") != 0) return true;
  submit_on.first = SUBMIT_CUDA;
  submit_on.end = SUBMIT_CUDA + 1;
  CHECK_OK(rung_host_create(NULL, &error, &submit_on.host));
  if (rung_device_create(submit_on.host, "cuda", NULL, &error, &submit_on.gpu)) printf("skipped: %s\n", error.message);
  return submit_on.gpu != NULL;
}

static inline void submit_end(void) {
  rung_device_release(submit_on.gpu);
  rung_host_release(submit_on.host);
}

static inline rung_status submit_try(world *w, const char *text, int device, const world_options *options) {
  world_options o = options ? *options : (world_options){0};
  o.device = device == SUBMIT_CUDA ? "cuda" : device == SUBMIT_CPU ? "cpu" : "ref";
  rung_status s = world_base(w, &o);
  if (!s && device == SUBMIT_FAR) far_world_make(w->device);
  if (!s) s = rung_graph_parse(w->host, text, strlen(text), &w->error, &w->graph);
  return s ? s : world_compile(w, &o);
}

static inline bool submit_open(world *w, const char *text, int device, const world_options *options) {
  const rung_status s = submit_try(w, text, device, options);
  test_state.checks++;
  if (s) TEST_FAIL_("device %d: %s", device, w->error.message);
  return !s;
}

static inline uint64_t submit(world *w) {
  uint64_t ticket = 0;
  const rung_status s = rung_context_submit(w->context, &ticket);
  test_state.checks++;
  if (s) TEST_FAIL_("submit: %s", rung_context_message(w->context));
  return ticket;
}

static inline bool submit_wait(world *w, uint64_t ticket) {
  const rung_status s = rung_context_wait(w->context, ticket);
  test_state.checks++;
  if (s) TEST_FAIL_("wait for %d: %s", (int)ticket, rung_context_message(w->context));
  return !s;
}

#endif
