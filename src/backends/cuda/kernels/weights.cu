// SPDX-License-Identifier: MIT
// Weights of every type that has kernels. W_TYPE is rung_type's value, W_LAYOUT 0 for rows as they lie in files, else a
// layout of layouts.c. books.cu is behind for the types that stand there.
//
// Block types: 32 neighbouring numbers of a row as levels q (signed bytes, four a word, in order) with a factor and an
// offset for each half of 16: number i is d * q + m. All products are built on this one view.
struct quads {
  int q[8];
  float d0, d1, m0, m1;
};
#define W_F32 0
#define W_F16 1
#define W_BF16 2
#define W_Q4_0 32
#define W_Q4_1 33
#define W_Q5_0 34
#define W_Q5_1 35
#define W_Q8_0 36
#define W_Q2_K 38
#define W_Q3_K 39
#define W_Q4_K 40
#define W_Q5_K 41
#define W_Q6_K 42
#define W_Q8_1 37
#define W_IQ1_S 43
#define W_IQ1_M 44
#define W_IQ2_XXS 45
#define W_IQ2_XS 46
#define W_IQ2_S 47
#define W_IQ3_XXS 48
#define W_IQ3_S 49
#define W_IQ4_NL 50
#define W_IQ4_XS 51
#define W_TQ1_0 52
#define W_TQ2_0 53
#define W_MXFP4 54
#define W_IS_FLOAT (W_TYPE <= W_BF16)
#define W_IN_BOOKS (W_TYPE == W_Q8_1 || (W_TYPE >= W_IQ1_S && W_TYPE <= W_MXFP4 && W_TYPE != W_IQ4_NL && W_TYPE != W_IQ4_XS))

__device__ __forceinline__ u32 load_u32_by_2(const u8 *p) {
  return (u32)((const u16 *)p)[0] | (u32)((const u16 *)p)[1] << 16;
}
__device__ __forceinline__ float load_half(const u8 *p) { return half_bits(*(const u16 *)p); }

// Bits 4i .. 4i+3 of a mask become bit `to` of bytes 0 .. 3.
__device__ __forceinline__ u32 spread(u32 mask, int i, int to) {
  const u32 m = mask >> (4 * i) & 15;
  return (m * 0x00204081u & 0x01010101u) << to;
}
__device__ __forceinline__ void k_scale(const u8 *s, int i, float *scale, float *minimum) {
  int a, b;
  if (i < 4) {
    a = s[i] & 63;
    b = s[4 + i] & 63;
  } else {
    a = (s[4 + i] & 15) | (s[i - 4] >> 6) << 4;
    b = s[4 + i] >> 4 | (s[i] >> 6) << 4;
  }
  *scale = (float)a;
  *minimum = (float)b;
}
// Sixteen signed levels of iq4, chosen by the low half of each byte.
__device__ __forceinline__ int book(u32 nibbles) {
  const u32 t0 = 0xbfad9881, t1 = 0xf6eaddcf, t2 = 0x26190d01, t3 = 0x71594535;
  u32 r = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 n = nibbles >> (8 * i) & 15;
    const u32 w = n < 8 ? (n < 4 ? t0 : t1) : (n < 12 ? t2 : t3);
    r |= (w >> (8 * (n & 3)) & 255) << (8 * i);
  }
  return (int)r;
}

#if !W_IS_FLOAT
#if W_LAYOUT == 1
// Tiles of 16 rows by 256 (2304 bytes), those of 16 rows one behind the other: for each row a half2 (d, dmin); for each
// lane the packed scales of rows g and g + 8; four times 16 bytes for each lane (layouts.c has a drawing).
#define TILE 2304
__device__ __forceinline__ u32 tile_scales(const u8 *tile, int row, int lane) {
  const u32 a = *(const u32 *)(tile + 64 + 4 * lane), b = *(const u16 *)(tile + 192 + 2 * lane);
  return row < 8 ? a : a >> 24 | b << 8;
}
__device__ __forceinline__ void load_quads(const u8 *w, i64 blocks, i64 n, i64 b, quads *out) {
  const int row = (int)(n & 15), g = row & 7, s = (int)(b & 7);
  const u8 *tile = w + ((n >> 4) * (blocks >> 3) + (b >> 3)) * TILE;
  const u32 scales = tile_scales(tile, row, 4 * g + s / 2) >> 12 * (s & 1);
  const float d = load_half(tile + 4 * row), dmin = load_half(tile + 4 * row + 2);
  out->d0 = out->d1 = d * (float)(scales & 63);
  out->m0 = out->m1 = -dmin * (float)(scales >> 6 & 63);
#pragma unroll
  for (int t = 0; t < 4; t++) { // numbers 8t .. 8t + 7: number e in half byte e / 2 + 4 (e & 1)
    const u32 v = *(const u32 *)(tile + 256 + (s / 2) * 512 + (4 * g + t) * 16 + (s & 1) * 8 + (row >= 8 ? 4 : 0));
    // bytes of v: nibbles 0 (e0), 1 (e2) | 2 (e4), 3 (e6) | 4 (e1), 5 (e3) | 6 (e5), 7 (e7)
    const u32 e0 = v & 15, e2 = v >> 4 & 15, e4 = v >> 8 & 15, e6 = v >> 12 & 15;
    const u32 e1 = v >> 16 & 15, e3 = v >> 20 & 15, e5 = v >> 24 & 15, e7 = v >> 28;
    out->q[2 * t] = (int)(e0 | e1 << 8 | e2 << 16 | e3 << 24);
    out->q[2 * t + 1] = (int)(e4 | e5 << 8 | e6 << 16 | e7 << 24);
  }
}
#elif W_LAYOUT == 2
// Tiles of 16 rows by 128 (2176 bytes): a half of rows g and g + 8 for each lane's run, then its levels (layouts.c).
__device__ __forceinline__ void load_quads(const u8 *w, i64 blocks, i64 n, i64 b, quads *out) {
  const int row = (int)(n & 15), g = row & 7, run = (int)(b & 3), lower = row >= 8;
  const u8 *tile = w + ((n >> 4) * ((blocks + 3) >> 2) + (b >> 2)) * 2176;
  out->d0 = out->d1 = load_half(tile + (4 * g + run) * 4 + 2 * lower);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int t = 0; t < 4; t++) {
    const u8 *p = tile + 128 + run * 512 + (4 * g + t) * 16 + 4 * lower;
    const u32 a = *(const u32 *)p, c = *(const u32 *)(p + 8); // 0 4 1 5, 2 6 3 7
    out->q[2 * t] = (int)__byte_perm(a, c, 0x6420);
    out->q[2 * t + 1] = (int)__byte_perm(a, c, 0x7531);
  }
}
#elif W_IN_BOOKS
__device__ __forceinline__ void load_quads(const u8 *w, i64 blocks, i64 n, i64 b, quads *out); // books.cu
#else
// Block b of 32 of row n; `blocks` of 32 in a row.
__device__ __forceinline__ void load_quads(const u8 *w, i64 blocks, i64 n, i64 b, quads *out) {
#if W_TYPE == W_Q4_0 || W_TYPE == W_IQ4_NL
  const u8 *p = w + (n * blocks + b) * 18;
  const float d = load_half(p);
  out->d0 = out->d1 = d;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 v = load_u32_by_2(p + 2 + 4 * i);
    const u32 low = v & 0x0f0f0f0f, high = v >> 4 & 0x0f0f0f0f;
    out->q[i] = W_TYPE == W_Q4_0 ? (int)low : book(low);
    out->q[4 + i] = W_TYPE == W_Q4_0 ? (int)high : book(high);
  }
  out->m0 = out->m1 = W_TYPE == W_Q4_0 ? -8.0f * d : 0.0f;
#elif W_TYPE == W_Q4_1
  const u32 *p = (const u32 *)(w + (n * blocks + b) * 20);
  out->d0 = out->d1 = half_bits((u16)p[0]);
  out->m0 = out->m1 = half_bits((u16)(p[0] >> 16));
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 v = p[1 + i];
    out->q[i] = (int)(v & 0x0f0f0f0f);
    out->q[4 + i] = (int)(v >> 4 & 0x0f0f0f0f);
  }
#elif W_TYPE == W_Q5_0 || W_TYPE == W_Q5_1
  const int bytes = W_TYPE == W_Q5_0 ? 22 : 24, head = W_TYPE == W_Q5_0 ? 2 : 4;
  const u8 *p = w + (n * blocks + b) * bytes;
  const float d = load_half(p);
  const u32 high = load_u32_by_2(p + head);
  out->d0 = out->d1 = d;
  out->m0 = out->m1 = W_TYPE == W_Q5_0 ? -16.0f * d : load_half(p + 2);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 v = load_u32_by_2(p + head + 4 + 4 * i);
    out->q[i] = (int)(v & 0x0f0f0f0f | spread(high, i, 4));
    out->q[4 + i] = (int)(v >> 4 & 0x0f0f0f0f | spread(high >> 16, i, 4));
  }
#elif W_TYPE == W_Q8_0
  const u8 *p = w + (n * blocks + b) * 34;
  out->d0 = out->d1 = load_half(p);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) out->q[i] = (int)load_u32_by_2(p + 2 + 4 * i);
#elif W_TYPE == W_Q2_K
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 84;
  const int s = (int)(b & 7), a = p[2 * s], c = p[2 * s + 1];
  const float d = load_half(p + 80), dmin = load_half(p + 82);
  out->d0 = d * (float)(a & 15);
  out->d1 = d * (float)(c & 15);
  out->m0 = -dmin * (float)(a >> 4);
  out->m1 = -dmin * (float)(c >> 4);
#pragma unroll
  for (int i = 0; i < 8; i++)
    out->q[i] = (int)(*(const u32 *)(p + 16 + 32 * (s / 4) + 4 * i) >> 2 * (s & 3) & 0x03030303);
#elif W_TYPE == W_Q3_K
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 110, *scales = p + 96;
  const int s = (int)(b & 7);
  const float d = load_half(p + 108);
  float f[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int g = 2 * s + h;
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4, high = scales[8 + g % 4] >> 2 * (g / 4) & 3;
    f[h] = d * (float)((low | high << 4) - 32);
  }
  out->d0 = f[0];
  out->d1 = f[1];
  out->m0 = -4.0f * f[0];
  out->m1 = -4.0f * f[1];
#pragma unroll
  for (int i = 0; i < 8; i++)
    out->q[i] = (int)(load_u32_by_2(p + 32 + 32 * (s / 4) + 4 * i) >> 2 * (s & 3) & 0x03030303 |
                      (load_u32_by_2(p + 4 * i) >> s & 0x01010101) << 2);
#elif W_TYPE == W_Q4_K || W_TYPE == W_Q5_K
  const int bytes = W_TYPE == W_Q4_K ? 144 : 176, levels = W_TYPE == W_Q4_K ? 16 : 48;
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * bytes;
  const int s = (int)(b & 7);
  float scale, minimum;
  k_scale(p + 4, s, &scale, &minimum);
  out->d0 = out->d1 = load_half(p) * scale;
  out->m0 = out->m1 = -load_half(p + 2) * minimum;
  const uint4 *v = (const uint4 *)(p + levels + 32 * (s / 2));
  const uint4 x = v[0], y = v[1];
  const u32 word[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
#pragma unroll
  for (int i = 0; i < 8; i++) {
    out->q[i] = (int)(word[i] >> 4 * (s & 1) & 0x0f0f0f0f);
#if W_TYPE == W_Q5_K
    out->q[i] |= (int)((*(const u32 *)(p + 16 + 4 * i) >> s & 0x01010101) << 4);
#endif
  }
#elif W_TYPE == W_Q6_K
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 210;
  const int s = (int)(b & 7);
  const float d = load_half(p + 208);
  out->d0 = d * (float)(i8)p[192 + 2 * s];
  out->d1 = d * (float)(i8)p[192 + 2 * s + 1];
  out->m0 = -32.0f * out->d0;
  out->m1 = -32.0f * out->d1;
  const u8 *low = p + 64 * (s / 4) + 32 * (s & 1), *high = p + 128 + 32 * (s / 4);
#pragma unroll
  for (int i = 0; i < 8; i++)
    out->q[i] = (int)(load_u32_by_2(low + 4 * i) >> 4 * ((s & 3) / 2) & 0x0f0f0f0f |
                      (load_u32_by_2(high + 4 * i) >> 2 * (s & 3) & 0x03030303) << 4);
#elif W_TYPE == W_IQ4_XS
  const u8 *p = w + (n * (blocks >> 3) + (b >> 3)) * 136;
  const int s = (int)(b & 7);
  const int level = (p[4 + s / 2] >> 4 * (s & 1) & 15) | (*(const u16 *)(p + 2) >> 2 * s & 3) << 4;
  out->d0 = out->d1 = load_half(p) * (float)(level - 32);
  out->m0 = out->m1 = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 v = *(const u32 *)(p + 8 + 16 * s + 4 * i);
    out->q[i] = book(v & 0x0f0f0f0f);
    out->q[4 + i] = book(v >> 4 & 0x0f0f0f0f);
  }
#endif
}
#endif
#endif

// 32 numbers as floats.
__device__ __forceinline__ void load_32(const u8 *w, i64 blocks, i64 n, i64 b, float *out) {
#if W_IS_FLOAT
  const i64 at = (n * blocks + b) * 32;
#if W_TYPE == W_F32
#pragma unroll
  for (int i = 0; i < 8; i++) *(float4 *)(out + 4 * i) = *(const float4 *)((const float *)w + at + 4 * i);
#else
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint4 v = *(const uint4 *)((const u16 *)w + at + 8 * i);
    const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
#if W_TYPE == W_F16
      out[8 * i + 2 * j] = half_bits((u16)word[j]);
      out[8 * i + 2 * j + 1] = half_bits((u16)(word[j] >> 16));
#else
      out[8 * i + 2 * j] = __uint_as_float(word[j] << 16);
      out[8 * i + 2 * j + 1] = __uint_as_float(word[j] & 0xffff0000u);
#endif
    }
  }
#endif
#else
  quads v;
  load_quads(w, blocks, n, b, &v);
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      out[4 * i + j] = fmaf(i < 4 ? v.d0 : v.d1, (float)(i8)(v.q[i] >> 8 * j), i < 4 ? v.m0 : v.m1);
#endif
}
