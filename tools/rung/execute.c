/* SPDX-License-Identifier: MIT
 * Inputs from files or made up, and a graph compiled for them. */
#include "execute.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/half.h"

/* ---- numbers */

int64_t cli_elements(const rung_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->extent[i];
  return n;
}

bool cli_element(const rung_tensor *t, int64_t i, double *out) {
  switch (t->type) {
    case RUNG_TYPE_F32:
      *out = (double)((const float *)t->data)[i];
      return true;
    case RUNG_TYPE_F64:
      *out = ((const double *)t->data)[i];
      return true;
    case RUNG_TYPE_F16:
      *out = (double)rung_f16_to_f32(((const uint16_t *)t->data)[i]);
      return true;
    case RUNG_TYPE_BF16:
      *out = (double)rung_bf16_to_f32(((const uint16_t *)t->data)[i]);
      return true;
    case RUNG_TYPE_I8:
      *out = ((const int8_t *)t->data)[i];
      return true;
    case RUNG_TYPE_I16:
      *out = ((const int16_t *)t->data)[i];
      return true;
    case RUNG_TYPE_I32:
      *out = ((const int32_t *)t->data)[i];
      return true;
    case RUNG_TYPE_I64:
      *out = (double)((const int64_t *)t->data)[i];
      return true;
    case RUNG_TYPE_BOOL:
    case RUNG_TYPE_U8:
      *out = ((const uint8_t *)t->data)[i];
      return true;
    case RUNG_TYPE_U16:
      *out = ((const uint16_t *)t->data)[i];
      return true;
    case RUNG_TYPE_U32:
      *out = ((const uint32_t *)t->data)[i];
      return true;
    case RUNG_TYPE_U64:
      *out = (double)((const uint64_t *)t->data)[i];
      return true;
    default:
      return false;
  }
}

/* Floats in (-1, 1); integers 0 or 1, which are indices of almost everything. Other types stay zero. */
static void fill_random(rung_tensor *t, uint32_t seed) {
  uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (seed + 1);
  const int64_t n = cli_elements(t);
  for (int64_t i = 0; i < n; i++) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t bits = state * UINT64_C(0x2545F4914F6CDD1D) >> 40;
    const float f = (float)bits * 0x1p-23f - 1;
    switch (t->type) {
      case RUNG_TYPE_F32:
        ((float *)t->data)[i] = f;
        break;
      case RUNG_TYPE_F64:
        ((double *)t->data)[i] = (double)f;
        break;
      case RUNG_TYPE_F16:
        ((uint16_t *)t->data)[i] = rung_f16_from_f32(f);
        break;
      case RUNG_TYPE_BF16:
        ((uint16_t *)t->data)[i] = rung_bf16_from_f32(f);
        break;
      case RUNG_TYPE_BOOL:
      case RUNG_TYPE_I8:
      case RUNG_TYPE_U8:
        ((uint8_t *)t->data)[i] = f > 0;
        break;
      case RUNG_TYPE_I16:
      case RUNG_TYPE_U16:
        ((uint16_t *)t->data)[i] = f > 0;
        break;
      case RUNG_TYPE_I32:
      case RUNG_TYPE_U32:
        ((uint32_t *)t->data)[i] = f > 0;
        break;
      case RUNG_TYPE_I64:
      case RUNG_TYPE_U64:
        ((uint64_t *)t->data)[i] = f > 0;
        break;
      default:
        return;
    }
  }
}

/* ---- inputs */

static const rung_node *input_node(const rung_graph *graph, uint32_t i) { return &graph->node[graph->input[i]]; }

static int find_input(const cli_session *s, const rung_graph *graph, const char *item, uint32_t *out_index,
                      const char **out_path) {
  const char *equals = strchr(item, '=');
  if (!equals || equals == item || !equals[1]) return cli_refuse(s, CLI_USAGE, "-i: \"%s\" is not NAME=FILE.npy", item);
  char name[256];
  snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
  cli_nearest nearest = cli_nearest_begin(name);
  for (uint32_t i = 0; i < graph->inputs; i++) {
    const char *candidate = cli_node_name(input_node(graph, i));
    cli_nearest_offer(&nearest, candidate);
    if (strcmp(candidate, name) != 0) continue;
    *out_index = i;
    *out_path = equals + 1;
    return CLI_OK;
  }
  if (nearest.best) return cli_refuse(s, CLI_USAGE, "-i: there is no input %s; did you mean %s?", name, nearest.best);
  char list[512] = "";
  for (uint32_t i = 0; i < graph->inputs; i++) {
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", cli_node_name(input_node(graph, i)));
  }
  return cli_refuse(s, CLI_USAGE, "-i: there is no input %s; there %s%s", name, list[0] ? "are: " : "is none", list);
}

static int read_input(cli_session *s, const rung_graph *graph, const char *item, cli_symbols *symbols,
                      cli_inputs *inputs) {
  uint32_t index;
  const char *path;
  const int code = find_input(s, graph, item, &index, &path);
  if (code) return code;
  if (inputs->tensor[index].data)
    return cli_refuse(s, CLI_USAGE, "-i: %s is given twice", cli_node_name(input_node(graph, index)));
  const rung_source source = rung_source_path(path);
  rung_npy *npy = &inputs->file[index];
  const rung_status status = rung_npy_open(npy, s->host, &source, &s->error);
  if (status) return cli_fail(s, CLI_ON_FILE, status, NULL);
  const rung_value_type *want = rung_graph_value_type(graph, input_node(graph, index)->first_value);
  if (npy->type != want->type || npy->rank != want->rank)
    return cli_refuse(s, CLI_BAD_FILE, "%s holds %s of rank %d, input %s is %s of rank %d", path,
                      rung_type_name(npy->type), npy->rank, cli_node_name(input_node(graph, index)),
                      rung_type_name(want->type), want->rank);
  inputs->tensor[index] = rung_tensor_dense(npy->type, npy->rank, npy->extent, (void *)(uintptr_t)npy->data);
  for (int d = 0; d < want->rank; d++) { /* plain symbols get their values; the run checks everything else */
    const rung_dim_node *dim = &graph->dims->node[want->extent[d].id];
    if (dim->kind == RUNG_DIM_KIND_SYMBOL && symbols->value[dim->symbol] == RUNG_UNBOUND)
      symbols->value[dim->symbol] = npy->extent[d];
  }
  return CLI_OK;
}

/* Names a symbol that the extents of an input need and nobody gave. */
static int refuse_unbound(const cli_session *s, const rung_graph *graph, const char *name, rung_dim dim,
                          const cli_symbols *symbols) {
  const uint64_t needs = graph->dims->node[dim.id].symbols;
  for (uint32_t i = 0; i < graph->dims->symbols; i++)
    if ((needs >> i & 1) && symbols->value[i] == RUNG_UNBOUND)
      return cli_refuse(s, CLI_USAGE,
                        "input %s needs a value for %s (%" PRId64 "..%" PRId64 "): --bind %s=N or -i %s=FILE.npy", name,
                        graph->dims->symbol[i].name, graph->dims->symbol[i].lo, graph->dims->symbol[i].hi,
                        graph->dims->symbol[i].name, name);
  return cli_refuse(s, CLI_USAGE, "input %s has no size", name);
}

static int make_input(cli_session *s, const rung_graph *graph, uint32_t i, const int64_t *value,
                      const cli_symbols *symbols, cli_inputs *inputs) {
  const rung_value_type *type = rung_graph_value_type(graph, input_node(graph, i)->first_value);
  const char *name = cli_node_name(input_node(graph, i));
  rung_tensor t = {.type = type->type, .rank = type->rank};
  uint64_t elements = 1;
  for (int d = 0; d < type->rank; d++) {
    const int64_t extent = value[type->extent[d].id];
    if (extent == RUNG_UNBOUND) return refuse_unbound(s, graph, name, type->extent[d], symbols);
    t.extent[d] = extent;
    if (extent < 0 || rung_mul_overflows(elements, (uint64_t)extent, &elements))
      return cli_refuse(s, CLI_USAGE, "input %s is too large", name);
  }
  const uint64_t bytes = rung_type_bytes(t.type, elements);
  inputs->memory[i] =
      elements > SIZE_MAX / 16 ? NULL : calloc(1, (size_t)bytes + 64); /* calloc aligns to 16, which is enough */
  if (!inputs->memory[i])
    return cli_refuse(s, CLI_NO_MEMORY, "input %s: out of memory for %" PRIu64 " bytes", name, bytes);
  t.data = inputs->memory[i];
  fill_random(&t, i);
  inputs->tensor[i] = t;
  return CLI_OK;
}

int cli_make_inputs(cli_session *s, const rung_graph *graph, cli_symbols *symbols, cli_inputs *out) {
  const size_t n = graph->inputs;
  *out = (cli_inputs){.count = graph->inputs,
                      .tensor = calloc(n + 1, sizeof(rung_tensor)),
                      .file = calloc(n + 1, sizeof(rung_npy)),
                      .memory = calloc(n + 1, sizeof(void *))};
  int64_t *value = calloc(graph->dims->count + 1, sizeof *value);
  int code = out->tensor && out->file && out->memory && value ? CLI_OK : cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  for (int i = 0; !code && i < s->options->inputs.count; i++)
    if (!cli_is_pinned(s, s->options->inputs.item[i]))
      code = read_input(s, graph, s->options->inputs.item[i], symbols, out);
  if (!code) {
    const rung_status status = rung_dims_evaluate(graph->dims, symbols->value, value, &s->error);
    if (status) code = cli_fail(s, CLI_ON_FLAGS, status, NULL);
  }
  for (uint32_t i = 0; !code && i < graph->inputs; i++)
    if (!out->tensor[i].data) code = make_input(s, graph, i, value, symbols, out);
  free(value);
  return code;
}

void cli_free_inputs(cli_inputs *inputs) {
  for (uint32_t i = 0; i < inputs->count; i++) {
    if (inputs->file) rung_npy_close(&inputs->file[i]);
    if (inputs->memory) free(inputs->memory[i]);
  }
  free(inputs->tensor);
  free(inputs->file);
  free(inputs->memory);
}

/* ---- execution */

static bool has_states(const rung_graph *graph) {
  for (uint32_t i = 0; i < graph->nodes; i++)
    if (strcmp(graph->node[i].op->name, "state") == 0) return true;
  return false;
}

static rung_status open_context(cli_session *s, const rung_graph *graph, rung_view *view, cli_execution *e) {
  enum { POSITIONS = 4096 }; /* of key/value states, which a single run hardly fills */
  if (has_states(graph)) {
    rung_state_options o = rung_state_options_default();
    o.sequences = 1;
    o.capacity = POSITIONS;
    RUNG_TRY(rung_state_create(e->template_, &o, &s->error, &e->state));
  }
  return rung_context_create(e->template_, view, e->state, NULL, &s->error, &e->context);
}

static rung_status bind_inputs(const rung_graph *graph, const cli_symbols *symbols, const cli_inputs *inputs,
                               const cli_execution *e) {
  RUNG_TRY(rung_context_use(e->context, e->program));
  for (uint32_t i = 0; i < inputs->count; i++) {
    const int slot = rung_program_find_input(e->program, cli_node_name(input_node(graph, i)));
    if (slot >= 0) RUNG_TRY(rung_context_bind_input(e->context, slot, &inputs->tensor[i]));
  }
  rung_binding binding[RUNG_MAX_SYMBOLS];
  const size_t n = cli_bindings(graph, symbols, binding);
  for (size_t i = 0; i < n; i++) {
    const rung_status status = rung_context_set_extent(e->context, binding[i].symbol, binding[i].value);
    if (status && status != RUNG_NOT_FOUND) return status; /* optimising may have removed the last use of a symbol */
  }
  return RUNG_OK;
}

static int make_ready(cli_session *s, rung_device *device, const rung_graph *graph, rung_view *view,
                      const cli_symbols *symbols, const cli_inputs *inputs, uint64_t start, cli_execution *e) {
  rung_status status = open_context(s, graph, view, e);
  if (status) return cli_fail(s, CLI_ON_FILE, status, NULL);
  rung_trace_phase(s->trace, "compile", start, rung_trace_now());
  status = bind_inputs(graph, symbols, inputs, e);
  if (status) return cli_fail(s, CLI_ON_FILE, status, rung_context_message(e->context));
  if (!s->trace) return CLI_OK;
  status = rung_trace_context(s->trace, e->context, rung_device_name(device), &s->error);
  return status ? cli_fail(s, CLI_ON_RUN, status, NULL) : CLI_OK;
}

int cli_execute_program(cli_session *s, rung_program *program, const rung_graph *graph, rung_view *view,
                        const cli_symbols *symbols, const cli_inputs *inputs, cli_execution *e) {
  *e = (cli_execution){.template_ = rung_program_template(program), .program = program};
  rung_template_retain(e->template_);
  rung_program_retain(program);
  return make_ready(s, s->device, graph, view, symbols, inputs, rung_trace_now(), e);
}

int cli_execute_open(cli_session *s, rung_device *device, const rung_graph *graph, bool steps, rung_view *view,
                     const cli_symbols *symbols, const cli_inputs *inputs, cli_execution *e) {
  *e = (cli_execution){0};
  const uint64_t start = rung_trace_now();
  rung_compile_options o = cli_compile_options(s->options);
  if (steps) o.fold = o.fuse = o.merge = false;
  rung_binding ceiling[RUNG_MAX_SYMBOLS];
  const size_t n = cli_bindings(graph, symbols, ceiling);
  rung_status status = rung_store_template(s->store, device, graph, &o, &s->error, &e->template_);
  if (!status) status = rung_program_create(e->template_, ceiling, n, &s->error, &e->program);
  if (status) return cli_fail(s, CLI_ON_FILE, status, NULL);
  return make_ready(s, device, graph, view, symbols, inputs, start, e);
}

int cli_execute_run(cli_session *s, const cli_execution *e) {
  if (cli_interrupted()) return CLI_INTERRUPTED;
  cli_interrupt_target(e->context);
  const rung_status status = rung_context_run(e->context);
  cli_interrupt_target(NULL);
  return status ? cli_fail(s, CLI_ON_FILE, status, rung_context_message(e->context)) : CLI_OK;
}

void cli_execute_close(cli_execution *e) {
  rung_context_destroy(e->context);
  rung_state_release(e->state);
  rung_program_release(e->program);
  rung_template_release(e->template_);
  *e = (cli_execution){0};
}
