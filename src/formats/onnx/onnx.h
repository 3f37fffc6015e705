/* SPDX-License-Identifier: MIT
 * ONNX files: opened once, as a graph and a store of its weights.
 *
 * Operators become ops by the rows of table.def. Shapes computed in the graph (Shape, Gather, Concat, Reshape ...) are
 * folded into dimension expressions; sizes that depend on data are bound while the graph runs. Named dimensions of
 * inputs become symbols, unnamed ones get the name of their input and axis. */
#ifndef RUNG_FORMATS_ONNX_ONNX_H
#define RUNG_FORMATS_ONNX_ONNX_H

#include <rung/onnx.h>

#include "base/text.h"

typedef struct rung_onnx {
  rung_graph *graph;
  rung_weights *weights; /* refers to the file's bytes */
  int64_t ir_version, opset;
} rung_onnx;

bool rung_onnx_recognise(const uint8_t *data, uint64_t bytes);
/* As rung_onnx_read. `missing` (NULL: not wanted) gets one line for each operator that is missing, with its count and the
 * names of its nodes. */
rung_status rung_onnx_open(rung_host *host, const rung_source *source, const rung_onnx_options *options,
                           rung_text *missing, rung_error *error, rung_onnx *out_onnx);
void rung_onnx_close(rung_onnx *onnx); /* zeroed allowed */

/* The table of operators, for documentation. */
typedef struct rung_onnx_operator {
  const char *domain, *name, *op; /* op: "" if it is made of several */
  int since, until;               /* opset versions; until 0: the newest */
  const char *limits;             /* what is refused; "" */
} rung_onnx_operator;
size_t rung_onnx_operators(void);
rung_onnx_operator rung_onnx_operator_at(size_t index);
/* The newest opset of the standard domain that the table knows. */
enum { RUNG_ONNX_NEWEST_OPSET = 28 };

#endif
