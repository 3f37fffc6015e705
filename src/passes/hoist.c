/* SPDX-License-Identifier: MIT
 * hoist: what bodies of `if` and `loop` make of weights alone moves in front of the op that has the body, and is
 * captured; `weights_only` then computes it once. A round moves it one body outwards.
 *
 * What moves is what may become a form: pure ops with fixed extents on weights and constants, at least one weight, not
 * much larger than the weights, and not more steps than a form may have; views at its end stay inside, as in
 * `weights_only`. A product in a body whose factor lies [K, N] captures the transpose.
 *
 * A branch may be there so that something is not computed: what can refuse its operands' values (an index that is
 * outside) stays where it is. What a branch that is never taken would need is kept like other forms. */
#include <stdio.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/shape.h"
#include "passes/pass.h"

/* A body that values move out of. */
typedef struct place {
  rung_scope scope;
  bool *root, *turn; /* by value: it, or its transpose, is captured instead */
  uint32_t values;   /* how many of both */
  /* by value: which capture has it, counted from 1 */
  uint32_t *root_at, *turn_at;
} place;

/* Can computing it fail? Refused are operands without elements and integers that say where something is. */
static bool never_refuses(const rung_graph *g, const rung_node *node) {
  const bool by_element = node->op->flags & (RUNG_OP_ELEMENTWISE | RUNG_OP_VIEW);
  for (uint32_t k = 0; k < node->n_in && !by_element; k++) {
    const rung_value_type *type = rung_graph_value_type(g, node->in[k]);
    int64_t elements;
    if (!rung_type_is_fixed(g->dims, type, &elements) || elements == 0) return false;
    if (rung_type_is_integer(type->type) || type->type == RUNG_TYPE_BOOL) return false;
  }
  return true;
}

static void find_origins(rung_scope *s) {
  const rung_graph *g = s->graph;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (node->op->flags & RUNG_OP_INPUT) continue;
    const uint8_t from = never_refuses(g, node) ? rung_origin_of(g, node, s->origin) : RUNG_FROM_ELSEWHERE;
    for (uint32_t r = 0; r < node->results; r++) s->origin[node->first_value + r] = from;
  }
}

static bool is_declared(const rung_graph *g, uint32_t value) {
  return rung_graph_producer(g, value)->op->flags & RUNG_OP_DECLARES;
}

/* ---- which values */

static void want(const rung_pass_env *env, place *p, uint32_t value, bool turn, bool with_views) {
  const rung_graph *g = p->scope.graph;
  const rung_node *node = rung_graph_producer(g, value);
  while (!with_views && (node->op->flags & RUNG_OP_VIEW) && node->n_in) {
    value = node->in[0];
    node = rung_graph_producer(g, value);
  }
  bool *wanted = turn ? &p->turn[value] : &p->root[value];
  if (*wanted || p->scope.origin[value] != RUNG_FROM_WEIGHTS || (!turn && is_declared(g, value))) return;
  rung_part part;
  const char *why = rung_form_refused(&p->scope, value, &part);
  if (!why && turn && part.nodes == RUNG_FORM_BODY_NODES) why = "it takes too many steps"; /* one more turns it */
  if (why) {
    rung_note(env, RUNG_NOTE_NEARLY, node->label, "value of weights alone in a body", why);
    return;
  }
  *wanted = true;
  p->values++;
}

static rung_status find_roots(rung_pass_env *env, rung_arena *arena, place *p) {
  const rung_graph *g = p->scope.graph;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    bool *factor = NULL, turn;
    if (node->results && p->scope.origin[node->first_value] != RUNG_FROM_ELSEWHERE) continue;
    if (node->op->flags & RUNG_OP_CONTROL) RUNG_TRY(rung_captured_factors(env, arena, g, node, &factor));
    for (uint32_t k = 0; k < node->n_in; k++) {
      const bool packs = k == 1 && rung_factor_packs(env, g, node, &turn);
      want(env, p, node->in[k], packs && turn, packs || (factor && factor[k]));
    }
  }
  for (uint32_t i = 0; i < g->outputs; i++) want(env, p, g->output[i].value, false, false);
  return RUNG_OK;
}

/* Body `b` of `node`, which stands in `outer`. */
static rung_status look_into(rung_pass_env *env, rung_arena *arena, const rung_scope *outer, const rung_node *node,
                             uint32_t b, place *p) {
  const rung_graph *g = node->body[b];
  *p = (place){.scope = {.graph = g, .node = node, .outer = outer}};
  p->scope.origin = (uint8_t *)rung_arena_array(arena, g->values, sizeof *p->scope.origin);
  p->root = (bool *)rung_arena_array(arena, g->values, sizeof *p->root);
  p->turn = (bool *)rung_arena_array(arena, g->values, sizeof *p->turn);
  p->root_at = (uint32_t *)rung_arena_array(arena, g->values, sizeof *p->root_at);
  p->turn_at = (uint32_t *)rung_arena_array(arena, g->values, sizeof *p->turn_at);
  if (!p->scope.origin || !p->root || !p->turn || !p->root_at || !p->turn_at) return rung_pass_no_memory(env);
  for (uint32_t k = rung_first_capture(node); k < node->n_in; k++)
    p->scope.origin[rung_captured_as(outer->graph, node, b, k)] = outer->origin[node->in[k]];
  p->scope.origin[0] = RUNG_FROM_ELSEWHERE;
  find_origins(&p->scope);
  return find_roots(env, arena, p);
}

/* ---- out of a body */

/* Which nodes make the wanted values. */
static void find_needed(const place *p, bool *needed) {
  const rung_graph *g = p->scope.graph;
  for (uint32_t i = g->nodes; i-- > 0;) {
    const rung_node *node = &g->node[i];
    if (node->results == 1) needed[i] |= p->root[node->first_value] || p->turn[node->first_value];
    for (uint32_t k = 0; k < node->n_in && needed[i]; k++) needed[g->value[node->in[k]].node] = true;
  }
}

static void note(const rung_pass_env *env, const rung_node *node, const char *how) {
  char what[80];
  const bool weight = node->op->flags & RUNG_OP_DECLARES;
  snprintf(what, sizeof what, "%s%.40s, out of a body", how, weight ? "a weight" : node->op->name);
  rung_note(env, RUNG_NOTE_FOLDED, node->label, what, NULL);
}

/* Copies what makes the wanted values to the graph around and adds these to `more`. */
static rung_status move_out(rung_pass_env *env, const rung_rewrite *rw, place *p, rung_value *more, uint32_t *n_more) {
  const rung_graph *g = p->scope.graph;
  const rung_node *node = p->scope.node;
  rung_graph *to = rw->to;
  rung_rewrite out;
  RUNG_TRY(rung_rewrite_init(&out, g, to, env->error));
  bool *needed = (bool *)rung_arena_array(&to->arena, g->nodes + 1, sizeof *needed);
  if (!needed) return rung_pass_no_memory(env);
  find_needed(p, needed);
  for (uint32_t i = 0; i < g->inputs; i++)
    out.map[g->node[g->input[i]].first_value] = rw->map[node->in[rung_node_operand_of_input(node, g, i)]];
  for (uint32_t i = 0; i < g->nodes; i++) {
    if (!needed[i]) continue;
    const uint32_t value = g->node[i].first_value;
    rung_graph_label(to, g->node[i].label);
    if (!(g->node[i].op->flags & RUNG_OP_INPUT) && rung_rewrite_copy(&out, i)) return rung_pass_failed(env, to);
    if (p->root[value]) {
      more[*n_more] = out.map[value];
      p->root_at[value] = ++*n_more;
      note(env, &g->node[i], "");
    }
    if (p->turn[value]) {
      more[*n_more] = rung_pass_transpose(to, out.map[value]);
      p->turn_at[value] = ++*n_more;
      note(env, &g->node[i], "transpose of ");
    }
  }
  return rung_graph_status(to) ? rung_pass_failed(env, to) : RUNG_OK;
}

/* ---- the graph without it */

static rung_status copy_control(rung_pass_env *env, const rung_scope *scope, rung_rewrite *rw, uint32_t index);

static bool is_turned(const rung_pass_env *env, const place *p, const rung_node *node) {
  bool turn;
  return node->n_in > 1 && p->turn_at[node->in[1]] && rung_factor_packs(env, p->scope.graph, node, &turn) && turn;
}

static rung_status copy_body(rung_pass_env *env, const place *p, rung_graph *to, const rung_value *more,
                             uint32_t n_more, rung_graph **out_body) {
  const rung_graph *g = p->scope.graph;
  rung_rewrite inner;
  rung_value *inside = (rung_value *)rung_arena_array(&to->arena, n_more + 1, sizeof *inside);
  if (!inside) return rung_pass_no_memory(env);
  RUNG_TRY(rung_body_begin(env, g, to, NULL, more, n_more, &inner, inside));
  *out_body = inner.to;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (node->op->flags & RUNG_OP_INPUT) continue;
    if (node->results == 1 && p->root_at[node->first_value]) {
      inner.map[node->first_value] = inside[p->root_at[node->first_value] - 1];
    } else if (is_turned(env, p, node)) {
      RUNG_TRY(rung_turn_product(env, &inner, node, inside[p->turn_at[node->in[1]] - 1]));
    } else if (node->op->flags & RUNG_OP_CONTROL) {
      RUNG_TRY(copy_control(env, &p->scope, &inner, i));
    } else if (rung_rewrite_copy(&inner, i)) {
      return rung_pass_failed(env, inner.to);
    }
  }
  return rung_rewrite_finish(&inner, env->error);
}

static rung_status copy_control(rung_pass_env *env, const rung_scope *scope, rung_rewrite *rw, uint32_t index) {
  const rung_node *node = &rw->from->node[index];
  rung_arena *arena = &rw->to->arena;
  place *p = (place *)rung_arena_array(arena, node->bodies, sizeof *p);
  rung_graph **body = (rung_graph **)rung_arena_array(arena, node->bodies, sizeof *body);
  if (!p || !body) return rung_pass_no_memory(env);
  uint32_t values = 0, n_more = 0;
  for (uint32_t b = 0; b < node->bodies; b++) {
    RUNG_TRY(look_into(env, arena, scope, node, b, &p[b]));
    values += p[b].values;
  }
  if (values > rung_most_operands(node) - node->n_in) {
    rung_note(env, RUNG_NOTE_NEARLY, node->label, "values of weights alone in a body", "the op has too many operands");
    values = 0;
  }
  rung_value *in = (rung_value *)rung_arena_array(arena, node->n_in + values, sizeof *in), *more = in + node->n_in;
  if (!in) return rung_pass_no_memory(env);
  for (uint32_t k = 0; k < node->n_in; k++) in[k] = rw->map[node->in[k]];
  for (uint32_t b = 0; b < node->bodies && values; b++) RUNG_TRY(move_out(env, rw, &p[b], more, &n_more));
  for (uint32_t b = 0; b < node->bodies; b++) RUNG_TRY(copy_body(env, &p[b], rw->to, more, n_more, &body[b]));
  if (n_more && scope->outer) env->again = true;
  return rung_control_end(env, rw, index, in, node->n_in + n_more, body);
}

rung_status rung_pass_hoist(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_hoist(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_scope scope = {.graph = from};
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  scope.origin = (uint8_t *)rung_arena_array(&to->arena, from->values, sizeof *scope.origin);
  if (!scope.origin) return rung_pass_no_memory(env);
  for (uint32_t i = 0; i < from->nodes; i++) {
    const rung_node *node = &from->node[i];
    for (uint32_t r = 0; r < node->results; r++)
      scope.origin[node->first_value + r] = rung_origin_of(from, node, scope.origin);
    if (node->op->flags & RUNG_OP_CONTROL) {
      RUNG_TRY(copy_control(env, &scope, &rw, i));
    } else if (rung_rewrite_copy(&rw, i)) {
      return rung_pass_failed(env, to);
    }
  }
  return rung_rewrite_finish(&rw, env->error);
}
