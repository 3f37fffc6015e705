/* SPDX-License-Identifier: MIT
 * What a tokeniser model is: how a stretch of plain text (no special tokens in it) becomes ids, and how the stored text
 * of a normal token becomes bytes. One constant per model; tokenizer.c lists them. */
#ifndef RUNG_TEXT_MODEL_H
#define RUNG_TEXT_MODEL_H

#include "text/vocab.h"

/* Ids of roles where the description says nothing. */
typedef struct rung_usual_ids {
  int32_t bos, eos, unknown;
} rung_usual_ids;

typedef struct rung_text_model {
  const char *name; /* rung_tokenizer_desc.model */
  bool needs_scores, needs_merges, needs_steps;
  /* Where the description says nothing. */
  bool add_bos, add_space_prefix;
  const rung_usual_ids *usual; /* NULL: no such tokens */

  /* *out_self is what encode gets; it may be set also on failure, destroy takes it then. `ids` has its defaults. */
  rung_status (*create)(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                        rung_error *error, void **out_self);
  void (*destroy)(const rung_vocab *vocab, void *self);
  /* Appends the ids of text[0 .. length), length > 0. `prefix`: a space goes before it; with steps: it begins where the
   * whole text does. Any number of threads. */
  rung_status (*encode)(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool prefix,
                        rung_error *error, rung_ids *ids);
  /* Appends what a normal token's text stands for; NULL with needs_steps, where the description's decoders say it. */
  void (*piece)(const char *text, size_t length, rung_text *out);
  /* Overrides add_bos for a pre-tokeniser's name; NULL: none. */
  rung_choice (*adds_bos)(const char *pre);
} rung_text_model;

extern const rung_text_model rung_text_model_bpe;       /* bpe.c */
extern const rung_text_model rung_text_model_pairs;     /* bpe.c, by steps */
extern const rung_text_model rung_text_model_unigram;   /* unigram.c */
extern const rung_text_model rung_text_model_spm;       /* spm.c */
extern const rung_text_model rung_text_model_wordlevel; /* wordlevel.c */
extern const rung_text_model rung_text_model_wordpiece; /* wordpiece.c */

#endif
