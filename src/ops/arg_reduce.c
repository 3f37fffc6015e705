/* SPDX-License-Identifier: MIT
 * argmax, argmin: the index of the largest or smallest along an axis; of equals the first, or the last if asked. NaN
 * counts as both: the first (last) NaN is what is found, as in numpy. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_arg_attrs *attrs = (const rung_arg_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  int along;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, x->rank, &along));
  if (!rung_infer_at_least(infer, x->extent[along], rung_one(infer->dims)))
    return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "axis %d has no elements to choose from", along);
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_of(RUNG_TYPE_I64, 0);
  out->place = x->place;
  for (int axis = 0; axis < x->rank; axis++) {
    if (axis == along && !attrs->keep) continue;
    out->extent[out->rank++] = axis == along ? rung_one(infer->dims) : x->extent[axis];
  }
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in;
  out_role[0] = rung_dims_product(dims, out->extent, 0, out->rank);
  out_role[1] = in->extent[rung_axis_of(((const rung_arg_attrs *)attrs)->axis, in->rank)];
}

/* Does element b come before element a? Offsets; sign is 1 for the largest, -1 for the smallest. */
static bool better(const rung_operand *x, int64_t a, int64_t b, int sign, bool last) {
  int order; /* of b against a */
  if (rung_operand_is_integer(x)) {
    const int64_t u = rung_load_i64(x, a), v = rung_load_i64(x, b);
    const bool above = rung_type_is_unsigned((rung_type)x->type) ? (uint64_t)v > (uint64_t)u : v > u;
    order = above ? 1 : u == v ? 0 : -1;
  } else {
    const double u = rung_load_f64(x, a), v = rung_load_f64(x, b);
    if (u != u || v != v) return v != v && (u == u || last);
    order = v > u ? 1 : v == u ? 0 : -1;
  }
  return order == 0 ? last : order == sign;
}

static rung_status run(const rung_args *args, int sign) {
  const rung_arg_attrs *attrs = (const rung_arg_attrs *)args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const int along = rung_axis_of(attrs->axis, x->rank);
  int64_t stride[2][RUNG_MAX_RANK] = {{0}}, extent[RUNG_MAX_RANK];
  rung_element_strides(x, stride[0]);
  const int64_t n = x->extent[along], step = stride[0][along];
  if (n == 0 && rung_operand_count(y) != 0)
    return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: no elements to choose from", sign > 0 ? "argmax" : "argmin");
  for (int axis = 0, to = 0; axis < x->rank; axis++) {
    extent[axis] = axis == along ? 1 : x->extent[axis];
    if (axis != along)
      stride[1][axis] = y->stride[to++];
    else if (attrs->keep)
      to++;
  }
  rung_walk w;
  for (rung_walk_begin_strides(&w, x->rank, extent, 2, stride); w.live; rung_walk_next(&w)) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
      if (better(x, w.offset[0] + best * step, w.offset[0] + i * step, sign, attrs->last)) best = i;
    rung_store_i64(y, w.offset[1], best);
  }
  return RUNG_OK;
}
static rung_status reference_argmax(const rung_args *args) { return run(args, 1); }
static rung_status reference_argmin(const rung_args *args) { return run(args, -1); }

static const char *const operands[] = {"x", NULL};
static const char *const roles[] = {"rows", "columns", NULL};
static const rung_attr attrs[] = {
    {"axis", RUNG_ATTR_I64, offsetof(rung_arg_attrs, axis), "-1", NULL, "searched axis"},
    {"keep", RUNG_ATTR_BOOL, offsetof(rung_arg_attrs, keep), "false", NULL, "the axis stays, with extent 1"},
    {"last", RUNG_ATTR_BOOL, offsetof(rung_arg_attrs, last), "false", NULL, "of equals the last"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", ""},           {"f32[5,67]", "axis=0, keep=true"},
                                       {"i32[9,17]{-3,3}", ""},     {"i32[9,17]{-3,3}", "last=true"},
                                       {"u8[33]{0,255}", "axis=0"}, {"f32[0,3]", ""},
                                       {"f64[2,3,4]", "axis=1"},    {"bool[7]", ""},
                                       {"f16[1]", "keep=true"},     {NULL, NULL}};

#define ARG(name_, text)                                                    \
  const rung_op rung_op_##name_ = {.name = #name_,                          \
                                   .doc = text,                             \
                                   .operands = operands,                    \
                                   .in_lo = 1,                              \
                                   .in_hi = 1,                              \
                                   .results = 1,                            \
                                   .attrs = attrs,                          \
                                   .attrs_bytes = sizeof(rung_arg_attrs),   \
                                   .roles = roles,                          \
                                   .infer = infer,                          \
                                   .role_dims = role_dims,                  \
                                   .reference = reference_##name_,          \
                                   .no_gradient = "the result is an index", \
                                   .test_lo = -4,                           \
                                   .test_hi = 4,                            \
                                   .tests = tests};
ARG(argmax, "index of the largest along an axis; NaN counts as largest")
ARG(argmin, "index of the smallest along an axis; NaN counts as smallest")
