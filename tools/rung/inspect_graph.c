/* SPDX-License-Identifier: MIT
 * A text graph's face (symbols, inputs, weights, states, outputs), and the kernels that a program chose. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect.h"
#include "runtime/runtime.h"

static void show_value(const cli_inspection *i, const rung_graph *graph, const char *name, uint32_t value,
                       rung_text *type) {
  cli_type_text(graph, value, type);
  const char *text = type->length ? type->data : "";
  if (!i->json) {
    printf("  %-24s %s\n", name, text);
    return;
  }
  cli_json_open(i->json, NULL, '{');
  cli_json_string(i->json, "name", name);
  cli_json_string(i->json, "type", text);
  cli_json_close(i->json, '}');
}

static void begin_list(const cli_inspection *i, const char *key) {
  if (i->json)
    cli_json_open(i->json, key, '[');
  else
    printf("%s:\n", key);
}
static void end_list(const cli_inspection *i) {
  if (i->json) cli_json_close(i->json, ']');
}

static void show_declared(const cli_inspection *i, const rung_graph *graph, const char *key, const char *op,
                          rung_text *type) {
  uint32_t found = 0;
  for (uint32_t n = 0; n < graph->nodes; n++) found += strcmp(graph->node[n].op->name, op) == 0;
  if (!found && !i->json) return;
  begin_list(i, key);
  for (uint32_t n = 0; n < graph->nodes; n++)
    if (strcmp(graph->node[n].op->name, op) == 0)
      show_value(i, graph, cli_node_name(&graph->node[n]), graph->node[n].first_value, type);
  end_list(i);
}

static void show_symbols(const cli_inspection *i, const rung_graph *graph) {
  if (!graph->dims->symbols && !i->json) return;
  begin_list(i, "symbols");
  for (uint32_t n = 0; n < graph->dims->symbols; n++) {
    const rung_symbol *symbol = &graph->dims->symbol[n];
    if (!i->json) {
      printf("  %-24s %" PRId64 "..%" PRId64 "%s\n", symbol->name, symbol->lo, symbol->hi,
             symbol->made ? ", found at run time" : "");
      continue;
    }
    cli_json_open(i->json, NULL, '{');
    cli_json_string(i->json, "name", symbol->name);
    cli_json_integer(i->json, "lo", symbol->lo);
    cli_json_integer(i->json, "hi", symbol->hi);
    cli_json_bool(i->json, "made", symbol->made);
    cli_json_close(i->json, '}');
  }
  end_list(i);
}

void cli_show_graph(const cli_inspection *i, const rung_graph *graph) {
  rung_text type;
  rung_text_init(&type, i->session->host);
  if (i->json) {
    cli_json_string(i->json, "format", "graph");
    cli_json_integer(i->json, "nodes", graph->nodes);
  } else {
    printf("%s: graph, %u nodes\n", i->session->options->model, graph->nodes);
  }
  show_symbols(i, graph);
  show_declared(i, graph, "inputs", "input", &type);
  show_declared(i, graph, "weights", "weight", &type);
  show_declared(i, graph, "states", "state", &type);
  begin_list(i, "outputs");
  for (uint32_t n = 0; n < graph->outputs; n++)
    show_value(i, graph, graph->output[n].name, graph->output[n].value, &type);
  end_list(i);
  rung_text_finish(&type);
}

/* ---- kernels */

static bool same_choice(const rung_plan *plan, const rung_step *a, const rung_step *b) {
  if (a->op != b->op || a->variants != b->variants) return false;
  for (uint32_t v = 0; v < a->variants; v++)
    if (plan->variant[a->variant + v].kernel != plan->variant[b->variant + v].kernel) return false;
  return true;
}

static void print_choice(const rung_plan *plan, const rung_step *step, uint32_t count) {
  printf("%5u  %-16s ", count, step->op->name);
  for (uint32_t v = 0; v < step->variants; v++) {
    const rung_kernel *k = plan->variant[step->variant + v].kernel;
    printf("%s%s", v ? " | " : "", k->name);
    if (k->guard_role < 0) continue;
    if (k->guard_hi)
      printf(" (%" PRId64 "..%" PRId64 ")", k->guard_lo, k->guard_hi - 1);
    else
      printf(" (%" PRId64 "..)", k->guard_lo);
  }
  printf("\n");
}

static void json_choice(cli_json *j, const rung_plan *plan, const rung_step *step, uint32_t count) {
  cli_json_open(j, NULL, '{');
  cli_json_string(j, "op", step->op->name);
  cli_json_integer(j, "steps", count);
  cli_json_open(j, "kernels", '[');
  for (uint32_t v = 0; v < step->variants; v++) cli_json_string(j, NULL, plan->variant[step->variant + v].kernel->name);
  cli_json_close(j, ']');
  cli_json_close(j, '}');
}

/* Steps that chose alike are counted together, in the order of the first. */
void cli_show_kernels(const cli_inspection *i, const rung_program *program) {
  const rung_plan *plan = program->plan;
  if (i->json) cli_json_open(i->json, "kernels", '[');
  for (uint32_t s = 0; s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    if (step->kind != RUNG_STEP_KERNEL) continue;
    bool seen = false;
    uint32_t count = 0;
    for (uint32_t t = 0; t < plan->steps && !seen; t++) {
      if (plan->step[t].kind != RUNG_STEP_KERNEL || !same_choice(plan, step, &plan->step[t])) continue;
      seen = t < s;
      count++;
    }
    if (seen) continue;
    if (i->json)
      json_choice(i->json, plan, step, count);
    else
      print_choice(plan, step, count);
  }
  if (i->json) cli_json_close(i->json, ']');
}
