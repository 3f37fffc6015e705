/* SPDX-License-Identifier: MIT
 * forms: weights that a matmul multiplies with get the one packed layout that the target has for their type; every other
 * reader of such a weight (the gather of a tied embedding) reads the same form. */
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

static bool is_factor(const rung_node *node) {
  if (node->op == &rung_op_grouped_matmul) return true;
  return node->op == &rung_op_matmul && ((const rung_matmul_attrs *)node->attrs)->transpose_b;
}

static const rung_layout *layout_for(const rung_pass_env *env, const rung_graph *g, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(g, value);
  return type->rank == 2 && type->layout == 0 ? env->target->layout_of(type->type) : NULL;
}

/* Which weights and forms are factors: those get a layout. */
static bool *find_factors(const rung_pass_env *env, const rung_graph *g, rung_arena *arena) {
  bool *packed = rung_arena_array(arena, g->values + 1, sizeof *packed);
  for (uint32_t i = 0; packed && i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (!is_factor(node)) continue;
    const rung_op *source = rung_graph_producer(g, node->in[1])->op;
    if ((source == &rung_op_weight || source == &rung_op_form) && layout_for(env, g, node->in[1])) packed[node->in[1]] = true;
  }
  return packed;
}

rung_status rung_pass_forms(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  const bool *packed = find_factors(env, from, &to->arena);
  if (!packed) return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    const bool pack = node->results == 1 && packed[node->first_value];
    if (!pack || node->op == &rung_op_weight) RUNG_TRY(rung_rewrite_copy(&rw, i));
    if (!pack) continue;
    rung_form_attrs attrs = {.recipe = RUNG_FORM_CONCAT};
    rung_value in[256];
    uint32_t n = 1;
    in[0] = rw.map[node->first_value];
    if (node->op == &rung_op_form) {
      attrs = *(const rung_form_attrs *)node->attrs;
      if (attrs.recipe == RUNG_FORM_BODY || node->n_in > RUNG_COUNT(in)) {
        RUNG_TRY(rung_rewrite_copy(&rw, i));
        continue;
      }
      n = node->n_in;
      for (uint32_t k = 0; k < n; k++) in[k] = rw.map[node->in[k]];
    }
    attrs.layout = layout_for(env, from, node->first_value)->id;
    rung_graph_label(to, node->label);
    rw.map[node->first_value] = rung_graph_op(to, &rung_op_form, in, n, &attrs);
  }
  return rung_rewrite_finish(&rw, env->error);
}
