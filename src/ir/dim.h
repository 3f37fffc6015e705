/* SPDX-License-Identifier: MIT
 * Dimension expressions, interned in normal form so that equal expressions have equal ids.
 *
 * A node is a constant, a symbol, a polynomial (a sum of coefficient times a product of atoms, ordered), or one of
 * floordiv, mod, min, max over two dims. Atoms are symbols and the latter four. Ids grow from operands to users, so one
 * walk in id order evaluates all. Constructors simplify: constants fold, (8*n)/8 is n, (8*n) mod 8 is 0, min and max of
 * operands whose intervals do not overlap is one of them.
 */
#ifndef RUNG_IR_DIM_H
#define RUNG_IR_DIM_H

#include <rung/graph.h>

#include "base/arena.h"
#include "base/text.h"

typedef enum rung_dim_kind {
  RUNG_DIM_KIND_NONE,
  RUNG_DIM_KIND_CONSTANT,
  RUNG_DIM_KIND_SYMBOL,
  RUNG_DIM_KIND_POLYNOMIAL,
  RUNG_DIM_KIND_FLOORDIV,
  RUNG_DIM_KIND_MOD,
  RUNG_DIM_KIND_MIN,
  RUNG_DIM_KIND_MAX
} rung_dim_kind;

typedef struct rung_dim_term {
  int64_t coefficient;
  uint32_t atom; /* first of `atoms` in the table's atom list, sorted ids, repeated for powers */
  uint32_t atoms;
} rung_dim_term;

typedef struct rung_dim_node {
  uint8_t kind;
  uint8_t symbol; /* index of a SYMBOL */
  uint32_t a, b; /* operands; of a POLYNOMIAL: first term and term count (the constant term has no atoms, comes last) */
  int64_t value; /* of a CONSTANT */
  int64_t lo, hi;   /* interval over the symbols' declared ranges; saturated at +-INT64_MAX, which mean "no bound" */
  uint64_t symbols; /* which symbols it depends on, one bit each */
  uint16_t depth;   /* of operators; limited, so that printing and parsing may recurse */
  uint16_t size;    /* of the expression written out; limited */
} rung_dim_node;

typedef struct rung_symbol {
  const char *name;
  int64_t lo, hi;
  rung_dim dim;   /* the symbol as a dimension */
  rung_dim bound; /* for symbols that a step binds: an upper bound over earlier symbols, {0} if hi is the bound */
  bool made;      /* bound by a step, not by inputs */
} rung_symbol;

typedef struct rung_dims {
  rung_host *host;
  rung_arena arena;
  rung_dim_node *node; /* [0] is the null dimension */
  uint32_t count, capacity;
  rung_dim_term *term;
  uint32_t terms, term_capacity;
  uint32_t *atom;
  uint32_t atoms, atom_capacity;
  rung_symbol symbol[RUNG_MAX_SYMBOLS];
  uint32_t symbols;
  uint32_t *table; /* hash table of ids */
  uint32_t table_size;
  rung_status failure; /* why the last constructor that gave {0} did so */
  const char *reason;
  const struct rung_dims *cloned_from; /* whose ids mean the same here; for comparing, never followed */
  /* Graphs of one compile share the table; one thread at a time while it grows. */
  uint32_t references;
} rung_dims;

rung_dims *rung_dims_create(rung_host *host); /* NULL: out of memory */
/* The same dimensions with the same ids in a table that grows on its own. NULL: out of memory. */
rung_dims *rung_dims_clone(const rung_dims *dims);
void rung_dims_retain(rung_dims *dims);
void rung_dims_release(rung_dims *dims);

/* All constructors give {0} on failure (out of memory, overflow of a constant, division by a dim that can be 0, an
 * expression beyond the limits of dim_poly.h); dims->failure and dims->reason say why. INT64_MIN is no constant. */
rung_dim rung_dims_constant(rung_dims *dims, int64_t value);
/* Names are identifiers ([A-Za-z_][A-Za-z0-9_.]*, at most 63 bytes, not min, max or none); importers rename what is
 * not. The same name with the same range is the same symbol. */
rung_dim rung_dims_symbol(rung_dims *dims, const char *name, int64_t lo, int64_t hi);
/* A symbol that a step binds, at most `bound` ({0}: no bound). NULL or "": a fresh name; a name in use is refused.
 * Shape rules call rung_infer_symbol (ir/op.h) instead, so that inferring again finds the same symbol. */
rung_dim rung_dims_make_symbol(rung_dims *dims, const char *name, rung_dim bound);
rung_dim rung_dims_combine(rung_dims *dims, rung_dim_op op, rung_dim a, rung_dim b);
static inline rung_dim rung_dims_add(rung_dims *d, rung_dim a, rung_dim b) {
  return rung_dims_combine(d, RUNG_DIM_ADD, a, b);
}
static inline rung_dim rung_dims_sub(rung_dims *d, rung_dim a, rung_dim b) {
  return rung_dims_combine(d, RUNG_DIM_SUB, a, b);
}
static inline rung_dim rung_dims_mul(rung_dims *d, rung_dim a, rung_dim b) {
  return rung_dims_combine(d, RUNG_DIM_MUL, a, b);
}
static inline rung_dim rung_dims_div(rung_dims *d, rung_dim a, rung_dim b) {
  return rung_dims_combine(d, RUNG_DIM_FLOORDIV, a, b);
}

static inline bool rung_dim_same(rung_dim a, rung_dim b) { return a.id == b.id; }
bool rung_dims_is_constant(const rung_dims *dims, rung_dim dim, int64_t *out_value);
/* How two dims can relate over all values of their symbols. */
typedef enum rung_dim_relation { RUNG_DIM_EQUAL, RUNG_DIM_DIFFERENT, RUNG_DIM_UNKNOWN } rung_dim_relation;
rung_dim_relation rung_dims_compare(rung_dims *dims, rung_dim a, rung_dim b);

/* a - b over the declared ranges, without adding it to the table. INT64_MAX: no bound above, -INT64_MAX: none below. */
typedef struct rung_interval {
  int64_t lo, hi;
} rung_interval;
rung_interval rung_dims_difference(const rung_dims *dims, rung_dim a, rung_dim b);

/* Index of a symbol by name, -1 if there is none. */
int rung_dims_find_symbol(const rung_dims *dims, const char *name, size_t length);

#define RUNG_UNBOUND INT64_MIN
/* Values of all dims (out_value[dims->count], by id) for symbol values (RUNG_UNBOUND allowed; what depends on it
 * becomes RUNG_UNBOUND). Overflow gives RUNG_OVERFLOW, a divisor that is not above 0 RUNG_OUT_OF_RANGE; both name the
 * expression. */
rung_status rung_dims_evaluate(const rung_dims *dims, const int64_t *symbol, int64_t *out_value, rung_error *error);
/* Smallest and largest value of every dim (arrays of dims->count) when each symbol i lies in [lo[i], hi[i]]: interval
 * arithmetic, saturated at +-INT64_MAX. A made symbol's hi is the smaller of the given one and its bound. */
void rung_dims_bounds(const rung_dims *dims, const int64_t *lo, const int64_t *hi, int64_t *out_lower,
                      int64_t *out_upper);
/* Only the largest. Needs memory for the smallest: without it false, and every value is INT64_MAX (no bound). */
bool rung_dims_upper(const rung_dims *dims, const int64_t *lo, const int64_t *hi, int64_t *out_upper);

void rung_dims_print(const rung_dims *dims, rung_dim dim, rung_text *out);
/* Reads an expression as printed: + - * / % with the usual order, min(a,b), max(a,b), parentheses, names, integers. On
 * failure {0}, with `end` where reading stopped and dims->reason. What follows the expression is not looked at. */
rung_dim rung_dims_parse(rung_dims *dims, const char *text, const char *limit, const char **end);

#endif
