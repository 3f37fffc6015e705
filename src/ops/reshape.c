/* SPDX-License-Identifier: MIT
 * reshape: the same elements in row-major order under other extents. A view where the operand's strides allow it. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_reshape_attrs *attrs = (const rung_reshape_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_ALL));
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_of(x->type, attrs->shape.count);
  out->place = x->place;
  for (int axis = 0; axis < out->rank; axis++) out->extent[axis] = attrs->shape.dim[axis];
  const rung_dim have = rung_dims_product(infer->dims, x->extent, 0, x->rank);
  const rung_dim want = rung_dims_product(infer->dims, out->extent, 0, out->rank);
  RUNG_TRY(rung_infer_dim(infer, have));
  RUNG_TRY(rung_infer_dim(infer, want));
  if (rung_infer_equal(infer, have, want)) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "the operand has another number of elements than the result");
}

static rung_status reference(const rung_args *args) {
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  int64_t stride_x[1][RUNG_MAX_RANK], stride_y[1][RUNG_MAX_RANK];
  for (int axis = 0; axis < RUNG_MAX_RANK; axis++) {
    stride_x[0][axis] = x.stride[axis];
    stride_y[0][axis] = y.stride[axis];
  }
  rung_walk from, to;
  rung_walk_begin_strides(&from, x.rank, x.extent, 1, stride_x);
  rung_walk_begin_strides(&to, y.rank, y.extent, 1, stride_y);
  for (; from.live && to.live; rung_walk_next(&from), rung_walk_next(&to))
    rung_unit_copy(&y, to.offset[0], &x, from.offset[0]);
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)node, (void)y;
  out_gx[0] = rung_build_reshape_like(g, gy[0], in[0]);
}

/* ---- view. Axes fall into groups, each with one product of extents on either side; a group is a view if its axes lie
 * dense among themselves in the operand. Axes of extent 1 belong to no group. */
typedef struct side {
  int n;
  rung_dim extent[RUNG_MAX_RANK];
  int axis[RUNG_MAX_RANK]; /* in the value */
} side;

static side axes_of(rung_dims *dims, const rung_value_type *type) {
  const bool blocks = rung_type_takes(type->type) == RUNG_TAKES_BLOCK;
  side s = {0};
  for (int axis = 0; axis < type->rank; axis++) {
    rung_dim extent = type->extent[axis];
    if (axis == type->rank - 1 && blocks)
      extent = rung_dims_div(dims, extent, rung_dims_constant(dims, rung_type_get(type->type)->block));
    if (rung_dim_is(dims, extent, 1)) continue;
    s.extent[s.n] = extent;
    s.axis[s.n++] = axis;
  }
  return s;
}

/* The smallest group from (i, j) on: one past its last axes on either side. Everything that is left where no products
 * can be proved equal. */
static void next_group(rung_dims *dims, const side *in, const side *out, int i, int j, int *out_i, int *out_j) {
  for (int a = i + 1; a <= in->n; a++) {
    const rung_dim have = rung_dims_product(dims, in->extent, i, a);
    for (int b = j + 1; b <= out->n; b++) {
      if (!have.id || !rung_dim_same(have, rung_dims_product(dims, out->extent, j, b))) continue;
      *out_i = a;
      *out_j = b;
      return;
    }
  }
  *out_i = in->n;
  *out_j = out->n;
}

static bool view(rung_view_rule *rule) {
  rung_dims *dims = rule->dims;
  const side in = axes_of(dims, &rule->in[0]), out = axes_of(dims, &rule->out[0]);
  for (int axis = 0; axis < rule->out[0].rank; axis++) rule->out_stride[axis] = rung_one(dims); /* of extent 1: any */
  for (int i = 0, j = 0; i < in.n || j < out.n;) {
    int end_i, end_j;
    next_group(dims, &in, &out, i, j, &end_i, &end_j);
    for (int a = i; a + 1 < end_i; a++) {
      const rung_dim dense = rung_dims_mul(dims, rule->in_stride[in.axis[a + 1]], in.extent[a + 1]);
      if (!rung_dim_same(dense, rule->in_stride[in.axis[a]])) return false;
    }
    rung_dim stride = end_i > i ? rule->in_stride[in.axis[end_i - 1]] : rung_one(dims);
    for (int b = end_j - 1; b >= j; b--) {
      rule->out_stride[out.axis[b]] = stride;
      stride = rung_dims_mul(dims, stride, out.extent[b]);
    }
    i = end_i;
    j = end_j;
  }
  return true;
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {
    {"shape", RUNG_ATTR_DIMS, offsetof(rung_reshape_attrs, shape), NULL, NULL, "extents of the result"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[4,6]", "shape=[2,2,6]"},
                                       {"f32[2,3,5]", "shape=[30]"},
                                       {"i64[6]{-9,9}", "shape=[1,3,1,2]"},
                                       {"f32[1]", "shape=[]"},
                                       {"f32[2,0]", "shape=[1,2,0]"},
                                       {"f16[4,3]", "shape=[3,4]"},
                                       {"bool[2,3]", "shape=[3,1,2]"},
                                       {"f64[3,4]", "shape=[4,3]"},
                                       {"q8_0[4,64]", "shape=[2,2,64]"},
                                       {"q8_0[4,64]", "shape=[8,32]"},
                                       {"q8_0[2,3,64]", "shape=[6,2,32]"},
                                       {"i4[3,5]", "shape=[5,3]"},
                                       {NULL, NULL}};

const rung_op rung_op_reshape = {
    .name = "reshape",
    .doc = "the same elements in row-major order under other extents",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_VIEW,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_reshape_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .view = view,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
