/* SPDX-License-Identifier: MIT
 * Fuzz target of the safetensors reader: opens the bytes and reads all of what was let through. What begins as a JSON
 * object is an index instead, of a folder with two files. */
#define _GNU_SOURCE
#include <unistd.h>

#include "formats/make_safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void put(const char *name, const void *data, size_t bytes) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(data, 1, bytes, f) != bytes) abort();
  fclose(f);
}

static void remove_folder(void) {
  static const char *const names[] = {"1", "2", "model.safetensors.index.json"};
  char path[128];
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/rung-fuzz-XXXXXX");
  if (!mkdtemp(folder)) abort();
  atexit(remove_folder);
  const st_file a = st_make("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
                b = st_make("{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
  put("1", a.data, a.bytes);
  put("2", b.data, b.bytes);
  free(a.data);
  free(b.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rung_host *host;
  rung_error error;
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  rung_source source = rung_source_memory(data, size);
  if (size && data[0] == '{') {
    if (!folder[0]) make_folder();
    put("model.safetensors.index.json", data, size);
    source = rung_source_path(folder);
  }
  rung_weights *weights = NULL;
  if (rung_weights_open(host, &source, NULL, &error, &weights)) {
    if (!error.message[0]) abort();
    return 0;
  }
  (void)st_walk(weights);
  rung_weights_release(weights);
  return 0;
}
