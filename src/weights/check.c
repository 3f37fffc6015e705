/* SPDX-License-Identifier: MIT
 * Looks for a NaN or an infinity inside weights, packed formats included: a broken file shows here and not as a silent
 * wrong answer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/type.h"
#include "weights/store.h"

enum { SLICE_ELEMENTS = 1 << 20, PIECE = 1024 }; /* a slice's pages are let go together; a piece fits the stack */

static bool holds_no_number(const rung_type_row *row) {
  return row->class_ == RUNG_CLASS_INT || row->class_ == RUNG_CLASS_UINT || row->class_ == RUNG_CLASS_BOOL;
}

/* Plain floats by their bits alone: a whole file of them is looked through at the speed of memory. `exponent`: the bits
 * that are all set in what is no number. */
#define FIRST_BAD(name, ctype, exponent)               \
  static size_t name(const uint8_t *p, size_t n) {     \
    bool any = false;                                  \
    for (size_t i = 0; i < n; i++) {                   \
      ctype bits;                                      \
      memcpy(&bits, p + i * sizeof bits, sizeof bits); \
      any |= (bits & (exponent)) == (exponent);        \
    }                                                  \
    for (size_t i = 0; any && i < n; i++) {            \
      ctype bits;                                      \
      memcpy(&bits, p + i * sizeof bits, sizeof bits); \
      if ((bits & (exponent)) == (exponent)) return i; \
    }                                                  \
    return n;                                          \
  }
FIRST_BAD(first_bad_f16, uint16_t, 0x7C00)
FIRST_BAD(first_bad_bf16, uint16_t, 0x7F80)
FIRST_BAD(first_bad_f32, uint32_t, UINT32_C(0x7F800000))
FIRST_BAD(first_bad_f64, uint64_t, UINT64_C(2047) << 52)
#undef FIRST_BAD

/* The first of n elements that is not finite; n if there is none. */
static size_t first_bad(rung_type type, const rung_type_row *row, const uint8_t *p, size_t n) {
  if (type == RUNG_TYPE_F16) return first_bad_f16(p, n);
  if (type == RUNG_TYPE_BF16) return first_bad_bf16(p, n);
  if (type == RUNG_TYPE_F32) return first_bad_f32(p, n);
  if (type == RUNG_TYPE_F64) return first_bad_f64(p, n);
  if (type == RUNG_TYPE_MXFP4) { /* the exponent that its standard calls NaN, and GGUF's tools a number */
    for (size_t i = 0; i < n; i += row->block) {
      if (p[i / row->block * row->bytes] == 255) return i;
    }
  }
  float x[PIECE];
  row->to_f32(p, x, n);
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(x[i])) return i;
  }
  return n;
}

static void bad_message(rung_error *error, const rung_tensor_entry *entry, bool set, uint64_t element) {
  const rung_type_row *row = rung_type_get(entry->type);
  char place[200] = "";
  int64_t index[RUNG_MAX_RANK] = {0};
  uint64_t rest = element;
  for (int i = entry->rank - 1; i >= 0; i--) {
    index[i] = (int64_t)(rest % (uint64_t)entry->extent[i]);
    rest /= (uint64_t)entry->extent[i];
  }
  size_t length = 0;
  for (int i = 0; i < entry->rank; i++) {
    length += (size_t)snprintf(place + length, sizeof place - length, "%s%" PRId64, i ? ", " : "", index[i]);
  }
  (void)rung_fail(error, RUNG_CORRUPT_FILE, "tensor '%s' (%s): element [%s] is not finite; offset %" PRIu64 "%s",
                  entry->name, row->name, place, (set ? 0 : entry->offset) + element / row->block * row->bytes,
                  set ? " of what was set" : "");
}

static rung_status check_value(rung_weights *weights, const rung_tensor_entry *entry, const rung_tensor_value *value,
                               rung_error *error, uint64_t *out_element) {
  const rung_type_row *row = rung_type_get(entry->type);
  if (holds_no_number(row)) return RUNG_OK;
  const uint64_t elements = entry->bytes / row->bytes * row->block;
  uint64_t bad = elements;
  for (uint64_t slice = 0; slice < elements && bad == elements; slice += SLICE_ELEMENTS) {
    const uint64_t end = elements - slice < SLICE_ELEMENTS ? elements : slice + SLICE_ELEMENTS;
    const uint64_t from = slice / row->block * row->bytes, to = end / row->block * row->bytes;
    for (uint64_t at = slice; at < end && bad == elements; at += PIECE) {
      const size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
      const size_t found = first_bad(entry->type, row, (const uint8_t *)value->data + at / row->block * row->bytes, n);
      if (found < n) bad = at + found;
    }
    /* A look must not make the file resident. */
    if (rung_tensor_value_can_let_go(weights, value)) (void)rung_weights_let_go(weights, entry, from, to - from);
  }
  if (bad == elements) return RUNG_OK;
  if (out_element) *out_element = bad;
  bad_message(error, entry, value->set, bad);
  return RUNG_CORRUPT_FILE;
}

rung_status rung_weights_check_tensor(rung_weights *weights, size_t index, rung_error *error, uint64_t *out_element) {
  const rung_tensor_entry *entry = rung_weights_entry(weights, index);
  if (!entry) return rung_fail(error, RUNG_OUT_OF_RANGE, "tensor %zu of %zu", index, rung_weights_count(weights));
  rung_tensor_value *value = rung_weights_value(weights, entry);
  if (!value) return rung_fail(error, RUNG_NOT_LOADED, "tensor '%s' has no value", entry->name);
  const rung_status status = check_value(weights, entry, value, error, out_element);
  rung_tensor_value_release(weights, value);
  return status;
}

rung_status rung_weights_check(rung_weights *weights, rung_error *error) {
  const size_t count = rung_weights_count(weights);
  for (size_t i = 0; i < count; i++) {
    rung_progress(rung_weights_host(weights), "load", i, count);
    if (!rung_weights_is_loaded(weights, rung_weights_entry(weights, i))) continue;
    RUNG_TRY(rung_weights_check_tensor(weights, i, error, NULL));
  }
  rung_progress(rung_weights_host(weights), "load", count, count);
  return RUNG_OK;
}
