/* SPDX-License-Identifier: MIT
 * dft: the discrete Fourier transform along an axis, real and imaginary parts lying along the last one; and
 * mel_weights: triangles that gather its bins on the mel scale. As ONNX DFT and MelWeightMatrix.
 *
 *   X[k] = sum over t of x[t] exp(-2 pi i k t / n)        inverse: x[t] = 1 / n sum over k of X[k] exp(2 pi i k t / n)
 *
 * One-sided: the first n / 2 + 1 bins of real numbers; its inverse takes these and gives real numbers. What is missing
 * of n points is 0, what is more is left out. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

static const double pi = 3.14159265358979323846;

#define FIELD(field) .name = #field, .offset = offsetof(rung_dft_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(axis), .kind = RUNG_ATTR_I64, .text_default = "-2", .doc = "transformed along"},
    {FIELD(length), .kind = RUNG_ATTR_DIM, .text_default = "none", .doc = "points n; none: the axis's own"},
    {FIELD(inverse), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "from bins to points"},
    {FIELD(onesided), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "only bins 0 .. n / 2, of real points"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_dft_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  rung_dims *dims = infer->dims;
  int axis;
  int64_t parts;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 2));
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, x->rank, &axis));
  RUNG_TRY(rung_infer_constant(infer, x->extent[x->rank - 1], "the last axis", &parts));
  if (axis == x->rank - 1 || parts < 1 || parts > 2)
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "the last axis must be another, of 1 or 2 parts");
  const rung_dim one = rung_one(dims), two = rung_dims_constant(dims, 2);
  rung_dim length = attrs->length;
  if (!length.id) length = x->extent[axis];
  if (!attrs->length.id && attrs->inverse && attrs->onesided)
    length = rung_dims_mul(dims, rung_dims_sub(dims, length, one), two);
  if (!rung_infer_at_least(infer, length, rung_dims_constant(dims, 0)))
    return rung_infer_refuse(infer, RUNG_OUT_OF_RANGE, "there are no negative lengths");
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < x->rank; i++) extent[i] = x->extent[i];
  extent[x->rank - 1] = attrs->inverse && attrs->onesided ? one : two;
  extent[axis] =
      attrs->onesided && !attrs->inverse ? rung_dims_add(dims, rung_dims_div(dims, length, two), one) : length;
  RUNG_TRY(rung_infer_dim(infer, extent[axis]));
  rung_infer_result(infer, 0, x->type, x->rank, extent);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in;
  const int axis = rung_axis_of(((const rung_dft_attrs *)attrs)->axis, in->rank);
  rung_dim rows = rung_one(dims);
  for (int i = 0; i < in->rank - 1; i++)
    if (i != axis) rows = rung_dims_mul(dims, rows, in->extent[i]);
  out_role[0] = rows;
  out_role[1] = out->extent[axis];
}

typedef struct signal {
  const rung_operand *x;
  int64_t offset, step, part, parts, have, n;
  bool inverse, onesided;
} signal;

/* Result k of the signal. */
static void transform(const signal *s, int64_t k, double *out_real, double *out_imaginary) {
  const int64_t wanted = s->inverse && s->onesided ? s->n / 2 + 1 : s->n, count = s->have < wanted ? s->have : wanted;
  double real = 0, imaginary = 0;
  for (int64_t t = 0; t < count; t++) {
    const double turn = 2 * pi * (double)(k * t % s->n) / (double)s->n, c = cos(turn);
    const double v = s->inverse ? sin(turn) : -sin(turn);
    const double a = rung_load_f64(s->x, s->offset + t * s->step);
    const double b = s->parts == 2 ? rung_load_f64(s->x, s->offset + t * s->step + s->part) : 0;
    /* Half of the bins stand for their mirror images, too: all but the first, and the last of an even n. */
    const double times = s->inverse && s->onesided && t && 2 * t != s->n ? 2 : 1;
    const bool whole = s->inverse && s->onesided && times == 1;
    real += times * (a * c - (whole ? 0 : b * v));
    imaginary += a * v + b * c;
  }
  *out_real = s->inverse ? real / (double)s->n : real;
  *out_imaginary = s->inverse ? imaginary / (double)s->n : imaginary;
}

static rung_status reference(const rung_args *args) {
  const rung_dft_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const int axis = rung_axis_of(attrs->axis, x->rank), last = x->rank - 1;
  signal s = {
      .x = x, .step = x->stride[axis], .part = x->stride[last], .parts = x->extent[last], .have = x->extent[axis]};
  s.inverse = attrs->inverse;
  s.onesided = attrs->onesided;
  s.n = attrs->length.id ? rung_args_dim(args, attrs->length) : s.inverse && s.onesided ? 2 * (s.have - 1) : s.have;
  if (s.n < 1) return RUNG_OK;
  rung_walk w;
  for (rung_walk_begin(&w, last, y->extent, 0, NULL); w.live; rung_walk_next(&w)) {
    int64_t to = 0;
    s.offset = 0;
    for (int i = 0; i < last; i++) to += w.index[i] * y->stride[i];
    for (int i = 0; i < last; i++) s.offset += i == axis ? 0 : w.index[i] * x->stride[i];
    double real, imaginary;
    transform(&s, w.index[axis], &real, &imaginary);
    rung_store_f64(y, to, real);
    if (y->extent[last] == 2) rung_store_f64(y, to + y->stride[last], imaginary);
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"f32[2,16,1]", ""},
                                       {"f32[3,7,2]", "inverse=true"},
                                       {"f32[2,10,3,1]", "axis=1, onesided=true"},
                                       {"f32[2,6,2]", "inverse=true, onesided=true"},
                                       {"f32[2,6,2]", "inverse=true, onesided=true, length=9"},
                                       {"f32[2,9,1]", "length=5, onesided=true"},
                                       {"f32[5,9,2]", "length=12, axis=0"},
                                       {"f32[0,9,1]", ""},
                                       {"f32[2,0,1]", ""},
                                       {0}};

const rung_op rung_op_dft = {
    .name = "dft",
    .doc = "discrete Fourier transform along an axis; real and imaginary parts lie along the last",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_dft_attrs),
    .roles = (const char *const[]){"rows", "points", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "not yet: the transform of the other direction",
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35},
};

/* ---- mel_weights */

#define FIELD(field) .name = #field, .offset = offsetof(rung_mel_attrs, field)
static const rung_attr mel_attributes[] = {
    {FIELD(bins), .kind = RUNG_ATTR_I64, .doc = "of the mel scale"},
    {FIELD(length), .kind = RUNG_ATTR_I64, .doc = "points of the transform"},
    {FIELD(rate), .kind = RUNG_ATTR_I64, .doc = "points a second"},
    {FIELD(low), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "lower edge in hertz"},
    {FIELD(high), .kind = RUNG_ATTR_F64, .doc = "upper edge in hertz"},
    {0}};
#undef FIELD

static rung_status infer_mel(rung_infer *infer) {
  const rung_mel_attrs *attrs = infer->attrs;
  const int64_t most = INT64_C(1) << 31;
  if (attrs->bins < 1 || attrs->bins >= most || attrs->length < 0 || attrs->length >= most || attrs->rate < 1 ||
      !(attrs->low >= 0 && attrs->high >= attrs->low && attrs->high < 1e9))
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "there are no such bins");
  const rung_dim extent[] = {rung_dims_constant(infer->dims, attrs->length / 2 + 1),
                             rung_dims_constant(infer->dims, attrs->bins)};
  rung_infer_result(infer, 0, RUNG_TYPE_F32, 2, extent);
  return RUNG_OK;
}

/* The bin of the transform at corner i of the triangles. */
static double corner(const rung_mel_attrs *attrs, int64_t i) {
  const double low = 2595 * log1p(attrs->low / 700) / log(10), high = 2595 * log1p(attrs->high / 700) / log(10);
  const double mel = (double)i * ((high - low) / (double)(attrs->bins + 2)) + low;
  const double hertz = 700 * expm1(mel / 2595 * log(10));
  return floor((double)(attrs->length + 1) * hertz / (double)attrs->rate);
}

static rung_status mel_reference(const rung_args *args) {
  const rung_operand *y = &args->out[0];
  for (int64_t i = 0; i < y->extent[1]; i++) {
    const double left = corner(args->attrs, i), middle = corner(args->attrs, i + 1);
    const double right = corner(args->attrs, i + 2);
    for (int64_t bin = 0; bin < y->extent[0]; bin++) {
      const double j = (double)bin;
      double value = 0;
      if (j >= middle && j < right) {
        value = (right - j) / (right - middle);
      } else if (j >= left && j <= middle) {
        value = middle > left ? (j - left) / (middle - left) : 1;
      }
      rung_store_f64(y, bin * y->stride[0] + i * y->stride[1], value);
    }
  }
  return RUNG_OK;
}

static const rung_test_case mel_cases[] = {
    {"", "bins=8, length=16, rate=8192, high=4096"}, {"", "bins=20, length=400, rate=16000, low=80, high=7600"}, {0}};

const rung_op rung_op_mel_weights = {
    .name = "mel_weights",
    .doc = "weights of the bins of a one-sided transform on the mel scale",
    .operands = (const char *const[]){NULL},
    .in_lo = 0,
    .in_hi = 0,
    .results = 1,
    .attrs = mel_attributes,
    .attrs_bytes = sizeof(rung_mel_attrs),
    .infer = infer_mel,
    .role_dims = rung_role_elements,
    .reference = mel_reference,
    .no_gradient = "has no operands",
    .tests = mel_cases,
};
