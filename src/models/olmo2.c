/* SPDX-License-Identifier: MIT
 * OLMo 2 (OLMo team 2024, "2 OLMo 2 Furious"): norms behind the halves of a layer and none before them, and norms of
 * queries and keys over all heads at once. */
#include "models/family.h"

static const rung_tensor_name names[] = {{"post_attention_norm", "layers.*.post_attention_layernorm"},
                                         {"post_ffw_norm", "layers.*.post_feedforward_layernorm"},
                                         RUNG_DECODER_NAMES,
                                         {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_no_number(meta, "attention.sliding_window", error)); /* OLMo 3 */
  c->norms = RUNG_NORMS_BEHIND;
  c->qk_norm = RUNG_QK_NORM_WHOLE;
  return RUNG_OK;
}

extern const rung_family rung_family_olmo2;
const rung_family rung_family_olmo2 = {.architecture = "olmo2",
                                       .model_type = "olmo2",
                                       .names = names,
                                       .name_prefix = "model.",
                                       .configure = configure,
                                       .build = rung_transformer};
