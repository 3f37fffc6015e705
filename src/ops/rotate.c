/* SPDX-License-Identifier: MIT
 * rotate: pairs of channels turned by sines and cosines that come as tables, which is how exported models write rotary
 * positions. attrs.h has the definition; rope computes its tables itself. */
#include <stddef.h>

#include "ops/build.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_rotate_attrs, field)
static const char *const modes[] = {"half", "adjacent", NULL};
static const char *const tables[] = {"pair", "channel", NULL};
static const rung_attr attributes[] = {
    {FIELD(mode), .kind = RUNG_ATTR_ENUM, .text_default = "half", .names = modes,
     .doc = "which of the channels that turn pair up: half (i, i + half of them), adjacent (2i, 2i + 1)"},
    {FIELD(table), .kind = RUNG_ATTR_ENUM, .text_default = "pair", .names = tables,
     .doc = "what a number of cosine and sine is for: a pair, or a channel"},
    {0}};
#undef FIELD

/* A table's leading axes repeat, or are those of x. */
static rung_status infer_table(rung_infer *infer, uint32_t i, int64_t *out_n) {
  const rung_value_type *x = &infer->in[0], *t = &infer->in[i];
  RUNG_TRY(rung_infer_same_type(infer, i, 0));
  RUNG_TRY(rung_infer_ranks(infer, i, 1, x->rank));
  RUNG_TRY(rung_infer_constant(infer, t->extent[t->rank - 1], "the last axis of a table", out_n));
  for (int axis = 0; axis < t->rank - 1; axis++) {
    if (!rung_dim_is(infer->dims, t->extent[axis], 1))
      RUNG_TRY(rung_infer_agree(infer, x->extent[x->rank - t->rank + axis], t->extent[axis],
                                "the extents of x and a table"));
  }
  return RUNG_OK;
}

static rung_status infer(rung_infer *infer) {
  const rung_rotate_attrs *attrs = (const rung_rotate_attrs *)infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_classes(infer, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_ranks(infer, 0, 1, RUNG_MAX_RANK - 1)); /* its parts put an axis of pairs behind */
  int64_t width, n, sines;
  RUNG_TRY(rung_infer_constant(infer, x->extent[x->rank - 1], "the last axis of x", &width));
  RUNG_TRY(infer_table(infer, 1, &n));
  RUNG_TRY(infer_table(infer, 2, &sines));
  const bool channel = attrs->table == RUNG_ROTATE_CHANNEL;
  if (n != sines || (channel ? n % 2 || n > width : n > width / 2))
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH,
                             "%lld and %lld numbers, one a %s, turn no pairs of %lld channels", (long long)n,
                             (long long)sines, tables[attrs->table], (long long)width);
  infer->out[0] = rung_value_type_like(x, x->type);
  return RUNG_OK;
}

/* The last axis of four operands: how far apart its elements are, and how many turn. */
typedef struct turn {
  const rung_operand *x, *cosine, *sine, *y;
  int64_t x_step, cosine_step, sine_step, y_step, pairs;
  bool half, channel;
} turn;

/* One row; offsets of y, x, cosine, sine. */
static void turn_row(const turn *t, const int64_t *at) {
  const int64_t width = t->x->extent[t->x->rank - 1];
  for (int64_t i = 0; i < t->pairs; i++) {
    const int64_t first = t->half ? i : 2 * i, second = t->half ? i + t->pairs : 2 * i + 1;
    const int64_t k = t->channel ? first : i, l = t->channel ? second : i;
    const double a = rung_load_f64(t->x, at[1] + first * t->x_step),
                 b = rung_load_f64(t->x, at[1] + second * t->x_step);
    const double cos_a = rung_load_f64(t->cosine, at[2] + k * t->cosine_step),
                 cos_b = rung_load_f64(t->cosine, at[2] + l * t->cosine_step);
    const double sin_a = rung_load_f64(t->sine, at[3] + k * t->sine_step),
                 sin_b = rung_load_f64(t->sine, at[3] + l * t->sine_step);
    rung_store_f64(t->y, at[0] + first * t->y_step, a * cos_a - b * sin_a);
    rung_store_f64(t->y, at[0] + second * t->y_step, b * cos_b + a * sin_b);
  }
  for (int64_t i = 2 * t->pairs; i < width; i++)
    rung_store_f64(t->y, at[0] + i * t->y_step, rung_load_f64(t->x, at[1] + i * t->x_step));
}

/* Strides of an operand's leading axes, as it broadcasts to so many; gives that of the last axis. */
static int64_t leading_strides(const rung_operand *o, int leading, int64_t *out_stride) {
  const int skip = leading + 1 - o->rank;
  for (int axis = 0; axis < leading; axis++)
    out_stride[axis] = axis < skip || o->extent[axis - skip] == 1 ? 0 : o->stride[axis - skip];
  return o->stride[o->rank - 1];
}

static rung_status reference(const rung_args *args) {
  const rung_rotate_attrs *attrs = (const rung_rotate_attrs *)args->attrs;
  const rung_operand *x = &args->in[0], *cosine = &args->in[1], *sine = &args->in[2], *y = &args->out[0];
  const int leading = x->rank - 1;
  int64_t stride[4][RUNG_MAX_RANK];
  turn t = {.x = x, .cosine = cosine, .sine = sine, .y = y, .half = attrs->mode == RUNG_ROPE_HALF};
  t.channel = attrs->table == RUNG_ROTATE_CHANNEL;
  t.pairs = cosine->extent[cosine->rank - 1] / (t.channel ? 2 : 1);
  t.y_step = leading_strides(y, leading, stride[0]);
  t.x_step = leading_strides(x, leading, stride[1]);
  t.cosine_step = leading_strides(cosine, leading, stride[2]);
  t.sine_step = leading_strides(sine, leading, stride[3]);
  rung_walk w;
  for (rung_walk_begin_strides(&w, leading, x->extent, 4, stride); w.live; rung_walk_next(&w)) turn_row(&t, w.offset);
  return RUNG_OK;
}

/* ---- the op in parts */

static int64_t last_extent(const rung_graph *g, rung_value x) {
  const rung_value_type *type = rung_build_type(g, x);
  int64_t extent = 0;
  if (type->rank) rung_dims_is_constant(g->dims, type->extent[type->rank - 1], &extent);
  return extent;
}

/* `count` elements of the last axis. */
static rung_value part(rung_graph *g, rung_value x, int64_t start, int64_t count, int64_t step) {
  const rung_value_type type = *rung_build_type(g, x);
  rung_slice_attrs attrs = {
      .start = {.count = type.rank}, .length = {.count = type.rank}, .step = {.count = type.rank}};
  for (int axis = 0; axis < type.rank; axis++) {
    const bool last = axis == type.rank - 1;
    attrs.start.dim[axis] = rung_dims_constant(g->dims, last ? start : 0);
    attrs.length.dim[axis] = last ? rung_dims_constant(g->dims, count) : type.extent[axis];
    attrs.step.value[axis] = last ? step : 1;
  }
  return rung_graph_op(g, &rung_op_slice, &x, 1, &attrs);
}

/* Firsts and seconds of the pairs of the first `channels` of the last axis, and such parts put together again. */
typedef struct pair {
  rung_value a, b;
} pair;
static pair take_pairs(rung_graph *g, rung_value x, int64_t channels, bool half) {
  const int64_t n = channels / 2;
  const rung_value a = part(g, x, 0, n, half ? 1 : 2), b = part(g, x, half ? n : 1, n, half ? 1 : 2);
  return (pair){a, b};
}
static rung_value join_pairs(rung_graph *g, pair p, bool half) {
  const int rank = rung_build_type(g, p.a)->rank;
  rung_value both[2] = {p.a, p.b};
  if (half) return rung_build_concat(g, both, 2, rank - 1);
  rung_value_type type = *rung_build_type(g, p.a);
  if (rank == 0) return p.a; /* something failed before */
  for (int i = 0; i < 2; i++) both[i] = rung_build_unsqueeze(g, both[i], rank);
  type.extent[rank - 1] = rung_dims_mul(g->dims, type.extent[rank - 1], rung_dims_constant(g->dims, 2));
  return rung_build_reshape(g, rung_build_concat(g, both, 2, rank), rank, type.extent);
}
/* A quarter of a turn. */
static rung_value quarter(rung_graph *g, pair p, bool half) {
  return join_pairs(g, (pair){rung_build_neg(g, p.b), p.a}, half);
}

static void decompose(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_rotate_attrs *attrs = (const rung_rotate_attrs *)node->attrs;
  const bool half = attrs->mode == RUNG_ROPE_HALF, channel = attrs->table == RUNG_ROTATE_CHANNEL;
  const int64_t width = last_extent(g, in[0]), turned = last_extent(g, in[1]) * (channel ? 1 : 2);
  const pair x = take_pairs(g, in[0], turned, half);
  rung_value y;
  if (channel) {
    const rung_value whole = turned == width ? in[0] : part(g, in[0], 0, turned, 1);
    const rung_value straight = rung_build_mul(g, whole, in[1]), across = rung_build_mul(g, quarter(g, x, half), in[2]);
    y = rung_build_add(g, straight, across);
  } else {
    const rung_value ac = rung_build_mul(g, x.a, in[1]), bs = rung_build_mul(g, x.b, in[2]);
    const rung_value bc = rung_build_mul(g, x.b, in[1]), as = rung_build_mul(g, x.a, in[2]);
    const pair p = {.a = rung_build_sub(g, ac, bs), .b = rung_build_add(g, bc, as)};
    y = join_pairs(g, p, half);
  }
  if (turned != width) {
    const rung_value both[2] = {y, part(g, in[0], turned, width - turned, 1)};
    y = rung_build_concat(g, both, 2, rung_build_type(g, in[0])->rank - 1);
  }
  out[0] = y;
}

/* Of x: the other way round, each sine where its channel's partner is. Of the tables: what each number was multiplied by. */
static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_rotate_attrs *attrs = (const rung_rotate_attrs *)node->attrs;
  const bool half = attrs->mode == RUNG_ROPE_HALF, channel = attrs->table == RUNG_ROTATE_CHANNEL;
  const int64_t turned = last_extent(g, in[1]) * (channel ? 1 : 2);
  const pair x = take_pairs(g, in[0], turned, half), d = take_pairs(g, gy[0], turned, half);
  rung_value sine = in[2], of_cosine, of_sine;
  if (channel) {
    const pair s = take_pairs(g, sine, turned, half);
    const rung_value whole = part(g, gy[0], 0, turned, 1);
    sine = join_pairs(g, (pair){s.b, s.a}, half);
    of_cosine = rung_build_mul(g, whole, part(g, in[0], 0, turned, 1));
    of_sine = rung_build_mul(g, whole, quarter(g, x, half));
  } else {
    const rung_value aa = rung_build_mul(g, d.a, x.a), bb = rung_build_mul(g, d.b, x.b);
    const rung_value ba = rung_build_mul(g, d.b, x.a), ab = rung_build_mul(g, d.a, x.b);
    of_cosine = rung_build_add(g, aa, bb);
    of_sine = rung_build_sub(g, ba, ab);
  }
  const rung_value operand[3] = {gy[0], in[1], rung_build_neg(g, sine)};
  out_gx[0] = rung_graph_op(g, &rung_op_rotate, operand, 3, attrs);
  out_gx[1] = rung_build_unbroadcast(g, of_cosine, in[1]);
  out_gx[2] = rung_build_unbroadcast(g, of_sine, in[2]);
}

static const rung_test_case cases[] = {{"f32[2,3,5,64] f32[5,32] f32[5,32]", ""},
                                       {"f32[2,3,5,64] f32[2,1,5,64] f32[2,1,5,64]", "table=channel"},
                                       {"f32[2,3,5,20] f32[2,3,1,6] f32[2,3,1,6]", "mode=adjacent"},
                                       {"f32[3,5,34] f32[5,34] f32[5,34]", "mode=adjacent, table=channel"},
                                       {"f32[7,3,70] f32[7,1,22] f32[7,1,22]", "table=channel"},
                                       {"f32[40,130] f32[40,1] f32[40,1]", ""},
                                       {"f32[9,36] f32[36] f32[36]", "table=channel"},
                                       {"f32[16] f32[3] f32[3]", "mode=adjacent"},
                                       {"f64[4,2,16] f64[4,1,8] f64[4,1,8]", ""},
                                       {"f64[4,2,17] f64[2,16] f64[2,16]", "mode=adjacent, table=channel"},
                                       {"f16[3,5,48] f16[5,24] f16[5,24]", "mode=adjacent"},
                                       {"f16[3,5,50] f16[5,40] f16[5,40]", "table=channel"},
                                       {"bf16[3,5,32] bf16[5,16] bf16[5,16]", ""},
                                       {"bf16[3,1,37] bf16[3,1,18] bf16[3,1,18]", "mode=adjacent, table=channel"},
                                       {"f32[2,3,5,24] f32[5,12] f32[2,1,1,12]", ""},
                                       {"f32[0,4,8] f32[4,4] f32[4,4]", ""},
                                       {"f32[3,8] f32[0] f32[0]", ""},
                                       {"f32[3,0] f32[3,0] f32[3,0]", "table=channel"},
                                       {0}};

/* Two products and their sum, each rounded: in f32 the bits that the ops of its parts give. */
const rung_op rung_op_rotate = {
    .name = "rotate",
    .doc = "rotary positions by tables: turns pairs of the first channels by given sines and cosines",
    .operands = (const char *const[]){"x", "cosine", "sine", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .flags = RUNG_OP_IN_PLACE,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_rotate_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .gradient = gradient,
    .decompose = decompose,
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 5e-7, .absolute = 1e-6},
};
