/* SPDX-License-Identifier: MIT
 * Runs of steps: lists of launches, and the graphs that replay them. */
#ifndef RUNG_CUDA_RUN_H
#define RUNG_CUDA_RUN_H

#include "backends/cuda/kernel.h"

typedef struct rung_cuda_list {
  rung_host *host;
  uint8_t *data;
  size_t bytes, capacity;
  uint32_t launches;
} rung_cuda_list;

/* What a plan has prepared: one entry per variant. */
typedef struct rung_cuda_image {
  rung_arena arena;
  rung_cuda_prepared *prepared;
} rung_cuda_image;

rung_status rung_cuda_steps(void *self, void *image, rung_run *run, uint32_t first, uint32_t count);
void rung_cuda_forget(void *self, void *kept);
rung_status rung_cuda_settle(void *self, void *kept, rung_error *error);

#endif
