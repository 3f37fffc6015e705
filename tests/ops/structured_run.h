/* SPDX-License-Identifier: MIT
 * Runs a graph by the references of its ops, for the tests of structured ops: bodies, run-time sizes and states
 * included. Control flow is walked here, or through the ops' own references and run_body. Slow and plain. */
#ifndef RUNG_TESTS_OPS_STRUCTURED_RUN_H
#define RUNG_TESTS_OPS_STRUCTURED_RUN_H

#include <stdlib.h>

#include "base/half.h"
#include "ir/graph.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"
#include "test.h"

/* ---- tensors */

typedef struct run_tensor {
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK], stride[RUNG_MAX_RANK];
  uint8_t *data;
  rung_kv_view *kv;
} run_tensor;

typedef struct run_named {
  char name[64];
  run_tensor tensor;
} run_named;

enum { RUN_NAMED = 32, RUN_HELD = 1 << 16 };
typedef struct run_state {
  rung_host *host;
  run_named named[RUN_NAMED]; /* inputs, weights and states, by name */
  int n_named;
  void *held[RUN_HELD];
  int n_held;
  int64_t symbol[RUNG_MAX_SYMBOLS]; /* what the caller binds */
  uint64_t random[2];
  bool by_reference; /* if and loop through their references */
  rung_error error;
} run_state;

static void *run_hold(run_state *r, size_t bytes) {
  void *p = r->n_held < RUN_HELD ? calloc(1, bytes + 64) : NULL;
  if (!p) {
    fprintf(stderr, "the test's evaluator is out of memory\n");
    exit(1);
  }
  r->held[r->n_held++] = p;
  return p;
}

static inline void run_init(run_state *r, rung_host *host) {
  memset(r, 0, sizeof *r);
  r->host = host;
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) r->symbol[i] = RUNG_UNBOUND;
}
static inline void run_finish(run_state *r) {
  for (int i = 0; i < r->n_held; i++) free(r->held[i]);
}

/* Dense; strides count blocks for block types. */
static run_tensor run_tensor_new(run_state *r, rung_type type, int rank, const int64_t *extent) {
  const rung_type_row *row = rung_type_get(type);
  run_tensor t = {.type = type, .rank = rank};
  int64_t units = 1;
  for (int axis = rank - 1; axis >= 0; axis--) {
    t.extent[axis] = extent[axis];
    t.stride[axis] = units;
    units *= axis == rank - 1 ? (extent[axis] + row->block - 1) / row->block : extent[axis];
  }
  t.data = (uint8_t *)run_hold(r, (size_t)units * row->bytes);
  return t;
}
static rung_operand run_operand(const run_tensor *t) {
  return (rung_operand){.base = t->data,
                        .extent = t->extent,
                        .stride = t->stride,
                        .rank = (uint8_t)t->rank,
                        .type = (uint8_t)t->type,
                        .kv = t->kv};
}
static run_tensor run_tensor_of(const rung_operand *o) {
  run_tensor t = {.type = (rung_type)o->type, .rank = o->rank, .data = o->base};
  for (int axis = 0; axis < o->rank; axis++) t.extent[axis] = o->extent[axis], t.stride[axis] = o->stride[axis];
  return t;
}
static inline int64_t run_count(const run_tensor *t) {
  int64_t n = 1;
  for (int axis = 0; axis < t->rank; axis++) n *= t->extent[axis];
  return n;
}
static void run_copy(const run_tensor *from, const run_tensor *to) {
  const rung_operand a = run_operand(from), b = run_operand(to);
  const rung_units source = rung_units_of(&a), target = rung_units_of(&b);
  if (from->data != to->data) rung_units_copy(&target, &source);
}

static inline run_named *run_name(run_state *r, const char *name) {
  for (int i = 0; i < r->n_named; i++)
    if (strcmp(r->named[i].name, name) == 0) return &r->named[i];
  if (r->n_named == RUN_NAMED) return NULL;
  snprintf(r->named[r->n_named].name, sizeof r->named[0].name, "%s", name);
  return &r->named[r->n_named++];
}

/* ---- a kv state: rows one after another, f32 or f16, whatever the blocks */

static void run_kv_read(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  const int64_t n = (int64_t)kv->kv_heads * (kv->key_dim + kv->value_dim),
                at = ((int64_t)slot * kv->capacity + position) * n;
  for (int64_t i = 0; i < n; i++) {
    if (kv->type == RUNG_TYPE_F16) {
      uint16_t h;
      memcpy(&h, kv->base + 2 * (at + i), 2);
      out[i] = rung_f16_to_f32(h);
    } else {
      memcpy(&out[i], kv->base + 4 * (at + i), 4);
    }
  }
}
static void run_kv_write(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  const int64_t n = (int64_t)kv->kv_heads * (kv->key_dim + kv->value_dim),
                at = ((int64_t)slot * kv->capacity + position) * n;
  for (int64_t i = 0; i < n; i++) {
    const uint16_t h = rung_f16_from_f32(row[i]);
    if (kv->type == RUNG_TYPE_F16)
      memcpy(kv->base + 2 * (at + i), &h, 2);
    else
      memcpy(kv->base + 4 * (at + i), &row[i], 4);
  }
}
/* All positions start as NaN: what nobody wrote must not be seen. */
static inline run_tensor run_kv_new(run_state *r, rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim,
                                    int32_t slots, int64_t capacity, int64_t window) {
  const int64_t n = (int64_t)kv_heads * (key_dim + value_dim);
  rung_kv_view *kv = (rung_kv_view *)run_hold(r, sizeof *kv);
  *kv = (rung_kv_view){.type = type,
                       .kv_heads = kv_heads,
                       .key_dim = key_dim,
                       .value_dim = value_dim,
                       .window = window,
                       .capacity = capacity,
                       .slots = slots,
                       .read_row = run_kv_read,
                       .write_row = run_kv_write};
  const size_t bytes = (size_t)(n * slots * capacity) * (type == RUNG_TYPE_F16 ? 2 : 4);
  kv->base = (uint8_t *)run_hold(r, bytes);
  memset(kv->base, 0xFF, bytes);
  run_tensor t = {.type = type, .rank = 3, .extent = {kv_heads, key_dim, value_dim}, .kv = kv};
  return t;
}

/* ---- graphs */

typedef struct run_scope {
  run_state *r;
  const rung_graph *g;
  int64_t symbol[RUNG_MAX_SYMBOLS];
  int64_t *dim;
  run_tensor *value; /* by value id */
} run_scope;

static rung_status run_body_graph(run_state *r, const rung_graph *body, const int64_t *symbol, const run_tensor *in,
                                  run_tensor *out);

static rung_status run_dims(run_scope *s) { return rung_dims_evaluate(s->g->dims, s->symbol, s->dim, &s->r->error); }
static rung_status run_bind(run_scope *s, uint32_t symbol, int64_t value) {
  const rung_symbol *info = &s->g->dims->symbol[symbol];
  if (value < 0 || (info->bound.id && s->dim[info->bound.id] != RUNG_UNBOUND && value > s->dim[info->bound.id])) {
    return rung_fail(&s->r->error, RUNG_OUT_OF_RANGE, "symbol %s became %lld", info->name, (long long)value);
  }
  s->symbol[symbol] = value;
  return run_dims(s);
}

static run_tensor run_allocate(run_scope *s, const rung_value_type *type) {
  int64_t extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < type->rank; axis++) {
    extent[axis] = s->dim[type->extent[axis].id];
    if (extent[axis] == RUNG_UNBOUND) extent[axis] = 0;
  }
  return run_tensor_new(s->r, type->type, type->rank, extent);
}

/* For references: body `index` of the node being run. Its results are written when it has run, so that they may lie
 * over the operands. */
typedef struct run_node_self {
  run_scope *scope;
  const rung_node *node;
} run_node_self;
static rung_status run_callback(void *self, int index, const rung_operand *in, const rung_operand *out) {
  const run_node_self *s = (const run_node_self *)self;
  const rung_graph *body = s->node->body[index];
  run_tensor *tensors = (run_tensor *)run_hold(s->scope->r, (body->inputs + body->outputs + 1) * sizeof *tensors);
  for (uint32_t i = 0; i < body->inputs; i++) tensors[i] = run_tensor_of(&in[i]);
  run_tensor *copy = tensors + body->inputs;
  for (uint32_t i = 0; i < body->inputs; i++) {
    if (in[i].kv) {
      tensors[i].kv = (rung_kv_view *)(uintptr_t)in[i].kv;
      continue;
    }
    run_tensor own = run_tensor_new(s->scope->r, tensors[i].type, tensors[i].rank, tensors[i].extent);
    run_copy(&tensors[i], &own);
    tensors[i] = own;
  }
  RUNG_TRY(run_body_graph(s->scope->r, body, s->scope->symbol, tensors, copy));
  for (uint32_t i = 0; i < body->outputs; i++) {
    const run_tensor to = run_tensor_of(&out[i]);
    if (!out[i].kv) run_copy(&copy[i], &to);
  }
  return RUNG_OK;
}

static rung_status run_reference(run_scope *s, const rung_node *node) {
  rung_operand *in = (rung_operand *)run_hold(s->r, (node->n_in + node->results + 1) * sizeof *in),
               *out = in + node->n_in;
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = run_operand(&s->value[node->in[i]]);
  for (uint32_t r = 0; r < node->results; r++) {
    run_tensor *y = &s->value[node->first_value + r];
    const bool effect = node->op->flags & RUNG_OP_EFFECT && r == 0;
    *y = effect ? s->value[node->in[0]] : run_allocate(s, rung_graph_value_type(s->g, node->first_value + r));
    out[r] = run_operand(y);
  }
  run_node_self self = {s, node};
  rung_args args = {.in = in,
                    .out = out,
                    .n_in = (uint16_t)node->n_in,
                    .n_out = (uint16_t)node->results,
                    .attrs = node->attrs,
                    .dim = s->dim,
                    .random = s->r->random,
                    .threads = 1,
                    .error = &s->r->error,
                    .run_body = run_callback,
                    .self = &self};
  RUNG_TRY(node->op->reference(&args));
  if (!(node->op->flags & RUNG_OP_SIZES) || !node->op->sizes) return RUNG_OK;
  int64_t value;
  node->op->sizes(&args, &value);
  const char *name = ((const rung_bind_symbol_attrs *)node->attrs)->symbol;
  return run_bind(s, (uint32_t)rung_dims_find_symbol(s->g->dims, name, strlen(name)), value);
}

/* Made symbols of a type that have no value yet get the tensor's extents. */
static rung_status run_bind_extents(run_scope *s, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(s->g, value);
  for (int axis = 0; axis < type->rank; axis++) {
    const rung_dim_node *node = &s->g->dims->node[type->extent[axis].id];
    if (node->kind != RUNG_DIM_KIND_SYMBOL || s->symbol[node->symbol] != RUNG_UNBOUND) continue;
    RUNG_TRY(run_bind(s, node->symbol, s->value[value].extent[axis]));
  }
  return RUNG_OK;
}

static rung_status run_if(run_scope *s, const rung_node *node) {
  const rung_operand condition = run_operand(&s->value[node->in[0]]);
  run_tensor *in = (run_tensor *)run_hold(s->r, node->n_in * sizeof *in);
  for (uint32_t i = 1; i < node->n_in; i++) in[i - 1] = s->value[node->in[i]];
  RUNG_TRY(run_body_graph(s->r, node->body[rung_load_i64(&condition, 0) ? 0 : 1], s->symbol, in,
                          &s->value[node->first_value]));
  for (uint32_t r = 0; r < node->results; r++) RUNG_TRY(run_bind_extents(s, node->first_value + r));
  return RUNG_OK;
}

static void run_stack(run_scope *s, const rung_node *node, uint32_t r, const run_tensor *slice, int64_t iteration) {
  run_tensor *y = &s->value[node->first_value + r];
  int64_t extent[RUNG_MAX_RANK] = {iteration + 1};
  for (int axis = 0; axis < slice->rank; axis++) extent[1 + axis] = slice->extent[axis];
  run_tensor longer = run_tensor_new(s->r, slice->type, slice->rank + 1, extent);
  const size_t bytes = (size_t)run_count(slice) * rung_type_get(slice->type)->bytes;
  if (iteration) memcpy(longer.data, y->data, bytes * (size_t)iteration);
  run_tensor place = *slice;
  place.data = longer.data + bytes * (size_t)iteration;
  for (int axis = slice->rank - 1, n = 1; axis >= 0; n *= (int)slice->extent[axis--]) place.stride[axis] = n;
  run_copy(slice, &place);
  *y = longer;
}

static rung_status run_loop(run_scope *s, const rung_node *node) {
  const uint32_t carried = (uint32_t)((const rung_loop_attrs *)node->attrs)->carried;
  const rung_graph *body = node->body[0];
  const rung_operand trip = run_operand(&s->value[node->in[0]]), start = run_operand(&s->value[node->in[1]]);
  bool go = rung_load_i64(&start, 0) != 0;
  int64_t iteration = 0;
  run_tensor *in = (run_tensor *)run_hold(s->r, (node->n_in + node->results + 1) * sizeof *in), *out = in + node->n_in;
  for (uint32_t i = 2; i < node->n_in; i++) in[i] = s->value[node->in[i]];
  for (uint32_t r = carried; r < node->results; r++) {
    s->value[node->first_value + r] = run_allocate(s, rung_graph_value_type(s->g, node->first_value + r));
    s->value[node->first_value + r].extent[0] = 0;
  }
  for (; go && iteration < rung_load_i64(&trip, 0); iteration++) {
    in[0] = run_tensor_new(s->r, RUNG_TYPE_I64, 0, NULL);
    in[1] = run_tensor_new(s->r, RUNG_TYPE_BOOL, 0, NULL);
    memcpy(in[0].data, &iteration, sizeof iteration);
    in[1].data[0] = go;
    RUNG_TRY(run_body_graph(s->r, body, s->symbol, in, out));
    go = out[0].data[0] != 0;
    for (uint32_t j = 0; j < carried; j++) in[2 + j] = out[1 + j];
    for (uint32_t r = carried; r < node->results; r++) run_stack(s, node, r, &out[1 + r], iteration);
  }
  for (uint32_t j = 0; j < carried; j++) s->value[node->first_value + j] = in[2 + j];
  for (uint32_t r = 0; r < node->results; r++) RUNG_TRY(run_bind_extents(s, node->first_value + r));
  const int64_t want = node->results > carried
                           ? s->dim[rung_graph_value_type(s->g, node->first_value + carried)->extent[0].id]
                           : iteration;
  return want == iteration ? RUNG_OK
                           : rung_fail(&s->r->error, RUNG_OUT_OF_RANGE, "loop: %lld iterations", (long long)iteration);
}

static rung_status run_declaration(run_scope *s, const rung_node *node, const run_tensor *in, uint32_t *input) {
  run_tensor *y = &s->value[node->first_value];
  const rung_value_type *type = rung_graph_value_type(s->g, node->first_value);
  if (node->op == &rung_op_constant) {
    *y = run_allocate(s, type);
    const rung_blob *blob = &((const rung_constant_attrs *)node->attrs)->data;
    memcpy(y->data, blob->data, (size_t)blob->bytes);
    return RUNG_OK;
  }
  if (in && node->op == &rung_op_input) {
    *y = in[(*input)++];
    return run_bind_extents(s, node->first_value);
  }
  const run_named *there = run_name(s->r, rung_attrs_name(node->op, node->attrs));
  if (!there || (!there->tensor.data && !there->tensor.kv))
    return rung_fail(&s->r->error, RUNG_NOT_FOUND, "nothing is bound");
  *y = there->tensor;
  return RUNG_OK;
}

static rung_status run_nodes(run_scope *s, const run_tensor *in) {
  uint32_t input = 0;
  for (uint32_t i = 0; i < s->g->nodes; i++) {
    const rung_node *node = &s->g->node[i];
    if (node->op->flags & RUNG_OP_DECLARES)
      RUNG_TRY(run_declaration(s, node, in, &input));
    else if (node->op == &rung_op_if && !s->r->by_reference)
      RUNG_TRY(run_if(s, node));
    else if (node->op == &rung_op_loop && !s->r->by_reference)
      RUNG_TRY(run_loop(s, node));
    else
      RUNG_TRY(run_reference(s, node));
  }
  for (uint32_t i = 0; i < s->g->checks; i++) {
    const rung_dim_check *check = &s->g->check[i];
    const int64_t a = s->dim[check->a.id], b = s->dim[check->b.id];
    if (a != RUNG_UNBOUND && b != RUNG_UNBOUND && (check->at_least ? a < b : a != b)) {
      return rung_fail(&s->r->error, RUNG_SHAPE_MISMATCH, "extents %lld and %lld", (long long)a, (long long)b);
    }
  }
  return RUNG_OK;
}

/* Runs a graph or body; `out` has room for its outputs. `in`: by input, NULL: by name. */
static rung_status run_body_graph(run_state *r, const rung_graph *body, const int64_t *symbol, const run_tensor *in,
                                  run_tensor *out) {
  run_scope s = {.r = r, .g = body};
  memcpy(s.symbol, symbol, sizeof s.symbol);
  s.value = (run_tensor *)run_hold(r, body->values * sizeof *s.value);
  s.dim = (int64_t *)run_hold(r, body->dims->count * sizeof *s.dim);
  for (uint32_t i = 0; in && i < body->inputs; i++) { /* what the loop around binds afresh */
    const rung_value_type *type = rung_graph_value_type(body, body->node[body->input[i]].first_value);
    for (int axis = 0; axis < type->rank; axis++) {
      const rung_dim_node *node = &body->dims->node[type->extent[axis].id];
      if (node->kind == RUNG_DIM_KIND_SYMBOL && body->dims->symbol[node->symbol].made)
        s.symbol[node->symbol] = in[i].extent[axis];
    }
  }
  RUNG_TRY(run_dims(&s));
  RUNG_TRY(run_nodes(&s, in));
  for (uint32_t i = 0; i < body->outputs; i++) out[i] = s.value[body->output[i].value];
  return RUNG_OK;
}
static inline rung_status run_graph(run_state *r, const rung_graph *g, run_tensor *out) {
  return run_body_graph(r, g, r->symbol, NULL, out);
}

#endif
