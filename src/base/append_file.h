/* SPDX-License-Identifier: MIT
 * A file that is written as it comes and can be read by others meanwhile. For traces; results use rung_writer. */
#ifndef RUNG_BASE_APPEND_FILE_H
#define RUNG_BASE_APPEND_FILE_H

#include "base/host.h"

typedef struct rung_append_file {
  int file; /* -1: closed */
} rung_append_file;
/* Created, or emptied. */
rung_status rung_append_open(rung_append_file *file, rung_host *host, const char *path, rung_error *error);
/* All bytes go to the system in one call where it takes them. */
rung_status rung_append_put(rung_append_file *file, const void *data, size_t bytes, rung_error *error);
rung_status rung_append_close(rung_append_file *file, rung_error *error);

#endif
