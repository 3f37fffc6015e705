/* SPDX-License-Identifier: MIT
 * Precision policies: names, and the category of every op. */
#include "passes/policy.h"

#include <string.h>

#include "ops/op_table.h"
#include "ops/shape.h"

rung_precision rung_precision_f32(void) { return rung_precision_all(RUNG_TYPE_F32); }
rung_precision rung_precision_all(rung_type type) {
  return (rung_precision){
      .compute = type, .reduction = type, .elementwise = type, .movement = type, .boundary = RUNG_TYPE_F32};
}
rung_precision rung_precision_mixed(rung_type type) {
  rung_precision policy = rung_precision_f32();
  policy.compute = type;
  return policy;
}

static const struct {
  const char *name;
  rung_precision (*make)(rung_type type);
  rung_type type;
} named[] = {{"f32", rung_precision_all, RUNG_TYPE_F32},
             {"f16", rung_precision_all, RUNG_TYPE_F16},
             {"bf16", rung_precision_all, RUNG_TYPE_BF16},
             {"mixed", rung_precision_mixed, RUNG_TYPE_BF16},
             {"mixed-f16", rung_precision_mixed, RUNG_TYPE_F16}};

bool rung_precision_find(const char *name, rung_precision *out) {
  for (size_t i = 0; name && out && i < RUNG_COUNT(named); i++) {
    if (strcmp(named[i].name, name) != 0) continue;
    *out = named[i].make(named[i].type);
    return true;
  }
  return false;
}

const char *rung_precision_name(rung_precision precision) {
  for (size_t i = 0; i < RUNG_COUNT(named); i++) {
    const rung_precision policy = named[i].make(named[i].type);
    if (rung_precision_same(&policy, &precision)) return named[i].name;
  }
  return "custom";
}

const char *rung_precision_category(size_t index) {
  static const char *const text[RUNG_PRECISION_CATEGORIES] = {"compute", "reduction", "elementwise", "movement",
                                                              "boundary"};
  return text[index];
}

bool rung_precision_takes(rung_type type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}

bool rung_precision_valid(const rung_precision *policy) {
  const rung_type *const category[] = RUNG_PRECISION_TYPES(policy);
  bool valid = true;
  for (size_t i = 0; i < RUNG_COUNT(category); i++) valid &= rung_precision_takes(*category[i]);
  return valid;
}

bool rung_precision_same(const rung_precision *a, const rung_precision *b) {
  const rung_type *const x[] = RUNG_PRECISION_TYPES(a), *const y[] = RUNG_PRECISION_TYPES(b);
  bool same = true;
  for (size_t i = 0; i < RUNG_COUNT(x); i++) same &= *x[i] == *y[i];
  return same;
}

bool rung_precision_stores(const rung_precision *policy) {
  rung_precision others = *policy;
  others.compute = RUNG_TYPE_F32;
  const rung_precision none = rung_precision_f32();
  return !rung_precision_same(&others, &none);
}

/* ---- categories */

static bool is_of(const rung_op *op, const rung_op *const *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == op) return true;
  return false;
}

bool rung_op_computes(const rung_op *op) {
  static const rung_op *const list[] = {
      &rung_op_matmul,    &rung_op_grouped_matmul, &rung_op_expert_matmul,    &rung_op_conv, &rung_op_conv_transpose,
      &rung_op_attention, &rung_op_attention_kv,   &rung_op_attention_ragged, &rung_op_lstm, &rung_op_gru,
      &rung_op_rnn};
  return is_of(op, list, RUNG_COUNT(list));
}

bool rung_op_is_product(const rung_op *op) {
  return op == &rung_op_matmul || op == &rung_op_grouped_matmul || op == &rung_op_expert_matmul;
}

bool rung_op_moves(const rung_op *op) {
  static const rung_op *const list[] = {&rung_op_concat,          &rung_op_pad,       &rung_op_gather,
                                        &rung_op_gather_elements, &rung_op_gather_nd, &rung_op_scatter_elements,
                                        &rung_op_scatter_nd,      &rung_op_append,    &rung_op_append_dense,
                                        &rung_op_assign,          &rung_op_top_k,     &rung_op_unique,
                                        &rung_op_slice,           &rung_op_transpose, &rung_op_reshape,
                                        &rung_op_expand};
  return is_of(op, list, RUNG_COUNT(list));
}

static bool reduces(const rung_op *op) {
  static const rung_op *const list[] = {
      &rung_op_reduce_sum,     &rung_op_reduce_mean,        &rung_op_reduce_prod, &rung_op_reduce_max,
      &rung_op_reduce_min,     &rung_op_reduce_l1,          &rung_op_reduce_l2,   &rung_op_reduce_sum_square,
      &rung_op_reduce_log_sum, &rung_op_reduce_log_sum_exp, &rung_op_softmax,     &rung_op_log_softmax,
      &rung_op_rms_norm,       &rung_op_layer_norm,         &rung_op_cumsum,      &rung_op_cumprod,
      &rung_op_max_pool,       &rung_op_average_pool,       &rung_op_argmax_pool, &rung_op_pool_ragged,
      &rung_op_max_roi_pool,   &rung_op_roi_align,          &rung_op_determinant, &rung_op_dft};
  return is_of(op, list, RUNG_COUNT(list));
}

rung_type rung_precision_of(const rung_precision *policy, const rung_op *op) {
  return rung_op_moves(op) ? policy->movement : reduces(op) ? policy->reduction : policy->elementwise;
}

static bool is_exact(const rung_graph *g, const bool *exact, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(g, value);
  const bool whole = rung_type_is_integer(type->type) || type->type == RUNG_TYPE_BOOL;
  return exact[value] ||
         (whole && type->kind == RUNG_VALUE_TENSOR && rung_graph_producer(g, value)->op != &rung_op_weight);
}

/* exact[value] of g; those of a body's inputs are there already. A fused node's results are told apart by its body:
 * one of them may be made of integers alone, another not. False: no memory. */
static bool find_exact(const rung_graph *g, rung_arena *arena, bool *exact) {
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (node->op == &rung_op_input && g->depth) continue;
    if (node->op == &rung_op_fused) {
      const rung_graph *body = node->body[0];
      bool *inside = (bool *)rung_arena_array(arena, body->values + 1, sizeof *inside);
      if (!inside) return false;
      for (uint32_t k = 0; k < node->n_in && k < body->inputs; k++)
        inside[body->node[body->input[k]].first_value] = is_exact(g, exact, node->in[k]);
      if (!find_exact(body, arena, inside)) return false;
      for (uint32_t r = 0; r < node->results; r++) exact[node->first_value + r] = inside[body->output[r].value];
      continue;
    }
    bool of = node->op == &rung_op_constant;
    if (!of && !(node->op->flags & (RUNG_OP_DECLARES | RUNG_OP_RANDOM | RUNG_OP_EFFECT | RUNG_OP_CONTROL))) {
      of = true;
      for (uint32_t k = 0; k < node->n_in; k++) of &= is_exact(g, exact, node->in[k]);
    }
    for (uint32_t r = 0; r < node->results; r++) exact[node->first_value + r] = of;
  }
  return true;
}

bool *rung_precision_exact(const rung_graph *g, rung_arena *arena) {
  bool *exact = (bool *)rung_arena_array(arena, g->values + 1, sizeof *exact);
  return exact && find_exact(g, arena, exact) ? exact : NULL;
}
