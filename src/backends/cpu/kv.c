/* SPDX-License-Identifier: MIT
 * Rows of keys and values in the canonical order, for saving, moving and the references. */
#include "backends/cpu/kv.h"

#include "backends/cpu/kernel.h"

size_t rung_cpu_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim) {
  const rung_kv_view kv = {.kv_heads = kv_heads, .key_dim = key_dim, .value_dim = value_dim};
  return rung_type_get(type)->bytes * (size_t)rung_cpu_value_offset(&kv, kv_heads, 0);
}

void rung_cpu_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  const rung_type_row *type = rung_type_get(kv->type);
  const uint8_t *block = rung_kv_block(kv, slot, position);
  const int64_t at = position % RUNG_KV_BLOCK;
  for (int64_t head = 0; head < kv->kv_heads; head++) {
    const uint8_t *key = block + rung_cpu_key_offset(kv, head, at) * type->bytes;
    for (int64_t d = 0; d < kv->key_dim; d++) type->to_f32(key + d * RUNG_KV_PANEL * type->bytes, out++, 1);
  }
  for (int64_t head = 0; head < kv->kv_heads; head++, out += kv->value_dim)
    type->to_f32(block + rung_cpu_value_offset(kv, head, at) * type->bytes, out, (size_t)kv->value_dim);
}

void rung_cpu_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  const rung_type_row *type = rung_type_get(kv->type);
  uint8_t *block = rung_kv_block(kv, slot, position);
  const int64_t at = position % RUNG_KV_BLOCK;
  for (int64_t head = 0; head < kv->kv_heads; head++) {
    uint8_t *key = block + rung_cpu_key_offset(kv, head, at) * type->bytes;
    for (int64_t d = 0; d < kv->key_dim; d++) type->from_f32(row++, key + d * RUNG_KV_PANEL * type->bytes, 1);
  }
  for (int64_t head = 0; head < kv->kv_heads; head++, row += kv->value_dim)
    type->from_f32(row, block + rung_cpu_value_offset(kv, head, at) * type->bytes, (size_t)kv->value_dim);
}
