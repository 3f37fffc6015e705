/* SPDX-License-Identifier: MIT
 * Bytes of a file or of memory: mapped, read, or borrowed. The only place that opens files. */
#ifndef RUNG_BASE_MAP_FILE_H
#define RUNG_BASE_MAP_FILE_H

#include <rung/source.h>

#include "base/host.h"

/* What a file is known by while nobody changes it. */
typedef struct rung_stamp {
  uint64_t device, inode, bytes;
  int64_t modified_ns; /* wall clock */
} rung_stamp;

typedef struct rung_map {
  rung_host *host;
  const uint8_t *data;
  uint64_t size;
  enum { RUNG_MAP_NONE, RUNG_MAP_PAGES, RUNG_MAP_HEAP, RUNG_MAP_BORROWED } kind;
  void *base; /* what to unmap or free */
  size_t base_bytes;
  rung_memory_class class_; /* of heap copies */
  rung_stamp stamp;         /* of a file; inode 0: the source is none */
} rung_map;

rung_status rung_map_open(rung_map *map, rung_host *host, const rung_source *source, rung_error *error);
void rung_map_close(rung_map *map); /* zeroed allowed */
/* Tells the system that the pages inside [offset, offset + bytes) will not be needed soon: resident memory shrinks,
 * later reads fetch them again. Nothing for sources that we do not own. Returns the bytes let go. */
uint64_t rung_map_let_go(const rung_map *map, uint64_t offset, uint64_t bytes);
void rung_map_will_need(const rung_map *map, uint64_t offset, uint64_t bytes);

/* A file written beside its final name and renamed at the end; nothing remains on failure. */
typedef struct rung_writer rung_writer;
rung_status rung_writer_open(rung_host *host, const char *path, rung_error *error, rung_writer **out_writer);
rung_status rung_writer_put(rung_writer *writer, const void *data, size_t bytes, rung_error *error);
rung_status rung_writer_commit(rung_writer *writer,
                               rung_error *error); /* flush, rename; the writer is gone either way */
void rung_writer_discard(rung_writer *writer);

#endif
