/* SPDX-License-Identifier: MIT
 * A random graph on two devices at several bindings: within the derived tolerance of the reference, and the same bits
 * from a program with a large ceiling, one made for the size, one thread and several. Gives the first difference as
 * text. */
#ifndef RUNG_TESTS_CTS_RANDOM_RUN_H
#define RUNG_TESTS_CTS_RANDOM_RUN_H

#include <math.h>

#include "cts/random_graph.h"

enum { RG_BUFFER = 1 << 20 };

typedef struct rg_run {
  rung_host *host;
  rung_device *ref, *cpu;
  rung_precision precision; /* on `cpu`, whatever device that is */
  char why[600];
} rg_run;

/* Same numbers for the same seed, whatever the device. */
static inline rung_status rg_fill(rung_context *context, const rg_graph *r, const rung_program *program, int64_t a,
                                  int64_t b, uint64_t seed, bool flag) {
  for (int i = 0; i < r->inputs; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    const int slot = rung_program_find_input(program, name);
    if (slot < 0) continue; /* not needed by any output */
    const rung_plan *plan = program->plan;
    const rung_value_type *type = &plan->input[slot].type;
    int64_t extent[RUNG_MAX_RANK], n = 1;
    for (int axis = 0; axis < type->rank; axis++) {
      const rung_dim_node *node = &plan->dims->node[type->extent[axis].id];
      extent[axis] = node->kind == RUNG_DIM_KIND_CONSTANT                      ? node->value
                     : strcmp(plan->dims->symbol[node->symbol].name, "a") == 0 ? a
                                                                               : b;
      n *= extent[axis];
    }
    void *p;
    RUNG_TRY(rung_context_input(context, slot, extent, &p));
    uint64_t random = seed * 31 + 7 + (uint64_t)i;
    if (r->input[i].flag)
      *(uint8_t *)p = flag;
    else
      for (int64_t e = 0; e < n; e++) ((float *)p)[e] = test_uniform(&random, -2, 2);
  }
  /* An input that no output needs fixes nothing. */
  (void)!rung_context_set_extent(context, "a", a);
  (void)!rung_context_set_extent(context, "b", b);
  return RUNG_OK;
}

typedef struct rg_program {
  rung_template *template_;
  rung_program *program;
  rung_context *context;
} rg_program;

static inline void rg_drop(rg_program *p) {
  rung_context_destroy(p->context);
  rung_program_release(p->program);
  rung_template_release(p->template_);
  *p = (rg_program){0};
}

static inline rung_status rg_make(rung_template *t, const rung_binding *ceiling, size_t count, int threads,
                                  rung_error *error, rg_program *out) {
  rung_context_options co = rung_context_options_default();
  co.threads = threads;
  rung_template_retain(t);
  *out = (rg_program){.template_ = t};
  RUNG_TRY(rung_program_create(t, ceiling, count, error, &out->program));
  RUNG_TRY(rung_context_create(t, NULL, NULL, &co, error, &out->context));
  const rung_status s = rung_context_use(out->context, out->program);
  return s ? rung_fail(error, s, "%s", rung_context_message(out->context)) : RUNG_OK;
}

static inline rung_status rg_compile(rung_device *device, const rung_graph *g, const rung_precision *precision,
                                     int threads, rung_error *error, rg_program *out) {
  rung_compile_options o = rung_compile_options_default();
  o.precision = *precision;
  o.threads = threads;
  rung_template *t;
  RUNG_TRY(rung_template_create(device, g, &o, error, &t));
  const rung_status s = rg_make(t, NULL, 0, threads, error, out);
  rung_template_release(t);
  return s;
}

static inline rung_status rg_evaluate(rg_program *p, const rg_graph *r, int64_t a, int64_t b, uint64_t seed, bool flag,
                                      rung_error *error) {
  rung_status s = rg_fill(p->context, r, p->program, a, b, seed, flag);
  if (!s) s = rung_context_run(p->context);
  return s ? rung_fail(error, s, "%s", rung_context_message(p->context)) : RUNG_OK;
}

static inline bool rg_say(rg_run *run, const char *what, int64_t a, int64_t b, const char *detail) {
  snprintf(run->why, sizeof run->why, "%s at a = %" PRId64 ", b = %" PRId64 ": %s", what, a, b, detail);
  return false;
}

/* exact: bit for bit; else within the graph's tolerance. */
static inline bool rg_compare(rg_run *run, const rg_graph *r, const char *what, rg_program *x, rg_program *y,
                              bool exact, int64_t a, int64_t b) {
  for (int o = 0; o < r->outputs; o++) {
    rung_tensor p, q;
    if (rung_context_output(x->context, o, &p) || rung_context_output(y->context, o, &q))
      return rg_say(run, what, a, b, "no output");
    int64_t n = 1;
    for (int i = 0; i < p.rank; i++) {
      n *= p.extent[i];
      if (p.extent[i] != q.extent[i]) return rg_say(run, what, a, b, "extents differ");
    }
    for (int64_t e = 0; e < n; e++) {
      const float u = ((const float *)p.data)[e], v = ((const float *)q.data)[e];
      const bool good = exact ? memcmp(&u, &v, 4) == 0 : fabs((double)u - (double)v) <= r->tolerance[o] + 1e-30;
      if (good) continue;
      char detail[160];
      snprintf(detail, sizeof detail, "output %d [%" PRId64 "] is %.9g and %.9g, tolerance %.3g", o, e, (double)u,
               (double)v, exact ? 0 : r->tolerance[o]);
      return rg_say(run, what, a, b, detail);
    }
  }
  return true;
}

/* At one binding: the large program, and one for the size, on one thread. */
static inline bool rg_at(rg_run *run, const rg_graph *r, rg_program *ref, rg_program *cpu, int64_t a, int64_t b,
                         uint64_t seed) {
  rung_error error = {0};
  rg_program fit = {0};
  const rung_binding ceiling[] = {{"a", a}, {"b", b}};
  bool good =
      !rg_make(cpu->template_, ceiling, 2, 1, &error, &fit) || rg_say(run, "program for the size", a, b, error.message);
  for (int flag = 0; flag < 2 && good; flag++) {
    good = !rg_evaluate(ref, r, a, b, seed, flag, &error) || rg_say(run, "reference", a, b, error.message);
    good = good && (!rg_evaluate(cpu, r, a, b, seed, flag, &error) || rg_say(run, "cpu", a, b, error.message));
    good = good &&
           (!rg_evaluate(&fit, r, a, b, seed, flag, &error) || rg_say(run, "cpu for the size", a, b, error.message));
    good = good && rg_compare(run, r, "cpu and reference", cpu, ref, false, a, b);
    good = good && rg_compare(run, r, "cpu and cpu for the size", cpu, &fit, true, a, b);
  }
  rg_drop(&fit);
  return good;
}

/* One graph by the choices; false with run->why. A graph that the builders refuse is a failure too. */
static inline bool rg_once(rg_run *run, rg_choices *c, int bindings) {
  rung_error error = {0};
  rung_graph *g = NULL;
  static rg_graph r;
  if (rung_graph_create(run->host, &error, &g)) return false;
  rg_build(&r, g, c);
  rg_program ref = {0}, cpu = {0};
  const rung_precision plain = rung_precision_f32();
  bool good = !rung_graph_status(g) || rg_say(run, "building", 0, 0, rung_graph_message(g));
  good = good && (!rung_graph_verify(g, &error) || rg_say(run, "verify", 0, 0, error.message));
  good = good && (!rg_compile(run->ref, g, &plain, 1, &error, &ref) ||
                  rg_say(run, "compile for the reference", 0, 0, error.message));
  good = good && (!rg_compile(run->cpu, g, &run->precision, 3, &error, &cpu) ||
                  rg_say(run, "compile for the cpu", 0, 0, error.message));
  for (int i = 0; i < bindings && good; i++) {
    static const int64_t some[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, RG_MOST_A};
    const int64_t a = some[rg_below(c, 12)], b = 1 + rg_below(c, RG_MOST_B);
    good = rg_at(run, &r, &ref, &cpu, a, b, 1 + (uint64_t)i);
  }
  char *text;
  size_t bytes;
  if (!good && getenv("RUNG_GRAPH_PRINT") && !rung_graph_print(g, &error, &text, &bytes)) {
    fprintf(stderr, "%.*s", (int)bytes, text);
    rung_text_free(run->host, text, bytes);
  }
  rg_drop(&ref);
  rg_drop(&cpu);
  rung_graph_destroy(g);
  return good;
}

#endif
