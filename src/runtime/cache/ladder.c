/* SPDX-License-Identifier: MIT
 * Ladders: ranges of sizes, the program of each, who is evicted. */
#include "runtime/cache/ladder.h"

#include <inttypes.h>
#include <string.h>

enum { LARGE = 256 << 20 };

rung_ladder_options rung_ladder_options_default(void) {
  return (rung_ladder_options){.size = sizeof(rung_ladder_options),
                               .symbol = RUNG_SYMBOL_SEQ,
                               .compile = rung_compile_options_default(),
                               .context = rung_context_options_default(),
                               .large_bytes = LARGE};
}

/* ---- ranges */

rung_status rung_ranges_power_of_two(int64_t min, int64_t max, rung_error *error, rung_range out[RUNG_MAX_RANGES],
                                     size_t *out_count) {
  if (!out || !out_count)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ranges: out_range and out_count are required");
  if (min < 1 || max < min)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "ranges: from %" PRId64 " to %" PRId64 "; 1 <= min <= max is needed",
                     min, max);
  int64_t ceiling = 1;
  while (ceiling < min && ceiling <= INT64_MAX / 2) ceiling *= 2;
  rung_range range[RUNG_MAX_RANGES];
  size_t n = 0;
  int64_t start = 1;
  for (;; ceiling *= 2) {
    if (ceiling < min || n == RUNG_MAX_RANGES)
      return rung_fail(error, RUNG_OVERFLOW, "ranges: the power of two from %" PRId64 " does not fit", min);
    range[n++] = (rung_range){start, ceiling + 1};
    start = ceiling + 1;
    if (ceiling >= max) break;
    if (ceiling > INT64_MAX / 2)
      return rung_fail(error, RUNG_OVERFLOW, "ranges: the power of two from %" PRId64 " does not fit", max);
  }
  memcpy(out, range, n * sizeof *range);
  *out_count = n;
  return RUNG_OK;
}

static rung_status check_ranges(const rung_range *range, size_t count, rung_error *error) {
  if (!count || !range) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: at least one range is needed");
  for (size_t i = 0; i < count; i++) {
    const rung_range r = range[i];
    if (r.start < 0 || r.end <= r.start)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: range %zu, %" PRId64 "..%" PRId64 ", is %s", i, r.start,
                       r.end, r.start < 0 ? "below 0" : "empty");
    if (i && r.start < range[i - 1].end)
      return rung_fail(error, RUNG_INVALID_ARGUMENT,
                       "ladder: ranges %zu, %" PRId64 "..%" PRId64 ", and %zu, %" PRId64 "..%" PRId64 ", %s", i - 1,
                       range[i - 1].start, range[i - 1].end, i, r.start, r.end,
                       r.end <= range[i - 1].start ? "are not sorted" : "overlap");
  }
  return RUNG_OK;
}

/* ---- life */

static rung_status check_options(const rung_ladder_options *o, rung_error *error) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (!o->symbol || !o->symbol[0] || strlen(o->symbol) > 63)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: options.symbol is no name of a symbol");
  if (o->ceilings && !o->ceiling)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: %zu ceilings are not given", o->ceilings);
  for (size_t i = 0; i < o->ceilings; i++)
    if (!o->ceiling[i].symbol || strcmp(o->ceiling[i].symbol, o->symbol) == 0)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: ceiling %zu names %s", i,
                       o->ceiling[i].symbol ? "the symbol of the ladder" : "no symbol");
  if (o->compile.size != sizeof o->compile || o->context.size != sizeof o->context)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: options.%s.size is wrong",
                     o->compile.size != sizeof o->compile ? "compile" : "context");
  return RUNG_OK;
}

/* Ceilings of the other symbols, with names of our own. */
static rung_status copy_ceilings(rung_ladder *l, const rung_ladder_options *o, rung_error *error) {
  rung_host *host = l->cache.host;
  l->ceiling = rung_host_array(host, o->ceilings + 1, sizeof *l->ceiling);
  for (size_t i = 0; i < o->ceilings; i++) l->names_bytes += strlen(o->ceiling[i].symbol) + 1;
  l->names = rung_host_alloc(host, RUNG_MEMORY_host, l->names_bytes, 0);
  l->ceilings = o->ceilings;
  if (!l->ceiling || !l->names) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ladder: out of memory");
  char *at = l->names;
  for (size_t i = 0; i < o->ceilings; i++) {
    const size_t bytes = strlen(o->ceiling[i].symbol) + 1;
    memcpy(at, o->ceiling[i].symbol, bytes);
    l->ceiling[i] = (rung_binding){at, o->ceiling[i].value};
    at += bytes;
  }
  return RUNG_OK;
}

static rung_status fill(rung_ladder *l, rung_device *device, const rung_build *build, const rung_range *ranges,
                        size_t count, const rung_ladder_options *o, rung_error *error) {
  rung_cache_options options = rung_cache_options_default();
  options.entries = count;
  options.bytes = o->keep_all ? 0 : o->bytes;
  options.compile = o->compile;
  options.no_compile = o->no_compile;
  RUNG_TRY(rung_entries_init(&l->cache, device, &options, error));
  l->cache.large_bytes = o->large_bytes;
  l->cache.large_limit = o->keep_all ? 0 : o->large_rungs ? o->large_rungs : device->target->own_memory ? 1 : 0;
  l->cache.keeps_template = true;
  memcpy(l->symbol, o->symbol, strlen(o->symbol) + 1);
  l->cache.symbol = l->symbol;
  l->context = o->context;
  RUNG_TRY(rung_entries_keep_build(&l->cache, build, error));
  l->range = rung_host_array(l->cache.host, count, sizeof *l->range);
  if (!l->range) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ladder: out of memory");
  l->rungs = count;
  memcpy(l->range, ranges, count * sizeof *ranges);
  return copy_ceilings(l, o, error);
}

rung_status rung_ladder_create(rung_device *device, const rung_build *build, const rung_range *ranges, size_t count,
                               const rung_ladder_options *options, rung_error *error, rung_ladder **out_ladder) {
  const rung_ladder_options o = options ? *options : rung_ladder_options_default();
  if (!device || !build || !out_ladder)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: device, build and out_ladder are required");
  RUNG_TRY(check_options(&o, error));
  RUNG_TRY(check_ranges(ranges, count, error));
  rung_ladder *l = rung_host_alloc(rung_device_host(device), RUNG_MEMORY_host, sizeof *l, 0);
  if (!l) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ladder: out of memory");
  const rung_status status = fill(l, device, build, ranges, count, &o, error);
  if (status) {
    rung_ladder_destroy(l);
    return status;
  }
  *out_ladder = l;
  return RUNG_OK;
}

void rung_ladder_destroy(rung_ladder *l) {
  if (!l) return;
  rung_host *host = l->cache.host;
  rung_host_retain(host);
  rung_host_free(host, RUNG_MEMORY_host, l->range, l->rungs * sizeof *l->range);
  rung_host_free(host, RUNG_MEMORY_host, l->ceiling, (l->ceilings + 1) * sizeof *l->ceiling);
  rung_host_free(host, RUNG_MEMORY_host, l->names, l->names_bytes);
  rung_entries_finish(&l->cache);
  rung_host_free(host, RUNG_MEMORY_host, l, sizeof *l);
  rung_host_release(host);
}

rung_cache *rung_ladder_cache(rung_ladder *l) { return l ? &l->cache : NULL; }
size_t rung_ladder_rungs(const rung_ladder *l) { return l ? l->rungs : 0; }

/* ---- programs */

rung_status rung_ladder_lookup(const rung_ladder *l, int64_t key, rung_error *error, size_t *out_rung,
                               int64_t *out_ceiling) {
  if (!l) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder is required");
  size_t lo = 0, hi = l->rungs; /* the first range that ends behind the key */
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (l->range[mid].end <= key)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == l->rungs || key < l->range[lo].start)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "ladder: no rung holds key %" PRId64 "; there are %zu from %" PRId64 " to %" PRId64, key, l->rungs,
                     l->range[0].start, l->range[l->rungs - 1].end - 1);
  if (out_rung) *out_rung = lo;
  if (out_ceiling) *out_ceiling = l->range[lo].end - 1;
  return RUNG_OK;
}

typedef struct rung_of {
  const rung_ladder *ladder;
  bool warm;
} rung_of;

static rung_status make_rung(void *self, rung_gate *gate, uint64_t key, rung_error *error, rung_program **out_program,
                             rung_view **out_view) {
  const rung_of *of = self;
  const rung_ladder *l = of->ladder;
  const size_t count = l->ceilings + 1;
  rung_binding *binding = rung_host_array(gate->cache->host, count, sizeof *binding);
  if (!binding) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ladder: out of memory");
  if (l->ceilings) memcpy(binding, l->ceiling, l->ceilings * sizeof *binding);
  binding[l->ceilings] = (rung_binding){l->symbol, l->range[key].end - 1};
  rung_template *t = NULL;
  rung_status status = rung_entries_template(gate->cache, false, error, &t);
  if (!status && of->warm) status = rung_tune_warm(t, binding, count, error);
  if (!status) status = rung_program_make(t, binding, count, rung_gate_pass, gate, error, out_program);
  rung_template_release(t);
  rung_host_free(gate->cache->host, RUNG_MEMORY_host, binding, count * sizeof *binding);
  *out_view = gate->cache->build.view;
  return status;
}

rung_status rung_ladder_program(rung_ladder *l, size_t rung, rung_climb how, rung_error *error,
                                rung_program **out_program, rung_entry **out_entry) {
  rung_of of = {.ladder = l, .warm = how.warm};
  const rung_ask ask = {.key = rung, .make = make_rung, .self = &of, .warm = how.warm, .run = how.run, .own = how.own};
  return rung_entries_get(&l->cache, &ask, error, out_program, out_entry);
}

rung_status rung_ladder_get(rung_ladder *l, int64_t key, rung_error *error, rung_program **out_program) {
  if (!l || !out_program) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: ladder and out_program are required");
  size_t rung;
  RUNG_TRY(rung_ladder_lookup(l, key, error, &rung, NULL));
  return rung_ladder_program(l, rung, (rung_climb){0}, error, out_program, NULL);
}

rung_status rung_ladder_template(rung_ladder *l, rung_error *error, rung_template **out_template) {
  if (!l || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder: ladder and out_template are required");
  return rung_entries_template(&l->cache, true, error, out_template);
}

rung_status rung_ladder_warm(rung_ladder *l, const size_t *rungs, size_t count, rung_error *error) {
  if (!l) return rung_fail(error, RUNG_INVALID_ARGUMENT, "ladder is required");
  const size_t n = rungs ? count : l->rungs;
  for (size_t i = 0; i < n; i++)
    if (rungs && rungs[i] >= l->rungs)
      return rung_fail(error, RUNG_OUT_OF_RANGE, "ladder: there is no rung %zu, there are %zu", rungs[i], l->rungs);
  for (size_t i = 0; i < n; i++) {
    rung_program *program;
    const size_t rung = rungs ? rungs[i] : i;
    RUNG_TRY(rung_ladder_program(l, rung, (rung_climb){.warm = true}, error, &program, NULL));
    const rung_status status =
        rung_program_rehearse(program, l->symbol, l->range[rung].start, l->range[rung].end - 1, error);
    rung_program_release(program);
    RUNG_TRY(status);
  }
  return RUNG_OK;
}

/* ---- evicting by hand */

void rung_ladder_evict_except(rung_ladder *l, size_t rung) {
  if (!l) return;
  rung_leaving leaving = {0};
  rung_mutex_lock(&l->cache.lock);
  for (size_t i = l->cache.entries; i-- > 0;)
    if (l->cache.entry[i]->key != rung) rung_entries_take_out(&l->cache, i, &leaving);
  rung_entries_unlock(&l->cache, &leaving);
}

int64_t rung_ladder_evict_one_except(rung_ladder *l, int64_t except) {
  if (!l) return RUNG_NO_RUNG;
  rung_leaving leaving = {0};
  int64_t gone = RUNG_NO_RUNG;
  rung_mutex_lock(&l->cache.lock);
  for (size_t i = l->cache.entries; i-- > 0 && gone == RUNG_NO_RUNG;) {
    if (except >= 0 && l->cache.entry[i]->key == (uint64_t)except) continue;
    gone = (int64_t)l->cache.entry[i]->key;
    rung_entries_take_out(&l->cache, i, &leaving);
  }
  rung_entries_unlock(&l->cache, &leaving);
  return gone;
}

void rung_ladder_clear(rung_ladder *l) { rung_cache_clear(rung_ladder_cache(l)); }

void rung_ladder_note_bytes(rung_ladder *l, int64_t key, uint64_t bytes) {
  size_t rung;
  rung_error ignored;
  if (l && !rung_ladder_lookup(l, key, &ignored, &rung, NULL)) rung_cache_note_bytes(&l->cache, rung, bytes);
}

void rung_ladder_trim(rung_ladder *l) {
  if (!l) return;
  rung_leaving leaving = {0};
  rung_mutex_lock(&l->cache.lock);
  for (rung_own **at = &l->cache.own; *at;) {
    rung_own *own = *at;
    if (own->busy) {
      at = &own->next;
      continue;
    }
    *at = own->next;
    own->next = leaving.own;
    leaving.own = own;
  }
  rung_entries_unlock(&l->cache, &leaving);
}
