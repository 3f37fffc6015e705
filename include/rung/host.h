/* SPDX-License-Identifier: MIT
 * The host object: what a program hands to the library. Allocator, log sink, progress callback, memory budget.
 *
 * Every graph, store, reader and device is made with a host and takes all its memory through it. A host may be used
 * from many threads at once; it must outlive everything made with it (it is counted: destroying it early only drops the
 * caller's reference).
 */
#ifndef RUNG_HOST_H
#define RUNG_HOST_H

#include <rung/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_host rung_host;

/* Where memory comes from. All calls must be safe from several threads at once. The heap pair is required; of the page
 * calls either all four are given or none (then arenas and states are taken from the heap at their ceiling).
 *
 *   alloc(self, bytes, align)    NULL on failure; bytes > 0, align a power of two
 *   free(self, p, bytes)         p came from alloc with the same bytes
 *   reserve(self, bytes)         addresses only; a multiple of `page`; NULL on failure
 *   commit(self, p, bytes)       makes a reserved range usable; it reads as zeros when first committed; false on failure
 *   decommit(self, p, bytes)     gives the memory back, keeps the addresses
 *   release(self, p, bytes)      ends a reservation, committed parts included
 */
typedef struct rung_allocator {
  size_t size; /* sizeof(rung_allocator) */
  void *self;
  size_t page; /* granularity of the page calls, a power of two; 0 without page calls */
  void *(*alloc)(void *self, size_t bytes, size_t align);
  void (*free)(void *self, void *p, size_t bytes);
  void *(*reserve)(void *self, size_t bytes);
  bool (*commit)(void *self, void *p, size_t bytes);
  void (*decommit)(void *self, void *p, size_t bytes);
  void (*release)(void *self, void *p, size_t bytes);
} rung_allocator;

typedef enum rung_log_level { RUNG_LOG_ERROR, RUNG_LOG_WARNING, RUNG_LOG_INFO, RUNG_LOG_DEBUG } rung_log_level;
/* Called from any thread; `text` is one line without a newline and lives for the call only. */
typedef void rung_log_fn(void *self, rung_log_level level, const char *text);
/* Long work reports here: `what` is "load" (weights being checked), "compile" (passes) or "pack" (forms of weights);
 * done <= total. Called by the thread that does the work. */
typedef void rung_progress_fn(void *self, const char *what, uint64_t done, uint64_t total);

/* Memory by class, in bytes. `host` holds graphs, plans, tokenisers and metadata; it is counted, not predicted. */
#define RUNG_MEMORY_MAP(X)                                                    \
  X(weights, "source weights: mapped pages that stay needed, or read copies") \
  X(packed, "packed and derived forms of weights")                            \
  X(activations, "arenas: values between steps")                              \
  X(state, "key/value caches and other states")                               \
  X(scratch, "kernels' own work space")                                       \
  X(cache, "stored compiles held in memory")                                  \
  X(load, "slices held while packing")                                        \
  X(host, "graphs, plans, tokenisers, metadata")

typedef struct rung_memory {
#define X(name, text) uint64_t name;
  RUNG_MEMORY_MAP(X)
#undef X
} rung_memory;

typedef struct rung_host_options {
  size_t size;                     /* sizeof(rung_host_options) */
  const rung_allocator *allocator; /* NULL: malloc and mmap; copied */
  rung_log_fn *log;                /* NULL: silent */
  void *log_self;
  rung_log_level log_level; /* lines above this level are not made */
  rung_progress_fn *progress;
  void *progress_self;
  uint64_t memory_budget; /* bytes over all classes but host; 0: the smaller of cgroup limit and physical memory */
} rung_host_options;

RUNG_API rung_host_options rung_host_options_default(void);
/* options NULL: defaults. */
RUNG_API RUNG_CHECKED rung_status rung_host_create(const rung_host_options *options, rung_error *error,
                                                   rung_host **out_host);
/* Drops the caller's reference; the host goes when nothing made with it is left. NULL allowed. */
RUNG_API void rung_host_release(rung_host *host);
/* Bytes held now by class, and the largest total over all classes but host (what the budget limits) seen since creation
 * or the last reset of the peak. */
RUNG_API rung_memory rung_host_memory(const rung_host *host);
RUNG_API uint64_t rung_host_peak(const rung_host *host);
RUNG_API void rung_host_reset_peak(rung_host *host);
RUNG_API uint64_t rung_host_budget(const rung_host *host);
/* Calls of the allocator so far: heap allocations, and page commits. A run within sizes already reached makes neither.
 */
RUNG_API uint64_t rung_host_allocations(const rung_host *host);
RUNG_API uint64_t rung_host_commits(const rung_host *host);

#ifdef __cplusplus
}
#endif
#endif
