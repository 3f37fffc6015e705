/* SPDX-License-Identifier: MIT
 * Monotonic time. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

uint64_t rung_clock_ns(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now)) return 0;
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
