/* SPDX-License-Identifier: MIT
 * Values: what a store holds for its tensors, now and after the next commit; reading and writing their elements in f32
 * or in the type they are stored in. */
#include <inttypes.h>
#include <string.h>

#include "ir/type.h"
#include "weights/slots.h"

/* ---- life */

void rung_tensor_value_retain(rung_tensor_value *value) {
  if (value) atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
}

void rung_tensor_value_release(rung_weights *weights, rung_tensor_value *value) {
  if (!value || atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) != 1) return;
  const uint64_t bytes = value->entry->bytes;
  rung_host_free(weights->host, RUNG_MEMORY_weights, (void *)(uintptr_t)value->data, bytes);
  atomic_fetch_sub_explicit(&weights->set_bytes, bytes, memory_order_relaxed);
  rung_host_free(weights->host, RUNG_MEMORY_host, value, sizeof *value);
}

static rung_status make(rung_weights *weights, const rung_tensor_entry *entry, rung_error *error,
                        rung_tensor_value **out_value) {
  rung_tensor_value *value = rung_host_alloc(weights->host, RUNG_MEMORY_host, sizeof *value, 0);
  if (!value) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tensor '%s': out of memory", entry->name);
  value->data = rung_host_alloc_raw(weights->host, RUNG_MEMORY_weights, entry->bytes, 64);
  if (!value->data) {
    rung_host_free(weights->host, RUNG_MEMORY_host, value, sizeof *value);
    RUNG_TRY(rung_host_would_fit(weights->host, entry->bytes, entry->name, error));
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "tensor '%s': no memory for %" PRIu64 " bytes", entry->name,
                     entry->bytes);
  }
  atomic_init(&value->references, 1);
  value->entry = entry;
  value->set = true;
  atomic_fetch_add_explicit(&weights->set_bytes, entry->bytes, memory_order_relaxed);
  *out_value = value;
  return RUNG_OK;
}

/* Mapped pages that were read on the way, and that nobody needs where they lie, go again. */
static void rest(rung_weights *weights, const rung_tensor_value *value, uint64_t offset, uint64_t bytes) {
  if (!value || !rung_tensor_value_can_let_go(weights, value)) return;
  rung_mutex_lock(&weights->lock);
  const bool needed = rung_slot_of(weights, value->entry)->accounted != 0;
  rung_mutex_unlock(&weights->lock);
  if (!needed) (void)rung_weights_let_go(weights, value->entry, offset, bytes);
}

/* ---- elements */

/* Which elements of a tensor `bytes` of `type` at byte `offset` of its own layout are. */
static rung_status find_elements(const rung_tensor_entry *entry, uint64_t offset, rung_type type, uint64_t bytes,
                                 rung_error *error, uint64_t *out_count) {
  const rung_type_row *own = rung_type_get(entry->type);
  if (type != entry->type && type != RUNG_TYPE_F32)
    return rung_fail(error, RUNG_TYPE_MISMATCH, "tensor '%s' is %s: it takes and gives %s and f32, not %s", entry->name,
                     own->name, own->name, rung_type_name(type));
  if (offset % own->bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s': offset %" PRIu64 " is inside an element of %d bytes",
                     entry->name, offset, own->bytes);
  const uint64_t unit = type == entry->type ? own->bytes : (uint64_t)own->block * sizeof(float);
  if (bytes % unit)
    return rung_fail(error, RUNG_SHAPE_MISMATCH,
                     "tensor '%s': %" PRIu64 " bytes of %s are no whole number of elements or blocks (%" PRIu64
                     " bytes)",
                     entry->name, bytes, rung_type_name(type), unit);
  const uint64_t blocks = bytes / unit, all = entry->bytes / own->bytes, first = offset / own->bytes;
  if (first > all || blocks > all - first)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "tensor '%s' has %" PRIu64 " elements, not %" PRIu64 " from number %" PRIu64 " on", entry->name,
                     all * own->block, blocks * own->block, first * own->block);
  *out_count = blocks * own->block;
  return RUNG_OK;
}

enum { PIECE = 1024 }; /* a multiple of every block; floats of the caller may lie anywhere, these are aligned */

static void convert_in(const rung_type_row *own, const uint8_t *from, uint8_t *to, uint64_t count) {
  float piece[PIECE];
  for (uint64_t at = 0; at < count; at += PIECE) {
    const size_t n = count - at < PIECE ? (size_t)(count - at) : PIECE;
    memcpy(piece, from + at * sizeof(float), n * sizeof(float));
    own->from_f32(piece, to + at / own->block * own->bytes, n);
  }
}

static void convert_out(const rung_type_row *own, const uint8_t *from, uint8_t *to, uint64_t count) {
  float piece[PIECE];
  for (uint64_t at = 0; at < count; at += PIECE) {
    const size_t n = count - at < PIECE ? (size_t)(count - at) : PIECE;
    own->to_f32(from + at / own->block * own->bytes, piece, n);
    memcpy(to + at * sizeof(float), piece, n * sizeof(float));
  }
}

rung_status rung_tensor_value_copy(rung_weights *weights, const rung_tensor_entry *entry, rung_weights *from,
                                   const rung_tensor_value *value, rung_error *error, rung_tensor_value **out_value) {
  RUNG_TRY(make(weights, entry, error, out_value));
  memcpy((void *)(uintptr_t)(*out_value)->data, value->data, entry->bytes);
  rest(from, value, 0, entry->bytes);
  return RUNG_OK;
}

static rung_status check_write(const rung_tensor_entry *entry, const rung_tensor_value *base,
                               const rung_weight_write *write, rung_error *error, uint64_t *out_count) {
  const rung_type_row *own = rung_type_get(entry->type);
  RUNG_TRY(find_elements(entry, write->offset, write->type, write->bytes, error, out_count));
  if (!write->data && write->bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s': no data", entry->name);
  if (write->type != entry->type && !own->from_f32)
    return rung_fail(error, RUNG_UNSUPPORTED, "tensor '%s': f32 cannot be converted to %s; give its blocks",
                     entry->name, own->name);
  const uint64_t all = entry->bytes / own->bytes * own->block;
  if (write->whole && *out_count != all)
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "tensor '%s' has %" PRIu64 " elements, %" PRIu64 " were given",
                     entry->name, all, *out_count);
  if (!base && *out_count != all)
    return rung_fail(error, RUNG_NOT_LOADED, "tensor '%s' has no value that a part of it could be set in", entry->name);
  return RUNG_OK;
}

rung_status rung_tensor_value_write(rung_weights *weights, const rung_tensor_entry *entry,
                                    const rung_tensor_value *base, rung_tensor_value *pending,
                                    const rung_weight_write *write, rung_error *error, rung_tensor_value **out_value) {
  uint64_t count;
  RUNG_TRY(check_write(entry, pending ? pending : base, write, error, &count));
  rung_tensor_value *value = pending;
  const rung_type_row *own = rung_type_get(entry->type);
  if (!value) {
    RUNG_TRY(make(weights, entry, error, &value));
    if (base && count / own->block * own->bytes < entry->bytes) {
      memcpy((void *)(uintptr_t)value->data, base->data, entry->bytes);
      rest(weights, base, 0, entry->bytes);
    }
  }
  uint8_t *to = (uint8_t *)(uintptr_t)value->data + write->offset;
  if (write->type != entry->type)
    convert_in(own, write->data, to, count);
  else if (write->bytes)
    memcpy(to, write->data, write->bytes);
  *out_value = value;
  return RUNG_OK;
}

rung_status rung_tensor_value_read(rung_weights *weights, const rung_tensor_entry *entry,
                                   const rung_tensor_value *value, const rung_weight_read *read, rung_error *error) {
  uint64_t count;
  if (!value) return rung_fail(error, RUNG_NOT_LOADED, "tensor '%s' has no value", entry->name);
  RUNG_TRY(find_elements(entry, read->offset, read->type, read->bytes, error, &count));
  if (!read->out && read->bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tensor '%s': no room", entry->name);
  const uint8_t *from = (const uint8_t *)value->data + read->offset;
  if (read->type != entry->type)
    convert_out(rung_type_get(entry->type), from, read->out, count);
  else if (read->bytes)
    memcpy(read->out, from, read->bytes);
  const rung_type_row *own = rung_type_get(entry->type);
  rest(weights, value, read->offset, count / own->block * own->bytes);
  return RUNG_OK;
}

/* ---- generations of the store */

rung_tensor_value *rung_weights_value(rung_weights *weights, const rung_tensor_entry *entry) {
  rung_mutex_lock(&weights->lock);
  rung_tensor_value *value = rung_slot_of(weights, entry)->now;
  rung_tensor_value_retain(value);
  rung_mutex_unlock(&weights->lock);
  return value;
}

bool rung_weights_is_loaded(const rung_weights *weights, const rung_tensor_entry *entry) {
  rung_mutex *lock = (rung_mutex *)(uintptr_t)&weights->lock;
  rung_mutex_lock(lock);
  const bool loaded = rung_slot_of(weights, entry)->now != NULL;
  rung_mutex_unlock(lock);
  return loaded;
}

rung_tensor_value *rung_weights_now(const rung_weights *weights, const rung_tensor_entry *entry) {
  return rung_slot_of(weights, entry)->now;
}

rung_tensor_value *rung_weights_pending(const rung_weights *weights, const rung_tensor_entry *entry) {
  return weights->pending ? rung_slot_of(weights, entry)->pending : NULL;
}

bool rung_weights_has_pending(const rung_weights *weights) { return weights->pending != 0; }
uint64_t rung_weights_set_bytes(const rung_weights *weights) {
  return atomic_load_explicit(&weights->set_bytes, memory_order_relaxed);
}

void rung_weights_publish(rung_weights *weights) {
  rung_mutex_lock(&weights->lock);
  for (size_t i = 0; i < weights->count; i++) {
    rung_slot *s = weights->slots[i];
    if (!s->pending) continue;
    rung_tensor_value *before = s->now;
    s->now = s->pending;
    s->pending = before;
  }
  rung_mutex_unlock(&weights->lock);
}

void rung_weights_drop_pending(rung_weights *weights) {
  for (size_t i = 0; i < weights->count; i++) {
    rung_slot *s = weights->slots[i];
    /* The source's own value is the store's while it lives, whether it is the current one or not. */
    if (s->pending != &s->first) rung_tensor_value_release(weights, s->pending);
    s->pending = NULL;
  }
  weights->pending = 0;
}

void rung_weights_lock_change(rung_weights *weights) { rung_mutex_lock(&weights->change); }
void rung_weights_unlock_change(rung_weights *weights) { rung_mutex_unlock(&weights->change); }

void rung_weights_attach(rung_weights *weights, void *object, void (*destroy)(void *object), void **out) {
  rung_mutex_lock(&weights->lock);
  if (!weights->attached) {
    weights->attached = object;
    weights->destroy_attached = destroy;
  }
  *out = weights->attached;
  rung_mutex_unlock(&weights->lock);
}

void *rung_weights_attached(const rung_weights *weights) {
  rung_mutex *lock = (rung_mutex *)(uintptr_t)&weights->lock;
  rung_mutex_lock(lock);
  void *object = weights->attached;
  rung_mutex_unlock(lock);
  return object;
}

/* ---- the public calls */

static rung_status find(const rung_weights *weights, const char *name, rung_error *error,
                        const rung_tensor_entry **out_entry) {
  if (!weights || !name) return rung_fail(error, RUNG_INVALID_ARGUMENT, "weights and a name are required");
  *out_entry = rung_weights_find(weights, name);
  return *out_entry ? RUNG_OK : rung_fail(error, RUNG_NOT_FOUND, "there is no tensor '%s'", name);
}

static rung_status set(rung_weights *weights, const rung_weight_write *write, rung_error *error) {
  const rung_tensor_entry *entry;
  RUNG_TRY(find(weights, write->name, error, &entry));
  rung_slot *s = rung_slot_of(weights, entry);
  rung_mutex_lock(&weights->change);
  rung_tensor_value *value;
  const rung_status status = rung_tensor_value_write(weights, entry, s->now, s->pending, write, error, &value);
  if (!status && !s->pending) {
    s->pending = value;
    weights->pending++;
  }
  rung_mutex_unlock(&weights->change);
  return status;
}

rung_status rung_weights_set(rung_weights *weights, const char *name, rung_type type, const void *data, uint64_t bytes,
                             rung_error *error) {
  return set(weights, &(rung_weight_write){.name = name, .whole = true, .type = type, .data = data, .bytes = bytes},
             error);
}

rung_status rung_weights_set_range(rung_weights *weights, const char *name, uint64_t offset, rung_type type,
                                   const void *data, uint64_t bytes, rung_error *error) {
  return set(weights, &(rung_weight_write){.name = name, .offset = offset, .type = type, .data = data, .bytes = bytes},
             error);
}

void rung_weights_discard(rung_weights *weights) {
  if (!weights) return;
  rung_mutex_lock(&weights->change);
  rung_weights_drop_pending(weights);
  rung_mutex_unlock(&weights->change);
}

rung_status rung_weights_get(rung_weights *weights, const char *name, uint64_t offset, rung_type type, void *out,
                             uint64_t bytes, rung_error *error) {
  const rung_tensor_entry *entry;
  RUNG_TRY(find(weights, name, error, &entry));
  rung_tensor_value *value = rung_weights_value(weights, entry);
  const rung_status status = rung_tensor_value_read(
      weights, entry, value,
      &(rung_weight_read){.name = name, .offset = offset, .type = type, .out = out, .bytes = bytes}, error);
  rung_tensor_value_release(weights, value);
  return status;
}
