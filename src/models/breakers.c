/* SPDX-License-Identifier: MIT
 * DRY's breakers: texts that end a repetition, as tokens. A text may begin inside of a token, so every token of the
 * vocabulary is looked at: one that contains the text breaks alone; one whose end is the text's beginning breaks together
 * with the tokens of the rest (as in llama.cpp). */
#include <string.h>

#include "models/generator.h"

static const char *const usual[] = {"\n", ":", "\"", "*"};

typedef struct maker {
  const rung_tokenizer *tokenizer;
  rung_error *error;
  rung_breakers *breakers;
  rung_text word;
  rung_ids ids; /* a head and its tail */
} maker;

static bool contains(const char *word, size_t bytes, const char *text, size_t length) {
  for (size_t at = 0; at + length <= bytes; at++)
    if (memcmp(word + at, text, length) == 0) return true;
  return false;
}

/* Token `id`, whose text is m->word, and one breaker. */
static rung_status add_token(maker *m, int32_t id, const char *text, size_t length) {
  const char *word = m->word.data;
  const size_t bytes = m->word.length;
  if (contains(word, bytes, text, length)) return rung_breakers_add(m->breakers, &id, 1, m->error);
  for (size_t at = bytes < length ? 0 : bytes - length + 1; at < bytes; at++) {
    const size_t common = bytes - at;
    if (memcmp(word + at, text, common) != 0) continue;
    m->ids.count = 0;
    RUNG_TRY(rung_ids_add(&m->ids, id, m->error));
    RUNG_TRY(rung_tokenizer_encode(m->tokenizer, text + common, length - common, 0, m->error, &m->ids));
    RUNG_TRY(rung_breakers_add(m->breakers, m->ids.data, m->ids.count, m->error));
  }
  return RUNG_OK;
}

static rung_status add_all(maker *m, const char *const *texts, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!texts[i] || !*texts[i])
      return rung_fail(m->error, RUNG_INVALID_ARGUMENT, "dry_breakers: text %zu is empty", i);
  const int32_t tokens = rung_tokenizer_count(m->tokenizer);
  for (int32_t id = 0; id < tokens; id++) {
    m->word.length = 0;
    RUNG_TRY(rung_tokenizer_decode(m->tokenizer, &id, 1, RUNG_DECODE_SPECIAL | RUNG_DECODE_CONTINUE | RUNG_DECODE_BYTES,
                                   m->error, &m->word));
    for (size_t i = 0; m->word.length && i < count; i++) RUNG_TRY(add_token(m, id, texts[i], strlen(texts[i])));
  }
  rung_breakers_order(m->breakers);
  return RUNG_OK;
}

rung_status rung_breakers_of_texts(rung_model *model, const char *const *texts, size_t count, rung_error *error,
                                   rung_breakers *breakers) {
  if (!texts) {
    texts = usual;
    count = RUNG_COUNT(usual);
  }
  if (!count) return RUNG_OK;
  maker m = {.error = error, .breakers = breakers};
  RUNG_TRY(rung_model_tokenizer(model, error, &m.tokenizer));
  rung_text_init(&m.word, model->host);
  rung_ids_init(&m.ids, model->host);
  const rung_status status = add_all(&m, texts, count);
  rung_text_finish(&m.word);
  rung_ids_finish(&m.ids);
  return status;
}
