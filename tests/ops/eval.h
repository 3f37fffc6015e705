/* SPDX-License-Identifier: MIT
 * Runs a graph node by node with the reference functions: what every test of src/ops compares with. Nothing of plan,
 * backends or runtime is used. Buffers may get strides of all kinds, so that no reference can lean on dense operands.
 */
#ifndef RUNG_TESTS_OPS_EVAL_H
#define RUNG_TESTS_OPS_EVAL_H

#include <stdlib.h>

#include "ir/graph.h"
#include "ops/shape.h"
#include "test.h"

enum { EVAL_CAPACITY = 128, EVAL_SLOTS = 4 };

typedef struct tensor {
  rung_operand operand; /* points to extent and stride below */
  int64_t extent[RUNG_MAX_RANK], stride[RUNG_MAX_RANK];
  uint8_t *memory; /* owned; operand.base may point into it */
  size_t bytes;
  rung_kv_view kv;
  uint32_t table[EVAL_SLOTS * EVAL_CAPACITY / RUNG_KV_BLOCK];
  int64_t length[EVAL_SLOTS];
} tensor;

typedef struct eval {
  const rung_graph *graph;
  tensor **value; /* [values] */
  bool *borrowed; /* [values]: the tensor is another value's or a caller's */
  int64_t symbol[RUNG_MAX_SYMBOLS];
  int64_t *dim;
  uint64_t random[2];
  rung_error error;
  uint64_t *seed; /* of strides; NULL: dense */
} eval;

/* ---- tensors */
static inline bool eval_is_blocks(rung_type type) { return rung_type_takes(type) == RUNG_TAKES_BLOCK; }

/* Axes in a random order in memory, gaps between elements and rows, some axes backwards. */
static inline int64_t eval_strides(tensor *t, uint64_t *seed, int64_t *low) {
  const int rank = t->operand.rank;
  int order[RUNG_MAX_RANK];
  int64_t span = 1;
  for (int i = 0; i < rank; i++) order[i] = i;
  for (int i = rank - 1; seed && i > 0; i--) {
    const int k = (int)test_below(seed, i + 1), swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
  *low = 0;
  for (int i = rank - 1; i >= 0; i--) {
    const int axis = order[i];
    const int64_t n = t->extent[axis];
    if (seed) span += test_below(seed, 3);
    t->stride[axis] = span;
    if (n > 0) span *= n;
    if (seed && n > 0 && test_below(seed, 4) == 0) {
      *low += t->stride[axis] * (n - 1);
      t->stride[axis] = -t->stride[axis];
    }
  }
  return span;
}

static inline void eval_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  const int64_t n = (int64_t)kv->kv_heads * (kv->key_dim + kv->value_dim);
  uint8_t *block = rung_kv_block(kv, slot, position);
  const rung_operand o = {.base = block, .type = (uint8_t)kv->type};
  for (int64_t i = 0; i < n; i++) out[i] = (float)rung_load_f64(&o, position % RUNG_KV_BLOCK * n + i);
}
static inline void eval_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  const int64_t n = (int64_t)kv->kv_heads * (kv->key_dim + kv->value_dim);
  uint8_t *block = rung_kv_block(kv, slot, position);
  const rung_operand o = {.base = block, .type = (uint8_t)kv->type};
  for (int64_t i = 0; i < n; i++) rung_store_f64(&o, position % RUNG_KV_BLOCK * n + i, (double)row[i]);
}

static inline void eval_kv(tensor *t, rung_type type, int64_t window) {
  rung_kv_view *kv = &t->kv;
  const int64_t row = t->extent[0] * (t->extent[1] + t->extent[2]);
  kv->type = type;
  kv->kv_heads = (int32_t)t->extent[0];
  kv->key_dim = (int32_t)t->extent[1];
  kv->value_dim = (int32_t)t->extent[2];
  kv->window = window;
  kv->capacity = EVAL_CAPACITY;
  kv->slots = EVAL_SLOTS;
  kv->block_bytes = (size_t)row * RUNG_KV_BLOCK * rung_type_get(type)->bytes;
  kv->ring = EVAL_CAPACITY / RUNG_KV_BLOCK;
  for (uint32_t i = 0; i < RUNG_COUNT(t->table); i++) t->table[i] = (uint32_t)RUNG_COUNT(t->table) - 1 - i;
  kv->table = t->table;
  kv->length = t->length;
  kv->read_row = eval_read_row;
  kv->write_row = eval_write_row;
  t->bytes = kv->block_bytes * RUNG_COUNT(t->table);
  t->memory = (uint8_t *)calloc(1, t->bytes);
  kv->base = t->operand.base = t->memory;
  t->operand.kv = kv;
}

/* Memory begins as bytes of 0xA5 with a guard of 64 on both sides, so that what is not written or is written beside
 * shows. */
enum { EVAL_GUARD = 64 };
static inline tensor *tensor_make(rung_type type, int rank, const int64_t *extent, uint64_t *seed) {
  tensor *t = (tensor *)calloc(1, sizeof *t);
  const rung_type_row *row = rung_type_get(type);
  int64_t low = 0, units = 1;
  t->operand.extent = t->extent;
  t->operand.stride = t->stride;
  t->operand.rank = (uint8_t)rank;
  t->operand.type = (uint8_t)type;
  for (int axis = 0; axis < rank; axis++) t->extent[axis] = extent[axis];
  if (eval_is_blocks(type)) {
    for (int axis = rank - 1; axis >= 0; axis--) {
      t->stride[axis] = units;
      units *= axis == rank - 1 ? extent[axis] / row->block : extent[axis];
    }
  } else {
    units = eval_strides(t, row->block == 1 ? seed : NULL, &low);
    units = (units + row->block - 1) / row->block;
  }
  t->bytes = (size_t)units * row->bytes + 2 * EVAL_GUARD;
  t->memory = (uint8_t *)malloc(t->bytes);
  memset(t->memory, 0xA5, t->bytes);
  t->operand.base = t->memory + EVAL_GUARD + low * row->bytes;
  return t;
}
static inline void tensor_free(tensor *t) {
  if (t) free(t->memory);
  free(t);
}
static inline bool tensor_guards_hold(const tensor *t) {
  for (size_t i = 0; i < EVAL_GUARD; i++)
    if (t->memory[i] != 0xA5 || t->memory[t->bytes - 1 - i] != 0xA5) return false;
  return true;
}
static inline int64_t tensor_count(const tensor *t) { return rung_operand_count(&t->operand); }
/* Offset in elements of the i-th element in row-major order. */
static inline int64_t tensor_offset(const tensor *t, int64_t i) {
  int64_t offset = 0;
  const int64_t block =
      eval_is_blocks((rung_type)t->operand.type) ? rung_type_get((rung_type)t->operand.type)->block : 1;
  for (int axis = t->operand.rank - 1; axis >= 0; axis--) {
    const int64_t at = i % t->extent[axis];
    offset += at * (block > 1 ? (axis == t->operand.rank - 1 ? 1 : t->stride[axis] * block) : t->stride[axis]);
    i /= t->extent[axis];
  }
  return offset;
}
static inline double tensor_get(const tensor *t, int64_t i) { return rung_load_f64(&t->operand, tensor_offset(t, i)); }
static inline int64_t tensor_get_i64(const tensor *t, int64_t i) {
  return rung_load_i64(&t->operand, tensor_offset(t, i));
}
static inline void tensor_set(tensor *t, int64_t i, double v) { rung_store_f64(&t->operand, tensor_offset(t, i), v); }
static inline bool tensor_is_float(const tensor *t) { return rung_type_is_float((rung_type)t->operand.type); }

/* Equal extents and elements; NaN equals NaN. Block types by value. */
static inline bool tensor_equal(const tensor *a, const tensor *b) {
  if (a->operand.rank != b->operand.rank) return false;
  for (int axis = 0; axis < a->operand.rank; axis++)
    if (a->extent[axis] != b->extent[axis]) return false;
  const bool integer = (rung_type_takes((rung_type)a->operand.type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
  for (int64_t i = 0; i < tensor_count(a); i++) {
    if (integer) {
      if (tensor_get_i64(a, i) != tensor_get_i64(b, i)) return false;
      continue;
    }
    const double u = tensor_get(a, i), v = tensor_get(b, i);
    if (u != v && (u == u || v == v)) return false;
  }
  return true;
}

/* ---- graphs */
static inline void eval_init(eval *e, const rung_graph *graph, uint64_t *seed) {
  memset(e, 0, sizeof *e);
  e->graph = graph;
  e->seed = seed;
  e->value = (tensor **)calloc(graph->values, sizeof *e->value);
  e->borrowed = (bool *)calloc(graph->values, sizeof *e->borrowed);
  e->dim = (int64_t *)calloc(graph->dims->count, sizeof *e->dim);
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) e->symbol[i] = RUNG_UNBOUND;
  e->random[0] = 42;
}
static inline void eval_finish(eval *e) {
  for (uint32_t i = 1; i < e->graph->values; i++)
    if (!e->borrowed[i]) tensor_free(e->value[i]);
  free(e->value);
  free(e->borrowed);
  free(e->dim);
}
static inline rung_status eval_dims(eval *e) {
  return rung_dims_evaluate(e->graph->dims, e->symbol, e->dim, &e->error);
}
static inline void eval_bind(eval *e, const char *symbol, int64_t value) {
  const int i = rung_dims_find_symbol(e->graph->dims, symbol, strlen(symbol));
  if (i >= 0) e->symbol[i] = value;
}
/* The caller's tensor as a value (of an input or weight). */
static inline void eval_lend(eval *e, rung_value value, tensor *t) {
  e->value[value.id] = t;
  e->borrowed[value.id] = true;
}

static inline tensor *eval_make(eval *e, const rung_value_type *type, int64_t window) {
  int64_t extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < type->rank; axis++) {
    extent[axis] = e->dim[type->extent[axis].id];
    if (extent[axis] == RUNG_UNBOUND) {
      rung_fail(&e->error, RUNG_INTERNAL, "an extent is not known when its buffer is needed");
      return NULL;
    }
  }
  if (type->kind != RUNG_VALUE_STATE_KV) return tensor_make(type->type, type->rank, extent, e->seed);
  tensor *t = (tensor *)calloc(1, sizeof *t);
  t->operand = (rung_operand){.extent = t->extent, .stride = t->stride, .rank = 3, .type = (uint8_t)type->type};
  memcpy(t->extent, extent, 3 * sizeof *extent);
  eval_kv(t, type->type, window);
  return t;
}

static rung_status eval_nodes(eval *e);

typedef struct eval_frame {
  eval *e;
  const rung_node *node;
} eval_frame;

/* A body: its inputs are the operands, symbols of theirs that are not bound take the operands' extents. */
static inline rung_status eval_body(void *self, int index, const rung_operand *in, const rung_operand *out) {
  const eval_frame *frame = (const eval_frame *)self;
  const rung_graph *body = frame->node->body[index];
  eval inner;
  eval_init(&inner, body, frame->e->seed);
  memcpy(inner.symbol, frame->e->symbol, sizeof inner.symbol);
  tensor *lent = (tensor *)calloc(body->inputs + 1, sizeof *lent);
  for (uint32_t i = 0; i < body->inputs; i++) {
    const uint32_t value = body->node[body->input[i]].first_value;
    const rung_value_type *type = rung_graph_value_type(body, value);
    lent[i].operand = in[i];
    for (int axis = 0; axis < type->rank; axis++) {
      lent[i].extent[axis] = in[i].extent[axis];
      lent[i].stride[axis] = in[i].stride[axis];
      const rung_dim_node *dim = &body->dims->node[type->extent[axis].id];
      if (dim->kind == RUNG_DIM_KIND_SYMBOL) inner.symbol[dim->symbol] = in[i].extent[axis];
    }
    lent[i].operand.extent = lent[i].extent;
    lent[i].operand.stride = lent[i].stride;
    inner.value[value] = &lent[i];
    inner.borrowed[value] = true;
  }
  rung_status status = eval_nodes(&inner);
  for (uint32_t i = 0; !status && i < body->outputs; i++) {
    const tensor *from = inner.value[body->output[i].value];
    if (out[i].base == from->operand.base) continue; /* a state that was written in place */
    tensor to = {.operand = out[i]};
    for (int axis = 0; axis < out[i].rank; axis++) {
      to.extent[axis] = out[i].extent[axis];
      to.stride[axis] = out[i].stride[axis];
    }
    const bool integer = (rung_type_takes((rung_type)out[i].type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
    for (int64_t k = 0; k < tensor_count(from); k++) {
      if (integer)
        rung_store_i64(&to.operand, tensor_offset(&to, k), tensor_get_i64(from, k));
      else
        rung_store_f64(&to.operand, tensor_offset(&to, k), tensor_get(from, k));
    }
  }
  if (status) frame->e->error = inner.error;
  eval_finish(&inner);
  free(lent);
  return status;
}

/* Values that no node computes: constants are filled, states begin as zeros, the rest is the caller's to fill. */
static inline rung_status eval_declared(eval *e, const rung_node *node) {
  const uint32_t value = node->first_value;
  if (e->value[value]) return RUNG_OK;
  const rung_value_type *type = rung_graph_value_type(e->graph, value);
  int64_t window = 0;
  const rung_blob *blob = NULL;
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    if (attr->kind == RUNG_ATTR_I64) window = *(const int64_t *)rung_attr_get(attr, node->attrs);
    if (attr->kind == RUNG_ATTR_CONSTANT) blob = (const rung_blob *)rung_attr_get(attr, node->attrs);
  }
  uint64_t *seed = e->seed;
  if (blob) e->seed = NULL; /* dense, as its bytes are */
  tensor *t = e->value[value] = eval_make(e, type, window);
  e->seed = seed;
  if (!t) return e->error.status;
  if (blob && blob->bytes) memcpy(t->operand.base, blob->data, (size_t)blob->bytes);
  for (int64_t i = 0; type->kind == RUNG_VALUE_STATE_DENSE && i < tensor_count(t); i++) tensor_set(t, i, 0);
  return RUNG_OK;
}

static inline rung_status eval_node(eval *e, const rung_node *node) {
  rung_operand *in = (rung_operand *)calloc(node->n_in + 1, sizeof *in);
  rung_operand *out = (rung_operand *)calloc(node->results + 1, sizeof *out);
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = e->value[node->in[i]]->operand;
  for (uint32_t r = 0; r < node->results && !status; r++) {
    const uint32_t value = node->first_value + r;
    if ((node->op->flags & RUNG_OP_EFFECT) && r == 0) { /* all versions of a state share memory */
      e->value[value] = e->value[node->in[0]];
      e->borrowed[value] = true;
    } else {
      e->value[value] = eval_make(e, rung_graph_value_type(e->graph, value), 0);
      if (!e->value[value]) status = e->error.status;
    }
    if (!status) out[r] = e->value[value]->operand;
  }
  eval_frame frame = {e, node};
  const rung_args args = {.in = in,
                          .out = out,
                          .n_in = (uint16_t)node->n_in,
                          .n_out = (uint16_t)node->results,
                          .attrs = node->attrs,
                          .dim = e->dim,
                          .random = e->random,
                          .threads = 1,
                          .error = &e->error,
                          .run_body = eval_body,
                          .self = &frame};
  if (!status && !node->op->reference)
    status = rung_fail(&e->error, RUNG_UNSUPPORTED, "%s: no reference", node->op->name);
  if (!status) status = node->op->reference(&args);
  if (!status && node->op->sizes) {
    int64_t made[RUNG_MAX_SYMBOLS];
    node->op->sizes(&args, made);
    for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++)
      if (attr->kind == RUNG_ATTR_TEXT && strcmp(attr->name, "symbol") == 0)
        eval_bind(e, *(const char *const *)rung_attr_get(attr, node->attrs), made[0]);
    status = eval_dims(e);
  }
  free(in);
  free(out);
  return status;
}

static rung_status eval_nodes(eval *e) {
  RUNG_TRY(eval_dims(e));
  for (uint32_t i = 0; i < e->graph->nodes; i++) {
    const rung_node *node = &e->graph->node[i];
    RUNG_TRY(node->op->flags & RUNG_OP_DECLARES ? eval_declared(e, node) : eval_node(e, node));
  }
  return RUNG_OK;
}
/* Makes what is declared, so that the caller can fill it. */
static inline rung_status eval_begin(eval *e) {
  RUNG_TRY(eval_dims(e));
  for (uint32_t i = 0; i < e->graph->nodes; i++)
    if (e->graph->node[i].op->flags & RUNG_OP_DECLARES) RUNG_TRY(eval_declared(e, &e->graph->node[i]));
  return RUNG_OK;
}
/* Runs all nodes; again after inputs have changed. */
static inline rung_status eval_run(eval *e) {
  for (uint32_t i = 0; i < e->graph->nodes; i++) {
    const rung_node *node = &e->graph->node[i];
    for (uint32_t r = 0; r < node->results && !(node->op->flags & RUNG_OP_DECLARES); r++) {
      const uint32_t value = node->first_value + r;
      if (!e->borrowed[value]) tensor_free(e->value[value]);
      e->value[value] = NULL;
      e->borrowed[value] = false;
    }
  }
  return eval_nodes(e);
}
/* Do the checks that building left for run time hold? */
static inline bool eval_checks_hold(const eval *e) {
  for (uint32_t i = 0; i < e->graph->checks; i++) {
    const rung_dim_check *c = &e->graph->check[i];
    const int64_t a = e->dim[c->a.id], b = e->dim[c->b.id];
    if (c->at_least ? a < b : a != b) return false;
  }
  return true;
}

#endif
