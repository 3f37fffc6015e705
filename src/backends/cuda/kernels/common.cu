// SPDX-License-Identifier: MIT
// What every unit begins with: types, conversions, operands, reductions, launching one behind another.
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
#define RUNG_INF __int_as_float(0x7f800000)
#define RUNG_NAN __int_as_float(0x7fffffff)

enum { T_F32, T_F16, T_BF16, T_F64, T_I8, T_I16, T_I32, T_I64, T_U8, T_U16, T_U32, T_U64, T_BOOL };

// A kernel may begin before the one in front of it ends. Until WAIT it may read only weights, inputs of the run, and old keys and values; GO lets the next begin.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define GO() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#else
#define WAIT()
#define GO()
#endif

// A block begins when those of the kernel before last are gone, which is when the blocks of the kernel in front load what
// they have waited for. Copies that need not wait would be in the way of those loads: they begin so many clocks later.
#define PATIENCE 1000
__device__ __forceinline__ void hold_back(u32 clocks) {
  const u32 begun = (u32)clock();
  while ((u32)clock() - begun < clocks) {}
}
// Code that runs once comes from far, line by line, and takes several times as long as its instructions. While a block
// waits it may as well run it with whatever numbers there are: twice(real) { .. } does all in it for nothing first, with
// real 0, where nothing may be loaded that others are writing, nor stored where others read.
#define twice(real) _Pragma("unroll 1") for (int pass_ = 0, real; real = opaque(pass_), pass_ < 2; pass_++)
__device__ __forceinline__ int opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// An address in the block's shared memory, as copies take it.
__device__ __forceinline__ u32 there(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// What a pair of channels is turned by; the angle is brought into one turn while it is a double.
__device__ __forceinline__ float2 turned_by(double angle, float magnitude) {
  float sine, cosine;
  angle *= 0.31830988618379067154; // in half turns
  sincospif((float)(angle - 2 * rint(0.5 * angle)), &sine, &cosine);
  return make_float2(cosine * magnitude, sine * magnitude);
}

// ---- half floats
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
__device__ __forceinline__ float half_bits(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
__device__ __forceinline__ u16 to_half_bits(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
__device__ __forceinline__ float brain_bits(u16 b) { return __uint_as_float((u32)b << 16); }
__device__ __forceinline__ u16 to_brain_bits(float f) {
  const u32 u = __float_as_uint(f);
  if ((u & 0x7fffffff) > 0x7f800000) return (u16)((u >> 16) | 64);
  return (u16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
__device__ __forceinline__ u32 pack_half(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ float limited(float v) { return v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v; }
// Two numbers as halves, and what that left out; with `narrow` that is dropped.
template <bool narrow> __device__ __forceinline__ u32 halves_of(float a, float b, u32 *rest) {
  const u32 h = pack_half(a, b);
  *rest = narrow ? 0 : pack_half(a - half_bits((u16)h), b - half_bits((u16)(h >> 16)));
  return h;
}
// The same of numbers that may be beyond what halves hold: a score of -3e38 is no NaN, but far enough below.
template <bool narrow> __device__ __forceinline__ u32 limited_halves(float a, float b, u32 *rest) {
  const u32 h = pack_half(limited(a), limited(b));
  *rest = narrow ? 0 : pack_half(limited(a - half_bits((u16)h)), limited(b - half_bits((u16)(h >> 16))));
  return h;
}
// From double in one rounding, as the reference does.
__device__ __forceinline__ u16 half_of_double(double d) {
  u16 h;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(d));
  return h;
}
__device__ __forceinline__ u16 brain_of_double(double d) {
  // To odd first, so that the second rounding sees what the first one dropped.
  float f = __double2float_rz(d);
  if ((double)f != d) f = __uint_as_float(__float_as_uint(f) | 1);
  return to_brain_bits(f);
}

// ---- one element, by a type that is known when the unit is compiled
__device__ __forceinline__ float get_float(const float *p) { return *p; }
__device__ __forceinline__ float get_float(const f16 *p) { return half_bits(p->bits); }
__device__ __forceinline__ float get_float(const bf16 *p) { return brain_bits(p->bits); }
__device__ __forceinline__ void put_float(float *p, float v) { *p = v; }
__device__ __forceinline__ void put_float(f16 *p, float v) { p->bits = to_half_bits(v); }
__device__ __forceinline__ void put_float(bf16 *p, float v) { p->bits = to_brain_bits(v); }
__device__ __forceinline__ float round_to(float v, const float *) { return v; }
__device__ __forceinline__ float round_to(float v, const f16 *) { return half_bits(to_half_bits(v)); }
__device__ __forceinline__ float round_to(float v, const bf16 *) { return brain_bits(to_brain_bits(v)); }

// ---- one element, by a type that is known when the kernel runs
__device__ __forceinline__ float load_float(const void *p, int type, i64 i) {
  switch (type) {
    case T_F32: return ((const float *)p)[i];
    case T_F16: return half_bits(((const u16 *)p)[i]);
    case T_BF16: return brain_bits(((const u16 *)p)[i]);
    default: return (float)((const double *)p)[i];
  }
}
__device__ __forceinline__ void store_float(void *p, int type, i64 i, float v) {
  switch (type) {
    case T_F32: ((float *)p)[i] = v; break;
    case T_F16: ((u16 *)p)[i] = to_half_bits(v); break;
    case T_BF16: ((u16 *)p)[i] = to_brain_bits(v); break;
    default: ((double *)p)[i] = (double)v; break;
  }
}
__device__ __forceinline__ bool is_float(int type) { return type <= T_F64; }
__device__ __forceinline__ int bytes_of(int type) {
  switch (type) {
    case T_F64: case T_I64: case T_U64: return 8;
    case T_F32: case T_I32: case T_U32: return 4;
    case T_F16: case T_BF16: case T_I16: case T_U16: return 2;
    default: return 1;
  }
}
__device__ __forceinline__ double load_double(const void *p, int type, i64 i) {
  switch (type) {
    case T_F64: return ((const double *)p)[i];
    case T_I8: return ((const i8 *)p)[i];
    case T_I16: return ((const i16 *)p)[i];
    case T_I32: return ((const i32 *)p)[i];
    case T_I64: return (double)((const i64 *)p)[i];
    case T_U8: case T_BOOL: return ((const u8 *)p)[i];
    case T_U16: return ((const u16 *)p)[i];
    case T_U32: return ((const u32 *)p)[i];
    case T_U64: return (double)((const u64 *)p)[i];
    default: return (double)load_float(p, type, i);
  }
}
__device__ __forceinline__ void store_double(void *p, int type, i64 i, double v) {
  switch (type) {
    case T_F32: ((float *)p)[i] = (float)v; break;
    case T_F16: ((u16 *)p)[i] = half_of_double(v); break;
    case T_BF16: ((u16 *)p)[i] = brain_of_double(v); break;
    default: ((double *)p)[i] = v; break;
  }
}
__device__ __forceinline__ i64 load_int(const void *p, int type, i64 i) {
  switch (type) {
    case T_I8: return ((const i8 *)p)[i];
    case T_I16: return ((const i16 *)p)[i];
    case T_I32: return ((const i32 *)p)[i];
    case T_I64: return ((const i64 *)p)[i];
    case T_U8: case T_BOOL: return ((const u8 *)p)[i];
    case T_U16: return ((const u16 *)p)[i];
    case T_U32: return ((const u32 *)p)[i];
    default: return (i64)((const u64 *)p)[i];
  }
}
__device__ __forceinline__ void store_int(void *p, int type, i64 i, i64 v) {
  switch (bytes_of(type)) {
    case 1: ((u8 *)p)[i] = (u8)v; break;
    case 2: ((u16 *)p)[i] = (u16)v; break;
    case 4: ((u32 *)p)[i] = (u32)v; break;
    default: ((u64 *)p)[i] = (u64)v; break;
  }
}
// The bits of one element.
__device__ __forceinline__ void move_bits(void *to, i64 o, const void *from, i64 i, int bytes) {
  switch (bytes) {
    case 1: ((u8 *)to)[o] = ((const u8 *)from)[i]; break;
    case 2: ((u16 *)to)[o] = ((const u16 *)from)[i]; break;
    case 4: ((u32 *)to)[o] = ((const u32 *)from)[i]; break;
    default: ((u64 *)to)[o] = ((const u64 *)from)[i]; break;
  }
}

// ---- operands
struct operand {
  u8 *base;
  i64 extent[8], stride[8];
  i32 rank, type;
};
__device__ __forceinline__ i64 count_of(const operand &o) {
  i64 n = 1;
  for (int a = 0; a < o.rank; a++) n *= o.extent[a];
  return n;
}
// Where element i in row-major order lies, in elements.
__device__ __forceinline__ i64 offset_of(const operand &o, i64 i) {
  i64 offset = 0;
  for (int a = o.rank - 1; a >= 0; a--) {
    const i64 n = o.extent[a], q = i / n;
    offset += (i - q * n) * o.stride[a];
    i = q;
  }
  return offset;
}
// The sequence that a row belongs to: the last that begins at or before it. One sequence needs no search, and no load
// that waits for another.
__device__ __forceinline__ i64 sequence_of(const u8 *offsets, int type, i64 sequences, i64 row) {
  if (sequences == 1) return 0;
  i64 low = 0, high = sequences;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (load_int(offsets, type, middle + 1) <= row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
struct kv_state {
  u8 *base;
  const u32 *table;
  i64 block_bytes, layer_offset, window, capacity;
  i32 type, kv_heads, key_dim, value_dim, ring, slots;
};
__device__ __forceinline__ u8 *kv_block(const kv_state &kv, i64 slot, i64 block) {
  const i64 entry = slot * kv.ring + (block < kv.ring ? block : (u32)block % (u32)kv.ring); // blocks are counted in 32 bits
  const i64 b = kv.table ? (i64)kv.table[entry] : entry;
  return kv.base + b * kv.block_bytes + kv.layer_offset;
}

// ---- refusing
enum { REFUSES_INDEX = 1, REFUSES_ROWS, REFUSES_COUNT, REFUSES_OFFSETS }; // RUNG_CUDA_REFUSES_* (device.h)
struct refusal {
  i32 set, kind;
  i64 value, limit;
};
__device__ __forceinline__ void refuse(refusal *r, int kind, i64 value, i64 limit) {
  if (atomicCAS(&r->set, 0, 1)) return;
  r->kind = kind;
  r->value = value;
  r->limit = limit;
}

// ---- sums over a warp and a block, in one order
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
// All threads get the result. `shared` holds 32 floats; a barrier is behind the last use.
__device__ __forceinline__ float block_sum(float v, float *shared) {
  v = warp_sum(v);
  const int warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = v;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  return warp_sum(lane < warps ? shared[lane] : 0.0f);
}
__device__ __forceinline__ float nan_max(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float block_max(float v, float *shared) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = nan_max(v, __shfl_xor_sync(~0u, v, o));
  const int warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = v;
  __syncthreads();
  float m = shared[0];
  for (int i = 1; i < warps; i++) m = nan_max(m, shared[i]);
  return m;
}

// Activations quantised per 32 elements (rung_a8).
struct a8_block {
  i8 q[32];
  float scale;
  i16 sum_low, sum_high;
};
// The 32 lanes of a warp hold one block (rung_a8).
__device__ __forceinline__ void quantize(float x, a8_block *out) {
  const int lane = threadIdx.x & 31;
  const bool nan = x != x;
  float largest = warp_max(nan ? 0.0f : fabsf(x));
  if (__any_sync(~0u, nan)) largest = RUNG_NAN;
  float scale = largest / 127.0f;
  if (scale < 1.17549435e-38f) scale = 0;
  int q = 0;
  const bool usable = scale > 0 && scale <= 3.402823466e+38f;
  if (usable) {
    const float level = rintf(x * (1.0f / scale));
    q = (int)(level > 127 ? 127.0f : level < -127 ? -127.0f : level);
  }
  int sum = q;
#pragma unroll
  for (int o = 8; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  out->q[lane] = (i8)q;
  if (lane == 0) {
    out->scale = scale;
    out->sum_low = (i16)sum;
  }
  if (lane == 16) out->sum_high = (i16)sum;
}
// The levels of eight numbers of a block that four lanes have, and its scale. Whole warps call it.
__device__ __forceinline__ void levels_of_eight(const float *v, float *scale, int *q) {
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
  *scale = largest / 127.0f;
  if (*scale < 1.17549435e-38f) *scale = 0;
  const bool usable = *scale > 0 && *scale <= 3.402823466e+38f;
  const float inverse = usable ? 1.0f / *scale : 0.0f;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float level = rintf(v[i] * inverse);
    q[i] = usable ? (int)(level > 127 ? 127.0f : level < -127 ? -127.0f : level) : 0;
  }
}
// A block by four lanes, each with eight neighbours, the group'th eight of the row.
__device__ __forceinline__ void quantize_eight(const float *v, a8_block *row, int group, bool there) {
  float scale;
  int q[8], sum = 0;
  u32 word[2] = {0, 0};
  levels_of_eight(v, &scale, q);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    sum += q[i];
    word[i >> 2] |= (u32)(q[i] & 255) << 8 * (i & 3);
  }
  sum += __shfl_xor_sync(~0u, sum, 1); // of 16
  if (!there) return;
  a8_block *out = row + group / 4;
  *(uint2 *)(out->q + 8 * (group & 3)) = make_uint2(word[0], word[1]);
  if ((group & 3) == 0) {
    out->scale = scale;
    out->sum_low = (i16)sum;
  }
  if ((group & 3) == 2) out->sum_high = (i16)sum;
}
