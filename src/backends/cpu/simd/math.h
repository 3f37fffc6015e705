/* SPDX-License-Identifier: MIT
 * Elementary functions of vectors, written once in the vocabulary of simd/<level>.h, which must have been included.
 *
 * Arguments are reduced to an interval around zero by exact steps, where a polynomial is within 2^-24 of the function
 * (minimax fits, coefficients rounded one after another); the rest undoes the reduction. Relative errors stay below
 * about four units in the last place. NaN gives NaN, infinities and what overflows give what the C functions give;
 * results below the smallest normal number may be zero. Where a level has no fused multiplication the products that
 * must be exact are short enough to be. */
#ifndef RUNG_CPU_SIMD_MATH_H
#define RUNG_CPU_SIMD_MATH_H

#include <math.h>

#include "backends/cpu/simd/common.h"

/* ---- words that each level says in its own way */

#if defined(RUNG_CPU_SIMD_AVX512_H)
RUNG_INLINE vm vm_not(vm a) { return (vm)~a; }
RUNG_INLINE vf vf_swap_pairs(vf a) { return _mm512_permute_ps(a, 0xb1); }
RUNG_INLINE vf vf_load_twice(const float *p) {
  const __m512i order = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return _mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
#elif defined(RUNG_CPU_SIMD_AVX2_H)
RUNG_INLINE vm vm_not(vm a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
RUNG_INLINE vf vf_swap_pairs(vf a) { return _mm256_permute_ps(a, 0xb1); }
RUNG_INLINE vf vf_load_twice(const float *p) {
  const __m256i order = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
  return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), order);
}
#elif defined(RUNG_CPU_SIMD_NEON_H)
RUNG_INLINE vm vm_not(vm a) { return vmvnq_u32(a); }
RUNG_INLINE vf vf_swap_pairs(vf a) { return vrev64q_f32(a); }
RUNG_INLINE vf vf_load_twice(const float *p) {
  const float32x2_t v = vld1_f32(p);
  return vcombine_f32(vdup_lane_f32(v, 0), vdup_lane_f32(v, 1));
}
#else
RUNG_INLINE vm vm_not(vm a) { return ~a; }
/* Lanes 0 and 1 exchanged, 2 and 3, and so on. */
RUNG_INLINE vf vf_swap_pairs(vf a) { return (vf){a[1], a[0], a[3], a[2]}; }
/* VF / 2 numbers, each in two lanes. */
RUNG_INLINE vf vf_load_twice(const float *p) { return (vf){p[0], p[0], p[1], p[1]}; }
#endif

/* p * 2^n for whole n in [-150, 128] and p in [1/2, 2]. Two factors, each a normal number: n / 2 rounded down and the
 * rest. */
#if defined(RUNG_CPU_SIMD_AVX512_H)
RUNG_INLINE vf vf_scale(vf p, vf n) { return _mm512_scalef_ps(p, n); }
#else
RUNG_INLINE vf vf_scale(vf p, vf n) {
  const vi biased = vi_add(vi_from_vf(n), vi_set1(2 * 127));
  const vi half = vi_shr(biased, 1);
  return vf_mul(vf_mul(p, vf_bits(vi_shl(half, 23))), vf_bits(vi_shl(vi_sub(biased, half), 23)));
}
#endif

/* ---- signs and rounding */

RUNG_INLINE vi vi_sign(vf a) { return vi_and(vi_bits(a), vi_set1(INT32_MIN)); }
RUNG_INLINE vf vf_neg(vf a) { return vf_bits(vi_xor(vi_bits(a), vi_set1(INT32_MIN))); }
RUNG_INLINE vf vf_with_sign(vf magnitude, vf sign) { return vf_bits(vi_or(vi_bits(magnitude), vi_sign(sign))); }
RUNG_INLINE vf vf_sign(vf x) {
  const vf one = vf_set1(1);
  return vf_select(vm_less(vf_zero(), x), one, vf_select(vm_less(x, vf_zero()), vf_set1(-1), x));
}
/* Whole numbers. From 2^22 on, where a level's vf_round need not know better, adding 2^23 to the magnitude rounds. */
RUNG_INLINE vf vf_nearest(vf x) {
  const vf a = vf_abs(x), big = vf_set1(0x1p23f);
  const vf large = vf_select(vm_less(a, big), vf_sub(vf_add(a, big), big), a);
  return vf_with_sign(vf_select(vm_less(a, vf_set1(0x1p21f)), vf_abs(vf_round(x)), large), x);
}
RUNG_INLINE vf vf_floor(vf x) {
  const vf r = vf_nearest(x);
  return vf_select(vm_less(x, r), vf_sub(r, vf_set1(1)), r);
}
RUNG_INLINE vf vf_ceil(vf x) {
  const vf r = vf_nearest(x);
  return vf_with_sign(vf_abs(vf_select(vm_less(r, x), vf_add(r, vf_set1(1)), r)), x);
}
RUNG_INLINE vf vf_trunc(vf x) { return vf_with_sign(vf_floor(vf_abs(x)), x); }
/* NaN if either is; of equal numbers the second. */
RUNG_INLINE vf vf_max_nan(vf a, vf b) { return vf_select(vm_nan(a), a, vf_max(a, b)); }
RUNG_INLINE vf vf_min_nan(vf a, vf b) { return vf_select(vm_nan(a), a, vf_min(a, b)); }

/* ---- exponentials. With n whole and |r| <= log(2) / 2: exp(x) = 2^n exp(r), exp(r) = 1 + r + r^2 q(r). */

RUNG_INLINE vf vf_exp_rest(vf x, vf n) {
  return vf_fnma(n, vf_set1(0x1.7f7d1cp-20f), vf_fnma(n, vf_set1(0x1.62e4p-1f), x));
}
RUNG_INLINE vf vf_expm1_small(vf r) { /* r + r^2 q(r) */
  vf q = vf_set1(0x1.6abbccp-10f);
  q = vf_fma(q, r, vf_set1(0x1.123d96p-7f));
  q = vf_fma(q, r, vf_set1(0x1.55585ap-5f));
  q = vf_fma(q, r, vf_set1(0x1.55548cp-3f));
  q = vf_fma(q, r, vf_set1(0x1.fffffcp-2f));
  return vf_fma(vf_mul(r, r), q, r);
}
RUNG_INLINE vf vf_exp(vf x) {
  /* Constants first: a NaN comes through as the second operand. */
  const vf y = vf_min(vf_set1(89), vf_max(vf_set1(-104), x));
  const vf n = vf_round(vf_mul(y, vf_set1(0x1.715476p0f)));
  return vf_scale(vf_add(vf_expm1_small(vf_exp_rest(y, n)), vf_set1(1)), n);
}
/* 2^y for y <= 0, so that nothing overflows; 0 for minus infinity and what lies below the smallest normal number. With
 * n whole and |f| <= 1/2: 2^y = 2^n (1 + f p(f)). */
RUNG_INLINE vf vf_exp2_small(vf f) {
  vf p = vf_set1(0x1.17350cp-13f);
  p = vf_fma(p, f, vf_set1(0x1.5eee10p-10f));
  p = vf_fma(p, f, vf_set1(0x1.3b680ap-7f));
  p = vf_fma(p, f, vf_set1(0x1.c6af9ep-5f));
  p = vf_fma(p, f, vf_set1(0x1.ebfb94p-3f));
  p = vf_fma(p, f, vf_set1(0x1.62e430p-1f));
  return vf_fma(p, f, vf_set1(1));
}
#if defined(RUNG_CPU_SIMD_AVX512_H)
/* Of an infinity the fraction is 0. */
RUNG_INLINE vf vf_exp2_below(vf y) {
  const vf f = _mm512_reduce_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return vf_scale(vf_exp2_small(f), vf_round(y));
}
/* The same within 2^-13, for what is rounded to bf16 next; exact where y is whole. */
RUNG_INLINE vf vf_exp2_coarse(vf y) {
  const vf f = _mm512_reduce_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  vf p = vf_set1(0x1.c2a20ep-5f);
  p = vf_fma(p, f, vf_set1(0x1.f00c4ep-3f));
  p = vf_fma(p, f, vf_set1(0x1.62f5fap-1f));
  return vf_scale(vf_fma(p, f, vf_set1(1)), vf_round(y));
}
#else
RUNG_INLINE vf vf_exp2_below(vf y) {
  const vf least = vf_set1(-126), z = vf_max(least, y), n = vf_round(z);
  const vf scale = vf_bits(vi_shl(vi_add(vi_from_vf(n), vi_set1(127)), 23));
  return vf_select(vm_less(y, least), vf_zero(), vf_mul(vf_exp2_small(vf_sub(z, n)), scale));
}
#endif
RUNG_INLINE vf vf_expm1(vf x) {
  const vf y = vf_min(vf_set1(20), vf_max(vf_set1(-20), x));
  const vf n = vf_round(vf_mul(y, vf_set1(0x1.715476p0f)));
  const vf scale = vf_scale(vf_set1(1), n);
  const vf near = vf_fma(scale, vf_expm1_small(vf_exp_rest(y, n)), vf_sub(scale, vf_set1(1)));
  const vf value = vf_select(vm_less(vf_set1(20), x), vf_exp(x), near);
  return vf_select(vm_equal(x, vf_zero()), x, value);
}
RUNG_INLINE vf vf_sinh(vf x) {
  const vf a = vf_abs(x), half = vf_set1(0.5f), e = vf_expm1(vf_min(vf_set1(10), a));
  const vf near = vf_mul(half, vf_add(e, vf_div(e, vf_add(e, vf_set1(1)))));
  const vf root = vf_exp(vf_mul(half, a)); /* exp(a) overflows before sinh(a) does */
  return vf_with_sign(vf_select(vm_less_equal(a, vf_set1(9)), near, vf_mul(vf_mul(half, root), root)), x);
}
RUNG_INLINE vf vf_cosh(vf x) {
  const vf half = vf_set1(0.5f), root = vf_exp(vf_mul(half, vf_abs(x)));
  return vf_add(vf_mul(vf_mul(half, root), root), vf_div(vf_div(half, root), root));
}
/* Near zero x + x^3 p(x^2), else 1 - 2 / (exp(2|x|) + 1). */
RUNG_INLINE vf vf_tanh(vf x) {
  const vf a = vf_abs(x), z = vf_mul(x, x), one = vf_set1(1);
  vf p = vf_set1(-0x1.992192p-8f);
  p = vf_fma(p, z, vf_set1(0x1.58e516p-6f));
  p = vf_fma(p, z, vf_set1(-0x1.b91e7ep-5f));
  p = vf_fma(p, z, vf_set1(0x1.110ceep-3f));
  p = vf_fma(p, z, vf_set1(-0x1.55554ap-2f));
  const vf small = vf_fma(vf_mul(x, z), p, x);
  const vf large = vf_sub(one, vf_div(vf_set1(2), vf_add(vf_exp(vf_add(a, a)), one)));
  return vf_select(vm_less(a, vf_set1(0.55f)), small, vf_with_sign(large, x));
}
RUNG_INLINE vf vf_sigmoid(vf x) {
  const vf one = vf_set1(1);
  return vf_div(one, vf_add(one, vf_exp(vf_neg(x))));
}

/* ---- logarithms. x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = f - f^2 / 2 + f^3 p(f). */

RUNG_INLINE vf vf_log(vf x) {
  const vi root_half = vi_set1(0x3f3504f3), bits = vi_bits(x);
  const vi e = vi_sub(vi_shr(vi_add(vi_sub(bits, root_half), vi_set1(128 << 23)), 23), vi_set1(128));
  const vf f = vf_sub(vf_bits(vi_sub(bits, vi_shl(e, 23))), vf_set1(1));
  const vf n = vf_from_vi(e), z = vf_mul(f, f);
  vf p = vf_set1(-0x1.3b53c4p-4f);
  p = vf_fma(p, f, vf_set1(0x1.05fdaap-3f));
  p = vf_fma(p, f, vf_set1(-0x1.0d8812p-3f));
  p = vf_fma(p, f, vf_set1(0x1.22d4d8p-3f));
  p = vf_fma(p, f, vf_set1(-0x1.5471acp-3f));
  p = vf_fma(p, f, vf_set1(0x1.99a034p-3f));
  p = vf_fma(p, f, vf_set1(-0x1.000228p-2f));
  p = vf_fma(p, f, vf_set1(0x1.555554p-2f));
  vf y = vf_mul(vf_mul(f, z), p);
  y = vf_fma(n, vf_set1(0x1.7f7d1cp-20f), y);
  y = vf_fnma(vf_set1(0.5f), z, y);
  y = vf_fma(n, vf_set1(0x1.62e4p-1f), vf_add(f, y));
  const vf infinity = vf_set1(HUGE_VALF);
  y = vf_select(vm_less(x, infinity), y, x); /* infinity, NaN */
  y = vf_select(vm_less(x, vf_zero()), vf_set1(NAN), y);
  return vf_select(vm_equal(x, vf_zero()), vf_neg(infinity), y);
}
/* log(1 + x) = log(u) x / (u - 1) with u = 1 + x as rounded: the quotient makes up for what u lost. */
RUNG_INLINE vf vf_log1p(vf x) {
  const vf one = vf_set1(1), u = vf_add(one, x), less = vf_sub(u, one);
  const vf y = vf_mul(vf_log(u), vf_div(x, less));
  const vm keep = vm_or(vm_equal(less, vf_zero()), vm_equal(x, vf_set1(HUGE_VALF)));
  return vf_select(keep, x, y);
}
RUNG_INLINE vf vf_asinh(vf x) {
  const vf a = vf_abs(x), one = vf_set1(1), z = vf_mul(a, a);
  const vf near = vf_log1p(vf_add(a, vf_div(z, vf_add(one, vf_sqrt(vf_add(z, one))))));
  const vf far = vf_add(vf_log(a), vf_set1(0x1.62e43p-1f));
  return vf_with_sign(vf_select(vm_less(a, vf_set1(1e9f)), near, far), x);
}
RUNG_INLINE vf vf_acosh(vf x) {
  const vf t = vf_sub(x, vf_set1(1));
  const vf near = vf_log1p(vf_add(t, vf_sqrt(vf_fma(t, t, vf_add(t, t)))));
  const vf far = vf_add(vf_log(x), vf_set1(0x1.62e43p-1f));
  return vf_select(vm_less(vf_set1(1e9f), x), far, near);
}
RUNG_INLINE vf vf_atanh(vf x) {
  const vf a = vf_abs(x);
  return vf_with_sign(vf_mul(vf_set1(0.5f), vf_log1p(vf_div(vf_add(a, a), vf_sub(vf_set1(1), a)))), x);
}

/* ---- error function. Small: x p(x^2). Else 1 - exp(-g(|x|)), g the polynomial nearest -log(erfc). */
RUNG_INLINE vf vf_erf(vf x) {
  const vf z = vf_mul(x, x), a = vf_min(vf_set1(4.1f), vf_abs(x));
  vf p = vf_set1(-0x1.17bf58p-11f);
  p = vf_fma(p, z, vf_set1(0x1.3e8ca4p-8f));
  p = vf_fma(p, z, vf_set1(-0x1.b502a4p-6f));
  p = vf_fma(p, z, vf_set1(0x1.cdfe2ep-4f));
  p = vf_fma(p, z, vf_set1(-0x1.812630p-2f));
  p = vf_fma(p, z, vf_set1(0x1.20dd74p+0f));
  vf g = vf_set1(0x1.5873ccp-16f);
  g = vf_fma(g, a, vf_set1(-0x1.c0c7c2p-12f));
  g = vf_fma(g, a, vf_set1(0x1.0f511ep-8f));
  g = vf_fma(g, a, vf_set1(-0x1.9a3a56p-6f));
  g = vf_fma(g, a, vf_set1(0x1.bb01c8p-4f));
  g = vf_fma(g, a, vf_set1(0x1.4454a8p-1f));
  g = vf_fma(g, a, vf_set1(0x1.212452p+0f));
  g = vf_fma(g, a, vf_set1(-0x1.56e30ep-13f));
  const vf large = vf_sub(vf_set1(1), vf_exp(vf_neg(g)));
  return vf_select(vm_less(a, vf_set1(0.9f)), vf_mul(x, p), vf_with_sign(large, x));
}

/* x times the normal distribution function, whose tail at t = |x| is 2^h(t), h a polynomial: no cancellation, one
 * exponential. Off by 3e-8 at most, and by 2^-19 of itself where it is above 1e-3; below -6.5 it is 0. */
RUNG_INLINE vf vf_gelu(vf x) {
  const vf most = vf_set1(6.5f), a = vf_abs(x), t = vf_min(most, a);
  vf h = vf_set1(0x1.727ce0p-22f);
  h = vf_fma(h, t, vf_set1(-0x1.d9299cp-18f));
  h = vf_fma(h, t, vf_set1(0x1.f3cbaap-15f));
  h = vf_fma(h, t, vf_set1(-0x1.eb1186p-13f));
  h = vf_fma(h, t, vf_set1(-0x1.4c2bc8p-14f));
  h = vf_fma(h, t, vf_set1(0x1.ccfb3ep-8f));
  h = vf_fma(h, t, vf_set1(-0x1.ae0fb4p-5f));
  h = vf_fma(h, t, vf_set1(-0x1.d6390cp-2f));
  h = vf_fma(h, t, vf_set1(-0x1.26aeeep+0f));
  h = vf_fma(h, t, vf_set1(-0x1.fffffep-1f));
  const vf tail = vf_select(vm_less(a, most), vf_exp2_below(h), vf_zero());
  return vf_mul(x, vf_select(vm_less(x, vf_zero()), tail, vf_sub(vf_set1(1), tail)));
}

/* ---- circular functions. x = n pi/2 + r, pi/2 in three parts of which the first two have 11 bits or fewer: exact
 * products for |n| < 2^13. */

enum { VF_TURN_LIMIT = 12000 };
typedef struct vf_turn {
  vf sine, cosine; /* of r */
  vi quarter;      /* n */
} vf_turn;
/* r within pi/4 or so. */
RUNG_INLINE vf vf_sin_small(vf r, vf z) {
  vf p = vf_set1(-0x1.991c32p-13f);
  p = vf_fma(p, z, vf_set1(0x1.1106c6p-7f));
  p = vf_fma(p, z, vf_set1(-0x1.555544p-3f));
  return vf_fma(vf_mul(r, z), p, r);
}
RUNG_INLINE vf vf_cos_small(vf z) {
  vf p = vf_set1(0x1.99de6ap-16f);
  p = vf_fma(p, z, vf_set1(-0x1.6c0c14p-10f));
  p = vf_fma(p, z, vf_set1(0x1.55554ap-5f));
  return vf_fma(vf_mul(z, z), p, vf_fnma(vf_set1(0.5f), z, vf_set1(1)));
}
RUNG_INLINE vf_turn vf_turn_of(vf x) {
  const vf n = vf_round(vf_mul(x, vf_set1(0x1.45f306p-1f)));
  vf r = vf_fnma(n, vf_set1(0x1.92p0f), x);
  r = vf_fnma(n, vf_set1(0x1.fb4p-12f), r);
  r = vf_fnma(n, vf_set1(0x1.4442d2p-24f), r);
  const vf z = vf_mul(r, r);
  return (vf_turn){vf_sin_small(r, z), vf_cos_small(z), vi_from_vf(n)};
}
RUNG_INLINE vm vm_odd(vi n) { return vm_less(vf_zero(), vf_from_vi(vi_and(n, vi_set1(1)))); }
/* The sine n quarter turns on. */
RUNG_INLINE vf vf_turn_sine(vf sine, vf cosine, vi n) {
  const vf value = vf_select(vm_odd(n), cosine, sine);
  return vf_bits(vi_xor(vi_bits(value), vi_shl(vi_and(n, vi_set1(2)), 30)));
}
/* Lane by lane, by the C library in double: what is rare, or has too many corners. */
RUNG_INLINE vf vf_by_lane(vf x, double (*f)(double)) {
  float lane[VF];
  vf_store(lane, x);
  for (int i = 0; i < VF; i++) lane[i] = (float)f((double)lane[i]);
  return vf_load(lane);
}
RUNG_INLINE vf vf_by_lane2(vf a, vf b, double (*f)(double, double)) {
  float x[VF], y[VF];
  vf_store(x, a);
  vf_store(y, b);
  for (int i = 0; i < VF; i++) x[i] = (float)f((double)x[i], (double)y[i]);
  return vf_load(x);
}
RUNG_INLINE bool vf_turns_far(vf x) { return vm_any(vm_less(vf_set1(VF_TURN_LIMIT), vf_abs(x))); }
RUNG_INLINE vf vf_sin(vf x) {
  if (RUNG_UNLIKELY(vf_turns_far(x))) return vf_by_lane(x, sin);
  const vf_turn t = vf_turn_of(x);
  return vf_turn_sine(t.sine, t.cosine, t.quarter);
}
RUNG_INLINE vf vf_cos(vf x) {
  if (RUNG_UNLIKELY(vf_turns_far(x))) return vf_by_lane(x, cos);
  const vf_turn t = vf_turn_of(x);
  return vf_turn_sine(t.sine, t.cosine, vi_add(t.quarter, vi_set1(1)));
}
RUNG_INLINE vf vf_tan(vf x) {
  if (RUNG_UNLIKELY(vf_turns_far(x))) return vf_by_lane(x, tan);
  const vf_turn t = vf_turn_of(x);
  const vm odd = vm_odd(t.quarter);
  return vf_div(vf_select(odd, vf_neg(t.cosine), t.sine), vf_select(odd, t.sine, t.cosine));
}
RUNG_INLINE vf vf_atan(vf x) {
  const vf a = vf_abs(x), one = vf_set1(1);
  const vm far = vm_less(vf_set1(2.41421356f), a), middle = vm_less(vf_set1(0.41421356f), a);
  const vf turned = vf_select(far, vf_div(vf_set1(-1), a), vf_div(vf_sub(a, one), vf_add(a, one)));
  const vf t = vf_select(middle, turned, a), z = vf_mul(t, t);
  const vf start = vf_select(far, vf_set1(0x1.921fb6p0f), vf_select(middle, vf_set1(0x1.921fb6p-1f), vf_zero()));
  vf p = vf_set1(-0x1.f2e1fep-5f);
  p = vf_fma(p, z, vf_set1(0x1.b223d6p-4f));
  p = vf_fma(p, z, vf_set1(-0x1.23b99ep-3f));
  p = vf_fma(p, z, vf_set1(0x1.9991e2p-3f));
  p = vf_fma(p, z, vf_set1(-0x1.55554ap-2f));
  return vf_with_sign(vf_add(start, vf_fma(vf_mul(t, z), p, t)), x);
}
RUNG_INLINE vf vf_asin_small(vf x, vf z) { /* |x| <= 1/2, z = x^2 */
  vf p = vf_set1(0x1.59f4b8p-5f);
  p = vf_fma(p, z, vf_set1(0x1.8b9276p-6f));
  p = vf_fma(p, z, vf_set1(0x1.748c66p-5f));
  p = vf_fma(p, z, vf_set1(0x1.330160p-4f));
  p = vf_fma(p, z, vf_set1(0x1.5555cap-3f));
  return vf_fma(vf_mul(x, z), p, x);
}
/* Beyond 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). */
RUNG_INLINE vf vf_asin(vf x) {
  const vf a = vf_abs(x), z = vf_mul(vf_set1(0.5f), vf_sub(vf_set1(1), a)), s = vf_sqrt(z);
  const vf part = vf_asin_small(s, z), large = vf_sub(vf_set1(0x1.921fb6p0f), vf_add(part, part));
  return vf_with_sign(vf_select(vm_less_equal(a, vf_set1(0.5f)), vf_asin_small(a, vf_mul(a, a)), large), x);
}
RUNG_INLINE vf vf_acos(vf x) {
  const vf a = vf_abs(x), z = vf_mul(vf_set1(0.5f), vf_sub(vf_set1(1), a)), s = vf_sqrt(z);
  const vf part = vf_asin_small(s, z), twice = vf_add(part, part);
  const vf large = vf_select(vm_less(x, vf_zero()), vf_sub(vf_set1(0x1.921fb6p1f), twice), twice);
  const vf small = vf_sub(vf_set1(0x1.921fb6p0f), vf_asin_small(x, vf_mul(x, x)));
  return vf_select(vm_less_equal(a, vf_set1(0.5f)), small, large);
}

/* ---- two operands */
RUNG_INLINE vf vf_pow(vf a, vf b) {
  if (!vm_any(vm_not(vm_equal(b, vf_set1(2))))) return vf_mul(a, a);
  return vf_by_lane2(a, b, pow);
}
RUNG_INLINE vf vf_fmod(vf a, vf b) { return vf_by_lane2(a, b, fmod); }
RUNG_INLINE vf vf_atan2(vf a, vf b) { return vf_by_lane2(a, b, atan2); }

#endif
