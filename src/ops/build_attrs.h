/* SPDX-License-Identifier: MIT
 * Attributes set one by one, by their place in the op's list: what the generated builders (build_generated.c) are
 * written in. Wrong use ends in the graph's sticky error. */
#ifndef RUNG_OPS_BUILD_ATTRS_H
#define RUNG_OPS_BUILD_ATTRS_H

#include "ir/graph.h"

enum { RUNG_ATTRS_BYTES = 1024, RUNG_BUILD_OPERANDS = 16 };
typedef struct rung_builder {
  rung_graph *graph;
  const rung_op *op;
  bool failed;
  rung_value in[RUNG_BUILD_OPERANDS];
  uint32_t n_in;
  rung_graph *body[2];
  uint32_t bodies;
  const rung_value *many; /* operands that repeat; in[] come first */
  uint32_t n_many;
  union {
    uint64_t align;
    double align_double;
    uint8_t data[RUNG_ATTRS_BYTES];
  } attrs;
} rung_builder;

void rung_builder_begin(rung_builder *b, rung_graph *graph, const rung_op *op);
/* Options of a caller: size 0 is refused; true if `size` bytes may be read. */
bool rung_builder_options(rung_builder *b, size_t size);
void rung_builder_in(rung_builder *b, rung_value value);
void rung_builder_optional(rung_builder *b, rung_value value); /* the null value: left out, with all that follow */
void rung_builder_many(rung_builder *b, const rung_value *value, uint32_t n);
void rung_builder_body(rung_builder *b, rung_graph *body);
void rung_builder_i64(rung_builder *b, int attr, int64_t value);
void rung_builder_f64(rung_builder *b, int attr, double value);
void rung_builder_bool(rung_builder *b, int attr, bool value);
void rung_builder_text(rung_builder *b, int attr, const char *value); /* NULL: the default */
void rung_builder_type(rung_builder *b, int attr, rung_type value);
void rung_builder_enum(rung_builder *b, int attr, int32_t value);
void rung_builder_dim(rung_builder *b, int attr, rung_dim value); /* null: the default, if there is one */
void rung_builder_dims(rung_builder *b, int attr, int count, const rung_dim *value);
void rung_builder_i64s(rung_builder *b, int attr, int count, const int64_t *value);
/* The node's only result; null after an error. */
rung_value rung_builder_end(rung_builder *b);
/* All results; null values after an error, or where the node has another number of results. */
void rung_builder_end_all(rung_builder *b, uint32_t n, rung_value *out_results);

#endif
