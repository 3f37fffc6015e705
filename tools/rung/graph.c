/* SPDX-License-Identifier: MIT
 * rung graph: a graph as text or as a picture. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "graph_svg.h"
#include "runtime/runtime.h"

static int write_to(cli_session *s, const rung_text *text) {
  const char *path = s->options->output;
  FILE *file = path ? fopen(path, "wb") : stdout;
  if (!file) return cli_refuse(s, CLI_FAILED, "%s: %s", path, strerror(errno));
  bool ok = fwrite(text->data, 1, text->length, file) == text->length;
  if (path) ok &= fclose(file) == 0;
  if (!ok) return cli_refuse(s, CLI_FAILED, "%s: %s", path ? path : "standard output", strerror(errno));
  if (path) cli_note(s, "%s", path);
  return CLI_OK;
}

static int show(cli_session *s, const rung_graph *graph) {
  rung_text text;
  rung_text_init(&text, s->host);
  rung_status status = RUNG_OK;
  if (s->options->output || s->options->svg)
    status = cli_draw_graph(graph, &text, &s->error);
  else
    rung_graph_print_text(graph, &text);
  if (!status) status = rung_text_status(&text, &s->error);
  const int code = status ? cli_fail(s, CLI_ON_RUN, status, NULL) : write_to(s, &text);
  rung_text_finish(&text);
  return code;
}

int cli_graph(cli_session *s) {
  if (s->options->json) return cli_refuse(s, CLI_USAGE, "a graph is text or a picture; there is no JSON of it");
  if (s->options->source) {
    cli_file kind = CLI_FILE_GRAPH;
    rung_graph *graph = NULL;
    int code = cli_recognise(s, &kind);
    if (!code && kind != CLI_FILE_GRAPH)
      code = cli_refuse(s, CLI_USAGE, "--source is for text graphs; %s is none", s->options->model);
    rung_weights *weights = NULL;
    rung_view *view = NULL;
    if (!code) code = cli_read_graph(s, &graph, &weights, &view);
    if (!code) code = show(s, graph);
    rung_view_release(view);
    rung_weights_release(weights);
    rung_graph_destroy(graph);
    return code;
  }
  cli_work work;
  int code = cli_compile_any(s, &work);
  if (!code) code = show(s, work.template_->graph);
  cli_release_work(&work);
  return code;
}
