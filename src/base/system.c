/* SPDX-License-Identifier: MIT
 * The default allocator: malloc for the heap calls, mmap for the page calls. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_internal.h"

static void *heap_alloc(void *self, size_t bytes, size_t align) {
  (void)self;
  if (align <= sizeof(max_align_t)) return malloc(bytes);
  void *p = NULL;
  return posix_memalign(&p, align, bytes) ? NULL : p;
}

static void heap_free(void *self, void *p, size_t bytes) {
  (void)self;
  (void)bytes;
  free(p);
}

static void *pages_reserve(void *self, size_t bytes) {
  (void)self;
  void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static bool pages_commit(void *self, void *p, size_t bytes) {
  (void)self;
  return mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0;
}

/* Unreadable again, so that a use after decommit is seen at once and not as zeros. */
static void pages_decommit(void *self, void *p, size_t bytes) {
  (void)self;
  (void)madvise(p, bytes, MADV_DONTNEED);
  (void)mprotect(p, bytes, PROT_NONE);
}

static void pages_release(void *self, void *p, size_t bytes) {
  (void)self;
  (void)munmap(p, bytes);
}

rung_allocator rung_system_allocator(void) {
  const long page = sysconf(_SC_PAGESIZE);
  return (rung_allocator){.size = sizeof(rung_allocator),
                          .page = page > 0 ? (size_t)page : 4096,
                          .alloc = heap_alloc,
                          .free = heap_free,
                          .reserve = pages_reserve,
                          .commit = pages_commit,
                          .decommit = pages_decommit,
                          .release = pages_release};
}

void rung_system_finish_huge(rung_huge *huge) {
  if (huge->next != huge->end) (void)munmap(huge->next, (size_t)(huge->end - huge->next));
  *huge = (rung_huge){NULL, NULL, 0};
}

/* Readable and writable at once: pages are taken when they are touched, a large one only if all of it may be. */
bool rung_system_start_huge(const rung_allocator *allocator, rung_huge *huge, size_t bytes) {
  const size_t large = (size_t)2 << 20;
  if (allocator->reserve != pages_reserve || bytes > SIZE_MAX - large) return false;
  uint8_t *p = mmap(NULL, bytes + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  const size_t behind = ((uintptr_t)p + bytes + large) % large, before = large - behind;
  if (before) (void)munmap(p, before);
  if (behind) (void)munmap(p + before + bytes, behind);
  rung_system_finish_huge(huge);
  *huge = (rung_huge){p + before, p + before + bytes, 0};
  (void)madvise(huge->next, bytes, MADV_HUGEPAGE);
  return true;
}

void *rung_system_take_huge(rung_huge *huge, size_t bytes) {
  if ((size_t)(huge->end - huge->next) < bytes) return NULL;
  void *p = huge->next;
  huge->next += bytes;
  return p;
}

void rung_system_advise_pages(const rung_allocator *allocator, void *p, size_t bytes, bool huge) {
  if (allocator->reserve != pages_reserve) return;
  (void)madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}
