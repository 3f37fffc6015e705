/* SPDX-License-Identifier: MIT
 * Files of a folder that is a cache: listing, removing, when they were last used. Failures are answers here, not
 * errors: whoever keeps a cache can do without it. */
#ifndef RUNG_BASE_FOLDER_H
#define RUNG_BASE_FOLDER_H

#include "base/host.h"

/* Makes a folder and those above it; true if it is there afterwards. */
bool rung_folder_make(const char *path);

typedef struct rung_folder_entry {
  const char *name; /* for the call */
  uint64_t bytes;
  int64_t used_ns, modified_ns; /* wall clock; used: read or written, whichever was later */
} rung_folder_entry;
/* Every regular file whose name does not begin with a point, in no order. */
typedef void rung_folder_fn(void *self, const rung_folder_entry *entry);
rung_status rung_folder_scan(rung_host *host, const char *path, rung_folder_fn *fn, void *self, rung_error *error);

bool rung_file_remove(const char *path);
/* Says that the file was used now; its time of modification stays. */
void rung_file_touch(const char *path);
/* Was this file, half written by rung_writer, left behind by a process that is gone? */
bool rung_file_is_left_behind(const char *path);
int64_t rung_wall_clock_ns(void);

#endif
