/* SPDX-License-Identifier: MIT
 * Operators of the domain com.microsoft, which ONNX Runtime's own optimisers and exporters write. */
#include <math.h>

#include "formats/onnx/attention.h"
#include "formats/onnx/windows.h"

void onnx_build_fused_matmul(onnx_call *c);
void onnx_build_fused_matmul(onnx_call *c) {
  rung_value a = c->in[0], b = c->in[1];
  if (onnx_int(c, "transBatchA", 0) || onnx_int(c, "transBatchB", 0)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "transposed batches");
    return;
  }
  if (onnx_int(c, "transA", 0) && onnx_rank(c, a) > 1) a = rung_build_swap_last(c->g, a);
  if (onnx_int(c, "transB", 0) && onnx_rank(c, b) > 1) b = rung_build_swap_last(c->g, b);
  rung_value y = onnx_matmul(c, a, b, onnx_type(c, a)->type);
  const double alpha = onnx_float(c, "alpha", 1);
  if (alpha != 1) y = rung_build_mul(c->g, y, onnx_scalar(c, y, alpha));
  c->out[0] = y;
}

/* An activation behind an optional bias. */
void onnx_build_bias_unary(onnx_call *c);
void onnx_build_bias_unary(onnx_call *c) {
  rung_value x = c->in[0];
  if (onnx_has(c, 1)) x = rung_build_add(c->g, x, c->in[1]);
  c->out[0] = onnx_op(c, c->row->op, x, NULL);
}
void onnx_build_quick_gelu(onnx_call *c);
void onnx_build_quick_gelu(onnx_call *c) {
  const rung_value x = c->in[0], alpha = onnx_scalar(c, x, onnx_float(c, "alpha", 1.702F));
  c->out[0] = rung_build_mul(c->g, x, rung_build_sigmoid(c->g, rung_build_mul(c->g, x, alpha)));
}

/* ---- norms over the last axis */

static rung_value norm(onnx_call *c, bool rms, rung_value x, rung_value weight, rung_value bias) {
  const rung_norm_attrs attrs = {onnx_float(c, "epsilon", 1e-12F)};
  if (rms) return onnx_op2(c, &rung_op_rms_norm, x, weight, &attrs);
  return onnx_op3(c, &rung_op_layer_norm, x, weight, bias, &attrs);
}
/* variant 1: without the mean */
void onnx_build_skip_norm(onnx_call *c);
void onnx_build_skip_norm(onnx_call *c) {
  const bool rms = c->row->variant == 1;
  const uint32_t last = rms ? 3 : 4;
  if (onnx_wants(c, 1) || onnx_wants(c, 2)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "the mean and the deviation as results");
    return;
  }
  rung_value x = rung_build_add(c->g, c->in[0], c->in[1]);
  if (onnx_has(c, last)) x = rung_build_add(c->g, x, c->in[last]);
  c->out[0] = norm(c, rms, x, c->in[2], !rms && onnx_has(c, 3) ? c->in[3] : rung_build_null());
  if (onnx_wants(c, 3)) c->out[3] = x;
}
void onnx_build_simplified_norm(onnx_call *c);
void onnx_build_simplified_norm(onnx_call *c) {
  const int axis = onnx_axis(c, onnx_int(c, "axis", -1), onnx_rank(c, c->in[0]));
  if (axis != onnx_rank(c, c->in[0]) - 1 || onnx_wants(c, 1)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "an axis that is not the last, or the deviation as a result");
    return;
  }
  const rung_norm_attrs attrs = {onnx_float(c, "epsilon", 1e-5F)};
  c->out[0] = onnx_op2(c, &rung_op_rms_norm, c->in[0], c->in[1], &attrs);
}

void onnx_build_embed_norm(onnx_call *c);
void onnx_build_embed_norm(onnx_call *c) {
  const rung_gather_attrs rows = {0};
  if (onnx_has(c, 7)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "a mask");
    return;
  }
  const rung_value_type ids = *onnx_type(c, c->in[0]);
  if (ids.rank != 2) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "ids of %d axes", ids.rank);
  if (onnx_failed(c)) return;
  rung_value sum = onnx_op2(c, &rung_op_gather, c->in[2], c->in[0], &rows);
  const rung_value position = onnx_has(c, 8) ? onnx_op2(c, &rung_op_gather, c->in[3], c->in[8], &rows)
                                             : rung_build_slice(c->g, c->in[3], 0, onnx_dim(c, 0), ids.extent[1]);
  sum = rung_build_add(c->g, sum, position);
  if (onnx_has(c, 1) && onnx_has(c, 4))
    sum = rung_build_add(c->g, sum, onnx_op2(c, &rung_op_gather, c->in[4], c->in[1], &rows));
  c->out[0] = norm(c, false, sum, c->in[5], onnx_has(c, 6) ? c->in[6] : rung_build_null());
  if (onnx_wants(c, 1)) c->out[1] = onnx_filled(c, RUNG_TYPE_I32, 0, 1, ids.extent);
  if (onnx_wants(c, 2)) c->out[2] = sum;
}

/* ---- attention */

/* Which keys count: [batch] lengths or [batch, keys] of 0 and 1, as a bool mask [batch, 1, 1, keys]. */
static rung_value padding_mask(onnx_call *c, rung_value v, rung_dim keys) {
  const rung_value_type t = *onnx_type(c, v);
  rung_dim extent[4] = {t.extent[0], onnx_dim(c, 1), onnx_dim(c, 1), onnx_dim(c, 1)};
  const rung_value zero = onnx_scalar(c, v, 0);
  if (t.rank == 1) return rung_build_less(c->g, onnx_arange(c, keys, t.type), onnx_reshape(c, v, 4, extent));
  if (t.rank != 2) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "a mask of %d axes", t.rank);
    return v;
  }
  extent[3] = t.extent[1];
  return onnx_reshape(c, rung_build_greater(c->g, v, zero), 4, extent);
}

static rung_value attend(onnx_call *c, rung_value q, rung_value k, rung_value v, rung_value mask, rung_value bias) {
  const rung_attention_attrs attrs = {.scale = onnx_float(c, "scale", 0),
                                      .causal = onnx_int(c, "unidirectional", 0) != 0};
  if (mask.id && bias.id) {
    const rung_type type = onnx_type(c, bias)->type;
    const rung_value none = rung_build_scalar(c->g, type, 0), low = rung_build_scalar(c->g, type, -(double)INFINITY);
    mask = rung_build_add(c->g, bias, rung_build_where(c->g, mask, none, low));
  } else if (bias.id) {
    mask = bias;
  }
  const rung_value in[4] = {q, k, v, mask};
  return onnx_join_heads(c, onnx_attention(c, in, mask.id ? 4 : 3, &attrs));
}

void onnx_build_ms_attention(onnx_call *c);
void onnx_build_ms_attention(onnx_call *c) {
  const int64_t heads = onnx_int(c, "num_heads", 0);
  if (onnx_has(c, 4) || onnx_has(c, 6) || onnx_attr_find(c, "qkv_hidden_sizes") || onnx_int(c, "do_rotary", 0) ||
      onnx_wants(c, 1) || onnx_rank(c, c->in[0]) != 3) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "a past, rotary positions or sizes of its own");
    return;
  }
  rung_value all = onnx_matmul(c, c->in[0], c->in[1], onnx_type(c, c->in[0])->type), part[3];
  if (onnx_has(c, 2)) all = rung_build_add(c->g, all, c->in[2]);
  if (onnx_failed(c)) return;
  const rung_dim third = rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, onnx_extent(c, all, 2), onnx_dim(c, 3));
  for (int i = 0; i < 3; i++) {
    const rung_dim start = rung_graph_dim(c->g, RUNG_DIM_MUL, third, onnx_dim(c, i));
    part[i] = onnx_split_heads(c, rung_build_slice(c->g, all, 2, start, third), heads);
  }
  const rung_value mask = onnx_has(c, 3) ? padding_mask(c, c->in[3], onnx_extent(c, c->in[0], 1)) : rung_build_null();
  c->out[0] = attend(c, part[0], part[1], part[2], mask, onnx_has(c, 5) ? c->in[5] : rung_build_null());
}

void onnx_build_multi_head_attention(onnx_call *c);
void onnx_build_multi_head_attention(onnx_call *c) {
  const int64_t heads = onnx_int(c, "num_heads", 0);
  rung_value x[3] = {c->in[0], c->in[1], c->in[2]};
  if (!onnx_has(c, 1) || !onnx_has(c, 2) || onnx_rank(c, x[0]) != 3) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "packed queries, keys and values");
    return;
  }
  if (onnx_has(c, 3)) {
    rung_dim start = onnx_dim(c, 0);
    for (int i = 0; i < 3 && !onnx_failed(c); i++) {
      const rung_dim size = onnx_extent(c, x[i], onnx_rank(c, x[i]) - 1);
      if (onnx_rank(c, x[i]) == 3) x[i] = rung_build_add(c->g, x[i], rung_build_slice(c->g, c->in[3], 0, start, size));
      start = rung_graph_dim(c->g, RUNG_DIM_ADD, start, size);
    }
  }
  for (int i = 0; i < 3 && !onnx_failed(c); i++)
    if (onnx_rank(c, x[i]) == 3) x[i] = onnx_split_heads(c, x[i], heads);
  if (onnx_has(c, 6) && onnx_has(c, 7)) {
    x[1] = rung_build_concat(c->g, (rung_value[]){c->in[6], x[1]}, 2, 2);
    x[2] = rung_build_concat(c->g, (rung_value[]){c->in[7], x[2]}, 2, 2);
  }
  if (onnx_failed(c)) return;
  if (onnx_wants(c, 1)) c->out[1] = x[1];
  if (onnx_wants(c, 2)) c->out[2] = x[2];
  const rung_value mask = onnx_has(c, 4) ? padding_mask(c, c->in[4], onnx_extent(c, x[1], 2)) : rung_build_null();
  c->out[0] = attend(c, x[0], x[1], x[2], mask, onnx_has(c, 5) ? c->in[5] : rung_build_null());
}

/* ---- weights of a few bits, in blocks along K with a scale each */

/* Bytes [..., n] as their parts of `bits` bits, low ones first: [..., n * 8 / bits], f32. */
static rung_value unpacked(onnx_call *c, rung_value v, int64_t bits) {
  const rung_value_type t = *onnx_type(c, v);
  rung_value part[4];
  const int64_t parts = 8 / bits;
  if (t.rank < 1) return v; /* refused before */
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < t.rank; i++) extent[i] = t.extent[i];
  for (int64_t i = 0; i < parts; i++) {
    const rung_value low = rung_build_shift_right(c->g, v, onnx_scalar(c, v, (double)(i * bits)));
    part[i] =
        rung_build_unsqueeze(c->g, rung_build_bitand(c->g, low, onnx_scalar(c, v, (double)((1 << bits) - 1))), t.rank);
  }
  if (parts > 1) v = rung_build_concat(c->g, part, (uint32_t)parts, t.rank);
  extent[t.rank - 1] = rung_graph_dim(c->g, RUNG_DIM_MUL, t.extent[t.rank - 1], onnx_dim(c, parts));
  return onnx_cast(c, onnx_reshape(c, v, t.rank, extent), RUNG_TYPE_F32);
}

void onnx_build_matmul_bits(onnx_call *c);
void onnx_build_matmul_bits(onnx_call *c) {
  const int64_t k = onnx_int(c, "K", 0), n = onnx_int(c, "N", 0), bits = onnx_int(c, "bits", 4),
                block = onnx_int(c, "block_size", 32);
  if (k < 1 || n < 1 || block < 16 || (bits != 4 && bits != 8 && bits != 2) || onnx_has(c, 4)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "%lld bits in blocks of %lld, or a permutation", (long long)bits,
                (long long)block);
    return;
  }
  const int64_t blocks = (k + block - 1) / block;
  const rung_dim of_blocks[3] = {onnx_dim(c, n), onnx_dim(c, blocks), onnx_dim(c, 1)},
                 packed[3] = {onnx_dim(c, n), onnx_dim(c, blocks), onnx_dim(c, block * bits / 8)},
                 flat[2] = {onnx_dim(c, n), onnx_dim(c, blocks * block)};
  rung_value w = unpacked(c, onnx_reshape(c, c->in[1], 3, packed), bits);
  rung_value zero = rung_build_scalar(c->g, RUNG_TYPE_F32, (double)(1 << (bits - 1)));
  if (onnx_has(c, 3)) {
    if (rung_type_is_float(onnx_type(c, c->in[3])->type)) {
      zero = onnx_reshape(c, onnx_cast(c, c->in[3], RUNG_TYPE_F32), 3, of_blocks);
    } else {
      const int64_t bytes = (blocks * bits + 7) / 8;
      const rung_dim rows[2] = {onnx_dim(c, n), onnx_dim(c, bytes)};
      zero = unpacked(c, onnx_reshape(c, c->in[3], 2, rows), bits);
      zero = onnx_reshape(c, onnx_slice(c, zero, 1, 0, blocks), 3, of_blocks);
    }
  }
  const rung_value scale = onnx_reshape(c, onnx_cast(c, c->in[2], RUNG_TYPE_F32), 3, of_blocks);
  w = onnx_reshape(c, rung_build_mul(c->g, rung_build_sub(c->g, w, zero), scale), 2, flat);
  if (blocks * block != k) w = onnx_slice(c, w, 1, 0, k);
  const rung_type type = onnx_type(c, c->in[0])->type;
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  rung_value y = onnx_op2(c, &rung_op_matmul, onnx_cast(c, c->in[0], RUNG_TYPE_F32), w, &attrs);
  if (onnx_has(c, 5)) y = rung_build_add(c->g, y, onnx_cast(c, c->in[5], RUNG_TYPE_F32));
  c->out[0] = onnx_cast(c, y, type);
}

/* ---- quantised numbers with a scale and a zero point each */

static rung_value real(onnx_call *c, uint32_t i) {
  rung_value v = onnx_cast(c, c->in[i], RUNG_TYPE_I32);
  if (onnx_has(c, i + 2)) v = rung_build_sub(c->g, v, onnx_cast(c, c->in[i + 2], RUNG_TYPE_I32));
  return rung_build_mul(c->g, onnx_cast(c, v, RUNG_TYPE_F32), c->in[i + 1]);
}
/* y quantised by the scale and zero point at inputs i and i + 1, in the type of `like`. */
static rung_value levels(onnx_call *c, rung_value y, uint32_t i, rung_type type) {
  y = rung_build_round(c->g, rung_build_div(c->g, y, c->in[i]));
  if (onnx_has(c, i + 1)) y = rung_build_add(c->g, y, onnx_cast(c, c->in[i + 1], RUNG_TYPE_F32));
  const bool is_signed = type == RUNG_TYPE_I8;
  y = onnx_op3(c, &rung_op_clip, y, onnx_scalar(c, y, is_signed ? -128 : 0), onnx_scalar(c, y, is_signed ? 127 : 255),
               NULL);
  return onnx_cast(c, y, type);
}
void onnx_build_qlinear_binary(onnx_call *c);
void onnx_build_qlinear_binary(onnx_call *c) {
  const rung_type type = onnx_type(c, c->in[0])->type;
  c->out[0] = levels(c, onnx_op2(c, c->row->op, real(c, 0), real(c, 3), NULL), 6, type);
}
void onnx_build_qlinear_unary(onnx_call *c);
void onnx_build_qlinear_unary(onnx_call *c) {
  const rung_type type = onnx_type(c, c->in[0])->type;
  c->out[0] = levels(c, onnx_op(c, c->row->op, real(c, 0), NULL), 3, type);
}
