/* SPDX-License-Identifier: MIT
 * What Python's str says of characters, and its changes of case. */
#ifndef RUNG_TEXT_JINJA_CHARACTERS_H
#define RUNG_TEXT_JINJA_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rung_jclass {
  RUNG_J_UNPRINTABLE,
  RUNG_J_SPACE,
  RUNG_J_ALPHA,
  RUNG_J_DECIMAL,
  RUNG_J_DIGIT,
  RUNG_J_NUMERIC,
  RUNG_J_UPPER,
  RUNG_J_LOWER,
  RUNG_J_TITLE,
  RUNG_J_CLASSES
} rung_jclass;
bool rung_jclass_is(uint32_t character, rung_jclass class_);

/* The character in another case: one to three characters, returns how many. */
typedef enum rung_jcase { RUNG_J_TO_UPPER, RUNG_J_TO_LOWER, RUNG_J_TO_TITLE } rung_jcase;
int rung_jcase_of(uint32_t character, rung_jcase to, uint32_t out[3]);

/* Bytes of the whitespace character that begins (ends) the text, 0 if none does. */
size_t rung_jspace_at(const char *text, size_t length);
size_t rung_jspace_before(const char *text, size_t length);

#endif
