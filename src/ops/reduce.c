/* SPDX-License-Identifier: MIT
 * Reductions over one axis or several: one row each. Empty reductions give what nothing adds to: 0 for sums, 1 for
 * products, minus infinity or the lowest integer for a maximum; a mean of nothing is NaN, in integers 0. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "ops/build.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* Which axes: bit per axis. No axes: all. */
static uint32_t axes_mask(const rung_reduce_attrs *attrs, int rank) {
  uint32_t mask = 0;
  for (int i = 0; i < attrs->axes.count; i++) mask |= 1u << rung_axis_of(attrs->axes.value[i], rank);
  return attrs->axes.count ? mask : (1u << rank) - 1;
}

static rung_status infer(rung_infer *infer, uint32_t takes) {
  const rung_reduce_attrs *attrs = (const rung_reduce_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, takes));
  uint32_t seen = 0;
  for (int i = 0; i < attrs->axes.count; i++) {
    int axis;
    RUNG_TRY(rung_infer_axis(infer, attrs->axes.value[i], x->rank, &axis));
    if (seen >> axis & 1) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "axis %d comes twice", axis);
    seen |= 1u << axis;
  }
  const uint32_t mask = axes_mask(attrs, x->rank);
  rung_value_type *out = &infer->out[0];
  *out = rung_value_type_of(x->type, 0);
  out->place = x->place;
  for (int axis = 0; axis < x->rank; axis++) {
    const bool reduced = mask >> axis & 1;
    if (reduced && !attrs->keep) continue;
    out->extent[out->rank++] = reduced ? rung_one(infer->dims) : x->extent[axis];
  }
  return RUNG_OK;
}
static rung_status infer_FLOAT(rung_infer *i) { return infer(i, RUNG_TAKES_FLOAT); }
static rung_status infer_NUMBER(rung_infer *i) { return infer(i, RUNG_TAKES_NUMBER); }
static rung_status infer_PLAIN(rung_infer *i) { return infer(i, RUNG_TAKES_PLAIN); }

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in;
  const uint32_t mask = axes_mask((const rung_reduce_attrs *)attrs, in->rank);
  out_role[0] = rung_dims_product(dims, out->extent, 0, out->rank);
  out_role[1] = rung_one(dims);
  for (int axis = 0; axis < in->rank; axis++)
    if (mask >> axis & 1) out_role[1] = rung_dims_mul(dims, out_role[1], in->extent[axis]);
}

/* ---- reference: one fold of the elements that go into a result, for each kind of number */
typedef struct fold {
  const rung_operand *x;
  rung_walk *inner; /* over the reduced axes; offsets from `base` */
  int64_t base, count;
} fold;
typedef double f64_fold(fold *);
typedef int64_t i64_fold(fold *, rung_type);

static void rewind_fold(fold *f, rung_walk *walk) { *walk = *f->inner; }
#define EACH(f, w) \
  rung_walk w;     \
  for (rewind_fold(f, &w); w.live; rung_walk_next(&w))
#define V rung_load_f64(f->x, f->base + w.offset[0])
#define W rung_load_i64(f->x, f->base + w.offset[0])

static double sum_f64(fold *f) {
  double sum = 0;
  EACH(f, w) sum += V;
  return sum;
}
static double mean_f64(fold *f) { return sum_f64(f) / (double)f->count; }
static double prod_f64(fold *f) {
  double product = 1;
  EACH(f, w) product *= V;
  return product;
}
static double max_f64(fold *f) {
  double best = -HUGE_VAL;
  EACH(f, w) {
    const double v = V;
    best = v > best || v != v ? v : best; /* once NaN, nothing is greater */
  }
  return best;
}
static double min_f64(fold *f) {
  double best = HUGE_VAL;
  EACH(f, w) {
    const double v = V;
    best = v < best || v != v ? v : best;
  }
  return best;
}
static double l1_f64(fold *f) {
  double sum = 0;
  EACH(f, w) sum += fabs(V);
  return sum;
}
static double sum_square_f64(fold *f) {
  double sum = 0;
  EACH(f, w) {
    const double v = V;
    sum += v * v;
  }
  return sum;
}
static double l2_f64(fold *f) { return sqrt(sum_square_f64(f)); }
static double log_sum_f64(fold *f) { return log(sum_f64(f)); }
static double log_sum_exp_f64(fold *f) {
  const double top = max_f64(f);
  if (top == HUGE_VAL || top == -HUGE_VAL) return top;
  double sum = 0;
  EACH(f, w) sum += exp(V - top);
  return top + log(sum);
}

/* Integers wrap. Extremes of nothing are the type's own. */
static int64_t lowest(rung_type type) {
  const int bits = 8 * rung_type_get(type)->bytes;
  if (type == RUNG_TYPE_BOOL || rung_type_is_unsigned(type)) return 0;
  return bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
}
static int64_t highest(rung_type type) {
  const int bits = 8 * rung_type_get(type)->bytes;
  if (type == RUNG_TYPE_BOOL) return 1;
  if (rung_type_is_unsigned(type)) return (int64_t)(bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
  return bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
}
static bool less(int64_t a, int64_t b, rung_type type) {
  return rung_type_is_unsigned(type) ? (uint64_t)a < (uint64_t)b : a < b;
}
static int64_t sum_i64(fold *f, rung_type type) {
  uint64_t sum = 0;
  (void)type;
  EACH(f, w) sum += (uint64_t)W;
  return (int64_t)sum;
}
static int64_t mean_i64(fold *f, rung_type type) {
  const int64_t sum = sum_i64(f, type);
  if (!f->count) return 0;
  return rung_type_is_unsigned(type) ? (int64_t)((uint64_t)sum / (uint64_t)f->count) : sum / f->count;
}
static int64_t prod_i64(fold *f, rung_type type) {
  uint64_t product = 1;
  (void)type;
  EACH(f, w) product *= (uint64_t)W;
  return (int64_t)product;
}
static int64_t max_i64(fold *f, rung_type type) {
  int64_t best = lowest(type);
  EACH(f, w) best = less(best, W, type) ? W : best;
  return best;
}
static int64_t min_i64(fold *f, rung_type type) {
  int64_t best = highest(type);
  EACH(f, w) best = less(W, best, type) ? W : best;
  return best;
}
static int64_t l1_i64(fold *f, rung_type type) {
  uint64_t sum = 0;
  EACH(f, w) {
    const int64_t v = W;
    sum += !rung_type_is_unsigned(type) && v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  }
  return (int64_t)sum;
}
static int64_t sum_square_i64(fold *f, rung_type type) {
  uint64_t sum = 0;
  (void)type;
  EACH(f, w) sum += (uint64_t)W * (uint64_t)W;
  return (int64_t)sum;
}
#undef V
#undef W
#undef EACH

static rung_status run(const rung_args *args, f64_fold *in_f64, i64_fold *in_i64) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const uint32_t mask = axes_mask((const rung_reduce_attrs *)args->attrs, x->rank);
  int64_t stride[RUNG_MAX_RANK], kept_stride[2][RUNG_MAX_RANK] = {{0}}, reduced_stride[1][RUNG_MAX_RANK] = {{0}};
  int64_t kept[RUNG_MAX_RANK], reduced[RUNG_MAX_RANK], count = 1;
  const bool keep = ((const rung_reduce_attrs *)args->attrs)->keep;
  rung_element_strides(x, stride);
  for (int axis = 0, to = 0; axis < x->rank; axis++) {
    const bool over = mask >> axis & 1;
    kept[axis] = over ? 1 : x->extent[axis];
    reduced[axis] = over ? x->extent[axis] : 1;
    (over ? reduced_stride[0] : kept_stride[0])[axis] = stride[axis];
    count *= reduced[axis];
    if (!over || keep) kept_stride[1][axis] = over ? (to++, 0) : y->stride[to++];
  }
  rung_walk outer, inner;
  rung_walk_begin_strides(&inner, x->rank, reduced, 1, reduced_stride);
  for (rung_walk_begin_strides(&outer, x->rank, kept, 2, kept_stride); outer.live; rung_walk_next(&outer)) {
    fold f = {x, &inner, outer.offset[0], count};
    if (rung_operand_is_integer(x))
      rung_store_i64(y, outer.offset[1], in_i64(&f, (rung_type)x->type));
    else
      rung_store_f64(y, outer.offset[1], in_f64(&f));
  }
  return RUNG_OK;
}

/* ---- gradients. With the reduced axes kept at extent 1, gy and y broadcast against x. */
typedef struct terms {
  rung_graph *g;
  rung_type type;
  const rung_reduce_attrs *attrs;
  rung_value x, y, gy;
} terms;

static rung_value kept_shape(rung_graph *g, const rung_reduce_attrs *attrs, rung_value x, rung_value value) {
  const rung_value_type type = *rung_build_type(g, x);
  const uint32_t mask = axes_mask(attrs, type.rank);
  rung_dim extent[RUNG_MAX_RANK];
  if (attrs->keep) return value;
  for (int axis = 0; axis < type.rank; axis++) extent[axis] = mask >> axis & 1 ? rung_one(g->dims) : type.extent[axis];
  return rung_build_reshape(g, value, type.rank, extent);
}
static rung_value reduced_like(const terms *t, rung_value value) { /* a sum over the same axes, kept */
  return rung_build_reduce(t->g, &rung_op_reduce_sum, value, t->attrs->axes.value, t->attrs->axes.count, true);
}
static rung_value share(const terms *t, rung_value chosen) { /* gy shared among the elements that are chosen */
  const rung_value one = rung_build_cast(t->g, chosen, t->type);
  return rung_build_mul(t->g, one, rung_build_div(t->g, t->gy, reduced_like(t, one)));
}

#define G(fn, ...) rung_build_##fn(t->g, __VA_ARGS__)
#define K(c) rung_build_scalar(t->g, t->type, c)
static rung_value sum_gx(const terms *t) { return t->gy; }
static rung_value mean_gx(const terms *t) {
  const rung_value_type x = *rung_build_type(t->g, t->x);
  const uint32_t mask = axes_mask(t->attrs, x.rank);
  rung_dim count = rung_one(t->g->dims);
  for (int axis = 0; axis < x.rank; axis++)
    if (mask >> axis & 1) count = rung_dims_mul(t->g->dims, count, x.extent[axis]);
  return G(div, t->gy, G(extent, count, t->type));
}
static rung_value prod_gx(const terms *t) { return G(div, G(mul, t->gy, t->y), t->x); }
static rung_value max_gx(const terms *t) { return share(t, G(equal, t->x, t->y)); }
static rung_value min_gx(const terms *t) { return share(t, G(equal, t->x, t->y)); }
static rung_value l1_gx(const terms *t) { return G(mul, t->gy, G(sign, t->x)); }
static rung_value l2_gx(const terms *t) { return G(mul, t->gy, G(div, t->x, t->y)); }
static rung_value sum_square_gx(const terms *t) { return G(mul, t->gy, G(mul, K(2), t->x)); }
static rung_value log_sum_gx(const terms *t) { return G(div, t->gy, G(exp, t->y)); }
static rung_value log_sum_exp_gx(const terms *t) { return G(mul, t->gy, G(exp, G(sub, t->x, t->y))); }

static void differentiate(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                          const rung_value *gy, rung_value *out_gx, rung_value (*rule)(const terms *)) {
  const rung_reduce_attrs *attrs = (const rung_reduce_attrs *)node->attrs;
  const terms t = {g,     rung_build_type(g, in[0])->type,   attrs,
                   in[0], kept_shape(g, attrs, in[0], y[0]), kept_shape(g, attrs, in[0], gy[0])};
  out_gx[0] = rung_build_expand_like(g, rule(&t), in[0]);
}

/* ---- decompositions into sum, max and elementwise ops */
static rung_value again(rung_graph *g, const rung_op *op, const rung_node *node, rung_value x) {
  return rung_graph_op(g, op, &x, 1, node->attrs);
}
static void l1_smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  out[0] = again(g, &rung_op_reduce_sum, node, rung_build_abs(g, in[0]));
}
static void sum_square_smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  out[0] = again(g, &rung_op_reduce_sum, node, rung_build_mul(g, in[0], in[0]));
}
static void l2_smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  out[0] = rung_build_sqrt(g, again(g, &rung_op_reduce_sum, node, rung_build_mul(g, in[0], in[0])));
}
static void log_sum_smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  out[0] = rung_build_log(g, again(g, &rung_op_reduce_sum, node, in[0]));
}
/* max + log(sum(exp(x - max))), with an infinite max taken as it is. */
static void log_sum_exp_smaller(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_reduce_attrs *attrs = (const rung_reduce_attrs *)node->attrs;
  const rung_value top = again(g, &rung_op_reduce_max, node, in[0]);
  const rung_value shifted = rung_build_sub(g, in[0], kept_shape(g, attrs, in[0], top));
  const rung_value sum = again(g, &rung_op_reduce_sum, node, rung_build_exp(g, shifted));
  const rung_value infinite = rung_build_isinf(g, top);
  out[0] = rung_build_where(g, infinite, top, rung_build_add(g, top, rung_build_log(g, sum)));
}

/* ---- the ops */
static const char *const operands[] = {"x", NULL};
static const char *const roles[] = {"kept", "reduced", NULL};
static const rung_attr attrs[] = {
    {"axes", RUNG_ATTR_I64S, offsetof(rung_reduce_attrs, axes), "[]", NULL, "reduced axes; none: all"},
    {"keep", RUNG_ATTR_BOOL, offsetof(rung_reduce_attrs, keep), "false", NULL, "reduced axes stay, with extent 1"},
    {NULL, 0, 0, NULL, NULL, NULL}};
#define FLOATS                                                                                                    \
  {"f32[5,67]", "axes=[1]"}, {"f32[5,67]", "axes=[0], keep=true"}, {"f32[2,3,17]", "axes=[0,2]"}, {"f32[7]", ""}, \
      {"f64[2,3,4]", "axes=[1]"}, {"f64[2,3]", "axes=[-1], keep=true"}, {"f32[]", ""}, {"f32[3,0]", "axes=[1]"},  \
      {"f32[0,3]", "axes=[1]"}, {"f16[4,33]", "axes=[1]"}, {                                                      \
    "f32[2,1]", "axes=[1]"                                                                                        \
  }
#define INTEGERS \
  {"i32[5,17]{-9,9}", "axes=[1]"}, {"u8[9]{0,255}", ""}, { "i64[3,0]", "axes=[1]" }
static const rung_test_case tests_FLOAT[] = {FLOATS, {NULL, NULL}};
static const rung_test_case tests_NUMBER[] = {FLOATS, INTEGERS, {NULL, NULL}};
static const rung_test_case tests_PLAIN[] = {
    FLOATS, INTEGERS, {"bool[5,3]", "axes=[1]"}, {"bool[3,0]", "axes=[1]"}, {NULL, NULL}};

/* Integer column: the fold, or NULL for floats only. */
#define REDUCE(name_, takes, fold_i64, smaller, lo, hi, text)                                                   \
  static rung_status reference_##name_(const rung_args *args) { return run(args, name_##_f64, fold_i64); }      \
  static void gradient_##name_(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y, \
                               const rung_value *gy, rung_value *out_gx) {                                      \
    differentiate(g, node, in, y, gy, out_gx, name_##_gx);                                                      \
  }                                                                                                             \
  const rung_op rung_op_reduce_##name_ = {.name = "reduce_" #name_,                                             \
                                          .doc = text,                                                          \
                                          .operands = operands,                                                 \
                                          .in_lo = 1,                                                           \
                                          .in_hi = 1,                                                           \
                                          .results = 1,                                                         \
                                          .attrs = attrs,                                                       \
                                          .attrs_bytes = sizeof(rung_reduce_attrs),                             \
                                          .roles = roles,                                                       \
                                          .infer = infer_##takes,                                               \
                                          .role_dims = role_dims,                                               \
                                          .reference = reference_##name_,                                       \
                                          .gradient = gradient_##name_,                                         \
                                          .decompose = smaller,                                                 \
                                          .test_lo = lo,                                                        \
                                          .test_hi = hi,                                                        \
                                          .tests = tests_##takes,                                               \
                                          .tolerance = {0x1p-20, 0x1p-22}};
/* clang-format off */
REDUCE(sum,         NUMBER, sum_i64,        NULL,                -4,  4, "sum over axes")
REDUCE(mean,        NUMBER, mean_i64,       NULL,                -4,  4, "mean over axes; integers round towards 0")
REDUCE(prod,        NUMBER, prod_i64,       NULL,                0.5, 2, "product over axes; its gradient needs elements that are not 0")
REDUCE(max,         PLAIN,  max_i64,        NULL,                -4,  4, "largest over axes; NaN if any is; for bool: any")
REDUCE(min,         PLAIN,  min_i64,        NULL,                -4,  4, "smallest over axes; NaN if any is; for bool: all")
REDUCE(l1,          NUMBER, l1_i64,         l1_smaller,          -4,  4, "sum of magnitudes over axes")
REDUCE(l2,          FLOAT,  NULL,           l2_smaller,          -4,  4, "root of the sum of squares over axes")
REDUCE(sum_square,  NUMBER, sum_square_i64, sum_square_smaller,  -4,  4, "sum of squares over axes")
REDUCE(log_sum,     FLOAT,  NULL,           log_sum_smaller,     0.1, 4, "logarithm of the sum over axes")
REDUCE(log_sum_exp, FLOAT,  NULL,           log_sum_exp_smaller, -9,  9, "logarithm of the sum of exponentials over axes, without overflow")
/* clang-format on */
