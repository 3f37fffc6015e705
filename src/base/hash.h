/* SPDX-License-Identifier: MIT
 * The 128-bit hash of stored keys and tensor identities: XXH3, 128-bit variant, seed 0 (Y. Collet; the specification is
 * published with its vectors). Part of the file format, so it never changes. */
#ifndef RUNG_BASE_HASH_H
#define RUNG_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rung_hash {
  uint64_t low, high;
} rung_hash;
rung_hash rung_hash_bytes(const void *data, size_t bytes);
static inline bool rung_hash_equal(rung_hash a, rung_hash b) { return a.low == b.low && a.high == b.high; }
/* 32 hexadecimal digits, high word first, terminated. */
void rung_hash_hex(rung_hash hash, char out_text[33]);
/* For tables in memory: 64 bits, fast for short keys, not part of any format. */
uint64_t rung_hash64(const void *data, size_t bytes);

#endif
