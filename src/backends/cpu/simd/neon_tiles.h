/* SPDX-License-Identifier: MIT
 * What matrix products need of level neon (avx512_tiles.h explains the words): dot products of signed bytes into 32
 * bits, which cannot saturate. */
#ifndef RUNG_CPU_SIMD_NEON_TILES_H
#define RUNG_CPU_SIMD_NEON_TILES_H

#include "backends/cpu/simd/neon.h"

typedef uint8x16_t vb;
typedef int8x16_t va;
typedef int32x4_t vd;

RUNG_INLINE vi vi_words(vb v) { return vreinterpretq_s32_u8(v); }
RUNG_INLINE vb vb_load(const uint8_t *p) { return vld1q_u8(p); }
RUNG_INLINE vb vb_low(vb v) { return vandq_u8(v, vdupq_n_u8(15)); }
RUNG_INLINE vb vb_high(vb v) { return vshrq_n_u8(v, 4); }
RUNG_INLINE vb vb_fifth(vb level, vb h, int g) {
  return vorrq_u8(level, vandq_u8(vshlq_u8(h, vdupq_n_s8((int8_t)(4 - g))), vdupq_n_u8(0x10)));
}
RUNG_INLINE vb vb_pair(vb level, vb h, int i) {
  return vorrq_u8(level, vandq_u8(vshlq_u8(h, vdupq_n_s8((int8_t)(4 - 2 * i))), vdupq_n_u8(0x30)));
}
enum { DOT_BYTE_OFFSET = 0 };
RUNG_INLINE vb vb_byte(vb v) { return veorq_u8(v, vdupq_n_u8(0x80)); }

RUNG_INLINE va va_load(const int8_t *p) {
  int32_t word;
  memcpy(&word, p, sizeof word);
  return vreinterpretq_s8_s32(vdupq_n_s32(word));
}

#define DOT_RUN(bits) 8
RUNG_INLINE vd vd_start(int32_t z) { return vdupq_n_s32(z); }
RUNG_INLINE vd vd_dot(vd d, vb w, va a, int bits) {
  (void)bits;
  return vdotq_s32(d, vreinterpretq_s8_u8(w), a);
}
RUNG_INLINE vd vd_fold(vd d) { return d; }
RUNG_INLINE vi vd_end(vd d, int32_t z) {
  (void)z;
  return d;
}

/* 6 x 2 vectors: 24 of 32 registers hold sums and results. */
enum { A8_ROWS = 6, A8_VECTORS = 2, A8_PANELS = 2, A8_AHEAD = 2048, A8_GRAIN = 100000 };
#define A8_TILE_NAME "6x8"
#define A8_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

/* 6 x 4 vectors of sums, four of a panel, two of activations. */
enum { F32_ROWS = 6, F32_VECTORS = 4, F32_PANELS = 1, F32_GRAIN = 20000 };
#define F32_TILE_NAME "6x16"
#define F32_FEW_TILE_NAME "4x16"
#define F32_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

#endif
