/* SPDX-License-Identifier: MIT
 * common: equal nodes on equal operands become one, in bodies too. Random ops, effects, control steps and what binds a
 * size are never equal to another. */
#include "base/hash.h"
#include "ops/op_table.h"
#include "passes/pass.h"

static bool mergeable(const rung_node *node) {
  if (node->op == &rung_op_weight || node->op == &rung_op_constant) return true;
  return rung_node_is_pure(node);
}

typedef struct table {
  uint32_t *slot; /* node index + 1 */
  uint32_t size;
} table;

static uint64_t key_of(const rung_rewrite *rw, const rung_node *node) {
  uint64_t h = rung_hash64(&node->op, sizeof node->op);
  if (node->op->attrs) h ^= rung_attrs_hash(node->op, node->attrs);
  for (uint32_t i = 0; i < node->n_in; i++) {
    const uint64_t pair[2] = {h, rw->map[node->in[i]].id};
    h = rung_hash64(pair, sizeof pair);
  }
  return h;
}

static bool same(const rung_rewrite *rw, const rung_node *a, const rung_node *b) {
  if (a->op != b->op || a->n_in != b->n_in || a->results != b->results) return false;
  for (uint32_t i = 0; i < a->n_in; i++)
    if (rw->map[a->in[i]].id != rw->map[b->in[i]].id) return false;
  if (a->op->attrs && !rung_attrs_equal(a->op, a->attrs, b->attrs)) return false;
  for (uint32_t r = 0; r < a->results; r++)
    if (!rung_value_type_equal(rung_graph_value_type(rw->from, a->first_value + r),
                               rung_graph_value_type(rw->from, b->first_value + r)))
      return false;
  return true;
}

rung_status rung_pass_common(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  table t = {.size = 16};
  while (t.size / 2 < from->nodes) t.size *= 2;
  t.slot = (uint32_t *)rung_arena_array(&to->arena, t.size, sizeof *t.slot);
  if (!t.slot) return rung_pass_no_memory(env);
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    if (!mergeable(node)) {
      RUNG_TRY(rung_pass_copy(env, &rw, i, rung_pass_common));
      continue;
    }
    uint32_t at = (uint32_t)key_of(&rw, node) & (t.size - 1);
    while (t.slot[at] && !same(&rw, node, &from->node[t.slot[at] - 1])) at = (at + 1) & (t.size - 1);
    if (t.slot[at]) {
      const rung_node *kept = &from->node[t.slot[at] - 1];
      for (uint32_t r = 0; r < node->results; r++) rw.map[node->first_value + r] = rw.map[kept->first_value + r];
      continue;
    }
    t.slot[at] = i + 1;
    if (rung_rewrite_copy(&rw, i)) return rung_pass_failed(env, to);
  }
  return rung_rewrite_finish(&rw, env->error);
}
