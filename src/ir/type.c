/* SPDX-License-Identifier: MIT
 * The table of types, and the conversions of the plain ones. */
#include "ir/type.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/blocks.h"

_Static_assert(sizeof(rung_a8) == 40, "a8 is a format: no padding");

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
/* rung_f16_to_f32 without branches, so that the loop becomes vector code. A denormal half is set behind 2^-14 and that
 * taken away again: no number on the way is a denormal float, which a thread may flush. */
static float f16_value(uint16_t h) {
  const uint32_t bits = (uint32_t)(h & 0x7FFF) << 13, least = UINT32_C(113) << 23;
  const uint32_t normal = bits + (UINT32_C(112) << 23), special = bits | UINT32_C(0x7F800000);
  const float small = float_of(least + bits) - float_of(least);
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, large = bits >= UINT32_C(0x7C00) << 13 ? special : normal;
  uint32_t small_bits;
  memcpy(&small_bits, &small, sizeof small);
  return float_of(sign | (bits < UINT32_C(0x400) << 13 ? small_bits : large));
}

/* Plain types: one-line bodies over a value v of the stored type, loaded and stored without alignment. */
#define DECODE(NAME, ctype, value)                                           \
  static void rung_decode_##NAME(const void *source, float *out, size_t n) { \
    for (size_t i = 0; i < n; i++) {                                         \
      ctype v;                                                               \
      memcpy(&v, (const uint8_t *)source + i * sizeof v, sizeof v);          \
      out[i] = (value);                                                      \
    }                                                                        \
  }
#define ENCODE(NAME, ctype, value)                                           \
  static void rung_encode_##NAME(const float *source, void *out, size_t n) { \
    for (size_t i = 0; i < n; i++) {                                         \
      const float x = source[i];                                             \
      const ctype v = (value);                                               \
      memcpy((uint8_t *)out + i * sizeof v, &v, sizeof v);                   \
    }                                                                        \
  }
/* Ties to even. The comparisons come first since a cast of what does not fit is undefined; LOW and HIGH are exact or
 * round up to a power of two, so that x < HIGH means that the cast fits. */
#define INTEGER(NAME, ctype, LOW, HIGH) \
  DECODE(NAME, ctype, (float)v)         \
  ENCODE(NAME, ctype, x != x ? 0 : x <= (float)(LOW) ? (LOW) : x >= (float)(HIGH) ? (HIGH) : (ctype)rintf(x))

DECODE(F16, uint16_t, f16_value(v))
ENCODE(F16, uint16_t, rung_f16_from_f32(x))
DECODE(BF16, uint16_t, float_of((uint32_t)v << 16))
ENCODE(BF16, uint16_t, rung_bf16_from_f32(x))
DECODE(F64, double, (float)v)
ENCODE(F64, double, (double)x)
INTEGER(I8, int8_t, INT8_MIN, INT8_MAX)
INTEGER(I16, int16_t, INT16_MIN, INT16_MAX)
INTEGER(I32, int32_t, INT32_MIN, INT32_MAX)
INTEGER(I64, int64_t, INT64_MIN, INT64_MAX)
INTEGER(U8, uint8_t, 0, UINT8_MAX)
INTEGER(U16, uint16_t, 0, UINT16_MAX)
INTEGER(U32, uint32_t, 0, UINT32_MAX)
INTEGER(U64, uint64_t, 0, UINT64_MAX)
DECODE(BOOL, uint8_t, v ? 1.0f : 0.0f)
ENCODE(BOOL, uint8_t, x != 0)
DECODE(F8E4M3, uint8_t, rung_f8e4m3_to_f32(v))
ENCODE(F8E4M3, uint8_t, rung_f8e4m3_from_f32(x))
DECODE(F8E5M2, uint8_t, rung_f8e5m2_to_f32(v))
ENCODE(F8E5M2, uint8_t, rung_f8e5m2_from_f32(x))
DECODE(F8E4M3FNUZ, uint8_t, rung_f8e4m3fnuz_to_f32(v))
ENCODE(F8E4M3FNUZ, uint8_t, rung_f8e4m3fnuz_from_f32(x))
DECODE(F8E5M2FNUZ, uint8_t, rung_f8e5m2fnuz_to_f32(v))
ENCODE(F8E5M2FNUZ, uint8_t, rung_f8e5m2fnuz_from_f32(x))
DECODE(F8E8M0, uint8_t, rung_e8m0_to_f32(v))
ENCODE(F8E8M0, uint8_t, rung_e8m0_from_f32(x))
#undef INTEGER
#undef DECODE
#undef ENCODE

static void rung_decode_F32(const void *source, float *out, size_t n) {
  if (n) memmove(out, source, n * sizeof *out);
}
static void rung_encode_F32(const float *source, void *out, size_t n) {
  if (n) memmove(out, source, n * sizeof *source);
}

/* ---- narrow storage: `bits` wide numbers, 8 / bits a byte, low bits first */

static int take_bits(const uint8_t *p, size_t i, int bits) {
  const size_t per = (size_t)(8 / bits);
  return p[i / per] >> bits * (int)(i % per) & ((1 << bits) - 1);
}
static void put_bits(uint8_t *p, size_t i, int bits, int value) {
  const size_t per = (size_t)(8 / bits);
  const int part = (value & ((1 << bits) - 1)) << bits * (int)(i % per);
  p[i / per] = (uint8_t)(i % per ? p[i / per] | part : part);
}
static int whole(float x, int low, int high) {
  if (x != x) return 0;
  return x <= (float)low ? low : x >= (float)high ? high : (int)rintf(x);
}

#define NARROW(NAME, bits, value, code)                                      \
  static void rung_decode_##NAME(const void *source, float *out, size_t n) { \
    for (size_t i = 0; i < n; i++) {                                         \
      const int q = take_bits(source, i, bits);                              \
      out[i] = (value);                                                      \
    }                                                                        \
  }                                                                          \
  static void rung_encode_##NAME(const float *source, void *out, size_t n) { \
    for (size_t i = 0; i < n; i++) put_bits(out, i, bits, (code));           \
  }
NARROW(I4, 4, (float)((q ^ 8) - 8), whole(source[i], -8, 7))
NARROW(U4, 4, (float)q, whole(source[i], 0, 15))
NARROW(I2, 2, (float)((q ^ 2) - 2), whole(source[i], -2, 1))
NARROW(U2, 2, (float)q, whole(source[i], 0, 3))
NARROW(F4E2M1, 4, rung_f4e2m1_to_f32((uint8_t)q), rung_f4e2m1_from_f32(source[i]))
#undef NARROW

/* ---- the table */

static const rung_type_row rows[RUNG_TYPE_LIMIT] = {
#define TYPE(NAME, text, value, class__, elements, size, about) \
  [value] = {.name = text,                                      \
             .class_ = RUNG_CLASS_##class__,                    \
             .block = elements,                                 \
             .bytes = size,                                     \
             .to_f32 = rung_decode_##NAME,                      \
             .from_f32 = rung_encode_##NAME,                    \
             .doc = about},
#include <rung/types.def>
#undef TYPE
};
static const rung_type order[] = {
#define TYPE(NAME, text, value, class__, elements, size, about) RUNG_TYPE_##NAME,
#include <rung/types.def>
#undef TYPE
};

const rung_type_row *rung_type_get(rung_type type) {
  const int64_t value = (int64_t)type;
  return value >= 0 && value < RUNG_TYPE_LIMIT && rows[value].name ? &rows[value] : NULL;
}
size_t rung_type_count(void) { return RUNG_COUNT(order); }
rung_type rung_type_at(size_t index) { return index < RUNG_COUNT(order) ? order[index] : RUNG_TYPE_LIMIT; }

const char *rung_type_name(rung_type type) {
  const rung_type_row *row = rung_type_get(type);
  return row ? row->name : "?";
}

bool rung_type_find(const char *name, rung_type *out_type) {
  for (size_t i = 0; name && i < RUNG_COUNT(order); i++) {
    if (strcmp(name, rows[order[i]].name) == 0) {
      *out_type = order[i];
      return true;
    }
  }
  return false;
}

uint64_t rung_type_bytes(rung_type type, uint64_t elements) {
  const rung_type_row *row = rung_type_get(type);
  uint64_t bytes;
  if (!row) return 0;
  const uint64_t rest = row->class_ == RUNG_CLASS_BLOCK ? 0 : elements % row->block != 0;
  if (rung_mul_overflows(elements / row->block + rest, (uint64_t)row->bytes, &bytes)) return 0;
  return bytes;
}

rung_tensor rung_tensor_dense(rung_type type, int rank, const int64_t *extent, void *data) {
  rung_tensor tensor = {.type = type, .rank = rank, .data = data};
  for (int axis = 0; axis < rank && axis < RUNG_MAX_RANK; axis++) tensor.extent[axis] = extent[axis];
  return tensor;
}
