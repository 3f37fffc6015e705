/* SPDX-License-Identifier: MIT
 * Builders of control flow and of sizes found at run time. */
#include <stdio.h>

#include "ir/rewrite.h"
#include "ops/bodies.h"
#include "ops/control.h"
#include "ops/shape.h"

/* The operands of a node: two of its own, then the others. */
static rung_value *operands(rung_graph *g, uint32_t own, const rung_value *rest, uint32_t n) {
  if (rung_graph_status(g)) return NULL;
  rung_value *in = (rung_value *)rung_arena_array(&g->arena, (size_t)own + n, sizeof *in);
  if (!in) {
    rung_graph_fail(g, RUNG_OUT_OF_MEMORY, "control flow: out of memory");
    return NULL;
  }
  for (uint32_t i = 0; i < n; i++) in[own + i] = rest[i];
  return in;
}

const rung_node *rung_build_if(rung_graph *g, rung_value condition, rung_graph *then_body, rung_graph *else_body,
                               const rung_value *captures, uint32_t n) {
  rung_value *in = operands(g, 1, captures, n);
  if (!in) return NULL;
  in[0] = condition;
  return rung_graph_append(g, &rung_op_if, in, n + 1, NULL, (rung_graph *[]){then_body, else_body}, 2);
}

const rung_node *rung_build_loop(rung_graph *g, rung_value trip, rung_value condition, rung_graph *body,
                                 const rung_value *values, uint32_t n, const rung_loop_attrs *attrs) {
  const int64_t endless = INT64_MAX;
  rung_value *in = operands(g, 2, values, n);
  if (!in) return NULL;
  in[0] = rung_value_is_null(trip) ? rung_graph_constant(g, RUNG_TYPE_I64, 0, NULL, &endless) : trip;
  in[1] = rung_value_is_null(condition) ? rung_build_scalar(g, RUNG_TYPE_BOOL, 1) : condition;
  rung_loop_attrs named = *attrs;
  if (!named.symbol) named.symbol = "";
  return rung_graph_append(g, &rung_op_loop, in, n + 2, &named, &body, 1);
}

/* An input of the loop's body for value i: whole rows where the scan's body takes one element. */
static rung_value scan_input(rung_graph *g, rung_graph *loop_body, const rung_graph *body, const rung_value *values,
                             uint32_t i, uint32_t states, uint32_t rows) {
  char name[16];
  snprintf(name, sizeof name, "v%u", i);
  const bool whole = i >= states && i < states + rows;
  const rung_value_type type = whole ? *rung_build_type(g, values[i]) : *rung_body_input_type(body, i);
  const rung_input_attrs attrs = {name};
  return rung_node_result(loop_body, rung_graph_declare(loop_body, &rung_op_input, &attrs, &type), 0);
}

static void fill_scan_body(rung_graph *g, rung_graph *loop_body, const rung_graph *body, const rung_value *values,
                           uint32_t states, uint32_t rows, rung_value *in) {
  const rung_value iteration = rung_graph_input(loop_body, "iteration", RUNG_TYPE_I64, 0, NULL);
  const rung_value condition = rung_graph_input(loop_body, "condition", RUNG_TYPE_BOOL, 0, NULL);
  rung_value *out = in + body->inputs;
  for (uint32_t i = 0; i < body->inputs; i++) {
    in[i] = scan_input(g, loop_body, body, values, i, states, rows);
    if (i < states || i >= states + rows) continue;
    in[i] = rung_graph_op(loop_body, &rung_op_gather, (rung_value[]){in[i], iteration}, 2, NULL);
  }
  if (rung_rewrite_inline(loop_body, body, in, out)) return;
  rung_graph_output(loop_body, "condition", condition);
  for (uint32_t r = 0; r < body->outputs; r++) rung_graph_output(loop_body, body->output[r].name, out[r]);
}

const rung_node *rung_build_scan(rung_graph *g, const rung_graph *body, const rung_value *values, uint32_t n,
                                 uint32_t states, uint32_t rows) {
  if (rung_graph_status(g)) return NULL;
  if (rung_graph_status(body)) {
    rung_graph_fail(g, rung_graph_status(body), "scan: in its body: %s", rung_graph_message(body));
    return NULL;
  }
  if (rows < 1 || (uint64_t)states + rows > n || body->inputs != n || body->outputs < states ||
      rung_build_type(g, values[states])->rank < 1) {
    rung_graph_fail(g, RUNG_INVALID_ARGUMENT, "scan: %u states and %u rows for %u values, a body of %u inputs", states,
                    rows, n, body->inputs);
    return NULL;
  }
  rung_graph *loop_body = rung_graph_body(g);
  rung_value *in = (rung_value *)rung_arena_array(&g->arena, (size_t)n + body->outputs, sizeof *in);
  if (!in) {
    rung_graph_fail(g, RUNG_OUT_OF_MEMORY, "scan: out of memory");
    return NULL;
  }
  fill_scan_body(g, loop_body, body, values, states, rows, in);
  const rung_dim count = rung_build_type(g, values[states])->extent[0];
  const rung_extent_attrs extent = {count};
  const rung_value trip = rung_graph_op(g, &rung_op_extent, NULL, 0, &extent);
  const rung_loop_attrs attrs = {.carried = states, .symbol = "", .trip = count};
  return rung_build_loop(g, trip, rung_build_null(), loop_body, values, n, &attrs);
}

rung_dim rung_build_bind(rung_graph *g, rung_value value, const char *name, rung_dim bound) {
  if (rung_graph_status(g)) return (rung_dim){0};
  const rung_dim symbol = rung_dims_make_symbol(g->dims, name, bound);
  if (!symbol.id) {
    rung_graph_fail(g, g->dims->failure, "bind_symbol: %s", g->dims->reason);
    return symbol;
  }
  value = rung_build_cast(g, value, RUNG_TYPE_I64);
  if (rung_build_type(g, value)->rank) value = rung_build_reshape(g, value, 0, NULL);
  const rung_bind_symbol_attrs attrs = {g->dims->symbol[g->dims->node[symbol.id].symbol].name, bound};
  const rung_value bound_value = rung_graph_op(g, &rung_op_bind_symbol, &value, 1, &attrs);
  return rung_value_is_null(bound_value) ? (rung_dim){0} : symbol;
}

rung_value rung_build_nonzero(rung_graph *g, rung_value x, const char *name) {
  const rung_value_type type = *rung_build_type(g, x);
  const rung_dim most = rung_dims_product(g->dims, type.extent, 0, type.rank);
  const rung_value count = rung_graph_op(g, &rung_op_count_nonzero, &x, 1, NULL);
  const rung_count_attrs attrs = {rung_build_bind(g, count, name, most)};
  return rung_graph_op(g, &rung_op_nonzero, &x, 1, &attrs);
}
