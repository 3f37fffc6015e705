/* SPDX-License-Identifier: MIT
 * Blocks of a8 in levels avx2 and avx512. Four are made at once: what a block alone does one after the other (the
 * largest of its numbers, two divisions, two sums) is done for four in the lanes of one vector: the same operations on
 * every number, so the same bytes, in half the time (docs/kernels.md). */
#ifndef RUNG_CPU_SIMD_QUANTIZE_X86_H
#define RUNG_CPU_SIMD_QUANTIZE_X86_H

#include <float.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "ir/type.h"

#define RUNG_CPU_SIMD_QUANTIZE

/* The sum of 16 signed bytes. */
RUNG_INLINE int32_t v_sum16(const int8_t *p) {
  const __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8(-128));
  const __m128i halves = _mm_sad_epu8(bytes, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves))) - 16 * 128;
}

/* Magnitudes of a block, as integers: the largest of each of eight columns. */
RUNG_INLINE __m256i four_reach(const float *x) {
  const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
  __m256i v[4];
  for (int i = 0; i < 4; i++) v[i] = _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)), magnitude);
  return _mm256_max_epi32(_mm256_max_epi32(v[0], v[1]), _mm256_max_epi32(v[2], v[3]));
}

/* Of two vectors: lane by lane the larger of what two columns hold, side by side. */
RUNG_INLINE __m256i four_max_32(__m256i a, __m256i b) {
  return _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
RUNG_INLINE __m256i four_add_64(__m256i a, __m256i b) {
  return _mm256_add_epi64(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* The levels of a block; returns the sums of 8 and 8 of them, each plus 8 times 128. */
RUNG_INLINE __m256i four_levels(const float *x, __m256 inverse, rung_a8 *out) {
  __m256i q[4];
  for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* packing works in halves */
  const __m256i levels = _mm256_permutevar8x32_epi32(bytes, order);
  _mm256_storeu_si256((__m256i *)(void *)out->q, levels);
  return _mm256_sad_epu8(_mm256_xor_si256(levels, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
}

/* The scales of four blocks and what levels are multiplied by; false: one of them has no finite scale. */
RUNG_INLINE bool four_scales(const float *x, float *scale, float *inverse) {
  const __m256i ab = four_max_32(four_reach(x), four_reach(x + 32));
  const __m256i cd = four_max_32(four_reach(x + 64), four_reach(x + 96));
  const __m256i both = _mm256_max_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
  const __m128i reach = _mm_max_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const __m128 s = _mm_div_ps(_mm_castsi128_ps(reach), _mm_set1_ps(127.0f));
  const __m128 finite = _mm_and_ps(_mm_cmpge_ps(s, _mm_set1_ps(FLT_MIN)), _mm_cmple_ps(s, _mm_set1_ps(FLT_MAX)));
  _mm_storeu_ps(scale, s);
  _mm_storeu_ps(inverse, _mm_div_ps(_mm_set1_ps(1.0f), s));
  return _mm_movemask_ps(finite) == 15;
}

/* Four blocks whose scales are known. */
RUNG_INLINE void four_blocks(const float *x, const float *scale, const float *inverse, rung_a8 *out) {
  __m256i sum[4];
  for (int b = 0; b < 4; b++) sum[b] = four_levels(x + 32 * b, _mm256_broadcast_ss(inverse + b), out + b);
  const __m256i sums_ab = four_add_64(sum[0], sum[1]), sums_cd = four_add_64(sum[2], sum[3]);
  const __m256i added = _mm256_set1_epi64x(16 * 128);
  const __m256i low = _mm256_sub_epi64(_mm256_permute2x128_si256(sums_ab, sums_cd, 0x20), added);
  const __m256i high = _mm256_sub_epi64(_mm256_permute2x128_si256(sums_ab, sums_cd, 0x31), added);
  /* scale, sum_low and sum_high of a block are eight bytes side by side, written as what may be of any type. */
  const __m256i sums = _mm256_or_si256(_mm256_srli_epi64(_mm256_slli_epi64(low, 48), 16), _mm256_slli_epi64(high, 48));
  const __m256i tail = _mm256_or_si256(_mm256_cvtepu32_epi64(_mm_castps_si128(_mm_loadu_ps(scale))), sums);
  const __m128i first = _mm256_castsi256_si128(tail), second = _mm256_extracti128_si256(tail, 1);
  _mm_storel_epi64((__m128i *)(void *)&out[0].scale, first);
  _mm_storeh_pi((__m64 *)(void *)&out[1].scale, _mm_castsi128_ps(first));
  _mm_storel_epi64((__m128i *)(void *)&out[2].scale, second);
  _mm_storeh_pi((__m64 *)(void *)&out[3].scale, _mm_castsi128_ps(second));
}

/* The first `count` blocks, a multiple of four, at most QUANTIZE_AT_ONCE; false: one of them has no finite scale, and
 * nothing is written. All scales come first: the divisions of the next four blocks then do not wait for the levels of
 * these. */
enum { QUANTIZE_AT_ONCE = 32 };
RUNG_INLINE bool v_quantize(const float *x, rung_a8 *out, int64_t count) {
  float scale[QUANTIZE_AT_ONCE], inverse[QUANTIZE_AT_ONCE];
  bool finite = true;
  for (int64_t b = 0; b < count; b += 4) finite &= four_scales(x + 32 * b, scale + b, inverse + b);
  if (RUNG_UNLIKELY(!finite)) return false;
  for (int64_t b = 0; b < count; b += 4) four_blocks(x + 32 * b, scale + b, inverse + b, out + b);
  return true;
}

#endif
