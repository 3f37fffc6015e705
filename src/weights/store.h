/* SPDX-License-Identifier: MIT
 * The store of named tensors behind rung_weights: entries, where their bytes come from, and what of them must stay.
 *
 * Building (add_source, add, declare, fill) is for one thread, before the store is shared. Look-up, identity, account
 * and let_go may be called from many. No kernels, no packed forms: those are keyed by identities and live in the
 * runtime. */
#ifndef RUNG_WEIGHTS_STORE_H
#define RUNG_WEIGHTS_STORE_H

#include <rung/weights.h>

#include "base/hash.h"
#include "base/map_file.h"

typedef struct rung_tensor_entry {
  const char *name;
  uint32_t index; /* in the store's order */
  int32_t source; /* -1: declared only */
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  const void
      *data; /* NULL: declared only. As aligned as its source: GGUF keeps 8 bytes at least, other formats nothing */
  uint64_t bytes;
  uint64_t offset; /* of data in its source, for messages and slices */
} rung_tensor_entry;

/* Where bytes come from. `map` may be of any kind, and belongs to `owner`, which the store lets go of by release(owner)
 * when it ends (both NULL: the caller keeps the map alive). */
typedef struct rung_weights_source {
  const rung_map *map;
  void *owner;
  void (*release)(void *owner);
} rung_weights_source;

rung_status rung_weights_create(rung_host *host, rung_error *error, rung_weights **out_weights);
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
rung_status rung_weights_declare(rung_weights *weights, const rung_tensor_desc *desc, rung_error *error,
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

/* The identity of a tensor's content: type, extents and bytes; reads them all the first time. NOT_LOADED if declared
 * only. */
rung_status rung_weights_identity(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error,
                                  rung_hash *out_hash);

/* Are the entry's bytes mapped pages of ours, which can be let go and fetched again? Not so for the caller's memory and
 * for copies: a report lists those. */
bool rung_weights_can_let_go(const rung_weights *weights, const rung_tensor_entry *entry);
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
