/* SPDX-License-Identifier: MIT
 * weights_only: what depends on weights alone is computed once, when they are loaded, and kept as a form.
 *
 * A value is made of weights if a pure op with fixed extents makes it from weights, constants and such values. The
 * largest such sub-graphs become forms whose body is the sub-graph. Views at their end stay outside: they cost nothing
 * in a run, and a form of them would hold the weight twice.
 *
 * Factors of products are forms in any case where the target packs them: also a matrix [K, N] as ONNX has it, which
 * becomes the form [N, K] of its transpose, and the product one with transpose_b. */
#include <stdlib.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

enum { MAX_NODES = RUNG_FORM_BODY_NODES, MAX_SOURCES = 128 };
/* A sub-graph that makes much of little (an outer product) is cheaper to run than to keep. */
enum { GROWTH = 4, GROWTH_FROM = 16 << 20 };

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

/* Can operand 1 of the matmul be packed, turned or as it is? */
static bool packs(const deriver *d, const rung_node *node, bool *out_turn) {
  const rung_graph *g = d->rw.from;
  if (node->op != &rung_op_matmul) return false;
  const rung_value_type *b = rung_graph_value_type(g, node->in[1]);
  const rung_layout *layout = rung_pass_layout(d->env, b);
  *out_turn = !((const rung_matmul_attrs *)node->attrs)->transpose_b;
  if (d->origin[node->in[1]] != RUNG_FROM_WEIGHTS || !layout || (*out_turn && rung_type_is_block(b->type)))
    return false;
  char why[160];
  rung_matmul_attrs attrs = *(const rung_matmul_attrs *)node->attrs;
  attrs.transpose_b = true;
  rung_node asked = *node;
  asked.attrs = &attrs;
  return rung_pass_has_kernel(d->env, g, &asked, 1, layout->id, why, sizeof why);
}

static void want(deriver *d, uint32_t value) {
  const rung_graph *g = d->rw.from;
  while (is_view(rung_graph_producer(g, value))) value = rung_graph_producer(g, value)->in[0];
  const rung_op *op = rung_graph_producer(g, value)->op;
  if (d->origin[value] == RUNG_FROM_WEIGHTS && op != &rung_op_weight) d->root[value] = true;
}

static void find_roots(deriver *d) {
  const rung_graph *g = d->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    for (uint32_t r = 0; r < node->results; r++) d->origin[node->first_value + r] = rung_origin_of(g, node, d->origin);
  }
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    bool turn;
    if (node->results && d->origin[node->first_value] != RUNG_FROM_ELSEWHERE) continue; /* part of a sub-graph itself */
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (d->origin[node->in[k]] != RUNG_FROM_WEIGHTS) continue;
      if (k != 1 || !packs(d, node, &turn)) {
        want(d, node->in[k]);
      } else if (!turn && rung_graph_producer(g, node->in[k])->op != &rung_op_weight) {
        d->root[node->in[k]] = true;
      }
    }
  }
  for (uint32_t i = 0; i < g->outputs; i++)
    if (d->origin[g->output[i].value] == RUNG_FROM_WEIGHTS) want(d, g->output[i].value);
}

/* ---- bodies */

typedef struct part {
  uint32_t node[MAX_NODES];
  uint32_t nodes, sources;
  int64_t source_bytes;
} part;

static int by_index(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint64_t bytes_of(const rung_graph *g, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(g, value);
  int64_t elements = 0;
  rung_type_is_fixed(g->dims, type, &elements);
  return rung_type_bytes(type->type, (uint64_t)elements);
}

static bool add_node(part *p, uint32_t node) {
  for (uint32_t i = 0; i < p->nodes; i++)
    if (p->node[i] == node) return true;
  if (p->nodes == MAX_NODES) return false;
  p->node[p->nodes++] = node;
  return true;
}

/* The nodes that make a value, in the graph's order. False if they are too many. */
static bool collect(const rung_graph *g, uint32_t value, part *out) {
  *out = (part){.nodes = 0};
  add_node(out, g->value[value].node);
  for (uint32_t i = 0; i < out->nodes; i++) {
    const rung_node *node = &g->node[out->node[i]];
    if (node->op == &rung_op_weight) {
      out->sources++;
      out->source_bytes += (int64_t)bytes_of(g, node->first_value);
    }
    for (uint32_t k = 0; k < node->n_in; k++)
      if (!add_node(out, g->value[node->in[k]].node)) return false;
  }
  qsort(out->node, out->nodes, sizeof *out->node, by_index);
  return out->sources <= MAX_SOURCES;
}

static rung_graph *build_body(deriver *d, const part *p, uint32_t value, bool turn) {
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
  if (turn && !rung_graph_status(body)) {
    const rung_transpose_attrs attrs = {{.count = 2, .value = {1, 0}}};
    result = rung_graph_op(body, &rung_op_transpose, &result, 1, &attrs);
  }
  rung_body_output(body, 0, result);
  for (uint32_t i = 0; i < p->nodes; i++) d->inner[g->node[p->node[i]].first_value] = (rung_value){0, 0};
  return body;
}

/* The form of a value; null without an error where it is better left to the run. */
static rung_status make_form(deriver *d, uint32_t value, bool turn, rung_value *out) {
  const rung_graph *g = d->rw.from;
  rung_graph *to = d->rw.to;
  const rung_node *node = rung_graph_producer(g, value);
  part p;
  *out = (rung_value){0, 0};
  const bool small = collect(g, value, &p);
  const int64_t bytes = (int64_t)bytes_of(g, value);
  if (!small || (bytes > GROWTH_FROM && bytes / GROWTH > p.source_bytes)) {
    rung_note(d->env, RUNG_NOTE_NEARLY, node->label, "value of weights alone",
              small ? "much larger than the weights that it is made of" : "it takes too many steps");
    return RUNG_OK;
  }
  rung_value in[MAX_SOURCES];
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
  rung_matmul_attrs attrs = *(const rung_matmul_attrs *)node->attrs;
  attrs.transpose_b = true;
  rung_graph_label(d->rw.to, node->label);
  const rung_value in[2] = {d->rw.map[node->in[0]], *form};
  const rung_value y = rung_graph_op(d->rw.to, &rung_op_matmul, in, 2, &attrs);
  if (!y.id) return rung_pass_failed(d->env, d->rw.to);
  d->rw.map[node->first_value] = y;
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
  find_roots(&d);
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
