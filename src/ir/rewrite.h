/* SPDX-License-Identifier: MIT
 * Copying a graph with changes: the frame of every pass. */
#ifndef RUNG_IR_REWRITE_H
#define RUNG_IR_REWRITE_H

#include "ir/graph.h"

/* from-graph value id -> to-graph value. */
typedef struct rung_rewrite {
  const rung_graph *from;
  rung_graph *to;
  rung_value *map; /* [from->values], arena of `to`; the null value where nothing is mapped yet */
} rung_rewrite;
/* The graphs must share their dimensions (rung_graph_create_like). */
rung_status rung_rewrite_init(rung_rewrite *rewrite, const rung_graph *from, rung_graph *to, rung_error *error);
/* Copies node `index` with mapped operands, bodies included (deep); maps its results. The label goes with it and stays
 * set in `to`, so that what a pass adds next is said to come from the same place. */
rung_status rung_rewrite_copy(rung_rewrite *rewrite, uint32_t index);
/* Same op, attributes, bodies and label on other operands; maps the results too. NULL after an error (sticky in `to`).
 */
const rung_node *rung_rewrite_copy_with(rung_rewrite *rewrite, uint32_t index, const rung_value *in, uint32_t n_in);
/* Copies the outputs; call last. Returns the sticky status of `to`. */
rung_status rung_rewrite_finish(rung_rewrite *rewrite, rung_error *error);
/* Inlines `body` into `to` with its inputs replaced by `in`; gives the values of its outputs. */
rung_status rung_rewrite_inline(rung_graph *to, const rung_graph *body, const rung_value *in, rung_value *out_results);
/* A deep copy of `body`, nested bodies included, as a new body of `to`. After an error as rung_graph_body. */
rung_graph *rung_rewrite_body(rung_graph *to, const rung_graph *body);
/* Number of uses (operands and outputs) of every value, in an array of the arena; NULL if memory runs out. */
uint32_t *rung_graph_uses(const rung_graph *graph, rung_arena *arena);

#endif
