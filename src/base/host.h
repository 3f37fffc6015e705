/* SPDX-License-Identifier: MIT
 * The host seen from inside: counted memory, log, progress. Nothing under src/ outside base/ calls malloc or mmap. */
#ifndef RUNG_BASE_HOST_H
#define RUNG_BASE_HOST_H

#include <rung/host.h>

#include "base/far.h"

typedef enum rung_memory_class {
#define X(name, text) RUNG_MEMORY_##name,
  RUNG_MEMORY_MAP(X)
#undef X
      RUNG_MEMORY_CLASSES
} rung_memory_class;

void rung_host_retain(rung_host *host);

/* A short lock that all objects of a host share: for changes that several of them must see at once. Held for a few
 * pointers' time, never while anything is computed, allocated or waited for. */
void rung_host_lock(rung_host *host);
void rung_host_unlock(rung_host *host);

/* Heap. Zeroed unless said otherwise; counted under `class_`; NULL on failure or over the budget (never for class
 * host). bytes 0 gives a valid pointer that must be freed with 0. free accepts NULL. `align` 0 means 64. */
void *rung_host_alloc(rung_host *host, rung_memory_class class_, size_t bytes, size_t align);
void *rung_host_alloc_raw(rung_host *host, rung_memory_class class_, size_t bytes, size_t align); /* not zeroed */
void rung_host_free(rung_host *host, rung_memory_class class_, void *p, size_t bytes);
/* An array of count elements of class host, with overflow check. */
void *rung_host_array(rung_host *host, size_t count, size_t element);

/* Grows an array of class host to hold at least `need` elements (doubling); false on failure, the array unchanged. */
bool rung_host_grow(rung_host *host, void **array, size_t *capacity, size_t need, size_t element);

/* Address ranges for arenas, states and large forms: reserved at the ceiling, committed as needed. Without page calls
 * in the allocator a region is one heap block, committed whole. Not safe for several threads on one region. In far
 * memory base is an address there. */
typedef struct rung_region {
  rung_host *host;
  const rung_far *far; /* NULL: the host's memory */
  uint8_t *base;
  size_t reserved;     /* bytes of addresses, a multiple of the page */
  size_t committed;    /* bytes counted under class_ */
  uint32_t *page_bits; /* one bit a page: committed; class host */
  rung_memory_class class_;
  bool heap;
} rung_region;
/* What classes packed and weights will soon reserve: sizes go into a sum, and the first such region makes one mapping of
 * the sum that they are cut out of, so that large pages serve many of them. A sum of 0 ends that, and what nobody took is
 * given back. Without page calls nothing happens. */
void rung_region_expect(rung_host *host, uint64_t bytes, uint64_t *sum);
void rung_region_expected(rung_host *host, uint64_t sum);
rung_status rung_region_init(rung_region *region, rung_host *host, rung_memory_class class_, size_t bytes,
                             rung_error *error);
rung_status rung_region_init_far(rung_region *region, rung_host *host, const rung_far *far, rung_memory_class class_,
                                 size_t bytes, rung_error *error);
/* Commits [offset, offset + bytes), rounded out to pages; already committed pages are kept. Over the budget or refused
 * by the allocator: a status that names the bytes, nothing changed. */
rung_status rung_region_commit(rung_region *region, size_t offset, size_t bytes, rung_error *error);
/* Gives back whole pages inside the range. */
void rung_region_decommit(rung_region *region, size_t offset, size_t bytes);
/* Commits in `to`, of the same size, what is committed in `from`, and copies it. */
rung_status rung_region_copy(rung_region *to, const rung_region *from, rung_error *error);
void rung_region_finish(rung_region *region);
size_t rung_host_page(const rung_host *host); /* 4096 where the allocator has no pages */
static inline size_t rung_far_page(const rung_far *far, const rung_host *host) {
  return far ? far->page : rung_host_page(host);
}
bool rung_host_has_pages(const rung_host *host);

/* Memory that is not allocated here but must be in the account (mapped weights). account() refuses over the budget. */
rung_status rung_host_account(rung_host *host, rung_memory_class class_, uint64_t bytes, rung_error *error);
void rung_host_unaccount(rung_host *host, rung_memory_class class_, uint64_t bytes);
/* Would `bytes` more fit? For refusing up front with the bytes that a caller would need. */
rung_status rung_host_would_fit(const rung_host *host, uint64_t bytes, const char *what, rung_error *error);

void rung_host_log(rung_host *host, rung_log_level level, const char *format, ...) RUNG_PRINTF(3, 4);
void rung_progress(rung_host *host, const char *what, uint64_t done, uint64_t total);

/* Fault injection for tests: when set, called before each allocation (reserving addresses too), commit, thread start,
 * map and read (opening and writing files too) with the kind; true makes that call fail. NULL in use. */
typedef enum rung_fault {
  RUNG_FAULT_ALLOC,
  RUNG_FAULT_COMMIT,
  RUNG_FAULT_THREAD,
  RUNG_FAULT_MAP,
  RUNG_FAULT_READ,
  RUNG_FAULTS
} rung_fault;
typedef bool rung_fault_fn(void *self, rung_fault kind);
void rung_host_set_fault(rung_host *host, rung_fault_fn *fn, void *self);
bool rung_host_fault(rung_host *host, rung_fault kind); /* asked by base/ at each such call; host NULL: false */

#endif
