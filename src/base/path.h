/* SPDX-License-Identifier: MIT
 * Paths: what is there, names put together, and names that a file gives, which must not lead out of its folder. */
#ifndef RUNG_BASE_PATH_H
#define RUNG_BASE_PATH_H

#include "base/host.h"

enum { RUNG_PATH_BYTES = 4096 }; /* with the end */

bool rung_path_is_folder(const char *path);
bool rung_path_is_file(const char *path); /* a regular one; links are followed */
/* "folder/name"; OVERFLOW if it is too long. */
rung_status rung_path_join(const char *folder, const char *name, rung_error *error, char out[RUNG_PATH_BYTES]);
/* The folder of a file: what stands before the last '/', "." without one. */
rung_status rung_path_folder(const char *path, rung_error *error, char out[RUNG_PATH_BYTES]);
/* What stands behind the last '/'. */
const char *rung_path_name(const char *path);

/* The path of a file that another file names. Refused are names that are absolute, empty, have a part ".." or a byte
 * that is no printable character, and symbolic links that lead out of the folder; NOT_FOUND if nothing is there. */
rung_status rung_path_inside(rung_host *host, const char *folder, const char *name, size_t name_length,
                             rung_error *error, char out[RUNG_PATH_BYTES]);

#endif
