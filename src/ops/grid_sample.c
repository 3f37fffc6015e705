/* SPDX-License-Identifier: MIT
 * grid_sample: x[batch, channels, spatial...] read at places that grid[batch, places..., axes] gives in -1 .. 1 along
 * each axis, the last axis first, as ONNX GridSample. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/spatial.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_grid_sample_attrs, field)
static const char *const modes[] = {"linear", "nearest", "cubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
static const rung_attr attributes[] = {
    {FIELD(mode), .kind = RUNG_ATTR_ENUM, .text_default = "linear", .names = modes, .doc = "how neighbours mix"},
    {FIELD(padding), .kind = RUNG_ATTR_ENUM, .text_default = "zeros", .names = paddings, .doc = "what is outside x"},
    {FIELD(align_corners), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "-1 and 1 are the middles of the outermost places, not their edges"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *grid = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_class(infer, 1, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_ranks(infer, 0, 3, 2 + RUNG_SPATIAL));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  RUNG_TRY(rung_infer_extent(infer, 1, 0, x->extent[0]));
  RUNG_TRY(rung_infer_extent(infer, 1, x->rank - 1, rung_dims_constant(infer->dims, x->rank - 2)));
  rung_dim extent[RUNG_MAX_RANK] = {x->extent[0], x->extent[1]};
  for (int axis = 2; axis < x->rank; axis++) extent[axis] = grid->extent[axis - 1];
  rung_infer_result(infer, 0, x->type, x->rank, extent);
  return RUNG_OK;
}

/* Mirrored at both borders until it lies between them. */
static double reflect(double at, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  if (at >= low && at <= high) return at;
  const double distance = at < low ? low - at : at - high, turns = floor(distance / range);
  const double rest = distance - turns * range;
  const bool from_low = (at < low) == (fmod(turns, 2) == 0);
  return from_low ? low + rest : high - rest;
}

typedef struct axis {
  int64_t extent, step, first;
  int count;
  double weight[4], low, high;
} axis;

/* A neighbour's index, -1 where zeros stand. */
static int64_t index_of(const axis *a, int64_t index, int32_t padding) {
  if (index >= 0 && index < a->extent) return index;
  if (padding == RUNG_SAMPLE_ZEROS) return -1;
  if (padding == RUNG_SAMPLE_BORDER) return index < 0 ? 0 : a->extent - 1;
  const int64_t at = (int64_t)reflect((double)index, a->low, a->high);
  return at < 0 ? 0 : at >= a->extent ? a->extent - 1 : at;
}

/* Keys (1981) with -3/4. */
static double cubic(double distance) {
  const double d = fabs(distance), c = -0.75;
  if (d <= 1) return ((c + 2) * d - (c + 3)) * d * d + 1;
  return d < 2 ? ((c * d - 5 * c) * d + 8 * c) * d - 4 * c : 0;
}

static void lay(axis *a, double place, const rung_grid_sample_attrs *attrs) {
  const double extent = (double)a->extent;
  a->low = attrs->align_corners ? 0 : -0.5;
  a->high = attrs->align_corners ? extent - 1 : extent - 0.5;
  double at = attrs->align_corners ? (place + 1) / 2 * (extent - 1) : ((place + 1) * extent - 1) / 2;
  at = (double)(float)at;
  if (attrs->mode == RUNG_SAMPLE_NEAREST) at = rint(at);
  if (at < a->low || at > a->high) {
    if (attrs->padding == RUNG_SAMPLE_BORDER) at = at < 0 ? 0 : extent - 1;
    if (attrs->padding == RUNG_SAMPLE_REFLECTION) at = reflect(at, a->low, a->high);
  }
  if (!(fabs(at) < 1e15)) at = -1e15; /* not a number, or nowhere */
  const double below = floor(at), rest = at - below;
  a->first = (int64_t)below;
  a->count = attrs->mode == RUNG_SAMPLE_NEAREST ? 1 : attrs->mode == RUNG_SAMPLE_LINEAR ? 2 : 4;
  if (a->count == 1) a->first = (int64_t)trunc(at); /* a half from a reflection falls towards zero */
  if (a->count == 4) a->first--;
  for (int i = 0; i < a->count; i++)
    a->weight[i] = a->count == 1 ? 1 : a->count == 2 ? (i ? rest : 1 - rest) : cubic(rest + 1 - i);
}

static double mix(const rung_operand *x, const axis *axes, int n, int32_t padding, int64_t offset) {
  if (!n) return rung_load_f64(x, offset);
  double sum = 0;
  for (int i = 0; i < axes->count; i++) {
    const int64_t index = index_of(axes, axes->first + i, padding);
    if (index >= 0) sum += axes->weight[i] * mix(x, axes + 1, n - 1, padding, offset + index * axes->step);
  }
  return sum;
}

static rung_status reference(const rung_args *args) {
  const rung_grid_sample_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *grid = &args->in[1], *y = &args->out[0];
  const int n = x->rank - 2;
  bool empty = false;
  for (int i = 0; i < n; i++) empty = empty || x->extent[2 + i] == 0;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    axis axes[RUNG_SPATIAL];
    int64_t at = w.index[0] * grid->stride[0];
    for (int i = 0; i < n; i++) at += w.index[2 + i] * grid->stride[1 + i];
    for (int i = 0; i < n; i++) {
      axes[i] = (axis){.extent = x->extent[2 + i], .step = x->stride[2 + i]};
      lay(&axes[i], rung_load_f64(grid, at + (n - 1 - i) * grid->stride[n + 1]), attrs);
    }
    const int64_t channel = w.index[0] * x->stride[0] + w.index[1] * x->stride[1];
    rung_store_f64(y, w.offset[0], empty ? 0 : mix(x, axes, n, attrs->padding, channel));
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[2,3,5,7] f32[2,4,6,2]", ""},
    {"f32[1,2,5,7] f32[1,4,6,2]", "mode=cubic, padding=reflection, align_corners=true"},
    {"f32[1,2,5,7] f32[1,4,6,2]", "mode=cubic, padding=border"},
    {"f32[1,2,3,4,5] f32[1,2,3,4,3]", "padding=reflection"},
    {"f32[1,2,9] f32[1,6,1]", "mode=nearest, align_corners=true"},
    {"f32[1,2,0,3] f32[1,2,2,2]", ""},
    {0}};

const rung_op rung_op_grid_sample = {
    .name = "grid_sample",
    .doc = "x at given places between its own: linear, nearest neighbour or cubic",
    .operands = (const char *const[]){"x", "grid", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_grid_sample_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "not yet: spreads every result over its neighbours",
    .test_lo = -1.5,
    .test_hi = 1.5,
    .tests = cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-35},
};
