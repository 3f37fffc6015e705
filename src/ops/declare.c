/* SPDX-License-Identifier: MIT
 * What a graph declares: inputs, weights, constants, states. Their type is given with the node; the rules here only
 * check it. They run nowhere: the runtime binds them. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* ---- rules. The graph itself checks types, extents and the bytes of constants. */
static rung_status named(const rung_infer *infer, const char *name) {
  if (name && *name) return RUNG_OK;
  return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "%s: a name is needed", infer->op->name);
}
static rung_status infer_input(rung_infer *infer) {
  return named(infer, ((const rung_input_attrs *)infer->attrs)->name);
}
static rung_status infer_weight(rung_infer *infer) {
  return named(infer, ((const rung_weight_attrs *)infer->attrs)->name);
}
static rung_status infer_constant(rung_infer *infer) {
  (void)infer;
  return RUNG_OK;
}

static rung_status infer_state(rung_infer *infer) {
  const rung_state_attrs *attrs = (const rung_state_attrs *)infer->attrs;
  const rung_value_type *type = &infer->out[0];
  RUNG_TRY(named(infer, attrs->name));
  if (type->kind == RUNG_VALUE_TENSOR)
    return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "state \"%s\": its kind must be dense or kv", attrs->name);
  if (attrs->window < 0)
    return rung_fail(infer->error, RUNG_OUT_OF_RANGE, "state \"%s\": window %lld is negative", attrs->name,
                     (long long)attrs->window);
  if (type->kind == RUNG_VALUE_STATE_DENSE) return RUNG_OK;
  if (type->rank != 3)
    return rung_fail(infer->error, RUNG_SHAPE_MISMATCH,
                     "state \"%s\": the extents of a kv state are kv_heads, "
                     "key_dim and value_dim, not %d numbers",
                     attrs->name, type->rank);
  for (int axis = 0; axis < 3; axis++)
    if (rung_dim_is(infer->dims, type->extent[axis], 0))
      return rung_fail(infer->error, RUNG_OUT_OF_RANGE, "state \"%s\": extent %d is 0", attrs->name, axis);
  if (type->type != RUNG_TYPE_F32 && type->type != RUNG_TYPE_F16 && type->type != RUNG_TYPE_BF16 &&
      type->type != RUNG_TYPE_Q8_0)
    return rung_fail(infer->error, RUNG_TYPE_MISMATCH,
                     "state \"%s\": keys and values are kept as f32, f16, bf16 or q8_0, not %s", attrs->name,
                     rung_type_name(type->type));
  const int64_t block = rung_type_get(type->type)->block;
  for (int axis = 1; axis < 3 && block > 1; axis++) {
    int64_t dim = 0;
    if (!rung_dims_is_constant(infer->dims, type->extent[axis], &dim) || dim % block)
      return rung_fail(infer->error, RUNG_UNSUPPORTED, "state \"%s\": heads of %lld %s as %s, which has blocks of %lld",
                       attrs->name, (long long)dim, axis == 1 ? "keys" : "values", rung_type_name(type->type),
                       (long long)block);
  }
  return RUNG_OK;
}

/* ---- ops */
static const char *const no_operands[] = {NULL};
#define NAME_ATTR(struct_) \
  { "name", RUNG_ATTR_TEXT, offsetof(struct_, name), NULL, NULL, "how callers speak of it" }
static const rung_attr input_attrs[] = {NAME_ATTR(rung_input_attrs), {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_attr weight_attrs[] = {NAME_ATTR(rung_weight_attrs), {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_attr constant_attrs[] = {
    {"data", RUNG_ATTR_CONSTANT, offsetof(rung_constant_attrs, data), NULL, NULL, "dense, row-major"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_attr state_attrs[] = {NAME_ATTR(rung_state_attrs),
                                        {"window", RUNG_ATTR_I64, offsetof(rung_state_attrs, window), "0", NULL,
                                         "kv: positions that stay visible, 0 for all"},
                                        {NULL, 0, 0, NULL, NULL, NULL}};

#define DECLARES(name_, text, flags_)                                           \
  const rung_op rung_op_##name_ = {.name = #name_,                              \
                                   .doc = text,                                 \
                                   .operands = no_operands,                     \
                                   .results = 1,                                \
                                   .flags = RUNG_OP_DECLARES | (flags_),        \
                                   .attrs = name_##_attrs,                      \
                                   .attrs_bytes = sizeof(rung_##name_##_attrs), \
                                   .infer = infer_##name_,                      \
                                   .role_dims = rung_role_elements,             \
                                   .no_gradient = "has no operands"};
DECLARES(input, "a tensor that the caller binds at each run", RUNG_OP_INPUT)
DECLARES(weight, "a tensor of the store, by its name there", 0)
DECLARES(constant, "a tensor that is part of the graph", 0)
DECLARES(state, "memory that outlives a run; the value is its first version", 0)

/* ---- builders */
static rung_value declare(rung_graph *graph, const rung_op *op, const void *attrs, const rung_value_type *type) {
  const rung_node *node = rung_graph_declare(graph, op, attrs, type);
  return node ? rung_node_result(graph, node, 0) : rung_build_null();
}

/* A type of `rank` axes, or false after the graph has been told why not. */
static bool typed(rung_graph *graph, const char *op, rung_type type, int rank, const void *extent,
                  rung_value_type *out) {
  if (rank < 0 || rank > RUNG_MAX_RANK || (rank && !extent)) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "%s: rank %d is not in 0 .. %d, or no extents are given", op, rank,
                    RUNG_MAX_RANK);
    return false;
  }
  *out = rung_value_type_of(type, rank);
  return true;
}

static bool typed_constant(rung_graph *graph, const char *op, rung_type type, int rank, const int64_t *extent,
                           rung_value_type *out) {
  if (!typed(graph, op, type, rank, extent, out)) return false;
  for (int axis = 0; axis < rank; axis++) {
    if (extent[axis] < 0) {
      rung_graph_fail(graph, RUNG_OUT_OF_RANGE, "%s: extent %d is %lld", op, axis, (long long)extent[axis]);
      return false;
    }
    out->extent[axis] = rung_graph_constant_dim(graph, extent[axis]);
  }
  return true;
}

rung_value rung_graph_input(rung_graph *graph, const char *name, rung_type type, int rank, const rung_dim *extent) {
  rung_value_type out;
  const rung_input_attrs attrs = {name ? name : ""};
  if (!typed(graph, "input", type, rank, extent, &out)) return rung_build_null();
  for (int axis = 0; axis < rank; axis++) out.extent[axis] = extent[axis];
  return declare(graph, &rung_op_input, &attrs, &out);
}

rung_value rung_graph_weight(rung_graph *graph, const char *name, rung_type type, int rank, const int64_t *extent) {
  rung_value_type out;
  const rung_weight_attrs attrs = {name ? name : ""};
  if (!typed_constant(graph, "weight", type, rank, extent, &out)) return rung_build_null();
  return declare(graph, &rung_op_weight, &attrs, &out);
}

rung_value rung_graph_constant(rung_graph *graph, rung_type type, int rank, const int64_t *extent, const void *data) {
  rung_value_type out;
  if (!typed_constant(graph, "constant", type, rank, extent, &out)) return rung_build_null();
  uint64_t elements = 1;
  for (int axis = 0; axis < rank; axis++) {
    if (rung_mul_overflows(elements, (uint64_t)extent[axis], &elements)) {
      rung_graph_fail(graph, RUNG_OVERFLOW, "constant: its size does not fit 64 bits");
      return rung_build_null();
    }
  }
  const rung_constant_attrs attrs = {{(const uint8_t *)data, rung_type_bytes(type, elements)}};
  if (attrs.data.bytes && !data) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "constant: no data is given");
    return rung_build_null();
  }
  return declare(graph, &rung_op_constant, &attrs, &out);
}

rung_value rung_graph_scalar(rung_graph *graph, rung_type type, double value) {
  const rung_type_row *row = rung_type_get(type);
  if (!row || row->block > 1) {
    rung_graph_fail(graph, RUNG_TYPE_MISMATCH, "scalar: %s has no single elements", rung_type_name(type));
    return rung_build_null();
  }
  uint64_t bits[1] = {0};
  const rung_operand operand = {.base = (uint8_t *)bits, .type = (uint8_t)type};
  if (!rung_operand_is_integer(&operand))
    rung_store_f64(&operand, 0, value);
  else if (type == RUNG_TYPE_BOOL)
    rung_store_i64(&operand, 0, value != 0);
  else if (!(value >= -0x1p63 && value < 0x1p64)) {
    rung_graph_fail(graph, RUNG_OUT_OF_RANGE, "scalar: %g does not fit %s", value, row->name);
    return rung_build_null();
  } else
    rung_store_i64(&operand, 0, value < 0x1p63 ? (int64_t)value : (int64_t)(uint64_t)value);
  return rung_graph_constant(graph, type, 0, NULL, bits);
}

rung_value rung_graph_state(rung_graph *graph, const char *name, const rung_state_desc *desc) {
  rung_value_type out;
  if (!desc || desc->size == 0) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "state: no description, or one of size 0");
    return rung_build_null();
  }
  const rung_state_attrs attrs = {name ? name : "", desc->window};
  if (!typed_constant(graph, "state", desc->type, desc->rank, desc->extent, &out)) return rung_build_null();
  out.kind = desc->kind == RUNG_STATE_KV ? RUNG_VALUE_STATE_KV : RUNG_VALUE_STATE_DENSE;
  return declare(graph, &rung_op_state, &attrs, &out);
}
