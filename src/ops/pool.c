/* SPDX-License-Identifier: MIT
 * max_pool, average_pool: the largest number, or the mean, of a window that moves over the spatial axes of
 * x[batch, channels, spatial...], as ONNX MaxPool and AveragePool; with an empty kernel the window is the whole
 * picture. */
#include <math.h>

#include "ops/build.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_pool_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(kernel), .kind = RUNG_ATTR_I64S, .text_default = "[]",
     .doc = "extents of the window; empty: all of every axis"},
    {FIELD(stride), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "per spatial axis; empty: 1"},
    {FIELD(dilation), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "distance of window positions; empty: 1"},
    {FIELD(pad_before), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "padding before each axis; empty: 0"},
    {FIELD(pad_after), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "padding behind each axis; empty: 0"},
    {FIELD(ceil), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "a last window that sticks out counts as one"},
    {FIELD(count_pad), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "average_pool: the padding counts as zeros"},
    {0}};
#undef FIELD

static void fill(rung_spatial *s, const rung_pool_attrs *attrs, int axes) {
  s->axes = axes;
  rung_spatial_fill(&attrs->kernel, axes, 1, s->kernel);
  rung_spatial_fill(&attrs->stride, axes, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, axes, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, axes, 0, s->before);
  rung_spatial_fill(&attrs->pad_after, axes, 0, s->after);
}

static rung_status infer_pool(rung_infer *infer, uint32_t takes) {
  const rung_pool_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, takes));
  RUNG_TRY(rung_infer_ranks(infer, 0, 3, 2 + RUNG_SPATIAL));
  const int axes = x->rank - 2;
  RUNG_TRY(rung_spatial_check(infer, "kernel", &attrs->kernel, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "stride", &attrs->stride, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "dilation", &attrs->dilation, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "pad_before", &attrs->pad_before, axes, 0));
  RUNG_TRY(rung_spatial_check(infer, "pad_after", &attrs->pad_after, axes, 0));
  const bool global = attrs->kernel.count == 0;
  if (global && (attrs->stride.count || attrs->dilation.count || attrs->pad_before.count || attrs->pad_after.count)) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "without a kernel there are no strides, dilations or pads");
  }
  rung_spatial s;
  fill(&s, attrs, axes);
  rung_dim extent[RUNG_MAX_RANK] = {x->extent[0], x->extent[1]};
  for (int axis = 0; axis < axes; axis++) {
    const rung_dim kernel = rung_dims_constant(infer->dims, s.kernel[axis]);
    extent[2 + axis] = global ? rung_one(infer->dims)
                              : rung_spatial_windows(infer->dims, &s, axis, x->extent[2 + axis], kernel, attrs->ceil);
    RUNG_TRY(rung_infer_dim(infer, extent[2 + axis]));
  }
  rung_infer_result(infer, 0, x->type, x->rank, extent);
  return RUNG_OK;
}
static rung_status infer_max(rung_infer *infer) { return infer_pool(infer, RUNG_TAKES_NUMBER); }
static rung_status infer_average(rung_infer *infer) { return infer_pool(infer, RUNG_TAKES_FLOAT); }

/* The window's facts with the attributes' defaults and, for the whole picture, the extents of x. */
static void fill_resolved(rung_spatial *s, const rung_args *args) {
  const rung_pool_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0];
  fill(s, attrs, x->rank - 2);
  for (int axis = 0; attrs->kernel.count == 0 && axis < s->axes; axis++) s->kernel[axis] = x->extent[2 + axis];
}

/* Where the window's current position is in x. */
static int64_t offset_in(const rung_operand *x, const rung_walk *place, const rung_window *window) {
  int64_t at[RUNG_MAX_RANK] = {place->index[0], place->index[1]};
  for (int axis = 0; axis < x->rank - 2; axis++) at[2 + axis] = window->at[axis];
  return rung_element_offset(x, at);
}

/* ---- max_pool: NaN wins; a window of nothing but padding gives the lowest number there is, -inf for floats */

static int64_t lowest(rung_type type) {
  if (rung_type_is_unsigned(type)) return 0;
  return type == RUNG_TYPE_I64 ? INT64_MIN : -(INT64_C(1) << (8 * rung_type_get(type)->bytes - 1));
}

static rung_status max_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const bool integer = rung_operand_is_integer(y), is_unsigned = rung_type_is_unsigned((rung_type)y->type);
  rung_spatial s;
  fill_resolved(&s, args);
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place)) {
    double largest = -(double)INFINITY;
    int64_t whole = integer ? lowest((rung_type)y->type) : 0;
    rung_window window;
    for (rung_window_begin(&window, &s, place.index + 2, x->extent + 2); window.walk.live;
         rung_window_next(&window, &s, place.index + 2, x->extent + 2)) {
      if (!window.inside) continue;
      const int64_t from = offset_in(x, &place, &window);
      if (integer) {
        const int64_t v = rung_load_i64(x, from);
        if (is_unsigned ? (uint64_t)v > (uint64_t)whole : v > whole) whole = v;
      } else {
        const double v = rung_load_f64(x, from);
        if (isnan(v) || v > largest) largest = v; /* nothing is greater than NaN, so it stays */
      }
    }
    if (integer)
      rung_store_i64(y, place.offset[0], whole);
    else
      rung_store_f64(y, place.offset[0], largest);
  }
  return RUNG_OK;
}

static const rung_test_case max_cases[] = {
    {"f32[2,3,7,8]", "kernel=[3,2], stride=[2,2], pad_before=[1,0], pad_after=[1,1]"},
    {"f32[1,2,11]", "kernel=[3], stride=[3], dilation=[2], ceil=true"},
    {"f32[1,2,4,5,3]", "kernel=[2,2,2]"},
    {"f32[2,3,5,4]", ""},
    {"u8[1,2,6,6]", "kernel=[2,2], stride=[2,2]"},
    {"f32[0,3,7,8]", "kernel=[2,2]"},
    {"f32[1,3,0,4]", "kernel=[2,2]"},
    {"f16[1,3,6]", "kernel=[2]"},
    {0}};

/* Exact: picks one of the numbers. */
const rung_op rung_op_max_pool = {
    .name = "max_pool",
    .doc = "the largest number of every window over the spatial axes",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_pool_attrs),
    .infer = infer_max,
    .role_dims = rung_role_elements,
    .reference = max_reference,
    .no_gradient = "not yet: wants the place of each largest number as a second result",
    .test_lo = -4,
    .test_hi = 4,
    .tests = max_cases,
};

/* ---- argmax_pool: where max_pool found its number, counted in row-major order over all of x; -1 in nothing but padding
 */

static rung_status infer_argmax(rung_infer *infer) {
  RUNG_TRY(infer_pool(infer, RUNG_TAKES_NUMBER));
  infer->out[0].type = RUNG_TYPE_I64;
  return RUNG_OK;
}

static bool is_larger(const rung_operand *x, int64_t at, int64_t than) {
  if (rung_operand_is_integer(x)) {
    const int64_t u = rung_load_i64(x, at), v = rung_load_i64(x, than);
    return rung_type_is_unsigned((rung_type)x->type) ? (uint64_t)u > (uint64_t)v : u > v;
  }
  const double u = rung_load_f64(x, at), v = rung_load_f64(x, than);
  return v == v && !(u <= v);
}

static rung_status argmax_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_spatial s;
  fill_resolved(&s, args);
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place)) {
    int64_t index = -1, best = 0;
    rung_window window;
    for (rung_window_begin(&window, &s, place.index + 2, x->extent + 2); window.walk.live;
         rung_window_next(&window, &s, place.index + 2, x->extent + 2)) {
      if (!window.inside) continue;
      const int64_t from = offset_in(x, &place, &window);
      if (index >= 0 && !is_larger(x, from, best)) continue;
      best = from;
      index = place.index[0] * x->extent[1] + place.index[1];
      for (int axis = 0; axis < s.axes; axis++) index = index * x->extent[2 + axis] + window.at[axis];
    }
    rung_store_i64(y, place.offset[0], index);
  }
  return RUNG_OK;
}

const rung_op rung_op_argmax_pool = {
    .name = "argmax_pool",
    .doc = "where in x the largest number of every window stands, the first of equals",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_pool_attrs),
    .infer = infer_argmax,
    .role_dims = rung_role_elements,
    .reference = argmax_reference,
    .no_gradient = "indices",
    .test_lo = -4,
    .test_hi = 4,
    .tests = max_cases,
};

/* ---- average_pool */

/* How many positions of a window count: those inside x, or with count_pad those inside x and its padding. */
static bool counts(const rung_spatial *s, const rung_pool_attrs *attrs, const rung_window *window, const int64_t *x) {
  for (int axis = 0; axis < s->axes && attrs->count_pad; axis++) {
    if (window->at[axis] < -s->before[axis] || window->at[axis] >= x[axis] + s->after[axis]) return false;
  }
  return attrs->count_pad || window->inside;
}

static rung_status average_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_spatial s;
  fill_resolved(&s, args);
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place)) {
    double sum = 0;
    int64_t n = 0;
    rung_window window;
    for (rung_window_begin(&window, &s, place.index + 2, x->extent + 2); window.walk.live;
         rung_window_next(&window, &s, place.index + 2, x->extent + 2)) {
      if (window.inside) sum += rung_load_f64(x, offset_in(x, &place, &window));
      if (counts(&s, args->attrs, &window, x->extent + 2)) n++;
    }
    rung_store_f64(y, place.offset[0], sum / (double)n); /* nothing to average: 0 / 0 is NaN, as a mean of nothing is */
  }
  return RUNG_OK;
}

/* A window of ones, as a kernel for one channel. */
static rung_value ones_of(rung_graph *g, rung_type type, int rank, const rung_dim *spatial) {
  rung_dim extent[RUNG_MAX_RANK] = {rung_one(g->dims), rung_one(g->dims)};
  for (int axis = 2; axis < rank; axis++) extent[axis] = spatial[axis];
  return rung_build_expand(g, rung_build_scalar(g, type, 1), rank, extent);
}

/* How many positions of each window count, [1, 1, places...]: the window slid over ones. */
static rung_value window_counts(rung_graph *g, const rung_pool_attrs *attrs, const rung_value_type *x,
                                rung_value window) {
  rung_value ones = ones_of(g, x->type, x->rank, x->extent);
  rung_conv_attrs slide = {.stride = attrs->stride, .dilation = attrs->dilation, .groups = 1};
  if (attrs->count_pad && attrs->pad_before.count + attrs->pad_after.count > 0) {
    rung_spatial s;
    fill(&s, attrs, x->rank - 2);
    rung_pad_attrs pad = {.before.count = x->rank, .after.count = x->rank, .mode = RUNG_PAD_CONSTANT, .value = 1};
    for (int axis = 0; axis < x->rank; axis++) {
      pad.before.dim[axis] = rung_dims_constant(g->dims, axis < 2 ? 0 : s.before[axis - 2]);
      pad.after.dim[axis] = rung_dims_constant(g->dims, axis < 2 ? 0 : s.after[axis - 2]);
    }
    ones = rung_graph_op(g, &rung_op_pad, &ones, 1, &pad);
  } else {
    slide.pad_before = attrs->pad_before;
    slide.pad_after = attrs->pad_after;
  }
  return rung_graph_op(g, &rung_op_conv, (rung_value[]){ones, window}, 2, &slide);
}

/* Every result gives each number of its window the same share: spread by a window of ones. */
static void average_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                             const rung_value *gy, rung_value *out_gx) {
  const rung_pool_attrs *attrs = node->attrs;
  const rung_value_type x = *rung_build_type(g, in[0]), yt = *rung_build_type(g, y[0]);
  if (attrs->ceil) {
    rung_graph_fail(g, RUNG_UNSUPPORTED, "average_pool: no gradient with ceil");
    return;
  }
  rung_conv_transpose_attrs spread = {.stride = attrs->stride,
                                      .dilation = attrs->dilation,
                                      .pad_before = attrs->pad_before,
                                      .pad_after = attrs->pad_after,
                                      .groups = 1,
                                      .output = {.count = x.rank - 2}};
  rung_dim flat[RUNG_MAX_RANK] = {rung_dims_mul(g->dims, yt.extent[0], yt.extent[1]), rung_one(g->dims)};
  rung_dim kernel[RUNG_MAX_RANK];
  for (int axis = 2; axis < x.rank; axis++) {
    flat[axis] = yt.extent[axis];
    kernel[axis] = attrs->kernel.count ? rung_dims_constant(g->dims, attrs->kernel.value[axis - 2]) : x.extent[axis];
    spread.output.dim[axis - 2] = x.extent[axis];
  }
  const rung_value window = ones_of(g, x.type, x.rank, kernel);
  const rung_value share = rung_build_div(g, gy[0], window_counts(g, attrs, &x, window));
  const rung_value operands[] = {rung_build_reshape(g, share, yt.rank, flat), window};
  out_gx[0] = rung_build_reshape_like(g, rung_graph_op(g, &rung_op_conv_transpose, operands, 2, &spread), in[0]);
}

static const rung_test_case average_cases[] = {
    {"f32[2,3,7,8]", "kernel=[3,2], stride=[2,2], pad_before=[1,0], pad_after=[1,1]"},
    {"f32[2,3,7,8]", "kernel=[3,3], pad_before=[1,1], pad_after=[1,1], count_pad=true"},
    {"f32[1,2,12]", "kernel=[3], stride=[2], pad_before=[1], pad_after=[1], ceil=true, count_pad=true"},
    {"f32[2,3,5,4]", ""},
    {"f32[1,2,9]", "kernel=[2], dilation=[3]"},
    {"f32[0,3,7,8]", "kernel=[2,2]"},
    {"f16[1,3,6]", "kernel=[2]"},
    {0}};

const rung_op rung_op_average_pool = {
    .name = "average_pool",
    .doc = "the mean of every window over the spatial axes, padding left out unless count_pad",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_pool_attrs),
    .infer = infer_average,
    .role_dims = rung_role_elements,
    .reference = average_reference,
    .gradient = average_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = average_cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35}, /* a sum and a division */
};
