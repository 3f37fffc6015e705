/* SPDX-License-Identifier: MIT
 * resize of f32: rows of x along the last axis are mixed, then read along it. */
#ifndef RUNG_CPU_RESIZE_H
#define RUNG_CPU_RESIZE_H

#include "backends/cpu/kernel.h"

bool rung_cpu_resize_fits(const rung_match *match, char *why);
rung_dim rung_cpu_resize_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role);
int64_t rung_cpu_resize_tasks(const rung_args *args);
rung_status rung_cpu_resize_run(const rung_args *args, int64_t task, int thread);

#endif
