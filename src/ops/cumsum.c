/* SPDX-License-Identifier: MIT
 * cumsum, cumprod: sums and products of all elements up to each one along an axis. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  int axis;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_NUMBER));
  RUNG_TRY(rung_infer_axis(infer, ((const rung_cumsum_attrs *)infer->attrs)->axis, infer->in[0].rank, &axis));
  infer->out[0] = rung_value_type_like(&infer->in[0], infer->in[0].type);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out;
  const int along = rung_axis_of(((const rung_cumsum_attrs *)attrs)->axis, in->rank);
  out_role[0] = rung_dims_mul(dims, rung_dims_product(dims, in->extent, 0, along),
                              rung_dims_product(dims, in->extent, along + 1, in->rank));
  out_role[1] = in->extent[along];
}

static rung_status accumulate(const rung_args *args, bool product) {
  const rung_cumsum_attrs *attrs = (const rung_cumsum_attrs *)args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_lanes l;
  for (rung_lanes_begin(&l, rung_axis_of(attrs->axis, x->rank), x, y); l.walk.live; rung_lanes_next(&l)) {
    double total = product;
    uint64_t whole = product;
    for (int64_t k = 0; k < l.extent[0]; k++) {
      const int64_t i = attrs->reverse ? l.extent[0] - 1 - k : k;
      const int64_t from = l.walk.offset[0] + i * l.stride[0], to = l.walk.offset[1] + i * l.stride[1];
      if (rung_operand_is_integer(x)) {
        const uint64_t v = (uint64_t)rung_load_i64(x, from);
        const uint64_t next = product ? whole * v : whole + v;
        rung_store_i64(y, to, (int64_t)(attrs->exclusive ? whole : next));
        whole = next;
      } else {
        const double v = rung_load_f64(x, from);
        const double next = product ? total * v : total + v;
        rung_store_f64(y, to, attrs->exclusive ? total : next);
        total = next;
      }
    }
  }
  return RUNG_OK;
}

static rung_status reference(const rung_args *args) { return accumulate(args, false); }
static rung_status product_reference(const rung_args *args) { return accumulate(args, true); }

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)in, (void)y;
  rung_cumsum_attrs attrs = *(const rung_cumsum_attrs *)node->attrs;
  attrs.reverse = !attrs.reverse;
  out_gx[0] = rung_graph_op(g, &rung_op_cumsum, &gy[0], 1, &attrs);
}

static const char *const operands[] = {"x", NULL};
static const char *const roles[] = {"rows", "columns", NULL};
static const rung_attr attrs[] = {
    {"axis", RUNG_ATTR_I64, offsetof(rung_cumsum_attrs, axis), "-1", NULL, "summed along"},
    {"exclusive", RUNG_ATTR_BOOL, offsetof(rung_cumsum_attrs, exclusive), "false", NULL, "without the element itself"},
    {"reverse", RUNG_ATTR_BOOL, offsetof(rung_cumsum_attrs, reverse), "false", NULL, "from the end"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", ""},
                                       {"f32[5,67]", "axis=0, exclusive=true"},
                                       {"f32[17]", "reverse=true"},
                                       {"i32[3,9]{-9,9}", "exclusive=true, reverse=true"},
                                       {"u8[9]{0,255}", ""},
                                       {"f64[2,5]", "axis=1, reverse=true"},
                                       {"f64[5]", "exclusive=true"},
                                       {"f32[0,3]", ""},
                                       {"f16[3,0]", ""},
                                       {NULL, NULL}};

const rung_op rung_op_cumsum = {
    .name = "cumsum",
    .doc = "sums of all elements up to each one along an axis",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_IN_PLACE,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_cumsum_attrs),
    .roles = roles,
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
    .tolerance = {0x1p-20, 0x1p-20},
};

static const rung_test_case product_tests[] = {{"f32[5,7]", ""},
                                               {"f32[5,67]", "axis=0, exclusive=true"},
                                               {"f32[7]", "reverse=true"},
                                               {"i32[3,9]{-9,9}", "exclusive=true, reverse=true"},
                                               {"f64[2,5]", "axis=1, reverse=true"},
                                               {"f32[0,3]", ""},
                                               {NULL, NULL}};

const rung_op rung_op_cumprod = {
    .name = "cumprod",
    .doc = "products of all elements up to each one along an axis",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_cumsum_attrs),
    .roles = roles,
    .infer = infer,
    .role_dims = role_dims,
    .reference = product_reference,
    .no_gradient = "not yet: wants products without one element, which may be 0",
    .test_lo = -2,
    .test_hi = 2,
    .tests = product_tests,
    .tolerance = {0x1p-20, 0x1p-20},
};
