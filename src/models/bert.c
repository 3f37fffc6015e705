/* SPDX-License-Identifier: MIT
 * BERT (Devlin et al. 2018, "BERT: pre-training of deep bidirectional transformers") and RoBERTa (Liu et al. 2019):
 * learned positions, layer norm behind each half of a layer, every row sees its whole sequence. Texts are embedded
 * alone, so all rows are of segment 0. RoBERTa counts positions from behind the padding's id on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "models/family.h"

static const rung_tensor_name names[] = {{"token_embd", "embeddings.word_embeddings"},
                                         {"position_embd", "embeddings.position_embeddings"},
                                         {"token_types", "embeddings.token_type_embeddings"},
                                         {"token_embd_norm", "embeddings.LayerNorm"},
                                         {"attn_q", "encoder.layer.*.attention.self.query"},
                                         {"attn_k", "encoder.layer.*.attention.self.key"},
                                         {"attn_v", "encoder.layer.*.attention.self.value"},
                                         {"attn_output", "encoder.layer.*.attention.output.dense"},
                                         {"attn_output_norm", "encoder.layer.*.attention.output.LayerNorm"},
                                         {"ffn_up", "encoder.layer.*.intermediate.dense"},
                                         {"ffn_down", "encoder.layer.*.output.dense"},
                                         {"layer_output_norm", "encoder.layer.*.output.LayerNorm"},
                                         {NULL, NULL}};

/* Positions as a tensor, and heads of other tasks. */
static const char *const aside[] = {"embeddings.position_ids", "pooler.", "cls.", "lm_head.", "classifier.", NULL};

static rung_status find_activation(const rung_metadata *meta, rung_config *c, rung_error *error) {
  static const struct {
    const char *name;
    const rung_op *op;
  } known[] = {{"gelu", &rung_op_gelu},           {"gelu_new", &rung_op_gelu_tanh},
               {"gelu_fast", &rung_op_gelu_tanh}, {"gelu_pytorch_tanh", &rung_op_gelu_tanh},
               {"relu", &rung_op_relu},           {"silu", &rung_op_silu},
               {"swish", &rung_op_silu}};
  char name[32] = "gelu";
  RUNG_TRY(rung_metadata_maybe_text(meta, "hidden_act", error, name, sizeof name));
  for (size_t i = 0; i < RUNG_COUNT(known); i++)
    if (strcmp(known[i].name, name) == 0) c->activation = known[i].op;
  if (c->activation) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s \"%s\" is not supported",
                   meta->spell(meta->self, "hidden_act"), name);
}

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  static const char *const absolute[] = {"absolute", NULL};
  if (!c->names)
    return rung_fail(error, RUNG_UNSUPPORTED, "architecture bert is read from folders, not from GGUF files");
  RUNG_TRY(rung_metadata_count(meta, "block_count", 1, RUNG_MAX_LAYERS, error, &c->layers));
  RUNG_TRY(rung_metadata_count(meta, "embedding_length", 1, 1 << 20, error, &c->width));
  RUNG_TRY(rung_metadata_count(meta, "feed_forward_length", 1, 1 << 22, error, &c->feed_forward));
  RUNG_TRY(rung_metadata_count(meta, "attention.head_count", 1, 4096, error, &c->heads));
  if (c->width % c->heads)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s is %" PRId64 ", no multiple of %s, %" PRId64,
                     meta->spell(meta->self, "embedding_length"), c->width,
                     meta->spell(meta->self, "attention.head_count"), c->heads);
  c->kv_heads = c->heads;
  c->head_dim = c->width / c->heads;
  RUNG_TRY(rung_metadata_count(meta, "context_length", 1, INT32_MAX, error, &c->context));
  RUNG_TRY(rung_metadata_number(meta, "attention.layer_norm_epsilon", error, &c->norm_epsilon));
  c->embedding_scale = 1;
  c->types = 2;
  RUNG_TRY(rung_metadata_maybe_count(meta, "type_vocab_size", 1, 1 << 20, error, &c->types));
  RUNG_TRY(find_activation(meta, c, error));
  RUNG_TRY(rung_metadata_one_of(meta, "position_embedding_type", absolute, error));
  RUNG_TRY(rung_metadata_not(meta, "is_decoder", error));
  return rung_metadata_not(meta, "add_cross_attention", error);
}

static rung_status configure_roberta(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(configure(meta, c, error));
  int64_t padding = 1;
  RUNG_TRY(rung_metadata_maybe_count(meta, "pad_token_id", 0, c->context - 2, error, &padding));
  c->first_position = padding + 1;
  c->context -= c->first_position;
  return RUNG_OK;
}

/* ---- graph. One builder call a statement: the order of a call's arguments is the compiler's. */

typedef rung_value weight_fn(rung_builder *b, const char *name, int rank, const int64_t *extent);
static rung_value norm(rung_builder *b, rung_value x, weight_fn *weight, const char *name) {
  const rung_config *c = b->config;
  char full[64];
  snprintf(full, sizeof full, "%s.weight", name);
  const rung_value scale = rung_as_f32(b, weight(b, full, 1, &c->width));
  snprintf(full, sizeof full, "%s.bias", name);
  const rung_value offset = rung_as_f32(b, weight(b, full, 1, &c->width));
  const rung_norm_attrs attrs = {.epsilon = c->norm_epsilon};
  return rung_graph_op(b->graph, &rung_op_layer_norm, (rung_value[]){x, scale, offset}, 3, &attrs);
}

static rung_value embeddings(rung_builder *b, rung_value ids) {
  const rung_config *c = b->config;
  rung_graph *g = b->graph;
  const rung_gather_attrs rows = {.axis = 0};
  rung_value at = b->positions;
  if (c->first_position) {
    const rung_value first = rung_build_scalar(g, RUNG_TYPE_I32, (double)c->first_position);
    at = rung_build_add(g, at, first);
  }
  rung_value x = rung_embed(b, ids);
  const int64_t positions = c->context + c->first_position;
  const rung_value table = rung_model_weight(b, "position_embd.weight", 2, (int64_t[]){positions, c->width});
  const rung_value position = rung_as_f32(b, rung_graph_op(g, &rung_op_gather, (rung_value[]){table, at}, 2, &rows));
  x = rung_build_add(g, x, position);
  const rung_value types = rung_model_weight(b, "token_types.weight", 2, (int64_t[]){c->types, c->width});
  const rung_dim zero = rung_graph_constant_dim(g, 0), one = rung_graph_constant_dim(g, 1);
  const rung_value type = rung_as_f32(b, rung_build_slice(g, types, 0, zero, one));
  x = rung_build_add(g, x, type);
  return norm(b, x, rung_model_weight, "token_embd_norm");
}

/* The products of one value stand together, then what is added to them, then what reads them: so they become one
 * product, additions included. */
static rung_value attention(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  rung_value in[4];
  rung_builder_label(b, "attention");
  in[0] = rung_linear(b, "attn_q", x, c->width, c->width);
  in[1] = rung_linear(b, "attn_k", x, c->width, c->width);
  in[2] = rung_linear(b, "attn_v", x, c->width, c->width);
  in[0] = rung_shift(b, in[0], "attn_q.bias", c->width);
  in[1] = rung_shift(b, in[1], "attn_k.bias", c->width);
  in[2] = rung_shift(b, in[2], "attn_v.bias", c->width);
  for (int i = 0; i < 3; i++) in[i] = rung_split_heads(b, in[i], c->heads, c->head_dim);
  in[3] = b->offsets;
  const rung_attention_attrs attrs = {0};
  rung_value y = rung_graph_op(b->graph, &rung_op_attention_ragged, in, 4, &attrs);
  y = rung_join_heads(b, y, c->heads, c->head_dim);
  y = rung_shift(b, rung_linear(b, "attn_output", y, c->width, c->width), "attn_output.bias", c->width);
  return norm(b, rung_build_add(b->graph, y, x), rung_layer_weight, "attn_output_norm");
}

static rung_value feed_forward(rung_builder *b, rung_value x) {
  const rung_config *c = b->config;
  rung_builder_label(b, "feed_forward");
  rung_value y = rung_shift(b, rung_linear(b, "ffn_up", x, c->width, c->feed_forward), "ffn_up.bias", c->feed_forward);
  y = rung_graph_op(b->graph, c->activation, &y, 1, NULL);
  y = rung_shift(b, rung_linear(b, "ffn_down", y, c->feed_forward, c->width), "ffn_down.bias", c->width);
  return norm(b, rung_build_add(b->graph, y, x), rung_layer_weight, "layer_output_norm");
}

static rung_value build(rung_builder *b, rung_value ids) {
  rung_value x = embeddings(b, ids);
  for (b->layer = 0; b->layer < b->config->layers; b->layer++) x = feed_forward(b, attention(b, x));
  return x;
}

extern const rung_family rung_family_bert, rung_family_roberta, rung_family_xlm_roberta;
const rung_family rung_family_bert = {.architecture = "bert",
                                      .model_type = "bert",
                                      .names = names,
                                      .aside = aside,
                                      .name_prefix = "bert.",
                                      .encoder = true,
                                      .configure = configure,
                                      .build = build};
const rung_family rung_family_roberta = {.architecture = "roberta",
                                         .model_type = "roberta",
                                         .names = names,
                                         .aside = aside,
                                         .name_prefix = "roberta.",
                                         .encoder = true,
                                         .configure = configure_roberta,
                                         .build = build};
const rung_family rung_family_xlm_roberta = {.architecture = "xlm-roberta",
                                             .model_type = "xlm-roberta",
                                             .names = names,
                                             .aside = aside,
                                             .name_prefix = "roberta.",
                                             .encoder = true,
                                             .configure = configure_roberta,
                                             .build = build};
