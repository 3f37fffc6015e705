/* SPDX-License-Identifier: MIT
 * What lstm, gru and rnn share. */
#include "ops/recurrent.h"

#include <math.h>
#include <string.h>

#include "ir/lex.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_recurrent_attrs, field)
static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
const rung_attr rung_recurrent_attributes[] = {
    {FIELD(direction), .kind = RUNG_ATTR_ENUM, .text_default = "forward", .names = directions,
     .doc = "from the first step, from the last, or both"},
    {FIELD(activations), .kind = RUNG_ATTR_TEXT, .text_default = "\"\"",
     .doc = "words in order, for one direction or all, as leaky_relu:0.1; empty: ONNX's"},
    {FIELD(clip), .kind = RUNG_ATTR_F64, .text_default = "0",
     .doc = "gates are held within plus and minus this; 0: no"},
    {FIELD(lengths), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "has an operand lengths i32[batch]"},
    {FIELD(initial), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "has the values before the first step"},
    {FIELD(peepholes), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "lstm: has an operand peepholes[directions, 3 hidden]"},
    {FIELD(input_forget), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "lstm: forget 1 - input"},
    {FIELD(bias), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "gru: has an operand bias[directions, hidden], the recurrent one of the third gate"},
    {FIELD(linear), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "gru: reset what r gives, not what it is given"},
    {FIELD(levels), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "lstm: h meets r rounded to 256 levels of its range, as dynamic_quantize does it"},
    {0}};
#undef FIELD

/* ---- activations */

static const struct {
  const char *name;
  rung_activation_kind kind;
  double alpha, beta;
} known[] = {{"sigmoid", RUNG_ACTIVATION_SIGMOID, 0, 0},
             {"tanh", RUNG_ACTIVATION_TANH, 0, 0},
             {"relu", RUNG_ACTIVATION_RELU, 0, 0},
             {"affine", RUNG_ACTIVATION_AFFINE, 1, 0},
             {"leaky_relu", RUNG_ACTIVATION_LEAKY_RELU, 0.01, 0},
             {"thresholded_relu", RUNG_ACTIVATION_THRESHOLDED_RELU, 1, 0},
             {"scaled_tanh", RUNG_ACTIVATION_SCALED_TANH, 1, 1},
             {"hard_sigmoid", RUNG_ACTIVATION_HARD_SIGMOID, 0.2, 0.5},
             {"elu", RUNG_ACTIVATION_ELU, 1, 0},
             {"softsign", RUNG_ACTIVATION_SOFTSIGN, 0, 0},
             {"softplus", RUNG_ACTIVATION_SOFTPLUS, 0, 0}};

double rung_activation_of(const rung_activation *a, double x) {
  switch (a->kind) {
    case RUNG_ACTIVATION_SIGMOID:
      return 1 / (1 + exp(-x));
    case RUNG_ACTIVATION_TANH:
      return tanh(x);
    case RUNG_ACTIVATION_RELU:
      return x < 0 ? 0 : x;
    case RUNG_ACTIVATION_AFFINE:
      return a->alpha * x + a->beta;
    case RUNG_ACTIVATION_LEAKY_RELU:
      return x < 0 ? a->alpha * x : x;
    case RUNG_ACTIVATION_THRESHOLDED_RELU:
      return x < a->alpha ? 0 : x;
    case RUNG_ACTIVATION_SCALED_TANH:
      return a->alpha * tanh(a->beta * x);
    case RUNG_ACTIVATION_HARD_SIGMOID: {
      const double y = a->alpha * x + a->beta;
      return y < 0 ? 0 : y > 1 ? 1 : y;
    }
    case RUNG_ACTIVATION_ELU:
      return x < 0 ? a->alpha * expm1(x) : x;
    case RUNG_ACTIVATION_SOFTSIGN:
      return x / (1 + fabs(x));
    default:
      return x > 30 ? x : log1p(exp(x));
  }
}

/* One word "name:alpha:beta" at *text; false if it is none. */
static bool read_activation(const char **text, rung_activation *out) {
  const char *at = *text;
  const size_t length = strcspn(at, ": ");
  size_t i = 0;
  while (i < RUNG_COUNT(known) && (strlen(known[i].name) != length || memcmp(known[i].name, at, length) != 0)) i++;
  if (i == RUNG_COUNT(known)) return false;
  *out = (rung_activation){known[i].kind, known[i].alpha, known[i].beta};
  at += length;
  double *const value[] = {&out->alpha, &out->beta};
  for (int k = 0; k < 2 && *at == ':'; k++)
    if (!rung_parse_f64(at + 1, at + strlen(at), value[k], &at)) return false;
  if (*at && *at != ' ') return false;
  while (*at == ' ') at++;
  *text = at;
  return true;
}

/* Functions of each direction: 3 of an lstm, 2 of a gru, 1 of an rnn. */
static bool read_activations(const char *text, int gates, int n_directions, rung_activation (*out)[3]) {
  const int functions = gates == 4 ? 3 : gates == 3 ? 2 : 1;
  const char *const otherwise = gates == 4 ? "sigmoid tanh tanh" : gates == 3 ? "sigmoid tanh" : "tanh";
  const char *at = text[0] ? text : otherwise;
  for (int d = 0; d < n_directions; d++) {
    if (d && !*at) {
      memcpy(out[d], out[0], sizeof out[d]);
      continue;
    }
    for (int f = 0; f < functions; f++)
      if (!read_activation(&at, &out[d][f])) return false;
  }
  return !*at;
}

/* ---- shape rule */

/* Where the operand that an attribute announces stands; -1: not there. */
typedef struct places {
  int bias, lengths, h0, c0, peepholes, all;
} places;
static places places_of(const rung_recurrent_attrs *attrs, int gates) {
  places p = {-1, -1, -1, -1, -1, 2};
  if (gates == 3 && attrs->bias) p.bias = p.all++;
  if (attrs->lengths) p.lengths = p.all++;
  if (attrs->initial) p.h0 = p.all++;
  if (attrs->initial && gates == 4) p.c0 = p.all++;
  if (gates == 4 && attrs->peepholes) p.peepholes = p.all++;
  return p;
}

static rung_status check_extents(rung_infer *infer, int i, int rank, const rung_dim *extent) {
  if (i < 0) return RUNG_OK;
  RUNG_TRY(rung_infer_rank(infer, (uint32_t)i, rank));
  for (int axis = 0; axis < rank; axis++) RUNG_TRY(rung_infer_extent(infer, (uint32_t)i, axis, extent[axis]));
  return RUNG_OK;
}

rung_status rung_recurrent_infer(rung_infer *infer, int gates) {
  const rung_recurrent_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0], *r = &infer->in[1];
  const places p = places_of(attrs, gates);
  rung_dims *dims = infer->dims;
  if ((int)infer->n_in != p.all)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "attributes announce %d operands", p.all);
  if (!(attrs->clip >= 0)) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "clip is negative");
  for (int i = 0; i < p.all; i++) {
    if (i == p.lengths) {
      RUNG_TRY(rung_infer_index(infer, (uint32_t)i));
      continue;
    }
    RUNG_TRY(rung_infer_class(infer, (uint32_t)i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, (uint32_t)i, 0));
  }
  RUNG_TRY(rung_infer_rank(infer, 0, 4));
  RUNG_TRY(rung_infer_rank(infer, 1, 3));
  const int n_directions = attrs->direction == RUNG_BIDIRECTIONAL ? 2 : 1;
  const rung_dim directions_dim = rung_dims_constant(dims, n_directions), batch = x->extent[1], hidden = r->extent[2];
  const rung_dim rows = rung_dims_mul(dims, hidden, rung_dims_constant(dims, gates));
  RUNG_TRY(check_extents(infer, 0, 4, (rung_dim[]){x->extent[0], batch, directions_dim, rows}));
  RUNG_TRY(check_extents(infer, 1, 3, (rung_dim[]){directions_dim, rows, hidden}));
  RUNG_TRY(check_extents(infer, p.bias, 2, (rung_dim[]){directions_dim, hidden}));
  RUNG_TRY(check_extents(infer, p.lengths, 1, &batch));
  const rung_dim state[3] = {directions_dim, batch, hidden};
  RUNG_TRY(check_extents(infer, p.h0, 3, state));
  RUNG_TRY(check_extents(infer, p.c0, 3, state));
  RUNG_TRY(check_extents(infer, p.peepholes, 2,
                         (rung_dim[]){directions_dim, rung_dims_mul(dims, hidden, rung_dims_constant(dims, 3))}));
  rung_activation functions[RUNG_RECURRENT_DIRECTIONS][RUNG_RECURRENT_FUNCTIONS];
  if (!read_activations(attrs->activations, gates, n_directions, functions))
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "activations \"%.60s\" are not what it takes",
                             attrs->activations);
  rung_infer_result(infer, 0, x->type, 4, (rung_dim[]){x->extent[0], directions_dim, batch, hidden});
  rung_infer_result(infer, 1, x->type, 3, state);
  if (gates == 4) rung_infer_result(infer, 2, x->type, 3, state);
  return RUNG_OK;
}

const char *const rung_recurrent_role_names[] = {"steps", "batch", "hidden", NULL};
void rung_recurrent_roles(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                          const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[0].extent[0];
  out_role[1] = in[0].extent[1];
  out_role[2] = in[1].extent[2];
}

/* ---- running */

rung_status rung_recurrent_resolve(const rung_args *args, const char *op, int gates, rung_recurrence *out) {
  const rung_recurrent_attrs *attrs = args->attrs;
  const places p = places_of(attrs, gates);
  const rung_operand *in = args->in;
  rung_recurrence rec = {.attrs = attrs,
                         .x = &in[0],
                         .r = &in[1],
                         .bias = p.bias < 0 ? NULL : &in[p.bias],
                         .lengths = p.lengths < 0 ? NULL : &in[p.lengths],
                         .h0 = p.h0 < 0 ? NULL : &in[p.h0],
                         .c0 = p.c0 < 0 ? NULL : &in[p.c0],
                         .peepholes = p.peepholes < 0 ? NULL : &in[p.peepholes],
                         .y = &args->out[0],
                         .h = &args->out[1],
                         .c = gates == 4 ? &args->out[2] : NULL,
                         .steps = in[0].extent[0],
                         .batch = in[0].extent[1],
                         .directions = in[0].extent[2],
                         .hidden = in[1].extent[2]};
  (void)read_activations(attrs->activations, gates, (int)rec.directions, rec.activation); /* the shape rule read them */
  for (int64_t b = 0; b < rec.batch; b++) {
    const int64_t length = rung_recurrent_length(&rec, b);
    if (length < 0 || length > rec.steps)
      return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: sequence %lld has length %lld of %lld steps", op,
                       (long long)b, (long long)length, (long long)rec.steps);
  }
  *out = rec;
  return RUNG_OK;
}

double rung_recurrent_before(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t before, int64_t k) {
  if (before >= 0) return rung_load_f64(rec->y, rung_at4(rec->y, before, direction, b, k));
  return rec->h0 ? rung_load_f64(rec->h0, rung_at3(rec->h0, direction, b, k)) : 0;
}

void rung_levels_begin(rung_levels *l) { *l = (rung_levels){0, 0, 1, 0}; }
void rung_levels_see(rung_levels *l, float x) {
  if (x < l->low) l->low = x;
  if (x > l->high) l->high = x;
}
void rung_levels_end(rung_levels *l) {
  if (l->high != l->low) l->scale = (l->high - l->low) / 255;
  l->zero = rintf(fminf(fmaxf(0 - l->low / l->scale, 0), 255));
}

double rung_recurrent_product(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t before, int64_t row) {
  double sum = 0;
  rung_levels levels;
  rung_levels_begin(&levels);
  for (int64_t k = 0; k < rec->hidden && rec->attrs->levels; k++)
    rung_levels_see(&levels, (float)rung_recurrent_before(rec, direction, b, before, k));
  rung_levels_end(&levels);
  for (int64_t k = 0; k < rec->hidden; k++) {
    double h = rung_recurrent_before(rec, direction, b, before, k);
    if (rec->attrs->levels) h = (double)rung_levels_of(&levels, (float)h);
    sum += h * rung_load_f64(rec->r, rung_at3(rec->r, direction, row, k));
  }
  return sum;
}

double rung_recurrent_clip(const rung_recurrence *rec, double x) {
  const double most = rec->attrs->clip;
  return most > 0 ? (x > most ? most : x < -most ? -most : x) : x;
}

void rung_recurrent_end(const rung_recurrence *rec, int64_t direction, int64_t b, int64_t length) {
  const int64_t last = length ? rung_recurrent_step(rec, direction, length, length - 1) : -1;
  for (int64_t k = 0; k < rec->hidden; k++) {
    rung_store_f64(rec->h, rung_at3(rec->h, direction, b, k), rung_recurrent_before(rec, direction, b, last, k));
    for (int64_t t = length; t < rec->steps; t++) rung_store_f64(rec->y, rung_at4(rec->y, t, direction, b, k), 0);
  }
}
