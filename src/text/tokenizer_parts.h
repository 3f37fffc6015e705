/* SPDX-License-Identifier: MIT
 * A tokeniser from inside, for the files that implement tokenizer.h. */
#ifndef RUNG_TEXT_TOKENIZER_PARTS_H
#define RUNG_TEXT_TOKENIZER_PARTS_H

#include <stdatomic.h>

#include "text/model.h"
#include "text/detokenise.h"
#include "text/pipeline.h"
#include "text/special.h"

struct rung_tokenizer {
  rung_host *host;
  atomic_int references;
  rung_vocab vocab;
  rung_special special;
  rung_token_ids ids;
  const rung_text_model *model;
  void *self; /* the model's */
  bool add_bos, add_eos, add_space_prefix;
  /* Where the description is made of steps, instead of `special` and the three choices. */
  bool use_steps;
  rung_pipeline pipeline;
  rung_detokeniser *detokeniser;
  rung_ids before, after;
  int64_t truncation;
};

#endif
