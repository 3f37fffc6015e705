/* SPDX-License-Identifier: MIT
 * The order of passes. The verifier runs after each, in release builds too: a wrong graph is caught where it was made. */
#include <string.h>

#include "passes/pass.h"

static bool want_fold(const rung_compile_options *o) { return o->fold; }
static bool want_merge(const rung_compile_options *o) { return o->merge; }
static bool want_fuse(const rung_compile_options *o) { return o->fuse; }
static bool want_fast(const rung_compile_options *o) { return o->quant == RUNG_QUANT_FAST; }

/* PASS(name, when it is wanted: NULL for always). */
#define RUNG_PASSES(PASS)          \
  PASS(dead, want_fold)            \
  PASS(common, want_fold)          \
  PASS(merge, want_merge)          \
  PASS(quantize, want_fast)        \
  PASS(forms, NULL)                \
  PASS(epilogues, want_fuse)       \
  PASS(regions, want_fuse)         \
  PASS(legalise, NULL)             \
  PASS(dead_last, NULL)

#define PASS(name, wanted) rung_status rung_pass_##name(rung_pass_env *env, const rung_graph *from, rung_graph *to);
RUNG_PASSES(PASS)
#undef PASS

static const rung_pass_row rows[] = {
#define PASS(name, wanted) {#name, rung_pass_##name, wanted},
    RUNG_PASSES(PASS)
#undef PASS
};

/* A pass that made new work for itself (a decomposition that needs decomposing) runs again, up to the nesting limit. */
enum { MAX_ROUNDS = 64 };

static rung_status run_row(rung_pass_env *env, const rung_pass_row *row, const rung_graph *from, rung_graph **out_graph) {
  rung_graph *to;
  RUNG_TRY(rung_graph_create_like(from, env->error, &to));
  rung_status status = row->run(env, from, to);
  if (!status && rung_graph_status(to)) status = rung_fail(env->error, rung_graph_status(to), "%s", rung_graph_message(to));
  if (!status) status = rung_graph_verify(to, env->error);
  if (status) {
    rung_graph_destroy(to);
    return rung_fail_prefix(env->error, status, "pass %s", row->name);
  }
  *out_graph = to;
  return RUNG_OK;
}

rung_status rung_pipeline_pass(rung_pass_env *env, const char *name, const rung_graph *graph, rung_graph **out_graph) {
  for (size_t i = 0; i < RUNG_COUNT(rows); i++)
    if (strcmp(rows[i].name, name) == 0) return run_row(env, &rows[i], graph, out_graph);
  return rung_fail(env->error, RUNG_NOT_FOUND, "there is no pass \"%s\"", name);
}

rung_status rung_pipeline_run(rung_pass_env *env, const rung_graph *graph, rung_graph **out_graph) {
  RUNG_TRY(rung_graph_verify(graph, env->error));
  const rung_graph *now = graph;
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    if (rows[i].wanted && !rows[i].wanted(env->options)) continue;
    for (int round = 0; round < MAX_ROUNDS; round++) {
      rung_graph *next;
      env->again = false;
      const rung_status status = run_row(env, &rows[i], now, &next);
      if (now != graph) rung_graph_destroy((rung_graph *)now);
      if (status) return status;
      now = next;
      if (!env->again) break;
    }
  }
  *out_graph = (rung_graph *)now; /* legalise always runs, so this is never the caller's */
  return RUNG_OK;
}
