/* SPDX-License-Identifier: MIT
 * Elements of operands as numbers, whatever their type. Clear rather than fast: kernels do not come through here. Every
 * store rounds once, from the exact value. */
#include "ir/args.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

enum { LARGEST_BLOCK = 256 };

/* ---- rounding to odd: a wider format whose last bit remembers that something was cut, so that rounding again to a
 * narrower one (by two bits or more) is the same as rounding once. */

static float f32_odd(double value) {
  float f = (float)value;
  if (isnan(f) || isinf(value) || (double)f == value) return f;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isinf(f) || fabs((double)f) > fabs(value)) bits--; /* towards zero */
  bits |= 1;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double f64_odd(int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  if (magnitude >> 53) magnitude = (magnitude & ~(uint64_t)2047) | ((magnitude & 2047) != 0 ? 1024 : 0);
  const double d = (double)magnitude; /* exact: at most 53 bits are left */
  return value < 0 ? -d : d;
}

/* Saturating; NaN becomes 0. */
static int64_t to_i64(double value) {
  if (isnan(value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return (int64_t)value;
}
static uint64_t to_u64(double value) {
  if (isnan(value) || value <= 0) return 0;
  return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}
static int64_t clamp(int64_t value, int64_t lo, int64_t hi) { return value < lo ? lo : value > hi ? hi : value; }

/* ---- narrow storage: several numbers a byte, low bits first */

static uint8_t take_code(const rung_operand *o, int64_t offset, const rung_type_row *row) {
  const int bits = 8 / row->block;
  const uint8_t byte = o->base[offset / row->block];
  return (uint8_t)(byte >> bits * (int)(offset % row->block) & ((1 << bits) - 1));
}

static void put_code(const rung_operand *o, int64_t offset, const rung_type_row *row, uint8_t code) {
  const int bits = 8 / row->block, shift = bits * (int)(offset % row->block);
  const int mask = ((1 << bits) - 1) << shift;
  uint8_t *byte = &o->base[offset / row->block];
  *byte = (uint8_t)((*byte & ~mask) | (code << shift & mask));
}

static double load_storage(const rung_operand *o, int64_t offset, const rung_type_row *row) {
  float value[8];
  const uint8_t code = row->block == 1 ? o->base[offset] : take_code(o, offset, row);
  row->to_f32(&code, value, row->block);
  return (double)value[0];
}

static void store_storage(const rung_operand *o, int64_t offset, const rung_type_row *row, double value) {
  float elements[8] = {f32_odd(value)};
  uint8_t code = 0;
  row->from_f32(elements, &code, row->block);
  if (row->block == 1) {
    o->base[offset] = code;
  } else {
    put_code(o, offset, row, (uint8_t)(code & ((1 << 8 / row->block) - 1)));
  }
}

static double load_block(const rung_operand *o, int64_t offset, const rung_type_row *row) {
  float value[LARGEST_BLOCK];
  row->to_f32(o->base + offset / row->block * row->bytes, value, row->block);
  return (double)value[offset % row->block];
}

/* ---- plain types */

#define LOAD(ctype) \
  ctype v;          \
  memcpy(&v, o->base + offset * (int64_t)sizeof v, sizeof v)
#define STORE(ctype, value)                                     \
  do {                                                          \
    const ctype v = (ctype)(value);                             \
    memcpy(o->base + offset * (int64_t)sizeof v, &v, sizeof v); \
  } while (0)

static int64_t load_integer(const rung_operand *o, int64_t offset) {
  switch ((rung_type)o->type) {
    case RUNG_TYPE_I8:
      return (int8_t)o->base[offset];
    case RUNG_TYPE_U8:
      return o->base[offset];
    case RUNG_TYPE_BOOL:
      return o->base[offset] != 0;
    case RUNG_TYPE_I16: {
      LOAD(int16_t);
      return v;
    }
    case RUNG_TYPE_U16: {
      LOAD(uint16_t);
      return v;
    }
    case RUNG_TYPE_I32: {
      LOAD(int32_t);
      return v;
    }
    case RUNG_TYPE_U32: {
      LOAD(uint32_t);
      return v;
    }
    default: {
      LOAD(int64_t);
      return v;
    }
  }
}

double rung_load_f64(const rung_operand *o, int64_t offset) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  if (!row) return 0;
  if (row->class_ == RUNG_CLASS_BLOCK) return load_block(o, offset, row);
  if (row->class_ == RUNG_CLASS_STORAGE) return load_storage(o, offset, row);
  if (row->class_ != RUNG_CLASS_FLOAT) {
    const int64_t value = load_integer(o, offset);
    return o->type == RUNG_TYPE_U64 ? (double)(uint64_t)value : (double)value;
  }
  if (o->type == RUNG_TYPE_F64) {
    LOAD(double);
    return v;
  }
  if (o->type == RUNG_TYPE_F32) {
    LOAD(float);
    return (double)v;
  }
  LOAD(uint16_t);
  return (double)(o->type == RUNG_TYPE_F16 ? rung_f16_to_f32(v) : rung_bf16_to_f32(v));
}

int64_t rung_load_i64(const rung_operand *o, int64_t offset) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  if (!row) return 0;
  const bool integer =
      row->class_ == RUNG_CLASS_INT || row->class_ == RUNG_CLASS_UINT || row->class_ == RUNG_CLASS_BOOL;
  return integer ? load_integer(o, offset) : to_i64(rung_load_f64(o, offset));
}

static void store_float(const rung_operand *o, int64_t offset, double value) {
  switch ((rung_type)o->type) {
    case RUNG_TYPE_F64:
      STORE(double, value);
      break;
    case RUNG_TYPE_F32:
      STORE(float, value);
      break;
    case RUNG_TYPE_F16:
      STORE(uint16_t, rung_f16_from_f64(value));
      break;
    default:
      STORE(uint16_t, rung_bf16_from_f64(value));
      break;
  }
}

void rung_store_f64(const rung_operand *o, int64_t offset, double value) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  if (!row || row->class_ == RUNG_CLASS_BLOCK) return;
  if (row->class_ == RUNG_CLASS_STORAGE) {
    store_storage(o, offset, row, value);
    return;
  }
  if (row->class_ == RUNG_CLASS_FLOAT) {
    store_float(o, offset, value);
    return;
  }
  const double whole = nearbyint(value);
  const int64_t n = to_i64(whole);
  switch ((rung_type)o->type) {
    case RUNG_TYPE_I8:
      STORE(int8_t, clamp(n, INT8_MIN, INT8_MAX));
      break;
    case RUNG_TYPE_I16:
      STORE(int16_t, clamp(n, INT16_MIN, INT16_MAX));
      break;
    case RUNG_TYPE_I32:
      STORE(int32_t, clamp(n, INT32_MIN, INT32_MAX));
      break;
    case RUNG_TYPE_U8:
      STORE(uint8_t, clamp(n, 0, UINT8_MAX));
      break;
    case RUNG_TYPE_U16:
      STORE(uint16_t, clamp(n, 0, UINT16_MAX));
      break;
    case RUNG_TYPE_U32:
      STORE(uint32_t, clamp(n, 0, UINT32_MAX));
      break;
    case RUNG_TYPE_U64:
      STORE(uint64_t, to_u64(whole));
      break;
    case RUNG_TYPE_BOOL:
      STORE(uint8_t, value != 0);
      break;
    default:
      STORE(int64_t, n);
      break;
  }
}

void rung_store_i64(const rung_operand *o, int64_t offset, int64_t value) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  if (!row) return;
  switch ((rung_type)o->type) {
    case RUNG_TYPE_I8:
    case RUNG_TYPE_U8:
      STORE(uint8_t, value);
      break;
    case RUNG_TYPE_I16:
    case RUNG_TYPE_U16:
      STORE(uint16_t, value);
      break;
    case RUNG_TYPE_I32:
    case RUNG_TYPE_U32:
      STORE(uint32_t, value);
      break;
    case RUNG_TYPE_I64:
    case RUNG_TYPE_U64:
      STORE(int64_t, value);
      break;
    case RUNG_TYPE_BOOL:
      STORE(uint8_t, value != 0);
      break;
    case RUNG_TYPE_F64:
      STORE(double, value);
      break;
    case RUNG_TYPE_F32:
      STORE(float, value);
      break;
    case RUNG_TYPE_I4:
    case RUNG_TYPE_U4:
    case RUNG_TYPE_I2:
    case RUNG_TYPE_U2:
      put_code(o, offset, row, (uint8_t)value);
      break;
    default:
      rung_store_f64(o, offset, f64_odd(value));
      break;
  }
}
#undef LOAD
#undef STORE

/* ---- rows */

static void load_blocks(const uint8_t *source, const rung_type_row *row, int64_t n, double *out) {
  float value[LARGEST_BLOCK];
  for (int64_t i = 0; i < n; i += row->block) {
    row->to_f32(source + i / row->block * row->bytes, value, row->block);
    for (int64_t k = 0; k < row->block && i + k < n; k++) out[i + k] = (double)value[k];
  }
}

void rung_load_row_f64(const rung_operand *o, int64_t row, double *out) {
  const rung_type_row *type = rung_type_get((rung_type)o->type);
  if (!type) return;
  int64_t offset = 0;
  for (int axis = o->rank - 2; axis >= 0; axis--) {
    if (o->extent[axis] == 0) return;
    offset += row % o->extent[axis] * o->stride[axis];
    row /= o->extent[axis];
  }
  const int64_t n = o->rank ? o->extent[o->rank - 1] : 1, step = o->rank ? o->stride[o->rank - 1] : 1;
  if (type->class_ == RUNG_CLASS_BLOCK) {
    load_blocks(o->base + offset * type->bytes, type, n, out);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = rung_load_f64(o, offset + i * step);
  }
}
