/* SPDX-License-Identifier: MIT
 * sample: one token per row of logits, by temperature, top-k, top-p and min-p, each row with its own parameters and its
 * own random number: the part of the sampler chain that looks at nothing but the row (models/sample.h).
 *
 * Every step keeps a beginning of one order, larger logit first, then lower id. So what is left is described by the last
 * token that stays, and finding it needs no set: the reference narrows the place in the order bit by bit. The draw adds
 * weights by rising id. */
#include <string.h>

#include "ops/sampling.h"
#include "ops/structured.h"

static rung_status infer(rung_infer *infer) {
  const rung_value_type *logits = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_FLOAT));
  if (logits->type != RUNG_TYPE_F32) return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "logits must be f32");
  if (infer->in[1].type != RUNG_TYPE_F64) return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "parameters must be f64");
  RUNG_TRY(rung_infer_rank(infer, 0, 2));
  RUNG_TRY(rung_infer_rank(infer, 1, 2));
  RUNG_TRY(rung_infer_extent(infer, 1, 0, logits->extent[0]));
  RUNG_TRY(rung_infer_extent(infer, 1, 1, rung_dims_constant(infer->dims, RUNG_SAMPLE_COLUMNS)));
  rung_infer_result(infer, 0, RUNG_TYPE_I32, 1, logits->extent);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in->extent[0];
  out_role[1] = in->extent[1];
}

typedef struct row {
  const uint8_t *base;
  int64_t step, count; /* step: bytes */
  float largest;
  double parameter[RUNG_SAMPLE_COLUMNS];
} row;

static float logit_at(const row *r, int64_t i) {
  float x;
  memcpy(&x, r->base + i * r->step, sizeof x);
  return x;
}

/* A token's place in the order, larger first; 0 for what is never chosen. Zeros of both signs are one number. */
static uint64_t place(float logit, int64_t id) {
  uint32_t bits;
  if (!(logit > -INFINITY)) return 0;
  if (logit == 0) logit = 0;
  memcpy(&bits, &logit, sizeof bits);
  bits = bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
  return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)id);
}

/* Tokens from a place on: how many, or their weights' sum. */
static double mass(const row *r, uint64_t from, bool weighed) {
  double sum = 0;
  for (int64_t i = 0; i < r->count; i++) {
    const float x = logit_at(r, i);
    const uint64_t at = place(x, i);
    if (at && at >= from) sum += weighed ? rung_sample_weight(x, r->largest) : 1;
  }
  return sum;
}

/* The last place, not before `from`, such that tokens up to it reach the goal; `from` where all do not. */
static uint64_t last_place(const row *r, uint64_t from, double goal, bool weighed) {
  uint64_t last = 0;
  for (int bit = 63; bit >= 0; bit--) {
    const uint64_t next = last | UINT64_C(1) << bit;
    if (next <= from || mass(r, next, weighed) >= goal) last = next;
  }
  return last > from ? last : from;
}

static bool stays(const row *r, float logit, int64_t id, uint64_t from) {
  const uint64_t at = place(logit, id);
  const double p = r->parameter[RUNG_SAMPLE_MIN_P];
  return at && at >= from && !(p > 0 && rung_sample_weight(logit, r->largest) < (p < 1 ? p : 1));
}

static int64_t draw(const row *r, uint64_t from) {
  const double temperature = r->parameter[RUNG_SAMPLE_TEMPERATURE];
  double total = 0, sum = 0;
  int64_t last = -1;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < r->count; i++) {
      const float x = logit_at(r, i);
      if (!stays(r, x, i, from)) continue;
      const double weight = rung_sample_weight_at(x, r->largest, temperature);
      if (pass == 0) {
        total += weight;
        continue;
      }
      sum += weight;
      if (weight > 0 || last < 0) last = i;
      if (sum > r->parameter[RUNG_SAMPLE_UNIFORM] * total) return i;
    }
  return last; /* only if the product rounds up to the total */
}

static int64_t choose(row *r) {
  const double k = r->parameter[RUNG_SAMPLE_TOP_K], p = r->parameter[RUNG_SAMPLE_TOP_P];
  uint64_t best = 0;
  for (int64_t i = 0; i < r->count; i++) {
    const uint64_t at = place(logit_at(r, i), i);
    if (at > best) best = at;
  }
  if (!best) return -1;
  const int64_t id = UINT32_MAX - (uint32_t)best;
  r->largest = logit_at(r, id);
  if (!(r->parameter[RUNG_SAMPLE_TEMPERATURE] > 0)) return id;
  uint64_t from = 1;
  if (k >= 1) from = last_place(r, from, floor(k), false);
  if (p < 1) from = last_place(r, from, p * mass(r, from, true), true);
  return draw(r, from < best ? from : best);
}

static rung_status reference(const rung_args *args) {
  const rung_operand *logits = &args->in[0], *parameter = &args->in[1], *y = &args->out[0];
  for (int64_t n = 0; n < y->extent[0]; n++) {
    row r = {.base = logits->base + n * logits->stride[0] * (int64_t)sizeof(float),
             .step = logits->stride[1] * (int64_t)sizeof(float),
             .count = logits->extent[1]};
    for (int c = 0; c < RUNG_SAMPLE_COLUMNS; c++)
      r.parameter[c] = rung_load_f64(parameter, n * parameter->stride[0] + c * parameter->stride[1]);
    rung_store_i64(y, n * y->stride[0], choose(&r));
  }
  return RUNG_OK;
}

static const rung_test_case tests[] = {{"f32[5,67] f64[5,5]{0,1}", ""},  {"f32[3,130]{-2,2} f64[3,5]{0,1}", ""},
                                       {"f32[4,40] f64[4,5]{0,0}", ""},  {"f32[9,33]{-1,1} f64[9,5]{0,7}", ""},
                                       {"f32[0,5] f64[0,5]{0,1}", ""},   {"f32[2,0] f64[2,5]{0,1}", ""},
                                       {"f32[1,300] f64[1,5]{0,1}", ""}, {NULL, NULL}};

const rung_op rung_op_sample = {
    .name = "sample",
    .doc =
        "a token per row of logits, -1 where none is above minus infinity; the columns of parameters are "
        "temperature, top_k, top_p, min_p and a random number in [0, 1)",
    .operands = (const char *const[]){"logits", "parameters", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .roles = (const char *const[]){"rows", "columns", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "the result is an index",
    .test_lo = -6,
    .test_hi = 6,
    .tests = tests,
};
