/* SPDX-License-Identifier: MIT
 * What a context commits for a binding, and gives back: pages of its arena and scratch. */
#include <inttypes.h>

#include "runtime/runtime.h"

static bool is_callers(const rung_context *c, const rung_root *root) {
  if (root->kind == RUNG_ROOT_INPUT)
    return c->input[root->index].set && !c->input[root->index].owned && !c->input[root->index].copy;
  return root->kind == RUNG_ROOT_OUTPUT && c->output[root->index].set && !c->output[root->index].copy;
}

/* Sizes found during the run are looked at when they are known: what the caller bound must hold them as well. */
rung_status rung_context_check_output(rung_context *c, uint32_t slot, int64_t bytes) {
  const rung_tensor *bound = &c->output[slot].tensor;
  if (bytes == RUNG_UNBOUND || bytes <= 0 || (uint64_t)bytes <= rung_tensor_bytes(bound)) return RUNG_OK;
  return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "output \"%s\" needs %" PRId64 " bytes, the bound tensor has %" PRIu64,
                   c->program->plan->output[slot].name, bytes, rung_tensor_bytes(bound));
}

static rung_status commit_all(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->roots; i++) {
    const rung_root *root = &plan->root[i];
    if (root->buffer == RUNG_NONE) continue;
    const rung_buffer *b = &plan->buffer[root->buffer];
    const int64_t bytes = now->dim[b->bytes.id];
    if (is_callers(c, root)) {
      if (root->kind == RUNG_ROOT_OUTPUT) RUNG_TRY(rung_context_check_output(c, root->index, bytes));
      if (!c->far) continue;
    }
    if (bytes == RUNG_UNBOUND || bytes <= 0 || !b->bound) continue;
    RUNG_TRY(rung_region_commit(&c->main->arena, b->offset, (size_t)bytes, &c->error));
  }
  return now->scratch ? rung_region_commit(&c->main->scratch, 0, now->scratch, &c->error) : RUNG_OK;
}

/* A refusal says what the whole run needs, and leaves the context what it held at the binding before. */
rung_status rung_context_commit(rung_context *c, rung_resolved *now) {
  rung_context_lock(c);
  const rung_status status = commit_all(c, now);
  const uint64_t held = c->main->arena.committed + c->main->scratch.committed;
  rung_context_unlock(c);
  if (!status) {
    now->commit_stamp = c->commit_stamp;
    return RUNG_OK;
  }
  if (status == RUNG_OVER_BUDGET || status == RUNG_OUT_OF_MEMORY) {
    uint64_t need = 0;
    rung_error ignored;
    if (status == RUNG_OVER_BUDGET &&
        !rung_plan_committed(c->host, c->program->plan, now->dim, rung_far_page(c->far, c->host), &ignored, &need))
      rung_fail(&c->error, status,
                "the run needs %" PRIu64 " bytes of activations and %" PRIu64 " of scratch; %" PRIu64
                " were held when the budget of %" PRIu64 " bytes was reached",
                need, now->scratch, held, rung_host_budget(c->host));
    now->valid = false;
    rung_context_put_back(c); /* from pages that may go now */
    /* Inputs that the caller fills while a submitted run fails stay. */
    if (c == c->main) rung_context_trim(c);
  }
  return status;
}

/* What a root's buffer must keep: its bytes at the last binding, and inputs that wait for the next run. */
static uint64_t kept_bytes(const rung_context *c, const rung_root *root, const rung_resolved *last) {
  const int64_t bytes = last ? last->dim[c->program->plan->buffer[root->buffer].bytes.id] : 0;
  uint64_t keep = bytes > 0 ? (uint64_t)bytes : 0;
  if (root->kind == RUNG_ROOT_INPUT) {
    const rung_bound *in = &c->input[root->index];
    if (in->set && in->owned && rung_tensor_bytes(&in->tensor) > keep) keep = rung_tensor_bytes(&in->tensor);
  }
  return keep;
}

void rung_context_trim(rung_context *c) {
  if (!c || !c->program) return;
  rung_context_quiet(c);
  const rung_plan *plan = c->program->plan;
  const rung_resolved *last = NULL;
  for (int i = 0; i < RUNG_REMEMBERED; i++)
    if (c->resolved[i].valid && (!last || c->resolved[i].stamp > last->stamp)) last = &c->resolved[i];
  for (uint64_t at = 0; at < c->arena.reserved;) {
    uint64_t first = c->arena.reserved, end = c->arena.reserved; /* of the next range that stays */
    for (uint32_t i = 0; i < plan->roots; i++) {
      const rung_root *root = &plan->root[i];
      if (root->buffer == RUNG_NONE || !plan->buffer[root->buffer].bound) continue;
      const uint64_t from = plan->buffer[root->buffer].offset, bytes = kept_bytes(c, root, last);
      if (!bytes || from + bytes <= at || from >= first) continue;
      first = from;
      end = from + bytes;
    }
    if (first > at) rung_region_decommit(&c->arena, at, first - at);
    at = end;
  }
  const uint64_t scratch = last ? last->scratch : 0;
  if (c->scratch.base) rung_region_decommit(&c->scratch, scratch, c->scratch.reserved - scratch);
  rung_context_stale(c);
}
