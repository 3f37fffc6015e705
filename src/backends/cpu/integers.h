/* SPDX-License-Identifier: MIT
 * Elementwise ops of integers and bool, strip by strip in 64 bits: exact for every type but u64, whose order and
 * division are another. Where strides lie and which task takes what is here; a level brings the loops
 * (kernels/integers.inc). */
#ifndef RUNG_CPU_INTEGERS_H
#define RUNG_CPU_INTEGERS_H

#include "backends/cpu/kernel.h"

enum { RUNG_INTEGERS_STRIP = 512, RUNG_INTEGERS_OPERANDS = 3 };

/* out[i] = f(in[0][i], in[1][i], in[2][i]); operands that the op lacks may be read and do not count. */
typedef void rung_integers_fn(int64_t *out, const int64_t *const *in, int64_t n);
typedef struct rung_integers_level {
  /* n numbers from one, `step` bytes apart; 0: the first again and again. Whole bytes only. */
  void (*load)(rung_type type, const uint8_t *from, int64_t step, int64_t *out, int64_t n);
  void (*store)(rung_type type, const int64_t *x, uint8_t *to, int64_t step, int64_t n);
} rung_integers_level;

bool rung_integers_fits(const rung_match *match, char *why);
int64_t rung_integers_tasks(const rung_args *args);
rung_status rung_integers_run(const rung_args *args, const rung_integers_level *level, rung_integers_fn *fn,
                              int64_t task);

#endif
