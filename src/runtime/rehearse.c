/* SPDX-License-Identifier: MIT
 * Runs that are not run: steps with the extents that a run would have, and addresses that mean nothing, for backends
 * that make something of a run's steps on their way (captured graphs) and can make it ahead. */
#include <string.h>

#include "runtime/runtime.h"

enum { ALL_UP_TO = 64, ADDRESS = 1 << 20, LONG = 1 << 24 };

typedef struct rehearsal {
  rung_program *program;
  rung_resolved now;
  rung_run run;
  uint8_t **root;
  rung_kv_view *kv; /* one for each state */
  int64_t length[1];
  uint32_t table[1];
  atomic_int cancel;
  uint64_t random[2];
  uint8_t *memory;
  size_t bytes;
  void *kept;
  rung_error error;
} rehearsal;

static rung_status walk(rehearsal *r, uint32_t first, uint32_t end) {
  const rung_plan *plan = r->program->plan;
  const rung_device *device = r->program->template_->device;
  for (uint32_t s = first; s < end;) {
    const rung_step *step = &plan->step[s];
    if (step->kind == RUNG_STEP_KERNEL) {
      uint32_t count = 1;
      while (s + count < end && plan->step[s + count].kind == RUNG_STEP_KERNEL) count++;
      RUNG_TRY(device->backend->rehearse(device->self, r->program->image, &r->run, s, count));
      s += count;
      continue;
    }
    const uint32_t blocks = step->kind == RUNG_STEP_IF ? 2 : step->kind == RUNG_STEP_LOOP ? 1 : 0;
    for (uint32_t b = step->block; b < step->block + blocks; b++)
      RUNG_TRY(walk(r, plan->block[b].first, plan->block[b].end));
    s = step->end;
  }
  return RUNG_OK;
}

/* Would a run have these extents? */
static bool agrees(const rung_plan *plan, const rung_resolved *now) {
  for (uint32_t i = plan->whole.check; i < plan->whole.check + plan->whole.checks; i++) {
    const rung_dim_check *check = &plan->check[i];
    const int64_t a = now->dim[check->a.id], b = now->dim[check->b.id];
    if (a != RUNG_UNBOUND && b != RUNG_UNBOUND && (check->at_least ? a < b : a != b)) return false;
  }
  return true;
}

static void set_states(rehearsal *r) {
  const rung_plan *plan = r->program->plan;
  for (uint32_t i = 0; i < plan->states; i++) {
    const rung_plan_state *state = &plan->state[i];
    if (state->type.kind != RUNG_VALUE_STATE_KV) continue;
    r->kv[i] = (rung_kv_view){.type = state->type.type,
                              .kv_heads = (int32_t)r->now.dim[state->type.extent[0].id],
                              .key_dim = (int32_t)r->now.dim[state->type.extent[1].id],
                              .value_dim = (int32_t)r->now.dim[state->type.extent[2].id],
                              .window = state->window,
                              .capacity = LONG,
                              .slots = 1,
                              .base = (uint8_t *)(uintptr_t)ADDRESS,
                              .table = r->table,
                              .contiguous = true,
                              .ring = 1,
                              .length = r->length};
    r->root[state->root] = (uint8_t *)&r->kv[i];
  }
}

/* One binding, with states that hold nothing and with states that hold much. */
static rung_status rehearse(rehearsal *r) {
  const rung_plan *plan = r->program->plan;
  rung_error ignored;
  if (rung_resolve(plan, &r->now, &ignored) || !agrees(plan, &r->now)) return RUNG_OK;
  for (uint32_t i = 0; i < plan->roots; i++) r->root[i] = (uint8_t *)(uintptr_t)((uint64_t)ADDRESS * (i + 1));
  set_states(r);
  rung_resolve_bases(plan, &r->now, r->root);
  for (int i = 0; i < (plan->states ? 2 : 1); i++) {
    r->length[0] = i ? LONG : 0;
    /* What is refused no run can be, either. */
    const rung_status status = walk(r, 0, plan->steps);
    if (status == RUNG_OUT_OF_MEMORY) return status;
  }
  return RUNG_OK;
}

static rung_status at_size(rehearsal *r, uint32_t symbol, int64_t size) {
  const rung_plan *plan = r->program->plan;
  bool others = false;
  for (int most = 0; most < 2; most++) {
    for (uint32_t s = 0; s < plan->dims->symbols; s++) {
      const int64_t lo = plan->lo[s] > 1 || plan->ceiling[s] < 1 ? plan->lo[s] : 1;
      r->now.symbol[s] = s == symbol ? size : most ? plan->ceiling[s] : lo;
      others |= s != symbol && lo != plan->ceiling[s];
    }
    if (!most || others) RUNG_TRY(rehearse(r));
  }
  return RUNG_OK;
}

typedef struct sizes {
  uint32_t symbol;
  int64_t lo, hi;
} sizes;

/* This size and its neighbours, as far as they are in the range. */
static rung_status around(rehearsal *r, const sizes *in, int64_t size) {
  for (int64_t at = size - 1; at <= size + 1; at++)
    if (at > ALL_UP_TO && at >= in->lo && at <= in->hi) RUNG_TRY(at_size(r, in->symbol, at));
  return RUNG_OK;
}

/* All small sizes; of large ones the ends of the range, and those around which kernels change. */
static rung_status at_sizes(rehearsal *r, const sizes *in) {
  const rung_plan *plan = r->program->plan;
  for (int64_t size = in->lo; size <= in->hi && size <= ALL_UP_TO; size++) RUNG_TRY(at_size(r, in->symbol, size));
  RUNG_TRY(around(r, in, in->lo));
  RUNG_TRY(around(r, in, in->hi - 1));
  for (int64_t size = 2 * ALL_UP_TO; size < in->hi && size <= INT64_MAX / 2; size *= 2) RUNG_TRY(around(r, in, size));
  for (uint32_t v = 0; v < plan->variants; v++) {
    const rung_kernel *k = plan->variant[v].kernel;
    if (k->guard_role < 0) continue;
    RUNG_TRY(around(r, in, k->guard_lo));
    if (k->guard_hi) RUNG_TRY(around(r, in, k->guard_hi));
  }
  return RUNG_OK;
}

static rung_status make_room(rehearsal *r) {
  const rung_plan *plan = r->program->plan;
  rung_host *host = r->program->template_->device->host;
  r->bytes = rung_resolved_bytes(plan);
  r->memory = rung_host_alloc(host, RUNG_MEMORY_host, r->bytes, 64);
  r->root = rung_host_array(host, plan->roots + 1, sizeof *r->root);
  r->kv = rung_host_array(host, plan->states + 1, sizeof *r->kv);
  if (!r->memory || !r->root || !r->kv) return RUNG_OUT_OF_MEMORY;
  uint8_t *cursor = r->memory;
  rung_resolved_carve(&r->now, plan, &cursor);
  for (int s = 0; s < RUNG_MAX_SYMBOLS; s++) r->now.symbol[s] = RUNG_UNBOUND;
  r->run = (rung_run){.plan = plan,
                      .dim = r->now.dim,
                      .operand = r->now.operand,
                      .role = r->now.role,
                      .variant = r->now.variant,
                      .scratch = (uint8_t *)(uintptr_t)ADDRESS,
                      .threads = 1,
                      .random = r->random,
                      .cancel = &r->cancel,
                      .kept = &r->kept,
                      .error = &r->error};
  return RUNG_OK;
}

rung_status rung_program_rehearse(rung_program *program, const char *symbol, int64_t lo, int64_t hi,
                                  rung_error *error) {
  const rung_plan *plan = program->plan;
  const rung_device *device = program->template_->device;
  const int s = rung_dims_find_symbol(plan->dims, symbol, strlen(symbol));
  if (!device->backend->rehearse || s < 0) return RUNG_OK;
  for (uint32_t i = 0; i < plan->dims->symbols; i++)
    if (plan->dims->symbol[i].made) return RUNG_OK; /* extents that only a run knows */
  rehearsal r = {.program = program};
  const sizes in = {(uint32_t)s, lo > plan->lo[s] ? lo : plan->lo[s], hi < plan->ceiling[s] ? hi : plan->ceiling[s]};
  atomic_init(&r.cancel, 0);
  rung_status status = make_room(&r);
  if (!status) status = at_sizes(&r, &in);
  rung_host_free(device->host, RUNG_MEMORY_host, r.memory, r.bytes);
  rung_host_free(device->host, RUNG_MEMORY_host, r.root, (plan->roots + 1) * sizeof *r.root);
  rung_host_free(device->host, RUNG_MEMORY_host, r.kv, (plan->states + 1) * sizeof *r.kv);
  return status ? rung_fail(error, status, "no memory to make ahead what runs need") : RUNG_OK;
}
