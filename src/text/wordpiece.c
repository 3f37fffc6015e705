/* SPDX-License-Identifier: MIT
 * WordPiece (Wu et al. 2016, as BERT has it): a word is taken apart from the left, always the longest piece that the
 * vocabulary has; pieces behind the first one carry a prefix. A word that cannot be taken apart whole is unknown. */
#include "text/cut.h"
#include "text/model.h"
#include "text/trie.h"

typedef struct wordpiece {
  rung_cutter *cutter;
  rung_trie trie;
  uint32_t begin, inside; /* the nodes behind what begins and what continues a word */
  bool begins, continues; /* whether any token does */
  char mark[16];          /* of what begins a word: nothing that continues one has it */
  size_t mark_length;
  int32_t unknown;
  int64_t longest;
} wordpiece;

/* The node behind a prefix; false if no token has it. */
static bool walk(const rung_trie *trie, rung_slice prefix, uint32_t *node) {
  *node = RUNG_TRIE_ROOT;
  for (size_t i = 0; i < prefix.length; i++) {
    *node = rung_trie_step(trie, *node, (uint8_t)prefix.text[i]);
    if (!*node) return false;
  }
  return true;
}

static rung_status create(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                          rung_error *error, void **out_self) {
  wordpiece *w = rung_host_alloc(vocab->host, RUNG_MEMORY_host, sizeof *w, 0);
  if (!w) return rung_fail(error, RUNG_OUT_OF_MEMORY, "WordPiece");
  (void)ids;
  *out_self = w;
  if (desc->unknown < 0) return rung_fail(error, RUNG_CORRUPT_FILE, "unk_token: WordPiece needs one in the vocabulary");
  w->unknown = (int32_t)desc->unknown;
  w->longest = desc->longest_word;
  RUNG_TRY(rung_cutter_create(vocab->host, "pre_tokenizer", desc->cuts, desc->cut_count, error, &w->cutter));
  if (rung_cutter_is_byte_level(w->cutter))
    return rung_fail(error, RUNG_UNSUPPORTED, "pre_tokenizer: ByteLevel with a WordPiece model");
  w->mark_length = desc->word_begin.length;
  if (w->mark_length > sizeof w->mark) return rung_fail(error, RUNG_UNSUPPORTED, "a long mark of what begins a word");
  if (w->mark_length) memcpy(w->mark, desc->word_begin.text, w->mark_length);
  RUNG_TRY(rung_trie_init(&w->trie, vocab, desc->by_types, error));
  w->begins = walk(&w->trie, desc->word_begin, &w->begin);
  w->continues = walk(&w->trie, desc->word_prefix, &w->inside);
  return RUNG_OK;
}

static void destroy(const rung_vocab *vocab, void *self) {
  wordpiece *w = self;
  if (!w) return;
  rung_cutter_destroy(w->cutter);
  rung_trie_finish(&w->trie);
  rung_host_free(vocab->host, RUNG_MEMORY_host, w, sizeof *w);
}

typedef struct run {
  const wordpiece *w;
  rung_ids *ids;
} run;

/* Bytes of the longest piece that text begins with; 0 if there is none. */
static size_t longest_piece(const wordpiece *w, uint32_t node, const char *text, size_t length, int32_t *id) {
  size_t best = 0;
  for (size_t i = 0; i < length;) {
    node = rung_trie_step(&w->trie, node, (uint8_t)text[i++]);
    if (!node) break;
    if (w->trie.id[node] < 0) continue;
    best = i;
    *id = w->trie.id[node];
  }
  return best;
}

static rung_status word(void *self, const char *text, size_t length, rung_error *error) {
  run *r = self;
  const wordpiece *w = r->w;
  int64_t characters = 0;
  for (size_t i = 0; i < length; i++) characters += ((uint8_t)text[i] & 0xC0) != 0x80;
  const size_t before = r->ids->count;
  size_t at = 0;
  while (at < length && characters <= w->longest) {
    int32_t id = RUNG_TOKEN_NONE;
    size_t n = 0;
    const bool marked =
        w->mark_length && length - at >= w->mark_length && memcmp(text + at, w->mark, w->mark_length) == 0;
    if (at ? w->continues && !marked : w->begins)
      n = longest_piece(w, at ? w->inside : w->begin, text + at, length - at, &id);
    if (n == 0) break;
    RUNG_TRY(rung_ids_add(r->ids, id, error));
    at += n;
  }
  if (at == length) return RUNG_OK;
  r->ids->count = before;
  return rung_ids_add(r->ids, w->unknown, error);
}

static rung_status encode(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool first,
                          rung_error *error, rung_ids *ids) {
  (void)vocab;
  run r = {self, ids};
  return rung_cutter_run(r.w->cutter, text, length, first, word, &r, error);
}

const rung_text_model rung_text_model_wordpiece = {
    .name = "WordPiece",
    .needs_steps = true,
    .create = create,
    .destroy = destroy,
    .encode = encode,
};
