/* SPDX-License-Identifier: MIT
 * safetensors: a file whose JSON header lists tensors in front of their bytes, and folders of them, in one file or in
 * several through an index. Read in place. */
#ifndef RUNG_FORMATS_SAFETENSORS_H
#define RUNG_FORMATS_SAFETENSORS_H

#include "base/path.h"
#include "weights/store.h"

/* Do these look like the first bytes: the length of a header that fits, and '{'? */
bool rung_safetensors_recognise(const uint8_t *data, uint64_t bytes);
/* A store over one file. The map is taken, also on failure. */
rung_status rung_safetensors_open_map(rung_host *host, rung_map *map, rung_error *error, rung_weights **out_weights);

/* Is the source a model folder: a folder, or config.json or model.safetensors.index.json in it? Its path. */
bool rung_find_folder(const rung_source *source, char out_path[RUNG_PATH_BYTES]);
/* A store over model.safetensors of a folder, or over the files that model.safetensors.index.json lists. Each tensor of
 * the index must be in the file that it says; files must lie in the folder, also through symbolic links. */
rung_status rung_folder_weights(rung_host *host, const char *folder, rung_source_mode mode, rung_error *error,
                                rung_weights **out_weights);

#endif
