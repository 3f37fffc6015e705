/* SPDX-License-Identifier: MIT
 * Submitted runs on every kind of device that is here: the host's two, and one whose memory is far (far_world.h). */
#ifndef RUNG_TESTS_CTS_SUBMIT_WORLD_H
#define RUNG_TESTS_CTS_SUBMIT_WORLD_H

#include "base/runner.h"
#include "cts/far_world.h"

enum { SUBMIT_REF, SUBMIT_CPU, SUBMIT_FAR, SUBMIT_DEVICES };

static inline rung_status submit_try(world *w, const char *text, int device, const world_options *options) {
  world_options o = options ? *options : (world_options){0};
  o.device = device == SUBMIT_CPU ? "cpu" : "ref";
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
