/* SPDX-License-Identifier: MIT
 * Signatures of bodies. */
#include "ops/bodies.h"

#include "ops/structured.h"

bool rung_body_type_fits(const rung_value_type *want, const rung_value_type *have) {
  const bool kind =
      want->kind == have->kind || (want->kind == RUNG_VALUE_TENSOR && have->kind == RUNG_VALUE_STATE_DENSE);
  return kind && want->type == have->type && want->rank == have->rank && want->layout == have->layout;
}

rung_status rung_infer_body_inputs(rung_infer *infer, uint32_t b, uint32_t first, uint32_t n, uint32_t operand) {
  const rung_graph *body = infer->body[b];
  if (body->inputs != first + n) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "body %u has %u inputs but is given %u", b, body->inputs,
                             first + n);
  }
  for (uint32_t i = 0; i < n; i++) {
    const rung_value_type *want = rung_body_input_type(body, first + i);
    if (!rung_body_type_fits(want, &infer->in[operand + i])) {
      return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "input %u of body %u is %s of rank %d, unlike operand %u",
                               first + i, b, rung_type_name(want->type), want->rank, operand + i);
    }
    for (int axis = 0; axis < want->rank; axis++) {
      RUNG_TRY(rung_infer_extent(infer, operand + i, axis, want->extent[axis]));
    }
  }
  return RUNG_OK;
}

uint64_t rung_body_symbols(const rung_graph *body) {
  uint64_t mask = body->made;
  for (uint32_t i = 0; i < body->nodes; i++) {
    for (uint32_t b = 0; b < body->node[i].bodies; b++) mask |= rung_body_symbols(body->node[i].body[b]);
  }
  return mask;
}

rung_status rung_infer_bind(rung_infer *infer, rung_dim dim) {
  const rung_dim_node *node = &infer->dims->node[dim.id];
  if (node->kind != RUNG_DIM_KIND_SYMBOL || !infer->dims->symbol[node->symbol].made) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "only a symbol that is made can be bound by a step");
  }
  uint64_t taken = infer->made;
  for (const rung_graph *g = infer->graph; g && !infer->silent; g = g->parent) taken |= g->made;
  if (taken & node->symbols) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "symbol %s is bound twice",
                             infer->dims->symbol[node->symbol].name);
  }
  infer->made |= node->symbols;
  return RUNG_OK;
}
