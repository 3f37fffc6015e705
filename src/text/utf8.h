/* SPDX-License-Identifier: MIT
 * UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef RUNG_TEXT_UTF8_H
#define RUNG_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUNG_UTF8_REPLACEMENT = 0xFFFD };

/* Reads the character at the start of bytes[0 .. length), length > 0. Positive: its bytes. 0: the beginning of a
 * character that the text does not finish. Negative: -n bytes cannot belong to a character, n being the longest such
 * beginning (what decoders replace by one U+FFFD). *out_character is written only for a positive result. */
int rung_utf8_read(const uint8_t *bytes, size_t length, uint32_t *out_character);

/* How many of the first bytes are whole characters: `length` if the text is valid. */
size_t rung_utf8_valid_prefix(const uint8_t *bytes, size_t length);

/* Writes a character (a scalar value), 1 to 4 bytes; returns how many. */
int rung_utf8_write(uint32_t character, uint8_t out_bytes[4]);

/* The length that a first byte announces, from its upper half alone: 1 for bytes that begin no character. */
static inline size_t rung_utf8_announced(uint8_t first) {
  return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

#endif
