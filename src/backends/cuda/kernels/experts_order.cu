// SPDX-License-Identifier: MIT
// Pairs of a row and a place, put in order by the expert that each names, and cut into lots of one expert for products
// of many rows (gemm.cu, behind this). One block. Where a pair stands among those of its expert is by chance: a
// product gives a row the same sum wherever it stands.
struct expert_lot {
  i32 expert, first, end; // pairs of `order`
};
struct expert_lots {
  i32 *count;
  expert_lot *lot;
  i32 *order;
};
struct order_params {
  const u8 *index;
  refusal *refused;
  expert_lots to;
  i64 pairs;
  i32 index_type, experts, most, pad; // most: pairs of a lot
};
#define ORDER_THREADS 1024

// The sum of the lanes in front of this one, and of all.
__device__ __forceinline__ int sum_before(int v, int *all) {
  const int lane = threadIdx.x & 31;
  int sum = v;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const int other = __shfl_up_sync(~0u, sum, o);
    if (lane >= o) sum += other;
  }
  *all = __shfl_sync(~0u, sum, 31);
  return sum - v;
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS) experts_order(const __grid_constant__ order_params p) {
  extern __shared__ __align__(16) u8 memory[];
  i32 *next = (i32 *)memory; // how many pairs an expert has, then where its next one goes
  GO();
  WAIT();
  for (int e = threadIdx.x; e < p.experts; e += ORDER_THREADS) next[e] = 0;
  __syncthreads();
  for (i64 i = threadIdx.x; i < p.pairs; i += ORDER_THREADS) {
    const i64 e = load_int(p.index, p.index_type, i);
    if (e < 0 || e >= p.experts)
      refuse(p.refused, REFUSES_INDEX, e, p.experts);
    else
      atomicAdd(&next[e], 1);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int begin = 0, lots = 0;
    for (int e0 = 0; e0 < p.experts; e0 += 32) {
      const int e = e0 + threadIdx.x, n = e < p.experts ? next[e] : 0;
      int all, all_lots;
      const int first = begin + sum_before(n, &all);
      const int lot = lots + sum_before((n + p.most - 1) / p.most, &all_lots);
      for (int i = 0; i * p.most < n; i++) {
        const int from = first + i * p.most;
        p.to.lot[lot + i] = {e, from, min(from + p.most, first + n)};
      }
      if (e < p.experts) next[e] = first;
      begin += all;
      lots += all_lots;
    }
    if (threadIdx.x == 0) *p.to.count = lots;
  }
  __syncthreads();
  for (i64 i = threadIdx.x; i < p.pairs; i += ORDER_THREADS) {
    const i64 e = load_int(p.index, p.index_type, i);
    if (e >= 0 && e < p.experts) p.to.order[atomicAdd(&next[e], 1)] = (i32)i;
  }
}
