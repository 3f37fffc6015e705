/* SPDX-License-Identifier: MIT
 * SentencePiece's table of replacements ("precompiled_charsmap"): a double array of the texts that are replaced (Aoe
 * 1989, packed as Darts-clone does it), then what they become, each ended by a zero byte. Safe for hostile tables. */
#ifndef RUNG_TEXT_CHARSMAP_H
#define RUNG_TEXT_CHARSMAP_H

#include <rung/status.h>

#include "text/steps.h"

typedef struct rung_charsmap {
  const uint8_t *units; /* little-endian u32 at any alignment */
  uint32_t count;
  rung_slice replacements;
} rung_charsmap;

/* Borrows the table. CORRUPT_FILE if its parts do not fit, or where it points out of itself or into a character. */
rung_status rung_charsmap_init(rung_charsmap *map, rung_slice table, rung_error *error);

/* What the beginning of a text becomes, the longest or the shortest one in the table that ends where a character ends.
 * Bytes that are replaced; 0: it stays as it is. */
size_t rung_charsmap_find(const rung_charsmap *map, const char *text, size_t length, bool longest, rung_slice *out);

#endif
