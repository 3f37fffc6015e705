/* SPDX-License-Identifier: MIT
 * assign: the next version of a dense state. */
#include "ops/structured.h"

static rung_status infer(rung_infer *infer) {
  if (infer->in[0].kind != RUNG_VALUE_STATE_DENSE) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "state must be a dense state");
  }
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_ALL));
  RUNG_TRY(rung_infer_same_type(infer, 1, 0));
  RUNG_TRY(rung_infer_same_shape(infer, 1, 0));
  infer->out[0] = infer->in[0];
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  rung_copy_operand(&args->in[1], &args->out[0]);
  return RUNG_OK;
}

/* Exact: moves bits. Tested with states in tests/ops/test_structured_state.c. */
const rung_op rung_op_assign = {
    .name = "assign",
    .doc = "overwrites a dense state; readers of the version before come first",
    .operands = (const char *const[]){"state", "x", NULL},
    .results_named = (const char *const[]){"state", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .flags = RUNG_OP_EFFECT,
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "writes a state",
};
