/* SPDX-License-Identifier: MIT
 * Gemma 2 (Gemma team 2024, "Improving open language models at a practical size"): scaled embeddings, norms before and
 * behind both halves of a layer, scores and logits that are softly capped, every other layer with a sliding window.
 * GGUF files hold every norm weight with the family's "1 +" already added, folders without. */
#include <math.h>

#include "models/family.h"
#include "ops/op_table.h"

static const rung_tensor_name names[] = {RUNG_SANDWICH_NAMES, RUNG_DECODER_NAMES, {NULL, NULL}};

static rung_status refuse_others(const rung_metadata *meta, rung_error *error) {
  static const char *const gelu[] = {"gelu_pytorch_tanh", "gelu_tanh", NULL};
  RUNG_TRY(rung_metadata_one_of(meta, "hidden_activation", gelu, error));
  RUNG_TRY(rung_metadata_not(meta, "attention_bias", error));
  return rung_metadata_not(meta, "use_bidirectional_attention", error);
}

/* Folders must say both caps: a null there means none, which no model of the family has. */
static rung_status configure_caps(const rung_metadata *meta, rung_config *c, rung_error *error) {
  c->attention_cap = 50;
  c->logit_cap = 30;
  if (c->names) {
    RUNG_TRY(rung_metadata_number(meta, "attn_logit_softcapping", error, &c->attention_cap));
    return rung_metadata_number(meta, "final_logit_softcapping", error, &c->logit_cap);
  }
  RUNG_TRY(rung_metadata_maybe_number(meta, "attn_logit_softcapping", error, &c->attention_cap));
  return rung_metadata_maybe_number(meta, "final_logit_softcapping", error, &c->logit_cap);
}

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  c->head_dim = 256;
  c->window = 4096;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.sliding_window", 1, INT32_MAX, error, &c->window));
  RUNG_TRY(rung_configure_windows(meta, 2, c, error));
  RUNG_TRY(configure_caps(meta, c, error));
  RUNG_TRY(refuse_others(meta, error));
  c->embedding_scale = sqrt((double)c->width);
  /* The 27B model scales by the width per head instead of the head's own. Folders say so, in GGUF files it is known by
   * its 46 layers. */
  double scaled_by = (double)c->head_dim;
  if (c->names)
    scaled_by = 256;
  else if (c->layers == 46)
    scaled_by = (double)(c->width / c->heads);
  RUNG_TRY(rung_metadata_maybe_number(meta, "query_pre_attn_scalar", error, &scaled_by));
  c->attention_scale = 1 / sqrt(scaled_by);
  if (c->names) c->norm_offset = 1;
  c->norms = RUNG_NORMS_BEFORE | RUNG_NORMS_BEHIND;
  c->activation = &rung_op_gelu_tanh;
  return RUNG_OK;
}

extern const rung_family rung_family_gemma2;
const rung_family rung_family_gemma2 = {.architecture = "gemma2",
                                        .model_type = "gemma2",
                                        .names = names,
                                        .name_prefix = "model.",
                                        .ties = true,
                                        .configure = configure,
                                        .build = rung_transformer};
