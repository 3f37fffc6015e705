/* SPDX-License-Identifier: MIT
 * What matrix products need of level avx512: dot products of levels and quantised activations (VNNI), tile sizes.
 *
 *   vb   levels of VF columns, four neighbours in k each: 4 * VF bytes
 *   va   four activations, the same for every column
 *   vd   running sums
 * The words are the same in all <level>_tiles.h. */
#ifndef RUNG_CPU_SIMD_AVX512_TILES_H
#define RUNG_CPU_SIMD_AVX512_TILES_H

#include "backends/cpu/simd/avx512.h"

typedef __m512i vb, va, vd;

RUNG_INLINE vi vi_words(vb v) { return v; } /* the same bits */
RUNG_INLINE vb vb_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
RUNG_INLINE vb vb_low(vb v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
RUNG_INLINE vb vb_high(vb v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
/* level | bit g of h, as a fifth bit. Shifts of 16-bit lanes bring in bits of the other byte only where the mask is
 * zero. 0xf8: a | (b & c). */
RUNG_INLINE vb vb_fifth(vb level, vb h, int g) {
  const __m512i at_4 = g < 4 ? _mm512_slli_epi16(h, (unsigned)(4 - g)) : _mm512_srli_epi16(h, (unsigned)(g - 4));
  return _mm512_ternarylogic_epi64(level, at_4, _mm512_set1_epi8(0x10), 0xf8);
}
/* level | pair i of h, as bits 4 and 5. */
RUNG_INLINE vb vb_pair(vb level, vb h, int i) {
  const __m512i at_4 = i < 3 ? _mm512_slli_epi16(h, (unsigned)(4 - 2 * i)) : _mm512_srli_epi16(h, 2);
  return _mm512_ternarylogic_epi64(level, at_4, _mm512_set1_epi8(0x30), 0xf8);
}
/* Levels of 8 bits, stored with 128 added, as the dot product takes them: minus DOT_BYTE_OFFSET is what is meant. */
enum { DOT_BYTE_OFFSET = 128 };
RUNG_INLINE vb vb_byte(vb v) { return v; }

RUNG_INLINE va va_load(const int8_t *p) {
  int32_t word;
  memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

/* Sums start with vd_start(z), end with vd_end(d, z), z being the same; between the two z may be in or not. Sums of
 * products of unsigned and signed bytes go to 32 bits at once: nothing can saturate, no fold is ever needed. */
#define DOT_RUN(bits) 8
RUNG_INLINE vd vd_start(int32_t z) { return _mm512_set1_epi32(z); }
RUNG_INLINE vd vd_dot(vd d, vb w, va a, int bits) {
  (void)bits;
  return _mm512_dpbusd_epi32(d, w, a);
}
RUNG_INLINE vd vd_fold(vd d) { return d; }
RUNG_INLINE vi vd_end(vd d, int32_t z) {
  (void)z;
  return d;
}

/* ---- tiles of kernels/matmul_a8.inc: 6 x 2 vectors of sums and as many of results fill 24 of 32 registers */
enum { A8_ROWS = 6, A8_VECTORS = 2, A8_PANELS = 2, A8_AHEAD = 8192, A8_GRAIN = 400000 };
#define A8_TILE_NAME "6x32"
#define A8_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

/* ---- tiles of kernels/matmul_f32.inc: 12 x 2 vectors */
enum { F32_ROWS = 12, F32_VECTORS = 2, F32_PANELS = 2, F32_GRAIN = 60000 };
#define F32_TILE_NAME "12x32"
#define F32_FEW_TILE_NAME "4x32"
#define F32_CASES(CASE) \
  CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)

#endif
