/* SPDX-License-Identifier: MIT
 * What the files of the store share: its struct. */
#ifndef RUNG_WEIGHTS_SLOTS_H
#define RUNG_WEIGHTS_SLOTS_H

#include "base/arena.h"
#include "base/pool.h"
#include "weights/store.h"

typedef struct rung_slot {
  rung_tensor_entry entry;    /* first: a public pointer is a slot's */
  rung_tensor_value first;    /* the source's bytes; without data: none */
  rung_tensor_value *now;     /* under the lock; NULL: no value */
  rung_tensor_value *pending; /* under the lock, written under change only */
  uint32_t accounted;         /* under the lock */
} rung_slot;

struct rung_weights {
  rung_host *host;
  atomic_int references;
  rung_mutex change; /* of what becomes the next generation */
  rung_mutex lock;   /* of values, accounts, identities: everything else stands still once the store is shared */
  rung_arena arena;
  rung_slot **slots;
  size_t count, capacity;
  uint32_t *table; /* open addressing; index + 1, 0 is free */
  size_t table_size;
  rung_weights_source *sources;
  size_t source_count, source_capacity;
  size_t pending;             /* sets that wait; under change */
  _Atomic uint64_t set_bytes; /* of values set, until the last reference goes */
  void *attached;             /* under the lock */
  void (*destroy_attached)(void *object);
};

static inline rung_slot *rung_slot_of(const rung_weights *weights, const rung_tensor_entry *entry) {
  return weights->slots[entry->index];
}

#endif
