/* SPDX-License-Identifier: MIT
 * What is known of values while importing, asked for when a builder needs it:
 *
 *   constants     by running the ops' references on constant operands
 *   expressions   of shapes: each element as a dimension. Ops that only move elements are run by their references on
 *                 the elements' numbers; sums, products, comparisons and choices become dimension arithmetic. Floats
 *                 that come from extents are kept as dimension over divisor, so that floor(n * 0.5) is n / 2.
 *
 * Both look at rung nodes, not at ONNX ones: whatever an operator was lowered to is understood. */
#include <math.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "ops/reference.h"
#include "passes/pass.h"

enum { MAX_OPERANDS = 64, LARGEST_RESULT = 1 << 22, DEEPEST = 2000 };

double onnx_constant_number(const onnx_constant *c, int64_t index) {
  const rung_operand o = {.base = (uint8_t *)(uintptr_t)c->data, .type = (uint8_t)c->type};
  return rung_load_f64(&o, index);
}
int64_t onnx_constant_integer(const onnx_constant *c, int64_t index) {
  const rung_operand o = {.base = (uint8_t *)(uintptr_t)c->data, .type = (uint8_t)c->type};
  return rung_load_i64(&o, index);
}

static onnx_known *known_of(onnx_import *imp, onnx_body *b, uint32_t value) {
  if (imp->status || rung_graph_status(b->g) || !value) return NULL;
  if (!rung_arena_grow(&imp->arena, (void **)&b->known, &b->known_capacity, value + 1, sizeof *b->known)) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
    return NULL;
  }
  if (!b->known[value]) {
    b->known[value] = (onnx_known *)rung_arena_alloc(&imp->arena, sizeof **b->known);
    if (!b->known[value]) (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
  }
  return b->known[value];
}

/* ---- constants */

static bool describe(const rung_dims *dims, const rung_value_type *type, onnx_constant *c) {
  *c = (onnx_constant){.type = type->type, .rank = type->rank, .elements = 1};
  if (type->kind != RUNG_VALUE_TENSOR || type->layout) return false;
  for (int i = 0; i < type->rank; i++) {
    if (!rung_dims_is_constant(dims, type->extent[i], &c->extent[i])) return false;
    if (rung_mul_overflows(c->elements, c->extent[i], &c->elements)) return false;
  }
  return true;
}

static const onnx_constant *evaluate(onnx_import *imp, onnx_body *b, uint32_t value, int depth);

typedef struct work {
  rung_operand in[MAX_OPERANDS], out[MAX_OPERANDS];
  int64_t shape[2 * MAX_OPERANDS][2 * RUNG_MAX_RANK];
  onnx_constant result[MAX_OPERANDS];
} work;

static bool set_up(onnx_import *imp, onnx_body *b, const rung_node *node, work *w, int depth) {
  const rung_dims *dims = b->g->dims;
  uint64_t bytes;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const onnx_constant *c = evaluate(imp, b, node->in[i], depth + 1);
    if (!c || !rung_dense_operand(dims, rung_graph_value_type(b->g, node->in[i]), (uint8_t *)(uintptr_t)c->data,
                                  w->shape[i], &w->in[i], &bytes))
      return false;
  }
  for (uint32_t r = 0; r < node->results; r++) {
    const rung_value_type *type = rung_graph_value_type(b->g, node->first_value + r);
    if (!describe(dims, type, &w->result[r]) || w->result[r].elements > LARGEST_RESULT) return false;
    const uint64_t size = ((uint64_t)w->result[r].elements + 8) * 8;
    uint8_t *data = (uint8_t *)rung_arena_alloc(&imp->arena, size);
    if (!data) {
      (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
      return false;
    }
    w->result[r].data = data;
    if (!rung_dense_operand(dims, type, data, w->shape[MAX_OPERANDS + r], &w->out[r], &bytes)) return false;
  }
  return true;
}

static rung_status run_reference(onnx_import *imp, onnx_body *b, const rung_node *node, work *w) {
  const rung_dims *dims = b->g->dims;
  int64_t *dim = (int64_t *)rung_host_array(imp->host, dims->count, sizeof *dim);
  if (!dim) return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
  rung_attrs_take_dims(dims, node, dim);
  rung_error refused = {RUNG_OK, ""};
  const rung_args args = {.in = w->in,
                          .out = w->out,
                          .n_in = (uint16_t)node->n_in,
                          .n_out = (uint16_t)node->results,
                          .attrs = node->attrs,
                          .dim = dim,
                          .threads = 1,
                          .error = &refused};
  const rung_status status = node->op->reference(&args);
  rung_host_free(imp->host, RUNG_MEMORY_host, dim, dims->count * sizeof *dim);
  return status;
}

static void compute(onnx_import *imp, onnx_body *b, const rung_node *node, int depth) {
  work *w = (work *)rung_host_array(imp->host, 1, sizeof *w);
  if (!w) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
    return;
  }
  if (set_up(imp, b, node, w, depth) && !run_reference(imp, b, node, w)) {
    for (uint32_t r = 0; r < node->results; r++) {
      onnx_known *k = known_of(imp, b, node->first_value + r);
      onnx_constant *c = (onnx_constant *)rung_arena_copy(&imp->arena, &w->result[r], sizeof *c);
      if (k) k->constant = c;
      if (k) k->tried_constant = true;
    }
  }
  rung_host_free(imp->host, RUNG_MEMORY_host, w, sizeof *w);
}

static const uint8_t *bytes_of(onnx_import *imp, const rung_node *node) {
  if (node->op == &rung_op_constant) return ((const rung_constant_attrs *)node->attrs)->data.data;
  const rung_tensor_entry *entry = rung_weights_find(imp->weights, ((const rung_weight_attrs *)node->attrs)->name);
  return entry && entry->data ? (const uint8_t *)entry->data : NULL;
}

/* A capture is what it is outside. */
static rung_value outside_of(const onnx_body *b, uint32_t value) {
  for (uint32_t i = 0; i < b->captures; i++)
    if (b->inside[i].id == value) return b->outside[i];
  return rung_build_null();
}

static const onnx_constant *evaluate(onnx_import *imp, onnx_body *b, uint32_t value, int depth) {
  onnx_known *k = known_of(imp, b, value);
  if (!k || k->tried_constant) return k ? k->constant : NULL;
  k->tried_constant = true;
  const rung_node *node = rung_graph_producer(b->g, value);
  if (node->op == &rung_op_constant || node->op == &rung_op_weight) {
    onnx_constant c;
    if (!describe(b->g->dims, rung_graph_value_type(b->g, value), &c)) return NULL;
    c.data = bytes_of(imp, node);
    if (c.data || c.elements == 0) k->constant = (onnx_constant *)rung_arena_copy(&imp->arena, &c, sizeof c);
    return k->constant;
  }
  if (node->op == &rung_op_input && b->outer) {
    const rung_value outside = outside_of(b, value);
    if (outside.id) k->constant = (onnx_constant *)(uintptr_t)evaluate(imp, b->outer, outside.id, depth + 1);
    return k->constant;
  }
  if (depth > DEEPEST || !rung_node_is_pure(node) || !node->op->reference || node->op == &rung_op_form ||
      node->n_in > MAX_OPERANDS || node->results > MAX_OPERANDS || !rung_attrs_are_fixed(b->g->dims, node))
    return NULL;
  for (uint32_t r = 0; r < node->results; r++) {
    onnx_constant c;
    if (!describe(b->g->dims, rung_graph_value_type(b->g, node->first_value + r), &c) || c.elements > LARGEST_RESULT)
      return NULL;
  }
  for (uint32_t i = 0; i < node->n_in; i++)
    if (!evaluate(imp, b, node->in[i], depth + 1)) return NULL;
  const rung_node copy = *node;
  compute(imp, b, &copy, depth);
  return k->constant;
}

const onnx_constant *onnx_constant_of(onnx_import *imp, onnx_body *b, rung_value v) {
  return evaluate(imp, b, v.id, 0);
}

/* ---- expressions */

static const onnx_known *symbolic(onnx_import *imp, onnx_body *b, uint32_t value, int depth);

typedef struct symbols {
  onnx_import *imp;
  onnx_body *b;
  rung_dims *dims;
  const rung_node *node;
  const rung_value_type *type;
  uint32_t count;
  onnx_symbolic *out;
  int depth;
} symbols;

static const onnx_symbolic unknown = {{0}, 1};

static onnx_symbolic whole(symbols *s, int64_t value) { return (onnx_symbolic){rung_dims_constant(s->dims, value), 1}; }

/* A number as a fraction whose divisor is a small power of two times small odd numbers; else unknown. */
static onnx_symbolic fraction(symbols *s, double value) {
  static const int divisors[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 25, 32, 50, 64, 100, 128, 256, 1000, 1024};
  for (size_t i = 0; i < RUNG_COUNT(divisors); i++) {
    const double up = value * divisors[i];
    if (fabs(up) < 1e12 && up == floor(up) && up / divisors[i] == value)
      return (onnx_symbolic){rung_dims_constant(s->dims, (int64_t)up), divisors[i]};
  }
  return unknown;
}

static onnx_symbolic element_of_constant(symbols *s, const onnx_constant *c, int64_t i) {
  if (rung_type_is_float(c->type)) return fraction(s, onnx_constant_number(c, i));
  if (c->type == RUNG_TYPE_U64 || onnx_constant_integer(c, i) == INT64_MIN) return unknown;
  return whole(s, onnx_constant_integer(c, i));
}

/* Operand i's expressions; NULL: nothing known. */
static const onnx_symbolic *operand(symbols *s, uint32_t i, uint32_t *out_count) {
  const onnx_known *k = symbolic(s->imp, s->b, s->node->in[i], s->depth + 1);
  if (!k || !k->symbolic) return NULL;
  *out_count = k->count;
  return k->symbolic;
}

/* Runs a movement op on the numbers of its operands' elements. Operand `fixed` (-1: none) is taken as the constant it
 * is: indices. */
static bool move(symbols *s, int fixed) {
  const rung_node *node = s->node;
  work *w = (work *)rung_host_array(s->imp->host, 1, sizeof *w);
  int64_t *ids = (int64_t *)rung_host_array(s->imp->host, ((size_t)MAX_OPERANDS + 1) * ONNX_MAX_KNOWN, sizeof *ids);
  int64_t *result = (int64_t *)rung_host_array(s->imp->host, ONNX_MAX_KNOWN, sizeof *result);
  const onnx_symbolic *from[MAX_OPERANDS] = {0};
  bool good = w && ids && result && node->n_in <= MAX_OPERANDS;
  for (uint32_t i = 0; good && i < node->n_in; i++) {
    rung_value_type type = *rung_graph_value_type(s->b->g, node->in[i]);
    uint64_t bytes;
    uint32_t count = 0;
    uint8_t *data = (uint8_t *)(ids + (size_t)i * ONNX_MAX_KNOWN);
    if ((int)i == fixed) {
      const onnx_constant *c = evaluate(s->imp, s->b, node->in[i], s->depth + 1);
      good = c != NULL;
      if (c) data = (uint8_t *)(uintptr_t)c->data;
    } else {
      from[i] = operand(s, i, &count);
      good = from[i] != NULL;
      type.type = RUNG_TYPE_I64;
      for (uint32_t e = 0; e < count; e++) ids[(size_t)i * ONNX_MAX_KNOWN + e] = (int64_t)i * ONNX_MAX_KNOWN + e;
    }
    good = good && rung_dense_operand(s->dims, &type, data, w->shape[i], &w->in[i], &bytes);
  }
  rung_value_type type = *s->type;
  type.type = RUNG_TYPE_I64;
  uint64_t bytes;
  good = good && rung_dense_operand(s->dims, &type, (uint8_t *)result, w->shape[MAX_OPERANDS], &w->out[0], &bytes) &&
         !run_reference(s->imp, s->b, node, w);
  for (uint32_t e = 0; good && e < s->count; e++)
    s->out[e] = from[result[e] / ONNX_MAX_KNOWN][result[e] % ONNX_MAX_KNOWN];
  rung_host_free(s->imp->host, RUNG_MEMORY_host, w, sizeof *w);
  rung_host_free(s->imp->host, RUNG_MEMORY_host, ids, ((size_t)MAX_OPERANDS + 1) * ONNX_MAX_KNOWN * sizeof *ids);
  rung_host_free(s->imp->host, RUNG_MEMORY_host, result, ONNX_MAX_KNOWN * sizeof *result);
  return good;
}

static bool moves_all(symbols *s) { return rung_attrs_are_fixed(s->dims, s->node) && move(s, -1); }
static bool moves_indexed(symbols *s) { return rung_attrs_are_fixed(s->dims, s->node) && move(s, 1); }

static rung_dim combine(symbols *s, rung_dim_op op, rung_dim a, rung_dim b) {
  const rung_dim d = rung_dims_combine(s->dims, op, a, b);
  s->dims->failure = RUNG_OK;
  return d;
}
static int64_t lowest(const symbols *s, rung_dim d) { return s->dims->node[d.id].lo; }

static onnx_symbolic reduced(symbols *s, rung_dim dim, int64_t divisor) {
  int64_t value;
  if (dim.id && rung_dims_is_constant(s->dims, dim, &value) && divisor > 1 && value % divisor == 0)
    return whole(s, value / divisor);
  return (onnx_symbolic){dim, dim.id ? divisor : 1};
}

typedef onnx_symbolic arithmetic(symbols *s, onnx_symbolic a, onnx_symbolic b);

static onnx_symbolic added(symbols *s, onnx_symbolic a, onnx_symbolic b, rung_dim_op op) {
  int64_t divisor;
  if (a.divisor == b.divisor) return reduced(s, combine(s, op, a.dim, b.dim), a.divisor);
  if (rung_mul_overflows(a.divisor, b.divisor, &divisor) || divisor > 1000000) return unknown;
  const rung_dim left = combine(s, RUNG_DIM_MUL, a.dim, rung_dims_constant(s->dims, b.divisor)),
                 right = combine(s, RUNG_DIM_MUL, b.dim, rung_dims_constant(s->dims, a.divisor));
  return left.id && right.id ? reduced(s, combine(s, op, left, right), divisor) : unknown;
}
static onnx_symbolic of_add(symbols *s, onnx_symbolic a, onnx_symbolic b) { return added(s, a, b, RUNG_DIM_ADD); }
static onnx_symbolic of_sub(symbols *s, onnx_symbolic a, onnx_symbolic b) { return added(s, a, b, RUNG_DIM_SUB); }
static onnx_symbolic of_min(symbols *s, onnx_symbolic a, onnx_symbolic b) { return added(s, a, b, RUNG_DIM_MIN); }
static onnx_symbolic of_max(symbols *s, onnx_symbolic a, onnx_symbolic b) { return added(s, a, b, RUNG_DIM_MAX); }
static onnx_symbolic of_mul(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  int64_t divisor;
  if (rung_mul_overflows(a.divisor, b.divisor, &divisor) || divisor > 1000000) return unknown;
  return reduced(s, combine(s, RUNG_DIM_MUL, a.dim, b.dim), divisor);
}
static onnx_symbolic of_div(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  int64_t by, product;
  if (rung_type_is_float(s->type->type)) {
    if (!rung_dims_is_constant(s->dims, b.dim, &by) || by <= 0 || rung_mul_overflows(a.divisor, by, &product) ||
        product > 1000000)
      return unknown;
    const rung_dim up = combine(s, RUNG_DIM_MUL, a.dim, rung_dims_constant(s->dims, b.divisor));
    return up.id ? reduced(s, up, product) : unknown;
  }
  if (a.divisor != 1 || b.divisor != 1 || lowest(s, a.dim) < 0 || lowest(s, b.dim) < 1) return unknown;
  return (onnx_symbolic){combine(s, RUNG_DIM_FLOORDIV, a.dim, b.dim), 1};
}
static onnx_symbolic of_mod(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  if (a.divisor != 1 || b.divisor != 1 || lowest(s, b.dim) < 1) return unknown;
  if (s->node->op == &rung_op_fmod && lowest(s, a.dim) < 0) return unknown;
  return (onnx_symbolic){combine(s, RUNG_DIM_MOD, a.dim, b.dim), 1};
}
static onnx_symbolic truth(symbols *s, bool known, bool value) { return known ? whole(s, value) : unknown; }
static onnx_symbolic of_equal(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  if (a.divisor != b.divisor) return unknown;
  const rung_dim_relation r = rung_dims_compare(s->dims, a.dim, b.dim);
  return truth(s, r != RUNG_DIM_UNKNOWN, (r == RUNG_DIM_EQUAL) == (s->node->op == &rung_op_equal));
}
static onnx_symbolic less(symbols *s, onnx_symbolic a, onnx_symbolic b, bool or_equal) {
  if (a.divisor != b.divisor) return unknown;
  const rung_interval d = rung_dims_difference(s->dims, a.dim, b.dim);
  const int64_t most = or_equal ? 0 : -1;
  if (d.hi != INT64_MAX && d.hi <= most) return truth(s, true, true);
  return truth(s, d.lo != -INT64_MAX && d.lo > most, false);
}
static onnx_symbolic of_less(symbols *s, onnx_symbolic a, onnx_symbolic b) { return less(s, a, b, false); }
static onnx_symbolic of_less_equal(symbols *s, onnx_symbolic a, onnx_symbolic b) { return less(s, a, b, true); }
static onnx_symbolic of_greater(symbols *s, onnx_symbolic a, onnx_symbolic b) { return less(s, b, a, false); }
static onnx_symbolic of_greater_equal(symbols *s, onnx_symbolic a, onnx_symbolic b) { return less(s, b, a, true); }
static bool bool_of(symbols *s, onnx_symbolic a, int64_t *out) { return rung_dims_is_constant(s->dims, a.dim, out); }
static onnx_symbolic of_and(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  int64_t x, y;
  return bool_of(s, a, &x) && bool_of(s, b, &y) ? whole(s, x && y) : unknown;
}
static onnx_symbolic of_or(symbols *s, onnx_symbolic a, onnx_symbolic b) {
  int64_t x, y;
  return bool_of(s, a, &x) && bool_of(s, b, &y) ? whole(s, x || y) : unknown;
}

/* Element of operand i that broadcasts to result element `index` (row-major). */
static uint32_t broadcast_index(const symbols *s, uint32_t i, uint32_t index) {
  const rung_value_type *from = rung_graph_value_type(s->b->g, s->node->in[i]);
  uint32_t at = 0, step = 1;
  for (int axis = s->type->rank - 1, f = from->rank - 1; axis >= 0; axis--, f--) {
    int64_t extent = 1, have = 1;
    (void)rung_dims_is_constant(s->dims, s->type->extent[axis], &extent);
    const uint32_t here = extent > 0 ? index % (uint32_t)extent : 0;
    index = extent > 0 ? index / (uint32_t)extent : 0;
    if (f < 0) continue;
    (void)rung_dims_is_constant(s->dims, from->extent[f], &have);
    if (have != 1) at += here * step;
    step *= (uint32_t)have;
  }
  return at;
}

static bool binary(symbols *s, arithmetic *f) {
  uint32_t n[2];
  const onnx_symbolic *a = operand(s, 0, &n[0]), *b = operand(s, 1, &n[1]);
  if (!a || !b) return false;
  for (uint32_t e = 0; e < s->count; e++) {
    const onnx_symbolic x = a[broadcast_index(s, 0, e)], y = b[broadcast_index(s, 1, e)];
    s->out[e] = x.dim.id && y.dim.id ? f(s, x, y) : unknown;
  }
  return true;
}

static bool of_where(symbols *s) {
  uint32_t n;
  const onnx_symbolic *c = operand(s, 0, &n), *a = operand(s, 1, &n), *b = operand(s, 2, &n);
  if (!c || !a || !b) return false;
  for (uint32_t e = 0; e < s->count; e++) {
    const onnx_symbolic choice = c[broadcast_index(s, 0, e)], x = a[broadcast_index(s, 1, e)],
                        y = b[broadcast_index(s, 2, e)];
    int64_t value;
    if (choice.dim.id && rung_dims_is_constant(s->dims, choice.dim, &value))
      s->out[e] = value ? x : y;
    else
      s->out[e] = rung_dim_same(x.dim, y.dim) && x.divisor == y.divisor ? x : unknown;
  }
  return true;
}

static onnx_symbolic rounded(symbols *s, onnx_symbolic a, bool up) {
  if (a.divisor == 1) return a;
  rung_dim top = a.dim;
  if (up) top = combine(s, RUNG_DIM_ADD, top, rung_dims_constant(s->dims, a.divisor - 1));
  return top.id ? (onnx_symbolic){combine(s, RUNG_DIM_FLOORDIV, top, rung_dims_constant(s->dims, a.divisor)), 1}
                : unknown;
}
static bool unary(symbols *s) {
  uint32_t n;
  const rung_op *op = s->node->op;
  const onnx_symbolic *a = operand(s, 0, &n);
  if (!a) return false;
  const bool to_whole = op == &rung_op_cast && !rung_type_is_float(s->type->type);
  for (uint32_t e = 0; e < s->count; e++) {
    const onnx_symbolic x = a[e];
    s->out[e] = x;
    if (!x.dim.id) continue;
    if (op == &rung_op_neg) {
      s->out[e] = (onnx_symbolic){combine(s, RUNG_DIM_SUB, rung_dims_constant(s->dims, 0), x.dim), x.divisor};
    } else if (op == &rung_op_not) {
      int64_t value;
      s->out[e] = bool_of(s, x, &value) ? whole(s, !value) : unknown;
    } else if (op == &rung_op_abs) {
      if (lowest(s, x.dim) < 0) s->out[e] = unknown;
    } else if (op == &rung_op_ceil || op == &rung_op_floor) {
      s->out[e] = rounded(s, x, op == &rung_op_ceil);
    } else if (op == &rung_op_cast && s->type->type == RUNG_TYPE_BOOL) {
      int64_t value;
      s->out[e] = lowest(s, x.dim) > 0 ? whole(s, 1) : bool_of(s, x, &value) ? whole(s, value != 0) : unknown;
    } else if (to_whole) {
      s->out[e] = x.divisor == 1 || lowest(s, x.dim) >= 0 ? rounded(s, x, false) : unknown;
    } else if (op == &rung_op_round || op == &rung_op_trunc) {
      if (x.divisor != 1) s->out[e] = unknown;
    }
  }
  return true;
}

/* All axes at once. */
static bool reduce(symbols *s) {
  uint32_t n;
  const onnx_symbolic *a = operand(s, 0, &n);
  if (!a || s->count != 1 || n == 0) return false;
  const rung_op *op = s->node->op;
  onnx_symbolic total = a[0];
  for (uint32_t e = 1; e < n && total.dim.id; e++) {
    if (!a[e].dim.id)
      total = unknown;
    else if (op == &rung_op_reduce_prod)
      total = of_mul(s, total, a[e]);
    else if (op == &rung_op_reduce_sum)
      total = of_add(s, total, a[e]);
    else if (op == &rung_op_reduce_max)
      total = of_max(s, total, a[e]);
    else
      total = of_min(s, total, a[e]);
  }
  s->out[0] = total;
  return true;
}

static bool of_extent(symbols *s) {
  s->out[0] = (onnx_symbolic){((const rung_extent_attrs *)s->node->attrs)->value, 1};
  return true;
}
static bool of_bind(symbols *s) {
  const char *name = ((const rung_bind_symbol_attrs *)s->node->attrs)->symbol;
  const int i = rung_dims_find_symbol(s->dims, name, strlen(name));
  if (i < 0) return false;
  s->out[0] = (onnx_symbolic){s->dims->symbol[i].dim, 1};
  return true;
}

static const struct {
  const rung_op *op;
  bool (*apply)(symbols *s);
  arithmetic *f;
} rules[] = {
    {&rung_op_extent, of_extent, NULL},
    {&rung_op_bind_symbol, of_bind, NULL},
    {&rung_op_reshape, moves_all, NULL},
    {&rung_op_expand, moves_all, NULL},
    {&rung_op_transpose, moves_all, NULL},
    {&rung_op_concat, moves_all, NULL},
    {&rung_op_slice, moves_all, NULL},
    {&rung_op_gather, moves_indexed, NULL},
    {&rung_op_gather_elements, moves_indexed, NULL},
    {&rung_op_gather_nd, moves_indexed, NULL},
    {&rung_op_scatter_elements, NULL, NULL},
    {&rung_op_where, of_where, NULL},
    {&rung_op_cast, unary, NULL},
    {&rung_op_neg, unary, NULL},
    {&rung_op_abs, unary, NULL},
    {&rung_op_not, unary, NULL},
    {&rung_op_floor, unary, NULL},
    {&rung_op_ceil, unary, NULL},
    {&rung_op_round, unary, NULL},
    {&rung_op_trunc, unary, NULL},
    {&rung_op_reduce_prod, reduce, NULL},
    {&rung_op_reduce_sum, reduce, NULL},
    {&rung_op_reduce_max, reduce, NULL},
    {&rung_op_reduce_min, reduce, NULL},
    {&rung_op_add, NULL, of_add},
    {&rung_op_sub, NULL, of_sub},
    {&rung_op_mul, NULL, of_mul},
    {&rung_op_div, NULL, of_div},
    {&rung_op_mod, NULL, of_mod},
    {&rung_op_fmod, NULL, of_mod},
    {&rung_op_min, NULL, of_min},
    {&rung_op_max, NULL, of_max},
    {&rung_op_equal, NULL, of_equal},
    {&rung_op_not_equal, NULL, of_equal},
    {&rung_op_less, NULL, of_less},
    {&rung_op_less_equal, NULL, of_less_equal},
    {&rung_op_greater, NULL, of_greater},
    {&rung_op_greater_equal, NULL, of_greater_equal},
    {&rung_op_and, NULL, of_and},
    {&rung_op_or, NULL, of_or},
};

static bool apply_rule(symbols *s) {
  for (size_t i = 0; i < RUNG_COUNT(rules); i++) {
    if (rules[i].op != s->node->op) continue;
    if (rules[i].f) return binary(s, rules[i].f);
    return rules[i].apply && rules[i].apply(s);
  }
  return false;
}

static const onnx_known *symbolic(onnx_import *imp, onnx_body *b, uint32_t value, int depth) {
  onnx_known *k = known_of(imp, b, value);
  if (!k || k->tried_symbolic || depth > DEEPEST) return k;
  k->tried_symbolic = true;
  const rung_value_type *type = rung_graph_value_type(b->g, value);
  onnx_constant shape;
  if (!describe(b->g->dims, type, &shape) || shape.elements > ONNX_MAX_KNOWN) return k;
  const rung_value_type kept = *type;
  const rung_node node = *rung_graph_producer(b->g, value);
  onnx_symbolic *out = (onnx_symbolic *)rung_arena_array(&imp->arena, (size_t)shape.elements + 1, sizeof *out);
  if (!out) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory to follow shapes");
    return k;
  }
  symbols s = {imp, b, b->g->dims, &node, &kept, (uint32_t)shape.elements, out, depth};
  const onnx_constant *constant = evaluate(imp, b, value, depth);
  bool good = constant != NULL;
  if (constant) {
    for (uint32_t e = 0; e < s.count; e++) out[e] = element_of_constant(&s, constant, e);
  } else if (node.op == &rung_op_input && b->outer) {
    const rung_value outside = outside_of(b, value);
    const onnx_known *there = outside.id ? symbolic(imp, b->outer, outside.id, depth + 1) : NULL;
    good = there && there->symbolic;
    if (good) memcpy(out, there->symbolic, there->count * sizeof *out);
  } else if (node.results == 1) {
    good = apply_rule(&s);
  }
  b->g->dims->failure = RUNG_OK;
  k = known_of(imp, b, value);
  if (good && k) {
    k->symbolic = out;
    k->count = s.count;
  }
  return k;
}

const onnx_symbolic *onnx_symbolic_of(onnx_import *imp, onnx_body *b, rung_value v, uint32_t *out_count) {
  const onnx_known *k = symbolic(imp, b, v.id, 0);
  if (!k || !k->symbolic) return NULL;
  *out_count = k->count;
  return k->symbolic;
}
