/* SPDX-License-Identifier: MIT
 * Architecture families: metadata to a configuration, configuration to a graph. One file each, written to be read
 * beside the paper; registry.c lists them. */
#ifndef RUNG_MODELS_FAMILY_H
#define RUNG_MODELS_FAMILY_H

#include "ops/build.h"
#include "weights/store.h"

/* Named values of a model file, asked for by the keys that GGUF has, without the architecture's prefix ("block_count",
 * "attention.head_count"). A Hugging Face folder's config.json answers to the same keys through a table
 * (config_folder.c), and to its own where GGUF has none. NOT_FOUND leaves *out alone. */
typedef struct rung_metadata {
  const void *self;
  rung_status (*i64)(const void *self, const char *key, rung_error *error, int64_t *out);
  rung_status (*f64)(const void *self, const char *key, rung_error *error, double *out);
  rung_status (*flag)(const void *self, const char *key, rung_error *error, bool *out);
  /* Text, or with index >= 0 an element of a list of texts (NOT_FOUND past its end); terminated. */
  rung_status (*text)(const void *self, const char *key, int64_t index, rung_error *error, char *out, size_t bytes);
  const char *(*spell)(const void *self, const char *key); /* as the file calls it, for messages */
} rung_metadata;
/* Required values, within a range that makes sense: the message names the key and what it holds. */
rung_status rung_metadata_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi, rung_error *error,
                                int64_t *out);
rung_status rung_metadata_number(const rung_metadata *meta, const char *key, rung_error *error, double *out);
/* Missing ones leave the default that *in_out holds. */
rung_status rung_metadata_maybe_count(const rung_metadata *meta, const char *key, int64_t lo, int64_t hi,
                                      rung_error *error, int64_t *in_out);
rung_status rung_metadata_maybe_number(const rung_metadata *meta, const char *key, rung_error *error, double *in_out);
rung_status rung_metadata_maybe_flag(const rung_metadata *meta, const char *key, rung_error *error, bool *in_out);
rung_status rung_metadata_maybe_text(const rung_metadata *meta, const char *key, rung_error *error, char *in_out,
                                     size_t bytes);
/* UNSUPPORTED, naming key and value, unless the key is missing or one of the texts (a list that ends with NULL), and
 * unless it is missing or false. For what a family's graph does not do. */
rung_status rung_metadata_one_of(const rung_metadata *meta, const char *key, const char *const *texts,
                                 rung_error *error);
rung_status rung_metadata_not(const rung_metadata *meta, const char *key, rung_error *error);
/* UNSUPPORTED if there is a number at all. */
rung_status rung_metadata_no_number(const rung_metadata *meta, const char *key, rung_error *error);

/* How a Hugging Face folder calls a tensor: GGUF's name without ".weight" or ".bias", and the folder's without the
 * family's prefix. '*' stands for the layer. */
typedef struct rung_tensor_name {
  const char *name, *folder; /* {"attn_q", "layers.*.self_attn.q_proj"} */
} rung_tensor_name;

enum { RUNG_MAX_LAYERS = 512, RUNG_MAX_ROPE = 1024 };

/* What the families have in common. */
typedef struct rung_config {
  int64_t layers, width, feed_forward, heads, kv_heads, head_dim, rope_dims, context, vocabulary;
  double norm_epsilon, rope_base;
  int64_t window;                 /* of the layers that do not see everything */
  bool sees_all[RUNG_MAX_LAYERS]; /* where there is a window */
  double rope_base_window, rope_scale, embedding_scale, attention_scale;
  struct {
    double factor, low, high, context; /* Llama 3's scaling of slow frequencies; factor 0: none */
  } rope_slow;
  double norm_offset;            /* added to the weights of norms: 1 where a folder leaves out Gemma's "1 +" */
  const rung_op *activation;     /* between the products of the feed-forward half, where families differ in it */
  int64_t types, first_position; /* of encoders: rows of the table of segments; where positions begin */
  int32_t rope_mode;             /* GGUF permutes the rows of queries and keys of some families; folders do not */
  enum { RUNG_TIED_AS_FOUND, RUNG_TIED, RUNG_NOT_TIED } tied; /* is the output matrix the embedding's? */
  const rung_tensor_name *names;                              /* NULL: tensors have GGUF's names */
  const char *name_prefix;
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

/* A weight of the current layer ("attn_q" is blk.N.attn_q.weight; also "attn_q.bias"), or of the model
 * ("token_embd.weight"); refused with both shapes unless its extents are as given. In a folder the family's table says
 * what it is called there. */
rung_value rung_layer_weight(rung_builder *b, const char *name, int rank, const int64_t *extent);
rung_value rung_model_weight(rung_builder *b, const char *name, int rank, const int64_t *extent);
bool rung_has_weight(const rung_builder *b, const char *name);
/* A tensor of the model, NULL if there is none; out_name is what the file calls it. */
enum { RUNG_TENSOR_NAME = 160 };
const rung_tensor_entry *rung_model_tensor(const rung_builder *b, const char *name, char out_name[RUNG_TENSOR_NAME]);
rung_value rung_linear(rung_builder *b, const char *name, rung_value x, int64_t in, int64_t out);
/* RMS norm with a weight of the last axis's extent. */
rung_value rung_norm(rung_builder *b, const char *name, rung_value x, int64_t width);
/* [rows, heads * dim] as [rows, heads, dim] and back. */
rung_value rung_split_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim);
rung_value rung_join_heads(rung_builder *b, rung_value x, int64_t heads, int64_t dim);
rung_value rung_rotate(rung_builder *b, rung_value x, int32_t mode, double base, double scale, rung_value factors);
rung_value rung_rope_factors(rung_builder *b); /* what divides each frequency; null: nothing */
/* Appends k and v to the layer's state, then attends to it. */
rung_value rung_attend(rung_builder *b, rung_value q, rung_value k, rung_value v, int64_t window, double scale);
rung_value rung_embed(rung_builder *b, rung_value ids);
rung_value rung_head(rung_builder *b, rung_value x);
void rung_builder_label(rung_builder *b, const char *part);

typedef struct rung_family {
  const char *architecture;      /* GGUF's general.architecture */
  const char *model_type;        /* of config.json; NULL: not read from folders */
  const rung_tensor_name *names; /* of a folder; the last has no name */
  const char *name_prefix;       /* of the folder's names, where they have one: "model." */
  const char *const *aside;      /* how tensors of a folder begin that are no surprise and not used; ends with NULL */
  bool encoder;                  /* ragged rows without a state; vectors come out, not logits */
  bool ties;                     /* does a folder tie the output matrix where it does not say? */
  rung_status (*configure)(const rung_metadata *meta, rung_config *config, rung_error *error);
  /* ids[rows] to hidden rows [rows, width], final norm included. */
  rung_value (*build)(rung_builder *b, rung_value ids);
} rung_family;
const rung_family *rung_family_find(const char *architecture, size_t length);
const rung_family *rung_family_of_type(const char *model_type);
const rung_family *rung_family_at(size_t index); /* NULL past the end */

/* Keys that llama-like families share. */
rung_status rung_configure_transformer(const rung_metadata *meta, rung_config *config, rung_error *error);

#endif
