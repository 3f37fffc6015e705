/* SPDX-License-Identifier: MIT
 * ONNX operators that are one op with a shape or a count found beside it: resize, boxes, sampling, transforms, integer
 * products. */
#include <math.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "formats/onnx/windows.h"

static int32_t choice(onnx_call *c, const char *name, const char *standard, const char *const *words) {
  for (int32_t i = 0; words[i]; i++)
    if (onnx_text_is(c, name, standard, words[i])) return i;
  onnx_refuse(c, RUNG_UNSUPPORTED, "its %s is not known", name);
  return 0;
}

/* The first `count` (an i64 scalar) of an axis. */
static rung_value first_of(onnx_call *c, rung_value x, int axis, rung_dim count) {
  return rung_build_slice(c->g, x, axis, onnx_dim(c, 0), count);
}

/* ---- resize */

typedef struct sized {
  int rank;
  rung_i64_list axes;
  rung_value scale; /* f32[rank]; null: by extents */
  rung_dim output[RUNG_MAX_RANK];
} sized;

/* floor(extent * scale), now or when the graph runs. */
static rung_dim scaled(onnx_call *c, rung_dim extent, double scale, rung_value at_run_time, rung_dim bound) {
  int64_t value;
  if (at_run_time.id == 0 && !(scale > 0)) {
    onnx_refuse(c, RUNG_OUT_OF_RANGE, "a scale of %g", scale);
    return extent;
  }
  if (at_run_time.id == 0 && rung_dims_is_constant(c->g->dims, extent, &value))
    return onnx_whole(c, floor((double)value * scale), &value) ? onnx_dim(c, value) : extent;
  if (at_run_time.id == 0 && scale == floor(scale) && scale < 1e9)
    return rung_graph_dim(c->g, RUNG_DIM_MUL, extent, onnx_dim(c, (int64_t)scale));
  for (int64_t by = 2; at_run_time.id == 0 && by <= 1024; by++)
    if (scale * (double)by == floor(scale * (double)by) && scale * (double)by < 1e9)
      return rung_graph_dim(c->g, RUNG_DIM_FLOORDIV,
                            rung_graph_dim(c->g, RUNG_DIM_MUL, extent, onnx_dim(c, (int64_t)(scale * (double)by))),
                            onnx_dim(c, by));
  const rung_value factor =
      at_run_time.id ? onnx_cast(c, at_run_time, RUNG_TYPE_F64) : rung_build_scalar(c->g, RUNG_TYPE_F64, scale);
  const rung_value product = rung_build_mul(c->g, rung_build_extent(c->g, extent, RUNG_TYPE_F64), factor);
  return onnx_bind(c, onnx_cast(c, rung_build_floor(c->g, product), RUNG_TYPE_I64), bound);
}

static bool scales_given(onnx_call *c, uint32_t i) {
  if (!onnx_has(c, i)) return false;
  int64_t n = 1;
  (void)rung_dims_is_constant(c->g->dims, onnx_extent(c, c->in[i], 0), &n);
  return n > 0;
}

/* scales f32[axes] at input i. */
static void by_scales(onnx_call *c, uint32_t i, rung_value scales, sized *s) {
  const onnx_constant *known = onnx_constant_of(c->imp, c->scope->body, scales);
  rung_value part[RUNG_MAX_RANK];
  (void)i;
  for (int axis = 0; axis < s->rank; axis++) part[axis] = rung_build_scalar(c->g, RUNG_TYPE_F32, 1);
  for (int k = 0; k < s->axes.count && !onnx_failed(c); k++) {
    const int axis = (int)s->axes.value[k];
    part[axis] = onnx_reshape(c, onnx_slice(c, onnx_cast(c, scales, RUNG_TYPE_F32), 0, k, 1), 0, NULL);
    s->output[axis] =
        known ? scaled(c, s->output[axis], onnx_constant_number(known, k), rung_build_null(), onnx_declared(c, 0, axis))
              : scaled(c, s->output[axis], 1, part[axis], onnx_declared(c, 0, axis));
  }
  const rung_dim one = onnx_dim(c, 1);
  for (int axis = 0; axis < s->rank; axis++) part[axis] = onnx_reshape(c, part[axis], 1, &one);
  s->scale = rung_build_concat(c->g, part, (uint32_t)s->rank, 0);
}

/* sizes at input i; with keep_aspect_ratio_policy all axes get one scale, whose result is rounded. */
static void by_sizes(onnx_call *c, uint32_t i, sized *s) {
  rung_dim_list sizes;
  const bool larger = onnx_text_is(c, "keep_aspect_ratio_policy", "stretch", "not_smaller"),
             smaller = onnx_text_is(c, "keep_aspect_ratio_policy", "stretch", "not_larger");
  rung_dim bounds[RUNG_MAX_RANK];
  for (int k = 0; k < s->axes.count; k++) bounds[k] = onnx_declared(c, 0, (int)s->axes.value[k]);
  if ((larger || smaller) && !onnx_constant_in(c, i)) return;
  if (!onnx_dims_in(c, i, bounds, &sizes)) return;
  if (sizes.count != s->axes.count) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%d sizes for %d axes", sizes.count, s->axes.count);
    return;
  }
  double scale = larger ? 0 : HUGE_VAL;
  for (int k = 0; k < sizes.count; k++) {
    const int axis = (int)s->axes.value[k];
    int64_t want, have;
    if (!larger && !smaller) {
      s->output[axis] = sizes.dim[k];
      continue;
    }
    if (!rung_dims_is_constant(c->g->dims, sizes.dim[k], &want) ||
        !rung_dims_is_constant(c->g->dims, s->output[axis], &have) || have == 0) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "a kept ratio of open extents");
      return;
    }
    const double ratio = (double)want / (double)have;
    scale = larger ? fmax(scale, ratio) : fmin(scale, ratio);
  }
  if (!larger && !smaller) return;
  float factors[RUNG_MAX_RANK];
  const int64_t rank = s->rank;
  for (int axis = 0; axis < s->rank; axis++) factors[axis] = 1;
  for (int k = 0; k < sizes.count; k++) {
    const int axis = (int)s->axes.value[k];
    int64_t have = 0;
    (void)rung_dims_is_constant(c->g->dims, s->output[axis], &have);
    if (!onnx_whole(c, floor((double)have * scale + 0.5), &have)) return;
    s->output[axis] = onnx_dim(c, have);
    factors[axis] = (float)scale;
  }
  s->scale = rung_graph_constant(c->g, RUNG_TYPE_F32, 1, &rank, factors);
}

static rung_value roi_of(onnx_call *c, const sized *s) {
  rung_value part[2 * RUNG_MAX_RANK];
  const rung_value roi = onnx_cast(c, c->in[1], RUNG_TYPE_F32);
  const rung_dim one = onnx_dim(c, 1);
  for (int i = 0; i < 2 * s->rank; i++)
    part[i] = onnx_reshape(c, rung_build_scalar(c->g, RUNG_TYPE_F32, i < s->rank ? 0 : 1), 1, &one);
  for (int k = 0; k < s->axes.count; k++) {
    part[s->axes.value[k]] = onnx_slice(c, roi, 0, k, 1);
    part[s->rank + s->axes.value[k]] = onnx_slice(c, roi, 0, k + s->axes.count, 1);
  }
  return rung_build_concat(c->g, part, 2 * (uint32_t)s->rank, 0);
}

static const char *const resize_modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const resize_coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const resize_rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};

static void resize(onnx_call *c, const sized *s, rung_resize_attrs *attrs) {
  rung_value in[3] = {c->in[0], s->scale};
  uint32_t n = s->scale.id ? 2 : 1;
  if (attrs->coordinates == RUNG_RESIZE_TF_CROP_AND_RESIZE) {
    if (!s->scale.id) { /* scale: by extents */
      rung_value part[RUNG_MAX_RANK];
      const rung_dim one = onnx_dim(c, 1);
      for (int i = 0; i < s->rank; i++)
        part[i] = onnx_reshape(c,
                               rung_build_div(c->g, rung_build_extent(c->g, s->output[i], RUNG_TYPE_F32),
                                              rung_build_extent(c->g, onnx_extent(c, c->in[0], i), RUNG_TYPE_F32)),
                               1, &one);
      in[1] = rung_build_concat(c->g, part, (uint32_t)s->rank, 0);
    }
    in[2] = roi_of(c, s);
    n = 3;
  }
  attrs->output.count = s->rank;
  for (int i = 0; i < s->rank; i++) attrs->output.dim[i] = s->output[i];
  if (!onnx_failed(c)) c->out[0] = rung_graph_op(c->g, &rung_op_resize, in, n, attrs);
}

void onnx_build_resize(onnx_call *c);
void onnx_build_resize(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  sized s = {.rank = x.rank};
  memcpy(s.output, x.extent, sizeof s.output);
  if (!onnx_int_list(c, "axes", &s.axes)) {
    s.axes.count = x.rank;
    for (int i = 0; i < x.rank; i++) s.axes.value[i] = i;
  }
  for (int i = 0; i < s.axes.count; i++) s.axes.value[i] = onnx_axis(c, s.axes.value[i], x.rank);
  rung_resize_attrs attrs = {.mode = choice(c, "mode", "nearest", resize_modes),
                             .coordinates = RUNG_RESIZE_ASYMMETRIC,
                             .round = RUNG_RESIZE_FLOOR,
                             .cubic = onnx_float(c, "cubic_coeff_a", -0.75),
                             .exclude_outside = onnx_int(c, "exclude_outside", 0) != 0,
                             .antialias = onnx_int(c, "antialias", 0) != 0,
                             .extrapolation = onnx_float(c, "extrapolation_value", 0)};
  if (c->version >= 11) {
    attrs.coordinates = choice(c, "coordinate_transformation_mode", "half_pixel", resize_coordinates);
    attrs.round = choice(c, "nearest_mode", "round_prefer_floor", resize_rounds);
  }
  if (onnx_failed(c)) return;
  const uint32_t scales = c->version >= 11 ? 2 : 1;
  if (scales_given(c, scales))
    by_scales(c, scales, c->in[scales], &s);
  else if (onnx_has(c, 3))
    by_sizes(c, 3, &s);
  else
    onnx_refuse(c, RUNG_CORRUPT_FILE, "it has neither scales nor sizes");
  if (!onnx_failed(c)) resize(c, &s, &attrs);
}

void onnx_build_upsample(onnx_call *c);
void onnx_build_upsample(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  static const char *const modes[] = {"nearest", "linear", NULL};
  sized s = {.rank = x.rank, .axes = {.count = x.rank}};
  memcpy(s.output, x.extent, sizeof s.output);
  for (int i = 0; i < x.rank; i++) s.axes.value[i] = i;
  const bool bilinear = onnx_text_is(c, "mode", "nearest", "bilinear");
  rung_resize_attrs attrs = {.mode = bilinear ? RUNG_RESIZE_LINEAR : choice(c, "mode", "nearest", modes),
                             .coordinates = RUNG_RESIZE_ASYMMETRIC,
                             .round = RUNG_RESIZE_FLOOR,
                             .cubic = -0.75};
  const onnx_attr *list = onnx_attr_find(c, "scales");
  rung_value scales = onnx_has(c, 1) ? c->in[1] : rung_build_null();
  if (!scales.id && list && list->type == ONNX_ATTR_FLOATS && list->count == (uint32_t)x.rank) {
    const int64_t n = list->count;
    scales = rung_graph_constant(c->g, RUNG_TYPE_F32, 1, &n, list->floats);
  }
  if (!scales.id) onnx_refuse(c, RUNG_CORRUPT_FILE, "it has no scales");
  if (onnx_failed(c)) return;
  by_scales(c, 1, scales, &s);
  if (!onnx_failed(c)) resize(c, &s, &attrs);
}

/* ---- boxes */

void onnx_build_suppression(onnx_call *c);
void onnx_build_suppression(onnx_call *c) {
  const rung_nms_attrs attrs = {.centre = onnx_int(c, "center_point_box", 0) != 0};
  rung_value in[5] = {
      c->in[0], c->in[1], rung_build_scalar(c->g, RUNG_TYPE_I64, 0), rung_build_scalar(c->g, RUNG_TYPE_F32, 0), {0, 0}};
  for (uint32_t i = 2; i < 5; i++)
    if (onnx_has(c, i)) in[i] = onnx_rank(c, c->in[i]) ? onnx_reshape(c, c->in[i], 0, NULL) : c->in[i];
  const rung_node *node = rung_graph_append(c->g, &rung_op_non_max_suppression, in, in[4].id ? 5 : 4, &attrs, NULL, 0);
  if (!node) return;
  const rung_value all = rung_node_result(c->g, node, 0), found = rung_node_result(c->g, node, 1);
  const rung_dim count = onnx_bind(c, found, onnx_extent(c, all, 0));
  if (!onnx_failed(c)) c->out[0] = first_of(c, all, 0, count);
}

void onnx_build_roi_align(onnx_call *c);
void onnx_build_roi_align(onnx_call *c) {
  const char *standard = c->version >= 16 ? "half_pixel" : "output_half_pixel";
  const rung_roi_attrs attrs = {
      .height = onnx_int(c, "output_height", 1),
      .width = onnx_int(c, "output_width", 1),
      .scale = onnx_float(c, "spatial_scale", 1),
      .sampling = onnx_int(c, "sampling_ratio", 0),
      .largest = onnx_text_is(c, "mode", "avg", "max"),
      .half_pixel = onnx_text_is(c, "coordinate_transformation_mode", standard, "half_pixel")};
  const rung_value batch = onnx_cast(c, c->in[2], RUNG_TYPE_I64);
  c->out[0] = onnx_op3(c, &rung_op_roi_align, c->in[0], c->in[1], batch, &attrs);
}
void onnx_build_max_roi_pool(onnx_call *c);
void onnx_build_max_roi_pool(onnx_call *c) {
  rung_i64_list shape;
  if (!onnx_int_list(c, "pooled_shape", &shape) || shape.count != 2) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "pooled_shape must have two numbers");
    return;
  }
  const rung_roi_attrs attrs = {
      .height = shape.value[0], .width = shape.value[1], .scale = onnx_float(c, "spatial_scale", 1)};
  c->out[0] = onnx_op2(c, &rung_op_max_roi_pool, c->in[0], c->in[1], &attrs);
}

void onnx_build_grid_sample(onnx_call *c);
void onnx_build_grid_sample(onnx_call *c) {
  static const char *const modes[] = {"linear", "nearest", "cubic", NULL},
                           *const old[] = {"bilinear", "nearest", "bicubic", NULL},
                           *const paddings[] = {"zeros", "border", "reflection", NULL};
  const bool is_old = onnx_text_is(c, "mode", "linear", "bilinear") || onnx_text_is(c, "mode", "linear", "bicubic");
  const rung_grid_sample_attrs attrs = {.mode = choice(c, "mode", "linear", is_old ? old : modes),
                                        .padding = choice(c, "padding_mode", "zeros", paddings),
                                        .align_corners = onnx_int(c, "align_corners", 0) != 0};
  c->out[0] = onnx_op2(c, &rung_op_grid_sample, c->in[0], c->in[1], &attrs);
}

void onnx_build_deform_conv(onnx_call *c);
void onnx_build_deform_conv(onnx_call *c) {
  onnx_window w;
  rung_i64_list kernel = {.count = 2};
  for (int i = 0; i < 2; i++)
    if (onnx_rank(c, c->in[1]) != 4 ||
        !rung_dims_is_constant(c->g->dims, onnx_extent(c, c->in[1], 2 + i), &kernel.value[i])) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "a kernel of other than two known extents");
      return;
    }
  if (!onnx_window_read(c, &w, 2, &kernel)) return;
  rung_deform_attrs attrs = {
      .groups = onnx_int(c, "group", 1), .offset_groups = onnx_int(c, "offset_group", 1), .bias = onnx_has(c, 3)};
  onnx_window_list(&attrs.stride, 2, w.stride);
  onnx_window_list(&attrs.dilation, 2, w.dilation);
  onnx_window_list(&attrs.pad_before, 2, w.before);
  onnx_window_list(&attrs.pad_after, 2, w.after);
  rung_value in[5] = {c->in[0], c->in[1], c->in[2]};
  uint32_t n = 3;
  if (onnx_has(c, 3)) in[n++] = c->in[3];
  if (onnx_has(c, 4)) in[n++] = c->in[4];
  c->out[0] = rung_graph_op(c->g, &rung_op_deform_conv, in, n, &attrs);
}

/* ---- different slices */

void onnx_build_unique(onnx_call *c);
void onnx_build_unique(onnx_call *c) {
  rung_value x = c->in[0];
  const rung_value_type t = *onnx_type(c, x);
  const bool flat = !onnx_attr_find(c, "axis");
  const rung_dim all = rung_dims_product(c->g->dims, t.extent, 0, t.rank);
  if (flat) x = onnx_reshape(c, x, 1, &all);
  const rung_unique_attrs attrs = {.axis = flat ? 0 : onnx_axis(c, onnx_int(c, "axis", 0), t.rank),
                                   .sorted = onnx_int(c, "sorted", 1) != 0};
  if (onnx_failed(c)) return;
  const rung_node *node = rung_graph_append(c->g, &rung_op_unique, &x, 1, &attrs, NULL, 0);
  if (!node) return;
  rung_value r[5];
  for (uint32_t i = 0; i < 5; i++) r[i] = rung_node_result(c->g, node, i);
  const rung_dim count = onnx_bind(c, r[4], onnx_extent(c, r[1], 0));
  if (onnx_failed(c)) return;
  c->out[0] = first_of(c, r[0], (int)attrs.axis, count);
  c->out[1] = first_of(c, r[1], 0, count);
  c->out[2] = r[2];
  c->out[3] = first_of(c, r[3], 0, count);
}

/* ---- transforms */

void onnx_build_dft(onnx_call *c);
void onnx_build_dft(onnx_call *c) {
  rung_dft_attrs attrs = {.inverse = onnx_int(c, "inverse", 0) != 0, .onesided = onnx_int(c, "onesided", 0) != 0};
  int64_t axis = onnx_int(c, "axis", 1);
  if (c->version >= 20) {
    axis = -2;
    if (onnx_has(c, 2) && !onnx_constant_integer_scalar(c, 2, &axis)) return;
  }
  attrs.axis = onnx_axis(c, axis, onnx_rank(c, c->in[0]));
  rung_dim_list length;
  if (onnx_has(c, 1)) {
    if (!onnx_dims_in(c, 1, NULL, &length)) return;
    attrs.length = length.dim[0];
  }
  if (!onnx_failed(c)) c->out[0] = onnx_op(c, &rung_op_dft, c->in[0], &attrs);
}

/* Frames, a step apart, times the window, transformed. */
void onnx_build_stft(onnx_call *c);
void onnx_build_stft(onnx_call *c) {
  int64_t step, size = 0;
  rung_value x = c->in[0];
  const rung_dim one = onnx_dim(c, 1);
  if (!onnx_constant_integer_scalar(c, 1, &step)) return;
  if (onnx_has(c, 3)) {
    if (!onnx_constant_integer_scalar(c, 3, &size)) return;
  } else if (onnx_has(c, 2)) {
    (void)rung_dims_is_constant(c->g->dims, onnx_extent(c, c->in[2], 0), &size);
  }
  if (onnx_rank(c, x) == 2) {
    const rung_dim whole[3] = {onnx_extent(c, x, 0), onnx_extent(c, x, 1), one};
    x = onnx_reshape(c, x, 3, whole);
  }
  const rung_value_type t = *onnx_type(c, x);
  if (t.rank != 3 || size < 1 || step < 1 || size > 1000000000 || step > 1000000000) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "frames of %lld points, %lld apart", (long long)size, (long long)step);
    return;
  }
  rung_dim frames = rung_graph_dim(c->g, RUNG_DIM_SUB, t.extent[1], onnx_dim(c, size));
  frames = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, frames, onnx_dim(c, step));
  frames = rung_graph_dim(c->g, RUNG_DIM_MAX, rung_graph_dim(c->g, RUNG_DIM_ADD, frames, one), onnx_dim(c, 0));
  if (onnx_failed(c)) return;
  const rung_dim column[2] = {frames, one};
  rung_value at = onnx_reshape(c, onnx_arange(c, frames, RUNG_TYPE_I64), 2, column);
  at = rung_build_mul(c->g, at, rung_build_scalar(c->g, RUNG_TYPE_I64, (double)step));
  at = rung_build_add(c->g, at, onnx_arange(c, onnx_dim(c, size), RUNG_TYPE_I64));
  const rung_gather_attrs along = {1};
  rung_value y = onnx_op2(c, &rung_op_gather, x, at, &along);
  if (onnx_has(c, 2)) {
    const rung_dim points[2] = {onnx_dim(c, size), one};
    y = rung_build_mul(c->g, y, onnx_reshape(c, onnx_cast(c, c->in[2], t.type), 2, points));
  }
  const rung_dft_attrs attrs = {.axis = 2, .onesided = onnx_int(c, "onesided", 1) != 0};
  c->out[0] = onnx_op(c, &rung_op_dft, y, &attrs);
}

/* ---- integer products */

/* Operands with the zero points that are there; one that is missing before one that is not is 0. */
static uint32_t with_zeros(onnx_call *c, const rung_value *given, rung_value out[4]) {
  out[0] = given[0];
  out[1] = given[1];
  if (!given[2].id && !given[3].id) return 2;
  out[2] = given[2].id ? given[2] : onnx_scalar(c, given[0], 0);
  out[3] = given[3];
  return given[3].id ? 4 : 3;
}
static rung_value optional(const onnx_call *c, uint32_t i) { return onnx_has(c, i) ? c->in[i] : rung_build_null(); }

static rung_value integer_matmul(onnx_call *c, rung_value a, rung_value b, rung_value a_zero, rung_value b_zero) {
  rung_value in[4];
  const rung_value given[4] = {a, b, a_zero, b_zero};
  const uint32_t n = with_zeros(c, given, in);
  if (onnx_rank(c, a) == 1) in[0] = rung_build_unsqueeze(c->g, a, 0);
  if (onnx_rank(c, b) == 1) in[1] = rung_build_unsqueeze(c->g, b, 1);
  return rung_graph_op(c->g, &rung_op_matmul_integer, in, n, NULL);
}
void onnx_build_matmul_integer(onnx_call *c);
void onnx_build_matmul_integer(onnx_call *c) {
  rung_value y = integer_matmul(c, c->in[0], c->in[1], optional(c, 2), optional(c, 3));
  if (onnx_rank(c, c->in[1]) == 1) y = rung_build_squeeze(c->g, y, onnx_rank(c, y) - 1);
  if (onnx_rank(c, c->in[0]) == 1)
    y = rung_build_squeeze(c->g, y, onnx_rank(c, y) - (onnx_rank(c, c->in[1]) == 1 ? 1 : 2));
  c->out[0] = y;
}

static rung_value integer_conv(onnx_call *c, const rung_value given[4]) {
  onnx_window w;
  const rung_value_type k = *onnx_type(c, given[1]);
  rung_i64_list kernel = {.count = k.rank - 2};
  for (int i = 0; i < kernel.count; i++)
    if (!rung_dims_is_constant(c->g->dims, k.extent[2 + i], &kernel.value[i])) return given[0];
  if (!onnx_window_read(c, &w, kernel.count, &kernel)) return given[0];
  if (onnx_window_same(c, given[0], &w, 0).id != given[0].id) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "automatic padding of an open extent");
    return given[0];
  }
  rung_conv_attrs attrs = {.groups = onnx_int(c, "group", 1)};
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  rung_value in[4];
  const uint32_t n = with_zeros(c, given, in);
  return rung_graph_op(c->g, &rung_op_conv_integer, in, n, &attrs);
}
void onnx_build_conv_integer(onnx_call *c);
void onnx_build_conv_integer(onnx_call *c) {
  const rung_value given[4] = {c->in[0], c->in[1], optional(c, 2), optional(c, 3)};
  c->out[0] = integer_conv(c, given);
}

/* round(sum * factor) + zero, within the range of the zero point's type. */
static rung_value requantised(onnx_call *c, rung_value sum, rung_value factor, rung_value zero) {
  const rung_type type = onnx_type(c, zero)->type;
  rung_value y = rung_build_mul(c->g, onnx_cast(c, sum, RUNG_TYPE_F32), onnx_cast(c, factor, RUNG_TYPE_F32));
  y = rung_build_add(c->g, rung_build_round(c->g, y), onnx_cast(c, zero, RUNG_TYPE_F32));
  const bool is_signed = type == RUNG_TYPE_I8;
  y = onnx_op3(c, &rung_op_clip, y, onnx_scalar(c, y, is_signed ? -128 : 0), onnx_scalar(c, y, is_signed ? 127 : 255),
               NULL);
  return onnx_cast(c, y, type);
}

void onnx_build_qlinear_matmul(onnx_call *c);
void onnx_build_qlinear_matmul(onnx_call *c) {
  const rung_value sum = integer_matmul(c, c->in[0], c->in[3], c->in[2], c->in[5]);
  rung_value a_scale = c->in[1];
  if (onnx_rank(c, a_scale) == 1 && !rung_dim_is(c->g->dims, onnx_extent(c, a_scale, 0), 1))
    a_scale = rung_build_unsqueeze(c->g, a_scale, 1); /* one a row */
  const rung_value factor = rung_build_div(
      c->g, rung_build_mul(c->g, onnx_cast(c, a_scale, RUNG_TYPE_F32), onnx_cast(c, c->in[4], RUNG_TYPE_F32)),
      onnx_cast(c, c->in[6], RUNG_TYPE_F32));
  c->out[0] = requantised(c, sum, factor, c->in[7]);
}
static rung_value by_channel(onnx_call *c, rung_value v, int rank) {
  if (onnx_rank(c, v) != 1 || rung_dim_is(c->g->dims, onnx_extent(c, v, 0), 1)) return v;
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < rank - 1; i++) extent[i] = i ? onnx_dim(c, 1) : onnx_extent(c, v, 0);
  return onnx_reshape(c, v, rank - 1, extent);
}
void onnx_build_qlinear_conv(onnx_call *c);
void onnx_build_qlinear_conv(onnx_call *c) {
  const int rank = onnx_rank(c, c->in[0]);
  const rung_value given[4] = {c->in[0], c->in[3], c->in[2], c->in[5]};
  rung_value sum = integer_conv(c, given);
  if (onnx_failed(c)) return;
  if (onnx_has(c, 8)) sum = rung_build_add(c->g, sum, by_channel(c, c->in[8], rank));
  const rung_value factor =
      rung_build_div(c->g, rung_build_mul(c->g, c->in[1], by_channel(c, c->in[4], rank)), c->in[6]);
  c->out[0] = requantised(c, sum, factor, c->in[7]);
}

/* Floats quantised on the way in, products of integers, floats again. */
static rung_value dynamic(onnx_call *c, rung_value a, rung_value b, rung_value b_scale, rung_value b_zero) {
  const rung_node *node = rung_graph_append(c->g, &rung_op_dynamic_quantize, &a, 1, NULL, NULL, 0);
  if (!node) return a;
  const rung_value sum = integer_matmul(c, rung_node_result(c->g, node, 0), b, rung_node_result(c->g, node, 2), b_zero);
  return rung_build_mul(c->g, onnx_cast(c, sum, RUNG_TYPE_F32),
                        rung_build_mul(c->g, rung_node_result(c->g, node, 1), b_scale));
}
void onnx_build_dynamic_matmul(onnx_call *c);
void onnx_build_dynamic_matmul(onnx_call *c) {
  rung_value y = dynamic(c, c->in[0], c->in[1], c->in[2], optional(c, 3));
  if (onnx_has(c, 4)) y = rung_build_add(c->g, y, c->in[4]);
  c->out[0] = y;
}
void onnx_build_matmul_to_float(onnx_call *c);
void onnx_build_matmul_to_float(onnx_call *c) {
  const rung_value sum = integer_matmul(c, c->in[0], c->in[1], optional(c, 4), optional(c, 5));
  rung_value y = rung_build_mul(c->g, onnx_cast(c, sum, RUNG_TYPE_F32), rung_build_mul(c->g, c->in[2], c->in[3]));
  if (onnx_has(c, 6)) y = rung_build_add(c->g, y, c->in[6]);
  c->out[0] = y;
}
