/* SPDX-License-Identifier: MIT
 * Builders of control flow and of sizes found at run time. */
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
