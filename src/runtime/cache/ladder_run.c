/* SPDX-License-Identifier: MIT
 * Running in a rung: the key chooses the program, the inputs say the sizes. */
#include <inttypes.h>
#include <string.h>

#include "runtime/cache/ladder.h"

/* ---- contexts of the ladder */

/* An idle one, rather one that runs this program already. */
static rung_own *take_idle(rung_cache *cache, const rung_program *program) {
  rung_own *best = NULL;
  for (rung_own *own = cache->own; own; own = own->next)
    if (!own->busy && (!best || own->context->program == program)) best = own;
  if (best) best->busy = true;
  return best;
}

static rung_status make_own(rung_ladder *l, const rung_program *program, rung_error *error, rung_own **out_own) {
  rung_cache *cache = &l->cache;
  rung_own *own = rung_host_alloc(cache->host, RUNG_MEMORY_host, sizeof *own, 0);
  if (!own) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ladder: out of memory");
  *own = (rung_own){.busy = true};
  const rung_status status =
      rung_context_create(rung_program_template(program), cache->build.view, NULL, &l->context, error, &own->context);
  if (status) {
    rung_host_free(cache->host, RUNG_MEMORY_host, own, sizeof *own);
    return status;
  }
  rung_mutex_lock(&cache->lock);
  own->next = cache->own;
  cache->own = own;
  rung_mutex_unlock(&cache->lock);
  *out_own = own;
  return RUNG_OK;
}

static rung_status borrow(rung_ladder *l, const rung_program *program, rung_error *error, rung_own **out_own) {
  rung_mutex_lock(&l->cache.lock);
  *out_own = take_idle(&l->cache, program);
  rung_mutex_unlock(&l->cache.lock);
  return *out_own ? RUNG_OK : make_own(l, program, error, out_own);
}

static void unlink_own(rung_cache *cache, const rung_own *own) {
  for (rung_own **at = &cache->own; *at; at = &(*at)->next) {
    if (*at != own) continue;
    *at = own->next;
    return;
  }
}

/* Back to the idle ones; one whose program has left the ladder goes first, so that evicting finds it gone. */
static void give_back(rung_ladder *l, rung_own *own, rung_entry *entry) {
  rung_cache *cache = &l->cache;
  const rung_memory held = rung_context_memory(own->context);
  rung_mutex_lock(&cache->lock);
  if (entry && !entry->left && own->context->program == entry->program) {
    own->memory = held;
    own->busy = false;
    rung_mutex_unlock(&cache->lock);
    return;
  }
  unlink_own(cache, own);
  rung_mutex_unlock(&cache->lock);
  rung_context_destroy(own->context);
  rung_host_free(cache->host, RUNG_MEMORY_host, own, sizeof *own);
}

/* ---- binding */

static rung_status slot_of(const rung_program *program, const rung_io *io, size_t at, bool output, rung_error *error,
                           int *out_slot) {
  const int count = output ? rung_program_outputs(program) : rung_program_inputs(program);
  *out_slot = (int)at;
  if (io->name)
    *out_slot = output ? rung_program_find_output(program, io->name) : rung_program_find_input(program, io->name);
  if (*out_slot >= 0 && *out_slot < count) return RUNG_OK;
  if (io->name)
    return rung_fail(error, RUNG_NOT_FOUND, "ladder: there is no %s \"%s\"", output ? "output" : "input", io->name);
  return rung_fail(error, RUNG_NOT_FOUND, "ladder: there is no %s %zu, there are %d", output ? "output" : "input", at,
                   count);
}

static rung_status message(const rung_context *c, rung_status status, rung_error *error) {
  return status ? rung_fail(error, status, "%s", rung_context_message(c)) : RUNG_OK;
}

static rung_status bind(rung_context *c, const rung_program *program, const rung_io *inputs, size_t n_in,
                        rung_io *outputs, size_t n_out, rung_error *error) {
  int slot;
  for (size_t i = 0; i < n_in; i++) {
    RUNG_TRY(slot_of(program, &inputs[i], i, false, error, &slot));
    RUNG_TRY(message(c,
                     inputs[i].ceiling ? rung_context_bind_input_ceiling(c, slot, &inputs[i].tensor)
                                       : rung_context_bind_input(c, slot, &inputs[i].tensor),
                     error));
  }
  for (size_t i = 0; i < n_out; i++) {
    RUNG_TRY(slot_of(program, &outputs[i], i, true, error, &slot));
    RUNG_TRY(message(c,
                     outputs[i].ceiling ? rung_context_bind_output_ceiling(c, slot, &outputs[i].tensor)
                                        : rung_context_bind_output(c, slot, &outputs[i].tensor),
                     error));
  }
  return RUNG_OK;
}

/* Nothing of a caller stays bound in a context that another may get. */
static void unbind(rung_context *c) {
  if (!c->program) return;
  for (uint32_t i = 0; i < c->program->plan->inputs; i++) c->input[i] = (rung_bound){0};
  for (uint32_t i = 0; i < c->program->plan->outputs; i++) (void)!rung_context_bind_output(c, (int)i, NULL);
}

/* ---- runs */

typedef struct run {
  rung_ladder *ladder;
  int64_t key;
  const rung_io *inputs;
  size_t n_in;
  rung_io *outputs;
  size_t n_out;
} run;

/* Where larger buffers leave the symbol open, the key is its value for this run. */
static rung_status run_with_key(const run *r, rung_context *c, rung_error *error) {
  const rung_plan *plan = c->program->plan;
  const int s = rung_dims_find_symbol(plan->dims, r->ladder->symbol, strlen(r->ladder->symbol));
  bool roomy = false;
  for (uint32_t i = 0; i < plan->inputs; i++) roomy |= c->input[i].roomy;
  const int64_t before = c->extent[s];
  if (roomy && before == RUNG_UNBOUND && rung_context_leaves_open(c, (uint32_t)s)) c->extent[s] = r->key;
  const rung_status status = rung_context_run(c);
  c->extent[s] = before;
  return message(c, status, error);
}

static rung_status run_in(const run *r, rung_context *c, rung_program *program, rung_error *error) {
  const bool rolls = c->program && c->program != program;
  RUNG_TRY(message(c, rung_context_use(c, program), error));
  RUNG_TRY(bind(c, program, r->inputs, r->n_in, r->outputs, r->n_out, error));
  RUNG_TRY(run_with_key(r, c, error));
  rung_cache *cache = &r->ladder->cache;
  rung_mutex_lock(&cache->lock);
  cache->counters.runs++;
  cache->counters.rollovers += rolls;
  rung_mutex_unlock(&cache->lock);
  for (size_t i = 0; i < r->n_out; i++) {
    int slot;
    rung_tensor t;
    RUNG_TRY(slot_of(program, &r->outputs[i], i, true, error, &slot));
    RUNG_TRY(message(c, rung_context_output(c, slot, &t), error));
    r->outputs[i].tensor = t;
  }
  return RUNG_OK;
}

static rung_status run_in_own(const run *r, rung_program *program, rung_entry *entry, rung_error *error) {
  rung_own *own;
  RUNG_TRY(borrow(r->ladder, program, error, &own));
  rung_context_set_seed(own->context, r->ladder->context.seed);
  const rung_status status = run_in(r, own->context, program, error);
  unbind(own->context);
  give_back(r->ladder, own, entry);
  return status;
}

rung_status rung_ladder_run(rung_ladder *l, rung_context *context, int64_t key, const rung_io *inputs,
                            size_t inputs_count, rung_io *outputs, size_t outputs_count, rung_error *error) {
  if (!l || (inputs_count && !inputs) || (outputs_count && !outputs))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: ladder, inputs and outputs are required");
  for (size_t i = 0; i < outputs_count; i++)
    if (!outputs[i].tensor.data) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: output %zu has no memory", i);
  size_t rung;
  RUNG_TRY(rung_ladder_lookup(l, key, error, &rung, NULL));
  rung_program *program;
  rung_entry *entry;
  RUNG_TRY(rung_ladder_program(l, rung, (rung_climb){.run = true, .own = !context}, error, &program, &entry));
  const run r = {l, key, inputs, inputs_count, outputs, outputs_count};
  const rung_status status = context ? run_in(&r, context, program, error) : run_in_own(&r, program, entry, error);
  rung_program_release(program);
  rung_entries_ran(&l->cache, entry, !context);
  return status;
}

rung_status rung_ladder_use(rung_ladder *l, rung_context *context, int64_t key, rung_error *error) {
  if (!l || !context) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: ladder and context are required");
  rung_program *program;
  RUNG_TRY(rung_ladder_get(l, key, error, &program));
  const rung_status status = message(context, rung_context_use(context, program), error);
  rung_program_release(program);
  return status;
}
