/* SPDX-License-Identifier: MIT
 * Small vocabularies made by hand, for the tests of src/text. */
#ifndef RUNG_TESTS_TEST_TEXT_HELPER_H
#define RUNG_TESTS_TEST_TEXT_HELPER_H

#include <stdlib.h>

#include "test.h"
#include "text/tokenizer.h"

enum { TOY_TOKENS = 4096, TOY_MERGES = 4096, TOY_BYTES = 1 << 17 };

typedef struct toy {
  char bytes[TOY_BYTES];
  size_t used;
  const char *texts[TOY_TOKENS], *merges[TOY_MERGES];
  uint32_t lengths[TOY_TOKENS], merge_lengths[TOY_MERGES];
  float scores[TOY_TOKENS];
  int32_t types[TOY_TOKENS];
  size_t count, merge_count;
} toy;

static inline const char *toy_keep(toy *v, const char *text, size_t length) {
  char *at = v->bytes + v->used;
  memcpy(at, text, length);
  v->used += length; /* not terminated: nothing may read past a text */
  return at;
}
static inline int32_t toy_add_bytes(toy *v, const char *text, size_t length, int32_t type, float score) {
  v->texts[v->count] = toy_keep(v, text, length);
  v->lengths[v->count] = (uint32_t)length;
  v->types[v->count] = type;
  v->scores[v->count] = score;
  return (int32_t)v->count++;
}
static inline int32_t toy_add(toy *v, const char *text, int32_t type, float score) {
  return toy_add_bytes(v, text, strlen(text), type, score);
}
static inline void toy_merge(toy *v, const char *text) {
  v->merges[v->merge_count] = toy_keep(v, text, strlen(text));
  v->merge_lengths[v->merge_count++] = (uint32_t)strlen(text);
}
/* Printable ASCII and, for blank and newline, their stand-ins in the byte alphabet. */
static inline void toy_add_ascii(toy *v) {
  for (char c = '!'; c <= '~'; c++) toy_add_bytes(v, &c, 1, RUNG_TOKEN_NORMAL, 0);
  toy_add(v, "\xC4\xA0", RUNG_TOKEN_NORMAL, 0); /* U+0120 */
  toy_add(v, "\xC4\x8A", RUNG_TOKEN_NORMAL, 0); /* U+010A */
}
static inline void toy_add_byte_tokens(toy *v) {
  for (int b = 0; b < 256; b++) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", b);
    toy_add(v, text, RUNG_TOKEN_BYTE, 0);
  }
}
static inline rung_tokenizer_desc toy_desc(const toy *v, const char *model) {
  rung_tokenizer_desc d = rung_tokenizer_desc_default();
  d.model = model;
  d.pre = "gpt-2";
  d.count = d.text_count = d.type_count = v->count;
  d.texts = v->texts;
  d.lengths = v->lengths;
  d.types = v->types;
  d.merges = v->merges;
  d.merge_lengths = v->merge_lengths;
  d.merge_count = v->merge_count;
  if (strcmp(model, "llama") == 0) {
    d.scores = v->scores;
    d.score_count = v->count;
  }
  return d;
}
static inline rung_host *toy_host(void) {
  rung_host *host = NULL;
  if (rung_host_create(NULL, NULL, &host) != RUNG_OK) abort();
  return host;
}
static inline bool toy_has_pcre2(void) { return RUNG_HAVE_PCRE2; }

/* The ids of a text as "1 2 3". */
static inline const char *toy_ids(const rung_tokenizer *t, rung_host *host, const char *text, unsigned flags) {
  static char out[4096];
  rung_ids ids;
  rung_ids_init(&ids, host);
  static rung_error error;
  size_t n = 0;
  out[0] = 0;
  if (rung_tokenizer_encode(t, text, strlen(text), flags, &error, &ids) != RUNG_OK) return error.message;
  for (size_t i = 0; i < ids.count && n < sizeof out - 16; i++)
    n += (size_t)snprintf(out + n, sizeof out - n, i ? " %d" : "%d", (int)ids.data[i]);
  rung_ids_finish(&ids);
  return out;
}

#endif
