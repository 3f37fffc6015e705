/* SPDX-License-Identifier: MIT
 * From the text of a graph to a context that runs it, for tests of plans, contexts and states. */
#ifndef RUNG_TESTS_CTS_WORLD_H
#define RUNG_TESTS_CTS_WORLD_H

#include <rung/program.h>

#include "../test.h"
#include "runtime/runtime.h"

static const char *const world_devices[] = {"ref", "cpu"};

typedef struct world_options {
  const char *device; /* NULL: "ref" */
  const rung_allocator *allocator;
  uint64_t budget;
  const rung_binding *ceiling;
  size_t ceilings;
  const rung_state_options *state; /* NULL: none is made */
  bool commit_all, plain;          /* plain: no pass but what the device needs */
  uint64_t seed;
  int in_flight;
  bool one_output;
} world_options;

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_template *template_;
  rung_program *program;
  rung_state *state;
  rung_context *context;
  rung_error error;
} world;

/* Everything behind the graph. */
static inline rung_status world_compile(world *w, const world_options *o) {
  rung_compile_options compile = rung_compile_options_default();
  if (o->plain) compile.fold = compile.fuse = compile.merge = false;
  rung_context_options context = rung_context_options_default();
  context.commit_all = o->commit_all;
  context.seed = o->seed;
  context.in_flight = o->in_flight;
  context.one_output = o->one_output;
  rung_status s = rung_template_create(w->device, w->graph, &compile, &w->error, &w->template_);
  if (!s) s = rung_program_create(w->template_, o->ceiling, o->ceilings, &w->error, &w->program);
  if (!s && o->state) s = rung_state_create(w->template_, o->state, &w->error, &w->state);
  if (!s) s = rung_context_create(w->template_, NULL, w->state, &context, &w->error, &w->context);
  if (!s && (s = rung_context_use(w->context, w->program)))
    s = rung_fail(&w->error, s, "%s", rung_context_message(w->context));
  return s;
}

static inline rung_status world_base(world *w, const world_options *o) {
  *w = (world){0};
  rung_host_options host = rung_host_options_default();
  host.allocator = o->allocator;
  host.memory_budget = o->budget;
  rung_status s = rung_host_create(&host, &w->error, &w->host);
  if (!s) s = rung_device_create(w->host, o->device ? o->device : "ref", NULL, &w->error, &w->device);
  return s;
}

/* The status of the first call that fails; w->error has its message. world_close in any case. */
static inline rung_status world_try(world *w, const char *text, const world_options *o) {
  rung_status s = world_base(w, o);
  if (!s) s = rung_graph_parse(w->host, text, strlen(text), &w->error, &w->graph);
  return s ? s : world_compile(w, o);
}

static inline bool world_open(world *w, const char *text, const world_options *o) {
  const rung_status s = world_try(w, text, o);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", o->device ? o->device : "ref", w->error.message);
  return !s;
}

static inline void world_close(world *w) {
  rung_context_destroy(w->context);
  rung_state_release(w->state);
  rung_program_release(w->program);
  rung_template_release(w->template_);
  rung_graph_destroy(w->graph);
  rung_device_release(w->device);
  if (w->host) {
    const rung_memory m = rung_host_memory(w->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(w->host);
}

static inline bool world_run(world *w) {
  const rung_status s = rung_context_run(w->context);
  test_state.checks++;
  if (s) TEST_FAIL_("run: %s", rung_context_message(w->context));
  return !s;
}

/* Fills input `slot` with bytes; false (and a failed check) where the context refuses the extents. */
static inline bool world_put(world *w, int slot, const int64_t *extent, const void *data, size_t bytes) {
  void *p = NULL;
  const rung_status s = rung_context_input(w->context, slot, extent, &p);
  test_state.checks++;
  if (s) TEST_FAIL_("input %d: %s", slot, rung_context_message(w->context));
  if (!s && bytes) memcpy(p, data, bytes);
  return !s;
}
static inline bool world_put_i64(world *w, int slot, int64_t value) {
  return world_put(w, slot, (int64_t[]){0}, &value, sizeof value);
}
static inline bool world_put_bool(world *w, int slot, bool value) {
  const uint8_t byte = value;
  return world_put(w, slot, (int64_t[]){0}, &byte, 1);
}
/* A vector of n numbers first, first + 1 ... */
static inline bool world_put_ramp(world *w, int slot, int64_t n, float first) {
  void *p = NULL;
  const rung_status s = rung_context_input(w->context, slot, &n, &p);
  CHECK_OK(s);
  for (int64_t i = 0; !s && i < n; i++) ((float *)p)[i] = first + (float)i;
  return !s;
}

static inline rung_tensor world_output(world *w, int slot) {
  rung_tensor t = {0};
  const rung_status s = rung_context_output(w->context, slot, &t);
  test_state.checks++;
  if (s) TEST_FAIL_("output %d: %s", slot, rung_context_message(w->context));
  return t;
}
static inline int64_t world_count(const rung_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->extent[i];
  return n;
}
/* Output `slot` is f32 with these n numbers. */
#define WORLD_CHECK_F32(w, slot, n, want)                                                                            \
  do {                                                                                                               \
    const rung_tensor world_t_ = world_output(w, slot);                                                              \
    CHECK_EQ_I64(world_count(&world_t_), n);                                                                         \
    for (int64_t world_i_ = 0; world_t_.data && world_i_ < world_count(&world_t_) && world_i_ < (n); world_i_++) {   \
      const float world_v_ = ((const float *)world_t_.data)[world_i_];                                               \
      test_state.checks++;                                                                                           \
      if (world_v_ != (want)[world_i_])                                                                              \
        TEST_FAIL_("output %d [%d] is %g, not %g", slot, (int)world_i_, (double)world_v_, (double)(want)[world_i_]); \
    }                                                                                                                \
  } while (0)

/* What the program's report says of a fresh context at a binding must be what this one holds. */
static inline void world_check_memory(world *w, const rung_binding *binding, size_t count) {
  rung_memory want = {0};
  const rung_memory held = rung_context_memory(w->context);
  CHECK_OK(rung_program_memory(w->program, binding, count, NULL, &w->error, &want));
  CHECK_EQ_I64(held.activations, want.activations);
  CHECK_EQ_I64(held.scratch, want.scratch);
}

static inline uint32_t world_steps_of(const world *w, rung_step_kind kind) {
  uint32_t n = 0;
  const rung_plan *plan = w->program->plan;
  for (uint32_t i = 0; i < plan->steps; i++) n += plan->step[i].kind == kind;
  return n;
}

#endif
