// SPDX-License-Identifier: MIT
// Reading and writing single elements and slices at indices; where elements are not 0.

// An index along an axis of `limit`, counted from the end where it is below 0; -1 and a refusal where it is outside.
__device__ i64 index_in(i64 given, i64 limit, refusal *refused) {
  const i64 at = given < 0 ? given + limit : given;
  if (at >= 0 && at < limit) return at;
  refuse(refused, REFUSES_INDEX, given, limit);
  return -1;
}

// ---- gather_elements: out[.., i, ..] = in[.., index[.., i, ..], ..]
struct elements_params {
  operand in, index, out;
  refusal *refused;
  i32 axis, pad;
};
extern "C" __global__ void gather_elements(const __grid_constant__ elements_params p) {
  GO();
  WAIT();
  const i64 n = count_of(p.out);
  const int bytes = bytes_of(p.out.type);
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    i64 rest = i, from = 0, chosen = 0, to = 0;
    bool inside = true;
    for (int a = p.out.rank - 1; a >= 0; a--) {
      const i64 e = p.out.extent[a], q = rest / e, at = rest - q * e;
      rest = q;
      chosen += at * p.index.stride[a];
      to += at * p.out.stride[a];
      if (a == p.axis) continue;
      inside &= index_in(at, p.in.extent[a], p.refused) >= 0;  // indices may reach further than x
      from += at * p.in.stride[a];
    }
    const i64 at = index_in(load_int(p.index.base, p.index.type, chosen), p.in.extent[p.axis], p.refused);
    if (inside && at >= 0) move_bits(p.out.base, to, p.in.base, from + at * p.in.stride[p.axis], bytes);
  }
}

// ---- gather_nd: an index of `outer` axes and one for the tuple, `depth` long, that chooses behind `batch` axes of in
struct tuples_params {
  operand in, index, out;
  refusal *refused;
  i32 outer, batch, depth, pad;
};
extern "C" __global__ void gather_nd(const __grid_constant__ tuples_params p) {
  GO();
  WAIT();
  const i64 n = count_of(p.out);
  const int bytes = bytes_of(p.out.type);
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    i64 rest = i, from = 0, tuple = 0, to = 0;
    for (int a = p.out.rank - 1; a >= 0; a--) {
      const i64 e = p.out.extent[a], q = rest / e, at = rest - q * e;
      rest = q;
      to += at * p.out.stride[a];
      if (a >= p.outer) {
        from += at * p.in.stride[a - p.outer + p.batch + p.depth];
        continue;
      }
      tuple += at * p.index.stride[a];
      if (a < p.batch) from += at * p.in.stride[a];
    }
    bool inside = true;
    for (int d = 0; d < p.depth; d++) {
      const i64 given = load_int(p.index.base, p.index.type, tuple + d * p.index.stride[p.outer]);
      const i64 at = index_in(given, p.in.extent[p.batch + d], p.refused);
      inside &= at >= 0;
      from += at * p.in.stride[p.batch + d];
    }
    if (inside) move_bits(p.out.base, to, p.in.base, from, bytes);
  }
}

// ---- scatter: what updates do to out, which is a copy of x already. They count in row-major order, so what meets at a
// place meets in that order, each time rounded. Blocks share out the places: each goes through all indices and keeps
// those of its places, in order, in a queue; updates of one place form a chain in it, which one thread a number follows.
// So nothing depends on when blocks run, and there are no atomic sums.
struct scatter_params {
  operand index;           // its axes; of tuples those in front of the last
  operand out;             // whole
  operand slice, updated;  // what one index chooses, in out and in the updates: no axes for single elements
  i64 updates_stride[8];   // of the axes of index
  u8 *updates;
  refusal *refused;
  i64 count, columns, width;  // of indices; numbers of a slice, and how many of them a block has
  i64 tuple_stride;
  i32 axis, depth, mode, pad;  // depth 0: single elements, the index being that along `axis`
};
#define S_THREADS 256
#define S_QUEUE 1024
#define S_EACH 2  // indices that a thread looks at in one go
enum { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MIN, SCATTER_MAX };

// Where index i writes and what it takes from; false where it is refused.
__device__ bool find_place(const scatter_params &p, i64 i, i64 *place, i64 *from) {
  i64 rest = i, chosen = 0;
  bool inside = true;
  *place = *from = 0;
  for (int a = p.index.rank - 1; a >= 0; a--) {
    const i64 e = p.index.extent[a], q = rest / e, at = rest - q * e;
    rest = q;
    chosen += at * p.index.stride[a];
    *from += at * p.updates_stride[a];
    if (p.depth || a == p.axis) continue;
    inside &= index_in(at, p.out.extent[a], p.refused) >= 0;
    *place += at * p.out.stride[a];
  }
  const int first = p.depth ? 0 : p.axis, depth = p.depth ? p.depth : 1;
  for (int d = 0; d < depth; d++) {
    const i64 given = load_int(p.index.base, p.index.type, chosen + d * p.tuple_stride);
    const i64 at = index_in(given, p.out.extent[first + d], p.refused);
    inside &= at >= 0;
    *place += at * p.out.stride[first + d];
  }
  return inside;
}
__device__ double rounded_to(double v, int type) {
  switch (type) {
    case T_F32:
      return (double)(float)v;
    case T_F16:
      return (double)half_bits(half_of_double(v));
    case T_BF16:
      return (double)brain_bits(brain_of_double(v));
    default:
      return v;
  }
}
__device__ double combined(int mode, double x, double u) {
  switch (mode) {
    case SCATTER_ADD:
      return x + u;
    case SCATTER_MUL:
      return x * u;
    case SCATTER_MIN:
      return x != x || x < u ? x : u;
    default:
      return x != x || x > u ? x : u;
  }
}
__device__ i64 combined_whole(int mode, bool is_unsigned, i64 x, i64 u) {
  const bool less = is_unsigned ? (u64)x < (u64)u : x < u;
  switch (mode) {
    case SCATTER_ADD:
      return (i64)((u64)x + (u64)u);
    case SCATTER_MUL:
      return (i64)((u64)x * (u64)u);
    case SCATTER_MIN:
      return less ? x : u;
    default:
      return less ? u : x;
  }
}
// One number of a place, by all updates of the chain that begins at q.
__device__ void follow(const scatter_params &p, const i64 *from, const i32 *next, int q, i64 to, i64 column) {
  const int type = p.out.type;
  const i64 at = offset_of(p.updated, column);
  if (p.mode == SCATTER_SET) {
    while (next[q] >= 0) q = next[q];
    move_bits(p.out.base, to, p.updates, from[q] + at, bytes_of(type));
  } else if (is_float(type)) {
    double v = load_double(p.out.base, type, to);
    for (; q >= 0; q = next[q]) v = rounded_to(combined(p.mode, v, load_double(p.updates, type, from[q] + at)), type);
    store_double(p.out.base, type, to, v);
  } else {
    i64 v = load_int(p.out.base, type, to);
    for (; q >= 0; q = next[q]) v = combined_whole(p.mode, type >= T_U8, v, load_int(p.updates, type, from[q] + at));
    store_int(p.out.base, type, to, v);
  }
}
extern "C" __global__ void __launch_bounds__(S_THREADS) scatter(const __grid_constant__ scatter_params p) {
  __shared__ i64 place[S_QUEUE], from[S_QUEUE];
  __shared__ i32 next[S_QUEUE];
  __shared__ u8 follows[S_QUEUE];
  __shared__ int found[S_THREADS / 32];
  GO();
  WAIT();
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const i64 column = (i64)blockIdx.y * p.width, columns = p.columns - column < p.width ? p.columns - column : p.width;
  int waiting = 0;
  for (i64 first = 0; first < p.count; first += S_EACH * S_THREADS) {
    i64 at[S_EACH], of[S_EACH];
    bool mine[S_EACH];
    int own = 0, all = 0;
    for (int k = 0; k < S_EACH; k++) {
      const i64 i = first + S_EACH * t + k;
      mine[k] = i < p.count && find_place(p, i, &at[k], &of[k]) && (u64)at[k] % gridDim.x == blockIdx.x;
      own += mine[k];
    }
    int slot = own;  // those of the threads in front, and one's own
    for (int o = 1; o < 32; o <<= 1) {
      const int before = __shfl_up_sync(~0u, slot, o);
      if (lane >= o) slot += before;
    }
    if (lane == 31) found[warp] = slot;
    __syncthreads();
    slot += waiting - own;
    for (int w = 0; w < S_THREADS / 32; w++) {
      if (w < warp) slot += found[w];
      all += found[w];
    }
    for (int k = 0; k < S_EACH; k++)
      if (mine[k]) {
        place[slot] = at[k];
        follows[slot] = 0;
        from[slot++] = of[k];
      }
    waiting += all;
    __syncthreads();
    if (!waiting || (waiting <= S_QUEUE - S_EACH * S_THREADS && first + S_EACH * S_THREADS < p.count)) continue;
    for (int q = t; q < waiting; q += S_THREADS) {
      int other = q + 1;
      while (other < waiting && place[other] != place[q]) other++;
      next[q] = other < waiting ? other : -1;
      if (other < waiting) follows[other] = 1;
    }
    __syncthreads();
    for (i64 e = t; e < waiting * columns; e += S_THREADS) {
      const int q = (int)(e / columns);
      const i64 c = column + (e - q * columns);
      if (!follows[q]) follow(p, from, next, q, place[q] + offset_of(p.slice, c), c);
    }
    waiting = 0;
    __syncthreads();
  }
}

// ---- elements that are not 0: tiles are counted, then each writes behind the sum of those in front of it
struct nonzero_params {
  operand in;
  i64 *counts, *out;
  refusal *refused;
  i64 count, tiles, found;  // found: columns of out
  i64 axis_stride, column_stride;
};
#define N_THREADS 256
#define N_TILE 2048
__device__ __forceinline__ bool is_nonzero(const operand &o, i64 i, i64 n) {
  if (i >= n) return false;
  const i64 at = offset_of(o, i);
  return is_float(o.type) ? load_double(o.base, o.type, at) != 0 : load_int(o.base, o.type, at) != 0;
}
__device__ i64 block_count(i64 v, i64 *shared) {
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = N_THREADS / 2; step; step >>= 1) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  return shared[0];
}
extern "C" __global__ void __launch_bounds__(N_THREADS) count_tiles(const __grid_constant__ nonzero_params p) {
  __shared__ i64 shared[N_THREADS];
  GO();
  WAIT();
  for (i64 tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    i64 n = 0;
    for (int i = threadIdx.x; i < N_TILE; i += N_THREADS) n += is_nonzero(p.in, tile * N_TILE + i, p.count);
    n = block_count(n, shared);
    if (threadIdx.x == 0) p.counts[tile] = n;
  }
}
extern "C" __global__ void __launch_bounds__(N_THREADS) sum_tiles(const __grid_constant__ nonzero_params p) {
  __shared__ i64 shared[N_THREADS];
  GO();
  WAIT();
  i64 n = 0;
  for (i64 tile = threadIdx.x; tile < p.tiles; tile += N_THREADS) n += p.counts[tile];
  n = block_count(n, shared);
  if (threadIdx.x == 0) p.out[0] = n;
}
extern "C" __global__ void __launch_bounds__(N_THREADS) write_tiles(const __grid_constant__ nonzero_params p) {
  __shared__ i64 shared[N_THREADS];
  __shared__ int found[N_THREADS / 32];
  GO();
  WAIT();
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    i64 column = 0;
    for (i64 before = threadIdx.x; before < tile; before += N_THREADS) column += p.counts[before];
    column = block_count(column, shared);
    if (tile == p.tiles - 1 && threadIdx.x == 0 && column + p.counts[tile] != p.found)
      refuse(p.refused, REFUSES_COUNT, column + p.counts[tile], p.found);
    for (int first = 0; first < N_TILE; first += N_THREADS) {
      const i64 i = tile * N_TILE + first + threadIdx.x;
      const bool is = is_nonzero(p.in, i, p.count);
      const u32 of_warp = __ballot_sync(~0u, is);
      if (lane == 0) found[warp] = __popc(of_warp);
      __syncthreads();
      i64 to = column + __popc(of_warp & ((1u << lane) - 1));
      for (int w = 0; w < N_THREADS / 32; w++) {
        if (w < warp) to += found[w];
        column += found[w];
      }
      i64 rest = i;
      for (int a = p.in.rank - 1; is && to < p.found && a >= 0; a--) {
        const i64 e = p.in.extent[a], q = rest / e;
        p.out[a * p.axis_stride + to * p.column_stride] = rest - q * e;
        rest = q;
      }
      __syncthreads();
    }
  }
}
