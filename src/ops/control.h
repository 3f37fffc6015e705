/* SPDX-License-Identifier: MIT
 * Builders of control flow and of sizes found at run time. Sticky, as the graph is. */
#ifndef RUNG_OPS_CONTROL_H
#define RUNG_OPS_CONTROL_H

#include "ops/build.h"

/* Bodies are made by rung_graph_body(g), their inputs declared in the order of the captures. NULL after an error;
 * results by rung_node_result. */
const rung_node *rung_build_if(rung_graph *g, rung_value condition, rung_graph *then_body, rung_graph *else_body,
                               const rung_value *captures, uint32_t n);
/* `values`: the carried ones, then the captures, n in all. A null trip or condition: without end, true. */
const rung_node *rung_build_loop(rung_graph *g, rung_value trip, rung_value condition, rung_graph *body,
                                 const rung_value *values, uint32_t n, const rung_loop_attrs *attrs);
/* scan(states..., rows..., captures...): the body takes states, one element of each of `rows` inputs (their first axis
 * is walked, all have one extent) and captures, and gives the next states and what is stacked. Becomes a loop whose
 * body reads the elements; `body` is made by rung_graph_body(g) and is read, not used up. */
const rung_node *rung_build_scan(rung_graph *g, const rung_graph *body, const rung_value *values, uint32_t n,
                                 uint32_t states, uint32_t rows);
/* A symbol that gets the value of an integer scalar when the graph runs; at most `bound`, {0}: no bound. `name` NULL: a
 * fresh one. */
rung_dim rung_build_bind(rung_graph *g, rung_value value, const char *name, rung_dim bound);
/* Indices of the elements that are not 0, i64[rank, n], n found at run time. */
rung_value rung_build_nonzero(rung_graph *g, rung_value x, const char *name);

#endif
