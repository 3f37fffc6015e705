/* SPDX-License-Identifier: MIT
 * What submitted runs have of their own: bindings, resolved extents, copies of inputs, memory for results. */
#include "runtime/flight.h"

#include <string.h>

enum { REMEMBERED = 2, ALIGN = 64 };

static size_t room_of(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* ---- memory */

static void drop_block(rung_flights *f, rung_block_memory *block) {
  rung_host *host = f->main->host;
  const rung_far *far = f->main->far;
  if (!block->data) return;
  if (far) {
    far->unpin(far->self, block->data);
    rung_host_unaccount(host, RUNG_MEMORY_load, block->bytes);
  } else {
    rung_host_free(host, RUNG_MEMORY_load, block->data, block->bytes);
  }
  atomic_fetch_sub(&f->bytes, block->bytes);
  *block = (rung_block_memory){0};
}

static uint8_t *pinned(const rung_context *main, size_t bytes, rung_error *error) {
  if (rung_host_account(main->host, RUNG_MEMORY_load, bytes, error)) return NULL;
  uint8_t *p = rung_host_fault(main->host, RUNG_FAULT_ALLOC) ? NULL : main->far->pin(main->far->self, bytes);
  if (!p) rung_host_unaccount(main->host, RUNG_MEMORY_load, bytes);
  return p;
}

/* What was in it is lost. Never less than there was, so that sizes which alternate end this. */
static rung_status block_room(rung_flights *f, rung_block_memory *block, size_t bytes, rung_error *error) {
  if (bytes <= block->bytes) return RUNG_OK;
  drop_block(f, block);
  error->message[0] = 0;
  uint8_t *p =
      f->main->far ? pinned(f->main, bytes, error) : rung_host_alloc_raw(f->main->host, RUNG_MEMORY_load, bytes, ALIGN);
  if (!p) {
    RUNG_TRY(rung_host_would_fit(f->main->host, bytes, "submit: inputs and outputs of a run", error));
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "submit: %zu bytes for inputs or outputs of a run", bytes);
  }
  *block = (rung_block_memory){p, bytes};
  atomic_fetch_add(&f->bytes, bytes);
  return RUNG_OK;
}

/* ---- making */

static rung_status make_run(const rung_context *main, rung_context *r) {
  const rung_plan *plan = main->program->plan;
  r->main = main->main;
  r->host = main->host;
  r->template_ = main->template_;
  r->view = main->view;
  r->state = main->state;
  r->program = main->program;
  r->use = main->use;
  r->options = main->options;
  r->threads = main->threads;
  r->far = main->far;
  r->root_stamp = r->commit_stamp = 1;
  r->remembered = REMEMBERED;
  r->resolved_bytes = rung_resolved_bytes(plan) * REMEMBERED;
  r->resolved_memory = rung_host_alloc(r->host, RUNG_MEMORY_host, r->resolved_bytes, ALIGN);
  r->root = rung_host_array(r->host, plan->roots + 1, sizeof *r->root);
  r->input = rung_host_array(r->host, plan->inputs + 1, sizeof *r->input);
  r->output = rung_host_array(r->host, plan->outputs + 1, sizeof *r->output);
  r->result = rung_host_array(r->host, plan->outputs + 1, sizeof *r->result);
  if (!r->resolved_memory || !r->root || !r->input || !r->output || !r->result) return RUNG_OUT_OF_MEMORY;
  uint8_t *cursor = r->resolved_memory;
  for (int i = 0; i < REMEMBERED; i++) rung_resolved_carve(&r->resolved[i], plan, &cursor);
  memcpy(r->root, main->root, plan->roots * sizeof *r->root);
  r->table_stamp = main->table_stamp;
  const rung_status status = rung_context_make_wanted(r);
  return status ? status : rung_context_make_kept(r);
}

static void finish_run(rung_context *r) {
  const rung_plan *plan = r->program ? r->program->plan : NULL;
  if (!plan) return;
  rung_host_free(r->host, RUNG_MEMORY_host, r->resolved_memory, r->resolved_bytes);
  rung_host_free(r->host, RUNG_MEMORY_host, r->root, (plan->roots + 1) * sizeof *r->root);
  rung_host_free(r->host, RUNG_MEMORY_host, r->input, (plan->inputs + 1) * sizeof *r->input);
  rung_host_free(r->host, RUNG_MEMORY_host, r->output, (plan->outputs + 1) * sizeof *r->output);
  rung_host_free(r->host, RUNG_MEMORY_host, r->result, (plan->outputs + 1) * sizeof *r->result);
  rung_context_drop_kept(r);
  rung_context_drop_wanted(r);
}

static rung_status make_flight(const rung_context *main, rung_flight *x) {
  RUNG_TRY(make_run(main, &x->run));
  if (!main->far) return RUNG_OK;
  x->mark = main->far->mark_make(main->far->self);
  return x->mark ? RUNG_OK : RUNG_OUT_OF_MEMORY;
}

rung_status rung_flights_make(rung_context *main) {
  rung_flights *f = rung_host_array(main->host, 1, sizeof *f);
  if (!f) return rung_fail(&main->error, RUNG_OUT_OF_MEMORY, "submit: out of memory");
  f->main = main;
  f->count = (uint32_t)(main->options.in_flight ? main->options.in_flight : RUNG_IN_FLIGHT) + 1;
  f->first = f->next = atomic_load(&main->next_ticket);
  f->job = (rung_job){.fn = rung_flights_run, .self = f};
  const bool lock = rung_mutex_init(&f->lock), cond = lock && rung_cond_init(&f->ended);
  if (!cond) {
    if (lock) rung_mutex_finish(&f->lock);
    rung_host_free(main->host, RUNG_MEMORY_host, f, sizeof *f);
    return rung_fail(&main->error, RUNG_SYSTEM, "submit: a lock could not be made");
  }
  f->flight = rung_host_array(main->host, f->count, sizeof *f->flight);
  rung_status status = f->flight ? RUNG_OK : RUNG_OUT_OF_MEMORY;
  for (uint32_t i = 0; !status && i < f->count; i++) status = make_flight(main, &f->flight[i]);
  if (status) {
    rung_flights_destroy(f);
    return rung_fail(&main->error, status, "submit: out of memory");
  }
  main->flights = f;
  return RUNG_OK;
}

void rung_flights_destroy(rung_flights *f) {
  const rung_context *main = f->main;
  for (uint32_t i = 0; f->flight && i < f->count; i++) {
    rung_flight *x = &f->flight[i];
    drop_block(f, &x->inputs);
    drop_block(f, &x->outputs);
    if (x->mark) main->far->mark_drop(main->far->self, x->mark);
    finish_run(&x->run);
  }
  rung_host_free(main->host, RUNG_MEMORY_host, f->flight, f->count * sizeof *f->flight);
  rung_cond_finish(&f->ended);
  rung_mutex_finish(&f->lock);
  rung_host_free(main->host, RUNG_MEMORY_host, f, sizeof *f);
}

uint64_t rung_flights_bytes(const rung_flights *f) { return f ? atomic_load(&f->bytes) : 0; }

/* ---- inputs */

static void point(rung_context *r, uint32_t root, uint8_t *data) {
  if (r->root[root] != data) r->root[root] = data, r->root_stamp++;
}

static bool is_ragged(const rung_plan *plan, uint32_t slot) {
  return slot == plan->ragged[0] || slot == plan->ragged[1] || slot == plan->ragged[2];
}

/* Which rows there are is looked at again when a run has failed, and was checked: nobody may change it. */
static bool is_copied(const rung_context *r, uint32_t slot) {
  const rung_bound *b = &r->input[slot];
  return is_ragged(r->program->plan, slot) || (!r->far && !b->fed && !b->by_reference);
}

static size_t input_bytes(const rung_plan *plan, uint32_t slot, const rung_resolved *now) {
  const int64_t bytes = now->dim[plan->buffer[plan->root[plan->input[slot].root].buffer].bytes.id];
  return bytes > 0 ? (size_t)bytes : 0;
}

static void copy_input(rung_context *r, uint32_t slot, const rung_resolved *now, uint8_t *to) {
  const rung_plan *plan = r->program->plan;
  const rung_value_type *type = &plan->input[slot].type;
  rung_bound *b = &r->input[slot];
  int64_t extent[RUNG_MAX_RANK], stride[RUNG_MAX_RANK], dense[RUNG_MAX_RANK];
  for (int a = 0; a < type->rank; a++) extent[a] = now->dim[type->extent[a].id];
  const rung_tensor actual = rung_tensor_dense(type->type, type->rank, extent, to);
  if (b->copy) {
    rung_buffer_strides(&b->tensor, stride);
    rung_buffer_strides(&actual, dense);
    rung_copy_elements(NULL, rung_type_get(type->type)->bytes, type->rank, extent, to, dense, b->tensor.data, stride);
  } else {
    rung_far_copy(NULL, to, b->tensor.data, input_bytes(plan, slot, now));
  }
  if (r->far) return; /* what is sent is what the caller has bound: the submit does it */
  *b = (rung_bound){.tensor = actual, .set = true};
  point(r, plan->input[slot].root, to);
}

static rung_status copy_inputs(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  const rung_plan *plan = r->program->plan;
  size_t bytes = 0;
  for (uint32_t i = 0; i < plan->inputs; i++)
    if (is_copied(r, i)) bytes += room_of(input_bytes(plan, i, x->now));
  RUNG_TRY(block_room(f, &x->inputs, bytes, &r->error));
  uint8_t *to = x->inputs.data;
  const int32_t **const rows[3] = {&x->rows.offsets, &x->rows.slot, &x->rows.past};
  for (uint32_t i = 0; i < plan->inputs; i++) {
    if (!is_copied(r, i)) continue;
    const size_t own = room_of(input_bytes(plan, i, x->now));
    copy_input(r, i, x->now, to);
    for (int k = 0; k < 3; k++)
      if (plan->ragged[k] == i) *rows[k] = (const int32_t *)(const void *)to;
    if (own) to += own;
  }
  return RUNG_OK;
}

/* That the run has memory for of its own: it is wanted, the caller has bound none, and they share none. */
static bool is_own(const rung_flight *x, uint32_t slot) {
  const rung_bound *b = &x->run.output[slot];
  return !x->run.options.one_output && (!b->set || b->owned) && rung_context_wants(&x->run, slot);
}

/* As main is bound, looked at as a run does; then what may change behind it is copied. */
rung_status rung_flight_take(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  const rung_context *main = f->main;
  const rung_plan *plan = main->program->plan;
  r->error = (rung_error){0};
  r->kept_count = 0;
  r->ran = false;
  r->on_step = main->on_step;
  r->on_step_self = main->on_step_self;
  memcpy(r->extent, main->extent, sizeof r->extent);
  memcpy(r->input, main->input, plan->inputs * sizeof *r->input);
  memcpy(r->output, main->output, plan->outputs * sizeof *r->output);
  memset(r->result, 0, plan->outputs * sizeof *r->result);
  rung_context_settle_wanted(r);
  x->fed = false;
  x->rows = (rung_run_rows){0};
  for (uint32_t i = 0; i < plan->inputs; i++) {
    const uint32_t root = plan->input[i].root;
    x->fed |= r->input[i].fed;
    if (r->far || !is_copied(r, i)) point(r, root, main->root[root]);
  }
  for (uint32_t i = 0; i < plan->outputs; i++) {
    const uint32_t root = plan->output[i].root;
    if (is_own(x, i) && !r->far) continue;                    /* once its extents are known */
    if (r->root[root] != main->root[root]) r->commit_stamp++; /* as in rung_context_bind_output */
    point(r, root, main->root[root]);
  }
  RUNG_TRY(rung_run_prepare(r, &x->now, &x->rows));
  return copy_inputs(f, x);
}

/* ---- outputs */

static size_t output_bytes(const rung_flight *x, uint32_t slot) {
  const rung_plan *plan = x->run.program->plan;
  const int64_t bytes = x->now->dim[plan->buffer[plan->root[plan->output[slot].root].buffer].bytes.id];
  return bytes > 0 ? (size_t)bytes : 0;
}

static rung_status own_room(rung_flights *f, rung_flight *x) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < x->run.program->plan->outputs; i++)
    if (is_own(x, i)) bytes += room_of(output_bytes(x, i));
  return block_room(f, &x->outputs, bytes, &x->run.error);
}

/* Extents that are known let the steps write where results stay; else they are moved there behind the run. */
rung_status rung_flight_keep_outputs(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  const rung_plan *plan = r->program->plan;
  x->late = false;
  if (r->far) return RUNG_OK;
  for (uint32_t i = 0; i < plan->outputs; i++)
    if (is_own(x, i))
      x->late |= x->now->dim[plan->buffer[plan->root[plan->output[i].root].buffer].bytes.id] == RUNG_UNBOUND;
  if (!x->late) RUNG_TRY(own_room(f, x));
  uint8_t *to = x->outputs.data;
  for (uint32_t i = 0; i < plan->outputs; i++) {
    const rung_plan_output *out = &plan->output[i];
    if (!is_own(x, i)) continue;
    uint8_t *data =
        f->main->arena.base ? f->main->arena.base + plan->buffer[plan->root[out->root].buffer].offset : NULL;
    if (!x->late) {
      int64_t extent[RUNG_MAX_RANK];
      for (int a = 0; a < out->type.rank; a++) extent[a] = x->now->dim[out->type.extent[a].id];
      data = to;
      if (data) to += room_of(output_bytes(x, i));
      r->output[i] = (rung_bound){
          .tensor = rung_tensor_dense(out->type.type, out->type.rank, extent, data), .set = true, .owned = true};
    }
    if (r->root[out->root] != data) r->commit_stamp++;
    point(r, out->root, data);
  }
  return RUNG_OK;
}

rung_status rung_flight_keep_late(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  if (!x->late) return RUNG_OK;
  RUNG_TRY(own_room(f, x));
  uint8_t *to = x->outputs.data;
  for (uint32_t i = 0; i < r->program->plan->outputs; i++) {
    const size_t bytes = output_bytes(x, i);
    if (!is_own(x, i) || !bytes) continue;
    rung_far_copy(NULL, to, r->result[i].data, bytes);
    r->result[i].data = to;
    to += room_of(bytes);
  }
  return RUNG_OK;
}

/* ---- results from far memory */

static size_t moved_bytes(const rung_flight *x, uint32_t slot) {
  return rung_context_wants(&x->run, slot) ? output_bytes(x, slot) : 0;
}

/* All of them are read into pinned memory: a read into any other waits. */
rung_status rung_flight_read_later(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  const rung_device *device = r->template_->device;
  const rung_plan *plan = r->program->plan;
  size_t bytes = room_of(RUNG_NOTE);
  for (uint32_t i = 0; i < plan->outputs; i++) bytes += room_of(moved_bytes(x, i));
  RUNG_TRY(block_room(f, &x->outputs, bytes, &r->error));
  memset(x->outputs.data, 0, RUNG_NOTE);
  if (device->backend->settle_later) device->backend->settle_later(device->self, f->main->kept_steps, x->outputs.data);
  uint8_t *to = x->outputs.data + room_of(RUNG_NOTE);
  for (uint32_t i = 0; i < plan->outputs; i++) {
    const size_t own = moved_bytes(x, i);
    if (own) r->far->read_later(r->far->self, to, r->root[plan->output[i].root], own);
    to += room_of(own);
  }
  return r->far->mark_set(r->far->self, x->mark, &r->error);
}

rung_status rung_flight_read(rung_flight *x) {
  rung_context *r = &x->run;
  const rung_device *device = r->template_->device;
  const rung_plan *plan = r->program->plan;
  RUNG_TRY(r->far->mark_wait(r->far->self, x->mark, &r->error));
  if (device->backend->settle_note) RUNG_TRY(device->backend->settle_note(device->self, x->outputs.data, &r->error));
  rung_run_results(r, x->now);
  uint8_t *from = x->outputs.data + room_of(RUNG_NOTE);
  for (uint32_t i = 0; i < plan->outputs; i++) {
    const size_t bytes = moved_bytes(x, i);
    if (!rung_context_wants(r, i)) continue;
    if (!r->output[i].set)
      r->result[i].data = from;
    else if (r->output[i].copy)
      RUNG_TRY(rung_context_spread_output(r, i, x->now, from));
    else
      rung_far_copy(NULL, r->output[i].tensor.data, from, bytes);
    from += room_of(bytes);
  }
  return RUNG_OK;
}
