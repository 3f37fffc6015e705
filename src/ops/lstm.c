/* SPDX-License-Identifier: MIT
 * lstm: long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates and peepholes) as ONNX LSTM, from
 * the products of the inputs on. Gates i, o, f, c:
 *   c' = f c + i g(c~)    h' = o h(c')    o sees c' through its peephole, i and f see c */
#include "ops/recurrent.h"

static rung_status infer(rung_infer *infer) { return rung_recurrent_infer(infer, 4); }

typedef struct place {
  const rung_recurrence *rec;
  int64_t direction, b, t, before;
} place;

static double gate(const place *p, int64_t gate_index, int64_t k, double cell, int peephole) {
  const rung_recurrence *rec = p->rec;
  const int64_t row = gate_index * rec->hidden + k;
  double sum = rung_load_f64(rec->x, rung_at4(rec->x, p->t, p->b, p->direction, row)) +
               rung_recurrent_product(rec, p->direction, p->b, p->before, row);
  if (rec->peepholes && peephole >= 0)
    sum += cell * rung_load_f64(rec->peepholes, p->direction * rec->peepholes->stride[0] +
                                                    (peephole * rec->hidden + k) * rec->peepholes->stride[1]);
  return rung_recurrent_clip(rec, sum);
}

/* Cells live in the result c from step to step. */
static void run_step(const place *p) {
  const rung_recurrence *rec = p->rec;
  const rung_activation *f = rec->activation[p->direction];
  for (int64_t k = 0; k < rec->hidden; k++) {
    const int64_t at = rung_at3(rec->c, p->direction, p->b, k);
    const double cell = rung_load_f64(rec->c, at);
    const double in = rung_activation_of(&f[0], gate(p, 0, k, cell, 0));
    const double forget = rec->attrs->input_forget ? 1 - in : rung_activation_of(&f[0], gate(p, 2, k, cell, 2));
    const double next = forget * cell + in * rung_activation_of(&f[1], gate(p, 3, k, 0, -1));
    const double out = rung_activation_of(&f[0], gate(p, 1, k, next, 1));
    rung_store_f64(rec->c, at, next);
    rung_store_f64(rec->y, rung_at4(rec->y, p->t, p->direction, p->b, k), out * rung_activation_of(&f[2], next));
  }
}

static rung_status reference(const rung_args *args) {
  rung_recurrence rec;
  RUNG_TRY(rung_recurrent_resolve(args, "lstm", 4, &rec));
  for (int64_t d = 0; d < rec.directions; d++) {
    for (int64_t b = 0; b < rec.batch; b++) {
      const int64_t length = rung_recurrent_length(&rec, b);
      place p = {&rec, d, b, 0, -1};
      for (int64_t k = 0; k < rec.hidden; k++)
        rung_store_f64(rec.c, rung_at3(rec.c, d, b, k), rec.c0 ? rung_load_f64(rec.c0, rung_at3(rec.c0, d, b, k)) : 0);
      for (int64_t i = 0; i < length; i++, p.before = p.t) {
        p.t = rung_recurrent_step(&rec, d, length, i);
        run_step(&p);
      }
      rung_recurrent_end(&rec, d, b, length);
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[3,2,1,28] f32[1,28,7]{-0.1,0.1}", ""},
    {"f32[4,3,2,20] f32[2,20,5]{-0.1,0.1} i32[3]{0,4} f32[2,3,5] f32[2,3,5] f32[2,15]",
     "direction=bidirectional, lengths=true, initial=true, peepholes=true"},
    {"f32[2,1,1,132] f32[1,132,33]{-0.1,0.1} f32[1,1,33] f32[1,1,33]",
     "direction=reverse, initial=true, clip=0.5, input_forget=true"},
    {"f32[2,2,1,12] f32[1,12,3]{-0.1,0.1}", "activations=\"hard_sigmoid:0.3:0.4 softsign relu\""},
    {"f32[4,2,2,36] f32[2,36,9]{-0.2,0.1}", "direction=bidirectional, levels=true"},
    {"f32[0,2,1,12] f32[1,12,3]{-0.1,0.1}", ""},
    {"f32[2,0,1,12] f32[1,12,3]{-0.1,0.1}", ""},
    {0}};

const rung_op rung_op_lstm = {
    .name = "lstm",
    .doc = "long short-term memory over the steps of sequences, from the products of the inputs on",
    .operands = (const char *const[]){"x", "r", "lengths", "h0", "c0", "peepholes", NULL},
    .results_named = (const char *const[]){"y", "h", "c", NULL},
    .in_lo = 2,
    .in_hi = 6,
    .results = 3,
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
    /* Steps build on one another. Levels are f32 whatever x is: off by 8e-10 where what they give cancels, against
     * float64; the other cases need no floor. */
    .tolerance = {.relative = 2e-5, .absolute = 2e-9},
};
