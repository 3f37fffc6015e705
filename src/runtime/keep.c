/* SPDX-License-Identifier: MIT
 * What a run that fails puts back into dense states. Keep steps of the plan put it aside before it is written. */
#include <string.h>

#include "runtime/runtime.h"

struct rung_kept {
  uint32_t state;
  uint8_t *to;          /* the state */
  const uint8_t *saved; /* the buffer of the plan */
  int64_t entries;      /* pieces: one whole state, or the rows of each batch entry */
  size_t bytes;         /* of a piece */
  /* Where the rows of an entry lie: position[entry] rows behind the entry's first. Positions stay until the run ends. */
  bool rows;
  size_t row_bytes, entry_bytes;
  rung_operand position;
  int64_t position_stride;
};

rung_status rung_context_make_kept(rung_context *c) {
  const rung_plan *plan = c->program->plan;
  c->kept_room = 0;
  for (uint32_t s = 0; s < plan->steps; s++) c->kept_room += plan->step[s].kind == RUNG_STEP_KEEP;
  c->kept_count = 0;
  if (!c->kept_room) return RUNG_OK;
  c->kept = rung_host_array(c->host, c->kept_room, sizeof *c->kept);
  return c->kept ? RUNG_OK : rung_fail(&c->error, RUNG_OUT_OF_MEMORY, "context: out of memory");
}

void rung_context_drop_kept(rung_context *c) {
  rung_host_free(c->host, RUNG_MEMORY_host, c->kept, c->kept_room * sizeof *c->kept);
  c->kept = NULL;
  c->kept_room = c->kept_count = 0;
}

static uint8_t *piece_at(const rung_far *far, const rung_kept *k, int64_t entry) {
  if (!k->rows) return k->to;
  const int64_t at = rung_far_load_i64(far, &k->position, entry * k->position_stride);
  return k->to + (size_t)entry * k->entry_bytes + (size_t)at * k->row_bytes;
}

/* Rows that the append will refuse are not there to be kept: it writes nothing then. */
static bool rows_fit(const rung_far *far, const rung_kept *k, int64_t rows, int64_t capacity) {
  for (int64_t b = 0; b < k->entries; b++) {
    const int64_t at = rung_far_load_i64(far, &k->position, b * k->position_stride);
    if (at < 0 || at > capacity - rows) return false;
  }
  return true;
}

void rung_context_keep(rung_context *c, const rung_resolved *now, const rung_step *step) {
  const rung_operand *state = &now->operand[step->in], *saved = &now->operand[step->out];
  const uint32_t index = c->program->plan->root[c->program->plan->ref[step->in].root].index;
  for (uint32_t i = 0; i < c->kept_count; i++)
    if (c->kept[i].state == index && !c->kept[i].rows) return; /* all of it is */
  const rung_type type = (rung_type)state->type;
  rung_kept k = {.state = index,
                 .to = state->base,
                 .saved = saved->base,
                 .entries = 1,
                 .bytes = (size_t)rung_type_bytes(type, (uint64_t)rung_operand_count(saved))};
  if (!k.bytes) return;
  if (step->n_in == 2) {
    k.rows = true;
    k.position = now->operand[step->in + 1];
    k.position_stride = k.position.stride[0];
    k.entries = saved->extent[0];
    k.bytes /= (size_t)k.entries;
    k.row_bytes = k.bytes / (size_t)saved->extent[1];
    k.entry_bytes = k.row_bytes * (size_t)state->extent[1];
    if (!rows_fit(c->far, &k, saved->extent[1], state->extent[1])) return;
  }
  for (int64_t e = 0; e < k.entries; e++)
    rung_far_copy(c->far, saved->base + (size_t)e * k.bytes, piece_at(c->far, &k, e), k.bytes);
  c->kept[c->kept_count++] = k;
}

void rung_context_put_back(rung_context *c) {
  while (c->kept_count) {
    const rung_kept *k = &c->kept[--c->kept_count];
    for (int64_t e = 0; e < k->entries; e++)
      rung_far_copy(c->far, piece_at(c->far, k, e), k->saved + (size_t)e * k->bytes, k->bytes);
  }
}
