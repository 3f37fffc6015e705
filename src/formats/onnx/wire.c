/* SPDX-License-Identifier: MIT
 * Protobuf's wire format. */
#include "formats/onnx/wire.h"

#include <inttypes.h>
#include <string.h>

static uint64_t place(const rung_cursor *c) { return (uint64_t)(c->next - c->file); }

rung_status rung_wire_varint(rung_cursor *c, uint64_t *out) {
  uint64_t value = 0;
  const uint64_t at = place(c);
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (c->next == c->end) return rung_fail(c->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": a number is cut off", at);
    const uint8_t byte = *c->next++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *out = value;
      return RUNG_OK;
    }
  }
  return rung_fail(c->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": a number does not fit 64 bits", at);
}

static rung_status fixed(rung_cursor *c, unsigned bytes, uint64_t *out) {
  if ((uint64_t)(c->end - c->next) < bytes)
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": a number is cut off", place(c));
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)c->next[i] << (8 * i);
  c->next += bytes;
  *out = value;
  return RUNG_OK;
}

static rung_status span(rung_cursor *c, rung_field *f) {
  uint64_t bytes;
  RUNG_TRY(rung_wire_varint(c, &bytes));
  const uint64_t left = (uint64_t)(c->end - c->next);
  if (bytes > left)
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "offset %" PRIu64 ": field %u has %" PRIu64 " bytes, but %" PRIu64 " are left", f->at, f->number,
                     bytes, left);
  f->span = (rung_span){c->next, bytes};
  c->next += bytes;
  return RUNG_OK;
}

rung_status rung_wire_next(rung_cursor *c, rung_field *f, bool *out_more) {
  *out_more = c->next != c->end;
  if (!*out_more) return RUNG_OK;
  *f = (rung_field){.at = place(c)};
  uint64_t key;
  RUNG_TRY(rung_wire_varint(c, &key));
  if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": %" PRIu64 " is no field number", f->at,
                     key >> 3);
  f->number = (uint32_t)(key >> 3);
  f->wire = (rung_wire)(key & 7);
  switch (f->wire) {
    case RUNG_WIRE_VARINT:
      return rung_wire_varint(c, &f->value);
    case RUNG_WIRE_64:
      return fixed(c, 8, &f->value);
    case RUNG_WIRE_32:
      return fixed(c, 4, &f->value);
    case RUNG_WIRE_BYTES:
      return span(c, f);
  }
  return rung_fail(c->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": wire type %u of field %u is not known", f->at,
                   (unsigned)(key & 7), f->number);
}
