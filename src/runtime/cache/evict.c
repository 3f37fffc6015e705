/* SPDX-License-Identifier: MIT
 * Who leaves: by number, by bytes, by number of large ones. Victims are all chosen before the first goes, so that what
 * cannot be done changes nothing. */
#include <inttypes.h>
#include <string.h>

#include "runtime/cache/entries.h"

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t entry_bytes(const rung_entry *e) { return sum(e->program->accounted, e->noted); }

uint64_t rung_entries_bytes(const rung_cache *cache) {
  uint64_t total = atomic_load(&cache->account->bytes);
  for (size_t i = 0; i < cache->entries; i++) total = sum(total, cache->entry[i]->noted);
  return total;
}

/* What evicting it gives back: nothing of a program that somebody else holds. Runs on contexts of the table hold it
 * twice (the run and its context) and let it go when they end, which evicting waits for. */
static uint64_t gives_back(const rung_cache *cache, const rung_entry *e) {
  int ours = 1 + 2 * (int)e->running_own;
  for (const rung_own *own = cache->own; own; own = own->next)
    if (!own->busy && own->context->program == e->program) ours++;
  const bool held = e->running > e->running_own || atomic_load(&e->program->references) > ours;
  return held ? e->noted : entry_bytes(e);
}

static bool before(const rung_cache *cache, const rung_entry *a, const rung_entry *b) {
  return cache->options.order == RUNG_EVICT_FIFO ? a->made < b->made : a->used < b->used;
}

typedef bool wanted_fn(const rung_cache *cache, const rung_entry *entry);
static bool is_large(const rung_cache *cache, const rung_entry *e) { return entry_bytes(e) >= cache->large_bytes; }
static bool is_any(const rung_cache *cache, const rung_entry *e) {
  (void)cache, (void)e;
  return true;
}
static bool gives(const rung_cache *cache, const rung_entry *e) { return gives_back(cache, e) > 0; }

/* The next to go among those that are not chosen yet. */
static rung_entry *next_victim(const rung_cache *cache, const rung_entry *keep, wanted_fn *wanted) {
  rung_entry *victim = NULL;
  for (size_t i = 0; i < cache->entries; i++) {
    rung_entry *e = cache->entry[i];
    if (e != keep && !e->chosen && wanted(cache, e) && (!victim || before(cache, e, victim))) victim = e;
  }
  return victim;
}

static void choose_none(const rung_cache *cache) {
  for (size_t i = 0; i < cache->entries; i++) cache->entry[i]->chosen = false;
}

static void take_out_chosen(rung_cache *cache, rung_leaving *leaving) {
  for (size_t i = cache->entries; i-- > 0;)
    if (cache->entry[i]->chosen) rung_entries_take_out(cache, i, leaving);
}

void rung_entries_take_out(rung_cache *cache, size_t at, rung_leaving *leaving) {
  rung_entry *e = cache->entry[at];
  memmove(cache->entry + at, cache->entry + at + 1, (cache->entries - at - 1) * sizeof *cache->entry);
  cache->entries--;
  e->left = true;
  e->next = leaving->entry;
  leaving->entry = e;
  for (rung_making *m = cache->making; m; m = m->next)
    if (m->entry == e) m->entry = NULL;
  for (rung_own **own = &cache->own; *own;) {
    rung_own *o = *own;
    if (o->busy || o->context->program != e->program) {
      own = &o->next;
      continue;
    }
    *own = o->next;
    o->next = leaving->own;
    leaving->own = o;
  }
  cache->gone[cache->gones++ % RUNG_GONE_KEYS] = e->key;
  cache->counters.evictions++;
}

void rung_entries_to_capacity(rung_cache *cache, const rung_entry *keep, rung_leaving *leaving) {
  while (cache->entries > cache->options.entries) {
    rung_entry *victim = next_victim(cache, keep, is_any);
    if (!victim) return;
    size_t at;
    if (rung_entries_find(cache, victim->key, &at)) rung_entries_take_out(cache, at, leaving);
  }
}

/* Chooses; false, and nothing is chosen, where that is not enough. */
static bool choose(rung_cache *cache, uint64_t incoming, bool large) {
  uint64_t freed = 0;
  if (large && cache->large_limit) {
    size_t count = cache->large_coming + 1;
    for (size_t i = 0; i < cache->entries; i++) count += is_large(cache, cache->entry[i]);
    for (; count > cache->large_limit; count--) {
      rung_entry *victim = next_victim(cache, NULL, is_large);
      if (!victim) break;
      victim->chosen = true;
      freed = sum(freed, gives_back(cache, victim));
    }
    if (count > cache->large_limit) {
      choose_none(cache);
      return false;
    }
  }
  if (!cache->options.bytes) return true;
  const uint64_t want = sum(rung_entries_bytes(cache), incoming), cap = cache->options.bytes;
  while (want > cap && freed < want - cap) {
    rung_entry *victim = incoming > cap ? NULL : next_victim(cache, NULL, gives);
    if (!victim) {
      choose_none(cache);
      return false;
    }
    victim->chosen = true;
    freed = sum(freed, gives_back(cache, victim));
  }
  return true;
}

rung_status rung_entries_make_room(rung_cache *cache, uint64_t incoming, bool large, rung_leaving *leaving,
                                   rung_error *error) {
  if (choose(cache, incoming, large)) {
    take_out_chosen(cache, leaving);
    return RUNG_OK;
  }
  const uint64_t held = rung_entries_bytes(cache);
  if (cache->options.bytes)
    return rung_fail(error, RUNG_OVER_BUDGET,
                     "cache: a program of %" PRIu64 " bytes more than the %" PRIu64 " held exceeds the cap of %" PRIu64
                     ", and evicting would not give enough back",
                     incoming, held, cache->options.bytes);
  return rung_fail(error, RUNG_OVER_BUDGET,
                   "cache: at most %zu large programs may be there at once, and others are being made",
                   cache->large_limit);
}

void rung_entries_shrink(rung_cache *cache, const rung_entry *keep, rung_leaving *leaving) {
  if (!cache->options.bytes) return;
  uint64_t freed = 0;
  const uint64_t held = rung_entries_bytes(cache), cap = cache->options.bytes;
  while (held > cap && freed < held - cap) {
    rung_entry *victim = next_victim(cache, keep, gives);
    if (!victim) break;
    victim->chosen = true;
    freed = sum(freed, gives_back(cache, victim));
  }
  take_out_chosen(cache, leaving);
}

void rung_entries_unlock(rung_cache *cache, rung_leaving *leaving) {
  for (const rung_entry *e = leaving->entry; e; e = e->next)
    while (e->running) rung_cond_wait(&cache->changed, &cache->lock);
  rung_mutex_unlock(&cache->lock);
  while (leaving->own) {
    rung_own *own = leaving->own;
    leaving->own = own->next;
    rung_context_destroy(own->context);
    rung_host_free(cache->host, RUNG_MEMORY_host, own, sizeof *own);
  }
  while (leaving->entry) {
    rung_entry *e = leaving->entry;
    leaving->entry = e->next;
    rung_source_unbind(e);
    rung_program_release(e->program);
    rung_host_free(cache->host, RUNG_MEMORY_host, e, sizeof *e);
  }
}
