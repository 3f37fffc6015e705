// SPDX-License-Identifier: MIT
// A product of numbers in any strides, types and leading axes, and one with experts of floats. Plain: what has no kernel of
// its own.
struct product_params {
  const u8 *a, *b;
  u8 *y;
  i64 m, n, k, batches;
  i64 a_m, a_k, b_n, b_k, y_m, y_n; // strides in elements
  i32 rank, a_type, b_type, y_type; // of the leading axes
  i64 extent[6], a_lead[6], b_lead[6], y_lead[6];
};
#define P_TILE 16
__device__ __forceinline__ float number_at(const u8 *p, int type, i64 i, float) { return (float)load_double(p, type, i); }
__device__ __forceinline__ double number_at(const u8 *p, int type, i64 i, double) { return load_double(p, type, i); }
__device__ __forceinline__ u64 number_at(const u8 *p, int type, i64 i, u64) { return (u64)load_int(p, type, i); }
template <class F> __device__ __forceinline__ F sum_of(F a, F b, F sum) { return fma(a, b, sum); }
__device__ __forceinline__ u64 sum_of(u64 a, u64 b, u64 sum) { return a * b + sum; }
template <class F> __device__ __forceinline__ void put_number(u8 *p, int type, i64 i, F v) { store_double(p, type, i, (double)v); }
__device__ __forceinline__ void put_number(u8 *p, int type, i64 i, u64 v) { store_int(p, type, i, (i64)v); }

// Where a batch begins in a, b and y.
__device__ __forceinline__ void find_batch(const product_params &p, i64 batch, i64 *a, i64 *b, i64 *y) {
  *a = *b = *y = 0;
  for (int d = p.rank - 1; d >= 0; d--) {
    const i64 q = batch / p.extent[d], at = batch - q * p.extent[d];
    batch = q;
    *a += at * p.a_lead[d];
    *b += at * p.b_lead[d];
    *y += at * p.y_lead[d];
  }
}
template <class F> __device__ __forceinline__ void product_of(const product_params &p) {
  __shared__ F as[P_TILE][P_TILE + 1], bs[P_TILE][P_TILE + 1];
  const int tn = threadIdx.x & 15, tm = threadIdx.x >> 4;
  const i64 n = (i64)blockIdx.x * P_TILE + tn, m = (i64)blockIdx.y * P_TILE + tm;
  for (i64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    i64 ao, bo, yo;
    find_batch(p, batch, &ao, &bo, &yo);
    F sum = 0;
    const i64 nb = (i64)blockIdx.x * P_TILE + tm;
    for (i64 k0 = 0; k0 < p.k; k0 += P_TILE) {
      const i64 k = k0 + tn;
      as[tm][tn] = m < p.m && k < p.k ? number_at(p.a, p.a_type, ao + m * p.a_m + k * p.a_k, (F)0) : (F)0;
      bs[tm][tn] = nb < p.n && k < p.k ? number_at(p.b, p.b_type, bo + nb * p.b_n + k * p.b_k, (F)0) : (F)0;
      __syncthreads();
      const int most = p.k - k0 < P_TILE ? (int)(p.k - k0) : P_TILE;
      for (int i = 0; i < most; i++) sum = sum_of(as[tm][i], bs[tn][i], sum);
      __syncthreads();
    }
    if (m < p.m && n < p.n) put_number(p.y, p.y_type, yo + m * p.y_m + n * p.y_n, sum);
  }
}
extern "C" __global__ void __launch_bounds__(256) product_f32(const __grid_constant__ product_params p) {
  GO();
  WAIT();
  product_of<float>(p);
}
extern "C" __global__ void __launch_bounds__(256) product_f64(const __grid_constant__ product_params p) {
  GO();
  WAIT();
  product_of<double>(p);
}
// Integers of any types; they wrap.
extern "C" __global__ void __launch_bounds__(256) product_whole(const __grid_constant__ product_params p) {
  GO();
  WAIT();
  product_of<u64>(p);
}

// ---- bytes with zero points, exact in 32 bits, which wrap. Tiles of 64 by 64, four numbers along k a word. All are
// multiplied as signed ones: of u8, 128 is taken away from the numbers and from their zero points. What zero points add is
// put in behind: sum (a - x)(b - y) = sum ab - y sum a - x sum b + k x y.
struct bytes_params {
  product_params of;
  const u8 *a_zero, *b_zero; // NULL: 0
  i64 a_step, b_step;        // from one row's, or column's, to the next one's
};
#define B_TILE 64
#define B_WORDS 16
__device__ __forceinline__ void load_words(const u8 *from, u32 flip, i64 row0, i64 rows, i64 row_step, i64 k0, i64 k, i64 k_step,
                                           u32 (*to)[B_TILE + 4]) {
  const bool along = k_step == 1;
  for (int i = threadIdx.x; i < B_TILE * B_WORDS; i += 256) {
    const int word = along ? (i & 7) + i / (8 * B_TILE) * 8 : i / B_TILE, r = along ? (i >> 3) % B_TILE : i % B_TILE;
    u32 v = 0;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const i64 at = k0 + 4 * word + e;
      if (row0 + r < rows && at < k) v |= ((u32)from[(row0 + r) * row_step + at * k_step] ^ flip) << (8 * e);
    }
    to[word][r] = v;
  }
}
__device__ __forceinline__ u32 zero_point(const u8 *zero, int type, i64 at) {
  const int v = zero ? (int)load_int(zero, type, at) : 0;
  return (u32)(type == T_U8 ? v - 128 : v);
}
extern "C" __global__ void __launch_bounds__(256) product_bytes(const __grid_constant__ bytes_params whole) {
  __shared__ __align__(16) u32 as[B_WORDS][B_TILE + 4], bs[B_WORDS][B_TILE + 4];
  const product_params &p = whole.of;
  const int tm = (threadIdx.x >> 4) * 4, tn = (threadIdx.x & 15) * 4;
  const i64 m0 = (i64)blockIdx.y * B_TILE, n0 = (i64)blockIdx.x * B_TILE;
  const u32 a_flip = p.a_type == T_U8 ? 128 : 0, b_flip = p.b_type == T_U8 ? 128 : 0;
  GO();
  WAIT();
  for (i64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    i64 ao, bo, yo;
    int c[4][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, a_sum[4] = {0, 0, 0, 0}, b_sum[4] = {0, 0, 0, 0};
    find_batch(p, batch, &ao, &bo, &yo);
    for (i64 k0 = 0; k0 < p.k; k0 += 4 * B_WORDS) {
      __syncthreads();
      load_words(p.a + ao, a_flip, m0, p.m, p.a_m, k0, p.k, p.a_k, as);
      load_words(p.b + bo, b_flip, n0, p.n, p.b_n, k0, p.k, p.b_k, bs);
      __syncthreads();
#pragma unroll 4
      for (int word = 0; word < B_WORDS; word++) {
        int a[4], b[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          a[i] = (int)as[word][tm + i];
          b[i] = (int)bs[word][tn + i];
          a_sum[i] = __dp4a(a[i], 0x01010101, a_sum[i]);
          b_sum[i] = __dp4a(b[i], 0x01010101, b_sum[i]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) c[i][j] = __dp4a(a[i], b[j], c[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const i64 m = m0 + tm + i, n = n0 + tn + j;
        if (m >= p.m || n >= p.n) continue;
        const u32 x = zero_point(whole.a_zero, p.a_type, m * whole.a_step), y = zero_point(whole.b_zero, p.b_type, n * whole.b_step);
        const u32 sum = (u32)c[i][j] - y * (u32)a_sum[i] - x * (u32)b_sum[j] + (u32)p.k * x * y;
        store_int(p.y, p.y_type, yo + m * p.y_m + n * p.y_n, (i64)(i32)sum);
      }
  }
}

// ---- with experts: a warp has one result of a pair of a row and a place
struct experts_any_params {
  const u8 *a, *b, *index;
  u8 *y;
  refusal *refused;
  i64 pairs, places, n, k;
  i64 a_row, a_place, a_k, b_expert, b_n, b_k, index_row, index_place, y_row, y_place, y_n; // strides in elements
  i32 a_type, b_type, index_type, y_type, experts, pad;
};
template <class F> __device__ __forceinline__ void experts_of(const experts_any_params &p) {
  const int lane = threadIdx.x & 31;
  const i64 n = (i64)blockIdx.x * 8 + (threadIdx.x >> 5);
  for (i64 pair = blockIdx.z; pair < p.pairs && n < p.n; pair += gridDim.z) {
    const i64 row = pair / p.places, place = pair - row * p.places;
    const i64 expert = load_int(p.index, p.index_type, row * p.index_row + place * p.index_place);
    if (expert < 0 || expert >= p.experts) {
      if (threadIdx.x == 0) refuse(p.refused, REFUSES_INDEX, expert, p.experts);
      continue;
    }
    const i64 a = row * p.a_row + place * p.a_place, b = expert * p.b_expert + n * p.b_n;
    F sum = 0;
    for (i64 k = lane; k < p.k; k += 32)
      sum = fma((F)load_double(p.a, p.a_type, a + k * p.a_k), (F)load_double(p.b, p.b_type, b + k * p.b_k), sum);
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) store_double(p.y, p.y_type, row * p.y_row + place * p.y_place + n * p.y_n, (double)sum);
  }
}
extern "C" __global__ void __launch_bounds__(256) experts_f32(const __grid_constant__ experts_any_params p) {
  GO();
  WAIT();
  experts_of<float>(p);
}
extern "C" __global__ void __launch_bounds__(256) experts_f64(const __grid_constant__ experts_any_params p) {
  GO();
  WAIT();
  experts_of<double>(p);
}
