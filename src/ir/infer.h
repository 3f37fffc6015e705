/* SPDX-License-Identifier: MIT
 * Running an op's shape rule, for building and for verifying. */
#ifndef RUNG_IR_INFER_H
#define RUNG_IR_INFER_H

#include "ir/graph.h"

/* Runs node->op's rule on operand types `in` and checks what it says: types, ranks, extents, blocks. infer->graph,
 * error, given and silent are set by the caller. For declarations out[0] is the given type. Run-time checks go to
 * infer->graph, under the number of the next node. */
rung_status rung_infer_node(rung_infer *infer, const rung_node *node, const rung_value_type *in, rung_value_type *out);

#endif
