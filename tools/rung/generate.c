/* SPDX-License-Identifier: MIT
 * rung generate: prompts in, text out. One sequence is streamed; several run side by side and are printed at the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "reply.h"
#include "sampling.h"

typedef struct job {
  cli_session *s;
  const cli_options *o;
  rung_model *model;
  rung_generator *generator;
  int count; /* sequences */
  cli_ids *prompt;
  cli_reply *reply;
  rung_token *token;
  uint64_t seed;
  int64_t longest, prompt_tokens, context, chunk;
  int64_t later_tokens; /* made by steps after the prompts were read: what decode speed counts */
  double load, compile, prompt_seconds, decode_seconds;
  rung_memory predicted;
  uint64_t peak;
} job;

/* ---- beginning */

static int read_prompts(job *j) {
  bool ids_only = true;
  for (int i = 0; i < j->count; i++) {
    ids_only = ids_only && j->o->prompts.letter[i] == 'i';
    const int code = cli_prompt_ids(j->s, j->model, i, &j->prompt[i]);
    if (code) return code;
    const int64_t n = (int64_t)j->prompt[i].count;
    j->prompt_tokens += n;
    if (n > j->longest) j->longest = n;
  }
  for (int i = 0; i < j->count; i++) {
    const int code = cli_reply_begin(j->s, j->model, ids_only, &j->reply[i]);
    if (code) return code;
  }
  return CLI_OK;
}

/* Reading the prompts and going on row by row may use different kernels: the larger of both, class by class. */
static rung_status predict(const job *j, int64_t length, rung_memory *out) {
  const int64_t rows = j->prompt_tokens < j->chunk ? j->prompt_tokens : j->chunk;
  rung_memory later;
  RUNG_TRY(rung_generator_memory(j->generator, rows, length, &j->s->error, out));
  RUNG_TRY(rung_generator_memory(j->generator, j->count, length, &j->s->error, &later));
#define X(name, text) \
  if (later.name > out->name) out->name = later.name;
  RUNG_MEMORY_MAP(X)
#undef X
  return RUNG_OK;
}

/* Refused before anything is read, with the bytes that it would take. */
static int check_budget(const job *j) {
  int64_t length = j->o->predict < 0 ? j->context : j->longest + j->o->predict;
  if (length > j->context) length = j->context;
  rung_memory memory;
  const rung_status status = predict(j, length, &memory);
  if (status) return cli_fail(j->s, CLI_ON_RUN, status, NULL);
  const uint64_t need = cli_most(&memory), budget = rung_host_budget(j->s->host);
  if (!budget || need <= budget) return CLI_OK;
  return cli_refuse(j->s, CLI_NO_MEMORY,
                    "%" PRIu64 " bytes are needed for %" PRId64 " positions, the budget is %" PRIu64 "; lower -n or -c",
                    need, length, budget);
}

static int set_up(job *j) {
  int code = cli_open_model(j->s, &j->model, &j->load);
  if (!code) code = read_prompts(j);
  if (code) return code;
  rung_generate_options o = cli_generate_options(j->o);
  o.sequences = j->count;
  cli_may_shift(j->o, &o);
  o.context = cli_context(j->o, j->model, j->longest + (j->o->predict > 0 ? j->o->predict : 0));
  j->context = o.context;
  j->chunk = o.chunk > j->count ? o.chunk : j->count;
  if (j->longest > o.context && !o.shift)
    return cli_refuse(j->s, CLI_USAGE, "the prompt has %" PRId64 " tokens, the context %" PRId64 " positions; raise -c",
                      j->longest, o.context);
  code = cli_open_generator(j->s, j->model, &o, &j->generator, &j->compile);
  return code ? code : check_budget(j);
}

static int start_sequences(job *j) {
  j->seed = cli_seed(j->o);
  for (int i = 0; i < j->count; i++) {
    const int code = cli_set_sampling(j->s, j->generator, i, j->seed + (uint64_t)i);
    if (code) return code;
    const rung_status status = rung_generator_prompt(j->generator, i, j->prompt[i].id, j->prompt[i].count);
    if (status) return cli_fail(j->s, CLI_ON_FLAGS, status, rung_generator_message(j->generator));
  }
  return CLI_OK;
}

/* ---- going on */

/* Writes what became ready; several sequences wait for the end. */
static void stream_out(const job *j, const cli_reply *r, size_t from) {
  if (j->count > 1 || j->o->json || r->ready == from) return;
  fwrite(r->text + from, 1, r->ready - from, stdout);
  fflush(stdout);
}

static int take(job *j, const rung_token *t) {
  cli_reply *r = &j->reply[t->slot];
  const size_t ready = r->ready;
  const int code = cli_reply_take(j->s, r, j->generator, t, j->context);
  if (!code) stream_out(j, r, ready);
  return code;
}

static int64_t read_so_far(const job *j) {
  int64_t total = 0;
  for (int i = 0; i < j->count; i++) {
    const int64_t length = rung_generator_length(j->generator, i), n = (int64_t)j->prompt[i].count;
    total += length < n ? length : n;
  }
  return total;
}

static bool all_finished(const job *j) {
  for (int i = 0; i < j->count; i++)
    if (!j->reply[i].finish) return false;
  return true;
}

static int generate(job *j) {
  bool reading = true;
  while (!all_finished(j)) {
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (reading) cli_progress(j->s, "prompt", (uint64_t)read_so_far(j), (uint64_t)j->prompt_tokens);
    const double start = cli_seconds();
    size_t count;
    const rung_status status = rung_generator_step(j->generator, j->token, &count, NULL);
    if (status) return cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator));
    const double took = cli_seconds() - start;
    *(reading ? &j->prompt_seconds : &j->decode_seconds) += took;
    if (!reading) j->later_tokens += (int64_t)count;
    if (reading && read_so_far(j) == j->prompt_tokens) {
      reading = false;
      cli_progress(j->s, "prompt", 1, 1);
    }
    for (size_t i = 0; i < count; i++) {
      const int code = take(j, &j->token[i]);
      if (code) return code;
    }
  }
  return CLI_OK;
}

/* ---- the end */

static double rate(int64_t tokens, double seconds) { return seconds > 0 ? (double)tokens / seconds : 0; }

/* What was predicted for the positions that were reached, and what was taken. */
static int measure_memory(job *j) {
  int64_t length = 0;
  for (int i = 0; i < j->count; i++) {
    const int64_t n = rung_generator_length(j->generator, i);
    if (n > length) length = n;
  }
  const rung_status status = predict(j, length, &j->predicted);
  j->peak = rung_host_peak(j->s->host);
  return status ? cli_fail(j->s, CLI_ON_RUN, status, NULL) : CLI_OK;
}

static void print_reply(const job *j, const cli_reply *r) {
  if (!r->stream)
    cli_print_ids(&r->ids);
  else if (j->count > 1)
    fwrite(r->text, 1, r->bytes, stdout);
  if (!r->stream || !r->bytes || r->text[r->bytes - 1] != '\n') printf("\n");
}

static void print_json(const job *j, int i) {
  const cli_reply *r = &j->reply[i];
  cli_json json = cli_json_begin(stdout);
  cli_reply_print(j->s, r, &json);
  cli_json_number(&json, "load_seconds", j->load);
  cli_json_number(&json, "compile_seconds", j->compile);
  cli_json_integer(&json, "prompt_tokens", (int64_t)j->prompt[i].count);
  cli_json_number(&json, "prompt_tokens_per_second", rate(j->prompt_tokens, j->prompt_seconds));
  cli_json_integer(&json, "decode_tokens", (int64_t)r->ids.count);
  cli_json_number(&json, "decode_tokens_per_second", rate(j->later_tokens, j->decode_seconds));
  cli_json_bytes(&json, "memory_predicted_bytes", cli_most(&j->predicted));
  cli_json_bytes(&json, "memory_peak_bytes", j->peak);
  cli_json_bytes(&json, "seed", j->seed);
  cli_json_end(&json);
}

/* Class by class, for -v. */
static void print_memory(const job *j) {
  const rung_memory now = rung_host_memory(j->s->host);
#define X(name, text)                \
  if (j->predicted.name || now.name) \
    cli_note(j->s, "%-12s predicted %12" PRIu64 ", held %12" PRIu64, #name, j->predicted.name, now.name);
  RUNG_MEMORY_MAP(X)
#undef X
}

static void print_summary(const job *j) {
  int64_t made = 0;
  for (int i = 0; i < j->count; i++) made += (int64_t)j->reply[i].ids.count;
  cli_note(j->s,
           "load %.2f s, compile %.2f s | prompt %" PRId64 " tokens, %.1f tok/s | decode %" PRId64
           " tokens, %.1f tok/s | memory predicted %.1f MB, used %.1f MB",
           j->load, j->compile, j->prompt_tokens, rate(j->prompt_tokens, j->prompt_seconds), made,
           rate(j->later_tokens, j->decode_seconds), (double)cli_most(&j->predicted) * 1e-6, (double)j->peak * 1e-6);
  if (j->o->verbose) print_memory(j);
  if (j->o->verbose)
    cli_note(j->s, "seed %" PRIu64 ", context %" PRId64 ", device %s, %d threads", j->seed, j->context,
             rung_device_name(j->s->device), rung_device_threads(j->s->device));
}

static int finish(job *j, int code) {
  const bool streamed = j->count == 1 && !j->o->json;
  if (code) { /* what was streamed ends in a line of its own */
    if (streamed && j->reply[0].ready) printf("\n");
    return code;
  }
  code = measure_memory(j);
  if (code) return code;
  for (int i = 0; i < j->count; i++) {
    if (j->o->json)
      print_json(j, i);
    else
      print_reply(j, &j->reply[i]);
  }
  fflush(stdout);
  print_summary(j);
  return CLI_OK;
}

int cli_generate(cli_session *s) {
  job j = {.s = s, .o = s->options, .count = s->options->prompts.count};
  if (s->options->system && !s->options->chat) return cli_refuse(s, CLI_USAGE, "--system needs --chat");
  if (!j.count) return cli_refuse(s, CLI_USAGE, "a prompt is missing: -p TEXT, -f FILE or --ids FILE");
  j.prompt = calloc((size_t)j.count, sizeof *j.prompt);
  j.reply = calloc((size_t)j.count, sizeof *j.reply);
  j.token = calloc((size_t)j.count, sizeof *j.token);
  int code = j.prompt && j.reply && j.token ? set_up(&j) : cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  if (!code) code = start_sequences(&j);
  if (!code) code = finish(&j, generate(&j));
  cli_close_generator(j.generator);
  for (int i = 0; i < j.count; i++) {
    if (j.prompt) free(j.prompt[i].id);
    if (j.reply) cli_reply_free(&j.reply[i]);
  }
  free(j.prompt);
  free(j.reply);
  free(j.token);
  rung_model_release(j.model);
  return code;
}
