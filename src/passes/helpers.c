/* SPDX-License-Identifier: MIT
 * What passes share: copying with bodies, questions about nodes, values and kernels. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

rung_status rung_pass_failed(const rung_pass_env *env, const rung_graph *to) {
  const rung_status status = rung_graph_status(to);
  return rung_fail(env->error, status ? status : RUNG_INTERNAL, "%s", rung_graph_message(to));
}

rung_status rung_pass_no_memory(const rung_pass_env *env) {
  return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "out of memory");
}

static rung_status copy_bodies(rung_pass_env *env, const rung_node *node, rung_graph *to, rung_pass *inside,
                               rung_graph **out_body) {
  for (uint32_t b = 0; b < node->bodies; b++) {
    out_body[b] = rung_graph_body(to);
    if (rung_graph_status(to)) return rung_pass_failed(env, to);
    RUNG_TRY(inside(env, node->body[b], out_body[b]));
  }
  return RUNG_OK;
}

rung_status rung_pass_copy(rung_pass_env *env, rung_rewrite *rw, uint32_t index, rung_pass *inside) {
  const rung_node *node = &rw->from->node[index];
  rung_graph *to = rw->to;
  if (!node->bodies || !(node->op->flags & RUNG_OP_CONTROL)) {
    return rung_rewrite_copy(rw, index) ? rung_pass_failed(env, to) : RUNG_OK;
  }
  rung_graph **body = (rung_graph **)rung_arena_array(&to->arena, node->bodies, sizeof *body);
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  rung_value_type *given = (rung_value_type *)rung_arena_array(&to->arena, node->results, sizeof *given);
  if (!body || !in || !given) return rung_pass_no_memory(env);
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = rw->map[node->in[i]];
  for (uint32_t r = 0; r < node->results; r++) given[r] = *rung_graph_value_type(rw->from, node->first_value + r);
  rung_graph_label(to, node->label);
  RUNG_TRY(copy_bodies(env, node, to, inside, body));
  const rung_node *copy =
      rung_graph_append_as(to, node->op, in, node->n_in, node->attrs, body, node->bodies, given, node->results);
  if (!copy) return rung_pass_failed(env, to);
  for (uint32_t r = 0; r < node->results; r++) rw->map[node->first_value + r] = rung_node_result(to, copy, r);
  return RUNG_OK;
}

/* Nesting is limited by rung_graph_body. */
bool rung_node_has(const rung_node *node, uint32_t flags) {
  if (node->op->flags & flags) return true;
  for (uint32_t b = 0; b < node->bodies; b++)
    for (uint32_t i = 0; i < node->body[b]->nodes; i++)
      if (rung_node_has(&node->body[b]->node[i], flags)) return true;
  return false;
}

bool rung_value_in_state(const rung_graph *g, uint32_t value) {
  for (;;) {
    if (rung_graph_value_type(g, value)->kind != RUNG_VALUE_TENSOR) return true;
    const rung_node *node = rung_graph_producer(g, value);
    if (!(node->op->flags & RUNG_OP_VIEW) || !node->n_in) return false;
    value = node->in[0];
  }
}

bool rung_type_is_fixed(const rung_dims *dims, const rung_value_type *type, int64_t *out_elements) {
  int64_t elements = 1;
  for (int axis = 0; axis < type->rank; axis++) {
    int64_t extent;
    if (!rung_dims_is_constant(dims, type->extent[axis], &extent) || extent < 0) return false;
    if (rung_mul_overflows(elements, extent, &elements)) return false;
  }
  if (out_elements) *out_elements = elements;
  return true;
}

uint64_t rung_type_symbols(const rung_dims *dims, const rung_value_type *type) {
  uint64_t used = 0;
  for (int axis = 0; axis < type->rank; axis++) used |= dims->node[type->extent[axis].id].symbols;
  return used;
}

uint64_t rung_attrs_symbols(const rung_dims *dims, const rung_node *node) {
  uint64_t used = 0;
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    const void *value = rung_attr_get(attr, node->attrs);
    if (attr->kind == RUNG_ATTR_DIM) used |= dims->node[((const rung_dim *)value)->id].symbols;
    if (attr->kind != RUNG_ATTR_DIMS) continue;
    const rung_dim_list *list = (const rung_dim_list *)value;
    for (int32_t i = 0; i < list->count; i++) used |= dims->node[list->dim[i].id].symbols;
  }
  return used;
}

bool rung_attrs_are_fixed(const rung_dims *dims, const rung_node *node) { return rung_attrs_symbols(dims, node) == 0; }

static void take_dim(const rung_dims *dims, rung_dim d, int64_t *dim) {
  if (d.id && d.id < dims->count) rung_dims_is_constant(dims, d, &dim[d.id]);
}

uint8_t rung_origin_of(const rung_graph *g, const rung_node *node, const uint8_t *origin) {
  if (node->op == &rung_op_weight) return RUNG_FROM_WEIGHTS;
  if (node->op == &rung_op_constant) return RUNG_FROM_CONSTANTS;
  if (!rung_node_is_pure(node) || node->op == &rung_op_form || node->results != 1 || !node->op->reference)
    return RUNG_FROM_ELSEWHERE;
  if (!rung_attrs_are_fixed(g->dims, node) ||
      !rung_type_is_fixed(g->dims, rung_graph_value_type(g, node->first_value), NULL))
    return RUNG_FROM_ELSEWHERE;
  uint8_t most = RUNG_FROM_CONSTANTS;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const uint8_t in = origin[node->in[k]];
    if (in == RUNG_FROM_ELSEWHERE) return RUNG_FROM_ELSEWHERE;
    if (in > most) most = in;
  }
  return most;
}

void rung_attrs_take_dims(const rung_dims *dims, const rung_node *node, int64_t *dim) {
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    const void *value = rung_attr_get(attr, node->attrs);
    if (attr->kind == RUNG_ATTR_DIM) take_dim(dims, *(const rung_dim *)value, dim);
    if (attr->kind != RUNG_ATTR_DIMS) continue;
    const rung_dim_list *list = (const rung_dim_list *)value;
    for (int32_t i = 0; i < list->count; i++) take_dim(dims, list->dim[i], dim);
  }
}

bool rung_dense_operand(const rung_dims *dims, const rung_value_type *type, uint8_t *base, int64_t *shape,
                        rung_operand *out, uint64_t *out_bytes) {
  int64_t elements, span = 1, *extent = shape, *stride = shape + type->rank;
  if (type->kind != RUNG_VALUE_TENSOR || type->layout || !rung_type_is_fixed(dims, type, &elements)) return false;
  const int64_t block = rung_type_is_block(type->type) && rung_type_get(type->type)->class_ == RUNG_CLASS_BLOCK
                            ? rung_type_get(type->type)->block
                            : 1;
  for (int axis = type->rank - 1; axis >= 0; axis--) {
    rung_dims_is_constant(dims, type->extent[axis], &extent[axis]);
    stride[axis] = span;
    span *= axis == type->rank - 1 ? extent[axis] / block : extent[axis];
  }
  *out = (rung_operand){
      .base = base, .extent = extent, .stride = stride, .rank = (uint8_t)type->rank, .type = (uint8_t)type->type};
  *out_bytes = rung_type_bytes(type->type, (uint64_t)elements);
  return true;
}

bool rung_pass_has_kernel(const rung_pass_env *env, const rung_graph *g, const rung_node *node, uint32_t packed,
                          uint16_t layout, char *why, size_t why_bytes) {
  rung_match match;
  rung_match_init(&match, g, node);
  rung_value_type type;
  if (packed < match.n_in) {
    type = *match.in[packed];
    type.layout = layout;
    match.in[packed] = &type;
  }
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  return rung_target_match(env->target, &match, upper, rows, RUNG_MAX_VARIANTS, why, why_bytes) > 0;
}

const rung_layout *rung_pass_layout(const rung_pass_env *env, const rung_value_type *type) {
  if (type->rank != 2 || type->layout || type->kind != RUNG_VALUE_TENSOR) return NULL;
  return env->target->layout_of(type->type);
}

bool rung_pass_is_attention(const rung_node *node) {
  return node->op == &rung_op_attention_kv || node->op == &rung_op_attention_ragged;
}

rung_status rung_pass_narrow_attention(const rung_pass_env *env, rung_rewrite *rw, uint32_t index) {
  const rung_node *node = &rw->from->node[index];
  union {
    rung_attention_kv_attrs kv;
    rung_attention_attrs ragged;
  } attrs;
  if (node->op == &rung_op_attention_kv) {
    attrs.kv = *(const rung_attention_kv_attrs *)node->attrs;
    attrs.kv.narrow = true;
  } else {
    attrs.ragged = *(const rung_attention_attrs *)node->attrs;
    attrs.ragged.narrow = true;
  }
  rung_value in[5];
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = rw->map[node->in[i]];
  rung_graph_label(rw->to, node->label);
  rw->map[node->first_value] = rung_graph_op(rw->to, node->op, in, node->n_in, &attrs);
  return rw->map[node->first_value].id ? RUNG_OK : rung_pass_failed(env, rw->to);
}

rung_value rung_body_input(rung_graph *body, char letter, uint32_t index, const rung_value_type *type) {
  char name[16];
  snprintf(name, sizeof name, "%c%" PRIu32, letter, index);
  const rung_input_attrs attrs = {.name = name};
  return rung_node_result(body, rung_graph_declare(body, &rung_op_input, &attrs, type), 0);
}

void rung_body_output(rung_graph *body, uint32_t index, rung_value value) {
  char name[16];
  snprintf(name, sizeof name, "y%" PRIu32, index);
  rung_graph_output(body, name, value);
}

void rung_body_discard(rung_graph *to, rung_graph *body) {
  if (body->parent != to || body->closed || !to->owned_bodies || to->owned_body[to->owned_bodies - 1] != body) return;
  to->owned_bodies--;
  rung_graph_destroy(body);
}
