/* SPDX-License-Identifier: MIT
 * ONNX operators along axes: reductions, softmax, cumulative sums, the largest. */
#include "formats/onnx/import.h"

/* variant: the first version whose axes are an input. */
void onnx_build_reduce(onnx_call *c);
void onnx_build_reduce(onnx_call *c) {
  const int rank = onnx_rank(c, c->in[0]);
  rung_reduce_attrs attrs = {.keep = onnx_int(c, "keepdims", 1) != 0};
  bool given;
  if (c->version < c->row->variant)
    given = onnx_int_list(c, "axes", &attrs.axes);
  else
    given = onnx_has(c, 1) && onnx_constant_ints(c, 1, &attrs.axes);
  if (onnx_failed(c)) return;
  if ((!given || attrs.axes.count == 0) && onnx_int(c, "noop_with_empty_axes", 0)) {
    /* Nothing is reduced, but what happens to each element still does. */
    rung_value x = c->in[0];
    if (c->row->op == &rung_op_reduce_sum_square) x = rung_build_mul(c->g, x, x);
    if (c->row->op == &rung_op_reduce_l1 || c->row->op == &rung_op_reduce_l2) x = rung_build_abs(c->g, x);
    if (c->row->op == &rung_op_reduce_log_sum) x = rung_build_log(c->g, x);
    c->out[0] = x;
    return;
  }
  for (int i = 0; i < attrs.axes.count; i++) attrs.axes.value[i] = onnx_axis(c, attrs.axes.value[i], rank);
  if (rank == 0) {
    const rung_dim one = onnx_dim(c, 1);
    attrs.keep = false;
    attrs.axes.count = 0;
    c->out[0] = onnx_op(c, c->row->op, onnx_reshape(c, c->in[0], 1, &one), &attrs);
    return;
  }
  c->out[0] = onnx_op(c, c->row->op, c->in[0], &attrs);
}

void onnx_build_arg_reduce(onnx_call *c);
void onnx_build_arg_reduce(onnx_call *c) {
  const rung_arg_attrs attrs = {.axis = onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, c->in[0])),
                                .keep = onnx_int(c, "keepdims", 1) != 0,
                                .last = onnx_int(c, "select_last_index", 0) != 0};
  c->out[0] = onnx_op(c, c->row->op, c->in[0], &attrs);
}

/* Before version 13 all axes from `axis` on were one. */
static rung_value coerced(onnx_call *c, int *out_axis) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const bool old = c->version < 13;
  const int axis = onnx_axis(c, onnx_int(c, "axis", old ? 1 : -1), x.rank);
  *out_axis = axis;
  if (!old || onnx_failed(c)) return c->in[0];
  const rung_dim extent[2] = {rung_dims_product(c->g->dims, x.extent, 0, axis),
                              rung_dims_product(c->g->dims, x.extent, axis, x.rank)};
  *out_axis = 1;
  return onnx_reshape(c, c->in[0], 2, extent);
}
static void uncoerced(onnx_call *c, rung_value y) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  c->out[0] = c->version < 13 ? onnx_reshape(c, y, x.rank, x.extent) : y;
}
void onnx_build_softmax(onnx_call *c);
void onnx_build_softmax(onnx_call *c) {
  int axis;
  const rung_value x = coerced(c, &axis);
  const rung_axis_attrs attrs = {axis == onnx_rank(c, x) - 1 ? -1 : axis}; /* as patterns write it */
  uncoerced(c, onnx_op(c, c->row->op, x, &attrs));
}
void onnx_build_hardmax(onnx_call *c);
void onnx_build_hardmax(onnx_call *c) {
  int axis;
  const rung_value x = coerced(c, &axis);
  if (onnx_failed(c)) return;
  const rung_value_type t = *onnx_type(c, x);
  const rung_arg_attrs first = {.axis = axis, .keep = true};
  const rung_iota_attrs count = {.shape = {t.rank, {{0}}}, .axis = axis, .type = RUNG_TYPE_I64};
  rung_iota_attrs places = count;
  for (int i = 0; i < t.rank; i++) places.shape.dim[i] = t.extent[i];
  const rung_value at = onnx_op(c, &rung_op_argmax, x, &first);
  const rung_value place = rung_graph_op(c->g, &rung_op_iota, NULL, 0, &places);
  uncoerced(c, onnx_cast(c, rung_build_equal(c->g, place, at), t.type));
}

void onnx_build_cumsum(onnx_call *c);
void onnx_build_cumsum(onnx_call *c) {
  int64_t axis;
  if (!onnx_constant_integer_scalar(c, 1, &axis)) return;
  const rung_cumsum_attrs attrs = {.axis = onnx_axis(c, axis, onnx_rank(c, c->in[0])),
                                   .exclusive = onnx_int(c, "exclusive", 0) != 0,
                                   .reverse = onnx_int(c, "reverse", 0) != 0};
  c->out[0] = onnx_op(c, c->row->op, c->in[0], &attrs);
}

void onnx_build_top_k(onnx_call *c);
void onnx_build_top_k(onnx_call *c) {
  const rung_value x = c->in[0];
  const int axis = onnx_axis(c, onnx_int(c, "axis", -1), onnx_rank(c, x));
  rung_dim_list k = {1, {onnx_dim(c, onnx_int(c, "k", 0))}};
  if (onnx_failed(c)) return;
  const rung_dim most = onnx_extent(c, x, axis);
  if (c->version >= 10 && !onnx_dims_in(c, 1, &most, &k)) return;
  const rung_top_k_attrs attrs = {
      .k = k.dim[0], .axis = axis, .largest = onnx_int(c, "largest", 1) != 0, .sorted = onnx_int(c, "sorted", 1) != 0};
  const rung_node *node = rung_graph_append(c->g, &rung_op_top_k, &x, 1, &attrs, NULL, 0);
  if (!node) return;
  c->out[0] = rung_node_result(c->g, node, 0);
  c->out[1] = rung_node_result(c->g, node, 1);
}
