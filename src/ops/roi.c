/* SPDX-License-Identifier: MIT
 * roi_align, max_roi_pool: regions of x[batch, channels, h, w] brought to one size, as ONNX RoiAlign and MaxRoiPool. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_roi_attrs, field)
static const rung_attr align_attributes[] = {
    {FIELD(height), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "of the result"},
    {FIELD(width), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "of the result"},
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "1", .doc = "from the regions' units to places of x"},
    {FIELD(sampling), .kind = RUNG_ATTR_I64, .text_default = "0",
     .doc = "samples a place and axis; 0: as many as places of x"},
    {FIELD(largest), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "the largest sample instead of the mean"},
    {FIELD(half_pixel), .kind = RUNG_ATTR_BOOL, .text_default = "true", .doc = "places are half a place before"},
    {0}};
static const rung_attr pool_attributes[] = {
    {FIELD(height), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "of the result"},
    {FIELD(width), .kind = RUNG_ATTR_I64, .text_default = "1", .doc = "of the result"},
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "1", .doc = "from the regions' units to places of x"},
    {0}};
#undef FIELD

static rung_status infer_regions(rung_infer *infer, int64_t columns) {
  const rung_roi_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  for (uint32_t i = 0; i < 2; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
  }
  RUNG_TRY(rung_infer_rank(infer, 0, 4));
  RUNG_TRY(rung_infer_rank(infer, 1, 2));
  RUNG_TRY(rung_infer_extent(infer, 1, 1, rung_dims_constant(infer->dims, columns)));
  if (attrs->height < 1 || attrs->width < 1 || attrs->sampling < 0 || attrs->height > 65536 || attrs->width > 65536 ||
      attrs->sampling > 65536)
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "height, width and sampling must be of use");
  const rung_dim extent[] = {infer->in[1].extent[0], x->extent[1], rung_dims_constant(infer->dims, attrs->height),
                             rung_dims_constant(infer->dims, attrs->width)};
  rung_infer_result(infer, 0, x->type, 4, extent);
  return RUNG_OK;
}

static rung_status check_batch(const rung_args *args, const char *op, int64_t roi, double index) {
  const double batches = (double)args->in[0].extent[0];
  if (index >= 0 && index < batches) return RUNG_OK;
  return rung_fail(args->error, RUNG_OUT_OF_RANGE, "%s: region %lld lies in picture %g of %g", op, (long long)roi,
                   index, batches);
}

/* ---- roi_align */

static rung_status infer_align(rung_infer *infer) {
  RUNG_TRY(infer_regions(infer, 4));
  RUNG_TRY(rung_infer_index(infer, 2));
  RUNG_TRY(rung_infer_rank(infer, 2, 1));
  return rung_infer_extent(infer, 2, 0, infer->in[1].extent[0]);
}

/* One axis of a region: where it begins, the extent of a place of the result, samples in it. */
typedef struct line {
  double begin, place;
  int64_t samples, extent;
} line;
static line line_of(const rung_args *args, int64_t roi, int axis, int64_t places) {
  const rung_roi_attrs *attrs = args->attrs;
  const rung_operand *rois = &args->in[1];
  const int64_t at = roi * rois->stride[0];
  const double shift = attrs->half_pixel ? 0.5 : 0;
  const double begin = rung_load_f64(rois, at + (1 - axis) * rois->stride[1]) * attrs->scale - shift;
  const double end = rung_load_f64(rois, at + (3 - axis) * rois->stride[1]) * attrs->scale - shift;
  double extent = end - begin;
  if (!attrs->half_pixel && !(extent >= 1)) extent = 1;
  line l = {.begin = begin,
            .place = extent / (double)places,
            .samples = attrs->sampling,
            .extent = args->in[0].extent[2 + axis]};
  const double most = 65536;
  if (!l.samples) l.samples = l.place > 0 ? (int64_t)fmin(ceil(l.place), most) : 0;
  return l;
}

/* The two neighbours of a sample and the weight of the second; false: too far outside. */
static bool neighbours(const line *l, int64_t place, int64_t sample, int64_t *out_first, int64_t *out_second,
                       double *out_weight) {
  double at = l->begin + (double)place * l->place + ((double)sample + 0.5) * l->place / (double)l->samples;
  if (!(at >= -1 && at <= (double)l->extent) || !l->extent) return false;
  if (at < 0) at = 0;
  *out_first = (int64_t)at;
  *out_second = *out_first + 1;
  *out_weight = at - (double)*out_first;
  if (*out_first < l->extent - 1) return true;
  *out_first = *out_second = l->extent - 1;
  *out_weight = 0;
  return true;
}

static double align(const rung_args *args, const line *lines, int64_t channel, int64_t v, int64_t h) {
  const rung_operand *x = &args->in[0];
  const bool largest = ((const rung_roi_attrs *)args->attrs)->largest;
  double sum = 0;
  for (int64_t i = 0; i < lines[0].samples; i++) {
    for (int64_t j = 0; j < lines[1].samples; j++) {
      int64_t row[2], column[2];
      double down, right, part[4] = {0, 0, 0, 0};
      if (neighbours(&lines[0], v, i, &row[0], &row[1], &down) &&
          neighbours(&lines[1], h, j, &column[0], &column[1], &right)) {
        for (int k = 0; k < 4; k++) {
          const double weight = (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right);
          part[k] = weight * rung_load_f64(x, channel + row[k / 2] * x->stride[2] + column[k % 2] * x->stride[3]);
        }
      }
      const double most = fmax(fmax(part[0], part[1]), fmax(part[2], part[3]));
      if (!largest) sum += part[0] + part[1] + part[2] + part[3];
      if (largest && ((i == 0 && j == 0) || most > sum)) sum = most;
    }
  }
  const int64_t samples = lines[0].samples * lines[1].samples;
  return largest || !samples ? sum : sum / (double)samples;
}

static rung_status align_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    const int64_t roi = w.index[0], batch = rung_vector_at(&args->in[2], roi);
    RUNG_TRY(check_batch(args, "roi_align", roi, (double)batch));
    const line lines[2] = {line_of(args, roi, 0, y->extent[2]), line_of(args, roi, 1, y->extent[3])};
    const int64_t channel = batch * x->stride[0] + w.index[1] * x->stride[1];
    rung_store_f64(y, w.offset[0], align(args, lines, channel, w.index[2], w.index[3]));
  }
  return RUNG_OK;
}

static const rung_test_case align_cases[] = {
    {"f32[2,3,7,9] f32[4,4]{0,8} i32[4]{0,1}", "height=3, width=2, sampling=2"},
    {"f32[1,2,7,9] f32[3,4]{0,16} i64[3]{0,0}", "height=2, width=2, scale=0.5, half_pixel=false"},
    {"f32[1,2,7,9] f32[3,4]{0,8} i64[3]{0,0}", "height=2, width=3, largest=true"},
    {"f32[1,2,7,9] f32[0,4] i64[0]", "height=2, width=3"},
    {0}};

const rung_op rung_op_roi_align = {
    .name = "roi_align",
    .doc = "regions of pictures brought to one size, from samples between places",
    .operands = (const char *const[]){"x", "rois", "batch", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .attrs = align_attributes,
    .attrs_bytes = sizeof(rung_roi_attrs),
    .infer = infer_align,
    .role_dims = rung_role_elements,
    .reference = align_reference,
    .no_gradient = "not yet: spreads every result over its samples",
    .test_lo = -4,
    .test_hi = 4,
    .tests = align_cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-35},
};

/* ---- max_roi_pool: regions are picture, x0, y0, x1, y1, rounded to whole places, both ends in */

static rung_status infer_pool(rung_infer *infer) { return infer_regions(infer, 5); }

/* Places of x that place i of n of a region takes. */
static void pooled(const rung_args *args, int64_t roi, int axis, int64_t i, int64_t n, int64_t *out_lo,
                   int64_t *out_hi) {
  const rung_operand *rois = &args->in[1];
  const double scale = ((const rung_roi_attrs *)args->attrs)->scale, most = 1e9;
  const int64_t at = roi * rois->stride[0], in = args->in[0].extent[2 + axis];
  double begin = round(rung_load_f64(rois, at + (2 - axis) * rois->stride[1]) * scale);
  double end = round(rung_load_f64(rois, at + (4 - axis) * rois->stride[1]) * scale);
  begin = begin >= -most ? fmin(begin, most) : -most;
  end = end >= -most ? fmin(end, most) : -most;
  const double place = fmax(end - begin + 1, 1) / (double)n;
  const double lo = floor((double)i * place) + begin, hi = ceil((double)(i + 1) * place) + begin;
  *out_lo = (int64_t)fmin(fmax(lo, 0), (double)in);
  *out_hi = (int64_t)fmin(fmax(hi, 0), (double)in);
}

static rung_status pool_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *rois = &args->in[1], *y = &args->out[0];
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    const int64_t roi = w.index[0];
    const double batch = rung_load_f64(rois, roi * rois->stride[0]);
    RUNG_TRY(check_batch(args, "max_roi_pool", roi, batch));
    int64_t lo[2], hi[2];
    for (int axis = 0; axis < 2; axis++)
      pooled(args, roi, axis, w.index[2 + axis], y->extent[2 + axis], &lo[axis], &hi[axis]);
    const int64_t channel = (int64_t)batch * x->stride[0] + w.index[1] * x->stride[1];
    double largest = -(double)INFINITY;
    for (int64_t v = lo[0]; v < hi[0]; v++)
      for (int64_t h = lo[1]; h < hi[1]; h++)
        largest = fmax(largest, rung_load_f64(x, channel + v * x->stride[2] + h * x->stride[3]));
    rung_store_f64(y, w.offset[0], hi[0] > lo[0] && hi[1] > lo[1] ? largest : 0);
  }
  return RUNG_OK;
}

static const rung_test_case pool_cases[] = {{"f32[2,3,7,9] f32[4,5]{0,1.9}", "height=2, width=2, scale=4"},
                                            {"f32[9,2,7,9] f32[3,5]{0,8}", "height=3, width=2"},
                                            {"f32[1,2,7,9] f32[0,5]", "height=2, width=2"},
                                            {0}};

/* Exact: picks one of the numbers. */
const rung_op rung_op_max_roi_pool = {
    .name = "max_roi_pool",
    .doc = "the largest number of each part of a region, regions brought to one size",
    .operands = (const char *const[]){"x", "rois", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = pool_attributes,
    .attrs_bytes = sizeof(rung_roi_attrs),
    .infer = infer_pool,
    .role_dims = rung_role_elements,
    .reference = pool_reference,
    .no_gradient = "not yet: wants the place of each largest number",
    .test_lo = -4,
    .test_hi = 4,
    .tests = pool_cases,
};
