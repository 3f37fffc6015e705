/* SPDX-License-Identifier: MIT
 * Opening sources: a file mapped or read, memory borrowed, a callback read whole. */
#define _GNU_SOURCE
#include "base/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t no_bytes[1] = {0}; /* data of an empty source: never NULL, never read */

/* Fetches bytes at an offset; same contract as rung_read_fn, with errno on failure. */
typedef int64_t fetch_fn(void *self, uint64_t offset, void *buffer, size_t bytes);

static int64_t fetch_file(void *self, uint64_t offset, void *buffer, size_t bytes) {
  /* One call moves at most 2 GiB anyway; smaller pieces keep a slow disk interruptible by a debugger or a signal. */
  const size_t piece = bytes < ((size_t)64 << 20) ? bytes : (size_t)64 << 20;
  ssize_t got;
  do got = pread(*(int *)self, buffer, piece, (off_t)offset);
  while (got < 0 && errno == EINTR);
  return got;
}

/* Fills a heap block with all `bytes` of a source. */
static rung_status read_whole(rung_map *map, uint64_t bytes, fetch_fn *fetch, void *self, const char *name,
                              rung_error *error) {
  if (bytes > SIZE_MAX / 2) return rung_fail(error, RUNG_OVERFLOW, "%s: %llu bytes", name, (unsigned long long)bytes);
  map->size = bytes;
  map->kind = RUNG_MAP_BORROWED;
  map->data = no_bytes;
  if (!bytes) return RUNG_OK;
  map->base = rung_host_alloc_raw(map->host, map->class_, (size_t)bytes, 64);
  if (!map->base) {
    RUNG_TRY(rung_host_would_fit(map->host, bytes, name, error));
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s: %llu bytes to read it into", name, (unsigned long long)bytes);
  }
  map->base_bytes = (size_t)bytes;
  map->kind = RUNG_MAP_HEAP;
  map->data = (const uint8_t *)map->base;
  for (uint64_t at = 0; at < bytes;) {
    errno = 0;
    const bool fault = rung_host_fault(map->host, RUNG_FAULT_READ);
    const int64_t got = fault ? -1 : fetch(self, at, (uint8_t *)map->base + at, (size_t)(bytes - at));
    if (got < 0 || (uint64_t)got > bytes - at)
      return rung_fail(error, RUNG_IO, "%s: reading at offset %llu failed%s%s", name, (unsigned long long)at,
                       errno ? ": " : "", errno ? strerror(errno) : "");
    if (got == 0)
      return rung_fail(error, RUNG_IO, "%s: ends at offset %llu of %llu", name, (unsigned long long)at,
                       (unsigned long long)bytes);
    at += (uint64_t)got;
  }
  return RUNG_OK;
}

static rung_status map_pages(rung_map *map, int file, uint64_t bytes, const char *name, rung_error *error) {
  map->size = bytes;
  map->kind = RUNG_MAP_BORROWED;
  map->data = no_bytes;
  if (!bytes) return RUNG_OK;
  if (bytes > SIZE_MAX / 2) return rung_fail(error, RUNG_OVERFLOW, "%s: %llu bytes", name, (unsigned long long)bytes);
  errno = ENOMEM;
  void *p = MAP_FAILED;
  if (!rung_host_fault(map->host, RUNG_FAULT_MAP)) p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (p == MAP_FAILED)
    return rung_fail(error, errno == ENOMEM ? RUNG_OUT_OF_MEMORY : RUNG_SYSTEM, "%s: mapping %llu bytes: %s", name,
                     (unsigned long long)bytes, strerror(errno));
  (void)madvise(p, (size_t)bytes, MADV_NOHUGEPAGE); /* or one byte that is read keeps 2 MiB resident */
  map->kind = RUNG_MAP_PAGES;
  map->base = p;
  map->base_bytes = (size_t)bytes;
  map->data = (const uint8_t *)p;
  return RUNG_OK;
}

static rung_status open_file(rung_map *map, int file, const rung_source *source, const char *name, rung_error *error) {
  struct stat info;
  if (fstat(file, &info)) return rung_fail(error, RUNG_IO, "%s: %s", name, strerror(errno));
  if (!S_ISREG(info.st_mode))
    return rung_fail(error, RUNG_UNSUPPORTED, "%s: not a regular file; hand its bytes in as memory or a read callback",
                     name);
  map->stamp = (rung_stamp){.device = (uint64_t)info.st_dev,
                            .inode = (uint64_t)info.st_ino,
                            .bytes = (uint64_t)info.st_size,
                            .modified_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
  if (source->mode == RUNG_SOURCE_COPY) return read_whole(map, (uint64_t)info.st_size, fetch_file, &file, name, error);
  return map_pages(map, file, (uint64_t)info.st_size, name, error);
}

static rung_status open_path(rung_map *map, const rung_source *source, rung_error *error) {
  if (!source->path) return rung_fail(error, RUNG_INVALID_ARGUMENT, "source: path is NULL");
  errno = EIO;
  int file = -1;
  if (!rung_host_fault(map->host, RUNG_FAULT_READ)) {
    /* Without O_NONBLOCK a named pipe that nobody writes would block here. */
    do file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file < 0 && errno == EINTR);
  }
  if (file < 0)
    return rung_fail(error, errno == ENOENT ? RUNG_NOT_FOUND : RUNG_IO, "%s: %s", source->path, strerror(errno));
  const rung_status status = open_file(map, file, source, source->path, error);
  close(file);
  return status;
}

static rung_status open_source(rung_map *map, const rung_source *source, rung_error *error) {
  switch (source->kind) {
    case RUNG_SOURCE_PATH:
      return open_path(map, source, error);
    case RUNG_SOURCE_DESCRIPTOR:
      return open_file(map, source->descriptor, source, "descriptor", error);
    case RUNG_SOURCE_MEMORY:
      if (!source->data && source->bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "source: data is NULL");
      if (source->bytes > SIZE_MAX / 2) return rung_fail(error, RUNG_OVERFLOW, "source: more bytes than addresses");
      map->kind = RUNG_MAP_BORROWED;
      map->data = source->data ? (const uint8_t *)source->data : no_bytes;
      map->size = source->bytes;
      return RUNG_OK;
    case RUNG_SOURCE_READ:
      if (!source->read) return rung_fail(error, RUNG_INVALID_ARGUMENT, "source: read is NULL");
      return read_whole(map, source->bytes, source->read, source->read_self, "read callback", error);
  }
  return rung_fail(error, RUNG_INVALID_ARGUMENT, "source: kind %d does not exist", (int)source->kind);
}

rung_status rung_map_open(rung_map *map, rung_host *host, const rung_source *source, rung_error *error) {
  *map = (rung_map){.host = host, .class_ = RUNG_MEMORY_weights};
  if (!source || !source->size)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "source: size is 0; set it to its sizeof");
  rung_source s = {0};
  memcpy(&s, source, source->size < sizeof s ? source->size : sizeof s);
  const rung_status status = open_source(map, &s, error);
  if (status) rung_map_close(map);
  return status;
}

void rung_map_close(rung_map *map) {
  if (!map) return;
  if (map->kind == RUNG_MAP_PAGES) munmap(map->base, map->base_bytes);
  if (map->kind == RUNG_MAP_HEAP) rung_host_free(map->host, map->class_, map->base, map->base_bytes);
  *map = (rung_map){0};
}

/* The whole pages inside [offset, offset + bytes) of a mapping; false if there is none. */
static bool inner_pages(const rung_map *map, uint64_t offset, uint64_t bytes, uint8_t **out_start, size_t *out_bytes) {
  if (map->kind != RUNG_MAP_PAGES || offset >= map->size) return false;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t end = bytes > map->size - offset ? map->size : offset + bytes;
  const uint64_t start = (offset + page - 1) / page * page;
  /* The last page of the file ends with the mapping: it counts as whole if the range reaches the end. */
  end = end == map->size ? (end + page - 1) / page * page : end / page * page;
  if (start >= end) return false;
  *out_start = (uint8_t *)map->base + start;
  *out_bytes = (size_t)(end - start);
  return true;
}

uint64_t rung_map_let_go(const rung_map *map, uint64_t offset, uint64_t bytes) {
  uint8_t *start;
  size_t length;
  if (!inner_pages(map, offset, bytes, &start, &length) || madvise(start, length, MADV_DONTNEED)) return 0;
  return length;
}

void rung_map_will_need(const rung_map *map, uint64_t offset, uint64_t bytes) {
  uint8_t *start;
  size_t length;
  if (inner_pages(map, offset, bytes, &start, &length)) (void)madvise(start, length, MADV_WILLNEED);
}
