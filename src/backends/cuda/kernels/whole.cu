// SPDX-License-Identifier: MIT
// Integers: reductions, largest and smallest; and of all numbers along one axis: the k best, and running sums. A block
// has one result or one lane. Integers wrap, so their order does not matter.
#define THREADS 256
struct reduce_params {
  operand kept;    // in's axes that stay, with their strides
  operand reduced; // those that go
  u8 *in, *out;
  i64 results;
  i32 in_type, kind;
};
enum { SUM, MEAN, PROD, MAX, MIN, L1, L2, SQUARES };
__device__ __forceinline__ bool is_unsigned(int type) { return type >= T_U8; }
__device__ __forceinline__ bool less(u64 a, u64 b, bool plain) { return plain ? a < b : (i64)a < (i64)b; }
__device__ u64 lowest(int type) {
  return is_unsigned(type) ? 0 : (u64)((i64)-1 << (8 * bytes_of(type) - 1));
}
__device__ u64 highest(int type) {
  const int bits = 8 * bytes_of(type);
  if (type == T_BOOL) return 1;
  if (is_unsigned(type)) return bits == 64 ? ~0ull : (1ull << bits) - 1;
  return (1ull << (bits - 1)) - 1;
}
__device__ __forceinline__ u64 fold(int kind, u64 a, u64 b, bool plain) {
  if (kind == PROD) return a * b;
  if (kind == MAX) return less(a, b, plain) ? b : a;
  if (kind == MIN) return less(b, a, plain) ? b : a;
  return a + b;
}
extern "C" __global__ void __launch_bounds__(THREADS) reduce_whole(const __grid_constant__ reduce_params p) {
  __shared__ u64 shared[THREADS];
  GO();
  WAIT();
  const i64 n = count_of(p.reduced);
  const bool plain = is_unsigned(p.in_type);
  for (i64 r = blockIdx.x; r < p.results; r += gridDim.x) {
    const i64 from = offset_of(p.kept, r);
    u64 all = p.kind == PROD ? 1 : p.kind == MAX ? lowest(p.in_type) : p.kind == MIN ? highest(p.in_type) : 0;
    for (i64 i = threadIdx.x; i < n; i += THREADS) {
      u64 v = (u64)load_int(p.in, p.in_type, from + offset_of(p.reduced, i));
      if (p.kind == L1 && !plain && (i64)v < 0) v = 0 - v;
      if (p.kind == SQUARES) v *= v;
      all = fold(p.kind, all, v, plain);
    }
    shared[threadIdx.x] = all;
    __syncthreads();
    for (int step = THREADS / 2; step; step >>= 1) {
      if (threadIdx.x < step)
        shared[threadIdx.x] = fold(p.kind, shared[threadIdx.x], shared[threadIdx.x + step], plain);
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      all = shared[0];
      if (p.kind == MEAN) all = !n ? 0 : plain ? all / (u64)n : (u64)((i64)all / n);
      store_int(p.out, p.in_type, r, (i64)all);
    }
    __syncthreads();
  }
}

// ---- an order of numbers with their places

// Does a stand before b? The larger (smaller) one, of equals the one with the lower (higher) index. NaN is above all
// numbers.
struct ordering {
  bool smallest, last, whole, plain;
};
struct entry {
  u64 bits; // of a double, or an integer
  i64 index; // -1: none
};
__device__ __forceinline__ bool before(const ordering &o, const entry &a, const entry &b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0;
  int above;
  if (o.whole) {
    above = a.bits == b.bits ? 0 : less(b.bits, a.bits, o.plain) ? 1 : -1;
  } else {
    const double u = __longlong_as_double((i64)a.bits), v = __longlong_as_double((i64)b.bits);
    above = u != u || v != v ? (u != u) - (v != v) : (u > v) - (u < v);
  }
  if (o.smallest) above = -above;
  if (above) return above > 0;
  return o.last ? a.index > b.index : a.index < b.index;
}
__device__ __forceinline__ entry entry_at(const ordering &o, const u8 *base, int type, i64 at, i64 index) {
  entry e;
  e.bits = o.whole ? (u64)load_int(base, type, at) : (u64)__double_as_longlong(load_double(base, type, at));
  e.index = index;
  return e;
}
// The first of a lane, of those behind `done` (index -1: of all). All threads get it.
__device__ entry first_of(const ordering &o, const u8 *base, int type, i64 from, i64 step, i64 n, const entry &done,
                          entry *shared) {
  entry best;
  best.index = -1;
  best.bits = 0;
  for (i64 i = threadIdx.x; i < n; i += THREADS) {
    const entry e = entry_at(o, base, type, from + i * step, i);
    if (done.index >= 0 && !before(o, done, e)) continue;
    if (before(o, e, best)) best = e;
  }
  __syncthreads();
  shared[threadIdx.x] = best;
  __syncthreads();
  for (int s = THREADS / 2; s; s >>= 1) {
    if (threadIdx.x < s && before(o, shared[threadIdx.x + s], shared[threadIdx.x]))
      shared[threadIdx.x] = shared[threadIdx.x + s];
    __syncthreads();
  }
  return shared[0];
}

struct lane_params {
  operand in, out, index; // without the axis
  i64 lanes, n, k, in_step, out_step, index_step;
  i32 kind, flag; // what the kernels say
};
// kind: smallest; flag: of equals the last. Results dense.
extern "C" __global__ void __launch_bounds__(THREADS) choose_whole(const __grid_constant__ lane_params p) {
  __shared__ entry shared[THREADS];
  GO();
  WAIT();
  ordering o;
  o.smallest = p.kind;
  o.last = p.flag;
  o.whole = true;
  o.plain = is_unsigned(p.in.type);
  for (i64 r = blockIdx.x; r < p.lanes; r += gridDim.x) {
    entry none;
    none.index = -1;
    none.bits = 0;
    const entry e = first_of(o, p.in.base, p.in.type, offset_of(p.in, r), p.in_step, p.n, none, shared);
    if (threadIdx.x == 0) ((i64 *)p.index.base)[r] = e.index;
  }
}
// kind: smallest. One pass for each of the k.
extern "C" __global__ void __launch_bounds__(THREADS) top_k(const __grid_constant__ lane_params p) {
  __shared__ entry shared[THREADS];
  GO();
  WAIT();
  ordering o;
  o.smallest = p.kind;
  o.last = false;
  o.whole = !is_float(p.in.type);
  o.plain = is_unsigned(p.in.type);
  for (i64 r = blockIdx.x; r < p.lanes; r += gridDim.x) {
    const i64 from = offset_of(p.in, r), to = offset_of(p.out, r), place = offset_of(p.index, r);
    entry done;
    done.index = -1;
    done.bits = 0;
    for (i64 j = 0; j < p.k; j++) {
      done = first_of(o, p.in.base, p.in.type, from, p.in_step, p.n, done, shared);
      if (threadIdx.x || done.index < 0) continue;
      const i64 i = from + done.index * p.in_step, at = to + j * p.out_step;
      switch (bytes_of(p.in.type)) {
        case 1: p.out.base[at] = p.in.base[i]; break;
        case 2: ((u16 *)p.out.base)[at] = ((const u16 *)p.in.base)[i]; break;
        case 4: ((u32 *)p.out.base)[at] = ((const u32 *)p.in.base)[i]; break;
        default: ((u64 *)p.out.base)[at] = ((const u64 *)p.in.base)[i]; break;
      }
      ((i64 *)p.index.base)[place + j * p.index_step] = done.index;
    }
  }
}

// ---- running sums and products: each thread has a stretch. Products are one thread's, since what a stretch gives
// could pass the largest number where the whole does not.
__device__ __forceinline__ double get(const u8 *base, int type, i64 i, double) { return load_double(base, type, i); }
__device__ __forceinline__ u64 get(const u8 *base, int type, i64 i, u64) { return (u64)load_int(base, type, i); }
__device__ __forceinline__ void put(u8 *base, int type, i64 i, double v) { store_double(base, type, i, v); }
__device__ __forceinline__ void put(u8 *base, int type, i64 i, u64 v) { store_int(base, type, i, (i64)v); }
template <typename T>
__device__ void run_lane(const lane_params &p, i64 r, T *shared) {
  const bool product = p.kind, exclusive = p.flag & 1, reverse = p.flag & 2;
  const i64 from = offset_of(p.in, r), to = offset_of(p.out, r);
  const i64 per = product ? p.n : (p.n + THREADS - 1) / THREADS;
  const i64 first = threadIdx.x * per < p.n ? threadIdx.x * per : p.n, end = first + per < p.n ? first + per : p.n;
  T sum = 0;
  for (i64 i = first; i < end && !product; i++)
    sum += get(p.in.base, p.in.type, from + (reverse ? p.n - 1 - i : i) * p.in_step, T());
  __syncthreads();
  shared[threadIdx.x] = sum;
  __syncthreads();
  T total = product ? 1 : 0;
  for (int t = 0; t < threadIdx.x && !product; t++) total += shared[t];
  for (i64 i = first; i < end; i++) {
    const i64 at = reverse ? p.n - 1 - i : i;
    const T v = get(p.in.base, p.in.type, from + at * p.in_step, T());
    const T next = product ? total * v : total + v;
    put(p.out.base, p.out.type, to + at * p.out_step, exclusive ? total : next);
    total = next;
  }
}
// kind: products; flag 1: without the element itself, 2: from the end.
extern "C" __global__ void __launch_bounds__(THREADS) run_along(const __grid_constant__ lane_params p) {
  __shared__ u64 shared[THREADS];
  GO();
  WAIT();
  for (i64 r = blockIdx.x; r < p.lanes; r += gridDim.x)
    if (is_float(p.in.type))
      run_lane<double>(p, r, (double *)shared);
    else
      run_lane<u64>(p, r, shared);
}
