/* SPDX-License-Identifier: MIT
 * Architecture families: metadata to a configuration, configuration to a graph. One file each, written to be read
 * beside the paper; registry.c lists them. */
#ifndef RUNG_MODELS_FAMILY_H
#define RUNG_MODELS_FAMILY_H

#include "ops/build.h"
#include "weights/store.h"

/* Named values of a model file, without the architecture's prefix ("block_count", "attention.head_count"). */
typedef struct rung_metadata {
  const void *self;
  /* NOT_FOUND leaves *out alone. */
  rung_status (*i64)(const void *self, const char *key, rung_error *error, int64_t *out);
  rung_status (*f64)(const void *self, const char *key, rung_error *error, double *out);
} rung_metadata;
/* Required values, within a range that makes sense: the message names the key and what it holds. */
rung_status rung_metadata_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi, rung_error *error,
                                int64_t *out);
rung_status rung_metadata_number(const rung_metadata *meta, const char *key, rung_error *error, double *out);
/* Missing ones leave the default that *in_out holds. */
rung_status rung_metadata_maybe_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi,
                                      rung_error *error, int64_t *in_out);
rung_status rung_metadata_maybe_number(const rung_metadata *meta, const char *key, rung_error *error, double *in_out);

/* What the families have in common. */
typedef struct rung_config {
  int64_t layers, width, feed_forward, heads, kv_heads, head_dim, rope_dims, context, vocabulary;
  double norm_epsilon, rope_base;
  int64_t window, window_pattern; /* every window_pattern-th layer sees everything, the others `window` positions */
  double rope_base_window, rope_scale, embedding_scale, attention_scale;
} rung_config;

/* Building: values that every layer reads, and the store that says which weights there are. */
typedef struct rung_builder {
  rung_graph *graph;
  rung_weights *weights;
  const rung_config *config;
  rung_type kv;
  rung_dim rows;
  rung_value offsets, slot, past; /* ragged rows */
  rung_value positions;
  int64_t layer; /* for names and labels */
} rung_builder;

/* A weight of the current layer ("attn_q" is blk.N.attn_q.weight), or of the model; refused with both shapes unless its
 * extents are as given. */
rung_value rung_layer_weight(rung_builder *b, const char *name, int rank, const int64_t *extent);
rung_value rung_model_weight(rung_builder *b, const char *name, int rank, const int64_t *extent);
bool rung_has_weight(const rung_builder *b, const char *name);
/* x times the transpose of a weight [out, in]. */
rung_value rung_linear(rung_builder *b, const char *name, rung_value x, int64_t in, int64_t out);
/* RMS norm with a weight of the last axis's extent. */
rung_value rung_norm(rung_builder *b, const char *name, rung_value x, int64_t width);
/* [rows, heads * dim] as [rows, heads, dim] and back. */
rung_value rung_split_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim);
rung_value rung_join_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim);
rung_value rung_rotate(rung_builder *b, rung_value x, int32_t mode, double base, double scale, rung_value factors);
/* Appends k and v to the layer's state, then attends to it. */
rung_value rung_attend(rung_builder *b, rung_value q, rung_value k, rung_value v, int64_t window, double scale);
rung_value rung_embed(rung_builder *b, rung_value ids);
rung_value rung_head(rung_builder *b, rung_value x);
void rung_builder_label(rung_builder *b, const char *part);

typedef struct rung_family {
  const char *architecture;
  rung_status (*configure)(const rung_metadata *meta, rung_config *config, rung_error *error);
  /* ids[rows] to hidden rows [rows, width], final norm included. */
  rung_value (*build)(rung_builder *b, rung_value ids);
} rung_family;
const rung_family *rung_family_find(const char *architecture, size_t length);
const rung_family *rung_family_at(size_t index); /* NULL past the end */

/* Keys that llama-like families share. */
rung_status rung_configure_transformer(const rung_metadata *meta, rung_config *config, rung_error *error);

#endif
