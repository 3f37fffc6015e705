/* SPDX-License-Identifier: MIT
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011): random numbers by
 * counter. Any block can be computed alone, so results depend on neither order nor threads. */
#ifndef RUNG_BASE_PHILOX_H
#define RUNG_BASE_PHILOX_H

#include <stdint.h>

/* Four random words for the 128-bit counter {low word first} under the 64-bit key {low word first}. */
static inline void rung_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out_words[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    const uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
    const uint32_t next0 = (uint32_t)(b >> 32) ^ c1 ^ k0, next2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)b;
    c3 = (uint32_t)a;
    c0 = next0;
    c2 = next2;
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
  out_words[0] = c0;
  out_words[1] = c1;
  out_words[2] = c2;
  out_words[3] = c3;
}

/* Block number `block` of a seed: the seed is the key, the counter is {block, 0}. */
static inline void rung_philox(uint64_t seed, uint64_t block, uint32_t out_words[4]) {
  const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  rung_philox_block(counter, key, out_words);
}

/* A word as a float in [0, 1): its upper 24 bits. */
static inline float rung_philox_float(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* The first two words of a block as a double in [0, 1): the upper 53 bits of word 1, word 0 (word 1 is the high one).
 */
static inline double rung_philox_double(uint64_t seed, uint64_t block) {
  uint32_t words[4];
  rung_philox(seed, block, words);
  return (double)((((uint64_t)words[1] << 32) | words[0]) >> 11) * 0x1p-53;
}

#endif
