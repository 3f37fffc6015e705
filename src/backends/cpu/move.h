/* SPDX-License-Identifier: MIT
 * Moving elements without changing a bit: copies between any strides, concat, constant padding. Bytes are bytes: one
 * piece of code serves every instruction set. */
#ifndef RUNG_CPU_MOVE_H
#define RUNG_CPU_MOVE_H

#include "backends/cpu/kernel.h"

/* Elements, or blocks, of whole bytes; all of one type. */
bool rung_move_fits(const rung_match *match, char *why);
/* A cast that casts nothing: what planners copy with. */
bool rung_move_fits_cast(const rung_match *match, char *why);
bool rung_move_fits_pad(const rung_match *match, char *why);

int64_t rung_move_tasks(const rung_args *args);
/* Result 0 gets the elements of operand 0 (cast, reshape to dense), or of operand 1 (assign). */
rung_status rung_move_copy(const rung_args *args, int64_t task, int thread);
rung_status rung_move_assign(const rung_args *args, int64_t task, int thread);
rung_status rung_move_concat(const rung_args *args, int64_t task, int thread);
rung_status rung_move_pad(const rung_args *args, int64_t task, int thread);

#endif
