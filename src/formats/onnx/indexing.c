/* SPDX-License-Identifier: MIT
 * ONNX operators that pick or put elements by indices. */
#include "formats/onnx/import.h"
#include "ops/control.h"

/* Indices of a type that gather and scatter do not take. */
static rung_value index_of(onnx_call *c, rung_value v) {
  const rung_type t = onnx_type(c, v)->type;
  return t == RUNG_TYPE_I32 ? v : onnx_cast(c, v, RUNG_TYPE_I64);
}

void onnx_build_gather(onnx_call *c);
void onnx_build_gather(onnx_call *c) {
  const rung_gather_attrs attrs = {onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, c->in[0]))};
  c->out[0] = onnx_op2(c, &rung_op_gather, c->in[0], index_of(c, c->in[1]), &attrs);
}
void onnx_build_gather_elements(onnx_call *c);
void onnx_build_gather_elements(onnx_call *c) {
  const rung_gather_attrs attrs = {onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, c->in[0]))};
  c->out[0] = onnx_op2(c, &rung_op_gather_elements, c->in[0], index_of(c, c->in[1]), &attrs);
}
void onnx_build_gather_nd(onnx_call *c);
void onnx_build_gather_nd(onnx_call *c) {
  const rung_gather_nd_attrs attrs = {onnx_int(c, "batch_dims", 0)};
  c->out[0] = onnx_op2(c, &rung_op_gather_nd, c->in[0], index_of(c, c->in[1]), &attrs);
}

static int32_t mode_of(onnx_call *c) {
  static const char *const modes[] = {"none", "add", "mul", "min", "max"};
  for (int32_t i = 0; i < 5; i++)
    if (onnx_text_is(c, "reduction", "none", modes[i])) return i;
  onnx_refuse(c, RUNG_UNSUPPORTED, "its reduction is not known");
  return 0;
}
void onnx_build_scatter_elements(onnx_call *c);
void onnx_build_scatter_elements(onnx_call *c) {
  const rung_scatter_attrs attrs = {onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, c->in[0])), mode_of(c)};
  c->out[0] = onnx_op3(c, &rung_op_scatter_elements, c->in[0], index_of(c, c->in[1]), c->in[2], &attrs);
}
void onnx_build_scatter_nd(onnx_call *c);
void onnx_build_scatter_nd(onnx_call *c) {
  const rung_scatter_nd_attrs attrs = {mode_of(c)};
  c->out[0] = onnx_op3(c, &rung_op_scatter_nd, c->in[0], index_of(c, c->in[1]), c->in[2], &attrs);
}

void onnx_build_non_zero(onnx_call *c);
void onnx_build_non_zero(onnx_call *c) {
  rung_value x = c->in[0];
  const rung_dim one = onnx_dim(c, 1);
  if (onnx_rank(c, x) == 0) x = onnx_reshape(c, x, 1, &one);
  c->out[0] = rung_build_nonzero(c->g, x, NULL);
}

void onnx_build_compress(onnx_call *c);
void onnx_build_compress(onnx_call *c) {
  rung_value x = c->in[0];
  const bool flat = !onnx_attr_find(c, "axis");
  const rung_dim all = rung_dims_product(c->g->dims, onnx_type(c, x)->extent, 0, onnx_rank(c, x));
  if (flat) x = onnx_reshape(c, x, 1, &all);
  const rung_gather_attrs attrs = {flat ? 0 : onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, x))};
  const rung_value at = rung_build_squeeze(c->g, rung_build_nonzero(c->g, c->in[1], NULL), 0);
  c->out[0] = onnx_op2(c, &rung_op_gather, x, at, &attrs);
}

void onnx_build_one_hot(onnx_call *c);
void onnx_build_one_hot(onnx_call *c) {
  rung_dim_list depth;
  const int rank = onnx_rank(c, c->in[0]) + 1;
  if (rank > RUNG_MAX_RANK) onnx_refuse(c, RUNG_UNSUPPORTED, "the result has %d axes", rank);
  const int axis = onnx_axis(c, onnx_int(c, "axis", -1), rank);
  const rung_value size = onnx_element(c, onnx_cast(c, c->in[1], RUNG_TYPE_I64), 0);
  if (onnx_failed(c) || !onnx_dims_known(c, size, &depth)) return;
  if (!depth.dim[0].id) depth.dim[0] = onnx_bind(c, size, onnx_declared(c, 0, axis));
  rung_value at = onnx_cast(c, c->in[0], RUNG_TYPE_I64);
  const rung_value zero = rung_build_scalar(c->g, RUNG_TYPE_I64, 0);
  at = rung_build_where(c->g, rung_build_less(c->g, at, zero), rung_build_add(c->g, at, size), at);
  at = rung_build_unsqueeze(c->g, at, axis);
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < rank - axis; i++) extent[i] = i ? onnx_dim(c, 1) : depth.dim[0];
  const rung_value place = onnx_reshape(c, onnx_arange(c, depth.dim[0], RUNG_TYPE_I64), rank - axis, extent);
  const rung_value off = onnx_reshape(c, onnx_slice(c, c->in[2], 0, 0, 1), 0, NULL),
                   on = onnx_reshape(c, onnx_slice(c, c->in[2], 0, 1, 1), 0, NULL);
  c->out[0] = rung_build_where(c->g, rung_build_equal(c->g, at, place), on, off);
}

void onnx_build_reverse_sequence(onnx_call *c);
void onnx_build_reverse_sequence(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const int time = onnx_axis(c, onnx_int(c, "time_axis", 0), x.rank),
            batch = onnx_axis(c, onnx_int(c, "batch_axis", 1), x.rank);
  if (onnx_failed(c)) return;
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < x.rank; i++) extent[i] = i == batch ? x.extent[batch] : onnx_dim(c, 1);
  const rung_value length = onnx_reshape(c, onnx_cast(c, c->in[1], RUNG_TYPE_I64), x.rank, extent);
  for (int i = 0; i < x.rank; i++) extent[i] = i == time ? x.extent[time] : onnx_dim(c, 1);
  const rung_value t = onnx_reshape(c, onnx_arange(c, x.extent[time], RUNG_TYPE_I64), x.rank, extent);
  const rung_value last = rung_build_sub(c->g, length, rung_build_scalar(c->g, RUNG_TYPE_I64, 1));
  rung_value at = rung_build_where(c->g, rung_build_less(c->g, t, length), rung_build_sub(c->g, last, t), t);
  at = rung_build_expand(c->g, at, x.rank, x.extent);
  const rung_gather_attrs attrs = {time};
  c->out[0] = onnx_op2(c, &rung_op_gather_elements, c->in[0], at, &attrs);
}
