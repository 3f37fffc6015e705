/* SPDX-License-Identifier: MIT
 * Model files by their first bytes; text graphs and their symbols. */
#include "graph_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors.h"
#include "formats/sections.h"
#include "prompt.h"

int cli_recognise(const cli_session *s, cli_file *out) {
  const char *path = s->options->model;
  char head[8] = {0}, folder[RUNG_PATH_BYTES];
  const rung_source source = rung_source_path(path);
  if (rung_find_folder(&source, folder)) {
    *out = CLI_FILE_SAFETENSORS;
    return CLI_OK;
  }
  FILE *file = fopen(path, "rb");
  if (!file) return cli_refuse(s, CLI_BAD_FILE, "%s: %s", path, strerror(errno));
  const size_t got = fread(head, 1, sizeof head, file);
  const bool failed = ferror(file) != 0;
  fclose(file);
  if (failed) return cli_refuse(s, CLI_BAD_FILE, "%s: cannot be read", path);
  const char *dot = strrchr(path, '.');
  if (got >= 4 && memcmp(head, "GGUF", 4) == 0)
    *out = CLI_FILE_GGUF;
  else if (got >= 5 && memcmp(head, "rung ", 5) == 0)
    *out = CLI_FILE_GRAPH;
  else if (got == sizeof head && rung_sections_recognise(head, got))
    *out = CLI_FILE_COMPILED;
  else if (dot && strcmp(dot, ".safetensors") == 0)
    *out = CLI_FILE_SAFETENSORS;
  else if ((dot && strcmp(dot, ".onnx") == 0) || rung_onnx_recognise((const uint8_t *)head, got))
    *out = CLI_FILE_GRAPH;
  else
    return cli_refuse(
        s, CLI_BAD_FILE,
        "%s: neither a GGUF file nor a model folder nor ONNX nor a text graph (which begins with \"rung 1\")", path);
  return CLI_OK;
}

static bool is_text(const char *path) {
  char head[5] = {0};
  FILE *file = fopen(path, "rb");
  const size_t got = file ? fread(head, 1, sizeof head, file) : 0;
  if (file) fclose(file);
  return got == sizeof head && memcmp(head, "rung ", 5) == 0;
}

int cli_read_graph(cli_session *s, rung_graph **out_graph, rung_weights **out_weights, rung_view **out_view) {
  cli_bytes text;
  *out_graph = NULL;
  *out_weights = NULL;
  *out_view = NULL;
  if (!is_text(s->options->model)) {
    if (!s->options->weights) return cli_read_onnx(s, out_graph, out_weights, out_view);
    return cli_refuse(s, CLI_USAGE, "--weights is for text graphs; %s has weights of its own", s->options->model);
  }
  int code = cli_read_file(s, s->options->model, &text);
  if (!code) {
    const rung_status status = rung_graph_parse(s->host, text.data, text.bytes, &s->error, out_graph);
    if (status == RUNG_UNSUPPORTED)
      code = cli_fail(s, CLI_ON_FILE, status, NULL);
    else if (status)
      code = cli_refuse(s, cli_exit_code(CLI_ON_FILE, status), "%s: %s", s->options->model, s->error.message);
  }
  free(text.data);
  return code ? code : cli_open_weights(s, out_weights, out_view);
}

/* The flag that names symbols. */
static const char *word(const cli_session *s) { return s->command == CLI_COMPILE ? "--ceiling" : "--bind"; }

static int unknown_symbol(const cli_session *s, const rung_graph *graph, const char *name) {
  cli_nearest nearest = cli_nearest_begin(name);
  for (uint32_t i = 0; i < graph->dims->symbols; i++) cli_nearest_offer(&nearest, graph->dims->symbol[i].name);
  if (nearest.best)
    return cli_refuse(s, CLI_USAGE, "%s: there is no symbol %s; did you mean %s?", word(s), name, nearest.best);
  char list[256] = "";
  for (uint32_t i = 0; i < graph->dims->symbols; i++) {
    const size_t used = strlen(list);
    if (!graph->dims->symbol[i].made)
      snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", graph->dims->symbol[i].name);
  }
  return cli_refuse(s, CLI_USAGE, "%s: there is no symbol %s; there %s%s", word(s), name, list[0] ? "are: " : "is none",
                    list);
}

static int bind_one(const cli_session *s, const rung_graph *graph, const char *item, cli_symbols *out) {
  const char *equals = strchr(item, '=');
  int64_t value;
  const char *end;
  if (!equals || equals == item || !rung_parse_i64(equals + 1, NULL, &value, &end) || *end)
    return cli_refuse(s, CLI_USAGE, "%s: \"%s\" is not SYMBOL=N", word(s), item);
  const int i = rung_dims_find_symbol(graph->dims, item, (size_t)(equals - item));
  if (i < 0) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
    return unknown_symbol(s, graph, name);
  }
  const rung_symbol *symbol = &graph->dims->symbol[i];
  if (symbol->made) return cli_refuse(s, CLI_USAGE, "%s: %s is found by the graph itself", word(s), symbol->name);
  if (value < symbol->lo || value > symbol->hi)
    return cli_refuse(s, CLI_USAGE, "%s: %s is outside %" PRId64 "..%" PRId64 "; the nearest is %" PRId64, word(s),
                      item, symbol->lo, symbol->hi, value < symbol->lo ? symbol->lo : symbol->hi);
  out->value[i] = value;
  return CLI_OK;
}

int cli_bind_symbols(const cli_session *s, const rung_graph *graph, cli_symbols *out) {
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) out->value[i] = RUNG_UNBOUND;
  for (int i = 0; i < s->options->bindings.count; i++) {
    if (cli_is_pinned(s, s->options->bindings.item[i])) continue;
    const int code = bind_one(s, graph, s->options->bindings.item[i], out);
    if (code) return code;
  }
  return CLI_OK;
}

size_t cli_bindings(const rung_graph *graph, const cli_symbols *symbols, rung_binding out[RUNG_MAX_SYMBOLS]) {
  size_t n = 0;
  for (uint32_t i = 0; i < graph->dims->symbols; i++)
    if (symbols->value[i] != RUNG_UNBOUND) out[n++] = (rung_binding){graph->dims->symbol[i].name, symbols->value[i]};
  return n;
}

void cli_type_text(const rung_graph *graph, uint32_t value, rung_text *out) {
  out->length = 0;
  rung_value_type_print(graph->dims, rung_graph_value_type(graph, value), out);
}

const char *cli_node_name(const rung_node *node) {
  const char *name = rung_attrs_name(node->op, node->attrs);
  return name ? name : "";
}
