/* SPDX-License-Identifier: MIT
 * positions: where each row of a ragged batch stands in its sequence. */
#include "ops/attrs.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {{.name = "rows",
                                        .kind = RUNG_ATTR_DIM,
                                        .offset = offsetof(rung_positions_attrs, rows),
                                        .doc = "extent of the result: rows of the batch, where offsets end"},
                                       {0}};

static rung_status infer(rung_infer *infer) {
  const rung_positions_attrs *attrs = infer->attrs;
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_index(infer, i));
    RUNG_TRY(rung_infer_rank(infer, i, 1));
  }
  if (infer->n_in == 2)
    RUNG_TRY(rung_infer_agree(infer, infer->in[0].extent[0],
                              rung_dims_add(infer->dims, infer->in[1].extent[0], rung_one(infer->dims)),
                              "offsets [n+1] and past [n]"));
  if (!attrs->rows.id) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "rows must be given");
  rung_infer_result(infer, 0, RUNG_TYPE_I32, 1, &attrs->rows);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)in, (void)n_in, (void)attrs;
  out_role[0] = out->extent[0];
}

static rung_status reference(const rung_args *args) {
  const rung_operand *offsets = &args->in[0], *y = &args->out[0];
  RUNG_TRY(rung_check_ragged(args, "positions", offsets, y->extent[0]));
  for (int64_t s = 0; s + 1 < offsets->extent[0]; s++) {
    const int64_t past = args->n_in == 2 ? rung_vector_at(&args->in[1], s) : 0;
    const int64_t first = rung_vector_at(offsets, s), end = rung_vector_at(offsets, s + 1);
    for (int64_t row = first; row < end; row++) {
      rung_store_i64(y, row * y->stride[0], past + row - first);
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"i32[2]{0,0} i32[1]{0,90}", "rows=0"}, {"i64[4]{0,0} i64[3]{0,90}", "rows=0"}, {"i32[3]{0,0}", "rows=0"}, {0}};

const rung_op rung_op_positions = {
    .name = "positions",
    .doc = "past[s] + row - offsets[s] for every row of every sequence s of a ragged batch; past left out: 0",
    .operands = (const char *const[]){"offsets", "past", NULL},
    .in_lo = 1,
    .in_hi = 2,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_positions_attrs),
    .roles = (const char *const[]){"rows", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "integers",
    .tests = cases,
};
