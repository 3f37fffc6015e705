/* SPDX-License-Identifier: MIT
 * deform_conv: conv over two axes whose kernel positions are shifted, place by place, by offset[batch, offset_groups *
 * positions * 2, places...] and weighted by mask[batch, offset_groups * positions, places...], as ONNX DeformConv. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_deform_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(stride), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "per spatial axis; empty: 1"},
    {FIELD(dilation), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "distance of kernel positions; empty: 1"},
    {FIELD(pad_before), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "zeros before each axis; empty: 0"},
    {FIELD(pad_after), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "zeros behind each axis; empty: 0"},
    {FIELD(groups), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "parts of channels and results"},
    {FIELD(offset_groups), .kind = RUNG_ATTR_I64, .text_default = "1",
     .doc = "parts of channels with shifts of their own"},
    {FIELD(bias), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "has an operand bias[out] before the mask"},
    {0}};
#undef FIELD

static void fill(rung_spatial *s, const rung_deform_attrs *attrs) {
  s->axes = 2;
  rung_spatial_fill(&attrs->stride, 2, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, 2, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, 2, 0, s->before);
  rung_spatial_fill(&attrs->pad_after, 2, 0, s->after);
}

static rung_status check(rung_infer *infer) {
  const rung_deform_attrs *attrs = infer->attrs;
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
    RUNG_TRY(rung_infer_rank(infer, i, i == 3 && attrs->bias ? 1 : 4));
  }
  RUNG_TRY(rung_spatial_check(infer, "stride", &attrs->stride, 2, 1));
  RUNG_TRY(rung_spatial_check(infer, "dilation", &attrs->dilation, 2, 1));
  RUNG_TRY(rung_spatial_check(infer, "pad_before", &attrs->pad_before, 2, 0));
  RUNG_TRY(rung_spatial_check(infer, "pad_after", &attrs->pad_after, 2, 0));
  int64_t out, channels;
  RUNG_TRY(rung_infer_constant(infer, infer->in[1].extent[0], "the first axis of w", &out));
  RUNG_TRY(rung_infer_constant(infer, infer->in[0].extent[1], "the channels of x", &channels));
  if (attrs->groups < 1 || out % attrs->groups || attrs->offset_groups < 1 || channels % attrs->offset_groups)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "channels and results do not split into these groups");
  if (infer->n_in > 4 && !attrs->bias)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "a fifth operand needs a bias before it");
  return rung_infer_extent(
      infer, 0, 1, rung_dims_mul(infer->dims, infer->in[1].extent[1], rung_dims_constant(infer->dims, attrs->groups)));
}

static rung_status infer(rung_infer *infer) {
  const rung_deform_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0], *w = &infer->in[1];
  rung_dims *dims = infer->dims;
  RUNG_TRY(check(infer));
  rung_spatial s;
  fill(&s, attrs);
  rung_dim extent[4] = {x->extent[0], w->extent[0]};
  for (int axis = 0; axis < 2; axis++) {
    extent[2 + axis] = rung_spatial_windows(dims, &s, axis, x->extent[2 + axis], w->extent[2 + axis], false);
    RUNG_TRY(rung_infer_dim(infer, extent[2 + axis]));
  }
  const rung_dim positions =
      rung_dims_mul(dims, rung_dims_product(dims, w->extent, 2, 4), rung_dims_constant(dims, attrs->offset_groups));
  const uint32_t mask = attrs->bias ? 4 : 3;
  for (uint32_t i = 2; i < infer->n_in; i++) {
    if (i == 3 && attrs->bias) {
      RUNG_TRY(rung_infer_extent(infer, i, 0, w->extent[0]));
      continue;
    }
    const rung_dim rows = i == mask ? positions : rung_dims_mul(dims, positions, rung_dims_constant(dims, 2));
    RUNG_TRY(rung_infer_extent(infer, i, 0, x->extent[0]));
    RUNG_TRY(rung_infer_extent(infer, i, 1, rows));
    for (int axis = 2; axis < 4; axis++) RUNG_TRY(rung_infer_extent(infer, i, axis, extent[axis]));
  }
  rung_infer_result(infer, 0, x->type, 4, extent);
  return RUNG_OK;
}

/* x between four places, zeros outside. */
static double sample(const rung_operand *x, int64_t channel, const double *at) {
  double sum = 0;
  if (!(fabs(at[0]) < 1e15 && fabs(at[1]) < 1e15)) return 0;
  for (int k = 0; k < 4; k++) {
    double weight = 1;
    int64_t offset = channel;
    bool inside = true;
    for (int axis = 0; axis < 2; axis++) {
      const bool second = axis ? k % 2 : k / 2;
      const double below = floor(at[axis]), rest = at[axis] - below;
      const int64_t index = (int64_t)below + second;
      inside = inside && index >= 0 && index < x->extent[2 + axis];
      offset += index * x->stride[2 + axis];
      weight *= second ? rest : 1 - rest;
    }
    if (inside) sum += weight * rung_load_f64(x, offset);
  }
  return sum;
}

static double compute(const rung_args *args, const rung_spatial *s, const rung_walk *place) {
  const rung_deform_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *w = &args->in[1], *offset = &args->in[2];
  const uint32_t mask_at = attrs->bias ? 4 : 3;
  const rung_operand *mask = args->n_in > mask_at ? &args->in[mask_at] : NULL;
  const int64_t n = place->index[0], o = place->index[1], channels = w->extent[1];
  const int64_t first = o / (w->extent[0] / attrs->groups) * channels;
  const int64_t positions = s->kernel[0] * s->kernel[1], share = x->extent[1] / attrs->offset_groups;
  double sum = attrs->bias && args->n_in > 3 ? rung_load_f64(&args->in[3], o * args->in[3].stride[0]) : 0;
  for (int64_t c = 0; c < channels; c++) {
    for (int64_t k = 0; k < positions; k++) {
      const int64_t position = (first + c) / share * positions + k, tap[2] = {k / s->kernel[1], k % s->kernel[1]};
      double at[2];
      for (int axis = 0; axis < 2; axis++) {
        const int64_t from[4] = {n, 2 * position + axis, place->index[2], place->index[3]};
        const int64_t whole =
            place->index[2 + axis] * s->stride[axis] + tap[axis] * s->dilation[axis] - s->before[axis];
        at[axis] = (double)whole + rung_load_f64(offset, rung_element_offset(offset, from));
      }
      double v = sample(x, n * x->stride[0] + (first + c) * x->stride[1], at);
      const int64_t of_mask[4] = {n, position, place->index[2], place->index[3]};
      const int64_t of_w[4] = {o, c, tap[0], tap[1]};
      if (mask) v *= rung_load_f64(mask, rung_element_offset(mask, of_mask));
      sum += v * rung_load_f64(w, rung_element_offset(w, of_w));
    }
  }
  return sum;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *w = &args->in[1], *y = &args->out[0];
  rung_spatial s;
  fill(&s, args->attrs);
  for (int axis = 0; axis < 2; axis++) s.kernel[axis] = w->extent[2 + axis];
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place))
    rung_store_f64(y, place.offset[0], compute(args, &s, &place));
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[1,2,5,6] f32[3,2,2,2] f32[1,8,4,5]", ""},
    {"f32[2,4,5,6] f32[4,2,3,3] f32[2,36,3,3] f32[4] f32[2,18,3,3]",
     "bias=true, groups=2, offset_groups=2, pad_before=[1,1], pad_after=[1,1], stride=[2,2]"},
    {"f32[1,2,5,6] f32[3,2,2,2] f32[1,8,3,4] f32[1,4,3,4]", "dilation=[2,2]"},
    {"f32[0,2,5,6] f32[3,2,2,2] f32[0,8,4,5]", ""},
    {0}};

const rung_op rung_op_deform_conv = {
    .name = "deform_conv",
    .doc = "convolution over two axes whose kernel positions are shifted and weighted place by place",
    .operands = (const char *const[]){"x", "w", "offset", "bias", "mask", NULL},
    .in_lo = 3,
    .in_hi = 5,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_deform_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "not yet",
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-35},
};
