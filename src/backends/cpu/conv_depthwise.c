/* SPDX-License-Identifier: MIT
 * Windows over one channel: convolution with one channel a group, where a row of results is a sum of rows of x, shifted
 * and weighted, and pooling, where it is their largest or their mean. Rows of x are
 * copied once, with zeros on both sides, so that every shift can be read whole; with a stride, once for each position
 * of the kernel, so that what it reads lies side by side. */
#include <math.h>
#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "ops/attrs.h"

/* Results a channel: with many of them a row of windows is worth gathering for a product. */
enum { MOST_RESULTS = 16 };
enum { TAPS = RUNG_CONV_RUN, SLACK = 64 /* what taps read past the end */, GRAIN = 50000 };

static bool constant_extent(const rung_match *match, int axis, int64_t *out) {
  return rung_dims_is_constant(match->graph->dims, match->in[1]->extent[axis], out);
}

bool rung_conv_fits_depthwise(const rung_match *match, char *why) {
  const int rank = match->in[1]->rank;
  int64_t channels, taps = 1;
  const rung_conv_attrs *attrs = match->node->attrs;
  int64_t results = 0;
  bool fits = rank <= 4 && constant_extent(match, 1, &channels) && channels == 1 &&
              constant_extent(match, 0, &results) && results <= MOST_RESULTS * attrs->groups;
  for (uint32_t i = 0; i < match->n_in; i++) fits = fits && match->in[i]->type == RUNG_TYPE_F32;
  for (int axis = 2; axis < rank && fits; axis++) {
    int64_t extent;
    fits = constant_extent(match, axis, &extent) && extent <= TAPS;
    if (fits) taps *= extent;
  }
  if (fits && taps <= TAPS) return true;
  strcpy(why, "takes f32 with one channel and few results a group, few kernel positions");
  return false;
}

bool rung_conv_fits_pool(const rung_match *match, char *why) {
  const rung_pool_attrs *attrs = match->node->attrs;
  int64_t taps = 1;
  for (int i = 0; i < attrs->kernel.count && taps <= TAPS; i++) taps *= rung_conv_min(attrs->kernel.value[i], TAPS + 1);
  if (match->in[0]->type == RUNG_TYPE_F32 && match->in[0]->rank <= 4 && attrs->kernel.count && taps <= TAPS)
    return true;
  strcpy(why, "takes f32 and windows of few places over one or two axes");
  return false;
}

/* Floats that a copied row takes beyond its places, and how many times it is there. */
static void row_size(int64_t stride, int64_t dilation, int64_t kernel, int64_t *out_more, int64_t *out_copies) {
  *out_more = SLACK + (stride == 1 ? (kernel - 1) * dilation : 0);
  *out_copies = stride == 1 ? 1 : kernel;
}

static rung_dim scratch_of(rung_dims *dims, rung_dim width, const rung_i64_list *stride, const rung_i64_list *dilation,
                           int last, int64_t kernel, int64_t height) {
  int64_t more, copies;
  row_size(stride->count ? stride->value[last] : 1, dilation->count ? dilation->value[last] : 1, kernel, &more,
           &copies);
  const rung_dim row = rung_dims_add(dims, width, rung_dims_constant(dims, more));
  /* One row more: how many places each mean has. */
  return rung_dims_mul(dims, row, rung_dims_constant(dims, (height * copies + 1) * (int64_t)sizeof(float)));
}

rung_dim rung_conv_scratch_pool(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)role;
  const rung_pool_attrs *attrs = match->node->attrs;
  const int rank = match->in[0]->rank, last = rank - 3;
  return scratch_of(dims, match->out[0].extent[rank - 1], &attrs->stride, &attrs->dilation, last,
                    attrs->kernel.value[last], last ? attrs->kernel.value[0] : 1);
}

rung_dim rung_conv_scratch_depthwise(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)role;
  const rung_conv_attrs *attrs = match->node->attrs;
  const int rank = match->in[1]->rank, last = rank - 3;
  int64_t kernel = 1, height = 1;
  rung_dims_is_constant(dims, match->in[1]->extent[rank - 1], &kernel);
  if (rank == 4) rung_dims_is_constant(dims, match->in[1]->extent[2], &height);
  return scratch_of(dims, match->out[0].extent[rank - 1], &attrs->stride, &attrs->dilation, last, kernel, height);
}

/* ---- division: units are bands of rows of one channel of x */

typedef struct division {
  int64_t bands, units, tasks;
} division;

static division divide(const rung_conv_shape *s) {
  division d = {.bands = 1};
  const int64_t pictures = s->batch * s->groups, threads = s->args->threads, height = s->axis[1].out;
  const double products = (double)(pictures * s->results * s->places) * (double)(s->axis[1].kernel * s->axis[2].kernel);
  const double grains = products / GRAIN;
  const int64_t most = 8 * threads, want = threads == 1 || grains < 1 ? 1
                                           : grains < (double)most    ? (int64_t)grains
                                                                      : most;
  if (pictures && pictures < want) d.bands = rung_conv_min(rung_conv_up(want, pictures), rung_conv_max(1, height / 4));
  d.units = pictures * d.bands;
  d.tasks = rung_conv_max(1, rung_conv_min(d.units, want));
  return d;
}

static void resolve(const rung_args *args, rung_conv_window window, rung_conv_shape *s) {
  if (window == RUNG_CONV_WEIGHTED) {
    rung_conv_resolve(args, false, s);
  } else {
    rung_conv_resolve_pool(args, s);
  }
}

int64_t rung_conv_tasks_depthwise(const rung_args *args, rung_conv_window window) {
  rung_conv_shape s;
  resolve(args, window, &s);
  return divide(&s).tasks;
}

/* ---- a band */

typedef struct band {
  const rung_conv_shape *s;
  rung_conv_window window;
  const float *x;
  float outside;              /* what stands beyond the edges */
  float *counts;              /* of a mean's window, by column */
  float *rows;                /* copied, one slot for each kernel row */
  int64_t slot, copy, copies; /* floats of a slot and of a copy */
  int64_t lo[TAPS], hi[TAPS]; /* by copy: what of it comes from x; the rest stays `outside` */
  int64_t held[TAPS];         /* row of x that a slot has, -1 for none */
} band;

/* What stands around copied rows is the same for all of them, and written once. */
static void begin_rows(band *b) {
  const rung_conv_axis *a = &b->s->axis[2];
  for (int64_t c = 0; c < b->copies; c++) {
    const int64_t off = c * a->dilation - a->before, n = b->copies == 1 ? b->copy - SLACK : a->out;
    const int64_t lo = off < 0 ? (-off + a->stride - 1) / a->stride : 0;
    const int64_t hi = a->in > off ? (a->in - off - 1) / a->stride + 1 : 0;
    b->lo[c] = rung_conv_min(lo, n);
    b->hi[c] = rung_conv_max(b->lo[c], rung_conv_min(hi, n));
    for (int64_t k = 0; k < b->s->axis[1].kernel; k++) {
      float *out = b->rows + k * b->slot + c * b->copy;
      for (int64_t i = 0; i < b->lo[c]; i++) out[i] = b->outside;
      for (int64_t i = b->hi[c]; i < b->copy; i++) out[i] = b->outside;
    }
  }
}

static void copy_row(const band *b, int64_t row, float *out) {
  const rung_conv_axis *a = &b->s->axis[2];
  const float *x = b->x + row * b->s->axis[1].x_step;
  for (int64_t c = 0; c < b->copies; c++, out += b->copy) {
    const int64_t lo = b->lo[c], n = b->hi[c] - lo, at = lo * a->stride + c * a->dilation - a->before;
    if (n) rung_conv_load(RUNG_TYPE_F32, (const uint8_t *)(x + at * a->x_step), a->stride * a->x_step, n, out + lo);
  }
}

/* The rows that a row of results needs and where each tap reads; gives the number of taps, and the first of them: those
 * outside of x are left out, at either end. */
static int64_t find_taps(band *b, int64_t place, const float **out_x, int64_t *out_first) {
  const rung_conv_axis *v = &b->s->axis[1], *h = &b->s->axis[2];
  int64_t n = 0;
  *out_first = 0;
  for (int64_t k = 0; k < v->kernel; k++) {
    const int64_t row = place * v->stride + k * v->dilation - v->before;
    if (row < 0 || row >= v->in) continue;
    const int64_t slot = v->dilation == 1 ? row % v->kernel : k;
    float *at = b->rows + slot * b->slot;
    if (b->held[slot] != row) copy_row(b, row, at);
    b->held[slot] = row;
    if (!n) *out_first = k * h->kernel;
    for (int64_t i = 0; i < h->kernel; i++) out_x[n++] = b->copies == 1 ? at + i * h->dilation : at + i * b->copy;
  }
  return n;
}

/* How many positions of the window at `place` count: those in x, or also those in the padding. */
static int64_t counted(const rung_conv_axis *a, int64_t place, bool padding) {
  int64_t n = 0;
  for (int64_t k = 0; k < a->kernel; k++) {
    const int64_t at = place * a->stride + k * a->dilation - a->before;
    n += padding ? at >= -a->before && at < a->in + a->after : at >= 0 && at < a->in;
  }
  return n;
}

/* A row of results of channel `picture`, from its taps; `w`: the channel's weights, TAPS of each result, from the first
 * tap on. */
static void run_row(const band *b, const rung_conv_kernel *kernel, int64_t picture, int64_t row, int64_t taps,
                    const float *const *x, const float *w) {
  const rung_conv_shape *s = b->s;
  const rung_conv_axis *v = &s->axis[1], *h = &s->axis[2];
  float *y = (float *)s->y->base + picture * s->results * s->places + row * h->out;
  if (b->window == RUNG_CONV_LARGEST) {
    kernel->most(x, taps, y, h->out);
    return;
  }
  if (b->window == RUNG_CONV_MEAN) {
    kernel->taps(w, x, taps, 0, y, h->out);
    const float rows = (float)counted(v, row, s->count_pad);
    for (int64_t i = 0; i < h->out; i++) y[i] /= rows * b->counts[i];
    return;
  }
  for (int64_t r = 0; r < s->results; r++, y += s->places, w += TAPS) {
    const int64_t o = picture % s->groups * s->results + r;
    float bias = 0;
    if (s->bias) memcpy(&bias, s->bias->base + o * s->bias->stride[0] * (int64_t)sizeof bias, sizeof bias);
    kernel->taps(w, x, taps, bias, y, h->out);
  }
}

/* The weights of a channel, in the order of taps; ones for a mean. */
static void fill_weights(const band *b, int64_t channel, float *w) {
  const rung_conv_axis *v = &b->s->axis[1], *h = &b->s->axis[2];
  if (b->window == RUNG_CONV_LARGEST) return;
  const int64_t results = b->window == RUNG_CONV_MEAN ? 1 : b->s->results;
  for (int64_t r = 0; r < results; r++, w += TAPS) {
    const int64_t first = (channel * results + r) * b->s->w_result;
    int64_t t = 0;
    for (int64_t k = 0; k < v->kernel; k++)
      for (int64_t i = 0; i < h->kernel; i++, t++) {
        w[t] = 1;
        if (b->window == RUNG_CONV_WEIGHTED)
          memcpy(&w[t], b->s->w->base + (first + k * v->w_step + i * h->w_step) * (int64_t)sizeof *w, sizeof *w);
      }
  }
}

static void run_unit(band *b, const rung_conv_kernel *kernel, const division *d, int64_t unit) {
  const rung_conv_shape *s = b->s;
  const int64_t picture = unit / d->bands, part = unit % d->bands, height = s->axis[1].out;
  const float *x[TAPS];
  float w[MOST_RESULTS * TAPS];
  fill_weights(b, picture % s->groups, w);
  b->x = (const float *)s->x->base + picture / s->groups * s->x->stride[0] + picture % s->groups * s->x_channel;
  for (int64_t i = 0; i < s->axis[1].kernel; i++) b->held[i] = -1;
  const int64_t first = height * part / d->bands, end = height * (part + 1) / d->bands;
  for (int64_t row = first; row < end; row++) {
    int64_t tap;
    const int64_t taps = find_taps(b, row, x, &tap);
    run_row(b, kernel, picture, row, taps, x, w + tap);
  }
}

rung_status rung_conv_run_depthwise(const rung_args *args, rung_conv_window window, const rung_conv_kernel *kernel,
                                    int64_t task, int thread) {
  rung_conv_shape s;
  resolve(args, window, &s);
  const division d = divide(&s);
  const rung_conv_axis *h = &s.axis[2];
  band b = {.s = &s, .window = window, .outside = window == RUNG_CONV_LARGEST ? -HUGE_VALF : 0};
  int64_t more;
  row_size(h->stride, h->dilation, h->kernel, &more, &b.copies);
  b.copy = h->out + more;
  b.slot = b.copy * b.copies;
  b.counts = (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  b.rows = b.counts + b.copy;
  begin_rows(&b);
  for (int64_t i = 0; i < h->out && window == RUNG_CONV_MEAN; i++) b.counts[i] = (float)counted(h, i, s.count_pad);
  for (int64_t unit = d.units * task / d.tasks; unit < d.units * (task + 1) / d.tasks; unit++)
    run_unit(&b, kernel, &d, unit);
  return RUNG_OK;
}
