/* SPDX-License-Identifier: MIT
 * What a step of conv or conv_transpose asks for, taken apart: three spatial axes, missing ones of extent 1 first. */
#ifndef RUNG_CPU_CONV_SHAPE_H
#define RUNG_CPU_CONV_SHAPE_H

#include "backends/cpu/conv.h"
#include "backends/cpu/strip.h"

typedef struct rung_conv_axis {
  int64_t in, out, kernel;                 /* extents of x, y and w */
  int64_t stride, dilation, before, after; /* after: of pools */
  int64_t x_step, w_step;                  /* elements */
} rung_conv_axis;

typedef struct rung_conv_shape {
  const rung_args *args;
  const rung_operand *x, *w, *bias, *y; /* bias NULL without */
  const rung_conv_prepared *fused;      /* what follows; NULL: nothing */
  struct rung_conv_view *view;          /* of the operands that it reads */
  bool transposed, count_pad;
  int64_t batch, groups, channels, results; /* the latter two of a group */
  rung_conv_axis axis[RUNG_CONV_AXES];
  int64_t places;                         /* of y, of one picture and channel */
  int64_t x_channel, w_channel, w_result; /* distances in elements */
} rung_conv_shape;

/* Places of y that see the same kernel positions at constant distances: all of them for conv, every stride-th along
 * each axis for its transpose. Place i of the phase is i * out_step + out0 of y; its tap t is kernel position
 * tap0 + t * tap_step and reads x at i * in_step + off0 + t * off_step. */
typedef struct rung_conv_line {
  int64_t n, out0, out_step, taps, tap0, tap_step, in_step, off0, off_step;
} rung_conv_line;
typedef struct rung_conv_phase {
  rung_conv_line line[RUNG_CONV_AXES];
  int64_t places, taps, k;
} rung_conv_phase;

void rung_conv_resolve(const rung_args *args, bool transposed, rung_conv_shape *out);
/* Axes of one element give their place to those before them, so that lines are long: for what needs no axis where the
 * scratch rule saw it. */
void rung_conv_long_lines(rung_conv_shape *s);
void rung_conv_resolve_pool(const rung_args *args, rung_conv_shape *out); /* w NULL, each channel a group */
int64_t rung_conv_phases(const rung_conv_shape *s);
rung_conv_line rung_conv_line_of(const rung_conv_shape *s, int axis, int64_t phase);
void rung_conv_phase_at(const rung_conv_shape *s, int64_t index, rung_conv_phase *out);

/* n floats from `from`, `step` elements apart. */
void rung_conv_load(rung_type type, const uint8_t *from, int64_t step, int64_t n, float *out);
/* Elements k0 .. k0 + count of the sums, for places [p0, p0 + n) of a phase: out[k][row], zeros up to `row`. x: the
 * first channel of the group; `outside` stands beyond its edges. */
void rung_conv_gather(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *x, float outside,
                      int64_t k0, int64_t count, int64_t p0, int64_t n, float *out, int64_t row);
/* The same of integers of at most 16 bits, less `zero`, which stands beyond the edges. */
void rung_conv_gather_integers(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *x, int32_t zero,
                               int64_t k0, int64_t count, int64_t p0, int64_t n, int16_t *out, int64_t row);
/* n integers of at most 16 bits from `from`, `step` elements apart, less `zero`. */
void rung_conv_load_integers(rung_type type, const uint8_t *from, int64_t step, int64_t n, int32_t zero, int16_t *out);
/* Weights k0 .. k0 + count of result `result`; w: the first result of the group. */
void rung_conv_weights(const rung_conv_shape *s, const rung_conv_phase *phase, const uint8_t *w, int64_t result,
                       int64_t k0, int64_t count, float *out);
/* Do the rows of w lie as products want them: k without gaps? */
bool rung_conv_weights_lie(const rung_conv_shape *s);

/* Where windows have more than one place and rows are not too long (conv_padded.c): the number of tasks, 0 where it is
 * another way; bytes of scratch; runs a task, false where it is another way. */
int64_t rung_conv_tasks_padded(const rung_conv_shape *s, const rung_conv_kernel *kernel);
rung_dim rung_conv_scratch_padded(rung_dims *dims, const rung_match *match, const rung_dim *role);
bool rung_conv_run_padded(const rung_conv_shape *s, const rung_conv_kernel *kernel, int64_t task, float *scratch);

/* Operands of what follows, by picture, channel and place; made once a task. */
enum { RUNG_CONV_JOINED = 3 };
typedef struct rung_conv_view {
  rung_strip_epilogue_run run;
  rung_args args;
  bool joined;  /* places of every operand lie at one distance */
  bool one_row; /* and channels follow one another as those of y do, or an operand has one element */
  rung_operand in[RUNG_STRIP_IO], out;
  int64_t extent[RUNG_STRIP_IO + 1][RUNG_CONV_JOINED], stride[RUNG_STRIP_IO + 1][RUNG_CONV_JOINED];
} rung_conv_view;
void rung_conv_view_make(const rung_conv_shape *s, rung_conv_view *out_view);

/* What follows, over finished results (conv_strip.c): places [place, place + n) of `rows` channels of y from `channel`
 * on. */
void rung_conv_finish(const rung_conv_shape *s, int64_t picture, int64_t channel, int64_t rows, int64_t place,
                      int64_t n);

static inline int64_t rung_conv_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t rung_conv_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t rung_conv_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
