/* SPDX-License-Identifier: MIT
 * Text to token ids and back: the one interface of src/text. It knows nothing of graphs, files or metadata keys.
 *
 * A tokeniser is built from arrays that the caller has (of a GGUF file, of a tokenizer.json). It is immutable once
 * made: any number of threads may encode, decode and look up at once. All memory is of class host; the texts of the
 * tokens stay where they are (usually in the mapped file), so they must outlive the tokeniser.
 *
 * Equal to llama.cpp and to Hugging Face's tokenizers for the models it supports, with these rules where they differ or
 * are undefined: special tokens are matched leftmost and longest; bytes that are no UTF-8 become U+FFFD for byte-level
 * BPE and byte tokens for SentencePiece; a byte without a token becomes the unknown token, or nothing where there is
 * none.
 */
#ifndef RUNG_TEXT_TOKENIZER_H
#define RUNG_TEXT_TOKENIZER_H

#include "base/host.h"
#include "base/text.h"
#include "text/steps.h"

typedef struct rung_tokenizer rung_tokenizer;

enum { RUNG_TOKEN_NONE = -1 };             /* no such token */
enum { RUNG_ENCODE_MOST_BYTES = 1 << 29 }; /* of one text */

/* Kinds of tokens, numbered as GGUF's tokenizer.ggml.token_type. */
typedef enum rung_token_type {
  RUNG_TOKEN_UNDEFINED = 0,
  RUNG_TOKEN_NORMAL = 1,
  RUNG_TOKEN_UNKNOWN = 2,
  RUNG_TOKEN_CONTROL = 3, /* found in text only with RUNG_ENCODE_PARSE_SPECIAL, printed only with RUNG_DECODE_SPECIAL */
  RUNG_TOKEN_USER_DEFINED = 4, /* always found in text, before everything else; always printed */
  RUNG_TOKEN_UNUSED = 5,
  RUNG_TOKEN_BYTE = 6 /* its text is <0xNN> */
} rung_token_type;

/* Ids that have a role; RUNG_TOKEN_NONE where a vocabulary has none. */
typedef struct rung_token_ids {
  int64_t bos, eos, eot, eom, unknown, pad, separator, mask;
} rung_token_ids;

typedef enum rung_choice { RUNG_CHOICE_DEFAULT = -1, RUNG_CHOICE_NO = 0, RUNG_CHOICE_YES = 1 } rung_choice;

/* What a tokeniser is made from. Start from rung_tokenizer_desc_default(). Borrowed for the life of the tokeniser: what
 * texts[i] point to, and scores. Everything else is read during creation only. */
typedef struct rung_tokenizer_desc {
  size_t size; /* sizeof(rung_tokenizer_desc) */
  /* "gpt2": byte-level BPE; "llama": SentencePiece BPE; with steps: "WordPiece", "WordLevel", "BPE", "Unigram" */
  const char *model;
  const char *pre; /* pre-tokeniser's name; NULL: "default" (byte-level BPE only) */

  size_t count; /* tokens, at most 2^26 */
  const char *const *texts;
  const uint32_t *lengths; /* bytes of each text */
  size_t text_count;       /* entries of texts and lengths: must equal count */

  const void *scores; /* f32 at any alignment; SentencePiece needs them; NULL otherwise */
  size_t score_count;
  const void *types; /* i32 (rung_token_type) at any alignment; NULL: all normal */
  size_t type_count;

  const char *const *merges; /* "left right", best first; byte-level BPE needs them (none is legal: merge_count 0) */
  const uint32_t *merge_lengths;
  size_t merge_count;

  rung_token_ids ids;                             /* RUNG_TOKEN_NONE where the file says nothing */
  rung_choice add_bos, add_eos, add_space_prefix; /* DEFAULT where the file says nothing */

  /* What a tokenizer.json says. All of it is read during creation only. */
  bool use_steps;  /* steps and added tokens say how text is read, not `pre` and token types */
  bool copy_texts; /* what texts[i] point to does not stay */
  const rung_text_step *normalisers, *cuts, *decoders;
  size_t normaliser_count, cut_count, decoder_count;
  const rung_added_token *added; /* in the order in which equal texts count; without steps as with by_types */
  size_t added_count;
  const int32_t *before, *after; /* ids that ADD_SPECIAL puts around a text */
  size_t before_count, after_count;
  /* Special and added tokens are those that `types` says, in the text as it is; `added` says only which of them take
   * white space along. Well-known texts are special whatever their type. */
  bool by_types;
  rung_slice word_prefix;     /* of what continues a word: "##" */
  rung_slice word_begin;      /* of what begins one: GGUF files have U+2581 there and nothing inside */
  rung_slice word_suffix;     /* BPE: of the last character of a word, "</w>" */
  int64_t longest_word;       /* characters; longer ones become the unknown token */
  int64_t truncation;         /* ids that the file cuts a text to, 0: none; only told */
  const uint32_t *merge_left; /* bytes of the left text of each merge; NULL: up to its blank */
  bool byte_fallback, fuse_unknown, ignore_merges;
  int64_t unknown;            /* what the model makes of what it cannot say; NONE: nothing. A role of its own */
  const double *piece_scores; /* of `count` tokens, for Unigram */
} rung_tokenizer_desc;

rung_tokenizer_desc rung_tokenizer_desc_default(void);

/* Refused with a message that names the field (tokens, scores, token_type, merges, bos_token_id, ...) and the entry:
 * CORRUPT_FILE for contradictory vocabularies, OUT_OF_RANGE for ids, UNSUPPORTED for unknown models or pre-tokenisers.
 * Where the library was built without what a pre-tokeniser needs (PCRE2), only encoding is refused. */
RUNG_CHECKED rung_status rung_tokenizer_create(rung_host *host, const rung_tokenizer_desc *desc, rung_error *error,
                                               rung_tokenizer **out_tokenizer);
void rung_tokenizer_retain(rung_tokenizer *tokenizer);
void rung_tokenizer_release(rung_tokenizer *tokenizer); /* NULL allowed */

/* A growing list of ids. Zeroed is a valid empty list once `host` is set. */
typedef struct rung_ids {
  rung_host *host;
  int32_t *data;
  size_t count, capacity;
} rung_ids;
void rung_ids_init(rung_ids *ids, rung_host *host);
void rung_ids_finish(rung_ids *ids);
rung_status rung_ids_add(rung_ids *ids, int32_t id, rung_error *error);

typedef enum rung_encode_flags {
  RUNG_ENCODE_ADD_SPECIAL = 1,   /* begin and end tokens, as the vocabulary says */
  RUNG_ENCODE_PARSE_SPECIAL = 2, /* control tokens spelled out in the text are read as such */
} rung_encode_flags;

/* Appends to `ids`; on failure the list is as before. Any bytes are accepted, zeros included. */
RUNG_CHECKED rung_status rung_tokenizer_encode(const rung_tokenizer *tokenizer, const char *text, size_t length,
                                               unsigned flags, rung_error *error, rung_ids *ids);

typedef enum rung_decode_flags {
  RUNG_DECODE_SPECIAL = 1,  /* print control and unknown tokens too */
  RUNG_DECODE_CONTINUE = 2, /* the ids go on after other text: a leading space that encoding would add is kept */
  RUNG_DECODE_BYTES = 4,    /* bytes as they are, even if they are no UTF-8 */
} rung_decode_flags;

/* Appends the text of all ids to `text`. Refuses ids outside the vocabulary (OUT_OF_RANGE). */
RUNG_CHECKED rung_status rung_tokenizer_decode(const rung_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                               unsigned flags, rung_error *error, rung_text *text);

/* A stream of tokens to a stream of text: never half a character. Incomplete bytes wait for the next token; what cannot
 * become a character is U+FFFD. One thread at a time; in place, holds no memory; borrows the tokeniser. */
typedef struct rung_decoder {
  const rung_tokenizer *tokenizer;
  unsigned flags;
  uint8_t held[4]; /* the beginning of a character */
  uint8_t held_count;
  bool strip_space; /* the next text piece loses one leading space */
  bool begun;       /* a token came before */
} rung_decoder;
void rung_decoder_init(rung_decoder *decoder, const rung_tokenizer *tokenizer, unsigned flags);
/* Appends what is complete; maybe nothing. */
RUNG_CHECKED rung_status rung_decoder_push(rung_decoder *decoder, int32_t id, rung_error *error, rung_text *text);
/* The end of the stream: held bytes become U+FFFD. The decoder is as after init with CONTINUE. */
RUNG_CHECKED rung_status rung_decoder_flush(rung_decoder *decoder, rung_error *error, rung_text *text);

/* The id whose stored text is exactly this, or RUNG_TOKEN_NONE. */
int32_t rung_tokenizer_find(const rung_tokenizer *tokenizer, const char *text, size_t length);
/* The stored text of an id (byte-level BPE: in its own alphabet), not terminated; NULL outside the vocabulary. */
const char *rung_tokenizer_text(const rung_tokenizer *tokenizer, int32_t id, size_t *out_length);
/* UNDEFINED outside the vocabulary. */
rung_token_type rung_tokenizer_type(const rung_tokenizer *tokenizer, int32_t id);
/* Does this token end a generation (end of sequence, of turn, of message)? */
bool rung_tokenizer_is_eog(const rung_tokenizer *tokenizer, int32_t id);
int32_t rung_tokenizer_count(const rung_tokenizer *tokenizer);
/* Ids by role, defaults filled in. */
const rung_token_ids *rung_tokenizer_ids(const rung_tokenizer *tokenizer);
bool rung_tokenizer_adds_bos(const rung_tokenizer *tokenizer);
bool rung_tokenizer_adds_eos(const rung_tokenizer *tokenizer);
/* How many ids the file would cut a text to, those of ADD_SPECIAL among them; 0: it says nothing. Encoding never cuts.
 */
int64_t rung_tokenizer_truncation(const rung_tokenizer *tokenizer);
/* The ids that ADD_SPECIAL puts before (after) a text. */
const int32_t *rung_tokenizer_before(const rung_tokenizer *tokenizer, size_t *out_count);
const int32_t *rung_tokenizer_after(const rung_tokenizer *tokenizer, size_t *out_count);

#endif
