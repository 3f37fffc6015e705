/* SPDX-License-Identifier: MIT
 * The bit matrix on the CUDA device in its deterministic profile: whole and in chunks, alone and beside other sequences,
 * contiguous and paged, captured and launched one by one, the logits of each position are the same bits. On the tiny
 * models, and on the files that are named. Skipped where there is no GPU. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "bits.h"

static rung_host *host;
static const char *device = "cuda";
static int runs;

/* All ways through one generator; the first of all cases of a set is the reference. */
static void ways(const bits_case *c, const char *what, bool *first, uint64_t *want, uint64_t *got) {
  rung_error error = {RUNG_OK, ""};
  bits_world w;
  const rung_status status = bits_open(host, c, 0, &error, &w);
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", what, error.message);
  for (int beside = 0; beside <= 3 && !status; beside += 3)
    for (const int64_t *chunk = c->chunk; *chunk; chunk++) {
      if (!bits_run(w.g, c, w.info.vocabulary, *chunk, beside, *first ? want : got)) continue;
      if (!*first) bits_compare(want, got, c->length, what, *chunk, 0, beside);
      *first = false;
      runs++;
    }
  bits_close(&w);
}

static void matrix(const char *path, int64_t length, const int64_t *chunk, rung_quant quant, rung_type kv) {
  const char *file = strrchr(path, '/');
  uint64_t *want = calloc((size_t)length, sizeof *want), *got = calloc((size_t)length, sizeof *got);
  bool first = true;
  for (int graphs = 1; graphs >= 0; graphs--)
    for (int paged = 0; paged < 2; paged++) {
      char what[160];
      snprintf(what, sizeof what, "%.90s %s %s%s%s", file ? file + 1 : path,
               quant == RUNG_QUANT_EXACT ? "exact" : "fast", rung_type_name(kv), graphs ? "" : ", not captured",
               paged ? ", paged" : "");
      const bits_case c = {.path = path,
                           .quant = quant,
                           .kv = kv,
                           .length = length,
                           .chunk = chunk,
                           .largest_chunk = chunk[0],
                           .device = device,
                           .blocks = paged ? 4 * ((length + 63) / 64) : 0};
      setenv("RUNG_CUDA_GRAPHS", graphs ? "1" : "0", 1);
      ways(&c, what, &first, want, got);
    }
  unsetenv("RUNG_CUDA_GRAPHS");
  free(want);
  free(got);
}

static void all_of(const char *path, int64_t length, const int64_t *chunk) {
  matrix(path, length, chunk, RUNG_QUANT_FAST, RUNG_TYPE_F16);
  matrix(path, length, chunk, RUNG_QUANT_FAST, RUNG_TYPE_F32);
  matrix(path, length, chunk, RUNG_QUANT_EXACT, RUNG_TYPE_F16);
  matrix(path, length, chunk, RUNG_QUANT_EXACT, RUNG_TYPE_F32);
}

static void test_tiny(void) {
  static const int64_t chunk[] = {200, 1, 7, 64, 0};
  all_of(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf", 200, chunk);
  all_of(RUNG_SOURCE_DIR "/tests/models/tiny/gemma3.gguf", 200, chunk);
}

/* Longer than what one block of attention keeps to itself. */
static char **files;
static int file_count;
static void test_files(void) {
  static const int64_t chunk[] = {330, 1, 7, 64, 0};
  for (int i = 0; i < file_count; i++) {
    matrix(files[i], 330, chunk, RUNG_QUANT_FAST, RUNG_TYPE_F16);
    matrix(files[i], 330, chunk, RUNG_QUANT_EXACT, RUNG_TYPE_F16);
  }
}

int main(int argc, char **argv) {
  rung_error error = {RUNG_OK, ""};
  rung_device *there = NULL;
  /* RUNG_TEST_DEVICE=cpu: the test itself, where there is no GPU. */
  if (getenv("RUNG_TEST_DEVICE")) device = getenv("RUNG_TEST_DEVICE");
  CHECK_OK(rung_host_create(NULL, &error, &host));
  if (rung_device_create(host, device, NULL, &error, &there)) {
    printf("skipped: %s\n", error.message);
    rung_host_release(host);
    return 77;
  }
  rung_device_release(there);
  files = argv + 1;
  file_count = argc - 1;
  RUN(test_tiny);
  RUN(test_files);
  printf("%d ways to run a text\n", runs);
  rung_host_release(host);
  return TEST_END();
}
