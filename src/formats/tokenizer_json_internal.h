/* SPDX-License-Identifier: MIT
 * Reading a tokenizer.json, for the files that share the work. */
#ifndef RUNG_FORMATS_TOKENIZER_JSON_INTERNAL_H
#define RUNG_FORMATS_TOKENIZER_JSON_INTERNAL_H

#include "formats/tokenizer_json.h"
#include "text/json.h"

/* The members of an object whose text is long: a walk over it takes time. */
typedef struct rung_tokenizer_members {
  rung_json object, name[32], value[32];
  size_t count; /* more than there is room for: not kept */
} rung_tokenizer_members;

/* One reading. Everything in it is freed at its end. */
typedef struct rung_tokenizer_reader {
  rung_host *host;
  rung_error *error;
  rung_json root;
  rung_tokenizer_members members[2]; /* of the whole and of the model */
  /* Texts with their escapes resolved, one behind the other: never more bytes than the file has. */
  char *store;
  size_t used, store_bytes;
  /* The vocabulary by id; text NULL: nobody has this id. */
  const char **texts;
  uint32_t *lengths;
  int32_t *types;
  double *scores;
  size_t count;
  rung_added_token *added;
  size_t added_count, added_capacity;
  const char **merges;
  uint32_t *merge_lengths, *merge_left;
  size_t merge_count;
  rung_text_step normalisers[RUNG_MOST_STEPS], cuts[RUNG_MOST_STEPS], decoders[RUNG_MOST_STEPS];
  size_t normaliser_count, cut_count, decoder_count;
  rung_ids before, after;
  rung_tokenizer_desc desc;
} rung_tokenizer_reader;

rung_json rung_tokenizer_look_up(const rung_tokenizer_reader *r, rung_json object, const char *key, bool *out_twice);
/* A member of a certain kind. Missing or null: *out is none (its text NULL), and refused if it is required. `where`
 * names the object in messages. */
rung_status rung_tokenizer_member(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                  rung_json_kind kind, bool required, rung_json *out);
rung_status rung_tokenizer_flag(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                bool usual, bool *out);
rung_status rung_tokenizer_number(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                  int64_t low, int64_t high, int64_t usual, int64_t *out);
/* A text that lives as long as the reader. */
rung_slice rung_tokenizer_keep(rung_tokenizer_reader *r, rung_json string);
/* "type" of an object, for messages, at most 63 bytes of it. */
rung_status rung_tokenizer_kind(rung_tokenizer_reader *r, rung_json object, const char *where, char out[64]);
rung_status rung_tokenizer_wrong(rung_tokenizer_reader *r, const char *where, const char *why);

/* tokenizer_json_steps.c: the members of the same names. */
rung_status rung_tokenizer_read_normaliser(rung_tokenizer_reader *r, rung_json object);
rung_status rung_tokenizer_read_cuts(rung_tokenizer_reader *r, rung_json object);
rung_status rung_tokenizer_read_decoder(rung_tokenizer_reader *r, rung_json object);
/* tokenizer_json_vocab.c: the model's vocabulary and merges, and the added tokens. */
rung_status rung_tokenizer_read_vocabulary(rung_tokenizer_reader *r, rung_json root, rung_json model);
rung_status rung_tokenizer_read_merges(rung_tokenizer_reader *r, rung_json model);
/* The id of a text, or RUNG_TOKEN_NONE. */
int64_t rung_tokenizer_id_of(const rung_tokenizer_reader *r, rung_slice text);

#endif
