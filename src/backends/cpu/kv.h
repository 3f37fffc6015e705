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
 * anything. */
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

#endif
