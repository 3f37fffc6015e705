/* SPDX-License-Identifier: MIT
 * What the files of base/ share about the host; no other folder includes this. */
#ifndef RUNG_BASE_HOST_INTERNAL_H
#define RUNG_BASE_HOST_INTERNAL_H

#include "base/host.h"

/* malloc, and mmap for the page calls. */
rung_allocator rung_system_allocator(void);
/* Asks for large or small pages in a range of the system allocator's; nothing for other allocators. */
void rung_system_advise_pages(const rung_allocator *allocator, void *p, size_t bytes, bool huge);
const rung_allocator *rung_host_allocator(const rung_host *host);
/* Counts one allocator call: a page commit, or an allocation. */
void rung_host_count(rung_host *host, bool commit);

#endif
