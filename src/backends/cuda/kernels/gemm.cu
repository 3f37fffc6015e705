// SPDX-License-Identifier: MIT
// Many rows of x: tiles of 128 x 128 through the tensor cores in f16 with f32 sums, and tiles of 64 x 64 in plain f32.
// In front stand the defines of matmul.cu; SPLIT 1: x is cut into two halves that together keep 22 bits. With EXPERTS,
// experts_order.cu stands in front, too: rows of x are taken in its order, and a block's have one of many w.
struct matmul_params {
  const u8 *x, *w;
  u8 *y;
  i64 m, n, k;
  i64 ldx, ldy;
  i32 y_type, pad;
#ifdef EXPERTS
  expert_lots lots;
  i64 expert_bytes;
  i32 places, shared; // shared: all places of a row have one row of x
#endif
};
// What a block multiplies: rows of x from m0 on, before `end`, with rows of w from n0 on.
struct block_part {
  const u8 *w;
  i64 m0, end, n0;
};
#ifdef EXPERTS
__device__ __forceinline__ bool find_part(const matmul_params &p, int rows, int columns, block_part *out) {
  if (blockIdx.x >= *p.lots.count) return false;
  const expert_lot lot = p.lots.lot[blockIdx.x];
  *out = {p.w + lot.expert * p.expert_bytes, lot.first, lot.end, (i64)blockIdx.y * columns};
  return true;
}
__device__ __forceinline__ i64 y_row(const matmul_params &p, i64 m) { return p.lots.order[m]; }
__device__ __forceinline__ i64 x_row(const matmul_params &p, i64 m) {
  return p.shared ? p.lots.order[m] / p.places : p.lots.order[m];
}
#else
__device__ __forceinline__ bool find_part(const matmul_params &p, int rows, int columns, block_part *out) {
  *out = {p.w, (i64)blockIdx.y * rows, p.m, (i64)blockIdx.x * columns};
  return true;
}
__device__ __forceinline__ i64 y_row(const matmul_params &p, i64 m) { return m; }
__device__ __forceinline__ i64 x_row(const matmul_params &p, i64 m) { return m; }
#endif
#define X_A8 (X_TYPE == 64)
#if X_TYPE == 1
typedef f16 x_number;
#elif X_TYPE == 2
typedef bf16 x_number;
#else
typedef float x_number;
#endif

// 32 numbers of row m of x from block b on; zeros for a row below 0.
__device__ __forceinline__ void load_x_32(const matmul_params &p, i64 m, i64 b, float *out) {
  if (m < 0) {
#pragma unroll
    for (int i = 0; i < 32; i++) out[i] = 0;
    return;
  }
#if X_A8
  const int *from = (const int *)(p.x + (m * p.ldx + b) * 40);
  const float scale = __int_as_float(from[8]);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int q = from[i];
#pragma unroll
    for (int j = 0; j < 4; j++) out[4 * i + j] = scale * (float)(i8)(q >> 8 * j);
  }
#else
  const x_number *from = (const x_number *)p.x + m * p.ldx + 32 * b;
#pragma unroll
  for (int i = 0; i < 32; i++) out[i] = get_float(from + i);
#endif
}


// ---- f16
#define BM 128
#define BN 128
#define PITCH 40 // halves from row to row of a tile of 32: rows of a group of eight lie in different banks

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void load_matrix(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void product_f16(float *c, const u32 *a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void store_halves(u16 *to, const float *v) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint4 w;
    w.x = pack_half(v[8 * i], v[8 * i + 1]);
    w.y = pack_half(v[8 * i + 2], v[8 * i + 3]);
    w.z = pack_half(v[8 * i + 4], v[8 * i + 5]);
    w.w = pack_half(v[8 * i + 6], v[8 * i + 7]);
    *(uint4 *)(to + 8 * i) = w;
  }
}

extern "C" __global__ void __launch_bounds__(256) gemm_f16(const __grid_constant__ matmul_params p) {
  __shared__ __align__(16) u16 xs[1 + SPLIT][BM * PITCH], ws[BN * PITCH];
  const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
  const i64 blocks = p.k / 32;
  const int wm = (warp & 1) * 64, wn = (warp >> 1) * 32; // of the warp's 64 x 32
  float c[4][4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[i][j][e] = 0;
  block_part here;
  GO();
  WAIT();
  if (!find_part(p, BM, BN, &here)) return;
  const i64 m0 = here.m0, n0 = here.n0;
  // Half of the threads fetch rows of w, the other half rows of x; the next ones come while these are multiplied.
  const bool weights = thread < 128;
  const int row = thread & 127;
  float v[32];
  const i64 n = n0 + row < p.n ? n0 + row : p.n - 1, from = m0 + row < here.end ? x_row(p, m0 + row) : -1;
  if (weights)
    load_32(here.w, blocks, n, 0, v);
  else
    load_x_32(p, from, 0, v);
  for (i64 b = 0; b < blocks; b++) {
    __syncthreads();
    if (weights) {
      store_halves(ws + row * PITCH, v);
    } else {
#pragma unroll
      for (int i = 0; i < 32; i++) v[i] = limited(v[i]);
      store_halves(xs[0] + row * PITCH, v);
#if SPLIT
#pragma unroll
      for (int i = 0; i < 32; i++) v[i] -= half_bits(to_half_bits(v[i]));
      store_halves(xs[SPLIT] + row * PITCH, v);
#endif
    }
    __syncthreads();
    if (b + 1 < blocks) {
      if (weights)
        load_32(here.w, blocks, n, b + 1, v);
      else
        load_x_32(p, from, b + 1, v);
    }
#pragma unroll
    for (int k = 0; k < 32; k += 16) {
      u32 w[2][4];
#pragma unroll
      for (int j = 0; j < 2; j++)
        load_matrix(w[j], shared_address(ws + (wn + 16 * j + (lane & 7) + (lane >> 4) * 8) * PITCH + k + (lane >> 3 & 1) * 8));
#pragma unroll
      for (int part = 0; part <= SPLIT; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
#ifdef EXPERTS // most lots are not full
          if (m0 + wm + 16 * i >= here.end) break;
#endif
          u32 x[4];
          load_matrix(x, shared_address(xs[part] + (wm + 16 * i + (lane & 15)) * PITCH + k + (lane >> 4) * 8));
#pragma unroll
          for (int j = 0; j < 4; j++) product_f16(c[i][j], x, w[j >> 1][2 * (j & 1)], w[j >> 1][2 * (j & 1) + 1]);
        }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const i64 m = m0 + wm + 16 * i + (lane >> 2) + (e >> 1) * 8, at = n0 + wn + 8 * j + 2 * (lane & 3) + (e & 1);
        if (m < here.end && at < p.n) store_float(p.y, p.y_type, y_row(p, m) * p.ldy + at, c[i][j][e]);
      }
}

// ---- f32
extern "C" __global__ void __launch_bounds__(256) gemm_f32(const __grid_constant__ matmul_params p) {
  __shared__ __align__(16) float xs[32][68], ws[32][68];
  const int thread = threadIdx.x;
  const i64 blocks = p.k / 32;
  const int tm = (thread >> 4) * 4, tn = (thread & 15) * 4;
  float c[4][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  block_part here;
  GO();
  WAIT();
  if (!find_part(p, 64, 64, &here)) return;
  const i64 m0 = here.m0, n0 = here.n0;
  const int row = thread & 63, what = thread >> 6; // 0: w, 1: x, others wait
  const i64 n = n0 + row < p.n ? n0 + row : p.n - 1, from = m0 + row < here.end ? x_row(p, m0 + row) : -1;
  for (i64 b = 0; b < blocks; b++) {
    float v[32];
    if (what == 0) load_32(here.w, blocks, n, b, v);
    if (what == 1) load_x_32(p, from, b, v);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k++) {
      if (what == 0) ws[k][row] = v[k];
      if (what == 1) xs[k][row] = v[k];
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      const float4 x = *(const float4 *)&xs[k][tm], w = *(const float4 *)&ws[k][tn];
      const float xv[4] = {x.x, x.y, x.z, x.w}, wv[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) c[i][j] = fmaf(xv[i], wv[j], c[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (m0 + tm + i < here.end && n0 + tn + j < p.n)
        store_float(p.y, p.y_type, y_row(p, m0 + tm + i) * p.ldy + n0 + tn + j, c[i][j]);
}
