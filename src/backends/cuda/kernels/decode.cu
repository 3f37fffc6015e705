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
    if (real) {
      WAIT();
      if (READY) __syncthreads(); // a group may be another thread's than in the run for nothing
    }
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

// A warp's places in shared memory: what copies bring there while it computes. SLOT bytes each, a multiple of 16; each lane
// copies every 32nd sixteen of them. One bulk copy a place would be fewer requests, but takes a warp some forty instructions
// more, and how soon weights are multiplied that are there already depends on nothing but instructions.
#define SLOTS 2
#define RING (WARPS * SLOTS * SLOT)
// Copies come in groups, one a place; a group may be empty. `to` and `from` are the lane's own.
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int OFFSET> __device__ __forceinline__ void copy_16(u32 to, const u8 *from) {
  asm volatile("cp.async.cg.shared.global [%0+%2], [%1+%2], 16;" ::"r"(to), "l"(from), "n"(OFFSET) : "memory");
}
template <int OFFSET> __device__ __forceinline__ void fetch(u32 to, const u8 *from, int bytes) {
  if (OFFSET + 512 <= SLOT) {
    if (bytes == SLOT || OFFSET + (int)(threadIdx.x & 31) * 16 < bytes) copy_16<OFFSET>(to, from);
    fetch<(OFFSET + 512 < SLOT ? OFFSET + 512 : SLOT)>(to, from, bytes);
  } else if (OFFSET < SLOT) {
    if ((int)(threadIdx.x & 31) * 16 < SLOT - OFFSET) copy_16<OFFSET>(to, from);
  }
}
template <> __device__ __forceinline__ void fetch<SLOT>(u32, const u8 *, int) {}
// The oldest group is there, for all lanes.
__device__ __forceinline__ void await_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(SLOTS - 1) : "memory");
  __syncwarp();
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
__device__ __forceinline__ int turns_of(const step_params &p) {
  const int units = LEVELS ? p.whole : p.units / SIDES,
            turns = (units - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
  return LEVELS ? 2 * turns + ((int)blockIdx.x < p.units / SIDES - 2 * p.whole) : turns;
}
__device__ __forceinline__ int unit_at(const step_params &p, int turn) {
  if (!LEVELS) return blockIdx.x + turn * gridDim.x;
  const int pair = blockIdx.x + turn / 2 * gridDim.x;
  return pair < p.whole ? 2 * pair + turn % 2 : 2 * p.whole + blockIdx.x;
}
// Where the block's panels begin, of which it has at most 16: lane j knows that of panel j.
__device__ __forceinline__ const u8 *panel_at(const step_params &p, int j, int panels) {
  if (j >= panels) return NULL;
  int panel;
  const int m = member_at(p, unit_at(p, j / SIDES), j % SIDES, &panel);
  return p.member[m].w + (i64)panel * TILES * SLOT;
}
// The warp's items, WARPS apart among the block's tiles: tile `tile` of panel `panel`.
struct item {
  int panel, tile;
};
__device__ __forceinline__ void next_item(item *i) {
  if (TILES == WARPS) {
    i->panel++;
  } else if (TILES > WARPS) {
    i->tile += WARPS;
    if (i->tile >= TILES) i->tile -= TILES, i->panel++;
  } else {
    const int at = i->tile + WARPS;
    i->panel += at / TILES, i->tile = at % TILES;
  }
}
__device__ __forceinline__ float six_bits(u32 s, u32 mask, u32 exponent) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(s), "r"(mask), "r"(exponent));
  return __uint_as_float(r) - 8388608.0f;
}
#define PRODUCT(kind, c, a0, a1, a2, a3, b0, b1)                                                                                   \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." kind ".s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"         \
               : "+r"((c)[0]), "+r"((c)[1]), "+r"((c)[2]), "+r"((c)[3])                                                            \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

template <int OFFSET> __device__ __forceinline__ uint4 shared_16(u32 at) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4+%5];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at), "n"(OFFSET) : "memory");
  return v;
}
template <int OFFSET> __device__ __forceinline__ u32 shared_4(u32 at) {
  u32 v;
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(v) : "r"(at), "n"(OFFSET) : "memory");
  return v;
}
template <int OFFSET> __device__ __forceinline__ u32 shared_2(u32 at) {
  u16 v;
  asm volatile("ld.shared.u16 %0, [%1+%2];" : "=h"(v) : "r"(at), "n"(OFFSET) : "memory");
  return v;
}
// A tile as a lane has it, and where its parts lie in the first of a warp's places.
#if W_TYPE == W_Q8_0
struct tile_part {
  uint4 v[4];
  u32 d; // of rows g and g + 8, run t
};
struct tile_lane {
  u32 v, d;
};
__device__ __forceinline__ tile_lane lane_of(u32 place) {
  const u32 lane = threadIdx.x & 31;
  return {place + lane * 16, place + lane * 4};
}
template <int PLACE> __device__ __forceinline__ void take_tile(const tile_lane &at, tile_part *out) {
  out->v[0] = shared_16<PLACE + 128>(at.v), out->v[1] = shared_16<PLACE + 640>(at.v);
  out->v[2] = shared_16<PLACE + 1152>(at.v), out->v[3] = shared_16<PLACE + 1664>(at.v);
  out->d = shared_4<PLACE>(at.d);
}
struct tile_x {
  uint2 x;
  float2 f;
};
__device__ __forceinline__ tile_x take_x(const u8 *image, int s) {
  const int lane = threadIdx.x & 31;
  return {((const uint2 *)image)[s * 16 + (lane >> 3) * 4 + (lane & 3)], ((const float2 *)(image + PADDED))[s * 4 + (lane & 3)]};
}
__device__ __forceinline__ void add_tile(const tile_part &w, const tile_x &of, float *first, float *second) {
  const int g = (threadIdx.x & 31) >> 2;
  const uint2 x = of.x;
  const float2 f = of.f;
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
struct tile_lane {
  u32 v, a, b, d;
};
__device__ __forceinline__ tile_lane lane_of(u32 place) {
  const u32 lane = threadIdx.x & 31;
  return {place + lane * 16, place + lane * 4, place + lane * 2, place + lane / 4 * 4};
}
template <int PLACE> __device__ __forceinline__ void take_tile(const tile_lane &at, tile_part *out) {
  out->v[0] = shared_16<PLACE + 256>(at.v), out->v[1] = shared_16<PLACE + 768>(at.v);
  out->v[2] = shared_16<PLACE + 1280>(at.v), out->v[3] = shared_16<PLACE + 1792>(at.v);
  out->a = shared_4<PLACE + 64>(at.a);
  out->b = shared_2<PLACE + 192>(at.b);
  out->d0 = shared_4<PLACE>(at.d), out->d1 = shared_4<PLACE + 32>(at.d);
}
// The upper half bytes stay where they are: their products come out 16 times too large.
struct tile_x {
  uint2 x;
  float4 f;
};
__device__ __forceinline__ tile_x take_x(const u8 *image, int s) {
  const int lane = threadIdx.x & 31;
  return {((const uint2 *)image)[s * 32 + lane], ((const float4 *)(image + PADDED))[s * 4 + (lane & 3)]};
}
__device__ __forceinline__ void add_tile(const tile_part &w, const tile_x &of, float *first, float *second) {
  const int g = (threadIdx.x & 31) >> 2;
  const uint2 x = of.x;
  const float4 f = of.f;
  int low[4] = {0, 0, 0, 0}, high[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const bool even = g == 2 * i, odd = g == 2 * i + 1;
    PRODUCT("u8", low, w.v[i].x & 0x0f0f0f0f, w.v[i].y & 0x0f0f0f0f, w.v[i].z & 0x0f0f0f0f, w.v[i].w & 0x0f0f0f0f,
            even ? x.x : 0, odd ? x.x : 0);
    PRODUCT("u8", high, w.v[i].x & 0xf0f0f0f0, w.v[i].y & 0xf0f0f0f0, w.v[i].z & 0xf0f0f0f0, w.v[i].w & 0xf0f0f0f0,
            even ? x.y : 0, odd ? x.y : 0);
  }
  const float f0 = (float)(low[0] + (high[0] >> 4)), f1 = (float)(low[1] + (high[1] >> 4)),
              f2 = (float)(low[2] + (high[2] >> 4)), f3 = (float)(low[3] + (high[3] >> 4));
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

// A warp's way through its tiles.
struct walk {
  const u8 *panel;      // of lane j: where the block's panel j begins
  item now, ahead;      // what is multiplied, and what is asked for next
  u32 place;            // of the lane
  float first, second;  // sums of the panel
};
template <int PLACE> __device__ __forceinline__ void ask(walk *w, int panels) {
  const u8 *from = (const u8 *)__shfl_sync(~0u, (u64)w->panel, w->ahead.panel) + w->ahead.tile * SLOT;
  if (w->ahead.panel < panels) fetch<0>(w->place + PLACE, from + (threadIdx.x & 31) * 16, SLOT);
  close_group();
  next_item(&w->ahead);
}
template <int PLACE>
__device__ __forceinline__ void multiply(walk *w, int panels, const tile_lane &lane, const u8 *image, tile_x *x, float *part) {
  tile_part tile;
  await_group();
  take_tile<PLACE>(lane, &tile);
  __syncwarp();
  ask<PLACE>(w, panels);
  if (TILES != WARPS) *x = take_x(image, w->now.tile); // else it is always the same
  add_tile(tile, *x, &w->first, &w->second);
  const int panel = w->now.panel;
  next_item(&w->now);
  if (TILES > WARPS && w->now.panel == panel) return;
  put_part(part + (panel * WARPS + chain_at(panel)) * 16, w->first, w->second);
  w->first = w->second = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) decode(const __grid_constant__ step_params p) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ float shared[32];
  u8 *image = memory + RING;
  float *part = (float *)(image + IMAGE); // [panel][chain][16]
  const int panels = turns_of(p) * SIDES;
  GO();
  const u32 place = there(memory) + (threadIdx.x >> 5) * SLOTS * SLOT;
  const item begin = {(int)(threadIdx.x >> 5) / TILES, (int)(threadIdx.x >> 5) % TILES};
  walk w = {panel_at(p, threadIdx.x & 31, panels), begin, begin, place + (threadIdx.x & 31) * 16, 0, 0};
  const tile_lane lane = lane_of(place);
  hold_back(PATIENCE);
  ask<0>(&w, panels);
  ask<SLOT>(&w, panels);
  if (TILES % WARPS) // then not every warp has a tile of every panel
    for (int i = threadIdx.x; i < panels * WARPS * 16; i += THREADS) part[i] = 0;
  make_x(p, shared, image);
  __syncthreads();
  tile_x x = take_x(image, begin.tile);
  while (w.now.panel < panels) {
    multiply<0>(&w, panels, lane, image, &x, part);
    if (w.now.panel < panels) multiply<SLOT>(&w, panels, lane, image, &x, part);
  }
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
    if (LEVELS && (int)(blockIdx.x + (i >> 5) * gridDim.x) < p.whole) // the same for a whole warp
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
// Item i of a warp: chunk i % CHUNKS of its row i / CHUNKS. `place` is the lane's.
__device__ __forceinline__ void ask(const step_params &p, u32 place, int i, int items) {
  if (i < items) {
    int row;
    const int chunk = i % CHUNKS, m = member_at(p, row_at(i / CHUNKS), i / CHUNKS % SIDES, &row);
    const u8 *from = p.member[m].w + (i64)row * (WIDTH * 2) + chunk * SLOT;
    fetch<0>(place, from + (threadIdx.x & 31) * 16, chunk == CHUNKS - 1 ? LAST : SLOT);
  }
  close_group();
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
  __shared__ float shared[32];
  u8 *image = memory + RING;
  const int lane = threadIdx.x & 31, rows = p.units / SIDES - row_at(0), stride = (int)gridDim.x * WARPS;
  const int items = rows > 0 ? (rows + stride - 1) / stride * SIDES * CHUNKS : 0;
  GO();
  const u8 *slot = memory + (threadIdx.x >> 5) * SLOTS * SLOT;
  const u32 place = there(slot) + lane * 16;
  hold_back(PATIENCE);
#pragma unroll
  for (int i = 0; i < SLOTS; i++) ask(p, place + i * SLOT, i, items);
  make_x(p, shared, image);
  __syncthreads();
  float sum = 0, first = 0;
  int chunk = 0, turn = 0;
  for (int i = 0; i < items; i++) {
    const int at = i % SLOTS * SLOT, group = chunk * (SLOT / 16) + lane;
    await_group();
    uint4 v[PIECES];
#pragma unroll
    for (int c = 0; c < PIECES; c++)
      if (group + 32 * c < WIDTH / 8) v[c] = *(const uint4 *)(slot + at + 512 * c + 16 * lane);
    __syncwarp();
    ask(p, place + at, i + SLOTS, items);
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
