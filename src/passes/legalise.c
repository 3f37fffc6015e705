/* SPDX-License-Identifier: MIT
 * legalise: what the target has no kernel for is decomposed into smaller ops; what is still missing is an error that lists
 * each op, its types and where it came from. */
#include <stdio.h>
#include <string.h>

#include "ops/op_table.h"
#include "passes/pass.h"

/* Ops without a step of their own: declarations, views, what the runtime does. */
static bool needs_kernel(const rung_node *node) {
  return !(node->op->flags & (RUNG_OP_DECLARES | RUNG_OP_CONTROL | RUNG_OP_VIEW)) && node->op != &rung_op_form;
}

static bool has_kernel(const rung_pass_env *env, const rung_graph *g, const rung_node *node, char *why, size_t why_bytes) {
  rung_match match;
  rung_match_init(&match, g, node);
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  return rung_target_match(env->target, &match, upper, rows, RUNG_MAX_VARIANTS, why, why_bytes) > 0;
}

static void describe(const rung_graph *g, const rung_node *node, const char *why, rung_text *missing) {
  rung_text_printf(missing, "%s%s(", missing->length ? "; " : "", node->op->name);
  for (uint32_t i = 0; i < node->n_in; i++)
    rung_text_printf(missing, "%s%s", i ? ", " : "", rung_type_name(rung_graph_value_type(g, node->in[i])->type));
  rung_text_printf(missing, ")%s%s%s%s", node->label ? " in " : "", node->label ? node->label : "", why[0] ? ": " : "", why);
}

static rung_status decompose(rung_rewrite *rw, const rung_node *node) {
  rung_value in[256], out[256];
  if (node->n_in > RUNG_COUNT(in) || node->results > RUNG_COUNT(out)) return RUNG_UNSUPPORTED;
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = rw->map[node->in[i]];
  rung_graph_label(rw->to, node->label);
  node->op->decompose(rw->to, node, in, out);
  for (uint32_t r = 0; r < node->results; r++) rw->map[node->first_value + r] = out[r];
  return rung_graph_status(rw->to);
}

rung_status rung_pass_legalise(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  rung_text missing;
  rung_text_init(&missing, env->host);
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < from->nodes && !status; i++) {
    const rung_node *node = &from->node[i];
    char why[160] = "";
    if (!needs_kernel(node) || has_kernel(env, from, node, why, sizeof why)) {
      status = rung_rewrite_copy(&rw, i);
    } else if (node->op->decompose) {
      status = decompose(&rw, node);
      if (status) rung_fail(env->error, status, "%s", rung_graph_message(to));
      env->again = true;
    } else {
      describe(from, node, why, &missing);
      status = rung_rewrite_copy(&rw, i);
    }
  }
  if (!status && missing.length)
    status = rung_fail(env->error, RUNG_UNSUPPORTED, "device %s has no kernel for: %s", env->target->name, missing.data);
  rung_text_finish(&missing);
  return status ? status : rung_rewrite_finish(&rw, env->error);
}
