// SPDX-License-Identifier: MIT
// Products of quantised rows of x with weights in tiles (layouts.c), any number of rows, a row's sums being those that
// decode.cu gives it when it comes alone. weights.cu is in front.
//
// What both keep to: tile s of a panel belongs to chain s mod 16. A tile has four terms for each of its 16 rows, of two
// runs of 32 each (q4_k) or of one (q8_0). A chain adds up each of the four over its tiles, in order along k, then
// ((0 + 1) + (2 + 3)); a result is the sum of the chains in order, from 0 on. Sums of runs are whole numbers, and exact.
//
// The int8 product m16n8k32 has a panel's 16 rows, a run of 32 along k, and here eight rows of x. Lane 4g + t gets rows g
// and g + 8 of the panel with rows 2t and 2t + 1 of x.
struct matmul_params {
  const u8 *x, *w;
  u8 *y;
  i64 m, n, k;
  i64 ldx, ldy; // ldx in blocks of 32
  i32 y_type, pad;
};
#define CHAINS 16
#define THREADS 512
#if W_LAYOUT == 1
#define RUNS 8
#define TILE_BYTES 2304
#define PITCH 352 // bytes of a row of x in shared memory: rows lie in different banks
#else
#define RUNS 4
#define TILE_BYTES 2176
#define PITCH 160
#endif
#define X_BYTES 40 // of a block of 32 of x: levels; factor and sums, or factor and factor times sum

__device__ __forceinline__ void product_s8(int *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 word_of(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

#if W_LAYOUT == 1
struct tile_part {
  uint4 v[4], a;
  uint2 b;
  u32 d0, d1;
};
__device__ __forceinline__ void load_tile(const u8 *tile, tile_part *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2;
#pragma unroll
  for (int c = 0; c < 4; c++) out->v[c] = *(const uint4 *)(tile + 256 + c * 512 + lane * 16);
  out->a = *(const uint4 *)(tile + 64 + g * 16);
  out->b = *(const uint2 *)(tile + 192 + g * 8);
  out->d0 = *(const u32 *)(tile + g * 4);
  out->d1 = *(const u32 *)(tile + g * 4 + 32);
}
__device__ __forceinline__ float six(u32 s, int shift) { return (float)(s >> shift & 63); }
#else
struct tile_part {
  uint4 v[4], d; // d: of runs 0 .. 3 a pair of halves, rows g and g + 8
};
__device__ __forceinline__ void load_tile(const u8 *tile, tile_part *out) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int c = 0; c < 4; c++) out->v[c] = *(const uint4 *)(tile + 128 + c * 512 + lane * 16);
  out->d = *(const uint4 *)(tile + (lane >> 2) * 16);
}
#endif

// Adds a tile's terms with 8 J rows of x. levels(j, run): numbers 8t .. 8t + 7 of row 8j + g; factors(j, e, run): the
// factor, and factor times sum, of row 8j + 2t + e.
template <int J, class Levels, class Factors>
__device__ __forceinline__ void add_tile(const tile_part &w, Levels levels, Factors factors, float sum[4][J][4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
#if W_LAYOUT == 1
    const u32 s0 = word_of(w.a, i), s1 = s0 >> 24 | (word_of(make_uint4(w.b.x, w.b.x >> 16, w.b.y, w.b.y >> 16), i) & 0xffff) << 8;
    const float scale[2][2] = {{six(s0, 0), six(s0, 12)}, {six(s1, 0), six(s1, 12)}};
    const float minimum[2][2] = {{six(s0, 6), six(s0, 18)}, {six(s1, 6), six(s1, 18)}};
    const float d[2] = {half_bits((u16)w.d0), half_bits((u16)w.d1)}, m[2] = {half_bits((u16)(w.d0 >> 16)), half_bits((u16)(w.d1 >> 16))};
    const u32 mask = 0x0f0f0f0f;
#else
    const u32 both = word_of(w.d, i);
    const float d[2] = {half_bits((u16)both), half_bits((u16)(both >> 16))};
#endif
#pragma unroll
    for (int j = 0; j < J; j++) {
      int c[4] = {0, 0, 0, 0};
#if W_LAYOUT == 1
      int c1[4] = {0, 0, 0, 0};
      const int2 q0 = levels(j, 2 * i), q1 = levels(j, 2 * i + 1);
      product_s8(c, w.v[i].x & mask, w.v[i].y & mask, w.v[i].x >> 4 & mask, w.v[i].y >> 4 & mask,
                 __byte_perm(q0.x, q0.y, 0x5140), __byte_perm(q0.x, q0.y, 0x7362));
      product_s8(c1, w.v[i].z & mask, w.v[i].w & mask, w.v[i].z >> 4 & mask, w.v[i].w >> 4 & mask,
                 __byte_perm(q1.x, q1.y, 0x5140), __byte_perm(q1.x, q1.y, 0x7362));
#else
      const int2 q = levels(j, i);
      product_s8(c, w.v[i].x, w.v[i].y, w.v[i].z, w.v[i].w, __byte_perm(q.x, q.y, 0x5140), __byte_perm(q.x, q.y, 0x7362));
#endif
#pragma unroll
      for (int e = 0; e < 2; e++) {
#if W_LAYOUT == 1
        const float2 x0 = factors(j, e, 2 * i), x1 = factors(j, e, 2 * i + 1);
#pragma unroll
        for (int h = 0; h < 2; h++)
          sum[i][j][2 * h + e] +=
              d[h] * (scale[h][0] * (x0.x * (float)c[2 * h + e]) + scale[h][1] * (x1.x * (float)c1[2 * h + e])) -
              m[h] * (minimum[h][0] * x0.y + minimum[h][1] * x1.y);
#else
        const float2 x = factors(j, e, i);
#pragma unroll
        for (int h = 0; h < 2; h++) sum[i][j][2 * h + e] += d[h] * (x.x * (float)c[2 * h + e]);
#endif
      }
    }
  }
}
template <int J> __device__ __forceinline__ float chain_of(const float sum[4][J][4], int j, int e) {
  return (sum[0][j][e] + sum[1][j][e]) + (sum[2][j][e] + sum[3][j][e]);
}
template <int J> __device__ __forceinline__ void clear(float sum[4][J][4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
}
// What lies behind the levels of a block of x.
__device__ __forceinline__ float2 factors_of(int2 v) {
  const float scale = __int_as_float(v.x);
  return make_float2(scale, scale * (float)((int)(i16)v.y + (v.y >> 16)));
}

// A block has a panel and eight rows of x, a warp a chain.
extern "C" __global__ void __launch_bounds__(THREADS) tiles_few(const __grid_constant__ matmul_params p) {
  __shared__ float part[CHAINS][8][17];
  const int chain = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const int blocks = (int)(p.k / 32), tiles = (blocks + RUNS - 1) / RUNS;
  const u8 *tile = p.w + (i64)blockIdx.x * tiles * TILE_BYTES;
  const i64 m0 = (i64)blockIdx.y * 8, last = p.m - 1 - m0; // rows behind the last are the last once more
  GO();
  tile_part next;
  if (chain < tiles) load_tile(tile + (i64)chain * TILE_BYTES, &next);
  WAIT();
  const u8 *mine = p.x + (m0 + min((i64)g, last)) * p.ldx * X_BYTES;
  const u8 *pair[2] = {p.x + (m0 + min((i64)(2 * t), last)) * p.ldx * X_BYTES, p.x + (m0 + min((i64)(2 * t + 1), last)) * p.ldx * X_BYTES};
  float sum[4][1][4];
  clear<1>(sum);
  for (int s = chain; s < tiles; s += CHAINS) {
    const tile_part now = next;
    if (s + CHAINS < tiles) load_tile(tile + (i64)(s + CHAINS) * TILE_BYTES, &next);
    add_tile<1>(
        now,
        [&](int, int run) {
          const int b = s * RUNS + run;
          return b < blocks ? *(const int2 *)(mine + b * X_BYTES + 8 * t) : make_int2(0, 0);
        },
        [&](int, int e, int run) {
          const int b = s * RUNS + run;
          return b < blocks ? factors_of(*(const int2 *)(pair[e] + b * X_BYTES + 32)) : make_float2(0, 0);
        },
        sum);
  }
#pragma unroll
  for (int e = 0; e < 4; e++) part[chain][2 * t + (e & 1)][g + 8 * (e >> 1)] = chain_of<1>(sum, 0, e);
  __syncthreads();
  const int m = threadIdx.x >> 4, row = threadIdx.x & 15;
  if (m >= 8 || m > last || (i64)blockIdx.x * 16 + row >= p.n) return;
  float all = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; c++) all += part[c][m][row];
  store_float(p.y, p.y_type, (m0 + m) * p.ldy + (i64)blockIdx.x * 16 + row, all);
}

// A block has four panels and 64 rows of x, a warp one panel and 16 rows; the chains come one behind the other. A tile's x
// stands in shared memory; the next one comes while this one is multiplied.
#define BM 64
#define UNITS (BM * RUNS * 5)                      // of eight bytes
#define EACH ((UNITS + THREADS - 1) / THREADS)
__device__ __forceinline__ void fetch_x(const matmul_params &p, i64 m0, int s, int2 *out) {
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int u = threadIdx.x + i * THREADS, m = u / (RUNS * 5), at = u % (RUNS * 5);
    const i64 block = (i64)s * RUNS + at / 5;
    out[i] = make_int2(0, 0);
    if (u < UNITS && m0 + m < p.m && block < p.k / 32)
      out[i] = *(const int2 *)(p.x + ((m0 + m) * p.ldx + block) * X_BYTES + 8 * (at % 5));
  }
}
__device__ __forceinline__ void keep_x(const int2 *v, u8 *xs) {
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int u = threadIdx.x + i * THREADS, m = u / (RUNS * 5), at = u % (RUNS * 5);
    if (u >= UNITS) break;
    u8 *to = xs + m * PITCH + at * 8;
    if (at % 5 == 4)
      *(float2 *)to = factors_of(v[i]);
    else
      *(int2 *)to = v[i];
  }
}
extern "C" __global__ void __launch_bounds__(THREADS, 1) tiles_many(const __grid_constant__ matmul_params p) {
  __shared__ __align__(16) u8 xs[BM * PITCH];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const int tiles = (int)((p.k / 32 + RUNS - 1) / RUNS);
  const i64 panel = (i64)blockIdx.x * 4 + (warp & 3), m0 = (i64)blockIdx.y * BM, mine = m0 + (warp >> 2) * 16;
  const bool there = panel * 16 < p.n && mine < p.m;
  const u8 *tile = p.w + (there ? panel : 0) * tiles * TILE_BYTES;
  const u8 *rows = xs + (warp >> 2) * 16 * PITCH;
  float all[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  int2 next[EACH];
  GO();
  WAIT();
  fetch_x(p, m0, 0, next);
  for (int chain = 0; chain < min(CHAINS, tiles); chain++) {
    float sum[4][2][4];
    clear<2>(sum);
    for (int s = chain; s < tiles; s += CHAINS) {
      tile_part w;
      if (there) load_tile(tile + (i64)s * TILE_BYTES, &w);
      __syncthreads();
      keep_x(next, xs);
      __syncthreads();
      const int then = s + CHAINS < tiles ? s + CHAINS : chain + 1;
      if (then < tiles) fetch_x(p, m0, then, next);
      if (!there) continue;
      add_tile<2>(
          w, [&](int j, int run) { return *(const int2 *)(rows + (8 * j + g) * PITCH + run * X_BYTES + 8 * t); },
          [&](int j, int e, int run) { return *(const float2 *)(rows + (8 * j + 2 * t + e) * PITCH + run * X_BYTES + 32); },
          sum);
    }
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) all[j][e] += chain_of<2>(sum, j, e);
  }
  if (!there) return;
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const i64 m = mine + 8 * j + 2 * t + (e & 1), n = panel * 16 + g + 8 * (e >> 1);
      if (m < p.m && n < p.n) store_float(p.y, p.y_type, m * p.ldy + n, all[j][e]);
    }
}
