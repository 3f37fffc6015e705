/* SPDX-License-Identifier: MIT
 * ONNX models: a file becomes a graph and the store of its weights, to be compiled and run like any other.
 *
 *   rung_onnx_read --> graph, weights --> rung_template_create, rung_view_create --> context
 *
 * Operators become ops as docs/onnx.md lists them. Named dimensions of inputs become symbols, unnamed ones get the name
 * of their input and axis (x_2). Sizes that depend on data are found while the graph runs.
 */
#ifndef RUNG_ONNX_H
#define RUNG_ONNX_H

#include <rung/graph.h>
#include <rung/source.h>
#include <rung/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An input whose value is fixed when the model is read: it becomes a constant of the graph. Or an open dimension by the
 * name of its symbol (value: an i64 scalar). */
typedef struct rung_onnx_pin {
  const char *name;
  rung_tensor value; /* dense; read during the call */
} rung_onnx_pin;

typedef struct rung_onnx_options {
  size_t size; /* sizeof(rung_onnx_options) */
  const rung_onnx_pin *pin;
  size_t pins;
  int64_t largest; /* of dimensions that the file leaves open, and of sizes found at run time that nothing bounds; 0:
                    * 65536 */
} rung_onnx_options;
RUNG_API rung_onnx_options rung_onnx_options_default(void);

/* Reads a model; options NULL: defaults. The weights refer to the file's bytes, and to those of the files beside it that
 * it names, which must lie in its folder; they may be released once a view keeps them, the graph once it is compiled.
 *
 * UNSUPPORTED: operators, types or forms of them that are missing; the message counts them and names the first.
 * NOT_FOUND: axes or the like, or which of two branches of different ranks is taken, depend on an input or an open
 * dimension, whose name is the message behind the last colon: read again with a pin for it. Otherwise CORRUPT_FILE with
 * the offset or name, IO, OUT_OF_MEMORY, or what a shape rule says of a node. Nothing is left behind then. */
RUNG_API RUNG_CHECKED rung_status rung_onnx_read(rung_host *host, const rung_source *source,
                                                 const rung_onnx_options *options, rung_error *error,
                                                 rung_graph **out_graph, rung_weights **out_weights);

/* A note that the model's maker left in the file (metadata_props), such as the labels of its classes; terminated, freed
 * with rung_text_free. NOT_FOUND: there is none of that key. Nothing of the graph is read. */
RUNG_API RUNG_CHECKED rung_status rung_onnx_note(rung_host *host, const rung_source *source, const char *key,
                                                 rung_error *error, char **out_text, size_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif
