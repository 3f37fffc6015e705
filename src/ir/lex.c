/* SPDX-License-Identifier: MIT
 * Words of the text form, and bytes as text. */
#include "ir/lex.h"

#include <string.h>

void rung_lex_spaces(rung_lex *lex) {
  while (lex->at < lex->limit && (*lex->at == ' ' || *lex->at == '\t' || *lex->at == '\r')) lex->at++;
}

bool rung_lex_accept(rung_lex *lex, char c) {
  rung_lex_spaces(lex);
  if (!rung_lex_at(lex, c)) return false;
  lex->at++;
  return true;
}

static bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

size_t rung_lex_name(rung_lex *lex, const char **out_name) {
  rung_lex_spaces(lex);
  *out_name = lex->at;
  while (lex->at < lex->limit && in_name(*lex->at)) lex->at++;
  return (size_t)(lex->at - *out_name);
}

bool rung_lex_word(rung_lex *lex, const char *word) {
  rung_lex ahead = *lex;
  const char *name;
  const size_t length = rung_lex_name(&ahead, &name);
  if (length != strlen(word) || memcmp(name, word, length) != 0) return false;
  *lex = ahead;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* One character behind a backslash; -1 for none that is known. */
static int escaped(rung_lex *lex) {
  if (lex->at == lex->limit) return -1;
  const char c = *lex->at++;
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '"':
    case '\\':
      return c;
    case 'x':
      break;
    default:
      return -1;
  }
  if (lex->limit - lex->at < 2) return -1;
  const int high = hex_digit(lex->at[0]), low = hex_digit(lex->at[1]);
  if (high < 0 || low < 0) return -1;
  lex->at += 2;
  return high * 16 + low;
}

/* How far it is to the closing quote; false without one on this line. */
static bool quoted_length(const rung_lex *lex, size_t *out_length) {
  for (const char *p = lex->at; p < lex->limit && *p != '\n'; p++) {
    if (*p == '"') {
      *out_length = (size_t)(p - lex->at);
      return true;
    }
    if (*p == '\\' && p + 1 < lex->limit) p++;
  }
  return false;
}

rung_status rung_lex_quoted(rung_lex *lex, rung_arena *arena, const char **out_text, rung_error *error) {
  size_t length;
  if (!rung_lex_accept(lex, '"')) return rung_fail(error, RUNG_CORRUPT_FILE, "expected a text in quotes");
  if (!quoted_length(lex, &length)) return rung_fail(error, RUNG_CORRUPT_FILE, "a text has no closing quote");
  char *out = (char *)rung_arena_alloc(arena, length + 1);
  if (!out) return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
  const char *end = lex->at + length;
  size_t n = 0;
  while (lex->at < end) {
    int c = (unsigned char)*lex->at++;
    if (c == '\\') c = escaped(lex);
    if (c < 0) return rung_fail(error, RUNG_CORRUPT_FILE, "an escape is none of \\\\ \\\" \\n \\t \\xHH");
    if (c == 0) return rung_fail(error, RUNG_CORRUPT_FILE, "a text contains the byte 0");
    out[n++] = (char)c;
  }
  lex->at = end + 1;
  out[n] = 0;
  *out_text = out;
  return RUNG_OK;
}

/* ---- bytes */

enum { LONGEST_HEX = 64 };
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void print_base64(const uint8_t *data, uint64_t bytes, rung_text *out) {
  for (uint64_t i = 0; i < bytes; i += 3) {
    const uint32_t left = bytes - i < 3 ? (uint32_t)(bytes - i) : 3;
    const uint32_t bits =
        (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) | (left > 2 ? (uint32_t)data[i + 2] : 0);
    char group[4];
    for (uint32_t k = 0; k < 4; k++) group[k] = k <= left ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
    rung_text_add(out, group, sizeof group);
  }
}

void rung_blob_print(const uint8_t *data, uint64_t bytes, rung_text *out) {
  static const char digits[] = "0123456789abcdef";
  if (bytes > LONGEST_HEX) {
    rung_text_puts(out, "base64\"");
    print_base64(data, bytes, out);
  } else {
    rung_text_puts(out, "hex\"");
    for (uint64_t i = 0; i < bytes; i++) {
      const char pair[2] = {digits[data[i] >> 4], digits[data[i] & 15]};
      rung_text_add(out, pair, sizeof pair);
    }
  }
  rung_text_puts(out, "\"");
}

rung_status rung_lex_hex(rung_lex *lex, rung_arena *arena, uint8_t **out_data, uint64_t *out_bytes, rung_error *error) {
  size_t length;
  if (!rung_lex_accept(lex, '"') || !quoted_length(lex, &length) || length % 2) {
    return rung_fail(error, RUNG_CORRUPT_FILE, "hex needs pairs of digits in quotes");
  }
  uint8_t *data = (uint8_t *)rung_arena_alloc(arena, length / 2);
  if (!data) return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
  for (size_t i = 0; i < length; i += 2) {
    const int high = hex_digit(lex->at[i]), low = hex_digit(lex->at[i + 1]);
    if (high < 0 || low < 0) return rung_fail(error, RUNG_CORRUPT_FILE, "hex needs pairs of digits in quotes");
    data[i / 2] = (uint8_t)(high * 16 + low);
  }
  lex->at += length + 1;
  *out_data = data;
  *out_bytes = length / 2;
  return RUNG_OK;
}

static bool decode_base64(const char *text, size_t length, uint8_t *data, size_t bytes) {
  int8_t value[256];
  memset(value, -1, sizeof value);
  for (int i = 0; i < 64; i++) value[(uint8_t)alphabet[i]] = (int8_t)i;
  size_t n = 0;
  for (size_t i = 0; i < length; i += 4) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; k++) {
      const int v = value[(uint8_t)text[i + k]];
      const bool padding = text[i + k] == '=' && i + 4 == length && k >= 2;
      if (v < 0 && !padding) return false;
      bits = bits << 6 | (uint32_t)(v < 0 ? 0 : v);
    }
    for (int k = 0; k < 3; k++) {
      const uint8_t byte = (uint8_t)(bits >> (16 - 8 * k));
      if (n < bytes) {
        data[n++] = byte;
      } else if (byte) {
        return false; /* bits behind the last byte: another text would mean the same */
      }
    }
  }
  return true;
}

rung_status rung_lex_base64(rung_lex *lex, rung_arena *arena, uint8_t **out_data, uint64_t *out_bytes,
                            rung_error *error) {
  size_t length;
  if (!rung_lex_accept(lex, '"') || !quoted_length(lex, &length) || length % 4) {
    return rung_fail(error, RUNG_CORRUPT_FILE, "base64 needs groups of four characters in quotes");
  }
  size_t bytes = length / 4 * 3;
  if (length && lex->at[length - 1] == '=') bytes--;
  if (length && lex->at[length - 2] == '=') bytes--;
  uint8_t *data = (uint8_t *)rung_arena_alloc(arena, bytes);
  if (!data) return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
  if (!decode_base64(lex->at, length, data, bytes)) return rung_fail(error, RUNG_CORRUPT_FILE, "base64 is malformed");
  lex->at += length + 1;
  *out_data = data;
  *out_bytes = bytes;
  return RUNG_OK;
}
