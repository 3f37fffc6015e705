/* SPDX-License-Identifier: MIT
 * Monotonic time. */
#ifndef RUNG_BASE_CLOCK_H
#define RUNG_BASE_CLOCK_H
#include <stdint.h>
uint64_t rung_clock_ns(void);
#endif
