/* SPDX-License-Identifier: MIT
 * Gemma 3 (technical report, 2025): scaled embeddings, norms before and after both halves of a layer, norms of queries
 * and keys, and five layers with a sliding window and a rotary base of their own for each that sees everything. GGUF
 * files hold every norm weight with the family's "1 +" already added. */
#include <math.h>

#include "models/family.h"

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  c->rope_base = 1e6;
  c->rope_base_window = 1e4;
  c->head_dim = 256;
  c->window_pattern = 6;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_metadata_count(meta, "attention.sliding_window", 1, INT32_MAX, error, &c->window));
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.sliding_window_pattern", 1, 512, error, &c->window_pattern));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.freq_base_swa", error, &c->rope_base_window));
  c->embedding_scale = sqrt((double)c->width);
  /* The 27B model, known by its 62 layers, scales by the width per head instead of the head's own. */
  c->attention_scale = 1 / sqrt(c->layers == 62 ? (double)c->width / (double)c->heads : (double)c->head_dim);
  return RUNG_OK;
}

static rung_value attention(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  const int64_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
  const bool global = b->layer % c->window_pattern == c->window_pattern - 1;
  const double base = global ? c->rope_base : c->rope_base_window, scale = global ? c->rope_scale : 1;
  rung_builder_label(b, "attention");
  const rung_value h = rung_norm(b, "attn_norm", x, c->width);
  rung_value q = rung_split_heads(b, rung_linear(b, "attn_q", h, c->width, q_width), c->heads, c->head_dim);
  rung_value k = rung_split_heads(b, rung_linear(b, "attn_k", h, c->width, kv_width), c->kv_heads, c->head_dim);
  const rung_value v = rung_split_heads(b, rung_linear(b, "attn_v", h, c->width, kv_width), c->kv_heads, c->head_dim);
  q = rung_rotate(b, rung_norm(b, "attn_q_norm", q, c->head_dim), RUNG_ROPE_HALF, base, scale, rung_build_null());
  k = rung_rotate(b, rung_norm(b, "attn_k_norm", k, c->head_dim), RUNG_ROPE_HALF, base, scale, rung_build_null());
  const rung_value y =
      rung_join_heads(b, rung_attend(b, q, k, v, global ? 0 : c->window, c->attention_scale), c->heads, c->head_dim);
  const rung_value projected = rung_linear(b, "attn_output", y, q_width, c->width);
  return rung_build_add(b->graph, x, rung_norm(b, "post_attention_norm", projected, c->width));
}

static rung_value feed_forward(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  rung_builder_label(b, "feed_forward");
  const rung_value h = rung_norm(b, "ffn_norm", x, c->width);
  const rung_value gate = rung_linear(b, "ffn_gate", h, c->width, c->feed_forward);
  const rung_value up = rung_linear(b, "ffn_up", h, c->width, c->feed_forward);
  const rung_value y = rung_build_mul(b->graph, rung_build_gelu_tanh(b->graph, gate), up);
  const rung_value down = rung_linear(b, "ffn_down", y, c->feed_forward, c->width);
  return rung_build_add(b->graph, x, rung_norm(b, "post_ffw_norm", down, c->width));
}

static rung_value build(rung_builder *b, rung_value ids) {
  rung_value x = rung_embed(b, ids);
  for (b->layer = 0; b->layer < b->config->layers; b->layer++) {
    x = attention(b, x);
    x = feed_forward(b, x);
  }
  return rung_norm(b, "output_norm.weight", x, b->config->width);
}

extern const rung_family rung_family_gemma3;
const rung_family rung_family_gemma3 = {.architecture = "gemma3", .configure = configure, .build = build};
