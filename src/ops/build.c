/* SPDX-License-Identifier: MIT
 * Builders of ops that are not rows. */
#include "ops/build.h"

#include "ops/shape.h"

const rung_value_type *rung_build_type(const rung_graph *g, rung_value value) {
  static const rung_value_type nothing = {.type = RUNG_TYPE_F32};
  return value.id && value.id < g->values ? &g->value[value.id].type : &nothing;
}

rung_value rung_build_scalar(rung_graph *g, rung_type type, double value) { return rung_graph_scalar(g, type, value); }

rung_value rung_build_extent(rung_graph *g, rung_dim value, rung_type type) {
  const rung_extent_attrs attrs = {value};
  return rung_build_cast(g, rung_graph_op(g, &rung_op_extent, NULL, 0, &attrs), type);
}

rung_value rung_build_filled_like(rung_graph *g, rung_value like, double value) {
  const rung_value_type type = *rung_build_type(g, like);
  return rung_build_expand(g, rung_build_scalar(g, type.type, value), type.rank, type.extent);
}

static rung_dim_list dim_list(int rank, const rung_dim *extent) {
  rung_dim_list list = {.count = rank};
  for (int axis = 0; axis < rank; axis++) list.dim[axis] = extent[axis];
  return list;
}

rung_value rung_build_reshape(rung_graph *g, rung_value x, int rank, const rung_dim *extent) {
  const rung_reshape_attrs attrs = {dim_list(rank, extent)};
  return rung_graph_op(g, &rung_op_reshape, &x, 1, &attrs);
}

rung_value rung_build_reshape_like(rung_graph *g, rung_value x, rung_value like) {
  const rung_value_type type = *rung_build_type(g, like);
  return rung_build_reshape(g, x, type.rank, type.extent);
}

rung_value rung_build_expand(rung_graph *g, rung_value x, int rank, const rung_dim *extent) {
  const rung_expand_attrs attrs = {dim_list(rank, extent)};
  return rung_graph_op(g, &rung_op_expand, &x, 1, &attrs);
}

rung_value rung_build_expand_like(rung_graph *g, rung_value x, rung_value like) {
  const rung_value_type type = *rung_build_type(g, like);
  return rung_build_expand(g, x, type.rank, type.extent);
}

rung_value rung_build_transpose(rung_graph *g, rung_value x, const int64_t *permutation) {
  rung_transpose_attrs attrs = {{.count = rung_build_type(g, x)->rank}};
  for (int axis = 0; axis < attrs.permutation.count; axis++) attrs.permutation.value[axis] = permutation[axis];
  return rung_graph_op(g, &rung_op_transpose, &x, 1, &attrs);
}

rung_value rung_build_swap_last(rung_graph *g, rung_value x) {
  const int rank = rung_build_type(g, x)->rank;
  int64_t permutation[RUNG_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) permutation[axis] = axis;
  if (rank >= 2) {
    permutation[rank - 1] = rank - 2;
    permutation[rank - 2] = rank - 1;
  }
  return rung_build_transpose(g, x, permutation);
}

rung_value rung_build_slice(rung_graph *g, rung_value x, int axis, rung_dim start, rung_dim length) {
  const rung_value_type type = *rung_build_type(g, x);
  rung_slice_attrs attrs = {
      .start = {.count = type.rank}, .length = dim_list(type.rank, type.extent), .step = {.count = type.rank}};
  for (int i = 0; i < type.rank; i++) {
    attrs.start.dim[i] = rung_dims_constant(g->dims, 0);
    attrs.step.value[i] = 1;
  }
  if (axis < type.rank) {
    attrs.start.dim[axis] = start;
    attrs.length.dim[axis] = length;
  }
  return rung_graph_op(g, &rung_op_slice, &x, 1, &attrs);
}

rung_value rung_build_concat(rung_graph *g, const rung_value *x, uint32_t n, int axis) {
  const rung_concat_attrs attrs = {axis};
  return rung_graph_op(g, &rung_op_concat, x, n, &attrs);
}

rung_value rung_build_cast(rung_graph *g, rung_value x, rung_type type) {
  if (rung_build_type(g, x)->type == type) return x;
  const rung_cast_attrs attrs = {type};
  return rung_graph_op(g, &rung_op_cast, &x, 1, &attrs);
}

rung_value rung_build_unsqueeze(rung_graph *g, rung_value x, int axis) {
  const rung_value_type type = *rung_build_type(g, x);
  rung_dim extent[RUNG_MAX_RANK + 1];
  for (int i = 0; i <= type.rank; i++)
    extent[i] = i < axis ? type.extent[i] : i == axis ? rung_one(g->dims) : type.extent[i - 1];
  if (type.rank == RUNG_MAX_RANK) {
    rung_graph_fail(g, RUNG_SHAPE_MISMATCH, "unsqueeze: rank %d is the most there is", RUNG_MAX_RANK);
    return rung_build_null();
  }
  return rung_build_reshape(g, x, type.rank + 1, extent);
}

rung_value rung_build_squeeze(rung_graph *g, rung_value x, int axis) {
  const rung_value_type type = *rung_build_type(g, x);
  rung_dim extent[RUNG_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < type.rank; i++)
    if (i != axis) extent[rank++] = type.extent[i];
  return rung_build_reshape(g, x, rank, extent);
}

rung_value rung_build_reduce(rung_graph *g, const rung_op *op, rung_value x, const int64_t *axis, int n, bool keep) {
  rung_reduce_attrs attrs = {.axes = {.count = n}, .keep = keep};
  for (int i = 0; i < n; i++) attrs.axes.value[i] = axis[i];
  return rung_graph_op(g, op, &x, 1, &attrs);
}

rung_value rung_build_sum(rung_graph *g, rung_value x, int axis, bool keep) {
  const int64_t axes[1] = {axis};
  return rung_build_reduce(g, &rung_op_reduce_sum, x, axes, 1, keep);
}

rung_value rung_build_unbroadcast(rung_graph *g, rung_value gradient, rung_value operand) {
  if (rung_value_is_null(gradient)) return gradient;
  const rung_value_type from = *rung_build_type(g, gradient), to = *rung_build_type(g, operand);
  const int lead = from.rank - to.rank;
  int64_t axis[RUNG_MAX_RANK];
  int n = 0;
  for (int i = 0; i < from.rank; i++) {
    const bool summed = i < lead || (rung_dim_is(g->dims, to.extent[i - lead], 1) &&
                                     !rung_dim_same(from.extent[i], to.extent[i - lead]));
    if (summed) axis[n++] = i;
  }
  if (n) gradient = rung_build_reduce(g, &rung_op_reduce_sum, gradient, axis, n, true);
  return lead > 0 ? rung_build_reshape(g, gradient, to.rank, to.extent) : gradient;
}
