/* SPDX-License-Identifier: MIT
 * The order of passes. The verifier runs after each, in release builds too: a wrong graph is caught where it was made.
 */
#include <stdatomic.h>
#include <string.h>

#include "passes/pass.h"
#include "passes/policy.h"

static bool want_fold(const rung_compile_options *o) { return o->fold; }
static bool want_merge(const rung_compile_options *o) { return o->merge; }
static bool want_fuse(const rung_compile_options *o) { return o->fuse; }
static bool want_affine(const rung_compile_options *o) { return o->fold && o->fuse; }
static bool want_narrow(const rung_compile_options *o) {
  return o->precision.compute != RUNG_TYPE_F32 || rung_precision_stores(&o->precision);
}
static bool want_storage(const rung_compile_options *o) { return rung_precision_stores(&o->precision); }
static bool want_fast(const rung_compile_options *o) { return o->quant == RUNG_QUANT_FAST; }

/* PASS(function, name, when it is wanted: NULL for always). What a pass leaves over the next `dead` removes; weights
 * whose forms are used instead, and what fusing left over, the last one. */
#define RUNG_PASSES(PASS)                             \
  PASS(integer_products, integer_products, want_fuse) \
  PASS(affine, affine, want_affine)                   \
  PASS(fold, fold, want_fold)                         \
  PASS(common, common, want_fold)                     \
  PASS(dead, dead, want_fold)                         \
  PASS(patterns, patterns, want_fuse)                 \
  PASS(precision, precision, want_narrow)             \
  PASS(hoist, hoist, want_fold)                       \
  PASS(common, common_hoisted, want_fold)             \
  PASS(weights_only, weights_only, want_fold)         \
  PASS(dead, dead_forms, want_fold)                   \
  PASS(merge, merge, want_merge)                      \
  PASS(quantize, quantize, want_fast)                 \
  PASS(forms, forms, NULL)                            \
  PASS(epilogues, epilogues, want_fuse)               \
  PASS(regions, regions, want_fuse)                   \
  PASS(storage, storage, want_storage)                \
  PASS(legalise, legalise, NULL)                      \
  PASS(dead, dead_last, NULL)

#define PASS(function, name, wanted) \
  rung_status rung_pass_##function(rung_pass_env *env, const rung_graph *from, rung_graph *to);
RUNG_PASSES(PASS)
#undef PASS

static const rung_pass_row rows[] = {
#define PASS(function, name, wanted) {#name, rung_pass_##function, wanted},
    RUNG_PASSES(PASS)
#undef PASS
};

/* A pass that made new work for itself (a decomposition that needs decomposing) runs again, up to the nesting limit. */
enum { MAX_ROUNDS = 64 };

/* `apart`: what comes out shares nothing with `from`, which is the caller's. */
static rung_status run_round(rung_pass_env *env, const rung_pass_row *row, const rung_graph *from, bool apart,
                             rung_graph **out_graph) {
  rung_graph *to;
  RUNG_TRY((apart ? rung_graph_create_apart : rung_graph_create_like)(from, env->error, &to));
  if (env->ran) atomic_fetch_add(env->ran, 1);
  rung_status status = row->run(env, from, to);
  if (!status && rung_graph_status(to)) status = rung_pass_failed(env, to);
  if (!status) status = rung_graph_verify(to, env->error);
  if (status) {
    rung_graph_destroy(to);
    return rung_fail_prefix(env->error, status, "pass %s", row->name);
  }
  *out_graph = to;
  return RUNG_OK;
}

/* Takes `*graph`, unless it is the caller's, and gives what comes out. */
static rung_status run_row(rung_pass_env *env, const rung_pass_row *row, const rung_graph *callers,
                           const rung_graph **graph) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    rung_graph *next = NULL;
    env->again = false;
    const rung_status status = run_round(env, row, *graph, *graph == callers, &next);
    if (*graph != callers) rung_graph_destroy((rung_graph *)*graph);
    *graph = next;
    RUNG_TRY(status);
    if (!env->again) break;
  }
  return RUNG_OK;
}

static rung_status begin(rung_pass_env *env) {
  env->notes = NULL;
  env->patterns = NULL;
  if (env->report) RUNG_TRY(rung_notes_create(env->host, env->error, &env->notes));
  return rung_patterns_create(env->host, env->error, &env->patterns);
}

static rung_status end(rung_pass_env *env, rung_status status) {
  if (!status && env->report) status = rung_notes_print(env->notes, env->report, env->error);
  rung_notes_destroy(env->notes);
  rung_patterns_destroy(env->patterns);
  env->notes = NULL;
  env->patterns = NULL;
  return status;
}

/* `only`: one row, else all that are wanted. */
static rung_status run(rung_pass_env *env, const rung_pass_row *only, const rung_graph *graph, rung_graph **out_graph) {
  RUNG_TRY(rung_graph_verify(graph, env->error));
  const rung_graph *now = graph;
  rung_status status = begin(env);
  for (size_t i = 0; i < RUNG_COUNT(rows) && !status; i++) {
    if (only ? only == &rows[i] : !rows[i].wanted || rows[i].wanted(env->options))
      status = run_row(env, &rows[i], graph, &now);
    if (!only) rung_progress(env->host, "compile", i + 1, RUNG_COUNT(rows));
  }
  status = end(env, status);
  if (status && now != graph) rung_graph_destroy((rung_graph *)now);
  if (!status) *out_graph = (rung_graph *)now; /* some pass always runs, so this is never the caller's */
  return status;
}

rung_status rung_pipeline_pass(rung_pass_env *env, const char *name, const rung_graph *graph, rung_graph **out_graph) {
  for (size_t i = 0; i < RUNG_COUNT(rows); i++)
    if (strcmp(rows[i].name, name) == 0) return run(env, &rows[i], graph, out_graph);
  return rung_fail(env->error, RUNG_NOT_FOUND, "there is no pass \"%s\"", name);
}

rung_status rung_pipeline_run(rung_pass_env *env, const rung_graph *graph, rung_graph **out_graph) {
  return run(env, NULL, graph, out_graph);
}
