/* SPDX-License-Identifier: MIT
 * Opening weights: the list of formats, each known by its first bytes. */
#include "base/map_file.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

typedef struct format {
  const char *name;
  bool (*recognise)(const uint8_t *data, uint64_t bytes);
  /* Takes the map, also on failure. */
  rung_status (*open)(rung_host *host, rung_map *map, const rung_source *source, rung_error *error,
                      rung_weights **out_weights);
} format;

static rung_status open_gguf(rung_host *host, rung_map *map, const rung_source *source, rung_error *error,
                             rung_weights **out_weights) {
  rung_gguf *gguf;
  RUNG_TRY(rung_gguf_open_map(host, map, error, &gguf));
  const rung_status status = rung_gguf_weights(gguf, source, error, out_weights);
  if (!status) (void)rung_gguf_release_metadata(gguf); /* nobody can ask for it through a store */
  rung_gguf_release(gguf);
  return status;
}

static rung_status open_safetensors(rung_host *host, rung_map *map, const rung_source *source, rung_error *error,
                                    rung_weights **out_weights) {
  (void)source;
  return rung_safetensors_open_map(host, map, error, out_weights);
}

static const format formats[] = {
    {"GGUF", rung_gguf_recognise, open_gguf},
    {"safetensors", rung_safetensors_recognise, open_safetensors},
};

static rung_status open_map(rung_host *host, rung_map *map, const rung_source *source, rung_error *error,
                            rung_weights **out_weights) {
  for (size_t i = 0; i < RUNG_COUNT(formats); i++) {
    if (formats[i].recognise(map->data, map->size)) return formats[i].open(host, map, source, error, out_weights);
  }
  rung_map_close(map);
  return rung_fail(error, RUNG_UNSUPPORTED,
                   "offset 0: the first bytes are of no known format; GGUF and safetensors are read");
}

rung_weights_options rung_weights_options_default(void) {
  return (rung_weights_options){.size = sizeof(rung_weights_options)};
}

static rung_status read_options(const rung_weights_options *options, rung_error *error, rung_weights_options *out) {
  *out = rung_weights_options_default();
  if (!options) return RUNG_OK;
  if (options->size == 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "weights options: size is 0");
  if (options->size >= offsetof(rung_weights_options, check) + sizeof options->check) out->check = options->check;
  return RUNG_OK;
}

static rung_status open_any(rung_host *host, const rung_source *source, rung_error *error, rung_weights **out_weights) {
  char folder[RUNG_PATH_BYTES];
  if (rung_find_folder(source, folder)) return rung_folder_weights(host, folder, source->mode, error, out_weights);
  rung_map map = {0};
  RUNG_TRY(rung_map_open(&map, host, source, error));
  return open_map(host, &map, source, error, out_weights);
}

rung_status rung_weights_open(rung_host *host, const rung_source *source, const rung_weights_options *options,
                              rung_error *error, rung_weights **out_weights) {
  if (!host || !source || !out_weights)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "host, source or result is NULL");
  rung_weights_options o;
  RUNG_TRY(read_options(options, error, &o));
  rung_weights *weights = NULL;
  rung_status status = open_any(host, source, error, &weights);
  if (!status && o.check) status = rung_weights_check(weights, error);
  if (status) {
    rung_weights_release(weights);
    if (source->kind == RUNG_SOURCE_PATH) return rung_fail_prefix(error, status, "%s", source->path);
    return status;
  }
  *out_weights = weights;
  return RUNG_OK;
}
