/* SPDX-License-Identifier: MIT
 * What shape rules call, and the checks that hold for the result of every rule. */
#include "ir/infer.h"

#include <string.h>

/* ---- checks at run time */

/* The same question comes up in every layer of a model: the last few are enough to find it again. */
enum { LOOK_BACK = 16 };

static bool record(rung_infer *infer, rung_dim a, rung_dim b, bool at_least) {
  rung_graph *graph = infer->graph;
  if (infer->silent) return true;
  const uint32_t first = graph->checks > LOOK_BACK ? graph->checks - LOOK_BACK : 0;
  for (uint32_t i = first; i < graph->checks; i++) {
    const rung_dim_check *there = &graph->check[i];
    if (there->at_least == at_least && there->a.id == a.id && there->b.id == b.id) return true;
  }
  if (!rung_arena_grow(&graph->arena, (void **)&graph->check, &graph->check_capacity, graph->checks + 1,
                       sizeof *graph->check)) {
    infer->dims->failure = RUNG_OUT_OF_MEMORY;
    return false;
  }
  graph->check[graph->checks++] = (rung_dim_check){a, b, at_least, graph->nodes};
  return true;
}

bool rung_infer_equal(rung_infer *infer, rung_dim a, rung_dim b) {
  if (!a.id || !b.id) return false;
  switch (rung_dims_compare(infer->dims, a, b)) {
    case RUNG_DIM_EQUAL:
      return true;
    case RUNG_DIM_DIFFERENT:
      return false;
    case RUNG_DIM_UNKNOWN:
      break;
  }
  return record(infer, a, b, false);
}

bool rung_infer_at_least(rung_infer *infer, rung_dim a, rung_dim b) {
  if (!a.id || !b.id) return false;
  if (a.id == b.id) return true;
  const rung_interval difference = rung_dims_difference(infer->dims, a, b);
  if (difference.lo >= 0) return true;
  if (difference.hi < 0) return false;
  return record(infer, a, b, true);
}

/* ---- symbols */

/* The expected type names the symbol: kept if this graph has not made it yet and the new bound is no wider. */
static rung_dim given_symbol(rung_infer *infer, uint32_t result, int axis, rung_dim bound) {
  if (!infer->given || result >= infer->n_out || axis >= infer->given[result].rank) return (rung_dim){0};
  const rung_dim dim = infer->given[result].extent[axis];
  const rung_dim_node *node = &infer->dims->node[dim.id];
  if (node->kind != RUNG_DIM_KIND_SYMBOL) return (rung_dim){0};
  const rung_symbol *symbol = &infer->dims->symbol[node->symbol];
  const uint64_t bit = UINT64_C(1) << node->symbol;
  const uint64_t taken = infer->silent ? infer->made : infer->made | infer->graph->made;
  if (!symbol->made || taken & bit) return (rung_dim){0};
  const bool narrower = bound.id && infer->dims->node[bound.id].hi <= node->hi;
  if (symbol->bound.id != bound.id && !narrower) return (rung_dim){0};
  infer->made |= bit;
  return dim;
}

rung_dim rung_infer_symbol(rung_infer *infer, uint32_t result, int axis, const char *name, rung_dim bound) {
  rung_dim dim = given_symbol(infer, result, axis, bound);
  if (dim.id) return dim;
  if (infer->silent) return (rung_dim){0};
  dim = rung_dims_make_symbol(infer->dims, name, bound);
  if (dim.id) infer->made |= infer->dims->node[dim.id].symbols;
  return dim;
}

/* ---- what holds for every value */

static rung_status check_blocks(rung_infer *infer, const rung_value_type *type, const rung_type_row *row) {
  if (type->rank == 0) {
    return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "%s lies in blocks of %u along the last axis: rank 0 has none",
                     row->name, row->block);
  }
  const rung_dim last = type->extent[type->rank - 1];
  const rung_dim rest = rung_dims_combine(infer->dims, RUNG_DIM_MOD, last, rung_dims_constant(infer->dims, row->block));
  if (!rest.id) return rung_fail(infer->error, infer->dims->failure, "%s", infer->dims->reason);
  if (rung_infer_equal(infer, rest, rung_dims_constant(infer->dims, 0))) return RUNG_OK;
  return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "the last axis of %s must be a multiple of %u", row->name,
                   row->block);
}

static rung_status check_type(rung_infer *infer, const rung_value_type *type) {
  const rung_type_row *row = rung_type_get(type->type);
  if (!row) return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "the result has no valid element type");
  if (type->rank < 0 || type->rank > RUNG_MAX_RANK) {
    return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "rank %d is not from 0 to %d", type->rank, RUNG_MAX_RANK);
  }
  if (type->kind > RUNG_VALUE_STATE_KV || type->place < 0) {
    return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "the result is of no known kind or place");
  }
  for (int axis = 0; axis < type->rank; axis++) {
    const rung_dim extent = type->extent[axis];
    if (extent.id == 0 || extent.id >= infer->dims->count) {
      return rung_fail(infer->error, extent.id || !infer->dims->failure ? RUNG_INVALID_ARGUMENT : infer->dims->failure,
                       "the extent of axis %d is %s", axis,
                       extent.id ? "no dimension of this graph" : "the null dimension");
    }
    if (infer->dims->node[extent.id].lo >= 0) continue;
    if (!rung_infer_at_least(infer, extent, rung_dims_constant(infer->dims, 0))) {
      return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "the extent of axis %d is below 0", axis);
    }
  }
  if (type->kind == RUNG_VALUE_TENSOR && row->class_ == RUNG_CLASS_BLOCK && !type->layout) {
    return check_blocks(infer, type, row);
  }
  return RUNG_OK;
}

/* ---- declarations */

/* Bytes of a dense tensor with constant extents; false if they do not fit. */
static bool dense_bytes(const rung_dims *dims, const rung_value_type *type, uint64_t *out_bytes) {
  const rung_type_row *row = rung_type_get(type->type);
  uint64_t count = 1;
  for (int axis = 0; axis < type->rank; axis++) {
    const uint64_t extent = (uint64_t)dims->node[type->extent[axis].id].value;
    if (rung_mul_overflows(count, extent, &count)) return false;
  }
  const uint64_t blocks = count / row->block + (count % row->block != 0);
  return !rung_mul_overflows(blocks, (uint64_t)row->bytes, out_bytes);
}

static rung_status check_declaration(rung_infer *infer, const rung_value_type *type) {
  const bool input = infer->op->flags & RUNG_OP_INPUT;
  uint64_t made = 0;
  for (uint32_t i = 0; i < infer->dims->symbols; i++) made |= (uint64_t)infer->dims->symbol[i].made << i;
  for (int axis = 0; axis < type->rank; axis++) {
    const rung_dim_node *extent = &infer->dims->node[type->extent[axis].id];
    if (!input && extent->kind != RUNG_DIM_KIND_CONSTANT) {
      return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "the extent of axis %d is not constant", axis);
    }
    if (!infer->graph->parent && extent->symbols & made) {
      return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "the extent of axis %d is only known after a step", axis);
    }
  }
  if (input && !infer->graph->parent && type->kind != RUNG_VALUE_TENSOR) {
    return rung_fail(infer->error, RUNG_INVALID_ARGUMENT, "a state is no input");
  }
  for (const rung_attr *attr = infer->op->attrs; attr && attr->name; attr++) {
    if (attr->kind != RUNG_ATTR_CONSTANT) continue;
    const rung_blob *blob = (const rung_blob *)rung_attr_get(attr, infer->attrs);
    uint64_t bytes;
    if (!dense_bytes(infer->dims, type, &bytes)) {
      return rung_fail(infer->error, RUNG_OVERFLOW, "its bytes do not fit 64 bits");
    }
    if (bytes != blob->bytes) {
      return rung_fail(infer->error, RUNG_SHAPE_MISMATCH, "%s has %llu bytes where the type needs %llu", attr->name,
                       (unsigned long long)blob->bytes, (unsigned long long)bytes);
    }
  }
  return RUNG_OK;
}

rung_status rung_infer_node(rung_infer *infer, const rung_node *node, const rung_value_type *in, rung_value_type *out) {
  infer->dims = infer->graph->dims;
  infer->op = node->op;
  infer->attrs = node->attrs;
  infer->in = in;
  infer->n_in = node->n_in;
  infer->body = node->body;
  infer->bodies = node->bodies;
  infer->out = out;
  infer->n_out = node->results;
  const bool declares = node->op->flags & RUNG_OP_DECLARES;
  if (declares) {
    RUNG_TRY(check_type(infer, out));
    RUNG_TRY(check_declaration(infer, out));
  } else {
    if (node->results) memset(out, 0, node->results * sizeof *out);
    if (!node->op->infer) return rung_fail(infer->error, RUNG_INTERNAL, "has no shape rule");
  }
  if (node->op->infer) {
    const rung_status status = node->op->infer(infer);
    if (status) return status;
  }
  for (uint32_t i = 0; !declares && i < node->results; i++) RUNG_TRY(check_type(infer, &out[i]));
  return RUNG_OK;
}
