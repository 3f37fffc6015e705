/* SPDX-License-Identifier: MIT
 * Llama (Touvron et al. 2023, "LLaMA: open and efficient foundation language models"): RMS norm before each half of a
 * layer, rotary positions, grouped keys (Ainslie et al. 2023), SwiGLU. GGUF files hold query and key rows permuted for
 * rotating neighbouring elements; folders hold them as they were trained, for rotating halves. */
#include "models/family.h"

static const rung_tensor_name names[] = {{"token_embd", "embed_tokens"},
                                         {"attn_norm", "layers.*.input_layernorm"},
                                         {"attn_q", "layers.*.self_attn.q_proj"},
                                         {"attn_k", "layers.*.self_attn.k_proj"},
                                         {"attn_v", "layers.*.self_attn.v_proj"},
                                         {"attn_output", "layers.*.self_attn.o_proj"},
                                         {"ffn_norm", "layers.*.post_attention_layernorm"},
                                         {"ffn_gate", "layers.*.mlp.gate_proj"},
                                         {"ffn_up", "layers.*.mlp.up_proj"},
                                         {"ffn_down", "layers.*.mlp.down_proj"},
                                         {"output_norm", "norm"},
                                         {"output", "lm_head"},
                                         {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  static const char *const silu[] = {"silu", "swish", NULL};
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_metadata_one_of(meta, "hidden_act", silu, error));
  RUNG_TRY(rung_metadata_not(meta, "attention_bias", error));
  RUNG_TRY(rung_metadata_not(meta, "mlp_bias", error));
  if (!c->names) c->rope_mode = RUNG_ROPE_ADJACENT;
  return RUNG_OK;
}

static rung_value attention(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  const int64_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
  const rung_value factors = rung_rope_factors(b);
  rung_builder_label(b, "attention");
  const rung_value h = rung_norm(b, "attn_norm", x, c->width);
  rung_value q = rung_split_heads(b, rung_linear(b, "attn_q", h, c->width, q_width), c->heads, c->head_dim);
  rung_value k = rung_split_heads(b, rung_linear(b, "attn_k", h, c->width, kv_width), c->kv_heads, c->head_dim);
  const rung_value v = rung_split_heads(b, rung_linear(b, "attn_v", h, c->width, kv_width), c->kv_heads, c->head_dim);
  q = rung_rotate(b, q, c->rope_mode, c->rope_base, c->rope_scale, factors);
  k = rung_rotate(b, k, c->rope_mode, c->rope_base, c->rope_scale, factors);
  const rung_value y = rung_join_heads(b, rung_attend(b, q, k, v, 0, c->attention_scale), c->heads, c->head_dim);
  return rung_build_add(b->graph, x, rung_linear(b, "attn_output", y, q_width, c->width));
}

static rung_value feed_forward(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  rung_builder_label(b, "feed_forward");
  const rung_value h = rung_norm(b, "ffn_norm", x, c->width);
  const rung_value gate = rung_linear(b, "ffn_gate", h, c->width, c->feed_forward);
  const rung_value up = rung_linear(b, "ffn_up", h, c->width, c->feed_forward);
  const rung_value y = rung_build_mul(b->graph, rung_build_silu(b->graph, gate), up);
  return rung_build_add(b->graph, x, rung_linear(b, "ffn_down", y, c->feed_forward, c->width));
}

static rung_value build(rung_builder *b, rung_value ids) {
  rung_value x = rung_embed(b, ids);
  for (b->layer = 0; b->layer < b->config->layers; b->layer++) {
    x = attention(b, x);
    x = feed_forward(b, x);
  }
  return rung_norm(b, "output_norm.weight", x, b->config->width);
}

extern const rung_family rung_family_llama;
const rung_family rung_family_llama = {.architecture = "llama",
                                       .model_type = "llama",
                                       .names = names,
                                       .name_prefix = "model.",
                                       .configure = configure,
                                       .build = build};
