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

/* cuda.c */
rung_status rung_cuda_prepare_plan(void *self, rung_host *host, const rung_plan *plan, rung_error *error,
                                   void **out_image);
void rung_cuda_finish(void *self, void *image);

/* times.c: where the time of runs goes, said to the log when a context is done with its steps (RUNG_CUDA_TIMES=1; 2: each
 * launch of the last list, too). */
typedef struct rung_cuda_times {
  int wanted;
  void *event[2];
  bool running;
  uint64_t runs, last_end_ns;
  double device,
      between; /* microseconds: on the device, and on the host from the end of a list to the next one's launch */
} rung_cuda_times;
void rung_cuda_times_open(rung_cuda *self, rung_cuda_times *t);
void rung_cuda_times_begin(rung_cuda *self, rung_cuda_times *t); /* in front of a list's launch */
void rung_cuda_times_end(rung_cuda *self, rung_cuda_times *t);   /* behind it */
void rung_cuda_times_take(rung_cuda *self, rung_cuda_times *t);  /* once the device is done */
void rung_cuda_times_close(rung_cuda *self, rung_cuda_times *t, const rung_cuda_list *last);
/* run.c: does the launch at byte `at`. Returns the next one's byte. */
size_t rung_cuda_launch_one(rung_cuda *self, const rung_cuda_list *list, size_t at);

rung_status rung_cuda_steps(void *self, void *image, rung_run *run, uint32_t first, uint32_t count);
void rung_cuda_forget(void *self, void *kept);
rung_status rung_cuda_settle(void *self, void *kept, rung_error *error);
void rung_cuda_settle_later(void *self, void *kept, void *note);
rung_status rung_cuda_settle_note(void *self, const void *note, rung_error *error);

#endif
