/* SPDX-License-Identifier: MIT
 * Vectors of texts by an encoder that stays loaded.
 *
 *   encode FOLDER [--threads N] [--rows N] [--longest N] [--precision f32|f16|bf16|mixed|mixed-f16]
 *
 * Commands come on standard input, see serve.h. "ids FILE": each line holds the ids of a text. "text FILE": each line is
 * a text, and cutting it into tokens is part of the work. The result is a row for each line. */
#include <rung/embed.h>
#include <rung/rung.h>
#include <stdio.h>

#include "base/compiler.h"
#include "serve.h"

typedef struct job {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_encoder *encoder;
  rung_error error;
  int64_t dims;
  char *file; /* what was loaded, and what its lines are in it or in memory of their own */
  char **line;
  rung_token_list *list;
  size_t lines;
  bool text;
  float *vectors;
} job;

static void forget(job *j) {
  for (size_t i = 0; !j->text && i < j->lines && j->list; i++) free((void *)(uintptr_t)j->list[i].ids);
  free(j->file);
  free(j->line);
  free(j->list);
  free(j->vectors);
  j->file = NULL;
  j->line = NULL;
  j->list = NULL;
  j->vectors = NULL;
  j->lines = 0;
}

static bool fail(job *j, const char *text) {
  snprintf(j->error.message, sizeof j->error.message, "%s", text);
  return false;
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  char *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
  if (data) data[fread(data, 1, (size_t)size, f)] = 0;
  fclose(f);
  return data;
}

static bool read_ids(const char *line, rung_token_list *out) {
  const size_t most = strlen(line) / 2 + 1;
  int32_t *ids = malloc(most * sizeof *ids);
  out->ids = ids;
  out->count = 0;
  if (!ids) return false;
  for (char *end; *line; line = end) {
    const long id = strtol(line, &end, 10);
    if (end == line) break;
    ids[out->count++] = (int32_t)id;
  }
  return true;
}

static bool load(void *self, const char *kind, const char *path) {
  job *j = self;
  forget(j);
  j->text = strcmp(kind, "text") == 0;
  j->file = read_file(path);
  if (!j->file) return fail(j, "the file cannot be read");
  size_t most = 1;
  for (const char *c = j->file; *c; c++) most += *c == '\n';
  j->line = calloc(most, sizeof *j->line);
  j->list = calloc(most, sizeof *j->list);
  j->vectors = malloc(most * (size_t)j->dims * sizeof *j->vectors);
  if (!j->line || !j->list || !j->vectors) return fail(j, "out of memory");
  for (char *at = j->file; *at;) {
    char *stop = at + strcspn(at, "\n");
    const bool last = !*stop;
    *stop = 0;
    j->line[j->lines] = at;
    if (!j->text && !read_ids(at, &j->list[j->lines])) return fail(j, "out of memory");
    j->lines++;
    at = last ? stop : stop + 1;
  }
  return true;
}

static bool run(void *self) {
  job *j = self;
  size_t cut = 0;
  rung_status status = RUNG_OK;
  for (; j->text && cut < j->lines && !status; cut++) {
    int32_t *ids = NULL;
    status = rung_encoder_tokens(j->encoder, j->line[cut], strlen(j->line[cut]), true, &ids, &j->list[cut].count);
    j->list[cut].ids = ids;
  }
  if (!status) status = rung_encoder_run(j->encoder, j->list, j->lines, j->vectors);
  for (size_t i = 0; i < cut; i++) rung_ids_free(j->model, (int32_t *)(uintptr_t)j->list[i].ids, j->list[i].count);
  return status ? fail(j, rung_encoder_message(j->encoder)) : true;
}

static const float *result(void *self, size_t *out_count) {
  const job *j = self;
  *out_count = j->lines * (size_t)j->dims;
  return j->vectors;
}

static const char *message(void *self) { return ((const job *)self)->error.message; }

static rung_status open_encoder(job *j, const char *path, int threads, rung_precision precision,
                                const rung_encoder_options *options) {
  rung_device_options device = rung_device_options_default();
  device.threads = threads;
  RUNG_TRY(rung_host_create(NULL, &j->error, &j->host));
  RUNG_TRY(rung_device_create(j->host, "cpu", &device, &j->error, &j->device));
  const rung_source source = rung_source_path(path);
  rung_model_options model = rung_model_options_default();
  model.precision = precision;
  RUNG_TRY(rung_model_open(j->device, &source, &model, &j->error, &j->model));
  RUNG_TRY(rung_encoder_create(j->model, options, &j->error, &j->encoder));
  rung_encoder_info info;
  rung_encoder_get_info(j->encoder, &info);
  j->dims = info.dims;
  return RUNG_OK;
}

int main(int count, char **argument) {
  int threads = 0;
  rung_precision precision = rung_precision_f32();
  rung_encoder_options options = rung_encoder_options_default();
  bool usage = count < 2;
  for (int i = 2; i < count && !usage; i += 2) {
    const char *value = i + 1 < count ? argument[i + 1] : NULL;
    if (value && strcmp(argument[i], "--threads") == 0)
      threads = atoi(value);
    else if (value && strcmp(argument[i], "--rows") == 0)
      options.rows = strtoll(value, NULL, 10);
    else if (value && strcmp(argument[i], "--longest") == 0)
      options.longest = strtoll(value, NULL, 10);
    else if (!value || strcmp(argument[i], "--precision") != 0 || !rung_precision_find(value, &precision))
      usage = true;
  }
  if (usage) {
    fprintf(stderr,
            "usage: encode FOLDER [--threads N] [--rows N] [--longest N] [--precision "
            "f32|f16|bf16|mixed|mixed-f16]\nexample: printf 'text "
            "lines.txt\\ntime 1\\n' "
            "| encode all-MiniLM-L6-v2\n");
    return 2;
  }
  job j = {.lines = 0};
  const rung_status status = open_encoder(&j, argument[1], threads, precision, &options);
  if (status)
    fprintf(stderr, "encode: %s\n", j.error.message);
  else
    serve(&(serve_work){&j, load, run, result, message});
  forget(&j);
  rung_encoder_destroy(j.encoder);
  rung_model_release(j.model);
  rung_device_release(j.device);
  rung_host_release(j.host);
  return status ? 1 : 0;
}
