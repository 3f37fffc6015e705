/* SPDX-License-Identifier: MIT
 * What the structured ops share: further shape rules, spans of any type, ragged rows. */
#include "ops/structured.h"

#include <math.h>
#include <string.h>

#include "ir/graph.h"

/* ---- shape rules */

rung_status rung_infer_weight_class(const rung_infer *infer, uint32_t i, uint32_t takes) {
  const rung_value_type *type = &infer->in[i];
  if (type->kind != RUNG_VALUE_STATE_KV && rung_type_takes(type->type) & takes) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s cannot be %s%s", rung_op_operand_name(infer->op, i),
                           type->kind == RUNG_VALUE_STATE_KV ? "a key/value state of " : "",
                           rung_type_name(type->type));
}

rung_status rung_infer_index(const rung_infer *infer, uint32_t i) {
  RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_INT));
  const rung_type type = infer->in[i].type;
  if (type == RUNG_TYPE_I32 || type == RUNG_TYPE_I64) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s must be i32 or i64", rung_op_operand_name(infer->op, i));
}

rung_status rung_infer_ranks(const rung_infer *infer, uint32_t i, int lo, int hi) {
  const int rank = infer->in[i].rank;
  if (rank >= lo && rank <= hi) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s has rank %d but must have %d to %d",
                           rung_op_operand_name(infer->op, i), rank, lo, hi);
}

rung_status rung_infer_scalar(rung_infer *infer, uint32_t i, rung_type type) {
  const rung_value_type *have = &infer->in[i];
  const char *name = rung_op_operand_name(infer->op, i);
  if (have->type != type || have->kind == RUNG_VALUE_STATE_KV) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s must be %s", name, rung_type_name(type));
  }
  if (have->rank == 0 || (have->rank == 1 && rung_dim_is(infer->dims, have->extent[0], 1))) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s must be a single element", name);
}

rung_status rung_infer_agree(rung_infer *infer, rung_dim a, rung_dim b, const char *what) {
  if (rung_infer_equal(infer, a, b)) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s do not agree", what);
}

rung_status rung_infer_same_shape(rung_infer *infer, uint32_t i, uint32_t j) {
  const rung_value_type *a = &infer->in[i], *b = &infer->in[j];
  bool same = a->rank == b->rank;
  for (int axis = 0; same && axis < a->rank; axis++) same = rung_infer_equal(infer, a->extent[axis], b->extent[axis]);
  if (same) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s and %s must have one shape",
                           rung_op_operand_name(infer->op, i), rung_op_operand_name(infer->op, j));
}

rung_status rung_infer_broadcast_dim(rung_infer *infer, rung_dim a, rung_dim b, const char *what, rung_dim *out) {
  int64_t value;
  *out = rung_dims_is_constant(infer->dims, a, &value) && value != 1 ? a : b; /* a number says more than a symbol */
  if (rung_dim_is(infer->dims, a, 1)) return RUNG_OK;
  if (rung_dim_is(infer->dims, b, 1)) {
    *out = a;
    return RUNG_OK;
  }
  return rung_infer_agree(infer, a, b, what);
}

rung_status rung_infer_constant(const rung_infer *infer, rung_dim dim, const char *what, int64_t *out_value) {
  if (rung_dims_is_constant(infer->dims, dim, out_value)) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s must be a constant", what);
}

rung_status rung_infer_heads(const rung_infer *infer, rung_dim heads, rung_dim kv_heads) {
  int64_t n, kv;
  RUNG_TRY(rung_infer_constant(infer, heads, "the number of heads", &n));
  RUNG_TRY(rung_infer_constant(infer, kv_heads, "the number of key/value heads", &kv));
  if (kv >= 1 && n % kv == 0) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%lld heads do not share %lld key/value heads evenly",
                           (long long)n, (long long)kv);
}

rung_status rung_infer_scores(const rung_infer *infer, double scale, double soft_cap, int64_t window) {
  if (scale >= 0 && soft_cap >= 0 && isfinite(scale) && isfinite(soft_cap) && window >= 0) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "scale, soft_cap and window must be finite and not negative");
}

void rung_infer_result(rung_infer *infer, uint32_t r, rung_type type, int rank, const rung_dim *extent) {
  infer->out[r] = rung_value_type_of(type, rank);
  if (infer->n_in) infer->out[r].place = infer->in[0].place;
  for (int axis = 0; axis < rank; axis++) infer->out[r].extent[axis] = extent[axis];
}

rung_status rung_infer_ragged(rung_infer *infer, uint32_t first) {
  for (uint32_t i = first; i < first + 3; i++) {
    RUNG_TRY(rung_infer_index(infer, i));
    RUNG_TRY(rung_infer_rank(infer, i, 1));
  }
  const rung_dim n = infer->in[first + 1].extent[0];
  RUNG_TRY(rung_infer_agree(infer, infer->in[first].extent[0], rung_dims_add(infer->dims, n, rung_one(infer->dims)),
                            "offsets [n+1] and slot [n]"));
  return rung_infer_agree(infer, infer->in[first + 2].extent[0], n, "slot [n] and past [n]");
}

/* ---- operand access */

int64_t rung_broadcast_offset(const rung_operand *o, int axes, const int64_t *index, int rank) {
  int64_t offset = 0;
  for (int axis = 0; axis < axes; axis++) {
    if (o->extent[axis] != 1) offset += index[rank - axes + axis] * rung_axis_step(o, axis);
  }
  return offset;
}

void rung_copy_operand(const rung_operand *from, const rung_operand *to) {
  if (from->base == to->base) return;
  const rung_units source = rung_units_of(from), target = rung_units_of(to);
  rung_units_copy(&target, &source);
}

/* Rounds down: rows of a turned-round view lie before its base. */
static int64_t block_of(int64_t offset, int64_t block) {
  return offset >= 0 ? offset / block : -((block - 1 - offset) / block);
}

static void load_a8(const rung_operand *o, int64_t offset, int64_t n, double *out) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = block_of(offset + i, 32);
    rung_a8 block;
    memcpy(&block, o->base + at * (int64_t)sizeof block, sizeof block);
    out[i] = (double)block.scale * block.q[offset + i - 32 * at];
  }
}

void rung_load_span(const rung_operand *o, int64_t offset, int64_t step, int64_t n, double *out) {
  enum { LARGEST_BLOCK = 256 };
  const rung_type_row *type = rung_type_get((rung_type)o->type);
  if (type->block == 1) {
    for (int64_t i = 0; i < n; i++) out[i] = rung_load_f64(o, offset + i * step);
    return;
  }
  if (o->type == RUNG_TYPE_A8) {
    load_a8(o, offset, n, out);
    return;
  }
  float block[LARGEST_BLOCK];
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = block_of(offset + i, type->block), inside = offset + i - at * type->block;
    if (i == 0 || inside == 0) type->to_f32(o->base + at * type->bytes, block, type->block);
    out[i] = (double)block[inside];
  }
}

double rung_dot_f64(rung_span a, rung_span b, int64_t n) {
  enum { SPAN = 256 };
  double x[SPAN], y[SPAN], sum = 0;
  for (int64_t k = 0; k < n; k += SPAN) {
    const int64_t count = n - k < SPAN ? n - k : SPAN;
    rung_load_span(a.operand, a.offset + k * a.step, a.step, count, x);
    rung_load_span(b.operand, b.offset + k * b.step, b.step, count, y);
    for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
  }
  return sum;
}

int64_t rung_dot_i64(rung_span a, rung_span b, int64_t n) {
  uint64_t sum = 0; /* unsigned: wraps without being undefined */
  for (int64_t k = 0; k < n; k++) {
    sum += (uint64_t)rung_load_i64(a.operand, a.offset + k * a.step) *
           (uint64_t)rung_load_i64(b.operand, b.offset + k * b.step);
  }
  return (int64_t)sum;
}

/* ---- checks of values at run time */

rung_status rung_check_index(const rung_args *args, const char *op, int64_t index, int64_t extent, int64_t *out_index) {
  if (index < -extent || index >= extent) {
    return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: index %lld is outside [-%lld, %lld)", op, (long long)index,
                     (long long)extent, (long long)extent);
  }
  *out_index = index < 0 ? index + extent : index;
  return RUNG_OK;
}

rung_status rung_check_ragged(const rung_args *args, const char *op, const rung_operand *offsets, int64_t rows) {
  int64_t before = 0;
  for (int64_t s = 0; s < offsets->extent[0]; s++) {
    const int64_t at = rung_vector_at(offsets, s);
    if (at < before || (s == 0 && at != 0)) {
      return rung_fail(args->error, RUNG_OUT_OF_RANGE,
                       "%s: offsets[%lld] is %lld, but offsets start at 0 and do not fall", op, (long long)s,
                       (long long)at);
    }
    before = at;
  }
  if (before == rows) return RUNG_OK;
  return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: offsets end at %lld, but there are %lld rows", op,
                   (long long)before, (long long)rows);
}

rung_status rung_check_sequences(const rung_args *args, const char *op, const rung_operand *ragged, int64_t rows,
                                 const rung_kv_view *kv) {
  RUNG_TRY(rung_check_ragged(args, op, &ragged[0], rows));
  for (int64_t s = 0; s < ragged[1].extent[0]; s++) {
    const rung_sequence sequence = rung_sequence_at(&ragged[0], &ragged[1], &ragged[2], s);
    const int64_t count = sequence.end - sequence.first;
    if (sequence.slot < 0 || sequence.slot >= kv->slots) {
      return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: slot[%lld] is %lld, but the state has %d sequences", op,
                       (long long)s, (long long)sequence.slot, kv->slots);
    }
    if (sequence.past < 0 || sequence.past > kv->capacity - count) {
      return rung_fail(args->error, RUNG_OUT_OF_RANGE,
                       "%s: sequence %lld has %lld rows after position %lld, but the state's capacity is %lld", op,
                       (long long)s, (long long)count, (long long)sequence.past, (long long)kv->capacity);
    }
  }
  const int64_t row = (int64_t)kv->kv_heads * ((int64_t)kv->key_dim + kv->value_dim);
  if (row <= RUNG_REFERENCE_KV_ROW) return RUNG_OK;
  return rung_fail(args->error, RUNG_UNSUPPORTED, "%s: the reference takes at most %d numbers a position, not %lld", op,
                   RUNG_REFERENCE_KV_ROW, (long long)row);
}
