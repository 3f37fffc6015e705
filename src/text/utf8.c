/* SPDX-License-Identifier: MIT
 * UTF-8: the table of well-formed byte sequences (Unicode, table 3-7) as ranges of the second byte. */
#include "text/utf8.h"

#include <string.h>

int rung_utf8_read(const uint8_t *bytes, size_t length, uint32_t *out_character) {
  const uint8_t first = bytes[0];
  if (first < 0x80) {
    *out_character = first;
    return 1;
  }
  if (first < 0xC2 || first > 0xF4) return -1;
  const size_t need = rung_utf8_announced(first);
  /* The second byte carries all the exceptions: overlong forms, surrogates, the upper end. */
  const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  uint32_t character = first & (0x7Fu >> need);
  for (size_t i = 1; i < need; i++) {
    if (i == length) return 0;
    const uint8_t byte = bytes[i];
    if (i == 1 ? byte < low || byte > high : (byte & 0xC0) != 0x80) return -(int)i;
    character = character << 6 | (byte & 0x3F);
  }
  *out_character = character;
  return (int)need;
}

size_t rung_utf8_valid_prefix(const uint8_t *bytes, size_t length) {
  size_t at = 0;
  while (at < length) {
    uint64_t eight;
    while (length - at >= sizeof eight) { /* most text is ASCII */
      memcpy(&eight, bytes + at, sizeof eight);
      if (eight & UINT64_C(0x8080808080808080)) break;
      at += sizeof eight;
    }
    if (at == length) break;
    uint32_t character;
    const int n = rung_utf8_read(bytes + at, length - at, &character);
    if (n <= 0) break;
    at += (size_t)n;
  }
  return at;
}

int rung_utf8_write(uint32_t character, uint8_t out_bytes[4]) {
  if (character < 0x80) {
    out_bytes[0] = (uint8_t)character;
    return 1;
  }
  const int n = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (int i = n - 1; i > 0; i--) {
    out_bytes[i] = (uint8_t)(0x80 | (character & 0x3F));
    character >>= 6;
  }
  out_bytes[0] = (uint8_t)((0xF00u >> n) | character);
  return n;
}
