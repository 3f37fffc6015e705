// SPDX-License-Identifier: MIT
// Moving elements: copies and casts of any strides, padding, gather, append_dense, positions, iota, concat.

struct copy_params {
  operand in, out;  // of one shape
};
// Numbers from one type to another, as the cast op rounds them.
__device__ void convert(const void *from, int ft, i64 i, void *to, int tt, i64 o) {
  if (ft == tt) {
    move_bits(to, o, from, i, bytes_of(ft));
    return;
  }
  const double v = load_double(from, ft, i);
  store_double(to, tt, o, v);
}
extern "C" __global__ void copy(const __grid_constant__ copy_params p) {
  GO();
  WAIT();
  const i64 n = count_of(p.out);
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x)
    convert(p.in.base, p.in.type, offset_of(p.in, i), p.out.base, p.out.type, offset_of(p.out, i));
}

// ---- elements around an operand
struct pad_params {
  operand in, out;
  i64 before[8];
  u64 filled;  // the bits of the constant
  i32 mode, pad;
};
enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
// The index in [0, n) that position i of a padded axis takes from, -1 for the constant.
__device__ i64 padded_from(i64 i, i64 n, int mode) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_CONSTANT) return -1;
  if (mode == PAD_EDGE) return i < 0 ? 0 : n - 1;
  if (mode == PAD_WRAP) return (i % n + n) % n;
  if (n == 1) return 0;
  const i64 period = 2 * (n - 1), at = (i % period + period) % period;
  return at < n ? at : period - at;
}
extern "C" __global__ void pad(const __grid_constant__ pad_params p) {
  GO();
  WAIT();
  const i64 n = count_of(p.out);
  const int bytes = bytes_of(p.out.type);
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    i64 rest = i, from = 0, to = 0;
    bool inside = true;
    for (int a = p.out.rank - 1; a >= 0; a--) {
      const i64 e = p.out.extent[a], q = rest / e, at = rest - q * e;
      const i64 index = padded_from(at - p.before[a], p.in.extent[a], p.mode);
      inside &= index >= 0;
      from += index * p.in.stride[a];
      to += at * p.out.stride[a];
      rest = q;
    }
    if (inside)
      move_bits(p.out.base, to, p.in.base, from, bytes);
    else
      move_bits(p.out.base, to, &p.filled, 0, bytes);
  }
}

// out[before, index, behind] = in[before, indices[index], behind]; all dense but for the outer stride of `in`.
struct gather_params {
  const u8 *in;
  const u8 *index;
  u8 *out;
  refusal *refused;
  i64 before, rows, behind, limit, count, unit;  // unit: bytes of an element; behind: elements
  i32 index_type;
};
extern "C" __global__ void gather(const __grid_constant__ gather_params p) {
  GO();
  WAIT();
  const i64 bytes = p.behind * p.unit;
  for (i64 r = blockIdx.x; r < p.before * p.rows; r += gridDim.x) {
    const i64 b = r / p.rows, k = r % p.rows, given = load_int(p.index, p.index_type, k);
    const i64 at = given < 0 ? given + p.limit : given;
    if (at < 0 || at >= p.limit) {
      if (threadIdx.x == 0) refuse(p.refused, REFUSES_INDEX, given, p.limit);
      continue;
    }
    const u8 *from = p.in + (b * p.limit + at) * bytes;
    u8 *to = p.out + r * bytes;
    if ((((u64)from | (u64)to | (u64)bytes) & 3) == 0)
      for (i64 i = threadIdx.x; i < bytes / 4; i += blockDim.x) ((u32 *)to)[i] = ((const u32 *)from)[i];
    else
      for (i64 i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
  }
}

// state[b, position[b] + i, ..] = x[b, i, ..]; nothing is written unless all rows have room.
struct append_dense_params {
  operand x, state;
  const u8 *position;
  refusal *refused;
  i64 position_stride;
  i32 position_type, pad;
};
// Where element i of x lies in a state that it is written to from position 0 on.
__device__ __forceinline__ i64 offset_of_rows(const append_dense_params &p, i64 i) {
  i64 offset = 0;
  for (int a = p.x.rank - 1; a >= 0; a--) {
    const i64 n = p.x.extent[a], q = i / n;
    offset += (i - q * n) * p.state.stride[a];
    i = q;
  }
  return offset;
}
extern "C" __global__ void append_dense(const __grid_constant__ append_dense_params p) {
  GO();
  WAIT();
  const i64 room = p.state.extent[1] - p.x.extent[1], n = count_of(p.x), each = n / p.x.extent[0];
  bool wrong = false;
  for (i64 b = threadIdx.x; b < p.x.extent[0]; b += blockDim.x) {
    const i64 at = load_int(p.position, p.position_type, b * p.position_stride);
    if (at >= 0 && at <= room) continue;
    wrong = true;
    refuse(p.refused, REFUSES_ROWS, at, p.state.extent[1]);
  }
  if (__syncthreads_or(wrong)) return;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    const i64 at = load_int(p.position, p.position_type, i / each * p.position_stride);
    convert(p.x.base, p.x.type, offset_of(p.x, i), p.state.base, p.state.type, offset_of_rows(p, i) + at * p.state.stride[1]);
  }
}

struct positions_params {
  const u8 *offsets, *past;
  i32 *out;
  i64 rows, sequences;
  i32 offsets_type, past_type;  // past NULL: zeros
};
extern "C" __global__ void positions(const __grid_constant__ positions_params p) {
  GO();
  WAIT();
  const i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= p.rows) return;
  i64 low = 0, high = p.sequences;  // the last sequence that begins at or before the row
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (load_int(p.offsets, p.offsets_type, middle + 1) <= row)
      low = middle + 1;
    else
      high = middle;
  }
  const i64 past = p.past && low < p.sequences ? load_int(p.past, p.past_type, low) : 0;
  p.out[row] = (i32)(past + row - load_int(p.offsets, p.offsets_type, low));
}

struct iota_params {
  u8 *out;
  i64 count, extent, inner;
  i32 type;
};
extern "C" __global__ void iota(const __grid_constant__ iota_params p) {
  GO();
  WAIT();
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < p.count; i += (i64)gridDim.x * blockDim.x) {
    const i64 v = i / p.inner % p.extent;
    if (is_float(p.type))
      store_double(p.out, p.type, i, (double)v);
    else
      store_int(p.out, p.type, i, v);
  }
}
