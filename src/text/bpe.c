/* SPDX-License-Identifier: MIT
 * BPE (Sennrich et al. 2016; the byte alphabet is GPT-2's): text is cut into words, a word into bytes or characters,
 * and the pair of neighbours whose merge was learnt first is joined until no pair is known. Byte-level BPE writes each
 * byte as one printable character in token texts; the merge loop works on ids and never sees that. */
#include "text/bytes.h"
#include "text/heap.h"
#include "text/model.h"
#include "text/pretokenise.h"
#include "text/utf8.h"

enum { NO_RANK = INT32_MAX };

typedef struct pair {
  int32_t left, right;
} pair;

typedef struct bpe {
  rung_cutter *cutter;
  bool ignore_merges;
  int32_t bytes[256]; /* the token of each byte, or NONE: such bytes are left out */
  /* By steps: words may be characters, and what has no token becomes bytes or the unknown token. */
  bool by_steps, byte_level, byte_fallback, fuse_unknown;
  int32_t unknown;
  int32_t fallback[256]; /* <0x00> to <0xFF>; NONE where there is none */
  /* The last character of a word, or its last byte, carries this in the vocabulary. */
  char suffix[32];
  size_t suffix_length;
  int32_t last_bytes[256];
  /* Merge number r, best first, joins pairs[r] to results[r]. */
  uint32_t merges;
  pair *pairs;
  int32_t *results;
  rung_slots slots;
} bpe;

static void piece(const char *text, size_t length, rung_text *out) {
  char buffer[64];
  size_t filled = 0;
  for (size_t at = 0; at < length;) {
    uint32_t c = 0;
    const int n = rung_utf8_read((const uint8_t *)text + at, length - at, &c);
    const int byte = n > 0 ? rung_byte_of_character(c) : -1;
    const size_t step = n > 0 ? (size_t)n : 1;
    if (filled + 4 > sizeof buffer) {
      rung_text_add(out, buffer, filled);
      filled = 0;
    }
    if (byte >= 0) {
      buffer[filled++] = (char)byte;
    } else { /* not of the alphabet: such tokens were added later and mean themselves */
      memcpy(buffer + filled, text + at, step);
      filled += step;
    }
    at += step;
  }
  rung_text_add(out, buffer, filled);
}

/* ---- creation ---- */

static uint64_t pair_hash(int32_t left, int32_t right) {
  uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
  h ^= h >> 29;
  h *= UINT64_C(0xBF58476D1CE4E5B9);
  return h ^ h >> 32;
}

/* The number of the merge of two tokens, or NO_RANK. */
static int32_t rank_of(const bpe *b, int32_t left, int32_t right) {
  if (left < 0 || right < 0) return NO_RANK;
  rung_probe probe = rung_slots_begin(&b->slots, pair_hash(left, right));
  while (rung_slots_next(&b->slots, &probe)) {
    const pair p = b->pairs[probe.number];
    if (p.left == left && p.right == right) return (int32_t)probe.number;
  }
  return NO_RANK;
}

static rung_status refuse_merge(const rung_tokenizer_desc *desc, uint32_t r, const char *why, rung_error *error) {
  const uint32_t length = desc->merge_lengths[r];
  return rung_fail(error, RUNG_CORRUPT_FILE, "merges[%u]: \"%.*s\" %s", r, (int)(length < 64 ? length : 64),
                   desc->merges[r], why);
}

/* The token that a merge makes. Vocabularies list these in the order of the merges, so the next one is looked at first.
 */
static int32_t find_result(const bpe *b, const rung_vocab *vocab, uint32_t r, const char *text, size_t length) {
  const uint32_t likely = r ? (uint32_t)b->results[r - 1] + 1 : 0;
  if (likely < vocab->count && vocab->spans[likely].length == length &&
      memcmp(rung_vocab_text(vocab, likely), text, length) == 0)
    return (int32_t)likely;
  return rung_vocab_find_word(vocab, text, length);
}

static rung_status read_merge(bpe *b, const rung_vocab *vocab, const rung_tokenizer_desc *desc, uint32_t r,
                              char *joined, rung_error *error) {
  const char *text = desc->merges[r];
  const size_t length = text ? desc->merge_lengths[r] : 0;
  if (length < 3) return rung_fail(error, RUNG_CORRUPT_FILE, "merges[%u]: no two token texts", r);
  size_t left = 0;
  if (desc->merge_left) {
    left = desc->merge_left[r];
  } else {
    const char *blank = memchr(text + 1, ' ', length - 1);
    left = blank ? (size_t)(blank - text) : 0;
  }
  if (left == 0 || left + 1 >= length) return refuse_merge(desc, r, "is not two texts with a blank between", error);
  const char *second = text + left + 1;
  const size_t right = length - left - 1;
  const pair p = {rung_vocab_find_word(vocab, text, left), rung_vocab_find_word(vocab, second, right)};
  if (p.left < 0 || p.right < 0) return refuse_merge(desc, r, "names a token that the vocabulary lacks", error);
  if (left + right > vocab->longest) return refuse_merge(desc, r, "makes a token that the vocabulary lacks", error);
  memcpy(joined, text, left);
  memcpy(joined + left, second, right);
  const int32_t result = find_result(b, vocab, r, joined, left + right);
  if (result < 0) return refuse_merge(desc, r, "makes a token that the vocabulary lacks", error);
  b->pairs[r] = p;
  b->results[r] = result;
  rung_probe probe = rung_slots_begin(&b->slots, pair_hash(p.left, p.right));
  while (rung_slots_next(&b->slots, &probe)) {
    const pair other = b->pairs[probe.number];
    if (other.left == p.left && other.right == p.right) return RUNG_OK; /* said twice: the first one counts */
  }
  rung_slots_put(&b->slots, &probe, r);
  return RUNG_OK;
}

static rung_status read_merges(bpe *b, const rung_vocab *vocab, const rung_tokenizer_desc *desc, rung_error *error) {
  if (desc->merge_count > RUNG_SLOTS_MOST)
    return rung_fail(error, RUNG_UNSUPPORTED, "merges: %zu, at most %d are supported", desc->merge_count,
                     (int)RUNG_SLOTS_MOST);
  b->merges = (uint32_t)desc->merge_count;
  b->pairs = rung_host_array(vocab->host, b->merges, sizeof *b->pairs);
  b->results = rung_host_array(vocab->host, b->merges, sizeof *b->results);
  char *joined = rung_host_array(vocab->host, vocab->longest, 1);
  rung_status status = RUNG_OK;
  if (b->pairs && b->results && joined && rung_slots_init(&b->slots, vocab->host, b->merges))
    for (uint32_t r = 0; r < b->merges && status == RUNG_OK; r++) status = read_merge(b, vocab, desc, r, joined, error);
  else
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "merges: a table of %u", b->merges);
  rung_host_free(vocab->host, RUNG_MEMORY_host, joined, vocab->longest);
  return status;
}

static void find_bytes(bpe *b, const rung_vocab *vocab) {
  for (int byte = 0; byte < 256; byte++) {
    static const char digits[] = "0123456789ABCDEF";
    const char spelled[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    uint8_t text[4 + sizeof b->suffix] = {(uint8_t)byte};
    const int n = b->byte_level ? rung_utf8_write(rung_character_of_byte((uint8_t)byte), text) : 1;
    b->bytes[byte] = rung_vocab_find_word(vocab, (const char *)text, (size_t)n);
    memcpy(text + n, b->suffix, b->suffix_length);
    b->last_bytes[byte] = rung_vocab_find_word(vocab, (const char *)text, (size_t)n + b->suffix_length);
    b->fallback[byte] = rung_vocab_find_word(vocab, spelled, sizeof spelled);
  }
}

static rung_status create(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                          rung_error *error, void **out_self) {
  (void)ids;
  bpe *b = rung_host_alloc(vocab->host, RUNG_MEMORY_host, sizeof *b, 0);
  if (!b) return rung_fail(error, RUNG_OUT_OF_MEMORY, "BPE");
  *out_self = b;
  b->by_steps = desc->use_steps;
  if (b->by_steps) {
    RUNG_TRY(rung_cutter_create(vocab->host, "pre_tokenizer", desc->cuts, desc->cut_count, error, &b->cutter));
    b->byte_level = rung_cutter_is_byte_level(b->cutter);
    b->ignore_merges = desc->ignore_merges;
    b->byte_fallback = desc->byte_fallback;
    b->fuse_unknown = desc->fuse_unknown;
    b->unknown = (int32_t)desc->unknown;
    if (desc->word_suffix.length > sizeof b->suffix || (desc->word_suffix.length && b->byte_fallback))
      return rung_fail(error, RUNG_UNSUPPORTED, "model: BPE with a long end_of_word_suffix, or one and byte_fallback");
    b->suffix_length = desc->word_suffix.length;
    if (b->suffix_length) memcpy(b->suffix, desc->word_suffix.text, b->suffix_length);
  } else {
    RUNG_TRY(rung_pretokeniser_create(vocab->host, desc->pre, error, &b->cutter));
    b->byte_level = true;
    b->ignore_merges = rung_pretokeniser_ignores_merges(desc->pre);
  }
  find_bytes(b, vocab);
  return read_merges(b, vocab, desc, error);
}

static void destroy(const rung_vocab *vocab, void *self) {
  bpe *b = self;
  if (!b) return;
  rung_cutter_destroy(b->cutter);
  rung_slots_finish(&b->slots, vocab->host);
  if (b->pairs) rung_host_free(vocab->host, RUNG_MEMORY_host, b->pairs, b->merges * sizeof *b->pairs);
  if (b->results) rung_host_free(vocab->host, RUNG_MEMORY_host, b->results, b->merges * sizeof *b->results);
  rung_host_free(vocab->host, RUNG_MEMORY_host, b, sizeof *b);
}

/* ---- encoding ---- */

/* A symbol and the merge with the one after it. */
typedef struct symbol {
  int32_t id, rank;
  int32_t before, after; /* NONE at the ends */
} symbol;

enum { SHORT_WORD = 24 }; /* up to here looking through all ranks beats a queue */

typedef struct run {
  const bpe *b;
  const rung_vocab *vocab;
  rung_ids *ids;
  symbol *symbols;
  int32_t *spelled; /* the first ids of a long word */
  size_t capacity, spelled_capacity;
  rung_heap heap;
} run;

/* A character that has no token, as the tokens of its bytes. */
static size_t fall_back(const bpe *b, const uint8_t *bytes, size_t length, int32_t *id) {
  for (size_t i = 0; i < length; i++) {
    if (b->fallback[bytes[i]] < 0) return 0;
    id[i] = b->fallback[bytes[i]];
  }
  return length;
}

/* The token of a character, or of a byte of the byte alphabet; `last`: of a word. */
static int32_t character_token(const run *w, const char *text, size_t length, bool last) {
  const bpe *b = w->b;
  const uint8_t first = (uint8_t)text[0];
  if (b->byte_level || first < 0x80) return last ? b->last_bytes[first] : b->bytes[first];
  if (!last || !b->suffix_length) return rung_vocab_find_word(w->vocab, text, length);
  char with[4 + sizeof b->suffix];
  memcpy(with, text, length);
  memcpy(with + length, b->suffix, b->suffix_length);
  return rung_vocab_find_word(w->vocab, with, length + b->suffix_length);
}

/* The ids of a word before any merge, at most one a byte, two where bytes are spelled as characters. Order and fusing
 * of unknown tokens are those of Hugging Face's tokenizers. */
static size_t spell(const run *w, const char *text, size_t length, int32_t *id) {
  const bpe *b = w->b;
  size_t count = 0;
  if (!b->by_steps) {
    for (; count < length; count++) id[count] = b->bytes[(uint8_t)text[count]];
    return count;
  }
  int32_t unknown = RUNG_TOKEN_NONE; /* waits for what comes next */
  for (size_t at = 0, step; at < length; at += step) {
    const uint8_t first = (uint8_t)text[at];
    uint8_t written[4];
    const uint8_t *character = (const uint8_t *)text + at;
    const size_t announced = b->byte_level ? 1 : rung_utf8_announced(first);
    step = announced < length - at ? announced : length - at;
    size_t bytes = step;
    const int32_t known = character_token(w, text + at, step, at + step == length);
    if (known >= 0) {
      if (unknown >= 0) id[count++] = unknown;
      unknown = RUNG_TOKEN_NONE;
      id[count++] = known;
      continue;
    }
    if (b->byte_level) {
      bytes = (size_t)rung_utf8_write(rung_character_of_byte(first), written);
      character = written;
    }
    const size_t fallen = b->byte_fallback ? fall_back(b, character, bytes, id + count) : 0;
    count += fallen;
    if (fallen || b->unknown < 0) continue;
    if (unknown >= 0 && !b->fuse_unknown) id[count++] = unknown;
    unknown = b->unknown;
  }
  if (unknown >= 0) id[count++] = unknown;
  return count;
}

/* A short word's ids and ranks lie in arrays that close up after each merge. */
static rung_status short_word(run *w, int32_t *id, int count, rung_error *error) {
  const bpe *b = w->b;
  int32_t rank[2 * SHORT_WORD];
  for (int i = 0; i + 1 < count; i++) rank[i] = rank_of(b, id[i], id[i + 1]);
  while (count > 1) {
    int best = 0;
    for (int i = 1; i + 1 < count; i++)
      if (rank[i] < rank[best]) best = i;
    if (rank[best] == NO_RANK) break;
    id[best] = b->results[rank[best]];
    count--;
    for (int i = best + 1; i < count; i++) {
      id[i] = id[i + 1];
      rank[i - 1] = rank[i];
    }
    if (best > 0) rank[best - 1] = rank_of(b, id[best - 1], id[best]);
    if (best + 1 < count) rank[best] = rank_of(b, id[best], id[best + 1]);
  }
  for (int i = 0; i < count; i++)
    if (id[i] >= 0) RUNG_TRY(rung_ids_add(w->ids, id[i], error));
  return RUNG_OK;
}

/* Looks up the merge of symbol i with its right neighbour and queues it: lowest rank first, then from the left. */
static bool queue_merge(run *w, int32_t i) {
  symbol *s = &w->symbols[i];
  s->rank = s->after < 0 ? NO_RANK : rank_of(w->b, s->id, w->symbols[s->after].id);
  if (s->rank == NO_RANK) return true;
  return rung_heap_push(&w->heap, (rung_merge){(uint64_t)(uint32_t)s->rank << 32 | (uint32_t)i, 0});
}

static rung_status long_word(run *w, const char *text, size_t length, rung_error *error) {
  void *grown = w->symbols, *spelled = w->spelled;
  bool ok = rung_host_grow(w->vocab->host, &grown, &w->capacity, 2 * length, sizeof *w->symbols);
  w->symbols = grown;
  ok = ok && rung_host_grow(w->vocab->host, &spelled, &w->spelled_capacity, 2 * length, sizeof *w->spelled);
  w->spelled = spelled;
  w->heap.count = 0;
  if (!ok || !rung_heap_reserve(&w->heap, length))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "a word of %zu bytes", length);
  symbol *symbols = w->symbols;
  const int32_t count = (int32_t)spell(w, text, length, w->spelled);
  for (int32_t i = 0; i < count; i++)
    symbols[i] = (symbol){w->spelled[i], NO_RANK, i - 1, i + 1 < count ? i + 1 : RUNG_TOKEN_NONE};
  for (int32_t i = 0; i < count && ok; i++) ok = queue_merge(w, i);
  while (ok && w->heap.count) {
    const uint64_t key = rung_heap_pop(&w->heap).key;
    const int32_t rank = (int32_t)(key >> 32), at = (int32_t)(uint32_t)key;
    symbol *left = &symbols[at];
    if (left->rank != rank) continue; /* stale: either neighbour has changed since */
    symbol *right = &symbols[left->after];
    left->id = w->b->results[rank];
    left->after = right->after;
    if (right->after >= 0) symbols[right->after].before = at;
    right->rank = NO_RANK;
    ok = queue_merge(w, at) && (left->before < 0 || queue_merge(w, left->before));
  }
  if (!ok) return rung_fail(error, RUNG_OUT_OF_MEMORY, "a word of %zu bytes", length);
  for (int32_t i = count ? 0 : -1; i >= 0; i = symbols[i].after)
    if (symbols[i].id >= 0) RUNG_TRY(rung_ids_add(w->ids, symbols[i].id, error));
  return RUNG_OK;
}

/* Some models take a word that is a token as it is. Its text in the byte alphabet is at most twice as long. */
static int32_t whole_word(const run *w, const char *text, size_t length) {
  char spelled[1024];
  if (!w->b->byte_level) return rung_vocab_find_word(w->vocab, text, length);
  if (length > w->vocab->longest || 2 * length > sizeof spelled) return RUNG_TOKEN_NONE;
  size_t n = 0;
  for (size_t i = 0; i < length; i++)
    n += (size_t)rung_utf8_write(rung_character_of_byte((uint8_t)text[i]), (uint8_t *)spelled + n);
  return rung_vocab_find_word(w->vocab, spelled, n);
}

static rung_status word(void *self, const char *text, size_t length, rung_error *error) {
  run *w = self;
  if (w->b->ignore_merges) {
    const int32_t id = whole_word(w, text, length);
    if (id >= 0) return rung_ids_add(w->ids, id, error);
  }
  if (length > SHORT_WORD) return long_word(w, text, length, error);
  int32_t id[2 * SHORT_WORD];
  return short_word(w, id, (int)spell(w, text, length, id), error);
}

/* The text with U+FFFD for each byte that belongs to no character. */
static void repair(const uint8_t *bytes, size_t length, rung_text *out) {
  while (length > 0) {
    const size_t good = rung_utf8_valid_prefix(bytes, length);
    rung_text_add(out, (const char *)bytes, good);
    if (good < length) rung_text_add(out, "\xEF\xBF\xBD", 3);
    const size_t step = good < length ? good + 1 : good;
    bytes += step;
    length -= step;
  }
}

static rung_status encode(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool prefix,
                          rung_error *error, rung_ids *ids) {
  const bpe *b = self;
  run w = {.b = b, .vocab = vocab, .ids = ids, .heap = {.host = vocab->host}};
  const bool first = prefix; /* by steps, and then the text is valid and has its prefix */
  prefix = prefix && !b->by_steps;
  rung_text repaired;
  rung_text_init(&repaired, vocab->host);
  if (prefix) rung_text_add(&repaired, " ", 1);
  if (prefix || (!b->by_steps && rung_utf8_valid_prefix((const uint8_t *)text, length) < length)) {
    repair((const uint8_t *)text, length, &repaired);
    text = repaired.data;
    length = repaired.length;
  }
  rung_status status = rung_text_status(&repaired, error);
  if (status == RUNG_OK) status = rung_cutter_run(b->cutter, text, length, first, word, &w, error);
  rung_text_finish(&repaired);
  rung_heap_finish(&w.heap);
  if (w.symbols) rung_host_free(vocab->host, RUNG_MEMORY_host, w.symbols, w.capacity * sizeof *w.symbols);
  if (w.spelled) rung_host_free(vocab->host, RUNG_MEMORY_host, w.spelled, w.spelled_capacity * sizeof *w.spelled);
  return status;
}

const rung_text_model rung_text_model_bpe = {
    .name = "gpt2",
    .needs_merges = true,
    .create = create,
    .destroy = destroy,
    .encode = encode,
    .piece = piece,
    .adds_bos = rung_pretokeniser_adds_bos,
};

const rung_text_model rung_text_model_pairs = {
    .name = "BPE",
    .needs_merges = true,
    .needs_steps = true,
    .create = create,
    .destroy = destroy,
    .encode = encode,
};
