/* SPDX-License-Identifier: MIT
 * ONNX LSTM, GRU and RNN: the inputs' products for all steps and directions are one matrix product; the op does what is
 * recurrent. */
#include <stdio.h>
#include <string.h>

#include "formats/onnx/import.h"

typedef struct recurrent {
  int64_t gates, directions, hidden;
  rung_value x, w, r, bias; /* w [directions, gates hidden, inputs]; bias null: none */
  bool batch_first;
  rung_recurrent_attrs attrs;
  char activations[512];
} recurrent;

static bool functions_of(onnx_call *c, recurrent *n) {
  static const struct {
    const char *onnx, *name;
    bool alpha, beta;
  } words[] = {{"Relu", "relu", false, false},
               {"Tanh", "tanh", false, false},
               {"Sigmoid", "sigmoid", false, false},
               {"Affine", "affine", true, true},
               {"LeakyRelu", "leaky_relu", true, false},
               {"ThresholdedRelu", "thresholded_relu", true, false},
               {"ScaledTanh", "scaled_tanh", true, true},
               {"HardSigmoid", "hard_sigmoid", true, true},
               {"Elu", "elu", true, false},
               {"Softsign", "softsign", false, false},
               {"Softplus", "softplus", false, false}};
  const onnx_attr *list = onnx_attr_find(c, "activations"), *alpha = onnx_attr_find(c, "activation_alpha"),
                  *beta = onnx_attr_find(c, "activation_beta");
  uint32_t a = 0, b = 0;
  n->activations[0] = 0;
  for (uint32_t i = 0; list && list->type == ONNX_ATTR_STRINGS && i < list->count; i++) {
    size_t k = 0;
    while (k < RUNG_COUNT(words) && !onnx_name_is(list->strings[i], words[k].onnx)) k++;
    const size_t used = strlen(n->activations);
    if (k == RUNG_COUNT(words) || used > sizeof n->activations - 80) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "the activation %s", onnx_show(list->strings[i]).text);
      return false;
    }
    int at = snprintf(n->activations + used, 80, "%s%s", used ? " " : "", words[k].name);
    if (words[k].alpha && alpha && a < alpha->count) {
      at += snprintf(n->activations + used + at, 24, ":%.9g", (double)alpha->floats[a++]);
      if (words[k].beta && beta && b < beta->count)
        (void)snprintf(n->activations + used + at, 24, ":%.9g", (double)beta->floats[b++]);
    }
  }
  n->attrs.activations = n->activations;
  return true;
}

static bool take_node(onnx_call *c, recurrent *n) {
  n->batch_first = onnx_int(c, "layout", 0) != 0;
  if (onnx_text_is(c, "direction", "forward", "reverse")) n->attrs.direction = RUNG_REVERSE;
  if (onnx_text_is(c, "direction", "forward", "bidirectional")) n->attrs.direction = RUNG_BIDIRECTIONAL;
  n->attrs.clip = onnx_float(c, "clip", 0);
  n->attrs.input_forget = onnx_int(c, "input_forget", 0) != 0;
  n->attrs.linear = onnx_int(c, "linear_before_reset", 0) != 0;
  n->attrs.lengths = onnx_has(c, 4);
  if (!functions_of(c, n)) return false;
  const rung_value_type x = *onnx_type(c, n->x), r = *onnx_type(c, n->r);
  if (x.rank != 3 || r.rank != 3 || !rung_dims_is_constant(c->g->dims, r.extent[0], &n->directions) ||
      !rung_dims_is_constant(c->g->dims, r.extent[2], &n->hidden)) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands of %d and %d axes", x.rank, r.rank);
    return false;
  }
  static const int64_t swap[3] = {1, 0, 2};
  if (n->batch_first) n->x = rung_build_transpose(c->g, n->x, swap);
  return true;
}

/* The two halves of B[directions, 2 gates hidden]: of the inputs and of the recurrence. */
static rung_value bias_part(onnx_call *c, const recurrent *n, int64_t from, int64_t count) {
  return onnx_slice(c, n->bias, 1, from * n->hidden, count * n->hidden);
}

/* x[seq, batch, directions, gates hidden]: the inputs times W, with the biases that can be added now. */
static rung_value products(onnx_call *c, const recurrent *n) {
  const rung_value_type x = *onnx_type(c, n->x);
  const int64_t rows = n->directions * n->gates * n->hidden;
  const rung_dim flat[2] = {onnx_dim(c, rows), x.extent[2]},
                 split[4] = {x.extent[0], x.extent[1], onnx_dim(c, n->directions), onnx_dim(c, n->gates * n->hidden)};
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = x.type};
  rung_value y = onnx_op2(c, &rung_op_matmul, n->x, onnx_reshape(c, n->w, 2, flat), &attrs);
  if (n->bias.id) {
    rung_value b = bias_part(c, n, 0, n->gates), recurrent_bias = bias_part(c, n, n->gates, n->gates);
    if (n->gates == 3) { /* that of the candidate comes behind its product */
      const rung_dim none[2] = {onnx_dim(c, n->directions), onnx_dim(c, n->hidden)};
      const rung_value part[2] = {bias_part(c, n, 3, 2), onnx_filled(c, x.type, 0, 2, none)};
      recurrent_bias = rung_build_concat(c->g, part, 2, 1);
    }
    y = rung_build_add(c->g, y, onnx_reshape(c, rung_build_add(c->g, b, recurrent_bias), 1, flat));
  }
  return onnx_reshape(c, y, 4, split);
}

static rung_value state_of(onnx_call *c, const recurrent *n, uint32_t i) {
  static const int64_t swap[3] = {1, 0, 2};
  const rung_value_type x = *onnx_type(c, n->x);
  const rung_dim extent[3] = {onnx_dim(c, n->directions), x.extent[1], onnx_dim(c, n->hidden)};
  if (!onnx_has(c, i)) return onnx_filled(c, x.type, 0, 3, extent);
  return n->batch_first ? rung_build_transpose(c->g, c->in[i], swap) : c->in[i];
}

static void run(onnx_call *c, const rung_op *op, recurrent *n) {
  rung_value in[8] = {products(c, n), n->r};
  uint32_t count = 2;
  if (n->gates == 3 && n->bias.id) {
    n->attrs.bias = true;
    in[count++] = bias_part(c, n, 5, 1);
  }
  if (n->attrs.lengths) in[count++] = onnx_cast(c, c->in[4], RUNG_TYPE_I32);
  n->attrs.initial = onnx_has(c, 5) || (n->gates == 4 && onnx_has(c, 6));
  if (n->attrs.initial) in[count++] = state_of(c, n, 5);
  if (n->attrs.initial && n->gates == 4) in[count++] = state_of(c, n, 6);
  if (n->gates == 4 && onnx_has(c, 7)) {
    n->attrs.peepholes = true;
    in[count++] = c->in[7];
  }
  if (onnx_failed(c)) return;
  const rung_node *node = rung_graph_append(c->g, op, in, count, &n->attrs, NULL, 0);
  if (!node) return;
  static const int64_t rows_first[4] = {2, 0, 1, 3}, swap[3] = {1, 0, 2};
  for (uint32_t i = 0; i < c->n_out && i < node->results; i++) {
    c->out[i] = rung_node_result(c->g, node, i);
    if (n->batch_first) c->out[i] = rung_build_transpose(c->g, c->out[i], i ? swap : rows_first);
  }
}

/* variant: how many gates */
void onnx_build_recurrent(onnx_call *c);
void onnx_build_recurrent(onnx_call *c) {
  recurrent n = {.gates = c->row->variant, .x = c->in[0], .w = c->in[1], .r = c->in[2]};
  if (onnx_has(c, 3)) n.bias = c->in[3];
  if (take_node(c, &n)) run(c, c->row->op, &n);
}

/* W[directions, inputs, 4 hidden] and R as integers with a scale each direction, or each gate's row: as numbers, and
 * the other way round. */
static rung_value weights_of(onnx_call *c, uint32_t i, uint32_t scale) {
  const rung_value_type t = *onnx_type(c, c->in[i]);
  rung_value w = onnx_cast(c, c->in[i], RUNG_TYPE_F32), part[2] = {{0, 0}};
  for (uint32_t k = 0; k < 2; k++) {
    if (!onnx_has(c, scale + k)) continue;
    const rung_value v = c->in[scale + k];
    const bool rows = onnx_rank(c, v) == 2 || (onnx_rank(c, v) == 1 && !rung_dim_is(c->g->dims, t.extent[0], 1) == 0 &&
                                               !rung_dim_is(c->g->dims, onnx_extent(c, v, 0), 1));
    const rung_dim extent[3] = {t.extent[0], onnx_dim(c, 1), rows ? t.extent[2] : onnx_dim(c, 1)};
    part[k] = onnx_reshape(c, onnx_cast(c, v, RUNG_TYPE_F32), 3, extent);
  }
  if (part[1].id) w = rung_build_sub(c->g, w, part[1]);
  w = rung_build_mul(c->g, w, part[0]);
  return rung_build_swap_last(c->g, w);
}
/* x in the 256 levels of its range, as numbers: products with integers times a scale are then those of integers. */
static rung_value levels_of(onnx_call *c, rung_value x) {
  const rung_node *node = rung_graph_append(c->g, &rung_op_dynamic_quantize, &x, 1, NULL, NULL, 0);
  if (!node) return x;
  const rung_value level = onnx_cast(c, rung_node_result(c->g, node, 0), RUNG_TYPE_F32),
                   zero = onnx_cast(c, rung_node_result(c->g, node, 2), RUNG_TYPE_F32);
  return rung_build_mul(c->g, rung_build_sub(c->g, level, zero), rung_node_result(c->g, node, 1));
}
/* Inputs and states meet their weights in 8 bits: the inputs of all steps together, states step by step. */
void onnx_build_quantized_lstm(onnx_call *c);
void onnx_build_quantized_lstm(onnx_call *c) {
  recurrent n = {.gates = 4, .x = c->in[0]};
  if (!onnx_has(c, 8) || !onnx_has(c, 10) || onnx_rank(c, c->in[1]) != 3 || onnx_rank(c, c->in[2]) != 3) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "its weights or their scales are missing");
    return;
  }
  n.w = weights_of(c, 1, 8);
  n.r = weights_of(c, 2, 10);
  if (onnx_has(c, 3)) n.bias = c->in[3];
  n.x = levels_of(c, n.x);
  n.attrs.levels = true;
  if (!onnx_failed(c) && take_node(c, &n)) run(c, &rung_op_lstm, &n);
}
