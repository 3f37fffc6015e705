// SPDX-License-Identifier: MIT
// y[m, n] = sum over k of x[m, k] w[n, k]: few rows of x (gemv), many (gemm). In front stand W_TYPE, W_LAYOUT, X_TYPE
// (f32, f16, bf16, or 64 for a8), ROWS_A_WARP; weights.cu is part of the text. With EXPERTS, experts.cu is behind, which has the kernels.
struct matmul_params {
  const u8 *x, *w;
  u8 *y;
  i64 m, n, k;  // k a multiple of 32
  i64 ldx, ldy; // elements from row to row; ldx in blocks for a8
  i32 y_type, pad;
};
#define X_A8 (X_TYPE == 64)
#define WARPS 4

#if X_TYPE == 1
typedef f16 x_number;
#elif X_TYPE == 2
typedef bf16 x_number;
#else
typedef float x_number;
#endif

// ---- few rows: a warp has ROWS_A_WARP rows of w, its lanes blocks of 32 along k
#if X_A8
struct x_block {
  int q[8];
  float scale, low, high;
};
__device__ __forceinline__ void load_x(const matmul_params &p, i64 m, i64 b, x_block *out) {
  const int *from = (const int *)(p.x + (m * p.ldx + b) * 40);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int2 v = *(const int2 *)(from + 2 * i);
    out->q[2 * i] = v.x;
    out->q[2 * i + 1] = v.y;
  }
  const int2 v = *(const int2 *)(from + 8);
  out->scale = __int_as_float(v.x);
  out->low = (float)(i16)v.y;
  out->high = (float)(v.y >> 16);
}
__device__ __forceinline__ float dot_32(const quads &w, const x_block &x) {
  int low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    low = __dp4a(w.q[i], x.q[i], low);
    high = __dp4a(w.q[4 + i], x.q[4 + i], high);
  }
  return x.scale * fmaf(w.d0, (float)low, fmaf(w.d1, (float)high, fmaf(w.m0, x.low, w.m1 * x.high)));
}
#else
struct x_block {
  float v[32];
};
__device__ __forceinline__ void load_x(const matmul_params &p, i64 m, i64 b, x_block *out) {
  const x_number *from = (const x_number *)p.x + m * p.ldx + 32 * b;
#if X_TYPE == 0
#pragma unroll
  for (int i = 0; i < 8; i++) *(float4 *)(out->v + 4 * i) = *(const float4 *)(from + 4 * i);
#else
#pragma unroll
  for (int i = 0; i < 32; i++) out->v[i] = get_float(from + i);
#endif
}
#endif

template <int MT> __device__ __forceinline__ void gemv_rows(const matmul_params &p) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 n0 = ((i64)blockIdx.x * WARPS + warp) * ROWS_A_WARP, m0 = (i64)blockIdx.y * MT, blocks = p.k / 32;
  float sum[ROWS_A_WARP][MT];
#pragma unroll
  for (int r = 0; r < ROWS_A_WARP; r++)
#pragma unroll
    for (int m = 0; m < MT; m++) sum[r][m] = 0;
  GO();
  if (n0 >= p.n) return;
  WAIT();
#pragma unroll 2
  for (i64 b = lane; b < blocks; b += 32) {
#if X_A8
    quads w[ROWS_A_WARP];
#pragma unroll
    for (int r = 0; r < ROWS_A_WARP; r++) load_quads(p.w, blocks, n0 + r < p.n ? n0 + r : n0, b, &w[r]);
#pragma unroll
    for (int m = 0; m < MT; m++) {
      if (m0 + m >= p.m) break;
      x_block x;
      load_x(p, m0 + m, b, &x);
#pragma unroll
      for (int r = 0; r < ROWS_A_WARP; r++) sum[r][m] += dot_32(w[r], x);
    }
#else
#pragma unroll
    for (int r = 0; r < ROWS_A_WARP; r++) {
      float w[32];
      load_32(p.w, blocks, n0 + r < p.n ? n0 + r : n0, b, w);
#pragma unroll
      for (int m = 0; m < MT; m++) {
        if (m0 + m >= p.m) break;
        x_block x;
        load_x(p, m0 + m, b, &x);
        float s = 0;
#pragma unroll
        for (int i = 0; i < 32; i++) s = fmaf(w[i], x.v[i], s);
        sum[r][m] += s;
      }
    }
#endif
  }
#pragma unroll
  for (int r = 0; r < ROWS_A_WARP; r++)
#pragma unroll
    for (int m = 0; m < MT; m++) {
      const float s = warp_sum(sum[r][m]);
      if (lane == 0 && n0 + r < p.n && m0 + m < p.m) store_float(p.y, p.y_type, (m0 + m) * p.ldy + n0 + r, s);
    }
}

// Weights in floats: a warp has one row, its lanes neighbouring pieces of eight numbers.
#if W_IS_FLOAT && !X_A8
__device__ __forceinline__ void load_8(const u8 *w, i64 at, float *out) {
#if W_TYPE == W_F32
  const float4 a = __ldcs((const float4 *)((const float *)w + at)), b = __ldcs((const float4 *)((const float *)w + at + 4));
  out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w, out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
#else
  const uint4 v = __ldcs((const uint4 *)((const u16 *)w + at));
  const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int j = 0; j < 4; j++) {
    out[2 * j] = W_TYPE == W_F16 ? half_bits((u16)word[j]) : __uint_as_float(word[j] << 16);
    out[2 * j + 1] = W_TYPE == W_F16 ? half_bits((u16)(word[j] >> 16)) : __uint_as_float(word[j] & 0xffff0000u);
  }
#endif
}
template <int MT> __device__ __forceinline__ void gemv_whole(const matmul_params &p) {
  const int lane = threadIdx.x & 31;
  const i64 n = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5), m0 = (i64)blockIdx.y * MT;
  float sum[MT];
#pragma unroll
  for (int m = 0; m < MT; m++) sum[m] = 0;
  GO();
  WAIT();
  if (n >= p.n) return;
#pragma unroll 4
  for (i64 s = lane; s < p.k / 8; s += 32) {
    float w[8];
    load_8(p.w, n * p.k + 8 * s, w);
#pragma unroll
    for (int m = 0; m < MT; m++) {
      if (m0 + m >= p.m) break;
      const x_number *x = (const x_number *)p.x + (m0 + m) * p.ldx + 8 * s;
#if X_TYPE == 0
      const float4 a = *(const float4 *)x, b = *(const float4 *)(x + 4);
      const float v[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 8; i++) sum[m] = fmaf(w[i], v[i], sum[m]);
#else
#pragma unroll
      for (int i = 0; i < 8; i++) sum[m] = fmaf(w[i], get_float(x + i), sum[m]);
#endif
    }
  }
#pragma unroll
  for (int m = 0; m < MT; m++) {
    const float v = warp_sum(sum[m]);
    if (lane == 0 && m0 + m < p.m) store_float(p.y, p.y_type, (m0 + m) * p.ldy + n, v);
  }
}
#elif W_TYPE == W_Q8_0 && W_LAYOUT == 0 && X_A8
// A warp has one row, four lanes a block.
template <int MT> __device__ __forceinline__ void gemv_whole(const matmul_params &p) {
  const int lane = threadIdx.x & 31, j = lane & 3;
  const i64 n = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5), m0 = (i64)blockIdx.y * MT, blocks = p.k / 32;
  float sum[MT];
#pragma unroll
  for (int m = 0; m < MT; m++) sum[m] = 0;
  GO();
  WAIT();
  if (n >= p.n) return;
#pragma unroll 4
  for (i64 b = lane >> 2; b < blocks; b += 8) {
    const u16 *w = (const u16 *)(p.w + (n * blocks + b) * 34);
    const float d = half_bits(w[0]);
    const int q0 = (int)(w[1 + 4 * j] | (u32)w[2 + 4 * j] << 16), q1 = (int)(w[3 + 4 * j] | (u32)w[4 + 4 * j] << 16);
#pragma unroll
    for (int m = 0; m < MT; m++) {
      if (m0 + m >= p.m) break;
      const u8 *x = p.x + ((m0 + m) * p.ldx + b) * 40;
      const int2 v = *(const int2 *)(x + 8 * j);
      sum[m] += d * *(const float *)(x + 32) * (float)__dp4a(q1, v.y, __dp4a(q0, v.x, 0));
    }
  }
#pragma unroll
  for (int m = 0; m < MT; m++) {
    const float v = warp_sum(sum[m]);
    if (lane == 0 && m0 + m < p.m) store_float(p.y, p.y_type, (m0 + m) * p.ldy + n, v);
  }
}
#else
template <int MT> __device__ __forceinline__ void gemv_whole(const matmul_params &p) { gemv_rows<MT>(p); }
#endif
#ifdef EIGHT // the same sums of a row in any number of rows
#if W_IS_FLOAT && !X_A8
// As gemv_whole, four rows of w a warp: what is loaded and widened of x serves all of them.
#define WIDE 4
extern "C" __global__ void __launch_bounds__(32 * WARPS) gemv_8(const __grid_constant__ matmul_params p) {
  const int lane = threadIdx.x & 31;
  const i64 n0 = ((i64)blockIdx.x * WARPS + (threadIdx.x >> 5)) * WIDE, m0 = (i64)blockIdx.y * 8;
  float sum[WIDE][8];
#pragma unroll
  for (int r = 0; r < WIDE; r++)
#pragma unroll
    for (int m = 0; m < 8; m++) sum[r][m] = 0;
  GO();
  WAIT();
  if (n0 >= p.n) return;
  for (i64 s = lane; s < p.k / 8; s += 32) {
    float w[WIDE][8];
#pragma unroll
    for (int r = 0; r < WIDE; r++) load_8(p.w, (n0 + r < p.n ? n0 + r : n0) * p.k + 8 * s, w[r]);
#pragma unroll
    for (int m = 0; m < 8; m++) {
      if (m0 + m >= p.m) break;
      const x_number *x = (const x_number *)p.x + (m0 + m) * p.ldx + 8 * s;
      float v[8];
      if (sizeof(x_number) == 4) {
        const float4 a = ((const float4 *)x)[0], b = ((const float4 *)x)[1];
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
      } else {
        const uint4 a = *(const uint4 *)x;
        const u32 word[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int i = 0; i < 8; i++) {
          const u16 bits = (u16)(word[i >> 1] >> 16 * (i & 1));
          v[i] = get_float((const x_number *)&bits);
        }
      }
#pragma unroll
      for (int r = 0; r < WIDE; r++)
#pragma unroll
        for (int i = 0; i < 8; i++) sum[r][m] = fmaf(w[r][i], v[i], sum[r][m]);
    }
  }
#pragma unroll
  for (int r = 0; r < WIDE; r++)
#pragma unroll
    for (int m = 0; m < 8; m++) {
      const float v = warp_sum(sum[r][m]);
      if (lane == 0 && n0 + r < p.n && m0 + m < p.m) store_float(p.y, p.y_type, (m0 + m) * p.ldy + n0 + r, v);
    }
}
#else
extern "C" __global__ void __launch_bounds__(32 * WARPS) gemv_8(const __grid_constant__ matmul_params p) { gemv_whole<8>(p); }
#endif
#endif
#ifndef EXPERTS
extern "C" __global__ void __launch_bounds__(32 * WARPS) gemv_1(const __grid_constant__ matmul_params p) { gemv_whole<1>(p); }
extern "C" __global__ void __launch_bounds__(32 * WARPS) gemv_4(const __grid_constant__ matmul_params p) { gemv_whole<4>(p); }
#endif

// ---- few rows, tiles of 16 rows by 256 (layout 1): the warps of a block share a tile's rows and split k.
// One int8 product m16n8k32 has the 16 rows of w and a run of 32 along k; x of run r stands in column r alone, so that
// eight products give the sums of all eight runs apart, for the scales to be applied to.
#if X_A8 && W_LAYOUT == 1
#define TILE_WARPS 8
struct tile_part {
  uint4 v[4];
  u32 a, b, d0, d1;
};
__device__ __forceinline__ void load_tile(const u8 *tile, tile_part *out) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int c = 0; c < 4; c++) out->v[c] = __ldcs((const uint4 *)(tile + 256 + c * 512 + lane * 16));
  out->a = *(const u32 *)(tile + 64 + lane * 4);
  out->b = *(const u16 *)(tile + 192 + lane * 2);
  out->d0 = *(const u32 *)(tile + (lane >> 2) * 4);
  out->d1 = *(const u32 *)(tile + (lane >> 2) * 4 + 32);
}
__device__ __forceinline__ void product_s8(int *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float six(u32 s, int shift) { return (float)(s >> shift & 63); }
// Lane (g, t): x of run g, numbers 8t .. 8t + 7, in the order of the tile's half bytes; scales and sums of runs 2t, 2t + 1.
struct tile_x {
  u32 b0, b1;
  float d0, d1, s0, s1;
};
__device__ __forceinline__ void load_tile_x(const u8 *row, i64 s, tile_x *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const int2 q = *(const int2 *)(row + (s * 8 + g) * 40 + 8 * t);
  out->b0 = __byte_perm(q.x, q.y, 0x5140);
  out->b1 = __byte_perm(q.x, q.y, 0x7362);
  const int2 u = *(const int2 *)(row + (s * 8 + 2 * t) * 40 + 32), v = *(const int2 *)(row + (s * 8 + 2 * t) * 40 + 72);
  out->d0 = __int_as_float(u.x);
  out->d1 = __int_as_float(v.x);
  out->s0 = out->d0 * (float)((int)(i16)u.y + (u.y >> 16));
  out->s1 = out->d1 * (float)((int)(i16)v.y + (v.y >> 16));
}
__device__ __forceinline__ void add_tile(const tile_part &r, const tile_x &x, float *first, float *second) {
  const int g = (threadIdx.x & 31) >> 2;
  int c[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u32 b0 = g == 2 * i ? x.b0 : 0, b1 = g == 2 * i ? x.b1 : 0;
    product_s8(c[0], r.v[i].x & 0x0f0f0f0f, r.v[i].y & 0x0f0f0f0f, r.v[i].x >> 4 & 0x0f0f0f0f, r.v[i].y >> 4 & 0x0f0f0f0f,
               b0, b1);
    b0 = g == 2 * i + 1 ? x.b0 : 0, b1 = g == 2 * i + 1 ? x.b1 : 0;
    product_s8(c[1], r.v[i].z & 0x0f0f0f0f, r.v[i].w & 0x0f0f0f0f, r.v[i].z >> 4 & 0x0f0f0f0f, r.v[i].w >> 4 & 0x0f0f0f0f,
               b0, b1);
  }
  const float f0 = (float)(c[0][0] + c[1][0]), f1 = (float)(c[0][1] + c[1][1]), f2 = (float)(c[0][2] + c[1][2]),
              f3 = (float)(c[0][3] + c[1][3]);
  const u32 s0 = r.a, s1 = r.a >> 24 | r.b << 8;
  const float d0 = half_bits((u16)r.d0), m0 = half_bits((u16)(r.d0 >> 16)), d1 = half_bits((u16)r.d1),
              m1 = half_bits((u16)(r.d1 >> 16));
  *first += d0 * (six(s0, 0) * (x.d0 * f0) + six(s0, 12) * (x.d1 * f1)) - m0 * (six(s0, 6) * x.s0 + six(s0, 18) * x.s1);
  *second += d1 * (six(s1, 0) * (x.d0 * f2) + six(s1, 12) * (x.d1 * f3)) - m1 * (six(s1, 6) * x.s0 + six(s1, 18) * x.s1);
}
template <int MT> __device__ __forceinline__ void gemv_tiles(const matmul_params &p) {
  __shared__ float part[MT][TILE_WARPS][16];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, tiles = (int)(p.k >> 8);
  const u8 *tile = p.w + (i64)blockIdx.x * tiles * TILE;
  const i64 m0 = (i64)blockIdx.y * MT;
  float sum[MT][2];
#pragma unroll
  for (int m = 0; m < MT; m++) sum[m][0] = sum[m][1] = 0;
  GO();
  tile_part next;
  if (warp < tiles) load_tile(tile + (i64)warp * TILE, &next);
  WAIT();
  for (int s = warp; s < tiles; s += TILE_WARPS) {
    const tile_part now = next;
    if (s + TILE_WARPS < tiles) load_tile(tile + (i64)(s + TILE_WARPS) * TILE, &next);
#pragma unroll
    for (int m = 0; m < MT; m++) {
      if (m0 + m >= p.m) break;
      tile_x x;
      load_tile_x(p.x + (m0 + m) * p.ldx * 40, s, &x);
      add_tile(now, x, &sum[m][0], &sum[m][1]);
    }
  }
#pragma unroll
  for (int m = 0; m < MT; m++) {
    float a = sum[m][0], b = sum[m][1];
    a += __shfl_xor_sync(~0u, a, 1);
    a += __shfl_xor_sync(~0u, a, 2);
    b += __shfl_xor_sync(~0u, b, 1);
    b += __shfl_xor_sync(~0u, b, 2);
    if ((lane & 3) == 0) {
      part[m][warp][lane >> 2] = a;
      part[m][warp][(lane >> 2) + 8] = b;
    }
  }
  __syncthreads();
  const int m = threadIdx.x >> 4, row = threadIdx.x & 15;
  if (m >= MT || m0 + m >= p.m || (i64)blockIdx.x * 16 + row >= p.n) return;
  float s = 0;
#pragma unroll
  for (int i = 0; i < TILE_WARPS; i++) s += part[m][i][row];
  store_float(p.y, p.y_type, (m0 + m) * p.ldy + (i64)blockIdx.x * 16 + row, s);
}
#ifndef EXPERTS
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS) gemv_tile_1(const __grid_constant__ matmul_params p) { gemv_tiles<1>(p); }
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS) gemv_tile_4(const __grid_constant__ matmul_params p) { gemv_tiles<4>(p); }
#endif
#elif !defined(EXPERTS)
extern "C" __global__ void gemv_tile_1(const __grid_constant__ matmul_params p) {}
extern "C" __global__ void gemv_tile_4(const __grid_constant__ matmul_params p) {}
#endif
