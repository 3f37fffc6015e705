/* SPDX-License-Identifier: MIT
 * Which ops there are. Adding an elementwise op is one row of unary.def, binary.def or ternary.def; any other op is one
 * file src/ops/<name>.c and one line of ops.def. */
#ifndef RUNG_OPS_OP_TABLE_H
#define RUNG_OPS_OP_TABLE_H

#include "ir/op.h"

#define OP(name) extern const rung_op rung_op_##name;
#include "ops/ops.def"
#undef OP
#define ROW(name) extern const rung_op rung_op_##name;
#include "ops/rows.inc"
#undef ROW

/* For walking (rung_op_find is in ir/op.h): ops with a file first, then rows, each in the order of its list. NULL past
 * the end. */
size_t rung_op_count(void);
const rung_op *rung_op_at(size_t index);

#endif
