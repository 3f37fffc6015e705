/* SPDX-License-Identifier: MIT
 * What the generated builders are written in. */
#include "ops/build_attrs.h"

#include <string.h>

static void fail(rung_builder *b, rung_status status, const char *what) {
  if (!b->failed) rung_graph_fail(b->graph, status, "%s: %s", b->op->name, what);
  b->failed = true;
}

void rung_builder_begin(rung_builder *b, rung_graph *graph, const rung_op *op) {
  memset(b, 0, sizeof *b);
  b->graph = graph;
  b->op = op;
  b->failed = !graph || rung_graph_status(graph) != RUNG_OK;
  if (op->attrs_bytes > RUNG_ATTRS_BYTES) fail(b, RUNG_INTERNAL, "its attributes do not fit the builder");
  if (!b->failed && op->attrs_bytes) rung_attrs_default(op, graph->dims, b->attrs.data);
}

bool rung_builder_options(rung_builder *b, size_t size) {
  if (size == 0) fail(b, RUNG_INVALID_ARGUMENT, "options of size 0: begin with the _default() function");
  return !b->failed;
}

void rung_builder_in(rung_builder *b, rung_value value) {
  if (b->failed) return;
  if (b->n_in == RUNG_BUILD_OPERANDS)
    fail(b, RUNG_INTERNAL, "too many operands");
  else
    b->in[b->n_in++] = value;
}

void rung_builder_optional(rung_builder *b, rung_value value) {
  if (value.id) rung_builder_in(b, value);
}

void rung_builder_many(rung_builder *b, const rung_value *value, uint32_t n) {
  if (n && !value) fail(b, RUNG_INVALID_ARGUMENT, "a list of operands is NULL");
  b->many = value;
  b->n_many = n;
}

void rung_builder_body(rung_builder *b, rung_graph *body) {
  if (b->bodies == RUNG_COUNT(b->body))
    fail(b, RUNG_INTERNAL, "too many bodies");
  else
    b->body[b->bodies++] = body;
}

/* Where attribute number `attr` goes; NULL after an error or for another kind. */
static void *place(rung_builder *b, int attr, rung_attr_kind kind) {
  if (b->failed) return NULL;
  if (b->op->attrs[attr].kind == kind) return b->attrs.data + b->op->attrs[attr].offset;
  fail(b, RUNG_INTERNAL, "an attribute is of another kind; build_generated.c is out of date");
  return NULL;
}

#define SET(name, KIND, ctype)                                       \
  void rung_builder_##name(rung_builder *b, int attr, ctype value) { \
    void *to = place(b, attr, RUNG_ATTR_##KIND);                     \
    if (to) memcpy(to, &value, sizeof value);                        \
  }
SET(i64, I64, int64_t)
SET(f64, F64, double)
SET(bool, BOOL, bool)
SET(type, TYPE, rung_type)
SET(enum, ENUM, int32_t)
#undef SET

void rung_builder_text(rung_builder *b, int attr, const char *value) {
  void *to = place(b, attr, RUNG_ATTR_TEXT);
  if (to && value) memcpy(to, &value, sizeof value);
}

void rung_builder_dim(rung_builder *b, int attr, rung_dim value) {
  void *to = place(b, attr, RUNG_ATTR_DIM);
  if (to && (value.id || !b->op->attrs[attr].text_default)) memcpy(to, &value, sizeof value);
}

static bool list_fits(rung_builder *b, int count, const void *value) {
  if (b->failed) return false;
  if (count < 0 || count > RUNG_MAX_RANK || (count && !value)) {
    fail(b, RUNG_INVALID_ARGUMENT, "a list is NULL, or its length is not in 0 .. 8");
    return false;
  }
  return true;
}

void rung_builder_dims(rung_builder *b, int attr, int count, const rung_dim *value) {
  rung_dim_list *to = (rung_dim_list *)place(b, attr, RUNG_ATTR_DIMS);
  if (!to || !list_fits(b, count, value)) return;
  to->count = count;
  for (int i = 0; i < count; i++) to->dim[i] = value[i];
}

void rung_builder_i64s(rung_builder *b, int attr, int count, const int64_t *value) {
  rung_i64_list *to = (rung_i64_list *)place(b, attr, RUNG_ATTR_I64S);
  if (!to || !list_fits(b, count, value)) return;
  to->count = count;
  for (int i = 0; i < count; i++) to->value[i] = value[i];
}

static const rung_node *append(rung_builder *b) {
  if (b->failed) return NULL;
  const void *attrs = b->op->attrs_bytes ? b->attrs.data : NULL;
  if (!b->n_many) return rung_graph_append(b->graph, b->op, b->in, b->n_in, attrs, b->body, b->bodies);
  if (!b->n_in) return rung_graph_append(b->graph, b->op, b->many, b->n_many, attrs, b->body, b->bodies);
  const uint64_t n = (uint64_t)b->n_in + b->n_many;
  rung_value *all =
      n <= RUNG_MAX_OPERANDS ? (rung_value *)rung_arena_array(&b->graph->arena, (size_t)n, sizeof *all) : NULL;
  if (!all) {
    fail(b, n <= RUNG_MAX_OPERANDS ? RUNG_OUT_OF_MEMORY : RUNG_OUT_OF_RANGE, "no room for its operands");
    return NULL;
  }
  memcpy(all, b->in, b->n_in * sizeof *all);
  memcpy(all + b->n_in, b->many, b->n_many * sizeof *all);
  return rung_graph_append(b->graph, b->op, all, (uint32_t)n, attrs, b->body, b->bodies);
}

rung_value rung_builder_end(rung_builder *b) { return rung_node_result(b->graph, append(b), 0); }

void rung_builder_end_all(rung_builder *b, uint32_t n, rung_value *out_results) {
  const rung_node *node = append(b);
  if (node && node->results != n)
    fail(b, RUNG_INVALID_ARGUMENT, "has another number of results than there is room for");
  for (uint32_t i = 0; out_results && i < n; i++)
    out_results[i] = node && !b->failed ? rung_node_result(b->graph, node, i) : (rung_value){0, 0};
}
