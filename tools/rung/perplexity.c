/* SPDX-License-Identifier: MIT
 * rung perplexity: how well a model foretells a text, counted as llama.cpp's tool does. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "models/sample.h"
#include "prompt.h"

enum { USUAL_WINDOW = 512, SCORED_ROWS = 64 }; /* rows whose logits are held: 67 MB for a vocabulary of 262,144 */

typedef struct job {
  cli_session *s;
  rung_model *model;
  rung_generator *generator;
  cli_ids ids;
  int32_t *window; /* ids of the one being read */
  int32_t begin;   /* what every window begins with; -1: its own first token */
  int64_t length, windows, chunk, rows, vocabulary;
  int64_t scored;
  double sum, squares, seconds; /* of -ln p */
} job;

/* Special tokens in the text are plain text; one in front where the vocabulary says so. */
static int read_text(job *j) {
  const cli_options *o = j->s->options;
  if (o->prompts.count != 1) return cli_refuse(j->s, CLI_USAGE, "one text is needed: -f FILE or --ids FILE");
  int32_t *ids;
  size_t count;
  const rung_status status = rung_model_encode(j->model, NULL, 0, RUNG_TEXT_ADD_SPECIAL, &j->s->error, &ids, &count);
  if (status) return cli_fail(j->s, CLI_ON_FILE, status, NULL);
  j->begin = count ? ids[0] : -1;
  rung_ids_free(j->model, ids, count);
  if (o->prompts.letter[0] == 'i') return cli_prompt_ids(j->s, j->model, 0, &j->ids);
  cli_bytes text;
  int code = cli_read_file(j->s, o->prompts.item[0], &text);
  if (!code) code = cli_encode(j->s, j->model, text.data, text.bytes, RUNG_TEXT_ADD_SPECIAL, &j->ids);
  free(text.data);
  return code;
}

static int set_up(job *j) {
  const cli_options *o = j->s->options;
  int code = cli_open_model(j->s, &j->model, NULL);
  if (!code) code = read_text(j);
  if (code) return code;
  rung_model_info info;
  rung_model_get_info(j->model, &info);
  j->vocabulary = info.vocabulary;
  j->length = o->context ? o->context : USUAL_WINDOW;
  j->windows = (int64_t)j->ids.count / j->length;
  if (j->length < 4) return cli_refuse(j->s, CLI_USAGE, "-c %" PRId64 ": a window has at least 4 tokens", j->length);
  if (!j->windows)
    return cli_refuse(j->s, CLI_USAGE, "the text has %zu tokens, a window %" PRId64 "; lower -c", j->ids.count,
                      j->length);
  rung_generate_options g = cli_generate_options(o);
  g.context = j->length;
  if (g.chunk > j->length) g.chunk = j->length;
  g.logits = g.chunk < SCORED_ROWS ? g.chunk : SCORED_ROWS;
  j->chunk = g.chunk;
  j->rows = g.logits;
  j->window = malloc((size_t)j->length * sizeof *j->window);
  if (!j->window) return cli_refuse(j->s, CLI_NO_MEMORY, "out of memory for a window");
  return cli_open_generator(j->s, j->model, &g, &j->generator, NULL);
}

static void score(job *j, const float *logits, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const int64_t next = first + i + 1;
    const double nll = -rung_sample_log_probability(logits + i * j->vocabulary, j->vocabulary, j->window[next]);
    j->sum += nll;
    j->squares += nll * nll;
    j->scored++;
  }
}

/* Positions of the first half are read; those from there on, but the last, say what they make of the token behind them. */
static int run_window(job *j, int64_t window) {
  int32_t wanted[SCORED_ROWS];
  for (int32_t i = 0; i < SCORED_ROWS; i++) wanted[i] = i;
  memcpy(j->window, j->ids.id + window * j->length, (size_t)j->length * sizeof *j->window);
  if (j->begin >= 0) j->window[0] = j->begin;
  const int64_t half = j->length / 2, end = j->length - 1;
  rung_status status = rung_generator_reset(j->generator, 0);
  for (int64_t at = 0, n; !status && at < end; at += n) {
    if (cli_interrupted()) return CLI_INTERRUPTED;
    const bool scores = at >= half;
    const int64_t most = scores ? j->rows : j->chunk, left = (scores ? end : half) - at;
    n = left < most ? left : most;
    const rung_rows rows = {0, (int32_t)n};
    const float *logits;
    status = rung_generator_run(j->generator, &rows, 1, j->window + at, wanted, scores ? (int32_t)n : 0, &logits);
    if (!status && scores) score(j, logits, at, n);
  }
  return status ? cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator)) : CLI_OK;
}

static double mean(const job *j) { return j->sum / (double)j->scored; }
/* One standard error of the mean, as a difference of perplexities. */
static double uncertainty(const job *j) {
  const double variance = j->squares / (double)j->scored - mean(j) * mean(j);
  return j->scored > 1 && variance > 0 ? exp(mean(j)) * sqrt(variance / (double)(j->scored - 1)) : 0;
}

static int run_all(job *j) {
  const double start = cli_seconds();
  for (int64_t w = 0; w < j->windows; w++) {
    cli_progress(j->s, "windows", (uint64_t)w, (uint64_t)j->windows);
    const int code = run_window(j, w);
    if (code) return code;
    if (j->s->options->verbose) cli_note(j->s, "window %" PRId64 ": %.4f so far", w + 1, exp(mean(j)));
  }
  cli_progress(j->s, "windows", 1, 1);
  j->seconds = cli_seconds() - start;
  return CLI_OK;
}

static void report(const job *j) {
  if (j->s->options->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_number(&json, "perplexity", exp(mean(j)));
    cli_json_number(&json, "uncertainty", uncertainty(j));
    cli_json_number(&json, "mean_log_probability", -mean(j));
    cli_json_integer(&json, "scored_tokens", j->scored);
    cli_json_integer(&json, "tokens", (int64_t)j->ids.count);
    cli_json_integer(&json, "windows", j->windows);
    cli_json_integer(&json, "window_tokens", j->length);
    cli_json_number(&json, "seconds", j->seconds);
    cli_json_end(&json);
  } else {
    printf("%.4f +/- %.4f\n", exp(mean(j)), uncertainty(j));
  }
  cli_note(j->s,
           "%" PRId64 " tokens scored in %" PRId64 " windows of %" PRId64 ", of a text of %zu | %.1f s, %.1f tok/s",
           j->scored, j->windows, j->length, j->ids.count, j->seconds,
           j->seconds > 0 ? (double)(j->windows * j->length) / j->seconds : 0);
}

int cli_perplexity(cli_session *s) {
  job j = {.s = s};
  int code = set_up(&j);
  if (!code) code = run_all(&j);
  if (!code) report(&j);
  cli_close_generator(j.generator);
  free(j.window);
  free(j.ids.id);
  rung_model_release(j.model);
  return code;
}
