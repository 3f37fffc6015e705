// SPDX-License-Identifier: MIT
// One row of one sequence: turns the query and the new key, writes key and value into the state, and attends. In front
// stand the defines of attend.cu and of the rope (DIMS, HALF, MAGNITUDE, turns), and NARROW: queries and weights of keys
// may be rounded to f16; else they are cut in two halves, each multiplied. And WARPS and STAGES, see below.
//
// SPLITS blocks share the keys of a key/value head, in steps of 16; up to `alone` keys one of them has all, beyond the
// last to be done adds up what all have. They are no cluster: clusters leave processors without a block, and then two
// blocks of the kernel behind gather on those. The types of operands are written in front: q_number .. past_number.
//
// Products m16n8k16 have 16 keys, then 16 channels of values, as rows and the query heads as columns, of which there are
// few: so a warp keeps all sums of a head's channels in 32 registers. Old keys are not waited for: earlier runs wrote them,
// so they are copied to shared memory while the kernel in front still runs, STAGES steps of each warp: with 16 splits those
// of 3,000 keys. The new one comes in by itself at the end, like one more warp's share. What stands behind WAIT is one chain
// of latencies and as short as could be: instructions count, not bytes.
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
#ifndef SPLITS
#define SPLITS 16
#endif
#define KEY_TILES (KEY_DIM / 16)
#define VALUE_TILES (VALUE_DIM / 16)
#define QUERY_VALUES (GROUP * VALUE_DIM)
#define LOG2E 1.4426950408889634f

// A warp's places in shared memory: 16 keys, 16 values. Rows are an odd number of 16 bytes apart, so that eight of them,
// which are read together, lie in different banks.
#define KEY_ROW (KEY_DIM * 2 + 16)
#define VALUE_ROW (VALUE_DIM * 2 + 16)
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
__device__ __forceinline__ void product_f16(float *c, const u32 *a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Four squares of 8 by 8 halves, each lane giving a row of one; a lane gets neighbours 2t and 2t + 1 of row g of each.
__device__ __forceinline__ void load_squares(u32 *v, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(row)
               : "memory");
}
// The same with rows and columns exchanged.
__device__ __forceinline__ void load_turned(u32 *v, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ u32 turn_square(u32 v) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
  return r;
}
__device__ __forceinline__ float capped(float s, float cap) { return CAPPED ? cap * tanhf(s / cap) : s; }

struct share {
  float sum[GROUP][VALUE_DIM], most[GROUP], total[GROUP];
};
// Scaled queries, and as halves: rows an odd number of 16 bytes apart, those from GROUP on zero.
#define QUERY_ROW (KEY_DIM + 8)
struct queries {
  u16 high[8][QUERY_ROW];
#if !NARROW
  u16 rest[8][QUERY_ROW];
#endif
  float f[GROUP][KEY_DIM];
};
__device__ __forceinline__ void clear_queries(queries *q) {
  u32 *words = (u32 *)q->high;
  for (int i = threadIdx.x; i < 4 * QUERY_ROW * (NARROW ? 1 : 2); i += 32 * WARPS) words[i] = 0;
}
__device__ __forceinline__ void keep_query(queries *q, int h, int d, float v) {
  const u16 high = to_half_bits(limited(v));
  q->f[h][d] = v;
  q->high[h][d] = high;
#if !NARROW
  q->rest[h][d] = to_half_bits(limited(v - half_bits(high)));
#endif
}
// The halves of query g, as the products' columns have them.
__device__ __forceinline__ void take_queries(const u16 *rows, u32 (*out)[2]) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int i = 0; i < KEY_TILES / 2; i++) load_squares(out[2 * i], there(rows) + (lane & 7) * QUERY_ROW * 2 + lane / 8 * 16 + 64 * i);
}

// The keys of steps [from, end) that this warp has, every WARPS-th; STAGES of them are on their way. The share is left in
// the warp's first place, where all that was copied has been read by then; elsewhere: for nothing, and no copies follow.
__device__ __forceinline__ void attend_steps(const attend_one_params &p, i64 slot, int head, i64 step, i64 end, i64 low,
                                             i64 position, const u8 *stage, const queries *q, share *out) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  u32 high[KEY_TILES][2];
  take_queries(q->high[0], high);
#if !NARROW
  u32 rest[KEY_TILES][2];
  take_queries(q->rest[0], rest);
#endif
  // Of channels 16 j + g and 8 on; queries 2t and 2t + 1 of each.
  float acc[VALUE_TILES][4], most[2] = {-1e30f, -1e30f}, total[2] = {0, 0};
#pragma unroll
  for (int j = 0; j < VALUE_TILES; j++) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
  const u32 keys = there(stage) + (lane & 15) * KEY_ROW + lane / 16 * 16,
            values = there(stage) + 16 * KEY_ROW + ((lane & 7) + lane / 16 * 8) * VALUE_ROW + (lane & 8) * 2;
  int at = 0;
  for (; step < end; step += WARPS) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncwarp();
    float c[2][4] = {};
#pragma unroll
    for (int i = 0; i < KEY_TILES; i++) {
      u32 k[4];
      load_squares(k, keys + at * STAGE + 32 * i);
      product_f16(c[i & 1], k, high[i][0], high[i][1]);
#if !NARROW
      product_f16(c[i & 1], k, rest[i][0], rest[i][1]);
#endif
    }
    float s[4], before[2]; // of keys g and, from 2 on, 8 more
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const i64 key = step * 16 + g + e / 2 * 8;
      s[e] = key >= low && key < position ? capped(c[0][e] + c[1][e], p.soft_cap) : -1e30f;
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      float largest = fmaxf(s[e], s[e + 2]);
#pragma unroll
      for (int o = 4; o < 32; o *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
      largest = fmaxf(largest, most[e]);
      before[e] = exp2f((most[e] - largest) * LOG2E);
      most[e] = largest;
      s[e] = exp2f((s[e] - largest) * LOG2E);
      s[e + 2] = exp2f((s[e + 2] - largest) * LOG2E);
      total[e] = total[e] * before[e] + (s[e] + s[e + 2]);
    }
    u32 r0, r1;
    const u32 w0 = turn_square(halves_of<NARROW>(s[0], s[1], &r0)), w1 = turn_square(halves_of<NARROW>(s[2], s[3], &r1));
    if (!NARROW) r0 = turn_square(r0), r1 = turn_square(r1);
#pragma unroll
    for (int j = 0; j < VALUE_TILES; j++) {
      u32 v[4];
      load_turned(v, values + at * STAGE + 32 * j);
#pragma unroll
      for (int e = 0; e < 4; e++) acc[j][e] *= before[e & 1];
      product_f16(acc[j], v, w0, w1);
      if (!NARROW) product_f16(acc[j], v, r0, r1);
    }
    __syncwarp();
    if (out == (share *)stage) copy_sixteen(p, slot, head, step + STAGES * WARPS, end, low, position, there(stage + at * STAGE));
    if (++at == STAGES) at = 0;
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
#pragma unroll
    for (int o = 4; o < 32; o *= 2) total[e] += __shfl_xor_sync(~0u, total[e], o);
    const int h = 2 * t + e;
    if (h >= GROUP) continue;
    if (g == 0) {
      out->most[h] = most[e];
      out->total[h] = total[e];
    }
#pragma unroll
    for (int j = 0; j < VALUE_TILES; j++) {
      out->sum[h][16 * j + g] = acc[j][e];
      out->sum[h][16 * j + g + 8] = acc[j][e + 2];
    }
  }
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

// What the kernel in front has made of this head: pairs of numbers of its queries, the new key and the new value. What is
// not turned is one number, twice.
#define UNITS (KEY_DIM - DIMS / 2)
#define PAIRS ((GROUP + 1) * UNITS + VALUE_DIM / 2)
struct pair {
  int h, turn, d0, d1; // h: of a query; GROUP the key, GROUP + 1 the value. turn: -1: not turned
};
__device__ __forceinline__ pair pair_at(int i) {
  pair m;
  m.h = min(i / UNITS, GROUP + 1);
  const int u = i - m.h * UNITS;
  const bool whole = m.h <= GROUP && u >= DIMS / 2;
  m.turn = m.h <= GROUP && u < DIMS / 2 ? u : -1;
  m.d0 = whole ? u + DIMS / 2 : HALF && m.h <= GROUP ? u : 2 * u;
  m.d1 = whole ? u + DIMS / 2 : HALF && m.h <= GROUP ? u + DIMS / 2 : 2 * u + 1;
  return m;
}
// The place of the new key and value in the state, and as this run reads them.
struct fresh_row {
  u16 *keys, *values;
  float *key, *value;
};
__device__ __forceinline__ void take_new(const attend_one_params &p, int head, int pairs, const fresh_row &to, const float2 *turned,
                                         queries *q) {
  enum { ROUNDS = (PAIRS + 32 * WARPS - 1) / (32 * WARPS) };
  float a[ROUNDS], b[ROUNDS];
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int i = r * 32 * WARPS + (int)threadIdx.x;
    const pair m = pair_at(i);
    a[r] = b[r] = 0;
    if (i >= pairs) continue;
    if (m.h < GROUP) {
      const q_number *from = (const q_number *)p.q + (head * GROUP + m.h) * p.q_step;
      a[r] = get_float(from + m.d0), b[r] = get_float(from + m.d1);
    } else if (m.h == GROUP) {
      const k_number *from = (const k_number *)p.k + head * p.k_step;
      a[r] = get_float(from + m.d0), b[r] = get_float(from + m.d1);
    } else {
      const v_number *from = (const v_number *)p.v + head * p.v_step;
      a[r] = get_float(from + m.d0), b[r] = get_float(from + m.d1);
    }
  }
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int i = r * 32 * WARPS + (int)threadIdx.x;
    const pair m = pair_at(i);
    float x = a[r], y = b[r];
    if (m.turn >= 0) {
      const float2 by = turned[m.turn];
      x = a[r] * by.x - b[r] * by.y;
      y = a[r] * by.y + b[r] * by.x;
    }
    if (i >= pairs) continue;
    if (m.h < GROUP) {
      keep_query(q, m.h, m.d0, x * p.scale);
      keep_query(q, m.h, m.d1, y * p.scale);
    } else {
      const u16 first = to_half_bits(x), second = to_half_bits(y);
      u16 *there = m.h == GROUP ? to.keys : to.values;
      float *here = m.h == GROUP ? to.key : to.value;
      there[m.d0] = first, there[m.d1] = second;
      here[m.d0] = half_bits(first), here[m.d1] = half_bits(second);
    }
  }
}
// The new key's score for each query; a block's last warps have the fewest steps.
__device__ __forceinline__ void score_own(const attend_one_params &p, const queries *q, const float *key, float *own_most) {
  const int lane = threadIdx.x & 31;
  for (int h = WARPS - 1 - (int)(threadIdx.x >> 5); h < GROUP; h += WARPS) {
    float s = 0;
#pragma unroll
    for (int d = lane; d < KEY_DIM; d += 32) s = fmaf(q->f[h][d], key[d], s);
    s = capped(warp_sum(s), p.soft_cap);
    if (lane == 0) own_most[h] = s;
  }
}
// A block's sum for eight numbers of a head: the shares of its first warps in order, then the new key's, if it is there.
__device__ __forceinline__ void add_warps(const u8 *memory, int warps, const float *own_most, const float *value, int h, int d,
                                          float *v, float *largest, float *total) {
  *largest = own_most[h];
#pragma unroll
  for (int w = 0; w < WARPS; w++)
    if (w < warps) *largest = nan_max(((const share *)(memory + w * STAGES * STAGE))->most[h], *largest);
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w >= warps) break;
    const share *of = (const share *)(memory + w * STAGES * STAGE);
    const float f = exp2f((of->most[h] - *largest) * LOG2E);
    *total = fmaf(f, of->total[h], *total);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fmaf(f, of->sum[h][d + i], v[i]);
  }
  if (own_most[h] == -RUNG_INF) return;
  const float f = exp2f((own_most[h] - *largest) * LOG2E);
  *total += f;
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = fmaf(f, value[d + i], v[i]);
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
    const float f = exp2f((of[s].x - largest) * LOG2E); // 0 for a share without keys, which is all zeros
    total = fmaf(f, of[s].y, total);
    sum.x = fmaf(f, part[s].x, sum.x), sum.y = fmaf(f, part[s].y, sum.y);
    sum.z = fmaf(f, part[s].z, sum.z), sum.w = fmaf(f, part[s].w, sum.w);
  }
  const float inverse = 1.0f / total;
  return make_float4(sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse);
}
// Which steps of 16 keys a row at `position` has, and how blocks share them.
struct steps_of_row {
  i64 low, base, steps, each; // the first key; steps
  int splits;
};
__device__ __forceinline__ steps_of_row steps_at(const attend_one_params &p, i64 position) {
  steps_of_row s;
  s.low = p.window && position >= p.window ? position - p.window + 1 : 0;
  s.base = s.low / 16;
  s.steps = position > s.low ? (position - 1) / 16 - s.base + 1 : 0;
  s.splits = s.steps <= p.alone / 16 ? 1 : SPLITS;
  s.each = s.splits == 1 ? s.steps : (s.steps + SPLITS - 1) / SPLITS;
  return s;
}
__device__ __forceinline__ fresh_row fresh_at(const attend_one_params &p, int head, i64 slot, i64 position, float *key, float *value) {
  u16 *block = (u16 *)kv_block(p.kv, slot, position / 64);
  const i64 row = head * 64 + position % 64;
  return {block + row * KEY_DIM, block + KV_HEADS * 64 * KEY_DIM + row * VALUE_DIM, key, value};
}
// What the block wrote is there for whoever finds the counter raised, and the other way round.
__device__ __forceinline__ u32 count_up(u32 *counter) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "n"(SPLITS - 1) : "memory");
  return before;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) attend_one(const __grid_constant__ attend_one_params p) {
  extern __shared__ __align__(128) u8 memory[]; // of each warp STAGES places; its share comes into the first
  __shared__ __align__(16) share spare;         // for the run for nothing
  __shared__ __align__(16) queries q;
  __shared__ float own_most[GROUP], key[KEY_DIM], value[VALUE_DIM]; // of the new key
  __shared__ float2 turned[DIMS / 2];
  __shared__ int is_last;
  const int thread = threadIdx.x, warp = thread >> 5, head = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
  GO();
  const i64 slot = *(const slot_number *)p.slot, position = *(const past_number *)p.past;
  if (slot < 0 || slot >= p.kv.slots || position < 0 || position >= p.kv.capacity) {
    if (thread == 0)
      refuse(p.refused, REFUSES_ROWS, slot < 0 || slot >= p.kv.slots ? slot : position,
             slot < 0 || slot >= p.kv.slots ? p.kv.slots : p.kv.capacity);
    WAIT(); // for the kernels behind, which wait for this one only
    return;
  }
  const steps_of_row s = steps_at(p, position);
  // A block without work waits all the same: were it gone, two blocks of the kernel behind could come to one processor
  // in its place, and others would have none.
  if (head >= KV_HEADS || split >= s.splits) {
    WAIT();
    return;
  }
  const i64 first = s.base + split * s.each, end = min(first + s.each, s.base + s.steps), step = first + warp;
  const int sharing = (int)max(min(end - first, (i64)WARPS), (i64)0); // warps that have keys
  u8 *stage = memory + warp * STAGES * STAGE;
  clear_queries(&q);
  for (int u = thread; u < DIMS / 2; u += 32 * WARPS) {
    double angle = (double)position * turns[u];
#if FACTORS
    angle /= (double)get_float((const factor_number *)p.factors + u * p.factor_step);
#endif
    turned[u] = turned_by(angle, MAGNITUDE);
  }
  // Behind the turns, which take as long as PATIENCE.
#pragma unroll 1
  for (int i = 0; i < STAGES; i++) copy_sixteen(p, slot, head, step + i * WARPS, end, s.low, position, there(stage + i * STAGE));
  const fresh_row fresh = fresh_at(p, head, slot, position, key, value);
  twice(real) {
    __syncthreads();
    if (real) WAIT();
    take_new(p, head, !real ? 0 : split == 0 ? PAIRS : GROUP * UNITS, fresh, turned, &q);
    __syncthreads();
    if (step < end)
      attend_steps(p, slot, head, step, real ? end : step + 1, s.low, position, stage, &q, real ? (share *)stage : &spare);
    if (split == 0)
      score_own(p, &q, key, own_most);
    else if (thread < GROUP)
      own_most[thread] = -RUNG_INF;
    __syncthreads();
    const int h = min(thread * 8 / VALUE_DIM, GROUP - 1), d = thread * 8 % VALUE_DIM;
    float largest, total = 0, v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    add_warps(memory, sharing, own_most, value, h, d, v, &largest, &total);
    if (s.splits > 1) {
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
