/* SPDX-License-Identifier: MIT
 * col2im: what windows saw, put back: x[batch, channels * positions, windows] is added to [batch, channels, output...]
 * where the windows lay, as ONNX Col2Im. */
#include "ops/attrs.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_col2im_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(output), .kind = RUNG_ATTR_DIMS, .doc = "extents of the result's spatial axes"},
    {FIELD(kernel), .kind = RUNG_ATTR_I64S, .doc = "extents of the window"},
    {FIELD(stride), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "per spatial axis; empty: 1"},
    {FIELD(dilation), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "distance of window positions; empty: 1"},
    {FIELD(pad_before), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "before each axis; empty: 0"},
    {FIELD(pad_after), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "behind each axis; empty: 0"},
    {0}};
#undef FIELD

static void fill(rung_spatial *s, const rung_col2im_attrs *attrs) {
  s->axes = attrs->kernel.count;
  rung_spatial_fill(&attrs->kernel, s->axes, 1, s->kernel);
  rung_spatial_fill(&attrs->stride, s->axes, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, s->axes, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, s->axes, 0, s->before);
  rung_spatial_fill(&attrs->pad_after, s->axes, 0, s->after);
}

static rung_status infer(rung_infer *infer) {
  const rung_col2im_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  rung_dims *dims = infer->dims;
  const int axes = attrs->kernel.count;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 0, 3));
  if (axes < 1 || axes > RUNG_SPATIAL || attrs->output.count != axes)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "kernel and output must have one to three extents alike");
  RUNG_TRY(rung_spatial_check(infer, "kernel", &attrs->kernel, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "stride", &attrs->stride, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "dilation", &attrs->dilation, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "pad_before", &attrs->pad_before, axes, 0));
  RUNG_TRY(rung_spatial_check(infer, "pad_after", &attrs->pad_after, axes, 0));
  rung_spatial s;
  fill(&s, attrs);
  rung_dim windows = rung_one(dims), positions = rung_one(dims);
  rung_dim extent[RUNG_MAX_RANK] = {x->extent[0]};
  for (int axis = 0; axis < axes; axis++) {
    const rung_dim kernel = rung_dims_constant(dims, s.kernel[axis]);
    positions = rung_dims_mul(dims, positions, kernel);
    extent[2 + axis] = attrs->output.dim[axis];
    windows = rung_dims_mul(dims, windows, rung_spatial_windows(dims, &s, axis, extent[2 + axis], kernel, false));
  }
  extent[1] = rung_dims_div(dims, x->extent[1], positions);
  RUNG_TRY(rung_infer_dim(infer, extent[1]));
  RUNG_TRY(rung_infer_extent(infer, 0, 1, rung_dims_mul(dims, extent[1], positions)));
  RUNG_TRY(rung_infer_extent(infer, 0, 2, windows));
  rung_infer_result(infer, 0, x->type, 2 + axes, extent);
  return RUNG_OK;
}

static int64_t windows_along(const rung_spatial *s, int axis, int64_t extent) {
  const int64_t room = extent + s->before[axis] + s->after[axis] - s->dilation[axis] * (s->kernel[axis] - 1) - 1;
  return room < 0 ? 0 : room / s->stride[axis] + 1;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_spatial s;
  fill(&s, args->attrs);
  rung_walk place, k;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place)) {
    double sum = 0;
    int64_t position = 0, positions = 1;
    for (int axis = 0; axis < s.axes; axis++) positions *= s.kernel[axis];
    for (rung_walk_begin(&k, s.axes, s.kernel, 0, NULL); k.live; rung_walk_next(&k), position++) {
      int64_t window = 0;
      bool there = true;
      for (int axis = 0; axis < s.axes; axis++) {
        const int64_t n = windows_along(&s, axis, y->extent[2 + axis]);
        const int64_t from = place.index[2 + axis] + s.before[axis] - k.index[axis] * s.dilation[axis];
        there = there && from >= 0 && from % s.stride[axis] == 0 && from / s.stride[axis] < n;
        window = window * n + from / s.stride[axis];
      }
      const int64_t at[3] = {place.index[0], place.index[1] * positions + position, window};
      if (there) sum += rung_load_f64(x, rung_element_offset(x, at));
    }
    rung_store_f64(y, place.offset[0], sum);
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"f32[1,5,5]", "output=[5,5], kernel=[1,5]"},
                                       {"f32[2,12,4]", "output=[4,5], kernel=[2,2], stride=[2,2], pad_after=[0,0]"},
                                       {"f32[1,9,16]", "output=[4,4], kernel=[3,3], pad_before=[1,1], pad_after=[1,1]"},
                                       {"f32[1,4,3]", "output=[6], kernel=[2], dilation=[3]"},
                                       {"f32[1,8,8]", "output=[3,3,3], kernel=[2,2,2]"},
                                       {"f32[0,4,4]", "output=[3,3], kernel=[2,2]"},
                                       {0}};

const rung_op rung_op_col2im = {
    .name = "col2im",
    .doc = "columns of windows added up where the windows lay",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_col2im_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "not yet: gathers windows",
    .test_lo = -4,
    .test_hi = 4,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35},
};
