/* SPDX-License-Identifier: MIT
 * Rows of patterns.def as the matcher sees them. */
#ifndef RUNG_PASSES_PATTERN_H
#define RUNG_PASSES_PATTERN_H

#include "passes/pass.h"

enum {
  RUNG_PATTERN_VALUES = 40,
  RUNG_PATTERN_HOLES = 12,
  RUNG_PATTERN_KEPT = 8,
  RUNG_PATTERN_IN = 4,
  RUNG_PATTERN_ATTRS = 6
};

typedef enum rung_term_kind {
  RUNG_TERM_HOLE,   /* ?x: any value, the same one everywhere */
  RUNG_TERM_VALUE,  /* %name: what a statement of that name makes */
  RUNG_TERM_NUMBER, /* #0.5: a constant that has this number in all elements, nearly */
  RUNG_TERM_KEPT    /* #eps: any such constant; its number is kept */
} rung_term_kind;
typedef struct rung_term {
  uint8_t kind;
  uint8_t index; /* of the hole, value or kept number */
  double number;
} rung_term;

/* An attribute that a statement speaks of: a literal, or kept under a name. */
typedef struct rung_attr_term {
  const rung_attr *attr;
  const char *text; /* literal as printed; NULL: kept */
  uint8_t kept;     /* of the pattern's kept attributes (left), or what to fill in (right) */
  bool number;      /* right: a kept number, not an attribute */
  bool inverse;     /* 1 over it */
} rung_attr_term;

typedef struct rung_statement {
  const struct rung_statement *next; /* left: another way to make the same value; right: the following statement */
  const rung_op *op;
  uint8_t value;
  uint8_t n_in, attrs;
  bool any; /* left: whatever its attributes are */
  rung_term in[RUNG_PATTERN_IN];
  rung_attr_term attr[RUNG_PATTERN_ATTRS];
} rung_statement;

struct rung_found;
typedef struct rung_pattern {
  const char *name;
  bool (*holds)(const struct rung_found *found); /* NULL: always */
  bool kernel; /* only where the target has a kernel for what the right side ends with */
  const rung_statement *left[RUNG_PATTERN_VALUES]; /* by value: its first statement */
  uint8_t root;                                    /* the value that is replaced: that of the last statement */
  const rung_statement *right, *right_last;
  uint8_t values, holes, numbers, kept, right_values;
  const char *hole_name[RUNG_PATTERN_HOLES], *number_name[RUNG_PATTERN_KEPT], *kept_name[RUNG_PATTERN_KEPT];
  const char *value_name[RUNG_PATTERN_VALUES]; /* of the left side */
} rung_pattern;

struct rung_patterns {
  rung_arena arena;
  rung_pattern *row;
  uint32_t rows;
};

/* A place in a graph where the left side of a row stands. */
typedef struct rung_found {
  const rung_pattern *pattern;
  const rung_graph *graph;
  uint32_t hole[RUNG_PATTERN_HOLES];   /* value ids, 0: the alternative taken has none */
  uint32_t value[RUNG_PATTERN_VALUES]; /* value ids, 0: not part of the alternatives taken */
  double number[RUNG_PATTERN_KEPT];
  bool number_set[RUNG_PATTERN_KEPT];
  const rung_attr *kept_attr[RUNG_PATTERN_KEPT];
  const void *kept[RUNG_PATTERN_KEPT]; /* attribute structs that hold them */
} rung_found;

/* The row for a value of `graph`, the first of the list that matches; interior values have no reader outside. `taken`:
 * nodes that belong to other places. Notes what nearly matched when `explain`. *out_found is filled if *out_is. */
rung_status rung_pattern_match(rung_pass_env *env, const rung_graph *graph, uint32_t value, const uint32_t *uses,
                               const bool *taken, bool explain, rung_found *out_found, bool *out_is);
/* Builds the right side in `to` with the holes' values as given. */
rung_status rung_pattern_build(rung_pass_env *env, const rung_found *found, rung_graph *to, const rung_value *hole,
                               rung_value *out_value);

/* Conditions of rows (conditions.c), by the name that the row gives. NULL if there is none. */
bool (*rung_pattern_condition(const char *name))(const rung_found *found);

#endif
