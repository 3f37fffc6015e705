/* SPDX-License-Identifier: MIT
 * precision: what a policy says of multiplying and of weights, in front of fusion, so that forms are made of what is
 * narrow and casts join the kernels around them. (What lies between kernels follows behind fusion: storage.c.)
 *
 * Both factors of a product are cast, an activation once for all that read it; sums and results keep their type.
 * Convolutions, dense attention and recurrences take and give the narrow type. The cast of a weight becomes a form of
 * half the bytes (weights_only). Weights that other ops read are cast to the type of the reader's category and, for the
 * reader, back: the form ends at the first cast. A node is chosen by what its operands are, never by extents. */

#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/pass.h"
#include "passes/policy.h"

typedef struct narrower {
  rung_pass_env *env;
  rung_rewrite rw;
  const rung_precision *policy;
  bool *weight;                          /* by value: is it made of weights alone? */
  bool *exact;                           /* by value: of integers and constants alone */
  rung_value *cast[RUNG_PRECISION_ENDS]; /* by value: as f16 and as bf16 in `to` */
  rung_value *back[RUNG_PRECISION_ENDS]; /* the same as f32 again */
} narrower;

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

static const rung_value_type *type_of(const narrower *n, uint32_t value) {
  return rung_graph_value_type(n->rw.from, value);
}

/* What came of integers alone, but for constants, which are numbers as a file has them. */
static bool is_exact(const narrower *n, uint32_t value) {
  return n->exact[value] && rung_graph_producer(n->rw.from, value)->op != &rung_op_constant;
}

/* A value as `type`: made where it is first wanted. What was widened from that type is taken as it was. */
static rung_value narrow_plain(narrower *n, uint32_t value, rung_type type) {
  const rung_graph *g = n->rw.from;
  const rung_node *node = rung_graph_producer(g, value);
  if (node->op == &rung_op_cast && type_of(n, node->in[0])->type == type) value = node->in[0];
  if (type_of(n, value)->type == type) return n->rw.map[value];
  rung_value *cast = &n->cast[type][value];
  if (!cast->id) *cast = rung_build_cast(n->rw.to, n->rw.map[value], type);
  return *cast;
}

/* What a value is a reshape of; the reshapes in between, the last one first. Behind attention over a state no cast joins
 * what computes it; as rows it can join the product. */
static uint32_t shaped_from(const narrower *n, uint32_t value, rung_type type, uint32_t *out_shape,
                            uint32_t *out_shapes) {
  const uint32_t first = value;
  *out_shapes = 0;
  const rung_node *node = rung_graph_producer(n->rw.from, value);
  while (!n->cast[type][value].id && node->op == &rung_op_reshape && *out_shapes < RUNG_MAX_RANK) {
    out_shape[(*out_shapes)++] = value;
    value = node->in[0];
    node = rung_graph_producer(n->rw.from, value);
  }
  if (node->op != &rung_op_attention_kv) return value;
  *out_shapes = 0;
  return first;
}

/* The same; a reshape is of what was cast, so that the cast follows what computed the value. */
static rung_value narrow(narrower *n, uint32_t value, rung_type type) {
  uint32_t shape[RUNG_MAX_RANK], shapes;
  rung_value made = narrow_plain(n, shaped_from(n, value, type, shape, &shapes), type);
  while (shapes && made.id) {
    const rung_node *node = rung_graph_producer(n->rw.from, shape[--shapes]);
    made = rung_graph_op(n->rw.to, &rung_op_reshape, &made, 1, node->attrs);
    n->cast[type][node->first_value] = made;
  }
  return made;
}

/* ---- products */

static bool multiplies(const narrower *n, const rung_op *op) {
  const rung_target *target = n->env->target;
  return n->policy->compute != RUNG_TYPE_F32 && rung_op_computes(op) &&
         (!target->multiplies_narrow || target->multiplies_narrow(target, op, n->policy->compute));
}

/* The extent of k, if it is known to be 1: then nothing is added up. */
static bool has_one_k(const narrower *n, const rung_node *node) {
  const rung_value_type *a = type_of(n, node->in[0]);
  int64_t k;
  return a->rank && rung_dims_is_constant(n->rw.from->dims, a->extent[a->rank - 1], &k) && k == 1;
}

static bool narrows_product(const narrower *n, const rung_node *node) {
  if (!rung_op_is_product(node->op) || node->op == &rung_op_grouped_matmul || !multiplies(n, node->op)) return false;
  if (n->weight[node->in[0]] && n->weight[node->in[1]]) return false; /* computed once, when weights are loaded */
  const rung_type made = node->op == &rung_op_matmul ? ((const rung_matmul_attrs *)node->attrs)->type
                                                     : ((const rung_expert_matmul_attrs *)node->attrs)->type;
  return rung_precision_takes(type_of(n, node->in[0])->type) && rung_precision_takes(type_of(n, node->in[1])->type) &&
         rung_precision_takes(made) && !is_exact(n, node->in[0]) && !is_exact(n, node->in[1]) && !has_one_k(n, node);
}

static rung_status narrow_product(narrower *n, uint32_t index) {
  const rung_node *node = &n->rw.from->node[index];
  rung_value in[3];
  rung_graph_label(n->rw.to, node->label);
  for (uint32_t k = 0; k < node->n_in; k++)
    in[k] = k < 2 ? narrow(n, node->in[k], n->policy->compute) : n->rw.map[node->in[k]];
  return rung_rewrite_copy_with(&n->rw, index, in, node->n_in) ? RUNG_OK : rung_pass_failed(n->env, n->rw.to);
}

/* ---- what takes and gives one type: convolutions, attention, recurrences */

static bool narrows_whole(const narrower *n, const rung_node *node) {
  if (rung_op_is_product(node->op) || node->op == &rung_op_attention_kv) return false;
  if (!node->n_in || !multiplies(n, node->op) || !rung_is_plain_f32(type_of(n, node->in[0])) ||
      is_exact(n, node->in[0]))
    return false;
  for (uint32_t k = 0; k < node->n_in; k++)
    if (!n->weight[node->in[k]]) return true;
  return false;
}

/* Not the mask of dense attention: what it adds may be as low as f32 goes. */
static bool rounds_operand(const narrower *n, const rung_node *node, uint32_t k) {
  return rung_is_plain_f32(type_of(n, node->in[k])) && !(node->op == &rung_op_attention && k == 3);
}

static rung_status narrow_whole(narrower *n, uint32_t index) {
  const rung_node *node = &n->rw.from->node[index];
  const rung_type type = n->policy->compute;
  rung_graph *to = n->rw.to;
  enum { MOST = 16 };
  rung_value in[MOST];
  uint32_t shape[RUNG_MAX_RANK], shapes;
  if (node->n_in > MOST)
    return rung_fail(n->env->error, RUNG_INTERNAL, "precision: %s of %u operands", node->op->name, node->n_in);
  rung_graph_label(to, node->label);
  /* All casts first: they end the product that several operands come from. */
  for (uint32_t k = 0; k < node->n_in; k++)
    if (rounds_operand(n, node, k)) narrow_plain(n, shaped_from(n, node->in[k], type, shape, &shapes), type);
  for (uint32_t k = 0; k < node->n_in; k++)
    in[k] = rounds_operand(n, node, k) ? narrow(n, node->in[k], type) : n->rw.map[node->in[k]];
  rung_attention_attrs attrs;
  const void *same = node->attrs;
  if (node->op == &rung_op_attention_ragged && type == RUNG_TYPE_BF16) { /* weights of keys are rounded as well */
    attrs = *(const rung_attention_attrs *)node->attrs;
    attrs.narrow = true;
    same = &attrs;
  }
  const rung_node *made = rung_graph_append(to, node->op, in, node->n_in, same, NULL, 0);
  if (!made) return rung_pass_failed(n->env, to);
  for (uint32_t r = 0; r < node->results; r++) {
    const uint32_t value = node->first_value + r;
    const rung_value result = rung_node_result(to, made, r);
    n->rw.map[value] = result;
    if (!rung_is_plain_f32(type_of(n, value))) continue;
    n->cast[type][value] = result;
    n->rw.map[value] = rung_build_cast(to, result, RUNG_TYPE_F32);
  }
  return rung_graph_status(to) ? rung_pass_failed(n->env, to) : RUNG_OK;
}

/* ---- weights that others read */

/* The type in which the node's weights are kept; f32: as they are. */
static rung_type kept_in(const narrower *n, const rung_node *node) {
  if (node->bodies || (node->op->flags & (RUNG_OP_DECLARES | RUNG_OP_CONTROL)) || rung_op_computes(node->op) ||
      node->op == &rung_op_quantize_linear || node->op == &rung_op_dequantize_linear) /* scales are no numbers of it */
    return RUNG_TYPE_F32;
  const rung_type type = rung_precision_of(n->policy, node->op);
  bool reads = false, all = true;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const bool weight = n->weight[node->in[k]];
    reads |= weight && rung_is_plain_f32(type_of(n, node->in[k]));
    all &= weight || rung_graph_producer(n->rw.from, node->in[k])->op == &rung_op_constant;
  }
  return reads && !all ? type : RUNG_TYPE_F32;
}

/* Rows of a table are moved as they are kept; for everything else weights are f32 again. */
static rung_status read_kept(narrower *n, uint32_t index, rung_type type) {
  const rung_node *node = &n->rw.from->node[index];
  rung_graph *to = n->rw.to;
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  if (!in) return rung_pass_no_memory(n->env);
  const bool moved = node->op == &rung_op_gather;
  rung_graph_label(to, node->label);
  for (uint32_t k = 0; k < node->n_in; k++) {
    const uint32_t value = node->in[k];
    in[k] = n->rw.map[value];
    if (!n->weight[value] || !rung_is_plain_f32(type_of(n, value))) continue;
    in[k] = narrow_plain(n, value, type);
    if (moved) continue;
    rung_value *back = &n->back[type][value];
    if (!back->id) *back = rung_build_cast(to, in[k], RUNG_TYPE_F32);
    in[k] = *back;
  }
  if (!rung_rewrite_copy_with(&n->rw, index, in, node->n_in)) return rung_pass_failed(n->env, to);
  if (moved && rung_is_plain_f32(type_of(n, node->first_value))) {
    n->cast[type][node->first_value] = n->rw.map[node->first_value];
    n->rw.map[node->first_value] = rung_build_cast(to, n->rw.map[node->first_value], RUNG_TYPE_F32);
  }
  return rung_graph_status(to) ? rung_pass_failed(n->env, to) : RUNG_OK;
}

/* ---- the pass */

static rung_status rewrite(narrower *n, uint32_t index);

rung_status rung_pass_precision(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_precision(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  narrower n = {.env = env, .policy = &env->options->precision};
  RUNG_TRY(rung_rewrite_init(&n.rw, from, to, env->error));
  n.weight = (bool *)rung_arena_array(&to->arena, from->values + 1, sizeof *n.weight);
  n.exact = rung_precision_exact(from, &to->arena);
  if (!n.weight || !n.exact) return rung_pass_no_memory(env);
  for (int type = RUNG_TYPE_F16; type < RUNG_PRECISION_ENDS; type++) {
    n.cast[type] = (rung_value *)rung_arena_array(&to->arena, from->values + 1, sizeof **n.cast);
    n.back[type] = (rung_value *)rung_arena_array(&to->arena, from->values + 1, sizeof **n.back);
    if (!n.cast[type] || !n.back[type]) return rung_pass_no_memory(env);
  }
  find_weights(&n);
  for (uint32_t i = 0; i < from->nodes; i++) RUNG_TRY(rewrite(&n, i));
  return rung_rewrite_finish(&n.rw, env->error);
}

static rung_status rewrite(narrower *n, uint32_t index) {
  const rung_node *node = &n->rw.from->node[index];
  if (narrows_product(n, node)) return narrow_product(n, index);
  if (narrows_whole(n, node)) return narrow_whole(n, index);
  if (n->policy->compute == RUNG_TYPE_BF16 && rung_pass_is_attention(node))
    return rung_pass_narrow_attention(n->env, &n->rw, index);
  if (n->policy->compute != RUNG_TYPE_F32 && rung_op_computes(node->op) && !multiplies(n, node->op))
    rung_note(n->env, RUNG_NOTE_NEARLY, node->label, node->op->name,
              "this device has none that is as good as that of f32");
  const rung_type kept = kept_in(n, node);
  if (kept != RUNG_TYPE_F32) return read_kept(n, index, kept);
  return rung_pass_copy(n->env, &n->rw, index, rung_pass_precision);
}
