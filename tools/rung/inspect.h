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
int cli_show_check(const cli_inspection *i);                           /* NaN and infinity */
void cli_show_graph(const cli_inspection *i, const rung_graph *graph); /* symbols, inputs, weights, states, outputs */

/* What was compiled. */
typedef struct cli_compiled {
  rung_template *template_;
  rung_program *program;
  rung_memory memory; /* predicted at the sizes asked for */
} cli_compiled;
int cli_show_compiled(const cli_inspection *i, const cli_compiled *compiled);
void cli_show_kernels(const cli_inspection *i, const rung_program *program);

#endif
