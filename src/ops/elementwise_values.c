/* SPDX-License-Identifier: MIT
 * The meaning of every elementwise row: its value column in double and in 64-bit integers, and the loop over operands
 * of any strides and types around it. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/reference.h"
#include "ops/shape.h"

typedef double f64_fn(const double *v, const double *attr);
typedef int64_t i64_fn(const int64_t *v);
typedef uint64_t u64_fn(const uint64_t *v);

/* ---- values in double. Operands are v[0], v[1], v[2]; masks are 0 or 1. */
static double max_f64(double a, double b) { return a > b || a != a ? a : b; }
static double min_f64(double a, double b) { return a < b || a != a ? a : b; }
static double sign_f64(double x) {
  if (x > 0) return 1;
  return x < 0 ? -1 : x;
}

#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define ABS(a) fabs(a)
#define SIGN(a) sign_f64(a)
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
#define MIN(a, b) min_f64(a, b)
#define MAX(a, b) max_f64(a, b)
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define ISNAN(a) ((a) != (a))
#define ISINF(a) (fabs(a) == HUGE_VAL)
#define AND(m, n) ((m) && (n))
#define SELECT(m, b, c) ((m) != 0 ? (b) : (c))
#define K(c) ((double)(c))
#define P attr[0]
#define Q attr[1]

#define F64(name, params, value)                                  \
  static double f64_##name(const double *v, const double *attr) { \
    params(void) attr;                                            \
    return value;                                                 \
  }
#define X_OF const double x = v[0];
#define AB_OF const double a = v[0], b = v[1];
#define ABC_OF const double a = v[0], b = v[1], c = v[2];
#define UNARY(name, takes, form, value, ...) F64(name, X_OF, value)
#define UNARY1(name, value, ...) F64(name, X_OF, value)
#define UNARY2(name, value, ...) F64(name, X_OF, value)
#define INTEGER1(name, ...)
#define PREDICATE(name, value, ...) F64(name, X_OF, value)
#define BINARY(name, takes, form, value, ...) F64(name, AB_OF, value)
#define INTEGER2(name, ...)
#define COMPARE(name, takes, value, ...) F64(name, AB_OF, value)
#define TERNARY(name, n1, n2, n3, takes, form, value, ...) F64(name, ABC_OF, value)
#define SELECTION(name, n1, n2, n3, takes, value, ...) F64(name, ABC_OF, value)
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef INTEGER1
#undef PREDICATE
#undef BINARY
#undef INTEGER2
#undef COMPARE
#undef TERNARY
#undef SELECTION
#undef X_OF
#undef AB_OF
#undef ABC_OF

/* ---- values in integers: once signed, once unsigned. */
#define INTEGER_FLOAT INTEGER
#include "ops/integer_values.inc"

#define T int64_t
#define I(fn) fn##_i64
#define INTEGER(name, params, value) \
  static int64_t i64_##name(const int64_t *v) { params return value; }
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef T
#undef I
#undef INTEGER
#define T uint64_t
#define I(fn) fn##_u64
#define INTEGER(name, params, value) \
  static uint64_t u64_##name(const uint64_t *v) { params return value; }
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef T
#undef I
#undef INTEGER
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef INTEGER1
#undef PREDICATE
#undef BINARY
#undef INTEGER2
#undef COMPARE
#undef TERNARY
#undef SELECTION

/* ---- the loop. Which values are used is decided by the last operand's type (operand a of `where` is a mask). */
static rung_status run(const rung_args *args, f64_fn *f, i64_fn *i, u64_fn *u) {
  const rung_operand *out = &args->out[0], *operand[4] = {out};
  const int n = args->n_in;
  for (int k = 0; k < n; k++) operand[k + 1] = &args->in[k];
  const rung_type type = (rung_type)operand[n]->type;
  static const double none[2] = {0, 0};
  const double *attr = args->attrs ? (const double *)args->attrs : none; /* rung_row_attrs: doubles only */
  rung_walk w;
  for (rung_walk_begin(&w, out->rank, out->extent, n + 1, operand); w.live; rung_walk_next(&w)) {
    if (rung_type_is_float(type)) {
      double v[3];
      for (int k = 0; k < n; k++) v[k] = rung_load_f64(operand[k + 1], w.offset[k + 1]);
      rung_store_f64(out, w.offset[0], f(v, attr));
    } else if (rung_type_is_unsigned(type)) {
      uint64_t v[3];
      for (int k = 0; k < n; k++) v[k] = (uint64_t)rung_load_i64(operand[k + 1], w.offset[k + 1]);
      rung_store_i64(out, w.offset[0], (int64_t)u(v));
    } else {
      int64_t v[3];
      for (int k = 0; k < n; k++) v[k] = rung_load_i64(operand[k + 1], w.offset[k + 1]);
      rung_store_i64(out, w.offset[0], i(v));
    }
  }
  return RUNG_OK;
}

#define RUN(name, f, i, u) \
  rung_status rung_reference_##name(const rung_args *args) { return run(args, f, i, u); }
#define BOTH(name, ...) RUN(name, f64_##name, i64_##name, u64_##name)
#define FLOATS(name, ...) RUN(name, f64_##name, NULL, NULL)
#define INTEGERS(name, ...) RUN(name, NULL, i64_##name, u64_##name)
#define UNARY BOTH
#define UNARY1 FLOATS
#define UNARY2 FLOATS
#define INTEGER1 INTEGERS
#define PREDICATE FLOATS
#define BINARY BOTH
#define INTEGER2 INTEGERS
#define COMPARE BOTH
#define TERNARY BOTH
#define SELECTION BOTH
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
