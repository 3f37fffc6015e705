/* SPDX-License-Identifier: MIT
 * What reference functions share: walking operands of any strides, and moving elements without changing a bit. */
#ifndef RUNG_OPS_REFERENCE_H
#define RUNG_OPS_REFERENCE_H

#include "ir/args.h"

/* Steps through an index space in row-major order and keeps the element offset of up to eight operands that broadcast
 * to it (aligned at the last axis; an extent of 1 is repeated).
 *
 *   rung_walk w;
 *   for (rung_walk_begin(&w, out->rank, out->extent, 2, (const rung_operand *[]){out, x}); w.live; rung_walk_next(&w))
 *     rung_store_f64(out, w.offset[0], f(rung_load_f64(x, w.offset[1])));
 */
enum { RUNG_WALK_OPERANDS = 8 };
typedef struct rung_walk {
  bool live;
  int rank, n;
  int64_t index[RUNG_MAX_RANK];
  int64_t extent[RUNG_MAX_RANK];
  int64_t stride[RUNG_WALK_OPERANDS][RUNG_MAX_RANK]; /* in elements, also for block types */
  int64_t offset[RUNG_WALK_OPERANDS];
} rung_walk;
void rung_walk_begin(rung_walk *walk, int rank, const int64_t *extent, int n, const rung_operand *const *operand);
/* The same with the strides already known, n rows of `rank` each. */
void rung_walk_begin_strides(rung_walk *walk, int rank, const int64_t *extent, int n, int64_t (*stride)[RUNG_MAX_RANK]);
void rung_walk_next(rung_walk *walk);

/* Strides of an operand in elements: those of block types count blocks along all axes but the last. (Narrow storage
 * types, two or four a byte, have element strides like any plain type.) */
void rung_element_strides(const rung_operand *operand, int64_t *out_stride);
/* The element offset of an index of `rank` entries. */
int64_t rung_element_offset(const rung_operand *operand, const int64_t *index);

/* An operand as an array of units that are moved whole: elements, or blocks of block types (whose last axis then counts
 * blocks). So that movement keeps every bit: wide integers, NaN payloads, quantised blocks. */
typedef struct rung_units {
  uint8_t *base;
  size_t bytes;     /* of a unit */
  int64_t per_byte; /* units of narrow storage types in a byte; 1 for all others */
  int rank;
  int64_t block; /* elements of a unit along the last axis */
  int64_t extent[RUNG_MAX_RANK], stride[RUNG_MAX_RANK];
} rung_units;
rung_units rung_units_of(const rung_operand *operand);
/* Copies every unit of `to` from the place in `from` that has the same index; equal extents, `from` may have stride 0.
 */
void rung_units_copy(const rung_units *to, const rung_units *from);
/* Where a unit lies; not for narrow storage types, whose units may share a byte. */
static inline uint8_t *rung_unit_at(const rung_units *units, int64_t offset) {
  return units->base + (int64_t)units->bytes * offset;
}
/* Copies the unit at an offset, in units, of any type. */
void rung_unit_copy(const rung_units *to, int64_t to_offset, const rung_units *from, int64_t from_offset);

/* Is the operand's type computed in 64-bit integers (integers and bool)? */
bool rung_operand_is_integer(const rung_operand *operand);

/* An axis of an operand taken apart: all other axes are walked, `extent` and `stride` (elements) of the axis remain. */
typedef struct rung_lanes {
  rung_walk walk; /* offsets of the lanes' first elements; live while there is a lane */
  int64_t extent[2], stride[2];
} rung_lanes;
/* Lanes of `a`, and of `b` (NULL: none), which has the same rank and the same other extents. */
void rung_lanes_begin(rung_lanes *lanes, int axis, const rung_operand *a, const rung_operand *b);
static inline void rung_lanes_next(rung_lanes *lanes) { rung_walk_next(&lanes->walk); }
/* Axis counted from the end or not, in [0, rank); shape rules have refused others. */
static inline int rung_axis_of(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

#endif
