/* SPDX-License-Identifier: MIT
 * Vocabulary of level avx512: vectors of VF floats or 32-bit integers. All simd/<level>.h say the same words; kernels
 * are written in them once. Loads and stores need no alignment. */
#ifndef RUNG_CPU_SIMD_AVX512_H
#define RUNG_CPU_SIMD_AVX512_H

#include <immintrin.h>

#include "backends/cpu/simd/common.h"
#include "backends/cpu/simd/quantize_x86.h"

enum { VF = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm; /* one condition per lane */

/* ---- floats */
RUNG_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
RUNG_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
RUNG_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
RUNG_INLINE vf vf_load_any(const uint8_t *p) { return _mm512_loadu_ps(p); }
RUNG_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
/* The first n < VF lanes; the others read as zero and are not written. */
RUNG_INLINE vm vm_first(int64_t n) { return (vm)((1u << n) - 1); }
RUNG_INLINE vf vf_load_part(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
RUNG_INLINE void vf_store_part(float *p, int64_t n, vf v) { _mm512_mask_storeu_ps(p, vm_first(n), v); }
RUNG_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
RUNG_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
RUNG_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
RUNG_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
RUNG_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
/* a * b + c and c - a * b, rounded once where the level has fused instructions. */
RUNG_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
RUNG_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
/* b where either is NaN. */
RUNG_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
RUNG_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
RUNG_INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
/* To the nearest whole number, ties to even. */
RUNG_INLINE vf vf_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RUNG_INLINE vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
RUNG_INLINE vi vi_from_vf(vf a) { return _mm512_cvtps_epi32(a); } /* nearest, ties to even; must fit */
RUNG_INLINE vf vf_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
RUNG_INLINE void vf_store_f16(void *p, vf v) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
RUNG_INLINE vf vf_load_bf16(const void *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

/* ---- integers */
RUNG_INLINE vi vi_zero(void) { return _mm512_setzero_si512(); }
RUNG_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
RUNG_INLINE vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
RUNG_INLINE void vi_store(void *p, vi v) { _mm512_storeu_si512(p, v); }
RUNG_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
RUNG_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
RUNG_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
RUNG_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
RUNG_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
RUNG_INLINE vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
RUNG_INLINE vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
RUNG_INLINE vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); } /* zeros come in */
RUNG_INLINE vi vi_load_u8(const void *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
RUNG_INLINE vi vi_load_i8(const void *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
/* VF numbers of [-128, 127] as bytes. */
RUNG_INLINE void vi_store_u16(void *p, vi v) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v));
} /* 0 .. 65,535 */
RUNG_INLINE void vi_store_i8(void *p, vi v) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v)); }
/* The same bits. */
RUNG_INLINE vi vi_bits(vf a) { return _mm512_castps_si512(a); }
RUNG_INLINE vf vf_bits(vi a) { return _mm512_castsi512_ps(a); }

/* sum + the products of the two 16-bit numbers of each lane, added in 32 bits, which wrap. */
RUNG_INLINE vi vi_dot16(vi sum, vi a, vi b) { return _mm512_dpwssd_epi32(sum, a, b); }

/* ---- conditions */
RUNG_INLINE vm vm_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
RUNG_INLINE vm vm_less_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
RUNG_INLINE vm vm_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
RUNG_INLINE vm vm_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
RUNG_INLINE vm vm_or(vm a, vm b) { return (vm)(a | b); }
RUNG_INLINE vm vm_and(vm a, vm b) { return (vm)(a & b); }
RUNG_INLINE bool vm_any(vm a) { return a != 0; }
RUNG_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
RUNG_INLINE vi vi_select(vm m, vi yes, vi no) { return _mm512_mask_blend_epi32(m, no, yes); }

/* ---- across lanes, in one fixed tree: lane i with lane i + VF / 2, and so on */
RUNG_INLINE float vf_sum(vf a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
RUNG_INLINE float vf_largest(vf a) { return _mm512_reduce_max_ps(a); } /* no NaN among them */
RUNG_INLINE int32_t vi_sum(vi a) { return _mm512_reduce_add_epi32(a); }
RUNG_INLINE int32_t vi_largest(vi a) { return _mm512_reduce_max_epi32(a); }

/* ---- pairs of bf16, one above the other in 32 bits. Levels that multiply them define RUNG_CPU_SIMD_PAIRS. */
#define RUNG_CPU_SIMD_PAIRS
/* 2 VF numbers in order, rounded to nearest. */
RUNG_INLINE vi vi_narrow(vf first, vf second) { return (vi)_mm512_cvtne2ps_pbh(second, first); }
/* VF halves at `first`, then VF at `second`; NULL: zeros. */
RUNG_INLINE vi vi_halves(const uint16_t *first, const uint16_t *second) {
  const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)first));
  const __m256i high = second ? _mm256_loadu_si256((const __m256i *)second) : _mm256_setzero_si256();
  return _mm512_inserti64x4(low, high, 1);
}
/* Of 2 VF halves: those of the first VF below those of the second. */
RUNG_INLINE vi vi_pair(vi v) {
  static const uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), v);
}
/* sum + the products of the lower and of the upper halves. */
RUNG_INLINE vf vf_dot_pairs(vf sum, vi a, vi b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }

RUNG_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
RUNG_INLINE void v_prefetch_second(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }

#endif
