// SPDX-License-Identifier: MIT
// Attention of rows of any number and of any sequences, each with the sums that attend_one.cu gives it when it comes
// alone. attend_one.cu is in front, with its defines; queries are turned and keys and values are in the state already.
//
// A block has a row and a key/value head, and takes one behind the other the shares of keys that blocks of attend_one
// have side by side: the same steps for the same warps, the row's own key as one more share of the first, and all shares
// added up in the same order. Queries are f32; STAGES is 1: a warp has few steps of a share, and more blocks fit a processor.
struct attend_any_params {
  attend_one_params one; // of row 0; k, v, partial and counter are not used
  const u8 *offsets;
  i64 rows, sequences, q_row, q_column, y_row; // elements from row to row, blocks of 32 with QUANTIZED
  i32 offsets_type, pad;
};
#define SHARE (VALUE_DIM + 8)

// As sum_splits, from shares in this block's memory.
__device__ __forceinline__ void sum_shares(const float *shares, int splits, int h, int d, float *v) {
  float largest = -RUNG_INF, total = 0;
  for (int s = 0; s < splits; s++) largest = nan_max(shares[(s * GROUP + h) * SHARE + VALUE_DIM], largest);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
  for (int s = 0; s < splits; s++) {
    const float *of = shares + (s * GROUP + h) * SHARE;
    const float f = exp2f((of[VALUE_DIM] - largest) * LOG2E);
    total = fmaf(f, of[VALUE_DIM + 1], total);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fmaf(f, of[d + i], v[i]);
  }
  const float inverse = 1.0f / total;
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] *= inverse;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) attend_any(const __grid_constant__ attend_any_params a) {
  extern __shared__ __align__(128) u8 memory[]; // as attend_one has it, then [SPLITS][GROUP][SHARE] floats
  __shared__ __align__(16) queries q;
  __shared__ float own_most[GROUP], key[KEY_DIM], value[VALUE_DIM];
  float *shares = (float *)(memory + WARPS * STAGES * STAGE);
  const int thread = threadIdx.x, warp = thread >> 5, head = blockIdx.y;
  const i64 row = blockIdx.x;
  attend_one_params p = a.one;
  GO();
  WAIT();
  i64 sequence = sequence_of(a.offsets, a.offsets_type, a.sequences, row);
  if (sequence >= a.sequences) sequence = a.sequences - 1;
  const i64 slot = ((const slot_number *)p.slot)[sequence];
  const i64 position = ((const past_number *)p.past)[sequence] + row - load_int(a.offsets, a.offsets_type, sequence);
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (thread == 0)
      refuse(p.refused, REFUSES_ROWS, slot < 0 || slot >= p.kv.slots ? slot : position,
             slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    return;
  }
  p.y += row * a.y_row * (i64)(QUANTIZED ? sizeof(a8_block) : sizeof(y_number));
  clear_queries(&q);
  __syncthreads();
  for (int i = thread; i < GROUP * KEY_DIM; i += 32 * WARPS) {
    const int h = i / KEY_DIM, d = i % KEY_DIM;
    keep_query(&q, h, d, ((const float *)p.q)[row * a.q_row + (head * GROUP + h) * p.q_step + d * a.q_column] * p.scale);
  }
  const fresh_row fresh = fresh_at(p, head, slot, position, key, value);
  for (int d = thread; d < KEY_DIM; d += 32 * WARPS) key[d] = half_bits(fresh.keys[d]);
  for (int d = thread; d < VALUE_DIM; d += 32 * WARPS) value[d] = half_bits(fresh.values[d]);
  __syncthreads();
  const steps_of_row s = steps_at(p, position);
  const int h = min(thread * 8 / VALUE_DIM, GROUP - 1), d = thread * 8 % VALUE_DIM;
  const bool busy = thread * 8 < QUERY_VALUES;
  float v[8];
  for (int split = 0; split < s.splits; split++) {
    const i64 first = s.base + split * s.each, end = min(first + s.each, s.base + s.steps), step = first + warp;
    const int sharing = (int)max(min(end - first, (i64)WARPS), (i64)0);
    u8 *stage = memory + warp * STAGES * STAGE;
#pragma unroll 1
    for (int i = 0; i < STAGES; i++) copy_sixteen(p, slot, head, step + i * WARPS, end, s.low, position, there(stage + i * STAGE));
    if (step < end) attend_steps(p, slot, head, step, end, s.low, position, stage, &q, (share *)stage);
    if (split == 0)
      score_own(p, &q, key, own_most);
    else if (thread < GROUP)
      own_most[thread] = -RUNG_INF;
    __syncthreads();
    float largest, total = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = 0;
    add_warps(memory, sharing, own_most, value, h, d, v, &largest, &total);
    if (s.splits == 1) {
      const float inverse = 1.0f / total;
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] *= inverse;
      put_eight(p, head * GROUP + h, d, v, busy);
      return;
    }
    if (busy) {
      float *to = shares + (split * GROUP + h) * SHARE;
#pragma unroll
      for (int i = 0; i < 8; i++) to[d + i] = v[i];
      if (d == 0) {
        to[VALUE_DIM] = largest;
        to[VALUE_DIM + 1] = total;
      }
    }
    __syncthreads(); // parts are written anew, shares are read
  }
  sum_shares(shares, s.splits, h, d, v);
  put_eight(p, head * GROUP + h, d, v, busy);
}
