/* SPDX-License-Identifier: MIT
 * conv_transpose: every element of x[batch, channels, spatial...] adds w[channels, out / groups, kernel...] times
 * itself to the result at place * stride + position * dilation - pad_before: the transpose of conv as a linear map, as
 * ONNX ConvTranspose. */
#include "ops/build.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_conv_transpose_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(stride), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "per spatial axis; empty: 1"},
    {FIELD(dilation), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "distance of kernel positions; empty: 1"},
    {FIELD(pad_before), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "cut off the result's begin; empty: 0"},
    {FIELD(pad_after), .kind = RUNG_ATTR_I64S, .text_default = "[]", .doc = "cut off the result's end; empty: 0"},
    {FIELD(groups), .kind = RUNG_ATTR_I64, .text_default = "1",
     .doc = "channels and results are cut into as many parts"},
    {FIELD(output), .kind = RUNG_ATTR_DIMS, .text_default = "[]",
     .doc = "extents of the result's spatial axes, zeros behind; empty: stride (extent - 1) + dilation (kernel - 1) + "
            "1 - pads"},
    {0}};
#undef FIELD

static void fill(rung_spatial *s, const rung_conv_transpose_attrs *attrs, int axes) {
  s->axes = axes;
  rung_spatial_fill(&attrs->stride, axes, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, axes, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, axes, 0, s->before);
  rung_spatial_fill(&attrs->pad_after, axes, 0, s->after);
}

static rung_status check(rung_infer *infer, const rung_conv_transpose_attrs *attrs) {
  const rung_value_type *x = &infer->in[0];
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
  }
  RUNG_TRY(rung_infer_ranks(infer, 0, 3, 2 + RUNG_SPATIAL));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  RUNG_TRY(rung_infer_extent(infer, 1, 0, x->extent[1]));
  const int axes = x->rank - 2;
  RUNG_TRY(rung_spatial_check(infer, "stride", &attrs->stride, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "dilation", &attrs->dilation, axes, 1));
  RUNG_TRY(rung_spatial_check(infer, "pad_before", &attrs->pad_before, axes, 0));
  RUNG_TRY(rung_spatial_check(infer, "pad_after", &attrs->pad_after, axes, 0));
  if (attrs->output.count && attrs->output.count != axes) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "output has %d extents for %d spatial axes",
                             attrs->output.count, axes);
  }
  int64_t channels;
  RUNG_TRY(rung_infer_constant(infer, infer->in[1].extent[0], "the first axis of w", &channels));
  if (attrs->groups >= 1 && channels % attrs->groups == 0) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "%lld channels do not split into %lld groups",
                           (long long)channels, (long long)attrs->groups);
}

static rung_status infer(rung_infer *infer) {
  const rung_conv_transpose_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0], *w = &infer->in[1];
  RUNG_TRY(check(infer, attrs));
  rung_dims *dims = infer->dims;
  rung_spatial s;
  fill(&s, attrs, x->rank - 2);
  rung_dim extent[RUNG_MAX_RANK] = {x->extent[0],
                                    rung_dims_mul(dims, w->extent[1], rung_dims_constant(dims, attrs->groups))};
  for (int axis = 0; axis < s.axes; axis++) {
    const rung_dim kernel = w->extent[2 + axis];
    /* stride (extent - 1) + dilation (kernel - 1) + 1 - pads, the constants together */
    const int64_t rest = 1 - s.dilation[axis] - s.before[axis] - s.after[axis] - s.stride[axis];
    const rung_dim spread = rung_dims_mul(dims, x->extent[2 + axis], rung_dims_constant(dims, s.stride[axis]));
    const rung_dim reach = rung_dims_mul(dims, kernel, rung_dims_constant(dims, s.dilation[axis]));
    const rung_dim whole = rung_dims_add(dims, rung_dims_add(dims, spread, reach), rung_dims_constant(dims, rest));
    extent[2 + axis] = attrs->output.count ? attrs->output.dim[axis]
                                           : rung_dims_combine(dims, RUNG_DIM_MAX, whole, rung_dims_constant(dims, 0));
    RUNG_TRY(rung_infer_dim(infer, extent[2 + axis]));
  }
  if (infer->n_in == 3) {
    RUNG_TRY(rung_infer_rank(infer, 2, 1));
    RUNG_TRY(rung_infer_extent(infer, 2, 0, extent[1]));
  }
  rung_infer_result(infer, 0, x->type, x->rank, extent);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)attrs;
  out_role[0] = rung_dims_mul(dims, out->extent[0], rung_dims_product(dims, out->extent, 2, out->rank));
  out_role[1] = out->extent[1];
  out_role[2] = rung_dims_mul(dims, in[0].extent[1], rung_dims_product(dims, in[1].extent, 2, in[1].rank));
}

/* The element of x that reaches place `at` of the result through kernel position `k`; false where there is none. */
static bool source(const rung_spatial *s, const int64_t *at, const int64_t *k, const int64_t *extent, int64_t *out) {
  for (int axis = 0; axis < s->axes; axis++) {
    const int64_t distance = at[axis] + s->before[axis] - k[axis] * s->dilation[axis];
    if (distance < 0 || distance % s->stride[axis] || distance / s->stride[axis] >= extent[axis]) return false;
    out[axis] = distance / s->stride[axis];
  }
  return true;
}

static rung_status reference(const rung_args *args) {
  const rung_conv_transpose_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *w = &args->in[1], *y = &args->out[0];
  const int64_t channels = x->extent[1] / attrs->groups, results = w->extent[1];
  rung_spatial s;
  fill(&s, attrs, x->rank - 2);
  for (int axis = 0; axis < s.axes; axis++) s.kernel[axis] = w->extent[2 + axis];
  rung_walk place, k;
  for (rung_walk_begin(&place, y->rank, y->extent, 1, &y); place.live; rung_walk_next(&place)) {
    const int64_t group = place.index[1] / results;
    int64_t at_x[RUNG_MAX_RANK] = {place.index[0]}, at_w[RUNG_MAX_RANK] = {0, place.index[1] % results};
    double sum = 0;
    for (int64_t c = group * channels; c < (group + 1) * channels; c++) {
      at_x[1] = at_w[0] = c;
      for (rung_walk_begin(&k, s.axes, s.kernel, 0, NULL); k.live; rung_walk_next(&k)) {
        if (!source(&s, place.index + 2, k.index, x->extent + 2, at_x + 2)) continue;
        for (int axis = 0; axis < s.axes; axis++) at_w[2 + axis] = k.index[axis];
        sum += rung_load_f64(x, rung_element_offset(x, at_x)) * rung_load_f64(w, rung_element_offset(w, at_w));
      }
    }
    if (args->n_in == 3) sum += rung_load_f64(&args->in[2], place.index[1] * args->in[2].stride[0]);
    rung_store_f64(y, place.offset[0], sum);
  }
  return RUNG_OK;
}

/* The transpose of a transpose: conv of gy, cut where `output` had added places. */
static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_conv_transpose_attrs *attrs = node->attrs;
  const rung_value_type x = *rung_build_type(g, in[0]);
  const rung_conv_attrs back = {.stride = attrs->stride,
                                .dilation = attrs->dilation,
                                .pad_before = attrs->pad_before,
                                .pad_after = attrs->pad_after,
                                .groups = attrs->groups};
  out_gx[0] = rung_graph_op(g, &rung_op_conv, (rung_value[]){gy[0], in[1]}, 2, &back);
  for (int axis = 2; axis < x.rank; axis++) {
    out_gx[0] = rung_build_slice(g, out_gx[0], axis, rung_dims_constant(g->dims, 0), x.extent[axis]);
  }
  out_gx[1] = rung_build_conv_weight_gradient(g, &back, gy[0], in[1], in[0]);
  if (node->n_in == 3) out_gx[2] = rung_build_bias_gradient(g, gy[0]);
}

static const rung_test_case cases[] = {
    {"f32[2,3,4,5] f32[3,4,3,3] f32[4]", "stride=[2,2], pad_before=[1,1], pad_after=[1,0]"},
    {"f32[1,4,6] f32[4,3,4]", "stride=[2], dilation=[2], groups=2"},
    {"f32[1,2,3,4,2] f32[2,1,2,2,2]", ""},
    {"f32[1,2,5] f32[2,2,3]", "stride=[3], output=[17]"},
    {"f32[1,40,5,6] f32[40,5,3,3] f32[5]", "stride=[2,2], pad_before=[1,1], pad_after=[1,1], output=[10,12]"},
    {"f32[1,3,4,21] f32[3,26,2,5]", "stride=[1,3], dilation=[3,2]"},
    {"f32[0,3,4] f32[3,4,3]", ""},
    {"f32[1,3,0] f32[3,4,3]", "stride=[2]"},
    {0}};

const rung_op rung_op_conv_transpose = {
    .name = "conv_transpose",
    .doc =
        "transposed convolution: spreads every element of x by a kernel, with groups, strides, dilations and padding",
    .operands = (const char *const[]){"x", "w", "bias", NULL},
    .in_lo = 2,
    .in_hi = 3,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_conv_transpose_attrs),
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35}, /* a sum of products, as matmul */
};
