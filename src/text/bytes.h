/* SPDX-License-Identifier: MIT
 * The byte alphabet of GPT-2: each byte is written as one printable character in token texts. */
#ifndef RUNG_TEXT_BYTES_H
#define RUNG_TEXT_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/* Printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards in order. */

static inline bool rung_byte_stands_for_itself(uint32_t c) {
  return (c > 32 && c < 127) || (c > 160 && c < 256 && c != 173);
}

static inline uint32_t rung_character_of_byte(uint8_t byte) {
  if (rung_byte_stands_for_itself(byte)) return byte;
  return 256u + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33u : 67u);
}
static inline int rung_byte_of_character(uint32_t c) {
  if (c < 256) return rung_byte_stands_for_itself(c) ? (int)c : -1;
  const uint32_t n = c - 256;
  return n <= 32 ? (int)n : n <= 66 ? (int)(n - 33 + 127) : n == 67 ? 173 : -1;
}

#endif
