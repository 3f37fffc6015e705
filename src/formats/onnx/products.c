/* SPDX-License-Identifier: MIT
 * ONNX matrix products, convolutions and pooling. */
#include <math.h>

#include "formats/onnx/import.h"
#include "formats/onnx/windows.h"

/* a times b; products of narrow integers are 32 bits wide where the caller says so. */
static rung_value product(onnx_call *c, rung_value a, rung_value b, bool transpose_b, rung_type type) {
  const rung_matmul_attrs attrs = {.transpose_b = transpose_b, .type = type};
  return onnx_op2(c, &rung_op_matmul, a, b, &attrs);
}

rung_value onnx_matmul(onnx_call *c, rung_value a, rung_value b, rung_type type) {
  const int rank_a = onnx_rank(c, a), rank_b = onnx_rank(c, b);
  if (rank_a == 0 || rank_b == 0) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand has no axes");
  if (onnx_failed(c)) return a;
  if (rank_a == 1) a = rung_build_unsqueeze(c->g, a, 0);
  if (rank_b == 1) b = rung_build_unsqueeze(c->g, b, 1);
  rung_value y = product(c, a, b, false, type);
  if (rank_b == 1) y = rung_build_squeeze(c->g, y, onnx_rank(c, y) - 1);
  if (rank_a == 1) y = rung_build_squeeze(c->g, y, onnx_rank(c, y) - (rank_b == 1 ? 1 : 2));
  return y;
}
void onnx_build_matmul(onnx_call *c);
void onnx_build_matmul(onnx_call *c) { c->out[0] = onnx_matmul(c, c->in[0], c->in[1], onnx_type(c, c->in[0])->type); }

void onnx_build_gemm(onnx_call *c);
void onnx_build_gemm(onnx_call *c) {
  const double alpha = onnx_float(c, "alpha", 1), beta = onnx_float(c, "beta", 1);
  rung_value a = c->in[0];
  if (onnx_int(c, "transA", 0)) a = rung_build_swap_last(c->g, a);
  rung_value y = product(c, a, c->in[1], onnx_int(c, "transB", 0) != 0, onnx_type(c, a)->type);
  if (alpha != 1) y = rung_build_mul(c->g, y, onnx_scalar(c, y, alpha));
  if (onnx_has(c, 2) && beta != 0) {
    rung_value d = c->in[2];
    if (beta != 1) d = rung_build_mul(c->g, d, onnx_scalar(c, d, beta));
    y = rung_build_add(c->g, y, d);
  }
  c->out[0] = y;
}

/* ---- windows */

bool onnx_window_read(onnx_call *c, onnx_window *w, int axes, const rung_i64_list *kernel) {
  rung_i64_list list;
  *w = (onnx_window){.axes = axes};
  if (axes < 1 || axes > 3) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "an operand of %d axes", axes + 2);
    return false;
  }
  for (int i = 0; i < axes; i++) w->stride[i] = w->dilation[i] = w->kernel[i] = 1;
  if (onnx_int_list(c, "strides", &list) && list.count == axes)
    for (int i = 0; i < axes; i++) w->stride[i] = list.value[i];
  if (onnx_int_list(c, "dilations", &list) && list.count == axes)
    for (int i = 0; i < axes; i++) w->dilation[i] = list.value[i];
  if (onnx_int_list(c, "kernel_shape", &list)) kernel = &list;
  if (!kernel || kernel->count != axes) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the kernel's shape does not fit %d axes", axes);
    return false;
  }
  for (int i = 0; i < axes; i++) w->kernel[i] = kernel->value[i];
  const onnx_attr *pads = onnx_attr_find(c, "pads");
  if (pads && pads->type == ONNX_ATTR_INTS) {
    if (pads->count != 2 * (uint32_t)axes) {
      onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%u pads for %d axes", pads->count, axes);
      return false;
    }
    for (int i = 0; i < axes; i++) {
      w->before[i] = pads->ints[i];
      w->after[i] = pads->ints[axes + i];
    }
  }
  w->same_upper = onnx_text_is(c, "auto_pad", "NOTSET", "SAME_UPPER");
  w->same_lower = onnx_text_is(c, "auto_pad", "NOTSET", "SAME_LOWER");
  for (int i = 0; i < axes; i++) {
    if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 0) {
      onnx_refuse(c, RUNG_OUT_OF_RANGE, "a stride, dilation or kernel is below 1");
      return false;
    }
    if (w->same_upper || w->same_lower || onnx_text_is(c, "auto_pad", "NOTSET", "VALID"))
      w->before[i] = w->after[i] = 0;
  }
  return !onnx_failed(c);
}

/* SAME: as many windows as extent / stride, rounded up. What does not depend on an open extent goes into the window's
 * own pads, else x is padded, with `value`. */
rung_value onnx_window_same(onnx_call *c, rung_value x, onnx_window *w, double value) {
  if (!w->same_upper && !w->same_lower) return x;
  const int rank = onnx_rank(c, x);
  rung_pad_attrs pad = {.before = {.count = rank}, .after = {.count = rank}, .value = value};
  bool open = false;
  for (int i = 0; i < rank; i++) pad.before.dim[i] = pad.after.dim[i] = onnx_dim(c, 0);
  for (int i = 0; i < w->axes; i++) {
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    const rung_dim extent = onnx_extent(c, x, 2 + i), stride = onnx_dim(c, w->stride[i]);
    /* (ceil(extent / stride) - 1) * stride + reach - extent, at least 0 */
    rung_dim steps = rung_graph_dim(c->g, RUNG_DIM_ADD, extent, onnx_dim(c, w->stride[i] - 1));
    steps = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, steps, stride);
    rung_dim total = rung_graph_dim(c->g, RUNG_DIM_MUL, steps, stride);
    total = rung_graph_dim(c->g, RUNG_DIM_ADD, total, onnx_dim(c, reach - w->stride[i]));
    total = rung_graph_dim(c->g, RUNG_DIM_SUB, total, extent);
    total = rung_graph_dim(c->g, RUNG_DIM_MAX, total, onnx_dim(c, 0));
    if (onnx_failed(c)) return x;
    int64_t all;
    if (rung_dims_is_constant(c->g->dims, total, &all)) {
      const int64_t small = all / 2;
      w->before[i] = w->same_upper ? small : all - small;
      w->after[i] = all - w->before[i];
      continue;
    }
    open = true;
    const rung_dim small = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, total, onnx_dim(c, 2));
    const rung_dim large = rung_graph_dim(c->g, RUNG_DIM_SUB, total, small);
    pad.before.dim[2 + i] = w->same_upper ? small : large;
    pad.after.dim[2 + i] = w->same_upper ? large : small;
  }
  return open && !onnx_failed(c) ? onnx_op(c, &rung_op_pad, x, &pad) : x;
}

void onnx_window_list(rung_i64_list *list, int axes, const int64_t *value) {
  list->count = axes;
  for (int i = 0; i < axes; i++) list->value[i] = value[i];
}

/* ---- convolutions */

static bool kernel_of(onnx_call *c, rung_value w, rung_i64_list *out) {
  const rung_value_type *type = onnx_type(c, w);
  *out = (rung_i64_list){.count = type->rank - 2};
  for (int i = 0; i < out->count; i++)
    if (!rung_dims_is_constant(c->g->dims, type->extent[2 + i], &out->value[i])) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "a kernel of an open extent");
      return false;
    }
  return true;
}

void onnx_build_conv(onnx_call *c);
void onnx_build_conv(onnx_call *c) {
  onnx_window w;
  rung_i64_list kernel;
  if (onnx_rank(c, c->in[0]) < 3 || onnx_rank(c, c->in[1]) != onnx_rank(c, c->in[0])) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands of %d and %d axes", onnx_rank(c, c->in[0]), onnx_rank(c, c->in[1]));
    return;
  }
  if (!kernel_of(c, c->in[1], &kernel) || !onnx_window_read(c, &w, kernel.count, &kernel)) return;
  const rung_value x = onnx_window_same(c, c->in[0], &w, 0);
  rung_conv_attrs attrs = {.groups = onnx_int(c, "group", 1)};
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  c->out[0] = onnx_op3(c, &rung_op_conv, x, c->in[1], onnx_has(c, 2) ? c->in[2] : rung_build_null(), &attrs);
}

/* The result's extents: given, or with zeros behind them (output_padding), or what the pads leave. */
static void transposed_extents(onnx_call *c, onnx_window *w, rung_conv_transpose_attrs *attrs) {
  rung_i64_list extra = {0}, shape = {0};
  const bool given = onnx_int_list(c, "output_shape", &shape) && shape.count;
  (void)onnx_int_list(c, "output_padding", &extra);
  if ((extra.count && extra.count != w->axes) || (given && shape.count != w->axes && shape.count != w->axes + 2)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "output_padding or output_shape does not fit %d axes", w->axes);
    return;
  }
  const bool same = w->same_upper || w->same_lower;
  attrs->output.count = given || same || extra.count ? w->axes : 0;
  for (int i = 0; i < w->axes; i++) {
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, more = extra.count ? extra.value[i] : 0;
    const rung_dim extent = onnx_extent(c, c->in[0], 2 + i), stride = onnx_dim(c, w->stride[i]);
    /* stride * (extent - 1) + output_padding + reach - pads */
    rung_dim whole = rung_graph_dim(c->g, RUNG_DIM_MUL, extent, stride);
    whole = rung_graph_dim(c->g, RUNG_DIM_ADD, whole, onnx_dim(c, more + reach - w->stride[i]));
    rung_dim result = {0};
    if (given)
      result = onnx_dim(c, shape.value[shape.count - w->axes + i]);
    else if (same)
      result = rung_graph_dim(c->g, RUNG_DIM_MUL, extent, stride);
    if (result.id && !onnx_failed(c)) {
      int64_t total;
      if (!rung_dims_is_constant(c->g->dims, rung_graph_dim(c->g, RUNG_DIM_SUB, whole, result), &total)) {
        onnx_refuse(c, RUNG_UNSUPPORTED, "output_shape with an open extent");
        return;
      }
      if (total < 0) total = 0;
      w->before[i] = w->same_upper ? total / 2 : total - total / 2;
      if (given && !same) w->before[i] = total / 2;
      w->after[i] = total - w->before[i];
      attrs->output.dim[i] = result;
    } else if (attrs->output.count && !onnx_failed(c)) {
      attrs->output.dim[i] = rung_graph_dim(c->g, RUNG_DIM_SUB, whole, onnx_dim(c, w->before[i] + w->after[i]));
    }
  }
}

void onnx_build_conv_transpose(onnx_call *c);
void onnx_build_conv_transpose(onnx_call *c) {
  onnx_window w;
  rung_i64_list kernel;
  if (onnx_rank(c, c->in[0]) < 3 || !kernel_of(c, c->in[1], &kernel) || !onnx_window_read(c, &w, kernel.count, &kernel))
    return;
  rung_conv_transpose_attrs attrs = {.groups = onnx_int(c, "group", 1)};
  transposed_extents(c, &w, &attrs);
  if (onnx_failed(c)) return;
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  c->out[0] =
      onnx_op3(c, &rung_op_conv_transpose, c->in[0], c->in[1], onnx_has(c, 2) ? c->in[2] : rung_build_null(), &attrs);
}

/* ---- pooling */

/* Row-major places of pictures [.., h, w] as column-major ones. */
static rung_value column_major(onnx_call *c, rung_value x, rung_value at) {
  const rung_value h = rung_build_extent(c->g, onnx_extent(c, x, 2), RUNG_TYPE_I64),
                   w = rung_build_extent(c->g, onnx_extent(c, x, 3), RUNG_TYPE_I64);
  const rung_value size = rung_build_mul(c->g, h, w), inside = rung_build_mod(c->g, at, size);
  const rung_value column = rung_build_mul(c->g, rung_build_mod(c->g, inside, w), h);
  return rung_build_add(c->g, rung_build_sub(c->g, at, inside),
                        rung_build_add(c->g, column, rung_build_div(c->g, inside, w)));
}

void onnx_build_pool(onnx_call *c);
void onnx_build_pool(onnx_call *c) {
  onnx_window w;
  if (!onnx_window_read(c, &w, onnx_rank(c, c->in[0]) - 2, NULL)) return;
  const bool max = c->row->op == &rung_op_max_pool;
  /* Padding made apart would count as elements of the mean. */
  const rung_value x = onnx_window_same(c, c->in[0], &w, max ? -(double)INFINITY : 0);
  if (!max && x.id != c->in[0].id) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "automatic padding of an open extent");
    return;
  }
  rung_pool_attrs attrs = {.ceil = onnx_int(c, "ceil_mode", 0) != 0,
                           .count_pad = onnx_int(c, "count_include_pad", 0) != 0};
  onnx_window_list(&attrs.kernel, w.axes, w.kernel);
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  c->out[0] = onnx_op(c, c->row->op, x, &attrs);
  if (!onnx_wants(c, 1) || !max) return;
  if (x.id != c->in[0].id) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "indices with automatic padding of an open extent");
    return;
  }
  c->out[1] = onnx_op(c, &rung_op_argmax_pool, x, &attrs);
  if (onnx_int(c, "storage_order", 0) && w.axes == 2) c->out[1] = column_major(c, x, c->out[1]);
}

void onnx_build_global_pool(onnx_call *c);
void onnx_build_global_pool(onnx_call *c) {
  rung_reduce_attrs attrs = {.keep = true, .axes = {.count = onnx_rank(c, c->in[0]) - 2}};
  for (int i = 0; i < attrs.axes.count; i++) attrs.axes.value[i] = 2 + i;
  if (attrs.axes.count < 1) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes", attrs.axes.count + 2);
  c->out[0] = onnx_op(c, c->row->op, c->in[0], &attrs);
}
