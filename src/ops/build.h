/* SPDX-License-Identifier: MIT
 * Graph builders for gradients, decompositions and passes. (The public ones, rung/ops.h, are generated from the table;
 * the library itself never depends on generated code.) All are sticky, as the graph is. */
#ifndef RUNG_OPS_BUILD_H
#define RUNG_OPS_BUILD_H

#include "ir/graph.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

/* ---- elementwise rows with default attributes: rung_build_add(g, a, b) ... */
#define BUILD1(name, ...)                                                   \
  static inline rung_value rung_build_##name(rung_graph *g, rung_value x) { \
    return rung_graph_op(g, &rung_op_##name, &x, 1, NULL);                  \
  }
#define BUILD2(name, ...)                                                                 \
  static inline rung_value rung_build_##name(rung_graph *g, rung_value a, rung_value b) { \
    const rung_value in[2] = {a, b};                                                      \
    return rung_graph_op(g, &rung_op_##name, in, 2, NULL);                                \
  }
#define BUILD3(name, ...)                                                                               \
  static inline rung_value rung_build_##name(rung_graph *g, rung_value a, rung_value b, rung_value c) { \
    const rung_value in[3] = {a, b, c};                                                                 \
    return rung_graph_op(g, &rung_op_##name, in, 3, NULL);                                              \
  }
#define UNARY BUILD1
#define UNARY1 BUILD1
#define UNARY2 BUILD1
#define INTEGER1 BUILD1
#define PREDICATE BUILD1
#include "ops/unary.def"
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef INTEGER1
#undef PREDICATE
#define BINARY BUILD2
#define INTEGER2 BUILD2
#define COMPARE BUILD2
#include "ops/binary.def"
#undef BINARY
#undef INTEGER2
#undef COMPARE
#define TERNARY BUILD3
#define SELECTION BUILD3
#include "ops/ternary.def"
#undef TERNARY
#undef SELECTION
#undef BUILD1
#undef BUILD2
#undef BUILD3

/* ---- values without operands */
static inline rung_value rung_build_null(void) { return (rung_value){0, 0}; }
/* A rank-0 constant; it broadcasts to anything of its type. */
rung_value rung_build_scalar(rung_graph *g, rung_type type, double value);
/* The value of a dimension, as a scalar of a type. */
rung_value rung_build_extent(rung_graph *g, rung_dim value, rung_type type);
/* A value filled with one number, of the extents of `like` (stride 0: an expand). */
rung_value rung_build_filled_like(rung_graph *g, rung_value like, double value);

/* ---- movement. Extents are copied. */
rung_value rung_build_reshape(rung_graph *g, rung_value x, int rank, const rung_dim *extent);
rung_value rung_build_reshape_like(rung_graph *g, rung_value x, rung_value like); /* equal element counts */
rung_value rung_build_expand(rung_graph *g, rung_value x, int rank, const rung_dim *extent);
rung_value rung_build_expand_like(rung_graph *g, rung_value x, rung_value like);
rung_value rung_build_transpose(rung_graph *g, rung_value x, const int64_t *permutation); /* one entry an axis */
rung_value rung_build_swap_last(rung_graph *g, rung_value x);                             /* the last two axes */
/* One axis cut to [start, start + length), step 1. */
rung_value rung_build_slice(rung_graph *g, rung_value x, int axis, rung_dim start, rung_dim length);
rung_value rung_build_concat(rung_graph *g, const rung_value *x, uint32_t n, int axis);
rung_value rung_build_cast(rung_graph *g, rung_value x, rung_type type);
/* An axis of extent 1 put in before `axis`, or taken out. */
rung_value rung_build_unsqueeze(rung_graph *g, rung_value x, int axis);
rung_value rung_build_squeeze(rung_graph *g, rung_value x, int axis);

/* ---- reductions over one axis or several (n 0: all) */
rung_value rung_build_reduce(rung_graph *g, const rung_op *op, rung_value x, const int64_t *axis, int n, bool keep);
rung_value rung_build_sum(rung_graph *g, rung_value x, int axis, bool keep);

/* A gradient of the extents of a broadcast result, summed to those of the operand. Null stays null. */
rung_value rung_build_unbroadcast(rung_graph *g, rung_value gradient, rung_value operand);
/* Is the value null (no gradient)? */
static inline bool rung_value_is_null(rung_value value) { return value.id == 0; }

/* The type of a value; valid for null values too (a rank-0 f32), so that building code needs no checks. */
const rung_value_type *rung_build_type(const rung_graph *g, rung_value value);

#endif
