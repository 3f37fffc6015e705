/* SPDX-License-Identifier: MIT
 * What an op is: one constant per op, stated once in src/ops/ and read by builder, printer, parser, hash, verifier,
 * planner, backends, tests and documentation. */
#ifndef RUNG_IR_OP_H
#define RUNG_IR_OP_H

#include "ir/args.h"
#include "ir/dim.h"
#include "ir/value_type.h"

typedef struct rung_node rung_node;
typedef struct rung_op rung_op;

typedef enum rung_attr_kind {
  RUNG_ATTR_I64,     /* int64_t */
  RUNG_ATTR_F64,     /* double */
  RUNG_ATTR_BOOL,    /* bool */
  RUNG_ATTR_TEXT,    /* const char *, never NULL */
  RUNG_ATTR_TYPE,    /* rung_type */
  RUNG_ATTR_ENUM,    /* int32_t, named by `names` */
  RUNG_ATTR_DIM,     /* rung_dim */
  RUNG_ATTR_DIMS,    /* rung_dim_list */
  RUNG_ATTR_I64S,    /* rung_i64_list */
  RUNG_ATTR_CONSTANT /* rung_blob: raw bytes */
} rung_attr_kind;
typedef struct rung_dim_list {
  int32_t count;
  rung_dim dim[RUNG_MAX_RANK];
} rung_dim_list;
typedef struct rung_i64_list {
  int32_t count;
  int64_t value[RUNG_MAX_RANK];
} rung_i64_list;
typedef struct rung_blob {
  const uint8_t *data;
  uint64_t bytes;
} rung_blob;

typedef struct rung_attr {
  const char *name;
  uint8_t kind;
  uint16_t offset;          /* in the attribute struct */
  const char *text_default; /* as in the text form; NULL: must be given */
  const char *const *names; /* ENUM: terminated by NULL */
  const char *doc;
} rung_attr;

enum {
  RUNG_OP_ELEMENTWISE = 1 << 0, /* one result, operands broadcast, every element alone */
  RUNG_OP_ROW_LOCAL =
      1 << 1,              /* each result row (last axis) depends on the same row of the operands; may be in a region */
  RUNG_OP_VIEW = 1 << 2,   /* the result can alias operand 0 (see view) */
  RUNG_OP_EFFECT = 1 << 3, /* result 0 is the next version of state operand 0 */
  RUNG_OP_SIZES = 1 << 4,  /* binds symbols when it runs: bind_symbol, and control ops whose extents bodies decide */
  RUNG_OP_DECLARES = 1 << 5, /* input, weight, state, constant: the result type is given, not inferred */
  RUNG_OP_CONTROL = 1 << 6,  /* if, loop: run by the runtime */
  RUNG_OP_RANDOM = 1 << 7,   /* takes numbers from the context's generator: never folded or merged */
  RUNG_OP_COLUMNS = 1 << 8,  /* results are column ranges of one buffer */
  RUNG_OP_IN_PLACE = 1 << 9, /* the result may be written over an operand of the same type and extents */
  RUNG_OP_INPUT = 1 << 10    /* DECLARES, and is bound at each run (or by the node that has the body) */
};

/* Shape rule: fills out[0..results) from in[] and attributes. Refuses with rung_fail(infer->error, ...): the only place
 * that rejects operands. May add dims, checks (rung_infer_equal) and, for SIZES, symbols (rung_infer_symbol). For ops
 * that declare, out[0] holds the given type and the rule only checks it. The graph does not look again at what a rule
 * said: a verifier infers once more and compares. */
typedef struct rung_infer {
  struct rung_graph *graph;
  rung_dims *dims;
  const rung_op *op;
  const void *attrs;
  const rung_value_type *in;
  uint32_t n_in;
  struct rung_graph *const *body;
  uint32_t bodies;
  rung_value_type *out;
  uint32_t n_out;
  rung_error *error;
  const rung_value_type *given; /* [n_out] types that are expected (parsed, copied, verified), or NULL */
  uint64_t made;                /* symbols that this call made, one bit each */
  bool silent;                  /* verifying: checks are not recorded */
} rung_infer;
/* Are the two extents equal? Provably: true. Provably not, or one is null: false. Else records a run-time check and
 * says true. */
bool rung_infer_equal(rung_infer *infer, rung_dim a, rung_dim b);
/* Is a >= b at every binding? As above. */
bool rung_infer_at_least(rung_infer *infer, rung_dim a, rung_dim b);
/* The symbol for an extent that this step finds at run time: axis `axis` of result `result`, at most `bound` ({0}: no
 * bound). `name` is what a new one is called (NULL or "": a fresh name; a name in use is refused). Inferring again
 * finds the symbol of the given types. {0} on failure. */
rung_dim rung_infer_symbol(rung_infer *infer, uint32_t result, int axis, const char *name, rung_dim bound);

/* A view: how the result lies in operand 0's memory. Dims are in elements (blocks for block types). */
typedef struct rung_view_rule {
  rung_dims *dims;
  const void *attrs;
  const rung_value_type *in, *out;
  const rung_dim *in_stride;
  rung_dim out_offset; /* added to the operand's offset; starts as the constant 0 */
  rung_dim out_stride[RUNG_MAX_RANK];
} rung_view_rule;

typedef struct rung_test_case {
  /* Operand types and shapes in the text form, e.g. "f32[5,67] f32[67]"; integers in {} after an operand give its
   * values' range: "i32[9]{0,4}". attrs in the text form, "" for none. bodies: text of each body, or NULL. */
  const char *operands;
  const char *attrs;
} rung_test_case;

typedef struct rung_tolerance {
  double relative; /* to the largest magnitude among the reference's inputs to that element's sum, or of the value
                      itself */
  double absolute; /* floor, for flushed denormals */
} rung_tolerance;

struct rung_op {
  const char *name;
  const char *doc;                  /* one line */
  const char *const *operands;      /* names, terminated by NULL; a last name ending in "..." repeats */
  const char *const *results_named; /* names of the results, terminated by NULL; NULL: one, "y" */
  uint8_t in_lo, in_hi;             /* operand count; in_hi 255: any number */
  uint8_t results;                  /* 0: as many as infer says through rung_op.result_count */
  uint8_t bodies;                   /* bodies that a node must have; 255: any */
  uint32_t flags;
  const rung_attr *attrs; /* terminated by name NULL; NULL for none */
  uint16_t attrs_bytes;
  uint8_t inner_attrs; /* so many of the last attributes are set by passes: builders leave them at their defaults */
  const char *const *roles; /* what guards, scratch and tests speak of: {"M","N","K",NULL}; NULL: {"elements"} */

  uint32_t (*result_count)(const void *attrs, uint32_t n_in, uint32_t bodies, struct rung_graph *const *body);
  rung_status (*infer)(rung_infer *);
  void (*role_dims)(rung_dims *, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                    const void *attrs, rung_dim *out_role);
  /* The op's meaning: plain, in double (64-bit integers for integer types), any strides, rounding once to the result's
   * type. Operands of type f64 make it the float64 oracle. */
  rung_status (*reference)(const rung_args *);
  /* out_gx[i] is null where operand i has no gradient. gy[r] is null for results without one. */
  void (*gradient)(struct rung_graph *, const rung_node *, const rung_value *in, const rung_value *y,
                   const rung_value *gy, rung_value *out_gx);
  const char *no_gradient; /* the reason, when gradient is NULL */
  /* Builds smaller ops with the same meaning; NULL: a primitive. */
  void (*decompose)(struct rung_graph *, const rung_node *, const rung_value *in, rung_value *out);
  bool (*view)(rung_view_rule *); /* VIEW: false when a copy is needed (then the op's kernel or reference runs) */
  /* SIZES: the values that the symbols it binds have once it has run. A plain op's scalar results are these values too,
   * so that binding is reading a scalar; of a control op the runtime knows them (NULL here). */
  void (*sizes)(const rung_args *, int64_t *out_symbol);

  const char *expression;      /* elementwise: the value column, for generated device code */
  double test_lo, test_hi;     /* range of float operands in tests */
  const rung_test_case *tests; /* terminated by operands NULL */
  rung_tolerance tolerance;
};

/* The op of a name, NULL if there is none; the name need not be terminated. What the parser asks: defined by the table
 * of all ops (ops/op_table.c), so that the graph knows no op. */
const rung_op *rung_op_find(const char *name, size_t length);

/* Attributes by their list, without per-op code (attrs.c, attrs_text.c). Structs are zeroed memory of op->attrs_bytes.
 */

/* Every default that the list has; what must be given stays zero. Text goes to the arena of dims. */
void rung_attrs_default(const rung_op *op, rung_dims *dims, void *attrs);
/* By content; doubles by their bits. */
bool rung_attrs_equal(const rung_op *op, const void *a, const void *b);
bool rung_attr_equal(const rung_attr *attr, const void *a, const void *b);
/* For tables in memory (dims by id); equal attributes have equal hashes. */
uint64_t rung_attrs_hash(const rung_op *op, const void *attrs);
/* A deep copy in an arena; NULL if memory runs out. */
void *rung_attrs_copy(const rung_op *op, rung_arena *arena, const void *attrs);
/* Refuses what the list does not allow: null text, an enum out of range, a list longer than 8, dims that are not of
 * this table. */
rung_status rung_attrs_check(const rung_op *op, const rung_dims *dims, const void *attrs, rung_error *error);
/* Replaces every dimension d by map(self, d). */
void rung_attrs_remap(const rung_op *op, void *attrs, rung_dim (*map)(void *self, rung_dim), void *self);
const rung_attr *rung_attr_find(const rung_op *op, const char *name, size_t length); /* NULL if there is none */
static inline const void *rung_attr_get(const rung_attr *attr, const void *attrs) {
  return (const uint8_t *)attrs + attr->offset;
}
/* The text attribute called "name", NULL if there is none. */
const char *rung_attrs_name(const rung_op *op, const void *attrs);
size_t rung_attr_bytes(uint8_t kind);

/* `name=value, name=value` without braces; what equals its default is left out. `type` is that of the result, for
 * showing short constants as numbers; NULL allowed. True if something was written. */
bool rung_attrs_print(const rung_op *op, const rung_dims *dims, const void *attrs, const rung_value_type *type,
                      rung_text *out);
/* One value, as in the text form. */
void rung_attr_print(const rung_attr *attr, const rung_dims *dims, const void *attrs, const rung_value_type *type,
                     rung_text *out);
/* Takes no memory. Defaults of text, dims and constants are recognised if they are plain text, `none`, whole numbers or
 * lists of these, or no bytes. */
bool rung_attr_is_default(const rung_attr *attr, const rung_dims *dims, const void *attrs);
/* Reads such a list into zeroed memory, defaults included; text and constants go to the arena. `end` is set behind what
 * was read, or to where reading failed. Stops before what is no name; the caller looks at what follows. */
rung_status rung_attrs_parse(const rung_op *op, rung_dims *dims, rung_arena *arena, const char *text, const char *limit,
                             const char **end, void *attrs, rung_error *error);

#endif
