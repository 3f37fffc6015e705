/* SPDX-License-Identifier: MIT
 * rms_norm (Zhang, Sennrich: "Root mean square layer normalization", 2019) and layer_norm (Ba, Kiros, Hinton: "Layer
 * normalization", 2016) over the last axis. */
#include <math.h>
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_classes(infer, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 1));
  for (uint32_t i = 1; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_rank(infer, i, 1));
    RUNG_TRY(rung_infer_extent(infer, i, 0, x->extent[x->rank - 1]));
  }
  infer->out[0] = rung_value_type_like(x, x->type);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_product(dims, in->extent, 0, in->rank - 1);
  out_role[1] = in->extent[in->rank - 1];
}

static rung_status run(const rung_args *args, bool centred) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const rung_operand *weight = args->n_in > 1 ? &args->in[1] : NULL, *bias = args->n_in > 2 ? &args->in[2] : NULL;
  const double epsilon = ((const rung_norm_attrs *)args->attrs)->epsilon;
  rung_lanes l;
  for (rung_lanes_begin(&l, x->rank - 1, x, y); l.walk.live; rung_lanes_next(&l)) {
    const int64_t from = l.walk.offset[0], to = l.walk.offset[1], n = l.extent[0];
    double mean = 0, square = 0;
    for (int64_t i = 0; centred && i < n; i++) mean += rung_load_f64(x, from + i * l.stride[0]) / (double)n;
    for (int64_t i = 0; i < n; i++) {
      const double v = rung_load_f64(x, from + i * l.stride[0]) - mean;
      square += v * v;
    }
    const double scale = 1 / sqrt(square / (double)n + epsilon);
    for (int64_t i = 0; i < n; i++) {
      double v = (rung_load_f64(x, from + i * l.stride[0]) - mean) * scale;
      if (weight) v *= rung_load_f64(weight, i * weight->stride[0]);
      if (bias) v += rung_load_f64(bias, i * bias->stride[0]);
      rung_store_f64(y, to + i * l.stride[1], v);
    }
  }
  return RUNG_OK;
}
static rung_status reference_rms_norm(const rung_args *args) { return run(args, false); }
static rung_status reference_layer_norm(const rung_args *args) { return run(args, true); }

/* ---- graphs. Narrow types are widened first: squares of f16 overflow. */
typedef struct parts {
  rung_type type;    /* computed in */
  rung_value scale;  /* 1 / sqrt(mean of squares + epsilon), last axis kept */
  rung_value normal; /* what the weight multiplies */
} parts;

static rung_value mean_last(rung_graph *g, rung_value x) {
  const int64_t axis[1] = {rung_build_type(g, x)->rank - 1};
  return rung_build_reduce(g, &rung_op_reduce_mean, x, axis, 1, true);
}
static parts normalise(rung_graph *g, const rung_node *node, rung_value x, bool centred) {
  const rung_type type = rung_build_type(g, x)->type == RUNG_TYPE_F64 ? RUNG_TYPE_F64 : RUNG_TYPE_F32;
  rung_value wide = rung_build_cast(g, x, type);
  if (centred) wide = rung_build_sub(g, wide, mean_last(g, wide));
  const rung_value square = mean_last(g, rung_build_mul(g, wide, wide));
  const rung_value epsilon = rung_build_scalar(g, type, ((const rung_norm_attrs *)node->attrs)->epsilon);
  const rung_value scale = rung_build_rsqrt(g, rung_build_add(g, square, epsilon));
  return (parts){type, scale, rung_build_mul(g, wide, scale)};
}

static void smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out, bool centred) {
  const parts p = normalise(g, node, in[0], centred);
  rung_value y = p.normal;
  if (node->n_in > 1) y = rung_build_mul(g, y, rung_build_cast(g, in[1], p.type));
  if (node->n_in > 2) y = rung_build_add(g, y, rung_build_cast(g, in[2], p.type));
  out[0] = rung_build_cast(g, y, rung_build_type(g, in[0])->type);
}
static void decompose_rms_norm(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  smaller(g, node, in, out, false);
}
static void decompose_layer_norm(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  smaller(g, node, in, out, true);
}

/* With n the normalised rows and h = gy weight: gx = scale (h - n mean(h n)), less scale mean(h) where centred. */
static void differentiate(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *gy,
                          rung_value *out_gx, bool centred) {
  const parts p = normalise(g, node, in[0], centred);
  const rung_value wide = rung_build_cast(g, gy[0], p.type);
  rung_value h = wide;
  if (node->n_in > 1) h = rung_build_mul(g, h, rung_build_cast(g, in[1], p.type));
  rung_value gx = rung_build_sub(g, h, rung_build_mul(g, p.normal, mean_last(g, rung_build_mul(g, h, p.normal))));
  if (centred) gx = rung_build_sub(g, gx, mean_last(g, h));
  out_gx[0] = rung_build_cast(g, rung_build_mul(g, p.scale, gx), rung_build_type(g, in[0])->type);
  if (node->n_in > 1) {
    const rung_value gw = rung_build_unbroadcast(g, rung_build_mul(g, wide, p.normal), in[1]);
    out_gx[1] = rung_build_cast(g, gw, rung_build_type(g, in[1])->type);
  }
  if (node->n_in > 2)
    out_gx[2] = rung_build_cast(g, rung_build_unbroadcast(g, wide, in[2]), rung_build_type(g, in[2])->type);
}
static void gradient_rms_norm(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                              const rung_value *gy, rung_value *out_gx) {
  (void)y;
  differentiate(g, node, in, gy, out_gx, false);
}
static void gradient_layer_norm(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                                const rung_value *gy, rung_value *out_gx) {
  (void)y;
  differentiate(g, node, in, gy, out_gx, true);
}

static const char *const operands_rms_norm[] = {"x", "weight", NULL};
static const char *const operands_layer_norm[] = {"x", "weight", "bias", NULL};
static const char *const roles[] = {"rows", "columns", NULL};
static const rung_attr attrs[] = {
    {"epsilon", RUNG_ATTR_F64, offsetof(rung_norm_attrs, epsilon), "1e-05", NULL, "added to the mean of squares"},
    {NULL, 0, 0, NULL, NULL, NULL}};
#define CASES                                                                                               \
  {"f32[5,67] f32[67]", ""}, {"f32[5,67]", "epsilon=1e-06"}, {"f32[2,3,16] f32[16]", "epsilon=0.001"},      \
      {"f32[17] f32[17]", ""}, {"f32[0,3] f32[3]", ""}, {"f64[3,9] f64[9]", ""}, {"f16[4,33] f32[33]", ""}, \
      {"bf16[2,16] bf16[16]", ""}, {                                                                        \
    "f32[3,1] f32[1]", ""                                                                                   \
  }
static const rung_test_case tests_rms_norm[] = {CASES, {NULL, NULL}};
static const rung_test_case tests_layer_norm[] = {
    CASES, {"f32[5,67] f32[67] f32[67]", ""}, {"f64[2,9] f64[9] f64[9]", ""}, {NULL, NULL}};

#define NORM(name_, most, text)                                                   \
  const rung_op rung_op_##name_ = {.name = #name_,                                \
                                   .doc = text,                                   \
                                   .operands = operands_##name_,                  \
                                   .in_lo = 1,                                    \
                                   .in_hi = most,                                 \
                                   .results = 1,                                  \
                                   .flags = RUNG_OP_ROW_LOCAL | RUNG_OP_IN_PLACE, \
                                   .attrs = attrs,                                \
                                   .attrs_bytes = sizeof(rung_norm_attrs),        \
                                   .roles = roles,                                \
                                   .infer = infer,                                \
                                   .role_dims = role_dims,                        \
                                   .reference = reference_##name_,                \
                                   .gradient = gradient_##name_,                  \
                                   .decompose = decompose_##name_,                \
                                   .test_lo = -4,                                 \
                                   .test_hi = 4,                                  \
                                   .tests = tests_##name_,                        \
                                   .tolerance = {0x1p-19, 0x1p-20}};
NORM(rms_norm, 2, "x / sqrt(mean(x^2) + epsilon), times weight, over the last axis")
NORM(layer_norm, 3, "(x - mean) / sqrt(variance + epsilon), times weight, plus bias, over the last axis")
