/* SPDX-License-Identifier: MIT
 * Folders of safetensors: one file, or several that an index names. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors_internal.h"

static const char single[] = "model.safetensors", listed[] = "model.safetensors.index.json";

bool rung_find_folder(const rung_source *source, char out_path[RUNG_PATH_BYTES]) {
  if (source->kind != RUNG_SOURCE_PATH || !source->path) return false;
  rung_error ignored;
  if (rung_path_is_folder(source->path)) {
    const size_t length = strlen(source->path);
    if (length >= RUNG_PATH_BYTES) return false;
    memcpy(out_path, source->path, length + 1);
    return true;
  }
  const char *name = rung_path_name(source->path);
  if (strcmp(name, "config.json") != 0 && strcmp(name, listed) != 0) return false;
  return rung_path_is_file(source->path) && !rung_path_folder(source->path, &ignored, out_path);
}

/* ---- the index */

typedef struct listing {
  const char *tensor, *file;
  size_t tensor_length, file_length;
  uint64_t at; /* of the tensor's name in the index */
} listing;

typedef struct reading {
  rung_host *host;
  const char *folder;
  rung_source_mode mode;
  rung_map map;
  rung_arena arena;
  listing *rows; /* by file */
  size_t count;
  rung_error *error;
} reading;

static int by_file(const void *a, const void *b) {
  const listing *x = a, *y = b;
  const size_t least = x->file_length < y->file_length ? x->file_length : y->file_length;
  const int order = memcmp(x->file, y->file, least);
  if (order) return order;
  if (x->file_length != y->file_length) return x->file_length < y->file_length ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t place_of(const reading *x, rung_json value) {
  return (uint64_t)((const uint8_t *)value.text - x->map.data);
}

static rung_status read_rows(reading *x, rung_json map) {
  if (rung_json_kind_of(map) != RUNG_JSON_OBJECT)
    return rung_fail(x->error, RUNG_CORRUPT_FILE, "there is no object \"weight_map\"");
  x->rows = (listing *)rung_arena_array(&x->arena, rung_json_count(map), sizeof *x->rows);
  if (!x->rows) return rung_fail(x->error, RUNG_OUT_OF_MEMORY, "no memory for the index");
  rung_json_walk walk = rung_json_begin(map);
  for (rung_json name, file; rung_json_next(&walk, &name, &file); x->count++) {
    listing *row = &x->rows[x->count];
    row->at = place_of(x, name);
    RUNG_TRY(rung_safetensors_name(&x->arena, name, row->at, x->error, &row->tensor, &row->tensor_length));
    if (rung_json_kind_of(file) != RUNG_JSON_STRING)
      return rung_fail(x->error, RUNG_CORRUPT_FILE, "a file name expected at offset %" PRIu64, place_of(x, file));
    RUNG_TRY(rung_safetensors_name(&x->arena, file, place_of(x, file), x->error, &row->file, &row->file_length));
  }
  if (x->count) qsort(x->rows, x->count, sizeof *x->rows, by_file);
  return RUNG_OK;
}

static rung_status read_index(reading *x) {
  enum { LARGEST = 100000000 };
  if (x->map.size > LARGEST)
    return rung_fail(x->error, RUNG_CORRUPT_FILE, "%" PRIu64 " bytes; at most %d are allowed", x->map.size, LARGEST);
  rung_json whole;
  RUNG_TRY(rung_json_check((const char *)x->map.data, (size_t)x->map.size, 0, x->error, &whole));
  bool twice;
  const rung_json map = rung_json_find(whole, "weight_map", &twice);
  if (twice) return rung_fail(x->error, RUNG_CORRUPT_FILE, "\"weight_map\" comes twice");
  return read_rows(x, map);
}

/* ---- the files it names */

static rung_status add_file(const char *path, rung_source_mode mode, rung_weights *weights, rung_error *error,
                            int *out_source) {
  rung_source source = rung_source_path(path);
  source.mode = mode;
  rung_map map = {0};
  RUNG_TRY(rung_map_open(&map, rung_weights_host(weights), &source, error));
  const rung_status status = rung_safetensors_add(weights, &map, error, out_source);
  return status ? rung_fail_prefix(error, status, "%s", rung_path_name(path)) : RUNG_OK;
}

/* Each tensor of rows [from, to), which name one file, is in the source made of it; names come once. */
static rung_status check_rows(const reading *x, size_t from, size_t to, const rung_weights *weights, int source) {
  bool *found = rung_host_array(x->host, rung_weights_count(weights), sizeof *found);
  if (!found) return rung_fail(x->error, RUNG_OUT_OF_MEMORY, "no memory for the index");
  rung_status status = RUNG_OK;
  for (size_t i = from; i < to && !status; i++) {
    const listing *row = &x->rows[i];
    const rung_safetensors_shown shown = rung_safetensors_show(row->tensor, row->tensor_length);
    const char *name = rung_arena_text((rung_arena *)&x->arena, row->tensor, row->tensor_length);
    const rung_tensor_entry *entry = name ? rung_weights_find(weights, name) : NULL;
    if (!name)
      status = rung_fail(x->error, RUNG_OUT_OF_MEMORY, "no memory for the index");
    else if (!entry || entry->source != source)
      status = rung_fail(x->error, RUNG_CORRUPT_FILE, "tensor '%s' at offset %" PRIu64 " is not in the file '%s'",
                         shown.text, row->at, rung_safetensors_show(row->file, row->file_length).text);
    else if (found[entry->index])
      status =
          rung_fail(x->error, RUNG_CORRUPT_FILE, "tensor '%s' at offset %" PRIu64 " comes twice", shown.text, row->at);
    else
      found[entry->index] = true;
  }
  rung_host_free(x->host, RUNG_MEMORY_host, found, rung_weights_count(weights) * sizeof *found);
  return status;
}

static rung_status add_files(const reading *x, rung_weights *weights) {
  char path[RUNG_PATH_BYTES];
  for (size_t from = 0, to; from < x->count; from = to) {
    const listing *row = &x->rows[from];
    for (to = from + 1; to < x->count; to++)
      if (x->rows[to].file_length != row->file_length || memcmp(x->rows[to].file, row->file, row->file_length) != 0)
        break;
    rung_status status = rung_path_inside(x->host, x->folder, row->file, row->file_length, x->error, path);
    int source;
    if (!status) status = add_file(path, x->mode, weights, x->error, &source);
    if (status)
      return rung_fail_prefix(x->error, status, "file '%s' of tensor '%s'",
                              rung_safetensors_show(row->file, row->file_length).text,
                              rung_safetensors_show(row->tensor, row->tensor_length).text);
    RUNG_TRY(check_rows(x, from, to, weights, source));
  }
  return RUNG_OK;
}

static rung_status add_listed(const char *path, const char *folder, rung_source_mode mode, rung_weights *weights,
                              rung_error *error) {
  reading x = {.host = rung_weights_host(weights), .folder = folder, .mode = mode, .error = error};
  rung_source source = rung_source_path(path);
  source.mode = mode;
  RUNG_TRY(rung_map_open(&x.map, x.host, &source, error));
  rung_arena_init(&x.arena, x.host);
  rung_status status = read_index(&x);
  if (!status) status = add_files(&x, weights);
  rung_arena_finish(&x.arena);
  rung_map_close(&x.map);
  return status ? rung_fail_prefix(error, status, "%s", listed) : RUNG_OK;
}

static rung_status add_folder(const char *folder, rung_source_mode mode, rung_weights *weights, rung_error *error) {
  char path[RUNG_PATH_BYTES];
  int source;
  RUNG_TRY(rung_path_join(folder, single, error, path));
  if (rung_path_is_file(path)) return add_file(path, mode, weights, error, &source);
  RUNG_TRY(rung_path_join(folder, listed, error, path));
  if (rung_path_is_file(path)) return add_listed(path, folder, mode, weights, error);
  return rung_fail(error, RUNG_NOT_FOUND, "there is neither %s nor %s", single, listed);
}

rung_status rung_folder_weights(rung_host *host, const char *folder, rung_source_mode mode, rung_error *error,
                                rung_weights **out_weights) {
  rung_weights *weights;
  RUNG_TRY(rung_weights_create(host, error, &weights));
  const rung_status status = add_folder(folder, mode, weights, error);
  if (status) {
    rung_weights_release(weights);
    return status;
  }
  *out_weights = weights;
  return RUNG_OK;
}
