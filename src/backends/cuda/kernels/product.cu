// SPDX-License-Identifier: MIT
// A product of floats in any strides, types and leading axes; and rows of block types by index. Plain: what has no kernel
// of its own.
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
