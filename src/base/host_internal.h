/* SPDX-License-Identifier: MIT
 * What the files of base/ share about the host; no other folder includes this. */
#ifndef RUNG_BASE_HOST_INTERNAL_H
#define RUNG_BASE_HOST_INTERNAL_H

#include "base/host.h"

/* malloc, and mmap for the page calls. */
rung_allocator rung_system_allocator(void);
/* Asks for large or small pages in a range of the system allocator's; nothing for other allocators. */
void rung_system_advise_pages(const rung_allocator *allocator, void *p, size_t bytes, bool huge);
/* One mapping that regions are cut out of, one behind the other. The system gives a large page only where a mapping
 * covers all of it, and most forms are smaller than one. The end is that of a large page, so that none is half used.
 * false for other allocators, or if there are no addresses. What is taken is released like any other range. */
typedef struct rung_huge {
  uint8_t *next, *end;
  size_t expected; /* length of the mapping that the next region of such a class makes; 0: none */
} rung_huge;
bool rung_system_start_huge(const rung_allocator *allocator, rung_huge *huge, size_t bytes);
void *rung_system_take_huge(rung_huge *huge, size_t bytes); /* NULL: not so much is left */
void rung_system_finish_huge(rung_huge *huge);
rung_huge *rung_host_huge(rung_host *host); /* under the host's lock */
const rung_allocator *rung_host_allocator(const rung_host *host);
/* Counts one allocator call: a page commit, or an allocation. */
void rung_host_count(rung_host *host, bool commit);

#endif
