/* SPDX-License-Identifier: MIT
 * What kind of file a model is, and text graphs: reading, binding their symbols. */
#ifndef RUNG_TOOLS_GRAPH_FILE_H
#define RUNG_TOOLS_GRAPH_FILE_H

#include "ir/graph.h"
#include "session.h"

/* SAFETENSORS: a file, or a model folder. GRAPH: as text, or ONNX. */
typedef enum cli_file { CLI_FILE_GGUF, CLI_FILE_SAFETENSORS, CLI_FILE_GRAPH, CLI_FILE_COMPILED } cli_file;
/* By the first bytes. What is neither is refused: CLI_UNSUPPORTED for formats of later versions. */
int cli_recognise(const cli_session *session, cli_file *out);

/* A graph and a view of its weights: a text graph with those of --weights (*out_view NULL without), or an ONNX model
 * with its own. What was made is the caller's, also on failure. */
int cli_read_graph(cli_session *session, rung_graph **out_graph, rung_weights **out_weights, rung_view **out_view);
/* An ONNX model; what it must know when it is opened is taken from -i and --bind, whose names then stand in
 * session->pinned. */
int cli_read_onnx(cli_session *session, rung_graph **out_graph, rung_weights **out_weights, rung_view **out_view);
bool cli_is_pinned(const cli_session *session, const char *item); /* NAME=... */
int cli_open_compiled(cli_session *session, rung_compiled **out_compiled);
/* A view of --weights, or nothing (*out_view NULL). */
int cli_open_weights(cli_session *session, rung_weights **out_weights, rung_view **out_view);

/* What is compiled of any model: a text graph, a file or folder of a language model or an encoder. */
typedef struct cli_work {
  rung_model *model; /* NULL: a text graph, or a compiled file */
  rung_graph *graph; /* of a text graph */
  rung_weights *weights;
  rung_view *view; /* borrowed from the model, else of --weights; NULL: none */
  bool own_view;
  rung_compiled *compiled;
  rung_template *template_;
  rung_program *program;
} cli_work;
/* With the ceilings of --ceiling (or --bind). Release in any case. */
int cli_compile_any(cli_session *session, cli_work *out);
void cli_release_work(cli_work *work);

/* Values of a graph's symbols: from --bind, later from inputs; RUNG_UNBOUND where there is none. */
typedef struct cli_symbols {
  int64_t value[RUNG_MAX_SYMBOLS];
} cli_symbols;
/* What --bind says, with names and ranges checked. */
int cli_bind_symbols(const cli_session *session, const rung_graph *graph, cli_symbols *out);
/* The same as bindings, for programs: those that have a value. Returns how many. */
size_t cli_bindings(const rung_graph *graph, const cli_symbols *symbols, rung_binding out[RUNG_MAX_SYMBOLS]);
/* "f32[rows,576]" of a value; the text is replaced. */
void cli_type_text(const rung_graph *graph, uint32_t value, rung_text *out);
const char *cli_node_name(const rung_node *node); /* of what declares */

#endif
