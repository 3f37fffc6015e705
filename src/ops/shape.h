/* SPDX-License-Identifier: MIT
 * What shape rules share. Every refusal goes through rung_infer_refuse, so that each message names the op, its operands
 * and their types and extents. */
#ifndef RUNG_OPS_SHAPE_H
#define RUNG_OPS_SHAPE_H

#include "ir/op.h"

/* Writes "matmul(a f32[rows,64], b f32[32,8]): <why>" and gives the status. */
rung_status rung_infer_refuse(const rung_infer *infer, rung_status status, const char *why, ...) RUNG_PRINTF(3, 4);
/* The name of operand i ("a"), also of one that repeats. Never NULL. */
const char *rung_op_operand_name(const rung_op *op, uint32_t i);

/* Classes of operand types, for rung_infer_class. */
enum {
  RUNG_TAKES_FLOAT = 1 << 0, /* f32 f16 bf16 f64 */
  RUNG_TAKES_INT = 1 << 1,   /* i8 .. u64 */
  RUNG_TAKES_BOOL = 1 << 2,
  RUNG_TAKES_STORAGE = 1 << 3, /* narrow types that are stored but not computed in */
  RUNG_TAKES_BLOCK = 1 << 4,
  RUNG_TAKES_NUMBER = RUNG_TAKES_FLOAT | RUNG_TAKES_INT,
  RUNG_TAKES_PLAIN = RUNG_TAKES_NUMBER | RUNG_TAKES_BOOL,
  RUNG_TAKES_ALL = RUNG_TAKES_PLAIN | RUNG_TAKES_STORAGE | RUNG_TAKES_BLOCK
};
uint32_t rung_type_takes(rung_type type); /* the one bit of its class; 0 for no type */
bool rung_type_is_float(rung_type type);
bool rung_type_is_unsigned(rung_type type);
bool rung_type_is_integer(rung_type type); /* signed or unsigned, not bool */

/* Refuse unless operand i is of one of the classes, is a tensor or dense state in row-major layout. */
rung_status rung_infer_class(const rung_infer *infer, uint32_t i, uint32_t takes);
rung_status rung_infer_classes(const rung_infer *infer, uint32_t takes); /* all operands */
/* Refuse unless operands i and j have one element type. */
rung_status rung_infer_same_type(const rung_infer *infer, uint32_t i, uint32_t j);
rung_status rung_infer_rank(const rung_infer *infer, uint32_t i, int rank);
rung_status rung_infer_rank_at_least(const rung_infer *infer, uint32_t i, int rank);
/* Refuse unless operand i's extent `axis` equals `want`; may record a run-time check. */
rung_status rung_infer_extent(rung_infer *infer, uint32_t i, int axis, rung_dim want);
/* An axis that may count from the end, as one in [0, rank). */
rung_status rung_infer_axis(const rung_infer *infer, int64_t axis, int rank, int *out_axis);
/* Refuses the null dimension: what dimension arithmetic gives when memory or 64 bits run out. */
rung_status rung_infer_dim(const rung_infer *infer, rung_dim dim);
/* Broadcasts the extents of operands first .. first + n - 1 as numpy does, into out (type and kind are set by the
 * caller). An open extent meets another only if they are equal: a check at run time where that cannot be proved. */
rung_status rung_infer_broadcast(rung_infer *infer, uint32_t first, uint32_t n, rung_value_type *out);

/* A tensor type of the given element type and rank, extents null. */
rung_value_type rung_value_type_of(rung_type type, int rank);
/* The same for a result that has the extents of `like`. */
rung_value_type rung_value_type_like(const rung_value_type *like, rung_type type);
static inline rung_dim rung_one(rung_dims *dims) { return rung_dims_constant(dims, 1); }
bool rung_dim_is(const rung_dims *dims, rung_dim dim, int64_t value);
/* The product of extents first .. limit - 1; {0} if it does not fit. */
rung_dim rung_dims_product(rung_dims *dims, const rung_dim *extent, int first, int limit);

/* Roles of ops that have none of their own: the number of elements of result 0. */
void rung_role_elements(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                        const void *attrs, rung_dim *out_role);

/* rung_view_rule: dense row-major strides of `extent` (in elements; blocks for block types). */
void rung_view_dense_strides(rung_dims *dims, rung_type type, int rank, const rung_dim *extent, rung_dim *out_stride);

#endif
