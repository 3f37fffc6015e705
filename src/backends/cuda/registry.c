/* SPDX-License-Identifier: MIT
 * The families of kernel rows, plainest first: the only file that names them. Regions have rows for every elementwise op
 * and are listed by the device itself (cuda.c). */
#include "backends/cuda/families.h"

static const rung_cuda_family *const families[] = {
    &rung_cuda_family_move,   &rung_cuda_family_index,   &rung_cuda_family_reduce,
    &rung_cuda_family_kv,     &rung_cuda_family_sample,  &rung_cuda_family_window,
    &rung_cuda_family_matmul, &rung_cuda_family_experts, &rung_cuda_family_attention};

const rung_cuda_family *rung_cuda_family_at(size_t index) {
  return index < RUNG_COUNT(families) ? families[index] : NULL;
}
