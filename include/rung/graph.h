/* SPDX-License-Identifier: MIT
 * Graphs: how a model is stated. Values are made by ops (rung/ops.h) from inputs, weights, states and constants.
 *
 * Building is sticky: after the first error every later call does nothing and gives a null value; rung_graph_status tells
 * what went wrong, and compiling reports it too. So building code needs no checks of its own:
 *
 *   rung_dim rows = rung_graph_symbol(g, "rows", 1, 512);
 *   rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, (rung_dim[]){rows, rung_graph_constant_dim(g, 64)});
 *   rung_graph_output(g, "y", rung_relu(g, x));
 *
 * A graph belongs to one thread at a time.
 */
#ifndef RUNG_GRAPH_H
#define RUNG_GRAPH_H

#include <rung/host.h>
#include <rung/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_graph rung_graph;

/* A value of one graph. {0, 0} is the null value: what a failed call gives. A value of another graph is refused. */
typedef struct rung_value {
  uint32_t graph, id;
} rung_value;

/* An extent: an interned expression over constants and symbols, equal expressions having equal ids (batch*seq and
 * seq*batch are one). {0} is the null dimension. Dimensions are shared by a graph and its bodies. */
typedef struct rung_dim {
  uint32_t id;
} rung_dim;
typedef enum rung_dim_op {
  RUNG_DIM_ADD,
  RUNG_DIM_SUB,
  RUNG_DIM_MUL,
  RUNG_DIM_FLOORDIV,
  RUNG_DIM_MOD,
  RUNG_DIM_MIN,
  RUNG_DIM_MAX
} rung_dim_op;

RUNG_API RUNG_CHECKED rung_status rung_graph_create(rung_host *host, rung_error *error, rung_graph **out_graph);
RUNG_API void rung_graph_destroy(rung_graph *graph);

RUNG_API rung_dim rung_graph_constant_dim(rung_graph *graph, int64_t value);
/* A symbol with its declared range, lo <= value <= hi, lo >= 0. The same name with the same range is the same symbol;
 * with another range it is an error. Names are identifiers ([A-Za-z_][A-Za-z0-9_.]*, at most 63 bytes; not min, max or
 * none). At most RUNG_MAX_SYMBOLS. */
RUNG_API rung_dim rung_graph_symbol(rung_graph *graph, const char *name, int64_t lo, int64_t hi);
/* Floor division and modulo round towards minus infinity; a divisor that can be 0 is an error. */
RUNG_API rung_dim rung_graph_dim(rung_graph *graph, rung_dim_op op, rung_dim a, rung_dim b);

RUNG_API rung_value rung_graph_input(rung_graph *graph, const char *name, rung_type type, int rank,
                                     const rung_dim *extent);
/* A weight by the name it has in the store. Its extents are constants. */
RUNG_API rung_value rung_graph_weight(rung_graph *graph, const char *name, rung_type type, int rank,
                                      const int64_t *extent);
/* Dense constant data, copied. */
RUNG_API rung_value rung_graph_constant(rung_graph *graph, rung_type type, int rank, const int64_t *extent,
                                        const void *data);
RUNG_API rung_value rung_graph_scalar(rung_graph *graph, rung_type type, double value);

typedef enum rung_state_kind {
  RUNG_STATE_DENSE, /* a tensor that outlives a run: any op reads it, assign and append write it */
  RUNG_STATE_KV /* keys and values of attention, by sequence and position: append, attention and the state calls only */
} rung_state_kind;
typedef struct rung_state_desc {
  size_t size; /* sizeof(rung_state_desc) */
  rung_state_kind kind;
  rung_type type;
  /* DENSE: the extents of the tensor. KV: {kv_heads, key_dim, value_dim} of one position. */
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  int64_t window; /* KV: positions that stay visible (a sliding window), 0 for all */
} rung_state_desc;
/* Declares a state and gives its first version; append and assign give the next ones. */
RUNG_API rung_value rung_graph_state(rung_graph *graph, const char *name, const rung_state_desc *desc);

/* Names a result. A version of a state needs no output: its effect is kept. */
RUNG_API void rung_graph_output(rung_graph *graph, const char *name, rung_value value);
/* Where following nodes come from ("layers.3.attention"), for messages, traces and printing; copied; NULL for none. */
RUNG_API void rung_graph_label(rung_graph *graph, const char *label);

/* Bodies of if, loop and scan: closed graphs that share the parent's dimensions and see nothing but their inputs. The
 * parent owns them. A body is complete once a node has it, and belongs to that node alone. Never NULL for a parent that
 * is not: after an error it is the parent itself, whose calls do nothing. */
RUNG_API rung_graph *rung_graph_body(rung_graph *parent);

RUNG_API rung_status rung_graph_status(const rung_graph *graph);
RUNG_API const char *rung_graph_message(const rung_graph *graph); /* "" when all is well */

/* The type and extents of a value: RUNG_TYPE_LIMIT, -1 and the null dimension for what is no value of this graph. A
 * negative axis counts from the end. */
RUNG_API rung_type rung_graph_type_of(const rung_graph *graph, rung_value value);
RUNG_API int rung_graph_rank_of(const rung_graph *graph, rung_value value);
RUNG_API rung_dim rung_graph_extent_of(const rung_graph *graph, rung_value value, int axis);

/* The text form. What print writes, parse reads, byte for byte: one statement a line, behind the line `rung 1`.
 *
 *   symbol rows 1..512                              a symbol that callers bind
 *   symbol found <= 4*rows made                     one that a step binds, with its bound
 *   %0 = input {name="x"} : f32[rows,576]           results = op operands {attributes} : types
 *   %1 = weight {name="w"} : q4_1[576,576]
 *   %2 = matmul %0, %1 {transpose_b=true} : f32[rows,576]  # layers.0.attention
 *   %s3 = state {name="kv.0"} : kv f16[3,64,64]     %s: a version of a state; `state f32[...]` for dense ones
 *   %4 = if %c, %2 {                                bodies have statements and values of their own
 *     ...
 *   } else {
 *     ...
 *   } : f32[rows,576]
 *   output "y" %4
 *
 * Attributes that have their default are left out. Numbers keep every bit; short constants show as f32(1, 2.5), others as
 * hex"00ff" or base64"...". A comment behind a node is its label, other comments are skipped. Types of results may be left
 * out; those given must be what the op's shape rule says. Values may have any names, print numbers them.
 * Errors of parse begin with "line 3, column 10: ". A graph that parse gives has been verified.
 *
 * The text is the caller's to free with rung_text_free. */
RUNG_API RUNG_CHECKED rung_status rung_graph_print(const rung_graph *graph, rung_error *error, char **out_text,
                                                   size_t *out_bytes);
RUNG_API void rung_text_free(rung_host *host, char *text, size_t bytes);
RUNG_API RUNG_CHECKED rung_status rung_graph_parse(rung_host *host, const char *text, size_t bytes, rung_error *error,
                                                   rung_graph **out_graph);
/* Checks every rule of the form: types, shapes, one writer a state version and its readers before it, closed bodies. */
RUNG_API RUNG_CHECKED rung_status rung_graph_verify(const rung_graph *graph, rung_error *error);

#ifdef __cplusplus
}
#endif
#endif
