/* SPDX-License-Identifier: MIT
 * ONNX operators on single elements. */
#include <math.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "ops/elementwise.h"

void onnx_build_unary(onnx_call *c);
void onnx_build_unary(onnx_call *c) { c->out[0] = onnx_op(c, c->row->op, c->in[0], NULL); }

void onnx_build_identity(onnx_call *c);
void onnx_build_identity(onnx_call *c) { c->out[0] = c->in[0]; }

/* Attributes of the row that have the names of ONNX's. */
void onnx_build_parameters(onnx_call *c);
void onnx_build_parameters(onnx_call *c) {
  rung_row_attrs attrs;
  const rung_op *op = c->row->op;
  memset(&attrs, 0, sizeof attrs);
  rung_attrs_default(op, c->g->dims, &attrs);
  for (const rung_attr *a = op->attrs; a && a->name; a++) {
    double *value = a->offset == offsetof(rung_row_attrs, p) ? &attrs.p : &attrs.q;
    double standard = *value;
    if (strcmp(a->name, "bias") == 0 && op == &rung_op_shrink) standard = 0;
    *value = onnx_float(c, a->name, standard);
  }
  c->out[0] = onnx_op(c, op, c->in[0], &attrs);
}

void onnx_build_gelu(onnx_call *c);
void onnx_build_gelu(onnx_call *c) {
  const bool tanh_form = onnx_text_is(c, "approximate", "none", "tanh");
  c->out[0] = onnx_op(c, tanh_form ? &rung_op_gelu_tanh : &rung_op_gelu, c->in[0], NULL);
}

void onnx_build_isinf(onnx_call *c);
void onnx_build_isinf(onnx_call *c) {
  const bool negative = onnx_int(c, "detect_negative", 1) != 0, positive = onnx_int(c, "detect_positive", 1) != 0;
  const rung_value x = c->in[0];
  c->out[0] = onnx_op(c, &rung_op_isinf, x, NULL);
  if (negative && positive) return;
  const rung_value zero = onnx_scalar(c, x, 0);
  rung_value side = negative ? rung_build_less(c->g, x, zero) : rung_build_greater(c->g, x, zero);
  if (!negative && !positive) side = rung_build_scalar(c->g, RUNG_TYPE_BOOL, 0);
  c->out[0] = rung_build_and(c->g, c->out[0], side);
}

/* Before version 7 the second operand broadcast only when asked, aligned at an axis of the first. */
static rung_value aligned(onnx_call *c, rung_value a, rung_value b) {
  if (c->version >= 7 || !onnx_int(c, "broadcast", 0) || !onnx_attr_find(c, "axis")) return b;
  const int axis = onnx_axis(c, onnx_int(c, "axis", 0), onnx_rank(c, a)), rank = onnx_rank(c, b);
  rung_dim extent[RUNG_MAX_RANK];
  const int behind = onnx_rank(c, a) - axis - rank;
  if (behind <= 0) return b;
  for (int i = 0; i < rank + behind; i++) extent[i] = i < rank ? onnx_extent(c, b, i) : onnx_dim(c, 1);
  return onnx_reshape(c, b, rank + behind, extent);
}

void onnx_build_binary(onnx_call *c);
void onnx_build_binary(onnx_call *c) {
  c->out[0] = onnx_op2(c, c->row->op, c->in[0], aligned(c, c->in[0], c->in[1]), NULL);
}

void onnx_build_prelu(onnx_call *c);
void onnx_build_prelu(onnx_call *c) {
  rung_value slope = c->in[1];
  const int rank = onnx_rank(c, c->in[0]);
  if (onnx_rank(c, slope) == 1 && rank > 2 && c->version < 7) { /* one number a channel */
    rung_dim extent[RUNG_MAX_RANK];
    for (int i = 0; i < rank - 1; i++) extent[i] = i ? onnx_dim(c, 1) : onnx_extent(c, slope, 0);
    slope = onnx_reshape(c, slope, rank - 1, extent);
  }
  c->out[0] = rung_build_prelu(c->g, c->in[0], slope);
}

void onnx_build_bit_shift(onnx_call *c);
void onnx_build_bit_shift(onnx_call *c) {
  const bool left = onnx_text_is(c, "direction", "", "LEFT");
  if (!left && !onnx_text_is(c, "direction", "", "RIGHT"))
    onnx_refuse(c, RUNG_CORRUPT_FILE, "direction must be LEFT or RIGHT");
  c->out[0] = onnx_op2(c, left ? &rung_op_shift_left : &rung_op_shift_right, c->in[0], c->in[1], NULL);
}

void onnx_build_mod(onnx_call *c);
void onnx_build_mod(onnx_call *c) {
  c->out[0] = onnx_op2(c, onnx_int(c, "fmod", 0) ? &rung_op_fmod : &rung_op_mod, c->in[0], c->in[1], NULL);
}

/* The result has the base's type, whatever the exponent's. */
void onnx_build_pow(onnx_call *c);
void onnx_build_pow(onnx_call *c) {
  const rung_type base = onnx_type(c, c->in[0])->type, exponent = onnx_type(c, c->in[1])->type;
  rung_value a = c->in[0], b = aligned(c, c->in[0], c->in[1]);
  if (base != exponent) {
    const rung_type common = !rung_type_is_float(base) && rung_type_is_float(exponent) ? RUNG_TYPE_F64 : base;
    a = onnx_cast(c, a, common);
    b = onnx_cast(c, b, common);
  }
  c->out[0] = onnx_cast(c, rung_build_pow(c->g, a, b), base);
}

void onnx_build_several(onnx_call *c);
void onnx_build_several(onnx_call *c) {
  rung_value y = c->in[0];
  for (uint32_t i = 1; i < c->n_in; i++) y = onnx_op2(c, c->row->op, y, c->in[i], NULL);
  if (c->row->variant) y = rung_build_div(c->g, y, onnx_scalar(c, y, (double)c->n_in));
  c->out[0] = y;
}

/* A bound of any shape with one element, as a scalar. */
static rung_value bound_of(onnx_call *c, uint32_t i, const char *name) {
  if (c->version >= 11) {
    if (!onnx_has(c, i)) return rung_build_null();
    return onnx_rank(c, c->in[i]) ? onnx_reshape(c, c->in[i], 0, NULL) : c->in[i];
  }
  return onnx_attr_find(c, name) ? onnx_scalar(c, c->in[0], onnx_float(c, name, 0)) : rung_build_null();
}
void onnx_build_clip(onnx_call *c);
void onnx_build_clip(onnx_call *c) {
  const rung_value low = bound_of(c, 1, "min"), high = bound_of(c, 2, "max");
  rung_value x = c->in[0];
  if (low.id && high.id) {
    x = onnx_op3(c, &rung_op_clip, x, low, high, NULL);
  } else {
    if (low.id) x = rung_build_max(c->g, x, low);
    if (high.id) x = rung_build_min(c->g, x, high);
  }
  c->out[0] = x;
}

void onnx_build_where(onnx_call *c);
void onnx_build_where(onnx_call *c) { c->out[0] = rung_build_where(c->g, c->in[0], c->in[1], c->in[2]); }

void onnx_build_dropout(onnx_call *c);
void onnx_build_dropout(onnx_call *c) {
  double training = 0, ratio = 0.5;
  if (c->version >= 12 && onnx_has(c, 2) && !onnx_constant_scalar(c, 2, &training)) return;
  if (training != 0 && onnx_has(c, 1) && !onnx_constant_scalar(c, 1, &ratio)) return;
  if (training != 0 && ratio != 0) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "training with a ratio of %g", ratio);
    return;
  }
  c->out[0] = c->in[0];
  const rung_value_type *x = onnx_type(c, c->in[0]);
  if (onnx_wants(c, 1)) c->out[1] = onnx_filled(c, c->version >= 10 ? RUNG_TYPE_BOOL : x->type, 1, x->rank, x->extent);
}
