/* SPDX-License-Identifier: MIT
 * Runs a text graph on a device: weights and inputs are filled with numbers that depend on their names alone, so that
 * two compiles of one graph can be compared. */
#ifndef RUNG_TESTS_GOLDEN_RUN_GRAPH_H
#define RUNG_TESTS_GOLDEN_RUN_GRAPH_H

#include <math.h>
#include <rung/program.h>

#include "../test.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/shape.h"
#include "runtime/runtime.h"
#include "weights/store.h"

enum { MOST_OUTPUTS = 16 };

typedef struct graph_run {
  rung_error error;
  rung_status status;
  uint32_t outputs;
  int64_t elements[MOST_OUTPUTS];
  float *value[MOST_OUTPUTS]; /* converted */
  rung_memory memory, view_memory, predicted;
} graph_run;

static inline void graph_run_free(graph_run *r) {
  for (uint32_t i = 0; i < r->outputs; i++) free(r->value[i]);
  *r = (graph_run){.status = RUNG_OK};
}

static inline uint64_t graph_seed(const char *name) {
  uint64_t h = 1469598103934665603u;
  for (; *name; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
  return h | 1;
}

/* Numbers in -1 .. 1; integers 0 .. 3, bools either. */
static inline void graph_fill(rung_type type, int64_t elements, const char *name, void *out) {
  uint64_t seed = graph_seed(name);
  const rung_type_row *row = rung_type_get(type);
  const bool whole = rung_type_is_integer(type) || type == RUNG_TYPE_BOOL;
  for (int64_t at = 0; at < elements; at += row->block) {
    float block[256];
    for (int64_t i = 0; i < row->block; i++)
      block[i] = whole ? (float)test_below(&seed, type == RUNG_TYPE_BOOL ? 2 : 4) : test_uniform(&seed, -1, 1);
    row->from_f32(block, (uint8_t *)out + (size_t)(at / row->block) * row->bytes, row->block);
  }
}

typedef struct graph_world {
  rung_device *device;
  rung_graph *graph;
  rung_template *template_;
  rung_program *program;
  rung_weights *weights;
  rung_view *view;
  rung_context *context;
  rung_map map[32];
  uint8_t *bytes[32];
  uint32_t maps;
} graph_world;

/* Every weight of the graph into a store of its own. */
static inline rung_status graph_store(rung_host *host, graph_world *w, rung_error *error) {
  RUNG_TRY(rung_weights_create(host, error, &w->weights));
  for (uint32_t i = 0; i < w->graph->nodes; i++) {
    const rung_node *node = &w->graph->node[i];
    if (node->op != &rung_op_weight) continue;
    const rung_value_type *type = rung_graph_value_type(w->graph, node->first_value);
    rung_tensor_desc desc = {
        .name = ((const rung_weight_attrs *)node->attrs)->name, .type = type->type, .rank = type->rank};
    desc.name_length = strlen(desc.name);
    int64_t elements = 1;
    for (int a = 0; a < type->rank; a++) {
      rung_dims_is_constant(w->graph->dims, type->extent[a], &desc.extent[a]);
      elements *= desc.extent[a];
    }
    if (rung_weights_find(w->weights, desc.name)) continue;
    const uint64_t bytes = rung_type_bytes(type->type, (uint64_t)elements);
    uint8_t *data = malloc(bytes + 1);
    graph_fill(type->type, elements, desc.name, data);
    w->bytes[w->maps] = data;
    rung_map *map = &w->map[w->maps++];
    const rung_source source = rung_source_memory(data, bytes);
    RUNG_TRY(rung_map_open(map, host, &source, error));
    const rung_weights_source from = {.map = map};
    int index;
    RUNG_TRY(rung_weights_add_source(w->weights, &from, error, &index));
    RUNG_TRY(rung_weights_add(w->weights, &desc, index, 0, error, NULL));
  }
  return RUNG_OK;
}

static inline rung_status graph_open(rung_host *host, graph_world *w, const char *device, const char *text,
                                     const rung_compile_options *options, rung_error *error) {
  rung_device_options o = rung_device_options_default();
  o.threads = 2;
  RUNG_TRY(rung_device_create(host, device, &o, error, &w->device));
  RUNG_TRY(rung_graph_parse(host, text, strlen(text), error, &w->graph));
  RUNG_TRY(graph_store(host, w, error));
  RUNG_TRY(rung_template_create(w->device, w->graph, options, error, &w->template_));
  RUNG_TRY(rung_program_create(w->template_, NULL, 0, error, &w->program));
  RUNG_TRY(rung_view_create(w->weights, error, &w->view));
  RUNG_TRY(rung_context_create(w->template_, w->view, NULL, NULL, error, &w->context));
  return rung_context_use(w->context, w->program);
}

static inline void graph_close(graph_world *w) {
  rung_context_destroy(w->context);
  rung_view_release(w->view);
  rung_program_release(w->program);
  rung_template_release(w->template_);
  rung_weights_release(w->weights);
  for (uint32_t i = 0; i < w->maps; i++) {
    rung_map_close(&w->map[i]);
    free(w->bytes[i]);
  }
  rung_graph_destroy(w->graph);
  rung_device_release(w->device);
}

/* All open extents are `size`. */
static inline rung_status graph_inputs(graph_world *w, int64_t size) {
  for (int i = 0; i < rung_program_inputs(w->program); i++) {
    const rung_plan_input *input = &w->program->plan->input[i];
    int64_t extent[RUNG_MAX_RANK], elements = 1;
    for (int a = 0; a < input->type.rank; a++) {
      if (!rung_dims_is_constant(w->program->plan->dims, input->type.extent[a], &extent[a])) extent[a] = size;
      elements *= extent[a];
    }
    void *data;
    RUNG_TRY(rung_context_input(w->context, i, extent, &data));
    graph_fill(input->type.type, elements, input->name, data);
  }
  return RUNG_OK;
}

static inline rung_status graph_results(graph_world *w, graph_run *out) {
  for (int i = 0; i < rung_program_outputs(w->program) && i < MOST_OUTPUTS; i++) {
    rung_tensor t;
    RUNG_TRY(rung_context_output(w->context, i, &t));
    int64_t n = 1;
    for (int a = 0; a < t.rank; a++) n *= t.extent[a];
    out->value[i] = malloc((size_t)n * sizeof(float) + 1);
    out->elements[i] = n;
    out->outputs++;
    rung_type_get(t.type)->to_f32(t.data, out->value[i], (size_t)n);
  }
  return RUNG_OK;
}

static inline graph_run graph_execute(rung_host *host, const char *device, const char *text,
                                      const rung_compile_options *options, int64_t size) {
  graph_run r = {.status = RUNG_OK};
  graph_world w = {.maps = 0};
  r.status = graph_open(host, &w, device, text, options, &r.error);
  if (!r.status) r.status = graph_inputs(&w, size);
  if (!r.status) r.status = rung_context_run(w.context);
  if (!r.status) r.status = graph_results(&w, &r);
  if (r.status && !r.error.message[0] && w.context)
    snprintf(r.error.message, sizeof r.error.message, "%s", rung_context_message(w.context));
  if (!r.status) {
    r.memory = rung_context_memory(w.context);
    r.view_memory = rung_view_memory(w.view);
    rung_error ignored;
    if (rung_program_memory(w.program, NULL, 0, NULL, &ignored, &r.predicted)) r.predicted = (rung_memory){0};
  }
  graph_close(&w);
  return r;
}

/* The largest difference over the largest value of each output; NaN and infinities must be the same. */
static inline double graph_difference(const graph_run *a, const graph_run *b) {
  double worst = a->outputs == b->outputs ? 0 : HUGE_VAL;
  for (uint32_t o = 0; o < a->outputs && o < b->outputs; o++) {
    double largest = 1e-30, off = 0;
    if (a->elements[o] != b->elements[o]) return HUGE_VAL;
    for (int64_t i = 0; i < a->elements[o]; i++) {
      const double x = (double)a->value[o][i], y = (double)b->value[o][i];
      if (x == y || (isnan(x) && isnan(y))) {
        if (isfinite(x) && fabs(x) > largest) largest = fabs(x);
        continue;
      }
      if (!isfinite(x) || !isfinite(y)) return HUGE_VAL;
      if (fabs(x) > largest) largest = fabs(x);
      if (fabs(x - y) > off) off = fabs(x - y);
    }
    if (off / largest > worst) worst = off / largest;
  }
  return worst;
}

/* Runs a graph of size 3 on the cpu device with every call of one kind failing in turn, `step` calls apart: each ends in
 * a status, and nothing is left behind. Gives how many failed. */
static inline int64_t graph_fail_each(rung_host *host, const char *text, rung_fault kind, int64_t step) {
  int64_t n = 1;
  for (bool hit = true; hit; n += step) {
    test_fault fault = {.kind = kind, .at = n};
    rung_host_set_fault(host, test_fault_hit, &fault);
    graph_run r = graph_execute(host, "cpu", text, NULL, 3);
    rung_host_set_fault(host, NULL, NULL);
    hit = fault.hit;
    if (!hit) CHECK_OK(r.status);
    /* Arithmetic on dimensions that gets no memory may say that its result does not fit. */
    const bool known = r.status == RUNG_OUT_OF_MEMORY || r.status == RUNG_OVERFLOW;
    if (hit && r.status) CHECK(known);
    if (hit && r.status && !known) fprintf(stderr, "call %" PRId64 ": %s\n", n, r.error.message);
    graph_run_free(&r);
    const rung_memory left = rung_host_memory(host);
    CHECK_EQ_I64(left.load + left.packed + left.activations + left.scratch + left.weights, 0);
  }
  return (n - 1) / step - 1;
}

#endif
