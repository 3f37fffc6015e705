// SPDX-License-Identifier: MIT
// One row of one sequence: turns the query and the new key, writes key and value into the state, and attends. In front
// stand the defines of attend.cu and of the rope (DIMS, HALF, MAGNITUDE, turns), and NARROW: queries and weights of keys
// may be rounded to f16; else they are cut in two halves, which stand in the upper and lower rows of the products.
//
// SPLITS blocks share the keys of a key/value head, in steps of 16; up to `alone` keys one of them has all, beyond the
// last to be done adds up what all have. They are no cluster: clusters leave processors without a block, and then two
// blocks of the kernel behind gather on those. The types of operands are written in front: q_number .. past_number. Products
// m16n8k16 have the query heads as rows. A lane reads 16 bytes of neighbouring numbers of a key and a value, in an order
// of its own, which is that of the queries and results too. Old keys are not waited for: earlier runs wrote them, so they
// are copied to shared memory while the kernel in front still runs, STAGES steps of each warp: with 16 splits those of
// 3,000 keys. The new one comes in by itself at the end, like one more warp's share.
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
  i32 alone, pad;
};
#define WARPS 4
#ifndef SPLITS
#define SPLITS 16
#endif
#define KEY_WORDS (KEY_DIM / 32)
#define VALUE_WORDS (VALUE_DIM / 64)
#define VALUE_TILES (VALUE_DIM / 8)
#define QUERY_VALUES (GROUP * VALUE_DIM)
#define LOG2E 1.4426950408889634f

// A warp's places in shared memory: 16 keys, 16 values. Rows are so far apart that the 16 bytes which eight lanes read
// together lie in different banks: keys m and m + 4 of those eight lanes at odd distance, values t at twice an odd one.
#ifndef STAGES
#define STAGES 3
#endif
#define KEY_ROW (KEY_DIM * 2 + 16)
#define VALUE_ROW (VALUE_DIM * 2 + 32)
#define STAGE (16 * (KEY_ROW + VALUE_ROW))

template <int ROW, int BYTES>
__device__ __forceinline__ void copy_rows(u32 to, const u8 *from, int first, int lowest, int last) {
#pragma unroll
  for (int i = 0; i < BYTES / 32; i++) {
    const int piece = i * 32 + (threadIdx.x & 31), row = piece / (BYTES / 16), at = piece % (BYTES / 16) * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + row * ROW + at),
                 "l"(from + max(min(first + row, last), lowest) * BYTES + at)
                 : "memory");
  }
}
// The copies of one step, if there is one; always one group. In place of keys that are not seen come others that are: not
// even their NaN is.
__device__ __forceinline__ void copy_sixteen(const attend_one_params &p, i64 slot, int head, i64 step, i64 end, i64 low,
                                             i64 position, u32 to) {
  if (step < end) {
    const u8 *block = kv_block(p.kv, slot, step / 4);
    const int first = (int)(step % 4) * 16, last = (int)(position - 1 - step / 4 * 64); // of the block
    const int lowest = (int)max(low - step / 4 * 64, (i64)0);
    copy_rows<KEY_ROW, KEY_DIM * 2>(to, block + head * 64 * (KEY_DIM * 2), first, lowest, last);
    copy_rows<VALUE_ROW, VALUE_DIM * 2>(to + 16 * KEY_ROW, block + (KV_HEADS * KEY_DIM + head * VALUE_DIM) * 128, first, lowest,
                                         last);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ void product_f16(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float capped(float s, float cap) { return CAPPED ? cap * tanhf(s / cap) : s; }

struct share {
  float sum[GROUP][VALUE_DIM], most[GROUP], total[GROUP];
};

// The keys of steps [from, end) that this warp has, every WARPS-th; STAGES of them are on their way. The share is left in
// the warp's first place, where all that was copied has been read by then; elsewhere: for nothing, and no copies follow.
__device__ __forceinline__ void attend_steps(const attend_one_params &p, i64 slot, int head, i64 step, i64 end, i64 low,
                                             i64 position, const u8 *stage, const float *q, share *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  u32 high[4 * KEY_WORDS], rest[4 * KEY_WORDS];
#pragma unroll
  for (int i = 0; i < KEY_WORDS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float *from = q + g * KEY_DIM + 32 * i + 8 * t + 2 * j;
      high[4 * i + j] = g < GROUP ? limited_halves<NARROW>(from[0], from[1], &rest[4 * i + j]) : 0;
      if (g >= GROUP) rest[4 * i + j] = 0;
    }
  float acc[VALUE_TILES][4], most = -1e30f, total = 0;
#pragma unroll
  for (int j = 0; j < VALUE_TILES; j++) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
  // Column g of the first products is key g / 2 + 4 (g mod 2), so that t and t + 4 are rows of the second ones' columns.
  const u8 *keys = stage + (g / 2 + 4 * (g & 1)) * KEY_ROW + t * 16, *values = stage + 16 * KEY_ROW + t * VALUE_ROW + g * 16;
  int at = 0;
  for (; step < end; step += WARPS) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncwarp();
    float s[2][2];
#pragma unroll
    for (int u = 0; u < 2; u++) {
      float c[4] = {0, 0, 0, 0}, d[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < KEY_WORDS; i++) {
        const uint4 k = *(const uint4 *)(keys + at * STAGE + 8 * u * KEY_ROW + 64 * i);
        product_f16(c, high[4 * i], rest[4 * i], high[4 * i + 1], rest[4 * i + 1], k.x, k.y);
        product_f16(d, high[4 * i + 2], rest[4 * i + 2], high[4 * i + 3], rest[4 * i + 3], k.z, k.w);
      }
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const i64 key = step * 16 + 8 * u + t + 4 * e;
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
    const u32 a0 = halves_of<NARROW>(s[0][0], s[0][1], &r0), a2 = halves_of<NARROW>(s[1][0], s[1][1], &r2);
#pragma unroll
    for (int i = 0; i < VALUE_WORDS; i++) {
      uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = *(const uint4 *)(values + at * STAGE + 4 * j * VALUE_ROW + 128 * i);
      const u32 *v0 = (const u32 *)&v[0], *v1 = (const u32 *)&v[1], *v2 = (const u32 *)&v[2], *v3 = (const u32 *)&v[3];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        float *c = acc[8 * i + j];
#pragma unroll
        for (int e = 0; e < 4; e++) c[e] *= before;
        const u32 pick = j & 1 ? 0x7632 : 0x5410;
        product_f16(c, a0, r0, a2, r2, __byte_perm(v0[j >> 1], v1[j >> 1], pick), __byte_perm(v2[j >> 1], v3[j >> 1], pick));
      }
    }
    __syncwarp();
    if (out == (share *)stage) copy_sixteen(p, slot, head, step + STAGES * WARPS, end, low, position, there(stage + at * STAGE));
    if (++at == STAGES) at = 0;
  }
  total += __shfl_xor_sync(~0u, total, 1);
  total += __shfl_xor_sync(~0u, total, 2);
  if (g >= GROUP) return;
  if (t == 0) {
    out->most[g] = most;
    out->total[g] = total;
  }
#pragma unroll
  for (int i = 0; i < VALUE_WORDS; i++)
#pragma unroll
    for (int e = 0; e < 2; e++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        out->sum[g][64 * i + 8 * (2 * t + e) + j] = acc[8 * i + j][e] + (NARROW ? 0.0f : acc[8 * i + j][e + 2]);
}

// Eight neighbouring numbers of a head; four lanes have a block of 32. Whole warps call it.
__device__ __forceinline__ void put_eight(const attend_one_params &p, int head, int d, const float *v, bool there) {
#if QUANTIZED
  quantize_eight(v, (a8_block *)p.y, (head * VALUE_DIM + d) / 8, there);
#else
  if (!there) return;
#pragma unroll
  for (int i = 0; i < 8; i++) put_float((y_number *)p.y + head * p.y_step + d + i, v[i]);
#endif
}

// Queries of the head, its new key and value, as they come: one wait for all of them.
#define QUERIES (GROUP * KEY_DIM)
#define NEW (QUERIES + KEY_DIM + VALUE_DIM)
__device__ __forceinline__ void load_new(const attend_one_params &p, int head, bool all, float *to) {
  float v[(NEW + 32 * WARPS - 1) / (32 * WARPS)];
  const int count = all ? NEW : QUERIES;
#pragma unroll
  for (int i = 0; i * 32 * WARPS < NEW; i++) {
    const int n = i * 32 * WARPS + (int)threadIdx.x;
    if (n >= count) continue;
    if (n < QUERIES)
      v[i] = get_float((const q_number *)p.q + (head * GROUP + n / KEY_DIM) * p.q_step + n % KEY_DIM);
    else if (n < QUERIES + KEY_DIM)
      v[i] = get_float((const k_number *)p.k + head * p.k_step + n - QUERIES);
    else
      v[i] = get_float((const v_number *)p.v + head * p.v_step + n - QUERIES - KEY_DIM);
  }
#pragma unroll
  for (int i = 0; i * 32 * WARPS < NEW; i++)
    if (i * 32 * WARPS + (int)threadIdx.x < count) to[i * 32 * WARPS + threadIdx.x] = v[i];
}

__device__ __forceinline__ void turn_pair(const float *from, int u, const float2 *turned, float *a, float *b) {
  const int d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
  *a = from[d0] * turned[u].x - from[d1] * turned[u].y;
  *b = from[d0] * turned[u].y + from[d1] * turned[u].x;
}

#define UNITS (KEY_DIM - DIMS / 2) // pairs and what is not turned
__device__ __forceinline__ void turn_queries(const float *from, float scale, const float2 *turned, float *q) {
#pragma unroll
  for (int i = threadIdx.x; i < GROUP * UNITS; i += 32 * WARPS) {
    const int at = i / UNITS * KEY_DIM, u = i % UNITS;
    if (u >= DIMS / 2) {
      q[at + u + DIMS / 2] = from[at + u + DIMS / 2] * scale;
      continue;
    }
    float a, b;
    turn_pair(from + at, u, turned, &a, &b);
    q[at + (HALF ? u : 2 * u)] = a * scale;
    q[at + (HALF ? u + DIMS / 2 : 2 * u + 1)] = b * scale;
  }
}
// The new key and value, into the state and as this run reads them.
__device__ __forceinline__ void append_one(const attend_one_params &p, int head, i64 slot, i64 position, const float *from,
                                           const float2 *turned, float *key, float *value) {
  u16 *block = (u16 *)kv_block(p.kv, slot, position / 64);
  u16 *keys = block + (head * 64 + (int)(position % 64)) * KEY_DIM;
  u16 *values = block + KV_HEADS * 64 * KEY_DIM + (head * 64 + (int)(position % 64)) * VALUE_DIM;
  for (int u = threadIdx.x; u < UNITS; u += 32 * WARPS) {
    if (u >= DIMS / 2) {
      const u16 h = to_half_bits(from[u + DIMS / 2]);
      keys[u + DIMS / 2] = h;
      key[u + DIMS / 2] = half_bits(h);
      continue;
    }
    float a, b;
    turn_pair(from, u, turned, &a, &b);
    const int d0 = HALF ? u : 2 * u, d1 = HALF ? u + DIMS / 2 : 2 * u + 1;
    keys[d0] = to_half_bits(a);
    keys[d1] = to_half_bits(b);
    key[d0] = round_to(a, (const f16 *)0);
    key[d1] = round_to(b, (const f16 *)0);
  }
  for (int d = threadIdx.x; d < VALUE_DIM; d += 32 * WARPS) {
    const u16 h = to_half_bits(from[KEY_DIM + d]);
    values[d] = h;
    value[d] = half_bits(h);
  }
}
// A block's sum for eight numbers of a head: the warps' shares in order, then the new key's.
__device__ __forceinline__ void add_warps(const u8 *memory, const float *own_most, const float *own_total, const float *value, int h,
                                          int d, float *v, float *largest, float *total) {
#pragma unroll
  for (int w = 0; w < WARPS; w++) *largest = nan_max(((const share *)(memory + w * STAGES * STAGE))->most[h], *largest);
  *largest = nan_max(own_most[h], *largest);
#pragma unroll
  for (int w = 0; w <= WARPS; w++) {
    const share *of = (const share *)(memory + w * STAGES * STAGE); // not with w WARPS
    const float most = w == WARPS ? own_most[h] : of->most[h];
    if (most == -RUNG_INF) continue;
    const float f = exp2f((most - *largest) * LOG2E);
    const float *from = w == WARPS ? value + d : of->sum[h] + d;
    *total = fmaf(f, w == WARPS ? own_total[h] : of->total[h], *total);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fmaf(f, from[i], v[i]);
  }
}
// The sum of all shares' parts for four numbers of a head, each weighted by its largest score.
__device__ __forceinline__ float4 sum_splits(const float *partial, int head, int h, int d) {
  const float *shares = partial + ((i64)head * SPLITS * GROUP + h) * (VALUE_DIM + 8);
  float2 of[SPLITS];
  float4 part[SPLITS], sum = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int s = 0; s < SPLITS; s++) {
    part[s] = __ldcg((const float4 *)(shares + s * GROUP * (VALUE_DIM + 8) + d));
    of[s] = __ldcg((const float2 *)(shares + s * GROUP * (VALUE_DIM + 8) + VALUE_DIM));
  }
  float largest = -RUNG_INF, total = 0;
#pragma unroll
  for (int s = 0; s < SPLITS; s++) largest = nan_max(of[s].x, largest);
#pragma unroll
  for (int s = 0; s < SPLITS; s++) {
    if (of[s].x == -RUNG_INF) continue; // a share without keys
    const float f = exp2f((of[s].x - largest) * LOG2E);
    total = fmaf(f, of[s].y, total);
    sum.x = fmaf(f, part[s].x, sum.x), sum.y = fmaf(f, part[s].y, sum.y);
    sum.z = fmaf(f, part[s].z, sum.z), sum.w = fmaf(f, part[s].w, sum.w);
  }
  const float inverse = 1.0f / total;
  return make_float4(sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse);
}
// What the block wrote is there for whoever finds the counter raised, and the other way round.
__device__ __forceinline__ u32 count_up(u32 *counter) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "n"(SPLITS - 1) : "memory");
  return before;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) attend_one(const __grid_constant__ attend_one_params p) {
  extern __shared__ __align__(128) u8 memory[]; // of each warp STAGES places; its share comes into the first
  __shared__ __align__(16) share spare;               // for the run for nothing
  __shared__ float own_most[GROUP], own_total[GROUP]; // of the new key
  __shared__ float fresh[NEW], q[GROUP][KEY_DIM], key[KEY_DIM], value[VALUE_DIM];
  __shared__ float2 turned[DIMS / 2];
  __shared__ int is_last;
  const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31, head = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
  GO();
  const i64 slot = *(const slot_number *)p.slot, position = *(const past_number *)p.past;
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (thread == 0)
      refuse(p.refused, 2, slot < 0 || slot >= p.kv.slots ? slot : position,
             slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    return;
  }
  const i64 low = p.window && position >= p.window ? position - p.window + 1 : 0, base = low / 16;
  const i64 steps = position > low ? (position - 1) / 16 - base + 1 : 0;
  const int splits = steps <= p.alone / 16 ? 1 : SPLITS;
  // A block without work waits all the same: were it gone, two blocks of the kernel behind could come to one processor
  // in its place, and others would have none.
  if (head >= KV_HEADS || split >= splits) {
    WAIT();
    return;
  }
  const i64 each = (steps + splits - 1) / splits, all = base + steps;
  const i64 end = min(base + (split + 1) * each, all), step = base + split * each + warp;
  u8 *stage = memory + warp * STAGES * STAGE;
  for (int u = thread; u < DIMS / 2; u += 32 * WARPS) {
    double angle = (double)position * turns[u];
#if FACTORS
    angle /= (double)get_float((const factor_number *)p.factors + u * p.factor_step);
#endif
    turned[u] = turned_by(angle, MAGNITUDE);
  }
  // Behind the turns, which take as long as PATIENCE.
#pragma unroll 1
  for (int i = 0; i < STAGES; i++) copy_sixteen(p, slot, head, step + i * WARPS, end, low, position, there(stage + i * STAGE));
  twice(real) {
    __syncthreads();
    if (real) {
      WAIT();
      load_new(p, head, split == 0, fresh);
    }
    __syncthreads();
    turn_queries(fresh, p.scale, turned, &q[0][0]);
    if (real && split == 0) append_one(p, head, slot, position, fresh + QUERIES, turned, key, value);
    __syncthreads();
    const i64 last = real ? end : min(end, step + 1);
    if (step < end) {
      attend_steps(p, slot, head, step, last, low, position, stage, &q[0][0], real ? (share *)stage : &spare);
    } else if (real && lane < GROUP) {
      ((share *)stage)->most[lane] = -RUNG_INF;
    }
    if (split == 0)
      for (int h = warp; h < GROUP; h += WARPS) {
        float s = 0;
        for (int d = lane; d < KEY_DIM; d += 32) s = fmaf(q[h][d], key[d], s);
        s = capped(warp_sum(s), p.soft_cap);
        if (lane == 0) {
          own_most[h] = s;
          own_total[h] = 1;
        }
      }
    else if (thread < GROUP)
      own_most[thread] = -RUNG_INF;
    __syncthreads();
    const int h = min(thread * 8 / VALUE_DIM, GROUP - 1), d = thread * 8 % VALUE_DIM;
    float largest = -RUNG_INF, total = 0, v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    add_warps(memory, own_most, own_total, value, h, d, v, &largest, &total);
    if (splits > 1) {
      if (real && thread * 8 < QUERY_VALUES) {
        float *to = p.partial + ((i64)(head * SPLITS + split) * GROUP + h) * (VALUE_DIM + 8);
        *(float4 *)(to + d) = make_float4(v[0], v[1], v[2], v[3]);
        *(float4 *)(to + d + 4) = make_float4(v[4], v[5], v[6], v[7]);
        if (d == 0) *(float2 *)(to + VALUE_DIM) = make_float2(largest, total);
      }
      __syncthreads();
      if (thread == 0) is_last = !real || count_up(p.counter + head) == SPLITS - 1;
      __syncthreads();
      if (!is_last) return;
      // All threads have a part of the sum; a block of 32 is quantised by four.
      float *all = real ? (float *)memory : &spare.sum[0][0];
      for (int i = thread; i < QUERY_VALUES / 4; i += 32 * WARPS)
        ((float4 *)all)[i] = sum_splits(p.partial, head, i * 4 / VALUE_DIM, i * 4 % VALUE_DIM);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = all[h * VALUE_DIM + d + i];
    } else {
      const float inverse = 1.0f / total;
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] *= inverse;
    }
    put_eight(p, head * GROUP + h, d, v, real && thread * 8 < QUERY_VALUES);
  }
}
