// SPDX-License-Identifier: MIT
// What the library multiplies: quantised activations and weights as halves, in memory of their own for one product.
// weights.cu is in front.
struct widen_params {
  const u8 *from;
  u16 *to;
  i64 rows, first, k; // rows from `first` on, as many as there are; k a multiple of 32
};
__device__ __forceinline__ float limited(float v) { return v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v; }
__device__ __forceinline__ uint4 eight_halves(const float *v) {
  return make_uint4(pack_half(limited(v[0]), limited(v[1])), pack_half(limited(v[2]), limited(v[3])),
                    pack_half(limited(v[4]), limited(v[5])), pack_half(limited(v[6]), limited(v[7])));
}
// Four lanes a block.
extern "C" __global__ void __launch_bounds__(256) widen_x(const __grid_constant__ widen_params p) {
  GO();
  WAIT();
  const i64 n = p.rows * (p.k / 8);
  for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) {
    const u8 *block = p.from + (i >> 2) * 40;
    const int2 q = *(const int2 *)(block + 8 * (i & 3));
    const float scale = *(const float *)(block + 32);
    float v[8];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = scale * (float)(i8)((j < 4 ? q.x : q.y) >> 8 * (j & 3));
    ((uint4 *)p.to)[i] = eight_halves(v);
  }
}
#if W_LAYOUT
// A warp has a tile (layouts.c): it reads what it would multiply, and each store leaves 64 bytes of eight rows.
#if W_LAYOUT == 1
#define TILE_BYTES 2304
#define TILE_K 256
#else
#define TILE_BYTES 2176
#define TILE_K 128
#endif
__device__ __forceinline__ void put_halves(u16 *to, const float *v, bool there) {
  if (!there) return;
  *(uint4 *)to = make_uint4(pack_half(v[0], v[1]), pack_half(v[2], v[3]), pack_half(v[4], v[5]), pack_half(v[6], v[7]));
}
// Small whole numbers become floats without a conversion: as the last bits of 2^23.
__device__ __forceinline__ float from_bits(u32 bits) { return __uint_as_float(bits) - 8388608.0f; }
#if W_LAYOUT == 1
__device__ __forceinline__ void put_levels(u16 *to, u32 word, float d, float dmin, u32 scales, bool there) {
  const float scale = d * from_bits((scales & 63) | 0x4b000000), minimum = -dmin * from_bits((scales >> 6 & 63) | 0x4b000000);
  float v[8];
#pragma unroll
  for (int e = 0; e < 8; e++) v[e] = fmaf(scale, from_bits((word >> (4 * (e / 2) + 16 * (e & 1)) & 15) | 0x4b000000), minimum);
  put_halves(to, v, there);
}
__device__ __forceinline__ void widen_tile(const u8 *tile, u16 *first, i64 pitch, bool upper, bool lower, int) {
  const int lane = threadIdx.x & 31, g = lane >> 2;
  uint4 v[4];
#pragma unroll
  for (int c = 0; c < 4; c++) v[c] = *(const uint4 *)(tile + 256 + c * 512 + lane * 16);
  const u32 a = *(const u32 *)(tile + 64 + lane * 4), b = *(const u16 *)(tile + 192 + lane * 2);
  const u32 d0 = *(const u32 *)(tile + g * 4), d1 = *(const u32 *)(tile + g * 4 + 32);
  const float d[2] = {half_bits((u16)d0), half_bits((u16)d1)}, m[2] = {half_bits((u16)(d0 >> 16)), half_bits((u16)(d1 >> 16))};
#pragma unroll
  for (int c = 0; c < 4; c++) { // runs 2c and 2c + 1, whose scales lane 4g + c has
    const u32 s0 = __shfl_sync(~0u, a, (lane & ~3) + c), s1 = s0 >> 24 | __shfl_sync(~0u, b, (lane & ~3) + c) << 8;
    put_levels(first + 64 * c, v[c].x, d[0], m[0], s0, upper);
    put_levels(first + 8 * pitch + 64 * c, v[c].y, d[1], m[1], s1, lower);
    put_levels(first + 64 * c + 32, v[c].z, d[0], m[0], s0 >> 12, upper);
    put_levels(first + 8 * pitch + 64 * c + 32, v[c].w, d[1], m[1], s1 >> 12, lower);
  }
}
#else
// The two words are numbers 0 4 1 5 and 2 6 3 7.
__device__ __forceinline__ void put_levels(u16 *to, u32 x, u32 y, float d, bool there) {
  const u32 word[2] = {x ^ 0x80808080, y ^ 0x80808080};
  float v[8];
#pragma unroll
  for (int e = 0; e < 8; e++) {
    const u32 bits = __byte_perm(word[e >> 1 & 1], 0x4b000000, 0x7440 + 2 * (e & 1) + e / 4);
    v[e] = fmaf(d, __uint_as_float(bits) - 8388736.0f, 0.0f);
  }
  put_halves(to, v, there);
}
__device__ __forceinline__ void widen_tile(const u8 *tile, u16 *first, i64 pitch, bool upper, bool lower, int runs) {
  const int lane = threadIdx.x & 31;
  const u32 own = *(const u32 *)(tile + lane * 4); // of rows g and g + 8, run t
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const uint4 v = *(const uint4 *)(tile + 128 + c * 512 + lane * 16);
    const u32 d = __shfl_sync(~0u, own, (lane & ~3) + c);
    put_levels(first + 32 * c, v.x, v.z, half_bits((u16)d), upper && c < runs);
    put_levels(first + 8 * pitch + 32 * c, v.y, v.w, half_bits((u16)(d >> 16)), lower && c < runs);
  }
}
#endif
extern "C" __global__ void __launch_bounds__(256) widen_w(const __grid_constant__ widen_params p) {
  GO();
  const int lane = threadIdx.x & 31;
  const i64 tiles = (p.k + TILE_K - 1) / TILE_K, all = (p.rows + 15) / 16 * tiles;
  WAIT();
  for (i64 i = blockIdx.x * 8ll + (threadIdx.x >> 5); i < all; i += gridDim.x * 8ll) {
    const i64 panel = i / tiles, at = i - panel * tiles, row = panel * 16 + (lane >> 2);
    const int runs = (int)min((p.k - at * TILE_K) / 32, (i64)4);
    widen_tile(p.from + ((p.first / 16 + panel) * tiles + at) * TILE_BYTES, p.to + row * p.k + at * TILE_K + 8 * (lane & 3), p.k,
               row < p.rows, row + 8 < p.rows, runs);
  }
}
#elif !W_IS_FLOAT
// A thread has a block of 32.
extern "C" __global__ void __launch_bounds__(256) widen_w(const __grid_constant__ widen_params p) {
  GO();
  const i64 blocks = p.k / 32, all = p.rows * blocks;
  WAIT();
  for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < all; i += gridDim.x * 256ll) {
    const i64 row = i / blocks, b = i - row * blocks;
    float v[32];
    load_32(p.from, blocks, p.first + row, b, v);
#pragma unroll
    for (int j = 0; j < 4; j++)
      ((uint4 *)(p.to + row * p.k + 32 * b))[j] =
          make_uint4(pack_half(v[8 * j], v[8 * j + 1]), pack_half(v[8 * j + 2], v[8 * j + 3]),
                     pack_half(v[8 * j + 4], v[8 * j + 5]), pack_half(v[8 * j + 6], v[8 * j + 7]));
  }
}
#else
extern "C" __global__ void widen_w(const __grid_constant__ widen_params p) {}
#endif
