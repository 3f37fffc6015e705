/* SPDX-License-Identifier: MIT
 * rnn: h' = f(x + h R), as ONNX RNN, from the products of the inputs on. */
#include "ops/recurrent.h"

static rung_status infer(rung_infer *infer) { return rung_recurrent_infer(infer, 1); }

static rung_status reference(const rung_args *args) {
  rung_recurrence rec;
  RUNG_TRY(rung_recurrent_resolve(args, "rnn", 1, &rec));
  for (int64_t d = 0; d < rec.directions; d++) {
    for (int64_t b = 0; b < rec.batch; b++) {
      const int64_t length = rung_recurrent_length(&rec, b);
      int64_t before = -1;
      for (int64_t i = 0; i < length; i++) {
        const int64_t t = rung_recurrent_step(&rec, d, length, i);
        for (int64_t k = 0; k < rec.hidden; k++) {
          const double sum =
              rung_load_f64(rec.x, rung_at4(rec.x, t, b, d, k)) + rung_recurrent_product(&rec, d, b, before, k);
          rung_store_f64(rec.y, rung_at4(rec.y, t, d, b, k),
                         rung_activation_of(&rec.activation[d][0], rung_recurrent_clip(&rec, sum)));
        }
        before = t;
      }
      rung_recurrent_end(&rec, d, b, length);
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[3,2,1,7] f32[1,7,7]{-0.1,0.1}", ""},
    {"f32[4,3,2,5] f32[2,5,5]{-0.1,0.1} i32[3]{0,4} f32[2,3,5]", "direction=bidirectional, lengths=true, initial=true"},
    {"f32[2,1,1,33] f32[1,33,33]{-0.1,0.1}", "direction=reverse, clip=0.5, activations=\"elu:0.7\""},
    {"f32[2,2,2,3] f32[2,3,3]{-0.1,0.1}", "direction=bidirectional, activations=\"scaled_tanh:0.5:2 softplus\""},
    {"f32[0,2,1,3] f32[1,3,3]{-0.1,0.1}", ""},
    {0}};

const rung_op rung_op_rnn = {
    .name = "rnn",
    .doc = "plain recurrence over the steps of sequences, from the products of the inputs on",
    .operands = (const char *const[]){"x", "r", "lengths", "h0", NULL},
    .results_named = (const char *const[]){"y", "h", NULL},
    .in_lo = 2,
    .in_hi = 4,
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
