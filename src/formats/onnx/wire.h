/* SPDX-License-Identifier: MIT
 * Protobuf's wire format, read in place: a cursor over the bytes of one message gives its fields one after another.
 * Nothing is copied; a nested message is a span of the same bytes. */
#ifndef RUNG_FORMATS_ONNX_WIRE_H
#define RUNG_FORMATS_ONNX_WIRE_H

#include "base/status.h"

typedef struct rung_span {
  const uint8_t *data;
  uint64_t bytes;
} rung_span;

typedef enum rung_wire { RUNG_WIRE_VARINT = 0, RUNG_WIRE_64 = 1, RUNG_WIRE_BYTES = 2, RUNG_WIRE_32 = 5 } rung_wire;

typedef struct rung_field {
  uint32_t number;
  rung_wire wire;
  uint64_t value; /* of a varint or of a number of 32 or 64 bits */
  rung_span span; /* of BYTES */
  uint64_t at;    /* offset in the file */
} rung_field;

typedef struct rung_cursor {
  const uint8_t *file; /* where offsets count from */
  const uint8_t *next, *end;
  rung_error *error;
} rung_cursor;

static inline rung_cursor rung_cursor_of(const uint8_t *file, rung_span message, rung_error *error) {
  return (rung_cursor){file, message.data, message.data + message.bytes, error};
}
/* The next field; *out_more false at the end. Refused: varints longer than ten bytes or cut off, lengths past the end,
 * groups and other wire types, field number 0. */
rung_status rung_wire_next(rung_cursor *cursor, rung_field *out, bool *out_more);
/* One varint of a packed list. */
rung_status rung_wire_varint(rung_cursor *cursor, uint64_t *out);

#endif
