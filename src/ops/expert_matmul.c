/* SPDX-License-Identifier: MIT
 * expert_matmul: for each row and each of its places, the product with the one matrix of many that an index names. What
 * no index names is not read. */
#include "ops/attrs.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {{.name = "experts",
                                        .kind = RUNG_ATTR_I64,
                                        .offset = offsetof(rung_expert_matmul_attrs, experts),
                                        .doc = "matrices that b holds"},
                                       {.name = "type",
                                        .kind = RUNG_ATTR_TYPE,
                                        .offset = offsetof(rung_expert_matmul_attrs, type),
                                        .text_default = "f32",
                                        .doc = "of the result"},
                                       {0}};

static rung_status check_types(const rung_infer *infer, const rung_expert_matmul_attrs *attrs) {
  const rung_type a = infer->in[0].type, b = infer->in[1].type;
  const bool block = rung_type_takes(b) == RUNG_TAKES_BLOCK && b != RUNG_TYPE_A8;
  const bool fits = a == RUNG_TYPE_A8 ? block : rung_type_is_float(a) && (block || rung_type_is_float(b));
  if (fits && rung_type_is_float(attrs->type)) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "no product of these types in %s", rung_type_name(attrs->type));
}

/* Rows of one expert: b is [experts, N, K] or, its rows one after another, [experts * N, K]. */
static rung_status rows_of_expert(rung_infer *infer, int64_t experts, int64_t *out_rows) {
  const rung_value_type *b = &infer->in[1];
  int64_t rows;
  if (experts < 1) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "experts is %lld", (long long)experts);
  if (b->rank == 3) {
    RUNG_TRY(rung_infer_extent(infer, 1, 0, rung_dims_constant(infer->dims, experts)));
    return rung_infer_constant(infer, b->extent[1], "rows of an expert", out_rows);
  }
  RUNG_TRY(rung_infer_rank(infer, 1, 2));
  RUNG_TRY(rung_infer_constant(infer, b->extent[0], "rows of b", &rows));
  if (rows % experts)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%lld rows of b are no multiple of %lld experts",
                             (long long)rows, (long long)experts);
  *out_rows = rows / experts;
  return RUNG_OK;
}

static rung_status infer(rung_infer *infer) {
  const rung_expert_matmul_attrs *attrs = infer->attrs;
  const rung_value_type *a = &infer->in[0], *b = &infer->in[1], *index = &infer->in[2];
  int64_t rows, places;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT | RUNG_TAKES_BLOCK));
  RUNG_TRY(rung_infer_weight_class(infer, 1, RUNG_TAKES_FLOAT | RUNG_TAKES_BLOCK));
  RUNG_TRY(rung_infer_index(infer, 2));
  RUNG_TRY(check_types(infer, attrs));
  RUNG_TRY(rung_infer_rank(infer, 0, 3));
  RUNG_TRY(rung_infer_rank(infer, 2, 2));
  RUNG_TRY(rows_of_expert(infer, attrs->experts, &rows));
  RUNG_TRY(rung_infer_agree(infer, a->extent[2], b->extent[b->rank - 1], "K of a and K of b"));
  RUNG_TRY(rung_infer_agree(infer, a->extent[0], index->extent[0], "rows of a and index"));
  RUNG_TRY(rung_infer_constant(infer, a->extent[1], "the places of a", &places));
  if (places != 1) RUNG_TRY(rung_infer_agree(infer, a->extent[1], index->extent[1], "places of a and index"));
  const rung_dim extent[3] = {index->extent[0], index->extent[1], rung_dims_constant(infer->dims, rows)};
  rung_infer_result(infer, 0, attrs->type, 3, extent);
  return RUNG_OK;
}

/* M are the rows, not the pairs of row and place: of a single row no expert has more than one pair, as a rule. */
static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)attrs;
  out_role[0] = out->extent[0];
  out_role[1] = out->extent[2];
  out_role[2] = in[0].extent[2];
  out_role[3] = out->extent[1];
}

static rung_status reference(const rung_args *args) {
  const rung_expert_matmul_attrs *attrs = args->attrs;
  const rung_operand *a = &args->in[0], *b = &args->in[1], *index = &args->in[2], *y = &args->out[0];
  const int64_t k = a->extent[2];
  for (int64_t row = 0; row < y->extent[0]; row++) {
    for (int64_t place = 0; place < y->extent[1]; place++) {
      const int64_t at[3] = {row, a->extent[1] == 1 ? 0 : place, 0};
      const rung_span left = {a, rung_element_offset(a, at), rung_axis_step(a, 2)};
      const int64_t expert = rung_load_i64(index, rung_element_offset(index, (const int64_t[]){row, place}));
      if (expert < 0 || expert >= attrs->experts)
        return rung_fail(args->error, RUNG_OUT_OF_RANGE,
                         "expert_matmul: index %lld of row %lld is not in 0 .. %lld, the experts", (long long)expert,
                         (long long)row, (long long)attrs->experts - 1);
      for (int64_t n = 0; n < y->extent[2]; n++) {
        const int64_t first = b->rank == 3 ? expert * rung_axis_step(b, 0) + n * rung_axis_step(b, 1)
                                           : (expert * y->extent[2] + n) * rung_axis_step(b, 0);
        const rung_span right = {b, first, rung_axis_step(b, b->rank - 1)};
        rung_store_f64(y, rung_element_offset(y, (const int64_t[]){row, place, n}), rung_dot_f64(left, right, k));
      }
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"f32[5,1,19] f32[6,7,19] i32[5,2]{0,5}", "experts=6"},
                                       {"f32[9,2,64] f32[4,32,64] i64[9,2]{0,3}", "experts=4"},
                                       {"f32[7,1,64] bf16[64,64] i32[7,3]{0,3}", "experts=4"},
                                       {"f32[1,1,64] q4_0[8,32,64] i32[1,4]{0,7}", "experts=8"},
                                       {"f32[40,1,64] q8_0[2,48,64] i32[40,2]{0,1}", "experts=2"},
                                       {"a8[11,1,64] q4_1[3,32,64] i32[11,2]{0,2}", "experts=3"},
                                       {"a8[5,2,256] q6_k[64,256] i32[5,2]{0,3}", "experts=4"},
                                       {"f16[3,1,32] f16[2,16,32] i32[3,1]{0,1}", "experts=2, type=f16"},
                                       {"f64[3,1,9] f64[2,5,9] i64[3,2]{0,1}", "experts=2, type=f64"},
                                       {"f32[0,1,32] f32[2,16,32] i32[0,2]", "experts=2"},
                                       {"f32[4,1,32] f32[2,16,32] i32[4,0]", "experts=2"},
                                       {0}};

const rung_op rung_op_expert_matmul = {
    .name = "expert_matmul",
    .doc = "each row times those of many transposed matrices that its indices name; the others are not read",
    .operands = (const char *const[]){"a", "b", "index", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_expert_matmul_attrs),
    .roles = (const char *const[]){"M", "N", "K", "places", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "experts are chosen, not weighed, here",
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35}, /* as matmul */
};
