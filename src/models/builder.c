/* SPDX-License-Identifier: MIT
 * What families share: configuration keys, weights checked against them, the pieces of a transformer layer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/family.h"
#include "ops/op_table.h"

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
  rung_status status = meta->f64(meta->self, key, error, &value);
  if (status == RUNG_TYPE_MISMATCH) {
    int64_t whole; /* which GGUF does not give as a float */
    status = meta->i64(meta->self, key, error, &whole);
    value = status ? 0 : (double)whole;
  }
  if (status == RUNG_NOT_FOUND) return RUNG_OK;
  if (status) return status;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s %g is not supported", meta->spell(meta->self, key), value);
}

rung_status rung_metadata_maybe_numbers(const rung_metadata *meta, const char *key, int64_t count, rung_error *error,
                                        double *out, bool *out_there) {
  double extra;
  *out_there = false;
  for (int64_t i = 0; i <= count; i++) {
    const rung_status status = meta->number(meta->self, key, i, error, i < count ? &out[i] : &extra);
    if (status == RUNG_NOT_FOUND && i == 0) return RUNG_OK;
    if (status == RUNG_NOT_FOUND && i == count) *out_there = true;
    if (status == RUNG_NOT_FOUND && i == count) return RUNG_OK;
    if (status && status != RUNG_NOT_FOUND) return status;
    if (status || i == count) break;
  }
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s has not %" PRId64 " numbers", meta->spell(meta->self, key),
                   count);
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
  double part = 1;
  RUNG_TRY(rung_metadata_maybe_number(meta, "partial_rotary_factor", error, &part));
  if (part > 1 || (part != 1 && !c->turns_part))
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata partial_rotary_factor %g is not supported", part);
  c->rope_dims = (int64_t)((double)c->head_dim * part);
  RUNG_TRY(rung_metadata_maybe_count(meta, "rope.dimension_count", 2, c->head_dim, error, &c->rope_dims));
  if (c->rope_dims % 2 || c->rope_dims < 2)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata rope.dimension_count is %" PRId64 ", expected an even number",
                     c->rope_dims);
  RUNG_TRY(rung_metadata_count(meta, "context_length", 1, INT32_MAX, error, &c->context));
  RUNG_TRY(rung_metadata_number(meta, "attention.layer_norm_rms_epsilon", error, &c->norm_epsilon));
  if (c->rope_base == 0) c->rope_base = 1e4;
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.freq_base", error, &c->rope_base));
  RUNG_TRY(rung_configure_rope(meta, c, error));
  c->attention_scale = 1 / sqrt((double)c->head_dim);
  c->embedding_scale = 1;
  c->norms = RUNG_NORMS_BEFORE;
  c->activation = &rung_op_silu;
  return RUNG_OK;
}

rung_status rung_configure_plain(const rung_metadata *meta, rung_error *error) {
  static const char *const silu[] = {"silu", "swish", NULL};
  RUNG_TRY(rung_metadata_one_of(meta, "hidden_act", silu, error));
  RUNG_TRY(rung_metadata_not(meta, "attention_bias", error));
  return rung_metadata_not(meta, "mlp_bias", error);
}

rung_status rung_configure_windows(const rung_metadata *meta, int64_t pattern, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_metadata_maybe_count(meta, "attention.sliding_window_pattern", 1, 512, error, &pattern));
  for (int64_t i = 0; i < c->layers; i++) c->sees_all[i] = i % pattern == pattern - 1;
  char kind[32];
  rung_status status = RUNG_OK;
  int64_t named = 0;
  for (; named <= c->layers; named++) {
    status = meta->text(meta->self, "layer_types", named, error, kind, sizeof kind);
    if (status || named == c->layers) break;
    c->sees_all[named] = strcmp(kind, "full_attention") == 0;
    if (c->sees_all[named] || strcmp(kind, "sliding_attention") == 0) continue;
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata layer_types[%" PRId64 "] \"%s\" is not supported", named, kind);
  }
  if (status && status != RUNG_NOT_FOUND) return status;
  if (named == 0 || (named == c->layers && status)) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "metadata layer_types names %s than %s, %" PRId64,
                   status ? "fewer layers" : "more layers", meta->spell(meta->self, "block_count"), c->layers);
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
  char own[128];
  size_t used = 0;
  for (const char *p = row->folder; *p && used < sizeof own; p++) {
    int n = 1;
    if (*p == '*' || *p == '#')
      n = snprintf(own + used, sizeof own - used, "%" PRId64, *p == '*' ? b->layer : b->expert);
    else
      own[used] = *p;
    used += (size_t)n;
  }
  snprintf(own + used, used < sizeof own ? sizeof own - used : 0, "%s", suffix);
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
  w = rung_as_f32(b, w); /* both are computed once, with the weights: 1 + w is no bf16 number any more */
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

rung_value rung_as_f32(rung_builder *b, rung_value x) {
  if (!x.id || rung_graph_type_of(b->graph, x) == RUNG_TYPE_F32) return x;
  return rung_build_cast(b->graph, x, RUNG_TYPE_F32);
}

rung_value rung_shift(rung_builder *b, rung_value x, const char *name, int64_t width) {
  return rung_build_add(b->graph, x, rung_as_f32(b, rung_layer_weight(b, name, 1, &width)));
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
  const rung_value y = rung_graph_op(b->graph, &rung_op_matmul, (rung_value[]){x, w}, 2, &attrs);
  if (c->logit_cap == 0) return y;
  const rung_value cap = rung_build_scalar(b->graph, RUNG_TYPE_F32, c->logit_cap);
  return rung_build_mul(b->graph, rung_build_tanh(b->graph, rung_build_div(b->graph, y, cap)), cap);
}
