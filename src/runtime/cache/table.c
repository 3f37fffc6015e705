/* SPDX-License-Identifier: MIT
 * Looking up, and making what is missing once for all who ask: they wait at a latch in the maker's frame. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/cache/entries.h"

rung_cache_options rung_cache_options_default(void) {
  return (rung_cache_options){
      .size = sizeof(rung_cache_options), .entries = 16, .compile = rung_compile_options_default()};
}

rung_status rung_entries_init(rung_cache *cache, rung_device *device, const rung_cache_options *options,
                              rung_error *error) {
  rung_host *host = rung_device_host(device);
  *cache = (rung_cache){.host = host, .device = device, .options = *options, .no_compile = options->no_compile};
  rung_host_retain(host);
  rung_device_retain(device);
  cache->account = rung_account_create(host);
  if (!cache->account) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cache: out of memory");
  if (!rung_mutex_init(&cache->lock)) return rung_fail(error, RUNG_SYSTEM, "cache: no lock");
  if (!rung_cond_init(&cache->changed)) {
    rung_mutex_finish(&cache->lock);
    return rung_fail(error, RUNG_SYSTEM, "cache: no condition");
  }
  cache->ready = true;
  return RUNG_OK;
}

void rung_entries_finish(rung_cache *cache) {
  if (cache->ready) {
    rung_leaving leaving = {0};
    rung_mutex_lock(&cache->lock);
    while (cache->entries) rung_entries_take_out(cache, cache->entries - 1, &leaving);
    for (rung_own *own = cache->own, *next; own; own = next) {
      next = own->next;
      own->next = leaving.own;
      leaving.own = own;
    }
    cache->own = NULL;
    rung_entries_unlock(cache, &leaving);
    rung_cond_finish(&cache->changed);
    rung_mutex_finish(&cache->lock);
  }
  rung_host *host = cache->host;
  rung_host_free(host, RUNG_MEMORY_host, cache->entry, cache->capacity * sizeof(rung_entry *));
  rung_template_release(cache->template_);
  rung_template_release(cache->build.template_);
  rung_view_release(cache->build.view);
  rung_account_release(cache->account);
  rung_device_release(cache->device);
  *cache = (rung_cache){0};
  rung_host_release(host);
}

bool rung_entries_find(const rung_cache *cache, uint64_t key, size_t *out_at) {
  size_t lo = 0, hi = cache->entries;
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (cache->entry[mid]->key < key)
      lo = mid + 1;
    else
      hi = mid;
  }
  *out_at = lo;
  return lo < cache->entries && cache->entry[lo]->key == key;
}

/* ---- the latch */

static const void *this_thread(void) {
  static _Thread_local char mark;
  return &mark;
}

static rung_making *making_of(const rung_cache *cache, bool is_template, uint64_t key) {
  rung_making *m = cache->making;
  while (m && (m->is_template != is_template || (!is_template && m->key != key))) m = m->next;
  return m;
}

/* A builder that asks the cache that called it would wait for itself, or for a thread that waits for it. */
static rung_status check_no_builder(const rung_cache *cache, rung_error *error) {
  const void *me = this_thread();
  for (const rung_making *m = cache->making; m; m = m->next)
    if (m->maker == me)
      return rung_fail(error, RUNG_BUSY, "cache: the builder of key %" PRIu64 " asks the cache that called it", m->key);
  return RUNG_OK;
}

static void begin(rung_cache *cache, rung_making *m) {
  m->maker = this_thread();
  m->next = cache->making;
  cache->making = m;
}

/* What `m` made has been recorded: those who wait take it and leave, then the frame may go. */
static void finish(rung_cache *cache, rung_making *m) {
  m->done = true;
  rung_cond_broadcast(&cache->changed);
  while (m->waiting) rung_cond_wait(&cache->changed, &cache->lock);
  for (rung_making **at = &cache->making; *at; at = &(*at)->next) {
    if (*at != m) continue;
    *at = m->next;
    break;
  }
  rung_cond_broadcast(&cache->changed);
}

/* Another thread's result. The caller takes what it needs of `m` and then calls leave(). */
static rung_status wait_for(rung_cache *cache, rung_making *m, rung_error *error) {
  m->waiting++;
  while (!m->done) rung_cond_wait(&cache->changed, &cache->lock);
  if (m->status && error) *error = m->error;
  return m->status;
}
static void leave(rung_cache *cache, rung_making *m) {
  if (--m->waiting == 0) rung_cond_broadcast(&cache->changed);
}

/* ---- counters */

static rung_compile_reason reason_of(const rung_cache *cache, const rung_ask *ask) {
  if (ask->warm) return RUNG_COMPILE_WARM;
  const uint64_t n = cache->gones < RUNG_GONE_KEYS ? cache->gones : RUNG_GONE_KEYS;
  for (uint64_t i = 0; i < n; i++)
    if (cache->gone[i] == ask->key) return RUNG_COMPILE_AGAIN;
  return RUNG_COMPILE_FIRST;
}

/* ---- entries */

static void use(rung_cache *cache, rung_entry *entry, const rung_ask *ask, rung_program **out_program,
                rung_entry **out_entry) {
  entry->used = ++cache->clock;
  rung_program_retain(entry->program);
  *out_program = entry->program;
  if (!ask->run) return;
  entry->running++;
  entry->running_own += ask->own;
  cache->runs_now++;
  *out_entry = entry;
}

void rung_entries_ran(rung_cache *cache, rung_entry *entry, bool own) {
  if (!entry) return;
  rung_mutex_lock(&cache->lock);
  entry->running--;
  entry->running_own -= own;
  cache->runs_now--;
  rung_cond_broadcast(&cache->changed);
  rung_mutex_unlock(&cache->lock);
}

/* A place in the table, found again when the program is there: others come and go meanwhile. */
static rung_status reserve(rung_cache *cache, rung_error *error) {
  size_t makings = 1;
  for (const rung_making *m = cache->making; m; m = m->next) makings++;
  return rung_host_grow(cache->host, (void **)&cache->entry, &cache->capacity, cache->entries + makings,
                        sizeof *cache->entry)
             ? RUNG_OK
             : rung_fail(error, RUNG_OUT_OF_MEMORY, "cache: out of memory");
}

static void publish(rung_cache *cache, rung_entry *entry, rung_leaving *leaving) {
  size_t at;
  rung_entries_find(cache, entry->key, &at);
  memmove(cache->entry + at + 1, cache->entry + at, (cache->entries - at) * sizeof *cache->entry);
  cache->entry[at] = entry;
  cache->entries++;
  entry->made = entry->used = ++cache->clock;
  rung_entries_to_capacity(cache, entry, leaving);
}

/* Called with the lock, which is free while the program is made. */
static rung_status make(rung_cache *cache, const rung_ask *ask, rung_making *m, rung_leaving *leaving) {
  rung_error *error = &m->error;
  RUNG_TRY(reserve(cache, error));
  rung_entry *entry = rung_host_alloc(cache->host, RUNG_MEMORY_host, sizeof *entry, 0);
  if (!entry) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cache: out of memory");
  const uint64_t generation = cache->generation, start = rung_clock_ns();
  const rung_compile_reason reason = reason_of(cache, ask);
  begin(cache, m);
  rung_mutex_unlock(&cache->lock);
  rung_gate gate = {.cache = cache};
  *entry = (rung_entry){.key = ask->key};
  rung_view *view = NULL;
  rung_status status = ask->make(ask->self, &gate, ask->key, error, &entry->program, &view);
  if (!status) status = rung_source_bind(entry, view, error);
  if (status) rung_program_release(entry->program);
  rung_mutex_lock(&cache->lock);
  cache->coming -= gate.passed;
  cache->large_coming -= gate.large;
  if (status) {
    cache->counters.failures++;
    rung_cond_broadcast(&cache->changed);
    rung_host_free(cache->host, RUNG_MEMORY_host, entry, sizeof *entry);
    return status;
  }
  cache->counters.compiles[reason]++;
  cache->counters.compile_ns[reason] += rung_clock_ns() - start;
  rung_program_retain(entry->program); /* for those who wait */
  m->program = entry->program;
  if (generation == cache->generation) {
    publish(cache, entry, leaving);
    m->entry = entry;
    return RUNG_OK;
  }
  entry->left = true; /* cleared meanwhile: goes at once, those who asked have the program */
  entry->next = leaving->entry;
  leaving->entry = entry;
  return RUNG_OK;
}

static void take(rung_cache *cache, const rung_making *m, const rung_ask *ask, rung_program **out_program,
                 rung_entry **out_entry) {
  if (m->entry && !m->entry->left) {
    use(cache, m->entry, ask, out_program, out_entry);
    return;
  }
  rung_program_retain(m->program);
  *out_program = m->program;
}

/* Under the lock. */
static rung_status get(rung_cache *cache, const rung_ask *ask, rung_error *error, rung_leaving *leaving,
                       rung_program **out_program, rung_entry **out_entry) {
  size_t at;
  if (rung_entries_find(cache, ask->key, &at)) {
    cache->counters.hits++;
    use(cache, cache->entry[at], ask, out_program, out_entry);
    return RUNG_OK;
  }
  RUNG_TRY(check_no_builder(cache, error));
  cache->counters.misses++;
  if (cache->no_compile || !ask->make)
    return rung_fail(error, RUNG_NOT_COMPILED, "cache: key %" PRIu64 " is not compiled%s", ask->key,
                     cache->no_compile ? ", and compiling is switched off" : "");
  rung_making *other = making_of(cache, false, ask->key);
  if (other) {
    const rung_status status = wait_for(cache, other, error);
    if (!status) take(cache, other, ask, out_program, out_entry);
    leave(cache, other);
    return status;
  }
  rung_making m = {.key = ask->key};
  m.status = make(cache, ask, &m, leaving);
  if (m.status && error) *error = m.error;
  if (!m.status) take(cache, &m, ask, out_program, out_entry);
  if (m.maker) finish(cache, &m);
  rung_program_release(m.program); /* the caller has its own */
  return m.status;
}

rung_status rung_entries_get(rung_cache *cache, const rung_ask *ask, rung_error *error, rung_program **out_program,
                             rung_entry **out_entry) {
  rung_leaving leaving = {0};
  if (out_entry) *out_entry = NULL;
  rung_mutex_lock(&cache->lock);
  const rung_status status = get(cache, ask, error, &leaving, out_program, out_entry);
  rung_entries_unlock(cache, &leaving);
  return status;
}

/* The table lets a program in once its size is known, and again when all of it is there. What others are making cannot
 * be evicted: the first time that is waited for (they are past this point, so none of them waits for us). */
rung_status rung_gate_pass(void *self, rung_program *program, rung_error *error) {
  rung_gate *gate = self;
  rung_cache *cache = gate->cache;
  const uint64_t bytes = rung_program_bytes(program) + gate->extra, before = program->accounted;
  const bool first = !gate->passed, large = first && bytes >= cache->large_bytes;
  rung_leaving leaving = {0};
  rung_mutex_lock(&cache->lock);
  rung_status status;
  while ((status = rung_entries_make_room(cache, bytes - before, large, &leaving, error)) != RUNG_OK && first &&
         cache->coming)
    rung_cond_wait(&cache->changed, &cache->lock);
  if (!status) {
    rung_program_account(program, cache->account, bytes);
    gate->passed = true;
    gate->large |= large;
    cache->coming += first;
    cache->large_coming += large;
  }
  rung_entries_unlock(cache, &leaving);
  return status;
}

/* ---- the template that all entries share */

static rung_status make_template(rung_cache *cache, bool warm, rung_making *m) {
  begin(cache, m);
  const uint64_t generation = cache->generation, start = rung_clock_ns();
  rung_mutex_unlock(&cache->lock);
  const rung_status status = rung_source_template(cache, 0, &cache->build, &m->error, &m->template_);
  rung_mutex_lock(&cache->lock);
  if (status) {
    cache->counters.failures++;
    return status;
  }
  if (warm) {
    cache->counters.compiles[RUNG_COMPILE_WARM]++;
    cache->counters.compile_ns[RUNG_COMPILE_WARM] += rung_clock_ns() - start;
  }
  if (generation == cache->generation || cache->keeps_template) {
    rung_template_retain(m->template_);
    cache->template_ = m->template_;
  }
  return RUNG_OK;
}

static rung_status get_template(rung_cache *cache, bool warm, rung_error *error, rung_template **out_template) {
  if (cache->template_) {
    rung_template_retain(cache->template_);
    *out_template = cache->template_;
    return RUNG_OK;
  }
  if (cache->no_compile)
    return rung_fail(error, RUNG_NOT_COMPILED, "cache: the template is not built, and compiling is switched off");
  rung_making *other = making_of(cache, true, 0);
  if (other) {
    if (other->maker == this_thread())
      return rung_fail(error, RUNG_BUSY, "cache: the builder of the template asks the cache that called it");
    const rung_status status = wait_for(cache, other, error);
    if (!status) {
      rung_template_retain(other->template_);
      *out_template = other->template_;
    }
    leave(cache, other);
    return status;
  }
  rung_making m = {.is_template = true};
  m.status = make_template(cache, warm, &m);
  if (m.status && error) *error = m.error;
  if (!m.status) {
    rung_template_retain(m.template_);
    *out_template = m.template_;
  }
  finish(cache, &m);
  rung_template_release(m.template_);
  return m.status;
}

rung_status rung_entries_template(rung_cache *cache, bool warm, rung_error *error, rung_template **out_template) {
  rung_mutex_lock(&cache->lock);
  const rung_status status = get_template(cache, warm, error, out_template);
  rung_mutex_unlock(&cache->lock);
  return status;
}
