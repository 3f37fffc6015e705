/* SPDX-License-Identifier: MIT
 * non_max_suppression: of boxes that overlap the best, as ONNX NonMaxSuppression. Boxes of a class are taken by falling
 * score (of equals the lower index first) unless one that was taken covers them. How many there will be is not known:
 * `selected` has room for all, and `count` says how many rows are filled. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {{.name = "centre",
                                        .kind = RUNG_ATTR_BOOL,
                                        .offset = offsetof(rung_nms_attrs, centre),
                                        .text_default = "false",
                                        .doc = "boxes are x, y of the middle, width, height; else y, x of two corners"},
                                       {0}};

static rung_status infer(rung_infer *infer) {
  const rung_value_type *boxes = &infer->in[0], *scores = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 0, 3));
  RUNG_TRY(rung_infer_rank(infer, 1, 3));
  RUNG_TRY(rung_infer_extent(infer, 0, 2, rung_dims_constant(infer->dims, 4)));
  RUNG_TRY(rung_infer_extent(infer, 1, 0, boxes->extent[0]));
  RUNG_TRY(rung_infer_extent(infer, 1, 2, boxes->extent[1]));
  RUNG_TRY(rung_infer_scalar(infer, 2, RUNG_TYPE_I64));
  for (uint32_t i = 3; i < infer->n_in; i++) RUNG_TRY(rung_infer_scalar(infer, i, RUNG_TYPE_F32));
  const rung_dim extent[] = {rung_dims_product(infer->dims, scores->extent, 0, 3), rung_dims_constant(infer->dims, 3)};
  RUNG_TRY(rung_infer_dim(infer, extent[0]));
  rung_infer_result(infer, 0, RUNG_TYPE_I64, 2, extent);
  rung_infer_result(infer, 1, RUNG_TYPE_I64, 0, NULL);
  return RUNG_OK;
}

typedef struct box {
  double low[2], high[2];
} box;

static box box_at(const rung_args *args, int64_t batch, int64_t index) {
  const rung_operand *boxes = &args->in[0];
  const int64_t at = batch * boxes->stride[0] + index * boxes->stride[1], step = boxes->stride[2];
  double v[4];
  for (int i = 0; i < 4; i++) v[i] = rung_load_f64(boxes, at + i * step);
  if (((const rung_nms_attrs *)args->attrs)->centre)
    return (box){{v[0] - v[2] / 2, v[1] - v[3] / 2}, {v[0] + v[2] / 2, v[1] + v[3] / 2}};
  return (box){{fmin(v[1], v[3]), fmin(v[0], v[2])}, {fmax(v[1], v[3]), fmax(v[0], v[2])}};
}

static double area_of(const box *b) { return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]); }

/* Does the area that both cover make up more than `most` of what they cover together? */
static bool covers(const box *a, const box *b, double most) {
  box both;
  for (int i = 0; i < 2; i++) {
    both.low[i] = fmax(a->low[i], b->low[i]);
    both.high[i] = fmin(a->high[i], b->high[i]);
    if (!(both.high[i] > both.low[i])) return false;
  }
  const double shared = area_of(&both), one = area_of(a), other = area_of(b);
  return shared > 0 && one > 0 && other > 0 && shared / (one + other - shared) > most;
}

typedef struct search {
  const rung_args *args;
  int64_t batch, class_, boxes;
  double least;
  bool bounded;
} search;

static double score_at(const search *s, int64_t index) {
  const rung_operand *scores = &s->args->in[1];
  return rung_load_f64(scores, rung_axis_step(scores, 0) * s->batch + rung_axis_step(scores, 1) * s->class_ +
                                   rung_axis_step(scores, 2) * index);
}

/* The best box that comes after `last` in the order; -1: none. */
static int64_t next_box(const search *s, int64_t last) {
  int64_t best = -1;
  const double limit = last < 0 ? 0 : score_at(s, last);
  double top = 0;
  for (int64_t i = 0; i < s->boxes; i++) {
    const double score = score_at(s, i);
    if (isnan(score) || (s->bounded && !(score > s->least))) continue;
    if (last >= 0 && !(score < limit || (score == limit && i > last))) continue;
    if (best >= 0 && !(score > top)) continue;
    best = i;
    top = score;
  }
  return best;
}

/* Boxes of one class, written from row `row` on; gives how many. */
static int64_t run_class(const search *s, int64_t limit, double overlap, int64_t row) {
  const rung_operand *selected = &s->args->out[0];
  int64_t n = 0;
  for (int64_t at = next_box(s, -1); at >= 0 && n < limit; at = next_box(s, at)) {
    const box candidate = box_at(s->args, s->batch, at);
    bool free = true;
    for (int64_t i = row; i < row + n && free; i++) {
      const int64_t taken = rung_load_i64(selected, i * selected->stride[0] + 2 * selected->stride[1]);
      const box other = box_at(s->args, s->batch, taken);
      free = !covers(&candidate, &other, overlap);
    }
    if (!free) continue;
    const int64_t value[3] = {s->batch, s->class_, at};
    for (int i = 0; i < 3; i++)
      rung_store_i64(selected, (row + n) * selected->stride[0] + i * selected->stride[1], value[i]);
    n++;
  }
  return n;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *scores = &args->in[1], *selected = &args->out[0];
  const int64_t limit = rung_load_i64(&args->in[2], 0);
  const double overlap = rung_load_f64(&args->in[3], 0);
  int64_t n = 0;
  search s = {.args = args, .boxes = scores->extent[2], .bounded = args->n_in > 4};
  if (s.bounded) s.least = rung_load_f64(&args->in[4], 0);
  for (s.batch = 0; s.batch < scores->extent[0]; s.batch++)
    for (s.class_ = 0; s.class_ < scores->extent[1]; s.class_++) n += run_class(&s, limit, overlap, n);
  for (int64_t row = n; row < selected->extent[0]; row++)
    for (int i = 0; i < 3; i++) rung_store_i64(selected, row * selected->stride[0] + i * selected->stride[1], 0);
  rung_store_i64(&args->out[1], 0, n);
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[2,9,4]{0,4} f32[2,3,9] i64[]{2,9} f32[]{0.2,0.5}", ""},
    {"f32[1,17,4]{0.5,3} f32[1,2,17] i64[]{1,9} f32[]{0.1,0.5} f32[]{-1,1}", "centre=true"},
    {"f32[1,5,4] f32[1,1,5] i64[]{0,0} f32[]", ""},
    {"f32[1,0,4] f32[1,2,0] i64[]{3,3} f32[]", ""},
    {0}};

const rung_op rung_op_non_max_suppression = {
    .name = "non_max_suppression",
    .doc = "of boxes that overlap the one with the best score: rows of batch, class and index, and how many there are",
    .operands = (const char *const[]){"boxes", "scores", "limit", "overlap", "least", NULL},
    .results_named = (const char *const[]){"selected", "count", NULL},
    .in_lo = 4,
    .in_hi = 5,
    .results = 2,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_nms_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "indices",
    .test_lo = -4,
    .test_hi = 4,
    .tests = cases,
};
