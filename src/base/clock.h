/* SPDX-License-Identifier: MIT
 * Monotonic time, and what the clock on the wall shows. */
#ifndef RUNG_BASE_CLOCK_H
#define RUNG_BASE_CLOCK_H
#include <stdint.h>
uint64_t rung_clock_ns(void);
/* Local time as seconds since 1970-01-01 00:00 of local time. */
int64_t rung_clock_local(void);
#endif
