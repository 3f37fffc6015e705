/* SPDX-License-Identifier: MIT
 * precision: under the bf16 policy both factors of a product with a weight of f32 or f16 are cast to bf16, activations
 * once for all products that read them; sums and results keep their type. What is cast of a weight becomes a form of
 * half the bytes (weights_only). Attention may round what it multiplies. A node is chosen by what its operands are,
 * never by extents. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/pass.h"

typedef struct narrower {
  rung_pass_env *env;
  rung_rewrite rw;
  bool *weight;     /* by value: is it made of weights alone? */
  rung_value *cast; /* by value: as bf16 in `to` */
} narrower;

static bool is_narrow_or_f32(rung_type type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}

static void find_weights(narrower *n) {
  const rung_graph *g = n->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    bool all = node->op == &rung_op_weight, any = all;
    if (!all && node->n_in && rung_node_is_pure(node) && node->results == 1) {
      all = true;
      for (uint32_t k = 0; k < node->n_in; k++) {
        any |= n->weight[node->in[k]];
        all &= n->weight[node->in[k]] || rung_graph_producer(g, node->in[k])->op == &rung_op_constant;
      }
    }
    if (all && any) n->weight[node->first_value] = true;
  }
}

static bool narrows(const narrower *n, const rung_node *node) {
  const rung_graph *g = n->rw.from;
  if (node->op != &rung_op_matmul || !n->weight[node->in[1]] || n->weight[node->in[0]]) return false;
  const rung_type a = rung_graph_value_type(g, node->in[0])->type, b = rung_graph_value_type(g, node->in[1])->type;
  return is_narrow_or_f32(a) && is_narrow_or_f32(b) &&
         is_narrow_or_f32(((const rung_matmul_attrs *)node->attrs)->type) &&
         rung_graph_value_type(g, node->in[1])->rank == 2;
}

/* A value as bf16: made where it is first wanted. What was widened from bf16 is taken as it was. */
static rung_value narrow_plain(narrower *n, uint32_t value) {
  const rung_graph *g = n->rw.from;
  const rung_node *node = rung_graph_producer(g, value);
  if (node->op == &rung_op_cast && rung_graph_value_type(g, node->in[0])->type == RUNG_TYPE_BF16) value = node->in[0];
  if (rung_graph_value_type(g, value)->type == RUNG_TYPE_BF16) return n->rw.map[value];
  if (!n->cast[value].id) n->cast[value] = rung_build_cast(n->rw.to, n->rw.map[value], RUNG_TYPE_BF16);
  return n->cast[value];
}

/* What a value is a reshape of; the reshapes in between, the last one first. */
static uint32_t shaped_from(const narrower *n, uint32_t value, uint32_t *out_shape, uint32_t *out_shapes) {
  *out_shapes = 0;
  const rung_node *node = rung_graph_producer(n->rw.from, value);
  while (!n->cast[value].id && node->op == &rung_op_reshape && *out_shapes < RUNG_MAX_RANK) {
    out_shape[(*out_shapes)++] = value;
    value = node->in[0];
    node = rung_graph_producer(n->rw.from, value);
  }
  return value;
}

/* The same; a reshape is of what was cast, so that the cast follows what computed the value. */
static rung_value narrow(narrower *n, uint32_t value) {
  uint32_t shape[RUNG_MAX_RANK], shapes;
  rung_value made = narrow_plain(n, shaped_from(n, value, shape, &shapes));
  while (shapes && made.id) {
    const rung_node *node = rung_graph_producer(n->rw.from, shape[--shapes]);
    made = rung_graph_op(n->rw.to, &rung_op_reshape, &made, 1, node->attrs);
    n->cast[node->first_value] = made;
  }
  return made;
}

/* Attention in bf16 throughout, where the target multiplies that; its result is bf16 to those who want it so. */
static rung_status attend(narrower *n, uint32_t index) {
  const rung_node *node = &n->rw.from->node[index];
  rung_graph *to = n->rw.to;
  if (node->op != &rung_op_attention_ragged || !n->env->target->attends_bf16 ||
      rung_graph_value_type(n->rw.from, node->in[0])->type != RUNG_TYPE_F32)
    return rung_pass_narrow_attention(n->env, &n->rw, index);
  rung_attention_attrs attrs = *(const rung_attention_attrs *)node->attrs;
  attrs.narrow = true;
  rung_graph_label(to, node->label);
  rung_value in[4] = {[3] = n->rw.map[node->in[3]]};
  uint32_t shape[RUNG_MAX_RANK], shapes; /* all casts first: they end the product that all three come from */
  for (int k = 0; k < 3; k++) narrow_plain(n, shaped_from(n, node->in[k], shape, &shapes));
  for (int k = 0; k < 3; k++) in[k] = narrow(n, node->in[k]);
  n->cast[node->first_value] = rung_graph_op(to, node->op, in, 4, &attrs);
  n->rw.map[node->first_value] = rung_build_cast(to, n->cast[node->first_value], RUNG_TYPE_F32);
  return n->rw.map[node->first_value].id ? RUNG_OK : rung_pass_failed(n->env, to);
}

rung_status rung_pass_precision(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_precision(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  narrower n = {.env = env};
  RUNG_TRY(rung_rewrite_init(&n.rw, from, to, env->error));
  n.weight = (bool *)rung_arena_array(&to->arena, from->values + 1, sizeof *n.weight);
  n.cast = (rung_value *)rung_arena_array(&to->arena, from->values + 1, sizeof *n.cast);
  if (!n.weight || !n.cast) return rung_pass_no_memory(env);
  find_weights(&n);
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    if (rung_pass_is_attention(node)) {
      RUNG_TRY(attend(&n, i));
      continue;
    }
    if (!narrows(&n, node)) {
      RUNG_TRY(rung_pass_copy(env, &n.rw, i, rung_pass_precision));
      continue;
    }
    rung_graph_label(to, node->label);
    rung_value in[2];
    for (int k = 0; k < 2; k++) in[k] = narrow(&n, node->in[k]);
    if (!rung_rewrite_copy_with(&n.rw, i, in, 2)) return rung_pass_failed(env, to);
  }
  return rung_rewrite_finish(&n.rw, env->error);
}
