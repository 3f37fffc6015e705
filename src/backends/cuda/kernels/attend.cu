// SPDX-License-Identifier: MIT
// Causal attention of ragged rows over a state. In front: KEY_DIM, VALUE_DIM, GROUP (query heads of a key/value head),
// KV_TYPE, KV_HEADS.
//
// A block has one row and one key/value head. Its warps take keys in turn, four at a time; a lane has the same part of
// the head's numbers of each. Sums of warps meet in shared memory. With SPLITS > 1 a cluster of blocks shares a row's
// keys (up to `alone` keys the first has all), and each block reads the others' sums. CLUSTER: blocks of attend_split.
struct attend_params {
  kv_state kv;
  operand q, y; // [rows, heads, dim]
  const u8 *offsets, *slot, *past;
  refusal *refused;
  i64 rows, sequences, window;
  float scale, soft_cap;
  i32 offsets_type, slot_type, past_type, alone;
};
#define WARPS 4
#define KEY_PART ((KEY_DIM + 31) / 32)
#define VALUE_PART ((VALUE_DIM + 31) / 32)
#define AT_ONCE 4
#if KV_TYPE == 1
typedef f16 kv_number;
#elif KV_TYPE == 2
typedef bf16 kv_number;
#else
typedef float kv_number;
#endif

// A lane's part of a row of DIM numbers: neighbours, read together where they are whole words.
template <int DIM, int PART> __device__ __forceinline__ void load_part(const kv_number *row, int lane, float *out) {
  const int first = lane * PART;
  if (DIM % 32 == 0 && sizeof(kv_number) == 2 && PART % 4 == 0) {
#pragma unroll
    for (int i = 0; i < PART; i += 4) {
      const uint2 v = *(const uint2 *)(row + first + i);
      const u32 w[2] = {v.x, v.y};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const kv_number half = {(u16)(w[j >> 1] >> 16 * (j & 1))};
        out[i + j] = get_float(&half);
      }
    }
  } else if (DIM % 32 == 0 && sizeof(kv_number) == 2 && PART % 2 == 0) {
#pragma unroll
    for (int i = 0; i < PART; i += 2) {
      const u32 v = *(const u32 *)(row + first + i);
      const kv_number low = {(u16)v}, high = {(u16)(v >> 16)};
      out[i] = get_float(&low);
      out[i + 1] = get_float(&high);
    }
  } else {
#pragma unroll
    for (int i = 0; i < PART; i++) out[i] = first + i < DIM ? get_float(row + first + i) : 0.0f;
  }
}

// With QUANTIZED the rows come out as a8, 32 neighbours of a head by the lanes of a warp.
#ifndef QUANTIZED
#define QUANTIZED 0
#endif
__device__ __forceinline__ void put_result(const attend_params &p, i64 row, int head, int d, float v) {
#if QUANTIZED
  quantize(v, (a8_block *)p.y.base + row * p.y.stride[0] + (head * VALUE_DIM + d) / 32);
#else
  store_float(p.y.base, p.y.type, row * p.y.stride[0] + (i64)head * p.y.stride[1] + d * p.y.stride[2], v);
#endif
}

struct partial {
  float most[GROUP], total[GROUP], sum[GROUP][VALUE_DIM];
};

__device__ __forceinline__ void attend_keys(const attend_params &p, i64 slot, i64 row, int head, i64 first, i64 end,
                                            int warp, int lane, float *most, float *total, float sum[GROUP][VALUE_PART]) {
  float q[GROUP][KEY_PART];
#pragma unroll
  for (int g = 0; g < GROUP; g++) {
    const i64 at = row * p.q.stride[0] + (i64)(head * GROUP + g) * p.q.stride[1];
#pragma unroll
    for (int i = 0; i < KEY_PART; i++) {
      const int d = lane * KEY_PART + i;
      q[g][i] = d < KEY_DIM ? load_float(p.q.base, p.q.type, at + d * p.q.stride[2]) * p.scale : 0.0f;
    }
    most[g] = -RUNG_INF;
    total[g] = 0;
#pragma unroll
    for (int i = 0; i < VALUE_PART; i++) sum[g][i] = 0;
  }
  for (i64 key = first + warp * AT_ONCE; key < end; key += WARPS * AT_ONCE) {
    float score[GROUP][AT_ONCE];
    const kv_number *values[AT_ONCE];
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
      const i64 at = key + j < end ? key + j : end - 1;
      const kv_number *block = (const kv_number *)kv_block(p.kv, slot, at / 64);
      float k[KEY_PART];
      load_part<KEY_DIM, KEY_PART>(block + ((i64)head * 64 + at % 64) * KEY_DIM, lane, k);
      values[j] = block + (i64)KV_HEADS * 64 * KEY_DIM + ((i64)head * 64 + at % 64) * VALUE_DIM;
#pragma unroll
      for (int g = 0; g < GROUP; g++) {
        float s = 0;
#pragma unroll
        for (int i = 0; i < KEY_PART; i++) s = fmaf(q[g][i], k[i], s);
        score[g][j] = s;
      }
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
      float largest = most[g];
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        float s = warp_sum(score[g][j]);
        if (p.soft_cap > 0) s = p.soft_cap * tanhf(s / p.soft_cap);
        score[g][j] = key + j < end ? s : -RUNG_INF;
        largest = nan_max(score[g][j], largest);
      }
      const float before = most[g] == -RUNG_INF ? 0.0f : expf(most[g] - largest);
      most[g] = largest;
      total[g] *= before;
#pragma unroll
      for (int i = 0; i < VALUE_PART; i++) sum[g][i] *= before;
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        score[g][j] = key + j < end ? expf(score[g][j] - largest) : 0.0f;
        total[g] += score[g][j];
      }
    }
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
      if (key + j >= end) break;
      float v[VALUE_PART];
      load_part<VALUE_DIM, VALUE_PART>(values[j], lane, v);
#pragma unroll
      for (int g = 0; g < GROUP; g++)
#pragma unroll
        for (int i = 0; i < VALUE_PART; i++) sum[g][i] = fmaf(score[g][j], v[i], sum[g][i]);
    }
  }
}

template <int SPLITS> __device__ __forceinline__ void attend_row(const attend_params &p, u32 split) {
  extern __shared__ __align__(16) u8 memory[];
  partial *part = (partial *)memory; // one for each warp; the first becomes the block's
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, head = blockIdx.y;
  const i64 row = blockIdx.x / SPLITS;
  GO();
  WAIT();
  i64 low = sequence_of(p.offsets, p.offsets_type, p.sequences, row);
  if (low >= p.sequences) low = p.sequences - 1;
  const i64 slot = load_int(p.slot, p.slot_type, low);
  const i64 position = load_int(p.past, p.past_type, low) + row - load_int(p.offsets, p.offsets_type, low);
  const bool fits = slot >= 0 && slot < p.kv.slots && position >= 0 && position < p.kv.capacity;
  if (!fits && threadIdx.x == 0)
    refuse(p.refused, REFUSES_ROWS, slot < 0 || slot >= p.kv.slots ? slot : position,
           slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
  i64 first = p.window && position >= p.window ? position - p.window + 1 : 0, end = fits ? position + 1 : first;
  if (SPLITS > 1) { // whole blocks of 64 keys
    const i64 base = first / 64, count = (end - 1) / 64 - base + 1;
    const i64 each = end <= first ? 0 : count * 64 <= p.alone ? count : (count + SPLITS - 1) / SPLITS;
    const i64 from = (base + split * each) * 64, to = from + each * 64;
    first = from > first ? from : first;
    end = to < end ? to : end;
  }
  float most[GROUP], total[GROUP], sum[GROUP][VALUE_PART];
  attend_keys(p, slot, row, head, first, end, warp, lane, most, total, sum);
#pragma unroll
  for (int g = 0; g < GROUP; g++) {
    if (lane == 0) {
      part[warp].most[g] = most[g];
      part[warp].total[g] = total[g];
    }
#pragma unroll
    for (int i = 0; i < VALUE_PART; i++)
      if (lane * VALUE_PART + i < VALUE_DIM) part[warp].sum[g][lane * VALUE_PART + i] = sum[g][i];
  }
  __syncthreads();
  // The block's: warps in order.
  for (int i = threadIdx.x; i < GROUP * VALUE_DIM; i += 32 * WARPS) {
    const int g = i / VALUE_DIM, d = i % VALUE_DIM;
    float largest = -RUNG_INF, all = 0, value = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) largest = nan_max(part[w].most[g], largest);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      if (part[w].most[g] == -RUNG_INF) continue;
      const float f = expf(part[w].most[g] - largest);
      all = fmaf(f, part[w].total[g], all);
      value = fmaf(f, part[w].sum[g][d], value);
    }
    if (SPLITS == 1) {
      put_result(p, row, head * GROUP + g, d, all > 0 || all != all ? value / all : 0.0f);
    } else {
      part[WARPS].sum[g][d] = value;
      if (d == 0) {
        part[WARPS].most[g] = largest;
        part[WARPS].total[g] = all;
      }
    }
  }
#if __CUDA_ARCH__ >= 900
  if (SPLITS > 1) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    const u32 here = (u32)__cvta_generic_to_shared(&part[WARPS]);
    // Each block of the cluster writes a share of the row.
    for (int i = threadIdx.x + 32 * WARPS * (int)split; i < GROUP * VALUE_DIM; i += 32 * WARPS * SPLITS) {
      const int g = i / VALUE_DIM, d = i % VALUE_DIM;
      float m[SPLITS], largest = -RUNG_INF, all = 0, value = 0;
#pragma unroll
      for (int s = 0; s < SPLITS; s++) {
        u32 there;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here + 4 * g), "r"(s));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(m[s]) : "r"(there));
        largest = nan_max(m[s], largest);
      }
#pragma unroll
      for (int s = 0; s < SPLITS; s++) {
        if (m[s] == -RUNG_INF) continue;
        const float f = expf(m[s] - largest);
        u32 there;
        float t, v;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here + 4 * (GROUP + g)), "r"(s));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(t) : "r"(there));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here + 4 * (2 * GROUP + i)), "r"(s));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there));
        all = fmaf(f, t, all);
        value = fmaf(f, v, value);
      }
      put_result(p, row, head * GROUP + g, d, all > 0 || all != all ? value / all : 0.0f);
    }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
#endif
}

#ifndef CLUSTER
#define CLUSTER 8
#endif
extern "C" __global__ void __launch_bounds__(32 * WARPS) attend(const __grid_constant__ attend_params p) { attend_row<1>(p, 0); }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(32 * WARPS) attend_split(const __grid_constant__ attend_params p) {
  attend_row<CLUSTER>(p, blockIdx.x % CLUSTER);
}
#else
extern "C" __global__ void attend_split(const __grid_constant__ attend_params p) {}
#endif
