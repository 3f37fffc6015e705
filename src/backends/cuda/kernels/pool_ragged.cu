// SPDX-License-Identifier: MIT
// One row for every sequence of a ragged batch. A block has 32 columns of a sequence; eight lines of threads take its
// rows in turn and meet in shared memory, in one order.
struct pool_ragged_params {
  const u8 *x, *offsets;
  u8 *y;
  refusal *refused;
  i64 rows, columns, sequences, x_row, x_column, y_row, y_column, offsets_stride;
  i32 x_type, y_type, offsets_type, mode;
};
enum { POOL_MEAN, POOL_FIRST, POOL_LAST, POOL_MAX };
#define LINES 8
__device__ __forceinline__ double pool_fold(double a, double b, int mode) {
  return mode == POOL_MAX ? (b > a || b != b ? b : a) : a + b;
}
extern "C" __global__ void __launch_bounds__(32 * LINES) pool_ragged(const __grid_constant__ pool_ragged_params p) {
  __shared__ double part[LINES][32];
  const int lane = threadIdx.x & 31, line = threadIdx.x >> 5;
  const i64 column = (i64)blockIdx.y * 32 + lane;
  const bool there = column < p.columns;
  GO();
  WAIT();
  for (i64 s = blockIdx.x; s < p.sequences; s += gridDim.x) {
    const i64 given = load_int(p.offsets, p.offsets_type, s * p.offsets_stride),
              given_end = load_int(p.offsets, p.offsets_type, (s + 1) * p.offsets_stride);
    // Offsets begin with 0, do not fall, and end with the rows; what does not is refused, and not read.
    const bool wrong = given < 0 || given_end < given || given_end > p.rows || (s == 0 && given != 0) ||
                       (s == p.sequences - 1 && given_end != p.rows);
    if (wrong && threadIdx.x == 0) refuse(p.refused, REFUSES_OFFSETS, given_end, p.rows);
    i64 first = given, end = wrong ? given : given_end;
    if (p.mode == POOL_FIRST) end = min(end, first + 1);
    if (p.mode == POOL_LAST) first = max(first, end - 1);
    double v = p.mode == POOL_MAX ? -(double)RUNG_INF : 0;
    if (there)
#pragma unroll 4
      for (i64 r = first + line; r < end; r += LINES)
        v = pool_fold(v, load_double(p.x, p.x_type, r * p.x_row + column * p.x_column), p.mode);
    part[line][lane] = v;
    __syncthreads();
    if (line == 0 && there) {
      for (int i = 1; i < LINES; i++) v = pool_fold(v, part[i][lane], p.mode);
      if (first >= end) v = 0;
      if (p.mode == POOL_MEAN && first < end) v /= (double)(end - first);
      store_double(p.y, p.y_type, s * p.y_row + column * p.y_column, v);
    }
    __syncthreads();
  }
}
