/* SPDX-License-Identifier: MIT
 * What Linux says of the process that runs the test. */
#ifndef RUNG_TESTS_PROCESS_H
#define RUNG_TESTS_PROCESS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a line of /proc/self/status like "VmHWM:  1234 kB"; 0 without. */
static inline uint64_t process_bytes(const char *name) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  unsigned long long kb = 0;
  const size_t n = strlen(name);
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, name, n) == 0 && line[n] == ':') sscanf(line + n + 1, "%llu", &kb);
  if (f) fclose(f);
  return (uint64_t)kb * 1024;
}

#endif
