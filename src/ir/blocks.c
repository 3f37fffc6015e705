/* SPDX-License-Identifier: MIT
 * GGUF block formats with linear levels, and a8, to float. Products and sums are rounded one by one in the order that
 * the format's own tools use, so that results agree bit for bit (the build forbids contraction). */
#include "ir/blocks.h"

#include <string.h>

#include "base/half.h"
#include "ir/type.h"

/* 32 numbers: byte j holds number j in its low half and number 16 + j in its high half. */

void rung_decode_Q4_0(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 18, out += 32) {
    const float d = rung_load_f16(p);
    for (int j = 0; j < 16; j++) {
      out[j] = d * (float)((p[2 + j] & 15) - 8);
      out[16 + j] = d * (float)((p[2 + j] >> 4) - 8);
    }
  }
}

void rung_decode_Q4_1(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 20, out += 32) {
    const float d = rung_load_f16(p), m = rung_load_f16(p + 2);
    for (int j = 0; j < 16; j++) {
      out[j] = d * (float)(p[4 + j] & 15) + m;
      out[16 + j] = d * (float)(p[4 + j] >> 4) + m;
    }
  }
}

/* The fifth bits of all 32 numbers follow the scale, number j's in bit j. */

void rung_decode_Q5_0(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 22, out += 32) {
    const float d = rung_load_f16(p);
    const uint32_t high = rung_load_u32(p + 2);
    for (int j = 0; j < 16; j++) {
      const int low = (p[6 + j] & 15) | (int)(high >> j & 1) << 4;
      const int top = (p[6 + j] >> 4) | (int)(high >> (16 + j) & 1) << 4;
      out[j] = d * (float)(low - 16);
      out[16 + j] = d * (float)(top - 16);
    }
  }
}

void rung_decode_Q5_1(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 24, out += 32) {
    const float d = rung_load_f16(p), m = rung_load_f16(p + 2);
    const uint32_t high = rung_load_u32(p + 4);
    for (int j = 0; j < 16; j++) {
      const int low = (p[8 + j] & 15) | (int)(high >> j & 1) << 4;
      const int top = (p[8 + j] >> 4) | (int)(high >> (16 + j) & 1) << 4;
      out[j] = d * (float)low + m;
      out[16 + j] = d * (float)top + m;
    }
  }
}

void rung_decode_Q8_0(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 34, out += 32) {
    const float d = rung_load_f16(p);
    for (int j = 0; j < 32; j++) out[j] = d * (float)(int8_t)p[2 + j];
  }
}

/* The second half float is scale times the sum of the levels: a help for dot products, not needed here. */
void rung_decode_Q8_1(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += 36, out += 32) {
    const float d = rung_load_f16(p);
    for (int j = 0; j < 32; j++) out[j] = d * (float)(int8_t)p[4 + j];
  }
}

/* 256 numbers: 16 scales (low half: scale, high half: minimum), 64 bytes of 2-bit levels, two half floats. Each run of
 * 32 bytes holds four runs of 32 numbers, one per pair of bits. */
void rung_decode_Q2_K(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 84) {
    const uint8_t *levels = p + 16;
    const float d = rung_load_f16(p + 80), dmin = rung_load_f16(p + 82);
    for (int group = 0; group < 16; group++, out += 16) { /* 16 numbers with one scale */
      const float scale = d * (float)(p[group] & 15), minimum = dmin * (float)(p[group] >> 4);
      const uint8_t *q = levels + 32 * (group / 8) + 16 * (group % 2);
      const int shift = 2 * (group / 2 % 4);
      for (int j = 0; j < 16; j++) out[j] = scale * (float)(q[j] >> shift & 3) - minimum;
    }
  }
}

/* 32 bytes of third bits (bit g of byte j: number 32g + j; a clear bit means minus 4), 64 bytes of 2-bit levels as in
 * q2_k, 16 scales of 6 bits in 12 bytes, a half float. */
void rung_decode_Q3_K(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 110) {
    const uint8_t *levels = p + 32, *scales = p + 96;
    const float d = rung_load_f16(p + 108);
    for (int group = 0; group < 16; group++, out += 16) {
      const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
      const int high = scales[8 + group % 4] >> 2 * (group / 4) & 3;
      const float scale = d * (float)((low | high << 4) - 32);
      const uint8_t *q = levels + 32 * (group / 8) + 16 * (group % 2), *third = p + 16 * (group % 2);
      const int shift = 2 * (group / 2 % 4);
      for (int j = 0; j < 16; j++) {
        const int minus = third[j] >> group / 2 & 1 ? 0 : 4;
        out[j] = scale * (float)((q[j] >> shift & 3) - minus);
      }
    }
  }
}

/* Scale and minimum of run i (of 8) of q4_k and q5_k, 6 bits each in 12 bytes: for the first four runs bytes i and 4 +
 * i hold them in their low bits; for the last four the low halves share byte 8 + (i - 4) and the high pairs sit in the
 * top bits of bytes i - 4 and i. */
static void unpack_scale(const uint8_t *s, int i, int *scale, int *minimum) {
  if (i < 4) {
    *scale = s[i] & 63;
    *minimum = s[4 + i] & 63;
  } else {
    *scale = (s[4 + i] & 15) | (s[i - 4] >> 6) << 4;
    *minimum = s[4 + i] >> 4 | (s[i] >> 6) << 4;
  }
}

/* Half floats d and dmin, 12 bytes of scales, 128 bytes: 32 bytes hold two runs of 32 numbers, low halves first. */
void rung_decode_Q4_K(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 144) {
    const float d = rung_load_f16(p), dmin = rung_load_f16(p + 2);
    for (int run = 0; run < 8; run++, out += 32) {
      int s, m;
      unpack_scale(p + 4, run, &s, &m);
      const float scale = d * (float)s, minimum = dmin * (float)m;
      const uint8_t *q = p + 16 + 32 * (run / 2);
      const int shift = 4 * (run % 2);
      for (int j = 0; j < 32; j++) out[j] = scale * (float)(q[j] >> shift & 15) - minimum;
    }
  }
}

/* As q4_k with 32 bytes of fifth bits before the levels: bit `run` of byte j. */
void rung_decode_Q5_K(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 176) {
    const float d = rung_load_f16(p), dmin = rung_load_f16(p + 2);
    const uint8_t *fifth = p + 16;
    for (int run = 0; run < 8; run++, out += 32) {
      int s, m;
      unpack_scale(p + 4, run, &s, &m);
      const float scale = d * (float)s, minimum = dmin * (float)m;
      const uint8_t *q = p + 48 + 32 * (run / 2);
      const int shift = 4 * (run % 2);
      for (int j = 0; j < 32; j++) {
        const int level = (q[j] >> shift & 15) | (fifth[j] >> run & 1) << 4;
        out[j] = scale * (float)level - minimum;
      }
    }
  }
}

/* 128 bytes of low halves, 64 of high pairs, 16 signed scales, a half float. Of each half of 128 numbers, run r of 32
 * takes bytes 32 (r % 2) + j, the low half for r < 2, and pair r of byte j. */
void rung_decode_Q6_K(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 256; b++, p += 210) {
    const uint8_t *scales = p + 192;
    const float d = rung_load_f16(p + 208);
    for (int run = 0; run < 8; run++, out += 32) {
      const uint8_t *low = p + 64 * (run / 4) + 32 * (run % 2), *high = p + 128 + 32 * (run / 4);
      const int low_shift = 4 * (run % 4 / 2), high_shift = 2 * (run % 4);
      const float first = d * (float)(int8_t)scales[2 * run], second = d * (float)(int8_t)scales[2 * run + 1];
      for (int j = 0; j < 32; j++) {
        const int level = (low[j] >> low_shift & 15) | (high[j] >> high_shift & 3) << 4;
        out[j] = (j < 16 ? first : second) * (float)(level - 32);
      }
    }
  }
}

void rung_decode_A8(const void *source, float *out, size_t n) {
  const uint8_t *p = source;
  for (size_t b = 0; b < n / 32; b++, p += sizeof(rung_a8), out += 32) {
    rung_a8 block;
    memcpy(&block, p, sizeof block);
    for (int j = 0; j < 32; j++) out[j] = block.scale * (float)block.q[j];
  }
}
