/* SPDX-License-Identifier: MIT
 * rung bench: prompts and decoding of a language model at given sizes. Ids are random; where programs choose tokens
 * themselves (devices with memory of their own), decoding goes on with those, else nothing is sampled. */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "graph_file.h"
#include "json.h"

typedef struct job {
  cli_session *s;
  rung_model *model;
  rung_generator *generator;
  rung_model_info info;
  rung_generate_options options;
  uint64_t weight_bytes; /* read by each run */
  /* Operations of a row in matrix products, by what they are done with; of these, what the output matrix takes, which
   * only rows with logits go through. */
  double row_dots, row_multiplies, head_dots, head_multiplies;
  double bandwidth;
  peak_rates arithmetic;
  int32_t sequences;
  int32_t *ids, *wanted;
  int64_t *left; /* by sequence: tokens of the prompt that are not read yet */
  rung_rows *rows;
  rung_token *token; /* of a step */
} job;

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int cli_measure_begin(const cli_session *s, cli_measure *out) {
  enum { USUAL = 5 };
  *out = (cli_measure){.repeat = s->options->repeat ? s->options->repeat : USUAL};
  out->seconds = calloc((size_t)out->repeat, sizeof *out->seconds);
  return out->seconds ? CLI_OK : cli_refuse(s, CLI_NO_MEMORY, "out of memory");
}

void cli_measure_end(cli_measure *m) {
  if (!m->seconds) return;
  qsort(m->seconds, (size_t)m->repeat, sizeof *m->seconds, compare_doubles);
  m->median = m->seconds[m->repeat / 2];
  m->spread = m->median > 0 ? (m->seconds[m->repeat - 1] - m->seconds[0]) / m->median : 0;
  free(m->seconds);
  m->seconds = NULL;
}

/* ---- one measurement */

static int run_rows(job *j, int32_t count, int32_t wanted) {
  if (cli_interrupted()) return CLI_INTERRUPTED;
  const rung_status status = rung_generator_run(j->generator, j->rows, count, j->ids, j->wanted, wanted, NULL);
  return status ? cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator)) : CLI_OK;
}

/* Every sequence reads `tokens`, a chunk at a time; logits of each one's last row. */
static int read_prompts(job *j, int64_t tokens, int64_t *out_runs) {
  for (int32_t i = 0; i < j->sequences; i++) j->left[i] = tokens;
  int64_t todo = tokens * j->sequences;
  *out_runs = 0;
  while (todo) {
    int64_t room = j->options.chunk, used = 0;
    int32_t count = 0, wanted = 0;
    for (int32_t i = 0; i < j->sequences && room; i++) {
      const int64_t take = j->left[i] < room ? j->left[i] : room;
      if (!take) continue;
      j->rows[count++] = (rung_rows){i, (int32_t)take};
      used += take;
      room -= take;
      j->left[i] -= take;
      if (!j->left[i]) j->wanted[wanted++] = (int32_t)used - 1;
    }
    const int code = run_rows(j, count, wanted);
    if (code) return code;
    todo -= used;
    ++*out_runs;
  }
  return CLI_OK;
}

/* As a text is made: a token of each sequence in each run, the likeliest. Where one ends its text, it goes on. */
static int decode_chosen(job *j, int64_t tokens) {
  rung_sample_options greedy = rung_sample_options_default();
  greedy.temperature = 0;
  rung_status status = RUNG_OK;
  for (int32_t i = 0; i < j->sequences && !status; i++) {
    status = rung_generator_sampling(j->generator, i, &greedy);
    if (!status) status = rung_generator_prompt(j->generator, i, &j->ids[i], 1);
  }
  for (int64_t t = 0; t < tokens && !status; t++) {
    size_t count = 0;
    if (cli_interrupted()) return CLI_INTERRUPTED;
    status = rung_generator_step(j->generator, j->token, &count, NULL);
    for (size_t i = 0; i < count && !status; i++)
      if (j->token[i].end) status = rung_generator_prompt(j->generator, j->token[i].slot, &j->ids[i], 1);
  }
  return status ? cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator)) : CLI_OK;
}

static int decode(job *j, int64_t tokens, int64_t *out_runs) {
  *out_runs = tokens;
  if (rung_program_find_output(rung_generator_program(j->generator), "tokens") >= 0) return decode_chosen(j, tokens);
  for (int32_t i = 0; i < j->sequences; i++) {
    j->rows[i] = (rung_rows){i, 1};
    j->wanted[i] = i;
  }
  for (int64_t t = 0; t < tokens; t++) {
    const int code = run_rows(j, j->sequences, j->sequences);
    if (code) return code;
  }
  return CLI_OK;
}

/* Sequences begin anew and hold `depth` positions. Those they hold already are kept where no window has let go of what is
 * needed: reading them again would take longer than what is measured. */
static int begin(job *j, int64_t depth) {
  bool kept = depth > 0;
  for (int32_t i = 0; i < j->sequences && kept; i++) {
    if (rung_generator_length(j->generator, i) < depth) kept = false;
    const rung_status status = kept ? rung_generator_truncate(j->generator, i, depth) : RUNG_OK;
    if (status && status != RUNG_UNSUPPORTED)
      return cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator));
    if (status) kept = false;
  }
  if (kept) return CLI_OK;
  for (int32_t i = 0; i < j->sequences; i++) {
    const rung_status status = rung_generator_reset(j->generator, i);
    if (status) return cli_fail(j->s, CLI_ON_RUN, status, rung_generator_message(j->generator));
  }
  int64_t runs;
  return depth ? read_prompts(j, depth, &runs) : CLI_OK;
}

/* ---- what a measurement takes at least */

/* Positions that the rows of positions 0 to n see, summed up. Which layers have a window is not known here: as if all had
 * it, so that a limit is never too low. */
static double seen_positions(const job *j, double n) {
  const double window = (double)j->info.window;
  return window > 0 && window < n ? window * n - window * window / 2 : n * n / 2;
}
static double mean_positions(const job *j, int64_t depth, int64_t tokens) {
  const double first = (double)depth, n = (double)tokens;
  return (seen_positions(j, first + n) - seen_positions(j, first)) / n;
}

/* Keys and values that all runs of one measurement read. */
static double kv_bytes(const job *j, int64_t depth, int64_t tokens, int64_t runs) {
  const double position =
      (double)rung_type_bytes(j->options.kv, (uint64_t)(2 * j->info.layers * j->info.kv_heads * j->info.head_dim));
  return position * mean_positions(j, depth, tokens) * (double)j->sequences * (double)runs;
}

/* Seconds that one measurement takes at least: reading, or computing. `logits`: rows that have them. */
static double least_seconds(const job *j, int64_t depth, int64_t tokens, int64_t runs, double logits) {
  const double rows = (double)tokens * j->sequences;
  const double bytes = (double)j->weight_bytes * (double)runs + kv_bytes(j, depth, tokens, runs);
  const double attention = /* two products */
      4 * rows * (double)(j->info.layers * j->info.heads * j->info.head_dim) * mean_positions(j, depth, tokens);
  const double dots = rows * j->row_dots + logits * j->head_dots;
  const double multiplies = rows * j->row_multiplies + logits * j->head_multiplies + attention;
  const peak_rates *a = &j->arithmetic;
  const double reading = j->bandwidth > 0 ? bytes / j->bandwidth : 0;
  const double computing = a->dot > 0 && a->multiply_add > 0 ? dots / a->dot + multiplies / a->multiply_add : 0;
  return reading > computing ? reading : computing;
}

static void report(const job *j, const char *work, int64_t depth, int64_t tokens, int64_t runs, const cli_measure *m) {
  const double all = (double)tokens * j->sequences, rate = m->median > 0 ? all / m->median : 0;
  const bool prompt = strcmp(work, "prompt") == 0;
  const double least = least_seconds(j, depth, tokens, runs, prompt ? j->sequences : all),
               limit = least > 0 ? all / least : 0;
  const int threads = rung_device_threads(j->s->device);
  if (!j->s->options->json) {
    printf("%-7s %6" PRId64 " tokens x %-3d sequences ", work, tokens, j->sequences);
    if (depth) printf("behind %" PRId64 ", ", depth);
    printf("%2d threads %10.1f tok/s  spread %5.1f%%  limit %10.1f tok/s  share %5.1f%%\n", threads, rate,
           100 * m->spread, limit, limit > 0 ? 100 * rate / limit : 0);
  } else {
    cli_json json = cli_json_begin(stdout);
    cli_json_string(&json, "work", work);
    cli_json_integer(&json, "tokens", tokens);
    cli_json_integer(&json, "sequences", j->sequences);
    cli_json_integer(&json, "depth", depth);
    cli_json_integer(&json, "threads", threads);
    cli_json_number(&json, "tokens_per_second", rate);
    cli_json_number(&json, "limit", limit);
    cli_json_number(&json, "limit_share", limit > 0 ? rate / limit : 0);
    cli_json_number(&json, "spread", m->spread);
    cli_json_integer(&json, "repeat", m->repeat);
    if (cli_resident_most()) cli_json_bytes(&json, "resident_bytes", cli_resident_most());
    cli_json_number(&json, "bandwidth_bytes_per_second", j->bandwidth);
    cli_json_number(&json, "dot_operations_per_second", j->arithmetic.dot);
    cli_json_number(&json, "multiply_add_operations_per_second", j->arithmetic.multiply_add);
    cli_json_end(&json);
  }
  fflush(stdout);
}

static int measure(job *j, const char *work, int64_t tokens) {
  const bool prompt = strcmp(work, "prompt") == 0;
  const int64_t depth = prompt ? 0 : j->s->options->depth;
  cli_measure m;
  int64_t runs = 0;
  int code = cli_measure_begin(j->s, &m);
  for (int64_t i = -1; !code && i < m.repeat; i++) { /* -1: the warm-up */
    code = begin(j, depth);
    const double start = cli_seconds();
    if (!code) code = prompt ? read_prompts(j, tokens, &runs) : decode(j, tokens, &runs);
    if (i >= 0) m.seconds[i] = cli_seconds() - start;
    cli_progress(j->s, work, (uint64_t)(i + 2), (uint64_t)m.repeat + 1);
  }
  cli_progress(j->s, work, 1, 1);
  cli_measure_end(&m);
  if (!code) report(j, work, depth, tokens, runs, &m);
  return code;
}

/* ---- all sizes */

static int64_t largest_size(const cli_options *o) {
  int64_t most = o->predict > 0 ? o->depth + o->predict : 1;
  for (int i = 0; i < o->prompt_sizes.count; i++)
    if (o->prompt_sizes.item[i] > most) most = o->prompt_sizes.item[i];
  return most;
}

static int set_up(job *j) {
  rung_generate_options *o = &j->options;
  *o = cli_generate_options(j->s->options);
  o->sequences = j->sequences;
  if (!o->context) o->context = largest_size(j->s->options);
  if (o->chunk < j->sequences) o->chunk = j->sequences;
  const size_t n = (size_t)j->sequences;
  j->ids = calloc((size_t)o->chunk, sizeof *j->ids);
  j->wanted = calloc(n, sizeof *j->wanted);
  j->left = calloc(n, sizeof *j->left);
  j->rows = calloc(n, sizeof *j->rows);
  j->token = calloc(n, sizeof *j->token);
  if (!j->ids || !j->wanted || !j->left || !j->rows || !j->token)
    return cli_refuse(j->s, CLI_NO_MEMORY, "out of memory");
  uint64_t state = 1;
  for (int64_t i = 0; i < o->chunk; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    j->ids[i] = (int32_t)((state >> 33) % (uint64_t)j->info.vocabulary);
  }
  return cli_open_generator(j->s, j->model, o, &j->generator, NULL);
}

static int bench_sequences(job *j) {
  const cli_options *o = j->s->options;
  int code = set_up(j);
  for (int i = 0; !code && i < o->prompt_sizes.count; i++) code = measure(j, "prompt", o->prompt_sizes.item[i]);
  if (!code && o->predict > 0) code = measure(j, "decode", o->predict);
  cli_close_generator(j->generator);
  j->generator = NULL;
  free(j->ids);
  free(j->wanted);
  free(j->left);
  free(j->rows);
  free(j->token);
  return code;
}

static bool is_one_of(const char *name, const char *const *list) {
  for (; *list; list++)
    if (strcmp(name, *list) == 0) return true;
  return false;
}

/* A run reads all weights but an embedding that is no output matrix as well: of that only the rows of its tokens. */
static int count_weights(job *j) {
  static const char *const embeddings[] = {"token_embd.weight", "model.embed_tokens.weight", NULL};
  static const char *const outputs[] = {"output.weight", "lm_head.weight", NULL};
  const rung_source source = cli_source(j->s);
  rung_weights *weights;
  const rung_status status = rung_weights_open(j->s->host, &source, NULL, &j->s->error, &weights);
  if (status) return cli_fail(j->s, CLI_ON_FILE, status, NULL);
  size_t at;
  bool tied = true;
  for (int i = 0; outputs[i]; i++) tied &= !rung_weights_index(weights, outputs[i], &at);
  j->weight_bytes = j->info.weight_bytes;
  rung_weights_info info;
  for (size_t i = 0; rung_weights_at(weights, i, &info); i++) {
    const bool embedding = is_one_of(info.name, embeddings),
               head = is_one_of(info.name, outputs) || (embedding && tied);
    if (embedding && !tied) j->weight_bytes -= info.bytes;
    if (info.rank != 2 || (embedding && !tied)) continue;
    const double operations = 2 * (double)info.extent[0] * (double)info.extent[1];
    const bool floats = info.type == RUNG_TYPE_F32 || info.type == RUNG_TYPE_F16 || info.type == RUNG_TYPE_BF16;
    const bool dots = j->s->options->quant != CLI_QUANT_EXACT && !floats;
    *(head ? dots ? &j->head_dots : &j->head_multiplies : dots ? &j->row_dots : &j->row_multiplies) += operations;
  }
  rung_weights_release(weights);
  return CLI_OK;
}

static int bench_model(cli_session *s) {
  job j = {.s = s};
  int code = cli_open_model(s, &j.model, NULL);
  if (!code) {
    rung_model_get_info(j.model, &j.info);
    code = count_weights(&j);
  }
  if (!code) {
    const int threads = rung_device_threads(s->device);
    j.bandwidth = cli_bandwidth(s, threads, j.weight_bytes);
    j.arithmetic = cli_arithmetic(s, threads);
    cli_note(
        s,
        "%.1f MB of weights; %d threads read that much at %.1f GB/s, and do %.0f GOP/s of byte products, %.0f of f32",
        (double)j.weight_bytes * 1e-6, threads, j.bandwidth * 1e-9, j.arithmetic.dot * 1e-9,
        j.arithmetic.multiply_add * 1e-9);
    cli_resident_reset(); /* what the limits were measured with is none of the model's */
  }
  for (int i = 0; !code && i < s->options->sequences.count; i++) {
    j.sequences = (int32_t)s->options->sequences.item[i];
    code = bench_sequences(&j);
  }
  rung_model_release(j.model);
  return code;
}

int cli_bench(cli_session *s) {
  cli_file kind = CLI_FILE_GGUF;
  const int code = cli_recognise(s, &kind);
  if (code) return code;
  if (kind == CLI_FILE_COMPILED)
    return cli_refuse(s, CLI_USAGE, "%s is compiled for one ceiling; rung run --repeat measures it", s->options->model);
  return kind == CLI_FILE_GRAPH ? cli_bench_graph(s) : bench_model(s);
}
