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
extern "C" __global__ void rope(const rope_params p) {
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
    double angle = (double)load_int(p.positions, p.position_type, row * p.position_stride) * turns[u];
    if (p.factors) angle /= load_double(p.factors, p.factor_type, u * p.factor_stride);
    angle -= 6.283185307179586477 * rint(angle * 0.15915494309189533577);
    float sine, cosine;
    sincosf((float)angle, &sine, &cosine);
    sine *= MAGNITUDE;
    cosine *= MAGNITUDE;
    const i64 d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
    const float a = load_float(p.x.base, p.x.type, from + d0 * p.x.stride[2]);
    const float b = load_float(p.x.base, p.x.type, from + d1 * p.x.stride[2]);
    store_float(p.y.base, p.y.type, to + d0 * p.y.stride[2], a * cosine - b * sine);
    store_float(p.y.base, p.y.type, to + d1 * p.y.stride[2], a * sine + b * cosine);
  }
}
#endif

// ---- append
struct append_params {
  kv_state kv;
  operand k, v; // [rows, kv_heads, dim]
  const u8 *offsets, *slot, *past;
  refusal *refused;
  i64 rows, sequences;
  i32 offsets_type, slot_type, past_type, pad;
};
#ifndef DIMS
extern "C" __global__ void append(const append_params p) {
  GO();
  WAIT();
  const i64 row = blockIdx.x;
  i64 low = 0, high = p.sequences;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (load_int(p.offsets, p.offsets_type, middle + 1) <= row)
      low = middle + 1;
    else
      high = middle;
  }
  if (low >= p.sequences) return;
  const i64 slot = load_int(p.slot, p.slot_type, low);
  const i64 position = load_int(p.past, p.past_type, low) + row - load_int(p.offsets, p.offsets_type, low);
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (threadIdx.x == 0) refuse(p.refused, 2, slot < 0 || slot >= p.kv.slots ? slot : position,
                                 slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    return;
  }
  u8 *block = kv_block(p.kv, slot, position / 64);
  const int at = (int)(position % 64);
  const int keys = p.kv.kv_heads * p.kv.key_dim, all = keys + p.kv.kv_heads * p.kv.value_dim;
  for (int i = threadIdx.x; i < all; i += blockDim.x) {
    const bool key = i < keys;
    const operand &from = key ? p.k : p.v;
    const int j = key ? i : i - keys, dim = key ? p.kv.key_dim : p.kv.value_dim, head = j / dim, d = j - head * dim;
    const float x = load_float(from.base, from.type, row * from.stride[0] + head * from.stride[1] + d * from.stride[2]);
    store_float(block, p.kv.type, (key ? 0 : (i64)keys * 64) + ((i64)head * 64 + at) * dim + d, x);
  }
}
#endif
