/* SPDX-License-Identifier: MIT
 * Monotonic time, and local time. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

uint64_t rung_clock_ns(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now)) return 0;
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t rung_clock_local(void) {
  const time_t now = time(NULL);
  struct tm local;
  if (!localtime_r(&now, &local)) return (int64_t)now;
  return (int64_t)now + (int64_t)local.tm_gmtoff;
}
