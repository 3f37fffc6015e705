// SPDX-License-Identifier: MIT
// Reductions, softmax, largest and smallest: a block has one result or one lane of numbers; threads take elements in
// turn and meet in shared memory, in one order. In front: KIND.
struct reduce_params {
  operand kept;    // in's axes that stay, with their strides
  operand reduced; // those that go
  u8 *in, *out;
  i64 results;
  i32 in_type, out_type;
};
enum { SUM, MEAN, PROD, MAX, MIN, L1, L2, SQUARES, LOG_SUM, LOG_SUM_EXP };
#ifdef KIND
#define THREADS 128
__device__ __forceinline__ double begin_value() {
  return KIND == PROD ? 1.0 : KIND == MAX ? -(double)RUNG_INF : KIND == MIN ? (double)RUNG_INF : 0.0;
}
__device__ __forceinline__ double fold_value(double a, double b) {
  if (KIND == PROD) return a * b;
  if (KIND == MAX) return a > b || a != a ? a : b;
  if (KIND == MIN) return a < b || a != a ? a : b;
  return a + b;
}
__device__ __forceinline__ double one_value(double v, double top) {
  if (KIND == L1) return fabs(v);
  if (KIND == L2 || KIND == SQUARES) return v * v;
  if (KIND == LOG_SUM_EXP) return exp(v - top);
  return v;
}
__device__ double block_fold(double v, double *shared) {
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = THREADS / 2; step; step >>= 1) {
    if (threadIdx.x < step) shared[threadIdx.x] = fold_value(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  return shared[0];
}
__device__ double block_top(double v, double *shared) {
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = THREADS / 2; step; step >>= 1) {
    if (threadIdx.x < step) {
      const double a = shared[threadIdx.x], b = shared[threadIdx.x + step];
      shared[threadIdx.x] = a > b || a != a ? a : b;
    }
    __syncthreads();
  }
  return shared[0];
}
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const __grid_constant__ reduce_params p) {
  __shared__ double shared[THREADS];
  GO();
  WAIT();
  const i64 n = count_of(p.reduced);
  for (i64 r = blockIdx.x; r < p.results; r += gridDim.x) {
    const i64 from = offset_of(p.kept, r);
    double top = 0;
    if (KIND == LOG_SUM_EXP) {
      top = -(double)RUNG_INF;
      for (i64 i = threadIdx.x; i < n; i += THREADS) {
        const double v = load_double(p.in, p.in_type, from + offset_of(p.reduced, i));
        top = v > top || v != v ? v : top;
      }
      top = block_top(top, shared);
      if (top == -(double)RUNG_INF || top == (double)RUNG_INF) top = top > 0 ? top : 0;
    }
    double v = begin_value();
    for (i64 i = threadIdx.x; i < n; i += THREADS)
      v = fold_value(v, one_value(load_double(p.in, p.in_type, from + offset_of(p.reduced, i)), top));
    v = block_fold(v, shared);
    if (threadIdx.x) continue;
    if (KIND == MEAN) v /= (double)n;
    if (KIND == L2) v = sqrt(v);
    if (KIND == LOG_SUM) v = log(v);
    if (KIND == LOG_SUM_EXP) v = top == (double)RUNG_INF ? top : log(v) + top;
    store_double(p.out, p.out_type, r, v);
  }
}
#else
// ---- softmax along one axis
struct softmax_params {
  operand in, out; // without the axis
  i64 lanes, n, in_step, out_step;
  i32 logarithm, pad;
};
extern "C" __global__ void __launch_bounds__(256) softmax(const __grid_constant__ softmax_params p) {
  __shared__ float shared[32];
  GO();
  WAIT();
  for (i64 r = blockIdx.x; r < p.lanes; r += gridDim.x) {
    const i64 from = offset_of(p.in, r), to = offset_of(p.out, r);
    float top = -RUNG_INF;
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x)
      top = nan_max(load_float(p.in.base, p.in.type, from + i * p.in_step), top);
    top = block_max(top, shared);
    float sum = 0;
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x)
      sum += expf(load_float(p.in.base, p.in.type, from + i * p.in_step) - top);
    sum = block_sum(sum, shared);
    const float log_sum = logf(sum);
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
      const float v = load_float(p.in.base, p.in.type, from + i * p.in_step) - top;
      store_float(p.out.base, p.out.type, to + i * p.out_step, p.logarithm ? v - log_sum : expf(v) / sum);
    }
    __syncthreads();
  }
}

// ---- the index of the largest or smallest; NaN counts as both
struct choose_params {
  operand in; // without the axis
  u8 *out;
  i64 lanes, n, step;
  i32 smallest, last;
};
// Does b come before a?
__device__ __forceinline__ bool better(double a, i64 ia, double b, i64 ib, int smallest, int last) {
  if (ib < 0) return false;
  if (ia < 0) return true;
  if (a != a || b != b) {
    if (a != a && b != b) return last ? ib > ia : ib < ia;
    return b != b;
  }
  if (a == b) return last ? ib > ia : ib < ia;
  return smallest ? b < a : b > a;
}
extern "C" __global__ void __launch_bounds__(256) choose(const __grid_constant__ choose_params p) {
  __shared__ double value[256];
  __shared__ i64 index[256];
  GO();
  WAIT();
  for (i64 r = blockIdx.x; r < p.lanes; r += gridDim.x) {
    const i64 from = offset_of(p.in, r);
    double best = 0;
    i64 at = -1;
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
      const double v = load_double(p.in.base, p.in.type, from + i * p.step);
      if (!better(best, at, v, i, p.smallest, p.last)) continue;
      best = v;
      at = i;
    }
    value[threadIdx.x] = best;
    index[threadIdx.x] = at;
    __syncthreads();
    for (int step = 128; step; step >>= 1) {
      if (threadIdx.x < step && better(value[threadIdx.x], index[threadIdx.x], value[threadIdx.x + step],
                                       index[threadIdx.x + step], p.smallest, p.last)) {
        value[threadIdx.x] = value[threadIdx.x + step];
        index[threadIdx.x] = index[threadIdx.x + step];
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) ((i64 *)p.out)[r] = index[0];
    __syncthreads();
  }
}
#endif
