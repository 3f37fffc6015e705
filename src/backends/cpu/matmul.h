/* SPDX-License-Identifier: MIT
 * Matrix products, the part that no instruction set changes: what a step asks for, how it is divided among threads, the
 * loops around the tiles, and what happens to finished results. A level brings tiles (kernels/matmul_*.inc).
 *
 * Every result is a sum over k in one fixed order that no choice made here can change: tiles of any height give a row
 * the same bits, a column never meets another one, and where k is cut into chunks the sum goes on from the stored
 * float. */
#ifndef RUNG_CPU_MATMUL_H
#define RUNG_CPU_MATMUL_H

#include "backends/cpu/kernel.h"
#include "backends/cpu/layouts.h"

enum {
  RUNG_TILE_PANELS = 4,             /* most panels that a tile takes at once */
  RUNG_TASK_ROWS = 96,              /* most rows of a task: what its scratch is sized for */
  RUNG_MAX_MEMBERS = RUNG_MAX_RANK, /* of grouped_matmul: what its list of sizes holds */
  RUNG_STRIP_COLUMNS = 256 /* columns of results held back for a strip (128 of each member where they interleave) */
};

/* A row-major product as a step asks for it. Distances are in bytes. */
typedef struct rung_product {
  const rung_args *args;
  const rung_operand *a_operand, *b_operand, *y_operand; /* y NULL inside fused: the strip writes */
  int64_t batches, m, n, k;                              /* n: columns of all members */
  int64_t members;      /* results that take the panels of b in turn, 1 unless interleaved */
  rung_cpu_strip strip; /* fn NULL: results go to y as they are */
  bool packed;          /* b is a form in panels */
  bool transposed;      /* b is [n, k] */
  int leading;          /* axes of y that batches run over */
  /* Of the current batch (rung_product_batch). */
  const uint8_t *a, *b;
  uint8_t *y;
  int64_t first_row; /* of all rows, as strips count them */
  int64_t a_row, a_k, b_n, b_k, y_row;
} rung_product;

/* What a tile works on: rows x panels, over k or a chunk of it. */
typedef struct rung_tile {
  int rows, panels;
  int64_t k;
  const uint8_t *a; /* first row; f32 or a8 */
  int64_t a_row;
  const struct rung_side *side;           /* a8: per block and row, [k / 32][rows] */
  const uint8_t *panel[RUNG_TILE_PANELS]; /* where a panel is missing: another one, its results are dropped */
  float *c[RUNG_TILE_PANELS];             /* 16 columns each */
  int64_t c_row;                          /* in floats */
  bool first;                             /* sums start at zero, else at what c holds */
  /* Which of how many blocks of rows these panels serve now. Each asks for its share of the panels behind them; one alone
   * meets panels that no cache holds. */
  int turn, turns;
  /* f32 and pairs: of each panel, what comes after it and where this tile's share of it begins; NULL: nothing. A line is
   * asked for at every 2^next_shift-th line that the tile reads. */
  const uint8_t *next[RUNG_TILE_PANELS];
  int next_shift;
} rung_tile;

/* What a tile needs to know of one block of quantised activations besides its levels. */
typedef struct rung_side {
  float scale;
  float sum;        /* scale times the sum of the levels, for weights with a minimum */
  int32_t start[2]; /* where sums start to make up for the offset of the weights' levels: minus offset times the sum of
                       the activations, or of each half of them */
} rung_side;

typedef struct rung_product_kernel {
  uint8_t tile_rows, tile_panels;
  int64_t grain; /* products that a thread does in about a microsecond: a task has at least so many */
  /* a8: rung_side is filled for the tiles. */
  bool quantised;
  bool halves;    /* start is wanted for each half */
  int32_t offset; /* of the weights' levels as the tile sees them */
  bool pairs;     /* rows of a are bf16 and read as they lie, two neighbours in k at once */
  /* f32: floats [k][16] of one panel of b, from k0, `count` of them, for tiles to read; NULL: tiles read b's panels. */
  void (*fill)(const rung_product *p, int64_t panel, int64_t k0, int64_t count, float *out);
  void (*tile)(const rung_tile *tile);
} rung_product_kernel;

/* Of k where panels are filled or rows are copied; a multiple of every block. Twice as much of pairs. */
enum { RUNG_K_CHUNK = 256, RUNG_K_PAIRS = 2 * RUNG_K_CHUNK };

/* grouped: the step's op (or a fused step's root) is grouped_matmul. */
void rung_product_resolve(const rung_args *args, bool grouped, rung_product *out_product);
int64_t rung_product_tasks(const rung_args *args, bool grouped, const rung_product_kernel *kernel);
rung_status rung_product_run(const rung_args *args, bool grouped, const rung_product_kernel *kernel, int64_t task,
                             int thread);
/* Bytes per thread, for rows that use this kernel. */
rung_dim rung_product_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role,
                              const rung_product_kernel *kernel);

/* Panels [panel0, panel1) times rows that lie side by side: p->a, p->b, p->m (at most RUNG_TASK_ROWS) and p->first_row
 * are set, results go to p->strip. `scratch`: what rung_product_scratch says, for so many rows. */
void rung_product_panels(const rung_product *p, const rung_product_kernel *kernel, int64_t panel0, int64_t panel1,
                         void *scratch);

/* ---- products with chosen experts (experts.c), by the same kernels */
int64_t rung_experts_tasks(const rung_args *args, const rung_product_kernel *kernel);
rung_status rung_experts_run(const rung_args *args, const rung_product_kernel *kernel, int64_t task, int thread);
rung_dim rung_experts_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role,
                              const rung_product_kernel *kernel);
bool rung_experts_fit(const rung_match *match, int a, char *why);

/* The fill of a b that is not packed: any type, any strides (block types are dense along k). */
void rung_product_fill(const rung_product *p, int64_t panel, int64_t k0, int64_t count, float *out);

/* Conditions beyond types and layouts: of matmul and grouped_matmul, and of fused: is it a product of these types (b in
 * its type's layout) with an epilogue that strips can do? */
bool rung_product_fits(const rung_match *match, int a, char *why);
bool rung_product_takes(const rung_match *match, int a, char *why); /* the types only */
bool rung_product_fits_fused(const rung_match *match, int a, int b, char *why);
rung_status rung_product_prepare(const rung_cpu_prepare *in, const void **out_prepared);

#endif
