/* SPDX-License-Identifier: MIT
 * gru: gated recurrent units (Cho and others 2014) as ONNX GRU, from the products of the inputs on. Gates z, r, h:
 *   h~ = g(x + (r h) R + bias), or with `linear` g(x + r (h R + bias))    h' = (1 - z) h~ + z h */
#include "ops/recurrent.h"

static rung_status infer(rung_infer *infer) { return rung_recurrent_infer(infer, 3); }

typedef struct place {
  const rung_recurrence *rec;
  int64_t direction, b, t, before;
} place;

static double input(const place *p, int64_t row) {
  return rung_load_f64(p->rec->x, rung_at4(p->rec->x, p->t, p->b, p->direction, row));
}
static double gate(const place *p, int64_t gate_index, int64_t k) {
  const rung_recurrence *rec = p->rec;
  const int64_t row = gate_index * rec->hidden + k;
  const double sum = input(p, row) + rung_recurrent_product(rec, p->direction, p->b, p->before, row);
  return rung_activation_of(&rec->activation[p->direction][0], rung_recurrent_clip(rec, sum));
}

static double candidate(const place *p, int64_t k) {
  const rung_recurrence *rec = p->rec;
  const int64_t row = 2 * rec->hidden + k;
  const double bias =
      rec->bias ? rung_load_f64(rec->bias, p->direction * rec->bias->stride[0] + k * rec->bias->stride[1]) : 0;
  double sum = 0;
  if (rec->attrs->linear) {
    sum = gate(p, 1, k) * (rung_recurrent_product(rec, p->direction, p->b, p->before, row) + bias);
  } else {
    for (int64_t j = 0; j < rec->hidden; j++) {
      const double w = rung_load_f64(rec->r, rung_at3(rec->r, p->direction, row, j));
      sum += w * gate(p, 1, j) * rung_recurrent_before(rec, p->direction, p->b, p->before, j);
    }
    sum += bias;
  }
  return rung_activation_of(&rec->activation[p->direction][1], rung_recurrent_clip(rec, input(p, row) + sum));
}

static rung_status reference(const rung_args *args) {
  rung_recurrence rec;
  RUNG_TRY(rung_recurrent_resolve(args, "gru", 3, &rec));
  for (int64_t d = 0; d < rec.directions; d++) {
    for (int64_t b = 0; b < rec.batch; b++) {
      const int64_t length = rung_recurrent_length(&rec, b);
      place p = {&rec, d, b, 0, -1};
      for (int64_t i = 0; i < length; i++, p.before = p.t) {
        p.t = rung_recurrent_step(&rec, d, length, i);
        for (int64_t k = 0; k < rec.hidden; k++) {
          const double z = gate(&p, 0, k), h = rung_recurrent_before(&rec, d, b, p.before, k);
          rung_store_f64(rec.y, rung_at4(rec.y, p.t, d, b, k), (1 - z) * candidate(&p, k) + z * h);
        }
      }
      rung_recurrent_end(&rec, d, b, length);
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[3,2,1,21] f32[1,21,7]{-0.1,0.1}", ""},
    {"f32[4,3,2,15] f32[2,15,5]{-0.1,0.1} f32[2,5] i32[3]{0,4} f32[2,3,5]",
     "direction=bidirectional, lengths=true, initial=true, bias=true"},
    {"f32[2,1,1,99] f32[1,99,33]{-0.1,0.1} f32[1,33]", "direction=reverse, bias=true, linear=true, clip=0.5"},
    {"f32[2,2,1,9] f32[1,9,3]{-0.1,0.1}", "activations=\"affine:0.5:0.1 leaky_relu:0.2\""},
    {"f32[0,2,1,9] f32[1,9,3]{-0.1,0.1}", ""},
    {0}};

const rung_op rung_op_gru = {
    .name = "gru",
    .doc = "gated recurrent units over the steps of sequences, from the products of the inputs on",
    .operands = (const char *const[]){"x", "r", "bias", "lengths", "h0", NULL},
    .results_named = (const char *const[]){"y", "h", NULL},
    .in_lo = 2,
    .in_hi = 5,
    .results = 2,
    .attrs = rung_recurrent_attributes,
    .attrs_bytes = sizeof(rung_recurrent_attrs),
    .roles = rung_recurrent_role_names,
    .infer = infer,
    .role_dims = rung_recurrent_roles,
    .reference = reference,
    .no_gradient = "not yet: wants a loop from the last step to the first",
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-5, .absolute = 1e-35}, /* steps build on one another */
};
