/* SPDX-License-Identifier: MIT
 * Decoders: what their layers are made of, put together as a configuration says. A family's file sets the
 * configuration; what is here serves all of them. */
#include <inttypes.h>
#include <stdio.h>

#include "models/family.h"

/* ---- attention */

/* Columns [first, first + count) of what one tensor computes. */
static rung_value columns(rung_builder *b, rung_value x, int64_t first, int64_t count) {
  const rung_dim from = rung_graph_constant_dim(b->graph, first), length = rung_graph_constant_dim(b->graph, count);
  return rung_build_slice(b->graph, x, 1, from, length);
}

static rung_value project(rung_builder *b, const char *name, rung_value h, int64_t width) {
  char bias[32];
  snprintf(bias, sizeof bias, "%s.bias", name);
  const rung_value y = rung_linear(b, name, h, b->config->width, width);
  return b->config->qkv_bias ? rung_shift(b, y, bias, width) : y;
}

/* A norm of each head, or of all heads of a row at once. */
static rung_value norm_heads(rung_builder *b, const char *name, rung_value x, int64_t heads) {
  const rung_config *c = b->config;
  const bool whole = c->qk_norm == RUNG_QK_NORM_WHOLE;
  if (whole) x = rung_norm(b, name, x, heads * c->head_dim);
  x = rung_split_heads(b, x, heads, c->head_dim);
  return c->qk_norm == RUNG_QK_NORM_HEADS ? rung_norm(b, name, x, c->head_dim) : x;
}

static rung_value rotate(rung_builder *b, rung_value x, bool local, rung_value factors) {
  const rung_config *c = b->config;
  const bool plain = local && c->rope_base_window != 0;
  const rung_rope_attrs attrs = {.dims = c->rope_dims,
                                 .base = plain ? c->rope_base_window : c->rope_base,
                                 .scale = plain ? 1 : c->rope_scale,
                                 .magnitude = plain || c->rope.magnitude == 0 ? 1 : c->rope.magnitude,
                                 .mode = c->rope_mode};
  const bool divided = factors.id && !plain;
  return rung_graph_op(b->graph, &rung_op_rope, (rung_value[]){x, b->positions, factors}, divided ? 3 : 2, &attrs);
}

/* Appends k and v to the layer's state, then attends to it. */
static rung_value attend(rung_builder *b, rung_value q, rung_value k, rung_value v, int64_t window) {
  const rung_config *c = b->config;
  char name[32];
  snprintf(name, sizeof name, "kv.%" PRId64, b->layer);
  const rung_state_desc desc = {.size = sizeof desc,
                                .kind = RUNG_STATE_KV,
                                .type = b->kv,
                                .rank = 3,
                                .extent = {c->kv_heads, c->head_dim, c->head_dim},
                                .window = window};
  const rung_value state = rung_graph_state(b->graph, name, &desc);
  const rung_value next =
      rung_graph_op(b->graph, &rung_op_append, (rung_value[]){state, k, v, b->offsets, b->slot, b->past}, 6, NULL);
  const rung_attention_kv_attrs attrs = {.scale = c->attention_scale, .soft_cap = c->attention_cap, .window = window};
  return rung_graph_op(b->graph, &rung_op_attention_kv, (rung_value[]){q, next, b->offsets, b->slot, b->past}, 5,
                       &attrs);
}

static rung_value attention(rung_builder *b, rung_value h) {
  const rung_config *c = b->config;
  const int64_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
  const bool local = c->window && !c->sees_all[b->layer];
  rung_value q, k, v;
  if (c->fused) {
    const rung_value all = rung_linear(b, "attn_qkv", h, c->width, q_width + 2 * kv_width);
    q = columns(b, all, 0, q_width);
    k = columns(b, all, q_width, kv_width);
    v = columns(b, all, q_width + kv_width, kv_width);
  } else {
    q = project(b, "attn_q", h, q_width);
    k = project(b, "attn_k", h, kv_width);
    v = project(b, "attn_v", h, kv_width);
  }
  q = norm_heads(b, "attn_q_norm", q, c->heads);
  k = norm_heads(b, "attn_k_norm", k, c->kv_heads);
  v = rung_split_heads(b, v, c->kv_heads, c->head_dim);
  if (!c->unturned[b->layer]) {
    const rung_value factors = rung_rope_factors(b);
    q = rotate(b, q, local, factors);
    k = rotate(b, k, local, factors);
  }
  const rung_value y = rung_join_heads(b, attend(b, q, k, v, local ? c->window : 0), c->heads, c->head_dim);
  return rung_linear(b, "attn_output", y, q_width, c->width);
}

/* ---- feed-forward */

static rung_value gated(rung_builder *b, rung_value h) {
  const rung_config *c = b->config;
  rung_value gate, up;
  if (c->fused) {
    const rung_value both = rung_linear(b, "ffn_up", h, c->width, 2 * c->feed_forward);
    gate = columns(b, both, 0, c->feed_forward);
    up = columns(b, both, c->feed_forward, c->feed_forward);
  } else {
    gate = rung_linear(b, "ffn_gate", h, c->width, c->feed_forward);
    up = rung_linear(b, "ffn_up", h, c->width, c->feed_forward);
  }
  gate = rung_graph_op(b->graph, c->activation, &gate, 1, NULL);
  return rung_linear(b, "ffn_down", rung_build_mul(b->graph, gate, up), c->feed_forward, c->width);
}

/* ---- experts */

/* All experts of the layer: one tensor in GGUF files; folders have one for each, whose rows are put one behind the
 * other when they are loaded. */
static rung_value experts_of(rung_builder *b, const char *name, int64_t rows, int64_t columns) {
  const rung_config *c = b->config;
  if (!c->names) return rung_layer_weight(b, name, 3, (int64_t[]){c->experts, rows, columns});
  rung_value each[RUNG_MAX_EXPERTS];
  for (b->expert = 0; b->expert < c->experts; b->expert++)
    each[b->expert] = rung_layer_weight(b, name, 2, (int64_t[]){rows, columns});
  const rung_form_attrs attrs = {.recipe = RUNG_FORM_CONCAT};
  return rung_graph_op(b->graph, &rung_op_form, each, (uint32_t)c->experts, &attrs);
}

static rung_value through_experts(rung_builder *b, const char *name, rung_value x, rung_value chosen, int64_t in,
                                  int64_t out) {
  const rung_value w = experts_of(b, name, out, in);
  const rung_expert_matmul_attrs attrs = {.experts = b->config->experts, .type = RUNG_TYPE_F32};
  return rung_graph_op(b->graph, &rung_op_expert_matmul, (rung_value[]){x, w, chosen}, 3, &attrs);
}

/* The best experts by the router's softmax, each a gated feed-forward half; their results are weighed and added. */
static rung_value mixture(rung_builder *b, rung_value h) {
  const rung_config *c = b->config;
  rung_graph *g = b->graph;
  const rung_dim one = rung_graph_constant_dim(g, 1), used = rung_graph_constant_dim(g, c->experts_used);
  const rung_dim width = rung_graph_constant_dim(g, c->width);
  const rung_axis_attrs last = {.axis = -1};
  const rung_value router = rung_linear(b, "ffn_gate_inp", h, c->width, c->experts);
  const rung_value share = rung_graph_op(g, &rung_op_softmax, &router, 1, &last);
  const rung_top_k_attrs best = {.k = used, .axis = -1, .largest = true, .sorted = true};
  const rung_node *top = rung_graph_append(g, &rung_op_top_k, &share, 1, &best, NULL, 0);
  if (!top) return rung_build_null();
  rung_value weight = rung_node_result(g, top, 0);
  const rung_value chosen = rung_node_result(g, top, 1);
  if (c->experts_normalised) weight = rung_build_div(g, weight, rung_build_sum(g, weight, 1, true));
  const rung_value x = rung_build_reshape(g, h, 3, (rung_dim[]){b->rows, one, width});
  const rung_value gate = through_experts(b, "ffn_gate_exps", x, chosen, c->width, c->expert_feed_forward);
  const rung_value up = through_experts(b, "ffn_up_exps", x, chosen, c->width, c->expert_feed_forward);
  const rung_value y = rung_build_mul(g, rung_graph_op(g, c->activation, &gate, 1, NULL), up);
  const rung_value each = through_experts(b, "ffn_down_exps", y, chosen, c->expert_feed_forward, c->width);
  weight = rung_build_reshape(g, weight, 3, (rung_dim[]){b->rows, used, one});
  return rung_build_sum(g, rung_build_mul(g, each, weight), 1, false);
}

/* ---- layers */

/* x + what a half makes of it, with norms before it, behind it, or both. */
static rung_value half(rung_builder *b, rung_value x, rung_value (*make)(rung_builder *, rung_value), const char *label,
                       const char *before, const char *behind) {
  const rung_config *c = b->config;
  rung_builder_label(b, label);
  rung_value y = make(b, c->norms & RUNG_NORMS_BEFORE ? rung_norm(b, before, x, c->width) : x);
  if (c->norms & RUNG_NORMS_BEHIND) y = rung_norm(b, behind, y, c->width);
  return rung_build_add(b->graph, x, y);
}

rung_value rung_transformer(rung_builder *b, rung_value ids) {
  rung_value x = rung_embed(b, ids);
  for (b->layer = 0; b->layer < b->config->layers; b->layer++) {
    x = half(b, x, attention, "attention", "attn_norm", "post_attention_norm");
    x = half(b, x, b->config->experts ? mixture : gated, "feed_forward", "ffn_norm", "post_ffw_norm");
  }
  return rung_norm(b, "output_norm.weight", x, b->config->width);
}
