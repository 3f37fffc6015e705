// SPDX-License-Identifier: MIT
// A token per row of logits (ops/sample.c): arithmetic, order and ties are those of the reference, sums over a whole row
// are added in another order. No atomic sums of floats: a row's token depends on its numbers alone.
//
// A token's place is one number: its logit as an integer that rises with it, then its id, lower ids above. Blocks find
// the best place of each stretch of a row, a segment; the last block of the row to end goes on alone. The r-th best of
// the segments bounds the r-th best token from below, so that most segments need not be looked at again: what is above
// the bound is sorted in shared memory, and top-k, top-p and min-p cut this list. Where the list cannot hold what is
// needed (flat rows, hardly any bound), the place of the last token that stays is found bit by bit, each by a pass over
// the row.
#define THREADS 1024
#define WARPS (THREADS / 32)
#define LISTED 1024
#define SEGMENTS 2048
enum { TEMPERATURE, TOP_K, TOP_P, MIN_P, UNIFORM, COLUMNS };
struct sample_params {
  const float *logits;      // [rows, count]
  const double *parameters; // [rows, COLUMNS]
  i32 *out;
  u64 *best;    // [rows, segments]
  u32 *counter; // one for each row, 0 before and after; not used by one block a row
  i64 rows, count, length;
  i32 segments, pad;
};
struct row {
  const float *logits;
  const u64 *best; // of the segments
  i64 count, length;
  int segments;
  float largest;
  u64 first; // place of the best token
  double parameter[COLUMNS];
};
struct shared_room {
  u64 list[LISTED];
  u64 segment[SEGMENTS]; // sorted; then sums
  double weight[LISTED];
  double part[WARPS];
  u64 place[WARPS];
  double value;
  int n, found;
};

// exp(x) for x <= 0, as the host computes it.
__device__ double exp_below(double x) {
  const double coefficient[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        1.0 / 2.0};
  if (!(x > -708.0)) return 0.0;
  const i64 k = (i64)(x * 0x1.71547652b82fep+0 - 0.5);
  const double r = (x - (double)k * 0x1.62e42feep-1) - (double)k * 0x1.a39ef35793c76p-33;
  double p = coefficient[0];
#pragma unroll
  for (int i = 1; i < 12; i++) p = p * r + coefficient[i];
  p = (p * r + 1.0) * r + 1.0;
  return p * __longlong_as_double((i64)((u64)(1023 + k) << 52));
}
__device__ __forceinline__ double weight_of(float logit, float largest) {
  return logit == largest ? 1.0 : exp_below((double)logit - (double)largest);
}
__device__ __forceinline__ double weight_at(float logit, float largest, double temperature) {
  return logit == largest ? 1.0 : exp_below(((double)logit - (double)largest) / temperature);
}

__device__ __forceinline__ u64 place_of(float logit, i64 id) {
  if (!(logit > -RUNG_INF)) return 0;
  u32 bits = logit == 0.0f ? 0u : __float_as_uint(logit);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)bits << 32 | (0xffffffffu - (u32)id);
}
__device__ __forceinline__ i32 id_of(u64 place) { return (i32)(0xffffffffu - (u32)place); }
__device__ __forceinline__ u32 logit_bits(u64 place) {
  const u32 bits = (u32)(place >> 32);
  return bits >> 31 ? bits & 0x7fffffffu : ~bits;
}
__device__ __forceinline__ float logit_of(u64 place) { return __uint_as_float(logit_bits(place)); }

__device__ __forceinline__ u64 warp_best(u64 v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    const u64 other = __shfl_xor_sync(~0u, v, o);
    v = other > v ? other : v;
  }
  return v;
}
__device__ __forceinline__ double warp_add(double v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
// All threads get the result.
__device__ double block_add(double v, shared_room &s) {
  v = warp_add(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) s.part[threadIdx.x >> 5] = v;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < WARPS; i++) sum += s.part[i];
  return sum;
}
__device__ u64 block_best(u64 v, shared_room &s) {
  v = warp_best(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) s.place[threadIdx.x >> 5] = v;
  __syncthreads();
  u64 best = 0;
  for (int i = 0; i < WARPS; i++) best = s.place[i] > best ? s.place[i] : best;
  return best;
}

// Largest first; n a power of two. Barriers are in front of it and behind.
__device__ void sort_down(u64 *a, int n) {
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride; stride /= 2) {
      for (int i = threadIdx.x; i < n / 2; i += THREADS) {
        const int low = 2 * i - (i & (stride - 1)), high = low + stride;
        const u64 x = a[low], y = a[high];
        if ((x < y) == ((low & size) == 0)) {
          a[low] = y;
          a[high] = x;
        }
      }
      __syncthreads();
    }
}
__device__ __forceinline__ int power_above(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

// ---- passes over a row

__device__ __forceinline__ bool stays(const row &r, float logit, u64 at, u64 from) {
  const double p = r.parameter[MIN_P];
  return at && at >= from && !(p > 0 && weight_of(logit, r.largest) < (p < 1 ? p : 1));
}

// Tokens from a place on: how many, or the sum of their weights.
__device__ double mass(const row &r, u64 from, bool weighed, shared_room &s) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < r.count; i += THREADS) {
    const float x = r.logits[i];
    const u64 at = place_of(x, i);
    if (at && at >= from) sum += weighed ? weight_of(x, r.largest) : 1.0;
  }
  return block_add(sum, s);
}

// The last place, not before `from`, such that tokens up to it reach the goal; `from` where all do not.
__device__ u64 last_place(const row &r, u64 from, double goal, bool weighed, shared_room &s) {
  u64 last = 0;
  for (int bit = 63; bit >= 0; bit--) {
    const u64 next = last | 1ull << bit;
    if (next > r.first) continue; // behind the best token nothing is
    if (next <= from || mass(r, next, weighed, s) >= goal) last = next;
  }
  return last > from ? last : from;
}

// The draw among tokens from a place on, by rising id: sums of segments, then through one of them. Thread 0 gets it.
__device__ i32 draw_from_row(const row &r, u64 from, shared_room &s) {
  double *sums = (double *)s.segment;
  const int lane = threadIdx.x & 31;
  __syncthreads();
  for (int g = threadIdx.x >> 5; g < r.segments; g += WARPS) {
    double sum = 0;
    const i64 end = (g + 1) * r.length < r.count ? (g + 1) * r.length : r.count;
    for (i64 i = g * r.length + lane; i < end; i += 32) {
      const float x = r.logits[i];
      if (stays(r, x, place_of(x, i), from)) sum += weight_at(x, r.largest, r.parameter[TEMPERATURE]);
    }
    sum = warp_add(sum);
    if (lane == 0) sums[g] = sum;
  }
  __syncthreads();
  if (threadIdx.x) return -1;
  double total = 0, before = 0;
  for (int g = 0; g < r.segments; g++) total += sums[g];
  const double goal = r.parameter[UNIFORM] * total;
  int chosen = -1;
  double sum = 0;
  for (int g = 0; g < r.segments; g++) {
    if (sums[g] > 0) {
      chosen = g;
      before = sum;
    }
    sum += sums[g];
    if (sum > goal) break;
  }
  i32 last = -1;
  const i64 end = (chosen + 1) * r.length < r.count ? (chosen + 1) * r.length : r.count;
  for (i64 i = chosen * r.length; i < end; i++) {
    const float x = r.logits[i];
    if (!stays(r, x, place_of(x, i), from)) continue;
    const double weight = weight_at(x, r.largest, r.parameter[TEMPERATURE]);
    before += weight;
    if (weight > 0 || last < 0) last = (i32)i;
    if (before > goal) break;
  }
  return last;
}

__device__ i32 choose_by_passes(const row &r, shared_room &s) {
  u64 from = 1;
  if (r.parameter[TOP_K] >= 1) from = last_place(r, from, floor(r.parameter[TOP_K]), false, s);
  if (r.parameter[TOP_P] < 1)
    from = last_place(r, from, r.parameter[TOP_P] * mass(r, from, true, s), true, s);
  return draw_from_row(r, from < r.first ? from : r.first, s);
}

// ---- a list of the best

// All tokens from a place on, best first, with their weights; how many, or -1 if there is no room for them.
__device__ int make_list(const row &r, u64 from, shared_room &s) {
  const int lane = threadIdx.x & 31;
  __syncthreads();
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  for (int g = threadIdx.x >> 5; g < r.segments; g += WARPS) {
    if (__ldcg(r.best + g) < from) continue;
    const i64 end = (g + 1) * r.length < r.count ? (g + 1) * r.length : r.count;
    for (i64 i = g * r.length + lane; i < end; i += 32) {
      const u64 at = place_of(r.logits[i], i);
      if (!at || at < from) continue;
      const int n = atomicAdd(&s.found, 1); // in any order: they are sorted
      if (n < LISTED) s.list[n] = at;
    }
  }
  __syncthreads();
  const int n = s.found;
  if (n > LISTED) return -1;
  const int room = power_above(n);
  for (int i = n + threadIdx.x; i < room; i += THREADS) s.list[i] = 0;
  __syncthreads();
  sort_down(s.list, room);
  for (int i = threadIdx.x; i < n; i += THREADS) s.weight[i] = weight_of(logit_of(s.list[i]), r.largest);
  __syncthreads();
  return n;
}

// How many of the first n of the list are left by top-p, if those are all (`whole`) or all weights have this sum; -1 if that depends on tokens behind them.
__device__ int cut_by_mass(const row &r, int n, bool whole, double all, shared_room &s) {
  if (!(r.parameter[TOP_P] < 1)) return n;
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = whole ? 0 : all, sum = 0;
    for (int i = 0; whole && i < n; i++) total += s.weight[i];
    const double goal = r.parameter[TOP_P] * total;
    int left = whole ? n : -1;
    for (int i = 0; i < n; i++) {
      sum += s.weight[i];
      if (!(sum >= goal)) continue;
      left = i + 1;
      break;
    }
    s.n = left;
  }
  __syncthreads();
  return s.n;
}

// The draw among the first n of the list but for what min-p removes. Thread 0 gets it.
__device__ i32 draw_from_list(const row &r, int n, shared_room &s) {
  const double p = r.parameter[MIN_P];
  const int room = power_above(n);
  __syncthreads();
  for (int i = threadIdx.x; i < room; i += THREADS) {
    const bool left = i < n && !(p > 0 && s.weight[i] < (p < 1 ? p : 1));
    s.list[i] = left ? s.list[i] << 32 | logit_bits(s.list[i]) : 0; // by rising id; what is not left goes behind
  }
  __syncthreads();
  sort_down(s.list, room);
  for (int i = threadIdx.x; i < n; i += THREADS)
    if (s.list[i])
      s.weight[i] = weight_at(__uint_as_float((u32)s.list[i]), r.largest, r.parameter[TEMPERATURE]);
  __syncthreads();
  if (threadIdx.x) return -1;
  double total = 0, sum = 0;
  for (int i = 0; i < n && s.list[i]; i++) total += s.weight[i];
  const double goal = r.parameter[UNIFORM] * total;
  i32 last = -1;
  for (int i = 0; i < n && s.list[i]; i++) {
    sum += s.weight[i];
    if (s.weight[i] > 0 || last < 0) last = (i32)(0xffffffffu - (u32)(s.list[i] >> 32));
    if (sum > goal) break;
  }
  return last; // at the end of the list only if the product rounds up to the total
}

// The bound that at least `rank` tokens reach; 1, which all do, where no segment gives one. s.segment is sorted.
__device__ __forceinline__ u64 bound_of(const row &r, i64 rank, const shared_room &s) {
  if (rank <= 0 || r.count <= LISTED) return 1;
  const u64 at = s.segment[rank - 1] >> 32 << 32;
  return at ? at : 1;
}

__device__ i32 choose(const row &r, shared_room &s) {
  const double k = floor(r.parameter[TOP_K]), p = r.parameter[TOP_P], least = r.parameter[MIN_P];
  const bool few = k >= 1, bounded = few || p < 1 || least > 0;
  if (!bounded && r.count > LISTED) return choose_by_passes(r, s);
  if (few && k > LISTED && r.count > LISTED) return choose_by_passes(r, s);
  const int room = power_above(r.segments);
  for (int g = threadIdx.x; g < room; g += THREADS) s.segment[g] = g < r.segments ? __ldcg(r.best + g) : 0;
  __syncthreads();
  if (r.count > LISTED) sort_down(s.segment, room);
  const double all = !few && p < 1 && r.count > LISTED ? mass(r, 1, true, s) : 0;
  const int most = r.segments - r.segments / 8; // twice as many tokens are expected above that bound
  for (int level = 0; level < 3; level++) {
    const int asked = few && !level ? (int)k : level ? 512 : 64;
    const u64 from = bound_of(r, level == 2 ? 0 : asked < most ? asked : most, s);
    const int n = make_list(r, from, s);
    if (n < 0) break;
    const bool whole = from == 1 || (few && n >= k); // nothing behind the list matters
    if (few && !whole) continue;
    const int left = cut_by_mass(r, few && k < n ? (int)k : n, whole, all, s);
    if (left < 0) continue;
    // Weights fall with their logits but for rounding.
    if (!whole && !(p < 1) && !(s.weight[n - 1] < (least < 1 ? least : 1) * (1 - 1e-9))) continue;
    return draw_from_list(r, left, s);
  }
  return choose_by_passes(r, s);
}

extern "C" __global__ void __launch_bounds__(THREADS) sample(const __grid_constant__ sample_params p) {
  __shared__ shared_room s;
  __shared__ bool is_last;
  GO();
  WAIT();
  const int lane = threadIdx.x & 31;
  for (i64 n = blockIdx.y; n < p.rows; n += gridDim.y) {
    row r;
    r.logits = p.logits + n * p.count;
    r.best = p.best + n * p.segments;
    r.count = p.count;
    r.length = p.length;
    r.segments = p.segments;
    const int first = (int)((i64)p.segments * blockIdx.x / gridDim.x),
              end = (int)((i64)p.segments * (blockIdx.x + 1) / gridDim.x);
    for (int g = first + (threadIdx.x >> 5); g < end; g += WARPS) {
      u64 best = 0;
      const i64 to = (g + 1) * r.length < r.count ? (g + 1) * r.length : r.count;
      for (i64 i = g * r.length + lane; i < to; i += 32) {
        const u64 at = place_of(r.logits[i], i);
        best = at > best ? at : best;
      }
      best = warp_best(best);
      if (lane == 0) __stcg(p.best + n * p.segments + g, best);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      is_last = gridDim.x == 1 || atomicAdd(p.counter + n, 1u) == gridDim.x - 1;
      if (is_last && gridDim.x > 1) p.counter[n] = 0;
    }
    __syncthreads();
    if (!is_last) continue;
    __threadfence();
    u64 best = 0;
    for (int g = threadIdx.x; g < p.segments; g += THREADS) {
      const u64 at = __ldcg(r.best + g);
      best = at > best ? at : best;
    }
    r.first = block_best(best, s);
    r.largest = logit_of(r.first);
    for (int c = 0; c < COLUMNS; c++) r.parameter[c] = p.parameters[n * COLUMNS + c];
    i32 id = r.first ? id_of(r.first) : -1;
    if (r.first && r.parameter[TEMPERATURE] > 0) id = choose(r, s);
    if (threadIdx.x == 0) p.out[n] = id;
    __syncthreads();
  }
}
