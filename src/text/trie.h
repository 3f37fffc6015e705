/* SPDX-License-Identifier: MIT
 * The texts of tokens as a tree of bytes: all tokens that a text begins with are found in one walk. */
#ifndef RUNG_TEXT_TRIE_H
#define RUNG_TEXT_TRIE_H

#include "text/vocab.h"

/* Nodes in the order of their depth, the children of one beside each other and in the order of their bytes: those of
 * node n are [first[n], first[n + 1]). Nine bytes a node. */
typedef struct rung_trie {
  rung_host *host;
  uint32_t count, capacity;
  uint32_t *first;
  int32_t *id; /* the token that ends here, or NONE */
  uint8_t *byte;
  uint32_t start[256]; /* the root's children, 0: none */
} rung_trie;

enum { RUNG_TRIE_ROOT = 0 };

/* Of the tokens that the model knows and that have a text; `plain`: without those that stand for bytes or are special.
 * Zeroed; finish it also after a failure. */
rung_status rung_trie_init(rung_trie *trie, const rung_vocab *vocab, bool plain, rung_error *error);
bool rung_trie_has(const rung_vocab *vocab, uint32_t id, bool plain);
void rung_trie_finish(rung_trie *trie);

/* The child by a byte; 0 if there is none. */
static inline uint32_t rung_trie_step(const rung_trie *trie, uint32_t node, uint8_t byte) {
  if (node == RUNG_TRIE_ROOT) return trie->start[byte];
  for (uint32_t at = trie->first[node], end = trie->first[node + 1]; at < end; at++)
    if (trie->byte[at] >= byte) return trie->byte[at] == byte ? at : 0;
  return 0;
}

#endif
