/* SPDX-License-Identifier: MIT
 * Paths. Links are resolved by the system; what it resolves to is what gets opened. */
#define _GNU_SOURCE
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"

_Static_assert(RUNG_PATH_BYTES >= PATH_MAX, "realpath writes PATH_MAX bytes");

bool rung_path_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool rung_path_is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

rung_status rung_path_join(const char *folder, const char *name, rung_error *error, char out[RUNG_PATH_BYTES]) {
  const size_t length = strlen(folder);
  const char *between = length && folder[length - 1] == '/' ? "" : "/";
  const int n = snprintf(out, RUNG_PATH_BYTES, "%s%s%s", folder, between, name);
  if (n < 0 || n >= RUNG_PATH_BYTES) return rung_fail(error, RUNG_OVERFLOW, "%.64s...: the path is too long", folder);
  return RUNG_OK;
}

const char *rung_path_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

rung_status rung_path_folder(const char *path, rung_error *error, char out[RUNG_PATH_BYTES]) {
  const char *name = rung_path_name(path);
  const size_t length = (size_t)(name - path);
  if (!length) {
    memcpy(out, ".", 2);
    return RUNG_OK;
  }
  if (length >= RUNG_PATH_BYTES) return rung_fail(error, RUNG_OVERFLOW, "%.64s...: the path is too long", path);
  memcpy(out, path, length);
  out[length > 1 ? length - 1 : length] = 0; /* the root keeps its '/' */
  return RUNG_OK;
}

static bool stays_inside(const char *name, size_t length) {
  if (!length || length > NAME_MAX || name[0] == '/') return false;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F || name[i] == '\\') return false;
  for (size_t from = 0, to; from <= length; from = to + 1) {
    for (to = from; to < length && name[to] != '/';) to++;
    if (to - from == 2 && name[from] == '.' && name[from + 1] == '.') return false;
  }
  return true;
}

rung_status rung_path_inside(rung_host *host, const char *folder, const char *name, size_t name_length,
                             rung_error *error, char out[RUNG_PATH_BYTES]) {
  if (!stays_inside(name, name_length))
    return rung_fail(error, RUNG_CORRUPT_FILE, "a file name of %zu bytes leads out of the folder or is no file name",
                     name_length);
  char text[NAME_MAX + 1], joined[RUNG_PATH_BYTES], root[RUNG_PATH_BYTES];
  memcpy(text, name, name_length);
  text[name_length] = 0;
  RUNG_TRY(rung_path_join(folder, text, error, joined));
  errno = EIO;
  if (rung_host_fault(host, RUNG_FAULT_READ) || !realpath(folder, root) || !realpath(joined, out))
    return rung_fail(error, errno == ENOENT ? RUNG_NOT_FOUND : RUNG_IO, "%s: %s", joined, strerror(errno));
  const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
  if (strncmp(out, root, length) != 0 || out[length] != '/')
    return rung_fail(error, RUNG_CORRUPT_FILE, "%s: a symbolic link out of the folder", joined);
  return RUNG_OK;
}
