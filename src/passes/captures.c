/* SPDX-License-Identifier: MIT
 * What bodies of control ops capture: questions about it, copies of bodies with other captures, and which values of
 * weights alone, inside bodies or not, may become forms. */
#include <stdio.h>

#include "ops/attrs.h"
#include "ops/bodies.h"
#include "ops/op_table.h"
#include "passes/pass.h"

/* A sub-graph that makes much of little (an outer product) is cheaper to run than to keep. */
enum { GROWTH = 4, GROWTH_FROM = 16 << 20, MAX_SOURCES = RUNG_FORM_SOURCES };

uint32_t rung_first_capture(const rung_node *node) {
  if (node->op == &rung_op_if) return 1;
  if (node->op == &rung_op_loop) return 2 + (uint32_t)((const rung_loop_attrs *)node->attrs)->carried;
  return node->n_in;
}

uint32_t rung_most_operands(const rung_node *node) {
  return node->op == &rung_op_loop ? RUNG_LOOP_OPERANDS : RUNG_MAX_OPERANDS;
}

uint32_t rung_captured_as(const rung_graph *g, const rung_node *node, uint32_t b, uint32_t operand) {
  const rung_graph *body = node->body[b];
  const uint32_t own = rung_node_operand_of_input(node, body, 0);
  const uint32_t value = body->node[body->input[operand - own]].first_value;
  return rung_value_type_equal(rung_graph_value_type(body, value), rung_graph_value_type(g, node->in[operand])) ? value
                                                                                                                : 0;
}

bool rung_factor_packs(const rung_pass_env *env, const rung_graph *g, const rung_node *node, bool *out_turn) {
  if (node->op != &rung_op_matmul) return false;
  const rung_value_type *b = rung_graph_value_type(g, node->in[1]);
  const rung_layout *layout = rung_pass_layout(env, b);
  *out_turn = !((const rung_matmul_attrs *)node->attrs)->transpose_b;
  if (!layout || (*out_turn && rung_type_is_block(b->type))) return false;
  char why[160];
  rung_matmul_attrs attrs = *(const rung_matmul_attrs *)node->attrs;
  attrs.transpose_b = true;
  rung_node asked = *node;
  asked.attrs = &attrs;
  return rung_pass_has_kernel(env, g, &asked, 1, layout->id, why, sizeof why);
}

rung_value rung_pass_transpose(rung_graph *to, rung_value value) {
  const rung_transpose_attrs attrs = {{.count = 2, .value = {1, 0}}};
  return rung_graph_op(to, &rung_op_transpose, &value, 1, &attrs);
}

rung_status rung_turn_product(const rung_pass_env *env, rung_rewrite *rw, const rung_node *node, rung_value factor) {
  rung_matmul_attrs attrs = *(const rung_matmul_attrs *)node->attrs;
  attrs.transpose_b = true;
  rung_graph_label(rw->to, node->label);
  const rung_value in[2] = {rw->map[node->in[0]], factor};
  rw->map[node->first_value] = rung_graph_op(rw->to, node->op, in, 2, &attrs);
  return rung_graph_status(rw->to) ? rung_pass_failed(env, rw->to) : RUNG_OK;
}

/* Recursion is as deep as bodies are nested. */
rung_status rung_captured_factors(const rung_pass_env *env, rung_arena *arena, const rung_graph *g,
                                  const rung_node *node, bool **out_factor) {
  bool *factor = *out_factor = (bool *)rung_arena_array(arena, node->n_in + 1, sizeof *factor);
  if (!factor) return rung_pass_no_memory(env);
  for (uint32_t b = 0; b < node->bodies && rung_first_capture(node) < node->n_in; b++) {
    const rung_graph *body = node->body[b];
    uint32_t *capture = (uint32_t *)rung_arena_array(arena, body->values, sizeof *capture); /* 0 for none */
    if (!capture) return rung_pass_no_memory(env);
    for (uint32_t k = rung_first_capture(node); k < node->n_in; k++) capture[rung_captured_as(g, node, b, k)] = k;
    capture[0] = 0;
    for (uint32_t i = 0; i < body->nodes; i++) {
      const rung_node *reader = &body->node[i];
      bool turn, *inner;
      if (reader->op == &rung_op_matmul && capture[reader->in[1]] && rung_factor_packs(env, body, reader, &turn))
        factor[capture[reader->in[1]]] |= !turn;
      if (!(reader->op->flags & RUNG_OP_CONTROL)) continue;
      RUNG_TRY(rung_captured_factors(env, arena, body, reader, &inner));
      for (uint32_t k = 0; k < reader->n_in; k++) factor[capture[reader->in[k]]] |= inner[k];
    }
  }
  factor[0] = false; /* what is no capture */
  return RUNG_OK;
}

/* ---- copies */

/* A body's new input, by a name that no other has. */
static rung_value add_input(rung_graph *body, uint32_t position, const rung_value_type *type) {
  char name[16];
  do {
    snprintf(name, sizeof name, "h%u", position++);
  } while (rung_graph_find_name(body, RUNG_NAME_INPUT, name) != UINT32_MAX);
  const rung_input_attrs attrs = {.name = name};
  return rung_node_result(body, rung_graph_declare(body, &rung_op_input, &attrs, type), 0);
}

rung_status rung_body_begin(const rung_pass_env *env, const rung_graph *body, rung_graph *to, const uint32_t *as,
                            const rung_value *more, uint32_t n_more, rung_rewrite *out_inner, rung_value *out_inside) {
  rung_graph *copy = rung_graph_body(to);
  if (rung_graph_status(to)) return rung_pass_failed(env, to);
  RUNG_TRY(rung_rewrite_init(out_inner, body, copy, env->error));
  for (uint32_t i = 0; i < body->inputs; i++) {
    const uint32_t value = body->node[body->input[i]].first_value;
    if (as && as[i] == UINT32_MAX) continue;
    if (as && as[i] != i) {
      out_inner->map[value] = out_inner->map[body->node[body->input[as[i]]].first_value];
    } else if (rung_rewrite_copy(out_inner, body->input[i])) {
      return rung_pass_failed(env, copy);
    }
  }
  for (uint32_t i = 0; i < n_more; i++) {
    rung_graph_label(copy, rung_graph_producer(to, more[i].id)->label);
    out_inside[i] = add_input(copy, copy->inputs, rung_graph_value_type(to, more[i].id));
  }
  return rung_graph_status(copy) ? rung_pass_failed(env, copy) : RUNG_OK;
}

rung_status rung_control_end(const rung_pass_env *env, rung_rewrite *rw, uint32_t index, const rung_value *in,
                             uint32_t n_in, rung_graph *const *body) {
  const rung_node *node = &rw->from->node[index];
  rung_graph *to = rw->to;
  rung_value_type *given = (rung_value_type *)rung_arena_array(&to->arena, node->results, sizeof *given);
  if (!given) return rung_pass_no_memory(env);
  for (uint32_t r = 0; r < node->results; r++) given[r] = *rung_graph_value_type(rw->from, node->first_value + r);
  rung_graph_label(to, node->label);
  const rung_node *copy =
      rung_graph_append_as(to, node->op, in, n_in, node->attrs, body, node->bodies, given, node->results);
  if (!copy) return rung_pass_failed(env, to);
  for (uint32_t r = 0; r < node->results; r++) rw->map[node->first_value + r] = rung_node_result(to, copy, r);
  return RUNG_OK;
}

/* ---- values of weights alone */

/* The place of a node among the inputs, which are in the graph's order. */
static uint32_t input_of(const rung_graph *g, uint32_t node) {
  uint32_t lo = 0, hi = g->inputs;
  while (hi - lo > 1) {
    const uint32_t mid = lo + (hi - lo) / 2;
    if (g->input[mid] <= node)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

static bool add_maker(rung_part *p, const rung_scope *scope, uint32_t value) {
  while (scope->outer && rung_graph_producer(scope->graph, value)->op == &rung_op_input) {
    const uint32_t input = input_of(scope->graph, scope->graph->value[value].node);
    value = scope->node->in[rung_node_operand_of_input(scope->node, scope->graph, input)];
    scope = scope->outer;
  }
  const uint32_t node = scope->graph->value[value].node;
  for (uint32_t i = 0; i < p->nodes; i++)
    if (p->node[i] == node && p->scope[i] == scope) return true;
  if (p->nodes == RUNG_FORM_BODY_NODES) return false;
  p->scope[p->nodes] = scope;
  p->node[p->nodes++] = node;
  return true;
}

static int64_t bytes_of(const rung_graph *g, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(g, value);
  int64_t elements = 0;
  rung_type_is_fixed(g->dims, type, &elements);
  return (int64_t)rung_type_bytes(type->type, (uint64_t)elements);
}

const char *rung_form_refused(const rung_scope *scope, uint32_t value, rung_part *out) {
  int64_t source_bytes = 0;
  *out = (rung_part){.nodes = 0};
  add_maker(out, scope, value);
  for (uint32_t i = 0; i < out->nodes; i++) {
    const rung_graph *g = out->scope[i]->graph;
    const rung_node *node = &g->node[out->node[i]];
    if (node->op == &rung_op_weight) {
      out->sources++;
      source_bytes += bytes_of(g, node->first_value);
    }
    for (uint32_t k = 0; k < node->n_in; k++)
      if (!add_maker(out, out->scope[i], node->in[k])) return "it takes too many steps";
  }
  const int64_t bytes = bytes_of(scope->graph, value);
  if (out->sources > MAX_SOURCES) return "it takes too many steps";
  return bytes > GROWTH_FROM && bytes / GROWTH > source_bytes ? "much larger than the weights that it is made of"
                                                              : NULL;
}
