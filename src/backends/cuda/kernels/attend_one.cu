// SPDX-License-Identifier: MIT
// One row of one sequence: turns the query and the new key, writes key and value into the state, and attends. In front
// stand the defines of attend.cu and of the rope (DIMS, HALF, MAGNITUDE, turns), and NARROW: queries and weights of keys
// may be rounded to f16; else they are cut in two halves, which stand in the upper and lower rows of the products.
//
// SPLITS blocks share the keys of a key/value head, in steps of 16; up to `alone` keys one block has all of them. Products m16n8k16 have the query heads as rows.
// A lane reads 16 bytes of neighbouring numbers of a key and a value, in an order of its own, which is that of the
// queries and results too. Old keys are not waited for: earlier runs wrote them. The new one comes in by itself at the
// end, like one more warp's share.
struct attend_one_params {
  kv_state kv;
  const u8 *q, *k, *v;
  u8 *y;
  i64 q_step, k_step, v_step, y_step, factor_step; // elements from head to head
  const u8 *slot, *past, *factors;
  refusal *refused;
  float *partial; // [heads of keys][SPLITS][GROUP][VALUE_DIM + 8]: sums, largest, total
  u32 *counter;   // [heads of keys], 0 between launches
  i64 window;
  float scale, soft_cap;
  i32 q_type, k_type, v_type, y_type, slot_type, past_type, factor_type, alone;
};
#define WARPS 4
#ifndef SPLITS
#define SPLITS 16
#endif
#define KEY_WORDS (KEY_DIM / 32)
#define VALUE_WORDS (VALUE_DIM / 64)
#define VALUE_TILES (VALUE_DIM / 8)
#define LOG2E 1.4426950408889634f

struct sixteen {
  uint4 k[2][KEY_WORDS], v[4][VALUE_WORDS];
};
__device__ __forceinline__ void load_sixteen(const attend_one_params &p, i64 slot, int head, i64 step, i64 position,
                                             sixteen *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const u16 *block = (const u16 *)kv_block(p.kv, slot, step / 4);
  const int first = (int)(step % 4) * 16, last = (int)(position - 1 - step / 4 * 64); // of the block
#pragma unroll
  for (int u = 0; u < 2; u++) {
    const int key = min(first + 8 * u + g, last);
    const uint4 *from = (const uint4 *)(block + (head * 64 + key) * KEY_DIM) + t;
#pragma unroll
    for (int i = 0; i < KEY_WORDS; i++) out->k[u][i] = __ldcg(from + 4 * i);
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int key = min(first + 2 * t + (j & 1) + 8 * (j >> 1), last);
    const uint4 *from = (const uint4 *)(block + KV_HEADS * 64 * KEY_DIM + (head * 64 + key) * VALUE_DIM) + g * VALUE_WORDS;
#pragma unroll
    for (int i = 0; i < VALUE_WORDS; i++) out->v[j][i] = __ldcg(from + i);
  }
}
// Into the second cache.
__device__ __forceinline__ void prefetch_sixteen(const attend_one_params &p, i64 slot, int head, i64 step) {
  const int lane = threadIdx.x & 31, first = (int)(step % 4) * 16;
  const u8 *block = kv_block(p.kv, slot, step / 4);
  const u8 *keys = block + (head * 64 + first) * KEY_DIM * 2;
  const u8 *values = block + KV_HEADS * 64 * KEY_DIM * 2 + (head * 64 + first) * VALUE_DIM * 2;
  for (int at = lane * 128; at < 32 * KEY_DIM; at += 32 * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(keys + at));
  for (int at = lane * 128; at < 32 * VALUE_DIM; at += 32 * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(values + at));
}
__device__ __forceinline__ void product_f16(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// Two numbers as halves, and what that left out.
__device__ __forceinline__ u32 halves_of(float a, float b, u32 *rest) {
  const u32 h = pack_half(a, b);
#if NARROW
  *rest = 0;
#else
  *rest = pack_half(a - half_bits((u16)h), b - half_bits((u16)(h >> 16)));
#endif
  return h;
}
__device__ __forceinline__ float capped(float s, float cap) { return cap > 0 ? cap * tanhf(s / cap) : s; }

struct share {
  float sum[GROUP][VALUE_DIM], most[GROUP], total[GROUP];
};

// The keys of steps [from, end) that this warp has, every WARPS-th.
__device__ __forceinline__ void attend_steps(const attend_one_params &p, i64 slot, int head, i64 step, i64 end, i64 low,
                                             i64 position, sixteen &now, const float *q, share *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  u32 high[4 * KEY_WORDS], rest[4 * KEY_WORDS];
#pragma unroll
  for (int i = 0; i < KEY_WORDS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float *from = q + g * KEY_DIM + 32 * i + 8 * t + 2 * j;
      high[4 * i + j] = g < GROUP ? halves_of(from[0], from[1], &rest[4 * i + j]) : 0;
      if (g >= GROUP) rest[4 * i + j] = 0;
    }
  float acc[VALUE_TILES][4], most = -1e30f, total = 0;
#pragma unroll
  for (int j = 0; j < VALUE_TILES; j++) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
  while (step < end) {
    float s[2][2];
#pragma unroll
    for (int u = 0; u < 2; u++) {
      float c[4] = {0, 0, 0, 0}, d[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < KEY_WORDS; i++) {
        product_f16(c, high[4 * i], rest[4 * i], high[4 * i + 1], rest[4 * i + 1], now.k[u][i].x, now.k[u][i].y);
        product_f16(d, high[4 * i + 2], rest[4 * i + 2], high[4 * i + 3], rest[4 * i + 3], now.k[u][i].z, now.k[u][i].w);
      }
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const i64 key = step * 16 + 8 * u + 2 * t + e;
        const float v = capped(NARROW ? c[e] + d[e] : (c[e] + d[e]) + (c[e + 2] + d[e + 2]), p.soft_cap);
        s[u][e] = key >= low && key < position ? v : -1e30f;
      }
    }
    float largest = fmaxf(fmaxf(s[0][0], s[0][1]), fmaxf(s[1][0], s[1][1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    largest = fmaxf(largest, most);
    const float before = exp2f((most - largest) * LOG2E);
    most = largest;
    total *= before;
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        s[u][e] = exp2f((s[u][e] - most) * LOG2E);
        total += s[u][e];
      }
    u32 r0, r2;
    const u32 a0 = halves_of(s[0][0], s[0][1], &r0), a2 = halves_of(s[1][0], s[1][1], &r2);
#pragma unroll
    for (int i = 0; i < VALUE_WORDS; i++) {
      const u32 *v0 = (const u32 *)&now.v[0][i], *v1 = (const u32 *)&now.v[1][i], *v2 = (const u32 *)&now.v[2][i],
                *v3 = (const u32 *)&now.v[3][i];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        float *c = acc[8 * i + j];
#pragma unroll
        for (int e = 0; e < 4; e++) c[e] *= before;
        const u32 pick = j & 1 ? 0x7632 : 0x5410;
        product_f16(c, a0, r0, a2, r2, __byte_perm(v0[j >> 1], v1[j >> 1], pick), __byte_perm(v2[j >> 1], v3[j >> 1], pick));
      }
    }
    step += WARPS;
    if (step < end) load_sixteen(p, slot, head, step, position, &now);
  }
  total += __shfl_xor_sync(~0u, total, 1);
  total += __shfl_xor_sync(~0u, total, 2);
  if (g >= GROUP) return;
  if (t == 0) {
    out->most[g] = most;
    out->total[g] = total;
  }
#pragma unroll
  for (int j = 0; j < VALUE_TILES; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) out->sum[g][(2 * t + e) * VALUE_TILES + j] = acc[j][e] + (NARROW ? 0.0f : acc[j][e + 2]);
}

// Eight neighbouring numbers of a head; four lanes have a block of 32. Whole warps call it.
__device__ __forceinline__ void put_eight(const attend_one_params &p, int head, int d, const float *v, bool there) {
#if QUANTIZED
  float largest = 0;
  bool nan = false;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    nan |= v[i] != v[i];
    largest = fmaxf(largest, fabsf(v[i]));
  }
  if (nan) largest = RUNG_NAN;
  largest = nan_max(__shfl_xor_sync(~0u, largest, 1), largest);
  largest = nan_max(__shfl_xor_sync(~0u, largest, 2), largest);
  float scale = largest / 127.0f;
  if (scale < 1.17549435e-38f) scale = 0;
  const bool usable = scale > 0 && scale <= 3.402823466e+38f;
  const float inverse = usable ? 1.0f / scale : 0.0f;
  int sum = 0;
  u32 word[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float level = rintf(v[i] * inverse);
    const int q = usable ? (int)(level > 127 ? 127.0f : level < -127 ? -127.0f : level) : 0;
    sum += q;
    word[i >> 2] |= (u32)(q & 255) << 8 * (i & 3);
  }
  sum += __shfl_xor_sync(~0u, sum, 1); // of 16
  if (!there) return;
  a8_block *out = (a8_block *)p.y + (head * VALUE_DIM + d) / 32;
  ((u32 *)out->q)[(d & 31) / 4] = word[0];
  ((u32 *)out->q)[(d & 31) / 4 + 1] = word[1];
  if ((d & 31) == 0) {
    out->scale = scale;
    out->sum_low = (i16)sum;
  }
  if ((d & 31) == 16) out->sum_high = (i16)sum;
#else
  if (!there) return;
#pragma unroll
  for (int i = 0; i < 8; i++) store_float(p.y, p.y_type, head * p.y_step + d + i, v[i]);
#endif
}

__device__ __forceinline__ void turn_pair(const u8 *from, int type, i64 at, int u, const float2 *turned, float *a, float *b) {
  const int d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
  const float x = load_float(from, type, at + d0), y = load_float(from, type, at + d1);
  *a = x * turned[u].x - y * turned[u].y;
  *b = x * turned[u].y + y * turned[u].x;
}

#define UNITS (KEY_DIM - DIMS / 2) // pairs and what is not turned
__device__ __forceinline__ void turn_queries(const attend_one_params &p, int head, const float2 *turned, float *q) {
  for (int i = threadIdx.x; i < GROUP * UNITS; i += 32 * WARPS) {
    const int h = i / UNITS, u = i % UNITS;
    const i64 at = (head * GROUP + h) * p.q_step;
    if (u >= DIMS / 2) {
      q[h * KEY_DIM + u + DIMS / 2] = load_float(p.q, p.q_type, at + u + DIMS / 2) * p.scale;
      continue;
    }
    float a, b;
    turn_pair(p.q, p.q_type, at, u, turned, &a, &b);
    q[h * KEY_DIM + (HALF ? u : 2 * u)] = a * p.scale;
    q[h * KEY_DIM + (HALF ? u + DIMS / 2 : 2 * u + 1)] = b * p.scale;
  }
}
// The new key and value, into the state and as this run reads them.
__device__ __forceinline__ void append_one(const attend_one_params &p, int head, i64 slot, i64 position, const float2 *turned,
                                           float *key, float *value) {
  u16 *block = (u16 *)kv_block(p.kv, slot, position / 64);
  u16 *keys = block + (head * 64 + (int)(position % 64)) * KEY_DIM;
  u16 *values = block + KV_HEADS * 64 * KEY_DIM + (head * 64 + (int)(position % 64)) * VALUE_DIM;
  for (int u = threadIdx.x; u < UNITS; u += 32 * WARPS) {
    const i64 at = head * p.k_step;
    if (u >= DIMS / 2) {
      const u16 h = to_half_bits(load_float(p.k, p.k_type, at + u + DIMS / 2));
      keys[u + DIMS / 2] = h;
      key[u + DIMS / 2] = half_bits(h);
      continue;
    }
    float a, b;
    turn_pair(p.k, p.k_type, at, u, turned, &a, &b);
    const int d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
    keys[d0] = to_half_bits(a);
    keys[d1] = to_half_bits(b);
    key[d0] = round_to(a, (const f16 *)0);
    key[d1] = round_to(b, (const f16 *)0);
  }
  for (int d = threadIdx.x; d < VALUE_DIM; d += 32 * WARPS) {
    const u16 h = to_half_bits(load_float(p.v, p.v_type, head * p.v_step + d));
    values[d] = h;
    value[d] = half_bits(h);
  }
}
// The sum of all shares' parts for eight numbers of a head, each weighted by its largest score.
__device__ __forceinline__ void sum_splits(const attend_one_params &p, int head, int h, int d, float *v) {
  const float *shares = p.partial + ((i64)head * SPLITS * GROUP + h) * (VALUE_DIM + 8);
  float2 of[SPLITS];
  float largest = -RUNG_INF, total = 0;
#pragma unroll
  for (int s = 0; s < SPLITS; s++) {
    of[s] = __ldcg((const float2 *)(shares + s * GROUP * (VALUE_DIM + 8) + VALUE_DIM));
    largest = nan_max(of[s].x, largest);
  }
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
#pragma unroll
  for (int s = 0; s < SPLITS; s++) {
    if (of[s].x == -RUNG_INF) continue; // a share without keys
    const float4 *from = (const float4 *)(shares + s * GROUP * (VALUE_DIM + 8) + d);
    const float4 a = __ldcg(from), b = __ldcg(from + 1);
    const float f = exp2f((of[s].x - largest) * LOG2E), w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    total = fmaf(f, of[s].y, total);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fmaf(f, w[i], v[i]);
  }
  const float inverse = 1.0f / total;
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] *= inverse;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) attend_one(const __grid_constant__ attend_one_params p) {
  __shared__ share part[WARPS + 1];
  __shared__ float q[GROUP][KEY_DIM], key[KEY_DIM], value[VALUE_DIM];
  __shared__ float2 turned[DIMS / 2];
  __shared__ int is_last;
  const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31, head = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
  GO();
  // A block without work waits all the same: were it gone, two blocks of the kernel behind could come to one processor
  // in its place, and others would have none.
  if (head >= KV_HEADS) {
    WAIT();
    return;
  }
  const i64 slot = load_int(p.slot, p.slot_type, 0), position = load_int(p.past, p.past_type, 0);
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (thread == 0)
      refuse(p.refused, 2, slot < 0 || slot >= p.kv.slots ? slot : position,
             slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    return;
  }
  const i64 low = p.window && position >= p.window ? position - p.window + 1 : 0, base = low / 16;
  const i64 steps = position > low ? (position - 1) / 16 - base + 1 : 0;
  const int splits = steps <= p.alone / 16 ? 1 : SPLITS;
  if (split >= splits) {
    WAIT();
    return;
  }
  const i64 each = (steps + splits - 1) / splits, all = base + steps;
  const i64 end = min(base + (split + 1) * each, all), step = base + split * each + warp;
  sixteen now;
  if (step < end) load_sixteen(p, slot, head, step, position, &now);
  for (i64 later = step + WARPS; later < end && later <= step + 3 * WARPS; later += WARPS) prefetch_sixteen(p, slot, head, later);
  for (int u = thread; u < DIMS / 2; u += 32 * WARPS) {
    double angle = (double)position * turns[u];
    if (p.factors) angle /= load_double(p.factors, p.factor_type, u * p.factor_step);
    angle -= 6.283185307179586477 * rint(angle * 0.15915494309189533577);
    float sine, cosine;
    sincosf((float)angle, &sine, &cosine);
    turned[u] = make_float2(cosine * MAGNITUDE, sine * MAGNITUDE);
  }
  __syncthreads();
  WAIT();
  turn_queries(p, head, turned, &q[0][0]);
  if (split == 0) append_one(p, head, slot, position, turned, key, value);
  __syncthreads();
  if (step < end) {
    attend_steps(p, slot, head, step, end, low, position, now, &q[0][0], &part[warp]);
  } else if (lane < GROUP) {
    part[warp].most[lane] = -RUNG_INF;
  }
  if (split == 0)
    for (int h = warp; h < GROUP; h += WARPS) {
      float s = 0;
      for (int d = lane; d < KEY_DIM; d += 32) s = fmaf(q[h][d], key[d], s);
      s = capped(warp_sum(s), p.soft_cap);
      if (lane == 0) {
        part[WARPS].most[h] = s;
        part[WARPS].total[h] = 1;
      }
    }
  else if (thread < GROUP)
    part[WARPS].most[thread] = -RUNG_INF;
  __syncthreads();
  float *mine = p.partial + (i64)(head * SPLITS + split) * GROUP * (VALUE_DIM + 8);
  const int h = min(thread * 8 / VALUE_DIM, GROUP - 1), d = thread * 8 % VALUE_DIM;
  const bool there = thread * 8 < GROUP * VALUE_DIM;
  float largest = -RUNG_INF, total = 0, v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
  for (int w = 0; w <= WARPS; w++) largest = nan_max(part[w].most[h], largest);
#pragma unroll
  for (int w = 0; w <= WARPS; w++) {
    if (part[w].most[h] == -RUNG_INF) continue;
    const float f = exp2f((part[w].most[h] - largest) * LOG2E);
    const float *from = w == WARPS ? value + d : part[w].sum[h] + d;
    total = fmaf(f, part[w].total[h], total);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fmaf(f, from[i], v[i]);
  }
  if (splits == 1) {
    const float inverse = 1.0f / total;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= inverse;
    put_eight(p, head * GROUP + h, d, v, there);
    return;
  }
  if (there) {
    float *to = mine + h * (VALUE_DIM + 8);
    *(float4 *)(to + d) = make_float4(v[0], v[1], v[2], v[3]);
    *(float4 *)(to + d + 4) = make_float4(v[4], v[5], v[6], v[7]);
    if (d == 0) *(float2 *)(to + VALUE_DIM) = make_float2(largest, total);
  }
  // The block that is last sums the shares up, in one order.
  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicInc(p.counter + head, SPLITS - 1) == SPLITS - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  sum_splits(p, head, h, d, v);
  put_eight(p, head * GROUP + h, d, v, there);
}
