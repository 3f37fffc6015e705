/* SPDX-License-Identifier: MIT
 * Convolution and its transpose, the part that no instruction set changes: geometry, division among threads, gathering
 * what windows see, the loops around the tiles. A level brings tiles (kernels/conv.inc).
 *
 * Every result is a sum over k (channels of its group times kernel positions): runs of at most RUNG_CONV_RUN, each from
 * zero, added one after another to the bias. Where runs begin depends on the extents of one picture alone. How places
 * and results are cut into tasks and tiles changes nothing; nor does the batch, since every picture is a product of its
 * own. Padding counts as zeros. */
#ifndef RUNG_CPU_CONV_H
#define RUNG_CPU_CONV_H

#include "backends/cpu/kernel.h"
#include "backends/cpu/strip.h"

enum {
  RUNG_CONV_AXES = 3,
  RUNG_CONV_RUN = 128,      /* of k */
  RUNG_CONV_K = 256,        /* of k gathered at once; a multiple of the run */
  RUNG_CONV_FLOATS = 32768, /* gathered at once */
  RUNG_CONV_PLACES = 1024,  /* most places of a task */
  RUNG_CONV_HELD = 256,     /* the same where results are held back */
  RUNG_CONV_ROWS = 12,      /* most results of a tile */
  RUNG_CONV_COLUMNS = 32,   /* of a tile: a divisor of this */
  RUNG_CONV_FEW = 8         /* places of a picture below which sums go over lanes of k */
};

/* rows results at `columns` of the level's tile: c[r][i] = (bias or c) + sum over k of a[r][k] b[k][i]. Distances in
 * floats. */
typedef struct rung_conv_tile {
  int rows;
  int64_t k;
  const uint8_t *a; /* weights, which lie at any byte where they are read in the file */
  const float *b;
  int64_t a_row, b_row;
  const int32_t *offset; /* tile_offsets: of b[k], instead of b_row */
  float *c;
  int64_t c_row;
  bool first;        /* sums start at the bias, else at what c holds */
  const float *bias; /* of each row; NULL: zeros */
} rung_conv_tile;

typedef struct rung_conv_kernel {
  int tile_rows, tile_columns;
  void (*tile)(const rung_conv_tile *tile);
  void (*tile_offsets)(const rung_conv_tile *tile);
  /* out[r * out_row + p] = bias[r] + sum over k of w[r * k + i] x[p * k + i], lanes of k; places at most
   * RUNG_CONV_FEW. w: at any byte. */
  void (*few)(const uint8_t *w, int64_t rows, const float *x, int64_t places, int64_t k, const float *bias, float *out,
              int64_t out_row);
  /* n results of one row: out[i] = bias + sum over taps of w[t] x[t][i]; x may be read a vector past the end. */
  void (*taps)(const float *w, const float *const *x, int64_t taps, float bias, float *out, int64_t n);
  /* The same: the largest, NaN where there is one, -inf of none. */
  void (*most)(const float *const *x, int64_t taps, float *out, int64_t n);
} rung_conv_kernel;

/* What a fused step prepares: the operands that the convolution reads, and what follows it (conv_strip.c). */
typedef struct rung_conv_prepared {
  uint32_t in[3], n_in;      /* x, w, bias: operands of the step */
  bool reads[RUNG_STRIP_IO]; /* by operand: does the strip read it? */
  const void *attrs;         /* of the convolution */
  rung_cpu_strip strip;
} rung_conv_prepared;
bool rung_conv_fits_fused(const rung_match *match, char *why);
rung_dim rung_conv_scratch_fused(rung_dims *dims, const rung_match *match, const rung_dim *role);
rung_status rung_conv_prepare(const rung_cpu_prepare *in, const void **out_prepared);

/* Of conv and of conv_transpose, alone or fused. */
bool rung_conv_fits(const rung_match *match, char *why);
rung_dim rung_conv_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role);
int64_t rung_conv_tasks(const rung_args *args, bool transposed, const rung_conv_kernel *kernel);
rung_status rung_conv_run(const rung_args *args, bool transposed, const rung_conv_kernel *kernel, int64_t task,
                          int thread);

/* Windows over one channel, along one or two axes: conv with one channel a group, max_pool, average_pool. Every row of
 * results is made of shifted rows. */
typedef enum rung_conv_window { RUNG_CONV_WEIGHTED, RUNG_CONV_LARGEST, RUNG_CONV_MEAN } rung_conv_window;
bool rung_conv_fits_depthwise(const rung_match *match, char *why);
bool rung_conv_fits_pool(const rung_match *match, char *why);
rung_dim rung_conv_scratch_depthwise(rung_dims *dims, const rung_match *match, const rung_dim *role);
rung_dim rung_conv_scratch_pool(rung_dims *dims, const rung_match *match, const rung_dim *role);
int64_t rung_conv_tasks_depthwise(const rung_args *args, rung_conv_window window);
rung_status rung_conv_run_depthwise(const rung_args *args, rung_conv_window window, const rung_conv_kernel *kernel,
                                    int64_t task, int thread);

#endif
