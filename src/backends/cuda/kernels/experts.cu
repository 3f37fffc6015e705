// SPDX-License-Identifier: MIT
// Products of few rows with experts: each pair of a row and a place by itself, with the sums of a product of one row.
// matmul.cu is in front.
struct experts_params {
  matmul_params one; // of a pair: x and y of the first, w of expert 0
  const u8 *index;
  refusal *refused;
  i64 pairs, places, expert_bytes, x_bytes, y_bytes;
  i32 index_type, experts, shared, pad; // shared: all places of a row have one row of x
};
#if X_A8 && W_LAYOUT == 1
#define EXPERT_THREADS (32 * TILE_WARPS)
#define EXPERT_PRODUCT gemv_tiles<1>
#else
#define EXPERT_THREADS (32 * WARPS)
#define EXPERT_PRODUCT gemv_whole<1>
#endif
extern "C" __global__ void __launch_bounds__(EXPERT_THREADS) experts_few(const __grid_constant__ experts_params p) {
  GO();
  WAIT();
  for (i64 pair = blockIdx.z; pair < p.pairs; pair += gridDim.z) {
    const i64 expert = load_int(p.index, p.index_type, pair);
    if (expert < 0 || expert >= p.experts) {
      if (threadIdx.x == 0) refuse(p.refused, REFUSES_INDEX, expert, p.experts);
      continue;
    }
    matmul_params one = p.one;
    one.x += (p.shared ? pair / p.places : pair) * p.x_bytes;
    one.w += expert * p.expert_bytes;
    one.y += pair * p.y_bytes;
    EXPERT_PRODUCT(one);
    __syncthreads(); // what the block shares is for the next pair
  }
}
