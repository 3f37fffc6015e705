/* SPDX-License-Identifier: MIT
 * Where buffers lie in the arena: largest first, each into the tightest gap that its lifetime leaves. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "plan/plan.h"

typedef struct slot {
  const rung_buffer *buffer;
  uint32_t index;
} slot;

static int larger_first(const void *a, const void *b) {
  const slot *x = a, *y = b;
  if (x->buffer->bound != y->buffer->bound) return x->buffer->bound > y->buffer->bound ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

static bool live_together(const rung_buffer *a, const rung_buffer *b) {
  return a->first <= b->last && b->first <= a->last;
}

static uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) / align * align; }

/* The first offset in [from, limit - bytes] where a buffer of another time starts; `*at` runs along with the gaps. */
static uint64_t start_within(rung_buffer *const *placed, uint32_t count, const rung_buffer *want, uint64_t from,
                             uint64_t last, uint32_t *at) {
  while (*at < count && placed[*at]->offset < from) ++*at;
  for (uint32_t i = *at; i < count && placed[i]->offset <= last; i++)
    if (!live_together(placed[i], want)) return placed[i]->offset;
  return UINT64_MAX;
}

/* `placed` is sorted by offset. Where a buffer of another time already starts is a good place: at a small binding both
 * then touch the same pages. `share`: the lowest such place; else only one in the tightest gap, and without one the
 * gap's start. */
static uint64_t choose(rung_buffer *const *placed, uint32_t count, const rung_buffer *want, uint64_t align,
                       bool share) {
  const uint64_t bytes = align_up(want->bound, align);
  uint64_t best = UINT64_MAX, best_gap = UINT64_MAX, end = 0;
  uint32_t at = 0;
  for (uint32_t i = 0; i <= count; i++) {
    if (i < count && !live_together(placed[i], want)) continue;
    const uint64_t limit = i < count ? placed[i]->offset : UINT64_MAX;
    if (limit > end && limit - end >= bytes) {
      const uint64_t start = start_within(placed, count, want, end, limit - bytes, &at);
      if (share && start != UINT64_MAX) return start;
      if (best == UINT64_MAX || limit - end < best_gap) {
        best = start != UINT64_MAX ? start : end;
        best_gap = limit - end;
      }
    }
    if (i < count && placed[i]->offset + placed[i]->bound > end)
      end = align_up(placed[i]->offset + placed[i]->bound, align);
  }
  return best;
}

/* False: an end passes the address space. */
static bool place_all(const slot *order, uint32_t buffers, rung_buffer *buffer, rung_buffer **placed, uint64_t align,
                      bool share, uint64_t *out_total) {
  uint64_t total = 0;
  for (uint32_t count = 0; count < buffers; count++) {
    rung_buffer *b = &buffer[order[count].index];
    b->offset = choose(placed, count, b, align, share);
    uint64_t end;
    if (rung_add_overflows(b->offset, b->bound, &end) || end > (uint64_t)PTRDIFF_MAX) return false;
    if (end > total) total = end;
    uint32_t at = count;
    for (; at > 0 && placed[at - 1]->offset > b->offset; at--) placed[at] = placed[at - 1];
    placed[at] = b;
  }
  *out_total = total;
  return true;
}

rung_status rung_plan_place(rung_host *host, rung_buffer *buffer, uint32_t buffers, uint64_t align, rung_error *error,
                            uint64_t *out_bytes) {
  const size_t bytes = (sizeof(slot) + sizeof(rung_buffer *)) * buffers;
  uint8_t *work = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 16);
  if (!work) return rung_fail(error, RUNG_OUT_OF_MEMORY, "plan: %zu bytes to place %u buffers", bytes, buffers);
  slot *order = (slot *)(void *)work;
  rung_buffer **placed = (rung_buffer **)(void *)(work + sizeof(slot) * buffers);
  for (uint32_t i = 0; i < buffers; i++) order[i] = (slot){&buffer[i], i};
  if (buffers) qsort(order, buffers, sizeof *order, larger_first);
  /* Few starts as long as they do not cost a larger arena at the ceiling. */
  uint64_t tight = 0, total = 0;
  bool fits = place_all(order, buffers, buffer, placed, align, false, &tight);
  if (fits && (!place_all(order, buffers, buffer, placed, align, true, &total) || total > tight))
    fits = place_all(order, buffers, buffer, placed, align, false, &total);
  rung_host_free(host, RUNG_MEMORY_host, work, bytes);
  if (!fits)
    return rung_fail(
        error, RUNG_OVERFLOW,
        "plan: the buffers of a run at the ceiling pass the address space; lower a ceiling or declare a bound");
  *out_bytes = align_up(total, align);
  return RUNG_OK;
}

typedef struct edge {
  uint64_t at;
  uint32_t buffer;
} edge;

static int by_offset(const void *a, const void *b) {
  const edge *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* Sweeps buffers by offset and compares each with those that still cover its start. */
rung_status rung_plan_check_overlap(rung_host *host, const rung_buffer *buffer, uint32_t buffers, rung_error *error) {
  const size_t bytes = sizeof(edge) * buffers + sizeof(uint32_t) * buffers;
  uint8_t *work = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 16);
  if (!work) return rung_fail(error, RUNG_OUT_OF_MEMORY, "plan: %zu bytes to check %u buffers", bytes, buffers);
  edge *order = (edge *)(void *)work;
  uint32_t *open = (uint32_t *)(void *)(work + sizeof(edge) * buffers), opens = 0;
  for (uint32_t i = 0; i < buffers; i++) order[i] = (edge){buffer[i].offset, i};
  if (buffers) qsort(order, buffers, sizeof *order, by_offset);
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < buffers && !status; i++) {
    const rung_buffer *b = &buffer[order[i].buffer];
    if (!b->bound) continue;
    uint32_t kept = 0;
    for (uint32_t j = 0; j < opens; j++) {
      const rung_buffer *o = &buffer[open[j]];
      if (o->offset + o->bound <= b->offset) continue;
      open[kept++] = open[j];
      if (live_together(o, b))
        status = rung_fail(error, RUNG_INTERNAL, "plan: buffers %u and %u live at once and share bytes from %llu",
                           open[j], order[i].buffer, (unsigned long long)b->offset);
    }
    opens = kept;
    open[opens++] = order[i].buffer;
  }
  rung_host_free(host, RUNG_MEMORY_host, work, bytes);
  return status;
}
