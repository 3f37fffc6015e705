/* SPDX-License-Identifier: MIT
 * ONNX files: opened once, as a graph and a store of its weights.
 *
 * Operators become ops by the rows of table.def. Shapes computed in the graph (Shape, Gather, Concat, Reshape ...) are
 * folded into dimension expressions; sizes that depend on data are bound while the graph runs. Named dimensions of
 * inputs become symbols, unnamed ones get the name of their input and axis. */
#ifndef RUNG_FORMATS_ONNX_ONNX_H
#define RUNG_FORMATS_ONNX_ONNX_H

#include <rung/graph.h>
#include <rung/source.h>
#include <rung/weights.h>

#include "base/text.h"

/* An input whose value is fixed when the model is opened: it becomes a constant of the graph. Or an open dimension by
 * the name of its symbol (value: an i64 scalar). */
typedef struct rung_onnx_pin {
  const char *name;
  rung_tensor value; /* dense */
} rung_onnx_pin;

typedef struct rung_onnx_options {
  const rung_onnx_pin *pin;
  size_t pins;
  int64_t largest; /* of dimensions that the file leaves open, and of sizes found at run time that nothing bounds; 0:
                    * 65536 */
} rung_onnx_options;

typedef struct rung_onnx {
  rung_graph *graph;
  rung_weights *weights; /* refers to the file's bytes */
  int64_t ir_version, opset;
} rung_onnx;

bool rung_onnx_recognise(const uint8_t *data, uint64_t bytes);
/* options NULL: defaults. UNSUPPORTED: operators, types or forms of them that are missing; the message begins with how
 * many operators, and `missing` (NULL: not wanted) gets one line for each with its count and the names of its nodes.
 * NOT_FOUND: axes or the like, or which of two branches of different ranks is taken, depend on an input or an open
 * dimension, whose name is the message behind the last colon: the caller may pin it. Everything else is CORRUPT_FILE, IO, OUT_OF_MEMORY or what a shape rule says of a node. */
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
