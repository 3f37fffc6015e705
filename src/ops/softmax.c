/* SPDX-License-Identifier: MIT
 * softmax, log_softmax along an axis, shifted by the largest element. A row of minus infinities is NaN, as the
 * definition says (attention, where such a row means "sees nothing", gives zeros). */
#include <math.h>
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  int axis;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_axis(infer, ((const rung_axis_attrs *)infer->attrs)->axis, infer->in[0].rank, &axis));
  infer->out[0] = rung_value_type_like(&infer->in[0], infer->in[0].type);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out;
  const int along = rung_axis_of(((const rung_axis_attrs *)attrs)->axis, in->rank);
  out_role[0] = rung_dims_mul(dims, rung_dims_product(dims, in->extent, 0, along),
                              rung_dims_product(dims, in->extent, along + 1, in->rank));
  out_role[1] = in->extent[along];
}

static rung_status run(const rung_args *args, bool logarithm) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const int axis = rung_axis_of(((const rung_axis_attrs *)args->attrs)->axis, x->rank);
  rung_lanes l;
  for (rung_lanes_begin(&l, axis, x, y); l.walk.live; rung_lanes_next(&l)) {
    const int64_t from = l.walk.offset[0], to = l.walk.offset[1], n = l.extent[0];
    double top = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < n; i++) {
      const double v = rung_load_f64(x, from + i * l.stride[0]);
      top = v > top || v != v ? v : top;
    }
    for (int64_t i = 0; i < n; i++) sum += exp(rung_load_f64(x, from + i * l.stride[0]) - top);
    for (int64_t i = 0; i < n; i++) {
      const double v = rung_load_f64(x, from + i * l.stride[0]) - top;
      rung_store_f64(y, to + i * l.stride[1], logarithm ? v - log(sum) : exp(v) / sum);
    }
  }
  return RUNG_OK;
}
static rung_status reference_softmax(const rung_args *args) { return run(args, false); }
static rung_status reference_log_softmax(const rung_args *args) { return run(args, true); }

static int axis_of(rung_graph *g, const rung_node *node, rung_value x) {
  return rung_axis_of(((const rung_axis_attrs *)node->attrs)->axis, rung_build_type(g, x)->rank);
}

/* y (gy - sum(gy y)) */
static void gradient_softmax(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                             const rung_value *gy, rung_value *out_gx) {
  const rung_value sum = rung_build_sum(g, rung_build_mul(g, gy[0], y[0]), axis_of(g, node, in[0]), true);
  out_gx[0] = rung_build_mul(g, y[0], rung_build_sub(g, gy[0], sum));
}
/* gy - exp(y) sum(gy) */
static void gradient_log_softmax(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                                 const rung_value *gy, rung_value *out_gx) {
  const rung_value sum = rung_build_sum(g, gy[0], axis_of(g, node, in[0]), true);
  out_gx[0] = rung_build_sub(g, gy[0], rung_build_mul(g, rung_build_exp(g, y[0]), sum));
}

static rung_value shifted(rung_graph *g, const rung_node *node, rung_value x) {
  const int64_t axis[1] = {axis_of(g, node, x)};
  return rung_build_sub(g, x, rung_build_reduce(g, &rung_op_reduce_max, x, axis, 1, true));
}
static void decompose_softmax(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_value e = rung_build_exp(g, shifted(g, node, in[0]));
  out[0] = rung_build_div(g, e, rung_build_sum(g, e, axis_of(g, node, in[0]), true));
}
static void decompose_log_softmax(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_value s = shifted(g, node, in[0]);
  out[0] =
      rung_build_sub(g, s, rung_build_log(g, rung_build_sum(g, rung_build_exp(g, s), axis_of(g, node, in[0]), true)));
}

static const char *const operands[] = {"x", NULL};
static const char *const roles[] = {"rows", "columns", NULL};
static const rung_attr attrs[] = {
    {"axis", RUNG_ATTR_I64, offsetof(rung_axis_attrs, axis), "-1", NULL, "along which the result adds up to 1"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {
    {"f32[5,67]", ""}, {"f32[5,67]", "axis=0"}, {"f32[2,3,17]", "axis=1"}, {"f32[3,1]", ""},  {"f32[0,3]", ""},
    {"f32[3,0]", ""},  {"f64[2,9]", ""},        {"f64[3,4]", "axis=-2"},   {"f16[4,33]", ""}, {"bf16[2,16]", ""},
    {NULL, NULL}};

#define SOFTMAX(name_, text)                                               \
  const rung_op rung_op_##name_ = {.name = #name_,                         \
                                   .doc = text,                            \
                                   .operands = operands,                   \
                                   .in_lo = 1,                             \
                                   .in_hi = 1,                             \
                                   .results = 1,                           \
                                   .flags = RUNG_OP_IN_PLACE,              \
                                   .attrs = attrs,                         \
                                   .attrs_bytes = sizeof(rung_axis_attrs), \
                                   .roles = roles,                         \
                                   .infer = infer,                         \
                                   .role_dims = role_dims,                 \
                                   .reference = reference_##name_,         \
                                   .gradient = gradient_##name_,           \
                                   .decompose = decompose_##name_,         \
                                   .test_lo = -9,                          \
                                   .test_hi = 9,                           \
                                   .tests = tests,                         \
                                   .tolerance = {0x1p-20, 0x1p-22}};
SOFTMAX(softmax, "exp(x) / sum(exp(x)) along an axis; a row of minus infinities is NaN")
SOFTMAX(log_softmax, "x - log(sum(exp(x))) along an axis")
