/* SPDX-License-Identifier: MIT
 * An index from hashes to small numbers, four bytes a slot: each slot keeps the number and, in the bits that are left,
 * a part of the hash, so that looking for what is absent (most look-ups of a merge loop) seldom touches the things
 * themselves. Open addressing, half full at most, filled once and then read by any number of threads. */
#ifndef RUNG_TEXT_SLOTS_H
#define RUNG_TEXT_SLOTS_H

#include "base/host.h"

typedef struct rung_slots {
  uint32_t *slot; /* 0: empty; otherwise (tag << number_bits | number + 1) */
  uint32_t mask;
  unsigned number_bits;
} rung_slots;

enum { RUNG_SLOTS_MOST = 1 << 26 };

static inline size_t rung_slots_bytes(const rung_slots *slots) {
  return ((size_t)slots->mask + 1) * sizeof *slots->slot;
}
/* For numbers in [0, count), count <= RUNG_SLOTS_MOST; false if there is no memory. */
static inline bool rung_slots_init(rung_slots *slots, rung_host *host, size_t count) {
  uint32_t size = 8;
  while (size < 2 * count) size *= 2;
  slots->number_bits = 1;
  while (((size_t)1 << slots->number_bits) <= count) slots->number_bits++;
  slots->mask = size - 1;
  slots->slot = rung_host_alloc(host, RUNG_MEMORY_host, rung_slots_bytes(slots), 0);
  return slots->slot != NULL;
}
static inline void rung_slots_finish(rung_slots *slots, rung_host *host) {
  if (slots->slot) rung_host_free(host, RUNG_MEMORY_host, slots->slot, rung_slots_bytes(slots));
  slots->slot = NULL;
}

/* Walks the numbers that may have this hash: for (rung_probe p = rung_slots_begin(s, hash); rung_slots_next(s, &p);)
 * look at p.number. After the walk p stands at the empty slot where rung_slots_put may place a new number. */
typedef struct rung_probe {
  uint32_t at, tag, number;
} rung_probe;
static inline rung_probe rung_slots_begin(const rung_slots *slots, uint64_t hash) {
  /* The lower half of the hash chooses the slot, the upper half is the tag. */
  rung_probe probe = {((uint32_t)hash & slots->mask) - 1, (uint32_t)(hash >> 32) >> slots->number_bits, 0};
  return probe;
}
static inline bool rung_slots_next(const rung_slots *slots, rung_probe *probe) {
  for (;;) {
    probe->at = (probe->at + 1) & slots->mask;
    const uint32_t slot = slots->slot[probe->at];
    if (!slot) return false;
    if (slot >> slots->number_bits != probe->tag) continue;
    probe->number = (slot & ((UINT32_C(1) << slots->number_bits) - 1)) - 1;
    return true;
  }
}
static inline void rung_slots_put(rung_slots *slots, const rung_probe *probe, uint32_t number) {
  slots->slot[probe->at] = probe->tag << slots->number_bits | (number + 1);
}

#endif
