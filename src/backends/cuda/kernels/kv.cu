// SPDX-License-Identifier: MIT
// Keys and values: rotary positions, writing them into a state.

// ---- rope. In front: DIMS, HALF (pairs (i, i + DIMS / 2), else (2i, 2i + 1)), MAGNITUDE, and turns[DIMS / 2], the angle
// of each pair at position 1 in double.
struct rope_params {
  operand x, y; // [rows, heads, dim]
  const u8 *positions, *factors;
  i64 position_stride, factor_stride;
  i32 position_type, factor_type;
};
#ifdef DIMS
// A pair of a head turned in place: what both kernels below do.
__device__ __forceinline__ float2 turn_of(const u8 *positions, int position_type, i64 at, const u8 *factors, int factor_type,
                                          i64 factor_stride, int u) {
  double angle = (double)load_int(positions, position_type, at) * turns[u];
  if (factors) angle /= load_double(factors, factor_type, u * factor_stride);
  return turned_by(angle, MAGNITUDE);
}
__device__ __forceinline__ void turn(float2 by, float *a, float *b) {
  const float x = *a, y = *b;
  *a = x * by.x - y * by.y;
  *b = x * by.y + y * by.x;
}
extern "C" __global__ void rope(const __grid_constant__ rope_params p) {
  GO();
  WAIT();
  const i64 dim = p.x.extent[2], units = dim - DIMS / 2, per_row = p.x.extent[1] * units, n = p.x.extent[0] * per_row;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    const i64 row = i / per_row, rest = i - row * per_row, head = rest / units;
    const int u = (int)(rest - head * units);
    const i64 from = row * p.x.stride[0] + head * p.x.stride[1], to = row * p.y.stride[0] + head * p.y.stride[1];
    if (u >= DIMS / 2) { // not turned
      const i64 d = u + DIMS / 2;
      store_float(p.y.base, p.y.type, to + d * p.y.stride[2], load_float(p.x.base, p.x.type, from + d * p.x.stride[2]));
      continue;
    }
    const i64 d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
    float a = load_float(p.x.base, p.x.type, from + d0 * p.x.stride[2]);
    float b = load_float(p.x.base, p.x.type, from + d1 * p.x.stride[2]);
    turn(turn_of(p.positions, p.position_type, row * p.position_stride, p.factors, p.factor_type, p.factor_stride, u), &a, &b);
    store_float(p.y.base, p.y.type, to + d0 * p.y.stride[2], a);
    store_float(p.y.base, p.y.type, to + d1 * p.y.stride[2], b);
  }
}
#endif

// ---- rotate: a thread turns one pair or moves one channel that stays. c and s have x's rank and the strides they broadcast with.
struct rotate_params {
  operand x, y, c, s;
  i64 rows, pairs;
  i32 half, channel;
};
extern "C" __global__ void rotate(const __grid_constant__ rotate_params p) {
  GO();
  WAIT();
  const int last = p.x.rank - 1;
  const i64 units = p.x.extent[last] - p.pairs, n = p.rows * units;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    i64 rest = i / units, x = 0, y = 0, c = 0, s = 0;
    const i64 u = i - rest * units;
    for (int a = last - 1; a >= 0; a--) {
      const i64 at = rest % p.x.extent[a];
      rest /= p.x.extent[a];
      x += at * p.x.stride[a], y += at * p.y.stride[a], c += at * p.c.stride[a], s += at * p.s.stride[a];
    }
    if (u >= p.pairs) {
      const i64 d = u + p.pairs;
      store_float(p.y.base, p.y.type, y + d * p.y.stride[last], load_float(p.x.base, p.x.type, x + d * p.x.stride[last]));
      continue;
    }
    const i64 d0 = p.half ? u : 2 * u, d1 = p.half ? u + p.pairs : 2 * u + 1, k0 = p.channel ? d0 : u, k1 = p.channel ? d1 : u;
    const float a = load_float(p.x.base, p.x.type, x + d0 * p.x.stride[last]);
    const float b = load_float(p.x.base, p.x.type, x + d1 * p.x.stride[last]);
    const float c0 = load_float(p.c.base, p.c.type, c + k0 * p.c.stride[last]), c1 = load_float(p.c.base, p.c.type, c + k1 * p.c.stride[last]);
    const float s0 = load_float(p.s.base, p.s.type, s + k0 * p.s.stride[last]), s1 = load_float(p.s.base, p.s.type, s + k1 * p.s.stride[last]);
    store_float(p.y.base, p.y.type, y + d0 * p.y.stride[last], a * c0 - b * s0);
    store_float(p.y.base, p.y.type, y + d1 * p.y.stride[last], b * c1 + a * s1);
  }
}

// ---- append
struct append_params {
  kv_state kv;
  operand k, v; // [rows, kv_heads, dim]
  const u8 *offsets, *slot, *past;
  refusal *refused;
  i64 rows, sequences;
  i32 offsets_type, slot_type, past_type, pad;
};
// The block of the state that a row goes to, and the place in it; NULL where it cannot.
__device__ __forceinline__ u8 *find_place(const append_params &p, i64 row, int *out_at) {
  i64 low = sequence_of(p.offsets, p.offsets_type, p.sequences, row);
  if (low >= p.sequences) return 0;
  const i64 slot = load_int(p.slot, p.slot_type, low);
  const i64 position = load_int(p.past, p.past_type, low) + row - load_int(p.offsets, p.offsets_type, low);
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (threadIdx.x == 0) refuse(p.refused, REFUSES_ROWS, slot < 0 || slot >= p.kv.slots ? slot : position,
                                 slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    return 0;
  }
  *out_at = (int)(position % 64);
  return kv_block(p.kv, slot, position / 64);
}
// Where number 0 of a head's key or value lies, in elements of the block.
__device__ __forceinline__ i64 key_at(const append_params &p, int head, int at) {
  return ((i64)head * 64 + at) * p.kv.key_dim;
}
__device__ __forceinline__ i64 value_at(const append_params &p, int head, int at) {
  return (i64)p.kv.kv_heads * 64 * p.kv.key_dim + ((i64)head * 64 + at) * p.kv.value_dim;
}
__device__ __forceinline__ void put_value(const append_params &p, i64 row, int head, u8 *block, int at) {
  const i64 from = row * p.v.stride[0] + head * p.v.stride[1], to = value_at(p, head, at);
  for (int d = threadIdx.x; d < p.kv.value_dim; d += blockDim.x)
    store_float(block, p.kv.type, to + d, load_float(p.v.base, p.v.type, from + d * p.v.stride[2]));
}
// One head of keys or values to a block.
extern "C" __global__ void append(const __grid_constant__ append_params p) {
  GO();
  WAIT();
  const i64 row = blockIdx.x;
  int at;
  u8 *block = find_place(p, row, &at);
  if (!block) return;
  const int heads = p.kv.kv_heads, head = blockIdx.y < heads ? blockIdx.y : blockIdx.y - heads;
  if (blockIdx.y >= heads) {
    put_value(p, row, head, block, at);
    return;
  }
  const i64 from = row * p.k.stride[0] + head * p.k.stride[1], to = key_at(p, head, at);
  for (int d = threadIdx.x; d < p.kv.key_dim; d += blockDim.x)
    store_float(block, p.kv.type, to + d, load_float(p.k.base, p.k.type, from + d * p.k.stride[2]));
}

// ---- rope of queries and keys and the append behind them, as one kernel: heads of queries, of keys, of values
#ifdef DIMS
struct rope_append_params {
  append_params a; // k before it is turned
  operand q, y;
  const u8 *positions, *factors;
  i64 position_stride, factor_stride;
  i32 position_type, factor_type;
};
#define ROPE_HEADS 8 // of a block
__device__ __forceinline__ void turn_head(const rope_append_params &p, i64 row, int which, u8 *block, int at, int u, float2 by) {
  const int queries = (int)p.q.extent[1];
  const bool query = which < queries;
  const int head = query ? which : which - queries;
  const i64 from = query ? row * p.q.stride[0] + head * p.q.stride[1] : row * p.a.k.stride[0] + head * p.a.k.stride[1];
  const i64 to = query ? row * p.y.stride[0] + head * p.y.stride[1] : key_at(p.a, head, at);
  const i64 from_step = query ? p.q.stride[2] : p.a.k.stride[2], to_step = query ? p.y.stride[2] : 1;
  const u8 *source = query ? p.q.base : p.a.k.base;
  u8 *target = query ? p.y.base : block;
  const int source_type = query ? p.q.type : p.a.k.type, target_type = query ? p.y.type : p.a.kv.type;
  if (u >= DIMS / 2) {
    const i64 d = u + DIMS / 2;
    store_float(target, target_type, to + d * to_step, load_float(source, source_type, from + d * from_step));
    return;
  }
  const i64 d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
  float a = load_float(source, source_type, from + d0 * from_step), b = load_float(source, source_type, from + d1 * from_step);
  turn(by, &a, &b);
  store_float(target, target_type, to + d0 * to_step, a);
  store_float(target, target_type, to + d1 * to_step, b);
}
// Queries and keys have heads of one width, so a pair's turn is the same for all heads of a row.
extern "C" __global__ void rope_append(const __grid_constant__ rope_append_params p) {
  GO();
  WAIT();
  const i64 row = blockIdx.x;
  const int queries = (int)p.q.extent[1], heads = p.a.kv.kv_heads;
  const int first = blockIdx.y * ROPE_HEADS, end = min(first + ROPE_HEADS, queries + 2 * heads);
  int at = 0;
  u8 *block = 0;
  if (end > queries) block = find_place(p.a, row, &at);
  const int dim = p.a.kv.key_dim;
  for (int u = threadIdx.x; u < dim - DIMS / 2; u += blockDim.x) {
    float2 by = make_float2(1, 0);
    if (u < DIMS / 2)
      by = turn_of(p.positions, p.position_type, row * p.position_stride, p.factors, p.factor_type, p.factor_stride, u);
    for (int which = first; which < end && which < queries + heads; which++)
      if (which < queries || block) turn_head(p, row, which, block, at, u, by);
  }
  if (block)
    for (int which = max(first, queries + heads); which < end; which++) put_value(p.a, row, which - queries - heads, block, at);
}
#endif
