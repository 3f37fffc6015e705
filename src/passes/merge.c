/* SPDX-License-Identifier: MIT
 * merge: products of one value with several weights (queries, keys and values; gate and up) become one grouped matmul
 * on one form: the activations are read once, and one step does the work of several. The form has the members' rows one
 * after another; where what follows can be fused, `epilogues` has them in turn instead. */
#include <stdio.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

typedef struct merger {
  rung_pass_env *env;
  rung_rewrite rw;
  const uint32_t *uses;
  bool *taken;
  uint32_t *next; /* by node: the following candidate with the same operand 0 */
} merger;

/* A weight as it lies, or what a body makes of weights. */
static bool is_source(const rung_node *node) {
  if (node->op == &rung_op_weight) return true;
  const rung_form_attrs *attrs = (const rung_form_attrs *)node->attrs;
  return node->op == &rung_op_form && attrs->recipe == RUNG_FORM_BODY && !attrs->layout;
}

/* A member's rows must fill whole panels, so that no panel holds rows of two members. */
static bool fills_panels(const merger *m, const rung_value_type *b) {
  int64_t rows;
  return rung_dims_is_constant(m->rw.from->dims, b->extent[0], &rows) &&
         rows % m->env->target->layout_of(b->type)->panel == 0;
}

static bool is_member(const merger *m, const rung_node *node) {
  const rung_graph *g = m->rw.from;
  if (node->op != &rung_op_matmul || !((const rung_matmul_attrs *)node->attrs)->transpose_b) return false;
  const rung_value_type *b = rung_graph_value_type(g, node->in[1]);
  return is_source(rung_graph_producer(g, node->in[1])) && rung_pass_layout(m->env, b) && m->uses[node->in[1]] == 1 &&
         fills_panels(m, b) && rung_graph_value_type(g, node->in[0])->rank >= 2;
}

static bool belong(const rung_graph *g, const rung_node *a, const rung_node *b) {
  const rung_value_type *x = rung_graph_value_type(g, a->in[1]), *y = rung_graph_value_type(g, b->in[1]);
  return a->in[0] == b->in[0] && x->type == y->type && rung_dim_same(x->extent[1], y->extent[1]) &&
         rung_attrs_equal(a->op, a->attrs, b->attrs);
}

/* Links the candidates that share operand 0, in the graph's order. */
static rung_status link_members(merger *m) {
  const rung_graph *g = m->rw.from;
  rung_arena *arena = &m->rw.to->arena;
  uint32_t *last = (uint32_t *)rung_arena_array(arena, g->values, sizeof *last); /* node + 1 */
  m->next = (uint32_t *)rung_arena_array(arena, g->nodes + 1, sizeof *m->next);
  if (!last || !m->next) return rung_pass_no_memory(m->env);
  for (uint32_t i = 0; i < g->nodes; i++) {
    if (!is_member(m, &g->node[i])) continue;
    const uint32_t a = g->node[i].in[0];
    if (last[a]) m->next[last[a] - 1] = i;
    last[a] = i + 1;
  }
  return RUNG_OK;
}

static uint32_t collect(const merger *m, uint32_t first, uint32_t *out_member) {
  const rung_graph *g = m->rw.from;
  uint32_t count = 0;
  if (!is_member(m, &g->node[first])) return 0;
  out_member[count++] = first;
  for (uint32_t i = m->next[first]; i && count < RUNG_MAX_RANK; i = m->next[i])
    if (!m->taken[i] && belong(g, &g->node[first], &g->node[i])) out_member[count++] = i;
  return count;
}

static rung_status build(merger *m, const uint32_t *member, uint32_t count) {
  const rung_graph *g = m->rw.from;
  rung_graph *to = m->rw.to;
  const rung_node *lead = &g->node[member[0]];
  uint32_t source[RUNG_MAX_RANK];
  rung_grouped_matmul_attrs attrs = {.sizes = {.count = (int32_t)count},
                                     .type = ((const rung_matmul_attrs *)lead->attrs)->type};
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t b = g->node[member[i]].in[1];
    source[i] = g->value[b].node;
    rung_dims_is_constant(g->dims, rung_graph_value_type(g, b)->extent[0], &attrs.sizes.value[i]);
  }
  rung_graph_label(to, lead->label);
  const rung_value form = rung_group_form(m->env, &m->rw, source, count);
  rung_graph_label(to, lead->label);
  const rung_node *group =
      rung_graph_append(to, &rung_op_grouped_matmul, (rung_value[]){m->rw.map[lead->in[0]], form}, 2, &attrs, NULL, 0);
  if (!group) return rung_pass_failed(m->env, to);
  for (uint32_t i = 0; i < count; i++) m->rw.map[g->node[member[i]].first_value] = rung_node_result(to, group, i);
  char what[64];
  snprintf(what, sizeof what, "%u matmuls of one value", count);
  rung_note(m->env, RUNG_NOTE_MERGED, lead->label, what, NULL);
  return RUNG_OK;
}

rung_status rung_pass_merge(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_merge(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  merger m = {.env = env};
  RUNG_TRY(rung_rewrite_init(&m.rw, from, to, env->error));
  m.uses = rung_graph_uses(from, &to->arena);
  m.taken = (bool *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *m.taken);
  if (!m.uses || !m.taken) return rung_pass_no_memory(env);
  RUNG_TRY(link_members(&m));
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    if (m.taken[i] || (node->op == &rung_op_weight && m.rw.map[node->first_value].id)) continue;
    uint32_t member[RUNG_MAX_RANK];
    const uint32_t count = collect(&m, i, member);
    if (count < 2) {
      if (rung_rewrite_copy(&m.rw, i)) return rung_pass_failed(env, to);
      continue;
    }
    for (uint32_t k = 0; k < count; k++) m.taken[member[k]] = true;
    RUNG_TRY(build(&m, member, count));
  }
  return rung_rewrite_finish(&m.rw, env->error);
}
