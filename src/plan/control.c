/* SPDX-License-Identifier: MIT
 * Bodies: branches and loops become nested ranges of steps in the same arrays. Captures are the outer references
 * themselves; results are copied out of the body, so that every branch leaves them in one place. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "plan/planner.h"

static bool is_state(const rung_value_type *type) { return type->kind != RUNG_VALUE_TENSOR; }

static uint32_t body_input(const rung_graph *body, uint32_t i) { return body->node[body->input[i]].first_value; }

static uint32_t push_copy(rung_planner *p, uint32_t ref) {
  const rung_ref copy = p->plan->ref[ref];
  return rung_planner_ref(p, &copy);
}

/* A symbol that only the body's own sizes give a value to. */
static bool is_made_symbol(rung_planner *p, rung_dim dim, uint32_t *out_symbol) {
  const rung_dim_node *node = &p->dims->node[dim.id];
  if (node->kind != RUNG_DIM_KIND_SYMBOL || !p->dims->symbol[node->symbol].made) return false;
  *out_symbol = node->symbol;
  return true;
}

/* A body may read a state's version as a plain value, while the same node writes the next version into the same memory:
 * such a capture is copied before the control step. Gives references by operand; captures begin at operand `own`. */
static rung_status settle_captures(rung_planner *p, rung_scope *scope, const rung_node *node, uint32_t own,
                                   uint32_t **out_ref) {
  uint32_t *ref = rung_arena_array(&p->work, node->n_in + 1, sizeof *ref);
  if (!ref) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  const uint32_t shift = node->op == &rung_op_loop ? 0 : 1; /* the condition of an if is no input of its bodies */
  bool writes = false;
  for (uint32_t r = 0; r < node->results; r++)
    writes |= is_state(rung_graph_value_type(scope->graph, node->first_value + r));
  for (uint32_t k = 0; k < node->n_in; k++) {
    const rung_value_type *type = rung_graph_value_type(scope->graph, node->in[k]);
    bool plain = false;
    for (uint32_t b = 0; b < node->bodies && k >= own; b++)
      plain |= !is_state(rung_graph_value_type(node->body[b], body_input(node->body[b], k - shift)));
    ref[k] = scope->ref[node->in[k]];
    if (!writes || !plain || !is_state(type)) continue;
    const uint32_t from = ref[k];
    ref[k] = rung_planner_buffer_ref(p, type);
    RUNG_TRY(rung_planner_copy(p, from, ref[k], node->label));
  }
  *out_ref = ref;
  return RUNG_OK;
}

/* ---- if */

/* Gives the results' symbols the extents that this branch found. */
static rung_status bind_extents(rung_planner *p, const rung_node *node, const rung_value_type *result,
                                const rung_value_type *found) {
  for (int a = 0; a < result->rank; a++) {
    uint32_t symbol;
    if (rung_dim_same(result->extent[a], found->extent[a]) || !is_made_symbol(p, result->extent[a], &symbol)) continue;
    const uint32_t step = rung_planner_step(p, RUNG_STEP_BIND, node->op, NULL, node->label);
    if (step == RUNG_NONE) return p->status;
    p->plan->step[step].symbol = symbol;
    p->plan->step[step].value = found->extent[a];
  }
  return RUNG_OK;
}

static rung_status plan_branch(rung_planner *p, rung_scope *scope, const rung_node *node, uint32_t index,
                               const uint32_t *capture, const uint32_t *result) {
  const rung_graph *body = node->body[index];
  rung_scope inner;
  RUNG_TRY(rung_planner_scope(p, body, &inner));
  for (uint32_t i = 0; i < body->inputs; i++) {
    const uint32_t value = body_input(body, i);
    inner.ref[value] = is_state(rung_graph_value_type(body, value)) ? scope->ref[node->in[1 + i]] : capture[1 + i];
  }
  RUNG_TRY(rung_planner_nodes(p, &inner));
  for (uint32_t r = 0; r < node->results; r++) {
    const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value + r);
    const uint32_t value = body->output[r].value;
    RUNG_TRY(bind_extents(p, node, type, rung_graph_value_type(body, value)));
    if (is_state(type))
      scope->ref[node->first_value + r] = inner.ref[value];
    else
      RUNG_TRY(rung_planner_copy(p, inner.ref[value], result[r], node->label));
  }
  return RUNG_OK;
}

rung_status rung_planner_if(rung_planner *p, rung_scope *scope, const rung_node *node) {
  uint32_t *capture;
  RUNG_TRY(settle_captures(p, scope, node, 1, &capture));
  const uint32_t step = rung_planner_step(p, RUNG_STEP_IF, node->op, node->attrs, node->label);
  if (step == RUNG_NONE) return p->status;
  p->plan->step[step].in = push_copy(p, scope->ref[node->in[0]]);
  p->plan->step[step].n_in = 1;
  uint32_t *result = rung_arena_array(&p->work, node->results + 1, sizeof *result);
  if (!result) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  for (uint32_t r = 0; r < node->results; r++) {
    const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value + r);
    if (is_state(type)) continue;
    result[r] = rung_planner_buffer_ref(p, type);
    if (result[r] == RUNG_NONE) return p->status;
    scope->ref[node->first_value + r] = result[r];
  }
  const uint32_t block = RUNG_PUSH(p, block), second = RUNG_PUSH(p, block);
  if (block == RUNG_NONE || second == RUNG_NONE) return p->status;
  p->plan->step[step].block = block;
  for (uint32_t b = 0; b < 2; b++) {
    const uint32_t first = p->plan->steps;
    RUNG_TRY(plan_branch(p, scope, node, b, capture, result));
    rung_block made;
    RUNG_TRY(rung_planner_block(p, node->body[b], first, &made));
    p->plan->block[block + b] = made;
  }
  p->plan->step[step].end = p->plan->steps;
  return RUNG_OK;
}

/* ---- loop(trip, condition, carried..., captures...) */

enum { FIRST = 2 };

static uint32_t scalar_buffer(rung_planner *p, rung_type type) {
  const rung_value_type t = {.type = type};
  return rung_planner_buffer_ref(p, &t);
}

static bool same_extents(const rung_value_type *a, const rung_value_type *b) {
  for (int i = 0; i < a->rank; i++)
    if (!rung_dim_same(a->extent[i], b->extent[i])) return false;
  return true;
}

static rung_status carry_symbols(rung_planner *p, rung_plan_loop *loop, const rung_value_type *inside,
                                 const rung_value_type *start, const rung_value_type *next) {
  for (int a = 0; a < inside->rank; a++) {
    uint32_t symbol;
    bool known =
        rung_dim_same(inside->extent[a], start->extent[a]) && rung_dim_same(inside->extent[a], next->extent[a]);
    if (known || !is_made_symbol(p, inside->extent[a], &symbol)) continue;
    for (uint32_t i = 0; i < loop->n_symbols; i++) known |= p->plan->carry_symbol[loop->symbol + i].symbol == symbol;
    if (known) continue;
    const uint32_t at = RUNG_PUSH(p, carry_symbol);
    if (at == RUNG_NONE) return p->status;
    p->plan->carry_symbol[at] = (rung_carry_symbol){symbol, start->extent[a], next->extent[a]};
    loop->n_symbols++;
  }
  return RUNG_OK;
}

/* The pair of buffers of carried value j; states need none. */
static rung_status add_carried(rung_planner *p, rung_scope *scope, rung_scope *inner, const rung_node *node, uint32_t j,
                               rung_plan_loop *loop) {
  const rung_graph *body = node->body[0];
  const rung_value_type *inside = rung_graph_value_type(body, body_input(body, FIRST + j));
  const rung_value_type *next = rung_graph_value_type(body, body->output[1 + j].value);
  const uint32_t start = scope->ref[node->in[FIRST + j]];
  if (is_state(inside)) {
    inner->ref[body_input(body, FIRST + j)] = scope->ref[node->first_value + j] = start;
    return RUNG_OK;
  }
  const rung_dim in_bytes = rung_planner_bytes(p, inside), out_bytes = rung_planner_bytes(p, next);
  if (!in_bytes.id || !out_bytes.id) return p->status;
  rung_carried c = {.root_in = rung_planner_root(p, RUNG_ROOT_CARRIED, 0, in_bytes),
                    .root_out = rung_planner_root(p, RUNG_ROOT_CARRIED, 0, out_bytes),
                    .swaps = same_extents(inside, next)};
  c.start_ref = push_copy(p, start);
  c.in_ref = rung_planner_dense_ref(p, c.root_in, inside);
  c.out_ref = rung_planner_dense_ref(p, c.root_out, next);
  c.result_ref = rung_planner_dense_ref(p, c.root_in, rung_graph_value_type(scope->graph, node->first_value + j));
  const uint32_t at = RUNG_PUSH(p, carried);
  if (p->status || at == RUNG_NONE) return p->status;
  p->plan->root[c.root_in].twin = c.root_out;
  p->plan->root[c.root_out].twin = c.root_in;
  p->plan->carried[at] = c;
  loop->n_carried++;
  inner->ref[body_input(body, FIRST + j)] = c.in_ref;
  scope->ref[node->first_value + j] = c.result_ref;
  return RUNG_OK;
}

static rung_status add_scan(rung_planner *p, rung_scope *scope, const rung_node *node, uint32_t r, uint32_t body_ref,
                            rung_plan_loop *loop) {
  const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value + r);
  const uint32_t at = RUNG_PUSH(p, scan), inside = push_copy(p, body_ref), ref = rung_planner_buffer_ref(p, type);
  if (p->status) return p->status;
  p->plan->scan[at] = (rung_scan_output){inside, ref};
  loop->n_scan++;
  uint32_t symbol;
  if (is_made_symbol(p, type->extent[0], &symbol)) loop->trip_symbol = symbol;
  scope->ref[node->first_value + r] = ref;
  return RUNG_OK;
}

static rung_status plan_body(rung_planner *p, rung_scope *scope, const rung_node *node, const uint32_t *capture,
                             rung_plan_loop *loop) {
  const rung_graph *body = node->body[0];
  const uint32_t carried = (uint32_t)((const rung_loop_attrs *)node->attrs)->carried;
  rung_scope inner;
  RUNG_TRY(rung_planner_scope(p, body, &inner));
  loop->carried = p->plan->carrieds;
  for (uint32_t j = 0; j < carried; j++) RUNG_TRY(add_carried(p, scope, &inner, node, j, loop));
  loop->symbol = p->plan->carry_symbols;
  for (uint32_t j = 0; j < carried; j++) {
    const rung_value_type *inside = rung_graph_value_type(body, body_input(body, FIRST + j));
    if (is_state(inside)) continue;
    RUNG_TRY(carry_symbols(p, loop, inside, rung_graph_value_type(scope->graph, node->in[FIRST + j]),
                           rung_graph_value_type(body, body->output[1 + j].value)));
  }
  inner.ref[body_input(body, 0)] = loop->iteration_ref;
  inner.ref[body_input(body, 1)] = loop->condition_in_ref;
  for (uint32_t i = FIRST + carried; i < node->n_in; i++) inner.ref[body_input(body, i)] = capture[i];
  RUNG_TRY(rung_planner_nodes(p, &inner));
  for (uint32_t c = 0, j = 0; j < carried; j++) {
    if (is_state(rung_graph_value_type(body, body_input(body, FIRST + j)))) continue;
    RUNG_TRY(rung_planner_copy(p, inner.ref[body->output[1 + j].value], p->plan->carried[loop->carried + c++].out_ref,
                               node->label));
  }
  loop->condition_ref = push_copy(p, inner.ref[body->output[0].value]);
  loop->scan = p->plan->scans;
  for (uint32_t r = carried; r < node->results; r++)
    RUNG_TRY(add_scan(p, scope, node, r, inner.ref[body->output[1 + r].value], loop));
  return p->status;
}

rung_status rung_planner_loop(rung_planner *p, rung_scope *scope, const rung_node *node) {
  uint32_t *capture;
  RUNG_TRY(
      settle_captures(p, scope, node, FIRST + (uint32_t)((const rung_loop_attrs *)node->attrs)->carried, &capture));
  for (int64_t j = 0; j < ((const rung_loop_attrs *)node->attrs)->carried; j++)
    RUNG_TRY(rung_planner_keep(p, scope, node, FIRST + (uint32_t)j));
  const uint32_t step = rung_planner_step(p, RUNG_STEP_LOOP, node->op, node->attrs, node->label);
  const uint32_t at = RUNG_PUSH(p, loop), block = RUNG_PUSH(p, block);
  if (step == RUNG_NONE || at == RUNG_NONE || block == RUNG_NONE) return p->status;
  rung_plan_loop loop = {.trip_symbol = RUNG_NONE};
  loop.trip_ref = push_copy(p, scope->ref[node->in[0]]);
  loop.start_ref = push_copy(p, scope->ref[node->in[1]]);
  p->plan->step[step].in = loop.trip_ref;
  p->plan->step[step].n_in = 2;
  loop.iteration_ref = scalar_buffer(p, RUNG_TYPE_I64);
  loop.condition_in_ref = scalar_buffer(p, RUNG_TYPE_BOOL);
  if (p->status) return p->status;
  const uint32_t first = p->plan->steps;
  p->loops++;
  RUNG_TRY(plan_body(p, scope, node, capture, &loop));
  p->loops--;
  p->plan->loop[at] = loop;
  rung_block made;
  RUNG_TRY(rung_planner_block(p, node->body[0], first, &made));
  p->plan->block[block] = made;
  p->plan->step[step].loop = at;
  p->plan->step[step].block = block;
  p->plan->step[step].end = p->plan->steps;
  return RUNG_OK;
}
