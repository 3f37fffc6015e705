/* SPDX-License-Identifier: MIT
 * Products with weights: which types have kernels, and their layouts. */
#ifndef RUNG_CUDA_MATMUL_H
#define RUNG_CUDA_MATMUL_H

#include "backends/cuda/kernel.h"

/* layout ids (layouts.c): q4_k in tiles of 16 x 256, q8_0 in tiles of 16 x 128 */
enum { RUNG_CUDA_TILES = 1, RUNG_CUDA_Q8_TILES = 2 };

const rung_layout *rung_cuda_layouts(size_t *out_count);
const rung_layout *rung_cuda_layout_of(rung_type type);
bool rung_cuda_multiplies_a8(rung_type type);
/* Weights of a type, in a layout, that kernels/weights.cu reads. */
bool rung_cuda_reads_weight(int type, uint16_t layout);
/* The defines and the text of weights.cu. */
void rung_cuda_put_weights(int type, uint16_t layout, rung_text *front);

/* How the kernels of matmul.cu and gemm.cu multiply two types. */
typedef struct rung_cuda_way_of {
  int rows_a_warp;
  bool tiles, split, exact; /* tiles: few rows have a kernel of their own; exact: many rows are multiplied in f32 */
} rung_cuda_way_of;
/* Puts their defines, and the text of weights.cu. */
rung_cuda_way_of rung_cuda_put_product(int x, int w, uint16_t layout, rung_text *front);

/* As the kernels of products with weights have it: matmul.cu, gemm.cu, tiles.cu. */
typedef struct rung_cuda_product_params {
  uint64_t x, w, y;
  int64_t m, n, k, ldx, ldy; /* ldx: in blocks of 32 where x is a8 */
  int32_t y_type, pad;
} rung_cuda_product_params;

/* What the kernel of kernels/decode.cu is made for. */
typedef struct rung_cuda_row {
  int weight, x; /* types */
  uint16_t layout;
  int64_t k;
  int members;
  bool tiled;
  const struct rung_region_list *list; /* NULL: the row lies in memory */
  const struct rung_region_row *region;
  const struct rung_region_list *after; /* of two results, number by number; NULL: results are written as they are */
  int after_value;
  bool levels, ready; /* what AFTER makes is partly quantised; x was made so */
} rung_cuda_row;
void rung_cuda_put_row(const rung_cuda_row *row, rung_text *front);

#endif
