// SPDX-License-Identifier: MIT
// Products of one row of x with weights: y[n] = sum over k of x[k] w[n, k]. Few blocks that stay: each makes the row it
// multiplies itself (the region in front, or a copy), while its first weights are on their way. row.cu is in front, and
// make_x where a region is joined; else a copy: a8 where TILED, x_number where not.
//
// TILED: a panel of 16 rows in tiles along k (layouts.c). Warp w has tiles w, w + 16, ... of a block's panels, copied to
// its own two places in shared memory; one int8 product m16n8k32 has 16 rows and a run of 32 along k, the x of run r in
// a column of its own. Tile s of a panel belongs to chain s mod 16, whichever warp that is, and chains are added up in
// order: so a row's sums depend neither on the panel's place in a block nor on the grid, and tiles.cu has the same for
// many rows. Floats: a warp has whole rows, in chunks of SLOT bytes, summed as gemv_whole of matmul.cu does.
//
// LEVELS: what AFTER makes is quantised here, where a block has two neighbouring panels: 32 numbers become a block of
// a8, in place of the row's beginning, and the product behind reads a third of the bytes and need not quantise. Blocks
// have pairs of panels, `whole` of them in all; where pairs do not come out even, the last panels go one to a block and
// stay floats, at their places in the row, behind all levels. That product has READY, and quantises those itself.
#if !JOINED && TILED
#define ROUNDS ((GROUPS + THREADS - 1) / THREADS)
__device__ __forceinline__ void make_x(const step_params &p, float *, u8 *image) {
  twice(real) {
    if (real) WAIT();
    const int ready = !real ? 0 : READY ? 4 * p.x_whole : WIDTH / 8;
    int2 q[ROUNDS], of[ROUNDS];
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      const int group = j * THREADS + (int)threadIdx.x;
      const u8 *block = p.x + (group >> 2) * 40;
      q[j] = group < ready ? *(const int2 *)(block + 8 * (group & 3)) : make_int2(0, 0);
      of[j] = group < ready ? *(const int2 *)(block + 32) : make_int2(0, 0);
    }
#if READY
    float v[8];
    load_8(v, (const float *)p.x, real ? ready + (int)threadIdx.x : GROUPS);
#endif
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      const int group = j * THREADS + (int)threadIdx.x;
      if (group >= (READY ? ready : GROUPS)) continue;
      ((uint2 *)image)[group] = make_uint2(__byte_perm(q[j].x, q[j].y, 0x5140), __byte_perm(q[j].x, q[j].y, 0x7362));
      keep_sums(group, __int_as_float(of[j].x), (int)(i16)of[j].y + (of[j].y >> 16), image);
    }
#if READY
#pragma unroll 1
    for (int first = ready; first < (real ? GROUPS : 1); first += THREADS) {
      if (first != ready) load_8(v, (const float *)p.x, first + (int)threadIdx.x);
      quantize_8(v, first + (int)threadIdx.x, image);
    }
#endif
  }
}
#elif !JOINED
__device__ __forceinline__ void make_x(const step_params &p, float *, u8 *image) {
  WAIT();
  for (int first = 0; first < GROUPS; first += THREADS) {
    float v[8];
    load_8(v, (const x_number *)p.x, first + (int)threadIdx.x);
    keep_8(v, first + (int)threadIdx.x, image);
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

// A warp's two places in shared memory: what copies bring there while it computes. SLOT bytes each, a multiple of 512.
#define SLOTS 2
#define RING (WARPS * SLOTS * SLOT)
struct ring {
  const u8 *slot;
  u32 slots, bars;
  int at, phase;
};
__device__ __forceinline__ ring open_ring(const u8 *memory, const u64 *bar) {
  const int warp = threadIdx.x >> 5;
  const ring r = {memory + warp * SLOTS * SLOT, there(memory + warp * SLOTS * SLOT), there(bar + warp * SLOTS), 0, 0};
  if ((threadIdx.x & 31) == 0) {
#pragma unroll
    for (int i = 0; i < SLOTS; i++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(r.bars + 8 * i) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncwarp();
  return r;
}
__device__ __forceinline__ void fetch(const ring &r, int at, const u8 *from, u32 bytes) {
  if ((threadIdx.x & 31) == 0) {
    const u32 slot = r.slots + at * SLOT, bar = r.bars + 8 * at;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(slot), "l"(from),
                 "r"(bytes), "r"(bar)
                 : "memory");
  }
}
__device__ __forceinline__ const u8 *arrived(const ring &r) {
  u32 done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(r.bars + 8 * r.at), "r"(r.phase)
                 : "memory");
  return r.slot + r.at * SLOT;
}
__device__ __forceinline__ void advance(ring *r) {
  if (++r->at == SLOTS) r->at = 0, r->phase ^= 1;
}

#if TILED
#if W_TYPE == W_Q8_0
#define TILE_K 128
#else
#define TILE_K 256
#endif
#define TILES (PADDED / TILE_K)
#define IMAGE (PADDED + PADDED / 4)

// A block's panels (both of a pair for AFTER) are its turns.
__device__ __forceinline__ int pairs_of(const step_params &p) {
  return LEVELS ? (p.whole - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x : 0;
}
__device__ __forceinline__ int turns_of(const step_params &p) {
  if (LEVELS) return 2 * pairs_of(p) + ((int)blockIdx.x < p.units / SIDES - 2 * p.whole);
  return (p.units / SIDES - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
}
__device__ __forceinline__ int unit_at(const step_params &p, int turn) {
  if (!LEVELS) return blockIdx.x + turn * gridDim.x;
  const int pair = blockIdx.x + turn / 2 * gridDim.x;
  return pair < p.whole ? 2 * pair + turn % 2 : 2 * p.whole + blockIdx.x;
}
// Item i of a block: tile i % TILES of its panel i / TILES.
__device__ __forceinline__ const u8 *item_at(const step_params &p, int i) {
  const int j = i / TILES;
  int panel;
  const int m = member_at(p, unit_at(p, j / SIDES), j % SIDES, &panel);
  return p.member[m].w + ((i64)panel * TILES + i % TILES) * SLOT;
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
  const int warp = threadIdx.x >> 5;
  const int panels = turns_of(p) * SIDES, items = panels * TILES;
  GO();
  ring r = open_ring(memory, bar);
  hold_back(PATIENCE);
#pragma unroll
  for (int i = 0; i < SLOTS; i++)
    if (warp + i * WARPS < items) fetch(r, i, item_at(p, warp + i * WARPS), SLOT);
  if (TILES % WARPS) // then not every warp has a tile of every panel
    for (int i = threadIdx.x; i < panels * WARPS * 16; i += THREADS) part[i] = 0;
  make_x(p, shared, image);
  __syncthreads();
  float first = 0, second = 0;
  int panel = warp / TILES;
  for (int i = warp; i < items; i += WARPS) {
    const int now = i / TILES;
    if (now != panel) {
      put_part(part + (panel * WARPS + chain_at(panel)) * 16, first, second);
      first = second = 0;
      panel = now;
    }
    tile_part w;
    take_tile(arrived(r), &w);
    __syncwarp();
    const int next = i + SLOTS * WARPS;
    if (next < items) fetch(r, r.at, item_at(p, next), SLOT);
    advance(&r);
    add_tile(w, image, i % TILES, &first, &second);
  }
  if (warp < items) put_part(part + (panel * WARPS + chain_at(panel)) * 16, first, second);
  __syncthreads();
  for (int i = threadIdx.x; i < panels / SIDES * 16; i += THREADS) {
    float s[SIDES];
    int panel;
    const int m = member_at(p, unit_at(p, i >> 4), 0, &panel), row = panel * 16 + (i & 15);
#pragma unroll
    for (int side = 0; side < SIDES; side++) {
      s[side] = 0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) s[side] += part[(((i >> 4) * SIDES + side) * WARPS + w) * 16 + (i & 15)];
    }
#if AFTER
    const float v = after(s[0], s[1]);
    if (LEVELS && i < 32 * pairs_of(p)) // the same for a whole warp
      quantize(v, (a8_block *)p.member[m].y + row / 32);
    else
      ((float *)p.member[m].y)[row] = v;
#else
    if (row < p.member[m].rows) store_float(p.member[m].y, p.member[m].type, row, s[0]);
#endif
  }
}
#else
#define PIECES (SLOT / 512)
#define CHUNKS ((WIDTH * 2 + SLOT - 1) / SLOT) // of a row
#define LAST (WIDTH * 2 - (CHUNKS - 1) * SLOT)  // bytes of the last
// `turn` counts a warp's rows, both of a pair.
__device__ __forceinline__ int row_at(int turn) {
  return (threadIdx.x >> 5) * gridDim.x + blockIdx.x + turn / SIDES * gridDim.x * WARPS;
}
// Item i of a warp: chunk i % CHUNKS of its row i / CHUNKS.
__device__ __forceinline__ void fetch_item(const ring &r, int at, const step_params &p, int i) {
  int row;
  const int chunk = i % CHUNKS, m = member_at(p, row_at(i / CHUNKS), i / CHUNKS % SIDES, &row);
  fetch(r, at, p.member[m].w + (i64)row * (WIDTH * 2) + chunk * SLOT, chunk == CHUNKS - 1 ? LAST : SLOT);
}
__device__ __forceinline__ float weight_number(u32 word, int half) {
#if W_TYPE == W_F16
  return half_bits((u16)(word >> 16 * half));
#else
  return __uint_as_float(half ? word & 0xffff0000u : word << 16);
#endif
}
__device__ __forceinline__ float add_eight(const uint4 &v, const u8 *image, int group, float sum) {
  const u32 word[4] = {v.x, v.y, v.z, v.w};
  float x[8];
  take_8(x, image, group);
#pragma unroll
  for (int j = 0; j < 8; j++) sum = fmaf(weight_number(word[j >> 1], j & 1), x[j], sum);
  return sum;
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) decode(const __grid_constant__ step_params p) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ __align__(8) u64 bar[WARPS * SLOTS];
  __shared__ float shared[32];
  u8 *image = memory + RING;
  const int lane = threadIdx.x & 31, rows = p.units / SIDES - row_at(0), stride = (int)gridDim.x * WARPS;
  const int items = rows > 0 ? (rows + stride - 1) / stride * SIDES * CHUNKS : 0;
  GO();
  ring r = open_ring(memory, bar);
  hold_back(PATIENCE);
#pragma unroll
  for (int i = 0; i < SLOTS; i++)
    if (i < items) fetch_item(r, i, p, i);
  make_x(p, shared, image);
  __syncthreads();
  float sum = 0, first = 0;
  int chunk = 0, turn = 0;
  for (int i = 0; i < items; i++) {
    const u8 *slot = arrived(r);
    const int group = chunk * (SLOT / 16) + lane;
    uint4 v[PIECES];
#pragma unroll
    for (int c = 0; c < PIECES; c++)
      if (group + 32 * c < WIDTH / 8) v[c] = *(const uint4 *)(slot + 512 * c + 16 * lane);
    __syncwarp();
    if (i + SLOTS < items) fetch_item(r, r.at, p, i + SLOTS);
    advance(&r);
#pragma unroll
    for (int c = 0; c < PIECES; c++)
      if (group + 32 * c < WIDTH / 8) sum = add_eight(v[c], image, group + 32 * c, sum);
    if (++chunk < CHUNKS) continue;
    chunk = 0;
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
    turn++;
    sum = 0;
  }
}
#endif
