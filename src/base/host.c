/* SPDX-License-Identifier: MIT
 * The host object: options checked, memory counted by class and held under the budget, log and progress. */
#include "base/host.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/host_internal.h"
#include "base/pool.h"

enum { DEFAULT_ALIGN = 64, DEFAULT_PAGE = 4096, LOG_BYTES = 1024 };

struct rung_host {
  rung_allocator allocator;
  rung_log_fn *log;
  void *log_self;
  rung_log_level log_level;
  rung_progress_fn *progress;
  void *progress_self;
  uint64_t budget;
  rung_fault_fn *fault;
  void *fault_self;
  rung_mutex lock;
  atomic_long references;
  _Atomic uint64_t held[RUNG_MEMORY_CLASSES];
  _Atomic uint64_t total; /* over all classes but host: what the budget limits */
  _Atomic uint64_t peak;  /* of total */
  _Atomic uint64_t allocations, commits;
  rung_huge huge;
};

rung_host_options rung_host_options_default(void) {
  return (rung_host_options){.size = sizeof(rung_host_options), .log_level = RUNG_LOG_WARNING};
}

static rung_status check_allocator(const rung_allocator *given, rung_allocator *out, rung_error *error) {
  if (!given) {
    *out = rung_system_allocator();
    return RUNG_OK;
  }
  if (!given->size) return rung_fail(error, RUNG_INVALID_ARGUMENT, "host: allocator.size is 0; set it to its sizeof");
  rung_allocator a = {0};
  memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
  if (!a.alloc || !a.free) return rung_fail(error, RUNG_INVALID_ARGUMENT, "host: allocator needs alloc and free");
  const int pages = !!a.reserve + !!a.commit + !!a.decommit + !!a.release;
  if (pages != 0 && pages != 4)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "host: allocator has %d of the four page calls; give all or none",
                     pages);
  if (pages && (!a.page || (a.page & (a.page - 1))))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "host: allocator.page %zu is no power of two", a.page);
  if (!pages) a.page = 0;
  *out = a;
  return RUNG_OK;
}

rung_status rung_host_create(const rung_host_options *options, rung_error *error, rung_host **out_host) {
  rung_host_options o = rung_host_options_default();
  if (options) {
    if (!options->size)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "host: options.size is 0; use the default first");
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  }
  rung_allocator allocator;
  RUNG_TRY(check_allocator(o.allocator, &allocator, error));
  rung_host *host = (rung_host *)allocator.alloc(allocator.self, sizeof *host, DEFAULT_ALIGN);
  if (!host) return rung_fail(error, RUNG_OUT_OF_MEMORY, "host: %zu bytes", sizeof *host);
  memset(host, 0, sizeof *host);
  if (!rung_mutex_init(&host->lock)) {
    allocator.free(allocator.self, host, sizeof *host);
    return rung_fail(error, RUNG_SYSTEM, "host: no lock");
  }
  host->allocator = allocator;
  host->log = o.log;
  host->log_self = o.log_self;
  host->log_level = o.log_level;
  host->progress = o.progress;
  host->progress_self = o.progress_self;
  host->budget = o.memory_budget ? o.memory_budget : rung_memory_limit(NULL);
  if (!host->budget) host->budget = UINT64_MAX;
  atomic_init(&host->references, 1);
  atomic_init(&host->allocations, 1);
  atomic_init(&host->held[RUNG_MEMORY_host], sizeof *host);
  *out_host = host;
  return RUNG_OK;
}

void rung_host_retain(rung_host *host) { atomic_fetch_add_explicit(&host->references, 1, memory_order_relaxed); }

void rung_host_release(rung_host *host) {
  if (!host || atomic_fetch_sub_explicit(&host->references, 1, memory_order_acq_rel) != 1) return;
  const rung_allocator allocator = host->allocator;
  rung_mutex_finish(&host->lock);
  rung_system_finish_huge(&host->huge);
  allocator.free(allocator.self, host, sizeof *host);
}

rung_huge *rung_host_huge(rung_host *host) { return &host->huge; }
void rung_host_lock(rung_host *host) { rung_mutex_lock(&host->lock); }
void rung_host_unlock(rung_host *host) { rung_mutex_unlock(&host->lock); }

/* ---- account ---- */

static uint64_t load(const _Atomic uint64_t *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

static void raise_peak(rung_host *host, uint64_t total) {
  uint64_t peak = load(&host->peak);
  while (total > peak && !atomic_compare_exchange_weak_explicit(&host->peak, &peak, total, memory_order_relaxed,
                                                                memory_order_relaxed)) {
  }
}

/* Takes bytes into the account unless that exceeds the budget; class host is never refused. */
static bool take(rung_host *host, rung_memory_class class_, uint64_t bytes) {
  if (class_ != RUNG_MEMORY_host) {
    uint64_t total = load(&host->total), sum;
    do {
      if (rung_add_overflows(total, bytes, &sum) || sum > host->budget) return false;
    } while (
        !atomic_compare_exchange_weak_explicit(&host->total, &total, sum, memory_order_relaxed, memory_order_relaxed));
    raise_peak(host, sum);
  }
  atomic_fetch_add_explicit(&host->held[class_], bytes, memory_order_relaxed);
  return true;
}

void rung_host_unaccount(rung_host *host, rung_memory_class class_, uint64_t bytes) {
  if (class_ != RUNG_MEMORY_host) atomic_fetch_sub_explicit(&host->total, bytes, memory_order_relaxed);
  atomic_fetch_sub_explicit(&host->held[class_], bytes, memory_order_relaxed);
}

static const char *class_name(rung_memory_class class_) {
  static const char *const names[] = {
#define X(name, text) #name,
      RUNG_MEMORY_MAP(X)
#undef X
  };
  return names[class_];
}

rung_status rung_host_would_fit(const rung_host *host, uint64_t bytes, const char *what, rung_error *error) {
  const uint64_t total = load(&host->total);
  uint64_t sum;
  if (!rung_add_overflows(total, bytes, &sum) && sum <= host->budget) return RUNG_OK;
  return rung_fail(error, RUNG_OVER_BUDGET, "%s: %llu bytes more than the %llu held exceed the budget of %llu bytes",
                   what, (unsigned long long)bytes, (unsigned long long)total, (unsigned long long)host->budget);
}

rung_status rung_host_account(rung_host *host, rung_memory_class class_, uint64_t bytes, rung_error *error) {
  if (take(host, class_, bytes)) return RUNG_OK;
  if (rung_host_would_fit(host, bytes, class_name(class_), error)) return RUNG_OVER_BUDGET;
  /* Another thread gave memory back in between: the refusal stands, only its figures are gone. */
  return rung_fail(error, RUNG_OVER_BUDGET, "%s: %llu bytes more exceeded the budget of %llu bytes", class_name(class_),
                   (unsigned long long)bytes, (unsigned long long)host->budget);
}

rung_memory rung_host_memory(const rung_host *host) {
  return (rung_memory){
#define X(name, text) .name = load(&host->held[RUNG_MEMORY_##name]),
      RUNG_MEMORY_MAP(X)
#undef X
  };
}
uint64_t rung_host_peak(const rung_host *host) { return load(&host->peak); }
void rung_host_reset_peak(rung_host *host) {
  atomic_store_explicit(&host->peak, load(&host->total), memory_order_relaxed);
}
uint64_t rung_host_budget(const rung_host *host) { return host->budget; }
uint64_t rung_host_allocations(const rung_host *host) { return load(&host->allocations); }
uint64_t rung_host_commits(const rung_host *host) { return load(&host->commits); }

/* ---- heap ---- */

void *rung_host_alloc_raw(rung_host *host, rung_memory_class class_, size_t bytes, size_t align) {
  if (!bytes) bytes = 1;
  if (rung_host_fault(host, RUNG_FAULT_ALLOC) || !take(host, class_, bytes)) return NULL;
  rung_host_count(host, false);
  void *p = host->allocator.alloc(host->allocator.self, bytes, align ? align : DEFAULT_ALIGN);
  if (!p) rung_host_unaccount(host, class_, bytes);
  return p;
}

void *rung_host_alloc(rung_host *host, rung_memory_class class_, size_t bytes, size_t align) {
  void *p = rung_host_alloc_raw(host, class_, bytes, align);
  return p ? memset(p, 0, bytes ? bytes : 1) : NULL;
}

void rung_host_free(rung_host *host, rung_memory_class class_, void *p, size_t bytes) {
  if (!p) return;
  if (!bytes) bytes = 1;
  host->allocator.free(host->allocator.self, p, bytes);
  rung_host_unaccount(host, class_, bytes);
}

void *rung_host_array(rung_host *host, size_t count, size_t element) {
  size_t bytes;
  return rung_mul_overflows(count, element, &bytes) ? NULL : rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
}

bool rung_host_grow(rung_host *host, void **array, size_t *capacity, size_t need, size_t element) {
  if (need <= *capacity) return true;
  size_t larger, bytes;
  if (rung_mul_overflows(*capacity, (size_t)2, &larger) || larger < need) larger = need;
  if (larger < 8) larger = 8;
  if (rung_mul_overflows(larger, element, &bytes)) return false;
  void *grown = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!grown) return false;
  if (*array) {
    memcpy(grown, *array, *capacity * element);
    rung_host_free(host, RUNG_MEMORY_host, *array, *capacity * element);
  }
  *array = grown;
  *capacity = larger;
  return true;
}

/* ---- for region.c ---- */

const rung_allocator *rung_host_allocator(const rung_host *host) { return &host->allocator; }
void rung_host_count(rung_host *host, bool commit) {
  atomic_fetch_add_explicit(commit ? &host->commits : &host->allocations, 1, memory_order_relaxed);
}
size_t rung_host_page(const rung_host *host) { return host->allocator.page ? host->allocator.page : DEFAULT_PAGE; }
bool rung_host_has_pages(const rung_host *host) { return host->allocator.page != 0; }

/* ---- log, progress, faults ---- */

void rung_host_log(rung_host *host, rung_log_level level, const char *format, ...) {
  if (!host || !host->log || level > host->log_level) return;
  char line[LOG_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  for (char *p = line; *p; p++)
    if (*p == '\n') *p = ' ';
  host->log(host->log_self, level, line);
}

void rung_progress(rung_host *host, const char *what, uint64_t done, uint64_t total) {
  if (host && host->progress) host->progress(host->progress_self, what, done, total);
}

void rung_host_set_fault(rung_host *host, rung_fault_fn *fn, void *self) {
  host->fault = fn;
  host->fault_self = self;
}

bool rung_host_fault(rung_host *host, rung_fault kind) {
  return host && RUNG_UNLIKELY(host->fault != NULL) && host->fault(host->fault_self, kind);
}
