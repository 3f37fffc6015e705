/* SPDX-License-Identifier: MIT
 * Where keys and values of one layer lie inside a block of 64 positions.
 *
 *   keys                                            values
 *   head 0  panel 0   dim 0: key of slots 0 .. 15   head 0  slot 0:  dims 0, 1, .. (rounded up to 16)
 *                     dim 1: key of slots 0 .. 15           slot 1
 *                     ...                                   ...
 *           panel 1   slots 16 .. 31                        slot 63
 *           panel 2                                 head 1
 *           panel 3
 *   head 1
 *
 * Sixteen neighbouring slots of one dim are what scores are computed for at once: a query's number times that vector.
 * Sums of values go along a slot's dims. Both are read from front to back. What fills up a row of values may hold
 * anything.
 *
 * q8_0 has one byte an element; behind all of them stand the scales of 32 dims each, as f16: for each head and panel those
 * of dims 0 .. 31 of sixteen slots, then of dims 32 .. 63, ...; then for each head and slot those of its values. */
#ifndef RUNG_CPU_KV_H
#define RUNG_CPU_KV_H

#include "base/half.h"
#include "ir/args.h"

enum { RUNG_KV_PANEL = 16, RUNG_KV_PANELS = RUNG_KV_BLOCK / RUNG_KV_PANEL };

/* Elements from row to row of values. */
static inline int64_t rung_cpu_value_row(const rung_kv_view *kv) { return ((int64_t)kv->value_dim + 15) / 16 * 16; }
/* Element offsets in the block. */
static inline int64_t rung_cpu_key_offset(const rung_kv_view *kv, int64_t head, int64_t slot) {
  return (head * RUNG_KV_PANELS + slot / RUNG_KV_PANEL) * kv->key_dim * RUNG_KV_PANEL + slot % RUNG_KV_PANEL;
}
static inline int64_t rung_cpu_value_offset(const rung_kv_view *kv, int64_t head, int64_t slot) {
  return (int64_t)kv->kv_heads * RUNG_KV_BLOCK * kv->key_dim + (head * RUNG_KV_BLOCK + slot) * rung_cpu_value_row(kv);
}

enum { RUNG_KV_GROUP = 32 }; /* dims that share a scale */
/* Elements of a block without scales; where scales lie, counted in f16 from there. */
static inline int64_t rung_cpu_kv_elements(const rung_kv_view *kv) {
  return rung_cpu_value_offset(kv, kv->kv_heads, 0);
}
static inline int64_t rung_cpu_key_scale(const rung_kv_view *kv, int64_t head, int64_t slot, int64_t group) {
  const int64_t groups = kv->key_dim / RUNG_KV_GROUP;
  return ((head * RUNG_KV_PANELS + slot / RUNG_KV_PANEL) * groups + group) * RUNG_KV_PANEL + slot % RUNG_KV_PANEL;
}
static inline int64_t rung_cpu_value_scale(const rung_kv_view *kv, int64_t head, int64_t slot, int64_t group) {
  return (int64_t)kv->kv_heads * RUNG_KV_BLOCK * (kv->key_dim / RUNG_KV_GROUP) +
         (head * RUNG_KV_BLOCK + slot) * (kv->value_dim / RUNG_KV_GROUP) + group;
}
static inline int64_t rung_cpu_kv_element_bytes(rung_type type) {
  return type == RUNG_TYPE_F32 ? 4 : type == RUNG_TYPE_Q8_0 ? 1 : 2;
}
/* One slot's key or value of one head as q8_0, or back (kv.c). x and y: [key_dim], [value_dim]. */
void rung_cpu_kv_put_key(const rung_kv_view *kv, uint8_t *block, int64_t head, int64_t slot, const float *x);
void rung_cpu_kv_put_value(const rung_kv_view *kv, uint8_t *block, int64_t head, int64_t slot, const float *x);
void rung_cpu_kv_get_key(const rung_kv_view *kv, const uint8_t *block, int64_t head, int64_t slot, float *y);
void rung_cpu_kv_get_value(const rung_kv_view *kv, const uint8_t *block, int64_t head, int64_t slot, float *y);

#endif
