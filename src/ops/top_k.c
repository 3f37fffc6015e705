/* SPDX-License-Identifier: MIT
 * top_k: the k largest (or smallest) elements along an axis, in order, and where they stood. Of equals the one with the
 * lower index comes first. NaN counts as larger than every number. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_top_k_attrs *attrs = (const rung_top_k_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  int axis;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_NUMBER));
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, x->rank, &axis));
  if (!rung_infer_at_least(infer, attrs->k, rung_dims_constant(infer->dims, 0)) ||
      !rung_infer_at_least(infer, x->extent[axis], attrs->k))
    return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "k is not in 0 .. the extent of axis %d", axis);
  infer->out[0] = rung_value_type_like(x, x->type);
  infer->out[1] = rung_value_type_like(x, RUNG_TYPE_I64);
  infer->out[0].extent[axis] = infer->out[1].extent[axis] = attrs->k;
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out;
  const rung_top_k_attrs *a = (const rung_top_k_attrs *)attrs;
  const int along = rung_axis_of(a->axis, in->rank);
  out_role[0] = rung_dims_mul(dims, rung_dims_product(dims, in->extent, 0, along),
                              rung_dims_product(dims, in->extent, along + 1, in->rank));
  out_role[1] = in->extent[along];
  out_role[2] = a->k;
}

/* Does the element at offset a stand before the one at b: 1, after: -1, equal: 0. */
static int order(const rung_operand *x, int64_t a, int64_t b, bool largest) {
  int above; /* of a over b */
  if (rung_operand_is_integer(x)) {
    const int64_t u = rung_load_i64(x, a), v = rung_load_i64(x, b);
    const bool more = rung_type_is_unsigned((rung_type)x->type) ? (uint64_t)u > (uint64_t)v : u > v;
    above = u == v ? 0 : more ? 1 : -1;
  } else {
    const double u = rung_load_f64(x, a), v = rung_load_f64(x, b);
    above = u != u || v != v ? (u != u) - (v != v) : (u > v) - (u < v);
  }
  return largest ? above : -above;
}

/* The first of those that come after `last` (-1: of all) in the order by value, then index. Nothing is stored, so one
 * pass per result. */
static int64_t next_index(const rung_operand *x, int64_t base, int64_t step, int64_t n, int64_t last, bool largest) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; i++) {
    if (last >= 0) {
      const int after = order(x, base + last * step, base + i * step, largest);
      if (after < 0 || (after == 0 && i <= last)) continue;
    }
    if (best < 0 || order(x, base + i * step, base + best * step, largest) > 0) best = i;
  }
  return best;
}

static rung_status reference(const rung_args *args) {
  const rung_top_k_attrs *attrs = (const rung_top_k_attrs *)args->attrs;
  const rung_operand *x = &args->in[0], *values = &args->out[0], *indices = &args->out[1];
  const int axis = rung_axis_of(attrs->axis, x->rank);
  const int64_t k = values->extent[axis], n = x->extent[axis];
  if (k > n)
    return rung_fail(args->error, RUNG_OUT_OF_RANGE, "top_k: k is %lld but the axis has %lld elements", (long long)k,
                     (long long)n);
  rung_lanes l, where;
  rung_lanes_begin(&where, axis, indices, NULL);
  for (rung_lanes_begin(&l, axis, x, values); l.walk.live; rung_lanes_next(&l), rung_lanes_next(&where)) {
    int64_t last = -1;
    for (int64_t j = 0; j < k; j++) {
      last = next_index(x, l.walk.offset[0], l.stride[0], n, last, attrs->largest);
      const int64_t from = l.walk.offset[0] + last * l.stride[0], to = l.walk.offset[1] + j * l.stride[1];
      if (rung_operand_is_integer(x))
        rung_store_i64(values, to, rung_load_i64(x, from));
      else
        rung_store_f64(values, to, rung_load_f64(x, from));
      rung_store_i64(indices, where.walk.offset[0] + j * where.stride[0], last);
    }
  }
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  const rung_scatter_attrs attrs = {.axis = ((const rung_top_k_attrs *)node->attrs)->axis, .mode = RUNG_SCATTER_ADD};
  const rung_value scatter[3] = {rung_build_filled_like(g, in[0], 0), y[1], gy[0]};
  out_gx[0] = rung_graph_op(g, &rung_op_scatter_elements, scatter, 3, &attrs);
}

static const char *const operands[] = {"x", NULL};
static const char *const results[] = {"values", "indices", NULL};
static const char *const roles[] = {"rows", "columns", "k", NULL};
static const rung_attr attrs[] = {
    {"k", RUNG_ATTR_DIM, offsetof(rung_top_k_attrs, k), NULL, NULL, "how many"},
    {"axis", RUNG_ATTR_I64, offsetof(rung_top_k_attrs, axis), "-1", NULL, "along which"},
    {"largest", RUNG_ATTR_BOOL, offsetof(rung_top_k_attrs, largest), "true", NULL, "largest or smallest"},
    {"sorted", RUNG_ATTR_BOOL, offsetof(rung_top_k_attrs, sorted), "true", NULL, "if false, any order will do"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", "k=5"},
                                       {"f32[5,67]", "k=3, axis=0, largest=false"},
                                       {"i32[4,17]{-3,3}", "k=17"},
                                       {"u8[9]{0,255}", "k=1"},
                                       {"f32[4,3]", "k=0"},
                                       {"f32[0,3]", "k=2"},
                                       {"f64[2,9]", "k=4"},
                                       {"f16[33]", "k=7, sorted=false"},
                                       {NULL, NULL}};

const rung_op rung_op_top_k = {
    .name = "top_k",
    .doc = "the k largest or smallest along an axis, in order, and their indices; of equals the lower index first",
    .operands = operands,
    .results_named = results,
    .in_lo = 1,
    .in_hi = 1,
    .results = 2,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_top_k_attrs),
    .roles = roles,
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = tests,
};
