/* SPDX-License-Identifier: MIT
 * ONNX losses. */
#include "formats/onnx/import.h"

/* The loss of log-probabilities x[n, classes, ...] at target[n, ...]; ignored targets weigh nothing. */
static rung_value likelihood(onnx_call *c, rung_value x, rung_value target, rung_value weight) {
  const rung_value_type t = *onnx_type(c, x);
  rung_value ignored = rung_build_null();
  target = onnx_cast(c, target, RUNG_TYPE_I64);
  if (onnx_attr_find(c, "ignore_index")) {
    const rung_value index = rung_build_scalar(c->g, RUNG_TYPE_I64, (double)onnx_int(c, "ignore_index", 0));
    ignored = rung_build_equal(c->g, target, index);
    target = rung_build_where(c->g, ignored, rung_build_scalar(c->g, RUNG_TYPE_I64, 0), target);
  }
  const rung_gather_attrs classes = {1};
  rung_value loss = onnx_op2(c, &rung_op_gather_elements, x, rung_build_unsqueeze(c->g, target, 1), &classes);
  loss = rung_build_neg(c->g, rung_build_squeeze(c->g, loss, 1));
  const rung_value one = rung_build_scalar(c->g, t.type, 1), zero = rung_build_scalar(c->g, t.type, 0);
  const rung_gather_attrs rows = {0};
  rung_value w = rung_build_null();
  if (weight.id) w = onnx_op2(c, &rung_op_gather, weight, target, &rows);
  if (ignored.id) w = rung_build_where(c->g, ignored, zero, w.id ? w : one);
  if (w.id) loss = rung_build_mul(c->g, loss, w);
  if (onnx_text_is(c, "reduction", "mean", "none")) return loss;
  const rung_reduce_attrs all = {.keep = false};
  if (onnx_text_is(c, "reduction", "mean", "sum")) return onnx_op(c, &rung_op_reduce_sum, loss, &all);
  if (!w.id) return onnx_op(c, &rung_op_reduce_mean, loss, &all);
  return rung_build_div(c->g, onnx_op(c, &rung_op_reduce_sum, loss, &all), onnx_op(c, &rung_op_reduce_sum, w, &all));
}

void onnx_build_likelihood_loss(onnx_call *c);
void onnx_build_likelihood_loss(onnx_call *c) {
  if (onnx_rank(c, c->in[0]) < 2) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes", onnx_rank(c, c->in[0]));
  if (onnx_failed(c)) return;
  c->out[0] = likelihood(c, c->in[0], c->in[1], onnx_has(c, 2) ? c->in[2] : rung_build_null());
}
void onnx_build_cross_entropy_loss(onnx_call *c);
void onnx_build_cross_entropy_loss(onnx_call *c) {
  const rung_axis_attrs classes = {1};
  if (onnx_rank(c, c->in[0]) < 2) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "an operand of %d axes", onnx_rank(c, c->in[0]));
  if (onnx_failed(c)) return;
  const rung_value x = onnx_op(c, &rung_op_log_softmax, c->in[0], &classes);
  c->out[0] = likelihood(c, x, c->in[1], onnx_has(c, 2) ? c->in[2] : rung_build_null());
  if (c->n_out > 1) c->out[1] = x;
}
