/* SPDX-License-Identifier: MIT
 * Reductions of floats over any axes.
 *
 * Where the last axis is reduced, the elements of a result (row-major over the reduced axes) are one row, folded as
 * strips fold (strip.h): chunks of 4,096, lanes, one tree. Else the results along the last axis are computed side by
 * side, each taking its elements one after another, chunk after chunk. Which of the two depends on the axes alone. */
#ifndef RUNG_CPU_REDUCE_H
#define RUNG_CPU_REDUCE_H

#include "backends/cpu/strip.h"

bool rung_reduce_fits(const rung_match *match, char *why);
rung_status rung_reduce_prepare(const rung_cpu_prepare *in, const rung_strip_level *level, const void **out_prepared);
rung_dim rung_reduce_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role);
int64_t rung_reduce_tasks(const rung_args *args);
rung_status rung_reduce_run(const rung_args *args, int64_t task, int thread);

#endif
