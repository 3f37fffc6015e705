/* SPDX-License-Identifier: MIT
 * Where the bytes of a model come from. */
#ifndef RUNG_SOURCE_H
#define RUNG_SOURCE_H

#include <rung/host.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_source_kind {
  RUNG_SOURCE_PATH,       /* a file by name, or a model folder where one can be opened */
  RUNG_SOURCE_DESCRIPTOR, /* an open descriptor; borrowed, may be closed after the call */
  RUNG_SOURCE_MEMORY,     /* bytes of the caller's; must outlive what is made from them */
  RUNG_SOURCE_READ        /* a callback; read whole */
} rung_source_kind;

typedef enum rung_source_mode {
  RUNG_SOURCE_MAP, /* mapped read-only; the file must not be changed while it is in use (a listed limit) */
  RUNG_SOURCE_COPY /* read into memory */
} rung_source_mode;

/* Reads up to `bytes` at `offset`; returns how many, 0 at the end, negative on error. */
typedef int64_t rung_read_fn(void *self, uint64_t offset, void *buffer, size_t bytes);

typedef struct rung_source {
  size_t size; /* sizeof(rung_source) */
  rung_source_kind kind;
  rung_source_mode mode; /* for PATH and DESCRIPTOR */
  const char *path;
  int descriptor;
  const void *data;
  uint64_t bytes; /* of MEMORY and READ */
  rung_read_fn *read;
  void *read_self;
} rung_source;

RUNG_API rung_source rung_source_path(const char *path);
RUNG_API rung_source rung_source_memory(const void *data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
