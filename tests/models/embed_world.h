/* SPDX-License-Identifier: MIT
 * Encoders and texts of ids, for tests. */
#ifndef RUNG_TESTS_EMBED_WORLD_H
#define RUNG_TESTS_EMBED_WORLD_H

#include <math.h>
#include <rung/embed.h>

#include "../test.h"
#include "formats/npy.h"

#define TINY_MODELS RUNG_SOURCE_DIR "/tests/models/tiny/"
enum { MOST_TEXTS = 2048 };

/* Texts as a file has them: one a line. */
typedef struct texts {
  int32_t *ids;
  size_t total, count;
  rung_token_list text[MOST_TEXTS];
} texts;

static inline void texts_read(texts *t, const char *path) {
  *t = (texts){0};
  FILE *f = fopen(path, "r");
  CHECK(f != NULL);
  if (!f) return;
  t->ids = malloc(1 << 20);
  size_t first = 0;
  for (int c; (c = fgetc(f)) != EOF;) {
    if (c == '\n' || c == ' ') {
      if (c == '\n') {
        t->text[t->count++] = (rung_token_list){t->ids + first, t->total - first};
        first = t->total;
      }
      continue;
    }
    ungetc(c, f);
    if (fscanf(f, "%d", &t->ids[t->total++]) != 1) break;
  }
  fclose(f);
}
static inline void texts_free(texts *t) { free(t->ids); }

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_error error;
} world;

static inline rung_status world_open_as(world *w, const char *device, int threads, const char *path,
                                        rung_precision precision) {
  *w = (world){0};
  const rung_source source = rung_source_path(path);
  rung_device_options options = rung_device_options_default();
  rung_model_options model = rung_model_options_default();
  options.threads = threads;
  model.precision = precision;
  RUNG_TRY(rung_host_create(NULL, &w->error, &w->host));
  RUNG_TRY(rung_device_create(w->host, device, &options, &w->error, &w->device));
  return rung_model_open(w->device, &source, &model, &w->error, &w->model);
}
static inline rung_status world_open(world *w, const char *device, int threads, const char *path) {
  return world_open_as(w, device, threads, path, rung_precision_f32());
}
static inline void world_close(world *w) {
  rung_model_release(w->model);
  rung_device_release(w->device);
  if (w->host) {
    const rung_memory m = rung_host_memory(w->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(w->host);
}

static inline rung_encoder *world_encoder(world *w, const rung_encoder_options *options) {
  rung_encoder *e = NULL;
  const rung_status status = rung_encoder_create(w->model, options, &w->error, &e);
  test_state.checks++;
  if (status) TEST_FAIL_("encoder: %s", w->error.message);
  return e;
}
/* Vectors of texts, the caller's to free. */
static inline float *world_vectors(rung_encoder *e, const rung_token_list *text, size_t count) {
  rung_encoder_info info;
  rung_encoder_get_info(e, &info);
  const size_t n = (count + 1) * (size_t)info.dims;
  float *out = malloc(n * sizeof *out);
  for (size_t i = 0; i < n; i++) out[i] = NAN;
  const rung_status status = rung_encoder_run(e, text, count, out);
  test_state.checks++;
  if (status) TEST_FAIL_("run: %s", rung_encoder_message(e));
  return out;
}

#endif
