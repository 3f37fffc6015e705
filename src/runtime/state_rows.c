/* SPDX-License-Identifier: MIT
 * Rows of key/value states by hand: reading, writing, making a sequence longer, copying a prefix. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

static rung_status check_slot(const rung_state *s, const char *what, int32_t slot, rung_error *error) {
  if (s && slot >= 0 && slot < s->sequences) return RUNG_OK;
  return rung_fail(error, RUNG_OUT_OF_RANGE, "%s: there is no sequence %d", what, slot);
}

/* Positions [first, first + count) of a state that are held, and room for them in `floats` numbers. */
static rung_status find_rows(rung_state *s, const char *name, int32_t slot, int64_t first, int64_t count,
                             const void *rows, size_t floats, rung_error *error, const rung_kv_view **out_kv) {
  rung_state_quiet(s);
  rung_state_item *item = rung_state_find(s, name);
  if (!item || !rung_state_is_kv(item))
    return rung_fail(error, RUNG_NOT_FOUND, "there is no key/value state \"%s\"", name ? name : "");
  RUNG_TRY(check_slot(s, "rows", slot, error));
  const uint64_t row = rung_kv_row(&item->kv);
  if (first < 0 || count < 0 || count > s->length[slot] - first)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "state \"%s\": sequence %d has no %" PRId64 " positions from %" PRId64 " on, it holds %" PRId64,
                     name, slot, count, first, s->length[slot]);
  if (floats / row != (uint64_t)count || floats % row || (count && !rows))
    return rung_fail(error, RUNG_SHAPE_MISMATCH,
                     "state \"%s\": %" PRId64 " rows of %" PRIu64 " numbers, %zu numbers are given", name, count, row,
                     floats);
  const int64_t held = rung_state_first(s, &s->class_[item->class_], slot);
  if (count && first < held)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "state \"%s\": position %" PRId64 " has left the window of %" PRId64
                     ", the first held is %" PRId64,
                     name, first, item->kv.window, held);
  if (count) rung_state_settle(s, slot);
  *out_kv = &item->kv;
  return RUNG_OK;
}

rung_status rung_state_read_rows(rung_state *s, const char *name, int32_t slot, int64_t first, int64_t count,
                                 float *out_rows, size_t floats, rung_error *error) {
  const rung_kv_view *kv;
  RUNG_TRY(find_rows(s, name, slot, first, count, out_rows, floats, error, &kv));
  for (int64_t i = 0; i < count; i++) kv->read_row(kv, slot, first + i, out_rows + (size_t)i * rung_kv_row(kv));
  return RUNG_OK;
}

rung_status rung_state_write_rows(rung_state *s, const char *name, int32_t slot, int64_t first, int64_t count,
                                  const float *rows, size_t floats, rung_error *error) {
  const rung_kv_view *kv;
  RUNG_TRY(find_rows(s, name, slot, first, count, rows, floats, error, &kv));
  for (int64_t i = 0; i < count; i++) kv->write_row(kv, slot, first + i, rows + (size_t)i * rung_kv_row(kv));
  return RUNG_OK;
}

rung_status rung_state_extend(rung_state *s, int32_t slot, int64_t length, rung_error *error) {
  rung_state_quiet(s);
  RUNG_TRY(check_slot(s, "extend", slot, error));
  const int64_t past = s->length[slot];
  if (length < past)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "extend: sequence %d holds %" PRId64 " positions, more than %" PRId64,
                     slot, past, length);
  if (!s->classes)
    return rung_fail(error, RUNG_UNSUPPORTED, "extend: the template has no key/value state, its states have no length");
  rung_state_settle(s, slot);
  RUNG_TRY(rung_state_reserve(s, slot, past, length - past, error));
  if (length > past) rung_state_overwrite(s, slot, length);
  /* Blocks may hold what a former owner left. */
  memset(s->row, 0, s->row_floats * sizeof *s->row);
  for (uint32_t i = 0; i < s->items; i++) {
    if (!rung_state_is_kv(&s->item[i])) continue;
    const int64_t from = s->class_[s->item[i].class_].from[slot];
    for (int64_t p = past > from ? past : from; p < length; p++)
      s->item[i].kv.write_row(&s->item[i].kv, slot, p, s->row);
  }
  s->length[slot] = length;
  return RUNG_OK;
}

/* ---- copying */

static rung_status check_copy(rung_state *to, int32_t to_slot, rung_state *from, int32_t from_slot, int64_t length,
                              rung_error *error) {
  RUNG_TRY(check_slot(to, "copy", to_slot, error));
  RUNG_TRY(check_slot(from, "copy", from_slot, error));
  if (to->template_ != from->template_)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "copy: the states were made for different templates");
  if (to == from && to_slot == from_slot)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "copy: sequence %d onto itself", to_slot);
  if (!to->classes)
    return rung_fail(error, RUNG_UNSUPPORTED, "copy: the template has no key/value state; clone the whole state");
  if (length < 0 || length > from->length[from_slot])
    return rung_fail(error, RUNG_OUT_OF_RANGE, "copy: sequence %d holds %" PRId64 " positions, not %" PRId64, from_slot,
                     from->length[from_slot], length);
  for (uint32_t c = 0; c < from->classes; c++) {
    const int64_t needed = rung_class_needs(&from->class_[c], length);
    if (length && needed < rung_state_first(from, &from->class_[c], from_slot))
      return rung_fail(error, RUNG_UNSUPPORTED,
                       "copy: the first %" PRId64 " positions of sequence %d: a window of %" PRId64
                       " no longer holds position %" PRId64,
                       length, from_slot, from->class_[c].window, needed);
  }
  return RUNG_OK;
}

/* Whole blocks: what lies in the last one behind the prefix is behind the end of the copy, too. */
static void copy_class(rung_state *to, int32_t to_slot, const rung_state *from, int32_t from_slot, uint32_t c,
                       int64_t length) {
  const rung_kv_class *source = &from->class_[c];
  rung_kv_class *target = &to->class_[c];
  const int64_t last = (length - 1) / RUNG_KV_BLOCK;
  int64_t first = source->from[from_slot] / RUNG_KV_BLOCK;
  if (last - first >= target->ring) first = last - target->ring + 1;
  for (int64_t b = first; b <= last; b++) {
    const uint32_t a = source->table[(uint64_t)from_slot * source->ring + (uint64_t)b % source->ring],
                   z = target->table[(uint64_t)to_slot * target->ring + (uint64_t)b % target->ring];
    rung_far_copy(target->region.far, target->region.base + z * target->block_bytes,
                  source->region.base + a * source->block_bytes, target->block_bytes);
    to->moved += target->block_bytes;
  }
  const int64_t held = source->from[from_slot];
  target->from[to_slot] = held > first * RUNG_KV_BLOCK ? held : first * RUNG_KV_BLOCK;
}

rung_status rung_state_copy(rung_state *to, int32_t to_slot, rung_state *from, int32_t from_slot, int64_t length,
                            rung_error *error) {
  rung_state_quiet(to);
  rung_state_quiet(from);
  RUNG_TRY(check_copy(to, to_slot, from, from_slot, length, error));
  if (!length) return rung_state_truncate(to, to_slot, 0, error);
  rung_state_settle(from, from_slot);
  rung_state_settle(to, to_slot); /* so that a refusal leaves it whole */
  RUNG_TRY(rung_state_reserve(to, to_slot, 0, length, error));
  for (uint32_t c = 0; c < from->classes; c++) copy_class(to, to_slot, from, from_slot, c, length);
  to->length[to_slot] = length;
  rung_state_give_back(to, to_slot);
  return RUNG_OK;
}
