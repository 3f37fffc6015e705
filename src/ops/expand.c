/* SPDX-License-Identifier: MIT
 * expand: axes of extent 1, and new leading axes, repeated. Always a view: a repeated axis has stride 0. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static bool repeats(const rung_dims *dims, rung_dim from, rung_dim to) {
  return rung_dim_is(dims, from, 1) && !rung_dim_same(from, to);
}

static rung_status infer(rung_infer *infer) {
  const rung_expand_attrs *attrs = (const rung_expand_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_ALL));
  const int lead = attrs->shape.count - x->rank;
  if (lead < 0)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "rank %d cannot become rank %d", x->rank, attrs->shape.count);
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_of(x->type, attrs->shape.count);
  out->place = x->place;
  for (int axis = 0; axis < out->rank; axis++) {
    out->extent[axis] = attrs->shape.dim[axis];
    RUNG_TRY(rung_infer_dim(infer, out->extent[axis]));
    if (axis < lead || repeats(infer->dims, x->extent[axis - lead], out->extent[axis])) continue;
    if (!rung_infer_equal(infer, x->extent[axis - lead], out->extent[axis]))
      return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "axis %d has an extent other than 1 and the one asked for",
                               axis - lead);
  }
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  rung_units repeated = y;
  repeated.base = x.base;
  for (int axis = 0; axis < y.rank; axis++) {
    const int from = axis - (y.rank - x.rank);
    repeated.stride[axis] = from < 0 || x.extent[from] == 1 ? 0 : x.stride[from];
  }
  rung_units_copy(&y, &repeated);
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)node, (void)y;
  out_gx[0] = rung_build_unbroadcast(g, gy[0], in[0]);
}

static bool view(rung_view_rule *rule) {
  const rung_value_type *x = &rule->in[0], *y = &rule->out[0];
  const int lead = y->rank - x->rank;
  for (int axis = 0; axis < y->rank; axis++)
    rule->out_stride[axis] = axis < lead || repeats(rule->dims, x->extent[axis - lead], y->extent[axis])
                                 ? rung_dims_constant(rule->dims, 0)
                                 : rule->in_stride[axis - lead];
  return true;
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {
    {"shape", RUNG_ATTR_DIMS, offsetof(rung_expand_attrs, shape), NULL, NULL, "extents of the result"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[3,1]", "shape=[3,17]"},
                                       {"f32[]", "shape=[2,3]"},
                                       {"i64[1,2]{-9,9}", "shape=[4,3,2]"},
                                       {"f32[2,3]", "shape=[2,3]"},
                                       {"f32[1,3]", "shape=[0,3]"},
                                       {"bool[1]", "shape=[9]"},
                                       {"f64[2,1]", "shape=[3,2,4]"},
                                       {"f16[1,1]", "shape=[2,1,2]"},
                                       {"q8_0[1,32]", "shape=[3,32]"},
                                       {"f4e2m1[1,3]", "shape=[3,3]"},
                                       {NULL, NULL}};

const rung_op rung_op_expand = {
    .name = "expand",
    .doc = "axes of extent 1, and new leading axes, repeated",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_VIEW,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_expand_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .view = view,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
