/* SPDX-License-Identifier: MIT
 * Keeping what dense states hold: all versions of a state share memory, so before a step writes one, a keep step puts
 * aside what a failed run must put back: the rows that will be written where the op says which, else the whole state,
 * once. A loop's states are kept whole before it. */
#include "ops/op_table.h"
#include "plan/planner.h"

/* The buffer for the whole of a state; several steps that may come first share it. */
static uint32_t whole_buffer(rung_planner *p, uint32_t state_ref) {
  const uint32_t state = p->plan->root[p->plan->ref[state_ref].root].index;
  for (uint32_t i = 0; i < p->plan->steps; i++) {
    const rung_step *step = &p->plan->step[i];
    if (step->kind == RUNG_STEP_KEEP && step->n_in == 1 && p->plan->root[p->plan->ref[step->in].root].index == state) {
      const rung_ref copy = p->plan->ref[step->out];
      return rung_planner_ref(p, &copy);
    }
  }
  rung_value_type type;
  rung_ref_value_type(&p->plan->ref[state_ref], &type);
  return rung_planner_buffer_ref(p, &type);
}

static rung_status keep(rung_planner *p, uint32_t state, uint32_t position, uint32_t buffer, const rung_node *node) {
  if (buffer == RUNG_NONE) return p->status;
  const uint32_t step = rung_planner_step(p, RUNG_STEP_KEEP, node->op, NULL, node->label);
  if (step == RUNG_NONE) return p->status;
  const rung_ref from = p->plan->ref[state], to = p->plan->ref[buffer];
  p->plan->step[step].n_in = position == RUNG_NONE ? 1 : 2;
  p->plan->step[step].n_out = 1;
  p->plan->step[step].in = rung_planner_ref(p, &from);
  if (position != RUNG_NONE) {
    const rung_ref at = p->plan->ref[position];
    rung_planner_ref(p, &at);
  }
  p->plan->step[step].out = rung_planner_ref(p, &to);
  return p->status;
}

rung_status rung_planner_keep(rung_planner *p, const rung_scope *scope, const rung_node *node, uint32_t operand) {
  const uint32_t state = scope->ref[node->in[operand]];
  if (p->loops || state == RUNG_NONE ||
      rung_graph_value_type(scope->graph, node->in[operand])->kind != RUNG_VALUE_STATE_DENSE)
    return RUNG_OK;
  if (node->op != &rung_op_append_dense) return keep(p, state, RUNG_NONE, whole_buffer(p, state), node);
  const uint32_t x = scope->ref[node->in[1]], position = scope->ref[node->in[2]];
  if (x == RUNG_NONE || position == RUNG_NONE) return RUNG_OK; /* the step itself says so */
  rung_value_type rows;
  rung_ref_value_type(&p->plan->ref[x], &rows);
  return keep(p, state, position, rung_planner_buffer_ref(p, &rows), node);
}
