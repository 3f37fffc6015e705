/* SPDX-License-Identifier: MIT
 * GGUF block formats with code books (iq*, mxfp4) and ternary levels (tq*), to float. The books are generated
 * (codebooks.inc). Roundings follow the format's own tools, as in blocks.c. */
#include <string.h>

#include "base/half.h"
#include "ir/blocks.h"
#include "ir/codebooks.inc"

/* Eight numbers: a grid entry (magnitudes, one a byte) with a sign bit each. */
static void signed_8(float scale, uint64_t entry, uint8_t minus, float *out) {
  for (int j = 0; j < 8; j++) {
    const float magnitude = scale * (float)(entry >> 8 * j & 255);
    out[j] = minus >> j & 1 ? -magnitude : magnitude;
  }
}

/* As signed_8 for formats with entries of four: `low` is numbers 0..3. */
static uint64_t join(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

/* Eight numbers of ternary entries, each shifted by delta. */
static void shifted_8(float scale, uint64_t entry, float delta, float *out) {
  for (int j = 0; j < 8; j++) out[j] = scale * ((float)(int8_t)(entry >> 8 * j & 255) + delta);
}

/* d, then per 32 numbers four grid indices (bytes) and a word: four sign indices of 7 bits, a scale of 4. */
void rung_decode_IQ2_XXS(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 66) {
    const float d = rung_load_f16(p);
    for (int run = 0; run < 8; run++) {
      const uint8_t *q = p + 2 + 8 * run;
      const uint32_t word = rung_load_u32(q + 4);
      const float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
      for (int k = 0; k < 4; k++, out += 8) signed_8(scale, grid_iq2_xxs[q[k]], signs_even[word >> 7 * k & 127], out);
    }
  }
}

/* d, 32 words (9 bits of grid index, 7 of signs: 8 numbers each), 16 scales of 4 bits. */
void rung_decode_IQ2_XS(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 74) {
    const float d = rung_load_f16(p);
    for (int k = 0; k < 32; k++, out += 8) {
      const uint16_t q = rung_load_u16(p + 2 + 2 * k);
      const int s = p[66 + k / 4] >> 4 * (k / 2 % 2) & 15;
      const float scale = d * (0.5f + (float)s) * 0.25f;
      signed_8(scale, grid_iq2_xs[q & 511], signs_even[q >> 9], out);
    }
  }
}

/* d, 32 low bytes of grid indices, 32 bytes of signs, 8 bytes of high pairs, 16 scales of 4 bits. */
void rung_decode_IQ2_S(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 82) {
    const float d = rung_load_f16(p);
    for (int k = 0; k < 32; k++, out += 8) {
      const int index = p[2 + k] | (p[66 + k / 4] >> 2 * (k % 4) & 3) << 8;
      const int s = p[74 + k / 4] >> 4 * (k / 2 % 2) & 15;
      const float scale = d * (0.5f + (float)s) * 0.25f;
      signed_8(scale, grid_iq2_s[index], p[34 + k], out);
    }
  }
}

/* d, 64 grid indices (4 numbers each), then a word per 32 numbers as in iq2_xxs. */
void rung_decode_IQ3_XXS(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 98) {
    const float d = rung_load_f16(p);
    for (int run = 0; run < 8; run++) {
      const uint8_t *q = p + 2 + 8 * run;
      const uint32_t word = rung_load_u32(p + 66 + 4 * run);
      const float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
      for (int k = 0; k < 4; k++, out += 8) {
        const uint64_t entry = join(grid_iq3_xxs[q[2 * k]], grid_iq3_xxs[q[2 * k + 1]]);
        signed_8(scale, entry, signs_even[word >> 7 * k & 127], out);
      }
    }
  }
}

/* d, 64 low bytes of grid indices, 8 bytes of ninth bits, 32 bytes of signs, 8 scales of 4 bits. */
void rung_decode_IQ3_S(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 110) {
    const float d = rung_load_f16(p);
    for (int k = 0; k < 32; k++, out += 8) {
      const int s = p[106 + k / 8] >> 4 * (k / 4 % 2) & 15;
      const float scale = d * (float)(1 + 2 * s);
      const uint8_t *q = p + 2 + 2 * k;
      const int ninth = p[66 + k / 4] >> 2 * (k % 4);
      const uint64_t entry = join(grid_iq3_s[q[0] | (ninth & 1) << 8], grid_iq3_s[q[1] | (ninth >> 1 & 1) << 8]);
      signed_8(scale, entry, p[74 + k], out);
    }
  }
}

/* d, 32 low bytes of grid indices, a word per 32 numbers: four high triples, a scale of 3 bits, the sign of delta. */
void rung_decode_IQ1_S(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 50) {
    const float d = rung_load_f16(p);
    for (int k = 0; k < 32; k++, out += 8) {
      const uint16_t word = rung_load_u16(p + 34 + 2 * (k / 4));
      const float scale = d * (float)(2 * (word >> 12 & 7) + 1);
      const int index = p[k + 2] | (word >> 3 * (k % 4) & 7) << 8;
      shifted_8(scale, grid_iq1[index], word & 0x8000 ? -0.125f : 0.125f, out);
    }
  }
}

/* 32 low bytes of grid indices, a half byte each (high triple, sign of delta), four words: four scales of 3 bits in
 * each, and the four top bits of the words, first word lowest, make up the half float d. */
void rung_decode_IQ1_M(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 56) {
    uint16_t words[4];
    uint16_t d_bits = 0;
    for (int i = 0; i < 4; i++) {
      words[i] = rung_load_u16(p + 48 + 2 * i);
      d_bits = (uint16_t)(d_bits | (words[i] >> 12) << 4 * i);
    }
    const float d = rung_f16_to_f32(d_bits);
    for (int k = 0; k < 32; k++, out += 8) {
      const int s = words[k / 8] >> 3 * (k / 2 % 4) & 7;
      const float scale = d * (float)(2 * s + 1);
      const int half = p[32 + k / 2] >> 4 * (k % 2) & 15;
      shifted_8(scale, grid_iq1[p[k] | (half & 7) << 8], half & 8 ? -0.125f : 0.125f, out);
    }
  }
}

/* 32 numbers whose levels go through the book; halves as in q4_0. */
static void booked_32(float scale, const uint8_t *q, const int8_t *book, float *out) {
  for (int j = 0; j < 16; j++) {
    out[j] = scale * (float)book[q[j] & 15];
    out[16 + j] = scale * (float)book[q[j] >> 4];
  }
}

void rung_decode_IQ4_NL(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 18, out += 32) booked_32(rung_load_f16(p), p + 2, values_iq4_nl, out);
}

/* d, a word of high pairs and 4 bytes of low halves of the 8 scales, 128 bytes of levels. */
void rung_decode_IQ4_XS(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 136) {
    const float d = rung_load_f16(p);
    const uint16_t high = rung_load_u16(p + 2);
    for (int run = 0; run < 8; run++, out += 32) {
      const int s = (p[4 + run / 2] >> 4 * (run % 2) & 15) | (high >> 2 * run & 3) << 4;
      booked_32(d * (float)(s - 32), p + 8 + 16 * run, values_iq4_nl, out);
    }
  }
}

/* The book holds doubled values, so the scale is half of 2^(e - 127). e = 255, a NaN in the OCP text, is taken as a
 * power of two, as GGUF's tools do; rung_weights_check reports it. */
void rung_decode_MXFP4(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 17, out += 32) {
    const uint32_t bits = p[0] < 2 ? 0x00200000u << p[0] : (uint32_t)(p[0] - 1) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    booked_32(scale, p + 1, values_mxfp4, out);
  }
}

/* A byte holds five base-3 digits as a fraction of 256: multiplying by 3^k modulo 256 brings digit k to the top, and
 * the top is read by one more multiplication. `width` bytes give rows of `width` numbers, digit 0 first. */
static float *ternary(float d, const uint8_t *q, int width, int digits, float *out) {
  int power = 1;
  for (int k = 0; k < digits; k++, power *= 3, out += width) {
    for (int j = 0; j < width; j++) {
      const int fraction = q[j] * power & 255;
      out[j] = d * (float)((fraction * 3 >> 8) - 1);
    }
  }
  return out;
}

void rung_decode_TQ1_0(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 54) {
    const float d = rung_load_f16(p + 52);
    out = ternary(d, p, 32, 5, out);
    out = ternary(d, p + 32, 16, 5, out);
    out = ternary(d, p + 48, 4, 4, out);
  }
}

void rung_decode_TQ2_0(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 66) {
    const float d = rung_load_f16(p + 64);
    for (int run = 0; run < 8; run++, out += 32) {
      const uint8_t *q = p + 32 * (run / 4);
      for (int j = 0; j < 32; j++) out[j] = d * (float)((q[j] >> 2 * (run % 4) & 3) - 1);
    }
  }
}
