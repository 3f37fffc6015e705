/* SPDX-License-Identifier: MIT
 * append: keys and values of new rows into a kv state. append_dense: rows into a dense state. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/structured.h"

/* ---- append(state, k, v, offsets, slot, past) */

static rung_status check_rows(rung_infer *infer, uint32_t i, rung_dim rows, int which) {
  const rung_value_type *state = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, i, 3));
  RUNG_TRY(rung_infer_extent(infer, i, 0, rows));
  RUNG_TRY(rung_infer_extent(infer, i, 1, state->extent[0]));
  return rung_infer_extent(infer, i, 2, state->extent[which]);
}

static rung_status infer_append(rung_infer *infer) {
  if (infer->in[0].kind != RUNG_VALUE_STATE_KV) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "state must be a key/value state");
  }
  RUNG_TRY(rung_infer_rank_at_least(infer, 1, 1));
  RUNG_TRY(check_rows(infer, 1, infer->in[1].extent[0], 1));
  RUNG_TRY(check_rows(infer, 2, infer->in[1].extent[0], 2));
  RUNG_TRY(rung_infer_ragged(infer, 3));
  infer->out[0] = infer->in[0];
  return RUNG_OK;
}

static void append_role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                             const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[1].extent[0];
}

/* Row `row` of x[rows, heads, dim] as f32. */
static void load_heads(const rung_operand *x, int64_t row, float *out) {
  for (int64_t h = 0; h < x->extent[1]; h++) {
    for (int64_t d = 0; d < x->extent[2]; d++) {
      *out++ = (float)rung_load_f64(x, rung_element_offset(x, (const int64_t[]){row, h, d}));
    }
  }
}

static rung_status append_reference(const rung_args *args) {
  const rung_operand *k = &args->in[1], *v = &args->in[2], *ragged = &args->in[3];
  const rung_kv_view *kv = args->out[0].kv;
  float position[RUNG_REFERENCE_KV_ROW];
  RUNG_TRY(rung_check_sequences(args, "append", ragged, k->extent[0], kv));
  for (int64_t s = 0; s < ragged[1].extent[0]; s++) {
    const rung_sequence sequence = rung_sequence_at(&ragged[0], &ragged[1], &ragged[2], s);
    for (int64_t row = sequence.first; row < sequence.end; row++) {
      load_heads(k, row, position);
      load_heads(v, row, position + k->extent[1] * k->extent[2]);
      kv->write_row(kv, (int32_t)sequence.slot, sequence.past + row - sequence.first, position);
    }
  }
  return RUNG_OK;
}

/* The generic tests have no kv state; tests/ops/test_structured_kv.c covers it. The rounding to the state's type is the
 * state's: results are exact. */
const rung_op rung_op_append = {
    .name = "append",
    .doc = "writes keys and values of new rows behind those that each sequence holds; rounds to the state's type",
    .operands = (const char *const[]){"state", "k", "v", "offsets", "slot", "past", NULL},
    .results_named = (const char *const[]){"state", NULL},
    .in_lo = 6,
    .in_hi = 6,
    .results = 1,
    .flags = RUNG_OP_EFFECT,
    .roles = (const char *const[]){"rows", NULL},
    .infer = infer_append,
    .role_dims = append_role_dims,
    .reference = append_reference,
    .no_gradient = "writes a state",
};

/* ---- append_dense(state, x, position): state[b, position[b] + i, ...] = x[b, i, ...] */

static rung_status infer_dense(rung_infer *infer) {
  const rung_value_type *state = &infer->in[0];
  if (state->kind != RUNG_VALUE_STATE_DENSE) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "state must be a dense state");
  }
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_same_type(infer, 0, 1));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 2));
  RUNG_TRY(rung_infer_rank(infer, 1, state->rank));
  for (int axis = 0; axis < state->rank; axis++) {
    if (axis != 1) RUNG_TRY(rung_infer_extent(infer, 1, axis, state->extent[axis]));
  }
  RUNG_TRY(rung_infer_index(infer, 2));
  RUNG_TRY(rung_infer_rank(infer, 2, 1));
  RUNG_TRY(rung_infer_extent(infer, 2, 0, state->extent[0]));
  infer->out[0] = *state;
  return RUNG_OK;
}

static void dense_role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                            const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_mul(dims, in[1].extent[0], in[1].extent[1]);
}

/* Nothing is written unless all rows have room. */
static rung_status dense_reference(const rung_args *args) {
  const rung_operand *x = &args->in[1], *position = &args->in[2], *state = &args->out[0];
  for (int64_t b = 0; b < x->extent[0]; b++) {
    const int64_t at = rung_vector_at(position, b);
    if (at < 0 || at > state->extent[1] - x->extent[1]) {
      return rung_fail(args->error, RUNG_OUT_OF_RANGE,
                       "append_dense: %lld rows at position %lld of a state with capacity %lld",
                       (long long)x->extent[1], (long long)at, (long long)state->extent[1]);
    }
  }
  rung_copy_operand(&args->in[0], state);
  const rung_units from = rung_units_of(x), to = rung_units_of(state);
  int64_t stride[2][RUNG_MAX_RANK];
  memcpy(stride[0], from.stride, sizeof stride[0]);
  memcpy(stride[1], to.stride, sizeof stride[1]);
  rung_walk w;
  for (rung_walk_begin_strides(&w, x->rank, x->extent, 2, stride); w.live; rung_walk_next(&w)) {
    const int64_t shift = rung_vector_at(position, w.index[0]) * to.stride[1];
    memcpy(rung_unit_at(&to, w.offset[1] + shift), rung_unit_at(&from, w.offset[0]), from.bytes);
  }
  return RUNG_OK;
}

const rung_op rung_op_append_dense = {
    .name = "append_dense",
    .doc = "writes rows into a dense state [batch, capacity, ...] from a position of each batch entry on",
    .operands = (const char *const[]){"state", "x", "position", NULL},
    .results_named = (const char *const[]){"state", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .flags = RUNG_OP_EFFECT,
    .roles = (const char *const[]){"rows", NULL},
    .infer = infer_dense,
    .role_dims = dense_role_dims,
    .reference = dense_reference,
    .no_gradient = "writes a state",
};
