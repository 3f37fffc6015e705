/* SPDX-License-Identifier: MIT
 * The queue of pending merges: a binary heap of {key, value}, smallest key first. Entries that have become stale stay
 * in it and are recognised when they come out, so that nothing is ever searched for. */
#ifndef RUNG_TEXT_HEAP_H
#define RUNG_TEXT_HEAP_H

#include "base/host.h"

typedef struct rung_merge {
  uint64_t key;
  uint64_t value;
} rung_merge;

typedef struct rung_heap {
  rung_host *host;
  rung_merge *data;
  size_t count, capacity;
} rung_heap;

static inline void rung_heap_finish(rung_heap *heap) {
  if (heap->data) rung_host_free(heap->host, RUNG_MEMORY_host, heap->data, heap->capacity * sizeof *heap->data);
  heap->data = NULL;
}
/* False if there is no memory. */
static inline bool rung_heap_reserve(rung_heap *heap, size_t need) {
  if (need <= heap->capacity) return true;
  void *data = heap->data;
  if (!rung_host_grow(heap->host, &data, &heap->capacity, need, sizeof *heap->data)) return false;
  heap->data = data;
  return true;
}
static inline bool rung_heap_push(rung_heap *heap, rung_merge merge) {
  if (heap->count == heap->capacity && !rung_heap_reserve(heap, heap->count + 1)) return false;
  size_t at = heap->count++;
  while (at > 0) {
    const size_t parent = (at - 1) / 2;
    if (heap->data[parent].key <= merge.key) break;
    heap->data[at] = heap->data[parent];
    at = parent;
  }
  heap->data[at] = merge;
  return true;
}
static inline rung_merge rung_heap_pop(rung_heap *heap) {
  const rung_merge first = heap->data[0], last = heap->data[--heap->count];
  size_t at = 0;
  for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
    if (child + 1 < heap->count && heap->data[child + 1].key < heap->data[child].key) child++;
    if (heap->data[child].key >= last.key) break;
    heap->data[at] = heap->data[child];
    at = child;
  }
  heap->data[at] = last;
  return first;
}

#endif
