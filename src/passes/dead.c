/* SPDX-License-Identifier: MIT
 * dead: leaves out what no output and no effect needs, in bodies too. What stays although nothing reads it: inputs and
 * states, which are the program's face; random ops, because each moves the generator on, so that numbers would depend
 * on what else is computed; and steps that bind a symbol of which anything that stays speaks. */
#include <string.h>

#include "ops/op_table.h"
#include "passes/pass.h"

rung_status rung_pass_dead(rung_pass_env *env, const rung_graph *from, rung_graph *to);

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

static void mark(const rung_graph *g, bool *live) {
  uint64_t used = 0;
  for (uint32_t i = 0; i < g->outputs; i++) live[g->value[g->output[i].value].node] = true;
  for (uint32_t i = g->nodes; i-- > 0;) {
    const rung_node *node = &g->node[i];
    if (node->op == &rung_op_input || node->op == &rung_op_state ||
        rung_node_has(node, RUNG_OP_EFFECT | RUNG_OP_RANDOM))
      live[i] = true;
    if ((node->op->flags & RUNG_OP_SIZES) && (bound_symbols(g, node) & with_bounds(g->dims, used))) live[i] = true;
    if (!live[i]) continue;
    used |= results_symbols(g, node) | rung_attrs_symbols(g->dims, node);
    for (uint32_t b = 0; b < node->bodies; b++) used |= rung_graph_symbols(node->body[b]);
    for (uint32_t k = 0; k < node->n_in; k++) live[g->value[node->in[k]].node] = true;
  }
}

rung_status rung_pass_dead(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  bool *live = (bool *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *live);
  if (!live) return rung_pass_no_memory(env);
  mark(from, live);
  for (uint32_t i = 0; i < from->nodes; i++)
    if (live[i]) RUNG_TRY(rung_pass_copy(env, &rw, i, rung_pass_dead));
  return rung_rewrite_finish(&rw, env->error);
}
