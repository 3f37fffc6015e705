/* SPDX-License-Identifier: MIT
 * Contexts: the memory, inputs and outputs that one caller runs programs of a template with. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

rung_context_options rung_context_options_default(void) {
  return (rung_context_options){.size = sizeof(rung_context_options)};
}

static void drop_program(rung_context *c) {
  if (!c->program) return;
  rung_context_drop_flights(c);
  const rung_plan *plan = c->program->plan;
  rung_view_unuse(c->view, c->use);
  c->use = NULL;
  c->table_stamp = 0;
  rung_host_free(c->host, RUNG_MEMORY_host, c->resolved_memory, c->resolved_bytes);
  rung_host_free(c->host, RUNG_MEMORY_host, c->root, (plan->roots + 1) * sizeof *c->root);
  rung_host_free(c->host, RUNG_MEMORY_host, c->input, (plan->inputs + 1) * sizeof *c->input);
  rung_host_free(c->host, RUNG_MEMORY_host, c->output, (plan->outputs + 1) * sizeof *c->output);
  c->resolved_memory = NULL;
  rung_context_drop_wanted(c);
  const rung_device *device = c->template_->device;
  if (device->backend->forget) device->backend->forget(device->self, c->kept_steps);
  c->kept_steps = NULL;
  rung_context_drop_kept(c);
  c->ran = false;
  c->shown = NULL;
  c->newest = NULL;
  rung_host_free(c->host, RUNG_MEMORY_host, c->result, (plan->outputs + 1) * sizeof *c->result);
  c->root = NULL;
  c->result = NULL;
  c->input = c->output = NULL;
  memset(c->resolved, 0, sizeof c->resolved);
  rung_program_release(c->program);
  c->program = NULL;
}

rung_status rung_context_create(rung_template *t, rung_view *view, rung_state *state,
                                const rung_context_options *options, rung_error *error, rung_context **out_context) {
  const rung_context_options o = options ? *options : rung_context_options_default();
  if (!t || !out_context)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "context: template and out_context are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "context: options.size is %zu, expected %zu", o.size, sizeof o);
  if (o.threads < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "context: %d threads", o.threads);
  if (o.in_flight < 0 || o.in_flight > RUNG_MOST_IN_FLIGHT)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "context: %d runs in flight; up to %d can be", o.in_flight,
                     RUNG_MOST_IN_FLIGHT);
  if (state && state->template_ != t)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "context: the state was made for another template");
  rung_host *host = t->device->host;
  rung_context *c = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *c, 0);
  if (!c) return rung_fail(error, RUNG_OUT_OF_MEMORY, "context: out of memory");
  rung_host_retain(host);
  rung_template_retain(t);
  rung_view_retain(view);
  rung_state_retain(state);
  c->main = c;
  c->host = host;
  c->template_ = t;
  c->far = rung_device_far(t->device);
  c->view = view;
  c->state = state;
  c->options = o;
  c->threads = o.threads && o.threads < t->threads ? o.threads : t->threads;
  c->random[0] = o.seed;
  atomic_init(&c->cancel, 0);
  atomic_init(&c->next_ticket, 1);
  atomic_init(&c->cancelled, 0);
  for (int s = 0; s < RUNG_MAX_SYMBOLS; s++) c->extent[s] = RUNG_UNBOUND;
  *out_context = c;
  return RUNG_OK;
}

void rung_context_destroy(rung_context *c) {
  if (!c) return;
  drop_program(c);
  rung_context_clear_feeds(c);
  if (c->state && c->state->submitter == c) c->state->submitter = NULL;
  rung_region_finish(&c->arena);
  rung_region_finish(&c->scratch);
  rung_region_finish(&c->boundary);
  rung_state_release(c->state);
  rung_view_release(c->view);
  rung_template_release(c->template_);
  rung_host *host = c->host;
  rung_host_free(host, RUNG_MEMORY_host, c, sizeof *c);
  rung_host_release(host);
}

const char *rung_context_message(const rung_context *c) { return c ? c->error.message : ""; }
/* Two stores, which a signal's handler may do. In this order: a submitted run clears the flag and then looks whether it
 * is meant (submit.c). */
void rung_context_cancel(rung_context *c) {
  if (!c) return;
  atomic_store(&c->cancelled, atomic_load(&c->next_ticket));
  atomic_store(&c->cancel, 1);
}
void rung_context_set_seed(rung_context *c, uint64_t seed) {
  if (!c) return;
  rung_context_quiet(c);
  c->random[0] = seed, c->random[1] = 0;
}
void rung_context_on_step(rung_context *c, rung_step_fn *fn, void *self) {
  if (!c) return;
  rung_context_quiet(c);
  c->on_step = fn, c->on_step_self = self;
}
rung_memory rung_context_memory(const rung_context *c) {
  rung_memory m = {0};
  if (!c) return m;
  rung_context_lock(c->main);
  m.activations = c->arena.committed, m.scratch = c->scratch.committed;
  m.load = rung_flights_bytes(c->flights);
  rung_context_unlock(c->main);
  return m;
}

/* ---- use */

static rung_status reserve(rung_region *region, rung_host *host, const rung_far *far, rung_memory_class class_,
                           uint64_t bytes, rung_error *error) {
  if (region->reserved >= bytes && region->base) return RUNG_OK;
  rung_region_finish(region);
  *region = (rung_region){0};
  return bytes ? rung_region_init_far(region, host, far, class_, bytes, error) : RUNG_OK;
}

/* The plan's constants as the device sees them. */
static const uint8_t *constant_at(const rung_context *c, uint32_t index) {
  const rung_plan *plan = c->program->plan;
  if (!c->far) return plan->constant[index].data;
  uint64_t offset = 0;
  for (uint32_t i = 0; i < index; i++) offset += rung_constant_room(&plan->constant[i]);
  return c->program->constant + offset;
}

static rung_status point_roots(rung_context *c) {
  const rung_plan *plan = c->program->plan;
  rung_error *e = &c->error;
  bool weights = false;
  for (uint32_t i = 0; i < plan->roots; i++) {
    const rung_root *root = &plan->root[i];
    const uint8_t *data = NULL;
    switch ((rung_root_kind)root->kind) {
      case RUNG_ROOT_BUFFER:
      case RUNG_ROOT_CARRIED:
      case RUNG_ROOT_INPUT:
      case RUNG_ROOT_OUTPUT:
        data = c->arena.base ? c->arena.base + plan->buffer[root->buffer].offset : NULL;
        break;
      case RUNG_ROOT_WEIGHT:
      case RUNG_ROOT_FORM:
        if (!c->view)
          return rung_fail(e, RUNG_NOT_LOADED, "the program has weights, the context was made without a view");
        weights = true; /* each run points them at its generation */
        break;
      case RUNG_ROOT_STATE:
        if (!c->state || root->index >= c->state->items)
          return rung_fail(e, RUNG_INVALID_ARGUMENT, "the program has state \"%s\", the context was made without",
                           plan->state[root->index].name);
        data = c->state->item[root->index].type.kind == RUNG_VALUE_STATE_KV
                   ? (const uint8_t *)&c->state->item[root->index].kv
                   : c->state->item[root->index].region.base;
        break;
      case RUNG_ROOT_CONSTANT:
        data = constant_at(c, root->index);
        break;
    }
    c->root[i] = (uint8_t *)(uintptr_t)data;
  }
  return weights ? rung_view_use(c->view, c->program, e, &c->use) : RUNG_OK;
}

static rung_status use(rung_context *c, rung_program *program) {
  const rung_plan *plan = program->plan;
  rung_error *e = &c->error;
  rung_program_retain(program);
  c->program = program;
  const size_t each = rung_resolved_bytes(plan);
  c->remembered = RUNG_REMEMBERED;
  c->resolved_bytes = each * RUNG_REMEMBERED;
  c->resolved_memory = rung_host_alloc(c->host, RUNG_MEMORY_host, c->resolved_bytes, 64);
  c->root = rung_host_array(c->host, plan->roots + 1, sizeof *c->root);
  c->input = rung_host_array(c->host, plan->inputs + 1, sizeof *c->input);
  c->output = rung_host_array(c->host, plan->outputs + 1, sizeof *c->output);
  c->result = rung_host_array(c->host, plan->outputs + 1, sizeof *c->result);
  if (!c->resolved_memory || !c->root || !c->input || !c->output || !c->result)
    return rung_fail(e, RUNG_OUT_OF_MEMORY, "context: out of memory");
  uint8_t *cursor = c->resolved_memory;
  for (int i = 0; i < RUNG_REMEMBERED; i++) rung_resolved_carve(&c->resolved[i], plan, &cursor);
  RUNG_TRY(reserve(&c->arena, c->host, c->far, RUNG_MEMORY_activations, plan->arena_bytes, e));
  RUNG_TRY(reserve(&c->scratch, c->host, c->far, RUNG_MEMORY_scratch, plan->scratch_bytes, e));
  if (c->far) RUNG_TRY(reserve(&c->boundary, c->host, NULL, RUNG_MEMORY_load, plan->arena_bytes, e));
  RUNG_TRY(rung_context_make_kept(c));
  RUNG_TRY(rung_context_make_wanted(c));
  RUNG_TRY(point_roots(c));
  c->root_stamp++;
  c->commit_stamp++;
  if (!c->options.commit_all) return RUNG_OK;
  if (plan->arena_bytes) RUNG_TRY(rung_region_commit(&c->arena, 0, plan->arena_bytes, e));
  return plan->scratch_bytes ? rung_region_commit(&c->scratch, 0, plan->scratch_bytes, e) : RUNG_OK;
}

rung_status rung_context_use(rung_context *c, rung_program *program) {
  if (!c) return RUNG_INVALID_ARGUMENT;
  c->error = (rung_error){0};
  if (!program || program->template_ != c->template_)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "use: a program of the context's template is required");
  if (program == c->program) return RUNG_OK;
  rung_context_quiet(c);
  drop_program(c);
  const rung_status status = use(c, program);
  if (status) drop_program(c);
  return status;
}

/* ---- binding */

rung_status rung_context_ready(rung_context *c) {
  if (!c) return RUNG_INVALID_ARGUMENT;
  c->error = (rung_error){0};
  return c->program
             ? RUNG_OK
             : rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "the context has no program; call rung_context_use first");
}

static bool dense(const rung_tensor *t) {
  bool any = false;
  for (int i = 0; i < t->rank; i++) any |= t->stride[i] != 0;
  if (!any) return true;
  const rung_type_row *row = rung_type_get(t->type);
  const int64_t block = row->class_ == RUNG_CLASS_BLOCK ? row->block : 1;
  int64_t want = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (t->stride[i] != want && t->extent[i] > 1) return false;
    want *= i == t->rank - 1 ? t->extent[i] / block : t->extent[i];
  }
  return true;
}

static rung_status check_tensor(rung_context *c, const char *what, const char *name, const rung_value_type *want,
                                const rung_tensor *t) {
  if (t->type != want->type)
    return rung_fail(&c->error, RUNG_TYPE_MISMATCH, "%s \"%s\" is %s, the program takes %s", what, name,
                     rung_type_name(t->type), rung_type_name(want->type));
  if (t->rank != want->rank)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH, "%s \"%s\" has rank %d, the program takes %d", what, name, t->rank,
                     want->rank);
  for (int i = 0; i < t->rank; i++)
    if (t->extent[i] < 0)
      return rung_fail(&c->error, RUNG_SHAPE_MISMATCH, "%s \"%s\": axis %d is %" PRId64, what, name, i, t->extent[i]);
  return RUNG_OK;
}

uint64_t rung_tensor_bytes(const rung_tensor *t) {
  uint64_t n = 1;
  for (int i = 0; i < t->rank; i++)
    if (rung_mul_overflows(n, (uint64_t)t->extent[i], &n)) return UINT64_MAX;
  return rung_type_bytes(t->type, n);
}

/* The space kept for an input or output where the caller sees it, committed for `bytes`. */
static rung_status own_space(rung_context *c, uint32_t root, uint64_t bytes, const char *name, uint8_t **out) {
  rung_region *region = c->far ? &c->boundary : &c->arena;
  const rung_buffer *buffer = &c->program->plan->buffer[c->program->plan->root[root].buffer];
  if (bytes > buffer->bound)
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                     "\"%s\": %" PRIu64 " bytes pass what the program was compiled for, %" PRIu64, name, bytes,
                     buffer->bound);
  rung_context_lock(c);
  const rung_status status = bytes ? rung_region_commit(region, buffer->offset, bytes, &c->error) : RUNG_OK;
  rung_context_unlock(c);
  if (status) return status;
  *out = region->base ? region->base + buffer->offset : NULL;
  return RUNG_OK;
}

/* Where steps find what the caller sees at `data`. */
static uint8_t *steps_see(const rung_context *c, uint32_t root, uint8_t *data) {
  if (!c->far) return data;
  return c->arena.base ? c->arena.base + c->program->plan->buffer[c->program->plan->root[root].buffer].offset : NULL;
}

static rung_status bind_input(rung_context *c, int slot, const rung_tensor *tensor, bool roomy, bool by_reference) {
  RUNG_TRY(rung_context_ready(c));
  const rung_plan *plan = c->program->plan;
  if (slot < 0 || (uint32_t)slot >= plan->inputs || !tensor || (!tensor->data && rung_tensor_bytes(tensor)))
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "bind: there is no input %d, or no data", slot);
  const rung_plan_input *in = &plan->input[slot];
  RUNG_TRY(check_tensor(c, "input", in->name, &in->type, tensor));
  for (int i = 0; roomy && i < 3; i++)
    if (plan->ragged[i] == (uint32_t)slot)
      return rung_fail(&c->error, RUNG_UNSUPPORTED,
                       "input \"%s\" says which rows there are; it has no room beyond them", in->name);
  rung_bound *b = &c->input[slot];
  /* Where a larger buffer cannot be used in place is known when the run knows its extents. */
  b->copy = !roomy && (!dense(tensor) || (!c->far && (uintptr_t)tensor->data % 16 != 0));
  if (b->copy && rung_type_is_block(tensor->type))
    return rung_fail(&c->error, RUNG_UNSUPPORTED, "input \"%s\": blocks must be dense and aligned to 16 bytes",
                     in->name);
  uint8_t *data = tensor->data;
  if (b->copy) RUNG_TRY(own_space(c, in->root, rung_tensor_bytes(tensor), in->name, &data));
  b->tensor = *tensor;
  b->set = true;
  b->owned = b->fed = false;
  b->roomy = roomy;
  b->by_reference = by_reference;
  data = steps_see(c, in->root, data);
  if (c->root[in->root] != data) c->root[in->root] = data, c->root_stamp++;
  return RUNG_OK;
}

rung_status rung_context_bind_input(rung_context *c, int slot, const rung_tensor *tensor) {
  return bind_input(c, slot, tensor, false, false);
}
rung_status rung_context_bind_input_ceiling(rung_context *c, int slot, const rung_tensor *tensor) {
  return bind_input(c, slot, tensor, true, false);
}
rung_status rung_context_bind_input_reference(rung_context *c, int slot, const rung_tensor *tensor) {
  return bind_input(c, slot, tensor, false, true);
}

rung_status rung_context_input(rung_context *c, int slot, const int64_t *extent, void **out_data) {
  RUNG_TRY(rung_context_ready(c));
  const rung_plan *plan = c->program->plan;
  if (slot < 0 || (uint32_t)slot >= plan->inputs || !extent || !out_data)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "input: there is no input %d, or an argument is missing", slot);
  const rung_plan_input *in = &plan->input[slot];
  rung_tensor t = rung_tensor_dense(in->type.type, in->type.rank, extent, NULL);
  RUNG_TRY(check_tensor(c, "input", in->name, &in->type, &t));
  if (rung_context_feeds_input(c, slot)) rung_context_quiet(c); /* it is where the feed puts its values */
  uint8_t *data;
  RUNG_TRY(own_space(c, in->root, rung_tensor_bytes(&t), in->name, &data));
  t.data = data;
  c->input[slot] = (rung_bound){.tensor = t, .set = true, .owned = true};
  *out_data = data;
  data = steps_see(c, in->root, data);
  if (c->root[in->root] != data) c->root[in->root] = data, c->root_stamp++;
  return RUNG_OK;
}

static rung_status bind_output(rung_context *c, int slot, const rung_tensor *tensor, bool roomy) {
  RUNG_TRY(rung_context_ready(c));
  const rung_plan *plan = c->program->plan;
  if (slot < 0 || (uint32_t)slot >= plan->outputs)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "bind: there is no output %d", slot);
  const rung_plan_output *out = &plan->output[slot];
  uint8_t *data = c->arena.base ? c->arena.base + plan->buffer[plan->root[out->root].buffer].offset : NULL;
  c->output[slot] = (rung_bound){0};
  if (tensor) {
    RUNG_TRY(check_tensor(c, "output", out->name, &out->type, tensor));
    if (!tensor->data || !dense(tensor) || (!c->far && (uintptr_t)tensor->data % 16 != 0))
      return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "output \"%s\" must be dense and aligned to 16 bytes",
                       out->name);
    c->output[slot] = (rung_bound){.tensor = *tensor, .set = true, .roomy = roomy};
    data = steps_see(c, out->root, tensor->data);
  }
  /* Memory of the context may not be committed yet: while the output was the caller's, runs left it alone. */
  if (c->root[out->root] != data) c->root[out->root] = data, c->root_stamp++, c->commit_stamp++;
  return RUNG_OK;
}

rung_status rung_context_bind_output(rung_context *c, int slot, const rung_tensor *tensor) {
  return bind_output(c, slot, tensor, false);
}
rung_status rung_context_bind_output_ceiling(rung_context *c, int slot, const rung_tensor *tensor) {
  return bind_output(c, slot, tensor, true);
}

rung_status rung_context_set_extent(rung_context *c, const char *symbol, int64_t value) {
  RUNG_TRY(rung_context_ready(c));
  const rung_plan *plan = c->program->plan;
  const int s = symbol ? rung_dims_find_symbol(plan->dims, symbol, strlen(symbol)) : -1;
  if (s < 0) return rung_fail(&c->error, RUNG_NOT_FOUND, "there is no symbol \"%s\"", symbol ? symbol : "");
  if (value >= 0 && (value < plan->lo[s] || value > plan->ceiling[s]))
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                     "symbol %s is %" PRId64 ", the program accepts %" PRId64 "..%" PRId64, symbol, value, plan->lo[s],
                     plan->ceiling[s]);
  c->extent[s] = value < 0 ? RUNG_UNBOUND : value;
  return RUNG_OK;
}
