/* SPDX-License-Identifier: MIT
 * The tables of kernel rows that registry.c lists. */
#ifndef RUNG_CUDA_FAMILIES_H
#define RUNG_CUDA_FAMILIES_H

#include "backends/cuda/kernel.h"

extern const rung_cuda_family rung_cuda_family_move;
extern const rung_cuda_family rung_cuda_family_index;
extern const rung_cuda_family rung_cuda_family_kv;
extern const rung_cuda_family rung_cuda_family_reduce;
extern const rung_cuda_family rung_cuda_family_sample;
extern const rung_cuda_family rung_cuda_family_window;
extern const rung_cuda_family rung_cuda_family_matmul;
extern const rung_cuda_family rung_cuda_family_experts;
extern const rung_cuda_family rung_cuda_family_attention;

#endif
