/* SPDX-License-Identifier: MIT
 * A model folder as Hugging Face's libraries write it: config.json and what lies beside it. */
#ifndef RUNG_MODELS_FOLDER_H
#define RUNG_MODELS_FOLDER_H

#include <rung/source.h>

#include "base/map_file.h"
#include "base/path.h"
#include "models/family.h"
#include "text/json.h"

/* A JSON file of the folder; `value` lies in the map. */
typedef struct rung_folder_json {
  rung_map map;
  rung_json value;
} rung_folder_json;

typedef struct rung_folder {
  rung_host *host;
  char path[RUNG_PATH_BYTES];
  rung_source_mode mode; /* mapped or read */
  rung_folder_json config;
} rung_folder;

/* Opens config.json of a folder, which is found as rung_find_folder does. */
rung_status rung_folder_open(rung_host *host, const rung_source *source, const char *path, rung_error *error,
                             rung_folder **out_folder);
void rung_folder_close(rung_folder *folder); /* NULL allowed */
/* Another file of it, such as "1_Pooling/config.json", which must be one JSON object (or list); messages begin with its
 * name. NOT_FOUND: there is none. The caller closes it with rung_folder_json_close. */
rung_status rung_folder_read(const rung_folder *folder, const char *name, rung_json_kind kind, rung_error *error,
                             rung_folder_json *out);
void rung_folder_json_close(rung_folder_json *file); /* zeroed allowed */

/* By model_type; refused with the list of those there are. */
rung_status rung_folder_family(const rung_folder *folder, rung_error *error, const rung_family **out_family);
/* config.json as metadata, and a configuration that says that this is a folder: to begin with. */
rung_metadata rung_folder_metadata(const rung_folder *folder);
rung_status rung_folder_configure(const rung_folder *folder, const rung_family *family, rung_config *out_config,
                                  rung_error *error);

#endif
