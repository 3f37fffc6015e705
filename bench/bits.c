/* SPDX-License-Identifier: MIT
 * Are a language model's logits the same bits in every setting?
 *
 *   bits MODEL [--threads N]
 *
 * One text is read and gone on with alone, in chunks of several sizes, beside 3 and 15 other sequences, with one thread
 * and with N. All logits must equal those of the first setting. Prints one JSON object; exit 1 if they differ. */
#include <rung/model.h>
#include <rung/rung.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/status.h"

enum { PROMPT = 160, DECODE = 8, ROWS = DECODE + 1, MOST_SEQUENCES = 16 };

typedef struct setting {
  int threads; /* 0: all */
  int32_t chunk, sequences;
} setting;
static const setting settings[] = {{0, 512, 1},  {0, 128, 1}, {0, 33, 1}, {0, 1, 1},   {0, 512, 4},
                                   {0, 512, 16}, {1, 512, 1}, {1, 33, 1}, {1, 512, 4}, {1, 64, 16}};

typedef struct job {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
  rung_error error;
  size_t vocabulary;
  int32_t ids[MOST_SEQUENCES][PROMPT + DECODE];
  float *first, *now; /* [ROWS][vocabulary] */
} job;

/* Sequence `i` has PROMPT - 7 * i tokens in front of those that are decoded; ours is in the last slot. */
static int32_t length_of(const setting *s, int32_t slot) { return PROMPT - 7 * (s->sequences - 1 - slot); }
static const int32_t *ids_of(const job *j, const setting *s, int32_t slot) { return j->ids[s->sequences - 1 - slot]; }

static rung_status read_prompts(job *j, const setting *s) {
  int32_t done[MOST_SEQUENCES] = {0};
  for (;;) {
    rung_rows rows[MOST_SEQUENCES];
    int32_t ids[512], count = 0, used = 0, wanted = -1;
    for (int32_t i = 0; i < s->sequences && used < s->chunk; i++) {
      const int32_t left = length_of(s, i) - done[i], room = s->chunk - used, take = left < room ? left : room;
      if (!take) continue;
      memcpy(ids + used, ids_of(j, s, i) + done[i], (size_t)take * sizeof *ids);
      rows[count++] = (rung_rows){i, take};
      used += take;
      done[i] += take;
      if (i == s->sequences - 1 && done[i] == PROMPT) wanted = used - 1;
    }
    if (!count) return RUNG_OK;
    const float *logits = NULL;
    RUNG_TRY(rung_generator_run(j->generator, rows, count, ids, &wanted, wanted >= 0, &logits));
    if (wanted >= 0) memcpy(j->now, logits, j->vocabulary * sizeof *logits);
  }
}

static rung_status decode(job *j, const setting *s) {
  for (int32_t step = 0; step < DECODE; step++) {
    rung_rows rows[MOST_SEQUENCES];
    int32_t ids[MOST_SEQUENCES];
    const int32_t wanted = s->sequences - 1;
    for (int32_t i = 0; i < s->sequences; i++) {
      rows[i] = (rung_rows){i, 1};
      ids[i] = ids_of(j, s, i)[PROMPT + step];
    }
    const float *logits;
    RUNG_TRY(rung_generator_run(j->generator, rows, s->sequences, ids, &wanted, 1, &logits));
    memcpy(j->now + (size_t)(step + 1) * j->vocabulary, logits, j->vocabulary * sizeof *logits);
  }
  return RUNG_OK;
}

static rung_status run(job *j, const setting *s) {
  rung_generate_options o = rung_generate_options_default();
  o.sequences = s->sequences;
  o.context = PROMPT + DECODE;
  o.chunk = s->chunk > s->sequences ? s->chunk : s->sequences;
  o.threads = s->threads;
  RUNG_TRY(rung_generator_create(j->model, &o, &j->error, &j->generator));
  rung_status status = read_prompts(j, s);
  if (!status) status = decode(j, s);
  if (status) status = rung_fail(&j->error, status, "%s", rung_generator_message(j->generator));
  rung_generator_destroy(j->generator);
  j->generator = NULL;
  return status;
}

static rung_status open_model(job *j, const char *path, int threads) {
  rung_device_options device = rung_device_options_default();
  device.threads = threads;
  RUNG_TRY(rung_host_create(NULL, &j->error, &j->host));
  RUNG_TRY(rung_device_create(j->host, "cpu", &device, &j->error, &j->device));
  const rung_source source = rung_source_path(path);
  RUNG_TRY(rung_model_open(j->device, &source, NULL, &j->error, &j->model));
  rung_model_info info;
  rung_model_get_info(j->model, &info);
  j->vocabulary = (size_t)info.vocabulary;
  j->first = malloc(ROWS * j->vocabulary * sizeof *j->first);
  j->now = malloc(ROWS * j->vocabulary * sizeof *j->now);
  if (!j->first || !j->now) return rung_fail(&j->error, RUNG_OUT_OF_MEMORY, "bits: no memory for logits");
  uint64_t state = 1;
  for (int i = 0; i < MOST_SEQUENCES; i++)
    for (int k = 0; k < PROMPT + DECODE; k++) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      j->ids[i][k] = (int32_t)((state >> 33) % j->vocabulary);
    }
  return RUNG_OK;
}

static rung_status compare_all(job *j, bool *out_equal) {
  const size_t count = sizeof settings / sizeof *settings;
  *out_equal = true;
  for (size_t i = 0; i < count; i++) {
    RUNG_TRY(run(j, &settings[i]));
    const size_t bytes = ROWS * j->vocabulary * sizeof *j->now;
    if (i == 0) {
      memcpy(j->first, j->now, bytes);
    } else if (memcmp(j->first, j->now, bytes) != 0) {
      const setting *s = &settings[i];
      fprintf(stderr, "bits: other logits with %d threads, chunks of %d, %d sequences\n", s->threads, s->chunk,
              s->sequences);
      *out_equal = false;
    }
  }
  printf("{\"settings\": %zu, \"rows\": %d, \"equal\": %s}\n", count, ROWS, *out_equal ? "true" : "false");
  return RUNG_OK;
}

int main(int count, char **argument) {
  const bool threads = count == 4 && strcmp(argument[2], "--threads") == 0;
  if (count != 2 && !threads) {
    fprintf(stderr, "usage: bits MODEL [--threads N]\nexample: RUNG_MAX_ISA=avx2 bits model.gguf --threads 2\n");
    return 2;
  }
  static job j;
  bool equal = false;
  rung_status status = open_model(&j, argument[1], threads ? atoi(argument[3]) : 0);
  if (!status) status = compare_all(&j, &equal);
  if (status) fprintf(stderr, "bits: %s\n", j.error.message);
  rung_model_release(j.model);
  rung_device_release(j.device);
  rung_host_release(j.host);
  free(j.first);
  free(j.now);
  return status || !equal ? 1 : 0;
}
