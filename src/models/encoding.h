/* SPDX-License-Identifier: MIT
 * What becomes of an encoder's rows, as sentence-transformers' files of a model folder say it. */
#ifndef RUNG_MODELS_ENCODING_H
#define RUNG_MODELS_ENCODING_H

#include <rung/embed.h>

#include "models/folder.h"

typedef struct rung_encoding {
  rung_pooling pooling; /* RUNG_POOLING_MODEL: the folder does not say */
  bool normalize;
  int64_t longest; /* tokens of a text; 0: the folder does not say */
} rung_encoding;

/* Reads modules.json, the pooling's config.json and sentence_bert_config.json, where they are. Modules that are not
 * known are refused. `width`: of the rows, to be compared with what the pooling says. */
rung_status rung_folder_encoding(const rung_folder *folder, int64_t width, rung_encoding *out, rung_error *error);

#endif
