// SPDX-License-Identifier: MIT
// Numbers from the context's generator, Philox 4x32-10 (base/philox.h), as ops/random.c defines them. A thread has a
// block of four.
struct random_params {
  float *out;
  i64 count;
  u64 key, counter;
  double a, b; // low and high, or mean and deviation
};
struct words {
  u32 w[4];
};
__device__ words philox(u64 key, u64 block) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = 0, c3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
    const u32 next0 = (u32)(b >> 32) ^ c1 ^ k0, next2 = (u32)(a >> 32) ^ c3 ^ k1;
    c1 = (u32)b;
    c3 = (u32)a;
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words r;
  r.w[0] = c0;
  r.w[1] = c1;
  r.w[2] = c2;
  r.w[3] = c3;
  return r;
}
__device__ __forceinline__ double unit_of(u32 word) { return (double)((float)(word >> 8) * 0x1p-24f); }
extern "C" __global__ void __launch_bounds__(256) random_uniform(const __grid_constant__ random_params p) {
  GO();
  WAIT();
  const i64 blocks = (p.count + 3) / 4;
  for (i64 n = blockIdx.x * (i64)blockDim.x + threadIdx.x; n < blocks; n += (i64)gridDim.x * blockDim.x) {
    const words r = philox(p.key, p.counter + (u64)n);
    for (int i = 0; i < 4 && 4 * n + i < p.count; i++) p.out[4 * n + i] = (float)(p.a + (p.b - p.a) * unit_of(r.w[i]));
  }
}
extern "C" __global__ void __launch_bounds__(256) random_normal(const __grid_constant__ random_params p) {
  GO();
  WAIT();
  const i64 blocks = (p.count + 3) / 4;
  for (i64 n = blockIdx.x * (i64)blockDim.x + threadIdx.x; n < blocks; n += (i64)gridDim.x * blockDim.x) {
    const words r = philox(p.key, p.counter + (u64)n);
    for (int i = 0; i < 4 && 4 * n + i < p.count; i++) {
      const double radius = sqrt(-2 * log(1 - unit_of(r.w[i & 2]))),
                   angle = 6.28318530717958647692 * unit_of(r.w[(i & 2) + 1]);
      p.out[4 * n + i] = (float)(p.a + p.b * (radius * (i & 1 ? sin(angle) : cos(angle))));
    }
  }
}
