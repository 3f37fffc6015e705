/* SPDX-License-Identifier: MIT
 * The two usual sources, filled in. */
#include <rung/source.h>

rung_source rung_source_path(const char *path) {
  return (rung_source){.size = sizeof(rung_source), .kind = RUNG_SOURCE_PATH, .path = path, .descriptor = -1};
}

rung_source rung_source_memory(const void *data, uint64_t bytes) {
  return (rung_source){
      .size = sizeof(rung_source), .kind = RUNG_SOURCE_MEMORY, .data = data, .bytes = bytes, .descriptor = -1};
}
