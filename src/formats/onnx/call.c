/* SPDX-License-Identifier: MIT
 * What builders ask of a node: attributes, operands known now or bound when the graph runs, small pieces of graph. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "ops/control.h"

/* ---- attributes */

static const onnx_attr *find(const onnx_attr *attr, uint32_t attrs, onnx_name name) {
  for (uint32_t i = 0; i < attrs; i++)
    if (onnx_name_equal(attr[i].name, name)) return &attr[i];
  return NULL;
}

/* An attribute of a function's node that refers to one of the function: what the caller gives, or its default. */
static const onnx_attr *resolve(const onnx_scope *s, const onnx_attr *a) {
  for (int i = 0; a && a->ref.length && i < ONNX_MAX_NESTING; i++) {
    if (!s || !s->function) return NULL;
    const onnx_attr *given = find(s->caller->attr, s->caller->attrs, a->ref);
    if (!given) return find(s->function->attr, s->function->attrs, a->ref);
    s = s->caller_scope;
    a = given;
  }
  return a;
}

const onnx_attr *onnx_attr_find(const onnx_call *c, const char *name) {
  const onnx_name key = {name, (uint32_t)strlen(name)};
  return resolve(c->scope, find(c->node->attr, c->node->attrs, key));
}
int64_t onnx_int(const onnx_call *c, const char *name, int64_t standard) {
  const onnx_attr *a = onnx_attr_find(c, name);
  return a && a->type == ONNX_ATTR_INT ? a->i : standard;
}
double onnx_float(const onnx_call *c, const char *name, double standard) {
  const onnx_attr *a = onnx_attr_find(c, name);
  return a && a->type == ONNX_ATTR_FLOAT ? (double)a->f : standard;
}
bool onnx_int_list(onnx_call *c, const char *name, rung_i64_list *out) {
  const onnx_attr *a = onnx_attr_find(c, name);
  *out = (rung_i64_list){0};
  if (!a || a->type != ONNX_ATTR_INTS) return false;
  if (a->count > 2 * RUNG_MAX_RANK || (a->count > RUNG_MAX_RANK && strcmp(name, "pads") != 0)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "%s has %u numbers", name, a->count);
    return false;
  }
  out->count = (int32_t)(a->count < RUNG_MAX_RANK ? a->count : RUNG_MAX_RANK);
  for (int32_t i = 0; i < out->count; i++) out->value[i] = a->ints[i];
  return true;
}
bool onnx_text_is(const onnx_call *c, const char *name, const char *standard, const char *text) {
  const onnx_attr *a = onnx_attr_find(c, name);
  return a && a->type == ONNX_ATTR_STRING ? onnx_name_is(a->s, text) : strcmp(standard, text) == 0;
}

int onnx_axis(onnx_call *c, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
  onnx_refuse(c, RUNG_OUT_OF_RANGE, "axis %lld of %d axes", (long long)axis, rank);
  return 0;
}

/* ---- operands */

enum { MOST_LOOKS = 10000 };

/* The input of the model that a value comes from, for a caller that may pin it. */
static const char *symbol_of(const rung_dims *dims, rung_dim d) {
  for (uint32_t i = 0; i < dims->symbols; i++)
    if ((dims->node[d.id].symbols >> i & 1) && !dims->symbol[i].made) return dims->symbol[i].name;
  return NULL;
}
/* `left`: values that may still be looked at, since a value that is read twice by each of its readers is met again and
 * again. */
static const char *root_input(const onnx_body *b, uint32_t value, int depth, int *left) {
  if (!value || --*left < 0) return NULL;
  const rung_node *node = rung_graph_producer(b->g, value);
  if (node->op == &rung_op_extent) return symbol_of(b->g->dims, ((const rung_extent_attrs *)node->attrs)->value);
  if (node->op == &rung_op_input) {
    if (!b->outer) return ((const rung_input_attrs *)node->attrs)->name;
    for (uint32_t i = 0; i < b->captures; i++)
      if (b->inside[i].id == value) return root_input(b->outer, b->outside[i].id, depth + 1, left);
    return NULL;
  }
  for (uint32_t i = 0; i < node->n_in && depth < 100; i++) {
    const char *name = root_input(b, node->in[i], depth + 1, left);
    if (name) return name;
  }
  return NULL;
}

/* A single number that is an expression names its own symbol, not one that its vector also holds. */
static const char *number_root(const onnx_call *c, uint32_t value, int depth, int *left) {
  if (!value || --*left < 0) return NULL;
  uint32_t count = 0;
  int64_t number;
  const rung_graph *g = c->g;
  const onnx_symbolic *s = onnx_symbolic_of(c->imp, c->scope->body, (rung_value){g->serial, value}, &count);
  if (s && count == 1 && s[0].dim.id && !rung_dims_is_constant(g->dims, s[0].dim, &number))
    return symbol_of(g->dims, s[0].dim);
  const rung_node *node = rung_graph_producer(g, value);
  for (uint32_t i = 0; i < node->n_in && depth < 20; i++) {
    const char *name = number_root(c, node->in[i], depth + 1, left);
    if (name) return name;
  }
  return NULL;
}
const char *onnx_root(const onnx_call *c, rung_value v) {
  int left = MOST_LOOKS;
  const char *name = number_root(c, v.id, 0, &left);
  left = MOST_LOOKS;
  return name ? name : root_input(c->scope->body, v.id, 0, &left);
}

const onnx_constant *onnx_constant_in(onnx_call *c, uint32_t i) {
  if (onnx_failed(c) || !onnx_has(c, i)) return NULL;
  const onnx_constant *constant = onnx_constant_of(c->imp, c->scope->body, c->in[i]);
  if (constant || onnx_failed(c)) return constant;
  int left = MOST_LOOKS;
  const char *name = root_input(c->scope->body, c->in[i].id, 0, &left);
  if (name)
    onnx_refuse(c, RUNG_NOT_FOUND, "its input %u must be known when the model is opened, but depends on: %s", i, name);
  else
    onnx_refuse(c, RUNG_UNSUPPORTED, "its input %u must be known when the model is opened", i);
  return NULL;
}

bool onnx_constant_ints(onnx_call *c, uint32_t i, rung_i64_list *out) {
  *out = (rung_i64_list){0};
  const onnx_constant *k = onnx_constant_in(c, i);
  if (!k) return false;
  if (k->rank > 1 || k->elements > RUNG_MAX_RANK || rung_type_is_float(k->type)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "its input %u is no list of at most %d integers", i, RUNG_MAX_RANK);
    return false;
  }
  out->count = (int32_t)k->elements;
  for (int32_t e = 0; e < out->count; e++) out->value[e] = onnx_constant_integer(k, e);
  return true;
}

bool onnx_constant_scalar(onnx_call *c, uint32_t i, double *out) {
  const onnx_constant *k = onnx_constant_in(c, i);
  if (!k) return false;
  if (k->elements != 1) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "its input %u is no single number", i);
    return false;
  }
  *out = onnx_constant_number(k, 0);
  return true;
}

bool onnx_whole(onnx_call *c, double value, int64_t *out) {
  if (!(fabs(value) < 0x1p62 && value == floor(value))) { /* not a number fails as well */
    onnx_refuse(c, RUNG_OUT_OF_RANGE, "%g where an integer belongs", value);
    return false;
  }
  *out = (int64_t)value;
  return true;
}

bool onnx_constant_integer_scalar(onnx_call *c, uint32_t i, int64_t *out) {
  double value;
  return onnx_constant_scalar(c, i, &value) && onnx_whole(c, value, out);
}

bool onnx_scalar_known(onnx_call *c, rung_value v, double *out) {
  const onnx_constant *k = v.id ? onnx_constant_of(c->imp, c->scope->body, v) : NULL;
  if (!k || k->elements != 1) return false;
  *out = onnx_constant_number(k, 0);
  return true;
}

bool onnx_dims_known(onnx_call *c, rung_value v, rung_dim_list *out) {
  *out = (rung_dim_list){0};
  if (onnx_failed(c)) return false;
  const rung_value_type *type = onnx_type(c, v);
  int64_t n = 1;
  if (type->rank > 1 || (type->rank == 1 && !rung_dims_is_constant(c->g->dims, type->extent[0], &n)) ||
      n > RUNG_MAX_RANK || !rung_type_is_integer(type->type)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "a shape that is no list of at most %d integers", RUNG_MAX_RANK);
    return false;
  }
  out->count = (int32_t)n;
  uint32_t count = 0;
  const onnx_symbolic *known = onnx_symbolic_of(c->imp, c->scope->body, v, &count);
  for (int32_t i = 0; known && i < out->count; i++)
    if (known[i].divisor == 1) out->dim[i] = known[i].dim;
  return !onnx_failed(c);
}

rung_value onnx_element(onnx_call *c, rung_value v, int64_t index) {
  v = onnx_cast(c, v, RUNG_TYPE_I64);
  if (onnx_rank(c, v) == 0) return v;
  return onnx_reshape(c, onnx_slice(c, v, 0, index, 1), 0, NULL);
}

rung_dim onnx_declared(const onnx_call *c, uint32_t result, int axis) {
  const onnx_graph *graph = c->scope->graph;
  const rung_dim none = {0};
  if (!graph || result >= c->node->outputs) return none;
  const onnx_value *list[2] = {graph->output, graph->value};
  const uint32_t count[2] = {graph->outputs, graph->values};
  for (int l = 0; l < 2; l++) {
    for (uint32_t i = 0; i < count[l]; i++) {
      const onnx_value *v = &list[l][i];
      if (!onnx_name_equal(v->name, c->node->output[result])) continue;
      if (axis < v->rank && v->dim[axis].known && v->dim[axis].value >= 0) return onnx_dim(c, v->dim[axis].value);
    }
  }
  return none;
}

rung_dim onnx_largest(const onnx_call *c) {
  return onnx_dim(c, c->imp->options->largest ? c->imp->options->largest : ONNX_LARGEST);
}
rung_dim onnx_bind(onnx_call *c, rung_value scalar, rung_dim bound) {
  if (onnx_failed(c)) return (rung_dim){0};
  return rung_build_bind(c->g, scalar, NULL, bound.id ? bound : onnx_largest(c));
}

bool onnx_dims_in(onnx_call *c, uint32_t i, const rung_dim *bound, rung_dim_list *out) {
  if (!onnx_has(c, i) || !onnx_dims_known(c, c->in[i], out)) return false;
  for (int32_t e = 0; e < out->count; e++)
    if (!out->dim[e].id) out->dim[e] = onnx_bind(c, onnx_element(c, c->in[i], e), bound ? bound[e] : (rung_dim){0});
  return !onnx_failed(c);
}

/* ---- building */

rung_value onnx_op(const onnx_call *c, const rung_op *op, rung_value a, const void *attrs) {
  return rung_graph_op(c->g, op, &a, 1, attrs);
}
rung_value onnx_op2(const onnx_call *c, const rung_op *op, rung_value a, rung_value b, const void *attrs) {
  const rung_value in[2] = {a, b};
  return rung_graph_op(c->g, op, in, b.id ? 2 : 1, attrs);
}
rung_value onnx_op3(const onnx_call *c, const rung_op *op, rung_value a, rung_value b, rung_value d,
                    const void *attrs) {
  const rung_value in[3] = {a, b, d};
  return rung_graph_op(c->g, op, in, d.id ? 3 : b.id ? 2 : 1, attrs);
}
rung_value onnx_scalar(const onnx_call *c, rung_value like, double value) {
  return rung_build_scalar(c->g, onnx_type(c, like)->type, value);
}
rung_value onnx_reshape(const onnx_call *c, rung_value x, int rank, const rung_dim *extent) {
  return rung_build_reshape(c->g, x, rank, extent);
}
rung_value onnx_vector(const onnx_call *c, const int64_t *value, int count) {
  const int64_t extent[1] = {count};
  return rung_graph_constant(c->g, RUNG_TYPE_I64, 1, extent, value);
}
rung_value onnx_extents(const onnx_call *c, const rung_dim *extent, int count) {
  rung_value part[RUNG_MAX_RANK];
  int64_t value[RUNG_MAX_RANK];
  int known = 0;
  while (known < count && rung_dims_is_constant(c->g->dims, extent[known], &value[known])) known++;
  if (known == count) return onnx_vector(c, value, count);
  for (int i = 0; i < count; i++)
    part[i] = rung_build_unsqueeze(c->g, rung_build_extent(c->g, extent[i], RUNG_TYPE_I64), 0);
  return count == 1 ? part[0] : rung_build_concat(c->g, part, (uint32_t)count, 0);
}
rung_value onnx_filled(const onnx_call *c, rung_type type, double value, int rank, const rung_dim *extent) {
  return rung_build_expand(c->g, rung_build_scalar(c->g, type, value), rank, extent);
}
rung_value onnx_arange(const onnx_call *c, rung_dim count, rung_type type) {
  const rung_iota_attrs attrs = {.shape = {1, {count}}, .axis = 0, .type = type};
  return rung_graph_op(c->g, &rung_op_iota, NULL, 0, &attrs);
}
rung_value onnx_cast(const onnx_call *c, rung_value x, rung_type type) {
  return onnx_type(c, x)->type == type ? x : rung_build_cast(c->g, x, type);
}
rung_value onnx_slice(const onnx_call *c, rung_value x, int axis, int64_t start, int64_t length) {
  return rung_build_slice(c->g, x, axis, onnx_dim(c, start), onnx_dim(c, length));
}
rung_value onnx_move_axis(const onnx_call *c, rung_value x, int from, int to) {
  const int rank = onnx_rank(c, x);
  int64_t order[RUNG_MAX_RANK];
  if (from == to) return x;
  int n = 0;
  for (int i = 0; i < rank; i++)
    if (i != from) order[n++] = i;
  for (int i = rank - 1; i > to; i--) order[i] = order[i - 1];
  order[to] = from;
  return rung_build_transpose(c->g, x, order);
}
