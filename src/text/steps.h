/* SPDX-License-Identifier: MIT
 * What a tokenizer.json says in steps where a GGUF file says a name: normalisers, pre-tokenisers (cuts), decoders, and
 * tokens that are found in the text before any of them. The steps mean what Hugging Face's tokenizers mean by them. */
#ifndef RUNG_TEXT_STEPS_H
#define RUNG_TEXT_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rung_slice {
  const char *text;
  size_t length;
} rung_slice;

enum { RUNG_MOST_STEPS = 16 }; /* of each sort */

typedef enum rung_text_step_kind {
  /* Normalisers, applied to the text between tokens that are matched as they stand. */
  RUNG_NORMALISE_BERT, /* flags: which of its four parts */
  RUNG_NORMALISE_NFC,
  RUNG_NORMALISE_NFD,
  RUNG_NORMALISE_NFKC,
  RUNG_NORMALISE_NFKD,
  RUNG_NORMALISE_LOWERCASE,
  RUNG_NORMALISE_STRIP, /* white space; flags: LEFT, RIGHT */
  RUNG_NORMALISE_STRIP_ACCENTS,
  RUNG_NORMALISE_REPLACE,  /* pattern (flag REGEX: a pattern) becomes content */
  RUNG_NORMALISE_PREPEND,  /* content, unless there is no text */
  RUNG_NORMALISE_CHARSMAP, /* pattern: a table of SentencePiece's (text/charsmap.h); flag GRAPHEMES */
  RUNG_NORMALISE_END,
  /* Cuts, applied one after another to the pieces that the one before left. */
  RUNG_CUT_BERT = RUNG_NORMALISE_END, /* at white space, which goes, and around punctuation */
  RUNG_CUT_SPLIT,                     /* pattern (flags REGEX, INVERT), behaviour */
  RUNG_CUT_BYTE_LEVEL,                /* flags: PREFIX, REGEX; comes last, for byte-level BPE */
  RUNG_CUT_METASPACE,                 /* blanks become content; flags: PREFIX or PREFIX_FIRST, ALWAYS, SPLIT */
  RUNG_CUT_WHITESPACE,                /* runs of word characters, runs of other signs */
  RUNG_CUT_WHITESPACE_SPLIT,
  RUNG_CUT_PUNCTUATION, /* behaviour */
  RUNG_CUT_DIGITS,      /* flag EACH */
  RUNG_CUT_END,
  /* Decoders, applied to the text of each token. */
  RUNG_DECODE_STEP_REPLACE = RUNG_CUT_END, /* pattern becomes content */
  RUNG_DECODE_STEP_BYTE_LEVEL,
  RUNG_DECODE_STEP_BYTE_FALLBACK, /* <0xNN> becomes a byte */
  RUNG_DECODE_STEP_WORDPIECE,     /* pattern: the prefix of what continues a word; flag CLEAN_UP */
  RUNG_DECODE_STEP_METASPACE,     /* content becomes a blank; flag PREFIX: dropped in the first token */
  RUNG_DECODE_STEP_STRIP,         /* up to `count` of content at the beginning; flag WHOLE: of the whole text */
  RUNG_DECODE_STEP_END
} rung_text_step_kind;

typedef enum rung_step_flags {
  RUNG_STEP_CLEAN = 1,
  RUNG_STEP_CHINESE = 2,
  RUNG_STEP_ACCENTS = 4,
  RUNG_STEP_LOWER = 8,
  RUNG_STEP_LEFT = 1,
  RUNG_STEP_RIGHT = 2,
  RUNG_STEP_REGEX = 1,
  RUNG_STEP_INVERT = 2,
  RUNG_STEP_NATIVE = 4, /* the pattern is written for PCRE2 */
  RUNG_STEP_PREFIX = 8,
  RUNG_STEP_PREFIX_FIRST = 16,
  RUNG_STEP_SPLIT = 32,
  RUNG_STEP_ALWAYS = 64, /* the prefix is put also before what begins with one */
  RUNG_STEP_EACH = 1,
  RUNG_STEP_GRAPHEMES = 1, /* as tokenizers applies the table; otherwise as SentencePiece does */
  RUNG_STEP_CLEAN_UP = 1,
  RUNG_STEP_BEGINS = 2, /* the pattern is that of what begins a word, as GGUF files have it */
  RUNG_STEP_WHOLE = 1
} rung_step_flags;

/* What becomes of a match when a text is cut at it. */
typedef enum rung_behaviour {
  RUNG_CUT_ISOLATED,
  RUNG_CUT_REMOVED,
  RUNG_CUT_WITH_PREVIOUS,
  RUNG_CUT_WITH_NEXT,
  RUNG_CUT_CONTIGUOUS
} rung_behaviour;

typedef struct rung_text_step {
  rung_text_step_kind kind;
  unsigned flags;
  rung_behaviour behaviour;
  size_t count;
  rung_slice pattern, content;
} rung_text_step;

/* A token that is looked for in the text itself, before it is cut; its kind says whether it is special. */
typedef struct rung_added_token {
  int32_t id;
  bool single_word;    /* only where no word character touches it */
  bool lstrip, rstrip; /* takes the white space on that side along */
  bool normalised;     /* looked for in normalised text, itself normalised; otherwise in the text as it is */
  bool outside;        /* the model does not know it: words never become it */
} rung_added_token;

#endif
