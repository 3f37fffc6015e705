/* SPDX-License-Identifier: MIT
 * Walking the steps of a run. Runs of kernel steps go to the backend; branches, loops and bound symbols are decided
 * here. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

/* The bodies that are running, innermost first: what they ask of extents must hold, that of others not. */
typedef struct active {
  const rung_block *block;
  const struct active *outer;
} active;

typedef struct walk {
  rung_context *c;
  const rung_plan *plan;
  rung_resolved *now;
  const active *active;
  uint64_t stale; /* symbols whose values are those of the iteration before, or half of a change */
  rung_run run;
} walk;

static rung_status walk_steps(walk *w, uint32_t first, uint32_t end);

static rung_status walk_block(walk *w, const rung_block *block) {
  const active here = {block, w->active};
  RUNG_TRY(rung_context_check_block(w->c, block, w->now, 0, w->stale));
  w->active = &here;
  const rung_status status = walk_steps(w, block->first, block->end);
  w->active = here.outer;
  return status;
}

/* Commits buffers to what the known dims say, and points operands at their memory. */
static rung_status refresh(walk *w) {
  RUNG_TRY(rung_context_commit(w->c, w->now));
  rung_resolve_bases(w->plan, w->now, w->c->root);
  w->run.scratch = w->c->main->scratch.base;
  return RUNG_OK;
}

/* Without a look at what must hold of it. */
static rung_status change_symbol(walk *w, uint32_t symbol, int64_t value) {
  const rung_symbol *info = &w->plan->dims->symbol[symbol];
  int64_t bound = info->hi;
  if (info->bound.id && w->now->dim[info->bound.id] != RUNG_UNBOUND && w->now->dim[info->bound.id] < bound)
    bound = w->now->dim[info->bound.id];
  if (value < 0 || value > bound)
    return rung_fail(&w->c->error, RUNG_OUT_OF_RANGE, "symbol %s became %" PRId64 ", its bound is %" PRId64, info->name,
                     value, bound);
  if (w->now->symbol[symbol] == value) return RUNG_OK;
  w->now->symbol[symbol] = value;
  RUNG_TRY(rung_resolve(w->plan, w->now, &w->c->error));
  const rung_status status = refresh(w);
  return status ? rung_fail_prefix(&w->c->error, status, "symbol %s = %" PRId64, info->name, value) : RUNG_OK;
}

/* The symbols have their values: does everything that is asked of them hold? */
static rung_status settle_symbols(walk *w, uint64_t symbols) {
  w->stale &= ~symbols;
  for (const active *a = w->active; a && symbols; a = a->outer)
    RUNG_TRY(rung_context_check_block(w->c, a->block, w->now, symbols, w->stale));
  return RUNG_OK;
}

static rung_status set_symbol(walk *w, uint32_t symbol, int64_t value) {
  RUNG_TRY(change_symbol(w, symbol, value));
  return settle_symbols(w, UINT64_C(1) << symbol);
}

/* What the steps of a body give values to. */
static uint64_t symbols_of(const rung_plan *plan, const rung_block *block) {
  uint64_t symbols = 0;
  for (uint32_t s = block->first; s < block->end; s++) {
    const rung_step *step = &plan->step[s];
    if (step->kind == RUNG_STEP_BIND) symbols |= UINT64_C(1) << step->symbol;
    if (step->kind != RUNG_STEP_LOOP) continue;
    const rung_plan_loop *loop = &plan->loop[step->loop];
    if (loop->trip_symbol != RUNG_NONE) symbols |= UINT64_C(1) << loop->trip_symbol;
    for (uint32_t i = 0; i < loop->n_symbols; i++)
      symbols |= UINT64_C(1) << plan->carry_symbol[loop->symbol + i].symbol;
  }
  return symbols;
}

int64_t rung_far_load_i64(const rung_far *far, const rung_operand *o, int64_t offset) {
  if (!far) return rung_load_i64(o, offset);
  uint64_t value = 0;
  const size_t bytes = rung_type_get((rung_type)o->type)->bytes;
  rung_far_read(far, &value, o->base + offset * (int64_t)bytes, bytes < sizeof value ? bytes : sizeof value);
  rung_operand here = *o;
  here.base = (uint8_t *)&value;
  return rung_load_i64(&here, 0);
}

void rung_far_store_i64(const rung_far *far, const rung_operand *o, int64_t offset, int64_t value) {
  if (!far) {
    rung_store_i64(o, offset, value);
    return;
  }
  uint64_t bits = 0;
  const size_t bytes = rung_type_get((rung_type)o->type)->bytes;
  rung_operand here = *o;
  here.base = (uint8_t *)&bits;
  rung_store_i64(&here, 0, value);
  rung_far_write(far, o->base + offset * (int64_t)bytes, &bits, bytes < sizeof bits ? bytes : sizeof bits);
}

static int64_t scalar(const walk *w, uint32_t ref) { return rung_far_load_i64(w->c->far, &w->now->operand[ref], 0); }

static rung_status bind_step(walk *w, const rung_step *step) {
  int64_t value = step->n_in ? scalar(w, step->in) : w->now->dim[step->value.id];
  if (value == RUNG_UNBOUND)
    return rung_fail(&w->c->error, RUNG_INTERNAL, "a symbol is bound to an extent that has no value yet");
  return set_symbol(w, step->symbol, value);
}

static rung_status if_step(walk *w, const rung_step *step) {
  const bool yes = scalar(w, step->in) != 0;
  return walk_block(w, &w->plan->block[step->block + (yes ? 0 : 1)]);
}

/* Row-major copy between operands of equal extents and plain types; for loop bookkeeping only. */
static void copy_operand(const walk *w, const rung_operand *from, const rung_operand *to) {
  rung_copy_elements(w->c->far, rung_type_get((rung_type)from->type)->bytes, from->rank, from->extent, to->base,
                     to->stride, from->base, from->stride);
}

/* What an iteration wrote becomes what the next one reads. Called when changing extents already have their new values:
 * the input then has the extents that the output was written with. */
static void hand_over(walk *w, const rung_plan_loop *loop) {
  for (uint32_t i = loop->carried; i < loop->carried + loop->n_carried; i++) {
    const rung_carried *c = &w->plan->carried[i];
    uint8_t **root = w->c->root, *t = root[c->root_in];
    if (c->swaps) {
      root[c->root_in] = root[c->root_out];
      root[c->root_out] = t;
      w->c->root_stamp++; /* other remembered bindings point at the old places */
    } else {
      const rung_operand *in = &w->now->operand[c->in_ref];
      if (in->base)
        rung_far_copy(w->c->far, root[c->root_in], root[c->root_out],
                      (size_t)rung_type_bytes((rung_type)in->type, (uint64_t)rung_operand_count(in)));
    }
  }
  rung_resolve_bases(w->plan, w->now, w->c->root);
  w->now->root_stamp = w->c->root_stamp;
}

/* Scan results grow by one slice an iteration. The result's extent is bound to what is written so far, so that exactly
 * that is committed. */
static rung_status store_scans(walk *w, const rung_plan_loop *loop, int64_t iteration) {
  if (loop->trip_symbol != RUNG_NONE) RUNG_TRY(change_symbol(w, loop->trip_symbol, iteration + 1));
  for (uint32_t i = loop->scan; i < loop->scan + loop->n_scan; i++) {
    const rung_operand *from = &w->now->operand[w->plan->scan[i].body_ref];
    rung_operand slice = w->now->operand[w->plan->scan[i].ref];
    slice.base += iteration * slice.stride[0] * rung_type_get((rung_type)slice.type)->bytes;
    slice.rank--;
    slice.extent++;
    slice.stride++;
    copy_operand(w, from, &slice);
  }
  return RUNG_OK;
}

static rung_status move_symbols(walk *w, const rung_plan_loop *loop, bool start) {
  int64_t value[RUNG_MAX_SYMBOLS];
  for (uint32_t i = 0; i < loop->n_symbols; i++) {
    const rung_carry_symbol *s = &w->plan->carry_symbol[loop->symbol + i];
    value[i] = w->now->dim[start ? s->start.id : s->next.id];
    if (value[i] == RUNG_UNBOUND) return rung_fail(&w->c->error, RUNG_INTERNAL, "a carried extent has no value");
  }
  uint64_t symbols = 0;
  for (uint32_t i = 0; i < loop->n_symbols; i++)
    symbols |= UINT64_C(1) << w->plan->carry_symbol[loop->symbol + i].symbol;
  w->stale |= symbols;
  for (uint32_t i = 0; i < loop->n_symbols; i++)
    RUNG_TRY(change_symbol(w, w->plan->carry_symbol[loop->symbol + i].symbol, value[i]));
  return settle_symbols(w, symbols);
}

static rung_status loop_step(walk *w, const rung_step *step) {
  const rung_plan_loop *loop = &w->plan->loop[step->loop];
  const rung_block *block = &w->plan->block[step->block];
  const int64_t trip = scalar(w, loop->trip_ref);
  bool go = scalar(w, loop->start_ref) != 0;
  const uint64_t own = symbols_of(w->plan, block);
  if (loop->trip_symbol != RUNG_NONE) w->stale |= UINT64_C(1) << loop->trip_symbol;
  RUNG_TRY(move_symbols(w, loop, true));
  const int64_t room = loop->n_scan && loop->trip_symbol == RUNG_NONE
                           ? w->now->operand[w->plan->scan[loop->scan].ref].extent[0]
                           : INT64_MAX;
  for (uint32_t i = loop->carried; i < loop->carried + loop->n_carried; i++)
    copy_operand(w, &w->now->operand[w->plan->carried[i].start_ref], &w->now->operand[w->plan->carried[i].in_ref]);
  int64_t iteration = 0;
  for (; go && iteration < trip; iteration++) {
    if (iteration == room)
      return rung_fail(&w->c->error, RUNG_OUT_OF_RANGE,
                       "a loop goes on beyond the %" PRId64 " iterations that its scans are declared for", room);
    if (atomic_load_explicit(&w->c->main->cancel, memory_order_relaxed))
      return rung_fail(&w->c->error, RUNG_CANCELLED, "cancelled in a loop");
    rung_far_store_i64(w->c->far, &w->now->operand[loop->iteration_ref], 0, iteration);
    rung_far_store_i64(w->c->far, &w->now->operand[loop->condition_in_ref], 0, go);
    w->stale |= own;
    RUNG_TRY(walk_block(w, block));
    go = scalar(w, loop->condition_ref) != 0;
    RUNG_TRY(store_scans(w, loop, iteration));
    RUNG_TRY(move_symbols(w, loop, false));
    hand_over(w, loop);
  }
  if (loop->trip_symbol != RUNG_NONE) return set_symbol(w, loop->trip_symbol, iteration);
  for (uint32_t i = loop->scan; i < loop->scan + loop->n_scan; i++) {
    const int64_t rows = w->now->operand[w->plan->scan[i].ref].extent[0];
    if (rows != iteration)
      return rung_fail(&w->c->error, RUNG_OUT_OF_RANGE,
                       "a loop ran %" PRId64 " times, its scans are declared for %" PRId64, iteration, rows);
  }
  return RUNG_OK;
}

static rung_status walk_steps(walk *w, uint32_t first, uint32_t end) {
  rung_device *device = w->c->template_->device;
  for (uint32_t s = first; s < end;) {
    const rung_step *step = &w->plan->step[s];
    switch ((rung_step_kind)step->kind) {
      case RUNG_STEP_KERNEL: {
        uint32_t count = 1;
        while (s + count < end && w->plan->step[s + count].kind == RUNG_STEP_KERNEL) count++;
        RUNG_TRY(device->backend->steps(device->self, w->c->program->image, &w->run, s, count));
        s += count;
        break;
      }
      case RUNG_STEP_IF:
        RUNG_TRY(if_step(w, step));
        s = step->end;
        break;
      case RUNG_STEP_LOOP:
        RUNG_TRY(loop_step(w, step));
        s = step->end;
        break;
      case RUNG_STEP_BIND:
        RUNG_TRY(bind_step(w, step));
        s++;
        break;
      case RUNG_STEP_KEEP:
        rung_context_keep(w->c, w->now, step);
        s++;
        break;
    }
  }
  return RUNG_OK;
}

static void forward_step(void *self, const rung_step_event *event) {
  rung_context *c = self;
  const rung_step *step = &event->plan->step[event->step];
  rung_step_info info = {.op = step->op->name,
                         .kernel = event->kernel ? event->kernel->name : "",
                         .label = step->label == RUNG_NONE ? "" : event->plan->label[step->label],
                         .start_ns = event->start_ns,
                         .end_ns = event->end_ns,
                         .tasks = event->tasks,
                         .step = event->step};
  for (uint32_t i = 0; i < step->n_in; i++)
    if (!event->in[i].kv)
      info.bytes += rung_type_bytes((rung_type)event->in[i].type, (uint64_t)rung_operand_count(&event->in[i]));
  for (uint32_t i = 0; i < step->n_out; i++)
    if (!event->out[i].kv)
      info.bytes += rung_type_bytes((rung_type)event->out[i].type, (uint64_t)rung_operand_count(&event->out[i]));
  c->on_step(c->on_step_self, &info);
}

rung_status rung_run_steps(rung_context *c, rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  const active whole = {&plan->whole, NULL};
  walk w = {.c = c, .plan = plan, .now = now, .active = &whole};
  w.run = (rung_run){.plan = plan,
                     .dim = now->dim,
                     .operand = now->operand,
                     .role = now->role,
                     .variant = now->variant,
                     .scratch = c->main->scratch.base,
                     .pool = c->template_->device->pool,
                     .threads = c->threads,
                     .left_out = rung_context_left_out(c),
                     .random = c->main->random,
                     .cancel = &c->main->cancel,
                     .on_step = c->on_step ? forward_step : NULL,
                     .on_step_self = c,
                     .kept = &c->main->kept_steps,
                     .error = &c->error};
  const uint64_t state = rung_float_state_set();
  const rung_status status = walk_steps(&w, 0, plan->steps);
  rung_float_state_restore(state);
  return status;
}
