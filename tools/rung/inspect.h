/* SPDX-License-Identifier: MIT
 * The parts of rung inspect. Each writes to standard output, as text or into the one JSON object. */
#ifndef RUNG_TOOLS_INSPECT_H
#define RUNG_TOOLS_INSPECT_H

#include "graph_file.h"
#include "json.h"

typedef struct cli_inspection {
  cli_session *session;
  cli_json *json; /* NULL: plain text */
} cli_inspection;

int cli_show_gguf(const cli_inspection *i);                            /* metadata and tensors */
int cli_show_tensors(const cli_inspection *i);                         /* of safetensors */
int cli_show_check(const cli_inspection *i);                           /* NaN and infinity */
void cli_show_graph(const cli_inspection *i, const rung_graph *graph); /* symbols, inputs, weights, states, outputs */

void cli_shape_text(int rank, const int64_t *extent, char *out, size_t bytes); /* "[2,3]" */
void cli_json_tensor(cli_json *j, const char *name, size_t length, rung_type type, int rank, const int64_t *extent,
                     uint64_t bytes);

/* What was compiled. */
typedef struct cli_compiled {
  rung_template *template_;
  rung_program *program;
  rung_memory memory; /* predicted at the sizes asked for */
  rung_view *view;    /* what the program will read; NULL: not known */
} cli_compiled;
int cli_show_compiled(const cli_inspection *i, const cli_compiled *compiled);
void cli_show_manifest(cli_json *json, const rung_compiled *compiled); /* json NULL: plain text */
void cli_show_kernels(const cli_inspection *i, const rung_program *program);
int cli_show_winners(const cli_inspection *i); /* that programs of the device have asked for (tune.c) */

#endif
