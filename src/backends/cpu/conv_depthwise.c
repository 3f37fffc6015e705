/* SPDX-License-Identifier: MIT
 * Convolution with one channel a group: a row of results is a sum of rows of x, shifted and weighted. Rows of x are
 * copied once, with zeros on both sides, so that every shift can be read whole; with a stride, once for each position
 * of the kernel, so that what it reads lies side by side. */
#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "ops/attrs.h"

enum { TAPS = RUNG_CONV_RUN, SLACK = 16, GRAIN = 50000 };

static bool constant_extent(const rung_match *match, int axis, int64_t *out) {
  return rung_dims_is_constant(match->graph->dims, match->in[1]->extent[axis], out);
}

bool rung_conv_fits_depthwise(const rung_match *match, char *why) {
  const int rank = match->in[1]->rank;
  int64_t channels, taps = 1;
  bool fits = rank <= 4 && constant_extent(match, 1, &channels) && channels == 1;
  for (uint32_t i = 0; i < match->n_in; i++) fits = fits && match->in[i]->type == RUNG_TYPE_F32;
  for (int axis = 2; axis < rank && fits; axis++) {
    int64_t extent;
    fits = constant_extent(match, axis, &extent) && extent <= TAPS;
    if (fits) taps *= extent;
  }
  if (fits && taps <= TAPS) return true;
  strcpy(why, "takes f32 with one channel a group and few kernel positions");
  return false;
}

/* Floats that a copied row takes beyond its places, and how many times it is there. */
static void row_size(int64_t stride, int64_t dilation, int64_t kernel, int64_t *out_more, int64_t *out_copies) {
  *out_more = SLACK + (stride == 1 ? (kernel - 1) * dilation : 0);
  *out_copies = stride == 1 ? 1 : kernel;
}

rung_dim rung_conv_scratch_depthwise(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)role;
  const rung_conv_attrs *attrs = match->node->attrs;
  const int rank = match->in[1]->rank, last = rank - 3;
  int64_t kernel = 1, height = 1, more, copies;
  rung_dims_is_constant(dims, match->in[1]->extent[rank - 1], &kernel);
  if (rank == 4) rung_dims_is_constant(dims, match->in[1]->extent[2], &height);
  row_size(attrs->stride.count ? attrs->stride.value[last] : 1, attrs->dilation.count ? attrs->dilation.value[last] : 1,
           kernel, &more, &copies);
  const rung_dim row = rung_dims_add(dims, match->out[0].extent[rank - 1], rung_dims_constant(dims, more));
  return rung_dims_mul(dims, row, rung_dims_constant(dims, height * copies * (int64_t)sizeof(float)));
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

int64_t rung_conv_tasks_depthwise(const rung_args *args) {
  rung_conv_shape s;
  rung_conv_resolve(args, false, &s);
  return divide(&s).tasks;
}

/* ---- a band */

typedef struct band {
  const rung_conv_shape *s;
  const float *x;
  float *rows;                /* copied, one slot for each kernel row */
  int64_t slot, copy, copies; /* floats of a slot and of a copy */
  int64_t held[TAPS];         /* row of x that a slot has, -1 for none */
} band;

static void copy_row(const band *b, int64_t row, float *out) {
  const rung_conv_axis *a = &b->s->axis[2];
  const float *x = b->x + row * b->s->axis[1].x_step;
  for (int64_t c = 0; c < b->copies; c++, out += b->copy) {
    const int64_t off = c * a->dilation - a->before, n = b->copies == 1 ? b->copy - SLACK : a->out;
    int64_t lo = off < 0 ? (-off + a->stride - 1) / a->stride : 0;
    int64_t hi = a->in > off ? (a->in - off - 1) / a->stride + 1 : 0;
    lo = rung_conv_min(lo, n);
    hi = rung_conv_max(lo, rung_conv_min(hi, n));
    memset(out, 0, (size_t)lo * sizeof *out);
    if (hi > lo)
      rung_conv_load(RUNG_TYPE_F32, (const uint8_t *)(x + (lo * a->stride + off) * a->x_step), a->stride * a->x_step,
                     hi - lo, out + lo);
    memset(out + hi, 0, (size_t)(b->copy - hi) * sizeof *out);
  }
}

/* The rows that a row of results needs and where each tap reads; gives the number of taps. */
static int64_t find_taps(band *b, int64_t place, const float **out_x, int64_t *out_tap) {
  const rung_conv_axis *v = &b->s->axis[1], *h = &b->s->axis[2];
  int64_t n = 0;
  for (int64_t k = 0; k < v->kernel; k++) {
    const int64_t row = place * v->stride + k * v->dilation - v->before;
    if (row < 0 || row >= v->in) continue;
    const int64_t slot = v->dilation == 1 ? row % v->kernel : k;
    float *at = b->rows + slot * b->slot;
    if (b->held[slot] != row) copy_row(b, row, at);
    b->held[slot] = row;
    for (int64_t i = 0; i < h->kernel; i++, n++) {
      out_x[n] = b->copies == 1 ? at + i * h->dilation : at + i * b->copy;
      out_tap[n] = k * h->kernel + i;
    }
  }
  return n;
}

static void run_unit(const rung_conv_shape *s, const rung_conv_kernel *kernel, const division *d, int64_t unit,
                     float *scratch) {
  const int64_t picture = unit / d->bands, part = unit % d->bands, height = s->axis[1].out, width = s->axis[2].out;
  const int64_t channel = picture % s->groups;
  const rung_conv_axis *v = &s->axis[1], *h = &s->axis[2];
  band b = {.s = s, .rows = scratch};
  b.x = (const float *)s->x->base + picture / s->groups * s->x->stride[0] + channel * s->x_channel;
  int64_t more;
  row_size(h->stride, h->dilation, h->kernel, &more, &b.copies);
  b.copy = width + more;
  b.slot = b.copy * b.copies;
  for (int64_t i = 0; i < v->kernel; i++) b.held[i] = -1;
  const float *x[TAPS];
  int64_t tap[TAPS];
  float w[TAPS];
  for (int64_t row = height * part / d->bands; row < height * (part + 1) / d->bands; row++) {
    const int64_t taps = find_taps(&b, row, x, tap);
    for (int64_t r = 0; r < s->results; r++) {
      const int64_t o = channel * s->results + r;
      const float *from = (const float *)s->w->base + o * s->w_result;
      for (int64_t t = 0; t < taps; t++) w[t] = from[tap[t] / h->kernel * v->w_step + tap[t] % h->kernel * h->w_step];
      const float bias = s->bias ? ((const float *)s->bias->base)[o * s->bias->stride[0]] : 0;
      kernel->taps(w, x, taps, bias, (float *)s->y->base + (picture * s->results + r) * s->places + row * width, width);
    }
  }
}

rung_status rung_conv_run_depthwise(const rung_args *args, const rung_conv_kernel *kernel, int64_t task, int thread) {
  rung_conv_shape s;
  rung_conv_resolve(args, false, &s);
  const division d = divide(&s);
  float *scratch = (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  for (int64_t unit = d.units * task / d.tasks; unit < d.units * (task + 1) / d.tasks; unit++)
    run_unit(&s, kernel, &d, unit, scratch);
  return RUNG_OK;
}
