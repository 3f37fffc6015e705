/* SPDX-License-Identifier: MIT
 * Products with weights: which types have kernels, and their layouts. */
#ifndef RUNG_CUDA_MATMUL_H
#define RUNG_CUDA_MATMUL_H

#include "backends/cuda/kernel.h"

enum { RUNG_CUDA_TILES = 1 }; /* layout id: q4_k in tiles of 16 x 256 (layouts.c) */

const rung_layout *rung_cuda_layouts(size_t *out_count);
const rung_layout *rung_cuda_layout_of(rung_type type);
bool rung_cuda_multiplies_a8(rung_type type);
/* Weights of a type, in a layout, that kernels/weights.cu reads. */
bool rung_cuda_reads_weight(int type, uint16_t layout);
/* The defines and the text of weights.cu. */
void rung_cuda_put_weights(int type, uint16_t layout, rung_text *front);

#endif
