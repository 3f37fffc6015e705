/* SPDX-License-Identifier: MIT
 * concat: operands one after another along an axis. */
#include <stddef.h>
#include <string.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  int axis;
  RUNG_TRY(rung_infer_axis(infer, ((const rung_concat_attrs *)infer->attrs)->axis, x->rank, &axis));
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_like(x, x->type);
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_ALL));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
    RUNG_TRY(rung_infer_rank(infer, i, x->rank));
    if (i) out->extent[axis] = rung_dims_add(infer->dims, out->extent[axis], infer->in[i].extent[axis]);
    RUNG_TRY(rung_infer_dim(infer, out->extent[axis]));
    for (int k = 0; k < x->rank; k++)
      if (k != axis) RUNG_TRY(rung_infer_extent(infer, i, k, x->extent[k]));
  }
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  const rung_units y = rung_units_of(&args->out[0]);
  const int axis = rung_axis_of(((const rung_concat_attrs *)args->attrs)->axis, y.rank);
  int64_t at = 0;
  for (int i = 0; i < args->n_in; i++) {
    const rung_units x = rung_units_of(&args->in[i]);
    int64_t stride[2][RUNG_MAX_RANK];
    memcpy(stride[0], y.stride, sizeof stride[0]);
    memcpy(stride[1], x.stride, sizeof stride[1]);
    rung_walk w;
    for (rung_walk_begin_strides(&w, x.rank, x.extent, 2, stride); w.live; rung_walk_next(&w))
      rung_unit_copy(&y, at * y.stride[axis] + w.offset[0], &x, w.offset[1]);
    at += x.extent[axis];
  }
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const int axis = rung_axis_of(((const rung_concat_attrs *)node->attrs)->axis, rung_build_type(g, in[0])->rank);
  rung_dim start = rung_dims_constant(g->dims, 0);
  for (uint32_t i = 0; i < node->n_in; i++) {
    const rung_dim length = rung_build_type(g, in[i])->extent[axis];
    out_gx[i] = rung_build_slice(g, gy[0], axis, start, length);
    start = rung_dims_add(g->dims, start, length);
  }
}

static const char *const operands[] = {"x...", NULL};
static const rung_attr attrs[] = {
    {"axis", RUNG_ATTR_I64, offsetof(rung_concat_attrs, axis), NULL, NULL, "counts from the end if negative"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[2,3] f32[2,4]", "axis=1"},
                                       {"f32[5,67] f32[1,67] f32[2,67]", "axis=0"},
                                       {"f32[2,0] f32[2,3]", "axis=-1"},
                                       {"i64[3]{-9,9}", "axis=0"},
                                       {"u8[0,2]{0,255} u8[0,2]{0,255}", "axis=0"},
                                       {"f64[2,2,2] f64[2,1,2]", "axis=1"},
                                       {"bool[2] bool[3]", "axis=0"},
                                       {"q8_0[2,64] q8_0[2,32]", "axis=1"},
                                       {"q4_1[2,32] q4_1[1,32]", "axis=0"},
                                       {"i4[3] i4[4]", "axis=0"},
                                       {NULL, NULL}};

const rung_op rung_op_concat = {
    .name = "concat",
    .doc = "operands one after another along an axis",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 255,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_concat_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
