/* SPDX-License-Identifier: MIT
 * The importer seen from inside: what the builders of table.def work with. All is sticky: after the first refusal every
 * call gives nothing, and the importer stops behind the node. */
#ifndef RUNG_FORMATS_ONNX_IMPORT_H
#define RUNG_FORMATS_ONNX_IMPORT_H

#include "formats/onnx/model.h"
#include "formats/onnx/onnx.h"
#include "ir/graph.h"
#include "ops/build.h"
#include "ops/shape.h"
#include "weights/store.h"

typedef struct onnx_import onnx_import;
typedef struct onnx_scope onnx_scope;
typedef struct onnx_body onnx_body;
typedef struct onnx_call onnx_call;

/* NAMED_INPUTS: builders may look at so many operands, whatever a node gives; those it does not are null. */
enum {
  ONNX_NAMED_INPUTS = 16,
  ONNX_MAX_INPUTS = 1024,
  ONNX_MAX_KNOWN = 1024,
  ONNX_LARGEST = 65536,
  ONNX_MAX_NODES = 1 << 20
};

typedef struct onnx_row {
  const char *domain, *name;
  int since, until;
  void (*build)(onnx_call *call);
  const rung_op *op; /* for builders that serve several operators */
  int variant;
  const char *limits;
} onnx_row;
const onnx_row *onnx_row_find(onnx_name domain, onnx_name op, int64_t version);
/* The domain as the table spells it: "" for "ai.onnx" and for none. */
onnx_name onnx_domain(onnx_name domain);

/* A constant of any number of elements: dense bytes that live as long as the import. */
typedef struct onnx_constant {
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  int64_t elements;
  const uint8_t *data;
} onnx_constant;
double onnx_constant_number(const onnx_constant *constant, int64_t index);
int64_t onnx_constant_integer(const onnx_constant *constant, int64_t index);

/* What is known of a value: the bytes, or an expression for each element: dim over divisor; dim {0}: not known. */
typedef struct onnx_symbolic {
  rung_dim dim;
  int64_t divisor;
} onnx_symbolic;
typedef struct onnx_known {
  bool tried_constant, tried_symbolic, visiting;
  onnx_constant *constant;
  uint32_t count;
  onnx_symbolic *symbolic;
} onnx_known;

/* A rung graph that is being filled, and what is known of its values. */
struct onnx_body {
  rung_graph *g;
  onnx_body *outer; /* NULL: the model's own graph */
  rung_value *outside, *inside;
  uint32_t captures, outside_capacity, inside_capacity;
  onnx_known **known; /* by value id */
  uint32_t known_capacity;
};

typedef struct onnx_binding {
  onnx_name name;
  rung_value value;
} onnx_binding;
/* Names of one graph or function. */
struct onnx_scope {
  onnx_import *imp;
  onnx_scope *outer; /* of a sub-graph; NULL: names of callers are not seen */
  onnx_body *body;
  const onnx_graph *graph;
  const onnx_function *function;
  const onnx_node *caller; /* of a function: gives values to attributes */
  onnx_scope *caller_scope;
  const onnx_opset *opset;
  uint32_t opsets;
  onnx_binding *binding; /* hash table */
  uint32_t bindings, binding_capacity;
  int depth;
};

struct onnx_import {
  rung_host *host;
  rung_error *error;
  rung_status status; /* sticky */
  rung_arena arena;
  onnx_model model;
  rung_graph *graph;
  onnx_body *root;
  rung_weights *weights;
  int source;         /* of the file's bytes */
  const char *folder; /* of external data; NULL: none can be had */
  const rung_onnx_options *options;
  rung_text *missing;
  uint32_t fresh;     /* counts names that are made up */
  const char *wanted; /* input whose value should have been known */
  struct onnx_external *externals;
  int calls;      /* nesting of function calls */
  uint32_t nodes; /* imported so far: each call of a function and each look at a loop's body counts anew */
};

/* One node being imported. */
struct onnx_call {
  onnx_import *imp;
  onnx_scope *scope;
  rung_graph *g;
  const onnx_node *node;
  const onnx_row *row;
  int64_t version; /* of the opset that the node is of */
  uint32_t n_in, n_out;
  rung_value *in;  /* null where left out */
  rung_value *out; /* to be set; those that are left out need not be */
};

/* ---- failing */
void onnx_refuse(onnx_call *call, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);
rung_status onnx_fail(onnx_import *imp, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);
/* Has this import failed (here or in the graph)? */
bool onnx_failed(const onnx_call *call);

/* ---- attributes; functions' references are resolved */
const onnx_attr *onnx_attr_find(const onnx_call *call, const char *name);
int64_t onnx_int(const onnx_call *call, const char *name, int64_t standard);
double onnx_float(const onnx_call *call, const char *name, double standard);
/* A list of at most RUNG_MAX_RANK numbers; false if it is not there. Longer ones are refused. */
bool onnx_int_list(onnx_call *call, const char *name, rung_i64_list *out);
/* Is a text attribute this? `standard` if it is not there. */
bool onnx_text_is(const onnx_call *call, const char *name, const char *standard, const char *text);

/* ---- operands */
static inline bool onnx_has(const onnx_call *call, uint32_t i) { return i < call->n_in && call->in[i].id != 0; }
static inline bool onnx_wants(const onnx_call *call, uint32_t i) {
  return i < call->node->outputs && call->node->output[i].length != 0;
}
static inline const rung_value_type *onnx_type(const onnx_call *call, rung_value v) {
  return rung_build_type(call->g, v);
}
static inline int onnx_rank(const onnx_call *call, rung_value v) { return rung_build_type(call->g, v)->rank; }
/* Refuses an axis outside [-rank, rank). */
int onnx_axis(onnx_call *call, int64_t axis, int rank);

/* ---- what is known (known.c) */
/* NULL: not a constant. */
const onnx_constant *onnx_constant_of(onnx_import *imp, onnx_body *body, rung_value value);
/* Expressions of all elements, some of which may be unknown; NULL: nothing is known, or too many elements. */
const onnx_symbolic *onnx_symbolic_of(onnx_import *imp, onnx_body *body, rung_value value, uint32_t *out_count);
/* The constant integers of operand i; refused (to be pinned) if they are not constant. Lists of any length. */
bool onnx_constant_ints(onnx_call *call, uint32_t i, rung_i64_list *out);
/* The input of the model, or the symbol, that a value depends on; NULL: none is found. */
const char *onnx_root(const onnx_call *call, rung_value v);
const onnx_constant *onnx_constant_in(onnx_call *call, uint32_t i); /* refuses */
bool onnx_constant_scalar(onnx_call *call, uint32_t i, double *out);
/* The same as an integer; what is no integer is refused. */
bool onnx_constant_integer_scalar(onnx_call *call, uint32_t i, int64_t *out);
/* A whole number of floating type as an integer; refused where it is none, or none that an extent can be. */
bool onnx_whole(onnx_call *call, double value, int64_t *out);
/* A number known now, without refusing. */
bool onnx_scalar_known(onnx_call *call, rung_value v, double *out);
/* Elements of an integer vector as dimensions: {0} for those that are not known. False: not of rank 0 or 1, or of no
 * constant extent, which is refused. Constants may be negative. */
bool onnx_dims_known(onnx_call *call, rung_value v, rung_dim_list *out);
/* Element `index` of an integer vector (or the scalar), as an i64 scalar of the graph. */
rung_value onnx_element(onnx_call *call, rung_value v, int64_t index);
/* The bound of sizes that nothing else bounds. */
rung_dim onnx_largest(const onnx_call *call);
/* A symbol that gets the value of an integer scalar, at most `bound` ({0}: the one of sizes that nothing bounds). */
rung_dim onnx_bind(onnx_call *call, rung_value scalar, rung_dim bound);
/* Elements of an integer vector as dimensions, bound at run time where they are not known. */
bool onnx_dims_in(onnx_call *call, uint32_t i, const rung_dim *bound, rung_dim_list *out);
/* What the file declares for an axis of a result; {0}: nothing constant. */
rung_dim onnx_declared(const onnx_call *call, uint32_t result, int axis);

/* ---- building */
static inline rung_dim onnx_dim(const onnx_call *call, int64_t value) {
  return rung_graph_constant_dim(call->g, value);
}
static inline rung_dim onnx_extent(const onnx_call *call, rung_value v, int axis) {
  return rung_build_type(call->g, v)->extent[axis];
}
rung_value onnx_op(const onnx_call *call, const rung_op *op, rung_value a, const void *attrs);
rung_value onnx_op2(const onnx_call *call, const rung_op *op, rung_value a, rung_value b, const void *attrs);
rung_value onnx_op3(const onnx_call *call, const rung_op *op, rung_value a, rung_value b, rung_value c,
                    const void *attrs);
rung_value onnx_scalar(const onnx_call *call, rung_value like, double value); /* of the type of `like` */
rung_value onnx_reshape(const onnx_call *call, rung_value x, int rank, const rung_dim *extent);
/* A vector of i64 constants. */
rung_value onnx_vector(const onnx_call *call, const int64_t *value, int count);
/* Extents as an i64 vector. */
rung_value onnx_extents(const onnx_call *call, const rung_dim *extent, int count);
rung_value onnx_filled(const onnx_call *call, rung_type type, double value, int rank, const rung_dim *extent);
rung_value onnx_arange(const onnx_call *call, rung_dim count, rung_type type);
/* Converts where the type differs. */
rung_value onnx_cast(const onnx_call *call, rung_value x, rung_type type);
rung_value onnx_slice(const onnx_call *call, rung_value x, int axis, int64_t start, int64_t length);
/* x with axes in another order that moves `axis` last, and back. */
rung_value onnx_move_axis(const onnx_call *call, rung_value x, int from, int to);

/* ---- the importer */
rung_value onnx_look_up(onnx_scope *scope, onnx_name name); /* null: not there */
rung_status onnx_bind_name(onnx_scope *scope, onnx_name name, rung_value value);
rung_status onnx_import_nodes(onnx_scope *scope, const onnx_node *node, uint32_t nodes);
/* A sub-graph's scope over a new body; initializers are bound. */
onnx_scope *onnx_scope_create(onnx_import *imp, onnx_scope *outer, onnx_body *body, const onnx_graph *graph);
onnx_body *onnx_body_create(onnx_import *imp, onnx_body *outer, rung_graph *g);
rung_value onnx_capture(onnx_import *imp, onnx_body *body, rung_value outside);
rung_value onnx_tensor_value(onnx_scope *scope, const onnx_tensor *tensor, onnx_name name);
const char *onnx_text(onnx_import *imp, onnx_name name); /* terminated; NULL after out of memory */
/* Types a constant attribute. */
bool onnx_element_type(onnx_call *call, int64_t data_type, rung_type *out);

#endif
