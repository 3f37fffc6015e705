/* SPDX-License-Identifier: MIT
 * Ragged rows: which sequences a run goes on with, and by how many rows. The context fills the graph's three inputs
 * from (slot, count) pairs; inputs that a caller filled by hand are held to the same rules. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

/* Marks slots as seen in this call; false if one was seen before. One pass, no memory. */
static bool first_seen(rung_state *s, int32_t slot) {
  if (s->mark[slot] == s->mark_stamp) return false;
  s->mark[slot] = s->mark_stamp;
  return true;
}

static rung_status check_slot(rung_context *c, int64_t entry, int32_t slot) {
  if (slot < 0 || slot >= c->state->sequences)
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "rows: entry %" PRId64 " names sequence %d of %d", entry, slot,
                     c->state->sequences);
  if (!first_seen(c->state, slot))
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "rows: entry %" PRId64 " names sequence %d again", entry, slot);
  return RUNG_OK;
}

rung_status rung_context_set_rows(rung_context *c, const rung_rows *rows, int32_t count) {
  RUNG_TRY(rung_context_ready(c));
  const rung_plan *plan = c->program->plan;
  if (count < 0 || (count && !rows)) return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "rows: %d entries", count);
  for (int i = 0; i < 3; i++)
    if (plan->ragged[i] == RUNG_NONE)
      return rung_fail(&c->error, RUNG_UNSUPPORTED, "rows: the graph has no ragged inputs");
  c->state->mark_stamp++;
  int64_t total = 0;
  for (int32_t i = 0; i < count; i++) {
    RUNG_TRY(check_slot(c, i, rows[i].slot));
    if (rows[i].count < 0)
      return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "rows: entry %d has %d rows", i, rows[i].count);
    total += rows[i].count;
    if (total > INT32_MAX) return rung_fail(&c->error, RUNG_OVERFLOW, "rows: more than 2^31 rows");
  }
  void *data[3];
  for (int i = 0; i < 3; i++)
    RUNG_TRY(rung_context_input(c, (int)plan->ragged[i], (int64_t[]){count + (i == 0)}, &data[i]));
  int32_t *offsets = data[0], *slot = data[1], *past = data[2], next = 0;
  for (int32_t i = 0; i < count; i++) {
    offsets[i] = next;
    slot[i] = rows[i].slot;
    past[i] = (int32_t)c->state->length[rows[i].slot];
    next += rows[i].count;
  }
  offsets[count] = next;
  return RUNG_OK;
}

rung_status rung_context_check_rows(rung_context *c) {
  const rung_plan *plan = c->program->plan;
  const rung_tensor *in[3];
  for (int i = 0; i < 3; i++) {
    in[i] = &c->input[plan->ragged[i]].tensor;
    if (c->input[plan->ragged[i]].fed)
      return rung_fail(&c->error, RUNG_UNSUPPORTED, "rows: input \"%s\" is fed; which rows there are the caller says",
                       plan->input[plan->ragged[i]].name);
    if (c->input[plan->ragged[i]].copy)
      return rung_fail(&c->error, RUNG_UNSUPPORTED, "rows: input \"%s\" must be dense and aligned to 16 bytes",
                       plan->input[plan->ragged[i]].name);
  }
  const int64_t n = in[1]->extent[0];
  const int32_t *offsets = in[0]->data, *slot = in[1]->data, *past = in[2]->data;
  if (n > INT32_MAX || in[0]->extent[0] != n + 1 || in[2]->extent[0] != n)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH, "rows: %" PRId64 " offsets, %" PRId64 " slots, %" PRId64 " pasts",
                     in[0]->extent[0], n, in[2]->extent[0]);
  if (offsets[0] != 0) return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "rows: offsets begin at %d, not 0", offsets[0]);
  c->state->mark_stamp++;
  for (int64_t i = 0; i < n; i++) {
    RUNG_TRY(check_slot(c, i, slot[i]));
    if (offsets[i + 1] < offsets[i])
      return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "rows: offset %" PRId64 " falls from %d to %d", i + 1, offsets[i],
                       offsets[i + 1]);
    if (past[i] != c->state->length[slot[i]])
      return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                       "rows: entry %" PRId64 " says %d past positions, sequence %d holds %" PRId64, i, past[i],
                       slot[i], c->state->length[slot[i]]);
  }
  return RUNG_OK;
}

/* The rows that positions speak of: what the offsets end at must be what the other inputs have. */
rung_status rung_context_check_total(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  const rung_tensor *offsets = &c->input[plan->ragged[0]].tensor;
  const int64_t end = ((const int32_t *)offsets->data)[offsets->extent[0] - 1], rows = now->dim[plan->ragged_rows.id];
  if (end != rows)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH, "rows: offsets end at %" PRId64 ", there are %" PRId64 " rows",
                     end, rows);
  return RUNG_OK;
}
