/* SPDX-License-Identifier: MIT
 * legalise: what the target has no kernel for is decomposed into smaller ops, in bodies too; what is still missing is
 * an error that lists each op, its types and where it came from. */
#include <string.h>

#include "ops/op_table.h"
#include "passes/pass.h"

rung_status rung_pass_legalise(rung_pass_env *env, const rung_graph *from, rung_graph *to);

/* Ops without a step of their own: declarations, views, what the runtime does. */
static bool needs_kernel(const rung_node *node) {
  return !(node->op->flags & (RUNG_OP_DECLARES | RUNG_OP_CONTROL | RUNG_OP_VIEW | RUNG_OP_SIZES)) &&
         node->op != &rung_op_form;
}

enum { LISTED = 16 };

static void describe(const rung_graph *g, const rung_node *node, const char *why, uint32_t count, rung_text *missing) {
  if (count == LISTED) rung_text_puts(missing, "; and more");
  if (count >= LISTED) return;
  rung_text_printf(missing, "%s%s(", missing->length ? "; " : "", node->op->name);
  for (uint32_t i = 0; i < node->n_in; i++)
    rung_text_printf(missing, "%s%s", i ? ", " : "", rung_type_name(rung_graph_value_type(g, node->in[i])->type));
  rung_text_printf(missing, ")%s%s%s%s", node->label ? " in " : "", node->label ? node->label : "", why[0] ? ": " : "",
                   why);
}

static rung_status decompose(rung_pass_env *env, rung_rewrite *rw, const rung_node *node, const char *why) {
  rung_graph *to = rw->to;
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  rung_value *out = (rung_value *)rung_arena_array(&to->arena, node->results, sizeof *out);
  if (!in || !out) return rung_pass_no_memory(env);
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = rw->map[node->in[i]];
  rung_graph_label(to, node->label);
  node->op->decompose(to, node, in, out);
  if (rung_graph_status(to)) return rung_pass_failed(env, to);
  for (uint32_t r = 0; r < node->results; r++) rw->map[node->first_value + r] = out[r];
  if (node->op != &rung_op_fused) rung_note(env, RUNG_NOTE_NEARLY, node->label, node->op->name, why);
  env->again = true;
  return RUNG_OK;
}

static rung_status legalise_node(rung_pass_env *env, rung_rewrite *rw, uint32_t index, uint32_t *count,
                                 rung_text *missing) {
  const rung_node *node = &rw->from->node[index];
  char why[160] = "";
  if (needs_kernel(node) && !rung_pass_has_kernel(env, rw->from, node, UINT32_MAX, 0, why, sizeof why)) {
    if (node->op->decompose) return decompose(env, rw, node, why);
    describe(rw->from, node, why, (*count)++, missing);
  }
  return rung_pass_copy(env, rw, index, rung_pass_legalise);
}

rung_status rung_pass_legalise(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  rung_text missing;
  uint32_t count = 0;
  rung_text_init(&missing, env->host);
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < from->nodes && !status; i++) status = legalise_node(env, &rw, i, &count, &missing);
  if (!status) status = rung_text_status(&missing, env->error);
  if (!status && count)
    status =
        rung_fail(env->error, RUNG_UNSUPPORTED, "device %s has no kernel for: %s", env->target->name, missing.data);
  rung_text_finish(&missing);
  return status ? status : rung_rewrite_finish(&rw, env->error);
}
