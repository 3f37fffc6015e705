/* SPDX-License-Identifier: MIT
 * Writing a file whole or not at all: into a neighbour with a name of its own, flushed to the disk, then renamed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map_file.h"

enum { WRITER_BUFFER = 64 << 10 };

struct rung_writer {
  rung_host *host;
  size_t bytes; /* of this block */
  int file;
  size_t used;
  char *path, *part; /* the final name, and the one being written */
  uint8_t buffer[WRITER_BUFFER];
};

static void writer_free(rung_writer *writer) {
  if (writer->file >= 0) close(writer->file);
  rung_host *host = writer->host;
  rung_host_free(host, RUNG_MEMORY_host, writer, writer->bytes);
  rung_host_release(host);
}

rung_status rung_writer_open(rung_host *host, const char *path, rung_error *error, rung_writer **out_writer) {
  static atomic_uint counter;
  enum { SUFFIX = 64 };
  const size_t length = strlen(path), bytes = sizeof(rung_writer) + 2 * length + SUFFIX;
  rung_writer *writer = (rung_writer *)rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!writer) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s: %zu bytes to write it", path, bytes);
  rung_host_retain(host);
  writer->host = host;
  writer->bytes = bytes;
  writer->path = (char *)(writer + 1);
  memcpy(writer->path, path, length + 1);
  writer->part = writer->path + length + 1;
  errno = EIO;
  writer->file = -1;
  if (!rung_host_fault(host, RUNG_FAULT_READ)) {
    /* Names cannot clash within a process; between machines on one file system the clock keeps them apart. */
    for (int attempt = 0; attempt < 16 && writer->file < 0; attempt++) {
      snprintf(writer->part, length + SUFFIX, "%s.%ld-%u-%llx.part", path, (long)getpid(),
               atomic_fetch_add(&counter, 1), (unsigned long long)(rung_clock_ns() & 0xFFFFFFFF));
      writer->file = open(writer->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (writer->file < 0 && errno != EEXIST) break;
    }
  }
  if (writer->file < 0) {
    const rung_status status = rung_fail(error, RUNG_IO, "%s: cannot be created: %s", writer->part, strerror(errno));
    writer_free(writer);
    return status;
  }
  (void)flock(writer->file, LOCK_EX | LOCK_NB); /* who cleans up sees that somebody is at work (folder.c) */
  *out_writer = writer;
  return RUNG_OK;
}

static rung_status put_file(rung_writer *writer, const uint8_t *data, size_t bytes, rung_error *error) {
  while (bytes) {
    errno = EIO;
    const ssize_t put = rung_host_fault(writer->host, RUNG_FAULT_READ) ? -1 : write(writer->file, data, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return rung_fail(error, RUNG_IO, "%s: writing failed: %s", writer->path, strerror(errno));
    data += put;
    bytes -= (size_t)put;
  }
  return RUNG_OK;
}

static rung_status flush(rung_writer *writer, rung_error *error) {
  const size_t used = writer->used;
  writer->used = 0;
  return put_file(writer, writer->buffer, used, error);
}

rung_status rung_writer_put(rung_writer *writer, const void *data, size_t bytes, rung_error *error) {
  if (bytes > WRITER_BUFFER - writer->used) RUNG_TRY(flush(writer, error));
  if (bytes >= WRITER_BUFFER) return put_file(writer, (const uint8_t *)data, bytes, error);
  if (bytes) memcpy(writer->buffer + writer->used, data, bytes);
  writer->used += bytes;
  return RUNG_OK;
}

/* A rename is safe over a power cut only once its folder is on the disk; file systems that cannot do that say so and
 * nothing is lost by ignoring it. */
static void sync_folder(const char *path) {
  char folder[4096];
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t)(slash - path) : 0;
  if (length >= sizeof folder) return;
  memcpy(folder, path, length);
  folder[length] = 0;
  if (length == 0) memcpy(folder, slash ? "/" : ".", 2);
  const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  (void)fsync(file);
  close(file);
}

rung_status rung_writer_commit(rung_writer *writer, rung_error *error) {
  rung_status status = flush(writer, error);
  if (!status && fsync(writer->file) && errno != EINVAL && errno != EROFS)
    status = rung_fail(error, RUNG_IO, "%s: flushing failed: %s", writer->path, strerror(errno));
  if (!status) {
    const int file = writer->file;
    writer->file = -1;
    if (close(file)) status = rung_fail(error, RUNG_IO, "%s: closing failed: %s", writer->path, strerror(errno));
  }
  if (!status && rename(writer->part, writer->path))
    status = rung_fail(error, RUNG_IO, "%s: renaming failed: %s", writer->path, strerror(errno));
  if (status) {
    rung_writer_discard(writer);
    return status;
  }
  sync_folder(writer->path);
  writer_free(writer);
  return RUNG_OK;
}

void rung_writer_discard(rung_writer *writer) {
  if (!writer) return;
  (void)unlink(writer->part);
  writer_free(writer);
}
