/* SPDX-License-Identifier: MIT
 * dead: leaves out what no output and no effect needs. Inputs stay: they are the program's face. */
#include "ops/op_table.h"
#include "passes/pass.h"

static void mark(const rung_graph *g, bool *live) {
  for (uint32_t i = 0; i < g->outputs; i++) live[g->value[g->output[i].value].node] = true;
  for (uint32_t i = g->nodes; i-- > 0;) {
    const rung_node *node = &g->node[i];
    /* A node that binds a symbol is needed by every extent that speaks of it. */
    if ((node->op->flags & (RUNG_OP_EFFECT | RUNG_OP_SIZES)) || node->op == &rung_op_input || node->op == &rung_op_state) live[i] = true;
    for (uint32_t b = 0; b < node->bodies && !live[i]; b++)
      for (uint32_t j = 0; j < node->body[b]->nodes; j++)
        if (node->body[b]->node[j].op->flags & RUNG_OP_EFFECT) live[i] = true;
    if (!live[i]) continue;
    for (uint32_t k = 0; k < node->n_in; k++) live[g->value[node->in[k]].node] = true;
  }
}

rung_status rung_pass_dead(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  bool *live = rung_arena_array(&to->arena, from->nodes + 1, sizeof *live);
  if (!live) return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "out of memory");
  mark(from, live);
  for (uint32_t i = 0; i < from->nodes; i++)
    if (live[i]) RUNG_TRY(rung_rewrite_copy(&rw, i));
  return rung_rewrite_finish(&rw, env->error);
}

/* Once more at the end: weights whose forms are used instead, and what fusing left over. */
rung_status rung_pass_dead_last(rung_pass_env *env, const rung_graph *from, rung_graph *to) { return rung_pass_dead(env, from, to); }
