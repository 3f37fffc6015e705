/* SPDX-License-Identifier: MIT
 * Replays a fuzz target without libFuzzer: the empty input, then every file of the folders and files given, and of each
 * file some truncations and single flipped bytes. A crash is the only way to fail. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long inputs;

/* In a block of exactly its size, so that a sanitizer sees a read past the end. */
static void run_one(const uint8_t *data, size_t size) {
  uint8_t *copy = (uint8_t *)malloc(size ? size : 1);
  if (!copy) exit(2);
  if (size) memcpy(copy, data, size);
  (void)LLVMFuzzerTestOneInput(copy, size);
  free(copy);
  inputs++;
}

static void run_variants(uint8_t *data, size_t size) {
  run_one(data, size);
  const size_t step = size / 64 + 1;
  for (size_t n = 0; n < size; n += step) {
    run_one(data, n);
    data[n] ^= 0x55;
    run_one(data, size);
    data[n] ^= 0x55;
  }
}

static void run_path(const char *path) {
  struct stat info;
  if (stat(path, &info)) return;
  if (S_ISDIR(info.st_mode)) {
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
      char inner[4096];
      if (entries[i]->d_name[0] != '.' &&
          snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) < (int)sizeof inner)
        run_path(inner);
      free(entries[i]);
    }
    free(entries);
    return;
  }
  FILE *file = fopen(path, "rb");
  uint8_t *data = (uint8_t *)malloc((size_t)info.st_size + 1);
  if (file && data) run_variants(data, fread(data, 1, (size_t)info.st_size, file));
  free(data);
  if (file) fclose(file);
}

int main(int argc, char **argv) {
  run_one(NULL, 0);
  for (int i = 1; i < argc; i++) run_path(argv[i]);
  printf("%s: %ld inputs\n", argv[0], inputs);
  return 0;
}
