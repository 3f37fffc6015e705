/* SPDX-License-Identifier: MIT
 * Packed weight matrices: panels of 16 rows of the source (16 output features), one block of k after another.
 *
 *             block 0        block 1                 block k/32 - 1
 *   panel 0   [16 rows x 32] [16 rows x 32]   ...    [16 rows x 32]     rows 0..15
 *   panel 1   ...                                                       rows 16..31
 *
 * A packed block has the bytes of its 16 source blocks, no more and no fewer, in another order, so that packing can be
 * undone exactly. The same bytes serve every instruction set: what one 512-bit vector holds are two 256-bit or four
 * 128-bit ones.
 *
 * Levels lie in vectors of 64 bytes, one 32-bit word per row c holding four neighbours in k. Words of 4-bit levels are
 * the source's own bytes: block byte i holds level i in its low and level 16 + i in its high half, so that
 *
 *   q[j] word c:   byte t = levels k = 4j + t (low half) and k = 16 + 4j + t (high half) of row c
 *
 * `Group g` of a block (0..7) means k = 4g .. 4g + 3: the low halves of q[g] for g < 4, else the high halves of q[g -
 * 4]. A fifth bit of group g is bit g of byte t of the word in h; the pair of upper bits of 6-bit levels is pair g % 4
 * of the word in h[g / 4]. */
#ifndef RUNG_CPU_LAYOUTS_H
#define RUNG_CPU_LAYOUTS_H

#include <stdint.h>

#include "ir/type.h"

enum { RUNG_PANEL = 16 };
/* The id of the one layout of a type: panels of 16, version 1. */
#define RUNG_X16(TYPE) (256 + RUNG_TYPE_##TYPE)

typedef struct rung_q4_0x16 {
  uint8_t q[4][64];
  uint16_t d[16];
} rung_q4_0x16;
typedef struct rung_q4_1x16 {
  uint8_t q[4][64];
  uint16_t d[16], m[16];
} rung_q4_1x16;
typedef struct rung_q5_0x16 {
  uint8_t q[4][64], h[64];
  uint16_t d[16];
} rung_q5_0x16;
typedef struct rung_q5_1x16 {
  uint8_t q[4][64], h[64];
  uint16_t d[16], m[16];
} rung_q5_1x16;
/* Levels plus 128, as dot products of unsigned and signed bytes want them. */
typedef struct rung_q8_0x16 {
  uint8_t q[8][64];
  uint16_t d[16];
} rung_q8_0x16;

/* Blocks of 256: eight runs of 32. a[r]: scale of run r in the low six bits, low two bits of its minimum above; b[r /
 * 2]: the upper four bits of the minima of two runs. */
typedef struct rung_k_scales {
  uint16_t d[16], m[16];
  uint8_t a[8][16], b[4][16];
} rung_k_scales;
typedef struct rung_q4_kx16 {
  rung_k_scales scales;
  uint8_t q[8][4][64];
} rung_q4_kx16;
typedef struct rung_q5_kx16 {
  rung_k_scales scales;
  struct {
    uint8_t q[4][64], h[64];
  } run[8];
} rung_q5_kx16;
/* s[2r], s[2r + 1]: scales of the two halves of run r, each 16 k: the low and the high halves of q. */
typedef struct rung_q6_kx16 {
  uint16_t d[16];
  int8_t s[16][16];
  struct {
    uint8_t q[4][64], h[2][64];
  } run[8];
} rung_q6_kx16;

/* Plain types: f32 and f16 are [k][16]; bf16 is [ceil(k / 2)][16][2], pairs of neighbours in k as dot products of pairs
 * want them (an odd last one has a zero beside it), which also widens without shuffles. */

#endif
