/* SPDX-License-Identifier: MIT
 * The cache as callers see it: a program per key, of graphs of their own or of one template. */
#include <inttypes.h>
#include <string.h>

#include "runtime/cache/entries.h"

static rung_status check_options(const rung_cache_options *o, rung_error *error) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (!o->entries) return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: room for 0 entries; at least 1 is needed");
  if (o->order != RUNG_EVICT_LRU && o->order != RUNG_EVICT_FIFO)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: %d is no order of eviction", (int)o->order);
  if (o->compile.size != sizeof o->compile)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: options.compile.size is %zu, expected %zu", o->compile.size,
                     sizeof o->compile);
  return RUNG_OK;
}

rung_status rung_entries_keep_build(rung_cache *cache, const rung_build *build, rung_error *error) {
  RUNG_TRY(rung_source_check(build, &cache->options.compile, error));
  cache->has_template = true;
  cache->build = *build;
  rung_template_retain(build->template_);
  rung_view_retain(build->view);
  if (!build->compile) return RUNG_OK;
  cache->build_compile = *build->compile;
  cache->build.compile = &cache->build_compile;
  return RUNG_OK;
}

static rung_status create(rung_device *device, const rung_build *build, bool has_template,
                          const rung_cache_options *options, rung_error *error, rung_cache **out_cache) {
  const rung_cache_options o = options ? *options : rung_cache_options_default();
  if (!device || !out_cache || (has_template && !build))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: device%s and out_cache are required",
                     has_template ? ", build" : "");
  RUNG_TRY(check_options(&o, error));
  rung_host *host = rung_device_host(device);
  rung_cache *cache = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *cache, 0);
  if (!cache) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cache: out of memory");
  rung_status status = rung_entries_init(cache, device, &o, error);
  if (!status && has_template) status = rung_entries_keep_build(cache, build, error);
  if (status) {
    rung_cache_destroy(cache);
    return status;
  }
  *out_cache = cache;
  return RUNG_OK;
}

rung_status rung_cache_create(rung_device *device, const rung_cache_options *options, rung_error *error,
                              rung_cache **out_cache) {
  return create(device, NULL, false, options, error, out_cache);
}

rung_status rung_cache_create_template(rung_device *device, const rung_build *build, const rung_cache_options *options,
                                       rung_error *error, rung_cache **out_cache) {
  return create(device, build, true, options, error, out_cache);
}

void rung_cache_destroy(rung_cache *cache) {
  if (!cache) return;
  rung_host *host = cache->host;
  rung_host_retain(host);
  rung_entries_finish(cache);
  rung_host_free(host, RUNG_MEMORY_host, cache, sizeof *cache);
  rung_host_release(host);
}

/* ---- a graph per key */

static rung_status make_exact(void *self, rung_gate *gate, uint64_t key, rung_error *error, rung_program **out_program,
                              rung_view **out_view) {
  const rung_build *build = self;
  rung_template *t;
  RUNG_TRY(rung_source_template(gate->cache, key, build, error, &t));
  if (!build->template_) gate->extra = rung_template_bytes(t);
  const rung_status status = rung_program_make(t, NULL, 0, rung_gate_pass, gate, error, out_program);
  rung_template_release(t);
  *out_view = build->view;
  return status;
}

rung_status rung_cache_get_or_compile(rung_cache *cache, uint64_t key, const rung_build *build, rung_error *error,
                                      rung_program **out_program) {
  if (!cache || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: cache and out_program are required");
  if (cache->has_template && build)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: it was made with a template; use rung_cache_specialise");
  if (build) RUNG_TRY(rung_source_check(build, &cache->options.compile, error));
  const rung_ask ask = {.key = key, .make = build ? make_exact : NULL, .self = (void *)(uintptr_t)build};
  return rung_entries_get(cache, &ask, error, out_program, NULL);
}

/* ---- a binding per key */

typedef struct special {
  rung_template *template_;
  const rung_binding *binding;
  size_t count;
} special;

static rung_status make_special(void *self, rung_gate *gate, uint64_t key, rung_error *error,
                                rung_program **out_program, rung_view **out_view) {
  const special *s = self;
  (void)key;
  *out_view = gate->cache->build.view;
  return rung_program_make(s->template_, s->binding, s->count, rung_gate_pass, gate, error, out_program);
}

/* A hit must be for what is asked: the binding is the plan's ceiling. */
static rung_status check_same(const rung_program *program, const special *s, uint64_t key, rung_error *error) {
  const rung_plan *plan = program->plan;
  for (size_t i = 0; i < s->count; i++) {
    const char *name = s->binding[i].symbol;
    const int at = name ? rung_dims_find_symbol(plan->dims, name, strlen(name)) : -1;
    if (at < 0) return rung_fail(error, RUNG_NOT_FOUND, "there is no symbol \"%s\"", name ? name : "");
    if (plan->ceiling[at] != s->binding[i].value)
      return rung_fail(error, RUNG_INVALID_ARGUMENT,
                       "cache: key %" PRIu64 " is there for %s = %" PRId64 ", not %" PRId64, key, name,
                       plan->ceiling[at], s->binding[i].value);
  }
  return RUNG_OK;
}

static rung_status specialise(rung_cache *cache, uint64_t key, special *s, rung_error *error,
                              rung_program **out_program) {
  RUNG_TRY(rung_check_complete(s->template_, s->binding, s->count, error));
  const rung_ask ask = {.key = key, .make = make_special, .self = s};
  rung_program *program;
  RUNG_TRY(rung_entries_get(cache, &ask, error, &program, NULL));
  const rung_status status = check_same(program, s, key, error);
  if (status) {
    rung_program_release(program);
    return status;
  }
  *out_program = program;
  return RUNG_OK;
}

static rung_status check_template(const rung_cache *cache, rung_error *error) {
  return cache->has_template ? RUNG_OK
                             : rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: it was made without a template");
}

rung_status rung_cache_specialise(rung_cache *cache, uint64_t key, const rung_binding *binding, size_t count,
                                  rung_error *error, rung_program **out_program) {
  if (!cache || (count && !binding) || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: cache, binding and out_program are required");
  RUNG_TRY(check_template(cache, error));
  special s = {.binding = binding, .count = count};
  RUNG_TRY(rung_entries_template(cache, false, error, &s.template_));
  const rung_status status = specialise(cache, key, &s, error, out_program);
  rung_template_release(s.template_);
  return status;
}

rung_status rung_cache_specialise_for(rung_cache *cache, uint64_t key, const rung_io *inputs, size_t count,
                                      rung_error *error, rung_program **out_program) {
  if (!cache || (count && !inputs) || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: cache, inputs and out_program are required");
  RUNG_TRY(check_template(cache, error));
  rung_binding binding[RUNG_MAX_SYMBOLS];
  special s = {.binding = binding};
  RUNG_TRY(rung_entries_template(cache, false, error, &s.template_));
  rung_status status = rung_template_bind(s.template_, inputs, count, error, binding, &s.count);
  if (!status) status = specialise(cache, key, &s, error, out_program);
  rung_template_release(s.template_);
  return status;
}

rung_status rung_cache_template(rung_cache *cache, rung_error *error, rung_template **out_template) {
  if (!cache || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: cache and out_template are required");
  RUNG_TRY(check_template(cache, error));
  return rung_entries_template(cache, true, error, out_template);
}

/* ---- what is there */

static void lock(const rung_cache *cache) { rung_mutex_lock((rung_mutex *)(uintptr_t)&cache->lock); }
static void unlock(const rung_cache *cache) { rung_mutex_unlock((rung_mutex *)(uintptr_t)&cache->lock); }

bool rung_cache_contains(const rung_cache *cache, uint64_t key) {
  if (!cache) return false;
  size_t at;
  lock(cache);
  const bool found = rung_entries_find(cache, key, &at);
  unlock(cache);
  return found;
}

size_t rung_cache_count(const rung_cache *cache) {
  if (!cache) return 0;
  lock(cache);
  const size_t n = cache->entries;
  unlock(cache);
  return n;
}

bool rung_cache_evict(rung_cache *cache, uint64_t key) {
  if (!cache) return false;
  rung_leaving leaving = {0};
  size_t at;
  lock(cache);
  const bool found = rung_entries_find(cache, key, &at);
  if (found) rung_entries_take_out(cache, at, &leaving);
  rung_entries_unlock(cache, &leaving);
  return found;
}

void rung_cache_clear(rung_cache *cache) {
  if (!cache) return;
  rung_leaving leaving = {0};
  lock(cache);
  while (cache->entries) rung_entries_take_out(cache, cache->entries - 1, &leaving);
  cache->generation++;
  rung_template *t = NULL;
  if (!cache->keeps_template) {
    t = cache->template_;
    cache->template_ = NULL;
  }
  rung_entries_unlock(cache, &leaving);
  rung_template_release(t);
}

void rung_cache_sync(rung_cache *cache) {
  if (!cache) return;
  lock(cache);
  while (cache->making || cache->runs_now) rung_cond_wait(&cache->changed, &cache->lock);
  unlock(cache);
}

void rung_cache_set_no_compile(rung_cache *cache, bool no_compile) {
  if (!cache) return;
  lock(cache);
  cache->no_compile = no_compile;
  unlock(cache);
}

void rung_cache_note_bytes(rung_cache *cache, uint64_t key, uint64_t bytes) {
  if (!cache || !bytes) return;
  rung_leaving leaving = {0};
  size_t at;
  lock(cache);
  if (rung_entries_find(cache, key, &at)) {
    rung_entry *e = cache->entry[at];
    e->noted = bytes > UINT64_MAX - e->noted ? UINT64_MAX : e->noted + bytes;
    e->used = ++cache->clock;
    rung_entries_shrink(cache, e, &leaving);
  }
  rung_entries_unlock(cache, &leaving);
}
