/* SPDX-License-Identifier: MIT
 * Rows for windows over spatial axes: convolutions, their transposes, pools. Kernels know three axes; an operand's
 * missing ones have extent 1 and come first. */
#include "backends/cuda/window.h"

#include <math.h>
#include <stdio.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/spatial.h"

enum { AXES = RUNG_SPATIAL };

/* ---- pools */

typedef struct pool_axis {
  int64_t extent, places, kernel, stride, dilation, before, after, in_step, out_step;
} pool_axis;
typedef struct pool_params {
  uint64_t in, out;
  pool_axis axis[AXES];
  int64_t count, channels, in_batch, in_channel, out_batch, out_channel;
  double lowest;
  int32_t count_pad, pad;
} pool_params;

static bool fits_pool(const rung_match *match, char *why) {
  const rung_value_type *x = match->in[0];
  return (x->type < RUNG_TYPE_BOOL && !x->layout) || rung_cuda_unfit(why, "not of plain numbers");
}

/* What numbers of a type are compared and multiplied in. */
static const char *wide_of(int type) {
  if (type == RUNG_TYPE_F64) return "double";
  if (!rung_cuda_is_integer(type)) return "float";
  return type >= RUNG_TYPE_U8 ? "u64" : "i64";
}

void rung_cuda_put_pool(const rung_op *op, int type, rung_text *out) {
  const int kind = op == &rung_op_max_pool ? 0 : op == &rung_op_argmax_pool ? 1 : 2;
  rung_text_printf(out, "typedef %s number;\ntypedef %s wide;\n#define NUMBER %d\n#define FLOATS %d\n#define KIND %d\n",
                   rung_cuda_number(type), wide_of(type), type, !rung_cuda_is_integer(type), kind);
}

static rung_status prepare_pool(const rung_cuda_prepare *in, rung_text *front) {
  rung_cuda_put_pool(in->step->op, in->plan->ref[in->step->in].type, front);
  return RUNG_OK;
}

static double lowest_of(rung_type type) {
  if (!rung_cuda_is_integer((int)type)) return -(double)INFINITY;
  return rung_type_is_unsigned(type) ? 0 : -ldexp(1, 8 * rung_type_get(type)->bytes - 1);
}

enum { POOL, POOL_LARGE, LARGE_WINDOW = 64 };

static rung_status launch_pool(const rung_cuda_step *step) {
  const rung_pool_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0];
  const int axes = x->rank - 2;
  const bool all = attrs->kernel.count == 0;
  rung_spatial s;
  rung_spatial_fill(&attrs->kernel, axes, 1, s.kernel);
  rung_spatial_fill(&attrs->stride, axes, 1, s.stride);
  rung_spatial_fill(&attrs->dilation, axes, 1, s.dilation);
  rung_spatial_fill(&attrs->pad_before, axes, 0, s.before);
  rung_spatial_fill(&attrs->pad_after, axes, 0, s.after);
  pool_params p = {.in = rung_cuda_address(x),
                   .out = rung_cuda_address(y),
                   .count = rung_operand_count(y),
                   .channels = x->extent[1],
                   .in_batch = x->stride[0],
                   .in_channel = x->stride[1],
                   .out_batch = y->stride[0],
                   .out_channel = y->stride[1],
                   .lowest = lowest_of((rung_type)x->type),
                   .count_pad = attrs->count_pad};
  double window = 1; /* places of it, in any size */
  for (int a = 0; a < AXES; a++) {
    const int k = a - (AXES - axes);
    p.axis[a] = (pool_axis){.extent = 1, .places = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (k < 0) continue;
    p.axis[a] = (pool_axis){.extent = x->extent[2 + k],
                            .places = y->extent[2 + k],
                            .kernel = all ? x->extent[2 + k] : s.kernel[k],
                            .stride = s.stride[k],
                            .dilation = s.dilation[k],
                            .before = s.before[k],
                            .after = s.after[k],
                            .in_step = x->stride[2 + k],
                            .out_step = y->stride[2 + k]};
    window *= (double)p.axis[a].kernel;
  }
  if (window > LARGE_WINDOW)
    return rung_cuda_emit(step, POOL_LARGE, rung_cuda_blocks(p.count, 1, 65536), 1, 1, 256, 0, &p, sizeof p);
  return rung_cuda_emit(step, POOL, rung_cuda_blocks(p.count, 256, (int64_t)step->device->processors * 64), 1, 1, 256,
                        0, &p, sizeof p);
}

/* ---- convolutions */

typedef struct conv_axis {
  int64_t extent, places, kernel, stride, dilation, before, x_step, w_step, y_step;
} conv_axis;
typedef struct conv_params {
  uint64_t x, w, bias, y, x_zero, w_zero;
  conv_axis axis[AXES];
  int64_t batch, groups, channels, results, x_batch, x_channel, w_group, w_channel, w_result, y_batch, y_channel,
      bias_step, zero_step, phase_count;
  int32_t transposed, pad;
} conv_params;

static bool fits_conv(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in; i++)
    if (match->in[i]->type >= RUNG_TYPE_BOOL || match->in[i]->layout)
      return rung_cuda_unfit(why, "an operand is not of plain numbers");
  return true;
}

/* Rows of w that a thread of a tile has, where a group has so many results: little of the last tile is for nothing, and
 * threads with more rows multiply more of what they load. */
static int height_of(int64_t results) {
  static const struct {
    int height;
    double cost; /* of a row, as against that of the highest */
  } way[] = {{8, 1}, {6, 1.05}, {4, 1.15}, {2, 1.5}, {1, 1.9}};
  int best = 8;
  double least = INFINITY;
  for (size_t i = 0; i < RUNG_COUNT(way); i++) {
    const int64_t rows = 16 * way[i].height, tiles = (results + rows - 1) / rows;
    const double cost = (double)(tiles * rows) * way[i].cost;
    if (cost >= least) continue;
    least = cost;
    best = way[i].height;
  }
  return best;
}

static int64_t groups_of(const rung_op *op, const void *attrs) {
  return op == &rung_op_conv_transpose ? ((const rung_conv_transpose_attrs *)attrs)->groups
                                       : ((const rung_conv_attrs *)attrs)->groups;
}

enum { SMALL, ONE, FOUR, FEW, LARGE };
enum { FEW_PLACES = 4, FEW_LEAST_K = 64, WIDE = 64, SMALL_TILE = 32, MOST = 65535, ENOUGH = 16, DOUBLE_HEIGHT = 4 };

typedef struct conv_own {
  int height;
} conv_own;

void rung_cuda_put_conv(int x, int w, int y, int height, rung_text *out) {
  rung_text_printf(out, "typedef %s x_number;\ntypedef %s w_number;\ntypedef %s y_number;\ntypedef %s sum_number;\n",
                   rung_cuda_number(x), rung_cuda_number(w), rung_cuda_number(y),
                   rung_cuda_is_integer(x) ? "u32" : wide_of(x));
  if (rung_cuda_is_integer(x)) rung_text_puts(out, "#define WHOLE\n");
  if (height) rung_text_printf(out, "#define HEIGHT %d\n", height);
}

/* The large tile is compiled for its height, the other kernels once for their types. */
static rung_status prepare_conv(const rung_cuda_prepare *in, rung_text *front) {
  static const char *const large[] = {"conv_large", NULL};
  const rung_step *step = in->step;
  const rung_ref *x = &in->plan->ref[step->in], *y = &in->plan->ref[step->out];
  conv_own *own = rung_arena_alloc(in->arena, sizeof *own);
  int64_t results;
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a convolution");
  own->height = DOUBLE_HEIGHT;
  if (x->type != RUNG_TYPE_F64 && rung_dims_is_constant(in->plan->dims, y->extent[1], &results))
    own->height = height_of(results / groups_of(step->op, step->attrs));
  in->prepared->own = own;
  rung_cuda_put_conv(x->type, x[1].type, y->type, 0, front);
  rung_text all;
  rung_text_init(&all, in->device->host);
  rung_cuda_put_conv(x->type, x[1].type, y->type, own->height, &all);
  rung_status status = rung_text_status(&all, in->error);
  if (!status)
    status = rung_cuda_compile(in->device, "conv", &all, large, 1, &in->prepared->function[LARGE], in->error);
  rung_text_finish(&all);
  return status;
}

/* Indices along axes, and k, are counted in 32 bits. */
static rung_status check_reach(const rung_cuda_step *step, const conv_params *p) {
  const double most = 0x1p31 - 1;
  double places = 1, k = (double)p->channels;
  for (int a = 0; a < AXES; a++) {
    const conv_axis *x = &p->axis[a];
    const double reach = (double)x->dilation * (double)(x->kernel > 0 ? x->kernel - 1 : 0) + (double)x->before;
    const double end = p->transposed ? (double)x->places + reach : (double)x->places * (double)x->stride + reach;
    places *= (double)x->places;
    k *= (double)x->kernel;
    if (end + (double)x->extent + (double)x->stride > most || k > most || places > most)
      return rung_fail(step->args->error, RUNG_UNSUPPORTED,
                       "cuda: %s: an axis of %lld places, or a sum, is counted beyond 32 bits",
                       step->prepared->step->op->name, (long long)x->places);
  }
  return RUNG_OK;
}

static void fill_attrs(const rung_cuda_step *step, int axes, rung_spatial *s) {
  if (step->prepared->step->op != &rung_op_conv_transpose) {
    rung_conv_fill(s, step->args->attrs, axes);
    return;
  }
  const rung_conv_transpose_attrs *attrs = step->args->attrs;
  rung_spatial_fill(&attrs->stride, axes, 1, s->stride);
  rung_spatial_fill(&attrs->dilation, axes, 1, s->dilation);
  rung_spatial_fill(&attrs->pad_before, axes, 0, s->before);
}

static conv_params params_of(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const rung_op *op = step->prepared->step->op;
  const rung_operand *x = &args->in[0], *w = &args->in[1], *y = &args->out[0];
  const bool transposed = op == &rung_op_conv_transpose;
  const int axes = x->rank - 2, of_results = transposed ? 1 : 0;
  rung_spatial s;
  fill_attrs(step, axes, &s);
  conv_params p = {.x = rung_cuda_address(x),
                   .w = rung_cuda_address(w),
                   .y = rung_cuda_address(y),
                   .batch = x->extent[0],
                   .groups = groups_of(op, args->attrs),
                   .x_batch = x->stride[0],
                   .x_channel = x->stride[1],
                   .w_channel = w->stride[1 - of_results],
                   .w_result = w->stride[of_results],
                   .y_batch = y->stride[0],
                   .y_channel = y->stride[1],
                   .phase_count = 1,
                   .transposed = transposed};
  p.channels = x->extent[1] / p.groups;
  p.results = y->extent[1] / p.groups;
  p.w_group = transposed ? p.channels * p.w_channel : p.results * p.w_result;
  if (op == &rung_op_conv_integer) {
    p.x_zero = args->n_in > 2 ? rung_cuda_address(&args->in[2]) : 0;
    p.w_zero = args->n_in > 3 ? rung_cuda_address(&args->in[3]) : 0;
    p.zero_step = args->n_in > 3 && args->in[3].rank && args->in[3].extent[0] != 1 ? args->in[3].stride[0] : 0;
  } else if (args->n_in > 2) {
    p.bias = rung_cuda_address(&args->in[2]);
    p.bias_step = args->in[2].stride[0];
  }
  for (int a = 0; a < AXES; a++) {
    const int k = a - (AXES - axes);
    p.axis[a] = (conv_axis){.extent = 1, .places = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (k < 0) continue;
    p.axis[a] = (conv_axis){.extent = x->extent[2 + k],
                            .places = y->extent[2 + k],
                            .kernel = w->extent[2 + k],
                            .stride = s.stride[k],
                            .dilation = s.dilation[k],
                            .before = s.before[k],
                            .x_step = x->stride[2 + k],
                            .w_step = w->stride[2 + k],
                            .y_step = y->stride[2 + k]};
    const int64_t phases = s.stride[k] < y->extent[2 + k] ? s.stride[k] : y->extent[2 + k];
    if (transposed) p.phase_count *= phases;
  }
  return p;
}

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Which kernel runs depends on the batch only where both give the same bits. */
static rung_status launch_conv(const rung_cuda_step *step) {
  const conv_own *own = step->args->prepared;
  const conv_params p = params_of(step);
  int64_t places = 1, k = p.channels; /* of the first phase, which has the most */
  if (!rung_operand_count(&step->args->out[0])) return RUNG_OK;
  RUNG_TRY(check_reach(step, &p));
  for (int a = 0; a < AXES; a++) {
    places *= p.transposed ? up(p.axis[a].places, p.axis[a].stride) : p.axis[a].places;
    k *= p.axis[a].kernel;
  }
  const int64_t columns = p.batch * places, phases = least(p.phase_count, MOST);
  if (places <= FEW_PLACES && k >= FEW_LEAST_K)
    return rung_cuda_emit(step, FEW, rung_cuda_blocks(up(columns, 4) * p.groups * p.results, 8, INT32_MAX), 1, phases,
                          256, 0, &p, sizeof p);
  if (p.results <= 4) {
    /* A thread has several groups where there are more than enough: it finds its place once. */
    const uint32_t threads = places > 128 ? 256 : places > 64 ? 128 : places > 32 ? 64 : 32;
    const int64_t x = up(places, threads), parts = p.batch * p.groups;
    const int64_t y = least(least(parts, MOST), up((int64_t)step->device->processors * ENOUGH, x * phases));
    return rung_cuda_emit(step, p.results == 1 ? ONE : FOUR, x, y, phases, threads, 0, &p, sizeof p);
  }
  const int64_t x = up(columns, WIDE), y = p.groups * up(p.results, 16 * own->height);
  if (x * y * phases >= step->device->processors)
    return rung_cuda_emit(step, LARGE, x, least(y, MOST), phases, 256, 0, &p, sizeof p);
  return rung_cuda_emit(step, SMALL, up(columns, SMALL_TILE), least(p.groups * up(p.results, SMALL_TILE), MOST), phases,
                        256, 0, &p, sizeof p);
}

/* ---- rows */

#define ROW(name_, op_, unit_, fits_, prepare_, launch_, ...)                                                 \
  {                                                                                                           \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_}, .unit = unit_, \
    .function = {__VA_ARGS__, NULL}, .prepare = prepare_, .launch = launch_                                   \
  }
#define POOLS(name, op) ROW(name, op, "pool", fits_pool, prepare_pool, launch_pool, "pool", "pool_large")
#define CONV(name, op) \
  ROW(name, op, "conv", fits_conv, prepare_conv, launch_conv, "conv_small", "conv_one", "conv_four", "conv_few")

static const rung_cuda_kernel rows[] = {
    POOLS("max_pool_windows", max_pool),          POOLS("argmax_pool_windows", argmax_pool),
    POOLS("average_pool_windows", average_pool),  CONV("conv_tiles", conv),
    CONV("conv_transpose_tiles", conv_transpose), CONV("conv_integer_tiles", conv_integer),
};
const rung_cuda_family rung_cuda_family_window = {"window", rows, RUNG_COUNT(rows)};
