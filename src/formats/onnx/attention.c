/* SPDX-License-Identifier: MIT
 * ONNX attention: the fused op where it says the same, else matrix products and a softmax; rotary positions; linear
 * attention; causal convolutions with a state. */
#include "formats/onnx/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/onnx/windows.h"
#include "ops/control.h"

rung_value onnx_split_heads(onnx_call *c, rung_value x, int64_t heads) {
  const rung_value_type t = *onnx_type(c, x);
  if (t.rank != 3 || heads < 1) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes for %lld heads", t.rank, (long long)heads);
    return x;
  }
  const rung_dim split[4] = {t.extent[0], t.extent[1], onnx_dim(c, heads),
                             rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, t.extent[2], onnx_dim(c, heads))};
  static const int64_t order[4] = {0, 2, 1, 3};
  return rung_build_transpose(c->g, onnx_reshape(c, x, 4, split), order);
}
rung_value onnx_join_heads(onnx_call *c, rung_value x) {
  static const int64_t order[4] = {0, 2, 1, 3};
  const rung_value_type t = *onnx_type(c, x);
  const rung_dim joined[3] = {t.extent[0], t.extent[2], rung_graph_dim(c->g, RUNG_DIM_MUL, t.extent[1], t.extent[3])};
  return onnx_reshape(c, rung_build_transpose(c->g, x, order), 3, joined);
}
rung_value onnx_repeat_heads(onnx_call *c, rung_value x, int64_t times) {
  const rung_value_type t = *onnx_type(c, x);
  if (times == 1) return x;
  rung_dim extent[5] = {t.extent[0], t.extent[1], onnx_dim(c, 1), t.extent[2], t.extent[3]};
  x = onnx_reshape(c, x, 5, extent);
  extent[2] = onnx_dim(c, times);
  x = rung_build_expand(c->g, x, 5, extent);
  const rung_dim joined[4] = {t.extent[0], rung_graph_dim(c->g, RUNG_DIM_MUL, t.extent[1], extent[2]), t.extent[2],
                              t.extent[3]};
  return onnx_reshape(c, x, 4, joined);
}

rung_value onnx_attention(onnx_call *c, const rung_value *in, uint32_t n_in, const rung_attention_attrs *attrs) {
  const rung_node *node = rung_graph_append(c->g, &rung_op_attention, in, n_in, attrs, NULL, 0);
  rung_value y = rung_build_null();
  if (!node) return y;
  if (onnx_type(c, in[0])->type == RUNG_TYPE_F32) return rung_node_result(c->g, node, 0);
  const rung_node copy = *node; /* the graph may move its nodes while it grows */
  rung_op_attention.decompose(c->g, &copy, in, &y);
  return y;
}

typedef struct attention {
  rung_value q, k, v, mask; /* [batch, heads, rows, size]; mask null: none */
  rung_type type;
  rung_dim queries, keys, past;
  int64_t groups; /* query heads a key head */
  double scale, cap;
  bool causal;
  int64_t left, right; /* -1: no end */
  rung_value lengths;  /* valid keys of each entry; null: all */
} attention;

static bool read_heads(onnx_call *c, attention *h) {
  *h = (attention){
      .q = c->in[0], .k = c->in[1], .v = c->in[2], .past = onnx_dim(c, 0), .type = onnx_type(c, c->in[0])->type};
  const bool flat = onnx_rank(c, h->q) == 3;
  if (flat) {
    h->q = onnx_split_heads(c, h->q, onnx_int(c, "q_num_heads", 0));
    h->k = onnx_split_heads(c, h->k, onnx_int(c, "kv_num_heads", 0));
    h->v = onnx_split_heads(c, h->v, onnx_int(c, "kv_num_heads", 0));
  }
  if (onnx_failed(c) || onnx_rank(c, h->q) != 4 || onnx_rank(c, h->k) != 4 || onnx_rank(c, h->v) != 4) {
    if (!onnx_failed(c)) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands must have 3 or 4 axes");
    return false;
  }
  if (onnx_has(c, 4) && onnx_has(c, 5)) {
    h->past = onnx_extent(c, c->in[4], 2);
    h->k = rung_build_concat(c->g, (rung_value[]){c->in[4], h->k}, 2, 2);
    h->v = rung_build_concat(c->g, (rung_value[]){c->in[5], h->v}, 2, 2);
  }
  h->queries = onnx_extent(c, h->q, 2);
  h->keys = onnx_extent(c, h->k, 2);
  int64_t q_heads = 0, kv_heads = 0, size = 0;
  if (!rung_dims_is_constant(c->g->dims, onnx_extent(c, h->q, 1), &q_heads) ||
      !rung_dims_is_constant(c->g->dims, onnx_extent(c, h->k, 1), &kv_heads) || kv_heads < 1 || q_heads % kv_heads ||
      !rung_dims_is_constant(c->g->dims, onnx_extent(c, h->q, 3), &size)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%lld heads for %lld key heads", (long long)q_heads, (long long)kv_heads);
    return false;
  }
  h->groups = q_heads / kv_heads;
  h->scale = onnx_attr_find(c, "scale") ? onnx_float(c, "scale", 1) : 1 / sqrt((double)size);
  h->cap = onnx_float(c, "softcap", 0);
  h->causal = onnx_int(c, "is_causal", 0) != 0;
  h->left = onnx_int(c, "left_window_size", -1);
  h->right = onnx_int(c, "right_window_size", -1);
  if (onnx_has(c, 6)) h->lengths = onnx_cast(c, c->in[6], RUNG_TYPE_I64);
  h->mask = onnx_has(c, 3) ? c->in[3] : rung_build_null();
  return !onnx_failed(c);
}

/* Keys behind the mask's end are not seen. */
static void fit_mask(onnx_call *c, attention *h) {
  if (!h->mask.id) return;
  const int rank = onnx_rank(c, h->mask), last = rank - 1;
  if (rank < 1) return;
  const rung_dim have = onnx_extent(c, h->mask, last);
  if (rung_dim_same(have, h->keys) || rung_dim_is(c->g->dims, have, 1)) return;
  rung_pad_attrs pad = {.before = {.count = rank}, .after = {.count = rank}, .value = -(double)INFINITY};
  for (int i = 0; i < rank; i++) pad.before.dim[i] = pad.after.dim[i] = onnx_dim(c, 0);
  pad.after.dim[last] = rung_graph_dim(c->g, RUNG_DIM_SUB, h->keys, have);
  if (onnx_type(c, h->mask)->type == RUNG_TYPE_BOOL) pad.value = 0;
  h->mask = onnx_op(c, &rung_op_pad, h->mask, &pad);
}

/* Where a key may be seen, bool, of up to 4 axes; null: everywhere. Positions count from the keys that came before. */
static rung_value visible(onnx_call *c, const attention *h) {
  rung_value seen = rung_build_null();
  const rung_dim row[2] = {h->queries, onnx_dim(c, 1)},
                 all[4] = {onnx_dim(c, 0), onnx_dim(c, 1), onnx_dim(c, 1), onnx_dim(c, 1)};
  const rung_value key = onnx_arange(c, h->keys, RUNG_TYPE_I64);
  rung_value position = onnx_reshape(c, onnx_arange(c, h->queries, RUNG_TYPE_I64), 2, row);
  rung_dim batch[4] = {all[1], all[1], all[1], all[1]};
  rung_value lengths = h->lengths;
  if (lengths.id) {
    batch[0] = onnx_extent(c, lengths, 0);
    lengths = onnx_reshape(c, lengths, 4, batch);
    seen = rung_build_less(c->g, key, lengths);
  }
  if (!h->causal && h->left < 0 && h->right < 0) return seen;
  const bool external = lengths.id && rung_dim_is(c->g->dims, h->past, 0);
  const rung_value before = external ? rung_build_sub(c->g, lengths, rung_build_extent(c->g, h->queries, RUNG_TYPE_I64))
                                     : rung_build_extent(c->g, h->past, RUNG_TYPE_I64);
  position = rung_build_add(c->g, position, before);
  const rung_value zero = rung_build_scalar(c->g, RUNG_TYPE_I64, 0);
  const rung_value ahead = rung_build_sub(c->g, key, position);
  rung_value part[3];
  int n = 0;
  if (h->causal) part[n++] = rung_build_less_equal(c->g, ahead, zero);
  if (h->left >= 0)
    part[n++] = rung_build_greater_equal(c->g, ahead, rung_build_scalar(c->g, RUNG_TYPE_I64, -(double)h->left));
  if (h->right >= 0)
    part[n++] = rung_build_less_equal(c->g, ahead, rung_build_scalar(c->g, RUNG_TYPE_I64, (double)h->right));
  for (int i = 0; i < n; i++) seen = seen.id ? rung_build_and(c->g, seen, part[i]) : part[i];
  return seen;
}

/* Is the fused op's meaning the same? Its causal rows end at the last key. */
static bool is_fused(onnx_call *c, const attention *h) {
  if (onnx_wants(c, 3) || h->lengths.id || h->left >= 0 || h->right >= 0) return false;
  if (h->type != RUNG_TYPE_F32) return false;
  if (onnx_type(c, h->v)->type != h->type) return false;
  if (h->mask.id && onnx_type(c, h->mask)->type != RUNG_TYPE_BOOL && onnx_type(c, h->mask)->type != h->type)
    return false;
  if (h->mask.id && onnx_rank(c, h->mask) < 2) return false;
  return !h->causal || rung_dim_same(rung_graph_dim(c->g, RUNG_DIM_ADD, h->queries, h->past), h->keys);
}

static rung_value plain(onnx_call *c, attention *h) {
  const rung_value lowest = rung_build_scalar(c->g, h->type, -(double)INFINITY),
                   zero = rung_build_scalar(c->g, h->type, 0), seen = visible(c, h);
  rung_value bias = h->mask;
  if (bias.id && onnx_type(c, bias)->type == RUNG_TYPE_BOOL) bias = rung_build_where(c->g, bias, zero, lowest);
  if (bias.id) bias = onnx_cast(c, bias, h->type);
  if (seen.id) {
    const rung_value b = rung_build_where(c->g, seen, zero, lowest);
    bias = bias.id ? rung_build_add(c->g, bias, b) : b;
  }
  const rung_value root = rung_build_scalar(c->g, h->type, sqrt(h->scale));
  const rung_matmul_attrs keys = {.transpose_b = true, .type = h->type};
  const rung_value k = onnx_repeat_heads(c, h->k, h->groups), v = onnx_repeat_heads(c, h->v, h->groups);
  rung_value score =
      onnx_op2(c, &rung_op_matmul, rung_build_mul(c->g, h->q, root), rung_build_mul(c->g, k, root), &keys);
  const int64_t mode = onnx_int(c, "qk_matmul_output_mode", 0);
  rung_value shown = score;
  if (h->cap > 0) {
    const rung_value cap = onnx_scalar(c, score, h->cap);
    score = rung_build_mul(c->g, rung_build_tanh(c->g, rung_build_div(c->g, score, cap)), cap);
    if (mode != 0 || true) shown = score;
  }
  if (bias.id) score = rung_build_add(c->g, score, bias);
  if (mode == 2) shown = score;
  rung_type precision = h->type;
  if (onnx_int(c, "softmax_precision", 0) && !onnx_element_type(c, onnx_int(c, "softmax_precision", 0), &precision))
    return score;
  const rung_axis_attrs last = {-1};
  rung_value weight = onnx_op(c, &rung_op_softmax, onnx_cast(c, score, precision), &last);
  if (bias.id) { /* rows that see nothing are zeros */
    const rung_reduce_attrs row = {.keep = true, .axes = {1, {onnx_rank(c, bias) - 1}}};
    const rung_value most = onnx_op(c, &rung_op_reduce_max, bias, &row);
    weight = rung_build_where(c->g, rung_build_equal(c->g, most, lowest), onnx_scalar(c, weight, 0), weight);
  }
  weight = onnx_cast(c, weight, h->type);
  if (mode == 3) shown = weight;
  if (onnx_wants(c, 3)) c->out[3] = shown;
  const rung_matmul_attrs values = {.type = h->type};
  return onnx_op2(c, &rung_op_matmul, weight, onnx_cast(c, v, h->type), &values);
}

void onnx_build_attention(onnx_call *c);
void onnx_build_attention(onnx_call *c) {
  attention h;
  if (!read_heads(c, &h)) return;
  fit_mask(c, &h);
  if (c->n_out > 1) c->out[1] = h.k;
  if (c->n_out > 2) c->out[2] = h.v;
  rung_value y;
  if (is_fused(c, &h)) {
    const rung_attention_attrs attrs = {.scale = h.scale, .soft_cap = h.cap, .causal = h.causal};
    const rung_value in[4] = {h.q, h.k, h.v, h.mask};
    y = onnx_attention(c, in, h.mask.id ? 4 : 3, &attrs);
  } else {
    y = plain(c, &h);
  }
  if (!onnx_failed(c)) c->out[0] = onnx_rank(c, c->in[0]) == 3 ? onnx_join_heads(c, y) : y;
}

/* ---- attention whose scores and weights go through graphs of one input */

static rung_value modified(onnx_call *c, const char *name, rung_value x) {
  const onnx_attr *a = onnx_attr_find(c, name);
  if (!a || !a->g) return x;
  if (a->g->inputs != 1 || a->g->outputs != 1)
    onnx_refuse(c, RUNG_CORRUPT_FILE, "%s must have one input and one output", name);
  onnx_scope *s = onnx_failed(c) ? NULL : onnx_scope_create(c->imp, c->scope, c->scope->body, a->g);
  if (!s) return x;
  for (uint32_t i = 0; i < a->g->tensors && !c->imp->status; i++)
    (void)onnx_bind_name(s, a->g->tensor[i].name, onnx_tensor_value(s, &a->g->tensor[i], a->g->tensor[i].name));
  (void)onnx_bind_name(s, a->g->input[0].name, x);
  if (onnx_import_nodes(s, a->g->node, a->g->nodes)) return x;
  const rung_value y = onnx_look_up(s, a->g->output[0].name);
  if (!y.id) onnx_refuse(c, RUNG_CORRUPT_FILE, "nothing gives the output of %s", name);
  return y.id ? y : x;
}

void onnx_build_flex_attention(onnx_call *c);
void onnx_build_flex_attention(onnx_call *c) {
  attention h;
  if (onnx_rank(c, c->in[0]) != 4 || !read_heads(c, &h)) {
    if (!onnx_failed(c)) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands must have 4 axes");
    return;
  }
  rung_type precision = h.type == RUNG_TYPE_F64 ? RUNG_TYPE_F64 : RUNG_TYPE_F32;
  if (onnx_int(c, "softmax_precision", 0) && !onnx_element_type(c, onnx_int(c, "softmax_precision", 0), &precision))
    return;
  const rung_value root = rung_build_scalar(c->g, h.type, sqrt(h.scale));
  const rung_matmul_attrs keys = {.transpose_b = true, .type = h.type}, values = {.type = precision};
  const rung_value k = onnx_repeat_heads(c, h.k, h.groups), v = onnx_repeat_heads(c, h.v, h.groups);
  rung_value x = onnx_op2(c, &rung_op_matmul, rung_build_mul(c->g, h.q, root), rung_build_mul(c->g, k, root), &keys);
  const rung_axis_attrs last = {-1};
  x = onnx_cast(c, modified(c, "score_mod", onnx_cast(c, x, precision)), precision);
  x = onnx_op(c, &rung_op_softmax, x, &last);
  x = onnx_cast(c, modified(c, "prob_mod", x), precision);
  if (onnx_failed(c)) return;
  c->out[0] =
      onnx_cast(c, onnx_op2(c, &rung_op_matmul, x, onnx_cast(c, v, precision), &values), onnx_type(c, h.v)->type);
}

/* ---- rotary positions */

/* Turns x [batch, heads, rows, size], or [batch, rows, heads * size], by tables [batch, rows, n] or [rows, n]. `heads` 0:
 * as many as fit 2n numbers each. */
static void rotary(onnx_call *c, rung_value cosine, rung_value sine, int64_t heads) {
  rung_value x = c->in[0];
  const rung_value_type t = *onnx_type(c, x);
  const int rank = onnx_rank(c, cosine);
  const bool flat = t.rank == 3;
  int64_t n = 0;
  const int64_t dims = onnx_int(c, "rotary_embedding_dim", 0);
  if (onnx_failed(c) || (t.rank != 3 && t.rank != 4) || rank < 2 || onnx_rank(c, sine) != rank) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands of %d and %d axes", t.rank, rank);
    return;
  }
  if (!rung_dims_is_constant(c->g->dims, onnx_extent(c, cosine, rank - 1), &n) || (dims && dims != 2 * n)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "the tables turn %lld numbers, rotary_embedding_dim says %lld",
                (long long)(2 * n), (long long)dims);
    return;
  }
  if (flat) {
    const rung_dim size =
        heads ? rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, t.extent[2], onnx_dim(c, heads)) : onnx_dim(c, n ? 2 * n : 1);
    const rung_dim many = heads ? onnx_dim(c, heads) : rung_graph_dim(c->g, RUNG_DIM_FLOORDIV, t.extent[2], size);
    const rung_dim split[4] = {t.extent[0], t.extent[1], many, size};
    x = onnx_reshape(c, x, 4, split);
  }
  const int axis = rank - 1 - (flat ? 0 : 1);
  cosine = rung_build_unsqueeze(c->g, cosine, axis);
  sine = rung_build_unsqueeze(c->g, sine, axis);
  const rung_rotate_attrs attrs = {.mode = onnx_int(c, "interleaved", 0) ? RUNG_ROPE_ADJACENT : RUNG_ROPE_HALF,
                                   .table = RUNG_ROTATE_PAIR};
  const rung_value y = onnx_op3(c, &rung_op_rotate, x, cosine, sine, &attrs);
  c->out[0] = flat ? onnx_reshape(c, y, 3, t.extent) : y;
}

static rung_value rows_of(onnx_call *c, rung_value table, rung_value positions) {
  const rung_gather_attrs rows = {0};
  return onnx_op2(c, &rung_op_gather, table, onnx_cast(c, positions, RUNG_TYPE_I64), &rows);
}

void onnx_build_rotary(onnx_call *c);
void onnx_build_rotary(onnx_call *c) {
  rung_value cosine = c->in[1], sine = c->in[2];
  const int64_t heads = onnx_int(c, "num_heads", 0);
  if (onnx_rank(c, c->in[0]) == 3 && heads < 1) {
    onnx_refuse(c, RUNG_INVALID_ARGUMENT, "an operand of 3 axes and num_heads %lld", (long long)heads);
    return;
  }
  if (onnx_has(c, 3)) {
    cosine = rows_of(c, cosine, c->in[3]);
    sine = rows_of(c, sine, c->in[3]);
  }
  rotary(c, cosine, sine, heads);
}

/* Positions come second: of each row, or of the first row alone. */
void onnx_build_ms_rotary(onnx_call *c);
void onnx_build_ms_rotary(onnx_call *c) {
  const int64_t heads = onnx_int(c, "num_heads", 0);
  rung_value positions = c->in[1];
  if (!onnx_has(c, 1) || !onnx_has(c, 2) || !onnx_has(c, 3) || onnx_int(c, "is_packed_batching", 0) ||
      onnx_float(c, "scale", 1) != 1 || heads < 0) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "packed batches, a scale");
    return;
  }
  positions = onnx_cast(c, positions, RUNG_TYPE_I64);
  if (onnx_rank(c, positions) == 1 && onnx_rank(c, c->in[0]) > 2) {
    const rung_dim rows = onnx_extent(c, c->in[0], onnx_rank(c, c->in[0]) - 2);
    positions = rung_build_add(c->g, onnx_arange(c, rows, RUNG_TYPE_I64), positions);
  }
  const rung_value cosine = rows_of(c, c->in[2], positions), sine = rows_of(c, c->in[3], positions);
  rotary(c, cosine, sine, heads);
}

/* ---- linear attention: a state of each head that every row decays, corrects and reads */

typedef struct recurrence {
  rung_value value[5]; /* query, key, value, decay, beta by time: [rows, batch, heads, ...] */
  bool gate, delta;
  int64_t groups;
  double scale;
} recurrence;

static rung_value by_time(onnx_call *c, rung_value x, int64_t heads) {
  static const int64_t order[4] = {2, 0, 1, 3};
  return onnx_cast(c, rung_build_transpose(c->g, onnx_split_heads(c, x, heads), order), RUNG_TYPE_F32);
}

static rung_value row_input(rung_graph *b, const char *name, rung_graph *g, rung_value rows) {
  const rung_value_type *t = rung_build_type(g, rows);
  return rung_graph_input(b, name, t->type, t->rank - 1, t->extent + 1);
}

static rung_graph *recurrence_body(onnx_call *c, const recurrence *r, rung_value state) {
  static const char *const names[] = {"q", "k", "v", "decay", "beta"};
  rung_graph *b = rung_graph_body(c->g);
  const rung_value_type s = *onnx_type(c, state);
  rung_value in[5] = {{0, 0}}, now = rung_graph_input(b, "state", s.type, s.rank, s.extent);
  for (int i = 0; i < 5; i++)
    if (r->value[i].id) in[i] = row_input(b, names[i], c->g, r->value[i]);
  const rung_matmul_attrs product = {.type = RUNG_TYPE_F32};
  const rung_value column = rung_build_unsqueeze(b, in[1], 3), row = rung_build_unsqueeze(b, in[1], 2);
  rung_value v = rung_build_unsqueeze(b, in[2], 2);
  if (r->gate) now = rung_build_mul(b, now, rung_build_unsqueeze(b, rung_build_exp(b, in[3]), 3));
  if (r->delta) {
    const rung_value had = rung_graph_op(b, &rung_op_matmul, (rung_value[]){row, now}, 2, &product);
    const rung_value rate = rung_build_unsqueeze(b, in[4], 2);
    v = rung_build_mul(b, rate, rung_build_sub(b, v, had));
  }
  now = rung_build_add(b, now, rung_build_mul(b, column, v));
  rung_value read = now;
  onnx_call inside = *c;
  inside.g = b;
  read = onnx_repeat_heads(&inside, read, r->groups);
  rung_value y =
      rung_graph_op(b, &rung_op_matmul, (rung_value[]){rung_build_unsqueeze(b, in[0], 2), read}, 2, &product);
  const rung_value scale = rung_build_scalar(b, RUNG_TYPE_F32, r->scale);
  y = rung_build_mul(b, rung_build_squeeze(b, y, 2), scale);
  rung_graph_output(b, "state", now);
  rung_graph_output(b, "y", y);
  return b;
}

void onnx_build_linear_attention(onnx_call *c);
void onnx_build_linear_attention(onnx_call *c) {
  const int64_t q_heads = onnx_int(c, "q_num_heads", 0), kv_heads = onnx_int(c, "kv_num_heads", 0);
  recurrence r = {.gate = onnx_text_is(c, "update_rule", "gated_delta", "gated") ||
                          onnx_text_is(c, "update_rule", "gated_delta", "gated_delta"),
                  .delta = onnx_text_is(c, "update_rule", "gated_delta", "delta") ||
                           onnx_text_is(c, "update_rule", "gated_delta", "gated_delta")};
  if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads || r.gate != onnx_has(c, 4) || r.delta != onnx_has(c, 5)) {
    onnx_refuse(c, RUNG_INVALID_ARGUMENT, "its heads, its rule or its inputs do not fit together");
    return;
  }
  r.groups = q_heads / kv_heads;
  r.value[0] = by_time(c, c->in[0], q_heads);
  r.value[1] = by_time(c, c->in[1], kv_heads);
  r.value[2] = by_time(c, c->in[2], kv_heads);
  if (onnx_failed(c)) return;
  if (r.gate) r.value[3] = by_time(c, c->in[4], kv_heads);
  if (r.delta)
    r.value[4] = by_time(c, c->in[5], rung_dim_is(c->g->dims, onnx_extent(c, c->in[5], 2), 1) ? 1 : kv_heads);
  const rung_dim size = onnx_extent(c, r.value[1], 3);
  int64_t k_size = 1;
  if (onnx_failed(c) || !rung_dims_is_constant(c->g->dims, size, &k_size)) return;
  r.scale = onnx_float(c, "scale", 0) != 0 ? onnx_float(c, "scale", 0) : 1 / sqrt((double)k_size);
  const rung_dim extent[4] = {onnx_extent(c, c->in[0], 0), onnx_dim(c, kv_heads), size, onnx_extent(c, r.value[2], 3)};
  rung_value state =
      onnx_has(c, 3) ? onnx_cast(c, c->in[3], RUNG_TYPE_F32) : onnx_filled(c, RUNG_TYPE_F32, 0, 4, extent);
  rung_value in[6] = {state};
  uint32_t n = 1;
  for (int i = 0; i < 5; i++)
    if (r.value[i].id) in[n++] = r.value[i];
  const rung_node *node = rung_build_scan(c->g, recurrence_body(c, &r, state), in, n, 1, n - 1);
  if (!node) return;
  const rung_value last = rung_node_result(c->g, node, 0), rows = rung_node_result(c->g, node, 1);
  static const int64_t order[4] = {1, 2, 0, 3}; /* [rows, batch, heads, size] as [batch, heads, rows, size] */
  const rung_type type = onnx_type(c, c->in[0])->type;
  c->out[0] = onnx_cast(c, onnx_join_heads(c, rung_build_transpose(c->g, rows, order)), type);
  if (c->n_out > 1) c->out[1] = onnx_cast(c, last, onnx_has(c, 3) ? onnx_type(c, c->in[3])->type : type);
}

/* ---- a causal convolution with one kernel a channel */

void onnx_build_causal_conv(onnx_call *c);
void onnx_build_causal_conv(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]), w = *onnx_type(c, c->in[1]);
  int64_t k, channels;
  if (x.rank != 3 || w.rank != 3 || !rung_dims_is_constant(c->g->dims, w.extent[2], &k) ||
      !rung_dims_is_constant(c->g->dims, w.extent[0], &channels)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands of %d and %d axes", x.rank, w.rank);
    return;
  }
  const rung_dim before[3] = {x.extent[0], x.extent[1], onnx_dim(c, k - 1)};
  const rung_value past = onnx_has(c, 3) ? c->in[3] : onnx_filled(c, x.type, 0, 3, before);
  const rung_value all = rung_build_concat(c->g, (rung_value[]){past, c->in[0]}, 2, 2);
  const rung_conv_attrs attrs = {.groups = channels};
  rung_value y = onnx_op3(c, &rung_op_conv, all, c->in[1], onnx_has(c, 2) ? c->in[2] : rung_build_null(), &attrs);
  if (!onnx_text_is(c, "activation", "none", "none")) {
    const rung_value wide = onnx_cast(c, y, RUNG_TYPE_F32);
    y = onnx_cast(c, rung_build_silu(c->g, wide), x.type);
  }
  c->out[0] = y;
  if (c->n_out > 1) c->out[1] = rung_build_slice(c->g, all, 2, x.extent[2], onnx_dim(c, k - 1));
}
