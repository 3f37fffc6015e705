/* SPDX-License-Identifier: MIT
 * Phi-3 (technical report, 2024; Phi-4-mini too): Llama's layer with one tensor of queries, keys and values and one of
 * gate and up, a window on every layer in some of its models, and LongRoPE's factors in those for long contexts: the
 * short ones serve contexts up to the one that was trained, the long ones all others. */
#include "models/family.h"

static const rung_tensor_name names[] = {{"attn_qkv", "layers.*.self_attn.qkv_proj"},
                                         {"ffn_up", "layers.*.mlp.gate_up_proj"},
                                         RUNG_DECODER_NAMES,
                                         {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  c->turns_part = true;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.sliding_window", 0, INT32_MAX, error, &c->window));
  if (!c->names) /* which have the factors as tensors, and no kind of scaling */
    RUNG_TRY(rung_metadata_maybe_count(meta, "rope.scaling.original_context_length", 1, INT32_MAX, error,
                                       &c->rope.long_above));
  c->fused = true;
  return RUNG_OK;
}

extern const rung_family rung_family_phi3;
const rung_family rung_family_phi3 = {.architecture = "phi3",
                                      .model_type = "phi3",
                                      .names = names,
                                      .name_prefix = "model.",
                                      .configure = configure,
                                      .build = rung_transformer};
