/* SPDX-License-Identifier: MIT
 * What shape rules share. */
#include "ops/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ir/graph.h"

const char *rung_op_operand_name(const rung_op *op, uint32_t i) {
  const char *last = "operand";
  for (uint32_t k = 0; op->operands && op->operands[k]; k++) {
    last = op->operands[k];
    if (k == i) return last;
  }
  return last;
}

static void describe(rung_text *text, const rung_infer *infer, uint32_t i) {
  const rung_value_type *type = &infer->in[i];
  rung_text_printf(text, "%s%s %s[", i ? ", " : "", rung_op_operand_name(infer->op, i), rung_type_name(type->type));
  for (int axis = 0; axis < type->rank; axis++) {
    if (axis) rung_text_puts(text, ",");
    rung_dims_print(infer->dims, type->extent[axis], text);
  }
  rung_text_puts(text, "]");
}

rung_status rung_infer_refuse(const rung_infer *infer, rung_status status, const char *why, ...) {
  char reason[RUNG_MESSAGE_BYTES];
  va_list args;
  va_start(args, why);
  vsnprintf(reason, sizeof reason, why, args);
  va_end(args);
  rung_text operands;
  rung_text_init(&operands, infer->dims->host);
  for (uint32_t i = 0; i < infer->n_in && i < 8; i++) describe(&operands, infer, i);
  if (infer->n_in > 8) rung_text_puts(&operands, ", ...");
  rung_fail(infer->error, status, "%s(%s): %s", infer->op->name,
            operands.failed || !operands.length ? "" : operands.data, reason);
  rung_text_finish(&operands);
  return status;
}

uint32_t rung_type_takes(rung_type type) {
  const rung_type_row *row = rung_type_get(type);
  if (!row) return 0;
  switch (row->class_) {
    case RUNG_CLASS_FLOAT:
      return RUNG_TAKES_FLOAT;
    case RUNG_CLASS_INT:
    case RUNG_CLASS_UINT:
      return RUNG_TAKES_INT;
    case RUNG_CLASS_BOOL:
      return RUNG_TAKES_BOOL;
    case RUNG_CLASS_STORAGE:
      return RUNG_TAKES_STORAGE;
    case RUNG_CLASS_BLOCK:
      return RUNG_TAKES_BLOCK;
  }
  return 0;
}
bool rung_type_is_float(rung_type type) { return rung_type_takes(type) == RUNG_TAKES_FLOAT; }
bool rung_type_is_integer(rung_type type) { return rung_type_takes(type) == RUNG_TAKES_INT; }
bool rung_type_is_unsigned(rung_type type) {
  const rung_type_row *row = rung_type_get(type);
  return row && row->class_ == RUNG_CLASS_UINT;
}

static const char *takes_text(uint32_t takes) {
  switch (takes) {
    case RUNG_TAKES_FLOAT:
      return "a float type";
    case RUNG_TAKES_INT:
      return "an integer type";
    case RUNG_TAKES_BOOL:
      return "bool";
    case RUNG_TAKES_INT | RUNG_TAKES_BOOL:
      return "an integer type or bool";
    case RUNG_TAKES_NUMBER:
      return "a float or integer type";
    case RUNG_TAKES_PLAIN:
      return "a type that is computed in";
    default:
      return "another type";
  }
}

rung_status rung_infer_class(const rung_infer *infer, uint32_t i, uint32_t takes) {
  const rung_value_type *type = &infer->in[i];
  const char *name = rung_op_operand_name(infer->op, i);
  if (type->kind == RUNG_VALUE_STATE_KV)
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s is a key/value state, which only append and attention take",
                             name);
  if (!(rung_type_takes(type->type) & takes))
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s is %s but must be %s", name, rung_type_name(type->type),
                             takes_text(takes));
  if (type->layout)
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s lies in packed layout %u, which this op does not read",
                             name, (unsigned)type->layout);
  return RUNG_OK;
}

rung_status rung_infer_classes(const rung_infer *infer, uint32_t takes) {
  for (uint32_t i = 0; i < infer->n_in; i++) RUNG_TRY(rung_infer_class(infer, i, takes));
  return RUNG_OK;
}

rung_status rung_infer_same_type(const rung_infer *infer, uint32_t i, uint32_t j) {
  if (infer->in[i].type == infer->in[j].type) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "%s is %s but %s is %s", rung_op_operand_name(infer->op, i),
                           rung_type_name(infer->in[i].type), rung_op_operand_name(infer->op, j),
                           rung_type_name(infer->in[j].type));
}

rung_status rung_infer_rank(const rung_infer *infer, uint32_t i, int rank) {
  if (infer->in[i].rank == rank) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s has rank %d but must have %d",
                           rung_op_operand_name(infer->op, i), infer->in[i].rank, rank);
}

rung_status rung_infer_rank_at_least(const rung_infer *infer, uint32_t i, int rank) {
  if (infer->in[i].rank >= rank) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "%s has rank %d but needs at least %d",
                           rung_op_operand_name(infer->op, i), infer->in[i].rank, rank);
}

rung_status rung_infer_extent(rung_infer *infer, uint32_t i, int axis, rung_dim want) {
  if (rung_infer_equal(infer, infer->in[i].extent[axis], want)) return RUNG_OK;
  rung_text text;
  rung_text_init(&text, infer->dims->host);
  rung_dims_print(infer->dims, want, &text);
  const rung_status status =
      rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "axis %d of %s must have extent %s", axis,
                        rung_op_operand_name(infer->op, i), text.failed || !text.length ? "?" : text.data);
  rung_text_finish(&text);
  return status;
}

rung_status rung_infer_axis(const rung_infer *infer, int64_t axis, int rank, int *out_axis) {
  if (axis < -rank || axis >= rank)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "axis %lld is outside rank %d", (long long)axis, rank);
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return RUNG_OK;
}

rung_status rung_infer_dim(const rung_infer *infer, rung_dim dim) {
  if (dim.id) return RUNG_OK;
  return rung_infer_refuse(infer, RUNG_OVERFLOW, "an extent of the result cannot be stated in 64 bits");
}

bool rung_dim_is(const rung_dims *dims, rung_dim dim, int64_t value) {
  int64_t constant;
  return rung_dims_is_constant(dims, dim, &constant) && constant == value;
}

/* One axis of operand i against what the operands before it gave. */
static rung_status broadcast_axis(rung_infer *infer, uint32_t i, int axis, rung_dim have, rung_dim *joined) {
  int64_t value;
  if (rung_dim_is(infer->dims, have, 1) || rung_dim_same(have, *joined)) return RUNG_OK;
  if (rung_dim_is(infer->dims, *joined, 1)) {
    *joined = have;
    return RUNG_OK;
  }
  if (!rung_infer_equal(infer, have, *joined))
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "axis %d of %s does not broadcast with the operands before it",
                             axis, rung_op_operand_name(infer->op, i));
  if (rung_dims_is_constant(infer->dims, have, &value)) *joined = have; /* of two equal ones the known one */
  return RUNG_OK;
}

rung_status rung_infer_broadcast(rung_infer *infer, uint32_t first, uint32_t n, rung_value_type *out) {
  int rank = 0;
  for (uint32_t i = first; i < first + n; i++)
    if (infer->in[i].rank > rank) rank = infer->in[i].rank;
  out->rank = (int8_t)rank;
  for (int axis = 0; axis < rank; axis++) out->extent[axis] = rung_one(infer->dims);
  for (uint32_t i = first; i < first + n; i++) {
    const rung_value_type *type = &infer->in[i];
    for (int axis = 0; axis < type->rank; axis++)
      RUNG_TRY(broadcast_axis(infer, i, axis, type->extent[axis], &out->extent[rank - type->rank + axis]));
  }
  return RUNG_OK;
}

rung_value_type rung_value_type_of(rung_type type, int rank) {
  rung_value_type out = {.type = type, .kind = RUNG_VALUE_TENSOR, .rank = (int8_t)rank};
  return out;
}

rung_value_type rung_value_type_like(const rung_value_type *like, rung_type type) {
  rung_value_type out = rung_value_type_of(type, like->rank);
  memcpy(out.extent, like->extent, sizeof out.extent);
  out.place = like->place;
  return out;
}

rung_dim rung_dims_product(rung_dims *dims, const rung_dim *extent, int first, int limit) {
  rung_dim product = rung_one(dims);
  for (int axis = first; axis < limit && product.id; axis++) product = rung_dims_mul(dims, product, extent[axis]);
  return product;
}

void rung_role_elements(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                        const void *attrs, rung_dim *out_role) {
  (void)in, (void)n_in, (void)attrs;
  out_role[0] = rung_dims_product(dims, out[0].extent, 0, out[0].rank);
}

void rung_view_dense_strides(rung_dims *dims, rung_type type, int rank, const rung_dim *extent, rung_dim *out_stride) {
  const bool blocks = rung_type_takes(type) == RUNG_TAKES_BLOCK;
  rung_dim stride = rung_one(dims);
  for (int axis = rank - 1; axis >= 0; axis--) {
    out_stride[axis] = stride;
    rung_dim units = extent[axis];
    if (axis == rank - 1 && blocks)
      units = rung_dims_div(dims, units, rung_dims_constant(dims, rung_type_get(type)->block));
    stride = rung_dims_mul(dims, stride, units);
  }
}
