/* SPDX-License-Identifier: MIT
 * Vocabulary of level avx2 (see avx512.h, which explains the words). */
#ifndef RUNG_CPU_SIMD_AVX2_H
#define RUNG_CPU_SIMD_AVX2_H

#include <immintrin.h>

#include "backends/cpu/simd/common.h"
#include "backends/cpu/simd/quantize_x86.h"

enum { VF = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm; /* a lane of all ones or all zeros */

/* ---- floats */
RUNG_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
RUNG_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
RUNG_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
RUNG_INLINE vf vf_load_any(const uint8_t *p) { return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)p)); }
RUNG_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
RUNG_INLINE vm vm_first(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
}
RUNG_INLINE vf vf_load_part(const float *p, int64_t n) {
  return _mm256_maskload_ps(p, _mm256_castps_si256(vm_first(n)));
}
RUNG_INLINE void vf_store_part(float *p, int64_t n, vf v) {
  _mm256_maskstore_ps(p, _mm256_castps_si256(vm_first(n)), v);
}
RUNG_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
RUNG_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
RUNG_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
RUNG_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
RUNG_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
RUNG_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
RUNG_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
RUNG_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
RUNG_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
RUNG_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
RUNG_INLINE vf vf_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RUNG_INLINE vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps(a); }
RUNG_INLINE vi vi_from_vf(vf a) { return _mm256_cvtps_epi32(a); }
RUNG_INLINE vf vf_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
RUNG_INLINE void vf_store_f16(void *p, vf v) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
RUNG_INLINE vf vf_load_bf16(const void *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

/* ---- integers */
RUNG_INLINE vi vi_zero(void) { return _mm256_setzero_si256(); }
RUNG_INLINE vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
RUNG_INLINE vi vi_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
RUNG_INLINE void vi_store(void *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }
RUNG_INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
RUNG_INLINE vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
RUNG_INLINE vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
RUNG_INLINE vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
RUNG_INLINE vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
RUNG_INLINE vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
RUNG_INLINE vi vi_shl(vi a, int n) { return _mm256_slli_epi32(a, n); }
RUNG_INLINE vi vi_shr(vi a, int n) { return _mm256_srli_epi32(a, n); }
RUNG_INLINE vi vi_load_u8(const void *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
RUNG_INLINE vi vi_load_i8(const void *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
RUNG_INLINE void vi_store_u16(void *p, vi v) { /* 0 .. 65,535 */
  const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
  _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(pairs));
}
RUNG_INLINE void vi_store_i8(void *p, vi v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}
RUNG_INLINE vi vi_bits(vf a) { return _mm256_castps_si256(a); }
RUNG_INLINE vf vf_bits(vi a) { return _mm256_castsi256_ps(a); }

RUNG_INLINE vi vi_dot16(vi sum, vi a, vi b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }

/* ---- conditions */
RUNG_INLINE vm vm_less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
RUNG_INLINE vm vm_less_equal(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
RUNG_INLINE vm vm_equal(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
RUNG_INLINE vm vm_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
RUNG_INLINE vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
RUNG_INLINE vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
RUNG_INLINE bool vm_any(vm a) { return _mm256_movemask_ps(a) != 0; }
RUNG_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
RUNG_INLINE vi vi_select(vm m, vi yes, vi no) { return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(m)); }

/* ---- across lanes */
RUNG_INLINE float vf_sum(vf a) {
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
RUNG_INLINE float vf_largest(vf a) {
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
RUNG_INLINE int32_t vi_sum(vi a) {
  const __m128i q = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  const __m128i d = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}
RUNG_INLINE int32_t vi_largest(vi a) {
  const __m128i q = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  const __m128i d = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}

RUNG_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
RUNG_INLINE void v_prefetch_second(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }

#endif
