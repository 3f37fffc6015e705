/* SPDX-License-Identifier: MIT
 * Products of small integers: operands, zero points taken away, are numbers of 16 bits, pairs of them are multiplied
 * and added in 32 bits. Nothing is rounded, so that no order of the sums matters. */
#ifndef RUNG_CPU_INTEGER_H
#define RUNG_CPU_INTEGER_H

#include "backends/cpu/kernel.h"

enum {
  RUNG_INTEGER_K = 512,       /* of k at once */
  RUNG_INTEGER_COLUMNS = 128, /* of a task; a multiple of every tile's */
  RUNG_INTEGER_ROWS = 12      /* most rows of a tile */
};

/* c[r][i] = (0 or c) + sum over pairs of a[r] and b[.][i]. */
typedef struct rung_integer_tile {
  int rows;
  int64_t pairs;
  const int16_t *a; /* rows of pairs, a_row numbers apart */
  int64_t a_row;
  const int16_t *b; /* [pair][columns][2], b_row numbers apart */
  int64_t b_row;
  int32_t *c;
  int64_t c_row;
  bool first;
} rung_integer_tile;
typedef struct rung_integer_kernel {
  int tile_rows, tile_columns;
  void (*tile)(const rung_integer_tile *tile);
} rung_integer_kernel;

bool rung_integer_fits_conv(const rung_match *match, char *why); /* conv of integers of at most 16 bits, no bias */
rung_dim rung_integer_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role);
int64_t rung_integer_tasks_matmul(const rung_args *args);
rung_status rung_integer_run_matmul(const rung_args *args, const rung_integer_kernel *kernel, int64_t task, int thread);
/* Of conv_integer, and of conv (zero_points false). */
int64_t rung_integer_tasks_conv(const rung_args *args);
rung_status rung_integer_run_conv(const rung_args *args, bool zero_points, const rung_integer_kernel *kernel,
                                  int64_t task, int thread);

#endif
