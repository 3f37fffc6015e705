/* SPDX-License-Identifier: MIT
 * ONNX element types, and the numbers of a TensorProto: raw bytes as they lie, or lists of floats and varints, in which
 * narrow types take a number each (types of 4 and 2 bits: a byte each). */
#include "formats/onnx/tensor.h"

#include <inttypes.h>
#include <string.h>

#include "ir/type.h"

enum { FLOATS = 4, INT32S = 5, INT64S = 7, DOUBLES = 10, UINT64S = 11 };

static const struct {
  const char *name;
  int type; /* -1: none */
  int field;
} types[] = {{"undefined", -1, 0},
             {"float", RUNG_TYPE_F32, FLOATS},
             {"uint8", RUNG_TYPE_U8, INT32S},
             {"int8", RUNG_TYPE_I8, INT32S},
             {"uint16", RUNG_TYPE_U16, INT32S},
             {"int16", RUNG_TYPE_I16, INT32S},
             {"int32", RUNG_TYPE_I32, INT32S},
             {"int64", RUNG_TYPE_I64, INT64S},
             {"string", -1, 0},
             {"bool", RUNG_TYPE_BOOL, INT32S},
             {"float16", RUNG_TYPE_F16, INT32S},
             {"double", RUNG_TYPE_F64, DOUBLES},
             {"uint32", RUNG_TYPE_U32, UINT64S},
             {"uint64", RUNG_TYPE_U64, UINT64S},
             {"complex64", -1, 0},
             {"complex128", -1, 0},
             {"bfloat16", RUNG_TYPE_BF16, INT32S},
             {"float8e4m3fn", RUNG_TYPE_F8E4M3, INT32S},
             {"float8e4m3fnuz", RUNG_TYPE_F8E4M3FNUZ, INT32S},
             {"float8e5m2", RUNG_TYPE_F8E5M2, INT32S},
             {"float8e5m2fnuz", RUNG_TYPE_F8E5M2FNUZ, INT32S},
             {"uint4", RUNG_TYPE_U4, INT32S},
             {"int4", RUNG_TYPE_I4, INT32S},
             {"float4e2m1", RUNG_TYPE_F4E2M1, INT32S},
             {"float8e8m0", RUNG_TYPE_F8E8M0, INT32S},
             {"uint2", RUNG_TYPE_U2, INT32S},
             {"int2", RUNG_TYPE_I2, INT32S}};

bool onnx_type_of(int32_t data_type, rung_type *out) {
  if (data_type < 0 || (size_t)data_type >= RUNG_COUNT(types) || types[data_type].type < 0) return false;
  *out = (rung_type)types[data_type].type;
  return true;
}
const char *onnx_type_name(int32_t data_type) {
  return data_type < 0 || (size_t)data_type >= RUNG_COUNT(types) ? "unknown" : types[data_type].name;
}

bool onnx_tensor_in_place(const uint8_t *file, const onnx_tensor *t, rung_span *out) {
  if (t->has_raw) {
    *out = t->raw;
    return true;
  }
  const int field = types[t->data_type].field;
  if (field != FLOATS && field != DOUBLES) return false;
  rung_cursor c = rung_cursor_of(file, t->message, NULL);
  rung_field f;
  uint32_t pieces = 0;
  for (bool more;;) {
    if (rung_wire_next(&c, &f, &more)) return false;
    if (!more) return pieces == 1;
    if (f.number != (uint32_t)field) continue;
    if (f.wire != RUNG_WIRE_BYTES || ++pieces > 1) return false;
    *out = f.span;
  }
}

typedef struct sink {
  uint8_t *out;
  size_t bytes; /* of a number */
  uint64_t most, count;
} sink;

static bool put(sink *s, uint64_t value) {
  if (s->count == s->most) return false;
  memcpy(s->out + s->count++ * s->bytes, &value, s->bytes); /* little-endian, as the files are */
  return true;
}

static rung_status take(const uint8_t *file, const rung_field *f, sink *s, rung_error *error, bool *out_fits) {
  *out_fits = true;
  if (f->wire != RUNG_WIRE_BYTES) {
    *out_fits = put(s, f->value);
    return RUNG_OK;
  }
  rung_cursor c = rung_cursor_of(file, f->span, error);
  const size_t fixed = f->number == FLOATS ? 4 : f->number == DOUBLES ? 8 : 0;
  while (c.next != c.end && *out_fits) {
    uint64_t value = 0;
    if (!fixed) {
      RUNG_TRY(rung_wire_varint(&c, &value));
    } else {
      if ((size_t)(c.end - c.next) < fixed) {
        *out_fits = false;
        break;
      }
      memcpy(&value, c.next, fixed);
      c.next += fixed;
    }
    *out_fits = put(s, value);
  }
  return RUNG_OK;
}

rung_status onnx_tensor_decode(const uint8_t *file, const onnx_tensor *t, rung_type type, uint64_t elements, void *out,
                               rung_error *error) {
  const rung_type_row *row = rung_type_get(type);
  sink s = {.out = (uint8_t *)out, .bytes = row->bytes, .most = (elements + row->block - 1) / row->block};
  const uint32_t field = (uint32_t)types[t->data_type].field;
  rung_cursor c = rung_cursor_of(file, t->message, error);
  rung_field f;
  bool fits = true;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) break;
    if (f.number == field && fits) RUNG_TRY(take(file, &f, &s, error, &fits));
  }
  if (fits && s.count == s.most) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE,
                   "offset %" PRIu64 ": tensor \"%s\" has %s numbers than the %" PRIu64 " of its shape", t->at,
                   onnx_show(t->name).text, fits ? "fewer" : "more", elements);
}
