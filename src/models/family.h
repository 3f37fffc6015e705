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
  /* Element of a list of numbers or flags (NOT_FOUND past its end, TYPE_MISMATCH where there is no list). */
  rung_status (*number)(const void *self, const char *key, int64_t index, rung_error *error, double *out);
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
/* A list of exactly `count` numbers; *out_there is false, and out untouched, where there is none. */
rung_status rung_metadata_maybe_numbers(const rung_metadata *meta, const char *key, int64_t count, rung_error *error,
                                        double *out, bool *out_there);

/* How a Hugging Face folder calls a tensor: GGUF's name without ".weight" or ".bias", and the folder's without the
 * family's prefix. '*' stands for the layer, '#' for the expert. */
typedef struct rung_tensor_name {
  const char *name, *folder; /* {"attn_q", "layers.*.self_attn.q_proj"} */
} rung_tensor_name;

/* What decoders in folders have in common; a family's own rows stand before these, for the first one counts. */
/* clang-format off */
#define RUNG_DECODER_NAMES                                                                                     \
  {"token_embd", "embed_tokens"}, {"output_norm", "norm"}, {"output", "lm_head"},                              \
  {"attn_norm", "layers.*.input_layernorm"}, {"ffn_norm", "layers.*.post_attention_layernorm"},                \
  {"attn_q", "layers.*.self_attn.q_proj"}, {"attn_k", "layers.*.self_attn.k_proj"},                            \
  {"attn_v", "layers.*.self_attn.v_proj"}, {"attn_output", "layers.*.self_attn.o_proj"},                       \
  {"attn_q_norm", "layers.*.self_attn.q_norm"}, {"attn_k_norm", "layers.*.self_attn.k_norm"},                  \
  {"ffn_gate", "layers.*.mlp.gate_proj"}, {"ffn_up", "layers.*.mlp.up_proj"},                                  \
  {"ffn_down", "layers.*.mlp.down_proj"}
/* Where norms stand behind both halves of a layer too. */
#define RUNG_SANDWICH_NAMES                                                                                    \
  {"post_attention_norm", "layers.*.post_attention_layernorm"},                                                \
  {"ffn_norm", "layers.*.pre_feedforward_layernorm"}, {"post_ffw_norm", "layers.*.post_feedforward_layernorm"}
/* clang-format on */

enum { RUNG_MAX_LAYERS = 512, RUNG_MAX_ROPE = 1024, RUNG_MAX_EXPERTS = 255 };

/* What the halves of a decoder's layer are made of, where families differ in it. */
typedef enum rung_norms { RUNG_NORMS_BEFORE = 1, RUNG_NORMS_BEHIND = 2 } rung_norms;
typedef enum rung_qk_norm { RUNG_QK_NO_NORM, RUNG_QK_NORM_HEADS, RUNG_QK_NORM_WHOLE } rung_qk_norm;

/* What the families have in common. */
typedef struct rung_config {
  int64_t layers, width, feed_forward, heads, kv_heads, head_dim, rope_dims, context, vocabulary;
  double norm_epsilon, rope_base;
  int norms;                     /* rung_norms: before the halves of a layer, behind them, or both */
  rung_qk_norm qk_norm;          /* of queries and keys: of each head, or of all heads at once */
  bool qkv_bias;                 /* queries, keys and values have biases */
  bool fused;                    /* one tensor of queries, keys and values, and one of gate and up */
  int64_t experts, experts_used; /* 0: layers have one feed-forward half */
  int64_t expert_feed_forward;
  bool experts_normalised;         /* the weights of those that are used add up to 1 */
  bool turns_part;                 /* may a folder ask for rotary positions of a part of each head? */
  bool unturned[RUNG_MAX_LAYERS];  /* layers without rotary positions */
  double attention_cap, logit_cap; /* c: x becomes c tanh(x / c); 0: it stays */
  int64_t window;                  /* of the layers that do not see everything */
  bool sees_all[RUNG_MAX_LAYERS];  /* where there is a window */
  double rope_base_window;         /* of layers with a window, unscaled; 0: they turn as the others do */
  double rope_scale, embedding_scale, attention_scale;
  struct {
    double magnitude;   /* of sines and cosines; 0: 1 */
    bool has_factors;   /* each frequency is divided by its own */
    int64_t long_above; /* contexts beyond this take the long factors; 0: there are none */
    float factor[RUNG_MAX_ROPE / 2], long_factor[RUNG_MAX_ROPE / 2];
  } rope;
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
  bool long_context; /* longer than config->rope.long_above */
  int64_t expert;    /* for names in folders */
  int64_t layer;     /* for names and labels */
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
/* x plus a bias of the layer, "attn_q.bias". */
rung_value rung_shift(rung_builder *b, rung_value x, const char *name, int64_t width);
/* A weight as f32; the cast is made once, with the weights. */
rung_value rung_as_f32(rung_builder *b, rung_value x);
rung_value rung_rope_factors(rung_builder *b); /* what divides each frequency; null: nothing */
/* ids to hidden rows, final norm included, as the configuration says (transformer.c). */
rung_value rung_transformer(rung_builder *b, rung_value ids);
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
/* Names of all of them, for messages: as config.json has them if `types`, else as GGUF files do. */
void rung_family_names(bool types, char *out, size_t bytes);

/* Keys that decoders share; what they do not name is as Llama has it: norms before each half, SwiGLU. */
rung_status rung_configure_transformer(const rung_metadata *meta, rung_config *config, rung_error *error);
/* Scalings of rotary frequencies (rope.c); part of the above. */
rung_status rung_configure_rope(const rung_metadata *meta, rung_config *config, rung_error *error);
/* sees_all of every layer: a list that names each layer's kind, else every pattern-th sees everything. */
rung_status rung_configure_windows(const rung_metadata *meta, int64_t pattern, rung_config *config, rung_error *error);
/* Refuses another activation than SiLU, and biases. */
rung_status rung_configure_plain(const rung_metadata *meta, rung_error *error);

#endif
