// SPDX-License-Identifier: MIT
// One row of x in shared memory, as the products of decode.cu read it. In front: WIDTH (numbers in the row), TILED (int8 products of tiles; else
// floats), PADDED (it up to whole tiles), MEMBERS, READY (x comes as decode.cu says of LEVELS).
//
// TILED: groups of eight numbers, 8 bytes each in the order in which half bytes of a tile are taken apart (0 4 1 5, then
// 2 6 3 7); behind them for each 32 the factor, and factor times the sum. Floats: f16 or bf16 where x is (X_HALF its
// type, else 0), or f32: the first four of each eight, then the other four of each.
#define THREADS 512
#define WARPS 16
#define GROUPS (PADDED / 8)
struct step_params {
  u8 *base[12]; // of the region in front
  const u8 *x;  // without one
  struct {
    const u8 *w;
    u8 *y;
    i32 rows, first, type, pad; // first: panels (or rows) of the members before it
  } member[4];
  i32 units;          // panels or rows of all
  i32 whole, x_whole; // of LEVELS and READY: how many groups of 32 are blocks of levels
  i32 pad;
};

template <class T> __device__ __forceinline__ void load_8(float *v, const T *row, int group) {
  if (group >= WIDTH / 8) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = 0;
    return;
  }
  if (sizeof(T) == 4) {
    const float4 a = ((const float4 *)row)[2 * group], b = ((const float4 *)row)[2 * group + 1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  } else {
    const uint4 a = ((const uint4 *)row)[group];
    const u32 word[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const u16 bits = (u16)(word[i >> 1] >> 16 * (i & 1));
      v[i] = get_float((const T *)&bits);
    }
  }
}
// Each block writes its share of what is needed behind the product.
template <class T> __device__ __forceinline__ void store_8(T *row, int group, const float *v) {
  if (group >= WIDTH / 8 || group % gridDim.x != blockIdx.x) return;
#pragma unroll
  for (int i = 0; i < 8; i++) put_float(row + 8 * group + i, v[i]);
}
__device__ __forceinline__ void keep_8(const float *v, int group, u8 *image) {
  if (group >= GROUPS) return;
#if X_HALF
  u32 word[4];
#pragma unroll
  for (int i = 0; i < 4; i++)
    word[i] = X_HALF == T_F16 ? pack_half(v[2 * i], v[2 * i + 1])
                              : (u32)to_brain_bits(v[2 * i]) | (u32)to_brain_bits(v[2 * i + 1]) << 16;
  ((uint4 *)image)[group] = make_uint4(word[0], word[1], word[2], word[3]);
#else
  ((float4 *)image)[group] = make_float4(v[0], v[1], v[2], v[3]);
  ((float4 *)image)[GROUPS + group] = make_float4(v[4], v[5], v[6], v[7]);
#endif
}
__device__ __forceinline__ void take_8(float *v, const u8 *image, int group) {
#if X_HALF
  const uint4 a = ((const uint4 *)image)[group];
  const u32 word[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const u16 bits = (u16)(word[i >> 1] >> 16 * (i & 1));
    v[i] = X_HALF == T_F16 ? half_bits(bits) : brain_bits(bits);
  }
#else
  const float4 a = ((const float4 *)image)[group], b = ((const float4 *)image)[GROUPS + group];
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
#endif
}
__device__ __forceinline__ void keep_sums(int group, float scale, int sum, u8 *image) {
  if ((group & 3) == 0) ((float2 *)(image + PADDED))[group >> 2] = make_float2(scale, scale * (float)sum);
}
// Four lanes have one block. Whole warps call it.
__device__ __forceinline__ void quantize_8(const float *v, int group, u8 *image) {
  float scale;
  int q[8], sum = 0;
  levels_of_eight(v, &scale, q);
#pragma unroll
  for (int i = 0; i < 8; i++) sum += q[i];
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  if (group >= GROUPS) return;
  ((uint2 *)image)[group] = make_uint2((u32)(q[0] & 255) | (u32)(q[4] & 255) << 8 | (u32)(q[1] & 255) << 16 | (u32)q[5] << 24,
                                       (u32)(q[2] & 255) | (u32)(q[6] & 255) << 8 | (u32)(q[3] & 255) << 16 | (u32)q[7] << 24);
  keep_sums(group, scale, sum, image);
}
