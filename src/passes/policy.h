/* SPDX-License-Identifier: MIT
 * Precision policies as data: which category an op is of, and what a policy may say. */
#ifndef RUNG_PASSES_POLICY_H
#define RUNG_PASSES_POLICY_H

#include <rung/compile.h>

#include "ir/graph.h"

/* The types of a policy, in the order in which files have them. */
#define RUNG_PRECISION_TYPES(policy) \
  { &(policy)->compute, &(policy)->reduction, &(policy)->elementwise, &(policy)->movement, &(policy)->boundary }
enum { RUNG_PRECISION_CATEGORIES = 5 };
const char *rung_precision_category(size_t index); /* "compute" ... */

bool rung_precision_takes(rung_type type);         /* f32, f16 and bf16 */
enum { RUNG_PRECISION_ENDS = RUNG_TYPE_BF16 + 1 }; /* behind the types that it takes: f32, f16, bf16 come first */
static inline bool rung_type_is_narrow(rung_type type) { return type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16; }
/* What a policy speaks of: a tensor of f32 that no layout has been given to. */
static inline bool rung_is_plain_f32(const rung_value_type *type) {
  return type->kind == RUNG_VALUE_TENSOR && type->type == RUNG_TYPE_F32 && !type->layout;
}
bool rung_precision_valid(const rung_precision *policy);
bool rung_precision_same(const rung_precision *a, const rung_precision *b);
/* Is anything but what products multiply narrow? */
bool rung_precision_stores(const rung_precision *policy);

/* Does it multiply: is it of the category compute? */
bool rung_op_computes(const rung_op *op);
bool rung_op_is_product(const rung_op *op); /* its factors may be narrow where its results are not */
bool rung_op_moves(const rung_op *op);      /* is it of the category movement? */
/* The type that a policy keeps the results of an op in. */
rung_type rung_precision_of(const rung_precision *policy, const rung_op *op);

/* By value of the graph: is it made of integers and constants alone? Such values are not rounded. NULL without memory. */
bool *rung_precision_exact(const rung_graph *graph, rung_arena *arena);

#endif
