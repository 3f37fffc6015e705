/* SPDX-License-Identifier: MIT
 * The way of a text through a tokeniser that is made of steps: tokens that are matched as they stand are taken out,
 * what lies between is normalised, tokens that are matched in normalised text are taken out, the rest is cut and goes
 * to the model. */
#ifndef RUNG_TEXT_PIPELINE_H
#define RUNG_TEXT_PIPELINE_H

#include "text/normalise.h"
#include "text/special.h"

typedef struct rung_pipeline {
  rung_host *host;
  rung_normaliser *normaliser; /* NULL: text stays as it is */
  rung_special raw, normal;    /* entry.order is the place in `added` */
  bool repair_bytes;           /* each byte that belongs to no character becomes U+FFFD, as in llama.cpp */
  rung_added_token *added;
  size_t added_count;
  char *normal_text; /* of the tokens in `normal` */
  size_t normal_bytes;
} rung_pipeline;

/* Zeroed; finish it also after a failure. */
rung_status rung_pipeline_init(rung_pipeline *pipeline, const rung_vocab *vocab, const rung_tokenizer_desc *desc,
                               rung_error *error);
/* The text that decoding has for an added token: normalised if it is looked for so. NULL for other tokens. */
const rung_special_entry *rung_pipeline_normal(const rung_pipeline *pipeline, int32_t id);
void rung_pipeline_finish(rung_pipeline *pipeline);

/* Plain text, not empty, to ids; `first`: it begins where the whole text does. */
typedef rung_status rung_plain_fn(const void *self, const char *text, size_t length, bool first, rung_error *error,
                                  rung_ids *ids);
/* `all`: special tokens spelled out in the text are read as such. Bytes that are no UTF-8 become U+FFFD. */
rung_status rung_pipeline_encode(const rung_pipeline *pipeline, const rung_vocab *vocab, const char *text,
                                 size_t length, bool all, rung_plain_fn *plain, const void *self, rung_error *error,
                                 rung_ids *ids);

#endif
