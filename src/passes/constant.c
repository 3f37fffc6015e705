/* SPDX-License-Identifier: MIT
 * Constants: reading them, and computing with them by the ops' references. */
#include <math.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

/* Folding must not blow a graph up: results stay below LARGEST, and above SMALL they may not be larger than what they
 * are made of (iota and expand would be). */
enum { LARGEST = 1 << 16, SMALL = 1 << 10, MAX_OPERANDS = 64 };

const rung_blob *rung_constant_of(const rung_graph *g, uint32_t value) {
  const rung_node *node = rung_graph_producer(g, value);
  return node->op == &rung_op_constant ? &((const rung_constant_attrs *)node->attrs)->data : NULL;
}

/* ---- one number */

static bool same_number(double a, double b) { return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b); }

bool rung_constant_number(const rung_graph *g, uint32_t value, double *out_number) {
  const rung_node *node = rung_graph_producer(g, value);
  while (node->op == &rung_op_expand || node->op == &rung_op_reshape) {
    value = node->in[0];
    node = rung_graph_producer(g, value);
  }
  const rung_value_type *type = rung_graph_value_type(g, value);
  const rung_blob *blob = rung_constant_of(g, value);
  int64_t elements;
  if (!blob || rung_type_is_block(type->type) || !rung_type_is_fixed(g->dims, type, &elements) || elements < 1)
    return false;
  const rung_operand o = {.base = (uint8_t *)(uintptr_t)blob->data, .type = (uint8_t)type->type};
  const double first = rung_load_f64(&o, 0);
  for (int64_t i = 1; i < elements; i++)
    if (!same_number(rung_load_f64(&o, i), first)) return false;
  *out_number = first;
  return true;
}

/* ---- folding */

typedef struct folding {
  rung_pass_env *env;
  rung_rewrite *rw;
  const rung_node *node;
  rung_operand in[MAX_OPERANDS], out[MAX_OPERANDS];
  int64_t in_shape[MAX_OPERANDS][2 * RUNG_MAX_RANK], out_shape[MAX_OPERANDS][2 * RUNG_MAX_RANK];
  uint64_t in_bytes, out_bytes;
  int64_t *dim; /* values of the dimensions that attributes name */
  uint32_t dims;
} folding;

static bool place(const rung_dims *dims, const rung_value_type *type, uint8_t *base, int64_t *shape, rung_operand *out,
                  uint64_t *out_bytes) {
  return rung_dense_operand(dims, type, base, shape, out, out_bytes) && *out_bytes <= LARGEST;
}

static bool can_fold(const folding *f) {
  const rung_node *node = f->node;
  return rung_node_is_pure(node) && node->op->reference && node->op != &rung_op_form && node->n_in <= MAX_OPERANDS &&
         node->results >= 1 && node->results <= MAX_OPERANDS && rung_attrs_are_fixed(f->rw->from->dims, node);
}

static bool take_operands(folding *f) {
  const rung_graph *to = f->rw->to;
  for (uint32_t i = 0; i < f->node->n_in; i++) {
    const uint32_t value = f->rw->map[f->node->in[i]].id;
    const rung_blob *blob = rung_constant_of(to, value);
    uint64_t bytes;
    if (!blob || !place(to->dims, rung_graph_value_type(to, value), (uint8_t *)(uintptr_t)blob->data, f->in_shape[i],
                        &f->in[i], &bytes))
      return false;
    f->in_bytes += bytes;
  }
  for (uint32_t r = 0; r < f->node->results; r++) {
    uint64_t bytes;
    const rung_value_type *type = rung_graph_value_type(f->rw->from, f->node->first_value + r);
    if (!place(to->dims, type, NULL, f->out_shape[r], &f->out[r], &bytes)) return false;
    f->out_bytes += bytes;
  }
  return f->out_bytes <= SMALL || f->out_bytes <= f->in_bytes;
}

static rung_status take_dims(folding *f) {
  const rung_dims *dims = f->rw->from->dims;
  bool any = false;
  for (const rung_attr *attr = f->node->op->attrs; attr && attr->name; attr++)
    any |= attr->kind == RUNG_ATTR_DIM || attr->kind == RUNG_ATTR_DIMS;
  if (!any) return RUNG_OK;
  f->dims = dims->count;
  f->dim = (int64_t *)rung_host_array(f->env->host, f->dims, sizeof *f->dim);
  if (!f->dim) return rung_pass_no_memory(f->env);
  rung_attrs_take_dims(dims, f->node, f->dim);
  return RUNG_OK;
}

/* Runs the reference into memory of the new graph; a refusal leaves the node for run time, which says where and why. */
static rung_status compute(folding *f, bool *out_done) {
  rung_graph *to = f->rw->to;
  const rung_node *node = f->node;
  for (uint32_t r = 0; r < node->results; r++) {
    const rung_value_type *type = rung_graph_value_type(f->rw->from, node->first_value + r);
    f->out[r].base =
        (uint8_t *)rung_arena_alloc(&to->arena, rung_type_bytes(type->type, (uint64_t)rung_operand_count(&f->out[r])));
    if (!f->out[r].base) return rung_pass_no_memory(f->env);
  }
  RUNG_TRY(take_dims(f));
  rung_error refused = {RUNG_OK, ""};
  const rung_args args = {.in = f->in,
                          .out = f->out,
                          .n_in = (uint16_t)node->n_in,
                          .n_out = (uint16_t)node->results,
                          .attrs = node->attrs,
                          .dim = f->dim,
                          .threads = 1,
                          .error = &refused};
  const rung_status status = node->op->reference(&args);
  rung_host_free(f->env->host, RUNG_MEMORY_host, f->dim, f->dims * sizeof *f->dim);
  if (status) return status == RUNG_OUT_OF_MEMORY ? rung_pass_no_memory(f->env) : RUNG_OK;
  rung_graph_label(to, node->label);
  for (uint32_t r = 0; r < node->results; r++) {
    rung_value_type type = *rung_graph_value_type(f->rw->from, node->first_value + r);
    const rung_constant_attrs attrs = {
        {f->out[r].base, rung_type_bytes(type.type, (uint64_t)rung_operand_count(&f->out[r]))}};
    const rung_node *made = rung_graph_declare(to, &rung_op_constant, &attrs, &type);
    if (!made) return rung_pass_failed(f->env, to);
    f->rw->map[node->first_value + r] = rung_node_result(to, made, 0);
  }
  *out_done = true;
  return RUNG_OK;
}

rung_status rung_constant_fold(rung_pass_env *env, rung_rewrite *rw, uint32_t index, bool *out_done) {
  *out_done = false;
  /* Most nodes stop here: the working space is not touched for them. */
  const rung_node *node = &rw->from->node[index];
  for (uint32_t i = 0; i < node->n_in; i++)
    if (!rung_constant_of(rw->to, rw->map[node->in[i]].id)) return RUNG_OK;
  folding *f = (folding *)rung_host_array(env->host, 1, sizeof *f);
  if (!f) return rung_pass_no_memory(env);
  f->env = env;
  f->rw = rw;
  f->node = node;
  const rung_status status = can_fold(f) && take_operands(f) ? compute(f, out_done) : RUNG_OK;
  rung_host_free(env->host, RUNG_MEMORY_host, f, sizeof *f);
  return status;
}
