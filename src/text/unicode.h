/* SPDX-License-Identifier: MIT
 * Classes and lower case of characters, as Hugging Face's tokenizers has them (scripts/gen_unicode.py says why). */
#ifndef RUNG_TEXT_UNICODE_H
#define RUNG_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum rung_unicode_class {
  RUNG_UNICODE_SPACE,       /* White_Space */
  RUNG_UNICODE_OTHER,       /* controls, formats, private use: what BERT's normaliser takes out */
  RUNG_UNICODE_NONSPACING,  /* accents: Mn */
  RUNG_UNICODE_MARK,        /* M */
  RUNG_UNICODE_PUNCTUATION, /* ASCII signs and P */
  RUNG_UNICODE_NUMERIC,     /* N */
  RUNG_UNICODE_WORD,        /* \w: letters, marks, digits, connectors */
  RUNG_UNICODE_IDEOGRAPH,   /* CJK characters that BERT makes words of their own */
  RUNG_UNICODE_KEPT_WHOLE,  /* newer characters that normal forms leave alone */
  RUNG_UNICODE_CLASSES
} rung_unicode_class;

bool rung_unicode_is(uint32_t character, rung_unicode_class class_);

/* The lower case: one character, or two for U+0130, the second of which is U+0307 and comes through *out_second (0
 * otherwise). */
uint32_t rung_unicode_lower(uint32_t character, uint32_t *out_second);

#endif
