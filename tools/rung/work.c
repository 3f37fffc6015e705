/* SPDX-License-Identifier: MIT
 * What commands compile: text graphs, language models, encoders, or files that are compiled already. */
#include <rung/embed.h>
#include <string.h>

#include "graph_file.h"
#include "runtime/runtime.h"

int cli_open_compiled(cli_session *s, rung_compiled **out_compiled) {
  const rung_source source = cli_source(s);
  const rung_status status = rung_compiled_open(s->device, &source, &s->error, out_compiled);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

int cli_open_weights(cli_session *s, rung_weights **out_weights, rung_view **out_view) {
  *out_weights = NULL;
  *out_view = NULL;
  if (!s->options->weights) return CLI_OK;
  rung_source source = rung_source_path(s->options->weights);
  if (s->options->no_map) source.mode = RUNG_SOURCE_COPY;
  rung_status status = rung_weights_open(s->host, &source, NULL, &s->error, out_weights);
  if (!status) status = rung_view_create(*out_weights, &s->error, out_view);
  if (!status && s->store) status = rung_store_attach(s->store, *out_weights, &s->error);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

/* ---- compiling */

static int compile_graph(cli_session *s, cli_work *w) {
  cli_symbols symbols;
  w->own_view = true;
  int code = cli_read_graph(s, &w->graph, &w->weights, &w->view);
  if (!code) code = cli_bind_symbols(s, w->graph, &symbols);
  if (code) return code;
  rung_compile_options o = cli_compile_options(s->options);
  rung_binding ceiling[RUNG_MAX_SYMBOLS];
  const size_t n = cli_bindings(w->graph, &symbols, ceiling);
  rung_status status = rung_template_create(s->device, w->graph, &o, &s->error, &w->template_);
  if (!status) status = rung_program_create(w->template_, ceiling, n, &s->error, &w->program);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

/* A model's ceilings are those of --ubatch, and what --ceiling says besides. */
static int lower_ceiling(cli_session *s, cli_work *w) {
  cli_symbols symbols;
  const rung_plan *plan = w->program->plan;
  int code = cli_bind_symbols(s, w->template_->graph, &symbols);
  if (code || !s->options->bindings.count) return code;
  const rung_dims *dims = w->template_->graph->dims;
  for (uint32_t i = 0; i < dims->symbols; i++)
    if (symbols.value[i] == RUNG_UNBOUND && !dims->symbol[i].made) symbols.value[i] = plan->ceiling[i];
  rung_binding ceiling[RUNG_MAX_SYMBOLS];
  const size_t n = cli_bindings(w->template_->graph, &symbols, ceiling);
  rung_program_release(w->program);
  w->program = NULL;
  const rung_status status = rung_program_create(w->template_, ceiling, n, &s->error, &w->program);
  return status ? cli_fail(s, CLI_ON_FLAGS, status, NULL) : CLI_OK;
}

static int compile_model(cli_session *s, cli_work *w) {
  int code = cli_open_model(s, &w->model, NULL);
  if (code) return code;
  rung_model_info info;
  rung_model_get_info(w->model, &info);
  rung_status status;
  if (info.encoder) {
    rung_encoder_options o = rung_encoder_options_default();
    if (s->options->ubatch) o.rows = s->options->ubatch;
    status = rung_encoder_compile(w->model, &o, &s->error, &w->template_, &w->program);
  } else {
    const rung_generate_options o = cli_generate_options(s->options);
    status = rung_model_compile(w->model, &o, &s->error, &w->template_, &w->program);
  }
  if (status) return cli_fail(s, CLI_ON_FLAGS, status, NULL);
  w->view = rung_model_view(w->model);
  return lower_ceiling(s, w);
}

static int load_compiled(cli_session *s, cli_work *w) {
  const int code = cli_open_compiled(s, &w->compiled);
  if (code) return code;
  w->template_ = rung_compiled_template(w->compiled);
  rung_template_retain(w->template_);
  const rung_status status = rung_compiled_program(w->compiled, &s->error, &w->program);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

int cli_compile_any(cli_session *s, cli_work *w) {
  *w = (cli_work){0};
  cli_file kind = CLI_FILE_GRAPH;
  const int code = cli_recognise(s, &kind);
  if (code) return code;
  if (kind == CLI_FILE_GRAPH) return compile_graph(s, w);
  return kind == CLI_FILE_COMPILED ? load_compiled(s, w) : compile_model(s, w);
}

void cli_release_work(cli_work *w) {
  rung_program_release(w->program);
  rung_template_release(w->template_);
  rung_compiled_release(w->compiled);
  if (w->own_view) rung_view_release(w->view);
  rung_weights_release(w->weights);
  rung_graph_destroy(w->graph);
  rung_model_release(w->model);
  *w = (cli_work){0};
}
