/* SPDX-License-Identifier: MIT
 * ONNX operators between numbers and quantised ones, and casts that say what happens to what does not fit. */
#include <math.h>

#include "formats/onnx/import.h"

/* Scales or zero points shaped to meet x: one number, one an index of `axis`, or one a block of it. */
static rung_value spread(onnx_call *c, rung_value v, const rung_value_type *x, int axis, int64_t block) {
  const rung_value_type t = *onnx_type(c, v);
  rung_dim extent[RUNG_MAX_RANK];
  int64_t n = 0;
  if (t.rank == 0) return v;
  if (t.rank == 1 && (x->rank != 1 || block == 0)) {
    if (rung_dims_is_constant(c->g->dims, t.extent[0], &n) && n == 1 && x->rank != 1)
      return onnx_reshape(c, v, 0, NULL);
    for (int i = 0; i < x->rank - axis; i++) extent[i] = i ? onnx_dim(c, 1) : t.extent[0];
    return onnx_reshape(c, v, x->rank - axis, extent);
  }
  if (block <= 0) return v;
  if (t.rank != x->rank) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "scales of %d axes for an operand of %d", t.rank, x->rank);
    return v;
  }
  rung_dim wide[3] = {rung_dims_product(c->g->dims, t.extent, 0, axis + 1), onnx_dim(c, 1),
                      rung_dims_product(c->g->dims, t.extent, axis + 1, t.rank)};
  rung_value y = onnx_reshape(c, v, 3, wide);
  wide[1] = onnx_dim(c, block);
  y = rung_build_expand(c->g, y, 3, wide);
  for (int i = 0; i < t.rank; i++) extent[i] = t.extent[i];
  extent[axis] = rung_graph_dim(c->g, RUNG_DIM_MUL, t.extent[axis], onnx_dim(c, block));
  y = onnx_reshape(c, y, t.rank, extent);
  return rung_build_slice(c->g, y, axis, onnx_dim(c, 0), x->extent[axis]);
}

static const struct {
  rung_type type;
  double low, high;
} ranges[] = {{RUNG_TYPE_U8, 0, 255},         {RUNG_TYPE_I8, -128, 127}, {RUNG_TYPE_U16, 0, 65535},
              {RUNG_TYPE_I16, -32768, 32767}, {RUNG_TYPE_U4, 0, 15},     {RUNG_TYPE_I4, -8, 7},
              {RUNG_TYPE_U2, 0, 3},           {RUNG_TYPE_I2, -2, 1}};

/* Largest magnitude that still rounds to a number of the type, and the codes of what is above it: infinity or NaN. */
static const struct {
  rung_type type;
  double limit;
  bool inclusive;
  uint8_t positive, negative;
} floats[] = {{RUNG_TYPE_F8E4M3, 464, true, 0x7F, 0xFF},
              {RUNG_TYPE_F8E5M2, 61440, false, 0x7C, 0xFC},
              {RUNG_TYPE_F8E4M3FNUZ, 248, false, 0x80, 0x80},
              {RUNG_TYPE_F8E5M2FNUZ, 61440, false, 0x80, 0x80}};

static rung_value bits_as(onnx_call *c, rung_value x, rung_type type) {
  const rung_cast_attrs attrs = {type};
  return onnx_op(c, &rung_op_bitcast, x, &attrs);
}

/* A cast that does not saturate: what is too large becomes infinity or NaN. */
static rung_value unsaturated(onnx_call *c, rung_value x, rung_type type) {
  for (size_t i = 0; i < RUNG_COUNT(floats); i++) {
    if (floats[i].type != type) continue;
    if (!rung_type_is_float(onnx_type(c, x)->type)) x = onnx_cast(c, x, RUNG_TYPE_F32);
    const rung_value size = onnx_cast(c, rung_build_abs(c->g, x), RUNG_TYPE_F64);
    const rung_value limit = rung_build_scalar(c->g, RUNG_TYPE_F64, floats[i].limit);
    const rung_value above =
        floats[i].inclusive ? rung_build_greater(c->g, size, limit) : rung_build_greater_equal(c->g, size, limit);
    const rung_value code = rung_build_where(c->g, rung_build_less(c->g, x, onnx_scalar(c, x, 0)),
                                             rung_build_scalar(c->g, RUNG_TYPE_U8, floats[i].negative),
                                             rung_build_scalar(c->g, RUNG_TYPE_U8, floats[i].positive));
    const rung_value plain = bits_as(c, onnx_cast(c, x, type), RUNG_TYPE_U8);
    return bits_as(c, rung_build_where(c->g, above, code, plain), type);
  }
  return onnx_cast(c, x, type);
}

/* To a power of two, by the bits of f32: exponents are its codes. */
static rung_value to_e8m0(onnx_call *c, rung_value x) {
  const bool nearest = onnx_text_is(c, "round_mode", "up", "nearest"),
             down = onnx_text_is(c, "round_mode", "up", "down");
  if (!nearest && !down) return onnx_cast(c, x, RUNG_TYPE_F8E8M0);
  const rung_value bits = bits_as(c, onnx_cast(c, x, RUNG_TYPE_F32), RUNG_TYPE_U32);
  const rung_value magnitude = rung_build_bitand(c->g, bits, onnx_scalar(c, bits, 2147483647));
  const rung_value shift = onnx_scalar(c, bits, 23);
  rung_value code = rung_build_shift_right(c->g, magnitude, shift);
  if (nearest) { /* half way up, and ties to the larger */
    const rung_value half = rung_build_bitand(c->g, rung_build_shift_right(c->g, magnitude, onnx_scalar(c, bits, 22)),
                                              onnx_scalar(c, bits, 1));
    code = rung_build_add(c->g, code, half);
  }
  const rung_value special = rung_build_greater_equal(c->g, magnitude, onnx_scalar(c, bits, 2139095040));
  const rung_value is_nan = rung_build_greater(c->g, magnitude, onnx_scalar(c, bits, 2139095040));
  code = rung_build_min(c->g, code, onnx_scalar(c, bits, 254));
  code = rung_build_where(c->g, special, onnx_scalar(c, bits, onnx_int(c, "saturate", 1) ? 254 : 255), code);
  code = rung_build_where(c->g, is_nan, onnx_scalar(c, bits, 255), code);
  return bits_as(c, onnx_cast(c, code, RUNG_TYPE_U8), RUNG_TYPE_F8E8M0);
}

static rung_value cast_to(onnx_call *c, rung_value x, rung_type type) {
  const rung_type from = onnx_type(c, x)->type;
  const bool narrow = type == RUNG_TYPE_I4 || type == RUNG_TYPE_U4 || type == RUNG_TYPE_I2 || type == RUNG_TYPE_U2;
  if (type == RUNG_TYPE_F8E8M0 && from != type) return to_e8m0(c, x);
  if (narrow && rung_type_takes(from) != RUNG_TAKES_STORAGE) return onnx_cast(c, onnx_cast(c, x, RUNG_TYPE_I32), type);
  if (type == RUNG_TYPE_F4E2M1 && rung_type_is_float(from)) /* which has no NaN */
    x = rung_build_where(c->g, rung_build_isnan(c->g, x), onnx_scalar(c, x, -0.0), x);
  if (onnx_int(c, "saturate", 1) || onnx_type(c, x)->type == type) return onnx_cast(c, x, type);
  return unsaturated(c, x, type);
}
void onnx_build_cast(onnx_call *c);
void onnx_build_cast(onnx_call *c) {
  rung_type to;
  if (!onnx_element_type(c, onnx_int(c, "to", 0), &to)) return;
  c->out[0] = cast_to(c, c->in[0], to);
}
void onnx_build_cast_like(onnx_call *c);
void onnx_build_cast_like(onnx_call *c) { c->out[0] = cast_to(c, c->in[0], onnx_type(c, c->in[1])->type); }

void onnx_build_bit_cast(onnx_call *c);
void onnx_build_bit_cast(onnx_call *c) {
  rung_type to;
  if (!onnx_element_type(c, onnx_int(c, "to", 0), &to)) return;
  c->out[0] = bits_as(c, c->in[0], to);
}

static bool range_of(rung_type type, double *low, double *high) {
  for (size_t i = 0; i < RUNG_COUNT(ranges); i++) {
    if (ranges[i].type != type) continue;
    *low = ranges[i].low;
    *high = ranges[i].high;
    return true;
  }
  return false;
}

void onnx_build_quantize(onnx_call *c);
void onnx_build_quantize(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const int axis = x.rank ? onnx_axis(c, onnx_int(c, "axis", 1) < x.rank ? onnx_int(c, "axis", 1) : 0, x.rank) : 0;
  const int64_t block = onnx_int(c, "block_size", 0), named = onnx_int(c, "output_dtype", 0);
  rung_type type = onnx_has(c, 2) ? onnx_type(c, c->in[2])->type : RUNG_TYPE_U8, wide = RUNG_TYPE_F32;
  double low, high;
  if (named && !onnx_element_type(c, named, &type)) return;
  rung_value v = c->in[0], scale = c->in[1];
  if (x.type == RUNG_TYPE_F64) wide = RUNG_TYPE_F64;
  if (onnx_int(c, "precision", 0) && !onnx_element_type(c, onnx_int(c, "precision", 0), &wide)) return;
  if (!onnx_int(c, "precision", 0) && x.type == onnx_type(c, scale)->type && rung_type_is_float(x.type)) wide = x.type;
  v = rung_build_div(c->g, onnx_cast(c, v, wide), spread(c, onnx_cast(c, scale, wide), &x, axis, block));
  if (!range_of(type, &low, &high)) {
    if (onnx_has(c, 2) && type == RUNG_TYPE_F4E2M1)
      v = rung_build_add(c->g, v, spread(c, onnx_cast(c, c->in[2], wide), &x, axis, block));
    c->out[0] = cast_to(c, v, type);
    return;
  }
  if (wide != RUNG_TYPE_F64) v = onnx_cast(c, v, RUNG_TYPE_F32);
  v = rung_build_round(c->g, v);
  if (onnx_has(c, 2))
    v = rung_build_add(c->g, v, spread(c, onnx_cast(c, c->in[2], onnx_type(c, v)->type), &x, axis, block));
  v = onnx_op3(c, &rung_op_clip, v, onnx_scalar(c, v, low), onnx_scalar(c, v, high), NULL);
  c->out[0] = onnx_cast(c, v, type);
}

void onnx_build_dequantize(onnx_call *c);
void onnx_build_dequantize(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  const int axis = x.rank ? onnx_axis(c, onnx_int(c, "axis", 1) < x.rank ? onnx_int(c, "axis", 1) : 0, x.rank) : 0;
  const int64_t block = onnx_int(c, "block_size", 0), named = onnx_int(c, "output_dtype", 0);
  rung_type type = onnx_type(c, c->in[1])->type;
  double low, high;
  if (named && !onnx_element_type(c, named, &type)) return;
  const bool whole = range_of(x.type, &low, &high) || x.type == RUNG_TYPE_I32;
  const rung_type wide = whole ? RUNG_TYPE_I32 : RUNG_TYPE_F32;
  rung_value v = onnx_cast(c, c->in[0], wide);
  if (onnx_has(c, 2)) v = rung_build_sub(c->g, v, spread(c, onnx_cast(c, c->in[2], wide), &x, axis, block));
  const rung_type number = type == RUNG_TYPE_F64 ? RUNG_TYPE_F64 : RUNG_TYPE_F32;
  const rung_value scale = spread(c, onnx_cast(c, c->in[1], number), &x, axis, block);
  c->out[0] = onnx_cast(c, rung_build_mul(c->g, onnx_cast(c, v, number), scale), type);
}

void onnx_build_dynamic_quantize(onnx_call *c);
void onnx_build_dynamic_quantize(onnx_call *c) {
  const rung_node *node = rung_graph_append(c->g, &rung_op_dynamic_quantize, c->in, 1, NULL, NULL, 0);
  for (uint32_t i = 0; node && i < 3; i++) c->out[i] = rung_node_result(c->g, node, i);
}
