/* SPDX-License-Identifier: MIT
 * Rows of keys and values in the canonical order, for saving, moving and the references. */
#include "backends/cpu/kv.h"

#include <string.h>

#include "backends/cpu/kernel.h"
#include "ir/blocks.h"

enum { SCALE = 2, Q8_BYTES = SCALE + RUNG_KV_GROUP }; /* a block of q8_0: f16 scale, 32 bytes */

size_t rung_cpu_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim) {
  const rung_kv_view kv = {.kv_heads = kv_heads, .key_dim = key_dim, .value_dim = value_dim};
  const size_t elements = (size_t)rung_cpu_kv_element_bytes(type) * (size_t)rung_cpu_kv_elements(&kv);
  if (type != RUNG_TYPE_Q8_0) return elements;
  return elements + SCALE * (size_t)rung_cpu_value_scale(&kv, kv_heads, 0, 0);
}

/* ---- q8_0: the same bytes as in a row of blocks, in other places */

static uint8_t *scale_at(const rung_kv_view *kv, const uint8_t *block, int64_t scale) {
  return (uint8_t *)(uintptr_t)block + rung_cpu_kv_elements(kv) + scale * SCALE;
}

void rung_cpu_kv_put_key(const rung_kv_view *kv, uint8_t *block, int64_t head, int64_t slot, const float *x) {
  uint8_t *to = block + rung_cpu_key_offset(kv, head, slot), q[Q8_BYTES];
  for (int64_t group = 0; group < kv->key_dim / RUNG_KV_GROUP; group++, x += RUNG_KV_GROUP) {
    rung_encode_Q8_0(x, q, RUNG_KV_GROUP);
    memcpy(scale_at(kv, block, rung_cpu_key_scale(kv, head, slot, group)), q, SCALE);
    for (int d = 0; d < RUNG_KV_GROUP; d++, to += RUNG_KV_PANEL) *to = q[SCALE + d];
  }
}

void rung_cpu_kv_put_value(const rung_kv_view *kv, uint8_t *block, int64_t head, int64_t slot, const float *x) {
  uint8_t *to = block + rung_cpu_value_offset(kv, head, slot), q[Q8_BYTES];
  for (int64_t group = 0; group < kv->value_dim / RUNG_KV_GROUP; group++, x += RUNG_KV_GROUP, to += RUNG_KV_GROUP) {
    rung_encode_Q8_0(x, q, RUNG_KV_GROUP);
    memcpy(scale_at(kv, block, rung_cpu_value_scale(kv, head, slot, group)), q, SCALE);
    memcpy(to, q + SCALE, RUNG_KV_GROUP);
  }
}

void rung_cpu_kv_get_key(const rung_kv_view *kv, const uint8_t *block, int64_t head, int64_t slot, float *y) {
  const uint8_t *from = block + rung_cpu_key_offset(kv, head, slot);
  uint8_t q[Q8_BYTES];
  for (int64_t group = 0; group < kv->key_dim / RUNG_KV_GROUP; group++, y += RUNG_KV_GROUP) {
    memcpy(q, scale_at(kv, block, rung_cpu_key_scale(kv, head, slot, group)), SCALE);
    for (int d = 0; d < RUNG_KV_GROUP; d++, from += RUNG_KV_PANEL) q[SCALE + d] = *from;
    rung_decode_Q8_0(q, y, RUNG_KV_GROUP);
  }
}

void rung_cpu_kv_get_value(const rung_kv_view *kv, const uint8_t *block, int64_t head, int64_t slot, float *y) {
  const uint8_t *from = block + rung_cpu_value_offset(kv, head, slot);
  uint8_t q[Q8_BYTES];
  for (int64_t group = 0; group < kv->value_dim / RUNG_KV_GROUP; group++, y += RUNG_KV_GROUP, from += RUNG_KV_GROUP) {
    memcpy(q, scale_at(kv, block, rung_cpu_value_scale(kv, head, slot, group)), SCALE);
    memcpy(q + SCALE, from, RUNG_KV_GROUP);
    rung_decode_Q8_0(q, y, RUNG_KV_GROUP);
  }
}

/* ---- rows */

static void read_quantised(const rung_kv_view *kv, const uint8_t *block, int64_t at, float *out) {
  for (int64_t head = 0; head < kv->kv_heads; head++, out += kv->key_dim) rung_cpu_kv_get_key(kv, block, head, at, out);
  for (int64_t head = 0; head < kv->kv_heads; head++, out += kv->value_dim)
    rung_cpu_kv_get_value(kv, block, head, at, out);
}

void rung_cpu_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  const rung_type_row *type = rung_type_get(kv->type);
  const uint8_t *block = rung_kv_block(kv, slot, position);
  const int64_t at = position % RUNG_KV_BLOCK;
  if (kv->type == RUNG_TYPE_Q8_0) {
    read_quantised(kv, block, at, out);
    return;
  }
  for (int64_t head = 0; head < kv->kv_heads; head++) {
    const uint8_t *key = block + rung_cpu_key_offset(kv, head, at) * type->bytes;
    for (int64_t d = 0; d < kv->key_dim; d++) type->to_f32(key + d * RUNG_KV_PANEL * type->bytes, out++, 1);
  }
  for (int64_t head = 0; head < kv->kv_heads; head++, out += kv->value_dim)
    type->to_f32(block + rung_cpu_value_offset(kv, head, at) * type->bytes, out, (size_t)kv->value_dim);
}

static void write_quantised(const rung_kv_view *kv, uint8_t *block, int64_t at, const float *row) {
  for (int64_t head = 0; head < kv->kv_heads; head++, row += kv->key_dim) rung_cpu_kv_put_key(kv, block, head, at, row);
  for (int64_t head = 0; head < kv->kv_heads; head++, row += kv->value_dim)
    rung_cpu_kv_put_value(kv, block, head, at, row);
}

void rung_cpu_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  const rung_type_row *type = rung_type_get(kv->type);
  uint8_t *block = rung_kv_block(kv, slot, position);
  const int64_t at = position % RUNG_KV_BLOCK;
  if (kv->type == RUNG_TYPE_Q8_0) {
    write_quantised(kv, block, at, row);
    return;
  }
  for (int64_t head = 0; head < kv->kv_heads; head++) {
    uint8_t *key = block + rung_cpu_key_offset(kv, head, at) * type->bytes;
    for (int64_t d = 0; d < kv->key_dim; d++) type->from_f32(row++, key + d * RUNG_KV_PANEL * type->bytes, 1);
  }
  for (int64_t head = 0; head < kv->kv_heads; head++, row += kv->value_dim)
    type->from_f32(row, block + rung_cpu_value_offset(kv, head, at) * type->bytes, (size_t)kv->value_dim);
}
