/* SPDX-License-Identifier: MIT
 * Rows of unary.def, binary.def and ternary.def as the readers of a row see them.
 *
 * A value column is written in generic functions, which each reader defines for what it computes in (double, a float
 * vector, CUDA text, graph nodes) before it includes the list:
 *
 *   ADD SUB MUL DIV NEG ABS SIGN SQRT POW FMOD    arithmetic; FMOD as C's fmod; SIGN(x): -1, 1, or x for zeros and NaN
 *   CEIL FLOOR ROUND TRUNC                        ROUND: ties to even
 *   EXP EXPM1 LOG LOG1P ERF SIN COS TAN ASIN ACOS ATAN ATAN2 SINH COSH TANH ASINH ACOSH ATANH
 *   MIN MAX                                       NaN if either is
 *   LT LE GT GE EQ NE ISNAN ISINF                 to a mask
 *   AND(m, n), SELECT(m, b, c)                    of masks
 *   K(c) P Q                                      a constant, the row's attributes
 * and for integers of 64 bits, signed or unsigned:
 *   IADD ISUB IMUL INEG IABS ISIGN IMIN IMAX IPOW, IDIV IREM (towards 0), IMOD (rest of the division that rounds down),
 *   IAND IOR IXOR IINVERT INOT ISHL ISHR, IEQ INE ILT ILE IGT IGE, ISELECT IPRELU
 */
#ifndef RUNG_OPS_ELEMENTWISE_H
#define RUNG_OPS_ELEMENTWISE_H

#include "ir/op.h"

/* What a row says beyond its rung_op: for generators of device code and for tests. */
typedef struct rung_row {
  const rung_op *op;
  const char *value;   /* the value column, NULL for rows that take integers or bool only */
  const char *integer; /* the integer column, NULL for rows that take floats only */
  uint32_t takes;      /* RUNG_TAKES_* of the operands (of b and c of a selection) */
  uint8_t operands;    /* 1: x; 2: a, b; 3: a, b, c */
  uint8_t parameters;  /* P, Q: attributes of kind F64 at the op's attribute offsets */
  bool to_bool;        /* the result is a mask */
  bool selection;      /* operand a is bool */
} rung_row;
/* NULL for ops that are no row. */
const rung_row *rung_row_of(const rung_op *op);
size_t rung_row_count(void);
const rung_row *rung_row_at(size_t index);

/* Attributes of UNARY1 and UNARY2 rows. */
typedef struct rung_row_attrs {
  double p, q;
} rung_row_attrs;

/* The parts of a row that need the vocabulary, one reading of the lists each: elementwise_values.c (reference) and
 * elementwise_graph.c (gradient, decomposition). elementwise.c puts them together. */
#define ROW(name)                                                                                                    \
  rung_status rung_reference_##name(const rung_args *args);                                                          \
  void rung_gradient_##name(struct rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y_, \
                            const rung_value *gy_, rung_value *out_gx);                                              \
  void rung_decompose_##name(struct rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out);
#include "ops/rows.inc"
#undef ROW

#endif
