/* SPDX-License-Identifier: MIT
 * Random valid graphs over two open dimensions, with a bound on how far two right devices may differ.
 *
 * Every value carries the largest magnitude its numbers can have and the largest distance between two evaluations that
 * round each step by themselves. Ops are chosen such that both stay small: what would amplify goes through tanh first,
 * and what jumps (comparisons, index of the largest) is asked of values that are exact only. So the tolerance of a
 * comparison is derived, not guessed. Choices come from a seed or from bytes (the fuzz target). */
#ifndef RUNG_TESTS_CTS_RANDOM_GRAPH_H
#define RUNG_TESTS_CTS_RANDOM_GRAPH_H

#include <rung/ops.h>

#include "cts/world.h"

enum { RG_VALUES = 96, RG_INPUTS = 8, RG_MOST_A = 40, RG_MOST_B = 9, RG_DIMS = 8 };
static double rg_step = 0x1p-19; /* what one step of f32 may add, relative to its magnitude: 16 roundings */
/* Under a precision policy: what keeping a value adds, relative to its magnitude, wherever that happens. 0: nothing. */
static double rg_stored;

typedef struct rg_choices {
  uint64_t random;
  const uint8_t *data; /* NULL: the seed alone */
  size_t bytes, at;
} rg_choices;

static inline int64_t rg_below(rg_choices *c, int64_t n) {
  if (!c->data) return test_below(&c->random, n);
  return c->at < c->bytes ? c->data[c->at++] % n : 0;
}

typedef struct rg_value {
  rung_value v;
  double magnitude, error; /* error 0: exact */
} rg_value;

typedef struct rg_graph {
  rung_graph *g;
  rg_choices *c;
  rung_dim dim[RG_DIMS]; /* 1, 2, 8, 17, 33, a, b, a+b */
  rg_value value[RG_VALUES];
  int values, inputs;
  struct {
    rung_type type;
    bool flag;
  } input[RG_INPUTS];
  double tolerance[4];
  int outputs;
} rg_graph;

static inline int rg_rank(const rg_graph *r, rung_value v) { return rung_graph_rank_of(r->g, v); }
static inline rung_dim rg_extent(const rg_graph *r, rung_value v, int axis) {
  return rung_graph_extent_of(r->g, v, axis);
}

static inline bool rg_same_shape(const rg_graph *r, rung_value a, rung_value b) {
  if (rg_rank(r, a) != rg_rank(r, b)) return false;
  for (int i = 0; i < rg_rank(r, a); i++)
    if (rg_extent(r, a, i).id != rg_extent(r, b, i).id) return false;
  return true;
}

/* The largest value of an extent: the bounds of a and b are small. */
static inline int64_t rg_most(const rg_graph *r, rung_dim d) {
  static const int64_t most[RG_DIMS] = {1, 2, 8, 17, 33, RG_MOST_A, RG_MOST_B, RG_MOST_A + RG_MOST_B};
  for (int i = 0; i < RG_DIMS; i++)
    if (r->dim[i].id == d.id) return most[i];
  return 0;
}
static inline bool rg_is_open(const rg_graph *r, rung_dim d) {
  for (int i = 0; i < 5; i++)
    if (r->dim[i].id == d.id) return false;
  return true;
}

static inline void rg_add(rg_graph *r, rung_value v, double magnitude, double error) {
  if (rung_graph_status(r->g) || r->values == RG_VALUES) return;
  if (rg_stored > 0) error += rg_stored * (magnitude + error) + 0x1p-24; /* the last: below what f16 has */
  r->value[r->values++] = (rg_value){v, magnitude, error};
}

/* A value from the pool, late ones more often. */
static inline rg_value rg_pick(rg_graph *r) {
  const int64_t back = rg_below(r->c, 2) ? rg_below(r->c, r->values < 6 ? r->values : 6) : rg_below(r->c, r->values);
  return r->value[r->values - 1 - back];
}

/* The same, small enough to go on with. */
static inline rg_value rg_calm(rg_graph *r) {
  rg_value x = rg_pick(r);
  if (x.magnitude > 16 || x.error > 1e-3) {
    x.v = rung_tanh(r->g, x.v);
    x.error += rg_step;
    x.magnitude = 1;
  }
  return x;
}

static inline rung_value rg_number(rg_graph *r, double value) { return rung_graph_scalar(r->g, RUNG_TYPE_F32, value); }

static inline rg_value rg_input(rg_graph *r, int rank, const rung_dim *extent) {
  char name[16];
  snprintf(name, sizeof name, "x%d", r->inputs);
  r->input[r->inputs].type = RUNG_TYPE_F32;
  r->inputs++;
  return (rg_value){rung_graph_input(r->g, name, RUNG_TYPE_F32, rank, extent), 2, 2 * rg_stored};
}

/* A constant of numbers in [-1, 1], of constant extents. */
static inline rung_value rg_constant(rg_graph *r, int rank, const int64_t *extent) {
  static float data[40 * 40];
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= extent[i];
  for (int64_t i = 0; i < n; i++) data[i] = (float)(rg_below(r->c, 129) - 64) * 0x1p-6f;
  return rung_graph_constant(r->g, RUNG_TYPE_F32, rank, extent, data);
}

/* ---- one op each */

static inline void rg_unary(rg_graph *r) {
  const rg_value x = rg_calm(r);
  const double e = x.error + rg_step * x.magnitude, m = x.magnitude;
  switch (rg_below(r->c, 10)) {
    case 0:
      rg_add(r, rung_neg(r->g, x.v), m, x.error);
      break;
    case 1:
      rg_add(r, rung_abs(r->g, x.v), m, x.error);
      break;
    case 2:
      rg_add(r, rung_relu(r->g, x.v), m, x.error);
      break;
    case 3:
      rg_add(r, rung_tanh(r->g, x.v), 1, x.error + rg_step);
      break;
    case 4:
      rg_add(r, rung_sigmoid(r->g, x.v), 1, x.error + rg_step);
      break;
    case 5:
      rg_add(r, rung_silu(r->g, x.v), m, 1.2 * e + rg_step);
      break;
    case 6:
      rg_add(r, rung_gelu(r->g, x.v), m, 1.2 * e + rg_step);
      break;
    case 7:
      rg_add(r, rung_sin(r->g, x.v), 1, x.error + rg_step);
      break;
    case 8:
      rg_add(r, rung_exp(r->g, rung_tanh(r->g, x.v)), 2.8, 2.8 * (x.error + 2 * rg_step) + rg_step);
      break;
    default:
      rg_add(r, rung_sqrt(r->g, rung_add(r->g, rung_abs(r->g, x.v), rg_number(r, 1))), m + 1, e + rg_step);
      break;
  }
}

static inline rg_value rg_partner(rg_graph *r, const rg_value *x) {
  for (int tries = 0; tries < 6; tries++) {
    const rg_value y = rg_calm(r);
    if (rg_same_shape(r, x->v, y.v) || rg_rank(r, y.v) == 0) return y;
  }
  const int rank = rg_rank(r, x->v);
  if (rank && !rg_is_open(r, rg_extent(r, x->v, rank - 1)) && rg_below(r->c, 2)) {
    const int64_t n = rg_most(r, rg_extent(r, x->v, rank - 1));
    return (rg_value){rg_constant(r, 1, &n), 1, 0};
  }
  return (rg_value){rg_number(r, (double)(rg_below(r->c, 65) - 32) / 16), 2, 0};
}

static inline void rg_binary(rg_graph *r) {
  const rg_value x = rg_calm(r), y = rg_partner(r, &x);
  const double most = x.magnitude > y.magnitude ? x.magnitude : y.magnitude,
               error = x.error > y.error ? x.error : y.error;
  switch (rg_below(r->c, 6)) {
    case 0:
      rg_add(r, rung_add(r->g, x.v, y.v), x.magnitude + y.magnitude, x.error + y.error + rg_step * 2 * most);
      break;
    case 1:
      rg_add(r, rung_sub(r->g, y.v, x.v), x.magnitude + y.magnitude, x.error + y.error + rg_step * 2 * most);
      break;
    case 2:
      rg_add(r, rung_mul(r->g, x.v, y.v), x.magnitude * y.magnitude,
             x.error * (y.magnitude + y.error) + y.error * x.magnitude + rg_step * x.magnitude * y.magnitude);
      break;
    case 3:
      rg_add(r, rung_max(r->g, x.v, y.v), most, error);
      break;
    case 4:
      rg_add(r, rung_min(r->g, x.v, y.v), most, error);
      break;
    default:
      if (x.error == 0 && y.error == 0)
        rg_add(r, rung_where(r->g, rung_less(r->g, x.v, y.v), y.v, rung_neg(r->g, x.v)), most, 0);
      else
        rg_add(r, rung_div(r->g, x.v, rung_add(r->g, rung_abs(r->g, y.v), rg_number(r, 1))), x.magnitude,
               x.error + x.magnitude * (y.error + rg_step * (y.magnitude + 1)) + rg_step * x.magnitude);
  }
}

static inline void rg_matmul(rg_graph *r) {
  const rg_value x = rg_calm(r);
  const int rank = rg_rank(r, x.v);
  if (rank < 2) return;
  const rung_dim last = rg_extent(r, x.v, rank - 1);
  const double k = (double)rg_most(r, last);
  if (k == 0) return;
  rg_value y = {.magnitude = 1};
  bool transposed = rg_below(r->c, 2);
  if (rg_is_open(r, last)) { /* a product with itself */
    y = x;
    transposed = true;
  } else {
    static const int64_t widths[] = {1, 2, 8, 17, 33};
    const int64_t n = widths[rg_below(r->c, 5)], shape[2] = {transposed ? n : (int64_t)k, transposed ? (int64_t)k : n};
    y.v = rg_constant(r, 2, shape);
  }
  const rung_value product = rung_matmul(r->g, x.v, y.v, transposed, RUNG_TYPE_F32);
  const double m = k * x.magnitude * y.magnitude;
  rg_add(r, rung_mul(r->g, product, rg_number(r, 1 / 32.0)), m / 32,
         (k * (x.error * (y.magnitude + y.error) + y.error * x.magnitude) + (k / 8 + 2) * rg_step * m) / 32);
}

static inline void rg_reduce(rg_graph *r) {
  const rg_value x = rg_calm(r);
  const int rank = rg_rank(r, x.v);
  if (rank < 1) return;
  const int64_t axis = rg_below(r->c, rank);
  const double n = (double)rg_most(r, rg_extent(r, x.v, (int)axis));
  if (n == 0) return;
  const bool keep = rg_below(r->c, 2);
  /* Norms divide by what may be small: no narrow type has a bound behind that. */
  switch (rg_below(r->c, rg_stored > 0 ? 3 : 5)) {
    case 0:
      rg_add(r, rung_mul(r->g, rung_reduce_sum(r->g, x.v, 1, &axis, keep), rg_number(r, 1 / 32.0)),
             n * x.magnitude / 32, n * (x.error + rg_step * x.magnitude) / 16);
      break;
    case 1:
      rg_add(r, rung_cumsum(r->g, rung_mul(r->g, x.v, rg_number(r, 1 / 32.0)), axis, keep, rg_below(r->c, 2)),
             n * x.magnitude / 32, n * (x.error + rg_step * x.magnitude) / 16);
      break;
    case 2:
      rg_add(r, rung_softmax(r->g, x.v, axis), 1, x.error + n * rg_step);
      break;
    case 3:
      rg_add(r, rung_rms_norm(r->g, x.v, (rung_value){0, 0}, 1), x.magnitude,
             3 * x.error + 2 * n * rg_step * x.magnitude);
      break;
    default:
      rg_add(r, rung_layer_norm(r->g, x.v, (rung_value){0, 0}, (rung_value){0, 0}, 1), 2 * x.magnitude,
             6 * x.error + 4 * n * rg_step * (1 + x.magnitude));
      break;
  }
}

static inline void rg_slice(rg_graph *r, const rg_value *x) {
  const int rank = rg_rank(r, x->v), axis = (int)rg_below(r->c, rank);
  rung_dim start[RUNG_MAX_RANK], length[RUNG_MAX_RANK];
  int64_t step[RUNG_MAX_RANK];
  for (int i = 0; i < rank; i++)
    start[i] = rung_graph_constant_dim(r->g, 0), length[i] = rg_extent(r, x->v, i), step[i] = 1;
  if (length[axis].id == r->dim[7].id) { /* a+b: its first a or last b */
    const bool first = rg_below(r->c, 2);
    if (!first) start[axis] = r->dim[5];
    length[axis] = r->dim[first ? 5 : 6];
  } else if (length[axis].id == r->dim[4].id) {
    const bool back = rg_below(r->c, 2);
    start[axis] = rung_graph_constant_dim(r->g, back ? 32 : 0);
    step[axis] = back ? -2 : 2;
    length[axis] = r->dim[3];
  } else if (length[axis].id == r->dim[3].id) {
    start[axis] = rung_graph_constant_dim(r->g, rg_below(r->c, 10));
    length[axis] = r->dim[2];
  } else {
    return;
  }
  rg_add(r, rung_slice(r->g, x->v, rank, start, length, step), x->magnitude, x->error);
}

static inline void rg_move(rg_graph *r) {
  const rg_value x = rg_calm(r);
  const int rank = rg_rank(r, x.v);
  if (rank < 1) return;
  switch (rg_below(r->c, 6)) {
    case 0: {
      int64_t permutation[RUNG_MAX_RANK];
      for (int i = 0; i < rank; i++) permutation[i] = i;
      for (int i = rank - 1; i > 0; i--) {
        const int j = (int)rg_below(r->c, i + 1);
        const int64_t t = permutation[i];
        permutation[i] = permutation[j];
        permutation[j] = t;
      }
      rg_add(r, rung_transpose(r->g, x.v, rank, permutation), x.magnitude, x.error);
      break;
    }
    case 1:
      rg_slice(r, &x);
      break;
    case 2: { /* an axis of 1 somewhere, and repeated */
      rung_dim extent[RUNG_MAX_RANK];
      const int at = (int)rg_below(r->c, rank + 1);
      if (rank >= 4) return;
      for (int i = 0; i <= rank; i++) extent[i] = i == at ? r->dim[0] : rg_extent(r, x.v, i - (i > at));
      const rung_value one = rung_reshape(r->g, x.v, rank + 1, extent);
      extent[at] = r->dim[rg_below(r->c, 3)];
      rg_add(r, rung_expand(r->g, one, rank + 1, extent), x.magnitude, x.error);
      break;
    }
    case 3: { /* a + b rows of one value after the other */
      for (int i = 0; i < r->values; i++) {
        const rg_value *y = &r->value[i];
        if (rg_rank(r, y->v) != rank || rg_extent(r, x.v, 0).id != r->dim[5].id ||
            rg_extent(r, y->v, 0).id != r->dim[6].id)
          continue;
        bool fits = true;
        for (int a = 1; a < rank; a++) fits &= rg_extent(r, x.v, a).id == rg_extent(r, y->v, a).id;
        if (!fits) continue;
        rg_add(r, rung_concat(r->g, (rung_value[]){x.v, y->v}, 2, 0),
               x.magnitude > y->magnitude ? x.magnitude : y->magnitude, x.error > y->error ? x.error : y->error);
        return;
      }
      break;
    }
    case 4: { /* rows by index, some twice */
      const int64_t axis = rg_below(r->c, rank), n = 8;
      if (rg_is_open(r, rg_extent(r, x.v, (int)axis)) || !rg_most(r, rg_extent(r, x.v, (int)axis))) return;
      int32_t index[8];
      for (int i = 0; i < 8; i++) index[i] = (int32_t)rg_below(r->c, rg_most(r, rg_extent(r, x.v, (int)axis)));
      rg_add(r, rung_gather(r->g, x.v, rung_graph_constant(r->g, RUNG_TYPE_I32, 1, &n, index), axis), x.magnitude,
             x.error);
      break;
    }
    default: { /* through a narrow type and back */
      const bool half = rg_below(r->c, 2);
      const rung_value narrow = rung_cast(r->g, x.v, half ? RUNG_TYPE_F16 : RUNG_TYPE_BF16);
      rg_add(r, rung_cast(r->g, narrow, RUNG_TYPE_F32), 1.01 * x.magnitude,
             x.error == 0 ? 0 : 2 * x.error + x.magnitude * (half ? 0x1p-10 : 0x1p-7));
    }
  }
}

/* An input of a body, of the type of a value outside. */
static inline rung_value rg_body_input(rg_graph *r, rung_graph *body, const char *name, rung_value like) {
  rung_dim extent[RUNG_MAX_RANK];
  const int rank = rg_rank(r, like);
  for (int i = 0; i < rank; i++) extent[i] = rg_extent(r, like, i);
  return rung_graph_input(body, name, RUNG_TYPE_F32, rank, extent);
}

/* x' = tanh(x) or sin(x + c), a few times, and the sum of all on the way. */
static inline void rg_loop(rg_graph *r) {
  const rg_value x = rg_calm(r), c = rg_pick(r);
  if (c.error > 1e-3 || !rg_same_shape(r, x.v, c.v)) return;
  rung_graph *body = rung_graph_body(r->g);
  (void)rung_graph_input(body, "i", RUNG_TYPE_I64, 0, NULL);
  const rung_value go = rung_graph_input(body, "go", RUNG_TYPE_BOOL, 0, NULL);
  const rung_value in = rg_body_input(r, body, "x", x.v), sum = rg_body_input(r, body, "sum", x.v),
                   by = rg_body_input(r, body, "c", x.v);
  const rung_value next = rg_below(r->c, 2) ? rung_tanh(body, in) : rung_sin(body, rung_add(body, in, by));
  rung_graph_output(body, "go", go);
  rung_graph_output(body, "x", next);
  rung_graph_output(body, "sum", rung_add(body, sum, next));
  const int64_t trip = rg_below(r->c, 4);
  const rung_value values[3] = {x.v, x.v, c.v};
  const rung_value times = rung_graph_constant(r->g, RUNG_TYPE_I64, 0, NULL, &trip),
                   yes = rung_graph_scalar(r->g, RUNG_TYPE_BOOL, 1);
  rung_value out[2];
  rung_loop(r->g, times, yes, values, 3, body, 2, "", (rung_dim){0}, 2, out);
  const double n = (double)trip, e = x.error + n * (c.error + rg_step * (2 + x.magnitude + c.magnitude));
  rg_add(r, out[0], x.magnitude + 1, e);
  rg_add(r, out[1], x.magnitude + n, x.error + n * e + n * rg_step * (x.magnitude + n));
}

/* By a flag that is an input: both branches are run by the test. */
static inline void rg_if(rg_graph *r) {
  const rg_value x = rg_calm(r), y = rg_partner(r, &x);
  if (!rg_same_shape(r, x.v, y.v) || r->inputs == RG_INPUTS) return;
  char name[16];
  snprintf(name, sizeof name, "x%d", r->inputs);
  r->input[r->inputs].type = RUNG_TYPE_BOOL;
  r->input[r->inputs++].flag = true;
  const rung_value flag = rung_graph_input(r->g, name, RUNG_TYPE_BOOL, 0, NULL);
  rung_graph *yes = rung_graph_body(r->g), *no = rung_graph_body(r->g);
  for (int b = 0; b < 2; b++) {
    rung_graph *body = b ? no : yes;
    const rung_value p = rg_body_input(r, body, "p", x.v), q = rg_body_input(r, body, "q", y.v);
    rung_graph_output(body, "y", b ? q : rung_max(body, rung_neg(body, p), q));
  }
  const rung_value captures[2] = {x.v, y.v};
  rung_value out;
  rung_if(r->g, flag, captures, 2, yes, no, 1, &out);
  rg_add(r, out, x.magnitude > y.magnitude ? x.magnitude : y.magnitude, x.error > y.error ? x.error : y.error);
}

/* ---- the whole */

static inline void rg_build(rg_graph *r, rung_graph *g, rg_choices *c) {
  *r = (rg_graph){.g = g, .c = c};
  static const int64_t fixed[] = {1, 2, 8, 17, 33};
  for (int i = 0; i < 5; i++) r->dim[i] = rung_graph_constant_dim(g, fixed[i]);
  r->dim[5] = rung_graph_symbol(g, "a", 0, RG_MOST_A);
  r->dim[6] = rung_graph_symbol(g, "b", 1, RG_MOST_B);
  r->dim[7] = rung_graph_dim(g, RUNG_DIM_ADD, r->dim[5], r->dim[6]);
  const rung_dim last = r->dim[1 + rg_below(c, 4)];
  r->value[r->values++] = rg_input(r, 2, (rung_dim[]){r->dim[5], last});
  r->value[r->values++] = rg_input(r, 2, (rung_dim[]){r->dim[6], last});
  r->value[r->values++] = rg_input(r, 3, (rung_dim[]){r->dim[6], r->dim[5], r->dim[rg_below(c, 5)]});
  static void (*const make[])(rg_graph *) = {rg_unary, rg_binary, rg_matmul, rg_reduce, rg_move,
                                             rg_unary, rg_binary, rg_move,   rg_loop,   rg_if};
  const int64_t ops = 1 + rg_below(c, 24);
  for (int64_t i = 0; i < ops && r->values < RG_VALUES - 4; i++) make[rg_below(c, RUNG_COUNT(make))](r);
  r->outputs = 1 + (int)rg_below(c, 4);
  for (int i = 0; i < r->outputs; i++) {
    char name[16];
    snprintf(name, sizeof name, "y%d", i);
    const rg_value x = i ? rg_pick(r) : r->value[r->values - 1];
    rung_graph_output(g, name, x.v);
    r->tolerance[i] = 2 * x.error;
  }
}

#endif
