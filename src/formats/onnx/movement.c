/* SPDX-License-Identifier: MIT
 * ONNX operators that move elements or make them out of shapes. */
#include <math.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "formats/onnx/tensors.h"

static rung_dims *dims_of(const onnx_call *c) { return c->g->dims; }
static rung_dim sum(const onnx_call *c, rung_dim a, rung_dim b) { return rung_graph_dim(c->g, RUNG_DIM_ADD, a, b); }
static rung_dim difference(const onnx_call *c, rung_dim a, rung_dim b) {
  return rung_graph_dim(c->g, RUNG_DIM_SUB, a, b);
}
static rung_dim product(const onnx_call *c, rung_dim a, rung_dim b) { return rung_graph_dim(c->g, RUNG_DIM_MUL, a, b); }
static bool is_constant(const onnx_call *c, rung_dim d, int64_t *out) {
  return d.id && rung_dims_is_constant(dims_of(c), d, out);
}

void onnx_build_concat(onnx_call *c);
void onnx_build_concat(onnx_call *c) {
  const int axis = onnx_axis(c, onnx_int(c, "axis", 1), onnx_rank(c, c->in[0]));
  c->out[0] = c->n_in == 1 ? c->in[0] : rung_build_concat(c->g, c->in, c->n_in, axis);
}

void onnx_build_constant(onnx_call *c);
void onnx_build_constant(onnx_call *c) {
  for (uint32_t i = 0; i < c->node->attrs; i++) {
    const onnx_attr *a = &c->node->attr[i];
    const int64_t count = a->count;
    char name[80];
    memcpy(name, onnx_show(a->name).text, sizeof name);
    a = onnx_attr_find(c, name);
    if (!a) continue;
    if (onnx_name_is(a->name, "value") && a->t)
      c->out[0] = onnx_tensor_value(c->scope, a->t, c->node->outputs ? c->node->output[0] : c->node->op);
    else if (a->type == ONNX_ATTR_FLOAT)
      c->out[0] = rung_graph_constant(c->g, RUNG_TYPE_F32, 0, NULL, &a->f);
    else if (a->type == ONNX_ATTR_INT)
      c->out[0] = rung_graph_constant(c->g, RUNG_TYPE_I64, 0, NULL, &a->i);
    else if (a->type == ONNX_ATTR_FLOATS)
      c->out[0] = rung_graph_constant(c->g, RUNG_TYPE_F32, 1, &count, a->floats);
    else if (a->type == ONNX_ATTR_INTS)
      c->out[0] = rung_graph_constant(c->g, RUNG_TYPE_I64, 1, &count, a->ints);
    else
      onnx_refuse(c, RUNG_UNSUPPORTED, "a constant given by %s", name);
  }
  if (!c->out[0].id && !onnx_failed(c)) onnx_refuse(c, RUNG_CORRUPT_FILE, "there is no value");
}

void onnx_build_constant_of_shape(onnx_call *c);
void onnx_build_constant_of_shape(onnx_call *c) {
  const onnx_attr *value = onnx_attr_find(c, "value");
  rung_dim bound[RUNG_MAX_RANK];
  rung_dim_list shape;
  for (int i = 0; i < RUNG_MAX_RANK; i++) bound[i] = onnx_declared(c, 0, i);
  if (!onnx_dims_in(c, 0, bound, RUNG_MAX_RANK, &shape)) return;
  rung_value fill = rung_build_scalar(c->g, RUNG_TYPE_F32, 0);
  if (value && value->t) fill = onnx_reshape(c, onnx_tensor_value(c->scope, value->t, value->name), 0, NULL);
  c->out[0] = rung_build_expand(c->g, fill, shape.count, shape.dim);
}

void onnx_build_shape(onnx_call *c);
void onnx_build_shape(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  int64_t start = onnx_int(c, "start", 0), end = onnx_int(c, "end", x.rank);
  if (start < 0) start += x.rank;
  if (end < 0) end += x.rank;
  start = start < 0 ? 0 : start > x.rank ? x.rank : start;
  end = end < 0 ? 0 : end > x.rank ? x.rank : end;
  c->out[0] = onnx_extents(c, x.extent + start, end > start ? (int)(end - start) : 0);
}
void onnx_build_size(onnx_call *c);
void onnx_build_size(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  c->out[0] = rung_build_extent(c->g, rung_dims_product(dims_of(c), x.extent, 0, x.rank), RUNG_TYPE_I64);
}

/* ---- reshape */

/* What is left of the elements for the axis that is -1. Extents that stand on both sides fall out first, since an
 * extent that can be 0 is no divisor. */
static rung_dim remaining(onnx_call *c, const rung_value_type *x, const rung_dim_list *shape, int infer) {
  rung_dim have = onnx_dim(c, 1), want = onnx_dim(c, 1);
  bool used[RUNG_MAX_RANK] = {false}, gone[RUNG_MAX_RANK] = {false};
  for (int i = 0; i < x->rank; i++)
    for (int j = 0; j < shape->count && !used[i]; j++)
      if (j != infer && !gone[j] && rung_dim_same(x->extent[i], shape->dim[j])) used[i] = gone[j] = true;
  for (int i = 0; i < x->rank; i++)
    if (!used[i]) have = product(c, have, x->extent[i]);
  for (int j = 0; j < shape->count; j++)
    if (!gone[j] && j != infer) want = product(c, want, shape->dim[j]);
  if (onnx_failed(c)) return have;
  int64_t value;
  if (is_constant(c, want, &value)) {
    if (value == 1) return have;
    if (value == 0) return onnx_dim(c, 0);
  }
  if (dims_of(c)->node[want.id].lo < 1) want = rung_graph_dim(c->g, RUNG_DIM_MAX, want, onnx_dim(c, 1));
  return rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, have, want);
}

/* The bound of one extent of a result with as many elements as x. Where those can be none, it may be as large as any
 * extent of x. */
static rung_dim one_extent_bound(onnx_call *c, const rung_value_type *x, rung_dim total) {
  if (!total.id || dims_of(c)->node[total.id].lo > 0) return total;
  for (int i = 0; i < x->rank; i++) total = rung_graph_dim(c->g, RUNG_DIM_MAX, total, x->extent[i]);
  return total;
}

/* Extents that are found at run time: 0 copies, -1 is what is left. */
static bool run_time_shape(onnx_call *c, const rung_value_type *x, rung_dim_list *shape, bool allow_zero) {
  rung_value element[RUNG_MAX_RANK], known = rung_build_scalar(c->g, RUNG_TYPE_I64, 1);
  const rung_value zero = rung_build_scalar(c->g, RUNG_TYPE_I64, 0), one = rung_build_scalar(c->g, RUNG_TYPE_I64, 1);
  const rung_dim total = rung_dims_product(dims_of(c), x->extent, 0, x->rank);
  for (int i = 0; i < shape->count; i++) {
    element[i] = onnx_element(c, c->in[1], i);
    if (!allow_zero && i < x->rank) {
      const rung_value copy = rung_build_extent(c->g, x->extent[i], RUNG_TYPE_I64);
      element[i] = rung_build_where(c->g, rung_build_equal(c->g, element[i], zero), copy, element[i]);
    }
    known =
        rung_build_mul(c->g, known, rung_build_where(c->g, rung_build_less(c->g, element[i], zero), one, element[i]));
  }
  const rung_value rest =
      rung_build_div(c->g, rung_build_extent(c->g, total, RUNG_TYPE_I64), rung_build_max(c->g, known, one));
  for (int i = 0; i < shape->count; i++) {
    const rung_value e = rung_build_where(c->g, rung_build_less(c->g, element[i], zero), rest, element[i]);
    rung_dim bound = onnx_declared(c, 0, i);
    if (!bound.id) bound = one_extent_bound(c, x, total);
    int64_t fixed;
    if (!(is_constant(c, shape->dim[i], &fixed) && fixed > 0)) shape->dim[i] = onnx_bind(c, e, bound);
  }
  return !onnx_failed(c);
}

static bool read_shape(onnx_call *c, rung_dim_list *shape, bool *out_known) {
  *out_known = true;
  if (c->version < 5) {
    rung_i64_list list;
    (void)onnx_int_list(c, "shape", &list);
    shape->count = list.count;
    for (int i = 0; i < list.count; i++) shape->dim[i] = onnx_dim(c, list.value[i]);
    return !onnx_failed(c);
  }
  if (!onnx_has(c, 1) || !onnx_dims_known(c, c->in[1], shape)) return false;
  for (int i = 0; i < shape->count; i++) *out_known = *out_known && shape->dim[i].id != 0;
  return true;
}

void onnx_build_reshape(onnx_call *c);
void onnx_build_reshape(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const bool allow_zero = onnx_int(c, "allowzero", 0) != 0;
  rung_dim_list shape = {0};
  bool known;
  if (!read_shape(c, &shape, &known)) return;
  if (!known) {
    if (run_time_shape(c, &x, &shape, allow_zero)) c->out[0] = onnx_reshape(c, c->in[0], shape.count, shape.dim);
    return;
  }
  int infer = -1;
  bool zero = false;
  for (int i = 0; i < shape.count; i++) {
    int64_t value;
    if (!is_constant(c, shape.dim[i], &value)) continue;
    if (value == 0 && !allow_zero && i >= x.rank) {
      onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the shape copies axis %d of an operand of %d axes", i, x.rank);
      return;
    }
    if (value == 0 && !allow_zero) shape.dim[i] = x.extent[i];
    zero = zero || value == 0;
    if (value != -1) continue;
    if (infer >= 0) {
      onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the shape has more than one -1");
      return;
    }
    infer = i;
  }
  if (infer >= 0 && zero && allow_zero) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the shape has 0 and -1 with allowzero");
    return;
  }
  if (infer >= 0) shape.dim[infer] = remaining(c, &x, &shape, infer);
  c->out[0] = onnx_reshape(c, c->in[0], shape.count, shape.dim);
}

void onnx_build_flatten(onnx_call *c);
void onnx_build_flatten(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  int64_t axis = onnx_int(c, "axis", 1);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis > x.rank) onnx_refuse(c, RUNG_OUT_OF_RANGE, "axis %lld of %d axes", (long long)axis, x.rank);
  if (onnx_failed(c)) return;
  const rung_dim extent[2] = {rung_dims_product(dims_of(c), x.extent, 0, (int)axis),
                              rung_dims_product(dims_of(c), x.extent, (int)axis, x.rank)};
  c->out[0] = onnx_reshape(c, c->in[0], 2, extent);
}

/* Axes as attribute before version 13, as input after it; false if there are none. */
static bool axes_of(onnx_call *c, rung_i64_list *axes) {
  if (c->version < 13) return onnx_int_list(c, "axes", axes);
  *axes = (rung_i64_list){0};
  return onnx_has(c, 1) && onnx_constant_ints(c, 1, axes);
}

void onnx_build_squeeze(onnx_call *c);
void onnx_build_squeeze(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_i64_list axes;
  bool drop[RUNG_MAX_RANK] = {false};
  if (axes_of(c, &axes)) {
    for (int i = 0; i < axes.count; i++) {
      const int axis = onnx_axis(c, axes.value[i], x.rank);
      int64_t extent;
      if (onnx_failed(c)) return;
      if (is_constant(c, x.extent[axis], &extent) && extent != 1) {
        onnx_refuse(c, RUNG_SHAPE_MISMATCH, "axis %d has extent %lld, not 1", axis, (long long)extent);
        return;
      }
      drop[axis] = true;
    }
  } else {
    for (int i = 0; i < x.rank; i++) drop[i] = rung_dim_is(dims_of(c), x.extent[i], 1);
  }
  rung_dim extent[RUNG_MAX_RANK];
  int n = 0;
  for (int i = 0; i < x.rank; i++)
    if (!drop[i]) extent[n++] = x.extent[i];
  c->out[0] = onnx_reshape(c, c->in[0], n, extent);
}

void onnx_build_unsqueeze(onnx_call *c);
void onnx_build_unsqueeze(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_i64_list axes;
  bool fresh[RUNG_MAX_RANK] = {false};
  if (!axes_of(c, &axes) || onnx_failed(c)) return;
  const int rank = x.rank + axes.count;
  if (rank > RUNG_MAX_RANK) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "the result has %d axes", rank);
    return;
  }
  for (int i = 0; i < axes.count; i++) {
    const int axis = onnx_axis(c, axes.value[i], rank);
    if (fresh[axis] && !onnx_failed(c)) onnx_refuse(c, RUNG_CORRUPT_FILE, "axis %d stands twice", axis);
    fresh[axis] = true;
  }
  if (onnx_failed(c)) return;
  rung_dim extent[RUNG_MAX_RANK];
  int from = 0;
  for (int i = 0; i < rank; i++) extent[i] = fresh[i] ? onnx_dim(c, 1) : x.extent[from++];
  c->out[0] = onnx_reshape(c, c->in[0], rank, extent);
}

void onnx_build_transpose(onnx_call *c);
void onnx_build_transpose(onnx_call *c) {
  const int rank = onnx_rank(c, c->in[0]);
  rung_i64_list order;
  if (!onnx_int_list(c, "perm", &order)) {
    order.count = rank;
    for (int i = 0; i < rank; i++) order.value[i] = rank - 1 - i;
  }
  if (order.count != rank) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "perm has %d numbers for %d axes", order.count, rank);
    return;
  }
  for (int i = 0; i < rank; i++) order.value[i] = onnx_axis(c, order.value[i], rank);
  c->out[0] = rung_build_transpose(c->g, c->in[0], order.value);
}

void onnx_build_expand(onnx_call *c);
void onnx_build_expand(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_dim_list shape;
  if (!onnx_dims_known(c, c->in[1], &shape)) return;
  const int rank = shape.count > x.rank ? shape.count : x.rank;
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    const int a = i - (rank - x.rank), b = i - (rank - shape.count);
    const rung_dim have = a >= 0 ? x.extent[a] : onnx_dim(c, 1);
    if (b < 0) {
      extent[i] = have;
      continue;
    }
    rung_dim want = shape.dim[b];
    int64_t value;
    const bool one = rung_dim_is(dims_of(c), have, 1);
    if (!want.id) {
      if (!one && is_constant(c, have, &value))
        want = have; /* the other can only be 1 or the same */
      else
        want = onnx_bind(c, onnx_element(c, c->in[1], b), onnx_declared(c, 0, i));
    }
    extent[i] = one ? want : is_constant(c, want, &value) && value == 1 ? have : want;
  }
  if (onnx_failed(c)) return;
  c->out[0] = rung_build_expand(c->g, c->in[0], rank, extent);
}

/* ---- split, slice */

void onnx_build_split(onnx_call *c);
void onnx_build_split(onnx_call *c) {
  const rung_value x = c->in[0];
  const int axis = onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, x));
  rung_i64_list given = {0};
  rung_dim part[ONNX_MAX_INPUTS];
  const uint32_t n = c->n_out;
  if (onnx_failed(c) || n == 0) return;
  if (c->version >= 13 && onnx_has(c, 1)) {
    const onnx_constant *k = onnx_constant_of(c->imp, c->scope->body, c->in[1]);
    rung_dim_list known;
    if (k && k->elements == n) {
      for (uint32_t i = 0; i < n; i++) part[i] = onnx_dim(c, onnx_constant_integer(k, i));
    } else if (!onnx_dims_known(c, c->in[1], &known) || known.count != (int32_t)n) {
      onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the parts are not as many as the results");
      return;
    } else {
      for (uint32_t i = 0; i < n; i++)
        part[i] = known.dim[i].id ? known.dim[i] : onnx_bind(c, onnx_element(c, c->in[1], i), onnx_extent(c, x, axis));
    }
  } else if (c->version < 13 && onnx_int_list(c, "split", &given) && given.count == (int32_t)n) {
    for (uint32_t i = 0; i < n; i++) part[i] = onnx_dim(c, given.value[i]);
  } else {
    const rung_dim all = onnx_extent(c, x, axis), parts = onnx_dim(c, n);
    const rung_dim each = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, sum(c, all, onnx_dim(c, n - 1)), parts);
    for (uint32_t i = 0; i < n; i++)
      part[i] = i + 1 < n ? each : difference(c, all, product(c, each, onnx_dim(c, n - 1)));
  }
  rung_dim start = onnx_dim(c, 0);
  for (uint32_t i = 0; i < n && !onnx_failed(c); i++) {
    c->out[i] = rung_build_slice(c->g, x, axis, start, part[i]);
    start = sum(c, start, part[i]);
  }
}

/* A start or end as a dimension in [lo, hi]: `d` counts from the end where it is below 0. */
static rung_dim clamped(onnx_call *c, rung_dim d, rung_dim extent, int64_t lo, rung_dim hi) {
  int64_t value, whole;
  if (is_constant(c, d, &value)) {
    if (is_constant(c, extent, &whole)) {
      int64_t top = 0;
      (void)is_constant(c, hi, &top);
      if (value < 0) value = value < -whole ? -1 : value + whole; /* INT64_MIN and the like */
      if (value > top) value = top;
      return onnx_dim(c, value < lo ? lo : value);
    }
    if (value == 0 && lo == 0) return d;
    if (value < -INT32_MAX) return onnx_dim(c, lo);
    if (value > INT32_MAX) return hi;
  }
  const rung_dim_node *node = &dims_of(c)->node[d.id];
  if (node->hi < 0) d = sum(c, d, extent);
  if (onnx_failed(c)) return d;
  d = rung_graph_dim(c->g, RUNG_DIM_MIN, d, hi);
  if (onnx_failed(c)) return d;
  return dims_of(c)->node[d.id].lo >= lo ? d : rung_graph_dim(c->g, RUNG_DIM_MAX, d, onnx_dim(c, lo));
}

/* The same of a number found at run time, for steps above 0. */
static rung_dim found(onnx_call *c, rung_value v, rung_dim extent) {
  const rung_value zero = rung_build_scalar(c->g, RUNG_TYPE_I64, 0),
                   whole = rung_build_extent(c->g, extent, RUNG_TYPE_I64);
  v = rung_build_where(c->g, rung_build_less(c->g, v, zero), rung_build_add(c->g, v, whole), v);
  v = rung_build_min(c->g, rung_build_max(c->g, v, zero), whole);
  return onnx_bind(c, v, extent);
}

typedef struct cut {
  rung_dim start, end;
  rung_value run_start, run_end; /* where they are not known */
  int64_t step;
} cut;

static void cut_axis(onnx_call *c, const cut *k, rung_dim extent, rung_dim *start, rung_dim *length) {
  const rung_dim zero = onnx_dim(c, 0);
  rung_dim first, last, count;
  if (k->step > 0) {
    first = k->start.id ? clamped(c, k->start, extent, 0, extent) : found(c, k->run_start, extent);
    last = k->end.id ? clamped(c, k->end, extent, 0, extent) : found(c, k->run_end, extent);
    if (onnx_failed(c)) return;
    count = difference(c, last, first);
    if (k->step > 1) count = sum(c, count, onnx_dim(c, k->step - 1));
    if (k->step > 1) count = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, count, onnx_dim(c, k->step));
  } else {
    if (!k->start.id || !k->end.id) {
      if (onnx_constant_in(c, 1) && onnx_constant_in(c, 2))
        onnx_refuse(c, RUNG_UNSUPPORTED, "a step below 0 with a start or end found at run time");
      return;
    }
    const rung_dim top = difference(c, extent, onnx_dim(c, 1));
    first = clamped(c, k->start, extent, -1, top);
    last = clamped(c, k->end, extent, -1, top);
    if (onnx_failed(c)) return;
    count = sum(c, difference(c, first, last), onnx_dim(c, -k->step - 1));
    if (k->step < -1) count = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, count, onnx_dim(c, -k->step));
  }
  if (onnx_failed(c)) return;
  if (dims_of(c)->node[count.id].lo < 0) count = rung_graph_dim(c->g, RUNG_DIM_MAX, count, zero);
  if (onnx_failed(c)) return;
  if (dims_of(c)->node[first.id].lo < 0) first = rung_graph_dim(c->g, RUNG_DIM_MAX, first, zero);
  *start = first;
  *length = count;
}

static bool slice_lists(onnx_call *c, rung_dim_list *start, rung_dim_list *end, rung_i64_list *axes,
                        rung_i64_list *steps) {
  *axes = *steps = (rung_i64_list){0};
  *start = *end = (rung_dim_list){0};
  if (c->version < 10) {
    rung_i64_list from, to;
    (void)onnx_int_list(c, "starts", &from);
    (void)onnx_int_list(c, "ends", &to);
    (void)onnx_int_list(c, "axes", axes);
    start->count = from.count;
    end->count = to.count;
    for (int i = 0; i < from.count; i++)
      start->dim[i] = onnx_dim(c, from.value[i] == INT64_MIN ? -INT64_MAX : from.value[i]);
    for (int i = 0; i < to.count; i++) end->dim[i] = onnx_dim(c, to.value[i] == INT64_MIN ? -INT64_MAX : to.value[i]);
    return !onnx_failed(c);
  }
  if (!onnx_has(c, 1) || !onnx_has(c, 2) || !onnx_dims_known(c, c->in[1], start) || !onnx_dims_known(c, c->in[2], end))
    return false;
  if (onnx_has(c, 3) && !onnx_constant_ints(c, 3, axes)) return false;
  if (onnx_has(c, 4) && !onnx_constant_ints(c, 4, steps)) return false;
  /* INT64_MIN, which many exporters write for "to the begin", is no dimension. */
  for (int l = 1; l <= 2; l++) {
    rung_dim_list *list = l == 1 ? start : end;
    const onnx_constant *k = onnx_constant_of(c->imp, c->scope->body, c->in[l]);
    for (int i = 0; k && i < list->count; i++)
      if (onnx_constant_integer(k, i) == INT64_MIN) list->dim[i] = onnx_dim(c, -INT64_MAX);
  }
  return !onnx_failed(c);
}

void onnx_build_slice(onnx_call *c);
void onnx_build_slice(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_dim_list start, end;
  rung_i64_list axes, steps;
  if (!slice_lists(c, &start, &end, &axes, &steps)) return;
  rung_slice_attrs attrs = {.start = {.count = x.rank}, .length = {.count = x.rank}, .step = {.count = x.rank}};
  for (int i = 0; i < x.rank; i++) {
    attrs.start.dim[i] = onnx_dim(c, 0);
    attrs.length.dim[i] = x.extent[i];
    attrs.step.value[i] = 1;
  }
  if (start.count != end.count || (axes.count && axes.count != start.count) ||
      (steps.count && steps.count != start.count) || start.count > x.rank) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "starts, ends, axes and steps have %d, %d, %d and %d numbers for %d axes",
                start.count, end.count, axes.count, steps.count, x.rank);
    return;
  }
  for (int i = 0; i < start.count && !onnx_failed(c); i++) {
    const int axis = onnx_axis(c, axes.count ? axes.value[i] : i, x.rank);
    cut k = {.start = start.dim[i], .end = end.dim[i], .step = steps.count ? steps.value[i] : 1};
    if (k.step == 0 || k.step < -INT32_MAX) {
      if (k.step == 0) onnx_refuse(c, RUNG_OUT_OF_RANGE, "a step is 0");
      k.step = -INT32_MAX;
    }
    if (k.step > INT32_MAX) k.step = INT32_MAX;
    if (!k.start.id) k.run_start = onnx_element(c, c->in[1], i);
    if (!k.end.id) k.run_end = onnx_element(c, c->in[2], i);
    if (onnx_failed(c)) return;
    cut_axis(c, &k, x.extent[axis], &attrs.start.dim[axis], &attrs.length.dim[axis]);
    attrs.step.value[axis] = k.step;
  }
  if (!onnx_failed(c)) c->out[0] = onnx_op(c, &rung_op_slice, c->in[0], &attrs);
}

/* ---- pad, tile */

static bool pad_amounts(onnx_call *c, int rank, rung_dim_list *before, rung_dim_list *after) {
  int64_t amount[2 * RUNG_MAX_RANK] = {0};
  rung_dim dim[2 * RUNG_MAX_RANK] = {{0}};
  uint32_t count = 0;
  if (c->version < 11) {
    const onnx_attr *a = onnx_attr_find(c, c->version < 2 ? "paddings" : "pads");
    if (a && a->count <= 2 * RUNG_MAX_RANK) {
      count = a->count;
      memcpy(amount, a->ints, count * sizeof *amount);
    }
    for (uint32_t i = 0; i < count; i++) dim[i] = onnx_dim(c, amount[i]);
  } else {
    const onnx_symbolic *known = onnx_symbolic_of(c->imp, c->scope->body, c->in[1], &count);
    bool all = known != NULL && count <= 2 * RUNG_MAX_RANK;
    for (uint32_t i = 0; all && i < count; i++) {
      dim[i] = known[i].dim;
      all = dim[i].id && known[i].divisor == 1;
    }
    if (!all) {
      if (onnx_constant_in(c, 1)) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "too many amounts");
      return false;
    }
  }
  rung_i64_list axes = {.count = rank};
  for (int i = 0; i < rank; i++) axes.value[i] = i;
  if (c->version >= 18 && onnx_has(c, 3) && !onnx_constant_ints(c, 3, &axes)) return false;
  if (count != 2 * (uint32_t)axes.count) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%u amounts for %d axes", count, axes.count);
    return false;
  }
  for (int i = 0; i < rank; i++) before->dim[i] = after->dim[i] = onnx_dim(c, 0);
  before->count = after->count = rank;
  for (int i = 0; i < axes.count; i++) {
    const int axis = onnx_axis(c, axes.value[i], rank);
    before->dim[axis] = dim[i];
    after->dim[axis] = dim[i + axes.count];
  }
  return !onnx_failed(c);
}

/* Amounts below 0 cut elements off. */
static rung_value crop(onnx_call *c, rung_value x, rung_dim_list *before, rung_dim_list *after) {
  for (int i = 0; i < before->count; i++) {
    int64_t a = 0, b = 0;
    const bool cut_a = is_constant(c, before->dim[i], &a) && a < 0, cut_b = is_constant(c, after->dim[i], &b) && b < 0;
    if (!cut_a && !cut_b) continue;
    const rung_dim start = onnx_dim(c, cut_a ? -a : 0);
    const rung_dim length = sum(c, onnx_extent(c, x, i), onnx_dim(c, (cut_a ? a : 0) + (cut_b ? b : 0)));
    x = rung_build_slice(c->g, x, i, start, length);
    if (cut_a) before->dim[i] = onnx_dim(c, 0);
    if (cut_b) after->dim[i] = onnx_dim(c, 0);
  }
  return x;
}

void onnx_build_pad(onnx_call *c);
void onnx_build_pad(onnx_call *c) {
  static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
  rung_pad_attrs attrs = {.mode = -1};
  for (int i = 0; i < 4; i++)
    if (onnx_text_is(c, "mode", "constant", modes[i])) attrs.mode = i;
  if (attrs.mode < 0) onnx_refuse(c, RUNG_UNSUPPORTED, "its mode is not known");
  if (onnx_failed(c) || !pad_amounts(c, onnx_rank(c, c->in[0]), &attrs.before, &attrs.after)) return;
  if (c->version < 11)
    attrs.value = onnx_float(c, "value", 0);
  else if (onnx_has(c, 2) && !onnx_constant_scalar(c, 2, &attrs.value))
    return;
  const rung_value x = crop(c, c->in[0], &attrs.before, &attrs.after);
  c->out[0] = onnx_op(c, &rung_op_pad, x, &attrs);
}

static rung_value repeat(onnx_call *c, rung_value x, int axis, rung_dim times) {
  const rung_value_type t = *onnx_type(c, x);
  rung_dim flat[3] = {rung_dims_product(dims_of(c), t.extent, 0, axis), onnx_dim(c, 1),
                      rung_dims_product(dims_of(c), t.extent, axis, t.rank)};
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < t.rank; i++) extent[i] = i == axis ? product(c, t.extent[i], times) : t.extent[i];
  x = onnx_reshape(c, x, 3, flat);
  flat[1] = times;
  return onnx_reshape(c, rung_build_expand(c->g, x, 3, flat), t.rank, extent);
}
void onnx_build_tile(onnx_call *c);
void onnx_build_tile(onnx_call *c) {
  rung_dim_list times;
  rung_value x = c->in[0];
  rung_dim bound[RUNG_MAX_RANK];
  for (int i = 0; i < RUNG_MAX_RANK; i++) bound[i] = onnx_declared(c, 0, i);
  if (!onnx_dims_in(c, 1, bound, RUNG_MAX_RANK, &times)) return;
  if (times.count != onnx_rank(c, x)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%d repeats for %d axes", times.count, onnx_rank(c, x));
    return;
  }
  for (int i = 0; i < times.count; i++)
    if (!rung_dim_is(dims_of(c), times.dim[i], 1)) x = repeat(c, x, i, times.dim[i]);
  c->out[0] = x;
}

/* ---- made of shapes */

void onnx_build_range(onnx_call *c);
void onnx_build_range(onnx_call *c) {
  rung_value v[3];
  for (int i = 0; i < 3; i++) v[i] = onnx_rank(c, c->in[i]) ? onnx_reshape(c, c->in[i], 0, NULL) : c->in[i];
  const rung_type type = onnx_type(c, v[0])->type;
  rung_value n;
  if (rung_type_is_float(type)) {
    rung_value w[3];
    for (int i = 0; i < 3; i++) w[i] = onnx_cast(c, v[i], RUNG_TYPE_F64);
    n = rung_build_ceil(c->g, rung_build_div(c->g, rung_build_sub(c->g, w[1], w[0]), w[2]));
    n = onnx_cast(c, n, RUNG_TYPE_I64);
  } else { /* ceil(a / b) is -floor(-a / b), floor(a / b) being (a - a mod b) / b */
    rung_value w[3];
    for (int i = 0; i < 3; i++) w[i] = onnx_cast(c, v[i], RUNG_TYPE_I64);
    double step = 0;
    n = rung_build_sub(c->g, w[1], w[0]);
    if (!onnx_scalar_known(c, w[2], &step) || step != 1) {
      const rung_value back = rung_build_neg(c->g, n);
      n = rung_build_sub(c->g, back, rung_build_mod(c->g, back, w[2]));
      n = rung_build_neg(c->g, rung_build_div(c->g, n, w[2]));
    }
  }
  n = rung_build_max(c->g, n, rung_build_scalar(c->g, RUNG_TYPE_I64, 0));
  rung_dim_list count;
  if (onnx_failed(c) || !onnx_dims_known(c, n, &count)) return;
  if (!count.dim[0].id) count.dim[0] = onnx_bind(c, n, onnx_declared(c, 0, 0));
  if (onnx_failed(c)) return;
  const rung_value steps = onnx_arange(c, count.dim[0], type);
  c->out[0] = rung_build_add(c->g, v[0], rung_build_mul(c->g, steps, v[2]));
}

/* Column number minus row number of the last two axes, i64[rows, columns]. */
static rung_value diagonal(onnx_call *c, rung_dim rows, rung_dim columns) {
  const rung_dim shape[2] = {rows, columns};
  rung_iota_attrs attrs = {.shape = {2, {shape[0], shape[1]}}, .axis = 1, .type = RUNG_TYPE_I64};
  const rung_value column = rung_graph_op(c->g, &rung_op_iota, NULL, 0, &attrs);
  attrs.axis = 0;
  return rung_build_sub(c->g, column, rung_graph_op(c->g, &rung_op_iota, NULL, 0, &attrs));
}

void onnx_build_trilu(onnx_call *c);
void onnx_build_trilu(onnx_call *c) {
  const rung_value x = c->in[0];
  const int rank = onnx_rank(c, x);
  if (rank < 2) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the operand has %d axes", rank);
    return;
  }
  rung_value k = rung_build_scalar(c->g, RUNG_TYPE_I64, 0);
  if (onnx_has(c, 1)) k = onnx_rank(c, c->in[1]) ? onnx_reshape(c, c->in[1], 0, NULL) : c->in[1];
  const rung_value d = diagonal(c, onnx_extent(c, x, rank - 2), onnx_extent(c, x, rank - 1));
  const rung_value keep =
      onnx_int(c, "upper", 1) ? rung_build_greater_equal(c->g, d, k) : rung_build_less_equal(c->g, d, k);
  c->out[0] = rung_build_where(c->g, keep, x, onnx_scalar(c, x, 0));
}

void onnx_build_eye_like(onnx_call *c);
void onnx_build_eye_like(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_type type = x.type;
  if (onnx_attr_find(c, "dtype") && !onnx_element_type(c, onnx_int(c, "dtype", 0), &type)) return;
  if (x.rank != 2) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the operand has %d axes", x.rank);
    return;
  }
  const rung_value k = rung_build_scalar(c->g, RUNG_TYPE_I64, (double)onnx_int(c, "k", 0));
  c->out[0] = onnx_cast(c, rung_build_equal(c->g, diagonal(c, x.extent[0], x.extent[1]), k), type);
}

void onnx_build_depth_to_space(onnx_call *c);
void onnx_build_depth_to_space(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const rung_dim b = onnx_dim(c, onnx_int(c, "blocksize", 1));
  if (x.rank != 4 || onnx_int(c, "blocksize", 0) < 1) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%d axes, block size %lld", x.rank, (long long)onnx_int(c, "blocksize", 0));
    return;
  }
  const bool crd = onnx_text_is(c, "mode", "DCR", "CRD");
  const rung_dim depth = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, x.extent[1], product(c, b, b));
  const rung_dim split[2][6] = {{x.extent[0], b, b, depth, x.extent[2], x.extent[3]},
                                {x.extent[0], depth, b, b, x.extent[2], x.extent[3]}};
  static const int64_t order[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
  const rung_dim out[4] = {x.extent[0], depth, product(c, x.extent[2], b), product(c, x.extent[3], b)};
  const rung_value y = rung_build_transpose(c->g, onnx_reshape(c, c->in[0], 6, split[crd]), order[crd]);
  c->out[0] = onnx_reshape(c, y, 4, out);
}
void onnx_build_space_to_depth(onnx_call *c);
void onnx_build_space_to_depth(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const rung_dim b = onnx_dim(c, onnx_int(c, "blocksize", 1));
  if (x.rank != 4 || onnx_int(c, "blocksize", 0) < 1) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%d axes, block size %lld", x.rank, (long long)onnx_int(c, "blocksize", 0));
    return;
  }
  const bool crd = onnx_text_is(c, "mode", "DCR", "CRD");
  const rung_dim h = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, x.extent[2], b),
                 w = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, x.extent[3], b);
  const rung_dim split[6] = {x.extent[0], x.extent[1], h, b, w, b};
  static const int64_t order[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
  const rung_dim out[4] = {x.extent[0], product(c, x.extent[1], product(c, b, b)), h, w};
  c->out[0] = onnx_reshape(c, rung_build_transpose(c->g, onnx_reshape(c, c->in[0], 6, split), order[crd]), 4, out);
}

void onnx_build_center_crop_pad(onnx_call *c);
void onnx_build_center_crop_pad(onnx_call *c) {
  rung_value x = c->in[0];
  const int rank = onnx_rank(c, x);
  rung_dim_list want;
  rung_i64_list axes;
  if (!onnx_int_list(c, "axes", &axes)) {
    axes.count = rank;
    for (int i = 0; i < rank; i++) axes.value[i] = i;
  }
  if (!onnx_dims_known(c, c->in[1], &want)) return;
  for (int i = 0; i < want.count; i++)
    if (!want.dim[i].id) {
      (void)onnx_constant_in(c, 1);
      return;
    }
  rung_pad_attrs pad = {.before = {.count = rank}, .after = {.count = rank}};
  for (int i = 0; i < rank; i++) pad.before.dim[i] = pad.after.dim[i] = onnx_dim(c, 0);
  for (int i = 0; i < axes.count && i < want.count && !onnx_failed(c); i++) {
    const int axis = onnx_axis(c, axes.value[i], rank);
    const rung_dim have = onnx_extent(c, x, axis), zero = onnx_dim(c, 0), two = onnx_dim(c, 2);
    const rung_dim less = rung_graph_dim(c->g, RUNG_DIM_MAX, difference(c, have, want.dim[i]), zero);
    const rung_dim more = rung_graph_dim(c->g, RUNG_DIM_MAX, difference(c, want.dim[i], have), zero);
    x = rung_build_slice(c->g, x, axis, rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, less, two),
                         rung_graph_dim(c->g, RUNG_DIM_MIN, have, want.dim[i]));
    pad.before.dim[axis] = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, more, two);
    pad.after.dim[axis] = difference(c, more, pad.before.dim[axis]);
  }
  c->out[0] = onnx_op(c, &rung_op_pad, x, &pad);
}
