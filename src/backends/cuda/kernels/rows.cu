// SPDX-License-Identifier: MIT
// Rows of a matrix of a block type, chosen by index, as floats. weights.cu stands in front.
struct rows_params {
  const u8 *w, *index;
  float *out;
  refusal *refused;
  i64 rows, limit, k; // k numbers in a row
  i32 index_type, pad;
};
extern "C" __global__ void gather_rows(const __grid_constant__ rows_params p) {
  GO();
  WAIT();
  const i64 blocks = p.k / 32;
  for (i64 r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const i64 given = load_int(p.index, p.index_type, r), at = given < 0 ? given + p.limit : given;
    if (at < 0 || at >= p.limit) {
      if (threadIdx.x == 0) refuse(p.refused, REFUSES_INDEX, given, p.limit);
      continue;
    }
    for (i64 b = threadIdx.x; b < blocks; b += blockDim.x) {
      float v[32];
      load_32(p.w, blocks, at, b, v);
#pragma unroll
      for (int i = 0; i < 8; i++) *(float4 *)(p.out + r * p.k + 32 * b + 4 * i) = *(const float4 *)(v + 4 * i);
    }
  }
}
