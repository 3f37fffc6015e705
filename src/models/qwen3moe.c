/* SPDX-License-Identifier: MIT
 * Qwen3's mixtures of experts (technical report, 2025): Qwen3's attention; the feed-forward half of every layer is a
 * few of many small ones, chosen for each row by a router. */
#include "models/family.h"

static const rung_tensor_name names[] = {{"ffn_gate_inp", "layers.*.mlp.gate"},
                                         {"ffn_gate_exps", "layers.*.mlp.experts.#.gate_proj"},
                                         {"ffn_up_exps", "layers.*.mlp.experts.#.up_proj"},
                                         {"ffn_down_exps", "layers.*.mlp.experts.#.down_proj"},
                                         RUNG_DECODER_NAMES,
                                         {NULL, NULL}};

/* Folders may ask for layers without experts, which no published model has. */
static rung_status refuse_dense(const rung_metadata *meta, rung_error *error) {
  int64_t step = 1;
  double layer;
  RUNG_TRY(rung_metadata_maybe_count(meta, "decoder_sparse_step", 1, 1, error, &step));
  const rung_status status = meta->number(meta->self, "mlp_only_layers", 0, error, &layer);
  if (status) return status == RUNG_NOT_FOUND ? RUNG_OK : status;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata mlp_only_layers is not supported");
}

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  if (c->names) c->head_dim = 128;
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  RUNG_TRY(rung_metadata_not(meta, "use_sliding_window", error));
  RUNG_TRY(refuse_dense(meta, error));
  RUNG_TRY(rung_metadata_count(meta, "expert_count", 1, RUNG_MAX_EXPERTS, error, &c->experts));
  RUNG_TRY(rung_metadata_count(meta, "expert_used_count", 1, c->experts, error, &c->experts_used));
  c->expert_feed_forward = c->feed_forward / c->experts_used;
  RUNG_TRY(rung_metadata_maybe_count(meta, "expert_feed_forward_length", 1, 1 << 22, error, &c->expert_feed_forward));
  if (c->expert_feed_forward < 1)
    return rung_fail(error, RUNG_NOT_FOUND, "metadata %s is missing",
                     meta->spell(meta->self, "expert_feed_forward_length"));
  c->experts_normalised = !c->names; /* GGUF files do not say */
  RUNG_TRY(rung_metadata_maybe_flag(meta, "norm_topk_prob", error, &c->experts_normalised));
  c->qk_norm = RUNG_QK_NORM_HEADS;
  return RUNG_OK;
}

extern const rung_family rung_family_qwen3moe;
const rung_family rung_family_qwen3moe = {.architecture = "qwen3moe",
                                          .model_type = "qwen3_moe",
                                          .names = names,
                                          .name_prefix = "model.",
                                          .configure = configure,
                                          .build = rung_transformer};
