/* SPDX-License-Identifier: MIT
 * cast: another element type. Floats round to nearest, ties to even. A float becomes an integer by dropping its
 * fraction; what does not fit becomes the nearest integer that does, NaN becomes 0: the same on every device. Integers
 * wrap to a narrower width. To bool: whatever is not zero (NaN is not) is true. Block types can be read, not made. */
#include <math.h>
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

static rung_status infer(rung_infer *infer) {
  const rung_type to = ((const rung_cast_attrs *)infer->attrs)->type;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_ALL));
  if (!(rung_type_takes(to) & (RUNG_TAKES_PLAIN | RUNG_TAKES_STORAGE)))
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "nothing can be cast to %s", rung_type_name(to));
  infer->out[0] = rung_value_type_like(&infer->in[0], to);
  return RUNG_OK;
}

/* Truncated, and limited to what `type` holds; as the bits of a 64-bit integer. */
static int64_t whole(double v, rung_type type) {
  const rung_type_row *row = rung_type_get(type);
  const int bits = row->class_ == RUNG_CLASS_STORAGE ? 8 / row->block : 8 * row->bytes;
  const bool is_unsigned = row->class_ == RUNG_CLASS_UINT || type == RUNG_TYPE_U4 || type == RUNG_TYPE_U2;
  if (v != v) return 0;
  const double limit = ldexp(1, is_unsigned ? bits : bits - 1);
  v = trunc(v);
  if (is_unsigned) {
    if (v <= 0) return 0;
    return (int64_t)(v >= limit ? (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1) : (uint64_t)v);
  }
  if (v >= limit) return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
  if (v < -limit) return -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1;
  return (int64_t)v;
}

/* An integer as a double, rounded to odd where it has more than 53 bits: rounding that once more to a narrower float
 * gives the same as rounding the integer itself. */
static double to_odd(int64_t v, bool is_unsigned) {
  const bool negative = !is_unsigned && v < 0;
  uint64_t magnitude = negative ? 0 - (uint64_t)v : (uint64_t)v;
  int drop = 0;
  while (magnitude >> drop >> 53) drop++;
  const uint64_t lost = magnitude & ((UINT64_C(1) << drop) - 1);
  magnitude ^= lost;
  if (lost) magnitude |= UINT64_C(1) << drop;
  return negative ? -(double)magnitude : (double)magnitude;
}

static bool is_whole(rung_type type) {
  return (rung_type_takes(type) & RUNG_TAKES_INT) || type == RUNG_TYPE_I4 || type == RUNG_TYPE_U4 ||
         type == RUNG_TYPE_I2 || type == RUNG_TYPE_U2;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const rung_operand *const operand[2] = {y, x};
  const rung_type from = (rung_type)x->type, to = (rung_type)y->type;
  const bool wide = is_whole(from) || from == RUNG_TYPE_BOOL;
  rung_walk w;
  if (from == to && rung_type_is_block(from)) { /* they only change their place */
    const rung_units units[2] = {rung_units_of(y), rung_units_of(x)};
    rung_units_copy(&units[0], &units[1]);
    return RUNG_OK;
  }
  for (rung_walk_begin(&w, y->rank, y->extent, 2, operand); w.live; rung_walk_next(&w)) {
    if (wide) {
      const int64_t v = rung_load_i64(x, w.offset[1]);
      if (to == RUNG_TYPE_BOOL)
        rung_store_i64(y, w.offset[0], v != 0);
      else if (is_whole(to))
        rung_store_i64(y, w.offset[0], v);
      else if (to == RUNG_TYPE_F64)
        rung_store_f64(y, w.offset[0], rung_type_is_unsigned(from) ? (double)(uint64_t)v : (double)v);
      else
        rung_store_f64(y, w.offset[0], to_odd(v, rung_type_is_unsigned(from)));
    } else {
      const double v = rung_load_f64(x, w.offset[1]);
      if (to == RUNG_TYPE_BOOL)
        rung_store_i64(y, w.offset[0], v != 0);
      else if (is_whole(to))
        rung_store_i64(y, w.offset[0], whole(v, to));
      else
        rung_store_f64(y, w.offset[0], v);
    }
  }
  return RUNG_OK;
}

static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)node, (void)y;
  const rung_type from = rung_build_type(g, in[0])->type;
  out_gx[0] = rung_type_is_float(from) && rung_type_is_float(rung_build_type(g, gy[0])->type)
                  ? rung_build_cast(g, gy[0], from)
                  : rung_build_null();
}

static const char *const operands[] = {"x", NULL};
static const rung_attr attrs[] = {
    {"type", RUNG_ATTR_TYPE, offsetof(rung_cast_attrs, type), NULL, NULL, "element type of the result"},
    {NULL, 0, 0, NULL, NULL, NULL}};
static const rung_test_case tests[] = {{"f32[5,67]", "type=f16"},
                                       {"f16[33]", "type=f32"},
                                       {"f32[33]", "type=bf16"},
                                       {"f32[17]", "type=i32"},
                                       {"f32[17]", "type=u8"},
                                       {"i64[17]{-300,300}", "type=i8"},
                                       {"i32[17]{-300,300}", "type=f32"},
                                       {"u8[9]{0,255}", "type=bool"},
                                       {"bool[9]", "type=f32"},
                                       {"f32[0,3]", "type=i64"},
                                       {"f64[5]", "type=f32"},
                                       {"f64[5]", "type=f64"},
                                       {"f32[4,8]", "type=i4"},
                                       {"f32[9]", "type=f8e4m3"},
                                       {"i64[9]{-9,9}", "type=u64"},
                                       {"f32[]", "type=f64"},
                                       {"q8_0[3,64]", "type=f32"},
                                       {"q6_k[2,256]", "type=f16"},
                                       {"f4e2m1[5]", "type=f32"},
                                       {NULL, NULL}};

const rung_op rung_op_cast = {
    .name = "cast",
    .doc = "another element type; floats to integers drop the fraction and saturate, NaN to 0; integers wrap",
    .operands = operands,
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_ROW_LOCAL,
    .attrs = attrs,
    .attrs_bytes = sizeof(rung_cast_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -300,
    .test_hi = 300,
    .tests = tests,
};
