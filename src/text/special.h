/* SPDX-License-Identifier: MIT
 * Finding special tokens (control, unknown, user-defined) spelled out in a text, and knowing tokens by their well-known
 * texts. */
#ifndef RUNG_TEXT_SPECIAL_H
#define RUNG_TEXT_SPECIAL_H

#include "text/vocab.h"

typedef struct rung_special_entry {
  const char *text;
  uint32_t length;
  int32_t id;
  uint32_t order;      /* of equal texts the first one counts */
  bool lstrip, rstrip; /* takes the white space on that side along; for who calls, not looked at here */
} rung_special_entry;

/* The entries in the order of their texts; those that begin with byte b are entries[first[b] .. first[b + 1]). */
typedef struct rung_special {
  rung_host *host;
  rung_special_entry *entries;
  uint32_t count;
  uint32_t first[257];
} rung_special;

/* Control, unknown or user-defined. */
bool rung_special_is(const rung_vocab *vocab, uint32_t id);

/* Of the vocabulary's special tokens (`added`: which of them take white space along), or of a list whose texts stay.
 * Zeroed; finish it also after a failure. */
rung_status rung_special_init(rung_special *special, const rung_vocab *vocab, const rung_added_token *added,
                              size_t added_count, rung_error *error);
rung_status rung_special_init_list(rung_special *special, rung_host *host, const rung_special_entry *entries,
                                   size_t count, rung_error *error);
void rung_special_finish(rung_special *special);

/* The first special token at or after `from`, the longest one there. `users`: user-defined ones of that vocabulary
 * only; NULL: all. NULL if there is none. */
const rung_special_entry *rung_special_next(const rung_special *special, const rung_vocab *users, const char *text,
                                            size_t length, size_t from, size_t *out_at);

/* Fills in roles that the description leaves open from well-known texts, and marks what ends a generation. `retype`:
 * files that forget to say so have control tokens among these. */
void rung_special_roles(rung_vocab *vocab, rung_token_ids *ids, bool retype);

#endif
