/* SPDX-License-Identifier: MIT
 * The weights store: entries in an arena, found through a hash table; sources with their owners; the account of what
 * must stay in memory. */
#include "weights/store.h"

#include <inttypes.h>
#include <string.h>

#include "ir/type.h"
#include "weights/slots.h"

/* ---- life */

rung_status rung_weights_create(rung_host *host, rung_error *error, rung_weights **out_weights) {
  if (!host || !out_weights)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "weights: host and out_weights are required");
  rung_weights *weights = (rung_weights *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *weights, 0);
  if (!weights) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a store of weights");
  const bool locked = rung_mutex_init(&weights->lock);
  if (!locked || !rung_mutex_init(&weights->change)) {
    if (locked) rung_mutex_finish(&weights->lock);
    rung_host_free(host, RUNG_MEMORY_host, weights, sizeof *weights);
    return rung_fail(error, RUNG_SYSTEM, "a lock for a store of weights could not be made");
  }
  rung_host_retain(host);
  weights->host = host;
  atomic_init(&weights->references, 1);
  rung_arena_init(&weights->arena, host);
  *out_weights = weights;
  return RUNG_OK;
}

void rung_weights_retain(rung_weights *weights) {
  atomic_fetch_add_explicit(&weights->references, 1, memory_order_relaxed);
}

void rung_weights_release(rung_weights *weights) {
  if (!weights || atomic_fetch_sub_explicit(&weights->references, 1, memory_order_acq_rel) != 1) return;
  rung_host *host = weights->host;
  if (weights->attached) weights->destroy_attached(weights->attached);
  for (size_t i = 0; i < weights->count; i++) {
    rung_slot *s = weights->slots[i];
    if (s->accounted) rung_host_unaccount(host, RUNG_MEMORY_weights, s->entry.bytes);
    rung_tensor_value_release(weights, s->pending);
    if (s->now != &s->first) rung_tensor_value_release(weights, s->now);
  }
  for (size_t i = 0; i < weights->source_count; i++) {
    if (weights->sources[i].release) weights->sources[i].release(weights->sources[i].owner);
  }
  rung_host_free(host, RUNG_MEMORY_host, weights->sources, weights->source_capacity * sizeof *weights->sources);
  rung_host_free(host, RUNG_MEMORY_host, weights->slots, weights->capacity * sizeof *weights->slots);
  rung_host_free(host, RUNG_MEMORY_host, weights->table, weights->table_size * sizeof *weights->table);
  rung_arena_finish(&weights->arena);
  rung_mutex_finish(&weights->lock);
  rung_mutex_finish(&weights->change);
  rung_host_free(host, RUNG_MEMORY_host, weights, sizeof *weights);
  rung_host_release(host);
}

rung_host *rung_weights_host(const rung_weights *weights) { return weights->host; }

/* ---- names */

static size_t probe(const rung_weights *weights, const char *name, size_t length) {
  const size_t mask = weights->table_size - 1;
  size_t at = (size_t)rung_hash64(name, length) & mask;
  for (; weights->table[at]; at = (at + 1) & mask) {
    const char *other = weights->slots[weights->table[at] - 1]->entry.name;
    if (strlen(other) == length && memcmp(other, name, length) == 0) break;
  }
  return at;
}

/* Keeps the table at most two thirds full for one more name. */
static rung_status table_room(rung_weights *weights, rung_error *error) {
  if (weights->count + 1 <= weights->table_size / 3 * 2) return RUNG_OK;
  const size_t size = weights->table_size ? weights->table_size * 2 : 16, before = weights->table_size;
  uint32_t *table = (uint32_t *)rung_host_array(weights->host, size, sizeof *table), *old = weights->table;
  if (!table) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a table of %zu tensors", size);
  weights->table = table;
  weights->table_size = size;
  for (size_t i = 0; i < weights->count; i++) {
    const char *name = weights->slots[i]->entry.name;
    table[probe(weights, name, strlen(name))] = (uint32_t)(i + 1);
  }
  rung_host_free(weights->host, RUNG_MEMORY_host, old, before * sizeof *old);
  return RUNG_OK;
}

const rung_tensor_entry *rung_weights_find(const rung_weights *weights, const char *name) {
  if (!weights->table || !name) return NULL;
  const uint32_t found = weights->table[probe(weights, name, strlen(name))];
  return found ? &weights->slots[found - 1]->entry : NULL;
}

const rung_tensor_entry *rung_weights_entry(const rung_weights *weights, size_t index) {
  return index < weights->count ? &weights->slots[index]->entry : NULL;
}

/* ---- building */

rung_status rung_weights_add_source(rung_weights *weights, const rung_weights_source *source, rung_error *error,
                                    int *out_source) {
  if (!rung_host_grow(weights->host, (void **)&weights->sources, &weights->source_capacity, weights->source_count + 1,
                      sizeof *weights->sources)) {
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a source of weights");
  }
  weights->sources[weights->source_count] = *source;
  *out_source = (int)weights->source_count++;
  return RUNG_OK;
}

rung_status rung_weights_size(rung_type type, int rank, const int64_t *extent, rung_error *error, uint64_t *out_bytes) {
  const rung_type_row *row = rung_type_get(type);
  if (!row) return rung_fail(error, RUNG_INVALID_ARGUMENT, "type %d does not exist", (int)type);
  if (rank < 0 || rank > RUNG_MAX_RANK) return rung_fail(error, RUNG_INVALID_ARGUMENT, "rank %d", rank);
  const bool blocks_of_rows = row->class_ == RUNG_CLASS_BLOCK; /* else several numbers a byte, row behind row */
  const int64_t inner = rank ? extent[rank - 1] : 1, block = blocks_of_rows ? row->block : 1;
  if (inner % block) {
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "rows of %" PRId64 " are no multiple of the block of %s, %d", inner,
                     row->name, row->block);
  }
  /* An extent of 0 makes the whole 0, but must not hide that the others do not fit. */
  int64_t elements = 1, bytes = row->bytes;
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    if (extent[i] < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "extent %d is %" PRId64, i, extent[i]);
    if (extent[i] == 0) empty = true;
    const int64_t n = extent[i] == 0 ? 1 : extent[i];
    const int64_t blocks = i == rank - 1 && extent[i] ? n / block : n;
    if (rung_mul_overflows(elements, n, &elements) || rung_mul_overflows(bytes, blocks, &bytes)) {
      return rung_fail(error, RUNG_OVERFLOW, "the product of the extents does not fit 63 bits");
    }
  }
  if (!blocks_of_rows) bytes = (elements / row->block + (elements % row->block != 0)) * row->bytes;
  *out_bytes = empty ? 0 : (uint64_t)bytes;
  return RUNG_OK;
}

static rung_status make_slot(rung_weights *weights, const rung_tensor_desc *desc, rung_error *error,
                             rung_slot **out_slot) {
  uint64_t bytes = 0;
  const rung_status status = rung_weights_size(desc->type, desc->rank, desc->extent, error, &bytes);
  if (status) return rung_fail_prefix(error, status, "tensor '%.*s'", (int)desc->name_length, desc->name);
  if (weights->count >= INT32_MAX) return rung_fail(error, RUNG_OVERFLOW, "a store holds at most 2^31 tensors");
  RUNG_TRY(table_room(weights, error));
  const size_t at = probe(weights, desc->name, desc->name_length);
  if (weights->table[at]) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%.*s' is there already", (int)desc->name_length,
                     desc->name);
  }
  rung_slot *s = (rung_slot *)rung_arena_alloc(&weights->arena, sizeof *s);
  const char *name = rung_arena_text(&weights->arena, desc->name, desc->name_length);
  if (!s || !name ||
      !rung_host_grow(weights->host, (void **)&weights->slots, &weights->capacity, weights->count + 1,
                      sizeof *weights->slots)) {
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for tensor '%.*s'", (int)desc->name_length, desc->name);
  }
  s->entry = (rung_tensor_entry){.name = name,
                                 .index = (uint32_t)weights->count,
                                 .source = -1,
                                 .type = desc->type,
                                 .rank = desc->rank,
                                 .bytes = bytes};
  memcpy(s->entry.extent, desc->extent, (size_t)desc->rank * sizeof *desc->extent);
  weights->slots[weights->count++] = s;
  weights->table[at] = (uint32_t)weights->count;
  *out_slot = s;
  return RUNG_OK;
}

static rung_status check_place(const rung_weights *weights, const char *name, size_t name_length, uint64_t bytes,
                               int source, uint64_t offset, rung_error *error) {
  if (source < 0 || (size_t)source >= weights->source_count) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%.*s': source %d does not exist", (int)name_length, name,
                     source);
  }
  const uint64_t size = weights->sources[source].map->size;
  if (offset > size || bytes > size - offset) {
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "tensor '%.*s': %" PRIu64 " bytes at offset %" PRIu64 " pass the end of the source at %" PRIu64,
                     (int)name_length, name, bytes, offset, size);
  }
  return RUNG_OK;
}

static void place(const rung_weights *weights, rung_slot *s, int source, uint64_t offset) {
  s->entry.source = source;
  s->entry.offset = offset;
  s->entry.data = weights->sources[source].map->data + offset;
  s->first.entry = &s->entry;
  s->first.data = s->entry.data;
  s->first.identified = false;
  atomic_init(&s->first.references, 1); /* the store's, which stays */
  s->now = &s->first;
}

rung_status rung_weights_declare_desc(rung_weights *weights, const rung_tensor_desc *desc, rung_error *error,
                                      const rung_tensor_entry **out_entry) {
  rung_slot *s = NULL;
  RUNG_TRY(make_slot(weights, desc, error, &s));
  if (out_entry) *out_entry = &s->entry;
  return RUNG_OK;
}

rung_status rung_weights_add(rung_weights *weights, const rung_tensor_desc *desc, int source, uint64_t offset,
                             rung_error *error, const rung_tensor_entry **out_entry) {
  uint64_t bytes = 0;
  const rung_status status = rung_weights_size(desc->type, desc->rank, desc->extent, error, &bytes);
  if (status) return rung_fail_prefix(error, status, "tensor '%.*s'", (int)desc->name_length, desc->name);
  RUNG_TRY(check_place(weights, desc->name, desc->name_length, bytes, source, offset, error));
  rung_slot *s = NULL;
  RUNG_TRY(make_slot(weights, desc, error, &s));
  place(weights, s, source, offset);
  if (out_entry) *out_entry = &s->entry;
  return RUNG_OK;
}

rung_status rung_weights_fill(rung_weights *weights, const rung_tensor_entry *entry, int source, uint64_t offset,
                              rung_error *error) {
  rung_slot *s = rung_slot_of(weights, entry);
  if (s->now) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s' has a value already", entry->name);
  RUNG_TRY(check_place(weights, entry->name, strlen(entry->name), entry->bytes, source, offset, error));
  place(weights, s, source, offset);
  return RUNG_OK;
}

/* What a caller makes by hand, without a file. */
rung_status rung_weights_declare(rung_weights *weights, const char *name, rung_type type, int rank,
                                 const int64_t *extent, rung_error *error) {
  if (!weights || !name || !name[0] || (rank > 0 && !extent))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "declare: weights, a name and extents are required");
  if (rank < 0 || rank > RUNG_MAX_RANK)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s': rank %d, at most %d", name, rank, RUNG_MAX_RANK);
  if (rung_weights_attached(weights))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s' is declared after a view was made of the store", name);
  rung_tensor_desc desc = {.name = name, .name_length = strlen(name), .type = type, .rank = rank};
  if (rank) memcpy(desc.extent, extent, (size_t)rank * sizeof *extent);
  return rung_weights_declare_desc(weights, &desc, error, NULL);
}

/* ---- identity */

bool rung_tensor_value_identified(rung_weights *weights, const rung_tensor_value *value, rung_hash *out_hash) {
  rung_mutex_lock(&weights->lock);
  const bool known = value->identified;
  if (known) *out_hash = value->identity;
  rung_mutex_unlock(&weights->lock);
  return known;
}

void rung_tensor_value_identify(rung_weights *weights, rung_tensor_value *value, rung_hash identity) {
  rung_mutex_lock(&weights->lock);
  value->identity = identity;
  value->identified = true;
  rung_mutex_unlock(&weights->lock);
}

void rung_weights_know(rung_weights *weights, const rung_tensor_entry *entry, rung_hash identity) {
  rung_slot *s = rung_slot_of(weights, entry);
  if (!s->now) { /* what it is, without its bytes */
    s->first.entry = &s->entry;
    atomic_init(&s->first.references, 1);
  }
  rung_tensor_value_identify(weights, &s->first, identity);
}

rung_tensor_value *rung_weights_known(const rung_weights *weights, const rung_tensor_entry *entry) {
  rung_slot *s = rung_slot_of(weights, entry);
  return s->first.identified ? &s->first : NULL;
}

const rung_map *rung_weights_map(const rung_weights *weights, int32_t source) {
  return source >= 0 && (size_t)source < weights->source_count ? weights->sources[source].map : NULL;
}

rung_hash rung_tensor_value_identity(rung_weights *weights, rung_tensor_value *value) {
  rung_hash identity;
  if (rung_tensor_value_identified(weights, value, &identity)) return identity;
  const rung_tensor_entry *entry = value->entry;
  /* Read outside the lock: two threads may do it at once and come to the same. The words are part of stored keys. */
  const rung_hash content = rung_hash_bytes(value->data, (size_t)entry->bytes);
  uint64_t words[4 + RUNG_MAX_RANK] = {(uint64_t)entry->type, (uint64_t)entry->rank, content.low, content.high};
  for (int i = 0; i < entry->rank; i++) words[4 + i] = (uint64_t)entry->extent[i];
  identity = rung_hash_bytes(words, sizeof words);
  rung_tensor_value_identify(weights, value, identity);
  return identity;
}

rung_status rung_weights_identity(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error,
                                  rung_hash *out_hash) {
  rung_tensor_value *value = rung_weights_value(weights, entry);
  if (!value) return rung_fail(error, RUNG_NOT_LOADED, "tensor '%s' has no value", entry->name);
  *out_hash = rung_tensor_value_identity(weights, value);
  rung_tensor_value_release(weights, value);
  return RUNG_OK;
}

/* ---- pages and account */

bool rung_weights_can_let_go(const rung_weights *weights, const rung_tensor_entry *entry) {
  return entry->source >= 0 && weights->sources[entry->source].map->kind == RUNG_MAP_PAGES;
}

uint64_t rung_weights_let_go(const rung_weights *weights, const rung_tensor_entry *entry, uint64_t offset,
                             uint64_t bytes) {
  if (!rung_weights_can_let_go(weights, entry) || offset >= entry->bytes) return 0;
  if (bytes > entry->bytes - offset) bytes = entry->bytes - offset;
  /* The page where this slice begins was cut by the slice before it: it goes now, unless it holds another tensor's end.
   */
  uint64_t start = entry->offset + offset;
  const uint64_t end = start + bytes, page = rung_host_page(weights->host);
  start -= start % page;
  if (start < entry->offset) start = entry->offset;
  return rung_map_let_go(weights->sources[entry->source].map, start, end - start);
}

void rung_weights_rest(const rung_weights *weights) {
  for (size_t i = 0; i < weights->source_count; i++)
    (void)rung_map_let_go(weights->sources[i].map, 0, weights->sources[i].map->size);
}

void rung_weights_will_need(const rung_weights *weights, const rung_tensor_entry *entry) {
  if (rung_weights_can_let_go(weights, entry)) {
    rung_map_will_need(weights->sources[entry->source].map, entry->offset, entry->bytes);
  }
}

rung_status rung_weights_account(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error) {
  if (!rung_weights_can_let_go(weights, entry)) return RUNG_OK;
  rung_slot *s = rung_slot_of(weights, entry);
  rung_mutex_lock(&weights->lock);
  rung_status status = RUNG_OK;
  if (!s->accounted) status = rung_host_account(weights->host, RUNG_MEMORY_weights, entry->bytes, error);
  if (!status) s->accounted++;
  rung_mutex_unlock(&weights->lock);
  return status ? rung_fail_prefix(error, status, "tensor '%s'", entry->name) : RUNG_OK;
}

void rung_weights_unaccount(rung_weights *weights, const rung_tensor_entry *entry) {
  if (!rung_weights_can_let_go(weights, entry)) return;
  rung_slot *s = rung_slot_of(weights, entry);
  rung_mutex_lock(&weights->lock);
  if (s->accounted && --s->accounted == 0) rung_host_unaccount(weights->host, RUNG_MEMORY_weights, entry->bytes);
  rung_mutex_unlock(&weights->lock);
}

/* ---- the public view of entries */

size_t rung_weights_count(const rung_weights *weights) { return weights->count; }

bool rung_weights_at(const rung_weights *weights, size_t index, rung_weights_info *out_info) {
  const rung_tensor_entry *entry = rung_weights_entry(weights, index);
  if (!entry) return false;
  *out_info = (rung_weights_info){.name = entry->name,
                                  .type = entry->type,
                                  .rank = entry->rank,
                                  .bytes = entry->bytes,
                                  .loaded = rung_weights_is_loaded(weights, entry)};
  memcpy(out_info->extent, entry->extent, sizeof out_info->extent);
  return true;
}

bool rung_weights_index(const rung_weights *weights, const char *name, size_t *out_index) {
  const rung_tensor_entry *entry = rung_weights_find(weights, name);
  if (entry) *out_index = entry->index;
  return entry != NULL;
}
