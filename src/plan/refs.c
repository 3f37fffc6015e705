/* SPDX-License-Identifier: MIT
 * References: where operands lie. A view op costs no step, only another reference to the same root. */
#include <string.h>

#include "plan/planner.h"

uint32_t rung_planner_root(rung_planner *p, rung_root_kind kind, uint32_t index, rung_dim bytes) {
  const uint32_t at = RUNG_PUSH(p, root);
  if (at == RUNG_NONE) return RUNG_NONE;
  rung_root *root = &p->plan->root[at];
  *root = (rung_root){.kind = (uint8_t)kind, .index = index, .buffer = RUNG_NONE, .twin = RUNG_NONE};
  if (kind == RUNG_ROOT_BUFFER || kind == RUNG_ROOT_INPUT || kind == RUNG_ROOT_OUTPUT || kind == RUNG_ROOT_CARRIED) {
    const uint32_t buffer = RUNG_PUSH(p, buffer);
    if (buffer == RUNG_NONE) return RUNG_NONE;
    p->plan->buffer[buffer] = (rung_buffer){.bytes = bytes, .first = RUNG_NONE};
    p->plan->root[at].buffer = buffer;
  }
  return at;
}

static bool has_null(const rung_ref *ref) {
  for (int i = 0; i < ref->rank; i++)
    if (!ref->extent[i].id || !ref->stride[i].id) return true;
  return !ref->offset.id;
}

uint32_t rung_planner_ref(rung_planner *p, const rung_ref *ref) {
  if (has_null(ref)) { /* arithmetic on dimensions gives the null dimension when it fails */
    rung_planner_fail(p, p->dims->failure ? p->dims->failure : RUNG_OVERFLOW, "plan: strides of a value: %s",
                      p->dims->reason ? p->dims->reason : "they do not fit 64 bits");
    return RUNG_NONE;
  }
  const uint32_t at = RUNG_PUSH(p, ref);
  if (at != RUNG_NONE) p->plan->ref[at] = *ref;
  return at;
}

static void dense_strides(rung_planner *p, rung_ref *ref) {
  const rung_type_row *row = rung_type_get(ref->type);
  rung_dim stride = rung_dims_constant(p->dims, 1);
  for (int i = ref->rank - 1; i >= 0; i--) {
    ref->stride[i] = stride;
    if (i == 0) break;
    rung_dim extent = ref->extent[i];
    if (i == ref->rank - 1 && row->class_ == RUNG_CLASS_BLOCK)
      extent = rung_dims_div(p->dims, extent, rung_dims_constant(p->dims, row->block));
    stride = rung_dims_mul(p->dims, stride, extent);
  }
}

static void make_dense(rung_planner *p, uint32_t root, const rung_value_type *type, rung_ref *out) {
  *out = (rung_ref){.root = root, .rank = (uint8_t)type->rank, .type = (uint8_t)type->type, .layout = type->layout};
  out->offset = rung_dims_constant(p->dims, 0);
  memcpy(out->extent, type->extent, sizeof out->extent);
  dense_strides(p, out);
}

uint32_t rung_planner_dense_ref(rung_planner *p, uint32_t root, const rung_value_type *type) {
  if (root == RUNG_NONE) return RUNG_NONE;
  rung_ref ref;
  make_dense(p, root, type, &ref);
  return rung_planner_ref(p, &ref);
}

rung_dim rung_planner_bytes(rung_planner *p, const rung_value_type *type) {
  const rung_type_row *row = rung_type_get(type->type);
  rung_dim elements = rung_dims_constant(p->dims, 1);
  for (int i = 0; i < type->rank; i++) elements = rung_dims_mul(p->dims, elements, type->extent[i]);
  if (row->block > 1 && row->class_ != RUNG_CLASS_BLOCK) { /* several numbers a byte, rows one behind the other */
    elements = rung_dims_add(p->dims, elements, rung_dims_constant(p->dims, row->block - 1));
    elements = rung_dims_div(p->dims, elements, rung_dims_constant(p->dims, row->block));
  } else if (row->block > 1) {
    /* Rows are whole blocks, so the division is exact and vanishes where extents are constant. */
    int64_t elements_of_row;
    if (rung_dims_is_constant(p->dims, type->extent[type->rank - 1], &elements_of_row) &&
        elements_of_row % row->block) {
      rung_planner_fail(p, RUNG_UNSUPPORTED, "plan: rows of %lld %s elements are no whole blocks of %d",
                        (long long)elements_of_row, row->name, row->block);
      return (rung_dim){0};
    }
    const rung_dim last = rung_dims_div(p->dims, type->extent[type->rank - 1], rung_dims_constant(p->dims, row->block));
    elements = last;
    for (int i = 0; i < type->rank - 1; i++) elements = rung_dims_mul(p->dims, elements, type->extent[i]);
  }
  const rung_dim bytes = rung_dims_mul(p->dims, elements, rung_dims_constant(p->dims, row->bytes));
  if (!bytes.id)
    rung_planner_fail(p, RUNG_OVERFLOW, "plan: the bytes of a %s value do not fit 64 bits or memory ran out",
                      row->name);
  return bytes;
}

uint32_t rung_planner_buffer_ref(rung_planner *p, const rung_value_type *type) {
  const rung_dim bytes = rung_planner_bytes(p, type);
  if (!bytes.id) return RUNG_NONE;
  return rung_planner_dense_ref(p, rung_planner_root(p, RUNG_ROOT_BUFFER, 0, bytes), type);
}

static bool is_one(rung_planner *p, rung_dim dim) {
  int64_t value;
  return rung_dims_is_constant(p->dims, dim, &value) && value == 1;
}

/* Strides of axes that have one element do not matter. */
bool rung_ref_is(rung_planner *p, const rung_ref *ref, rung_strides strides) {
  if (strides == RUNG_STRIDES_ANY || ref->layout) return true;
  rung_ref dense = *ref;
  dense_strides(p, &dense);
  int first = strides == RUNG_STRIDES_DENSE ? 0 : ref->rank - 1;
  while (strides == RUNG_STRIDES_LINES && first > 0 && is_one(p, ref->extent[first])) first--;
  if (strides == RUNG_STRIDES_LINES) return first < 0 || is_one(p, ref->extent[first]) || is_one(p, ref->stride[first]);
  for (int i = first < 0 ? 0 : first; i < ref->rank; i++)
    if (!rung_dim_same(ref->stride[i], dense.stride[i]) && !is_one(p, ref->extent[i])) return false;
  return true;
}

void rung_ref_value_type(const rung_ref *ref, rung_value_type *out) {
  *out = (rung_value_type){.type = (rung_type)ref->type, .rank = (int8_t)ref->rank, .layout = ref->layout};
  memcpy(out->extent, ref->extent, sizeof out->extent);
}

bool rung_ref_covers_root(rung_planner *p, const rung_ref *ref) {
  const rung_root *root = &p->plan->root[ref->root];
  if (root->buffer == RUNG_NONE || !rung_ref_is(p, ref, RUNG_STRIDES_DENSE)) return false;
  rung_value_type type;
  rung_ref_value_type(ref, &type);
  int64_t offset;
  return rung_dims_is_constant(p->dims, ref->offset, &offset) && offset == 0 &&
         rung_dim_same(rung_planner_bytes(p, &type), p->plan->buffer[root->buffer].bytes);
}

static bool makes_state(const rung_graph *graph, const rung_node *node) {
  for (uint32_t r = 0; r < node->results; r++)
    if (rung_graph_value_type(graph, node->first_value + r)->kind != RUNG_VALUE_TENSOR) return true;
  return false;
}

/* Is a view of a state, or a view of that, still read when a later version of a state has been written? All versions
 * share memory, so such a reader would see the wrong one. States are few: any write counts. */
static bool outlives_version(rung_planner *p, const rung_graph *graph, const rung_node *view) {
  uint8_t *derived = rung_arena_alloc(&p->work, graph->values + 1);
  if (!derived) {
    rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
    return true;
  }
  memset(derived, 0, graph->values + 1);
  derived[view->first_value] = 1;
  bool written = false;
  for (const rung_node *node = view + 1; node < graph->node + graph->nodes; node++) {
    written |= !(node->op->flags & RUNG_OP_DECLARES) && makes_state(graph, node);
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (!derived[node->in[i]]) continue;
      if (written) return true;
      if (node->op->flags & RUNG_OP_VIEW) derived[node->first_value] = 1;
    }
  }
  for (uint32_t i = 0; i < graph->outputs; i++)
    if (written && derived[graph->output[i].value]) return true;
  return false;
}

uint32_t rung_planner_view(rung_planner *p, const rung_graph *graph, const rung_node *node, uint32_t operand_ref) {
  const rung_value_type *in = rung_graph_value_type(graph, node->in[0]);
  const rung_value_type *out = rung_graph_value_type(graph, node->first_value);
  const rung_ref *source = &p->plan->ref[operand_ref];
  if (source->layout || !node->op->view || in->type != out->type) return RUNG_NONE;
  if (p->plan->root[source->root].kind == RUNG_ROOT_STATE && outlives_version(p, graph, node)) return RUNG_NONE;
  rung_view_rule rule = {.dims = p->dims,
                         .attrs = node->attrs,
                         .in = in,
                         .out = out,
                         .in_stride = source->stride,
                         .out_offset = rung_dims_constant(p->dims, 0)};
  if (!node->op->view(&rule)) return RUNG_NONE;
  rung_ref ref = {.root = source->root, .rank = (uint8_t)out->rank, .type = source->type};
  ref.offset = rung_dims_add(p->dims, source->offset, rule.out_offset);
  memcpy(ref.extent, out->extent, sizeof ref.extent);
  memcpy(ref.stride, rule.out_stride, sizeof ref.stride);
  return rung_planner_ref(p, &ref);
}
