/* SPDX-License-Identifier: MIT
 * Qwen2 (technical report, 2024; Qwen2.5 too): Llama's layer with biases of queries, keys and values. */
#include "models/family.h"

static const rung_tensor_name names[] = {RUNG_DECODER_NAMES, {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_not(meta, "use_sliding_window", error));
  c->qkv_bias = true;
  return RUNG_OK;
}

extern const rung_family rung_family_qwen2;
const rung_family rung_family_qwen2 = {.architecture = "qwen2",
                                       .model_type = "qwen2",
                                       .names = names,
                                       .name_prefix = "model.",
                                       .configure = configure,
                                       .build = rung_transformer};
