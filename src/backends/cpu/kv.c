/* SPDX-License-Identifier: MIT
 * Keys and values of one layer inside a block of 64 positions: all keys, then all values, a position's row dense.
 *
 *   key[64][kv_heads * key_dim] value[64][kv_heads * value_dim] */
#include "backends/cpu/kernel.h"

static size_t key_values(const rung_kv_view *kv) { return (size_t)kv->kv_heads * (size_t)kv->key_dim; }
static size_t value_values(const rung_kv_view *kv) { return (size_t)kv->kv_heads * (size_t)kv->value_dim; }

size_t rung_cpu_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim) {
  return rung_type_get(type)->bytes * RUNG_KV_BLOCK * (size_t)kv_heads * ((size_t)key_dim + (size_t)value_dim);
}

/* Where the key and the value row of a position start. */
static void rows_of(const rung_kv_view *kv, int32_t slot, int64_t position, uint8_t **out_key, uint8_t **out_value) {
  const size_t bytes = rung_type_get(kv->type)->bytes, at = (size_t)(position % RUNG_KV_BLOCK);
  uint8_t *block = rung_kv_block(kv, slot, position);
  *out_key = block + at * key_values(kv) * bytes;
  *out_value = block + (RUNG_KV_BLOCK * key_values(kv) + at * value_values(kv)) * bytes;
}

void rung_cpu_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  uint8_t *key, *value;
  rows_of(kv, slot, position, &key, &value);
  const rung_type_row *type = rung_type_get(kv->type);
  type->to_f32(key, out, key_values(kv));
  type->to_f32(value, out + key_values(kv), value_values(kv));
}

void rung_cpu_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  uint8_t *key, *value;
  rows_of(kv, slot, position, &key, &value);
  const rung_type_row *type = rung_type_get(kv->type);
  type->from_f32(row, key, key_values(kv));
  type->from_f32(row + key_values(kv), value, value_values(kv));
}
