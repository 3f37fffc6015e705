/* SPDX-License-Identifier: MIT
 * Embeddings: texts become vectors.
 *
 *   rung_model_open (a folder) -> rung_encoder_create -> rung_encoder_tokens, rung_encoder_run
 *
 * Texts of any lengths are put one behind the other into runs of at most so many tokens; nothing is padded, so that a
 * text costs what its own length costs. Its vector has the same bits alone, in any batch and with any number of
 * threads. Families: bert (Devlin et al. 2018) and roberta (Liu et al. 2019), with what sentence-transformers' files in
 * the folder say about pooling, unit length and the longest text.
 *
 * An encoder belongs to one thread at a time. Encoders of one model share its weights and packed forms.
 */
#ifndef RUNG_EMBED_H
#define RUNG_EMBED_H

#include <rung/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_encoder rung_encoder;

/* How the rows of a text become one. */
typedef enum rung_pooling {
  RUNG_POOLING_MODEL, /* as the model's folder says; refused where it does not */
  RUNG_POOLING_MEAN,
  RUNG_POOLING_FIRST, /* the row of the first token, [CLS] */
  RUNG_POOLING_LAST,
  RUNG_POOLING_MAX /* of every number the largest over the rows */
} rung_pooling;
typedef enum rung_unit_length {
  RUNG_UNIT_LENGTH_MODEL, /* as the model's folder says */
  RUNG_UNIT_LENGTH_ON,    /* vectors are divided by their length, where it is above 1e-12 (in f16 2^-14) */
  RUNG_UNIT_LENGTH_OFF
} rung_unit_length;

typedef struct rung_encoder_options {
  size_t size;     /* sizeof(rung_encoder_options) */
  int64_t rows;    /* most tokens of one run; at least those of the longest text. Default 1024 */
  int64_t longest; /* most tokens of a text; 0: what the folder says, else what the model has positions for */
  rung_pooling pooling;
  rung_unit_length unit_length;
  int64_t dims; /* only the first so many numbers of each vector, cut before it gets its length; 0: all */
  int threads;  /* 0: the device's */
} rung_encoder_options;
RUNG_API rung_encoder_options rung_encoder_options_default(void);

/* Compiles the model's graph for these sizes and packs weights that are not packed yet. RUNG_UNSUPPORTED: the model
 * makes text, not vectors, or nothing says how rows are pooled. */
RUNG_API RUNG_CHECKED rung_status rung_encoder_create(rung_model *model, const rung_encoder_options *options,
                                                      rung_error *error, rung_encoder **out_encoder);
RUNG_API void rung_encoder_destroy(rung_encoder *encoder); /* NULL allowed */

typedef struct rung_encoder_info {
  int64_t dims;    /* numbers of a vector */
  int64_t longest; /* most tokens of a text */
  int64_t rows;    /* most tokens of a run */
  rung_pooling pooling;
  bool unit_length;
} rung_encoder_info;
RUNG_API void rung_encoder_get_info(const rung_encoder *encoder, rung_encoder_info *out_info);

/* A text's ids with the special tokens of the model. Texts of more than `longest` tokens are refused (OUT_OF_RANGE), or
 * with `truncate` cut behind the last token that leaves room for the special ones. *out_ids is the caller's to free
 * with rung_ids_free. */
RUNG_API RUNG_CHECKED rung_status rung_encoder_tokens(rung_encoder *encoder, const char *text, size_t bytes,
                                                      bool truncate, int32_t **out_ids, size_t *out_count);

typedef struct rung_token_list {
  const int32_t *ids; /* special tokens included */
  size_t count;
} rung_token_list;
/* The vectors of `count` texts, one row of `dims` floats after another in `out`; a text without tokens gives zeros. All
 * ids and lengths are checked before anything runs; the message names text and token. RUNG_CANCELLED: vectors of texts
 * whose runs had ended are there. */
RUNG_API RUNG_CHECKED rung_status rung_encoder_run(rung_encoder *encoder, const rung_token_list *texts, size_t count,
                                                   float *out);
RUNG_API const char *rung_encoder_message(const rung_encoder *encoder);
RUNG_API rung_context *rung_encoder_context(rung_encoder *encoder); /* for tracing and cancelling; borrowed */
RUNG_API const rung_program *rung_encoder_program(const rung_encoder *encoder);
RUNG_API uint64_t rung_encoder_runs(const rung_encoder *encoder); /* so far */
/* The same compile without an encoder: nothing is packed. For looking at a model, as rung_model_compile. Both results
 * are the caller's to release. */
RUNG_API RUNG_CHECKED rung_status rung_encoder_compile(rung_model *model, const rung_encoder_options *options,
                                                       rung_error *error, rung_template **out_template,
                                                       rung_program **out_program);

#ifdef __cplusplus
}
#endif
#endif
