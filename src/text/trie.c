/* SPDX-License-Identifier: MIT
 * Building a tree of bytes: the texts are sorted, and each depth is read off the ranges that the one above it left. */
#include "text/trie.h"

#include "text/special.h"

/* The tokens whose texts begin with a node's bytes: sorted[low .. high). */
typedef struct range {
  uint32_t low, high, depth;
} range;

/* The first eight bytes of a text decide nearly always: a number that sorts as they do. */
typedef struct key {
  uint64_t prefix;
  uint32_t id;
} key;

static uint64_t prefix_of(const char *text, uint32_t length) {
  uint64_t prefix = 0;
  for (uint32_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < length ? (uint8_t)text[i] : 0);
  return prefix;
}

static bool in_order(const rung_vocab *vocab, const key *a, const key *b) {
  if (a->prefix != b->prefix) return a->prefix < b->prefix;
  const rung_token_span x = vocab->spans[a->id], y = vocab->spans[b->id];
  const int order = memcmp(vocab->base + x.offset, vocab->base + y.offset, x.length < y.length ? x.length : y.length);
  return order ? order < 0 : x.length <= y.length;
}

/* Merge sort from the bottom: no recursion, no bad cases. Returns which of the two has the result. */
static key *sort(const rung_vocab *vocab, key *keys, key *other, uint32_t count) {
  for (uint32_t width = 1; width < count; width *= 2) {
    for (uint32_t low = 0; low < count; low += 2 * width) {
      const uint32_t middle = count - low > width ? low + width : count;
      const uint32_t high = count - middle > width ? middle + width : count;
      uint32_t a = low, b = middle;
      for (uint32_t i = low; i < high; i++)
        other[i] = a < middle && (b == high || in_order(vocab, &keys[a], &keys[b])) ? keys[a++] : keys[b++];
    }
    key *swapped = keys;
    keys = other;
    other = swapped;
  }
  return keys;
}

static bool grow(rung_trie *trie) {
  const uint32_t capacity = trie->capacity ? trie->capacity * 2 : 1024;
  uint32_t *first = rung_host_array(trie->host, (size_t)capacity + 1, sizeof *first);
  int32_t *id = rung_host_array(trie->host, capacity, sizeof *id);
  uint8_t *byte = rung_host_array(trie->host, capacity, 1);
  const bool ok = first && id && byte;
  if (ok && trie->count) {
    memcpy(first, trie->first, trie->count * sizeof *first);
    memcpy(id, trie->id, trie->count * sizeof *id);
    memcpy(byte, trie->byte, trie->count);
  }
  rung_trie old = *trie;
  if (ok) {
    trie->first = first;
    trie->id = id;
    trie->byte = byte;
    trie->capacity = capacity;
  } else {
    old = (rung_trie){.host = trie->host, .first = first, .id = id, .byte = byte, .capacity = capacity};
  }
  rung_trie_finish(&old);
  return ok;
}

static bool add_node(rung_trie *trie, uint8_t byte) {
  if (trie->count == trie->capacity && !grow(trie)) return false;
  trie->id[trie->count] = RUNG_TOKEN_NONE;
  trie->byte[trie->count++] = byte;
  return true;
}

/* The children of node n, whose tokens are r. `queue` has the ranges of the nodes so far and gets theirs. */
static bool add_children(rung_trie *trie, const rung_vocab *vocab, const key *sorted, uint32_t n, range r,
                         range **queue, size_t *capacity) {
  uint32_t at = r.low;
  if (at < r.high && vocab->spans[sorted[at].id].length == r.depth) trie->id[n] = (int32_t)sorted[at++].id;
  trie->first[n] = trie->count;
  while (at < r.high) {
    const uint8_t byte = (uint8_t)rung_vocab_text(vocab, sorted[at].id)[r.depth];
    uint32_t end = at + 1;
    while (end < r.high && (uint8_t)rung_vocab_text(vocab, sorted[end].id)[r.depth] == byte) end++;
    void *grown = *queue;
    if (!rung_host_grow(trie->host, &grown, capacity, (size_t)trie->count + 1, sizeof **queue)) return false;
    *queue = grown;
    (*queue)[trie->count] = (range){at, end, r.depth + 1};
    if (!add_node(trie, byte)) return false;
    at = end;
  }
  return true;
}

static bool build(rung_trie *trie, const rung_vocab *vocab, const key *sorted, uint32_t count) {
  range *queue = NULL;
  size_t capacity = 0;
  void *grown = NULL;
  bool ok = rung_host_grow(trie->host, &grown, &capacity, 1, sizeof *queue) && add_node(trie, 0);
  queue = grown;
  if (ok) queue[0] = (range){0, count, 0};
  for (uint32_t n = 0; ok && n < trie->count; n++)
    ok = add_children(trie, vocab, sorted, n, queue[n], &queue, &capacity);
  if (ok) trie->first[trie->count] = trie->count;
  for (uint32_t n = ok ? trie->first[0] : 0; ok && n < trie->first[1]; n++) trie->start[trie->byte[n]] = n;
  if (queue) rung_host_free(trie->host, RUNG_MEMORY_host, queue, capacity * sizeof *queue);
  return ok;
}

bool rung_trie_has(const rung_vocab *vocab, uint32_t id, bool plain) {
  if (!vocab->spans[id].length || (vocab->flags[id] & RUNG_VOCAB_OUTSIDE)) return false;
  return !plain || (rung_vocab_type(vocab, id) != RUNG_TOKEN_BYTE && !rung_special_is(vocab, id));
}

rung_status rung_trie_init(rung_trie *trie, const rung_vocab *vocab, bool plain, rung_error *error) {
  trie->host = vocab->host;
  key *keys = rung_host_array(vocab->host, vocab->count, sizeof *keys);
  key *other = rung_host_array(vocab->host, vocab->count, sizeof *other);
  uint32_t count = 0;
  bool ok = keys && other;
  for (uint32_t id = 0; ok && id < vocab->count; id++) {
    if (rung_trie_has(vocab, id, plain))
      keys[count++] = (key){prefix_of(rung_vocab_text(vocab, id), vocab->spans[id].length), id};
  }
  ok = ok && build(trie, vocab, sort(vocab, keys, other, count), count);
  if (keys) rung_host_free(vocab->host, RUNG_MEMORY_host, keys, vocab->count * sizeof *keys);
  if (other) rung_host_free(vocab->host, RUNG_MEMORY_host, other, vocab->count * sizeof *other);
  return ok ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: a tree of %u texts", vocab->count);
}

void rung_trie_finish(rung_trie *trie) {
  if (trie->first)
    rung_host_free(trie->host, RUNG_MEMORY_host, trie->first, ((size_t)trie->capacity + 1) * sizeof *trie->first);
  if (trie->id) rung_host_free(trie->host, RUNG_MEMORY_host, trie->id, trie->capacity * sizeof *trie->id);
  if (trie->byte) rung_host_free(trie->host, RUNG_MEMORY_host, trie->byte, trie->capacity);
  trie->first = NULL;
  trie->id = NULL;
  trie->byte = NULL;
}
