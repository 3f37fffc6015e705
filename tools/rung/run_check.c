/* SPDX-License-Identifier: MIT
 * rung run --check: the same graph on the reference device. Outputs first; where they differ, every value of a copy of
 * the graph in which each is an output and nothing is fused, so that the first step that differs can be named. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "execute.h"
#include "json.h"

typedef struct difference {
  double worst;  /* largest difference over the largest magnitude of the reference */
  int64_t index; /* where */
  double got, want;
  bool compared; /* false: no plain numbers */
} difference;

/* Where one is no number or infinite and the other is not the same, the difference is infinite. */
static double distance(double got, double want) {
  if (got == want || (isnan(got) && isnan(want))) return 0;
  return isfinite(got) && isfinite(want) ? fabs(got - want) : HUGE_VAL;
}

static difference compare(const rung_tensor *got, const rung_tensor *want) {
  difference d = {.compared = true};
  const int64_t n = cli_elements(want);
  if (cli_elements(got) != n) return (difference){.worst = HUGE_VAL, .compared = true};
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < n; i++) {
    double a, b;
    if (!cli_element(got, i, &a) || !cli_element(want, i, &b)) return (difference){0};
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
    const double off = distance(a, b);
    if (off <= worst) continue;
    worst = off;
    d.index = i;
    d.got = a;
    d.want = b;
  }
  d.worst = worst > 0 ? worst / (largest > 0 ? largest : 1) : 0;
  return d;
}

/* Integers must be equal. Fast arithmetic with quantised weights and narrow types round activations on one device as on
 * the other, but after sums that differ in their last bits. f16 has three bits more than bf16. */
static double bound(const cli_session *s, rung_type type) {
  switch (type) {
    case RUNG_TYPE_F64:
      return 1e-9;
    case RUNG_TYPE_F16:
      return 2e-3;
    case RUNG_TYPE_BF16:
      return 2e-2;
    case RUNG_TYPE_F32:
      if (s->options->weights && s->options->quant == CLI_QUANT_FAST) return 1e-2;
      switch (s->options->precision) {
        case CLI_PRECISION_F32:
          return 1e-4;
        case CLI_PRECISION_F16:
        case CLI_PRECISION_MIXED_F16:
          return 1e-2 / 8;
        default:
          return 1e-2;
      }
    default:
      return 0;
  }
}

static void show(const cli_session *s, const char *name, rung_type type, const difference *d, bool good) {
  if (s->options->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_string(&json, "value", name);
    cli_json_string(&json, "type", rung_type_name(type));
    cli_json_number(&json, "difference", d->worst);
    cli_json_number(&json, "bound", bound(s, type));
    cli_json_integer(&json, "index", d->index);
    cli_json_bool(&json, "ok", good);
    cli_json_end(&json);
  } else if (!d->compared) {
    printf("%s %s: not compared\n", name, rung_type_name(type));
  } else {
    printf("%s %s: difference %.3g, bound %.3g", name, rung_type_name(type), d->worst, bound(s, type));
    if (!good) printf("; at %" PRId64 " %.9g instead of %.9g", d->index, d->got, d->want);
    printf(good ? ", ok\n" : ", DIFFERS\n");
  }
}

typedef struct pair {
  cli_execution got, want;
} pair;

static int run_pair(cli_session *s, const rung_graph *graph, bool steps, rung_view *view, const cli_symbols *symbols,
                    const cli_inputs *inputs, pair *out) {
  *out = (pair){0};
  rung_device *reference = NULL;
  const rung_status status = cli_device_open(s, CLI_DEVICE_REF, &reference);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  int code = cli_execute_open(s, s->device, graph, steps, view, symbols, inputs, &out->got);
  if (!code) code = cli_execute_open(s, reference, graph, steps, view, symbols, inputs, &out->want);
  if (!code) code = cli_execute_run(s, &out->got);
  if (!code) code = cli_execute_run(s, &out->want);
  rung_device_release(reference); /* the template keeps it */
  return code;
}

static void close_pair(pair *p) {
  cli_execute_close(&p->got);
  cli_execute_close(&p->want);
}

static int compare_output(cli_session *s, const pair *p, int slot, difference *out, rung_type *out_type) {
  rung_tensor got, want;
  rung_status status = rung_context_output(p->got.context, slot, &got);
  if (status) return cli_fail(s, CLI_ON_RUN, status, rung_context_message(p->got.context));
  status = rung_context_output(p->want.context, slot, &want);
  if (status) return cli_fail(s, CLI_ON_RUN, status, rung_context_message(p->want.context));
  *out = compare(&got, &want);
  *out_type = want.type;
  return CLI_OK;
}

/* ---- steps */

static bool is_shown(const rung_graph *graph, const rung_node *node, uint32_t value) {
  const rung_value_type *type = rung_graph_value_type(graph, value);
  return !(node->op->flags & RUNG_OP_DECLARES) && type->kind == RUNG_VALUE_TENSOR &&
         rung_type_bytes(type->type, 1) != 0 && type->layout == 0;
}

/* A copy whose every value is an output called "step %12 op label". */
static int copy_with_outputs(cli_session *s, const rung_graph *graph, rung_graph **out_copy) {
  char *text;
  size_t bytes;
  rung_status status = rung_graph_print(graph, &s->error, &text, &bytes);
  if (!status) {
    status = rung_graph_parse(s->host, text, bytes, &s->error, out_copy);
    rung_text_free(s->host, text, bytes);
  }
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  rung_graph *copy = *out_copy;
  for (uint32_t n = 0; n < copy->nodes; n++) {
    const rung_node node = copy->node[n];
    for (uint32_t r = 0; r < node.results; r++) {
      const uint32_t value = node.first_value + r;
      if (!is_shown(copy, &node, value)) continue;
      char name[256];
      snprintf(name, sizeof name, "step %s %s%s%s", rung_graph_value_name(copy, value).text, node.op->name,
               node.label ? " " : "", node.label ? node.label : "");
      rung_graph_output(copy, name, (rung_value){copy->serial, value});
    }
  }
  return rung_graph_status(copy) ? cli_fail(s, CLI_ON_RUN, rung_graph_status(copy), rung_graph_message(copy)) : CLI_OK;
}

static int check_steps(cli_session *s, const rung_graph *graph, rung_view *view, const cli_symbols *symbols,
                       const cli_inputs *inputs) {
  rung_graph *copy = NULL;
  pair p = {0};
  int code = copy_with_outputs(s, graph, &copy);
  if (!code) code = run_pair(s, copy, true, view, symbols, inputs, &p);
  bool found = false;
  for (int i = (int)graph->outputs; !code && !found && i < rung_program_outputs(p.got.program); i++) {
    difference d;
    rung_type type;
    code = compare_output(s, &p, i, &d, &type);
    found = !code && d.compared && !(d.worst <= bound(s, type));
    if (found) show(s, rung_program_output_name(p.got.program, i), type, &d, false);
  }
  close_pair(&p);
  rung_graph_destroy(copy);
  if (!code && !found) cli_note(s, "every step alone agrees: what differs is fused, or the sum of small differences");
  return code;
}

int cli_check_run(cli_session *s, const rung_graph *graph, rung_view *view, const cli_symbols *symbols,
                  const cli_inputs *inputs) {
  pair p;
  int code = run_pair(s, graph, false, view, symbols, inputs, &p);
  bool all = true;
  for (int i = 0; !code && i < rung_program_outputs(p.got.program); i++) {
    difference d;
    rung_type type;
    code = compare_output(s, &p, i, &d, &type);
    if (code) break;
    const bool good = !d.compared || d.worst <= bound(s, type);
    all = all && good;
    show(s, rung_program_output_name(p.got.program, i), type, &d, good);
  }
  close_pair(&p);
  if (code || all) return code;
  code = check_steps(s, graph, view, symbols, inputs);
  return code ? code : CLI_FAILED;
}
