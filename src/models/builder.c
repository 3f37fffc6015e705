/* SPDX-License-Identifier: MIT
 * What families share: configuration keys, weights checked against them, the pieces of a transformer layer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/family.h"

/* ---- configuration */

static rung_status check_count(const rung_metadata *meta, const char *key, int64_t value, int64_t lo, int64_t hi,
                               rung_error *error) {
  if (value >= lo && value <= hi) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s is %" PRId64 ", expected %" PRId64 "..%" PRId64,
                   meta->spell(meta->self, key), value, lo, hi);
}

rung_status rung_metadata_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi, rung_error *error,
                                int64_t *out) {
  RUNG_TRY(meta->i64(meta->self, key, error, out));
  return check_count(meta, key, *out, lo, hi, error);
}

rung_status rung_metadata_maybe_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi,
                                      rung_error *error, int64_t *in_out) {
  int64_t value;
  const rung_status status = meta->i64(meta->self, key, error, &value);
  if (status == RUNG_NOT_FOUND) return RUNG_OK;
  if (status) return status;
  RUNG_TRY(check_count(meta, key, value, lo, hi, error));
  *in_out = value;
  return RUNG_OK;
}

static rung_status check_number(const rung_metadata *meta, const char *key, double value, rung_error *error) {
  if (isfinite(value) && value > 0) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s is %g, expected a positive number",
                   meta->spell(meta->self, key), value);
}

rung_status rung_metadata_number(const rung_metadata *meta, const char *key, rung_error *error, double *out) {
  RUNG_TRY(meta->f64(meta->self, key, error, out));
  return check_number(meta, key, *out, error);
}

rung_status rung_metadata_maybe_number(const rung_metadata *meta, const char *key, rung_error *error, double *in_out) {
  double value;
  const rung_status status = meta->f64(meta->self, key, error, &value);
  if (status == RUNG_NOT_FOUND) return RUNG_OK;
  if (status) return status;
  RUNG_TRY(check_number(meta, key, value, error));
  *in_out = value;
  return RUNG_OK;
}

rung_status rung_metadata_maybe_flag(const rung_metadata *meta, const char *key, rung_error *error, bool *in_out) {
  const rung_status status = meta->flag(meta->self, key, error, in_out);
  return status == RUNG_NOT_FOUND ? RUNG_OK : status;
}

rung_status rung_metadata_maybe_text(const rung_metadata *meta, const char *key, rung_error *error, char *in_out,
                                     size_t bytes) {
  const rung_status status = meta->text(meta->self, key, -1, error, in_out, bytes);
  return status == RUNG_NOT_FOUND ? RUNG_OK : status;
}

rung_status rung_metadata_one_of(const rung_metadata *meta, const char *key, const char *const *texts,
                                 rung_error *error) {
  char text[64] = "";
  RUNG_TRY(rung_metadata_maybe_text(meta, key, error, text, sizeof text));
  for (size_t i = 0; texts[i]; i++)
    if (!text[0] || strcmp(text, texts[i]) == 0) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s \"%s\" is not supported", meta->spell(meta->self, key), text);
}

rung_status rung_metadata_not(const rung_metadata *meta, const char *key, rung_error *error) {
  bool flag = false;
  RUNG_TRY(rung_metadata_maybe_flag(meta, key, error, &flag));
  if (!flag) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s is not supported", meta->spell(meta->self, key));
}

rung_status rung_metadata_no_number(const rung_metadata *meta, const char *key, rung_error *error) {
  double value;
  const rung_status status = meta->f64(meta->self, key, error, &value);
  if (status == RUNG_NOT_FOUND) return RUNG_OK;
  if (status) return status;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s %g is not supported", meta->spell(meta->self, key), value);
}

/* Llama 3's: slow frequencies are divided by the factor, fast ones stay, what lies between is mixed. Read from folders;
 * GGUF files hold the result as a tensor. */
static rung_status configure_llama3(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.factor", error, &c->rope_slow.factor));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.low_freq_factor", error, &c->rope_slow.low));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.high_freq_factor", error, &c->rope_slow.high));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.original_context_length", error, &c->rope_slow.context));
  if (c->rope_dims > RUNG_MAX_ROPE)
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s llama3 for heads of more than %d",
                     meta->spell(meta->self, "rope.scaling.type"), RUNG_MAX_ROPE);
  if (c->rope_slow.low < c->rope_slow.high) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s %g is not below %s, %g",
                   meta->spell(meta->self, "rope.scaling.low_freq_factor"), c->rope_slow.low,
                   meta->spell(meta->self, "rope.scaling.high_freq_factor"), c->rope_slow.high);
}

/* A factor for all frequencies, or Llama 3's; other kinds of scaling have parameters of their own. */
static rung_status configure_scaling(const rung_metadata *meta, rung_config *c, rung_error *error) {
  static const char *const kinds[] = {"linear", "default", "none", "llama3", NULL};
  double factor = 1, turned = 1;
  char kind[32] = "linear";
  RUNG_TRY(rung_metadata_maybe_number(meta, "partial_rotary_factor", error, &turned));
  if (turned != 1)
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata partial_rotary_factor %g is not supported", turned);
  RUNG_TRY(rung_metadata_one_of(meta, "rope.scaling.type", kinds, error));
  RUNG_TRY(rung_metadata_maybe_text(meta, "rope.scaling.type", error, kind, sizeof kind));
  if (strcmp(kind, "linear") == 0) RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.factor", error, &factor));
  c->rope_scale = 1 / factor;
  return strcmp(kind, "llama3") == 0 ? configure_llama3(meta, c, error) : RUNG_OK;
}

rung_status rung_configure_transformer(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_metadata_count(meta, "block_count", 1, RUNG_MAX_LAYERS, error, &c->layers));
  RUNG_TRY(rung_metadata_count(meta, "embedding_length", 1, 1 << 20, error, &c->width));
  RUNG_TRY(rung_metadata_count(meta, "feed_forward_length", 1, 1 << 22, error, &c->feed_forward));
  RUNG_TRY(rung_metadata_count(meta, "attention.head_count", 1, 4096, error, &c->heads));
  c->kv_heads = c->heads;
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.head_count_kv", 1, c->heads, error, &c->kv_heads));
  if (c->heads % c->kv_heads)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s is %" PRId64 ", no multiple of %s, %" PRId64,
                     meta->spell(meta->self, "attention.head_count"), c->heads,
                     meta->spell(meta->self, "attention.head_count_kv"), c->kv_heads);
  if (!c->head_dim) c->head_dim = c->width / c->heads;
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.key_length", 1, 1 << 16, error, &c->head_dim));
  if (c->head_dim < 1)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s %" PRId64 " is larger than %s %" PRId64,
                     meta->spell(meta->self, "attention.head_count"), c->heads,
                     meta->spell(meta->self, "embedding_length"), c->width);
  int64_t value_dim = c->head_dim;
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.value_length", 1, 1 << 16, error, &value_dim));
  if (value_dim != c->head_dim)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "metadata attention.value_length is %" PRId64 ", other than attention.key_length, %" PRId64,
                     value_dim, c->head_dim);
  c->rope_dims = c->head_dim;
  RUNG_TRY(rung_metadata_maybe_count(meta, "rope.dimension_count", 2, c->head_dim, error, &c->rope_dims));
  if (c->rope_dims % 2)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata rope.dimension_count is %" PRId64 ", expected an even number",
                     c->rope_dims);
  RUNG_TRY(rung_metadata_count(meta, "context_length", 1, INT32_MAX, error, &c->context));
  RUNG_TRY(rung_metadata_number(meta, "attention.layer_norm_rms_epsilon", error, &c->norm_epsilon));
  if (c->rope_base == 0) c->rope_base = 1e4;
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.freq_base", error, &c->rope_base));
  RUNG_TRY(configure_scaling(meta, c, error));
  c->attention_scale = 1 / sqrt((double)c->head_dim);
  c->embedding_scale = 1;
  return RUNG_OK;
}

/* ---- weights */

static void shape_text(char *out, size_t bytes, int rank, const int64_t *extent) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < rank && used < bytes; i++) {
    const int n = snprintf(out + used, bytes - used, "%s%" PRId64, i ? "," : "", extent[i]);
    if (n > 0) used += (size_t)n;
  }
}

/* "attn_q.weight" or "token_embd.weight" as the file calls it, the first way that there is a tensor for; else the last.
 */
static const rung_tensor_entry *find_tensor(const rung_builder *b, const char *name, bool layer,
                                            char out[RUNG_TENSOR_NAME]) {
  const rung_config *c = b->config;
  const size_t length = strlen(name), stem = (size_t)(strrchr(name, '.') - name);
  const char *suffix = name + stem;
  if (!c->names) {
    if (layer)
      snprintf(out, RUNG_TENSOR_NAME, "blk.%" PRId64 ".%s", b->layer, name);
    else
      snprintf(out, RUNG_TENSOR_NAME, "%s", name);
    return rung_weights_find(b->weights, out);
  }
  const rung_tensor_name *row = c->names;
  while (row->name && (strlen(row->name) != stem || memcmp(row->name, name, stem) != 0)) row++;
  if (!row->name) {
    snprintf(out, RUNG_TENSOR_NAME, "%.*s", (int)length, name);
    return NULL;
  }
  const char *star = strchr(row->folder, '*');
  char own[128];
  if (star)
    snprintf(own, sizeof own, "%.*s%" PRId64 "%s%s", (int)(star - row->folder), row->folder, b->layer, star + 1,
             suffix);
  else
    snprintf(own, sizeof own, "%s%s", row->folder, suffix);
  /* What was saved without a head has no prefix. */
  const rung_tensor_entry *entry = rung_weights_find(b->weights, own);
  snprintf(out, RUNG_TENSOR_NAME, "%s%s", entry || !c->name_prefix ? "" : c->name_prefix, own);
  return entry ? entry : rung_weights_find(b->weights, out);
}

static rung_value weight_of(rung_builder *b, const char *name, bool layer, int rank, const int64_t *extent) {
  char full[RUNG_TENSOR_NAME];
  const rung_tensor_entry *entry = find_tensor(b, name, layer, full);
  if (!entry) {
    rung_graph_fail(b->graph, RUNG_NOT_FOUND, "the model has no tensor \"%s\"", full);
    return rung_build_null();
  }
  if (entry->rank != rank || memcmp(entry->extent, extent, (size_t)rank * sizeof *extent) != 0) {
    char want[96], have[96];
    shape_text(want, sizeof want, rank, extent);
    shape_text(have, sizeof have, entry->rank, entry->extent);
    rung_graph_fail(b->graph, RUNG_SHAPE_MISMATCH, "tensor \"%s\" is [%s], the metadata makes it [%s]", full, have,
                    want);
    return rung_build_null();
  }
  return rung_graph_weight(b->graph, full, entry->type, rank, extent);
}

rung_value rung_model_weight(rung_builder *b, const char *name, int rank, const int64_t *extent) {
  return weight_of(b, name, false, rank, extent);
}

rung_value rung_layer_weight(rung_builder *b, const char *name, int rank, const int64_t *extent) {
  char full[96];
  snprintf(full, sizeof full, "%s%s", name, strchr(name, '.') ? "" : ".weight");
  return weight_of(b, full, true, rank, extent);
}

const rung_tensor_entry *rung_model_tensor(const rung_builder *b, const char *name, char out_name[RUNG_TENSOR_NAME]) {
  return find_tensor(b, name, false, out_name);
}

bool rung_has_weight(const rung_builder *b, const char *name) {
  char full[RUNG_TENSOR_NAME];
  return rung_model_tensor(b, name, full) != NULL;
}

/* ---- pieces */

void rung_builder_label(rung_builder *b, const char *part) {
  char label[96];
  snprintf(label, sizeof label, "layers.%" PRId64 ".%s", b->layer, part);
  rung_graph_label(b->graph, label);
}

rung_value rung_linear(rung_builder *b, const char *name, rung_value x, int64_t in, int64_t out) {
  const rung_value w = rung_layer_weight(b, name, 2, (int64_t[]){out, in});
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  return rung_graph_op(b->graph, &rung_op_matmul, (rung_value[]){x, w}, 2, &attrs);
}

rung_value rung_norm(rung_builder *b, const char *name, rung_value x, int64_t width) {
  const bool whole = strstr(name, ".weight") != NULL; /* a weight of the model, not of a layer */
  if (whole) rung_graph_label(b->graph, "output");
  rung_value w = whole ? rung_model_weight(b, name, 1, &width) : rung_layer_weight(b, name, 1, &width);
  /* Both are computed once, with the weights: 1 + w is no bf16 number any more. */
  if (w.id && rung_graph_type_of(b->graph, w) != RUNG_TYPE_F32) w = rung_build_cast(b->graph, w, RUNG_TYPE_F32);
  if (b->config->norm_offset != 0)
    w = rung_build_add(b->graph, w, rung_build_scalar(b->graph, RUNG_TYPE_F32, b->config->norm_offset));
  const rung_norm_attrs attrs = {.epsilon = b->config->norm_epsilon};
  return rung_graph_op(b->graph, &rung_op_rms_norm, (rung_value[]){x, w}, 2, &attrs);
}

rung_value rung_split_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim) {
  const rung_dim extent[3] = {b->rows, rung_graph_constant_dim(b->graph, heads),
                              rung_graph_constant_dim(b->graph, dim)};
  return rung_build_reshape(b->graph, x, 3, extent);
}

rung_value rung_join_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim) {
  const rung_dim extent[2] = {b->rows, rung_graph_constant_dim(b->graph, heads * dim)};
  return rung_build_reshape(b->graph, x, 2, extent);
}

rung_value rung_rotate(rung_builder *b, rung_value x, int32_t mode, double base, double scale, rung_value factors) {
  const rung_rope_attrs attrs = {
      .dims = b->config->rope_dims, .base = base, .scale = scale, .magnitude = 1, .mode = mode};
  return rung_graph_op(b->graph, &rung_op_rope, (rung_value[]){x, b->positions, factors}, factors.id ? 3 : 2, &attrs);
}

rung_value rung_rope_factors(rung_builder *b) {
  const rung_config *c = b->config;
  const int64_t count = c->rope_dims / 2;
  if (rung_has_weight(b, "rope_freqs.weight")) return rung_model_weight(b, "rope_freqs.weight", 1, &count);
  if (c->rope_slow.factor == 0) return rung_build_null();
  float factor[RUNG_MAX_ROPE / 2];
  for (int64_t i = 0; i < count; i++) {
    const double frequency = pow(c->rope_base, -2.0 * (double)i / (double)c->rope_dims);
    const double turns = c->rope_slow.context * frequency / (2 * acos(-1.0)); /* in the context that was trained */
    const double keep = (turns - c->rope_slow.low) / (c->rope_slow.high - c->rope_slow.low);
    const double kept = keep < 0 ? 0 : keep > 1 ? 1 : keep;
    factor[i] = (float)(1 / (kept + (1 - kept) / c->rope_slow.factor));
  }
  return rung_graph_constant(b->graph, RUNG_TYPE_F32, 1, &count, factor);
}

rung_value rung_attend(rung_builder *b, rung_value q, rung_value k, rung_value v, int64_t window, double scale) {
  char name[32];
  snprintf(name, sizeof name, "kv.%" PRId64, b->layer);
  const rung_state_desc desc = {.size = sizeof desc,
                                .kind = RUNG_STATE_KV,
                                .type = b->kv,
                                .rank = 3,
                                .extent = {b->config->kv_heads, b->config->head_dim, b->config->head_dim},
                                .window = window};
  const rung_value state = rung_graph_state(b->graph, name, &desc);
  const rung_value next =
      rung_graph_op(b->graph, &rung_op_append, (rung_value[]){state, k, v, b->offsets, b->slot, b->past}, 6, NULL);
  const rung_attention_kv_attrs attrs = {.scale = scale, .window = window};
  return rung_graph_op(b->graph, &rung_op_attention_kv, (rung_value[]){q, next, b->offsets, b->slot, b->past}, 5,
                       &attrs);
}

rung_value rung_embed(rung_builder *b, rung_value ids) {
  const rung_config *c = b->config;
  rung_graph_label(b->graph, "embedding");
  const rung_value table = rung_model_weight(b, "token_embd.weight", 2, (int64_t[]){c->vocabulary, c->width});
  const rung_gather_attrs attrs = {.axis = 0};
  rung_value x = rung_graph_op(b->graph, &rung_op_gather, (rung_value[]){table, ids}, 2, &attrs);
  if (rung_graph_type_of(b->graph, x) != RUNG_TYPE_F32) x = rung_build_cast(b->graph, x, RUNG_TYPE_F32);
  if (c->embedding_scale == 1) return x;
  return rung_build_mul(b->graph, x, rung_build_scalar(b->graph, RUNG_TYPE_F32, c->embedding_scale));
}

/* The output matrix is the embedding's where the configuration says so, or says nothing and the model has none. */
rung_value rung_head(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  const bool own = c->tied == RUNG_NOT_TIED || (c->tied == RUNG_TIED_AS_FOUND && rung_has_weight(b, "output.weight"));
  rung_graph_label(b->graph, "head");
  const rung_value w =
      rung_model_weight(b, own ? "output.weight" : "token_embd.weight", 2, (int64_t[]){c->vocabulary, c->width});
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  return rung_graph_op(b->graph, &rung_op_matmul, (rung_value[]){x, w}, 2, &attrs);
}
