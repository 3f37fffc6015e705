// SPDX-License-Identifier: MIT
// Weights whose levels come from books (ir/codebooks.inc: what a type needs of it is in front, as memory of the device) or
// are ternary, and q8_1. As in weights.cu, which is in front: block b of 32 of row n.
#define LOAD_QUADS __device__ __forceinline__ void load_quads(const u8 *w, i64 blocks, i64 n, i64 b, quads *out)

// Four levels of a grid, none of them 0, with their signs: bit i of `minus` is byte i's.
__device__ __forceinline__ int with_signs(u32 levels, u32 minus) {
  const u32 m = spread(minus, 0, 0);
  return (int)((levels ^ m * 255) + m);
}
__device__ __forceinline__ void put_eight(quads *out, int k, u32 low, u32 high, u32 minus) {
  out->q[2 * k] = with_signs(low, minus & 15);
  out->q[2 * k + 1] = with_signs(high, minus >> 4);
}
// Eight ternary levels and what is added to all of them, an eighth either way: in eighths.
__device__ __forceinline__ void put_shifted(quads *out, int k, u64 levels, bool down) {
  const u32 by = down ? 0xffffffffu : 0x01010101u;
  out->q[2 * k] = (int)__vadd4((u32)levels << 3 & 0xf8f8f8f8, by);
  out->q[2 * k + 1] = (int)__vadd4((u32)(levels >> 32) << 3 & 0xf8f8f8f8, by);
}
// Digit `digit` of the five in a byte, which is a fraction of 256 in base 3.
__device__ __forceinline__ u32 ternary(u32 byte, int digit) {
  const u32 power = digit == 0 ? 1 : digit == 1 ? 3 : digit == 2 ? 9 : digit == 3 ? 27 : 81;
  return (byte * power & 255) * 3 >> 8;
}

#if W_TYPE == W_Q8_1
LOAD_QUADS {
  const u32 *p = (const u32 *)(w + (n * blocks + b) * 36);
  out->d0 = out->d1 = half_bits((u16)p[0]);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) out->q[i] = (int)p[1 + i];
}
#elif W_TYPE == W_MXFP4
LOAD_QUADS {
  const u8 *p = w + (n * blocks + b) * 17; // at any byte
  out->d0 = out->d1 = __uint_as_float(p[0] < 2 ? 0x00200000u << p[0] : (u32)(p[0] - 1) << 23);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u32 low = 0, high = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int v = p[1 + 4 * i + j];
      low |= (u32)(u8)values_mxfp4[v & 15] << 8 * j;
      high |= (u32)(u8)values_mxfp4[v >> 4] << 8 * j;
    }
    out->q[i] = (int)low;
    out->q[4 + i] = (int)high;
  }
}
#elif W_TYPE == W_IQ2_XXS || W_TYPE == W_IQ3_XXS
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * (W_TYPE == W_IQ2_XXS ? 66 : 98);
  const int s = (int)(b & 7);
  const u8 *index = p + 2 + 8 * s;
  const u32 word = load_u32_by_2(W_TYPE == W_IQ2_XXS ? index + 4 : p + 66 + 4 * s);
  out->d0 = out->d1 = load_half(p) * (0.5f + (float)(word >> 28)) * (W_TYPE == W_IQ2_XXS ? 0.25f : 0.5f);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
#if W_TYPE == W_IQ2_XXS
    const u64 levels = grid_iq2_xxs[index[k]];
    const u32 low = (u32)levels, high = (u32)(levels >> 32);
#else
    const u32 low = grid_iq3_xxs[index[2 * k]], high = grid_iq3_xxs[index[2 * k + 1]];
#endif
    put_eight(out, k, low, high, signs_even[word >> 7 * k & 127]);
  }
}
#elif W_TYPE == W_IQ2_XS || W_TYPE == W_IQ2_S
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * (W_TYPE == W_IQ2_XS ? 74 : 82);
  const int s = (int)(b & 7), scales = p[(W_TYPE == W_IQ2_XS ? 66 : 74) + s];
  out->d0 = load_half(p) * (0.5f + (float)(scales & 15)) * 0.25f;
  out->d1 = load_half(p) * (0.5f + (float)(scales >> 4)) * 0.25f;
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
#if W_TYPE == W_IQ2_XS
    const u32 q = ((const u16 *)(p + 2))[4 * s + k], minus = signs_even[q >> 9];
    const u64 levels = grid_iq2_xs[q & 511];
#else
    const u32 minus = p[34 + 4 * s + k];
    const u64 levels = grid_iq2_s[p[2 + 4 * s + k] | (p[66 + s] >> 2 * k & 3) << 8];
#endif
    put_eight(out, k, (u32)levels, (u32)(levels >> 32), minus);
  }
}
#elif W_TYPE == W_IQ3_S
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 110;
  const int s = (int)(b & 7);
  out->d0 = out->d1 = load_half(p) * (float)(1 + 2 * (p[106 + s / 2] >> 4 * (s & 1) & 15));
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const u8 *q = p + 2 + 2 * (4 * s + k);
    const int ninth = p[66 + s] >> 2 * k;
    put_eight(out, k, grid_iq3_s[q[0] | (ninth & 1) << 8], grid_iq3_s[q[1] | (ninth >> 1 & 1) << 8], p[74 + 4 * s + k]);
  }
}
#elif W_TYPE == W_IQ1_S
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 50;
  const int s = (int)(b & 7);
  const u32 word = ((const u16 *)(p + 34))[s];
  out->d0 = out->d1 = load_half(p) * (float)(2 * (word >> 12 & 7) + 1) * 0.125f;
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) put_shifted(out, k, grid_iq1[p[2 + 4 * s + k] | (word >> 3 * k & 7) << 8], word >> 15);
}
#elif W_TYPE == W_IQ1_M
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 56;
  const int s = (int)(b & 7);
  const u16 *words = (const u16 *)(p + 48);
  const float d = half_bits((u16)(words[0] >> 12 | words[1] >> 12 << 4 | words[2] >> 12 << 8 | words[3] >> 12 << 12)) * 0.125f;
  const u32 scales = words[s / 2] >> 6 * (s & 1);
  out->d0 = d * (float)(2 * (scales & 7) + 1);
  out->d1 = d * (float)(2 * (scales >> 3 & 7) + 1);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const u32 half = p[32 + 2 * s + k / 2] >> 4 * (k & 1) & 15;
    put_shifted(out, k, grid_iq1[p[4 * s + k] | (half & 7) << 8], half >> 3);
  }
}
#elif W_TYPE == W_TQ1_0
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 54;
  const int s = (int)(b & 7);
  out->d0 = out->d1 = load_half(p + 52);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    u32 v = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int e = 4 * i + j; // 32 bytes of five digits, 16 of five, 4 of four; a digit of all of them, then the next
      const int at = s < 5 ? e : s < 7 ? 32 + (e & 15) : e < 16 ? 32 + e : 48 + (e & 3);
      const int digit = s < 5 ? s : s < 7 ? 2 * (s - 5) + e / 16 : e < 16 ? 4 : (e - 16) / 4;
      v |= ternary(p[at], digit) << 8 * j;
    }
    out->q[i] = (int)__vadd4(v, 0xffffffffu);
  }
}
#elif W_TYPE == W_TQ2_0
LOAD_QUADS {
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 66;
  const int s = (int)(b & 7);
  out->d0 = out->d1 = load_half(p + 64);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 8; i++)
    out->q[i] = (int)__vadd4(load_u32_by_2(p + 32 * (s / 4) + 4 * i) >> 2 * (s & 3) & 0x03030303, 0xffffffffu);
}
#endif
