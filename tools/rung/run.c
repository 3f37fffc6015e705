/* SPDX-License-Identifier: MIT
 * rung run: a text graph, or a compiled file, on inputs from files, or on random ones. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "execute.h"
#include "json.h"
#include "runtime/runtime.h"

typedef struct job {
  cli_session *s;
  rung_compiled *compiled; /* NULL: a text graph */
  rung_graph *graph;       /* of a compiled file: borrowed */
  rung_weights *weights;
  rung_view *view;
  cli_symbols symbols;
  cli_inputs inputs;
  cli_execution execution;
  double *seconds; /* of each run, sorted at the end */
  int64_t repeat;
} job;

/* ---- outputs */

static void path_of(const char *folder, const char *name, char *out, size_t bytes) {
  const int n = snprintf(out, bytes, "%s/", folder);
  char *part = out + (n < 0 || (size_t)n >= bytes ? bytes - 1 : (size_t)n);
  snprintf(part, bytes - (size_t)(part - out), "%s.npy", name);
  for (; *part; part++)
    if (*part == '/') *part = '_'; /* names of outputs may hold anything */
}

static int write_output(cli_session *s, const char *name, const rung_tensor *t) {
  char path[4096];
  path_of(s->options->output, name, path, sizeof path);
  const rung_status status = rung_npy_write(s->host, path, t, &s->error);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  cli_note(s, "%s", path);
  return CLI_OK;
}

typedef struct summary {
  double low, high, mean;
  int64_t bad; /* NaN and infinity */
} summary;

static bool summarise(const rung_tensor *t, summary *out) {
  *out = (summary){.low = HUGE_VAL, .high = -HUGE_VAL};
  const int64_t n = cli_elements(t);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double x;
    if (!cli_element(t, i, &x)) return false;
    if (!isfinite(x)) {
      out->bad++;
      continue;
    }
    sum += x;
    if (x < out->low) out->low = x;
    if (x > out->high) out->high = x;
  }
  if (n > out->bad) out->mean = sum / (double)(n - out->bad);
  return n > out->bad;
}

static void show_output(cli_json *json, const char *name, const rung_tensor *t) {
  summary sum;
  const bool numbers = summarise(t, &sum);
  if (json) {
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "name", name);
    cli_json_string(json, "type", rung_type_name(t->type));
    cli_json_open(json, "extent", '[');
    for (int d = 0; d < t->rank; d++) cli_json_integer(json, NULL, t->extent[d]);
    cli_json_close(json, ']');
    cli_json_number(json, "min", numbers ? sum.low : (double)NAN);
    cli_json_number(json, "max", numbers ? sum.high : (double)NAN);
    cli_json_number(json, "mean", numbers ? sum.mean : (double)NAN);
    cli_json_integer(json, "not_finite", sum.bad);
    cli_json_close(json, '}');
    return;
  }
  printf("%s %s[", name, rung_type_name(t->type));
  for (int d = 0; d < t->rank; d++) printf("%s%" PRId64, d ? "," : "", t->extent[d]);
  printf("]");
  if (numbers) printf(" min %.6g, max %.6g, mean %.6g", sum.low, sum.high, sum.mean);
  if (sum.bad) printf(", %" PRId64 " not finite", sum.bad);
  printf("\n");
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int finish(job *j) {
  cli_session *s = j->s;
  const cli_execution *e = &j->execution;
  qsort(j->seconds, (size_t)j->repeat, sizeof *j->seconds, compare_doubles);
  const double median = j->seconds[j->repeat / 2];
  if (s->options->output && mkdir(s->options->output, 0777) && errno != EEXIST)
    return cli_refuse(s, CLI_FAILED, "%s: %s", s->options->output, strerror(errno));
  cli_json json;
  if (s->options->json) {
    json = cli_json_begin(stdout);
    cli_json_open(&json, "outputs", '[');
  }
  int code = CLI_OK;
  for (int i = 0; !code && i < rung_program_outputs(e->program); i++) {
    rung_tensor t;
    const rung_status status = rung_context_output(e->context, i, &t);
    if (status) code = cli_fail(s, CLI_ON_RUN, status, rung_context_message(e->context));
    const char *name = rung_program_output_name(e->program, i);
    if (!code && (s->options->json || !s->options->output)) show_output(s->options->json ? &json : NULL, name, &t);
    if (!code && s->options->output) code = write_output(s, name, &t);
  }
  if (s->options->json) {
    cli_json_close(&json, ']');
    cli_json_integer(&json, "runs", j->repeat);
    cli_json_number(&json, "seconds", median);
    cli_json_number(&json, "spread", median > 0 ? (j->seconds[j->repeat - 1] - j->seconds[0]) / median : 0);
    cli_json_end(&json);
  }
  cli_note(s, "%" PRId64 " runs: median %.6f s, from %.6f to %.6f s", j->repeat, median, j->seconds[0],
           j->seconds[j->repeat - 1]);
  return code;
}

/* ---- the run */

/* A compiled file: its graph, and its weights unless others are named. */
static int set_up_compiled(job *j, rung_program **out_program) {
  cli_session *s = j->s;
  if (s->options->check)
    return cli_refuse(s, CLI_USAGE, "--check needs the graph as text; %s is compiled", s->options->model);
  int code = cli_open_compiled(s, &j->compiled);
  if (!code) code = cli_open_weights(s, &j->weights, &j->view);
  if (code) return code;
  rung_compiled_info info;
  rung_compiled_get_info(j->compiled, &info);
  rung_view *view = NULL;
  rung_status status = RUNG_OK;
  if (j->weights || info.packed) status = rung_compiled_view(j->compiled, j->weights, &s->error, &view);
  if (!status) status = rung_compiled_program(j->compiled, &s->error, out_program);
  rung_view_release(j->view);
  j->view = view;
  j->graph = rung_compiled_template(j->compiled)->graph;
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

static int set_up(job *j, cli_file kind) {
  rung_program *program = NULL;
  int code = CLI_OK;
  if (kind == CLI_FILE_COMPILED) {
    code = set_up_compiled(j, &program);
  } else {
    code = cli_read_graph(j->s, &j->graph, &j->weights, &j->view);
  }
  if (!code) code = cli_bind_symbols(j->s, j->graph, &j->symbols);
  if (!code) code = cli_make_inputs(j->s, j->graph, &j->symbols, &j->inputs);
  if (!code && program)
    code = cli_execute_program(j->s, program, j->graph, j->view, &j->symbols, &j->inputs, &j->execution);
  else if (!code)
    code = cli_execute_open(j->s, j->s->device, j->graph, false, j->view, &j->symbols, &j->inputs, &j->execution);
  rung_program_release(program);
  return code;
}

static int run_all(job *j) {
  cli_profile *profile = NULL;
  int code = CLI_OK;
  if (j->s->options->profile || j->repeat > 1)
    code = cli_execute_run(j->s, &j->execution); /* memory and caches warm up */
  if (!code && j->s->options->profile) {
    profile = cli_profile_begin(j->execution.context);
    if (!profile) code = cli_refuse(j->s, CLI_NO_MEMORY, "out of memory");
  }
  for (int64_t i = 0; !code && i < j->repeat; i++) {
    const double start = cli_seconds();
    code = cli_execute_run(j->s, &j->execution);
    j->seconds[i] = cli_seconds() - start;
    cli_progress(j->s, "run", (uint64_t)i + 1, (uint64_t)j->repeat);
  }
  cli_progress(j->s, "run", 1, 1);
  if (profile) cli_profile_end(profile, code || j->s->options->json ? NULL : j->s, j->repeat);
  return code;
}

int cli_run(cli_session *s) {
  cli_file kind = CLI_FILE_GRAPH;
  int code = cli_recognise(s, &kind);
  if (!code && kind != CLI_FILE_GRAPH && kind != CLI_FILE_COMPILED)
    code = cli_refuse(s, CLI_USAGE, "%s holds weights and no graph; rung generate runs language models",
                      s->options->model);
  if (code) return code;
  if (s->options->profile && s->trace)
    return cli_refuse(s, CLI_USAGE, "--profile and --trace cannot be given together");
  job j = {.s = s, .repeat = s->options->repeat ? s->options->repeat : 1};
  j.seconds = calloc((size_t)j.repeat, sizeof *j.seconds);
  code = j.seconds ? set_up(&j, kind) : cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  if (!code && s->options->check) {
    code = cli_check_run(s, j.graph, j.view, &j.symbols, &j.inputs);
  } else if (!code) {
    code = run_all(&j);
    if (!code) code = finish(&j);
  }
  cli_execute_close(&j.execution);
  cli_free_inputs(&j.inputs);
  if (!j.compiled) rung_graph_destroy(j.graph);
  rung_view_release(j.view);
  rung_weights_release(j.weights);
  rung_compiled_release(j.compiled);
  free(j.seconds);
  return code;
}
