/* SPDX-License-Identifier: MIT
 * Address ranges committed page by page: one bit a page says what is committed, and only that is in the account. */
#include <string.h>

#include "base/host.h"
#include "base/host_internal.h"

static size_t word_of(size_t page) { return page / 32; }
static uint32_t bit_of(size_t page) { return (uint32_t)1 << (page % 32); }
static size_t bits_bytes(size_t pages) { return (pages + 31) / 32 * sizeof(uint32_t); }
static size_t page_of(const rung_region *region) { return rung_far_page(region->far, region->host); }

/* ---- the page calls of either memory */
static bool commit_range(const rung_region *region, uint8_t *p, size_t bytes) {
  const rung_allocator *allocator = rung_host_allocator(region->host);
  return region->far ? region->far->commit(region->far->self, p, bytes) : allocator->commit(allocator->self, p, bytes);
}
static void decommit_range(const rung_region *region, uint8_t *p, size_t bytes) {
  const rung_allocator *allocator = rung_host_allocator(region->host);
  if (region->far)
    region->far->decommit(region->far->self, p, bytes);
  else
    allocator->decommit(allocator->self, p, bytes);
}

static bool is_set(const rung_region *region, size_t page) {
  return (region->page_bits[word_of(page)] & bit_of(page)) != 0;
}

/* First page in [page, end) whose bit is `value`, or end. Whole words are skipped: runs ask this for ranges that are
 * committed already. */
static size_t next_page(const rung_region *region, size_t page, size_t end, bool value) {
  const uint32_t skip = value ? 0 : UINT32_MAX;
  while (page < end) {
    if (page % 32 == 0 && region->page_bits[word_of(page)] == skip) {
      page += 32;
    } else if (is_set(region, page) == value) {
      return page;
    } else {
      page++;
    }
  }
  return end;
}

static void set_pages(rung_region *region, size_t page, size_t end, bool value) {
  for (; page < end; page++) {
    if (value)
      region->page_bits[word_of(page)] |= bit_of(page);
    else
      region->page_bits[word_of(page)] &= ~bit_of(page);
  }
}

static bool wants_huge(rung_memory_class class_) {
  return class_ == RUNG_MEMORY_packed || class_ == RUNG_MEMORY_weights;
}

/* Keys and values grow page by page, and only what is committed as a whole becomes a large page: none is taken ahead. */
static bool gains_by_huge(rung_memory_class class_) {
  return wants_huge(class_) || class_ == RUNG_MEMORY_state || class_ == RUNG_MEMORY_activations ||
         class_ == RUNG_MEMORY_scratch;
}

static size_t whole_pages(const rung_host *host, size_t bytes) {
  const size_t page = rung_host_page(host);
  return ((bytes ? bytes : (size_t)1) + page - 1) & ~(page - 1);
}

void rung_region_expect(rung_host *host, uint64_t bytes, uint64_t *sum) {
  const uint64_t whole = whole_pages(host, (size_t)bytes);
  *sum = whole < bytes || *sum > SIZE_MAX - whole ? SIZE_MAX : *sum + whole;
}

void rung_region_expected(rung_host *host, uint64_t sum) {
  rung_host_lock(host);
  rung_huge *huge = rung_host_huge(host);
  rung_system_finish_huge(huge);
  huge->expected = sum < SIZE_MAX && rung_host_has_pages(host) ? (size_t)sum : 0;
  rung_host_unlock(host);
}

static void *reserve(const rung_region *region) {
  if (region->far) return region->far->reserve(region->far->self, region->reserved);
  const rung_allocator *allocator = rung_host_allocator(region->host);
  void *p = NULL;
  if (wants_huge(region->class_)) {
    rung_host_lock(region->host);
    rung_huge *huge = rung_host_huge(region->host);
    const size_t expected = huge->expected;
    huge->expected = 0;
    if (expected) (void)rung_system_start_huge(allocator, huge, expected); /* else each is reserved alone */
    p = rung_system_take_huge(huge, region->reserved);
    rung_host_unlock(region->host);
  }
  return p ? p : allocator->reserve(allocator->self, region->reserved);
}

static rung_status init_heap(rung_region *region, rung_error *error) {
  region->heap = true;
  /* Zeroed, as fresh pages would be. */
  region->base =
      (uint8_t *)rung_host_alloc(region->host, region->class_, region->reserved, rung_host_page(region->host));
  if (region->base) {
    region->committed = region->reserved;
    return RUNG_OK;
  }
  const size_t bytes = region->reserved;
  RUNG_TRY(rung_host_would_fit(region->host, bytes, "region", error));
  return rung_fail(error, RUNG_OUT_OF_MEMORY, "region: %zu bytes could not be allocated", bytes);
}

rung_status rung_region_init(rung_region *region, rung_host *host, rung_memory_class class_, size_t bytes,
                             rung_error *error) {
  return rung_region_init_far(region, host, NULL, class_, bytes, error);
}

rung_status rung_region_init_far(rung_region *region, rung_host *host, const rung_far *far, rung_memory_class class_,
                                 size_t bytes, rung_error *error) {
  const size_t page = rung_far_page(far, host);
  *region = (rung_region){.host = host, .far = far, .class_ = class_};
  size_t reserved;
  if (rung_add_overflows(bytes ? bytes : (size_t)1, page - 1, &reserved))
    return rung_fail(error, RUNG_OVERFLOW, "region: %zu bytes do not fit the address space", bytes);
  region->reserved = reserved & ~(page - 1);
  rung_status status = RUNG_OK;
  if (!far && !rung_host_has_pages(host)) {
    status = init_heap(region, error);
  } else {
    if (!rung_host_fault(host, RUNG_FAULT_ALLOC)) {
      rung_host_count(host, false);
      region->base = (uint8_t *)reserve(region);
    }
    if (region->base)
      region->page_bits =
          (uint32_t *)rung_host_alloc(host, RUNG_MEMORY_host, bits_bytes(region->reserved / page), sizeof(uint64_t));
    if (region->page_bits && !far)
      rung_system_advise_pages(rung_host_allocator(host), region->base, region->reserved, gains_by_huge(class_));
    if (!region->page_bits)
      status = rung_fail(error, RUNG_OUT_OF_MEMORY, "region: %zu bytes of addresses could not be reserved",
                         region->reserved);
  }
  if (status) rung_region_finish(region);
  return status;
}

/* Commits the pages of [first, end) that are not; gives back what it committed if one call is refused. */
static bool commit_pages(rung_region *region, size_t first, size_t end) {
  const size_t page = page_of(region);
  size_t at = next_page(region, first, end, false);
  while (at < end) {
    const size_t stop = next_page(region, at, end, true);
    bool done = false;
    if (!rung_host_fault(region->host, RUNG_FAULT_COMMIT)) {
      rung_host_count(region->host, true);
      done = commit_range(region, region->base + at * page, (stop - at) * page);
    }
    if (!done) {
      for (size_t undo = next_page(region, first, at, false); undo < at;) {
        const size_t undo_end = next_page(region, undo, at, true);
        decommit_range(region, region->base + undo * page, (undo_end - undo) * page);
        undo = next_page(region, undo_end, at, false);
      }
      return false;
    }
    at = next_page(region, stop, end, false);
  }
  set_pages(region, first, end, true);
  return true;
}

rung_status rung_region_commit(rung_region *region, size_t offset, size_t bytes, rung_error *error) {
  size_t limit;
  if (rung_add_overflows(offset, bytes, &limit) || limit > region->reserved)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "region: %zu bytes at %zu are outside the %zu reserved", bytes, offset,
                     region->reserved);
  if (region->heap || !bytes) return RUNG_OK;
  const size_t page = page_of(region);
  const size_t first = offset / page, end = (limit + page - 1) / page;
  size_t missing = 0;
  for (size_t at = next_page(region, first, end, false); at < end;) {
    const size_t stop = next_page(region, at, end, true);
    missing += stop - at;
    at = next_page(region, stop, end, false);
  }
  if (!missing) return RUNG_OK;
  RUNG_TRY(rung_host_account(region->host, region->class_, missing * page, error));
  if (!commit_pages(region, first, end)) {
    rung_host_unaccount(region->host, region->class_, missing * page);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "region: %zu bytes could not be committed", missing * page);
  }
  region->committed += missing * page;
  return RUNG_OK;
}

void rung_region_decommit(rung_region *region, size_t offset, size_t bytes) {
  size_t limit;
  if (region->heap || !region->base) return;
  if (rung_add_overflows(offset, bytes, &limit) || limit > region->reserved) limit = region->reserved;
  const size_t page = page_of(region);
  const size_t end = limit / page;
  for (size_t at = next_page(region, offset / page + (offset % page != 0), end, true); at < end;) {
    const size_t stop = next_page(region, at, end, false);
    decommit_range(region, region->base + at * page, (stop - at) * page);
    set_pages(region, at, stop, false);
    region->committed -= (stop - at) * page;
    rung_host_unaccount(region->host, region->class_, (stop - at) * page);
    at = next_page(region, stop, end, true);
  }
}

rung_status rung_region_copy(rung_region *to, const rung_region *from, rung_error *error) {
  if (to->reserved != from->reserved || to->heap != from->heap || to->far != from->far)
    return rung_fail(error, RUNG_INTERNAL, "region: a copy between %zu and %zu bytes", from->reserved, to->reserved);
  if (from->heap) {
    memcpy(to->base, from->base, from->reserved);
    return RUNG_OK;
  }
  if (!from->base) return RUNG_OK;
  const size_t page = page_of(from), end = from->reserved / page;
  for (size_t at = next_page(from, 0, end, true); at < end;) {
    const size_t stop = next_page(from, at, end, false);
    RUNG_TRY(rung_region_commit(to, at * page, (stop - at) * page, error));
    rung_far_copy(from->far, to->base + at * page, from->base + at * page, (stop - at) * page);
    at = next_page(from, stop, end, true);
  }
  return RUNG_OK;
}

void rung_region_finish(rung_region *region) {
  if (!region || !region->host) return;
  rung_host *host = region->host;
  if (region->heap) {
    rung_host_free(host, region->class_, region->base, region->reserved);
  } else {
    const rung_allocator *allocator = rung_host_allocator(host);
    if (region->far && region->page_bits)
      rung_region_decommit(region, 0, region->reserved); /* what is mapped is known here alone */
    if (region->base && region->far)
      region->far->release(region->far->self, region->base, region->reserved);
    else if (region->base)
      allocator->release(allocator->self, region->base, region->reserved);
    if (region->committed) rung_host_unaccount(host, region->class_, region->committed);
    rung_host_free(host, RUNG_MEMORY_host, region->page_bits, bits_bytes(region->reserved / page_of(region)));
  }
  *region = (rung_region){0};
}
