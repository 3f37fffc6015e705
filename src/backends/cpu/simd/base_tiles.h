/* SPDX-License-Identifier: MIT
 * What matrix products need of level base (avx512_tiles.h explains the words): byte by byte, but for x86-64, which
 * always has products of 16-bit pairs. */
#ifndef RUNG_CPU_SIMD_BASE_TILES_H
#define RUNG_CPU_SIMD_BASE_TILES_H

#include "backends/cpu/simd/base.h"

typedef uint8_t vb __attribute__((vector_size(16)));

RUNG_INLINE vi vi_words(vb v) { return (vi)v; }
RUNG_INLINE vb vb_load(const uint8_t *p) {
  vb v;
  memcpy(&v, p, sizeof v);
  return v;
}
RUNG_INLINE vb vb_low(vb v) { return v & 15; }
RUNG_INLINE vb vb_high(vb v) { return v >> 4; }
RUNG_INLINE vb vb_fifth(vb level, vb h, int g) { return level | (vb)((h >> (uint8_t)g & 1) << 4); }
RUNG_INLINE vb vb_pair(vb level, vb h, int i) { return level | (vb)((h >> (uint8_t)(2 * i) & 3) << 4); }
enum { DOT_BYTE_OFFSET = 0 };
RUNG_INLINE vb vb_byte(vb v) { return v ^ 0x80; }

#define DOT_RUN(bits) 8
#if defined(__SSE2__)
#include <emmintrin.h>

typedef __m128i va; /* the four activations twice, 16 bits each */
typedef struct vd {
  __m128i low, high; /* columns 0, 1 and 2, 3: two sums of pairs each */
} vd;

RUNG_INLINE va va_load(const int8_t *p) {
  int32_t word;
  memcpy(&word, p, sizeof word);
  const __m128i bytes = _mm_cvtsi32_si128(word);
  const __m128i wide = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
  return _mm_unpacklo_epi64(wide, wide);
}
RUNG_INLINE vd vd_start(int32_t z) {
  (void)z;
  return (vd){_mm_setzero_si128(), _mm_setzero_si128()};
}
RUNG_INLINE vd vd_dot(vd d, vb w, va a, int bits) {
  const __m128i bytes = (__m128i)w, zero = _mm_setzero_si128();
  const __m128i low = bits < 8 ? _mm_unpacklo_epi8(bytes, zero) : _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
  const __m128i high = bits < 8 ? _mm_unpackhi_epi8(bytes, zero) : _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8);
  d.low = _mm_add_epi32(d.low, _mm_madd_epi16(low, a));
  d.high = _mm_add_epi32(d.high, _mm_madd_epi16(high, a));
  return d;
}
RUNG_INLINE vi vd_end(vd d, int32_t z) {
  const __m128 low = _mm_castsi128_ps(d.low), high = _mm_castsi128_ps(d.high);
  const __m128i first = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  const __m128i second = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
  return (vi)_mm_add_epi32(_mm_add_epi32(first, second), _mm_set1_epi32(z));
}
#else
typedef struct va {
  int8_t k[4];
} va;
typedef vi vd;

RUNG_INLINE va va_load(const int8_t *p) {
  va a;
  memcpy(a.k, p, sizeof a.k);
  return a;
}
RUNG_INLINE vd vd_start(int32_t z) { return vi_set1(z); }
/* The words' bytes one after another: each is moved to the top of its word and, signed, down again. */
RUNG_INLINE vd vd_dot(vd d, vb w, va a, int bits) {
  (void)bits;
  RUNG_EACH(t, 4) { d = d + ((vi)((rung_vu)w << (uint32_t)(24 - 8 * t)) >> 24) * (int32_t)a.k[t]; }
  return d;
}
RUNG_INLINE vi vd_end(vd d, int32_t z) {
  (void)z;
  return d;
}
#endif
RUNG_INLINE vd vd_fold(vd d) { return d; }

enum { A8_ROWS = 2, A8_VECTORS = 2, A8_PANELS = 2, A8_AHEAD = 0, A8_GRAIN = 10000 };
#define A8_TILE_NAME "2x8"
#define A8_CASES(CASE) CASE(1) CASE(2)

enum { F32_ROWS = 4, F32_VECTORS = 2, F32_PANELS = 1, F32_GRAIN = 10000 };
#define F32_TILE_NAME "4x8"
#define F32_FEW_TILE_NAME "4x8"
#define F32_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4)

#endif
