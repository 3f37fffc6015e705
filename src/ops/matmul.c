/* SPDX-License-Identifier: MIT
 * matmul: a[..., M, K] times b[..., K, N], or b[..., N, K] transposed. */
#include "ops/build.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {{.name = "transpose_b",
                                        .kind = RUNG_ATTR_BOOL,
                                        .offset = offsetof(rung_matmul_attrs, transpose_b),
                                        .text_default = "false",
                                        .doc = "b is [..., N, K]; block types, whose blocks lie along K, need it"},
                                       {.name = "type",
                                        .kind = RUNG_ATTR_TYPE,
                                        .offset = offsetof(rung_matmul_attrs, type),
                                        .text_default = "f32",
                                        .doc = "of the result; integer operands need an integer type, and wrap"},
                                       {0}};

static rung_status check_types(const rung_infer *infer, const rung_matmul_attrs *attrs) {
  const rung_type a = infer->in[0].type, b = infer->in[1].type;
  const bool block = rung_type_takes(b) == RUNG_TAKES_BLOCK;
  if (b == RUNG_TYPE_A8) return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "b cannot be a8");
  if (block && !attrs->transpose_b) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "b's blocks lie along K: transpose_b must be true");
  }
  if (rung_type_is_integer(a)) {
    if (rung_type_is_integer(b) && rung_type_is_integer(attrs->type)) return RUNG_OK;
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "an integer a needs an integer b and an integer result");
  }
  if (!rung_type_is_float(attrs->type)) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "the result cannot be %s", rung_type_name(attrs->type));
  }
  if (a == RUNG_TYPE_A8) {
    if (block || b == RUNG_TYPE_I8) return RUNG_OK;
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "a8 multiplies block types and i8 only");
  }
  if (rung_type_is_float(a) && (block || rung_type_is_float(b))) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "no product of %s and %s", rung_type_name(a), rung_type_name(b));
}

static rung_status infer(rung_infer *infer) {
  const rung_matmul_attrs *attrs = infer->attrs;
  const rung_value_type *a = &infer->in[0], *b = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_NUMBER | RUNG_TAKES_BLOCK));
  RUNG_TRY(rung_infer_weight_class(infer, 1, RUNG_TAKES_NUMBER | RUNG_TAKES_BLOCK));
  RUNG_TRY(check_types(infer, attrs));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 2));
  RUNG_TRY(rung_infer_rank_at_least(infer, 1, 2));
  const rung_dim b_rows = b->extent[b->rank - 2], b_columns = b->extent[b->rank - 1];
  RUNG_TRY(
      rung_infer_agree(infer, a->extent[a->rank - 1], attrs->transpose_b ? b_columns : b_rows, "K of a and K of b"));
  const int rank = a->rank > b->rank ? a->rank : b->rank;
  rung_dim extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < rank - 2; axis++) {
    const int of_a = axis - (rank - a->rank), of_b = axis - (rank - b->rank);
    if (of_a < 0 || of_b < 0) {
      extent[axis] = of_a < 0 ? b->extent[of_b] : a->extent[of_a];
    } else {
      RUNG_TRY(rung_infer_broadcast_dim(infer, a->extent[of_a], b->extent[of_b], "the leading axes", &extent[axis]));
    }
  }
  extent[rank - 2] = a->extent[a->rank - 2];
  extent[rank - 1] = attrs->transpose_b ? b_rows : b_columns;
  rung_infer_result(infer, 0, attrs->type, rank, extent);
  return RUNG_OK;
}

/* Where b is a matrix all rows of a are alike, whatever axes they are spread over. */
static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)attrs;
  const rung_value_type *a = &in[0];
  out_role[0] = rung_dims_product(dims, a->extent, in[1].rank == 2 ? 0 : a->rank - 2, a->rank - 1);
  out_role[1] = out->extent[out->rank - 1];
  out_role[2] = a->extent[a->rank - 1];
}

static rung_status reference(const rung_args *args) {
  const rung_matmul_attrs *attrs = args->attrs;
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  const int k_axis = b->rank - (attrs->transpose_b ? 1 : 2), n_axis = b->rank - (attrs->transpose_b ? 2 : 1);
  const int64_t k = a->extent[a->rank - 1];
  const int leading = y->rank - 2;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    const int64_t m = w.index[leading], n = w.index[leading + 1];
    const rung_span row = {a,
                           rung_broadcast_offset(a, a->rank - 2, w.index, leading) + m * rung_axis_step(a, a->rank - 2),
                           rung_axis_step(a, a->rank - 1)};
    const rung_span column = {b,
                              rung_broadcast_offset(b, b->rank - 2, w.index, leading) + n * rung_axis_step(b, n_axis),
                              rung_axis_step(b, k_axis)};
    if (rung_operand_is_integer(y)) {
      rung_store_i64(y, w.offset[0], rung_dot_i64(row, column, k));
    } else {
      rung_store_f64(y, w.offset[0], rung_dot_f64(row, column, k));
    }
  }
  return RUNG_OK;
}

rung_value rung_build_matmul(rung_graph *g, rung_value a, rung_value b, bool transpose_b, rung_type type) {
  const rung_matmul_attrs attrs = {.transpose_b = transpose_b, .type = type};
  return rung_graph_op(g, &rung_op_matmul, (rung_value[]){a, b}, 2, &attrs);
}

/* Both products run over the leading axes of y; what was broadcast is summed afterwards. */
static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  const rung_matmul_attrs *attrs = node->attrs;
  const rung_type type = rung_build_type(g, y[0])->type;
  const rung_type a_type = rung_build_type(g, in[0])->type, b_type = rung_build_type(g, in[1])->type;
  if (rung_type_is_float(a_type)) {
    /* A block type lies along K and cannot be multiplied along N: its numbers can. */
    const rung_value b = rung_type_is_float(b_type) ? in[1] : rung_build_cast(g, in[1], type);
    const rung_value ga = rung_build_matmul(g, gy[0], b, !attrs->transpose_b, type);
    out_gx[0] = rung_build_cast(g, rung_build_unbroadcast(g, ga, in[0]), a_type);
  }
  if (rung_type_is_float(a_type) && rung_type_is_float(b_type)) {
    const rung_value left = attrs->transpose_b ? gy[0] : in[0], right = attrs->transpose_b ? in[0] : gy[0];
    const rung_value gb = rung_build_matmul(g, rung_build_swap_last(g, left), right, false, type);
    out_gx[1] = rung_build_cast(g, rung_build_unbroadcast(g, gb, in[1]), b_type);
  }
}

static const rung_test_case cases[] = {{"f32[5,19] f32[19,23]", ""},
                                       {"f32[1,64] f32[48,64]", "transpose_b=true"},
                                       {"f32[3,2,7,33] f32[2,33,17]", ""},
                                       {"f32[2,1,5,16] f32[3,16,9]", ""},
                                       {"f32[0,8] f32[8,4]", ""},
                                       {"f32[5,0] f32[0,4]", ""},
                                       {"f64[4,31] f64[31,6]", "type=f64"},
                                       {"f16[6,40] bf16[40,12]", ""},
                                       {"bf16[9,64] bf16[33,64]", "transpose_b=true"},
                                       {"f32[7,64] q4_0[24,64]", "transpose_b=true"},
                                       {"f32[7,64] q4_1[24,64]", "transpose_b=true"},
                                       {"f32[2,3,256] q4_k[18,256]", "transpose_b=true"},
                                       {"f32[7,512] q6_k[18,512]", "transpose_b=true"},
                                       {"a8[7,64] q4_1[24,64]", "transpose_b=true"},
                                       {"a8[17,96] q8_0[40,96]", "transpose_b=true"},
                                       {"a8[5,256] q4_k[40,256]", "transpose_b=true"},
                                       {"i8[5,19] i8[19,23]", "type=i32"},
                                       {"u8[5,64]{255,255} i8[64,23]{-127,127}", "type=i32"},
                                       {0}};

/* f32 sums of K terms in any order: the error grows with sqrt(K) roundings of the terms' magnitudes; 2e-6 of the sum of
 * magnitudes is some 16 units in the last place, which K up to a few thousand stays below. */
const rung_op rung_op_matmul = {
    .name = "matmul",
    .doc = "matrix product, leading axes broadcast; weights may be block types, activations quantised rows",
    .operands = (const char *const[]){"a", "b", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_matmul_attrs),
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35},
};
