// SPDX-License-Identifier: MIT
// Windows that move over up to three spatial axes, missing ones of extent 1 first: the largest number, where it stands,
// or the mean. A thread has a small window, a block a large one; which of the two is a matter of the window's extents alone.
// In front: number and NUMBER, the type of x; FLOATS; wide, what numbers are compared in; KIND.
#define MAX_POOL 0
#define ARGMAX_POOL 1
#define AVERAGE_POOL 2
#define THREADS 256

struct pool_axis {
  i64 extent, places, kernel, stride, dilation, before, after, in_step, out_step;
};
struct pool_params {
  const number *in;
  u8 *out;
  pool_axis axis[3];
  i64 count, channels;  // results
  i64 in_batch, in_channel, out_batch, out_channel;
  double lowest;
  i32 count_pad, pad;
};

__device__ __forceinline__ float value_of(const f16 *p) { return half_bits(p->bits); }
__device__ __forceinline__ float value_of(const bf16 *p) { return brain_bits(p->bits); }
template <class N>
__device__ __forceinline__ N value_of(const N *p) {
  return *p;
}

// The part of a window that lies inside x, and how many of its places count for the mean.
struct window {
  i64 first, in_step[3], taps[3];  // first: in elements
  i64 index, index_step[3];        // in row-major order over x
  i64 counted, out;
};
__device__ __forceinline__ i64 taps_before(i64 from, i64 end, i64 dilation, i64 kernel) {
  if (from + (kernel - 1) * dilation < end) return kernel;  // most windows: no division
  const i64 n = from < end ? (end - from + dilation - 1) / dilation : 0;
  return n < kernel ? n : kernel;
}
__device__ window window_of(const pool_params &p, i64 result) {
  window w;
  i64 rest = result, at[3];
  for (int a = 2; a >= 0; a--) {
    const i64 q = rest / p.axis[a].places;
    at[a] = rest - q * p.axis[a].places;
    rest = q;
  }
  const i64 batch = rest / p.channels, channel = rest - batch * p.channels;
  w.first = batch * p.in_batch + channel * p.in_channel;
  w.out = batch * p.out_batch + channel * p.out_channel;
  w.index = rest;
  w.counted = 1;
  for (int a = 0; a < 3; a++) {
    const pool_axis &x = p.axis[a];
    const i64 from = at[a] * x.stride - x.before;
    const i64 outside = from < 0 ? taps_before(from, 0, x.dilation, x.kernel) : 0;
    const i64 first = from + outside * x.dilation, end = taps_before(from, x.extent, x.dilation, x.kernel);
    w.taps[a] = end - outside;
    w.in_step[a] = x.dilation * x.in_step;
    w.first += first * x.in_step;
    w.index = w.index * x.extent + first;
    w.out += at[a] * x.out_step;
    w.counted *= p.count_pad ? taps_before(from, x.extent + x.after, x.dilation, x.kernel) : w.taps[a];
  }
  w.index_step[2] = p.axis[2].dilation;
  w.index_step[1] = p.axis[1].dilation * p.axis[2].extent;
  w.index_step[0] = p.axis[0].dilation * p.axis[1].extent * p.axis[2].extent;
  return w;
}

// What has been seen of a window. The mean is summed in double.
struct seen {
#if KIND == AVERAGE_POOL
  double sum;
#else
  wide largest;
  i64 index;  // -1: nothing
#endif
};
__device__ __forceinline__ seen nothing_of(const pool_params &p) {
#if KIND == AVERAGE_POOL
  return {0.0};
#else
  return {(wide)p.lowest, -1};
#endif
}
// NaN is above all numbers; of equals the first in the order of x stays.
__device__ __forceinline__ void see(seen *s, const seen &other) {
#if KIND == AVERAGE_POOL
  s->sum += other.sum;
#else
  if (other.index < 0) return;
  const wide u = s->largest, v = other.largest;
  const bool both = u != u && v != v, earlier = other.index < s->index;
  if (s->index >= 0 && (both || u == v ? !earlier : u != u || !(v > u || v != v))) return;
  *s = other;
#endif
}
__device__ __forceinline__ void see_number(seen *s, const pool_params &p, const window &w, i64 t0, i64 t1, i64 t2) {
  const wide v = value_of(p.in + (w.first + t0 * w.in_step[0] + t1 * w.in_step[1] + t2 * w.in_step[2]));
#if KIND == AVERAGE_POOL
  see(s, {(double)v});
#else
  see(s, {v, w.index + t0 * w.index_step[0] + t1 * w.index_step[1] + t2 * w.index_step[2]});
#endif
}
__device__ __forceinline__ void put(const pool_params &p, const window &w, const seen &s) {
#if KIND == AVERAGE_POOL
  store_double(p.out, NUMBER, w.out, s.sum / (double)w.counted);
#elif KIND == ARGMAX_POOL
  ((i64 *)p.out)[w.out] = s.index;
#elif FLOATS
  store_double(p.out, NUMBER, w.out, (double)s.largest);
#else
  ((number *)p.out)[w.out] = (number)s.largest;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) pool(const __grid_constant__ pool_params p) {
  GO();
  WAIT();
  for (i64 r = blockIdx.x * (i64)THREADS + threadIdx.x; r < p.count; r += (i64)gridDim.x * THREADS) {
    const window w = window_of(p, r);
    seen s = nothing_of(p);
    for (i64 t0 = 0; t0 < w.taps[0]; t0++)
      for (i64 t1 = 0; t1 < w.taps[1]; t1++)
        for (i64 t2 = 0; t2 < w.taps[2]; t2++) see_number(&s, p, w, t0, t1, t2);
    put(p, w, s);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) pool_large(const __grid_constant__ pool_params p) {
  __shared__ seen shared[THREADS];
  GO();
  WAIT();
  for (i64 r = blockIdx.x; r < p.count; r += gridDim.x) {
    const window w = window_of(p, r);
    const i64 n = w.taps[0] > 0 && w.taps[1] > 0 && w.taps[2] > 0 ? w.taps[0] * w.taps[1] * w.taps[2] : 0;
    seen s = nothing_of(p);
    for (i64 i = threadIdx.x; i < n; i += THREADS) {
      const i64 row = i / w.taps[2], t0 = row / w.taps[1];
      see_number(&s, p, w, t0, row - t0 * w.taps[1], i - row * w.taps[2]);
    }
    shared[threadIdx.x] = s;
    __syncthreads();
    for (int step = THREADS / 2; step; step >>= 1) {
      if (threadIdx.x < step) see(&shared[threadIdx.x], shared[threadIdx.x + step]);
      __syncthreads();
    }
    if (threadIdx.x == 0) put(p, w, shared[0]);
    __syncthreads();
  }
}
