/* SPDX-License-Identifier: MIT
 * matmul_integer: (a - a_zero)[..., M, K] times (b - b_zero)[..., K, N], exact in 32 bits, which wrap; as ONNX
 * MatMulInteger. */
#include "ops/structured.h"

static rung_status check_levels(const rung_infer *infer, uint32_t i) {
  const rung_type type = infer->in[i].type;
  RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_INT));
  if (type == RUNG_TYPE_I8 || type == RUNG_TYPE_U8) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "operands must be i8 or u8");
}

static rung_status check_zero(rung_infer *infer, uint32_t i, uint32_t of, rung_dim count) {
  const rung_value_type *zero = &infer->in[i];
  RUNG_TRY(check_levels(infer, i));
  RUNG_TRY(rung_infer_same_type(infer, i, of));
  if (zero->rank == 0 || (zero->rank == 1 && rung_dim_is(infer->dims, zero->extent[0], 1))) return RUNG_OK;
  RUNG_TRY(rung_infer_rank(infer, i, 1));
  return rung_infer_extent(infer, i, 0, count);
}

static rung_status infer(rung_infer *infer) {
  const rung_value_type *a = &infer->in[0], *b = &infer->in[1];
  for (uint32_t i = 0; i < 2; i++) {
    RUNG_TRY(check_levels(infer, i));
    RUNG_TRY(rung_infer_rank_at_least(infer, i, 2));
  }
  RUNG_TRY(rung_infer_agree(infer, a->extent[a->rank - 1], b->extent[b->rank - 2], "K of a and K of b"));
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
  extent[rank - 1] = b->extent[b->rank - 1];
  if (infer->n_in > 2) RUNG_TRY(check_zero(infer, 2, 0, extent[rank - 2]));
  if (infer->n_in > 3) RUNG_TRY(check_zero(infer, 3, 1, extent[rank - 1]));
  rung_infer_result(infer, 0, RUNG_TYPE_I32, rank, extent);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)attrs;
  const rung_value_type *a = &in[0];
  out_role[0] = rung_dims_product(dims, a->extent, in[1].rank == 2 ? 0 : a->rank - 2, a->rank - 1);
  out_role[1] = out->extent[out->rank - 1];
  out_role[2] = a->extent[a->rank - 1];
}

static int64_t zero_at(const rung_args *args, uint32_t i, int64_t index) {
  if (args->n_in <= i) return 0;
  return rung_vector_at(&args->in[i], args->in[i].rank && args->in[i].extent[0] != 1 ? index : 0);
}

static rung_status reference(const rung_args *args) {
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  const int64_t k = a->extent[a->rank - 1], a_step = a->stride[a->rank - 1], b_step = b->stride[b->rank - 2];
  const int leading = y->rank - 2;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    const int64_t m = w.index[leading], n = w.index[leading + 1];
    const int64_t from_a = rung_broadcast_offset(a, a->rank - 2, w.index, leading) + m * a->stride[a->rank - 2];
    const int64_t from_b = rung_broadcast_offset(b, b->rank - 2, w.index, leading) + n * b->stride[b->rank - 1];
    const int64_t a_zero = zero_at(args, 2, m), b_zero = zero_at(args, 3, n);
    int64_t sum = 0;
    for (int64_t i = 0; i < k; i++)
      sum += (rung_load_i64(a, from_a + i * a_step) - a_zero) * (rung_load_i64(b, from_b + i * b_step) - b_zero);
    rung_store_i64(y, w.offset[0], sum);
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"u8[5,19]{0,255} i8[19,23]{-128,127}", ""},
                                       {"u8[5,67]{0,255} u8[67,40]{0,255} u8[]{120,130} u8[40]{0,255}", ""},
                                       {"i8[7,33]{-128,127} i8[33,17]{-128,127} i8[7]{-9,9} i8[1]{-9,9}", ""},
                                       {"u8[2,1,5,16]{0,255} i8[3,16,9]{-128,127} u8[1]", ""},
                                       {"u8[0,8] i8[8,4]", ""},
                                       {"u8[5,0] i8[0,4]", ""},
                                       {"i8[1,300]{-128,127} u8[300,70]{0,255} i8[]{-128,127} u8[]{0,255}", ""},
                                       {0}};

const rung_op rung_op_matmul_integer = {
    .name = "matmul_integer",
    .doc = "matrix product of 8-bit integers, zero points taken away, exact in i32",
    .operands = (const char *const[]){"a", "b", "a_zero", "b_zero", NULL},
    .in_lo = 2,
    .in_hi = 4,
    .results = 1,
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "integers",
    .tests = cases,
};
