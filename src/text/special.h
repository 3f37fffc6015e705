/* SPDX-License-Identifier: MIT
 * Finding special tokens (control, unknown, user-defined) spelled out in a text, and knowing tokens by their well-known
 * texts. */
#ifndef RUNG_TEXT_SPECIAL_H
#define RUNG_TEXT_SPECIAL_H

#include "text/vocab.h"

/* The special tokens in the order of their texts; those that begin with byte b are ids[first[b] .. first[b + 1]). */
typedef struct rung_special {
  uint32_t *ids;
  uint32_t count;
  uint32_t first[257];
} rung_special;

/* Zeroed; finish it also after a failure. */
rung_status rung_special_init(rung_special *special, const rung_vocab *vocab, rung_error *error);
void rung_special_finish(rung_special *special, const rung_vocab *vocab);

/* The first special token at or after `from`, the longest one there. `all`: control and unknown tokens too, otherwise
 * user-defined ones only. False if there is none. */
bool rung_special_next(const rung_special *special, const rung_vocab *vocab, const char *text, size_t length,
                       size_t from, bool all, size_t *out_at, int32_t *out_id);

/* Fills in roles that the description leaves open from well-known texts, and marks what ends a generation. */
void rung_special_roles(rung_vocab *vocab, rung_token_ids *ids);

#endif
