/* SPDX-License-Identifier: MIT
 * rung bench of text graphs: runs at every combination of the --bind values, inputs random. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "execute.h"
#include "json.h"

enum { ITEM_BYTES = 96 };

typedef struct job {
  cli_session s; /* with options of its own, for one combination at a time */
  cli_options options;
  const cli_session *outer;
  rung_graph *graph;
  rung_weights *weights;
  rung_view *view;
} job;

/* "rows=1,64": the number of values, and value `index` as "rows=64". */
static int value_count(const char *item) {
  int n = 1;
  for (; *item; item++) n += *item == ',';
  return n;
}
static void pick_value(const char *item, int index, char out[ITEM_BYTES]) {
  const char *equals = strchr(item, '=');
  const char *value = equals ? equals + 1 : item;
  while (index-- > 0) value = strchr(value, ',') + 1;
  snprintf(out, ITEM_BYTES, "%.*s=%.*s", equals ? (int)(equals - item) : 0, item, (int)strcspn(value, ","), value);
}

/* Bytes that must move at least: inputs, outputs, weights once. */
static int least_bytes(job *j, const cli_inputs *inputs, const cli_execution *e, double *out) {
  double bytes = 0;
  for (uint32_t i = 0; i < inputs->count; i++)
    bytes += (double)rung_type_bytes(inputs->tensor[i].type, (uint64_t)cli_elements(&inputs->tensor[i]));
  for (int i = 0; i < rung_program_outputs(e->program); i++) {
    rung_tensor t;
    const rung_status status = rung_context_output(e->context, i, &t);
    if (status) return cli_fail(&j->s, CLI_ON_RUN, status, rung_context_message(e->context));
    bytes += (double)rung_type_bytes(t.type, (uint64_t)cli_elements(&t));
  }
  for (uint32_t i = 0; i < j->graph->nodes; i++) {
    if (strcmp(j->graph->node[i].op->name, "weight") != 0) continue;
    const rung_value_type *type = rung_graph_value_type(j->graph, j->graph->node[i].first_value);
    uint64_t elements = 1;
    for (int d = 0; d < type->rank; d++)
      elements *= (uint64_t)j->graph->dims->node[type->extent[d].id].value; /* constants */
    bytes += (double)rung_type_bytes(type->type, elements);
  }
  *out = bytes;
  return CLI_OK;
}

static void report(const job *j, double bytes, const cli_measure *m) {
  const int threads = rung_device_threads(j->s.device);
  const double bandwidth = cli_bandwidth(&j->s, threads, (uint64_t)bytes);
  const double limit = bandwidth > 0 ? bytes / bandwidth : 0, share = m->median > 0 ? limit / m->median : 0;
  const cli_texts *bindings = &j->options.bindings;
  if (!j->options.json) {
    printf("run    ");
    for (int i = 0; i < bindings->count; i++) printf(" %s", bindings->item[i]);
    printf("  %d threads  %.6f s  spread %.1f%%  limit %.6f s  share %.1f%%\n", threads, m->median, 100 * m->spread,
           limit, 100 * share);
    return;
  }
  cli_json json = cli_json_begin(stdout);
  cli_json_string(&json, "work", "run");
  cli_json_open(&json, "binding", '{');
  for (int i = 0; i < bindings->count; i++) {
    char name[ITEM_BYTES];
    const char *equals = strchr(bindings->item[i], '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - bindings->item[i]), bindings->item[i]);
    cli_json_integer(&json, name, strtoll(equals + 1, NULL, 10));
  }
  cli_json_close(&json, '}');
  cli_json_integer(&json, "threads", threads);
  cli_json_number(&json, "seconds", m->median);
  cli_json_number(&json, "limit", limit);
  cli_json_number(&json, "limit_share", share);
  cli_json_number(&json, "spread", m->spread);
  cli_json_end(&json);
}

static int bench_binding(job *j) {
  cli_symbols symbols;
  cli_inputs inputs = {0};
  cli_execution e = {0};
  cli_measure m = {0};
  double bytes = 0;
  int code = cli_bind_symbols(&j->s, j->graph, &symbols);
  if (!code) code = cli_make_inputs(&j->s, j->graph, &symbols, &inputs);
  if (!code) code = cli_execute_open(&j->s, j->s.device, j->graph, false, j->view, &symbols, &inputs, &e);
  if (!code) code = cli_measure_begin(&j->s, &m);
  for (int64_t i = -1; !code && i < m.repeat; i++) {
    const double start = cli_seconds();
    code = cli_execute_run(&j->s, &e);
    if (i >= 0) m.seconds[i] = cli_seconds() - start;
  }
  cli_measure_end(&m);
  if (!code) code = least_bytes(j, &inputs, &e, &bytes);
  if (!code) report(j, bytes, &m);
  cli_execute_close(&e);
  cli_free_inputs(&inputs);
  return code;
}

static int open_graph(job *j) { return cli_read_graph(&j->s, &j->graph, &j->weights, &j->view); }

/* Counts through all combinations like an odometer, the last --bind fastest. */
static int bench_all(job *j) {
  const cli_texts *given = &j->outer->options->bindings;
  char(*item)[ITEM_BYTES] = calloc((size_t)given->count + 1, sizeof *item);
  if (!item) return cli_refuse(&j->s, CLI_NO_MEMORY, "out of memory");
  int index[CLI_MOST_ITEMS] = {0}, code = CLI_OK, at = 0;
  while (!code && at >= 0) {
    for (int i = 0; i < given->count; i++) {
      pick_value(given->item[i], index[i], item[i]);
      j->options.bindings.item[i] = item[i];
    }
    code = bench_binding(j);
    for (at = given->count - 1; at >= 0 && ++index[at] == value_count(given->item[at]); at--) index[at] = 0;
  }
  free(item);
  return code;
}

int cli_bench_graph(cli_session *session) {
  job *j = calloc(1, sizeof *j);
  if (!j) return cli_refuse(session, CLI_NO_MEMORY, "out of memory");
  j->outer = session;
  j->options = *session->options;
  j->s = *session;
  j->s.options = &j->options;
  int code = open_graph(j);
  if (!code) code = bench_all(j);
  rung_graph_destroy(j->graph);
  rung_view_release(j->view);
  rung_weights_release(j->weights);
  free(j);
  return code;
}
