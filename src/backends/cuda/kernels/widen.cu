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
#if W_LAYOUT == 1 && !defined(WIDEN_GENERIC)
// A warp has a tile of 16 rows by 256: its lanes read as those of a product would, and write eight numbers at a time.
extern "C" __global__ void __launch_bounds__(256) widen_w(const __grid_constant__ widen_params p) {
  GO();
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const i64 tiles = p.k / 256, all = (p.rows + 15) / 16 * tiles;
  WAIT();
  for (i64 i = blockIdx.x * 8ll + (threadIdx.x >> 5); i < all; i += gridDim.x * 8ll) {
    const i64 panel = i / tiles, at = i - panel * tiles;
    const u8 *tile = p.from + ((p.first / 16 + panel) * tiles + at) * TILE;
    const u32 f0 = *(const u32 *)(tile + 4 * g), f1 = *(const u32 *)(tile + 4 * g + 32);
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const uint4 v = __ldcs((const uint4 *)(tile + 256 + c * 512 + lane * 16));
      const u32 word[4] = {v.x, v.y, v.z, v.w}; // run 2c of rows g and g + 8, run 2c + 1
      const u32 s0 = tile_scales(tile, g, 4 * g + c), s1 = tile_scales(tile, g + 8, 4 * g + c);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const u32 factor = j & 1 ? f1 : f0, s = (j & 1 ? s1 : s0) >> 12 * (j >> 1);
        // Two half bytes behind the exponent of 1024 are two halves, 1024 too large.
        const float d = half_bits((u16)factor) * (float)(s & 63);
        const float m = fmaf(1024.0f, d, half_bits((u16)(factor >> 16)) * (float)(s >> 6 & 63));
        u32 pair[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const u32 q = (word[j] >> 4 * e & 0x000f000f) | 0x64006400;
          pair[e] = pack_half(fmaf(d, half_bits((u16)q), -m), fmaf(d, half_bits((u16)(q >> 16)), -m));
        }
        const i64 row = panel * 16 + g + 8 * (j & 1);
        if (row < p.rows) *(uint4 *)(p.to + row * p.k + at * 256 + 32 * (2 * c + (j >> 1)) + 8 * t) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
      }
    }
  }
}
#elif !W_IS_FLOAT
// A thread has a block of 32.
extern "C" __global__ void __launch_bounds__(256) widen_w(const __grid_constant__ widen_params p) {
  GO();
  const i64 blocks = p.k / 32, all = (p.rows + 15) / 16 * 16 * blocks;
  WAIT();
  for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < all; i += gridDim.x * 256ll) {
#if W_LAYOUT // neighbouring threads: the rows of a panel, whose words lie together
    const i64 panel = i / (16 * blocks), rest = i - panel * 16 * blocks, row = panel * 16 + (rest & 15), b = rest >> 4;
    if (row >= p.rows) continue;
#else
    const i64 row = i / blocks, b = i - row * blocks;
    if (row >= p.rows) break;
#endif
    float v[32];
    load_32(p.from, blocks, p.first + row, b, v);
#pragma unroll
    for (int j = 0; j < 4; j++) ((uint4 *)(p.to + row * p.k + 32 * b))[j] = eight_halves(v + 8 * j);
  }
}
#else
extern "C" __global__ void widen_w(const __grid_constant__ widen_params p) {}
#endif
