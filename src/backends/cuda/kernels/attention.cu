// SPDX-License-Identifier: MIT
// Softmax attention of tensors, and of ragged rows among themselves. In front: TYPE (of q, k, v and the result), VALUES
// (how many numbers of a value a block makes, 64 or 128), RAGGED (1: rows of sequences), APART (1: tiles of keys begin
// with each sequence, so that a row has the same bits whatever stands beside it).
//
// A block has SIDE queries of one head and takes the keys that any of them sees, SIDE at a time: scores, their weights,
// what is there already brought to the largest score so far, values added. Threads stand in a square of 16 by 16; each
// has PER queries by PER keys, and PER queries by VALUES / 16 numbers of a value.
#if TYPE == 3
typedef double real;
#define PER 2
#else
typedef float real;
#define PER 4
#endif
#define SIDE (16 * PER)
#define STEP 32 // numbers of a query, and keys, that are multiplied at a time
#define WIDTH (VALUES / 16)
#define PITCH (SIDE + 16 / (int)sizeof(real))

struct attention_operand {
  u8 *base;
  i64 stride[4]; // batch, head, query or key, number; 0 where a mask repeats
};
struct attention_params {
  attention_operand q, k, v, y, mask; // mask.base NULL: none
  const u8 *offsets;
  refusal *refused;
  i64 queries, keys, dim, value_dim, heads, kv_heads, sequences, offsets_stride, window, tiles;
  double scale, soft_cap;
  i32 causal, added, mask_type, offsets_type;
};

__device__ __forceinline__ real load_real(const u8 *p, i64 i) {
#if TYPE == 3
  return ((const double *)p)[i];
#else
  return load_float(p, TYPE, i);
#endif
}
__device__ __forceinline__ real larger(real a, real b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float exp_of(float x) { return exp2f(x * 1.4426950408889634f); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }

#if RAGGED
__device__ __forceinline__ i64 offset_at(const attention_params &p, i64 s) {
  const i64 at = load_int(p.offsets, p.offsets_type, s * p.offsets_stride);
  return at < 0 ? 0 : at > p.keys ? p.keys : at;
}
__device__ __forceinline__ i64 row_sequence(const attention_params &p, i64 row) {
  i64 low = 0, high = p.sequences;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (offset_at(p, middle + 1) <= row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
// Offsets that no batch has: they begin with 0, do not fall, and end with the rows.
__device__ void check_offsets(const attention_params &p) {
  for (i64 s = threadIdx.x; s <= p.sequences; s += 256) {
    const i64 at = load_int(p.offsets, p.offsets_type, s * p.offsets_stride);
    const i64 before = s ? load_int(p.offsets, p.offsets_type, (s - 1) * p.offsets_stride) : 0;
    if (at < before || (s == 0 && at != 0) || (s == p.sequences && at != p.keys)) refuse(p.refused, REFUSES_OFFSETS, at, p.keys);
  }
}
#endif

// The keys that query may see, mask apart.
__device__ __forceinline__ void visible(const attention_params &p, i64 query, i64 *low, i64 *high) {
  i64 begin = 0, end = p.keys, at = query + p.keys - p.queries;
  *low = *high = 0;
  if (query >= p.queries) return;
#if RAGGED
  const i64 s = row_sequence(p, query);
  if (s >= p.sequences) return;
  begin = offset_at(p, s);
  end = offset_at(p, s + 1);
  at = query;
#endif
  if (p.window) {
    begin = max(begin, at - p.window + 1);
    end = min(end, at + p.window);
  }
  if (p.causal) end = min(end, at + 1);
  *low = begin;
  *high = end;
}

// Of a product of a query and a key that it may see, the score; false if the mask hides the key.
__device__ __forceinline__ bool make_score(const attention_params &p, i64 batch, i64 head, i64 query, i64 key, real *s) {
  *s *= (real)p.scale;
  if (p.soft_cap > 0) *s = (real)p.soft_cap * tanh(*s / (real)p.soft_cap);
  if (!p.mask.base) return true;
  const i64 at = batch * p.mask.stride[0] + head * p.mask.stride[1] + query * p.mask.stride[2] + key * p.mask.stride[3];
  const double added = load_double(p.mask.base, p.mask_type, at);
  if (p.mask_type == T_BOOL) return added != 0;
  *s += (real)added;
  return p.added || !(added <= -3.4028234663852886e38);
}

struct attention_tile {
  real sum[PER][WIDTH], most[PER], total[PER];
  bool seen[PER];
};
union attention_shared {
  struct {
    real q[STEP][PITCH], k[STEP][PITCH];
  } factor;
  real v[STEP][VALUES];
};

// Adds the keys from k0 on, before `behind`. Weights of keys that a query does not see are -0, which no exponential is.
__device__ __forceinline__ void add_keys(const attention_params &p, attention_tile &t, attention_shared &shared,
                                         real (*weight)[PITCH], const i64 *low, const i64 *high, i64 batch, i64 head,
                                         i64 first, i64 k0, i64 behind) {
  const int thread = threadIdx.x, tq = thread >> 4, tk = thread & 15;
  const i64 kv_head = head * p.kv_heads / p.heads;
  const i64 q_base = batch * p.q.stride[0] + head * p.q.stride[1], k_base = batch * p.k.stride[0] + kv_head * p.k.stride[1];
  const i64 v_base = batch * p.v.stride[0] + kv_head * p.v.stride[1], column0 = (i64)blockIdx.y * VALUES;
  real s[PER][PER];
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int j = 0; j < PER; j++) s[i][j] = 0;
  for (i64 d0 = 0; d0 < p.dim; d0 += STEP) {
    __syncthreads();
    for (int i = thread; i < SIDE * STEP; i += 256) {
      const int d = (i & 7) + i / (8 * SIDE) * 8, r = (i >> 3) % SIDE;
      const bool there = d0 + d < p.dim;
      shared.factor.q[d][r] = there && first + r < p.queries
                                  ? load_real(p.q.base, q_base + (first + r) * p.q.stride[2] + (d0 + d) * p.q.stride[3])
                                  : (real)0;
      shared.factor.k[d][r] = there && k0 + r < p.keys
                                  ? load_real(p.k.base, k_base + (k0 + r) * p.k.stride[2] + (d0 + d) * p.k.stride[3])
                                  : (real)0;
    }
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < STEP; d++)
#pragma unroll
      for (int i = 0; i < PER; i++)
#pragma unroll
        for (int j = 0; j < PER; j++)
          s[i][j] = fma(shared.factor.q[d][PER * tq + i], shared.factor.k[d][PER * tk + j], s[i][j]);
  }
#pragma unroll
  for (int i = 0; i < PER; i++) {
    const i64 query = first + PER * tq + i, begin = low[PER * tq + i], end = high[PER * tq + i];
    real largest = t.most[i], total = 0;
    bool sees[PER];
#pragma unroll
    for (int j = 0; j < PER; j++) {
      const i64 key = k0 + PER * tk + j;
      sees[j] = key >= begin && key < end && key < behind && make_score(p, batch, head, query, key, &s[i][j]);
      t.seen[i] |= sees[j];
      if (sees[j]) largest = larger(s[i][j], largest);
    }
#pragma unroll
    for (int o = 8; o; o >>= 1) largest = larger(__shfl_xor_sync(~0u, largest, o), largest);
    const real base = largest == -(real)RUNG_INF ? (real)0 : largest, before = exp_of(t.most[i] - base);
    t.most[i] = largest;
#pragma unroll
    for (int j = 0; j < PER; j++) {
      const real w = sees[j] ? exp_of(s[i][j] - base) : -(real)0;
      weight[PER * tk + j][PER * tq + i] = w;
      total += w;
    }
#pragma unroll
    for (int o = 8; o; o >>= 1) total += __shfl_xor_sync(~0u, total, o);
    t.total[i] = t.total[i] * before + total;
#pragma unroll
    for (int c = 0; c < WIDTH; c++) t.sum[i][c] *= before;
  }
  for (int kk = 0; kk < SIDE; kk += STEP) {
    bool trouble = false;
    __syncthreads();
    for (int i = thread; i < STEP * VALUES; i += 256) {
      const int c = i % VALUES, r = i / VALUES;
      const i64 key = k0 + kk + r, column = column0 + c;
      const real v = key < p.keys && column < p.value_dim
                         ? load_real(p.v.base, v_base + key * p.v.stride[2] + column * p.v.stride[3])
                         : (real)0;
      trouble |= v - v != 0;
      shared.v[r][c] = v;
    }
    // All queries meet all values, and nothing times NaN is NaN: then those that a query does not see are left out.
    trouble = __syncthreads_or(trouble);
#pragma unroll 4
    for (int r = 0; r < STEP; r++) {
#pragma unroll
      for (int i = 0; i < PER; i++) {
        const real w = weight[kk + r][PER * tq + i];
        if (trouble && w == 0 && 1 / w < 0) continue;
#pragma unroll
        for (int c = 0; c < WIDTH; c++)
          t.sum[i][c] = fma(w, shared.v[r][c / 4 * 64 + 4 * tk + c % 4], t.sum[i][c]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) attention(const __grid_constant__ attention_params p) {
  __shared__ __align__(16) attention_shared shared;
  __shared__ __align__(16) real weight[SIDE][PITCH];
  __shared__ i64 low[SIDE], high[SIDE];
  const int thread = threadIdx.x, tq = thread >> 4, tk = thread & 15;
  const i64 of = blockIdx.x / p.tiles, first = (blockIdx.x - of * p.tiles) * SIDE;
  const i64 batch = of / p.heads, head = of - batch * p.heads;
  attention_tile t;
#pragma unroll
  for (int i = 0; i < PER; i++) {
    t.most[i] = -(real)RUNG_INF;
    t.total[i] = 0;
    t.seen[i] = false;
#pragma unroll
    for (int c = 0; c < WIDTH; c++) t.sum[i][c] = 0;
  }
  GO();
  WAIT();
#if RAGGED
  if (blockIdx.x == 0 && blockIdx.y == 0) check_offsets(p);
#endif
  if (thread < SIDE) visible(p, first + thread, &low[thread], &high[thread]);
  __syncthreads();
#if RAGGED && APART
  for (i64 s = row_sequence(p, first); s < p.sequences; s++) {
    const i64 origin = offset_at(p, s), behind = offset_at(p, s + 1);
    if (origin >= first + SIDE) break;
#else
  {
    const i64 origin = 0, behind = p.keys;
#endif
    i64 begin = behind, end = origin;
    for (int i = 0; i < SIDE; i++)
      if (low[i] < high[i] && low[i] >= origin && high[i] <= behind) {
        begin = min(begin, low[i]);
        end = max(end, high[i]);
      }
#if !RAGGED || APART
    begin = origin + (begin - origin) / SIDE * SIDE;
#endif
    for (i64 k0 = begin; k0 < end; k0 += SIDE)
      add_keys(p, t, shared, weight, low, high, batch, head, first, k0, behind);
  }
#pragma unroll
  for (int i = 0; i < PER; i++) {
    const i64 query = first + PER * tq + i;
    int seen = t.seen[i];
#pragma unroll
    for (int o = 8; o; o >>= 1) seen |= __shfl_xor_sync(~0u, seen, o);
    if (query >= p.queries) continue;
#pragma unroll
    for (int c = 0; c < WIDTH; c++) {
      const i64 column = (i64)blockIdx.y * VALUES + c / 4 * 64 + 4 * tk + c % 4;
      if (column >= p.value_dim) continue;
      const real v = seen ? t.sum[i][c] / t.total[i] : (real)0;
      const i64 at = batch * p.y.stride[0] + head * p.y.stride[1] + query * p.y.stride[2] + column * p.y.stride[3];
      store_double(p.y.base, TYPE, at, (double)v);
    }
  }
}

// Few queries: a block has one. Its warps take keys in turn, AHEAD of them at a time, their lanes numbers of a key and of
// a value; at the end the warps' shares are brought to the largest score and added, first warp to last.
#define AHEAD 4
#define FEW_WARPS 8
extern "C" __global__ void __launch_bounds__(32 * FEW_WARPS) attention_few(const __grid_constant__ attention_params p) {
  __shared__ real part[FEW_WARPS][VALUES], most_of[FEW_WARPS], total_of[FEW_WARPS];
  __shared__ int seen_of[FEW_WARPS];
  const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
  const i64 of = blockIdx.x / p.queries, query = blockIdx.x - of * p.queries, batch = of / p.heads, head = of - batch * p.heads;
  const i64 kv_head = head * p.kv_heads / p.heads, column0 = (i64)blockIdx.y * VALUES;
  const i64 q_at = batch * p.q.stride[0] + head * p.q.stride[1] + query * p.q.stride[2];
  const i64 k_at = batch * p.k.stride[0] + kv_head * p.k.stride[1], v_at = batch * p.v.stride[0] + kv_head * p.v.stride[1];
  real sum[VALUES / 32], most = -(real)RUNG_INF, total = 0;
  int seen = 0;
#pragma unroll
  for (int c = 0; c < VALUES / 32; c++) sum[c] = 0;
  GO();
  WAIT();
#if RAGGED
  if (blockIdx.x == 0 && blockIdx.y == 0) check_offsets(p);
#endif
  i64 low, high;
  visible(p, query, &low, &high);
  for (i64 k0 = low + warp; k0 < high; k0 += FEW_WARPS * AHEAD) {
    real s[AHEAD], largest = most;
    bool sees[AHEAD];
#pragma unroll
    for (int a = 0; a < AHEAD; a++) s[a] = 0;
    for (i64 d = lane; d < p.dim; d += 32) {
      const real q = load_real(p.q.base, q_at + d * p.q.stride[3]);
#pragma unroll
      for (int a = 0; a < AHEAD; a++) {
        const i64 key = k0 + a * FEW_WARPS;
        if (key < high) s[a] = fma(q, load_real(p.k.base, k_at + key * p.k.stride[2] + d * p.k.stride[3]), s[a]);
      }
    }
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      const i64 key = k0 + a * FEW_WARPS;
#pragma unroll
      for (int o = 16; o; o >>= 1) s[a] += __shfl_xor_sync(~0u, s[a], o);
      sees[a] = key < high && make_score(p, batch, head, query, key, &s[a]);
      if (!sees[a]) continue;
      seen = 1;
      largest = larger(s[a], largest);
    }
    const real base = largest == -(real)RUNG_INF ? (real)0 : largest, before = exp_of(most - base);
    most = largest;
    total *= before;
#pragma unroll
    for (int c = 0; c < VALUES / 32; c++) sum[c] *= before;
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      if (!sees[a]) continue;
      const real w = exp_of(s[a] - base);
      total += w;
#pragma unroll
      for (int c = 0; c < VALUES / 32; c++) {
        const i64 column = column0 + lane + 32 * c;
        if (column < p.value_dim)
          sum[c] = fma(w, load_real(p.v.base, v_at + (k0 + a * FEW_WARPS) * p.v.stride[2] + column * p.v.stride[3]), sum[c]);
      }
    }
  }
#pragma unroll
  for (int c = 0; c < VALUES / 32; c++) part[warp][lane + 32 * c] = sum[c];
  if (lane == 0) {
    most_of[warp] = most;
    total_of[warp] = total;
    seen_of[warp] = seen;
  }
  __syncthreads();
  if (thread >= VALUES || column0 + thread >= p.value_dim) return;
  real largest = -(real)RUNG_INF, all = 0, v = 0;
  for (int w = 0; w < FEW_WARPS; w++) largest = larger(most_of[w], largest);
  const real base = largest == -(real)RUNG_INF ? (real)0 : largest;
  seen = 0;
  for (int w = 0; w < FEW_WARPS; w++) {
    if (!seen_of[w]) continue;
    const real f = exp_of(most_of[w] - base);
    all = fma(f, total_of[w], all);
    v = fma(f, part[w][thread], v);
    seen = 1;
  }
  const i64 at = batch * p.y.stride[0] + head * p.y.stride[1] + query * p.y.stride[2] + (column0 + thread) * p.y.stride[3];
  store_double(p.y.base, TYPE, at, (double)(seen ? v / all : (real)0));
}
