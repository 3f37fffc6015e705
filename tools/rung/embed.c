/* SPDX-License-Identifier: MIT
 * rung embed: one vector per line of text, or of ids. All lines are read and cut into tokens first, so that one that is
 * too long is refused before anything is written; vectors are made and written some runs at a time. */
#include <rung/embed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "npy_rows.h"
#include "prompt.h"

enum { RUNS_AT_ONCE = 8 };

typedef struct line {
  const char *text;
  size_t bytes;
  int32_t *ids;
  size_t count;
} line;

typedef struct job {
  cli_session *s;
  rung_model *model;
  rung_encoder *encoder;
  rung_encoder_info info;
  cli_bytes file[CLI_MOST_ITEMS];
  int files;
  line *line;
  size_t lines, capacity;
  rung_token_list *list;
  float *vectors;       /* of the lines that are run at once */
  size_t vectors_lines; /* that it holds */
  rung_writer *out;     /* -o; NULL: standard output */
  uint64_t tokens;
} job;

static int no_memory(const job *j) { return cli_refuse(j->s, CLI_NO_MEMORY, "out of memory"); }

/* ---- lines and their tokens */

static int add_line(job *j, const char *text, size_t bytes) {
  if (j->lines == j->capacity) {
    const size_t more = j->capacity ? 2 * j->capacity : 1024;
    line *grown = realloc(j->line, more * sizeof *grown);
    if (!grown) return no_memory(j);
    j->line = grown;
    j->capacity = more;
  }
  if (bytes && text[bytes - 1] == '\r') bytes--;
  j->line[j->lines++] = (line){.text = text, .bytes = bytes};
  return CLI_OK;
}

static int read_ids(job *j, const char *from, line *l) {
  cli_ids ids;
  char *copy = malloc(l->bytes + 1); /* terminated */
  if (!copy) return no_memory(j);
  memcpy(copy, l->text, l->bytes);
  copy[l->bytes] = 0;
  const int code = cli_parse_ids(j->s, from, &(cli_bytes){copy, l->bytes}, &ids);
  free(copy);
  l->ids = ids.id;
  l->count = ids.count;
  return code;
}

static int encode(job *j, const char *from, size_t number, line *l) {
  const cli_options *o = j->s->options;
  const size_t before = o->prefix ? strlen(o->prefix) : 0;
  char *text = malloc(before + l->bytes + 1);
  int32_t *ids = NULL;
  if (!text) return no_memory(j);
  if (before) memcpy(text, o->prefix, before);
  memcpy(text + before, l->text, l->bytes);
  const rung_status status = rung_encoder_tokens(j->encoder, text, before + l->bytes, o->truncate, &ids, &l->count);
  free(text);
  if (status) {
    cli_note(j->s, "%s: line %zu", from, number);
    return cli_fail(j->s, CLI_ON_FILE, status, rung_encoder_message(j->encoder));
  }
  l->ids = malloc((l->count + 1) * sizeof *ids);
  if (l->ids && l->count) memcpy(l->ids, ids, l->count * sizeof *ids);
  rung_ids_free(j->model, ids, l->count);
  return l->ids ? CLI_OK : no_memory(j);
}

/* A line ends at its newline; what stands behind the last one is a line of its own unless it is empty. */
static int read_lines(job *j, const char *path, bool ids) {
  const char *from = path && strcmp(path, "-") != 0 ? path : "standard input";
  cli_bytes *file = &j->file[j->files++];
  const size_t first = j->lines;
  int code = cli_read_file(j->s, path, file);
  const char *at = file->data, *end = at + file->bytes;
  while (!code && at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    code = add_line(j, at, (size_t)(stop - at));
    at = stop + 1;
  }
  for (size_t i = first; !code && i < j->lines; i++) {
    if (cli_interrupted()) return CLI_INTERRUPTED;
    code = ids ? read_ids(j, from, &j->line[i]) : encode(j, from, i - first + 1, &j->line[i]);
    cli_progress(j->s, "tokens", i + 1, j->lines);
    j->tokens += j->line[i].count;
  }
  return code;
}

static int read_input(job *j) {
  const cli_texts *given = &j->s->options->prompts;
  int code = given->count ? CLI_OK : read_lines(j, NULL, false);
  for (int i = 0; !code && i < given->count; i++) code = read_lines(j, given->item[i], given->letter[i] == 'i');
  return code;
}

/* ---- vectors */

static int put(job *j, const line *l, size_t n) {
  if (j->out) {
    const rung_status status =
        rung_writer_put(j->out, j->vectors, n * (size_t)j->info.dims * sizeof(float), &j->s->error);
    return status ? cli_fail(j->s, CLI_ON_RUN, status, NULL) : CLI_OK;
  }
  const float *x = j->vectors;
  for (size_t i = 0; i < n; i++, x += j->info.dims) {
    if (j->s->options->json) {
      cli_json json = cli_json_begin(stdout);
      cli_json_text(&json, "text", l[i].text, l[i].bytes);
      cli_json_open(&json, "embedding", '[');
      for (int64_t d = 0; d < j->info.dims; d++) cli_json_number(&json, NULL, (double)x[d]);
      cli_json_close(&json, ']');
      cli_json_end(&json);
    } else {
      for (int64_t d = 0; d < j->info.dims; d++) printf("%s%.9g", d ? " " : "", (double)x[d]);
      printf("\n");
    }
  }
  return CLI_OK;
}

/* How many lines are run at once: so that all runs but one are full. */
static size_t take(const job *j, size_t first) {
  const size_t most = RUNS_AT_ONCE * (size_t)j->info.rows;
  size_t n = 0, tokens = 0;
  while (first + n < j->lines && n < most && tokens < most) tokens += j->line[first + n++].count;
  return n;
}

static int run(job *j) {
  for (size_t first = 0; first < j->lines;) {
    const size_t n = take(j, first);
    if (n > j->vectors_lines) {
      free(j->vectors);
      free(j->list);
      j->vectors = malloc(n * (size_t)j->info.dims * sizeof *j->vectors);
      j->list = malloc(n * sizeof *j->list);
      j->vectors_lines = n;
      if (!j->vectors || !j->list) return no_memory(j);
    }
    for (size_t i = 0; i < n; i++) j->list[i] = (rung_token_list){j->line[first + i].ids, j->line[first + i].count};
    if (cli_interrupted()) return CLI_INTERRUPTED;
    const rung_status status = rung_encoder_run(j->encoder, j->list, n, j->vectors);
    if (status) return cli_fail(j->s, CLI_ON_FILE, status, rung_encoder_message(j->encoder));
    const int code = put(j, j->line + first, n);
    if (code) return code;
    first += n;
    cli_progress(j->s, "embed", first, j->lines);
  }
  return CLI_OK;
}

static int write_file(job *j) {
  const char *path = j->s->options->output;
  rung_status status = rung_writer_open(j->s->host, path, &j->s->error, &j->out);
  if (status) return cli_fail(j->s, CLI_ON_RUN, status, NULL);
  status = cli_npy_header(j->out, (int64_t)j->lines, j->info.dims, &j->s->error);
  const int code = status ? cli_fail(j->s, CLI_ON_RUN, status, NULL) : run(j);
  if (code) {
    rung_writer_discard(j->out);
    return code;
  }
  status = rung_writer_commit(j->out, &j->s->error);
  return status ? cli_fail(j->s, CLI_ON_RUN, status, NULL) : CLI_OK;
}

/* ---- the command */

static int open_encoder(job *j) {
  const cli_options *o = j->s->options;
  rung_encoder_options eo = rung_encoder_options_default();
  static const rung_pooling pooling[] = {[CLI_POOL_MODEL] = RUNG_POOLING_MODEL,
                                         [CLI_POOL_MEAN] = RUNG_POOLING_MEAN,
                                         [CLI_POOL_CLS] = RUNG_POOLING_FIRST,
                                         [CLI_POOL_LAST] = RUNG_POOLING_LAST,
                                         [CLI_POOL_MAX] = RUNG_POOLING_MAX};
  eo.pooling = pooling[o->pool];
  if (o->no_normalize) eo.unit_length = RUNG_UNIT_LENGTH_OFF;
  eo.dims = o->dims;
  eo.longest = o->context;
  if (o->ubatch) eo.rows = o->ubatch;
  const uint64_t start = rung_trace_now();
  rung_status status = rung_encoder_create(j->model, &eo, &j->s->error, &j->encoder);
  if (status) return cli_fail(j->s, CLI_ON_FLAGS, status, NULL);
  rung_trace_phase(j->s->trace, "compile", start, rung_trace_now());
  rung_encoder_get_info(j->encoder, &j->info);
  rung_context *context = rung_encoder_context(j->encoder);
  if (j->s->trace) status = rung_trace_context(j->s->trace, context, "encoder", &j->s->error);
  if (status) return cli_fail(j->s, CLI_ON_RUN, status, NULL);
  cli_interrupt_target(context);
  return CLI_OK;
}

static void report(const job *j, double seconds) {
  const cli_options *o = j->s->options;
  if (o->json && o->output) {
    cli_json json = cli_json_begin(stdout);
    cli_json_string(&json, "file", o->output);
    cli_json_bytes(&json, "lines", j->lines);
    cli_json_integer(&json, "dims", j->info.dims);
    cli_json_bytes(&json, "tokens", j->tokens);
    cli_json_number(&json, "seconds", seconds);
    cli_json_end(&json);
  }
  cli_note(j->s, "%zu lines, %llu tokens, %.2f s, %.0f tokens/s", j->lines, (unsigned long long)j->tokens, seconds,
           seconds > 0 ? (double)j->tokens / seconds : 0);
}

int cli_embed(cli_session *s) {
  job *j = calloc(1, sizeof *j);
  if (!j) return cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  j->s = s;
  int code = cli_open_model(s, &j->model, NULL);
  if (!code) code = open_encoder(j);
  if (!code) code = read_input(j);
  const double start = cli_seconds();
  if (!code) code = s->options->output ? write_file(j) : run(j);
  if (!code) report(j, cli_seconds() - start);
  cli_interrupt_target(NULL);
  rung_encoder_destroy(j->encoder);
  rung_model_release(j->model);
  for (size_t i = 0; i < j->lines; i++) free(j->line[i].ids);
  for (int i = 0; i < j->files; i++) free(j->file[i].data);
  free(j->line);
  free(j->list);
  free(j->vectors);
  free(j);
  return code;
}
