/* SPDX-License-Identifier: MIT
 * Convolutions taken apart, and what their windows see put in rows. */
#include "backends/cpu/conv_shape.h"

#include <string.h>

#include "ops/attrs.h"

static int64_t number(const rung_i64_list *list, int axis, int64_t otherwise) {
  return list->count ? list->value[axis] : otherwise;
}

void rung_conv_resolve(const rung_args *args, bool transposed, rung_conv_shape *out) {
  const rung_conv_prepared *fused = args->prepared;
  const rung_operand *x = &args->in[fused ? fused->in[0] : 0], *w = &args->in[fused ? fused->in[1] : 1];
  const rung_operand *y = &args->out[0];
  const void *attrs = fused ? fused->attrs : args->attrs;
  rung_conv_shape s = {
      .args = args, .x = x, .w = w, .y = y, .fused = fused, .transposed = transposed, .batch = x->extent[0]};
  if ((fused ? fused->n_in : args->n_in) == 3) s.bias = &args->in[fused ? fused->in[2] : 2];
  /* The two attribute structs begin alike but are two types. */
  const rung_conv_attrs *plain = attrs;
  const rung_conv_transpose_attrs *back = attrs;
  const rung_i64_list *stride = transposed ? &back->stride : &plain->stride;
  const rung_i64_list *dilation = transposed ? &back->dilation : &plain->dilation;
  const rung_i64_list *before = transposed ? &back->pad_before : &plain->pad_before;
  s.groups = transposed ? back->groups : plain->groups;
  s.channels = x->extent[1] / s.groups;
  s.results = y->extent[1] / s.groups;
  s.x_channel = x->stride[1];
  s.w_channel = w->stride[transposed ? 0 : 1];
  s.w_result = w->stride[transposed ? 1 : 0];
  s.places = 1;
  const int missing = RUNG_CONV_AXES - (x->rank - 2);
  for (int a = 0; a < RUNG_CONV_AXES; a++) {
    const int from = a - missing;
    s.axis[a] = (rung_conv_axis){1, 1, 1, 1, 1, 0, 0, 0, 0};
    if (from < 0) continue;
    s.axis[a] = (rung_conv_axis){.in = x->extent[2 + from],
                                 .out = y->extent[2 + from],
                                 .kernel = w->extent[2 + from],
                                 .stride = number(stride, from, 1),
                                 .dilation = number(dilation, from, 1),
                                 .before = number(before, from, 0),
                                 .x_step = x->stride[2 + from],
                                 .w_step = w->stride[2 + from]};
    s.places *= y->extent[2 + from];
  }
  *out = s;
}

static bool is_trivial(const rung_conv_axis *a) { return a->in == 1 && a->out == 1 && a->kernel == 1 && !a->before; }

void rung_conv_long_lines(rung_conv_shape *s) {
  for (int turn = 1; turn < RUNG_CONV_AXES && is_trivial(&s->axis[RUNG_CONV_AXES - 1]); turn++) {
    const rung_conv_axis last = s->axis[RUNG_CONV_AXES - 1];
    for (int a = RUNG_CONV_AXES - 1; a > 0; a--) s->axis[a] = s->axis[a - 1];
    s->axis[0] = last;
  }
}

void rung_conv_resolve_pool(const rung_args *args, rung_conv_shape *out) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const rung_pool_attrs *attrs = args->attrs;
  rung_conv_shape s = {.args = args,
                       .x = x,
                       .y = y,
                       .count_pad = attrs->count_pad,
                       .batch = x->extent[0],
                       .groups = x->extent[1],
                       .channels = 1,
                       .results = 1,
                       .x_channel = x->stride[1],
                       .places = 1};
  const int missing = RUNG_CONV_AXES - (x->rank - 2);
  for (int a = 0; a < RUNG_CONV_AXES; a++) {
    const int from = a - missing;
    s.axis[a] = (rung_conv_axis){1, 1, 1, 1, 1, 0, 0, 0, 0};
    if (from < 0) continue;
    s.axis[a] = (rung_conv_axis){.in = x->extent[2 + from],
                                 .out = y->extent[2 + from],
                                 .kernel = attrs->kernel.value[from],
                                 .stride = number(&attrs->stride, from, 1),
                                 .dilation = number(&attrs->dilation, from, 1),
                                 .before = number(&attrs->pad_before, from, 0),
                                 .after = number(&attrs->pad_after, from, 0),
                                 .x_step = x->stride[2 + from]};
    s.places *= y->extent[2 + from];
  }
  *out = s;
}

/* ---- phases */

static int64_t phases_of(const rung_conv_axis *a) { return rung_conv_max(1, rung_conv_min(a->stride, a->out)); }

int64_t rung_conv_phases(const rung_conv_shape *s) {
  int64_t n = 1;
  for (int a = 0; a < RUNG_CONV_AXES && s->transposed; a++) n *= phases_of(&s->axis[a]);
  return n;
}

static int64_t common(int64_t a, int64_t b) { return b ? common(b, a % b) : a; }

/* Places r, r + stride, ..: kernel position t reaches them where r + before - t * dilation is a multiple of stride. */
static rung_conv_line transposed_line(const rung_conv_axis *a, int64_t r) {
  rung_conv_line line = {
      .n = a->out > r ? (a->out - r + a->stride - 1) / a->stride : 0, .out0 = r, .out_step = a->stride, .in_step = 1};
  const int64_t shared = common(a->dilation, a->stride);
  line.tap_step = a->stride / shared;
  line.off_step = -(a->dilation / shared);
  if ((r + a->before) % shared) return line;
  const int64_t most = rung_conv_min(line.tap_step, a->kernel);
  while (line.tap0 < most && (r + a->before - line.tap0 * a->dilation) % a->stride) line.tap0++;
  if (line.tap0 == most) return line;
  line.taps = (a->kernel - 1 - line.tap0) / line.tap_step + 1;
  line.off0 = (r + a->before - line.tap0 * a->dilation) / a->stride;
  return line;
}

rung_conv_line rung_conv_line_of(const rung_conv_shape *s, int axis, int64_t phase) {
  const rung_conv_axis *a = &s->axis[axis];
  if (s->transposed) return transposed_line(a, phase);
  return (rung_conv_line){.n = a->out,
                          .out_step = 1,
                          .taps = a->kernel,
                          .tap_step = 1,
                          .in_step = a->stride,
                          .off0 = -a->before,
                          .off_step = a->dilation};
}

void rung_conv_phase_at(const rung_conv_shape *s, int64_t index, rung_conv_phase *out) {
  rung_conv_phase p = {.places = 1, .taps = 1};
  for (int i = RUNG_CONV_AXES; i-- > 0;) {
    const int64_t phases = s->transposed ? phases_of(&s->axis[i]) : 1;
    p.line[i] = rung_conv_line_of(s, i, index % phases);
    index /= phases;
    p.places *= p.line[i].n;
    p.taps *= p.line[i].taps;
  }
  p.k = s->channels * p.taps;
  *out = p;
}

/* ---- gathering */

void rung_conv_load(rung_type type, const uint8_t *from, int64_t step, int64_t n, float *out) {
  const rung_type_row *row = rung_type_get(type);
  if (type != RUNG_TYPE_F32) {
    if (step == 1) row->to_f32(from, out, (size_t)n);
    for (int64_t i = 0; i < n && step != 1; i++) row->to_f32(from + i * step * row->bytes, out + i, 1);
    return;
  }
  const int64_t size = sizeof *out;
  if (step == 1) {
    memcpy(out, from, (size_t)(n * size));
  } else if (step == 2) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i, from + 2 * i * size, sizeof *out);
  } else {
    for (int64_t i = 0; i < n; i++) memcpy(out + i, from + i * step * size, sizeof *out);
  }
}

#define INTEGERS(X) X(U8, uint8_t) X(I8, int8_t) X(I16, int16_t)
#define LOAD_INTEGERS(type, at)                            \
  for (int64_t i = 0; i < n; i++) {                        \
    type x;                                                \
    memcpy(&x, from + (at) * (int64_t)sizeof x, sizeof x); \
    out[i] = (int16_t)(x - less);                          \
  }
void rung_conv_load_integers(rung_type type, const uint8_t *from, int64_t step, int64_t n, int32_t zero, int16_t *out) {
  const int16_t less = (int16_t)zero;
  switch (type) {
#define X(NAME, type_)              \
  case RUNG_TYPE_##NAME:            \
    if (step == 1)                  \
      LOAD_INTEGERS(type_, i)       \
    else                            \
      LOAD_INTEGERS(type_, i *step) \
    return;
    INTEGERS(X)
#undef X
    default:
      return;
  }
}
#undef INTEGERS
#undef LOAD_INTEGERS

/* Places i of a line, [i0, i0 + n), whose tap `t` lies in x: those below *out_lo and from *out_hi on do not. */
static void inside(const rung_conv_line *line, int64_t in, int64_t t, int64_t i0, int64_t n, int64_t *out_lo,
                   int64_t *out_hi) {
  const int64_t off = line->off0 + t * line->off_step;
  int64_t lo = off >= 0 ? 0 : (-off + line->in_step - 1) / line->in_step;
  int64_t hi = in - off <= 0 ? 0 : (in - off - 1) / line->in_step + 1;
  lo = rung_conv_min(rung_conv_max(lo, i0), i0 + n);
  hi = rung_conv_max(rung_conv_min(hi, i0 + n), lo);
  *out_lo = lo;
  *out_hi = hi;
}

/* What is gathered: floats, or integers less `zero`. */
typedef struct gathered {
  float *floats, outside;
  int16_t *integers; /* NULL: floats */
  int32_t zero;
} gathered;

static void fill(const gathered *g, int64_t at, int64_t n) {
  for (int64_t i = at; i < at + n && !g->integers; i++) g->floats[i] = g->outside;
  if (g->integers && n > 0) memset(g->integers + at, 0, (size_t)n * sizeof *g->integers);
}
static void load(const gathered *g, rung_type type, const uint8_t *from, int64_t step, int64_t n, int64_t at) {
  if (g->integers)
    rung_conv_load_integers(type, from, step, n, g->zero, g->integers + at);
  else
    rung_conv_load(type, from, step, n, g->floats + at);
}

/* Lines of x that will be read soon: pieces of channels are short, and the processor's own fetching begins anew at
 * each. */
static void fetch_ahead(const uint8_t *x, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) RUNG_FETCH_SECOND(x + i);
}

enum { AHEAD = 3 }; /* channels */
/* One k: places [p0, p0 + n) of the phase, row by row of the picture, to `to` on. `ahead`: channels from this one to the
 * one that is asked for meanwhile; 0: none. */
static void gather_row(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *channel,
                       const int64_t *tap, const gathered *g, int64_t p0, int64_t n, int64_t to, int64_t ahead) {
  const rung_type type = (rung_type)s->x->type;
  const int64_t bytes = rung_type_get(type)->bytes;
  const rung_conv_line *line = phase->line;
  const int64_t width = line[2].n;
  int64_t column = p0 % width, row = p0 / width % line[1].n, plane = p0 / width / line[1].n;
  int64_t z = plane * line[0].in_step + line[0].off0 + tap[0] * line[0].off_step;
  const int64_t up = line[1].off0 + tap[1] * line[1].off_step, left = line[2].off0 + tap[2] * line[2].off_step;
  while (n > 0) {
    const int64_t run = rung_conv_min(n, width - column), y = row * line[1].in_step + up;
    if (z < 0 || z >= s->axis[0].in || y < 0 || y >= s->axis[1].in) {
      fill(g, to, run);
    } else {
      int64_t lo, hi;
      inside(&line[2], s->axis[2].in, tap[2], column, run, &lo, &hi);
      const int64_t at =
          z * s->axis[0].x_step + y * s->axis[1].x_step + (lo * line[2].in_step + left) * s->axis[2].x_step;
      fill(g, to, lo - column);
      if (ahead) fetch_ahead(channel + (at + ahead * s->x_channel) * bytes, (hi - lo) * line[2].in_step * bytes);
      if (hi > lo) load(g, type, channel + at * bytes, line[2].in_step * s->axis[2].x_step, hi - lo, to + lo - column);
      fill(g, to + hi - column, column + run - hi);
    }
    to += run;
    n -= run;
    column = 0;
    if (++row == line[1].n) {
      row = 0;
      z += line[0].in_step;
    }
  }
}

static void gather(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *x, const gathered *g,
                   int64_t k0, int64_t count, int64_t p0, int64_t n, int64_t row) {
  const int64_t bytes = rung_type_get((rung_type)s->x->type)->bytes;
  int64_t channel = k0 / phase->taps, rest = k0 % phase->taps;
  int64_t tap[RUNG_CONV_AXES] = {rest / (phase->line[1].taps * phase->line[2].taps),
                                 rest / phase->line[2].taps % phase->line[1].taps, rest % phase->line[2].taps};
  for (int64_t k = 0; k < count; k++) {
    gather_row(s, phase, x + channel * s->x_channel * bytes, tap, g, p0, n, k * row,
               tap[0] || tap[1] || tap[2] || channel + AHEAD >= s->channels ? 0 : AHEAD);
    if (++tap[2] < phase->line[2].taps) continue;
    tap[2] = 0;
    if (++tap[1] < phase->line[1].taps) continue;
    tap[1] = 0;
    if (++tap[0] < phase->line[0].taps) continue;
    tap[0] = 0;
    channel++;
  }
}

void rung_conv_gather(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *x, float outside,
                      int64_t k0, int64_t count, int64_t p0, int64_t n, float *out, int64_t row) {
  const gathered g = {.floats = out, .outside = outside};
  if (!count) return;
  gather(s, phase, x, &g, k0, count, p0, n, row);
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = n; i < row; i++) out[k * row + i] = 0;
}

void rung_conv_gather_integers(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *x, int32_t zero,
                               int64_t k0, int64_t count, int64_t p0, int64_t n, int16_t *out, int64_t row) {
  const gathered g = {.integers = out, .zero = zero};
  if (count) gather(s, phase, x, &g, k0, count, p0, n, row);
}

/* ---- weights */

bool rung_conv_weights_lie(const rung_conv_shape *s) {
  int64_t step = 1;
  if (s->transposed) return false;
  for (int a = RUNG_CONV_AXES; a-- > 0;) {
    if (s->axis[a].kernel != 1 && s->axis[a].w_step != step) return false;
    step *= s->axis[a].kernel;
  }
  return s->channels == 1 || s->w_channel == step;
}

void rung_conv_weights(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *w, int64_t result,
                       int64_t k0, int64_t count, float *out) {
  if (!count) return;
  const rung_conv_line *line = phase->line;
  const rung_type type = (rung_type)s->w->type;
  const int64_t bytes = rung_type_get(type)->bytes;
  const uint8_t *from = w + result * s->w_result * bytes;
  if (rung_conv_weights_lie(s)) {
    rung_conv_load(type, from + k0 * bytes, 1, count, out);
    return;
  }
  if (phase->taps == 1) {
    int64_t at = k0 * s->w_channel;
    for (int a = 0; a < RUNG_CONV_AXES; a++) at += line[a].tap0 * s->axis[a].w_step;
    rung_conv_load(type, from + at * bytes, s->w_channel, count, out);
    return;
  }
  int64_t rest = k0 % phase->taps, channel = k0 / phase->taps;
  int64_t tap[RUNG_CONV_AXES] = {rest / (line[1].taps * line[2].taps), rest / line[2].taps % line[1].taps,
                                 rest % line[2].taps};
  for (int64_t i = 0; i < count; i++) {
    int64_t at = channel * s->w_channel;
    for (int a = 0; a < RUNG_CONV_AXES; a++) at += (line[a].tap0 + tap[a] * line[a].tap_step) * s->axis[a].w_step;
    if (type == RUNG_TYPE_F32) {
      memcpy(out + i, from + at * (int64_t)sizeof *out, sizeof *out);
    } else {
      rung_conv_load(type, from + at * bytes, 1, 1, out + i);
    }
    if (++tap[2] < line[2].taps) continue;
    tap[2] = 0;
    if (++tap[1] < line[1].taps) continue;
    tap[1] = 0;
    if (++tap[0] < line[0].taps) continue;
    tap[0] = 0;
    channel++;
  }
}
