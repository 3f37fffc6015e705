/* SPDX-License-Identifier: MIT
 * SentencePiece BPE (Kudo and Richardson 2018) by scores: text, with blanks written as U+2581, is cut into characters;
 * the two neighbours that together are the token of the highest score are joined until no two neighbours are a token. A
 * character without a token becomes the tokens of its bytes. Nothing splits the text first, so it is one long word. */
#include <math.h>

#include "text/heap.h"
#include "text/model.h"
#include "text/utf8.h"

#define BLANK "\xE2\x96\x81" /* U+2581 */
enum { BLANK_BYTES = 3 };

typedef struct spm {
  int32_t bytes[256]; /* byte fallback, or the unknown token */
} spm;

static rung_status create(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                          rung_error *error, void **out_self) {
  (void)desc;
  spm *s = rung_host_alloc(vocab->host, RUNG_MEMORY_host, sizeof *s, 0);
  if (!s) return rung_fail(error, RUNG_OUT_OF_MEMORY, "SentencePiece BPE");
  *out_self = s;
  for (uint32_t i = 0; i < vocab->count; i++)
    if (isnan(rung_vocab_score(vocab, i))) return rung_fail(error, RUNG_CORRUPT_FILE, "scores[%u] is no number", i);
  for (int byte = 0; byte < 256; byte++) {
    static const char digits[] = "0123456789ABCDEF";
    const char text[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'}, itself = (char)byte;
    int32_t id = rung_vocab_find(vocab, text, sizeof text);
    if (id < 0) id = rung_vocab_find(vocab, &itself, 1);
    if (id < 0) id = (int32_t)ids->unknown;
    if (id < 0)
      return rung_fail(error, RUNG_CORRUPT_FILE, "tokens: neither <0x%02X> nor an unknown token for that byte", byte);
    s->bytes[byte] = id;
  }
  return RUNG_OK;
}

static void destroy(const rung_vocab *vocab, void *self) {
  if (self) rung_host_free(vocab->host, RUNG_MEMORY_host, self, sizeof(spm));
}

static void piece(const char *text, size_t length, rung_text *out) {
  size_t done = 0;
  for (size_t at = 0; at + BLANK_BYTES <= length;) {
    if (memcmp(text + at, BLANK, BLANK_BYTES) != 0) {
      at++;
      continue;
    }
    rung_text_add(out, text + done, at - done);
    rung_text_add(out, " ", 1);
    done = at += BLANK_BYTES;
  }
  rung_text_add(out, text + done, length - done);
}

typedef struct symbol {
  uint32_t start, bytes; /* bytes 0: merged into the one before it */
  int32_t before, after; /* NONE at the ends */
  int32_t id;            /* of a merged symbol; NONE before the first merge */
} symbol;

typedef struct run {
  const rung_vocab *vocab;
  const char *text;
  symbol *symbols;
  rung_heap heap;
} run;

/* A key that is smaller for a higher score and, for equal scores, further left. */
static uint64_t merge_key(float score, int32_t at) {
  uint32_t bits;
  score += 0.0f; /* one zero */
  memcpy(&bits, &score, sizeof bits);
  bits = bits >> 31 ? bits : ~bits & UINT32_C(0x7FFFFFFF);
  return (uint64_t)bits << 32 | (uint32_t)at;
}

/* Queues the merge of a symbol with its right neighbour if the two are a token. */
static bool queue_merge(run *w, int32_t at) {
  if (at < 0) return true;
  const symbol left = w->symbols[at];
  if (left.after < 0) return true;
  const uint32_t bytes = left.bytes + w->symbols[left.after].bytes;
  const int32_t id = rung_vocab_find(w->vocab, w->text + left.start, bytes);
  if (id < 0) return true;
  const uint64_t key = merge_key(rung_vocab_score(w->vocab, (uint32_t)id), at);
  return rung_heap_push(&w->heap, (rung_merge){key, (uint64_t)bytes << 32 | (uint32_t)id});
}

static bool merge_all(run *w) {
  bool ok = true;
  while (ok && w->heap.count) {
    const rung_merge merge = rung_heap_pop(&w->heap);
    const int32_t at = (int32_t)(uint32_t)merge.key;
    symbol *left = &w->symbols[at];
    if (left->bytes == 0 || left->after < 0) continue;
    symbol *right = &w->symbols[left->after];
    if (left->bytes + right->bytes != (uint32_t)(merge.value >> 32)) continue; /* stale: one of them has grown */
    left->bytes += right->bytes;
    left->id = (int32_t)(uint32_t)merge.value;
    right->bytes = 0;
    left->after = right->after;
    if (right->after >= 0) w->symbols[right->after].before = at;
    ok = queue_merge(w, left->before) && queue_merge(w, at);
  }
  return ok;
}

static rung_status emit(const run *w, const spm *s, rung_error *error, rung_ids *ids) {
  for (int32_t i = 0; i >= 0; i = w->symbols[i].after) {
    const symbol *c = &w->symbols[i];
    const char *text = w->text + c->start;
    const int32_t id = c->id >= 0 ? c->id : rung_vocab_find(w->vocab, text, c->bytes);
    if (id >= 0) {
      RUNG_TRY(rung_ids_add(ids, id, error));
      continue;
    }
    for (uint32_t k = 0; k < c->bytes; k++) RUNG_TRY(rung_ids_add(ids, s->bytes[(uint8_t)text[k]], error));
  }
  return RUNG_OK;
}

/* Text with its blanks written out; returns the number of characters, or of what first bytes announce as such. */
static size_t escape(const char *text, size_t length, bool prefix, char *out, size_t *out_length) {
  size_t n = 0, characters = 0;
  if (prefix) {
    memcpy(out, BLANK, BLANK_BYTES);
    n = BLANK_BYTES;
  }
  for (size_t i = 0; i < length; i++) {
    if (text[i] == ' ') {
      memcpy(out + n, BLANK, BLANK_BYTES);
      n += BLANK_BYTES;
    } else {
      out[n++] = text[i];
    }
  }
  for (size_t at = 0; at < n; at += rung_utf8_announced((uint8_t)out[at])) characters++;
  *out_length = n;
  return characters;
}

static rung_status encode(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool prefix,
                          rung_error *error, rung_ids *ids) {
  rung_host *host = vocab->host;
  size_t blanks = prefix;
  for (size_t i = 0; i < length; i++) blanks += text[i] == ' ';
  const size_t room = length + BLANK_BYTES * blanks;
  char *escaped = rung_host_alloc_raw(host, RUNG_MEMORY_host, room, 0);
  if (!escaped) return rung_fail(error, RUNG_OUT_OF_MEMORY, "a text of %zu bytes", length);
  size_t bytes = 0;
  const size_t count = escape(text, length, prefix, escaped, &bytes);
  run w = {.vocab = vocab, .text = escaped, .heap = {.host = host}};
  w.symbols = rung_host_alloc_raw(host, RUNG_MEMORY_host, count * sizeof *w.symbols, 0);
  bool ok = w.symbols && rung_heap_reserve(&w.heap, count);
  if (ok) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
      const size_t announced = rung_utf8_announced((uint8_t)escaped[at]), left = bytes - at;
      const size_t n = announced < left ? announced : left;
      w.symbols[i] = (symbol){(uint32_t)at, (uint32_t)n, (int32_t)i - 1,
                              i + 1 < count ? (int32_t)i + 1 : RUNG_TOKEN_NONE, RUNG_TOKEN_NONE};
      at += n;
    }
    for (size_t i = 0; i < count && ok; i++) ok = queue_merge(&w, (int32_t)i);
    ok = ok && merge_all(&w);
  }
  const rung_status status =
      ok ? emit(&w, self, error, ids) : rung_fail(error, RUNG_OUT_OF_MEMORY, "a text of %zu bytes", length);
  rung_heap_finish(&w.heap);
  if (w.symbols) rung_host_free(host, RUNG_MEMORY_host, w.symbols, count * sizeof *w.symbols);
  rung_host_free(host, RUNG_MEMORY_host, escaped, room);
  return status;
}

static const rung_usual_ids usual = {.bos = 1, .eos = 2, .unknown = 0};

const rung_text_model rung_text_model_spm = {
    .name = "llama",
    .needs_scores = true,
    .add_bos = true,
    .add_space_prefix = true,
    .usual = &usual,
    .create = create,
    .destroy = destroy,
    .encode = encode,
    .piece = piece,
};
