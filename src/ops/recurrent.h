/* SPDX-License-Identifier: MIT
 * What lstm, gru and rnn share: operands and their order, activations, the order of steps. */
#ifndef RUNG_OPS_RECURRENT_H
#define RUNG_OPS_RECURRENT_H

#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

typedef enum rung_activation_kind {
  RUNG_ACTIVATION_SIGMOID,
  RUNG_ACTIVATION_TANH,
  RUNG_ACTIVATION_RELU,
  RUNG_ACTIVATION_AFFINE,
  RUNG_ACTIVATION_LEAKY_RELU,
  RUNG_ACTIVATION_THRESHOLDED_RELU,
  RUNG_ACTIVATION_SCALED_TANH,
  RUNG_ACTIVATION_HARD_SIGMOID,
  RUNG_ACTIVATION_ELU,
  RUNG_ACTIVATION_SOFTSIGN,
  RUNG_ACTIVATION_SOFTPLUS
} rung_activation_kind;
typedef struct rung_activation {
  rung_activation_kind kind;
  double alpha, beta;
} rung_activation;
double rung_activation_of(const rung_activation *activation, double x);

enum { RUNG_RECURRENT_FUNCTIONS = 3, RUNG_RECURRENT_DIRECTIONS = 2 };
/* A step of one of the ops, taken apart. Operands that are not there are NULL. */
typedef struct rung_recurrence {
  const rung_recurrent_attrs *attrs;
  const rung_operand *x, *r, *bias, *lengths, *h0, *c0, *peepholes, *y, *h, *c;
  int64_t steps, batch, directions, hidden;
  rung_activation activation[RUNG_RECURRENT_DIRECTIONS][RUNG_RECURRENT_FUNCTIONS];
} rung_recurrence;

/* The attribute list of an op with so many activations a direction ("sigmoid tanh tanh"): one for all three ops. */
extern const rung_attr rung_recurrent_attributes[];
/* gates: 4, 3 or 1; the number of results but y follows from it. */
rung_status rung_recurrent_infer(rung_infer *infer, int gates);
void rung_recurrent_roles(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                          const void *attrs, rung_dim *out_role);
extern const char *const rung_recurrent_role_names[];
/* Refuses a negative length, and one beyond the steps. `op` for the message. */
rung_status rung_recurrent_resolve(const rung_args *args, const char *op, int gates, rung_recurrence *out);

static inline int64_t rung_recurrent_length(const rung_recurrence *rec, int64_t b) {
  return rec->lengths ? rung_vector_at(rec->lengths, b) : rec->steps;
}
/* The step that comes at place i of a sequence of `length`. */
static inline int64_t rung_recurrent_step(const rung_recurrence *rec, int64_t direction, int64_t length, int64_t i) {
  const bool reverse = rec->attrs->direction == RUNG_REVERSE || direction == 1;
  return reverse ? length - 1 - i : i;
}
/* Element offsets: of [a, b, c] with an index along the last axis added by the caller. */
static inline int64_t rung_at3(const rung_operand *o, int64_t a, int64_t b, int64_t c) {
  return a * o->stride[0] + b * o->stride[1] + c * o->stride[2];
}
static inline int64_t rung_at4(const rung_operand *o, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * o->stride[0] + b * o->stride[1] + c * o->stride[2] + d * o->stride[3];
}

/* 256 levels of the range of numbers that were seen, 0 among them: begin, see each, end. All roundings are those of
 * dynamic_quantize. */
typedef struct rung_levels {
  float low, high, scale, zero;
} rung_levels;
void rung_levels_begin(rung_levels *levels);
void rung_levels_see(rung_levels *levels, float x);
void rung_levels_end(rung_levels *levels);
/* The level next to x, as a number. */
static inline float rung_levels_of(const rung_levels *levels, float x) {
  const float level = rintf(x / levels->scale) + levels->zero;
  return (fminf(fmaxf(level, 0), 255) - levels->zero) * levels->scale;
}

/* References: h before the first step, x and h times a row of r at step t with its clip, the results of a sequence that
 * has ended. `before`: the step before t, -1 for none. */
double rung_recurrent_before(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t before, int64_t k);
double rung_recurrent_product(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t before, int64_t row);
double rung_recurrent_clip(const rung_recurrence *rec, double x);
void rung_recurrent_end(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t length);

#endif
