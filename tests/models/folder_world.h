/* SPDX-License-Identifier: MIT
 * A model from a folder or file, and configurations that are changed and tried. For tests of families and of folders. */
#ifndef RUNG_TESTS_FOLDER_WORLD_H
#define RUNG_TESTS_FOLDER_WORLD_H

#include <rung/model.h>
#include <stdlib.h>
#include <unistd.h>

#include "../test.h"

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_error error;
} world;

static inline rung_status open_world(world *w, const char *device, const char *path, rung_quant quant,
                                     rung_source_mode mode) {
  *w = (world){0};
  rung_model_options options = rung_model_options_default();
  options.quant = quant;
  rung_source source = rung_source_path(path);
  source.mode = mode;
  RUNG_TRY(rung_host_create(NULL, &w->error, &w->host));
  RUNG_TRY(rung_device_create(w->host, device, NULL, &w->error, &w->device));
  return rung_model_open(w->device, &source, &options, &w->error, &w->model);
}

static inline void close_world(world *w) {
  rung_model_release(w->model);
  rung_device_release(w->device);
  if (w->host) CHECK_EQ_I64(rung_host_memory(w->host).weights, 0);
  rung_host_release(w->host);
}

/* ---- a folder that goes when the test ends */

static char scratch[64];

static inline bool begin_scratch(void) {
  const char *folder = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%s/rung-folders-XXXXXX", folder && strlen(folder) < 32 ? folder : "/tmp");
  return mkdtemp(scratch) != NULL;
}

static inline void end_scratch(void) {
  static const char *const names[] = {"config.json", "model.safetensors"};
  char path[256];
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
    unlink(path);
  }
  rmdir(scratch);
}

static inline void write_file(const char *name, const char *text, size_t bytes) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(text, 1, bytes, f) == bytes);
  if (f) fclose(f);
}

static inline char *read_text(const char *path, size_t *out_bytes) {
  FILE *f = fopen(path, "rb");
  enum { MOST = 1 << 20 };
  char *text = calloc(1, MOST);
  *out_bytes = f && text ? fread(text, 1, MOST - 2, f) : 0;
  if (f) fclose(f);
  return text;
}

/* ---- configurations that are changed */

/* Status and message of opening `folder` with the first `from` of its config.json replaced by `to`. */
static inline rung_status try_config(const char *folder, const char *from, const char *to, rung_error *out_error) {
  char path[1200], link[256];
  size_t bytes;
  snprintf(path, sizeof path, "%s/config.json", folder);
  char *text = read_text(path, &bytes);
  char *at = strstr(text, from);
  CHECK(at != NULL);
  if (at) {
    char *changed = calloc(1, bytes + strlen(to) + 1);
    memcpy(changed, text, (size_t)(at - text));
    strcpy(changed + (at - text), to);
    strcat(changed, at + strlen(from));
    write_file("config.json", changed, strlen(changed));
    free(changed);
  }
  free(text);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  snprintf(link, sizeof link, "%s/model.safetensors", scratch);
  unlink(link);
  CHECK(symlink(path, link) == 0);
  world w;
  const rung_status status = open_world(&w, "ref", scratch, RUNG_QUANT_EXACT, RUNG_SOURCE_MAP);
  *out_error = w.error;
  close_world(&w);
  return status;
}

typedef struct config_change {
  const char *name, *from, *to;
  rung_status status;
  const char *says;
} config_change;

/* Folders are called `front` name `back`. */
static inline void check_changes(const char *front, const char *back, const config_change *changes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const config_change *c = &changes[i];
    char folder[1100];
    rung_error error = {0};
    snprintf(folder, sizeof folder, "%s%s%s", front, c->name, back);
    const rung_status status = try_config(folder, c->from, c->to, &error);
    CHECK_STATUS(status, c->status);
    CHECK(strstr(error.message, c->says) != NULL);
    if (status != c->status || !strstr(error.message, c->says))
      fprintf(stderr, "  %s: %s -> %s: %s\n", c->name, c->from, c->to, error.message);
  }
}

#endif
