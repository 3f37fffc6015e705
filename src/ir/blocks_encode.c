/* SPDX-License-Identifier: MIT
 * Float to block formats. The formats of 32 numbers and the ternary ones give the same bytes as the `gguf` package for
 * finite numbers whose scale fits a half float; a larger scale is held at the largest half float, so that finite input
 * never becomes infinite. The k-quants take the plain range of each run, without a search for a better scale. A NaN or
 * an infinity in a block makes its scale so, and is thereby not lost. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/blocks.h"
#include "ir/type.h"

/* Truncation into [0, top]; NaN gives 0. */
static uint8_t truncated(float x, int top) {
  if (!(x > 0)) return 0;
  return x >= (float)top ? (uint8_t)top : (uint8_t)x;
}
/* Nearest integer, ties to even, into [low, high]; NaN gives 0. */
static int nearest(float x, int low, int high) {
  if (x != x) return 0;
  if (x <= (float)low) return low;
  if (x >= (float)high) return high;
  return (int)rintf(x);
}
/* Ties away from zero, into [-limit, limit]; NaN gives 0. */
static int nearest_away(float x, int limit) {
  if (x != x) return 0;
  if (x <= (float)-limit) return -limit;
  if (x >= (float)limit) return limit;
  return (int)roundf(x);
}

/* 1 / d, and 0 where the stored scale is 0 or no number: all levels are then 0. */
static float inverse(float d) { return fabsf(d) >= FLT_MIN && fabsf(d) <= FLT_MAX ? 1 / d : 0; }

/* A number as it will be stored in a half float: finite stays finite. */
static float held(float d) {
  const float most = 65504.0f;
  if (d > most && d <= FLT_MAX) return most;
  if (d < -most && d >= -FLT_MAX) return -most;
  return d;
}
static void store_f16(uint8_t *p, float v) { rung_store_u16(p, rung_f16_from_f32(v)); }

typedef struct range {
  float low, high; /* NaN if any number is */
  float widest;    /* the first number of the largest magnitude, with its sign */
} range;
static range find_range(const float *x, int n) {
  range r = {x[0], x[0], x[0]};
  for (int j = 0; j < n; j++) {
    if (x[j] != x[j]) return (range){x[j], x[j], x[j]};
    if (x[j] < r.low) r.low = x[j];
    if (x[j] > r.high) r.high = x[j];
    if (fabsf(x[j]) > fabsf(r.widest)) r.widest = x[j];
  }
  return r;
}
/* The step that cuts [low, high] into `steps` parts. The difference of two finite numbers may overflow: held, then. */
static float step_of(float low, float high, float steps) {
  const float d = (high - low) / steps;
  return fabsf(d) > FLT_MAX && fabsf(low) <= FLT_MAX && fabsf(high) <= FLT_MAX ? held(FLT_MAX) : held(d);
}

/* 32 levels as low halves (numbers 0..15) and high halves (16..31) of 16 bytes. */
static void put_halves(const uint8_t *levels, uint8_t *out) {
  for (int j = 0; j < 16; j++) out[j] = (uint8_t)((levels[j] & 15) | (levels[16 + j] & 15) << 4);
}
static void put_fifths(const uint8_t *levels, uint8_t *out) {
  for (int j = 0; j < 4; j++) {
    uint8_t bits = 0;
    for (int k = 0; k < 8; k++) bits = (uint8_t)(bits | (levels[8 * j + k] >> 4) << k);
    out[j] = bits;
  }
}
/* The number of the largest magnitude becomes level 0, so that its sign decides the sign of the scale. */
static float symmetric_levels(const float *x, int half, uint8_t *levels) {
  const float d = held(find_range(x, 32).widest / (float)-half), id = inverse(d);
  for (int j = 0; j < 32; j++) levels[j] = truncated(x[j] * id + ((float)half + 0.5f), 2 * half - 1);
  return d;
}
static float range_levels(const float *x, int top, float *out_low, uint8_t *levels) {
  const range r = find_range(x, 32);
  const float low = held(r.low), d = step_of(r.low, r.high, (float)top), id = inverse(d);
  for (int j = 0; j < 32; j++) levels[j] = truncated((x[j] - low) * id + 0.5f, top);
  *out_low = low;
  return d;
}

void rung_encode_Q4_0(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[32];
  for (size_t b = 0; b < n / 32; b++, p += 18, source += 32) {
    store_f16(p, symmetric_levels(source, 8, levels));
    put_halves(levels, p + 2);
  }
}

void rung_encode_Q4_1(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[32];
  for (size_t b = 0; b < n / 32; b++, p += 20, source += 32) {
    float low;
    store_f16(p, range_levels(source, 15, &low, levels));
    store_f16(p + 2, low);
    put_halves(levels, p + 4);
  }
}

void rung_encode_Q5_0(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[32];
  for (size_t b = 0; b < n / 32; b++, p += 22, source += 32) {
    store_f16(p, symmetric_levels(source, 16, levels));
    put_fifths(levels, p + 2);
    put_halves(levels, p + 6);
  }
}

void rung_encode_Q5_1(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[32];
  for (size_t b = 0; b < n / 32; b++, p += 24, source += 32) {
    float low;
    store_f16(p, range_levels(source, 31, &low, levels));
    store_f16(p + 2, low);
    put_fifths(levels, p + 4);
    put_halves(levels, p + 8);
  }
}

/* Returns the scale; *out_sum is the sum of the levels. */
static float bytes_of_32(const float *x, uint8_t *out, int *out_sum) {
  const float d = held(fabsf(find_range(x, 32).widest) / 127.0f), id = inverse(d);
  int sum = 0;
  for (int j = 0; j < 32; j++) {
    const int q = nearest_away(x[j] * id, 127);
    sum += q;
    out[j] = (uint8_t)(int8_t)q;
  }
  *out_sum = sum;
  return d;
}

void rung_encode_Q8_0(const float *source, void *out, size_t n) {
  uint8_t *p = out;
  for (size_t b = 0; b < n / 32; b++, p += 34, source += 32) {
    int sum;
    store_f16(p, bytes_of_32(source, p + 2, &sum));
  }
}

void rung_encode_Q8_1(const float *source, void *out, size_t n) {
  uint8_t *p = out;
  for (size_t b = 0; b < n / 32; b++, p += 36, source += 32) {
    int sum;
    const float d = bytes_of_32(source, p + 4, &sum);
    store_f16(p, d);
    store_f16(p + 2, held(d * (float)sum));
  }
}

/* ---- k-quants */

static void pack_scales(const uint8_t *scale, const uint8_t *minimum, uint8_t *out) {
  for (int i = 0; i < 4; i++) {
    out[i] = (uint8_t)(scale[i] | (scale[4 + i] >> 4) << 6);
    out[4 + i] = (uint8_t)(minimum[i] | (minimum[4 + i] >> 4) << 6);
    out[8 + i] = (uint8_t)((scale[4 + i] & 15) | (minimum[4 + i] & 15) << 4);
  }
}

/* The part that q4_k and q5_k share: d, dmin and the packed scales go to p[0..15], 256 levels up to `top` to `levels`.
 * Levels are chosen against the scales as they were rounded, so that the rounding of a scale is not paid twice. */
static void scaled_levels(const float *x, int top, uint8_t *p, uint8_t *levels) {
  float step[8], below[8], most_step = 0, most_below = 0;
  for (int run = 0; run < 8; run++) {
    const range r = find_range(x + 32 * run, 32);
    const float low = r.low > 0 ? 0 : r.low, high = r.high < 0 ? 0 : r.high;
    step[run] = step_of(low, high, (float)top);
    below[run] = -low;
    if (!(step[run] <= most_step)) most_step = step[run];
    if (!(below[run] <= most_below)) most_below = below[run];
    if (most_step != most_step) break;
  }
  const uint16_t d_bits = rung_f16_from_f32(held(most_step / 63)), m_bits = rung_f16_from_f32(held(most_below / 63));
  const float d = rung_f16_to_f32(d_bits), m = rung_f16_to_f32(m_bits), id = inverse(d), im = inverse(m);
  uint8_t scales[8] = {0}, minima[8] = {0};
  for (int run = 0; run < 8 && id > 0; run++) {
    scales[run] = (uint8_t)nearest(step[run] * id, 0, 63);
    minima[run] = (uint8_t)nearest(below[run] * im, 0, 63);
    const float scale = d * (float)scales[run], low = m * (float)minima[run], is = inverse(scale);
    for (int j = 0; j < 32; j++) levels[32 * run + j] = (uint8_t)nearest((x[32 * run + j] + low) * is, 0, top);
  }
  if (!(id > 0)) memset(levels, 0, 256);
  rung_store_u16(p, d_bits);
  rung_store_u16(p + 2, m_bits);
  pack_scales(scales, minima, p + 4);
}

static void put_pairs_of_runs(const uint8_t *levels, uint8_t *out) {
  for (int pair = 0; pair < 4; pair++) {
    for (int j = 0; j < 32; j++) {
      const uint8_t *q = levels + 64 * pair + j;
      out[32 * pair + j] = (uint8_t)((q[0] & 15) | (q[32] & 15) << 4);
    }
  }
}

void rung_encode_Q4_K(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[256] = {0};
  for (size_t b = 0; b < n / 256; b++, p += 144, source += 256) {
    scaled_levels(source, 15, p, levels);
    put_pairs_of_runs(levels, p + 16);
  }
}

void rung_encode_Q5_K(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[256] = {0};
  for (size_t b = 0; b < n / 256; b++, p += 176, source += 256) {
    scaled_levels(source, 31, p, levels);
    for (int j = 0; j < 32; j++) {
      uint8_t bits = 0;
      for (int run = 0; run < 8; run++) bits = (uint8_t)(bits | (levels[32 * run + j] >> 4) << run);
      p[16 + j] = bits;
    }
    put_pairs_of_runs(levels, p + 48);
  }
}

/* 16 runs of 16 numbers: levels -32..31, so that the widest number of a run becomes -32 by the sign of its scale. */
static float signed_levels(const float *x, int8_t *scales, uint8_t *levels) {
  float step[16], widest = 0;
  for (int run = 0; run < 16; run++) {
    step[run] = find_range(x + 16 * run, 16).widest / -32.0f;
    if (step[run] != step[run] || fabsf(step[run]) > fabsf(widest)) widest = step[run];
    if (widest != widest) break;
  }
  const float d = rung_f16_to_f32(rung_f16_from_f32(held(widest / -128.0f))), id = inverse(d);
  for (int run = 0; run < 16; run++) {
    scales[run] = (int8_t)(id != 0 ? nearest(step[run] * id, -128, 127) : 0);
    const float is = inverse(d * (float)scales[run]);
    for (int j = 0; j < 16; j++) {
      levels[16 * run + j] = (uint8_t)(nearest(x[16 * run + j] * is, -32, 31) + 32);
    }
  }
  return d;
}

void rung_encode_Q6_K(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[256] = {0};
  for (size_t b = 0; b < n / 256; b++, p += 210, source += 256) {
    int8_t scales[16];
    store_f16(p + 208, signed_levels(source, scales, levels));
    memcpy(p + 192, scales, 16);
    for (int half = 0; half < 2; half++) {
      for (int j = 0; j < 32; j++) {
        const uint8_t *q = levels + 128 * half + j;
        p[64 * half + j] = (uint8_t)((q[0] & 15) | (q[64] & 15) << 4);
        p[64 * half + 32 + j] = (uint8_t)((q[32] & 15) | (q[96] & 15) << 4);
        p[128 + 32 * half + j] = (uint8_t)(q[0] >> 4 | (q[32] >> 4) << 2 | (q[64] >> 4) << 4 | (q[96] >> 4) << 6);
      }
    }
  }
}

/* ---- ternary, mxfp4, a8 */

/* Levels 0, 1, 2 for -d, 0, d. */
static float ternary_levels(const float *x, uint8_t *levels) {
  const float d = held(fabsf(find_range(x, 256).widest)), id = inverse(d);
  for (int j = 0; j < 256; j++) levels[j] = (uint8_t)(nearest_away(x[j] * id, 1) + 1);
  return d;
}
/* `digits` rows of `width` levels -> `width` bytes: a base-3 number as a fraction of 256, rounded up so that the digits
 * come out by multiplying. Where a row is missing its digit is 0. */
static const uint8_t *put_ternary(const uint8_t *levels, int width, int digits, uint8_t *out) {
  for (int j = 0; j < width; j++) {
    int value = 0;
    for (int k = 0; k < 5; k++) value = 3 * value + (k < digits ? levels[width * k + j] : 0);
    out[j] = (uint8_t)((value * 256 + 242) / 243);
  }
  return levels + width * digits;
}

void rung_encode_TQ1_0(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[256] = {0};
  for (size_t b = 0; b < n / 256; b++, p += 54, source += 256) {
    store_f16(p + 52, ternary_levels(source, levels));
    const uint8_t *rest = put_ternary(levels, 32, 5, p);
    rest = put_ternary(rest, 16, 5, p + 32);
    put_ternary(rest, 4, 4, p + 48);
  }
}

void rung_encode_TQ2_0(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[256] = {0};
  for (size_t b = 0; b < n / 256; b++, p += 66, source += 256) {
    store_f16(p + 64, ternary_levels(source, levels));
    for (int j = 0; j < 64; j++) {
      const uint8_t *q = levels + 128 * (j / 32) + j % 32;
      p[j] = (uint8_t)(q[0] | q[32] << 2 | q[64] << 4 | q[96] << 6);
    }
  }
}

/* The nearest of 0 0.5 1 1.5 2 3 4 6 (doubled: whole numbers), the lower one of a tie; x is in units of the half scale.
 */
static uint8_t mxfp4_level(float x) {
  static const float above[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
  const float magnitude = fabsf(x);
  uint8_t q = 0;
  while (q < 7 && magnitude > above[q]) q++;
  return (uint8_t)(q && x < 0 ? q | 8 : q);
}

/* The shared exponent is that of the largest number less that of the largest level (4 = 2^2). A NaN or an infinity
 * cannot be said by the levels: exponent 255, which the OCP text defines as NaN. */
void rung_encode_MXFP4(const float *source, void *out, size_t n) {
  uint8_t *p = out, levels[32];
  for (size_t b = 0; b < n / 32; b++, p += 17, source += 32) {
    const float widest = fabsf(find_range(source, 32).widest);
    int exponent = 0;
    if (!(widest <= FLT_MAX)) {
      exponent = 255;
    } else if (widest > 0) {
      exponent = ilogbf(widest) - 2 + 127;
      if (exponent < 0) exponent = 0;
    }
    p[0] = (uint8_t)exponent;
    for (int j = 0; j < 32; j++) {
      levels[j] = exponent == 255 ? 0 : mxfp4_level(ldexpf(source[j], 128 - exponent));
    }
    put_halves(levels, p + 1);
  }
}

/* A scale that is no number leaves the levels 0: 0 times it is NaN for the whole block. */
void rung_encode_A8(const float *source, void *out, size_t n) {
  uint8_t *p = out;
  for (size_t b = 0; b < n / 32; b++, p += sizeof(rung_a8), source += 32) {
    rung_a8 block = {.scale = fabsf(find_range(source, 32).widest) / 127.0f};
    const bool levels = block.scale > 0 && block.scale <= FLT_MAX;
    for (int j = 0; j < 32; j++) {
      block.q[j] = (int8_t)(levels ? nearest(source[j] / block.scale, -127, 127) : 0);
      if (j < 16) block.sum_low = (int16_t)(block.sum_low + block.q[j]);
      if (j >= 16) block.sum_high = (int16_t)(block.sum_high + block.q[j]);
    }
    memcpy(p, &block, sizeof block);
  }
}
