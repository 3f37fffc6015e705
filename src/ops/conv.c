/* SPDX-License-Identifier: MIT
 * conv: x[batch, channels, spatial...] with w[out, channels / groups, kernel...] and an optional bias[out], as ONNX
 * Conv: a sum over channels of the group and kernel positions of x at place * stride + position * dilation -
 * pad_before. */
#include "ops/build.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_conv_attrs, field)
const rung_attr rung_conv_attributes[] = {
    {FIELD(stride), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "per spatial axis; empty: 1"},
    {FIELD(dilation), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "distance of kernel positions; empty: 1"},
    {FIELD(pad_before), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "zeros before each axis; empty: 0"},
    {FIELD(pad_after), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "zeros behind each axis; empty: 0"},
    {FIELD(groups), .kind = RUNG_ATTR_I64, .text_default = "1",
     .doc = "channels and results are cut into as many parts"},
    {0}};
#undef FIELD

void rung_conv_fill(rung_spatial *s, const rung_conv_attrs *attrs, int axes) {
  s->axes = axes;
  rung_spatial_fill(&attrs->stride, axes, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, axes, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, axes, 0, s->before);
  rung_spatial_fill(&attrs->pad_after, axes, 0, s->after);
}

static rung_status check_operands(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_NUMBER));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_NUMBER));
  RUNG_TRY(rung_infer_ranks(infer, 0, 3, 2 + RUNG_SPATIAL));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  const bool integer = rung_type_is_integer(x->type);
  if (integer != rung_type_is_integer(infer->in[1].type)) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "x and w must both be floats or both integers");
  }
  if (!integer) RUNG_TRY(rung_infer_same_type(infer, 1, 0));
  if (infer->n_in < 3) return RUNG_OK;
  RUNG_TRY(rung_infer_class(infer, 2, integer ? RUNG_TAKES_INT : RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 2, 1));
  if (integer && infer->in[2].type != RUNG_TYPE_I32) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "the bias of integers must be i32");
  }
  return integer ? RUNG_OK : rung_infer_same_type(infer, 2, 0);
}

rung_status rung_conv_extents(rung_infer *infer, rung_dim *out_extent) {
  const rung_conv_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0], *w = &infer->in[1];
  const int axes = x->rank - 2;
  RUNG_TRY(rung_spatial_check(infer, "stride", &attrs->stride, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "dilation", &attrs->dilation, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "pad_before", &attrs->pad_before, axes, 0));
  RUNG_TRY(rung_spatial_check(infer, "pad_after", &attrs->pad_after, axes, 0));
  int64_t out;
  RUNG_TRY(rung_infer_constant(infer, w->extent[0], "the first axis of w", &out));
  if (attrs->groups < 1 || out % attrs->groups) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "%lld results do not split into %lld groups", (long long)out,
                             (long long)attrs->groups);
  }
  RUNG_TRY(rung_infer_extent(infer, 0, 1,
                             rung_dims_mul(infer->dims, w->extent[1], rung_dims_constant(infer->dims, attrs->groups))));
  rung_spatial s;
  rung_conv_fill(&s, attrs, axes);
  out_extent[0] = x->extent[0];
  out_extent[1] = w->extent[0];
  for (int axis = 0; axis < axes; axis++) {
    out_extent[2 + axis] = rung_spatial_windows(infer->dims, &s, axis, x->extent[2 + axis], w->extent[2 + axis], false);
    RUNG_TRY(rung_infer_dim(infer, out_extent[2 + axis]));
  }
  return RUNG_OK;
}

/* Integers give i32, which wraps. */
static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  rung_dim extent[RUNG_MAX_RANK];
  RUNG_TRY(check_operands(infer));
  RUNG_TRY(rung_conv_extents(infer, extent));
  if (infer->n_in == 3) RUNG_TRY(rung_infer_extent(infer, 2, 0, infer->in[1].extent[0]));
  rung_infer_result(infer, 0, rung_type_is_integer(x->type) ? RUNG_TYPE_I32 : x->type, x->rank, extent);
  return RUNG_OK;
}

/* As the matrix product that it is: places by results by channels of a group times kernel positions. */
void rung_conv_roles(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                     const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)attrs;
  out_role[0] = rung_dims_mul(dims, out->extent[0], rung_dims_product(dims, out->extent, 2, out->rank));
  out_role[1] = out->extent[1];
  out_role[2] = rung_dims_product(dims, in[1].extent, 1, in[1].rank);
}

/* One element of the result. */
static void compute(const rung_args *args, const rung_spatial *s, const rung_walk *place) {
  const rung_operand *x = &args->in[0], *w = &args->in[1], *y = &args->out[0];
  const int64_t channels = w->extent[1], o = place->index[1];
  const int64_t first = o / (w->extent[0] / ((const rung_conv_attrs *)args->attrs)->groups) * channels;
  const bool integer = rung_operand_is_integer(y);
  int64_t at_x[RUNG_MAX_RANK] = {place->index[0]}, at_w[RUNG_MAX_RANK] = {o};
  double sum = 0;
  uint64_t wrapping = 0;
  rung_window window;
  for (int64_t c = 0; c < channels; c++) {
    at_x[1] = first + c;
    at_w[1] = c;
    for (rung_window_begin(&window, s, place->index + 2, x->extent + 2); window.walk.live;
         rung_window_next(&window, s, place->index + 2, x->extent + 2)) {
      if (!window.inside) continue;
      for (int axis = 0; axis < s->axes; axis++) at_x[2 + axis] = window.at[axis];
      for (int axis = 0; axis < s->axes; axis++) at_w[2 + axis] = window.walk.index[axis];
      const int64_t from_x = rung_element_offset(x, at_x), from_w = rung_element_offset(w, at_w);
      if (integer) {
        wrapping += (uint64_t)rung_load_i64(x, from_x) * (uint64_t)rung_load_i64(w, from_w);
      } else {
        sum += rung_load_f64(x, from_x) * rung_load_f64(w, from_w);
      }
    }
  }
  const rung_operand *bias = args->n_in == 3 ? &args->in[2] : NULL;
  if (integer) {
    if (bias) wrapping += (uint64_t)rung_load_i64(bias, o * bias->stride[0]);
    rung_store_i64(y, place->offset[0], (int64_t)wrapping);
  } else {
    rung_store_f64(y, place->offset[0], bias ? sum + rung_load_f64(bias, o * bias->stride[0]) : sum);
  }
}

static rung_status reference(const rung_args *args) {
  const rung_operand *w = &args->in[1], *y = &args->out[0];
  rung_spatial s;
  rung_conv_fill(&s, args->attrs, y->rank - 2);
  for (int axis = 0; axis < s.axes; axis++) s.kernel[axis] = w->extent[2 + axis];
  rung_walk place;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place))
    compute(args, &s, &place);
  return RUNG_OK;
}

/* Where y may have no place along an axis, the convolution for the gradient of w must still have room for the kernel.
 */
static rung_i64_list roomy(const rung_graph *g, const rung_conv_attrs *attrs, const rung_value_type *w,
                           const rung_value_type *gy) {
  rung_i64_list after = {.count = gy->rank - 2};
  int64_t dilation[RUNG_SPATIAL], kernel;
  rung_spatial_fill(&attrs->pad_after, after.count, 0, after.value);
  rung_spatial_fill(&attrs->dilation, after.count, 1, dilation);
  for (int axis = 0; axis < after.count; axis++) {
    const bool some = g->dims->node[gy->extent[2 + axis].id].lo >= 1;
    if (some || !rung_dims_is_constant(g->dims, w->extent[2 + axis], &kernel)) continue;
    after.value[axis] += dilation[axis] * kernel;
  }
  return after;
}

/* The gradient of w is a convolution too: of x with gy, batch and channels having changed places, stride and dilation
 * as well. [N, G C, ..] becomes [C, G N, ..] and gy [G O, N, ..]; the result [C, G O, kernel.. or more] is cut and
 * turned. */
rung_value rung_build_conv_weight_gradient(rung_graph *g, const rung_conv_attrs *attrs, rung_value x, rung_value w,
                                           rung_value gy) {
  const rung_value_type xt = *rung_build_type(g, x), wt = *rung_build_type(g, w), yt = *rung_build_type(g, gy);
  rung_dim extent[RUNG_MAX_RANK + 1] = {xt.extent[0], rung_dims_constant(g->dims, attrs->groups), wt.extent[1]};
  int64_t turn[RUNG_MAX_RANK] = {2, 1, 0}, swap[RUNG_MAX_RANK] = {1, 0};
  for (int i = 2; i < xt.rank; i++) extent[i + 1] = xt.extent[i], turn[i + 1] = i + 1, swap[i] = i;
  rung_value by_channel = rung_build_transpose(g, rung_build_reshape(g, x, xt.rank + 1, extent), turn);
  rung_dim flat[RUNG_MAX_RANK] = {wt.extent[1], rung_dims_mul(g->dims, extent[1], xt.extent[0])};
  for (int i = 2; i < xt.rank; i++) flat[i] = xt.extent[i];
  by_channel = rung_build_reshape(g, by_channel, xt.rank, flat);
  rung_conv_attrs other = *attrs;
  other.stride = attrs->dilation;
  other.dilation = attrs->stride;
  other.pad_after = roomy(g, attrs, &wt, &yt);
  const rung_value operands[] = {by_channel, rung_build_transpose(g, gy, swap)};
  rung_value gw = rung_graph_op(g, &rung_op_conv, operands, 2, &other);
  for (int i = 2; i < xt.rank; i++) gw = rung_build_slice(g, gw, i, rung_dims_constant(g->dims, 0), wt.extent[i]);
  return rung_build_transpose(g, gw, swap);
}

rung_value rung_build_bias_gradient(rung_graph *g, rung_value gy) {
  const int rank = rung_build_type(g, gy)->rank;
  int64_t axes[RUNG_MAX_RANK] = {0};
  for (int axis = 2; axis < rank; axis++) axes[axis - 1] = axis;
  return rung_build_reduce(g, &rung_op_reduce_sum, gy, axes, rank - 1, false);
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_conv_attrs *attrs = node->attrs;
  const rung_value_type x = *rung_build_type(g, in[0]);
  if (!rung_type_is_float(x.type)) return;
  rung_conv_transpose_attrs back = {.stride = attrs->stride,
                                    .dilation = attrs->dilation,
                                    .pad_before = attrs->pad_before,
                                    .pad_after = attrs->pad_after,
                                    .groups = attrs->groups,
                                    .output = {.count = x.rank - 2}};
  for (int axis = 0; axis < x.rank - 2; axis++) back.output.dim[axis] = x.extent[2 + axis];
  out_gx[0] = rung_graph_op(g, &rung_op_conv_transpose, (rung_value[]){gy[0], in[1]}, 2, &back);
  out_gx[1] = rung_build_conv_weight_gradient(g, attrs, in[0], in[1], gy[0]);
  if (node->n_in == 3) out_gx[2] = rung_build_bias_gradient(g, gy[0]);
}

static const rung_test_case cases[] = {
    {"f32[2,3,7,8] f32[4,3,3,3] f32[4]", "pad_before=[1,1], pad_after=[1,1]"},
    {"f32[2,4,9,7] f32[6,2,3,2]", "stride=[2,1], dilation=[1,2], pad_before=[0,1], groups=2"},
    {"f32[1,5,11] f32[5,1,3]", "stride=[3], pad_before=[2], pad_after=[1], groups=5"},
    {"f32[1,2,4,5,3] f32[3,2,2,2,2]", "dilation=[2,1,1]"},
    {"f32[0,3,7,8] f32[4,3,3,3]", ""},
    {"f32[1,12,5,9] f32[26,12,1,1] f32[26]", ""},
    {"f32[1,40,6,7] f32[14,40,3,3]", "pad_before=[1,1], pad_after=[1,1], stride=[2,2]"},
    {"f32[1,70,2] f32[19,70,3] f32[19]", "pad_before=[1], pad_after=[1]"},
    {"f32[2,3,20,70] f32[3,1,3,3] f32[3]", "groups=3, pad_before=[1,1], pad_after=[1,1]"},
    {"f32[1,4,9,40] f32[8,1,3,5]", "groups=4, stride=[2,3], dilation=[2,1], pad_before=[2,4]"},
    {"f32[1,70,9,40] f32[14,35,3,3]", "groups=2, pad_before=[1,1], pad_after=[1,1]"},
    {"f32[2,3,19,21] f32[5,3,7,5] f32[5]", "stride=[3,2], dilation=[2,3], pad_before=[5,6], pad_after=[4,3]"},
    {"f32[2,3,0,8] f32[4,3,3,3]", "pad_before=[1,1], pad_after=[1,1]"},
    {"f32[1,2,2,2] f32[1,2,3,3]", ""},
    {"f16[1,8,6] f16[8,8,3]", ""},
    {"i8[1,4,6,6] i8[3,4,3,3] i32[3]{-1000,1000}", ""},
    {"u8[1,4,6]{0,255} i8[3,4,3]{-127,127}", ""},
    {0}};

const rung_op rung_op_conv = {
    .name = "conv",
    .doc = "convolution over one to three spatial axes, with groups, strides, dilations and padding",
    .operands = (const char *const[]){"x", "w", "bias", NULL},
    .in_lo = 2,
    .in_hi = 3,
    .results = 1,
    .attrs = rung_conv_attributes,
    .attrs_bytes = sizeof(rung_conv_attrs),
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .infer = infer,
    .role_dims = rung_conv_roles,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35}, /* a sum of products, as matmul */
};
