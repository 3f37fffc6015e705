/* SPDX-License-Identifier: MIT
 * Gradients and decompositions of every elementwise row: the columns read as graph builders. */
#include "ir/graph.h"
#include "ops/build.h"
#include "ops/elementwise.h"

/* Operands are built one after another, left to right: C leaves the order of arguments open, and with it would go the
 * numbering of nodes, which the text and the hash of a graph depend on. `built` holds those that wait for their node.
 */
typedef struct operands {
  rung_value at[32];
  int count;
} operands;
static void put(operands *built, rung_value value) { built->at[built->count++] = value; }
#define TWO(op, a, b)                                    \
  (put(&built, (a)), put(&built, (b)), built.count -= 2, \
   rung_build_##op(g, built.at[built.count], built.at[built.count + 1]))
#define THREE(op, a, b, c)                                                 \
  (put(&built, (a)), put(&built, (b)), put(&built, (c)), built.count -= 3, \
   rung_build_##op(g, built.at[built.count], built.at[built.count + 1], built.at[built.count + 2]))

/* The vocabulary; `g` is the graph, `type` the type of its constants. */
#define ADD(a, b) TWO(add, a, b)
#define SUB(a, b) TWO(sub, a, b)
#define MUL(a, b) TWO(mul, a, b)
#define DIV(a, b) TWO(div, a, b)
#define NEG(a) rung_build_neg(g, a)
#define ABS(a) rung_build_abs(g, a)
#define SIGN(a) rung_build_sign(g, a)
#define SQRT(a) rung_build_sqrt(g, a)
#define POW(a, b) TWO(pow, a, b)
#define FMOD(a, b) TWO(fmod, a, b)
#define CEIL(a) rung_build_ceil(g, a)
#define FLOOR(a) rung_build_floor(g, a)
#define ROUND(a) rung_build_round(g, a)
#define TRUNC(a) rung_build_trunc(g, a)
#define EXP(a) rung_build_exp(g, a)
#define EXPM1(a) rung_build_expm1(g, a)
#define LOG(a) rung_build_log(g, a)
#define LOG1P(a) rung_build_log1p(g, a)
#define ERF(a) rung_build_erf(g, a)
#define SIN(a) rung_build_sin(g, a)
#define COS(a) rung_build_cos(g, a)
#define TAN(a) rung_build_tan(g, a)
#define ASIN(a) rung_build_asin(g, a)
#define ACOS(a) rung_build_acos(g, a)
#define ATAN(a) rung_build_atan(g, a)
#define ATAN2(a, b) TWO(atan2, a, b)
#define SINH(a) rung_build_sinh(g, a)
#define COSH(a) rung_build_cosh(g, a)
#define TANH(a) rung_build_tanh(g, a)
#define ASINH(a) rung_build_asinh(g, a)
#define ACOSH(a) rung_build_acosh(g, a)
#define ATANH(a) rung_build_atanh(g, a)
#define MIN(a, b) TWO(min, a, b)
#define MAX(a, b) TWO(max, a, b)
#define LT(a, b) TWO(less, a, b)
#define LE(a, b) TWO(less_equal, a, b)
#define GT(a, b) TWO(greater, a, b)
#define GE(a, b) TWO(greater_equal, a, b)
#define EQ(a, b) TWO(equal, a, b)
#define NE(a, b) TWO(not_equal, a, b)
#define ISNAN(a) rung_build_isnan(g, a)
#define ISINF(a) rung_build_isinf(g, a)
#define AND(m, n) TWO(and, m, n)
#define SELECT(m, b, c) THREE(where, m, b, c)
#define K(c) rung_build_scalar(g, type, c)
#define ZERO rung_build_null()
#define P K(attrs->p)
#define Q K(attrs->q)

/* ---- gradients. Each column is of the result's extents; rung_build_unbroadcast sums what was broadcast. */
#define GRADIENT(name, names, columns)                                                                        \
  void rung_gradient_##name(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y_, \
                            const rung_value *gy_, rung_value *out_gx) {                                      \
    const rung_row_attrs *attrs = (const rung_row_attrs *)node->attrs;                                        \
    const rung_value y = y_[0], gy = gy_[0];                                                                  \
    const rung_type type = rung_graph_type_of(g, gy);                                                         \
    operands built = {.count = 0};                                                                            \
    (void)attrs, (void)y, (void)gy, (void)type, (void)built;                                                  \
    names columns                                                                                             \
  }
#define X_OF                  \
  const rung_value x = in[0]; \
  (void)x;
#define AB_OF                 \
  const rung_value a = in[0]; \
  const rung_value b = in[1]; \
  (void)a;                    \
  (void)b;
#define ABC_OF                      \
  AB_OF const rung_value c = in[2]; \
  (void)c;
#define OPERAND(i, column) out_gx[i] = rung_build_unbroadcast(g, column, in[i]);
#define UNARY(name, takes, form, value, integer, gradient, ...) GRADIENT(name, X_OF, OPERAND(0, gradient))
#define UNARY1(name, value, gradient, ...) GRADIENT(name, X_OF, OPERAND(0, gradient))
#define UNARY2(name, value, gradient, ...) GRADIENT(name, X_OF, OPERAND(0, gradient))
#define INTEGER1(name, ...)
#define PREDICATE(name, ...)
#define BINARY(name, takes, form, value, integer, for_a, for_b, ...) \
  GRADIENT(name, AB_OF, OPERAND(0, for_a) OPERAND(1, for_b))
#define INTEGER2(name, ...)
#define COMPARE(name, ...)
#define TERNARY(name, n1, n2, n3, takes, form, value, integer, for_a, for_b, for_c, ...) \
  GRADIENT(name, ABC_OF, OPERAND(0, for_a) OPERAND(1, for_b) OPERAND(2, for_c))
#define SELECTION(name, n1, n2, n3, takes, value, integer, for_b, for_c, ...) \
  GRADIENT(name, ABC_OF, out_gx[0] = rung_build_null(); OPERAND(1, for_b) OPERAND(2, for_c))
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef BINARY
#undef TERNARY
#undef SELECTION

/* ---- decompositions: the value column of composite rows */
#define DECOMPOSE(name, names, value)                                                                       \
  void rung_decompose_##name(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) { \
    const rung_row_attrs *attrs = (const rung_row_attrs *)node->attrs;                                      \
    const rung_type type = rung_graph_type_of(g, in[0]);                                                    \
    operands built = {.count = 0};                                                                          \
    (void)attrs, (void)type, (void)built;                                                                   \
    names out[0] = value;                                                                                   \
  }
#define COMPOSITE(name, names, value) DECOMPOSE(name, names, value)
#define PRIMITIVE(name, names, value)
#define UNARY(name, takes, form, value, ...) form(name, X_OF, value)
#define UNARY1(name, value, ...) DECOMPOSE(name, X_OF, value)
#define UNARY2(name, value, ...) DECOMPOSE(name, X_OF, value)
#define BINARY(name, takes, form, value, ...) form(name, AB_OF, value)
#define TERNARY(name, n1, n2, n3, takes, form, value, ...) form(name, ABC_OF, value)
#define SELECTION(name, ...)
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
