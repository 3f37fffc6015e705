/* SPDX-License-Identifier: MIT
 * Vocabulary of level base (see avx512.h, which explains the words): vectors of four as the compiler provides them on
 * any machine; a * b + c rounds twice. */
#ifndef RUNG_CPU_SIMD_BASE_H
#define RUNG_CPU_SIMD_BASE_H

#include <math.h>

#include "backends/cpu/simd/common.h"
#include "base/half.h"

enum { VF = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef vi vm; /* a lane of all ones or all zeros */
typedef uint32_t rung_vu __attribute__((vector_size(16)));

/* ---- floats */
RUNG_INLINE vf vf_set1(float x) { return (vf){x, x, x, x}; }
RUNG_INLINE vf vf_zero(void) { return vf_set1(0); }
RUNG_INLINE vf vf_load(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}
RUNG_INLINE vf vf_load_any(const uint8_t *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}
RUNG_INLINE void vf_store(float *p, vf v) { memcpy(p, &v, sizeof v); }
RUNG_INLINE vm vm_first(int64_t n) { return (vi){0, 1, 2, 3} < (int32_t)n; }
RUNG_INLINE vf vf_load_part(const float *p, int64_t n) {
  vf v = vf_zero();
  for (int64_t i = 0; i < n; i++) v[i] = p[i];
  return v;
}
RUNG_INLINE void vf_store_part(float *p, int64_t n, vf v) {
  for (int64_t i = 0; i < n; i++) p[i] = v[i];
}
RUNG_INLINE vf vf_add(vf a, vf b) { return a + b; }
RUNG_INLINE vf vf_sub(vf a, vf b) { return a - b; }
RUNG_INLINE vf vf_mul(vf a, vf b) { return a * b; }
RUNG_INLINE vf vf_div(vf a, vf b) { return a / b; }
RUNG_INLINE vf vf_sqrt(vf a) {
  for (int i = 0; i < VF; i++) a[i] = sqrtf(a[i]);
  return a;
}
RUNG_INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
RUNG_INLINE vf vf_fnma(vf a, vf b, vf c) { return c - a * b; }
RUNG_INLINE vi vi_bits(vf a) { return (vi)a; }
RUNG_INLINE vf vf_bits(vi a) { return (vf)a; }
RUNG_INLINE vi vi_set1(int32_t x) { return (vi){x, x, x, x}; }
RUNG_INLINE vi vi_select(vm m, vi yes, vi no) { return (yes & m) | (no & ~m); }
RUNG_INLINE vf vf_select(vm m, vf yes, vf no) { return (vf)vi_select(m, (vi)yes, (vi)no); }
RUNG_INLINE vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
RUNG_INLINE vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
RUNG_INLINE vf vf_abs(vf a) { return (vf)((vi)a & vi_set1(INT32_MAX)); }
RUNG_INLINE vf vf_from_vi(vi a) { return __builtin_convertvector(a, vf); }
/* Adding and taking away 1.5 * 2^23 with the sign's own direction rounds to whole numbers, ties to even; what is larger
 * has no fraction. */
RUNG_INLINE vf vf_round(vf a) {
  const vf magic = vf_set1(0x1.8p23f);
  return vf_select(vf_abs(a) < vf_set1(0x1p22f), (a + magic) - magic, a);
}
RUNG_INLINE vi vi_from_vf(vf a) { return __builtin_convertvector(vf_round(a), vi); }
/* Exponent and mantissa move to their places and the exponent's bias is made up for: once for normal numbers, twice for
 * infinity and NaN; subnormal ones get the exponent of 2^-14, which is taken away again. All of it in normal numbers,
 * so that flushing denormals changes nothing. */
RUNG_INLINE vf vf_load_f16(const void *p) {
  uint16_t h[4];
  memcpy(h, p, sizeof h);
  const vi bits = {h[0], h[1], h[2], h[3]};
  const vi bias = vi_set1(112 << 23), low = (bits & 0x7fff) << 13, sign = (bits & 0x8000) << 16;
  const vi huge = low >= (0x7c00 << 13), tiny = low < (0x0400 << 13);
  const vi normal = low + bias + (huge & bias);
  const vf subnormal = (vf)(low + bias + (1 << 23)) - vf_set1(0x1p-14f);
  return (vf)(vi_select(tiny, (vi)subnormal, normal) | sign);
}
RUNG_INLINE void vf_store_f16(void *p, vf v) {
  const uint16_t h[4] = {rung_f16_from_f32(v[0]), rung_f16_from_f32(v[1]), rung_f16_from_f32(v[2]),
                         rung_f16_from_f32(v[3])};
  memcpy(p, h, sizeof h);
}
RUNG_INLINE vf vf_load_bf16(const void *p) {
  uint16_t h[4];
  memcpy(h, p, sizeof h);
  return (vf)((vi){h[0], h[1], h[2], h[3]} << 16);
}

/* ---- integers */
RUNG_INLINE vi vi_zero(void) { return vi_set1(0); }
RUNG_INLINE vi vi_load(const void *p) {
  vi v;
  memcpy(&v, p, sizeof v);
  return v;
}
RUNG_INLINE void vi_store(void *p, vi v) { memcpy(p, &v, sizeof v); }
RUNG_INLINE vi vi_add(vi a, vi b) { return (vi)((rung_vu)a + (rung_vu)b); }
RUNG_INLINE vi vi_sub(vi a, vi b) { return (vi)((rung_vu)a - (rung_vu)b); }
RUNG_INLINE vi vi_and(vi a, vi b) { return a & b; }
RUNG_INLINE vi vi_or(vi a, vi b) { return a | b; }
RUNG_INLINE vi vi_xor(vi a, vi b) { return a ^ b; }
RUNG_INLINE vi vi_max(vi a, vi b) { return vi_select(a > b, a, b); }
RUNG_INLINE vi vi_shl(vi a, int n) { return (vi)((rung_vu)a << (uint32_t)n); }
RUNG_INLINE vi vi_shr(vi a, int n) { return (vi)((rung_vu)a >> (uint32_t)n); }
RUNG_INLINE vi vi_load_u8(const void *p) {
  const uint8_t *b = (const uint8_t *)p;
  return (vi){b[0], b[1], b[2], b[3]};
}
RUNG_INLINE vi vi_load_i8(const void *p) {
  const int8_t *b = (const int8_t *)p;
  return (vi){b[0], b[1], b[2], b[3]};
}

RUNG_INLINE void vi_store_u16(void *p, vi v) { /* 0 .. 65,535 */
  uint16_t *to = (uint16_t *)p;
  for (int i = 0; i < 4; i++) to[i] = (uint16_t)v[i];
}
RUNG_INLINE void vi_store_i8(void *p, vi v) {
  for (int i = 0; i < VF; i++) ((int8_t *)p)[i] = (int8_t)v[i];
}

RUNG_INLINE vi vi_dot16(vi sum, vi a, vi b) {
  const rung_vu low = (rung_vu)((a << 16) >> 16) * (rung_vu)((b << 16) >> 16);
  return (vi)((rung_vu)sum + low + (rung_vu)(a >> 16) * (rung_vu)(b >> 16));
}

/* ---- conditions */
RUNG_INLINE vm vm_less(vf a, vf b) { return a < b; }
RUNG_INLINE vm vm_less_equal(vf a, vf b) { return a <= b; }
RUNG_INLINE vm vm_equal(vf a, vf b) { return a == b; }
RUNG_INLINE vm vm_nan(vf a) { return a != a; }
RUNG_INLINE vm vm_or(vm a, vm b) { return a | b; }
RUNG_INLINE vm vm_and(vm a, vm b) { return a & b; }
RUNG_INLINE bool vm_any(vm a) { return (a[0] | a[1] | a[2] | a[3]) != 0; }

/* ---- across lanes: 0 with 2, 1 with 3, then the two */
RUNG_INLINE float vf_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
RUNG_INLINE float vf_largest(vf a) {
  const float low = a[0] > a[1] ? a[0] : a[1], high = a[2] > a[3] ? a[2] : a[3];
  return low > high ? low : high;
}
RUNG_INLINE int32_t vi_sum(vi a) { return a[0] + a[1] + a[2] + a[3]; }
RUNG_INLINE int32_t vi_largest(vi a) {
  const int32_t low = a[0] > a[1] ? a[0] : a[1], high = a[2] > a[3] ? a[2] : a[3];
  return low > high ? low : high;
}
RUNG_INLINE int32_t v_sum16(const int8_t *p) {
  int32_t sum = 0;
  for (int i = 0; i < 16; i++) sum += p[i];
  return sum;
}

RUNG_INLINE void v_prefetch(const void *p) { __builtin_prefetch(p); }
RUNG_INLINE void v_prefetch_second(const void *p) { __builtin_prefetch(p, 0, 2); }

#endif
