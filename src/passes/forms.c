/* SPDX-License-Identifier: MIT
 * forms: weights that a matmul multiplies with get the one packed layout that the target has for their type; other
 * readers of such a weight (the gather of a tied embedding) read the same form where they have a kernel for it. Bodies of
 * `if` and `loop` capture the form. */
#include <stdio.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

typedef struct former {
  rung_pass_env *env;
  rung_rewrite rw;
  bool *packed;     /* by value of `from`: is it wanted in the target's layout? */
  rung_value *form; /* the packed one in `to` */
} former;

static bool is_factor(const rung_graph *g, const rung_node *node, uint32_t operand) {
  if (operand != 1) return false;
  if (node->op == &rung_op_grouped_matmul || node->op == &rung_op_expert_matmul) return true;
  return node->op == &rung_op_matmul && ((const rung_matmul_attrs *)node->attrs)->transpose_b &&
         rung_graph_value_type(g, node->in[1])->rank == 2;
}

/* The layout that a value is packed to. Experts of whole panels lie one behind the other: they are packed as the matrix
 * of all their rows. */
static const rung_layout *layout_for(const former *f, const rung_value_type *type) {
  int64_t rows;
  if (type->rank != 3 || type->layout || type->kind != RUNG_VALUE_TENSOR) return rung_pass_layout(f->env, type);
  const rung_layout *layout = f->env->target->layout_of(type->type);
  if (!layout || !rung_dims_is_constant(f->rw.from->dims, type->extent[1], &rows)) return NULL;
  return rows % layout->panel ? NULL : layout;
}

static bool is_source(const rung_graph *g, uint32_t value) {
  const rung_op *op = rung_graph_producer(g, value)->op;
  return op == &rung_op_weight || op == &rung_op_form;
}

static bool reads_packed(const former *f, const rung_node *node, uint32_t operand, char *why, size_t why_bytes) {
  const rung_layout *layout = layout_for(f, rung_graph_value_type(f->rw.from, node->in[operand]));
  return layout && rung_pass_has_kernel(f->env, f->rw.from, node, operand, layout->id, why, why_bytes);
}

/* What products in bodies multiply with. */
static rung_status find_captured(former *f, const rung_node *node) {
  const rung_graph *g = f->rw.from;
  bool *factor;
  RUNG_TRY(rung_captured_factors(f->env, &f->rw.to->arena, g, node, &factor));
  for (uint32_t k = 0; k < node->n_in; k++)
    if (factor[k] && is_source(g, node->in[k])) f->packed[node->in[k]] = true;
  return RUNG_OK;
}

static rung_status find_factors(former *f) {
  const rung_graph *g = f->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    char why[160] = "";
    if (node->op->flags & RUNG_OP_CONTROL) RUNG_TRY(find_captured(f, node));
    if (node->n_in < 2 || !is_factor(g, node, 1) || !is_source(g, node->in[1])) continue;
    if (!layout_for(f, rung_graph_value_type(g, node->in[1]))) continue;
    if (reads_packed(f, node, 1, why, sizeof why)) {
      f->packed[node->in[1]] = true;
    } else {
      rung_note(f->env, RUNG_NOTE_NEARLY, node->label, "packed weight", why);
    }
  }
  return RUNG_OK;
}

/* A packed form of a value: of the weight itself, or the form there is with a layout. */
static rung_status make_form(former *f, uint32_t value) {
  const rung_graph *g = f->rw.from;
  rung_graph *to = f->rw.to;
  const rung_node *node = rung_graph_producer(g, value);
  const rung_layout *layout = layout_for(f, rung_graph_value_type(g, value));
  rung_form_attrs attrs = {.recipe = RUNG_FORM_CONCAT};
  rung_graph *body = NULL;
  uint32_t n = 1;
  if (node->op == &rung_op_form) {
    attrs = *(const rung_form_attrs *)node->attrs;
    n = node->n_in;
    if (node->bodies) body = rung_rewrite_body(to, node->body[0]);
  }
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, n, sizeof *in);
  if (!in) return rung_pass_no_memory(f->env);
  in[0] = f->rw.map[value];
  for (uint32_t k = 0; node->op == &rung_op_form && k < n; k++) in[k] = f->rw.map[node->in[k]];
  attrs.layout = layout->id;
  rung_graph_label(to, node->label);
  const rung_node *made = rung_graph_append(to, &rung_op_form, in, n, &attrs, &body, body ? 1 : 0);
  if (!made) return rung_pass_failed(f->env, to);
  f->form[value] = rung_node_result(to, made, 0);
  char what[80];
  snprintf(what, sizeof what, "%s in layout %.40s",
           attrs.recipe == RUNG_FORM_BODY ? "computed weight"
           : n > 1                        ? "weights together"
                                          : "weight",
           layout->name);
  rung_note(f->env, RUNG_NOTE_FORM, node->label, what, NULL);
  return RUNG_OK;
}

static rung_status copy_reader(former *f, uint32_t index);

/* A body with inputs for the forms `more` of the operands that are packed and a factor inside, in their order. */
static rung_status copy_body(former *f, const rung_node *node, uint32_t b, const bool *factor, const rung_value *more,
                             uint32_t n_more, rung_graph **out_body) {
  const rung_graph *body = node->body[b];
  rung_arena *arena = &f->rw.to->arena;
  former inner = {.env = f->env};
  inner.packed = (bool *)rung_arena_array(arena, body->values, sizeof *inner.packed);
  inner.form = (rung_value *)rung_arena_array(arena, body->values, sizeof *inner.form);
  rung_value *inside = (rung_value *)rung_arena_array(arena, n_more + 1, sizeof *inside);
  if (!inner.packed || !inner.form || !inside) return rung_pass_no_memory(f->env);
  RUNG_TRY(rung_body_begin(f->env, body, f->rw.to, NULL, more, n_more, &inner.rw, inside));
  *out_body = inner.rw.to;
  for (uint32_t k = 0, form = 0; k < node->n_in; k++) {
    if (!factor[k] || !f->packed[node->in[k]]) continue;
    const uint32_t value = rung_captured_as(f->rw.from, node, b, k);
    inner.packed[value] = value != 0;
    inner.form[value] = inside[form++];
  }
  for (uint32_t i = 0; i < body->nodes; i++)
    if (!(body->node[i].op->flags & RUNG_OP_INPUT)) RUNG_TRY(copy_reader(&inner, i));
  return rung_rewrite_finish(&inner.rw, f->env->error);
}

/* A control op whose bodies multiply with packed weights captures these too; `dead` drops the weights as they lie where
 * nothing else reads them. */
static rung_status copy_control(former *f, uint32_t index) {
  const rung_node *node = &f->rw.from->node[index];
  rung_arena *arena = &f->rw.to->arena;
  bool *factor;
  RUNG_TRY(rung_captured_factors(f->env, arena, f->rw.from, node, &factor));
  uint32_t more = 0;
  for (uint32_t k = 0; k < node->n_in; k++) {
    if (!f->packed[node->in[k]]) continue;
    more += factor[k];
    if (!factor[k])
      rung_note(f->env, RUNG_NOTE_NEARLY, node->label, "packed weight read in a body", "no product there can read it");
  }
  const bool room = rung_most_operands(node) - node->n_in >= more;
  if (!room)
    rung_note(f->env, RUNG_NOTE_NEARLY, node->label, "packed weight read in a body", "the op has too many operands");
  if (!more || !room) return rung_rewrite_copy(&f->rw, index) ? rung_pass_failed(f->env, f->rw.to) : RUNG_OK;
  rung_value *in = (rung_value *)rung_arena_array(arena, node->n_in + more, sizeof *in);
  rung_graph **body = (rung_graph **)rung_arena_array(arena, node->bodies, sizeof *body);
  if (!in || !body) return rung_pass_no_memory(f->env);
  for (uint32_t k = 0, form = node->n_in; k < node->n_in; k++) {
    in[k] = f->rw.map[node->in[k]];
    if (factor[k] && f->packed[node->in[k]]) in[form++] = f->form[node->in[k]];
  }
  for (uint32_t b = 0; b < node->bodies; b++) RUNG_TRY(copy_body(f, node, b, factor, in + node->n_in, more, &body[b]));
  return rung_control_end(f->env, &f->rw, index, in, node->n_in + more, body);
}

/* Every reader that can takes the form; the others the rows as they lie, which then are held twice. */
static rung_status copy_reader(former *f, uint32_t index) {
  const rung_node *node = &f->rw.from->node[index];
  rung_graph *to = f->rw.to;
  bool any = false;
  for (uint32_t k = 0; k < node->n_in; k++) any |= f->packed[node->in[k]];
  if (any && (node->op->flags & RUNG_OP_CONTROL)) return copy_control(f, index);
  if (!any || node->op == &rung_op_form)
    return rung_rewrite_copy(&f->rw, index) ? rung_pass_failed(f->env, to) : RUNG_OK;
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  if (!in) return rung_pass_no_memory(f->env);
  for (uint32_t k = 0; k < node->n_in; k++) {
    char why[160] = "";
    in[k] = f->rw.map[node->in[k]];
    if (!f->packed[node->in[k]]) continue;
    if (reads_packed(f, node, k, why, sizeof why)) {
      in[k] = f->form[node->in[k]];
    } else {
      char what[80];
      snprintf(what, sizeof what, "packed weight read by %.40s", node->op->name);
      rung_note(f->env, RUNG_NOTE_NEARLY, node->label, what, why);
    }
  }
  return rung_rewrite_copy_with(&f->rw, index, in, node->n_in) ? RUNG_OK : rung_pass_failed(f->env, to);
}

rung_status rung_pass_forms(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  former f = {.env = env};
  RUNG_TRY(rung_rewrite_init(&f.rw, from, to, env->error));
  f.packed = (bool *)rung_arena_array(&to->arena, from->values, sizeof *f.packed);
  f.form = (rung_value *)rung_arena_array(&to->arena, from->values, sizeof *f.form);
  if (!f.packed || !f.form) return rung_pass_no_memory(env);
  RUNG_TRY(find_factors(&f));
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    RUNG_TRY(copy_reader(&f, i));
    if (node->results == 1 && f.packed[node->first_value]) RUNG_TRY(make_form(&f, node->first_value));
  }
  return rung_rewrite_finish(&f.rw, env->error);
}
