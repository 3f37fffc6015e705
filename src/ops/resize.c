/* SPDX-License-Identifier: MIT
 * resize: every place of the result is laid on x and read from its neighbours there, axis by axis, as ONNX Resize. */
#include "ops/resize.h"

#include <math.h>

#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_resize_attrs, field)
static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
static const rung_attr attributes[] = {
    {FIELD(output), .kind = RUNG_ATTR_DIMS, .doc = "extents of the result"},
    {FIELD(mode), .kind = RUNG_ATTR_ENUM, .text_default = "nearest", .names = modes, .doc = "how neighbours mix"},
    {FIELD(coordinates), .kind = RUNG_ATTR_ENUM, .text_default = "half_pixel", .names = coordinates,
     .doc = "how places of the result are laid on x"},
    {FIELD(round), .kind = RUNG_ATTR_ENUM, .text_default = "round_prefer_floor", .names = rounds,
     .doc = "nearest: which neighbour"},
    {FIELD(cubic), .kind = RUNG_ATTR_F64, .text_default = "-0.75", .doc = "cubic: the coefficient"},
    {FIELD(exclude_outside), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "neighbours outside x have no weight"},
    {FIELD(antialias), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "stretch the filter when shrinking"},
    {FIELD(extrapolation), .kind = RUNG_ATTR_F64, .text_default = "0",
     .doc = "tf_crop_and_resize: what stands outside x"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_resize_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, attrs->mode == RUNG_RESIZE_NEAREST ? RUNG_TAKES_PLAIN : RUNG_TAKES_FLOAT));
  if (attrs->output.count != x->rank)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "output has %d extents for rank %d", attrs->output.count,
                             x->rank);
  for (uint32_t i = 1; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_rank(infer, i, 1));
    RUNG_TRY(rung_infer_extent(infer, i, 0, rung_dims_constant(infer->dims, (int64_t)i * x->rank)));
    if (infer->in[i].type != RUNG_TYPE_F32)
      return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "scale and roi must be f32");
  }
  if (attrs->coordinates == RUNG_RESIZE_TF_CROP_AND_RESIZE && infer->n_in < 3)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "tf_crop_and_resize needs a roi");
  for (int axis = 0; axis < x->rank; axis++) {
    const rung_dim none = rung_dims_constant(infer->dims, 0);
    if (!rung_infer_at_least(infer, attrs->output.dim[axis], none))
      return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "the result's axis %d has a negative extent", axis);
  }
  rung_infer_result(infer, 0, x->type, x->rank, attrs->output.dim);
  return RUNG_OK;
}

/* ---- one axis */

rung_resize_axis rung_resize_axis_of(const rung_args *args, int axis) {
  const rung_operand *x = &args->in[0];
  rung_resize_axis a = {.attrs = args->attrs, .in = x->extent[axis], .out = args->out[0].extent[axis], .end = 1};
  a.scale = args->n_in > 1 ? rung_load_f64(&args->in[1], axis * args->in[1].stride[0]) : 0;
  if (args->n_in < 2) a.scale = a.in ? (double)a.out / (double)a.in : 1;
  a.still = a.in == a.out && a.scale == 1;
  if (args->n_in < 3 || a.attrs->coordinates != RUNG_RESIZE_TF_CROP_AND_RESIZE) return a;
  a.begin = rung_load_f64(&args->in[2], axis * args->in[2].stride[0]);
  a.end = rung_load_f64(&args->in[2], (axis + x->rank) * args->in[2].stride[0]);
  a.still = a.still && a.begin == 0 && a.end == 1;
  return a;
}

/* Where a place of the result lies on x. */
static double lay(const rung_resize_axis *a, double place) {
  const double length = a->scale * (double)a->in, last = (double)a->in - 1;
  switch (a->attrs->coordinates) {
    case RUNG_RESIZE_ALIGN_CORNERS:
      return length == 1 ? 0 : place * last / (length - 1);
    case RUNG_RESIZE_ASYMMETRIC:
      return place / a->scale;
    case RUNG_RESIZE_TF_HALF_PIXEL_FOR_NN:
      return (place + 0.5) / a->scale;
    case RUNG_RESIZE_TF_CROP_AND_RESIZE: {
      const double inside = (a->end - a->begin) * last;
      return (length == 1 ? inside / 2 : place * inside / (length - 1)) + a->begin * last;
    }
    case RUNG_RESIZE_PYTORCH_HALF_PIXEL:
      return length == 1 ? -0.5 : (place + 0.5) / a->scale - 0.5;
    case RUNG_RESIZE_HALF_PIXEL_SYMMETRIC:
      return (double)a->in / 2 * (1 - (double)a->out / length) + (place + 0.5) / a->scale - 0.5;
    default:
      return (place + 0.5) / a->scale - 0.5;
  }
}

static double nearest(const rung_resize_axis *a, double at) {
  const double below = floor(at), rest = at - below;
  switch (a->attrs->round) {
    case RUNG_RESIZE_ROUND_PREFER_FLOOR:
      return rest <= 0.5 ? below : below + 1;
    case RUNG_RESIZE_ROUND_PREFER_CEIL:
      return rest < 0.5 ? below : below + 1;
    case RUNG_RESIZE_CEIL:
      return ceil(at);
    default:
      return below;
  }
}

/* By how much the filter is narrower than it was made for. */
static double narrow(const rung_resize_axis *a) { return a->attrs->antialias && a->scale < 1 ? a->scale : 1; }

/* The filter at a distance from its middle; cubic convolution by Keys (1981), linear a tent. */
static double filter(const rung_resize_axis *a, double distance) {
  const double d = fabs(distance), c = a->attrs->cubic;
  if (a->attrs->mode == RUNG_RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
  if (d <= 1) return ((c + 2) * d - (c + 3)) * d * d + 1;
  return d < 2 ? ((c * d - 5 * c) * d + 8 * c) * d - 4 * c : 0;
}

double rung_resize_weight(const rung_resize_axis *a, const rung_resize_line *line, int64_t index) {
  if (a->attrs->mode == RUNG_RESIZE_NEAREST || a->still) return 1;
  if (a->attrs->exclude_outside && (index < 0 || index >= a->in)) return 0;
  return filter(a, ((double)index - line->at) * narrow(a)) / line->total;
}

rung_resize_line rung_resize_line_at(const rung_resize_axis *a, int64_t place) {
  rung_resize_line line = {.first = place, .count = 1, .at = (double)place, .total = 1};
  if (a->still) return line;
  /* A scale of nothing, or not a number, must not lead astray: such places lie within two axes of x. */
  const double reach = 2 * (double)a->in + 4, at = lay(a, (double)place);
  line.at = at >= -reach ? (at <= reach ? at : reach) : -reach;
  line.outside = a->attrs->coordinates == RUNG_RESIZE_TF_CROP_AND_RESIZE && !(at >= 0 && at <= (double)a->in - 1);
  if (a->attrs->mode == RUNG_RESIZE_NEAREST) {
    line.first = (int64_t)nearest(a, line.at);
    return line;
  }
  double width = (a->attrs->mode == RUNG_RESIZE_LINEAR ? 1 : 2) / narrow(a);
  if (!(width <= reach)) width = reach;
  line.first = (int64_t)floor(line.at - width) + 1;
  line.count = (int64_t)ceil(line.at + width) - line.first;
  if (!a->attrs->antialias && !a->attrs->exclude_outside) return line;
  double total = 0;
  for (int64_t i = 0; i < line.count; i++) total += rung_resize_weight(a, &line, line.first + i);
  line.total = total;
  return line;
}

/* ---- the op */

/* The sum over neighbours along axes [axis, rank). */
static double mix(const rung_operand *x, const rung_resize_axis *axes, const rung_resize_line *lines, int axis,
                  int64_t offset) {
  if (axis == x->rank) return rung_load_f64(x, offset);
  double sum = 0;
  for (int64_t i = 0; i < lines[axis].count; i++) {
    const int64_t index = lines[axis].first + i;
    const double weight = rung_resize_weight(&axes[axis], &lines[axis], index);
    if (weight == 0 && lines[axis].count > 1) continue;
    sum += weight * mix(x, axes, lines, axis + 1, offset + rung_resize_index(&axes[axis], index) * x->stride[axis]);
  }
  return sum;
}

static rung_status reference(const rung_args *args) {
  const rung_resize_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_resize_axis axes[RUNG_MAX_RANK];
  rung_resize_line lines[RUNG_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    axes[i] = rung_resize_axis_of(args, i);
    if (axes[i].in == 0 && rung_operand_count(y))
      return rung_fail(args->error, RUNG_OUT_OF_RANGE, "resize: nothing along axis %d to make something of", i);
  }
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    bool outside = false;
    for (int i = 0; i < x->rank; i++) {
      lines[i] = rung_resize_line_at(&axes[i], w.index[i]);
      outside = outside || lines[i].outside;
    }
    if (rung_operand_is_integer(x)) {
      int64_t at = 0;
      for (int i = 0; i < x->rank; i++) at += rung_resize_index(&axes[i], lines[i].first) * x->stride[i];
      rung_store_i64(y, w.offset[0], outside ? (int64_t)attrs->extrapolation : rung_load_i64(x, at));
    } else {
      rung_store_f64(y, w.offset[0], outside ? attrs->extrapolation : mix(x, axes, lines, 0, 0));
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[1,2,4,5]", "output=[1,2,8,10], coordinates=asymmetric, round=floor"},
    {"f32[1,2,4,5]", "output=[1,2,7,9], mode=linear"},
    {"f32[2,3,6]", "output=[2,3,4], mode=cubic, coordinates=align_corners"},
    {"f32[1,1,6,7]", "output=[1,1,3,3], mode=linear, antialias=true"},
    {"f32[1,1,6,7]", "output=[1,1,3,4], mode=cubic, antialias=true, exclude_outside=true"},
    {"f32[1,2,5] f32[3]{0.7,0.7}", "output=[1,1,3], coordinates=half_pixel_symmetric"},
    {"f32[4,5] f32[2]{1.5,1.5} f32[4]{0.1,0.9}", "output=[6,7], mode=linear, coordinates=tf_crop_and_resize"},
    {"f32[3,4]", "output=[5,2], coordinates=pytorch_half_pixel, mode=linear"},
    {"f32[3,4]", "output=[5,2], coordinates=tf_half_pixel_for_nn, round=ceil"},
    {"u8[3,4]{0,255}", "output=[6,4], round=round_prefer_ceil"},
    {"f16[2,9]", "output=[2,4], mode=linear"},
    {"f32[0,4]", "output=[0,8]"},
    {"f32[2,4]", "output=[2,0], mode=linear"},
    {0}};

const rung_op rung_op_resize = {
    .name = "resize",
    .doc = "x at other extents: nearest neighbour, linear or cubic, as ONNX Resize",
    .operands = (const char *const[]){"x", "scale", "roi", NULL},
    .in_lo = 1,
    .in_hi = 3,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_resize_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "not yet: spreads every result over its neighbours",
    .test_lo = -4,
    .test_hi = 4,
    .tests = cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-35}, /* a sum of a few products */
};
