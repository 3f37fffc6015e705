/* SPDX-License-Identifier: MIT
 * Outputs that nobody asks for: they stay where steps left them, and steps that serve nothing else are left out. */
#include <string.h>

#include "runtime/runtime.h"

/* One array: a byte for each output (not wanted), each step (left out), and each root (what the search needs). */
rung_status rung_context_make_wanted(rung_context *c) {
  const rung_plan *plan = c->program->plan;
  c->unwanted_bytes = (size_t)plan->outputs + plan->steps + plan->roots + 1;
  c->unwanted = rung_host_array(c->host, c->unwanted_bytes, 1);
  c->leaves_out = false;
  c->left_out_stamp = 0;
  c->main->wanted_stamp++;
  return c->unwanted ? RUNG_OK : rung_fail(&c->error, RUNG_OUT_OF_MEMORY, "context: out of memory");
}

void rung_context_drop_wanted(rung_context *c) {
  rung_host_free(c->host, RUNG_MEMORY_host, c->unwanted, c->unwanted_bytes);
  c->unwanted = NULL;
  c->leaves_out = false;
}

rung_status rung_context_want_output(rung_context *c, int slot, bool wanted) {
  RUNG_TRY(rung_context_ready(c));
  if (slot < 0 || (uint32_t)slot >= c->program->plan->outputs)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "want: there is no output %d", slot);
  if (c->unwanted[slot] == !wanted) return RUNG_OK;
  c->unwanted[slot] = !wanted;
  c->wanted_stamp++;
  return RUNG_OK;
}

bool rung_context_wants(const rung_context *c, uint32_t slot) {
  return !c->unwanted[slot] || rung_context_feeds_state(c->main, slot);
}

/* Nothing but results is written, and none of them is asked for. */
static bool can_go(const rung_plan *plan, const rung_step *step, const uint8_t *needed) {
  if (step->kind != RUNG_STEP_KERNEL || (step->op->flags & (RUNG_OP_EFFECT | RUNG_OP_RANDOM | RUNG_OP_SIZES)))
    return false;
  for (uint32_t i = step->out; i < step->out + step->n_out; i++) {
    const uint32_t root = plan->ref[i].root;
    if (needed[root] || (plan->root[root].kind != RUNG_ROOT_BUFFER && plan->root[root].kind != RUNG_ROOT_OUTPUT))
      return false;
  }
  return step->n_out > 0;
}

/* What steps read is needed, from the last step back. What bodies read is not looked at: where there are bodies, all
 * steps are taken. */
static bool find_steps(rung_context *c, uint8_t *left_out, uint8_t *needed) {
  const rung_plan *plan = c->program->plan;
  bool any = false;
  memset(left_out, 0, plan->steps);
  memset(needed, 0, plan->roots);
  for (uint32_t i = 0; i < plan->outputs; i++)
    if (!c->unwanted[i] || rung_context_feeds_output(c->main, i)) needed[plan->output[i].root] = true;
  for (uint32_t s = 0; s < plan->steps; s++)
    if (plan->step[s].kind == RUNG_STEP_IF || plan->step[s].kind == RUNG_STEP_LOOP) return false;
  for (uint32_t s = plan->steps; s-- > 0;) {
    const rung_step *step = &plan->step[s];
    left_out[s] = can_go(plan, step, needed);
    any |= left_out[s];
    for (uint32_t i = step->in; !left_out[s] && i < step->in + step->n_in; i++) needed[plan->ref[i].root] = true;
  }
  return any;
}

void rung_context_settle_wanted(rung_context *c) {
  const rung_plan *plan = c->program->plan;
  uint8_t *left_out = c->unwanted + plan->outputs;
  if (c->left_out_stamp == c->main->wanted_stamp) return;
  if (c != c->main && plan->outputs) memcpy(c->unwanted, c->main->unwanted, plan->outputs);
  c->leaves_out = find_steps(c, left_out, left_out + plan->steps);
  c->left_out_stamp = c->main->wanted_stamp;
}

const uint8_t *rung_context_left_out(const rung_context *c) {
  return c->leaves_out ? c->unwanted + c->program->plan->outputs : NULL;
}
