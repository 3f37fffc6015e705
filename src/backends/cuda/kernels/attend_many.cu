// SPDX-License-Identifier: MIT
// Causal attention of many rows over a state of halves, through the tensor cores. In front: as attend.cu, NARROW as
// attend_one.cu; key and value heads of at most 128 numbers, multiples of 16 (32 with QUANTIZED).
//
// A block has 64 rows of one head, a warp 16 of them; keys come in the state's blocks of 64, two on their way at a time.
// Rows of several sequences are taken sequence by sequence, the others' rows see nothing meanwhile.
struct attend_params {
  kv_state kv;
  operand q, y; // [rows, heads, dim]
  const u8 *offsets, *slot, *past;
  refusal *refused;
  i64 rows, sequences, window;
  float scale, soft_cap;
  i32 offsets_type, slot_type, past_type, alone;
};
#define ROWS 64
#define KEYS 64
#define KEY_PITCH (KEY_DIM * 2 + 16) // bytes: rows of a group of eight lie in different banks
#define VALUE_PITCH (VALUE_DIM * 2 + 16)
#define STAGE (KEYS * (KEY_PITCH + VALUE_PITCH))
#define LOG2E 1.4426950408889634f
#ifndef QUANTIZED
#define QUANTIZED 0
#endif

__device__ __forceinline__ void copy_16(u32 to, const void *from, bool there) {
  const u32 bytes = there ? 16 : 0; // zeros where there is nothing
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load_block(const attend_params &p, i64 slot, int head, i64 block, i64 end, u32 stage) {
  const u8 *from = kv_block(p.kv, slot, block);
  const u8 *keys = from + (i64)head * 64 * KEY_DIM * 2, *values = from + (i64)KV_HEADS * 64 * KEY_DIM * 2 + (i64)head * 64 * VALUE_DIM * 2;
  const int there = (int)min(end - block * 64, (i64)KEYS);
  for (int i = threadIdx.x; i < KEYS * (KEY_DIM / 8); i += 128) {
    const int row = i / (KEY_DIM / 8), c = i % (KEY_DIM / 8);
    copy_16(stage + row * KEY_PITCH + c * 16, keys + i * 16, row < there);
  }
  for (int i = threadIdx.x; i < KEYS * (VALUE_DIM / 8); i += 128) {
    const int row = i / (VALUE_DIM / 8), c = i % (VALUE_DIM / 8);
    copy_16(stage + KEYS * KEY_PITCH + row * VALUE_PITCH + c * 16, values + i * 16, row < there);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ void product_f16(float *c, const u32 *a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void load_keys(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void load_values(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// What a warp's 16 rows have so far; a lane has parts of rows g and g + 8.
struct rows_state {
  u32 q[KEY_DIM / 16][4];
#if !NARROW
  u32 rest[KEY_DIM / 16][4];
#endif
  float sum[VALUE_DIM / 8][4], most[2], total[2];
};

__device__ __forceinline__ bool sees(const attend_params &p, i64 key, i64 at) { return key <= at && (!p.window || key > at - p.window); }

// Are there values in the block that are no numbers? Each thread looks at its share of it.
__device__ __forceinline__ bool has_trouble(const u8 *values) {
  bool found = false;
  for (int i = threadIdx.x; i < KEYS * (VALUE_DIM / 8); i += 128) {
    const uint4 v = *(const uint4 *)(values + i / (VALUE_DIM / 8) * VALUE_PITCH + i % (VALUE_DIM / 8) * 16);
    const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int j = 0; j < 4; j++) found |= (word[j] & 0x7c00) == 0x7c00 || (word[j] & 0x7c000000) == 0x7c000000;
  }
  return found;
}
// A product has all rows of a tile meet all values, and nothing times NaN is NaN: where there is one that a row must not
// see, values are added key by key to the rows that see them. c: the weights.
__device__ __forceinline__ void add_one_by_one(const attend_params &p, rows_state &s, const u8 *values, i64 first,
                                               const i64 *position, const float (*c)[4]) {
  const int lane = threadIdx.x & 31, t = lane & 3;
  float weight[32];
#pragma unroll
  for (int i = 0; i < 32; i++) weight[i] = c[i >> 2][i & 3];
#pragma unroll 1
  for (int key = 0; key < KEYS; key++) {
    const u16 *value = (const u16 *)(values + key * VALUE_PITCH);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float w = __shfl_sync(~0u, weight[key / 8 * 4 + 2 * h + (key & 1)], (lane & ~3) | (key >> 1 & 3));
      if (!sees(p, first + key, position[h])) continue;
#pragma unroll
      for (int j = 0; j < VALUE_DIM / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) s.sum[j][2 * h + e] = fmaf(w, half_bits(value[8 * j + 2 * t + e]), s.sum[j][2 * h + e]);
    }
  }
}

// position[h]: of row g + 8 h; below 0 where the row is another's. trouble: has_trouble, of any thread.
__device__ __forceinline__ void attend_block(const attend_params &p, rows_state &s, u32 stage, const u8 *values, i64 first,
                                             const i64 *position, bool whole, bool trouble) {
  const int lane = threadIdx.x & 31, t = lane & 3;
  float c[8][4];
#pragma unroll
  for (int j = 0; j < 8; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
  for (int i = 0; i < KEY_DIM / 16; i++)
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      u32 k[4];
      load_keys(k, stage + (8 * j + (lane & 7) + (lane >> 4) * 8) * KEY_PITCH + (16 * i + (lane >> 3 & 1) * 8) * 2);
      product_f16(c[j], s.q[i], k[0], k[1]);
      product_f16(c[j + 1], s.q[i], k[2], k[3]);
#if !NARROW
      product_f16(c[j], s.rest[i], k[0], k[1]);
      product_f16(c[j + 1], s.rest[i], k[2], k[3]);
#endif
    }
  if (p.soft_cap > 0) {
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[j][e] = p.soft_cap * tanhf(c[j][e] / p.soft_cap);
  }
  if (!whole) {
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const i64 key = first + 8 * j + 2 * t + (e & 1), at = position[e >> 1];
        if (!sees(p, key, at)) c[j][e] = -RUNG_INF;
      }
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float largest = -RUNG_INF;
#pragma unroll
    for (int j = 0; j < 8; j++) largest = nan_max(c[j][2 * h], nan_max(c[j][2 * h + 1], largest));
    largest = nan_max(__shfl_xor_sync(~0u, largest, 1), largest);
    largest = nan_max(__shfl_xor_sync(~0u, largest, 2), largest);
    largest = nan_max(s.most[h], largest);
    const float base = largest == -RUNG_INF ? 0.0f : largest; // nothing seen yet: all weights are 0
    const float before = exp2f((s.most[h] - base) * LOG2E);
    s.most[h] = largest;
    float total = 0;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; e++) {
        c[j][e] = exp2f((c[j][e] - base) * LOG2E);
        total += c[j][e];
      }
    s.total[h] = s.total[h] * before + total;
#pragma unroll
    for (int j = 0; j < VALUE_DIM / 8; j++) {
      s.sum[j][2 * h] *= before;
      s.sum[j][2 * h + 1] *= before;
    }
  }
  if (trouble) {
    add_one_by_one(p, s, values, first, position, c);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u32 a[4], rest[4];
    a[0] = halves_of<NARROW>(c[2 * i][0], c[2 * i][1], &rest[0]);
    a[1] = halves_of<NARROW>(c[2 * i][2], c[2 * i][3], &rest[1]);
    a[2] = halves_of<NARROW>(c[2 * i + 1][0], c[2 * i + 1][1], &rest[2]);
    a[3] = halves_of<NARROW>(c[2 * i + 1][2], c[2 * i + 1][3], &rest[3]);
#pragma unroll
    for (int j = 0; j < VALUE_DIM / 8; j += 2) {
      u32 v[4];
      load_values(v, stage + KEYS * KEY_PITCH + (16 * i + (lane & 15)) * VALUE_PITCH + (8 * j + (lane >> 4) * 8) * 2);
      product_f16(s.sum[j], a, v[0], v[1]);
      product_f16(s.sum[j + 1], a, v[2], v[3]);
#if !NARROW
      product_f16(s.sum[j], rest, v[0], v[1]);
      product_f16(s.sum[j + 1], rest, v[2], v[3]);
#endif
    }
  }
}

__device__ __forceinline__ void load_rows(const attend_params &p, rows_state &s, i64 row, int head) {
  const int t = threadIdx.x & 3;
#pragma unroll
  for (int i = 0; i < KEY_DIM / 16; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const i64 r = row + 8 * (j & 1), at = r * p.q.stride[0] + head * p.q.stride[1] + (16 * i + 2 * t + 8 * (j >> 1)) * p.q.stride[2];
      u32 rest = 0;
      s.q[i][j] = r < p.rows ? limited_halves<NARROW>(load_float(p.q.base, p.q.type, at) * p.scale,
                                         load_float(p.q.base, p.q.type, at + p.q.stride[2]) * p.scale, &rest)
                             : 0;
#if !NARROW
      s.rest[i][j] = rest;
#endif
    }
#pragma unroll
  for (int j = 0; j < VALUE_DIM / 8; j++) s.sum[j][0] = s.sum[j][1] = s.sum[j][2] = s.sum[j][3] = 0;
  s.most[0] = s.most[1] = -RUNG_INF;
  s.total[0] = s.total[1] = 0;
}

// A lane has two numbers of each eight of a row; four lanes have a block of 32.
__device__ __forceinline__ void store_row(const attend_params &p, const float (*sum)[4], int h, float inverse, i64 row, int head) {
  const int t = threadIdx.x & 3;
#if QUANTIZED
#pragma unroll
  for (int b = 0; b < VALUE_DIM / 32; b++) {
    float v[8], scale;
    int q[8], low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = sum[4 * b + (i >> 1)][2 * h + (i & 1)] * inverse;
    levels_of_eight(v, &scale, q);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (i < 4) low += q[i]; else high += q[i];
    }
    low += __shfl_xor_sync(~0u, low, 1);
    low += __shfl_xor_sync(~0u, low, 2);
    high += __shfl_xor_sync(~0u, high, 1);
    high += __shfl_xor_sync(~0u, high, 2);
    if (row >= p.rows) continue;
    a8_block *out = (a8_block *)p.y.base + row * p.y.stride[0] + (head * VALUE_DIM) / 32 + b;
#pragma unroll
    for (int i = 0; i < 4; i++) *(u16 *)(out->q + 8 * i + 2 * t) = (u16)((q[2 * i] & 255) | (q[2 * i + 1] & 255) << 8);
    if (t == 0) {
      out->scale = scale;
      out->sum_low = (i16)low;
      out->sum_high = (i16)high;
    }
  }
#else
  if (row >= p.rows) return;
#pragma unroll
  for (int j = 0; j < VALUE_DIM / 8; j++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      store_float(p.y.base, p.y.type, row * p.y.stride[0] + head * p.y.stride[1] + (8 * j + 2 * t + e) * p.y.stride[2],
                  sum[j][2 * h + e] * inverse);
#endif
}

extern "C" __global__ void __launch_bounds__(128) attend_many(const __grid_constant__ attend_params p) {
  extern __shared__ __align__(128) u8 memory[];
  const u32 stages = (u32)__cvta_generic_to_shared(memory);
  const int lane = threadIdx.x & 31, g = lane >> 2, head = blockIdx.y, kv_head = head / GROUP;
  // Rows that see most come first.
  const i64 first_row = (i64)(gridDim.x - 1 - blockIdx.x) * ROWS, last_row = min(first_row + ROWS, p.rows) - 1;
  const i64 row = first_row + (threadIdx.x >> 5) * 16 + g;
  GO();
  WAIT();
  rows_state s;
  load_rows(p, s, row, head);
  for (i64 q = sequence_of(p.offsets, p.offsets_type, p.sequences, first_row); q < p.sequences; q++) {
    const i64 begin = load_int(p.offsets, p.offsets_type, q), behind = load_int(p.offsets, p.offsets_type, q + 1);
    if (begin > last_row) break;
    if (behind == begin) continue;
    const i64 slot = load_int(p.slot, p.slot_type, q), shift = load_int(p.past, p.past_type, q) - begin;
    const i64 low = max(first_row, begin), high = min(last_row, behind - 1); // rows of this sequence here
    if (slot < 0 || slot >= p.kv.slots || low + shift < 0 || high + shift >= p.kv.capacity) {
      if (threadIdx.x == 0)
        refuse(p.refused, REFUSES_ROWS, slot < 0 || slot >= p.kv.slots ? slot : high + shift,
               slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
      continue;
    }
    i64 position[2];
#pragma unroll
    for (int h = 0; h < 2; h++) position[h] = row + 8 * h >= low && row + 8 * h <= high ? row + 8 * h + shift : -1;
    const i64 end = high + shift + 1; // keys from 0
    const i64 seen = p.window && low + shift >= p.window ? low + shift - p.window + 1 : 0;
    const bool all_rows = low == first_row && high == first_row + ROWS - 1;
    const i64 first = seen / 64, last = (end - 1) / 64;
    load_block(p, slot, kv_head, first, end, stages);
    for (i64 b = first; b <= last; b++) {
      const u32 now = stages + (u32)((b - first) & 1) * STAGE;
      if (b < last) {
        load_block(p, slot, kv_head, b + 1, end, stages + (u32)((b - first + 1) & 1) * STAGE);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
      } else {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
      }
      __syncthreads();
      const bool whole = all_rows && b * 64 + 63 <= low + shift && (!p.window || b * 64 > high + shift - p.window);
      const u8 *values = memory + (now - stages) + KEYS * KEY_PITCH;
      const bool trouble = !whole && __syncthreads_or(has_trouble(values));
      attend_block(p, s, now, values, b * 64, position, whole, trouble);
      __syncthreads();
    }
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = s.total[h];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    store_row(p, s.sum, h, total > 0 || total != total ? 1.0f / total : 0.0f, row + 8 * h, head);
  }
}
