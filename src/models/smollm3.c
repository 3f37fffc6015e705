/* SPDX-License-Identifier: MIT
 * SmolLM3 (Hugging Face 2025): Llama's layer, every fourth one without rotary positions (Yang et al. 2025, "RoPE to
 * NoPE and back again"). GGUF files hold query and key rows permuted, as Llama's. */
#include "models/family.h"

static const rung_tensor_name names[] = {RUNG_DECODER_NAMES, {NULL, NULL}};

/* A folder may list the layers (1: with positions) or name another distance. */
static rung_status configure_turns(const rung_metadata *meta, rung_config *c, rung_error *error) {
  double turned[RUNG_MAX_LAYERS];
  int64_t every = 4;
  bool listed;
  RUNG_TRY(rung_metadata_maybe_count(meta, "no_rope_layer_interval", 1, RUNG_MAX_LAYERS, error, &every));
  RUNG_TRY(rung_metadata_maybe_numbers(meta, "no_rope_layers", c->layers, error, turned, &listed));
  for (int64_t i = 0; i < c->layers; i++) c->unturned[i] = listed ? turned[i] == 0 : i % every == every - 1;
  return RUNG_OK;
}

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_not(meta, "use_sliding_window", error));
  RUNG_TRY(configure_turns(meta, c, error));
  if (!c->names) c->rope_mode = RUNG_ROPE_ADJACENT;
  return RUNG_OK;
}

extern const rung_family rung_family_smollm3;
const rung_family rung_family_smollm3 = {.architecture = "smollm3",
                                         .model_type = "smollm3",
                                         .names = names,
                                         .name_prefix = "model.",
                                         .ties = true,
                                         .configure = configure,
                                         .build = rung_transformer};
