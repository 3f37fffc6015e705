// SPDX-License-Identifier: MIT
// What the library multiplies: quantised activations and weights as halves, in memory of their own for one product.
// weights.cu is in front.
struct widen_params {
  const u8 *from;
  u16 *to;
  i64 rows, first, k; // rows from `first` on, as many as there are; k a multiple of 32
};
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
#if !W_IS_FLOAT
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
    for (int j = 0; j < 4; j++)
      ((uint4 *)(p.to + row * p.k + 32 * b))[j] =
          make_uint4(pack_half(v[8 * j], v[8 * j + 1]), pack_half(v[8 * j + 2], v[8 * j + 3]),
                     pack_half(v[8 * j + 4], v[8 * j + 5]), pack_half(v[8 * j + 6], v[8 * j + 7]));
  }
}
#else
extern "C" __global__ void widen_w(const __grid_constant__ widen_params p) {}
#endif
