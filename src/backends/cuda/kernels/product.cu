// SPDX-License-Identifier: MIT
// A product of floats in any strides, types and leading axes, and one with experts. Plain: what has no kernel of its own.
struct product_params {
  const u8 *a, *b;
  u8 *y;
  i64 m, n, k, batches;
  i64 a_m, a_k, b_n, b_k, y_m, y_n; // strides in elements
  i32 rank, a_type, b_type, y_type; // of the leading axes
  i64 extent[6], a_lead[6], b_lead[6], y_lead[6];
};
#define P_TILE 16
template <class F> __device__ __forceinline__ void product_of(const product_params &p) {
  __shared__ F as[P_TILE][P_TILE + 1], bs[P_TILE][P_TILE + 1];
  const int tn = threadIdx.x & 15, tm = threadIdx.x >> 4;
  const i64 n = (i64)blockIdx.x * P_TILE + tn, m = (i64)blockIdx.y * P_TILE + tm;
  for (i64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    i64 rest = batch, ao = 0, bo = 0, yo = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
      const i64 q = rest / p.extent[d], at = rest - q * p.extent[d];
      rest = q;
      ao += at * p.a_lead[d];
      bo += at * p.b_lead[d];
      yo += at * p.y_lead[d];
    }
    F sum = 0;
    const i64 nb = (i64)blockIdx.x * P_TILE + tm;
    for (i64 k0 = 0; k0 < p.k; k0 += P_TILE) {
      const i64 k = k0 + tn;
      as[tm][tn] = m < p.m && k < p.k ? (F)load_double(p.a, p.a_type, ao + m * p.a_m + k * p.a_k) : (F)0;
      bs[tm][tn] = nb < p.n && k < p.k ? (F)load_double(p.b, p.b_type, bo + nb * p.b_n + k * p.b_k) : (F)0;
      __syncthreads();
      const int most = p.k - k0 < P_TILE ? (int)(p.k - k0) : P_TILE;
      for (int i = 0; i < most; i++) sum = fma(as[tm][i], bs[tn][i], sum);
      __syncthreads();
    }
    if (m < p.m && n < p.n) store_double(p.y, p.y_type, yo + m * p.y_m + n * p.y_n, (double)sum);
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

// ---- with experts: a warp has one result of a pair of a row and a place
struct experts_params {
  const u8 *a, *b, *index;
  u8 *y;
  refusal *refused;
  i64 pairs, places, n, k;
  i64 a_row, a_place, a_k, b_expert, b_n, b_k, index_row, index_place, y_row, y_place, y_n; // strides in elements
  i32 a_type, b_type, index_type, y_type, experts, pad;
};
template <class F> __device__ __forceinline__ void experts_of(const experts_params &p) {
  const int lane = threadIdx.x & 31;
  const i64 n = (i64)blockIdx.x * 8 + (threadIdx.x >> 5);
  for (i64 pair = blockIdx.z; pair < p.pairs && n < p.n; pair += gridDim.z) {
    const i64 row = pair / p.places, place = pair - row * p.places;
    const i64 expert = load_int(p.index, p.index_type, row * p.index_row + place * p.index_place);
    if (expert < 0 || expert >= p.experts) {
      if (threadIdx.x == 0) refuse(p.refused, 1, expert, p.experts);
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
extern "C" __global__ void __launch_bounds__(256) experts_f32(const __grid_constant__ experts_params p) {
  GO();
  WAIT();
  experts_of<float>(p);
}
extern "C" __global__ void __launch_bounds__(256) experts_f64(const __grid_constant__ experts_params p) {
  GO();
  WAIT();
  experts_of<double>(p);
}
