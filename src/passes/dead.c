/* SPDX-License-Identifier: MIT
 * dead: leaves out what no output and no effect needs, in bodies too. What stays although nothing reads it: inputs and
 * states, which are the program's face; random ops, because each moves the generator on, so that numbers would depend
 * on what else is computed; and steps that bind a symbol of which anything that stays speaks. Bodies of control ops lose
 * captures that they do not read, and those that stand twice. */
#include <string.h>

#include "ops/op_table.h"
#include "passes/pass.h"

/* With the symbols that bounds of symbols in the mask speak of: bounds know only earlier symbols. */
static uint64_t with_bounds(const rung_dims *dims, uint64_t mask) {
  for (uint32_t i = dims->symbols; i-- > 0;)
    if (mask >> i & 1) mask |= dims->node[dims->symbol[i].bound.id].symbols;
  return mask;
}

static uint64_t results_symbols(const rung_graph *g, const rung_node *node) {
  uint64_t used = 0;
  for (uint32_t r = 0; r < node->results; r++)
    used |= rung_type_symbols(g->dims, rung_graph_value_type(g, node->first_value + r));
  return used;
}

/* Symbols that the node may bind for what comes after it. */
static uint64_t bound_symbols(const rung_graph *g, const rung_node *node) {
  uint64_t mask = results_symbols(g, node);
  for (uint32_t i = 0; i < g->dims->symbols; i++)
    if (!g->dims->symbol[i].made) mask &= ~(UINT64_C(1) << i);
  const rung_attr *attr = rung_attr_find(node->op, "symbol", 6);
  if (!attr || attr->kind != RUNG_ATTR_TEXT) return mask;
  const char *name = *(const char *const *)rung_attr_get(attr, node->attrs);
  const int symbol = rung_dims_find_symbol(g->dims, name, strlen(name));
  return symbol < 0 ? mask : mask | UINT64_C(1) << symbol;
}

/* By operand of a node: do bodies read it, or the op itself? Arrays in these functions are the arena's. A body's input
 * of another type than the operand checks an extent, and stays. */
static rung_status find_read(const rung_pass_env *env, rung_arena *arena, const rung_graph *g, const rung_node *node,
                             bool **out_read);

static rung_status mark(const rung_pass_env *env, rung_arena *arena, const rung_graph *g, bool **out_live) {
  bool *live = *out_live = (bool *)rung_arena_array(arena, g->nodes + 1, sizeof *live);
  if (!live) return rung_pass_no_memory(env);
  uint64_t used = 0;
  for (uint32_t i = 0; i < g->outputs; i++) live[g->value[g->output[i].value].node] = true;
  for (uint32_t i = g->nodes; i-- > 0;) {
    const rung_node *node = &g->node[i];
    if ((node->op == &rung_op_input && !g->depth) || node->op == &rung_op_state ||
        rung_node_has(node, RUNG_OP_EFFECT | RUNG_OP_RANDOM))
      live[i] = true;
    if ((node->op->flags & RUNG_OP_SIZES) && (bound_symbols(g, node) & with_bounds(g->dims, used))) live[i] = true;
    if (!live[i]) continue;
    used |= results_symbols(g, node) | rung_attrs_symbols(g->dims, node);
    for (uint32_t b = 0; b < node->bodies; b++) used |= rung_graph_symbols(node->body[b]);
    bool *read = NULL;
    if (node->op->flags & RUNG_OP_CONTROL) RUNG_TRY(find_read(env, arena, g, node, &read));
    for (uint32_t k = 0; k < node->n_in; k++)
      if (!read || read[k]) live[g->value[node->in[k]].node] = true;
  }
  return RUNG_OK;
}

/* Recursion is as deep as bodies are nested. */
static rung_status find_read(const rung_pass_env *env, rung_arena *arena, const rung_graph *g, const rung_node *node,
                             bool **out_read) {
  bool *read = *out_read = (bool *)rung_arena_array(arena, node->n_in, sizeof *read), *live;
  if (!read) return rung_pass_no_memory(env);
  const uint32_t first = rung_first_capture(node);
  for (uint32_t k = 0; k < first; k++) read[k] = true;
  for (uint32_t b = 0; b < node->bodies; b++) {
    const rung_graph *body = node->body[b];
    RUNG_TRY(mark(env, arena, body, &live));
    for (uint32_t k = first; k < node->n_in; k++) {
      const uint32_t value = rung_captured_as(g, node, b, k);
      read[k] |= !value || live[body->value[value].node];
    }
  }
  return RUNG_OK;
}

/* ---- captures */

/* What becomes of the operands of a control op: itself, an earlier capture that is the same, or UINT32_MAX. `first` has
 * room for every value of the graph and is null before and after. */
static rung_status find_places(const rung_pass_env *env, rung_arena *arena, const rung_graph *g, const rung_node *node,
                               uint32_t *first, uint32_t *as) {
  bool *read;
  RUNG_TRY(find_read(env, arena, g, node, &read));
  for (uint32_t k = 0; k < node->n_in; k++) {
    as[k] = read[k] ? k : UINT32_MAX;
    bool plain = read[k] && k >= rung_first_capture(node);
    for (uint32_t b = 0; b < node->bodies && plain; b++) plain = rung_captured_as(g, node, b, k) != 0;
    if (!plain) continue;
    if (first[node->in[k]])
      as[k] = first[node->in[k]] - 1;
    else
      first[node->in[k]] = k + 1;
  }
  for (uint32_t k = 0; k < node->n_in; k++) first[node->in[k]] = 0;
  return RUNG_OK;
}

static rung_status copy_graph(rung_pass_env *env, rung_rewrite *rw);

static rung_status copy_control(rung_pass_env *env, rung_rewrite *rw, uint32_t index, uint32_t *first) {
  const rung_node *node = &rw->from->node[index];
  rung_arena *arena = &rw->to->arena;
  uint32_t *as = (uint32_t *)rung_arena_array(arena, node->n_in, sizeof *as);
  rung_value *in = (rung_value *)rung_arena_array(arena, node->n_in, sizeof *in);
  rung_graph **body = (rung_graph **)rung_arena_array(arena, node->bodies, sizeof *body);
  if (!as || !in || !body) return rung_pass_no_memory(env);
  RUNG_TRY(find_places(env, arena, rw->from, node, first, as));
  uint32_t kept = 0;
  for (uint32_t k = 0; k < node->n_in; k++)
    if (as[k] == k) in[kept++] = rw->map[node->in[k]];
  for (uint32_t b = 0; b < node->bodies; b++) {
    const uint32_t own = rung_node_operand_of_input(node, node->body[b], 0);
    uint32_t *inputs = (uint32_t *)rung_arena_array(arena, node->n_in, sizeof *inputs);
    if (!inputs) return rung_pass_no_memory(env);
    for (uint32_t k = own; k < node->n_in; k++) inputs[k - own] = as[k] == UINT32_MAX ? as[k] : as[k] - own;
    rung_rewrite inner;
    RUNG_TRY(rung_body_begin(env, node->body[b], rw->to, inputs, NULL, 0, &inner, NULL));
    body[b] = inner.to;
    RUNG_TRY(copy_graph(env, &inner));
  }
  return rung_control_end(env, rw, index, in, kept, body);
}

/* What is live, but for inputs that a body already has. */
static rung_status copy_graph(rung_pass_env *env, rung_rewrite *rw) {
  const rung_graph *from = rw->from;
  bool *live;
  uint32_t *first = (uint32_t *)rung_arena_array(&rw->to->arena, from->values, sizeof *first);
  if (!first) return rung_pass_no_memory(env);
  RUNG_TRY(mark(env, &rw->to->arena, from, &live));
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    if (!live[i] || (from->depth && (node->op->flags & RUNG_OP_INPUT))) continue;
    if (node->op->flags & RUNG_OP_CONTROL) {
      RUNG_TRY(copy_control(env, rw, i, first));
    } else if (rung_rewrite_copy(rw, i)) {
      return rung_pass_failed(env, rw->to);
    }
  }
  return rung_rewrite_finish(rw, env->error);
}

rung_status rung_pass_dead(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_dead(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  return copy_graph(env, &rw);
}
