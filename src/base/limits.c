/* SPDX-License-Identifier: MIT
 * What this process may use: processors and memory under affinity and control groups, versions 1 and 2. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/text.h"

enum { PATH_BYTES = 4096, TEXT_BYTES = 4096 };

/* Reads a small file; false if it is missing, empty or longer than the buffer. */
static bool read_small(const char *path, char out[TEXT_BYTES]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  size_t used = 0;
  ssize_t got;
  while (used < TEXT_BYTES && (got = read(file, out + used, TEXT_BYTES - used)) > 0) used += (size_t)got;
  close(file);
  if (used == 0 || used == TEXT_BYTES) return false;
  out[used] = 0;
  return true;
}

static bool read_in(const char *folder, const char *name, char out[TEXT_BYTES]) {
  char path[PATH_BYTES];
  const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  return length > 0 && length < (int)sizeof path && read_small(path, out);
}

/* A limit found in one folder; UINT64_MAX where it sets none. */
typedef uint64_t limit_fn(const char *folder);

/* "max 100000" or "200000 100000": quota and period in microseconds. Whole processors: a part of one would be spent on
 * waiting for the next period while the others spin. */
static uint64_t cpus_v2(const char *folder) {
  char text[TEXT_BYTES];
  int64_t quota, period;
  const char *rest;
  if (!read_in(folder, "cpu.max", text) || !rung_parse_i64(text, NULL, &quota, &rest) || *rest != ' ')
    return UINT64_MAX;
  if (!rung_parse_i64(rest + 1, NULL, &period, NULL) || quota <= 0 || period <= 0) return UINT64_MAX;
  return quota < period ? 1 : (uint64_t)(quota / period);
}
static uint64_t cpus_v1(const char *folder) {
  char text[TEXT_BYTES];
  int64_t quota, period;
  if (!read_in(folder, "cpu.cfs_quota_us", text) || !rung_parse_i64(text, NULL, &quota, NULL)) return UINT64_MAX;
  if (!read_in(folder, "cpu.cfs_period_us", text) || !rung_parse_i64(text, NULL, &period, NULL)) return UINT64_MAX;
  if (quota <= 0 || period <= 0) return UINT64_MAX;
  return quota < period ? 1 : (uint64_t)(quota / period);
}
static uint64_t memory_in(const char *folder, const char *name) {
  char text[TEXT_BYTES];
  int64_t bytes;
  return read_in(folder, name, text) && rung_parse_i64(text, NULL, &bytes, NULL) && bytes >= 0 ? (uint64_t)bytes
                                                                                               : UINT64_MAX;
}
static uint64_t memory_v2(const char *folder) { return memory_in(folder, "memory.max"); }
static uint64_t memory_v1(const char *folder) { return memory_in(folder, "memory.limit_in_bytes"); }

/* The smallest limit in root + path and every folder above it down to root: each level of the hierarchy binds. */
static uint64_t walk_up(const char *root, const char *path, limit_fn *limit) {
  char folder[PATH_BYTES];
  const size_t root_length = strlen(root);
  const int length = snprintf(folder, sizeof folder, "%s%s", root, path);
  if (length < 0 || length >= (int)sizeof folder) return limit(root);
  uint64_t least = UINT64_MAX;
  for (;;) {
    const uint64_t here = limit(folder);
    if (here < least) least = here;
    char *slash = strrchr(folder, '/');
    if (!slash || slash < folder + root_length) return least;
    *slash = 0;
  }
}

/* The path of this process in the hierarchy of a controller ("" for version 2), from lines "id:controllers:path". */
static void find_path(const char *self, const char *controller, char out[PATH_BYTES]) {
  const size_t n = strlen(controller);
  out[0] = 0;
  for (const char *line = self; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) return;
    bool found = n == 0 && path == names + 1;
    for (const char *p = names + 1; n && p < path; p++) {
      const bool starts = p[-1] == ':' || p[-1] == ',';
      if (starts && strncmp(p, controller, n) == 0 && (p[n] == ',' || p[n] == ':')) found = true;
    }
    if (!found) continue;
    const size_t length = strcspn(path + 1, "\n");
    if (length >= PATH_BYTES) return;
    memcpy(out, path + 1, length);
    out[length] = 0;
    if (strcmp(out, "/") == 0) out[0] = 0;
    return;
  }
}

/* The limit over both versions; a hybrid system has the version 2 tree beside the others. */
static uint64_t group_limit(const char *given_root, const char *controller, limit_fn *v1, limit_fn *v2) {
  const char *root = given_root ? given_root : "/sys/fs/cgroup";
  char self[TEXT_BYTES], path[PATH_BYTES], folder[PATH_BYTES];
  const bool have_self = given_root ? read_in(root, "self", self) : read_small("/proc/self/cgroup", self);
  if (!have_self) self[0] = 0;
  find_path(self, "", path);
  uint64_t least = walk_up(root, path, v2);
  if (snprintf(folder, sizeof folder, "%s/unified", root) < (int)sizeof folder) {
    const uint64_t limit = walk_up(folder, path, v2);
    if (limit < least) least = limit;
  }
  find_path(self, controller, path);
  const char *const names[] = {controller, "cpu,cpuacct"}; /* some systems mount the two as one, without a link */
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    if (snprintf(folder, sizeof folder, "%s/%s", root, names[i]) >= (int)sizeof folder) continue;
    const uint64_t limit = walk_up(folder, path, v1);
    if (limit < least) least = limit;
  }
  return least;
}

static uint64_t processors(void) {
  cpu_set_t sets[16]; /* 16,384 processors */
  if (sched_getaffinity(0, sizeof sets, sets) == 0) {
    const int count = CPU_COUNT_S(sizeof sets, sets);
    if (count > 0) return (uint64_t)count;
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint64_t)online : 1;
}

int rung_pool_default_threads(const char *cgroup_root) {
  const uint64_t have = processors(), may = group_limit(cgroup_root, "cpu", cpus_v1, cpus_v2);
  const uint64_t count = have < may ? have : may;
  return count < 1 ? 1 : count > 1024 ? 1024 : (int)count;
}

uint64_t rung_memory_limit(const char *cgroup_root) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const uint64_t have = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
  const uint64_t may = group_limit(cgroup_root, "memory", memory_v1, memory_v2);
  const uint64_t least = have < may ? have : may;
  return least == UINT64_MAX ? 0 : least;
}
