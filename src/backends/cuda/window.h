/* SPDX-License-Identifier: MIT
 * What window.c writes in front of its units, for those who compile them. */
#ifndef RUNG_CUDA_WINDOW_H
#define RUNG_CUDA_WINDOW_H

#include "backends/cuda/kernel.h"

/* Of kernels/pool.cu: max_pool, argmax_pool or average_pool of numbers of a type. */
void rung_cuda_put_pool(const rung_op *op, int type, rung_text *out);
/* Of kernels/conv.cu. height: the rows of a thread of the large tile, 1, 2, 4, 6 or 8; 0: the other kernels. */
void rung_cuda_put_conv(int x, int w, int y, int height, rung_text *out);

#endif
