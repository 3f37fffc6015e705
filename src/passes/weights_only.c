/* SPDX-License-Identifier: MIT
 * weights_only: what depends on weights alone is computed once, when they are loaded, and kept as a form.
 *
 * A value is made of weights if a pure op with fixed extents makes it from weights, constants and such values. The
 * largest such sub-graphs become forms whose body is the sub-graph. Views at their end stay outside: they cost nothing
 * in a run, and a form of them would hold the weight twice; so do casts back to f32 of what a precision policy keeps
 * narrow.
 *
 * Factors of products are forms in any case where the target packs them: also a matrix [K, N] as ONNX has it, which
 * becomes the form [N, K] of its transpose, and the product one with transpose_b. */
#include <stdlib.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"
#include "passes/policy.h"

typedef struct deriver {
  rung_pass_env *env;
  rung_rewrite rw;
  rung_value *inner;  /* map for bodies, kept null between them */
  uint8_t *origin;    /* by value */
  bool *root;         /* by value: is a form made of it? */
  rung_value *turned; /* the form of its transpose in `to` */
} deriver;

/* ---- which values */

static bool is_view(const rung_node *node) { return (node->op->flags & RUNG_OP_VIEW) && node->n_in; }

/* What a precision policy reads as f32 of a weight that it keeps narrow. */
static bool is_widening(const deriver *d, const rung_node *node) {
  if (node->op != &rung_op_cast || !rung_precision_stores(&d->env->options->precision)) return false;
  const rung_type in = rung_graph_value_type(d->rw.from, node->in[0])->type;
  return rung_type_is_narrow(in) && rung_graph_value_type(d->rw.from, node->first_value)->type == RUNG_TYPE_F32;
}

static bool packs(const deriver *d, const rung_node *node, bool *out_turn) {
  return node->op == &rung_op_matmul && d->origin[node->in[1]] == RUNG_FROM_WEIGHTS &&
         rung_factor_packs(d->env, d->rw.from, node, out_turn);
}

static void want(deriver *d, uint32_t value) {
  const rung_graph *g = d->rw.from;
  const rung_node *node = rung_graph_producer(g, value);
  for (; is_view(node) || is_widening(d, node); node = rung_graph_producer(g, value)) value = node->in[0];
  const rung_op *op = rung_graph_producer(g, value)->op;
  if (d->origin[value] == RUNG_FROM_WEIGHTS && op != &rung_op_weight) d->root[value] = true;
}

/* A factor, also one of a product in a body that captures it, becomes a form as the product reads it, views at its end
 * included. */
static void want_operand(deriver *d, const rung_node *node, uint32_t k, bool captured_factor) {
  const rung_graph *g = d->rw.from;
  bool turn = false;
  if (!captured_factor && (k != 1 || !packs(d, node, &turn))) {
    want(d, node->in[k]);
  } else if (!turn && rung_graph_producer(g, node->in[k])->op != &rung_op_weight) {
    d->root[node->in[k]] = true;
  }
}

static rung_status find_roots(deriver *d) {
  const rung_graph *g = d->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    for (uint32_t r = 0; r < node->results; r++) d->origin[node->first_value + r] = rung_origin_of(g, node, d->origin);
  }
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    bool *factor = NULL;
    if (node->results && d->origin[node->first_value] != RUNG_FROM_ELSEWHERE) continue; /* part of a sub-graph itself */
    if (node->op->flags & RUNG_OP_CONTROL) RUNG_TRY(rung_captured_factors(d->env, &d->rw.to->arena, g, node, &factor));
    for (uint32_t k = 0; k < node->n_in; k++)
      if (d->origin[node->in[k]] == RUNG_FROM_WEIGHTS) want_operand(d, node, k, factor && factor[k]);
  }
  for (uint32_t i = 0; i < g->outputs; i++)
    if (d->origin[g->output[i].value] == RUNG_FROM_WEIGHTS) want(d, g->output[i].value);
  return RUNG_OK;
}

/* ---- bodies */

static int by_index(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static rung_graph *build_body(deriver *d, const rung_part *p, uint32_t value, bool turn) {
  const rung_graph *g = d->rw.from;
  rung_graph *body = rung_graph_body(d->rw.to);
  rung_rewrite inner = {.from = g, .to = body, .map = d->inner};
  uint32_t sources = 0;
  for (uint32_t i = 0; i < p->nodes && !rung_graph_status(body); i++) {
    const rung_node *node = &g->node[p->node[i]];
    if (node->op == &rung_op_weight) {
      d->inner[node->first_value] = rung_body_input(body, 'w', sources++, rung_graph_value_type(g, node->first_value));
    } else if (rung_rewrite_copy(&inner, p->node[i])) {
      break;
    }
  }
  rung_value result = d->inner[value];
  if (turn && !rung_graph_status(body)) result = rung_pass_transpose(body, result);
  rung_body_output(body, 0, result);
  for (uint32_t i = 0; i < p->nodes; i++) d->inner[g->node[p->node[i]].first_value] = (rung_value){0, 0};
  return body;
}

/* The form of a value; null without an error where it is better left to the run. */
static rung_status make_form(deriver *d, uint32_t value, bool turn, rung_value *out) {
  const rung_graph *g = d->rw.from;
  rung_graph *to = d->rw.to;
  const rung_node *node = rung_graph_producer(g, value);
  rung_part p;
  *out = (rung_value){0, 0};
  const char *why = rung_form_refused(&(rung_scope){.graph = g}, value, &p);
  if (why) {
    rung_note(d->env, RUNG_NOTE_NEARLY, node->label, "value of weights alone", why);
    return RUNG_OK;
  }
  qsort(p.node, p.nodes, sizeof *p.node, by_index); /* the graph's order */
  rung_value in[RUNG_FORM_SOURCES];
  uint32_t sources = 0;
  for (uint32_t i = 0; i < p.nodes; i++)
    if (g->node[p.node[i]].op == &rung_op_weight) in[sources++] = d->rw.map[g->node[p.node[i]].first_value];
  rung_graph_label(to, node->label);
  rung_graph *body = build_body(d, &p, value, turn);
  const rung_form_attrs attrs = {.recipe = RUNG_FORM_BODY};
  const rung_node *form = rung_graph_append(to, &rung_op_form, in, sources, &attrs, &body, 1);
  if (!form) return rung_pass_failed(d->env, to);
  *out = rung_node_result(to, form, 0);
  char what[120];
  uint32_t ops = 0;
  for (uint32_t i = 0; i < p.nodes; i++)
    if (!(g->node[p.node[i]].op->flags & RUNG_OP_DECLARES)) p.node[ops++] = p.node[i];
  rung_note_ops(g, p.node, ops, what, sizeof what);
  rung_note(d->env, RUNG_NOTE_FOLDED, node->label, turn ? (ops ? "transpose of a computed weight" : "transpose") : what,
            NULL);
  return RUNG_OK;
}

/* ---- the pass */

/* A product whose factor lies [K, N] takes the form of its transpose; *out_done says if it did. */
static rung_status turn_factor(deriver *d, uint32_t index, bool *out_done) {
  const rung_node *node = &d->rw.from->node[index];
  bool turn;
  if (!packs(d, node, &turn) || !turn) return RUNG_OK;
  rung_value *form = &d->turned[node->in[1]];
  if (!form->id) RUNG_TRY(make_form(d, node->in[1], true, form));
  if (!form->id) return RUNG_OK;
  RUNG_TRY(rung_turn_product(d->env, &d->rw, node, *form));
  *out_done = true;
  return RUNG_OK;
}

rung_status rung_pass_weights_only(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_weights_only(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  deriver d = {.env = env};
  RUNG_TRY(rung_rewrite_init(&d.rw, from, to, env->error));
  d.inner = (rung_value *)rung_arena_array(&to->arena, from->values, sizeof *d.inner);
  d.turned = (rung_value *)rung_arena_array(&to->arena, from->values, sizeof *d.turned);
  d.origin = (uint8_t *)rung_arena_array(&to->arena, from->values, sizeof *d.origin);
  d.root = (bool *)rung_arena_array(&to->arena, from->values, sizeof *d.root);
  if (!d.inner || !d.turned || !d.origin || !d.root) return rung_pass_no_memory(env);
  RUNG_TRY(find_roots(&d));
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    bool done = false;
    if (node->results == 1 && d.root[node->first_value]) {
      rung_value form;
      RUNG_TRY(make_form(&d, node->first_value, false, &form));
      if (form.id) d.rw.map[node->first_value] = form;
      done = form.id != 0;
    }
    if (!done) RUNG_TRY(turn_factor(&d, i, &done));
    if (!done && rung_rewrite_copy(&d.rw, i)) return rung_pass_failed(env, to);
  }
  return rung_rewrite_finish(&d.rw, env->error);
}
