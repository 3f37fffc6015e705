// SPDX-License-Identifier: MIT
// Convolutions and their transposes over up to three spatial axes, missing ones of extent 1 first, as the product that
// they are: results (rows) by places (columns) by k, which counts a group's channels and, within each, the positions of
// the kernel. Nothing is copied out: a block brings 16 or 32 k of its rows of w and its places of x to shared memory at a
// time and multiplies those. A sum is taken in runs of 64 k, which are added up in order, whatever the tile: all tiles give
// the same bits.
//
// The places of a transpose fall into phases: those that are equal modulo the stride see the same positions of the kernel
// at constant distances, as all places of a convolution do.
// In front: x_number, w_number, y_number; sum_number, float, double or u32 (integers wrap); WHOLE for integers. With
// HEIGHT, the rows of w that each of its threads has, only the large tile, without it all others.
struct conv_axis {
  i64 extent, places, kernel, stride, dilation, before, x_step, w_step, y_step;
};
struct conv_params {
  const x_number *x;
  const w_number *w;
  const y_number *bias;  // NULL: none
  y_number *y;
  const x_number *x_zero;  // of integers; NULL: 0
  const w_number *w_zero;
  conv_axis axis[3];
  i64 batch, groups, channels, results;  // the latter two of a group
  i64 x_batch, x_channel, w_group, w_channel, w_result, y_batch, y_channel, bias_step, zero_step;
  i64 phase_count;
  i32 transposed, pad;
};
#define THREADS 256
#define RUN 64  // a single chain along k would lose as many roundings more

__device__ __forceinline__ float widened(const float *p) { return *p; }
__device__ __forceinline__ float widened(const f16 *p) { return half_bits(p->bits); }
__device__ __forceinline__ float widened(const bf16 *p) { return brain_bits(p->bits); }
__device__ __forceinline__ double widened(const double *p) { return *p; }
template <class N>
__device__ __forceinline__ u32 widened(const N *p) {
  return (u32)*p;
}
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }
__device__ __forceinline__ u32 multiply_add(u32 a, u32 b, u32 c) { return a * b + c; }
__device__ __forceinline__ void put(float *p, float v) { *p = v; }
__device__ __forceinline__ void put(f16 *p, float v) { p->bits = to_half_bits(v); }
__device__ __forceinline__ void put(bf16 *p, float v) { p->bits = to_brain_bits(v); }
__device__ __forceinline__ void put(double *p, double v) { *p = v; }
__device__ __forceinline__ void put(i32 *p, u32 v) { *p = (i32)v; }
__device__ __forceinline__ void take_four(float *to, const float *from) {
  const float4 v = *(const float4 *)from;
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ __forceinline__ void take_four(u32 *to, const u32 *from) {
  const uint4 v = *(const uint4 *)from;
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ __forceinline__ void take_four(double *to, const double *from) {
  for (int i = 0; i < 4; i++) to[i] = from[i];
}
template <int N>
__device__ __forceinline__ void take(sum_number *to, const sum_number *from) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) take_four(to + i, from + i);
  } else {
#pragma unroll
    for (int i = 0; i < N; i++) to[i] = from[i];
  }
}

// Place q of a phase is first_place + q * place_step of y; tap t is kernel position first_tap + t * tap_step and reads x
// at q * in_step + first_in + t * in_tap.
struct line {
  i32 places, first_place, place_step, taps, first_tap, tap_step, in_step, first_in, in_tap;
};
__device__ i32 divisor_of(i32 a, i32 b) {
  while (b) {
    const i32 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
__device__ line line_of(const conv_params &p, int axis, i32 phase) {
  const conv_axis &a = p.axis[axis];
  const i32 stride = (i32)a.stride, dilation = (i32)a.dilation, kernel = (i32)a.kernel, before = (i32)a.before;
  if (!p.transposed) return {(i32)a.places, 0, 1, kernel, 0, 1, stride, -before, dilation};
  const i32 both = divisor_of(stride, dilation);
  line l = {((i32)a.places - phase + stride - 1) / stride, phase, stride, 0, 0, stride / both, 1, 0, -dilation / both};
  while (l.first_tap < kernel && (phase + before - (i64)l.first_tap * dilation) % stride) l.first_tap++;
  if (l.first_tap >= kernel) return l;  // only zeros come here
  l.taps = (kernel - l.first_tap + l.tap_step - 1) / l.tap_step;
  l.first_in = (i32)((phase + before - (i64)l.first_tap * dilation) / stride);
  return l;
}
struct phase_lines {
  line axis[3];
  i32 taps;
  i64 places;  // of a picture
  i64 k;
  i64 x_tap[3], w_tap[3], first_w;  // from tap to tap, and to the first of w, in elements
};
__device__ void lines_of(const conv_params &p, i64 phase, phase_lines *out) {
  out->places = 1;
  out->taps = 1;
  out->first_w = 0;
  for (int a = 2; a >= 0; a--) {
    const i64 phases = !p.transposed ? 1 : p.axis[a].stride < p.axis[a].places ? p.axis[a].stride : p.axis[a].places;
    const line l = line_of(p, a, (i32)(phase % phases));
    phase /= phases;
    out->axis[a] = l;
    out->places *= l.places;
    out->taps *= l.taps;
    out->x_tap[a] = l.in_tap * p.axis[a].x_step;
    out->w_tap[a] = l.tap_step * p.axis[a].w_step;
    out->first_w += l.first_tap * p.axis[a].w_step;
  }
  out->k = p.channels * out->taps;
}

// A column: where its picture and first positions lie, in elements and as indices, and where its results go.
struct column {
  i64 x, y;
  i32 at[3];
};
__device__ __forceinline__ column column_of(const conv_params &p, const phase_lines &l, i64 index) {
  const i64 picture = index / l.places;
  i32 place = (i32)(index - picture * l.places);
  column c = {picture * p.x_batch, picture * p.y_batch, {0, 0, 0}};
#pragma unroll
  for (int a = 2; a >= 0; a--) {
    const line &i = l.axis[a];
    const i32 rest = place / i.places, q = place - rest * i.places;
    place = rest;
    c.at[a] = q * i.in_step + i.first_in;
    c.x += c.at[a] * p.axis[a].x_step;
    c.y += (i.first_place + (i64)q * i.place_step) * p.axis[a].y_step;
  }
  return c;
}
// One k: the same of its channel and kernel position.
struct tap {
  i64 x, w;
  i32 at[3];
  i32 there;
};
__device__ __forceinline__ tap tap_of(const conv_params &p, const phase_lines &l, i64 k) {
  tap t = {0, 0, {0, 0, 0}, k < l.k};
  if (!t.there) return t;
  const i32 channel = (i32)((u32)k / (u32)l.taps);
  i32 position = (i32)k - channel * l.taps;
  t.x = channel * p.x_channel;
  t.w = channel * p.w_channel + l.first_w;
#pragma unroll
  for (int a = 2; a >= 0; a--) {
    const line &i = l.axis[a];
    const i32 rest = position / i.taps, at = position - rest * i.taps;
    position = rest;
    t.at[a] = at * i.in_tap;
    t.x += at * l.x_tap[a];
    t.w += at * l.w_tap[a];
  }
  return t;
}
__device__ __forceinline__ sum_number zero_of_x(const conv_params &p) {
#ifdef WHOLE
  return p.x_zero ? widened(p.x_zero) : 0;
#else
  return 0;
#endif
}
__device__ __forceinline__ sum_number zero_of_w(const conv_params &p, i64 result) {
#ifdef WHOLE
  return p.w_zero ? widened(p.w_zero + result * p.zero_step) : 0;
#else
  return 0;
#endif
}
__device__ __forceinline__ sum_number x_at(const conv_params &p, const x_number *x, const column &c, const tap &t,
                                           sum_number zero) {
  const bool inside = (u32)(c.at[0] + t.at[0]) < (u32)p.axis[0].extent &&
                      (u32)(c.at[1] + t.at[1]) < (u32)p.axis[1].extent &&
                      (u32)(c.at[2] + t.at[2]) < (u32)p.axis[2].extent;
  return inside ? widened(x + (c.x + t.x)) - zero : (sum_number)0;
}
// Result `result` of all groups, at where column c goes.
__device__ __forceinline__ void put_result(const conv_params &p, i64 result, i64 at, sum_number sum) {
  if (p.bias) sum += widened(p.bias + result * p.bias_step);
  put(p.y + result * p.y_channel + at, sum);
}

// ---- tiles: 16 by 16 threads, each with M neighbouring rows and N columns; DEEP k at a time
template <int M, int N, int DEEP>
__device__ __forceinline__ void tiles(const conv_params &p) {
  enum { ROWS = 16 * M, COLUMNS = 16 * N, PITCH = ROWS + 4 };
  enum { X_STEP = THREADS / COLUMNS, X_LOADS = DEEP / X_STEP, W_STEP = THREADS / DEEP, W_LOADS = ROWS / W_STEP };
  __shared__ __align__(16) sum_number ws[2][DEEP][PITCH], xs[2][DEEP][COLUMNS];
  __shared__ tap taps[2][RUN];
  __shared__ i64 goes[COLUMNS];  // where columns go in y; -1: there is none
  __shared__ phase_lines l;
  const int t = threadIdx.x, tn = t & 15, tm = t >> 4, own = t % COLUMNS;
  const i64 row_tiles = (p.results + ROWS - 1) / ROWS;
  const sum_number x_zero = zero_of_x(p);
  for (i64 phase = blockIdx.z; phase < p.phase_count; phase += gridDim.z) {
    __syncthreads();
    if (t == 0) lines_of(p, phase, &l);
    __syncthreads();
    const i64 columns = p.batch * l.places, index = (i64)blockIdx.x * COLUMNS + own;
    if ((i64)blockIdx.x * COLUMNS >= columns) continue;  // of a phase with fewer places
    const bool there = index < columns;
    const column c = column_of(p, l, there ? index : 0);
    if (t < COLUMNS) goes[t] = there ? c.y : -1;
    const int slabs = (int)((l.k + DEEP - 1) / DEEP);
    for (i64 part = blockIdx.y; part < p.groups * row_tiles; part += gridDim.y) {
      const i64 group = part / row_tiles, first_row = (part - group * row_tiles) * ROWS;
      const x_number *x = p.x + group * p.channels * p.x_channel;
      const w_number *w = p.w + group * p.w_group;
      sum_number sum[M][N], total[M][N], x_next[X_LOADS], w_next[W_LOADS];
#pragma unroll
      for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++) sum[i][j] = total[i][j] = 0;
      __syncthreads();
      if (t < 2 * RUN) taps[t / RUN][t % RUN] = tap_of(p, l, t);
      __syncthreads();
      // Slab s is fetched while slab s - 1 is multiplied.
      for (int s = 0; s <= slabs; s++) {
        if (s < slabs) {
          const tap *of = taps[s / (RUN / DEEP) & 1] + s % (RUN / DEEP) * DEEP;
#pragma unroll
          for (int i = 0; i < X_LOADS; i++) {
            const tap &k = of[t / COLUMNS + i * X_STEP];
            x_next[i] = there && k.there ? x_at(p, x, c, k, x_zero) : (sum_number)0;
          }
          const tap &k = of[t % DEEP];
#pragma unroll
          for (int i = 0; i < W_LOADS; i++) {
            const i64 row = first_row + t / DEEP + i * W_STEP;
            w_next[i] = k.there && row < p.results
                            ? widened(w + (row * p.w_result + k.w)) - zero_of_w(p, group * p.results + row)
                            : (sum_number)0;
          }
        }
        if (s > 0) {
          const int half = (s - 1) & 1;
#pragma unroll
          for (int k = 0; k < DEEP; k++) {
            sum_number a[M], b[N];
            take<M>(a, &ws[half][k][tm * M]);
            take<N>(b, &xs[half][k][tn * N]);
#pragma unroll
            for (int i = 0; i < M; i++)
#pragma unroll
              for (int j = 0; j < N; j++) sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
          }
          if (s % (RUN / DEEP) == 0 || s == slabs) {
#pragma unroll
            for (int i = 0; i < M; i++)
#pragma unroll
              for (int j = 0; j < N; j++) {
                total[i][j] += sum[i][j];
                sum[i][j] = 0;
              }
          }
        }
        if (s < slabs) {
#pragma unroll
          for (int i = 0; i < X_LOADS; i++) xs[s & 1][t / COLUMNS + i * X_STEP][own] = x_next[i];
#pragma unroll
          for (int i = 0; i < W_LOADS; i++) ws[s & 1][t % DEEP][t / DEEP + i * W_STEP] = w_next[i];
        }
        __syncthreads();
        // The run before this one has been fetched: its place is for the one behind.
        if (t < RUN && s && s % (RUN / DEEP) == 0) {
          const int run = s / (RUN / DEEP) + 1;
          taps[run & 1][t] = tap_of(p, l, (i64)run * RUN + t);
        }
      }
#pragma unroll
      for (int i = 0; i < M; i++) {
        const i64 row = first_row + tm * M + i;
        if (row >= p.results) break;
#pragma unroll
        for (int j = 0; j < N; j++) {
          const i64 at = goes[tn * N + j];
          if (at >= 0) put_result(p, group * p.results + row, at, total[i][j]);
        }
      }
    }
  }
}
#ifdef HEIGHT
extern "C" __global__ void __launch_bounds__(THREADS, 2) conv_large(const __grid_constant__ conv_params p) {
  GO();
  WAIT();
  tiles<HEIGHT, 4, 16>(p);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) conv_small(const __grid_constant__ conv_params p) {
  GO();
  WAIT();
  tiles<2, 2, 32>(p);
}

// ---- groups of few results: a thread has one place, and of one group after another up to EACH results there
template <int EACH>
__device__ __forceinline__ void places(const conv_params &p) {
  __shared__ phase_lines l;
  const sum_number x_zero = zero_of_x(p);
  const i64 rows = (p.results + EACH - 1) / EACH, place = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  for (i64 phase = blockIdx.z; phase < p.phase_count; phase += gridDim.z) {
    __syncthreads();
    if (threadIdx.x == 0) lines_of(p, phase, &l);
    __syncthreads();
    if (place >= l.places) continue;
    const column c = column_of(p, l, place);
    for (i64 part = blockIdx.y; part < p.batch * p.groups * rows; part += gridDim.y) {
      const i64 picture = part / (p.groups * rows), row = part - picture * p.groups * rows;
      const i64 group = row / rows, first = (row - group * rows) * EACH, result = group * p.results + first;
      const x_number *x = p.x + (picture * p.x_batch + group * p.channels * p.x_channel + c.x);
      const w_number *w = p.w + (group * p.w_group + first * p.w_result + l.first_w);
      sum_number sum[EACH], total[EACH];
#pragma unroll
      for (int e = 0; e < EACH; e++) sum[e] = total[e] = 0;
      i32 run = 0;
      for (i64 channel = 0; channel < p.channels; channel++, x += p.x_channel, w += p.w_channel) {
        for (i32 t0 = 0, i0 = c.at[0]; t0 < l.axis[0].taps; t0++, i0 += l.axis[0].in_tap) {
          if ((u32)i0 >= (u32)p.axis[0].extent) continue;
          for (i32 t1 = 0, i1 = c.at[1]; t1 < l.axis[1].taps; t1++, i1 += l.axis[1].in_tap) {
            if ((u32)i1 >= (u32)p.axis[1].extent) continue;
            const x_number *from = x + (t0 * l.x_tap[0] + t1 * l.x_tap[1]);
            const w_number *of = w + (t0 * l.w_tap[0] + t1 * l.w_tap[1]);
            const i64 x_tap = l.x_tap[2], w_tap = l.w_tap[2];
            const i32 taps = l.axis[2].taps, in_tap = l.axis[2].in_tap;
            for (i32 t2 = 0, i2 = c.at[2]; t2 < taps; t2++, i2 += in_tap, from += x_tap, of += w_tap) {
              if ((u32)i2 >= (u32)p.axis[2].extent) continue;
              const sum_number v = widened(from) - x_zero;
#pragma unroll
              for (int e = 0; e < EACH; e++)
                if (EACH == 1 || first + e < p.results)
                  sum[e] = multiply_add(widened(of + e * p.w_result) - zero_of_w(p, result + e), v, sum[e]);
            }
          }
        }
        run += l.taps;
        if (run < RUN && channel + 1 < p.channels) continue;
        run = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          total[e] += sum[e];
          sum[e] = 0;
        }
      }
      const i64 at = picture * p.y_batch + c.y;
#pragma unroll
      for (int e = 0; e < EACH; e++)
        if (EACH == 1 || first + e < p.results) put_result(p, result + e, at, total[e]);
    }
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) conv_one(const __grid_constant__ conv_params p) {
  GO();
  WAIT();
  places<1>(p);
}
extern "C" __global__ void __launch_bounds__(THREADS) conv_four(const __grid_constant__ conv_params p) {
  GO();
  WAIT();
  places<4>(p);
}

// ---- few places a picture: a warp has one result at four of them, its lanes take k in turn and meet in one tree
#define F_COLUMNS 4
extern "C" __global__ void __launch_bounds__(THREADS) conv_few(const __grid_constant__ conv_params p) {
  __shared__ phase_lines l;
  GO();
  WAIT();
  const sum_number x_zero = zero_of_x(p);
  const int lane = threadIdx.x & 31;
  for (i64 phase = blockIdx.z; phase < p.phase_count; phase += gridDim.z) {
    __syncthreads();
    if (threadIdx.x == 0) lines_of(p, phase, &l);
    __syncthreads();
    const i64 columns = p.batch * l.places, fours = (columns + F_COLUMNS - 1) / F_COLUMNS;
    const i64 warp = (i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32, warps = (i64)gridDim.x * (THREADS / 32);
    for (i64 i = warp; i < fours * p.groups * p.results; i += warps) {
      const i64 result = i / fours, first = (i - result * fours) * F_COLUMNS, group = result / p.results;
      const x_number *x = p.x + group * p.channels * p.x_channel;
      const w_number *w = p.w + group * p.w_group + (result - group * p.results) * p.w_result;
      const sum_number w_zero = zero_of_w(p, result);
      column c[F_COLUMNS];
      sum_number sum[F_COLUMNS];
#pragma unroll
      for (int j = 0; j < F_COLUMNS; j++) {
        c[j] = column_of(p, l, first + j < columns ? first + j : first);
        sum[j] = 0;
      }
      for (i64 k = lane; k < l.k; k += 32) {
        const tap of = tap_of(p, l, k);
        const sum_number v = widened(w + of.w) - w_zero;
#pragma unroll
        for (int j = 0; j < F_COLUMNS; j++) sum[j] = multiply_add(v, x_at(p, x, c[j], of, x_zero), sum[j]);
      }
#pragma unroll
      for (int j = 0; j < F_COLUMNS; j++) {
        for (int o = 16; o; o >>= 1) sum[j] += __shfl_xor_sync(~0u, sum[j], o);
        if (lane == 0 && first + j < columns) put_result(p, result, c[j].y, sum[j]);
      }
    }
  }
}
#endif
