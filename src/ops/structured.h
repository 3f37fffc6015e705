/* SPDX-License-Identifier: MIT
 * What the structured ops share beyond shape.h and reference.h. */
#ifndef RUNG_OPS_STRUCTURED_H
#define RUNG_OPS_STRUCTURED_H

#include <string.h>

#include "ops/reference.h"
#include "ops/shape.h"

/* ---- shape rules */

/* Refuses unless operand i is of one of the classes, in any layout: for weights, which may lie packed. */
rung_status rung_infer_weight_class(const rung_infer *infer, uint32_t i, uint32_t takes);
/* Refuses unless operand i is i32 or i64. */
rung_status rung_infer_index(const rung_infer *infer, uint32_t i);
/* Refuses unless operand i has rank lo to hi. */
rung_status rung_infer_ranks(const rung_infer *infer, uint32_t i, int lo, int hi);
/* Refuses unless operand i is a single element of this type (rank 0, or one axis of extent 1). */
rung_status rung_infer_scalar(rung_infer *infer, uint32_t i, rung_type type);
/* Refuses unless the extents agree; `what` names them ("K of a and of b"). */
rung_status rung_infer_agree(rung_infer *infer, rung_dim a, rung_dim b, const char *what);
/* Refuses unless operands i and j have one shape. */
rung_status rung_infer_same_shape(rung_infer *infer, uint32_t i, uint32_t j);
/* One axis under numpy's rule. */
rung_status rung_infer_broadcast_dim(rung_infer *infer, rung_dim a, rung_dim b, const char *what, rung_dim *out);
/* Refuses unless the extent is a constant; gives its value. */
rung_status rung_infer_constant(const rung_infer *infer, rung_dim dim, const char *what, int64_t *out_value);
/* What all attention ops ask for: constant numbers of heads, of which each key/value head serves as many; and scores
 * that stay numbers. */
rung_status rung_infer_heads(const rung_infer *infer, rung_dim heads, rung_dim kv_heads);
rung_status rung_infer_scores(const rung_infer *infer, double scale, double soft_cap, int64_t window);
/* Result r: a row-major tensor on the place of operand 0. */
void rung_infer_result(rung_infer *infer, uint32_t r, rung_type type, int rank, const rung_dim *extent);

/* ---- building */
rung_value rung_build_matmul(struct rung_graph *g, rung_value a, rung_value b, bool transpose_b, rung_type type);

/* ---- references */

/* Distance in elements between neighbours along an axis. */
static inline int64_t rung_axis_step(const rung_operand *o, int axis) {
  const int64_t block = rung_type_get((rung_type)o->type)->block;
  return block > 1 ? (axis == o->rank - 1 ? 1 : o->stride[axis] * block) : o->stride[axis];
}
/* Element offset of an operand's first `axes` axes when they are broadcast to an index of `rank` entries. */
int64_t rung_broadcast_offset(const rung_operand *o, int axes, const int64_t *index, int rank);
/* Copies every bit of `from` to `to`; equal types and extents. Nothing happens where they are one memory. */
void rung_copy_operand(const rung_operand *from, const rung_operand *to);
/* n elements from `offset`, `step` apart (1 for block types), as doubles; a8 exactly: f32 scale times int8. */
void rung_load_span(const rung_operand *o, int64_t offset, int64_t step, int64_t n, double *out);
/* A row of numbers in an operand: where it begins and how far apart its elements are. */
typedef struct rung_span {
  const rung_operand *operand;
  int64_t offset, step;
} rung_span;
/* The sum of a[k] * b[k], one after another; in integers it wraps. */
double rung_dot_f64(rung_span a, rung_span b, int64_t n);
int64_t rung_dot_i64(rung_span a, rung_span b, int64_t n);
/* Element i of an operand of rank 1, or its only element. */
static inline int64_t rung_vector_at(const rung_operand *o, int64_t i) {
  const int64_t at = o->rank ? i * o->stride[0] : 0;
  if (o->type != RUNG_TYPE_I32) return rung_load_i64(o, at);
  int32_t value; /* at any byte; kernels walk over offsets */
  memcpy(&value, o->base + at * (int64_t)sizeof value, sizeof value);
  return value;
}
/* `index` counted from the end when negative; refused outside [-extent, extent). */
rung_status rung_check_index(const rung_args *args, const char *op, int64_t index, int64_t extent, int64_t *out_index);
/* Ragged rows: offsets start at 0, do not fall and end at `rows`. */
rung_status rung_check_ragged(const rung_args *args, const char *op, const rung_operand *offsets, int64_t rows);

/* One sequence of a ragged batch: rows [first, end) are positions past, past + 1, ... of state slot `slot`. */
typedef struct rung_sequence {
  int64_t first, end, slot, past;
} rung_sequence;
static inline rung_sequence rung_sequence_at(const rung_operand *offsets, const rung_operand *slot,
                                             const rung_operand *past, int64_t s) {
  return (rung_sequence){rung_vector_at(offsets, s), rung_vector_at(offsets, s + 1), rung_vector_at(slot, s),
                         rung_vector_at(past, s)};
}
/* Shape rule of the three ragged operands from operand `first` on: offsets[n+1], slot[n], past[n]. */
rung_status rung_infer_ragged(rung_infer *infer, uint32_t first);
/* The three at run time against a kv state: ragged rows, slots that exist, positions within the capacity. */
rung_status rung_check_sequences(const rung_args *args, const char *op, const rung_operand *ragged, int64_t rows,
                                 const rung_kv_view *kv);
/* References keep one position of a kv state on the stack: at most this many numbers. */
enum { RUNG_REFERENCE_KV_ROW = 32768 };

#endif
