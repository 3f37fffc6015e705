/* SPDX-License-Identifier: MIT
 * Building a vocabulary: one pass checks, one pass fills the index. It stands between a user and the first token, so it
 * reads every text once and copies none that stays. */
#include "text/vocab.h"

#include "base/hash.h"

enum { MOST_SHOWN = 64 }; /* bytes of a token's text in a message */

static int shown(uint32_t length) { return (int)(length < MOST_SHOWN ? length : MOST_SHOWN); }

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int rung_vocab_byte_value(const char *text, size_t length) {
  if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static rung_status check_counts(const rung_tokenizer_desc *desc, rung_error *error) {
  if (desc->count == 0) return rung_fail(error, RUNG_CORRUPT_FILE, "tokens: the vocabulary is empty");
  if (desc->count > RUNG_SLOTS_MOST)
    return rung_fail(error, RUNG_UNSUPPORTED, "tokens: %zu tokens, at most %d are supported", desc->count,
                     (int)RUNG_SLOTS_MOST);
  if (!desc->texts || !desc->lengths) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tokens: no texts given");
  if (desc->text_count != desc->count)
    return rung_fail(error, RUNG_CORRUPT_FILE, "tokens: %zu texts for a vocabulary of %zu", desc->text_count,
                     desc->count);
  if (desc->types && desc->type_count != desc->count)
    return rung_fail(error, RUNG_CORRUPT_FILE, "token_type: %zu entries for a vocabulary of %zu", desc->type_count,
                     desc->count);
  if (desc->scores && desc->score_count != desc->count)
    return rung_fail(error, RUNG_CORRUPT_FILE, "scores: %zu entries for a vocabulary of %zu", desc->score_count,
                     desc->count);
  return RUNG_OK;
}

/* Texts that do not stay, or that a 32-bit offset cannot reach, are brought together. */
static rung_status copy_texts(rung_vocab *vocab, const rung_tokenizer_desc *desc, rung_error *error) {
  size_t bytes = 0;
  for (size_t i = 0; i < desc->count; i++) bytes += desc->lengths[i]; /* 2^26 * 2^32 fits */
  if (bytes > UINT32_MAX) return rung_fail(error, RUNG_UNSUPPORTED, "tokens: %zu bytes of texts", bytes);
  vocab->copy = rung_host_alloc_raw(vocab->host, RUNG_MEMORY_host, bytes, 0);
  if (!vocab->copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: %zu bytes for the texts", bytes);
  vocab->copy_bytes = bytes;
  vocab->base = vocab->copy;
  uint32_t offset = 0;
  for (size_t i = 0; i < desc->count; i++) {
    if (desc->lengths[i]) memcpy(vocab->copy + offset, desc->texts[i], desc->lengths[i]);
    vocab->spans[i].offset = offset;
    offset += desc->lengths[i];
  }
  return RUNG_OK;
}

static rung_status place_texts(rung_vocab *vocab, const rung_tokenizer_desc *desc, rung_error *error) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (size_t i = 0; i < desc->count; i++) {
    const uint32_t length = desc->lengths[i];
    vocab->spans[i].length = length;
    if (length == 0) continue;
    const uintptr_t at = (uintptr_t)desc->texts[i];
    if (!at) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tokens[%zu]: no text", i);
    if (at < low) {
      low = at;
      vocab->base = desc->texts[i];
    }
    if (at > high) high = at;
    if (length > vocab->longest) vocab->longest = length;
  }
  if (!vocab->base) return rung_fail(error, RUNG_CORRUPT_FILE, "tokens: all texts are empty");
  if (desc->copy_texts || high - low > UINT32_MAX) return copy_texts(vocab, desc, error);
  for (size_t i = 0; i < desc->count; i++)
    if (desc->lengths[i]) vocab->spans[i].offset = (uint32_t)((uintptr_t)desc->texts[i] - low);
  return RUNG_OK;
}

static rung_status read_types(rung_vocab *vocab, const rung_tokenizer_desc *desc, rung_error *error) {
  if (!desc->types) {
    memset(vocab->flags, RUNG_TOKEN_NORMAL, vocab->count);
    return RUNG_OK;
  }
  for (uint32_t i = 0; i < vocab->count; i++) {
    int32_t type;
    memcpy(&type, (const char *)desc->types + (size_t)i * sizeof type, sizeof type);
    if (type < RUNG_TOKEN_UNDEFINED || type > RUNG_TOKEN_BYTE)
      return rung_fail(error, RUNG_CORRUPT_FILE, "token_type[%u]: %d is no kind of token", i, (int)type);
    const rung_token_span span = vocab->spans[i];
    if (type == RUNG_TOKEN_BYTE && rung_vocab_byte_value(vocab->base + span.offset, span.length) < 0)
      return rung_fail(error, RUNG_CORRUPT_FILE, "tokens[%u]: \"%.*s\" is a byte token but not <0x00> to <0xFF>", i,
                       shown(span.length), vocab->base + span.offset);
    vocab->flags[i] = (uint8_t)type;
  }
  return RUNG_OK;
}

static rung_status fill_index(rung_vocab *vocab, rung_error *error) {
  if (!rung_slots_init(&vocab->slots, vocab->host, vocab->count))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: index of %u texts", vocab->count);
  for (uint32_t i = 0; i < vocab->count; i++) {
    const rung_token_span span = vocab->spans[i];
    if (span.length == 0) continue; /* cannot be found; some vocabularies have such holes */
    const char *text = vocab->base + span.offset;
    rung_probe probe = rung_slots_begin(&vocab->slots, rung_hash64(text, span.length));
    while (rung_slots_next(&vocab->slots, &probe)) {
      const rung_token_span other = vocab->spans[probe.number];
      if (other.length == span.length && memcmp(vocab->base + other.offset, text, span.length) == 0)
        return rung_fail(error, RUNG_CORRUPT_FILE, "tokens[%u]: \"%.*s\" is also tokens[%u]", i, shown(span.length),
                         text, probe.number);
    }
    rung_slots_put(&vocab->slots, &probe, i);
  }
  return RUNG_OK;
}

rung_status rung_vocab_init(rung_vocab *vocab, rung_host *host, const rung_tokenizer_desc *desc, rung_error *error) {
  RUNG_TRY(check_counts(desc, error));
  vocab->host = host;
  vocab->count = (uint32_t)desc->count;
  vocab->scores = desc->scores;
  vocab->spans = rung_host_array(host, desc->count, sizeof *vocab->spans);
  vocab->flags = rung_host_array(host, desc->count, sizeof *vocab->flags);
  if (!vocab->spans || !vocab->flags)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: a vocabulary of %zu", desc->count);
  RUNG_TRY(place_texts(vocab, desc, error));
  RUNG_TRY(read_types(vocab, desc, error));
  for (size_t i = 0; i < desc->added_count; i++)
    if (desc->added[i].outside) vocab->flags[desc->added[i].id] |= RUNG_VOCAB_OUTSIDE;
  return fill_index(vocab, error);
}

void rung_vocab_finish(rung_vocab *vocab) {
  if (!vocab->host) return;
  rung_slots_finish(&vocab->slots, vocab->host);
  if (vocab->spans) rung_host_free(vocab->host, RUNG_MEMORY_host, vocab->spans, vocab->count * sizeof *vocab->spans);
  if (vocab->flags) rung_host_free(vocab->host, RUNG_MEMORY_host, vocab->flags, vocab->count * sizeof *vocab->flags);
  if (vocab->copy) rung_host_free(vocab->host, RUNG_MEMORY_host, vocab->copy, vocab->copy_bytes);
  memset(vocab, 0, sizeof *vocab);
}

int32_t rung_vocab_find(const rung_vocab *vocab, const char *text, size_t length) {
  if (length == 0 || length > vocab->longest) return RUNG_TOKEN_NONE;
  rung_probe probe = rung_slots_begin(&vocab->slots, rung_hash64(text, length));
  while (rung_slots_next(&vocab->slots, &probe)) {
    const rung_token_span span = vocab->spans[probe.number];
    if (span.length == length && memcmp(vocab->base + span.offset, text, length) == 0) return (int32_t)probe.number;
  }
  return RUNG_TOKEN_NONE;
}

int32_t rung_vocab_find_word(const rung_vocab *vocab, const char *text, size_t length) {
  const int32_t id = rung_vocab_find(vocab, text, length);
  return id >= 0 && (vocab->flags[id] & RUNG_VOCAB_OUTSIDE) ? RUNG_TOKEN_NONE : id;
}
