/* SPDX-License-Identifier: MIT
 * What a live cache did and holds: counters, and the same as text. */
#include <inttypes.h>
#include <string.h>

#include "runtime/cache/entries.h"

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

/* Under the lock. */
static void count(const rung_cache *cache, rung_cache_counters *out) {
  *out = cache->counters;
  out->entries = cache->entries;
  out->programs = atomic_load(&cache->account->bytes);
  for (size_t i = 0; i < cache->entries; i++) out->noted = sum(out->noted, cache->entry[i]->noted);
  for (const rung_own *own = cache->own; own; own = own->next) {
    out->memory.activations += own->memory.activations;
    out->memory.scratch += own->memory.scratch;
  }
  if (cache->template_) out->memory.host = rung_template_bytes(cache->template_);
}

static void add_view(const rung_cache *cache, rung_cache_counters *out) {
  if (!cache->build.view) return;
  const rung_memory view = rung_view_memory(cache->build.view);
  out->memory.weights = view.weights;
  out->memory.packed = view.packed;
}

void rung_cache_get_counters(const rung_cache *cache, rung_cache_counters *out) {
  if (!out) return;
  *out = (rung_cache_counters){0};
  if (!cache) return;
  rung_mutex *lock = (rung_mutex *)(uintptr_t)&cache->lock;
  rung_mutex_lock(lock);
  count(cache, out);
  rung_mutex_unlock(lock);
  add_view(cache, out);
}

static void print_counters(const rung_cache *cache, const rung_cache_counters *c, rung_text *out) {
  static const char *const reason[RUNG_COMPILE_REASONS] = {"first use", "again after eviction", "ahead of use"};
  rung_text_printf(out, "hits %" PRIu64 ", misses %" PRIu64 ", evictions %" PRIu64 ", refused %" PRIu64 "\n", c->hits,
                   c->misses, c->evictions, c->failures);
  for (int r = 0; r < RUNG_COMPILE_REASONS; r++)
    if (c->compiles[r])
      rung_text_printf(out, "compiled %" PRIu64 " (%s), %.3f ms in all\n", c->compiles[r], reason[r],
                       (double)c->compile_ns[r] * 1e-6);
  if (c->builds)
    rung_text_printf(out, "templates %" PRIu64 ", %.3f ms of that\n", c->builds, (double)c->build_ns * 1e-6);
  if (c->runs) rung_text_printf(out, "runs %" PRIu64 ", rollovers %" PRIu64 "\n", c->runs, c->rollovers);
  rung_text_printf(out, "programs %" PRIu64 " bytes, noted %" PRIu64, c->programs, c->noted);
#define X(name, text) \
  if (c->memory.name) rung_text_printf(out, ", " #name " %" PRIu64, c->memory.name);
  RUNG_MEMORY_MAP(X)
#undef X
  rung_text_printf(out, "\n%zu entries, room for %zu", c->entries, cache->options.entries);
  if (cache->options.bytes) rung_text_printf(out, " and %" PRIu64 " bytes", cache->options.bytes);
  if (cache->large_limit)
    rung_text_printf(out, ", at most %zu of %" PRIu64 " bytes or more", cache->large_limit, cache->large_bytes);
  rung_text_puts(out, cache->no_compile ? ", compiling is off\n" : "\n");
}

static void print_entry(const rung_cache *cache, const rung_entry *e, rung_text *out) {
  const rung_plan *plan = e->program->plan;
  rung_text_printf(out, "  %s %" PRIu64 ":", cache->symbol ? "rung" : "key", e->key);
  const char *between = " ";
  for (uint32_t s = 0; s < plan->dims->symbols; s++, between = ", ")
    if (!plan->dims->symbol[s].made)
      rung_text_printf(out, "%s%s <= %" PRId64, between, plan->dims->symbol[s].name, plan->ceiling[s]);
  rung_text_printf(out, ", %" PRIu64 " bytes", e->program->accounted);
  if (e->noted) rung_text_printf(out, " + %" PRIu64 " noted", e->noted);
  rung_text_printf(out, ", used %" PRIu64 " look-ups ago", cache->clock - e->used);
  rung_text_puts(out, e->running ? ", running\n" : "\n");
}

rung_status rung_cache_print(const rung_cache *cache, rung_error *error, char **out_text, size_t *out_bytes) {
  if (!cache || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: cache, out_text and out_bytes are required");
  rung_mutex *lock = (rung_mutex *)(uintptr_t)&cache->lock;
  rung_text text;
  rung_text_init(&text, cache->host);
  rung_cache_counters view = {0}, c;
  add_view(cache, &view);
  rung_mutex_lock(lock);
  count(cache, &c);
  c.memory.weights = view.memory.weights;
  c.memory.packed = view.memory.packed;
  print_counters(cache, &c, &text);
  for (size_t i = 0; i < cache->entries; i++) print_entry(cache, cache->entry[i], &text);
  rung_mutex_unlock(lock);
  const rung_status status = rung_text_status(&text, error);
  char *copy = status ? NULL : rung_host_alloc(cache->host, RUNG_MEMORY_host, text.length + 1, 0);
  if (copy) {
    memcpy(copy, text.data, text.length);
    *out_text = copy;
    *out_bytes = text.length;
  }
  rung_text_finish(&text);
  return status || copy ? status : rung_fail(error, RUNG_OUT_OF_MEMORY, "cache: out of memory");
}
