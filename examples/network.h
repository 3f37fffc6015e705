/* SPDX-License-Identifier: MIT
 * What the examples with ONNX models share: one network from its file to a context that runs at any size. */
#ifndef NETWORK_H
#define NETWORK_H

#include <rung/rung.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct network {
  rung_program *program;
  rung_context *context;
} network;

/* pins: inputs whose values are fixed. ceiling: the largest extents that will be asked for. */
static inline rung_status network_open(network *n, rung_device *device, const char *path,
                                       const rung_onnx_options *options, const rung_binding *ceiling, size_t ceilings,
                                       rung_error *error) {
  const rung_source file = rung_source_path(path);
  rung_graph *graph = NULL;
  rung_weights *weights = NULL;
  rung_template *made = NULL;
  rung_view *view = NULL;
  *n = (network){0};
  rung_status s = rung_onnx_read(rung_device_host(device), &file, options, error, &graph, &weights);
  if (!s) s = rung_template_create(device, graph, NULL, error, &made);
  if (!s) s = rung_program_create(made, ceiling, ceilings, error, &n->program);
  if (!s) s = rung_view_create(weights, error, &view);
  if (!s) s = rung_context_create(made, view, NULL, NULL, error, &n->context);
  if (!s && (s = rung_context_use(n->context, n->program)))
    snprintf(error->message, sizeof error->message, "%s", rung_context_message(n->context));
  rung_graph_destroy(graph); /* the program and the context keep what they need */
  rung_weights_release(weights);
  rung_template_release(made);
  rung_view_release(view);
  return s;
}

static inline void network_close(network *n) {
  rung_context_destroy(n->context);
  rung_program_release(n->program);
}

/* Memory for an input of these extents, to be filled before each run. */
static inline rung_status network_input(network *n, const char *name, const int64_t *extent, void **out_data) {
  return rung_context_input(n->context, rung_program_find_input(n->program, name), extent, out_data);
}

/* A result of the last run, until the next one. */
static inline rung_status network_output(network *n, const char *name, rung_tensor *out) {
  return rung_context_output(n->context, rung_program_find_output(n->program, name), out);
}

#endif
