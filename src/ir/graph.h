/* SPDX-License-Identifier: MIT
 * The graph inside: nodes in topological order, values, bodies. Nodes are never changed once made: a pass reads one
 * graph and writes another that shares its dimensions (ir/rewrite.h). */
#ifndef RUNG_IR_GRAPH_H
#define RUNG_IR_GRAPH_H

#include "base/arena.h"
#include "ir/op.h"

struct rung_node {
  const rung_op *op;
  const void *attrs; /* op->attrs_bytes, NULL if none */
  uint32_t *in;      /* value ids */
  uint32_t n_in;
  uint32_t first_value; /* results are first_value .. first_value + results - 1 */
  uint32_t results;
  uint32_t bodies;
  rung_graph **body;
  const char *label; /* where it came from, or NULL */
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

/* A run-time part of verification: a and b must be equal, or a >= b, at every binding. */
typedef struct rung_dim_check {
  rung_dim a, b;
  bool at_least;
  uint32_t node; /* who asked */
} rung_dim_check;

/* Names that must be unique, by kind. */
typedef enum rung_name_kind { RUNG_NAME_INPUT, RUNG_NAME_WEIGHT, RUNG_NAME_STATE, RUNG_NAME_OUTPUT } rung_name_kind;
typedef struct rung_name_entry {
  const char *name; /* NULL: a free place */
  uint32_t kind;
  uint32_t index; /* of the node, or of the output */
} rung_name_entry;

struct rung_graph {
  rung_host *host;
  rung_arena arena;
  rung_dims *dims;
  uint32_t serial;    /* what rung_value.graph holds */
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
  rung_error error;      /* sticky */
  uint64_t made;         /* symbols that nodes of this graph have made */
  uint32_t depth;        /* of nesting; 0 for a graph that is no body */
  bool closed;           /* a body that a node has: nothing can be added any more */
  rung_name_entry *name; /* hash table */
  uint32_t names, name_capacity;
};
enum { RUNG_MAX_NESTING = 64, RUNG_MAX_OPERANDS = 65535 };

/* An empty graph that shares dims with `like`: what a pass writes to. */
rung_status rung_graph_create_like(const rung_graph *like, rung_error *error, rung_graph **out_graph);
/* The same with a copy of dims, so that the two may be used from different threads. */
rung_status rung_graph_create_apart(const rung_graph *like, rung_error *error, rung_graph **out_graph);

/* Appends a node: checks operands, infers, records. `attrs` is copied (NULL: defaults). Results by id from the returned
 * node's first_value; NULL after an error (sticky). Bodies must have been made by rung_graph_body of this graph. */
const rung_node *rung_graph_append(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in,
                                   const void *attrs, rung_graph *const *body, uint32_t bodies);
/* The same with the types that the results are expected to have (copies, parsed text): symbols that the node makes are
 * taken from them. They are only a hint: what the shape rule says counts. */
const rung_node *rung_graph_append_as(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in,
                                      const void *attrs, rung_graph *const *body, uint32_t bodies,
                                      const rung_value_type *given, uint32_t n_given);
/* For ops that declare: the result type is given. */
const rung_node *rung_graph_declare(rung_graph *graph, const rung_op *op, const void *attrs,
                                    const rung_value_type *type);
/* One-result shorthand: null value after an error. */
rung_value rung_graph_op(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in, const void *attrs);
rung_value rung_node_result(const rung_graph *graph, const rung_node *node, uint32_t result);

/* Node or output index of a name, or UINT32_MAX. */
uint32_t rung_graph_find_name(const rung_graph *graph, rung_name_kind kind, const char *name);
/* The label of following nodes, kept as it is: it must live as long as the graph. */
static inline void rung_graph_set_label(rung_graph *graph, const char *label) { graph->label = label; }
/* "%12" or "%s12" as the text form calls a value; the null value is "%null". */
typedef struct rung_value_name {
  char text[16];
} rung_value_name;
rung_value_name rung_graph_value_name(const rung_graph *graph, uint32_t value);
/* `f32[rows,576]`, `kv f16[3,64,64]`, as in the text form. */
void rung_value_type_print(const rung_dims *dims, const rung_value_type *type, rung_text *out);
/* Symbols that the graph speaks of, in types, attributes, bodies and the bounds of these symbols: one bit each. */
uint64_t rung_graph_symbols(const rung_graph *graph);
bool rung_value_type_equal(const rung_value_type *a, const rung_value_type *b);
/* The operand that node's body input `input` stands for: bodies' inputs are the last operands, in order (the first
 * operands of `if` are for the node itself). UINT32_MAX for none. */
static inline uint32_t rung_node_operand_of_input(const rung_node *node, const rung_graph *body, uint32_t input) {
  return body->inputs > node->n_in ? UINT32_MAX : node->n_in - body->inputs + input;
}

/* Records the first error. */
void rung_graph_fail(rung_graph *graph, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);

static inline const rung_value_type *rung_graph_value_type(const rung_graph *g, uint32_t value) {
  return &g->value[value].type;
}
static inline const rung_node *rung_graph_producer(const rung_graph *g, uint32_t value) {
  return &g->node[g->value[value].node];
}

/* 128-bit hash over the canonical encoding (op names, attributes, types, structure, symbols; not labels). */
struct rung_hash;
enum { RUNG_GRAPH_ENCODING = 1 }; /* its version */
rung_status rung_graph_encode(const rung_graph *graph, rung_text *out);
/* What the encoding leaves out and a stored graph should keep: the order of symbols, those that nothing uses, labels.
 */
rung_status rung_graph_encode_notes(const rung_graph *graph, rung_text *out);
/* Reads an encoding back (decode.c). The bytes are not trusted: what is malformed is refused with CORRUPT_FILE and its
 * offset. notes NULL: no labels, symbols as the encoding has them. */
rung_status rung_graph_decode(rung_host *host, const void *data, uint64_t bytes, const void *notes,
                              uint64_t notes_bytes, rung_error *error, rung_graph **out_graph);
rung_status rung_graph_hash(const rung_graph *graph, struct rung_hash *out_hash, rung_error *error);
/* The text form into a buffer (printing is public in rung/graph.h). */
void rung_graph_print_text(const rung_graph *graph, rung_text *out);

#endif
