/* SPDX-License-Identifier: MIT
 * What matrix products need of level avx2 (avx512_tiles.h explains the words).
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds pairs into 16 bits, saturating above 32767. It never gets
 * there: activations lie in [-127, 127], so a pair of products is at most 2 * max * 127 in magnitude, and that many
 * pairs fit:
 *
 *   levels         max   a pair    pairs in 16 bits before they go to 32
 *   4 bits          15     3810     8   (30480)
 *   5 bits          31     7874     4   (31496)
 *   6 bits          63    16002     2   (32004)
 *   8 bits, |w|    128    32512     1   (w is signed: |w| times the activation with the sign of w)
 */
#ifndef RUNG_CPU_SIMD_AVX2_TILES_H
#define RUNG_CPU_SIMD_AVX2_TILES_H

#include "backends/cpu/simd/avx2.h"

typedef __m256i vb, va;
typedef struct vd {
  __m256i pairs; /* 16 bits each */
  __m256i sums;  /* what was folded */
} vd;

RUNG_INLINE vi vi_words(vb v) { return v; }
RUNG_INLINE vb vb_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
RUNG_INLINE vb vb_low(vb v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
RUNG_INLINE vb vb_high(vb v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15)); }
RUNG_INLINE vb vb_fifth(vb level, vb h, int g) {
  const __m256i at_4 = g < 4 ? _mm256_slli_epi16(h, 4 - g) : _mm256_srli_epi16(h, g - 4);
  return _mm256_or_si256(level, _mm256_and_si256(at_4, _mm256_set1_epi8(0x10)));
}
RUNG_INLINE vb vb_pair(vb level, vb h, int i) {
  const __m256i at_4 = i < 3 ? _mm256_slli_epi16(h, 4 - 2 * i) : _mm256_srli_epi16(h, 2);
  return _mm256_or_si256(level, _mm256_and_si256(at_4, _mm256_set1_epi8(0x30)));
}
enum { DOT_BYTE_OFFSET = 0 };
RUNG_INLINE vb vb_byte(vb v) { return _mm256_xor_si256(v, _mm256_set1_epi8(-128)); }

RUNG_INLINE va va_load(const int8_t *p) {
  int32_t word;
  memcpy(&word, p, sizeof word);
  return _mm256_set1_epi32(word);
}

/* Compilers regroup sums of integers: all products of a run first, which no register holds. What hides a sum from them
 * keeps the order in which it is written. */
#define KEEP_ORDER(sum) __asm__("" : "+x"(sum))
#define DOT_RUN(bits) ((bits) == 4 ? 8 : (bits) == 5 ? 4 : (bits) == 6 ? 2 : 1)
RUNG_INLINE vd vd_start(int32_t z) {
  (void)z;
  return (vd){_mm256_setzero_si256(), _mm256_setzero_si256()};
}
RUNG_INLINE vd vd_dot(vd d, vb w, va a, int bits) {
  const __m256i pair =
      bits < 8 ? _mm256_maddubs_epi16(w, a) : _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
  d.pairs = _mm256_add_epi16(d.pairs, pair);
  KEEP_ORDER(d.pairs);
  return d;
}
RUNG_INLINE vd vd_fold(vd d) {
  d.sums = _mm256_add_epi32(d.sums, _mm256_madd_epi16(d.pairs, _mm256_set1_epi16(1)));
  KEEP_ORDER(d.sums);
  d.pairs = _mm256_setzero_si256();
  return d;
}
RUNG_INLINE vi vd_end(vd d, int32_t z) { return _mm256_add_epi32(vd_fold(d).sums, _mm256_set1_epi32(z)); }

/* 5 x 2 vectors of pairs, two of levels and an activation fit 16 registers; results, touched once a run, do not. Against
 * 6 x 1, whose results would, an activation is broadcast for two vectors instead of one; against 4 x 2 unpacking serves
 * more rows; 6 x 2 leaves no register for masks. */
enum { A8_ROWS = 5, A8_VECTORS = 2, A8_PANELS = 2, A8_AHEAD = 4096, A8_GRAIN = 200000 };
#define A8_TILE_NAME "5x16"
#define A8_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5)

enum { F32_ROWS = 6, F32_VECTORS = 2, F32_PANELS = 1, F32_GRAIN = 50000 };
#define F32_TILE_NAME "6x16"
#define F32_FEW_TILE_NAME "4x16"
#define F32_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

#endif
