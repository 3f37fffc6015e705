/* SPDX-License-Identifier: MIT
 * merge: products of one value with several weights (queries, keys and values; gate and up) become one grouped matmul on
 * one concatenated form: the activations are read once, and one step does the work of several. */
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

static bool is_member(const rung_pass_env *env, const rung_graph *g, const rung_node *node) {
  if (node->op != &rung_op_matmul || !((const rung_matmul_attrs *)node->attrs)->transpose_b) return false;
  const rung_value_type *b = rung_graph_value_type(g, node->in[1]);
  return rung_graph_producer(g, node->in[1])->op == &rung_op_weight && b->rank == 2 && env->target->layout_of(b->type);
}

static bool belong(const rung_graph *g, const rung_node *a, const rung_node *b) {
  const rung_value_type *x = rung_graph_value_type(g, a->in[1]), *y = rung_graph_value_type(g, b->in[1]);
  return a->in[0] == b->in[0] && a->in[1] != b->in[1] && x->type == y->type && rung_dim_same(x->extent[1], y->extent[1]) &&
         rung_attrs_equal(a->op, a->attrs, b->attrs);
}

/* A member's rows must fill whole panels, so that no panel holds rows of two members. */
static bool fills_panels(const rung_pass_env *env, const rung_graph *g, const rung_node *node) {
  const rung_value_type *b = rung_graph_value_type(g, node->in[1]);
  int64_t rows;
  return rung_dims_is_constant(g->dims, b->extent[0], &rows) && rows % env->target->layout_of(b->type)->panel == 0;
}

static uint32_t collect(const rung_pass_env *env, const rung_graph *g, uint32_t first, const uint32_t *uses, uint32_t *out_member, bool *taken) {
  const rung_node *lead = &g->node[first];
  uint32_t count = 0;
  out_member[count++] = first;
  for (uint32_t i = first + 1; i < g->nodes && count < RUNG_MAX_RANK; i++) {
    const rung_node *node = &g->node[i];
    if (taken[i] || node->n_in < 2 || node->in[0] != lead->in[0] || !is_member(env, g, node) || !belong(g, lead, node)) continue;
    if (uses[node->in[1]] == 1 && fills_panels(env, g, node)) out_member[count++] = i;
  }
  return count;
}

static rung_status build(rung_rewrite *rw, const uint32_t *member, uint32_t count) {
  const rung_graph *g = rw->from;
  rung_value weight[RUNG_MAX_RANK];
  rung_grouped_matmul_attrs attrs = {.sizes = {.count = (int32_t)count}, .type = ((const rung_matmul_attrs *)g->node[member[0]].attrs)->type};
  for (uint32_t i = 0; i < count; i++) {
    const rung_node *node = &g->node[member[i]];
    if (!rw->map[node->in[1]].id) RUNG_TRY(rung_rewrite_copy(rw, g->value[node->in[1]].node));
    weight[i] = rw->map[node->in[1]];
    rung_dims_is_constant(g->dims, rung_graph_value_type(g, node->in[1])->extent[0], &attrs.sizes.value[i]);
  }
  rung_graph_label(rw->to, g->node[member[0]].label);
  const rung_form_attrs form = {.recipe = RUNG_FORM_CONCAT};
  const rung_value b = rung_graph_op(rw->to, &rung_op_form, weight, count, &form);
  const rung_node *group =
      rung_graph_append(rw->to, &rung_op_grouped_matmul, (rung_value[]){rw->map[g->node[member[0]].in[0]], b}, 2, &attrs, NULL, 0);
  if (!group) return rung_graph_status(rw->to);
  for (uint32_t i = 0; i < count; i++) rw->map[g->node[member[i]].first_value] = rung_node_result(rw->to, group, i);
  return RUNG_OK;
}

rung_status rung_pass_merge(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  const uint32_t *uses = rung_graph_uses(from, &to->arena);
  bool *taken = rung_arena_array(&to->arena, from->nodes + 1, sizeof *taken);
  if (!uses || !taken) return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    if (taken[i] || (node->op == &rung_op_weight && rw.map[node->first_value].id)) continue;
    uint32_t member[RUNG_MAX_RANK], count = 1;
    if (is_member(env, from, node) && uses[node->in[1]] == 1 && fills_panels(env, from, node)) count = collect(env, from, i, uses, member, taken);
    if (count < 2) {
      RUNG_TRY(rung_rewrite_copy(&rw, i));
      continue;
    }
    for (uint32_t m = 0; m < count; m++) taken[member[m]] = true;
    RUNG_TRY(build(&rw, member, count));
  }
  return rung_rewrite_finish(&rw, env->error);
}
