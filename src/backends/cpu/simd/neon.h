/* SPDX-License-Identifier: MIT
 * Vocabulary of level neon (see avx512.h, which explains the words). */
#ifndef RUNG_CPU_SIMD_NEON_H
#define RUNG_CPU_SIMD_NEON_H

#include <arm_neon.h>

#include "backends/cpu/simd/common.h"

enum { VF = 4 };
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;

/* ---- floats */
RUNG_INLINE vf vf_zero(void) { return vdupq_n_f32(0); }
RUNG_INLINE vf vf_set1(float x) { return vdupq_n_f32(x); }
RUNG_INLINE vf vf_load(const float *p) { return vld1q_f32(p); }
RUNG_INLINE vf vf_load_any(const uint8_t *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
RUNG_INLINE void vf_store(float *p, vf v) { vst1q_f32(p, v); }
RUNG_INLINE vm vm_first(int64_t n) {
  static const uint32_t lane[4] = {0, 1, 2, 3};
  return vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
}
RUNG_INLINE vf vf_load_part(const float *p, int64_t n) {
  float lane[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < n; i++) lane[i] = p[i];
  return vld1q_f32(lane);
}
RUNG_INLINE void vf_store_part(float *p, int64_t n, vf v) {
  float lane[4];
  vst1q_f32(lane, v);
  for (int64_t i = 0; i < n; i++) p[i] = lane[i];
}
RUNG_INLINE vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
RUNG_INLINE vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
RUNG_INLINE vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
RUNG_INLINE vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
RUNG_INLINE vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
RUNG_INLINE vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
RUNG_INLINE vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
RUNG_INLINE vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
RUNG_INLINE vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
RUNG_INLINE vf vf_abs(vf a) { return vabsq_f32(a); }
RUNG_INLINE vf vf_round(vf a) { return vrndnq_f32(a); }
RUNG_INLINE vf vf_from_vi(vi a) { return vcvtq_f32_s32(a); }
RUNG_INLINE vi vi_from_vf(vf a) { return vcvtnq_s32_f32(a); }
RUNG_INLINE vf vf_load_f16(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)p))); }
RUNG_INLINE void vf_store_f16(void *p, vf v) { vst1_u16((uint16_t *)p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }
RUNG_INLINE vf vf_load_bf16(const void *p) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16((const uint16_t *)p)), 16));
}

/* ---- integers */
RUNG_INLINE vi vi_zero(void) { return vdupq_n_s32(0); }
RUNG_INLINE vi vi_set1(int32_t x) { return vdupq_n_s32(x); }
RUNG_INLINE vi vi_load(const void *p) { return vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p)); }
RUNG_INLINE void vi_store(void *p, vi v) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_s32(v)); }
RUNG_INLINE vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
RUNG_INLINE vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
RUNG_INLINE vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
RUNG_INLINE vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
RUNG_INLINE vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
RUNG_INLINE vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
RUNG_INLINE vi vi_shl(vi a, int n) { return vshlq_s32(a, vdupq_n_s32(n)); }
RUNG_INLINE vi vi_shr(vi a, int n) {
  return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-n)));
}
RUNG_INLINE vi vi_load_u8(const void *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}
RUNG_INLINE vi vi_load_i8(const void *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(word)));
  return vmovl_s16(vget_low_s16(wide));
}
RUNG_INLINE void vi_store_u16(void *p, vi v) {
  vst1_u16((uint16_t *)p, vmovn_u32(vreinterpretq_u32_s32(v)));
} /* 0 .. 65,535 */
RUNG_INLINE void vi_store_i8(void *p, vi v) {
  const int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(v), vdup_n_s16(0)));
  const uint32_t word = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);
  memcpy(p, &word, sizeof word);
}
RUNG_INLINE vi vi_bits(vf a) { return vreinterpretq_s32_f32(a); }
RUNG_INLINE vf vf_bits(vi a) { return vreinterpretq_f32_s32(a); }

RUNG_INLINE vi vi_dot16(vi sum, vi a, vi b) {
  const int16x8_t u = vreinterpretq_s16_s32(a), v = vreinterpretq_s16_s32(b);
  return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(u), vget_low_s16(v)), vmull_high_s16(u, v)));
}

/* ---- conditions */
RUNG_INLINE vm vm_less(vf a, vf b) { return vcltq_f32(a, b); }
RUNG_INLINE vm vm_less_equal(vf a, vf b) { return vcleq_f32(a, b); }
RUNG_INLINE vm vm_equal(vf a, vf b) { return vceqq_f32(a, b); }
RUNG_INLINE vm vm_nan(vf a) { return vmvnq_u32(vceqq_f32(a, a)); }
RUNG_INLINE vm vm_or(vm a, vm b) { return vorrq_u32(a, b); }
RUNG_INLINE vm vm_and(vm a, vm b) { return vandq_u32(a, b); }
RUNG_INLINE bool vm_any(vm a) { return vmaxvq_u32(a) != 0; }
RUNG_INLINE vf vf_select(vm m, vf yes, vf no) { return vbslq_f32(m, yes, no); }
RUNG_INLINE vi vi_select(vm m, vi yes, vi no) { return vbslq_s32(m, yes, no); }

/* ---- across lanes: 0 with 2, 1 with 3, then the two */
RUNG_INLINE float vf_sum(vf a) {
  const float32x2_t d = vadd_f32(vget_low_f32(a), vget_high_f32(a));
  return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
RUNG_INLINE float vf_largest(vf a) { return vmaxvq_f32(a); }
RUNG_INLINE int32_t vi_sum(vi a) { return vaddvq_s32(a); }
RUNG_INLINE int32_t vi_largest(vi a) { return vmaxvq_s32(a); }
RUNG_INLINE int32_t v_sum16(const int8_t *p) { return vaddlvq_s8(vld1q_s8(p)); }

RUNG_INLINE void v_prefetch(const void *p) { __builtin_prefetch(p); }
RUNG_INLINE void v_prefetch_second(const void *p) { __builtin_prefetch(p, 0, 2); }

#endif
