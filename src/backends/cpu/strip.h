/* SPDX-License-Identifier: MIT
 * Strips: row-local ops (elementwise, norms, softmax, casts, quantize_rows) as small programs over pieces of a row that
 * stay in the first cache. One program serves a single op, a fused region, or what follows a matrix product.
 *
 *   row    |--- strip 0 ---|--- strip 1 ---| ...          a strip: RUNG_STRIP elements
 *   phase 0   t = a + b      t = a + b        s += t t    what a whole row must be known for ends a phase
 *   phase 1   y = t s w      y = t s w                    s by then: 1 / sqrt(mean + epsilon)
 *
 * Values that a later phase needs are kept for the whole row, others for a strip. Everything is computed in f32; other
 * types are converted where they are loaded, stored or rounded to.
 *
 * Sums over a row go in chunks of RUNG_FOLD elements: element i of a chunk belongs to lane i modulo the level's number
 * of lanes, lanes are added in one tree, chunk after chunk. */
#ifndef RUNG_CPU_STRIP_H
#define RUNG_CPU_STRIP_H

#include "backends/cpu/kernel.h"

enum {
  RUNG_STRIP = 1024,        /* elements; divides RUNG_FOLD */
  RUNG_FOLD = 4096,         /* elements of a chunk of a sum */
  RUNG_FOLD_LANES = 64,     /* most lanes of a level */
  RUNG_STRIP_REGS = 256,    /* most values of a program */
  RUNG_STRIP_IO = 32,       /* most operands, and most results */
  RUNG_STRIP_NODES = 32,    /* most ops of a region */
  RUNG_STRIP_EPILOGUE = 40, /* most strips that what follows a product keeps */
  RUNG_STRIP_PHASES = 8,
  RUNG_STRIP_FOLDS = 16, /* most sums over a row */
  RUNG_STRIP_SLOTS = 32  /* most numbers per row: means, scales, largest elements */
};

/* out[i] = f(in[0][i], ..) for n elements; out may be one of the operands. `value`: attributes or slots of the row. */
typedef void rung_apply_fn(float *out, const float *const *in, int64_t n, const float *value);
/* Adds n elements to lanes; they start where a chunk's lane 0 is next. `value` as above. */
typedef void rung_fold_fn(float *lanes, const float *x, int64_t n, const float *value);
typedef struct rung_fold_kind {
  float start; /* of every lane */
  rung_fold_fn *add;
  float (*finish)(const float *lanes);                           /* the chunk's result */
  float (*whole)(const float *x, int64_t n, const float *value); /* all of it, of a chunk that is one strip */
  float (*join)(float before, float now);                        /* of two chunks */
} rung_fold_kind;

/* What a level brings (kernels/strip.inc). */
typedef struct rung_strip_level {
  rung_apply_fn *(*find)(const rung_op *op); /* of an elementwise row; NULL: has none */
  /* The same for an op of two operands of which operand `which` is one number for the strip: its only element is read.
   * The other one comes first. */
  rung_apply_fn *(*find_one)(const rung_op *op, int which);
  /* One function for two, the second of which takes the first's result as its first operand; NULL: none. */
  rung_apply_fn *(*join)(rung_apply_fn *first, rung_apply_fn *second);
  rung_apply_fn *copy;                  /* x */
  rung_apply_fn *scale, *scale_by;      /* x value[0]; x value[0] y */
  rung_apply_fn *centre[3];             /* n = (x - value[0]) value[1]; n y; n y + z */
  rung_apply_fn *exp_less;              /* exp(x - value[0]) */
  rung_apply_fn *less_less;             /* (x - value[0]) - value[1] */
  rung_apply_fn *to_bool;               /* x != 0 */
  rung_fold_kind sum, squares, largest; /* of x; of (x - value[0])^2; with NaN left out */
  rung_fold_kind exponentials;          /* sum of exp(x - value[0]) */
  rung_fold_kind most, least, product;  /* NaN if there is one */
  void (*load)(rung_type type, const void *from, float *out, int64_t n);
  void (*store)(rung_type type, const float *x, void *to, int64_t n);
  void (*quantize)(const float *x, rung_a8 *out, int64_t blocks);
  void (*fetch)(const void *at, int64_t bytes); /* into the first cache */
} rung_strip_level;

typedef struct rung_strip_program rung_strip_program;

/* ---- what can be one */
bool rung_strip_fits_node(const rung_match *match, char *why);
bool rung_strip_fits_region(const rung_match *match, char *why);
bool rung_strip_folds(const rung_op *op); /* needs a whole row */

/* ---- running */

/* For kernel rows: prepared is the program. */
rung_status rung_strip_prepare(const rung_cpu_prepare *in, const rung_strip_level *level, const void **out_prepared);
rung_dim rung_strip_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role); /* per thread */
int64_t rung_strip_tasks(const rung_args *args);
rung_status rung_strip_run(const rung_args *args, int64_t task, int thread);

/* Behind matrix products. */
rung_status rung_strip_compile_epilogue(rung_arena *arena, const rung_strip_level *level, const rung_graph *body,
                                        const rung_node *root, rung_error *error, rung_cpu_strip *out_strip);
rung_strip_fn rung_strip_epilogue;

/* One after another: what a program needs for its rows. */
enum { RUNG_STRIP_STREAMS = 2 * RUNG_STRIP_IO, RUNG_STRIP_TEMPS = RUNG_STRIP_EPILOGUE * 256 };
typedef struct rung_strip_frame {
  const rung_strip_program *p;
  const rung_strip_level *level;
  float *temp; /* strips of `strip` elements */
  float *row;  /* rows of `columns` */
  int64_t strip, columns;
  const int64_t *last;             /* of the streams */
  uint8_t *at[RUNG_STRIP_STREAMS]; /* the current row of the streams */
  float *reg[RUNG_STRIP_REGS];
  float slot[RUNG_STRIP_SLOTS];
  float total[RUNG_STRIP_FOLDS];
  float lanes[RUNG_STRIP_FOLDS][RUNG_FOLD_LANES];
} rung_strip_frame;

/* rung_strip_epilogue in two: operands are looked at once, for any number of calls that ask for rows. `args` stay the
 * caller's, and may change in where the result lies. */
typedef struct rung_strip_epilogue_run {
  rung_strip_frame frame;
  const rung_args *args;
  int64_t strip, last[RUNG_STRIP_STREAMS], step[RUNG_STRIP_STREAMS]; /* bytes from element to element, row to row */
  _Alignas(64) float temp[RUNG_STRIP_TEMPS]; /* storing across lines costs several times as much */
} rung_strip_epilogue_run;
void rung_strip_epilogue_begin(rung_strip_epilogue_run *run, const void *program, const rung_args *args);
void rung_strip_epilogue_rows(rung_strip_epilogue_run *run, int64_t row, int64_t rows, int64_t col, int64_t n,
                              float *const *value, int64_t value_row);

#endif
