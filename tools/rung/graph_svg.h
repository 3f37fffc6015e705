/* SPDX-License-Identifier: MIT
 * Drawing a graph. */
#ifndef RUNG_TOOLS_GRAPH_SVG_H
#define RUNG_TOOLS_GRAPH_SVG_H

#include "graph_file.h"

/* One SVG: nodes in rows by their longest way from the inputs, values as curves between them, weights and constants
 * inside the boxes that read them, bodies as the list of their ops. */
rung_status cli_draw_graph(const rung_graph *graph, rung_text *out, rung_error *error);

#endif
