/* SPDX-License-Identifier: MIT
 * The graph inside: nodes in topological order, values, bodies. Nodes are never changed once made: a pass reads one graph
 * and writes another that shares its dimensions (ir/rewrite.h). */
#ifndef RUNG_IR_GRAPH_H
#define RUNG_IR_GRAPH_H

#include "base/arena.h"
#include "ir/op.h"

struct rung_node {
  const rung_op *op;
  const void *attrs;        /* op->attrs_bytes, NULL if none */
  uint32_t *in;             /* value ids */
  uint32_t n_in;
  uint32_t first_value;     /* results are first_value .. first_value + results - 1 */
  uint32_t results;
  uint32_t bodies;
  rung_graph **body;
  const char *label;        /* where it came from, or NULL */
};

typedef struct rung_value_info {
  rung_value_type type;
  uint32_t node;   /* index */
  uint32_t result; /* which result of the node */
} rung_value_info;

typedef struct rung_output {
  const char *name;
  uint32_t value;
} rung_output;

/* A run-time part of verification: the two dims must be equal (or a >= b) at every binding. */
typedef struct rung_dim_check {
  rung_dim a, b;
  uint32_t node; /* who asked */
} rung_dim_check;

struct rung_graph {
  rung_host *host;
  rung_arena arena;
  rung_dims *dims;
  uint32_t serial;   /* what rung_value.graph holds */
  rung_graph *parent; /* of a body */
  rung_node *node;
  uint32_t nodes, node_capacity;
  rung_value_info *value; /* [0] is the null value */
  uint32_t values, value_capacity;
  rung_output *output;
  uint32_t outputs, output_capacity;
  uint32_t *input; /* nodes of op input, in order */
  uint32_t inputs, input_capacity;
  rung_dim_check *check;
  uint32_t checks, check_capacity;
  rung_graph **owned_body; /* every body made for this graph */
  uint32_t owned_bodies, owned_body_capacity;
  const char *label;
  rung_error error; /* sticky */
};

/* An empty graph that shares dims with `like`: what a pass writes to. */
rung_status rung_graph_create_like(const rung_graph *like, rung_error *error, rung_graph **out_graph);

/* Appends a node: checks operands, infers, records. `attrs` is copied (NULL: defaults). Results by id from the returned
 * node's first_value; NULL after an error (sticky). Bodies must have been made by rung_graph_body of this graph. */
const rung_node *rung_graph_append(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in, const void *attrs,
                                   rung_graph *const *body, uint32_t bodies);
/* For ops that declare: the result type is given. */
const rung_node *rung_graph_declare(rung_graph *graph, const rung_op *op, const void *attrs, const rung_value_type *type);
/* One-result shorthand: null value after an error. */
rung_value rung_graph_op(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in, const void *attrs);
rung_value rung_node_result(const rung_graph *graph, const rung_node *node, uint32_t result);

/* Records the first error. */
void rung_graph_fail(rung_graph *graph, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);

static inline const rung_value_type *rung_graph_value_type(const rung_graph *g, uint32_t value) { return &g->value[value].type; }
static inline const rung_node *rung_graph_producer(const rung_graph *g, uint32_t value) { return &g->node[g->value[value].node]; }

/* 128-bit hash over the canonical encoding (op names, attributes, types, structure, symbols; not labels). */
struct rung_hash;
rung_status rung_graph_encode(const rung_graph *graph, rung_text *out);
rung_status rung_graph_hash(const rung_graph *graph, struct rung_hash *out_hash, rung_error *error);
/* The text form into a buffer (printing is public in rung/graph.h). */
void rung_graph_print_text(const rung_graph *graph, rung_text *out);

#endif
