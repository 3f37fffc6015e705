/* SPDX-License-Identifier: MIT
 * Qwen3 (technical report, 2025): Llama's layer with a norm of each head of queries and keys, and heads of a width of
 * their own. */
#include "models/family.h"

static const rung_tensor_name names[] = {RUNG_DECODER_NAMES, {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  if (c->names) c->head_dim = 128;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_not(meta, "use_sliding_window", error));
  c->qk_norm = RUNG_QK_NORM_HEADS;
  return RUNG_OK;
}

extern const rung_family rung_family_qwen3;
const rung_family rung_family_qwen3 = {.architecture = "qwen3",
                                       .model_type = "qwen3",
                                       .names = names,
                                       .name_prefix = "model.",
                                       .configure = configure,
                                       .build = rung_transformer};
