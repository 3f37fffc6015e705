// SPDX-License-Identifier: MIT
// Products of one row of x with weights: y[n] = sum over k of x[k] w[n, k]. Few blocks that stay: each makes the row it
// multiplies itself (the region in front, or a copy), while its first weights are on their way. row.cu is in front, and
// make_x where a region is joined; else X_TYPE says what lies in memory (64: a8).
//
// TILED: a panel of 16 rows in tiles along k (layouts.c). Warp w has tiles w, w + 16, ... of a block's panels, copied to
// its own two places in shared memory; one int8 product m16n8k32 has 16 rows and a run of 32 along k, the x of run r in
// a column of its own. Tile s of a panel belongs to chain s mod 16, whichever warp that is, and chains are added up in
// order: so a row's sums depend neither on the panel's place in a block nor on the grid, and tiles.cu has the same for
// many rows. Floats: a warp has whole rows, summed as gemv_whole of matmul.cu does.
#if !JOINED
__device__ __forceinline__ void make_x(const step_params &p, float *, u8 *image) {
  WAIT();
  for (int first = 0; first < GROUPS; first += THREADS) {
    const int group = first + threadIdx.x;
#if TILED
    int2 q = make_int2(0, 0);
    float scale = 0;
    int sum = 0;
    if (group < WIDTH / 8) {
      const u8 *block = p.x + (group >> 2) * 40;
      q = *(const int2 *)(block + 8 * (group & 3));
      const int2 v = *(const int2 *)(block + 32);
      scale = __int_as_float(v.x);
      sum = (int)(i16)v.y + (v.y >> 16);
    }
    if (group < GROUPS) {
      ((uint2 *)image)[group] = make_uint2(__byte_perm(q.x, q.y, 0x5140), __byte_perm(q.x, q.y, 0x7362));
      keep_sums(group, scale, sum, image);
    }
#else
    float v[8];
    load_8(v, (const x_number *)p.x, group);
    keep_8(v, group, image);
#endif
  }
}
#endif

__device__ __forceinline__ int member_of(const step_params &p, int unit) {
  int m = 0;
#pragma unroll
  for (int i = 1; i < MEMBERS; i++)
    if (unit >= p.member[i].first) m = i;
  return m;
}

// With AFTER the results are two halves of one length, and what comes of each pair is written, as f32, in place of the
// first half: a block has both panels (a warp both rows) of a pair, one behind the other.
#if AFTER
#define SIDES 2
#else
#define SIDES 1
#endif
__device__ __forceinline__ int member_at(const step_params &p, int unit, int side, int *out_unit) {
#if AFTER && MEMBERS == 1
  *out_unit = unit + side * (p.units / 2);
  return 0;
#elif AFTER
  *out_unit = unit;
  return side;
#else
  const int m = member_of(p, unit);
  *out_unit = unit - p.member[m].first;
  return m;
#endif
}

#if TILED
#define SLOTS 2
#if W_TYPE == W_Q8_0
#define TILE 2176
#define TILE_K 128
#else
#define TILE 2304
#define TILE_K 256
#endif
#define TILES (PADDED / TILE_K)
#define IMAGE (PADDED + PADDED / 4)
#define RING (WARPS * SLOTS * TILE)

__device__ __forceinline__ u32 there(const void *p) { return (u32)__cvta_generic_to_shared(p); }
// Item i of a block: tile i % TILES of its panel i / TILES.
__device__ __forceinline__ const u8 *item_at(const step_params &p, int i) {
  const int j = i / TILES;
  int panel;
  const int m = member_at(p, blockIdx.x + j / SIDES * gridDim.x, j % SIDES, &panel);
  return p.member[m].w + ((i64)panel * TILES + i % TILES) * TILE;
}
__device__ __forceinline__ void fetch(u32 slot, u32 bar, const u8 *from) {
  if ((threadIdx.x & 31) == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(TILE) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(slot), "l"(from),
                 "r"(TILE), "r"(bar)
                 : "memory");
  }
}
__device__ __forceinline__ void arrive(u32 bar, u32 phase) {
  u32 done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(bar), "r"(phase)
                 : "memory");
}

// Levels are numbers below 2^22 as they come from the products: a float whose last bits they are is one subtraction away.
#define MAGIC 0x4b400000
__device__ __forceinline__ float from_magic(int v) { return __int_as_float(v) - 12582912.0f; }
__device__ __forceinline__ float six_bits(u32 s, u32 mask, u32 exponent) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(s), "r"(mask), "r"(exponent));
  return __uint_as_float(r) - 8388608.0f;
}
#define PRODUCT(kind, c, a0, a1, a2, a3, b0, b1)                                                                                   \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." kind ".s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"         \
               : "+r"((c)[0]), "+r"((c)[1]), "+r"((c)[2]), "+r"((c)[3])                                                            \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

#if W_TYPE == W_Q8_0
struct tile_part {
  uint4 v[4];
  u32 d; // of rows g and g + 8, run t
};
__device__ __forceinline__ void take_tile(const u8 *tile, tile_part *out) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int c = 0; c < 4; c++) out->v[c] = *(const uint4 *)(tile + 128 + c * 512 + lane * 16);
  out->d = *(const u32 *)(tile + lane * 4);
}
__device__ __forceinline__ void add_tile(const tile_part &w, const u8 *image, int s, float *first, float *second) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const uint2 x = ((const uint2 *)image)[s * 16 + (g >> 1) * 4 + t];
  const float2 f = ((const float2 *)(image + PADDED))[s * 4 + t];
  int c[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const bool mine = g == 2 * i;
    PRODUCT("s8", c, w.v[i].x, w.v[i].y, w.v[i].z, w.v[i].w, mine ? x.x : 0, mine ? x.y : 0);
  }
  *first += half_bits((u16)w.d) * (f.x * (float)c[0]);
  *second += half_bits((u16)(w.d >> 16)) * (f.x * (float)c[2]);
}
#else
struct tile_part {
  uint4 v[4];
  u32 a, b, d0, d1;
};
__device__ __forceinline__ void take_tile(const u8 *tile, tile_part *out) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int c = 0; c < 4; c++) out->v[c] = *(const uint4 *)(tile + 256 + c * 512 + lane * 16);
  out->a = *(const u32 *)(tile + 64 + lane * 4);
  out->b = *(const u16 *)(tile + 192 + lane * 2);
  out->d0 = *(const u32 *)(tile + (lane >> 2) * 4);
  out->d1 = *(const u32 *)(tile + (lane >> 2) * 4 + 32);
}
// The upper half bytes stay where they are: their products come out 16 times too large.
__device__ __forceinline__ void add_tile(const tile_part &w, const u8 *image, int s, float *first, float *second) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const uint2 x = ((const uint2 *)image)[s * 32 + lane];
  const float4 f = ((const float4 *)(image + PADDED))[s * 4 + t];
  int low[4] = {MAGIC, MAGIC, MAGIC, MAGIC}, high[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const bool even = g == 2 * i, odd = g == 2 * i + 1;
    PRODUCT("u8", low, w.v[i].x & 0x0f0f0f0f, w.v[i].y & 0x0f0f0f0f, w.v[i].z & 0x0f0f0f0f, w.v[i].w & 0x0f0f0f0f,
            even ? x.x : 0, odd ? x.x : 0);
    PRODUCT("u8", high, w.v[i].x & 0xf0f0f0f0, w.v[i].y & 0xf0f0f0f0, w.v[i].z & 0xf0f0f0f0, w.v[i].w & 0xf0f0f0f0,
            even ? x.y : 0, odd ? x.y : 0);
  }
  const float f0 = from_magic(low[0] + (high[0] >> 4)), f1 = from_magic(low[1] + (high[1] >> 4)),
              f2 = from_magic(low[2] + (high[2] >> 4)), f3 = from_magic(low[3] + (high[3] >> 4));
  const u32 s0 = w.a, s1 = __funnelshift_r(w.a, w.b, 24);
  u32 mask = 63, exponent = 0x4b000000;
  asm volatile("" : "+r"(mask), "+r"(exponent)); // or the two would become one immediate, and two instructions
  const float d0 = half_bits((u16)w.d0), m0 = half_bits((u16)(w.d0 >> 16)), d1 = half_bits((u16)w.d1),
              m1 = half_bits((u16)(w.d1 >> 16));
#define SIX(v, shift) six_bits((v) >> (shift), mask, exponent)
  *first += d0 * (SIX(s0, 0) * (f.x * f0) + SIX(s0, 12) * (f.z * f1)) - m0 * (SIX(s0, 6) * f.y + SIX(s0, 18) * f.w);
  *second += d1 * (SIX(s1, 0) * (f.x * f2) + SIX(s1, 12) * (f.z * f3)) - m1 * (SIX(s1, 6) * f.y + SIX(s1, 18) * f.w);
}
#endif

// Of a warp in a block's panel: a panel's first tile is item panel * TILES.
__device__ __forceinline__ int chain_at(int panel) { return ((int)(threadIdx.x >> 5) - panel * TILES) & (WARPS - 1); }
// A warp's sums of a panel's 16 rows.
__device__ __forceinline__ void put_part(float *part, float first, float second) {
  const int lane = threadIdx.x & 31;
  float mine = lane & 1 ? second : first, other = lane & 1 ? first : second;
  mine += __shfl_xor_sync(~0u, other, 1);
  mine += __shfl_xor_sync(~0u, mine, 2);
  if ((lane & 3) < 2) part[(lane >> 2) + 8 * (lane & 1)] = mine;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) decode(const __grid_constant__ step_params p) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ __align__(8) u64 bar[WARPS * SLOTS];
  __shared__ float shared[32];
  u8 *image = memory + RING;
  float *part = (float *)(image + IMAGE); // [panel][chain][16]
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int panels = (p.units / SIDES - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x * SIDES, items = panels * TILES;
  const u8 *slot = memory + warp * SLOTS * TILE;
  const u32 bars = there(bar + warp * SLOTS), slots = there(slot);
  GO();
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < SLOTS; i++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bars + 8 * i) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < SLOTS; i++)
    if (warp + i * WARPS < items) fetch(slots + i * TILE, bars + 8 * i, item_at(p, warp + i * WARPS));
  if (TILES % WARPS) // then not every warp has a tile of every panel
    for (int i = threadIdx.x; i < panels * WARPS * 16; i += THREADS) part[i] = 0;
  make_x(p, shared, image);
  __syncthreads();
  float first = 0, second = 0;
  int at = 0, phase = 0, panel = warp / TILES;
  for (int i = warp; i < items; i += WARPS) {
    const int now = i / TILES;
    if (now != panel) {
      put_part(part + (panel * WARPS + chain_at(panel)) * 16, first, second);
      first = second = 0;
      panel = now;
    }
    tile_part w;
    arrive(bars + 8 * at, phase);
    take_tile(slot + at * TILE, &w);
    __syncwarp();
    const int next = i + SLOTS * WARPS;
    if (next < items) fetch(slots + at * TILE, bars + 8 * at, item_at(p, next));
    if (++at == SLOTS) at = 0, phase ^= 1;
    add_tile(w, image, i % TILES, &first, &second);
  }
  if (warp < items) put_part(part + (panel * WARPS + chain_at(panel)) * 16, first, second);
  __syncthreads();
  for (int i = threadIdx.x; i < panels / SIDES * 16; i += THREADS) {
    float s[SIDES];
    int panel;
    const int m = member_at(p, blockIdx.x + (i >> 4) * gridDim.x, 0, &panel), row = panel * 16 + (i & 15);
#pragma unroll
    for (int side = 0; side < SIDES; side++) {
      s[side] = 0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) s[side] += part[(((i >> 4) * SIDES + side) * WARPS + w) * 16 + (i & 15)];
    }
#if AFTER
    ((float *)p.member[m].y)[row] = after(s[0], s[1]);
#else
    if (row < p.member[m].rows) store_float(p.member[m].y, p.member[m].type, row, s[0]);
#endif
  }
}
#else
#define AT_ONCE 6 // pieces of 256 numbers: each lane 16 bytes of it
#define PIECES ((WIDTH / 8 + 31) / 32)
#define STEPS ((PIECES + AT_ONCE - 1) / AT_ONCE)
// `turn` counts a warp's rows, both of a pair.
__device__ __forceinline__ int row_at(int turn) {
  return (threadIdx.x >> 5) * gridDim.x + blockIdx.x + turn / SIDES * gridDim.x * WARPS;
}
__device__ __forceinline__ const uint4 *row_from(const step_params &p, int turn) {
  int row;
  const int m = member_at(p, row_at(turn), turn % SIDES, &row);
  return (const uint4 *)p.member[m].w + (i64)row * (WIDTH / 8) + (threadIdx.x & 31);
}
__device__ __forceinline__ uint4 fetch(const uint4 *row, int piece) {
  const int group = piece * 32 + (threadIdx.x & 31);
  return group < WIDTH / 8 ? __ldcs(row + piece * 32) : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ float weight_number(u32 word, int half) {
#if W_TYPE == W_F16
  return half_bits((u16)(word >> 16 * half));
#else
  return __uint_as_float(half ? word & 0xffff0000u : word << 16);
#endif
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) decode(const __grid_constant__ step_params p) {
  extern __shared__ __align__(128) u8 image[];
  __shared__ float shared[32];
  const int lane = threadIdx.x & 31, units = p.units / SIDES;
  uint4 v[AT_ONCE]; // pieces on their way
  float first = 0;
  GO();
  const uint4 *from = row_at(0) < units ? row_from(p, 0) : 0;
  if (from) {
#pragma unroll
    for (int i = 0; i < AT_ONCE / 2; i++) v[i] = fetch(from, i);
  }
  make_x(p, shared, image);
  if (from) { // making x needs the registers
#pragma unroll
    for (int i = AT_ONCE / 2; i < AT_ONCE; i++) v[i] = fetch(from, i);
  }
  __syncthreads();
  for (int turn = 0; row_at(turn) < units; turn++) {
    const uint4 *next = row_at(turn + 1) < units ? row_from(p, turn + 1) : from;
    float sum = 0;
#pragma unroll 1
    for (int step = 0; step < STEPS; step++) {
      const bool more = step + 1 < STEPS;
      const uint4 *then = more ? from : next;
      const int piece = more ? (step + 1) * AT_ONCE : 0;
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        const int group = (step * AT_ONCE + i) * 32 + lane;
        const u32 word[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
        v[i] = fetch(then, piece + i);
        if (group >= WIDTH / 8) continue;
        const float4 a = ((const float4 *)image)[group], b = ((const float4 *)image)[GROUPS + group];
        const float x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
        for (int j = 0; j < 8; j++) sum = fmaf(weight_number(word[j >> 1], j & 1), x[j], sum);
      }
    }
    from = next;
    sum = warp_sum(sum);
    int row;
    const int m = member_at(p, row_at(turn), 0, &row);
#if AFTER
    if (turn % 2 == 0)
      first = sum;
    else if (lane == 0)
      ((float *)p.member[m].y)[row] = after(first, sum);
#else
    (void)first;
    if (lane == 0) store_float(p.member[m].y, p.member[m].type, row, sum);
#endif
  }
}
#endif
