/* SPDX-License-Identifier: MIT
 * A text graph made ready on one device: compiled, inputs bound. */
#ifndef RUNG_TOOLS_EXECUTE_H
#define RUNG_TOOLS_EXECUTE_H

#include "formats/npy.h"
#include "graph_file.h"

/* Input values, shared by all devices that run the graph. */
typedef struct cli_inputs {
  uint32_t count;
  rung_tensor *tensor; /* by graph input */
  rung_npy *file;      /* open where the tensor lies in a file */
  void **memory;       /* malloc where it was made here */
} cli_inputs;
/* Reads -i files, solves symbols from their extents, makes random values for the rest. Every symbol that inputs need
 * has a value afterwards. Free in any case. */
int cli_make_inputs(cli_session *session, const rung_graph *graph, cli_symbols *symbols, cli_inputs *out);
void cli_free_inputs(cli_inputs *inputs);

typedef struct cli_execution {
  rung_template *template_;
  rung_program *program;
  rung_state *state;
  rung_context *context;
} cli_execution;
/* steps: no folding, no fusing, no merging, so that every node of the graph is a step. Free in any case. */
int cli_execute_open(cli_session *session, rung_device *device, const rung_graph *graph, bool steps, rung_view *view,
                     const cli_symbols *symbols, const cli_inputs *inputs, cli_execution *out);
/* The same for a program that is there. */
int cli_execute_program(cli_session *session, rung_program *program, const rung_graph *graph, rung_view *view,
                        const cli_symbols *symbols, const cli_inputs *inputs, cli_execution *out);
int cli_execute_run(cli_session *session, const cli_execution *execution);
void cli_execute_close(cli_execution *execution);

/* Element i of a dense tensor as a double; false for types that are no plain numbers. */
bool cli_element(const rung_tensor *tensor, int64_t i, double *out);
int64_t cli_elements(const rung_tensor *tensor);

/* rung run --check: outputs against the reference device, then, if they differ, each step. */
int cli_check_run(cli_session *session, const rung_graph *graph, rung_view *view, const cli_symbols *symbols,
                  const cli_inputs *inputs);

/* rung run --profile: where the time goes. Listens to the context's steps between begin and end. */
typedef struct cli_profile cli_profile;
cli_profile *cli_profile_begin(rung_context *context); /* NULL: out of memory */
void cli_profile_end(cli_profile *profile, const cli_session *session, int64_t runs);

#endif
