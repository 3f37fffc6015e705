/* SPDX-License-Identifier: MIT
 * One run of a context, from what is bound to results: resolving, checking, committing, steps, and states put back where
 * it fails. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

/* ---- before the steps */

rung_table *rung_run_begin(rung_context *c) {
  if (!c->use) return NULL;
  rung_table *table = rung_use_table(c->host, c->use);
  if (table->stamp == c->table_stamp) return table;
  for (uint32_t i = 0; i < table->roots; i++)
    if (table->root[i].data) c->root[i] = (uint8_t *)(uintptr_t)table->root[i].data;
  c->table_stamp = table->stamp;
  c->root_stamp++;
  return table;
}

/* One of the last few bindings, or the least recently used of them made anew. */
static rung_status resolved_for(rung_context *c, const int64_t *symbol, rung_resolved **out) {
  const rung_plan *plan = c->program->plan;
  bool makes = false;
  for (uint32_t s = 0; s < plan->dims->symbols; s++) makes |= plan->dims->symbol[s].made;
  rung_resolved *victim = &c->resolved[0];
  for (int i = 0; i < c->remembered; i++) {
    rung_resolved *r = &c->resolved[i];
    if (r->valid && !makes && memcmp(r->symbol, symbol, sizeof r->symbol) == 0) {
      r->stamp = ++c->clock;
      *out = r;
      return RUNG_OK;
    }
    if (!r->valid || (victim->valid && r->stamp < victim->stamp)) victim = r;
  }
  victim->valid = false;
  victim->commit_stamp = victim->root_stamp = 0;
  memcpy(victim->symbol, symbol, sizeof victim->symbol);
  RUNG_TRY(rung_resolve(plan, victim, &c->error));
  RUNG_TRY(rung_context_check_extents(c, victim));
  victim->valid = true;
  victim->stamp = ++c->clock;
  *out = victim;
  return RUNG_OK;
}

static rung_status check_outputs(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->outputs; i++)
    if (c->output[i].set)
      RUNG_TRY(
          rung_context_check_output(c, i, now->dim[plan->buffer[plan->root[plan->output[i].root].buffer].bytes.id]));
  return RUNG_OK;
}

/* Shifts that wait are done here: a run that goes on with a sequence reads it. */
static rung_status grow_states(rung_context *c, const rung_run_rows *rows) {
  for (int64_t i = 0; i < rows->n; i++) {
    const int64_t count = rows->offsets[i + 1] - rows->offsets[i];
    if (count) rung_state_settle(c->state, rows->slot[i]);
    RUNG_TRY(rung_state_grow(c->state, rows->slot[i], rows->past[i], count, &c->error));
  }
  return RUNG_OK;
}

rung_status rung_run_prepare(rung_context *c, rung_resolved **out_now, rung_run_rows *rows) {
  const rung_plan *plan = c->program->plan;
  int64_t symbol[RUNG_MAX_SYMBOLS];
  RUNG_TRY(rung_context_solve(c, symbol));
  RUNG_TRY(resolved_for(c, symbol, out_now));
  RUNG_TRY(rung_context_check_extents(c, *out_now));
  RUNG_TRY(check_outputs(c, *out_now));
  RUNG_TRY(rung_context_place(c, *out_now));
  if (plan->ragged[0] == RUNG_NONE) return RUNG_OK;
  RUNG_TRY(rung_context_check_rows(c));
  RUNG_TRY(rung_context_check_total(c, *out_now));
  rows->offsets = c->input[plan->ragged[0]].tensor.data;
  rows->slot = c->input[plan->ragged[1]].tensor.data;
  rows->past = c->input[plan->ragged[2]].tensor.data;
  rows->n = c->input[plan->ragged[1]].tensor.extent[0];
  return RUNG_OK;
}

rung_status rung_run_start(rung_context *c, rung_resolved *now, const rung_run_rows *rows, rung_table *table) {
  rung_status status = grow_states(c, rows);
  if (!status) status = rung_context_feed_room(c, now);
  if (!status && now->commit_stamp != c->commit_stamp) status = rung_context_commit(c, now);
  if (!status) status = rung_context_copy_inputs(c, now);
  if (!status && now->root_stamp != c->root_stamp) {
    rung_resolve_bases(c->program->plan, now, c->root);
    now->root_stamp = c->root_stamp;
  }
  if (!status) status = rung_run_steps(c, now);
  rung_table_release(table);
  const rung_device *device = c->template_->device;
  rung_error ignored;
  /* What steps that did run may have refused is not the next run's. */
  if (status && device->backend->settle) (void)device->backend->settle(device->self, c->main->kept_steps, &ignored);
  return status;
}

rung_status rung_run_fail(rung_context *c, rung_resolved *now, const rung_run_rows *rows, uint64_t counter,
                          rung_status status) {
  now->valid = false;
  c->main->random[1] = counter;
  rung_context_put_back(c);
  /* Lengths of submitted runs go back once their failure is known to the caller. */
  for (int64_t i = 0; c == c->main && i < rows->n; i++) rung_state_give_back(c->state, rows->slot[i]);
  return status;
}

void rung_run_results(rung_context *c, const rung_resolved *now) {
  for (uint32_t i = 0; i < c->program->plan->outputs; i++) {
    rung_tensor *t = &c->result[i];
    const rung_plan_output *out = &c->program->plan->output[i];
    *t = (rung_tensor){0};
    if (!rung_context_wants(c, i)) continue;
    *t = (rung_tensor){.type = out->type.type, .rank = out->type.rank, .data = c->root[out->root]};
    if (c->far) t->data = c->output[i].set ? c->output[i].tensor.data : rung_context_boundary(c, out->root);
    for (int a = 0; a < t->rank; a++) t->extent[a] = now->dim[out->type.extent[a].id];
    if (c->output[i].copy) {
      t->data = c->output[i].tensor.data;
      rung_buffer_strides(&c->output[i].tensor, t->stride);
    }
  }
}

static rung_status run_now(rung_context *c, rung_resolved *now, const rung_run_rows *rows) {
  const rung_device *device = c->template_->device;
  RUNG_TRY(rung_run_start(c, now, rows, rung_run_begin(c)));
  RUNG_TRY(rung_context_copy_outputs(c, now));
  rung_context_feed_inputs(c, now);
  if (device->backend->settle) RUNG_TRY(device->backend->settle(device->self, c->kept_steps, &c->error));
  rung_run_results(c, now);
  return rung_context_feed_whole(c);
}

rung_status rung_context_run(rung_context *c) {
  RUNG_TRY(rung_context_ready(c));
  if (c->flights) RUNG_TRY(rung_context_sync(c));
  if (c->newest && c->newest != c && !c->newest->ran) rung_context_unfeed_inputs(c);
  rung_state_quiet(c->state);
  atomic_store(&c->cancel, 0);
  rung_resolved *now;
  rung_run_rows rows = {0};
  c->kept_count = 0;
  c->ran = false;
  c->shown = c->newest = c;
  rung_context_settle_wanted(c);
  RUNG_TRY(rung_run_prepare(c, &now, &rows));
  const uint64_t counter = c->random[1];
  rung_status status = run_now(c, now, &rows);
  if (status) {
    rung_context_unfeed_inputs(c);
    return rung_run_fail(c, now, &rows, counter, status);
  }
  for (int64_t i = 0; i < rows.n; i++) c->state->length[rows.slot[i]] += rows.offsets[i + 1] - rows.offsets[i];
  c->ran = true;
  rung_context_bind_fed_inputs(c, now);
  return RUNG_OK;
}

rung_status rung_context_output(rung_context *c, int slot, rung_tensor *out_tensor) {
  RUNG_TRY(rung_context_ready(c));
  const rung_context *run = c->shown;
  if (out_tensor && slot >= 0 && (uint32_t)slot < c->program->plan->outputs && run && run->ran &&
      !run->result[slot].data && rung_tensor_bytes(&run->result[slot]))
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "output \"%s\" was not wanted",
                     c->program->plan->output[slot].name);
  if (slot < 0 || (uint32_t)slot >= c->program->plan->outputs || !out_tensor || !run ||
      (!run->result[slot].data && rung_tensor_bytes(&run->result[slot])))
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "output: there is no output %d, or no run has made it", slot);
  const rung_tensor *t = &run->result[slot];
  *out_tensor = run->output[slot].copy ? *t : rung_tensor_dense(t->type, t->rank, t->extent, t->data);
  return RUNG_OK;
}
