/* SPDX-License-Identifier: MIT
 * Gemma 3 (technical report, 2025): scaled embeddings, norms before and after both halves of a layer, norms of queries
 * and keys, and five layers with a sliding window and a rotary base of their own for each that sees everything. GGUF
 * files hold every norm weight with the family's "1 +" already added, folders without. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "models/family.h"

static const rung_tensor_name names[] = {{"token_embd", "embed_tokens"},
                                         {"attn_norm", "layers.*.input_layernorm"},
                                         {"attn_q", "layers.*.self_attn.q_proj"},
                                         {"attn_k", "layers.*.self_attn.k_proj"},
                                         {"attn_v", "layers.*.self_attn.v_proj"},
                                         {"attn_q_norm", "layers.*.self_attn.q_norm"},
                                         {"attn_k_norm", "layers.*.self_attn.k_norm"},
                                         {"attn_output", "layers.*.self_attn.o_proj"},
                                         {"post_attention_norm", "layers.*.post_attention_layernorm"},
                                         {"ffn_norm", "layers.*.pre_feedforward_layernorm"},
                                         {"ffn_gate", "layers.*.mlp.gate_proj"},
                                         {"ffn_up", "layers.*.mlp.up_proj"},
                                         {"ffn_down", "layers.*.mlp.down_proj"},
                                         {"post_ffw_norm", "layers.*.post_feedforward_layernorm"},
                                         {"output_norm", "norm"},
                                         {"output", "lm_head"},
                                         {NULL, NULL}};

/* Which layers see everything: a list that names each layer's kind, or every n-th. */
static rung_status configure_windows(const rung_metadata *meta, rung_config *c, rung_error *error) {
  int64_t pattern = 6;
  RUNG_TRY(rung_metadata_count(meta, "attention.sliding_window", 1, INT32_MAX, error, &c->window));
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.sliding_window_pattern", 1, 512, error, &pattern));
  for (int64_t i = 0; i < c->layers; i++) c->sees_all[i] = i % pattern == pattern - 1;
  char kind[32];
  rung_status status = RUNG_OK;
  int64_t named = 0;
  for (; named <= c->layers; named++) {
    status = meta->text(meta->self, "layer_types", named, error, kind, sizeof kind);
    if (status || named == c->layers) break;
    c->sees_all[named] = strcmp(kind, "full_attention") == 0;
    if (c->sees_all[named] || strcmp(kind, "sliding_attention") == 0) continue;
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata layer_types[%" PRId64 "] \"%s\" is not supported", named, kind);
  }
  if (status && status != RUNG_NOT_FOUND) return status;
  if (named == 0 || (named == c->layers && status)) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata layer_types names %s than %s, %" PRId64,
                   status ? "fewer layers" : "more layers", meta->spell(meta->self, "block_count"), c->layers);
}

/* What the report and its checkpoints do not have, but a configuration may ask for. */
static rung_status refuse_others(const rung_metadata *meta, rung_error *error) {
  static const char *const scalings[] = {"linear", "default", "none", NULL};
  static const char *const gelu[] = {"gelu_pytorch_tanh", "gelu_tanh", NULL};
  RUNG_TRY(rung_metadata_one_of(meta, "rope.scaling.type", scalings, error));
  RUNG_TRY(rung_metadata_one_of(meta, "hidden_activation", gelu, error));
  RUNG_TRY(rung_metadata_not(meta, "attention_bias", error));
  RUNG_TRY(rung_metadata_not(meta, "use_bidirectional_attention", error));
  RUNG_TRY(rung_metadata_no_number(meta, "attn_logit_softcapping", error));
  return rung_metadata_no_number(meta, "final_logit_softcapping", error);
}

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  c->rope_base = 1e6;
  c->rope_base_window = 1e4;
  c->head_dim = 256;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(configure_windows(meta, c, error));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.freq_base_swa", error, &c->rope_base_window));
  RUNG_TRY(refuse_others(meta, error));
  c->embedding_scale = sqrt((double)c->width);
  /* The 27B model scales by the width per head instead of the head's own. Its folder says so, in GGUF files it is known
   * by its 62 layers. */
  double scaled_by = !c->names && c->layers == 62 ? (double)c->width / (double)c->heads : (double)c->head_dim;
  RUNG_TRY(rung_metadata_maybe_number(meta, "query_pre_attn_scalar", error, &scaled_by));
  c->attention_scale = 1 / sqrt(scaled_by);
  if (c->names) c->norm_offset = 1;
  return RUNG_OK;
}

static rung_value attention(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  const int64_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
  const bool global = c->sees_all[b->layer];
  const double base = global ? c->rope_base : c->rope_base_window, scale = global ? c->rope_scale : 1;
  rung_builder_label(b, "attention");
  const rung_value h = rung_norm(b, "attn_norm", x, c->width);
  rung_value q = rung_split_heads(b, rung_linear(b, "attn_q", h, c->width, q_width), c->heads, c->head_dim);
  rung_value k = rung_split_heads(b, rung_linear(b, "attn_k", h, c->width, kv_width), c->kv_heads, c->head_dim);
  const rung_value v = rung_split_heads(b, rung_linear(b, "attn_v", h, c->width, kv_width), c->kv_heads, c->head_dim);
  q = rung_rotate(b, rung_norm(b, "attn_q_norm", q, c->head_dim), c->rope_mode, base, scale, rung_build_null());
  k = rung_rotate(b, rung_norm(b, "attn_k_norm", k, c->head_dim), c->rope_mode, base, scale, rung_build_null());
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
const rung_family rung_family_gemma3 = {.architecture = "gemma3",
                                        .model_type = "gemma3_text",
                                        .names = names,
                                        .name_prefix = "model.",
                                        .ties = true,
                                        .configure = configure,
                                        .build = build};
