/* SPDX-License-Identifier: MIT
 * Appending to a file without a buffer of its own: the caller decides what must be on its way. */
#define _GNU_SOURCE
#include "base/append_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

rung_status rung_append_open(rung_append_file *file, rung_host *host, const char *path, rung_error *error) {
  errno = EIO;
  file->file = rung_host_fault(host, RUNG_FAULT_READ)
                   ? -1
                   : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  return file->file >= 0 ? RUNG_OK : rung_fail(error, RUNG_IO, "%s: cannot be written: %s", path, strerror(errno));
}

rung_status rung_append_put(rung_append_file *file, const void *data, size_t bytes, rung_error *error) {
  const char *p = data;
  while (bytes) {
    const ssize_t put = write(file->file, p, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return rung_fail(error, RUNG_IO, "writing failed: %s", strerror(errno));
    p += put;
    bytes -= (size_t)put;
  }
  return RUNG_OK;
}

rung_status rung_append_close(rung_append_file *file, rung_error *error) {
  if (file->file < 0) return RUNG_OK;
  const int closed = close(file->file);
  file->file = -1;
  return closed == 0 || errno == EINTR ? RUNG_OK : rung_fail(error, RUNG_IO, "closing failed: %s", strerror(errno));
}
