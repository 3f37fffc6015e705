/* SPDX-License-Identifier: MIT
 * Signatures of bodies. */
#include "ops/bodies.h"

#include <string.h>

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

/* The symbols that a node binds stand in its attribute `symbols`. */
static uint64_t node_symbols(const rung_graph *graph, const rung_node *node) {
  uint64_t mask = 0;
  if (!(node->op->flags & RUNG_OP_SIZES)) return 0;
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    if (attr->kind != RUNG_ATTR_DIMS || strcmp(attr->name, "symbols") != 0) continue;
    const rung_dim_list *list = (const rung_dim_list *)((const uint8_t *)node->attrs + attr->offset);
    for (int i = 0; i < list->count; i++) mask |= graph->dims->node[list->dim[i].id].symbols;
  }
  return mask;
}

uint64_t rung_body_symbols(const rung_graph *body) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    mask |= node_symbols(body, node);
    for (uint32_t b = 0; b < node->bodies; b++) mask |= rung_body_symbols(node->body[b]);
  }
  return mask;
}
