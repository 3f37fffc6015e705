/* SPDX-License-Identifier: MIT
 * ONNX normalisations. */
#include <math.h>

#include "formats/onnx/import.h"

static rung_value reduced(onnx_call *c, const rung_op *op, rung_value x, int first, int count, bool keep) {
  rung_reduce_attrs attrs = {.keep = keep, .axes = {.count = count}};
  for (int i = 0; i < count; i++) attrs.axes.value[i] = first + i;
  return onnx_op(c, op, x, &attrs);
}

/* One number a channel, shaped to meet axis 1 of x. */
static rung_value channelwise(onnx_call *c, rung_value v, int rank) {
  rung_dim extent[RUNG_MAX_RANK];
  const int n = rank > 1 ? rank - 1 : 1;
  for (int i = 0; i < n; i++) extent[i] = i ? onnx_dim(c, 1) : onnx_extent(c, v, 0);
  return onnx_reshape(c, v, n, extent);
}

static rung_value moving(onnx_call *c, rung_value old, rung_value now, double momentum) {
  now = onnx_cast(c, now, onnx_type(c, old)->type);
  return rung_build_add(c->g, rung_build_mul(c->g, old, onnx_scalar(c, old, momentum)),
                        rung_build_mul(c->g, now, onnx_scalar(c, now, 1 - momentum)));
}

void onnx_build_batch_norm(onnx_call *c);
void onnx_build_batch_norm(onnx_call *c) {
  rung_value x = c->in[0], mean = c->in[3], variance = c->in[4], scale = c->in[1], bias = c->in[2];
  const int rank = onnx_rank(c, x);
  if (rank < 2) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes", rank);
  if (onnx_failed(c)) return;
  const rung_type type = onnx_type(c, x)->type;
  if (c->version >= 14 && onnx_int(c, "training_mode", 0)) {
    const double momentum = onnx_float(c, "momentum", 0.9F);
    rung_reduce_attrs attrs = {.axes = {.count = rank - 1, .value = {0}}};
    for (int i = 1; i < rank - 1; i++) attrs.axes.value[i] = i + 1;
    const rung_value now = onnx_op(c, &rung_op_reduce_mean, x, &attrs);
    const rung_value centred = rung_build_sub(c->g, x, channelwise(c, now, rank));
    const rung_value spread = onnx_op(c, &rung_op_reduce_mean, rung_build_mul(c->g, centred, centred), &attrs);
    c->out[1] = moving(c, mean, now, momentum);
    c->out[2] = moving(c, variance, spread, momentum);
    mean = now;
    variance = spread;
  }
  mean = onnx_cast(c, mean, type);
  variance = onnx_cast(c, variance, type);
  scale = onnx_cast(c, scale, type);
  bias = onnx_cast(c, bias, type);
  const rung_value epsilon = onnx_scalar(c, variance, onnx_float(c, "epsilon", 1e-5F));
  const rung_value factor = rung_build_div(c->g, scale, rung_build_sqrt(c->g, rung_build_add(c->g, variance, epsilon)));
  const rung_value shift = rung_build_sub(c->g, bias, rung_build_mul(c->g, mean, factor));
  c->out[0] = rung_build_add(c->g, rung_build_mul(c->g, x, channelwise(c, factor, rank)), channelwise(c, shift, rank));
}

/* (x - mean) / sqrt(variance + epsilon) over the last axis, in f32 at least. */
static rung_value standard(onnx_call *c, rung_value x, double epsilon) {
  const rung_norm_attrs attrs = {epsilon};
  return onnx_op(c, &rung_op_layer_norm, x, &attrs);
}

void onnx_build_instance_norm(onnx_call *c);
void onnx_build_instance_norm(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  if (x.rank < 3) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes", x.rank);
  if (onnx_failed(c)) return;
  const rung_dim flat[3] = {x.extent[0], x.extent[1], rung_dims_product(c->g->dims, x.extent, 2, x.rank)};
  rung_value y = standard(c, onnx_reshape(c, c->in[0], 3, flat), onnx_float(c, "epsilon", 1e-5F));
  y = onnx_reshape(c, y, x.rank, x.extent);
  y = rung_build_mul(c->g, y, channelwise(c, c->in[1], x.rank));
  c->out[0] = rung_build_add(c->g, y, channelwise(c, c->in[2], x.rank));
}

void onnx_build_group_norm(onnx_call *c);
void onnx_build_group_norm(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const int64_t groups = onnx_int(c, "num_groups", 1);
  int64_t channels;
  if (x.rank < 2 || groups < 1 || !rung_dims_is_constant(c->g->dims, x.extent[1], &channels) || channels % groups) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the channels do not split into %lld groups", (long long)groups);
    return;
  }
  rung_dim flat[3] = {x.extent[0], onnx_dim(c, groups), {0}};
  flat[2] = rung_graph_dim(c->g, RUNG_DIM_MUL, onnx_dim(c, channels / groups),
                           rung_dims_product(c->g->dims, x.extent, 2, x.rank));
  rung_value y = standard(c, onnx_reshape(c, c->in[0], 3, flat), onnx_float(c, "epsilon", 1e-5F));
  if (c->version < 21) { /* a number a group */
    const rung_dim one[3] = {onnx_dim(c, 1), onnx_dim(c, groups), onnx_dim(c, 1)};
    y = rung_build_mul(c->g, y, onnx_reshape(c, c->in[1], 3, one));
    y = rung_build_add(c->g, y, onnx_reshape(c, c->in[2], 3, one));
    c->out[0] = onnx_reshape(c, y, x.rank, x.extent);
    return;
  }
  y = onnx_reshape(c, y, x.rank, x.extent);
  y = rung_build_mul(c->g, y, channelwise(c, c->in[1], x.rank));
  c->out[0] = rung_build_add(c->g, y, channelwise(c, c->in[2], x.rank));
}

/* Normalises over all axes from `axis` on, with weights of these axes (or that broadcast to them). */
typedef struct rows {
  rung_value_type x;
  int axis;
  rung_dim flat[2];
} rows;
static bool rows_of(onnx_call *c, rows *r) {
  r->x = *onnx_type(c, c->in[0]);
  r->axis = onnx_axis(c, onnx_int(c, "axis", -1), r->x.rank);
  if (onnx_failed(c)) return false;
  r->flat[0] = rung_dims_product(c->g->dims, r->x.extent, 0, r->axis);
  r->flat[1] = rung_dims_product(c->g->dims, r->x.extent, r->axis, r->x.rank);
  return true;
}
/* The weight as a row, where it has exactly the axes of a row; null otherwise. */
static rung_value row_weight(onnx_call *c, const rows *r, uint32_t i) {
  if (!onnx_has(c, i)) return rung_build_null();
  const rung_value_type *w = onnx_type(c, c->in[i]);
  if (w->rank != r->x.rank - r->axis || w->type != r->x.type) return rung_build_null();
  for (int k = 0; k < w->rank; k++)
    if (!rung_dim_same(w->extent[k], r->x.extent[r->axis + k])) return rung_build_null();
  return onnx_reshape(c, c->in[i], 1, &r->flat[1]);
}

static rung_value statistics(onnx_call *c, const rows *r, rung_value v) {
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < r->x.rank; i++) extent[i] = i < r->axis ? r->x.extent[i] : onnx_dim(c, 1);
  return onnx_reshape(c, v, r->x.rank, extent);
}

void onnx_build_layer_norm(onnx_call *c);
void onnx_build_layer_norm(onnx_call *c) {
  rows r;
  if (!rows_of(c, &r)) return;
  const rung_norm_attrs attrs = {onnx_float(c, "epsilon", 1e-5F)};
  const bool last = r.axis == r.x.rank - 1;
  const rung_value x = last ? c->in[0] : onnx_reshape(c, c->in[0], 2, r.flat);
  const rung_value weight = row_weight(c, &r, 1), bias = row_weight(c, &r, 2);
  const bool plain = weight.id && (bias.id || !onnx_has(c, 2));
  rung_value y =
      onnx_op3(c, &rung_op_layer_norm, x, plain ? weight : rung_build_null(), plain ? bias : rung_build_null(), &attrs);
  if (!last) y = onnx_reshape(c, y, r.x.rank, r.x.extent);
  if (!plain) {
    y = rung_build_mul(c->g, y, onnx_cast(c, c->in[1], r.x.type));
    if (onnx_has(c, 2)) y = rung_build_add(c->g, y, onnx_cast(c, c->in[2], r.x.type));
  }
  c->out[0] = y;
  if (!onnx_wants(c, 1) && !onnx_wants(c, 2)) return;
  const rung_value wide = onnx_cast(c, onnx_reshape(c, c->in[0], 2, r.flat), RUNG_TYPE_F32);
  const rung_value mean = reduced(c, &rung_op_reduce_mean, wide, 1, 1, true);
  const rung_value centred = rung_build_sub(c->g, wide, mean);
  const rung_value variance = reduced(c, &rung_op_reduce_mean, rung_build_mul(c->g, centred, centred), 1, 1, true);
  c->out[1] = statistics(c, &r, mean);
  c->out[2] = statistics(
      c, &r,
      rung_build_reciprocal(
          c->g, rung_build_sqrt(c->g, rung_build_add(c->g, variance, onnx_scalar(c, variance, attrs.epsilon)))));
}

void onnx_build_rms_norm(onnx_call *c);
void onnx_build_rms_norm(onnx_call *c) {
  rows r;
  if (!rows_of(c, &r)) return;
  const rung_norm_attrs attrs = {onnx_float(c, "epsilon", 1e-5F)};
  const bool last = r.axis == r.x.rank - 1;
  const rung_value x = last ? c->in[0] : onnx_reshape(c, c->in[0], 2, r.flat);
  const rung_value weight = row_weight(c, &r, 1);
  rung_value y = onnx_op2(c, &rung_op_rms_norm, x, weight, &attrs);
  if (!last) y = onnx_reshape(c, y, r.x.rank, r.x.extent);
  if (!weight.id) y = rung_build_mul(c->g, y, onnx_cast(c, c->in[1], r.x.type));
  c->out[0] = y;
}

void onnx_build_lp_norm(onnx_call *c);
void onnx_build_lp_norm(onnx_call *c) {
  const rung_value x = c->in[0];
  const int axis = onnx_axis(c, onnx_int(c, "axis", -1), onnx_rank(c, x));
  const int64_t p = onnx_int(c, "p", 2);
  if (p != 1 && p != 2) onnx_refuse(c, RUNG_UNSUPPORTED, "p is %lld", (long long)p);
  if (onnx_failed(c)) return;
  const rung_value size = reduced(c, p == 1 ? &rung_op_reduce_l1 : &rung_op_reduce_l2, x, axis, 1, true);
  const rung_value zero = onnx_scalar(c, size, 0);
  /* A row of zeros stays one. */
  c->out[0] = rung_build_where(c->g, rung_build_equal(c->g, size, zero), zero, rung_build_div(c->g, x, size));
}

void onnx_build_mvn(onnx_call *c);
void onnx_build_mvn(onnx_call *c) {
  const rung_value x = c->in[0];
  rung_reduce_attrs attrs = {.keep = true};
  if (!onnx_int_list(c, "axes", &attrs.axes)) attrs.axes = (rung_i64_list){3, {0, 2, 3}};
  const rung_value mean = onnx_op(c, &rung_op_reduce_mean, x, &attrs);
  const rung_value squares = onnx_op(c, &rung_op_reduce_mean, rung_build_mul(c->g, x, x), &attrs);
  const rung_value variance = rung_build_sub(c->g, squares, rung_build_mul(c->g, mean, mean));
  const rung_value spread = rung_build_add(c->g, rung_build_sqrt(c->g, variance), onnx_scalar(c, x, 1e-9));
  c->out[0] = rung_build_div(c->g, rung_build_sub(c->g, x, mean), spread);
}

/* x / (bias + alpha / size * sum of squares of neighbouring channels) ^ beta */
void onnx_build_lrn(onnx_call *c);
void onnx_build_lrn(onnx_call *c) {
  const rung_value x = c->in[0];
  const int rank = onnx_rank(c, x);
  const int64_t size = onnx_int(c, "size", 1);
  if (rank < 2 || size < 1 || size > 4096) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "size %lld", (long long)size);
  if (onnx_failed(c)) return;
  rung_pad_attrs pad = {.before = {.count = rank}, .after = {.count = rank}};
  for (int i = 0; i < rank; i++) pad.before.dim[i] = pad.after.dim[i] = onnx_dim(c, 0);
  pad.before.dim[1] = onnx_dim(c, (size - 1) / 2);
  pad.after.dim[1] = onnx_dim(c, size - 1 - (size - 1) / 2);
  const rung_value squares = onnx_op(c, &rung_op_pad, rung_build_mul(c->g, x, x), &pad);
  rung_value sum = rung_build_null();
  for (int64_t i = 0; i < size; i++) {
    const rung_value part = rung_build_slice(c->g, squares, 1, onnx_dim(c, i), onnx_extent(c, x, 1));
    sum = i ? rung_build_add(c->g, sum, part) : part;
  }
  sum = rung_build_mul(c->g, sum, onnx_scalar(c, x, onnx_float(c, "alpha", 1e-4F) / (double)size));
  sum = rung_build_add(c->g, sum, onnx_scalar(c, x, onnx_float(c, "bias", 1)));
  c->out[0] = rung_build_div(c->g, x, rung_build_pow(c->g, sum, onnx_scalar(c, x, onnx_float(c, "beta", 0.75))));
}
