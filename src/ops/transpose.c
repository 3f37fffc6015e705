/* SPDX-License-Identifier: MIT
 * transpose: axes in another order. Always a view. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_i64_list *order = &((const rung_transpose_attrs *)infer->attrs)->permutation;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_ALL));
  if (order->count != x->rank)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "permutation has %d entries but the rank is %d", order->count,
                             x->rank);
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_like(x, x->type);
  uint32_t seen = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    const int64_t from = order->value[axis];
    if (from < 0 || from >= x->rank || (seen >> from & 1))
      return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "entry %d of permutation, %lld, is no axis or comes twice",
                               axis, (long long)from);
    seen |= 1u << from;
    out->extent[axis] = x->extent[from];
  }
  if (rung_type_takes(x->type) == RUNG_TAKES_BLOCK && x->rank && order->value[x->rank - 1] != x->rank - 1)
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "blocks of %s run along the last axis, which must stay last",
                             rung_type_name(x->type));
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) {
  const rung_i64_list *order = &((const rung_transpose_attrs *)args->attrs)->permutation;
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  rung_units turned = x;
  for (int axis = 0; axis < y.rank; axis++) turned.stride[axis] = x.stride[order->value[axis]];
  rung_units_copy(&y, &turned);
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)in, (void)y;
  const rung_i64_list *order = &((const rung_transpose_attrs *)node->attrs)->permutation;
  int64_t inverse[RUNG_MAX_RANK] = {0};
  for (int axis = 0; axis < order->count; axis++) inverse[order->value[axis]] = axis;
  out_gx[0] = rung_build_transpose(g, gy[0], inverse);
}

static bool view(rung_view_rule *rule) {
  const rung_i64_list *order = &((const rung_transpose_attrs *)rule->attrs)->permutation;
  for (int axis = 0; axis < order->count; axis++) rule->out_stride[axis] = rule->in_stride[order->value[axis]];
  return true;
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {{"permutation", RUNG_ATTR_I64S, offsetof(rung_transpose_attrs, permutation), NULL,
                                   NULL, "axis i of the result is axis permutation[i] of x"},
                                  {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", "permutation=[1,0]"},
                                       {"f32[2,3,4]", "permutation=[2,0,1]"},
                                       {"i8[2,3,1,5]{-9,9}", "permutation=[0,2,1,3]"},
                                       {"f32[0,3]", "permutation=[1,0]"},
                                       {"f32[]", "permutation=[]"},
                                       {"f64[3,4]", "permutation=[1,0]"},
                                       {"bf16[3,16]", "permutation=[0,1]"},
                                       {"q4_0[2,3,32]", "permutation=[1,0,2]"},
                                       {"i2[3,5]", "permutation=[1,0]"},
                                       {NULL, NULL}};

const rung_op rung_op_transpose = {
    .name = "transpose",
    .doc = "axes in another order",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_VIEW,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_transpose_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .view = view,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
