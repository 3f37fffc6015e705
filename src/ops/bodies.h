/* SPDX-License-Identifier: MIT
 * What ops with bodies share: the signature of a body. */
#ifndef RUNG_OPS_BODIES_H
#define RUNG_OPS_BODIES_H

#include "ir/graph.h"

static inline const rung_value_type *rung_body_input_type(const rung_graph *body, uint32_t i) {
  return rung_graph_value_type(body, body->node[body->input[i]].first_value);
}
static inline const rung_value_type *rung_body_output_type(const rung_graph *body, uint32_t i) {
  return rung_graph_value_type(body, body->output[i].value);
}
/* Refuses unless body `b` has exactly first + n inputs and those from `first` on have the types and extents of the
 * operands from `operand` on. A body reads a dense state as a tensor. */
rung_status rung_infer_body_inputs(rung_infer *infer, uint32_t b, uint32_t first, uint32_t n, uint32_t operand);
/* Element type, kind and rank, without extents. */
bool rung_body_type_fits(const rung_value_type *want, const rung_value_type *have);
/* Symbols that the body's nodes bind, its inner bodies included: a bit each. What depends on them has no value outside.
 */
uint64_t rung_body_symbols(const rung_graph *body);
/* This node binds the made symbol `dim`; refused if another node of this graph or of those around it does. */
rung_status rung_infer_bind(rung_infer *infer, rung_dim dim);

#endif
