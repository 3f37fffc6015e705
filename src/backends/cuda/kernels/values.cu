// SPDX-License-Identifier: MIT
// The vocabulary of the rows of unary.def, binary.def and ternary.def, for float, double and 64-bit integers.
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define ABS(a) fabs(a)
#define SIGN(a) sign_of(a)
#define SQRT(a) sqrt(a)
#define POW(a, b) pow(a, b)
#define FMOD(a, b) fmod(a, b)
#define CEIL(a) ceil(a)
#define FLOOR(a) floor(a)
#define ROUND(a) rint(a)
#define TRUNC(a) trunc(a)
#define EXP(a) exp(a)
#define EXPM1(a) expm1(a)
#define LOG(a) log(a)
#define LOG1P(a) log1p(a)
#define ERF(a) erf(a)
#define SIN(a) sin(a)
#define COS(a) cos(a)
#define TAN(a) tan(a)
#define ASIN(a) asin(a)
#define ACOS(a) acos(a)
#define ATAN(a) atan(a)
#define ATAN2(a, b) atan2(a, b)
#define SINH(a) sinh(a)
#define COSH(a) cosh(a)
#define TANH(a) tanh(a)
#define ASINH(a) asinh(a)
#define ACOSH(a) acosh(a)
#define ATANH(a) atanh(a)
#define MIN(a, b) smaller_of((T)(a), (T)(b))
#define MAX(a, b) larger_of((T)(a), (T)(b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define ISNAN(a) ((a) != (a))
#define ISINF(a) (fabs(a) == (T)RUNG_INF)
#define AND(m, n) ((m) && (n))
#define SELECT(m, b, c) ((m) != 0 ? (T)(b) : (T)(c))
#define K(c) ((T)(c))
#define IADD(a, b) ((T)((u64)(a) + (u64)(b)))
#define ISUB(a, b) ((T)((u64)(a) - (u64)(b)))
#define IMUL(a, b) ((T)((u64)(a) * (u64)(b)))
#define INEG(a) ((T)(0 - (u64)(a)))
#define IABS(a) int_abs(a)
#define ISIGN(a) int_sign(a)
#define IMIN(a, b) ((T)(a) < (T)(b) ? (T)(a) : (T)(b))
#define IMAX(a, b) ((T)(a) > (T)(b) ? (T)(a) : (T)(b))
#define IPOW(a, b) int_pow(a, b)
#define IDIV(a, b) int_div(a, b)
#define IREM(a, b) int_rem(a, b)
#define IMOD(a, b) int_mod(a, b)
#define IAND(a, b) ((a) & (b))
#define IOR(a, b) ((a) | (b))
#define IXOR(a, b) ((a) ^ (b))
#define IINVERT(a) (~(a))
#define INOT(a) ((a) == 0)
#define ISHL(a, b) int_shl(a, b)
#define ISHR(a, b) int_shr(a, b)
#define IEQ(a, b) ((a) == (b))
#define INE(a, b) ((a) != (b))
#define ILT(a, b) ((a) < (b))
#define ILE(a, b) ((a) <= (b))
#define IGT(a, b) ((a) > (b))
#define IGE(a, b) ((a) >= (b))
#define ISELECT(m, b, c) ((m) ? (T)(b) : (T)(c))
#define IPRELU(a, b) int_prelu(a, b)

template <class F> __device__ __forceinline__ F larger_of(F a, F b) { return a > b || a != a ? a : b; }
template <class F> __device__ __forceinline__ F smaller_of(F a, F b) { return a < b || a != a ? a : b; }
template <class F> __device__ __forceinline__ F sign_of(F x) { return x > 0 ? (F)1 : x < 0 ? (F)-1 : x; }

__device__ __forceinline__ i64 int_abs(i64 a) { return a < 0 ? (i64)(0 - (u64)a) : a; }
__device__ __forceinline__ u64 int_abs(u64 a) { return a; }
__device__ __forceinline__ i64 int_sign(i64 a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
__device__ __forceinline__ u64 int_sign(u64 a) { return a > 0; }
__device__ __forceinline__ i64 int_div(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b; }
__device__ __forceinline__ u64 int_div(u64 a, u64 b) { return b ? a / b : 0; }
__device__ __forceinline__ i64 int_rem(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ __forceinline__ u64 int_rem(u64 a, u64 b) { return b ? a % b : 0; }
__device__ __forceinline__ i64 int_mod(i64 a, i64 b) {
  const i64 rest = int_rem(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ __forceinline__ u64 int_mod(u64 a, u64 b) { return int_rem(a, b); }
__device__ __forceinline__ u64 int_pow(u64 a, u64 b) {
  u64 result = 1;
  for (; b; b >>= 1, a *= a)
    if (b & 1) result *= a;
  return result;
}
__device__ __forceinline__ i64 int_pow(i64 a, i64 b) {
  if (b >= 0) return (i64)int_pow((u64)a, (u64)b);
  return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
}
__device__ __forceinline__ i64 int_shl(i64 a, i64 b) { return b < 0 || b > 63 ? 0 : (i64)((u64)a << b); }
__device__ __forceinline__ u64 int_shl(u64 a, u64 b) { return b > 63 ? 0 : a << b; }
__device__ __forceinline__ i64 int_shr(i64 a, i64 b) {
  if (b < 0 || b > 63) return a < 0 ? -1 : 0;
  return a >> b;
}
__device__ __forceinline__ u64 int_shr(u64 a, u64 b) { return b > 63 ? 0 : a >> b; }
__device__ __forceinline__ i64 int_prelu(i64 a, i64 b) { return a < 0 ? (i64)((u64)a * (u64)b) : a; }
__device__ __forceinline__ u64 int_prelu(u64 a, u64) { return a; }

// ---- casts
__device__ __forceinline__ float cast_float(float v, const float *) { return v; }
__device__ __forceinline__ float cast_float(float v, const f16 *) { return half_bits(to_half_bits(v)); }
__device__ __forceinline__ float cast_float(float v, const bf16 *) { return brain_bits(to_brain_bits(v)); }
__device__ __forceinline__ float cast_float(double v, const float *) { return (float)v; }
__device__ __forceinline__ float cast_float(double v, const f16 *) { return half_bits(half_of_double(v)); }
__device__ __forceinline__ float cast_float(double v, const bf16 *) { return brain_bits(brain_of_double(v)); }
__device__ __forceinline__ float cast_float(i64 v, const float *) { return (float)v; }
__device__ __forceinline__ float cast_float(u64 v, const float *) { return (float)v; }
template <class H> __device__ __forceinline__ float cast_float(i64 v, const H *h) { return cast_float((double)v, h); }
template <class H> __device__ __forceinline__ float cast_float(u64 v, const H *h) { return cast_float((double)v, h); }

// Truncated and limited to what the type holds; NaN gives 0.
template <class I> struct limits;
template <> struct limits<i8> { static constexpr double low = -128.0, high = 127.0; };
template <> struct limits<i16> { static constexpr double low = -32768.0, high = 32767.0; };
template <> struct limits<i32> { static constexpr double low = -2147483648.0, high = 2147483647.0; };
template <> struct limits<u8> { static constexpr double low = 0.0, high = 255.0; };
template <> struct limits<u16> { static constexpr double low = 0.0, high = 65535.0; };
template <> struct limits<u32> { static constexpr double low = 0.0, high = 4294967295.0; };
template <class I> __device__ __forceinline__ I whole(double v) {
  if (v != v) return 0;
  v = trunc(v);
  return (I)(v < limits<I>::low ? limits<I>::low : v > limits<I>::high ? limits<I>::high : v);
}
template <> __device__ __forceinline__ i64 whole<i64>(double v) { return __double2ll_rz(v != v ? 0 : v); }
template <> __device__ __forceinline__ u64 whole<u64>(double v) { return __double2ull_rz(v > 0 ? v : 0); }
