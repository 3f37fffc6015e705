/* SPDX-License-Identifier: MIT
 * Copies of contexts and states that go on where the original is. */
#include <string.h>

#include "runtime/runtime.h"

static rung_status copy_contents(rung_state *to, const rung_state *from, rung_error *error) {
  for (uint32_t c = 0; c < from->classes; c++) {
    const size_t blocks = (size_t)from->sequences * from->class_[c].ring;
    memcpy(to->class_[c].table, from->class_[c].table, blocks * sizeof *to->class_[c].table);
    memcpy(to->class_[c].from, from->class_[c].from, (size_t)from->sequences * sizeof *to->class_[c].from);
    if (from->pool) memcpy(to->class_[c].spare, from->class_[c].spare, from->class_[c].blocks * sizeof(uint32_t));
    to->class_[c].spares = from->class_[c].spares;
    RUNG_TRY(rung_region_copy(&to->class_[c].region, &from->class_[c].region, error));
  }
  for (uint32_t i = 0; i < from->items; i++) {
    if (from->item[i].type.kind == RUNG_VALUE_STATE_KV) continue;
    RUNG_TRY(rung_region_copy(&to->item[i].region, &from->item[i].region, error));
  }
  memcpy(to->length, from->length, (size_t)from->sequences * sizeof *to->length);
  memcpy(to->shift, from->shift, (size_t)from->sequences * sizeof *to->shift);
  return RUNG_OK;
}

rung_status rung_state_clone(const rung_state *state, rung_error *error, rung_state **out_state) {
  if (!state || !out_state) return rung_fail(error, RUNG_INVALID_ARGUMENT, "clone: state and out_state are required");
  rung_state_quiet((rung_state *)(uintptr_t)state);
  rung_state_options o = rung_state_options_default();
  o.sequences = state->sequences;
  o.capacity = state->capacity;
  o.chunk = state->chunk;
  o.blocks = state->pool;
  rung_state *copy;
  RUNG_TRY(rung_state_create(state->template_, &o, error, &copy));
  const rung_status status = copy_contents(copy, state, error);
  if (status) {
    rung_state_release(copy);
    return status;
  }
  *out_state = copy;
  return RUNG_OK;
}

rung_status rung_context_clone(const rung_context *c, rung_error *error, rung_context **out_context) {
  if (!c || !out_context) return rung_fail(error, RUNG_INVALID_ARGUMENT, "clone: context and out_context are required");
  rung_state *state = NULL;
  rung_context *copy = NULL;
  rung_context_quiet(c->main);
  if (c->state) RUNG_TRY(rung_state_clone(c->state, error, &state));
  rung_status status = rung_context_create(c->template_, c->view, state, &c->options, error, &copy);
  rung_state_release(state); /* the context keeps it */
  if (status) return status;
  /* All that a caller set and that outlives a run goes along here. */
  memcpy(copy->random, c->random, sizeof copy->random);
  memcpy(copy->extent, c->extent, sizeof copy->extent);
  if ((status = rung_context_copy_feeds(copy, c))) {
    rung_fail(error, status, "%s", rung_context_message(copy));
    rung_context_destroy(copy);
    return status;
  }
  if (c->program && (status = rung_context_use(copy, c->program))) {
    rung_fail(error, status, "%s", rung_context_message(copy));
    rung_context_destroy(copy);
    return status;
  }
  *out_context = copy;
  return RUNG_OK;
}
