/* SPDX-License-Identifier: MIT
 * Unigram (Kudo 2018): of all ways to take a text apart into pieces, the one whose scores have the largest sum, found
 * from left to right. A character that is no piece counts as unknown, with a score below all others. */
#include <math.h>

#include "text/cut.h"
#include "text/model.h"
#include "text/trie.h"
#include "text/utf8.h"

enum { PENALTY = 10 }; /* of an unknown character below the lowest score, as SentencePiece has it */

typedef struct unigram {
  rung_cutter *cutter;
  rung_trie trie;
  double *scores;
  size_t count;
  double unknown_score;
  int32_t unknown;
  bool byte_fallback;
  int32_t bytes[256]; /* <0x00> to <0xFF>, NONE where there is none */
} unigram;

static rung_status create(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                          rung_error *error, void **out_self) {
  (void)ids;
  unigram *u = rung_host_alloc(vocab->host, RUNG_MEMORY_host, sizeof *u, 0);
  if (!u) return rung_fail(error, RUNG_OUT_OF_MEMORY, "Unigram");
  *out_self = u;
  if (!desc->piece_scores) return rung_fail(error, RUNG_CORRUPT_FILE, "scores: missing, Unigram needs them");
  if (desc->unknown < 0) return rung_fail(error, RUNG_CORRUPT_FILE, "unk_id: Unigram needs one");
  u->unknown = (int32_t)desc->unknown;
  u->byte_fallback = desc->byte_fallback;
  RUNG_TRY(rung_cutter_create(vocab->host, "pre_tokenizer", desc->cuts, desc->cut_count, error, &u->cutter));
  if (rung_cutter_is_byte_level(u->cutter))
    return rung_fail(error, RUNG_UNSUPPORTED, "pre_tokenizer: ByteLevel with a Unigram model");
  u->scores = rung_host_array(vocab->host, vocab->count, sizeof *u->scores);
  if (!u->scores) return rung_fail(error, RUNG_OUT_OF_MEMORY, "Unigram: %u scores", vocab->count);
  u->count = vocab->count;
  double lowest = HUGE_VAL;
  for (uint32_t i = 0; i < vocab->count; i++) {
    u->scores[i] = desc->piece_scores[i];
    if (!isfinite(u->scores[i])) return rung_fail(error, RUNG_CORRUPT_FILE, "scores[%u] is no number", i);
    if (rung_trie_has(vocab, i, desc->by_types) && u->scores[i] < lowest) lowest = u->scores[i];
  }
  u->unknown_score = lowest - PENALTY;
  for (int byte = 0; byte < 256; byte++) {
    static const char digits[] = "0123456789ABCDEF";
    const char text[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    u->bytes[byte] = rung_vocab_find_word(vocab, text, sizeof text);
  }
  return rung_trie_init(&u->trie, vocab, desc->by_types, error);
}

static void destroy(const rung_vocab *vocab, void *self) {
  unigram *u = self;
  if (!u) return;
  rung_cutter_destroy(u->cutter);
  rung_trie_finish(&u->trie);
  if (u->scores) rung_host_free(vocab->host, RUNG_MEMORY_host, u->scores, u->count * sizeof *u->scores);
  rung_host_free(vocab->host, RUNG_MEMORY_host, u, sizeof *u);
}

/* The best way to the place behind some bytes: its last piece begins at `from`; `next` links the way found in the end.
 */
typedef struct place {
  double score;
  int32_t id;
  uint32_t from, next;
} place;

enum { NOWHERE = UINT32_MAX };

typedef struct run {
  const unigram *u;
  rung_host *host;
  rung_ids *ids;
  place *places;
  size_t capacity;
} run;

static void reach(place *to, double score, uint32_t from, int32_t id) {
  if (to->from != NOWHERE && score <= to->score) return;
  to->score = score;
  to->from = from;
  to->id = id;
}

static void find_best(const unigram *u, place *places, const char *text, size_t length) {
  for (size_t i = 0; i <= length; i++) places[i] = (place){0, RUNG_TOKEN_NONE, NOWHERE, NOWHERE};
  for (size_t at = 0, step; at < length; at += step) {
    const size_t announced = rung_utf8_announced((uint8_t)text[at]), left = length - at;
    step = announced < left ? announced : left;
    const double here = places[at].score;
    bool single = false;
    uint32_t node = RUNG_TRIE_ROOT;
    for (size_t n = 0; n < left;) {
      node = rung_trie_step(&u->trie, node, (uint8_t)text[at + n++]);
      if (!node) break;
      const int32_t id = u->trie.id[node];
      if (id < 0) continue;
      reach(&places[at + n], u->scores[id] + here, (uint32_t)at, id);
      single |= n == step;
    }
    if (!single) reach(&places[at + step], u->unknown_score + here, (uint32_t)at, u->unknown);
  }
}

/* Unknown characters beside each other are one: its bytes, or the unknown token. */
static rung_status add_unknown(run *r, const char *text, size_t length, rung_error *error) {
  const unigram *u = r->u;
  bool bytes = u->byte_fallback;
  for (size_t i = 0; i < length && bytes; i++) bytes = u->bytes[(uint8_t)text[i]] >= 0;
  if (!bytes) return rung_ids_add(r->ids, u->unknown, error);
  for (size_t i = 0; i < length; i++) RUNG_TRY(rung_ids_add(r->ids, u->bytes[(uint8_t)text[i]], error));
  return RUNG_OK;
}

static rung_status word(void *self, const char *text, size_t length, rung_error *error) {
  run *r = self;
  void *grown = r->places;
  if (!rung_host_grow(r->host, &grown, &r->capacity, length + 1, sizeof *r->places))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "a word of %zu bytes", length);
  place *places = r->places = grown;
  find_best(r->u, places, text, length);
  for (uint32_t at = (uint32_t)length; at > 0; at = places[at].from) places[places[at].from].next = at;
  for (uint32_t at = 0; at < length;) {
    uint32_t end = places[at].next;
    if (places[end].id != r->u->unknown) {
      RUNG_TRY(rung_ids_add(r->ids, places[end].id, error));
    } else {
      while (end < length && places[places[end].next].id == r->u->unknown) end = places[end].next;
      RUNG_TRY(add_unknown(r, text + at, end - at, error));
    }
    at = end;
  }
  return RUNG_OK;
}

static rung_status encode(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool first,
                          rung_error *error, rung_ids *ids) {
  const unigram *u = self;
  run r = {.u = u, .host = vocab->host, .ids = ids};
  const rung_status status = rung_cutter_run(u->cutter, text, length, first, word, &r, error);
  if (r.places) rung_host_free(vocab->host, RUNG_MEMORY_host, r.places, r.capacity * sizeof *r.places);
  return status;
}

const rung_text_model rung_text_model_unigram = {
    .name = "Unigram",
    .needs_steps = true,
    .create = create,
    .destroy = destroy,
    .encode = encode,
};
