/* SPDX-License-Identifier: MIT
 * common: equal nodes on equal operands become one. Random ops, effects and control steps are never equal to another. */
#include "base/hash.h"
#include "ops/op_table.h"
#include "passes/pass.h"

static bool mergeable(const rung_node *node) {
  if (node->op == &rung_op_input || node->op == &rung_op_state) return false;
  return !(node->op->flags & (RUNG_OP_EFFECT | RUNG_OP_CONTROL | RUNG_OP_RANDOM | RUNG_OP_SIZES)) && !node->bodies;
}

typedef struct table {
  uint32_t *slot; /* node index + 1 */
  uint32_t size;
} table;

static uint64_t key_of(const rung_rewrite *rw, const rung_node *node) {
  uint64_t h = rung_hash64(&node->op, sizeof node->op);
  for (uint32_t i = 0; i < node->n_in; i++) {
    const uint64_t pair[2] = {h, rw->map[node->in[i]].id};
    h = rung_hash64(pair, sizeof pair);
  }
  return h;
}

static bool same(const rung_rewrite *rw, const rung_node *a, const rung_node *b) {
  if (a->op != b->op || a->n_in != b->n_in) return false;
  for (uint32_t i = 0; i < a->n_in; i++)
    if (rw->map[a->in[i]].id != rw->map[b->in[i]].id) return false;
  if (a->op->attrs && !rung_attrs_equal(a->op, a->attrs, b->attrs)) return false;
  for (uint32_t r = 0; r < a->results; r++) {
    const rung_value_type *x = rung_graph_value_type(rw->from, a->first_value + r), *y = rung_graph_value_type(rw->from, b->first_value + r);
    if (x->type != y->type || x->rank != y->rank || x->layout != y->layout || x->kind != y->kind) return false;
    for (int d = 0; d < x->rank; d++)
      if (!rung_dim_same(x->extent[d], y->extent[d])) return false;
  }
  return true;
}

rung_status rung_pass_common(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  table t = {.size = 16};
  while (t.size < 2 * from->nodes) t.size *= 2;
  t.slot = rung_arena_array(&to->arena, t.size, sizeof *t.slot);
  if (!t.slot) return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    uint32_t at = 0;
    bool found = false;
    if (mergeable(node)) {
      for (at = (uint32_t)key_of(&rw, node) & (t.size - 1); t.slot[at]; at = (at + 1) & (t.size - 1))
        if ((found = same(&rw, node, &from->node[t.slot[at] - 1]))) break;
    }
    if (found) {
      const rung_node *kept = &from->node[t.slot[at] - 1];
      for (uint32_t r = 0; r < node->results; r++) rw.map[node->first_value + r] = rw.map[kept->first_value + r];
      continue;
    }
    if (mergeable(node)) t.slot[at] = i + 1;
    RUNG_TRY(rung_rewrite_copy(&rw, i));
  }
  return rung_rewrite_finish(&rw, env->error);
}
