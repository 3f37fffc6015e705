/* SPDX-License-Identifier: MIT
 * Gemma 3 (technical report, 2025): scaled embeddings, norms before and after both halves of a layer, norms of queries
 * and keys, and five layers with a sliding window and a rotary base of their own for each that sees everything. GGUF
 * files hold every norm weight with the family's "1 +" already added, folders without. */
#include <math.h>

#include "models/family.h"
#include "ops/op_table.h"

static const rung_tensor_name names[] = {RUNG_SANDWICH_NAMES, RUNG_DECODER_NAMES, {NULL, NULL}};

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
  RUNG_TRY(rung_metadata_count(meta, "attention.sliding_window", 1, INT32_MAX, error, &c->window));
  RUNG_TRY(rung_configure_windows(meta, 6, c, error));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.freq_base_swa", error, &c->rope_base_window));
  RUNG_TRY(refuse_others(meta, error));
  c->embedding_scale = sqrt((double)c->width);
  /* The 27B model scales by the width per head instead of the head's own. Its folder says so, in GGUF files it is known
   * by its 62 layers. */
  double scaled_by = !c->names && c->layers == 62 ? (double)c->width / (double)c->heads : (double)c->head_dim;
  RUNG_TRY(rung_metadata_maybe_number(meta, "query_pre_attn_scalar", error, &scaled_by));
  c->attention_scale = 1 / sqrt(scaled_by);
  if (c->names) c->norm_offset = 1;
  c->norms = RUNG_NORMS_BEFORE | RUNG_NORMS_BEHIND;
  c->qk_norm = RUNG_QK_NORM_HEADS;
  c->activation = &rung_op_gelu_tanh;
  return RUNG_OK;
}

extern const rung_family rung_family_gemma3;
const rung_family rung_family_gemma3 = {.architecture = "gemma3",
                                        .model_type = "gemma3_text",
                                        .names = names,
                                        .name_prefix = "model.",
                                        .ties = true,
                                        .configure = configure,
                                        .build = rung_transformer};
