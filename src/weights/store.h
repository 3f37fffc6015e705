/* SPDX-License-Identifier: MIT
 * The store of named tensors behind rung_weights: entries, where their bytes come from, what was set in their place,
 * and what of them must stay.
 *
 * Building (add_source, add, declare_desc, fill) is for one thread, before the store is shared. Look-up, values,
 * identity, account and let_go may be called from many. No kernels, no packed forms: those are keyed by values and live
 * in the runtime.
 *
 * Two locks. `change` is held by whoever makes a generation: sets, packs, commits; it may be held for long. The store's
 * own is short. Order: change, the host's, the store's. */
#ifndef RUNG_WEIGHTS_STORE_H
#define RUNG_WEIGHTS_STORE_H

#include <rung/weights.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/map_file.h"

typedef struct rung_tensor_entry {
  const char *name;
  uint32_t index; /* in the store's order */
  int32_t source; /* -1: declared only */
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  const void *data; /* in its source, whatever was set since; NULL: declared only. As aligned as its source: GGUF keeps
                     * 8 bytes at least, other formats nothing */
  uint64_t bytes;
  uint64_t offset; /* of data in its source, for messages and slices */
} rung_tensor_entry;

/* The content of a tensor in some generations: what its source holds, or what was set. Counted, and never changed once
 * it is published, so that a form can be keyed by the values it was made from. */
typedef struct rung_tensor_value {
  atomic_int references;
  const rung_tensor_entry *entry;
  const void *data;
  bool set;        /* a copy of its own, class weights, which goes with the last reference; else its source's bytes */
  bool identified; /* with identity, under the store's lock */
  rung_hash identity;
  bool kept; /* the identity is remembered somewhere; under change */
} rung_tensor_value;

/* Where bytes come from. `map` may be of any kind, and belongs to `owner`, which the store lets go of by release(owner)
 * when it ends (both NULL: the caller keeps the map alive). */
typedef struct rung_weights_source {
  const rung_map *map;
  void *owner;
  void (*release)(void *owner);
} rung_weights_source;

rung_host *rung_weights_host(const rung_weights *weights);
/* On failure the owner stays the caller's. */
rung_status rung_weights_add_source(rung_weights *weights, const rung_weights_source *source, rung_error *error,
                                    int *out_source);
/* Bytes that a dense tensor takes; refuses types that are none, negative extents, products that do not fit, and rows
 * that are no multiple of the block. */
rung_status rung_weights_size(rung_type type, int rank, const int64_t *extent, rung_error *error, uint64_t *out_bytes);

typedef struct rung_tensor_desc {
  const char *name;
  size_t name_length; /* the name need not be terminated; copied */
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
} rung_tensor_desc;
/* A tensor without a value. INVALID_ARGUMENT if the name is taken. out_entry NULL allowed. */
rung_status rung_weights_declare_desc(rung_weights *weights, const rung_tensor_desc *desc, rung_error *error,
                                      const rung_tensor_entry **out_entry);
/* A tensor whose bytes lie at `offset` of a source. */
rung_status rung_weights_add(rung_weights *weights, const rung_tensor_desc *desc, int source, uint64_t offset,
                             rung_error *error, const rung_tensor_entry **out_entry);
/* Gives a declared tensor its bytes. */
rung_status rung_weights_fill(rung_weights *weights, const rung_tensor_entry *entry, int source, uint64_t offset,
                              rung_error *error);

/* NULL: none. Entries do not move and live as long as the store. */
const rung_tensor_entry *rung_weights_find(const rung_weights *weights, const char *name);
const rung_tensor_entry *rung_weights_entry(const rung_weights *weights, size_t index);

/* ---- values (values.c) */

/* What the store holds for a tensor in its current generation, retained; NULL: no value. */
rung_tensor_value *rung_weights_value(rung_weights *weights, const rung_tensor_entry *entry);
bool rung_weights_is_loaded(const rung_weights *weights, const rung_tensor_entry *entry);
void rung_tensor_value_retain(rung_tensor_value *value); /* NULL allowed */
void rung_tensor_value_release(rung_weights *weights, rung_tensor_value *value);
/* The same, of the set that waits for a commit; not retained: under `change`. */
rung_tensor_value *rung_weights_pending(const rung_weights *weights, const rung_tensor_entry *entry);
/* The current value, not retained: under `change` or the host's lock. */
rung_tensor_value *rung_weights_now(const rung_weights *weights, const rung_tensor_entry *entry);

/* What a caller sets: numbers of `type`, f32 or the tensor's own, for the elements from byte `offset` of the tensor's
 * own layout on. */
typedef struct rung_weight_write {
  const char *name;
  bool whole; /* all elements, no more and no fewer; offset is 0 */
  uint64_t offset;
  rung_type type;
  const void *data;
  uint64_t bytes; /* of data */
} rung_weight_write;
/* A value with the write done: `pending`, changed where it is, if there is one; else a new one, which what `base` holds
 * goes into first where the write is of a range. */
rung_status rung_tensor_value_write(rung_weights *weights, const rung_tensor_entry *entry,
                                    const rung_tensor_value *base, rung_tensor_value *pending,
                                    const rung_weight_write *write, rung_error *error, rung_tensor_value **out_value);
/* A value of `entry` with the bytes of one of another store, whose tensor has the same type and extents. */
rung_status rung_tensor_value_copy(rung_weights *weights, const rung_tensor_entry *entry, rung_weights *from,
                                   const rung_tensor_value *value, rung_error *error, rung_tensor_value **out_value);
typedef struct rung_weight_read {
  const char *name;
  uint64_t offset;
  rung_type type;
  void *out;
  uint64_t bytes; /* of out */
} rung_weight_read;
rung_status rung_tensor_value_read(rung_weights *weights, const rung_tensor_entry *entry,
                                   const rung_tensor_value *value, const rung_weight_read *read, rung_error *error);
/* Makes the pending sets the current generation; under `change` and the host's lock. Allocates and frees nothing:
 * afterwards rung_weights_pending is the value that each set took the place of, to be dropped by
 * rung_weights_drop_pending without the host's lock. */
void rung_weights_publish(rung_weights *weights);
void rung_weights_drop_pending(rung_weights *weights);
bool rung_weights_has_pending(const rung_weights *weights);   /* under change */
uint64_t rung_weights_set_bytes(const rung_weights *weights); /* of all values set that are still held */

void rung_weights_lock_change(rung_weights *weights);
void rung_weights_unlock_change(rung_weights *weights);
/* One object that the runtime hangs on a store, let go of with it. The first one given stays; *out is what is there. */
void rung_weights_attach(rung_weights *weights, void *object, void (*destroy)(void *object), void **out);
void *rung_weights_attached(const rung_weights *weights); /* NULL: none */

/* The identity of what the store holds for a tensor: type, extents and bytes; reads them all the first time. NOT_LOADED
 * if declared only. */
rung_status rung_weights_identity(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error,
                                  rung_hash *out_hash);
/* The same of one value; and whether it is known already, or what somebody who knows says it is. */
rung_hash rung_tensor_value_identity(rung_weights *weights, rung_tensor_value *value);
bool rung_tensor_value_identified(rung_weights *weights, const rung_tensor_value *value, rung_hash *out_hash);
void rung_tensor_value_identify(rung_weights *weights, rung_tensor_value *value, rung_hash identity);
/* While building: what a declared tensor is, though its bytes are not there. Forms that were stored can be found by it;
 * for everything else the tensor has no value. */
void rung_weights_know(rung_weights *weights, const rung_tensor_entry *entry, rung_hash identity);
/* Its value without data; NULL where nothing is known. */
rung_tensor_value *rung_weights_known(const rung_weights *weights, const rung_tensor_entry *entry);
const rung_map *rung_weights_map(const rung_weights *weights, int32_t source); /* NULL: no such source */

/* Are the entry's bytes mapped pages of ours, which can be let go and fetched again? Not so for the caller's memory and
 * for copies: a report lists those. */
bool rung_weights_can_let_go(const rung_weights *weights, const rung_tensor_entry *entry);
static inline bool rung_tensor_value_can_let_go(const rung_weights *weights, const rung_tensor_value *value) {
  return !value->set && rung_weights_can_let_go(weights, value->entry);
}
/* Lets go of the pages of bytes [offset, offset + bytes) of a tensor, 0 where that cannot be done; returns the bytes
 * let go. Slices in ascending order leave no page behind but those that tensors share. */
uint64_t rung_weights_let_go(const rung_weights *weights, const rung_tensor_entry *entry, uint64_t offset,
                             uint64_t bytes);
/* Lets go of every mapped page of all sources; those that are read again come back from the file. */
void rung_weights_rest(const rung_weights *weights);
/* Soon to be read front to back. */
void rung_weights_will_need(const rung_weights *weights, const rung_tensor_entry *entry);

/* Counts a mapped tensor under class `weights`, because it is used in place and its pages must stay. Calls nest: the
 * bytes are counted once. Copies are counted since they were read, the caller's memory never: nothing happens for them.
 * OVER_BUDGET if they do not fit. */
rung_status rung_weights_account(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error);
void rung_weights_unaccount(rung_weights *weights, const rung_tensor_entry *entry);

#endif
