/* SPDX-License-Identifier: MIT
 * The tokens of a vocabulary: texts (borrowed), kinds, scores, the index from text to id. */
#ifndef RUNG_TEXT_VOCAB_H
#define RUNG_TEXT_VOCAB_H

#include <string.h>

#include "text/slots.h"
#include "text/tokenizer.h"

/* Eight bytes a token instead of a pointer and a length: texts lie within 4 GiB of each other (one file), or are
 * copied. */
typedef struct rung_token_span {
  uint32_t offset, length;
} rung_token_span;

/* Bits of rung_vocab.flags. OUTSIDE: the model does not know the token. */
enum { RUNG_VOCAB_TYPE = 7, RUNG_VOCAB_EOG = 8, RUNG_VOCAB_OUTSIDE = 16 };

typedef struct rung_vocab {
  rung_host *host;
  uint32_t count;
  uint32_t longest; /* bytes of the longest text */
  const char *base; /* where offsets count from */
  rung_token_span *spans;
  uint8_t *flags;        /* rung_token_type, RUNG_VOCAB_EOG */
  const uint8_t *scores; /* count f32 at any alignment, or NULL */
  rung_slots slots;
  char *copy; /* of the texts, if they lie too far apart */
  size_t copy_bytes;
} rung_vocab;

/* The vocabulary must be zeroed; finish it also after a failure. */
rung_status rung_vocab_init(rung_vocab *vocab, rung_host *host, const rung_tokenizer_desc *desc, rung_error *error);
void rung_vocab_finish(rung_vocab *vocab);
int32_t rung_vocab_find(const rung_vocab *vocab, const char *text, size_t length);
/* Among the tokens that the model knows. */
int32_t rung_vocab_find_word(const rung_vocab *vocab, const char *text, size_t length);

static inline const char *rung_vocab_text(const rung_vocab *vocab, uint32_t id) {
  return vocab->base + vocab->spans[id].offset;
}
static inline rung_token_type rung_vocab_type(const rung_vocab *vocab, uint32_t id) {
  return (rung_token_type)(vocab->flags[id] & RUNG_VOCAB_TYPE);
}
static inline float rung_vocab_score(const rung_vocab *vocab, uint32_t id) {
  float score;
  memcpy(&score, vocab->scores + (size_t)id * sizeof score, sizeof score);
  return score;
}
/* The value of a byte token's text, <0xNN>; -1 if the text is something else. */
int rung_vocab_byte_value(const char *text, size_t length);

#endif
