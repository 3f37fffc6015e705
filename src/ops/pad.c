/* SPDX-License-Identifier: MIT
 * pad: elements before and after along each axis: one value, or the operand mirrored at its edge (which is not
 * repeated), its edge repeated, or the operand from its other end. */
#include <stddef.h>
#include <string.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_pad_attrs *attrs = (const rung_pad_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  rung_dims *dims = infer->dims;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  if (attrs->before.count != x->rank || attrs->after.count != x->rank)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "before and after must have %d entries", x->rank);
  infer->out[0] = rung_value_type_like(x, x->type);
  const rung_dim zero = rung_dims_constant(dims, 0);
  for (int axis = 0; axis < x->rank; axis++) {
    const rung_dim before = attrs->before.dim[axis], after = attrs->after.dim[axis];
    const rung_dim extent = rung_dims_add(dims, rung_dims_add(dims, x->extent[axis], before), after);
    RUNG_TRY(rung_infer_dim(infer, extent));
    infer->out[0].extent[axis] = extent;
    if (!rung_infer_at_least(infer, before, zero) || !rung_infer_at_least(infer, after, zero))
      return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "axis %d would be cut, which slice does", axis);
  }
  return RUNG_OK;
}

/* The index in [0, n) that position i of the padded axis takes from, -1 for the constant. n > 0 unless it gives -1. */
static int64_t source(int64_t i, int64_t n, int32_t mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case RUNG_PAD_EDGE:
      return i < 0 ? 0 : n - 1;
    case RUNG_PAD_WRAP:
      return (i % n + n) % n;
    case RUNG_PAD_REFLECT: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1), at = (i % period + period) % period;
      return at < n ? at : period - at;
    }
    default:
      return -1;
  }
}

static rung_status reference(const rung_args *args) {
  const rung_pad_attrs *attrs = (const rung_pad_attrs *)args->attrs;
  const rung_operand *in = &args->in[0], *out = &args->out[0];
  const rung_units x = rung_units_of(in), y = rung_units_of(out);
  if (attrs->mode != RUNG_PAD_CONSTANT && rung_operand_count(in) == 0 && rung_operand_count(out) != 0)
    return rung_fail(args->error, RUNG_OUT_OF_RANGE, "pad: nothing to repeat in an empty operand");
  int64_t stride[1][RUNG_MAX_RANK];
  memcpy(stride[0], y.stride, sizeof stride[0]);
  rung_walk w;
  for (rung_walk_begin_strides(&w, y.rank, y.extent, 1, stride); w.live; rung_walk_next(&w)) {
    int64_t from = 0;
    bool filled = false;
    for (int axis = 0; axis < y.rank && !filled; axis++) {
      const int64_t i = w.index[axis] - rung_args_dim(args, attrs->before.dim[axis]);
      const int64_t index = source(i, x.extent[axis], attrs->mode);
      filled = index < 0;
      from += index * x.stride[axis];
    }
    if (!filled)
      rung_unit_copy(&y, w.offset[0], &x, from);
    else if (rung_operand_is_integer(out))
      rung_store_i64(out, w.offset[0], (int64_t)attrs->value);
    else
      rung_store_f64(out, w.offset[0], attrs->value);
  }
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_pad_attrs *attrs = (const rung_pad_attrs *)node->attrs;
  const rung_value_type x = *rung_build_type(g, in[0]);
  if (attrs->mode != RUNG_PAD_CONSTANT) {
    rung_graph_fail(g, RUNG_UNSUPPORTED, "pad: only constant padding has a gradient");
    return;
  }
  rung_slice_attrs slice = {.start = attrs->before, .length = {.count = x.rank}, .step = {.count = x.rank}};
  for (int axis = 0; axis < x.rank; axis++) {
    slice.length.dim[axis] = x.extent[axis];
    slice.step.value[axis] = 1;
  }
  out_gx[0] = rung_graph_op(g, &rung_op_slice, &gy[0], 1, &slice);
}

static const char *const operands[] = {"x", NULL};
static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
static const rung_attr attrs[] = {
    {"before", RUNG_ATTR_DIMS, offsetof(rung_pad_attrs, before), NULL, NULL, "elements put before, along each axis"},
    {"after", RUNG_ATTR_DIMS, offsetof(rung_pad_attrs, after), NULL, NULL, "elements put after"},
    {"mode", RUNG_ATTR_ENUM, offsetof(rung_pad_attrs, mode), "constant", modes, "what they are"},
    {"value", RUNG_ATTR_F64, offsetof(rung_pad_attrs, value), "0", NULL, "the constant"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,16]", "before=[1,0], after=[0,3]"},
                                       {"f32[2,3]", "before=[1,1], after=[1,1], value=1.5"},
                                       {"i32[3]{-9,9}", "before=[2], after=[1], value=-7"},
                                       {"bool[3]", "before=[2], after=[1], value=1"},
                                       {"f32[0,2]", "before=[1,0], after=[1,0]"},
                                       {"f64[3,2]", "before=[0,2], after=[1,0], value=3"},
                                       {"f32[4,3]", "before=[2,5], after=[3,4], mode=reflect"},
                                       {"f32[4,3]", "before=[2,5], after=[3,4], mode=edge"},
                                       {"f32[4,3]", "before=[2,5], after=[3,4], mode=wrap"},
                                       {"f16[1]", "before=[2], after=[2], mode=reflect"},
                                       {NULL, NULL}};

const rung_op rung_op_pad = {
    .name = "pad",
    .doc = "elements before and after along each axis: a constant, reflected, the edge, or from the other end",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_pad_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
