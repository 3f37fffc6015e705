/* SPDX-License-Identifier: MIT
 * Passes: plain functions that read one graph and write another (ir/rewrite.h). One a file; pipeline.c lists the order. */
#ifndef RUNG_PASSES_PASS_H
#define RUNG_PASSES_PASS_H

#include <rung/compile.h>

#include "base/text.h"
#include "ir/rewrite.h"
#include "target/target.h"

typedef struct rung_pass_env {
  rung_host *host;
  const rung_target *target;
  const rung_compile_options *options;
  rung_text *report; /* what fused, what nearly did and why not: lines for `inspect --fused`; NULL: nobody asks */
  bool again; /* set by a pass that wants to run once more on its own result */
  rung_error *error;
} rung_pass_env;

/* Writes the changed graph to `to`, which is empty and shares `from`'s dims. */
typedef rung_status rung_pass(rung_pass_env *env, const rung_graph *from, rung_graph *to);

typedef struct rung_pass_row {
  const char *name;
  rung_pass *run;
  /* Is it switched on? NULL: always. */
  bool (*wanted)(const rung_compile_options *options);
} rung_pass_row;

/* All passes in order over a copy of `graph`; the verifier runs after each. The result is the caller's. */
rung_status rung_pipeline_run(rung_pass_env *env, const rung_graph *graph, rung_graph **out_graph);
/* One pass by name, for tests. RUNG_NOT_FOUND if there is none. */
rung_status rung_pipeline_pass(rung_pass_env *env, const char *name, const rung_graph *graph, rung_graph **out_graph);

#endif
