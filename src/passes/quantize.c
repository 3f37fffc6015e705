/* SPDX-License-Identifier: MIT
 * quantize: under the fast policy, activations that meet a quantised weight are quantised per row and 32 elements, once
 * for all products that read them; on targets that want it, those that meet a weight of f16 or bf16 are rounded to its
 * type. Where there are such weights, what attention multiplies may be rounded to bf16: that
 * is much less than the roundings around it. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/pass.h"

/* Packed experts are of whole panels. */
static bool takes_experts(const rung_pass_env *env, const rung_graph *g, const rung_node *node) {
  const rung_layout *layout = env->target->layout_of(rung_graph_value_type(g, node->in[1])->type);
  int64_t rows;
  if (!layout) return true; /* they are read as they lie */
  return rung_dims_is_constant(g->dims, rung_graph_value_type(g, node->first_value)->extent[2], &rows) &&
         rows % layout->panel == 0;
}

static bool wants_a8(const rung_pass_env *env, const rung_graph *g, const rung_node *node) {
  if (node->op == &rung_op_expert_matmul && !takes_experts(env, g, node)) return false;
  if (node->op != &rung_op_matmul && node->op != &rung_op_grouped_matmul && node->op != &rung_op_expert_matmul)
    return false;
  if (node->op == &rung_op_matmul && !((const rung_matmul_attrs *)node->attrs)->transpose_b) return false;
  const rung_value_type *a = rung_graph_value_type(g, node->in[0]), *b = rung_graph_value_type(g, node->in[1]);
  const rung_op *source = rung_graph_producer(g, node->in[1])->op;
  int64_t k;
  return (source == &rung_op_weight || source == &rung_op_form) && a->type == RUNG_TYPE_F32 &&
         rung_type_is_block(b->type) && env->target->multiplies_a8(b->type) &&
         rung_dims_is_constant(g->dims, a->extent[a->rank - 1], &k) && k % 32 == 0;
}

/* The type that the activations of a product are rounded to; f32: none. */
static rung_type narrow_type(const rung_pass_env *env, const rung_graph *g, const rung_node *node) {
  if (!env->target->narrows || (node->op != &rung_op_matmul && node->op != &rung_op_grouped_matmul))
    return RUNG_TYPE_F32;
  if (node->op == &rung_op_matmul && !((const rung_matmul_attrs *)node->attrs)->transpose_b) return RUNG_TYPE_F32;
  const rung_value_type *a = rung_graph_value_type(g, node->in[0]), *b = rung_graph_value_type(g, node->in[1]);
  const rung_op *source = rung_graph_producer(g, node->in[1])->op;
  const bool narrow = b->type == RUNG_TYPE_F16 || b->type == RUNG_TYPE_BF16;
  return narrow && a->type == RUNG_TYPE_F32 && (source == &rung_op_weight || source == &rung_op_form) ? b->type
                                                                                                      : RUNG_TYPE_F32;
}

static bool quantizes(const rung_pass_env *env, const rung_graph *g) {
  for (uint32_t i = 0; i < g->nodes; i++)
    if (wants_a8(env, g, &g->node[i]) || narrow_type(env, g, &g->node[i]) != RUNG_TYPE_F32) return true;
  return false;
}

rung_status rung_pass_quantize(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  rung_value *quantized = rung_arena_array(&to->arena, from->values + 1, sizeof *quantized);
  rung_value *rounded = rung_arena_array(&to->arena, from->values + 1, sizeof *rounded);
  rung_value *brief = rung_arena_array(&to->arena, from->values + 1, sizeof *brief);
  if (!quantized || !rounded || !brief) return rung_pass_no_memory(env);
  const bool narrows = quantizes(env, from);
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    const rung_type narrow = narrow_type(env, from, node);
    if (narrow == RUNG_TYPE_F32 && !wants_a8(env, from, node)) {
      if (narrows && rung_pass_is_attention(node))
        RUNG_TRY(rung_pass_narrow_attention(env, &rw, i));
      else
        RUNG_TRY(rung_rewrite_copy(&rw, i));
      continue;
    }
    rung_value *a = &(narrow == RUNG_TYPE_F16 ? rounded : narrow == RUNG_TYPE_BF16 ? brief : quantized)[node->in[0]];
    if (!a->id) {
      rung_graph_label(to, node->label);
      *a = narrow == RUNG_TYPE_F32 ? rung_graph_op(to, &rung_op_quantize_rows, &rw.map[node->in[0]], 1, NULL)
                                   : rung_build_cast(to, rw.map[node->in[0]], narrow);
    }
    rung_value in[3] = {*a, rw.map[node->in[1]]};
    if (node->n_in == 3) in[2] = rw.map[node->in[2]];
    const rung_node *copy = rung_rewrite_copy_with(&rw, i, in, node->n_in);
    if (!copy) return rung_fail(env->error, rung_graph_status(to), "%s", rung_graph_message(to));
  }
  return rung_rewrite_finish(&rw, env->error);
}
