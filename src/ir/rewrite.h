/* SPDX-License-Identifier: MIT
 * Copying a graph with changes: the frame of every pass. */
#ifndef RUNG_IR_REWRITE_H
#define RUNG_IR_REWRITE_H

#include "ir/graph.h"

/* from-graph value id -> to-graph value. */
typedef struct rung_rewrite {
  const rung_graph *from;
  rung_graph *to;
  rung_value *map; /* [from->values], arena of `to` */
} rung_rewrite;
rung_status rung_rewrite_init(rung_rewrite *rewrite, const rung_graph *from, rung_graph *to, rung_error *error);
/* Copies node `index` with mapped operands, bodies included (deep); maps its results. */
rung_status rung_rewrite_copy(rung_rewrite *rewrite, uint32_t index);
/* Same op and attributes on other operands. */
const rung_node *rung_rewrite_copy_with(rung_rewrite *rewrite, uint32_t index, const rung_value *in, uint32_t n_in);
/* Copies the outputs; call last. Returns the sticky status of `to`. */
rung_status rung_rewrite_finish(rung_rewrite *rewrite, rung_error *error);
/* Inlines `body` into `to` with its inputs replaced by `in`; gives the values of its outputs. */
rung_status rung_rewrite_inline(rung_graph *to, const rung_graph *body, const rung_value *in, rung_value *out_results);
/* Number of uses (operands and outputs) of every value, in an array of the arena. */
uint32_t *rung_graph_uses(const rung_graph *graph, rung_arena *arena);

#endif
