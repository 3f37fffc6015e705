/* SPDX-License-Identifier: MIT
 * Narrow floating-point formats. Everything works on bit patterns: a thread that flushes denormals gets the same result
 * as one that does not. */
#include "base/half.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

static uint32_t bits_of_f32(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}
static uint64_t bits_of_f64(double d) {
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return bits;
}
static float f32_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The double with the value of f, as bits. A denormal f becomes zero: every format that is narrowed through here rounds
 * it to zero anyway. */
static uint64_t widen_bits(float f) {
  const uint32_t bits = bits_of_f32(f);
  const uint64_t sign = (uint64_t)(bits >> 31) << 63, mantissa = (uint64_t)(bits & 0x7FFFFF) << 29;
  const uint32_t exponent = bits >> 23 & 255;
  if (exponent == 0) return sign;
  if (exponent == 255) return sign | (uint64_t)2047 << 52 | mantissa;
  return sign | (uint64_t)(exponent + 1023 - 127) << 52 | mantissa;
}

static bool is_nan(uint64_t bits) { return (bits & ~((uint64_t)1 << 63)) > (uint64_t)2047 << 52; }

/* Magnitude of a double in a format of man_bits mantissa bits and the given bias, rounded once to nearest even.
 * Exponents above the format's just continue, so that the caller compares with its largest pattern; infinity comes out
 * largest. */
static uint32_t narrow(uint64_t bits, int man_bits, int bias) {
  const int exponent = (int)(bits >> 52 & 2047);
  if (exponent == 0) return 0; /* below half of any target's smallest */
  const uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
  const int target = exponent - 1023 + bias;
  const int shift = 52 - man_bits + (target <= 0 ? 1 - target : 0);
  if (shift >= 54) return 0;
  uint64_t kept = mantissa >> shift;
  const uint64_t rest = mantissa & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) kept++;
  /* The implicit bit adds one to the exponent field, also when rounding carries into it. */
  return (uint32_t)kept + (target > 0 ? (uint32_t)(target - 1) << man_bits : 0);
}

/* Value of a magnitude pattern in a format that has no infinities or NaN left to handle. */
static float widen(uint32_t magnitude, int man_bits, int bias, bool negative) {
  const uint32_t sign = (uint32_t)negative << 31;
  int exponent = (int)(magnitude >> man_bits);
  uint32_t mantissa = magnitude & ((1u << man_bits) - 1);
  if (exponent == 0) {
    if (mantissa == 0) return f32_of_bits(sign);
    /* A denormal of the narrow format is a normal float: shift until the implicit bit is there. */
    for (exponent = 1; !(mantissa >> man_bits & 1); exponent--) mantissa <<= 1;
    mantissa &= (1u << man_bits) - 1;
  }
  return f32_of_bits(sign | (uint32_t)(exponent - bias + 127) << 23 | mantissa << (23 - man_bits));
}

float rung_f16_to_f32(uint16_t h) {
  const uint32_t magnitude = h & 0x7FFFu;
  if (RUNG_UNLIKELY(magnitude >= 0x7C00))
    return f32_of_bits((uint32_t)(h >> 15) << 31 | 0x7F800000u | (magnitude & 0x3FF) << 13);
  return widen(magnitude, 10, 15, h >> 15);
}

static uint16_t f16_from_bits(uint64_t bits) {
  const uint16_t sign = (uint16_t)(bits >> 63 << 15);
  if (is_nan(bits)) return sign | 0x7E00;
  const uint32_t magnitude = narrow(bits, 10, 15);
  return (uint16_t)(sign | (magnitude > 0x7C00 ? 0x7C00 : magnitude));
}
uint16_t rung_f16_from_f32(float f) { return f16_from_bits(widen_bits(f)); }
uint16_t rung_f16_from_f64(double d) { return f16_from_bits(bits_of_f64(d)); }

float rung_bf16_to_f32(uint16_t h) { return f32_of_bits((uint32_t)h << 16); }

uint16_t rung_bf16_from_f32(float f) {
  const uint32_t bits = bits_of_f32(f);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t rung_bf16_from_f64(double d) {
  const uint64_t bits = bits_of_f64(d);
  const uint16_t sign = (uint16_t)(bits >> 63 << 15);
  if (is_nan(bits)) return sign | 0x7FC0;
  const uint32_t magnitude = narrow(bits, 7, 127);
  return (uint16_t)(sign | (magnitude > 0x7F80 ? 0x7F80 : magnitude));
}

float rung_f8e4m3_to_f32(uint8_t h) {
  const uint32_t magnitude = h & 0x7Fu;
  if (magnitude == 0x7F) return f32_of_bits((uint32_t)(h >> 7) << 31 | 0x7FC00000u);
  return widen(magnitude, 3, 7, h >> 7);
}
uint8_t rung_f8e4m3_from_f32(float f) {
  const uint64_t bits = widen_bits(f);
  const uint8_t sign = (uint8_t)(bits >> 63 << 7);
  if (is_nan(bits)) return sign | 0x7F;
  const uint32_t magnitude = narrow(bits, 3, 7);
  return (uint8_t)(sign | (magnitude > 0x7E ? 0x7E : magnitude));
}

float rung_f8e5m2_to_f32(uint8_t h) { return rung_f16_to_f32((uint16_t)(h << 8)); }
uint8_t rung_f8e5m2_from_f32(float f) {
  const uint64_t bits = widen_bits(f);
  const uint8_t sign = (uint8_t)(bits >> 63 << 7);
  if (is_nan(bits)) return sign | 0x7F;
  const uint32_t magnitude = narrow(bits, 2, 15);
  return (uint8_t)(sign | (magnitude > 0x7B ? 0x7B : magnitude));
}

static float fnuz_to_f32(uint8_t h, int man_bits, int bias) {
  if (h == 0x80) return f32_of_bits(0x7FC00000u);
  return widen(h & 0x7Fu, man_bits, bias, h >> 7);
}
static uint8_t fnuz_from_f32(float f, int man_bits, int bias) {
  const uint64_t bits = widen_bits(f);
  if (is_nan(bits)) return 0x80;
  const uint32_t magnitude = narrow(bits, man_bits, bias);
  if (magnitude == 0) return 0;
  return (uint8_t)((bits >> 63 << 7) | (magnitude > 0x7F ? 0x7F : magnitude));
}
float rung_f8e4m3fnuz_to_f32(uint8_t h) { return fnuz_to_f32(h, 3, 8); }
uint8_t rung_f8e4m3fnuz_from_f32(float f) { return fnuz_from_f32(f, 3, 8); }
float rung_f8e5m2fnuz_to_f32(uint8_t h) { return fnuz_to_f32(h, 2, 16); }
uint8_t rung_f8e5m2fnuz_from_f32(float f) { return fnuz_from_f32(f, 2, 16); }

uint8_t rung_e8m0_from_f32(float f) {
  const uint32_t bits = bits_of_f32(f) & 0x7FFFFFFFu, exponent = bits >> 23, mantissa = bits & 0x7FFFFFu;
  if (bits > 0x7F800000u) return 255;
  if (exponent == 0) return mantissa > 0x400000u; /* denormals: 2^-127 is half of the smallest normal number */
  const uint32_t up = exponent + (mantissa != 0);
  return (uint8_t)(up > 254 ? 254 : up);
}

float rung_e8m0_to_f32(uint8_t e) {
  if (e == 255) return f32_of_bits(0x7FC00000u);
  return f32_of_bits(e ? (uint32_t)e << 23 : 0x00400000u); /* 2^-127 is a denormal */
}

float rung_f4e2m1_to_f32(uint8_t h) { return widen(h & 7u, 1, 1, h >> 3 & 1); }
uint8_t rung_f4e2m1_from_f32(float f) {
  const uint64_t bits = widen_bits(f);
  if (is_nan(bits)) return 7;
  const uint32_t magnitude = narrow(bits, 1, 1);
  return (uint8_t)((bits >> 63 << 3) | (magnitude > 7 ? 7 : magnitude));
}
