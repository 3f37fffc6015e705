/* SPDX-License-Identifier: MIT
 * What a step costs beside its work: a chain of small dependent ops, nothing fused, one thread.
 *
 *   overhead [--steps N]
 *
 * Eight ops in turn, each on 16 elements that the one before it made. Commands come on standard input, see serve.h;
 * scripts/bench/chain.py writes the same chain as an ONNX graph. */
#include <rung/rung.h>
#include <stdio.h>

#include "base/compiler.h"
#include "serve.h"

enum { WIDTH = 16 };

typedef struct job {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_template *chain;
  rung_program *program;
  rung_context *context;
  rung_error error;
  float x[WIDTH], c[WIDTH], d[WIDTH];
} job;

/* x goes to -|x + c|^(1/2) c - c, which stays between d = -1 and 0. */
static void build(rung_graph *g, int steps) {
  const rung_dim width = rung_graph_constant_dim(g, WIDTH);
  rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 1, &width);
  const rung_value c = rung_graph_input(g, "c", RUNG_TYPE_F32, 1, &width);
  const rung_value d = rung_graph_input(g, "d", RUNG_TYPE_F32, 1, &width);
  for (int i = 0; i < steps; i++) {
    switch (i % 8) {
      case 0:
        x = rung_add(g, x, c);
        break;
      case 1:
        x = rung_abs(g, x);
        break;
      case 2:
        x = rung_sqrt(g, x);
        break;
      case 3:
        x = rung_mul(g, x, c);
        break;
      case 4:
        x = rung_neg(g, x);
        break;
      case 5:
        x = rung_min(g, x, c);
        break;
      case 6:
        x = rung_sub(g, x, c);
        break;
      default:
        x = rung_max(g, x, d);
        break;
    }
  }
  rung_graph_output(g, "y", x);
}

static rung_status make(job *j, int steps) {
  rung_device_options device = rung_device_options_default();
  device.threads = 1;
  RUNG_TRY(rung_host_create(NULL, &j->error, &j->host));
  RUNG_TRY(rung_device_create(j->host, "cpu", &device, &j->error, &j->device));
  RUNG_TRY(rung_graph_create(j->host, &j->error, &j->graph));
  build(j->graph, steps);
  rung_compile_options options = rung_compile_options_default();
  options.fold = options.fuse = options.merge = false;
  RUNG_TRY(rung_template_create(j->device, j->graph, &options, &j->error, &j->chain));
  RUNG_TRY(rung_program_create(j->chain, NULL, 0, &j->error, &j->program));
  RUNG_TRY(rung_context_create(j->chain, NULL, NULL, NULL, &j->error, &j->context));
  RUNG_TRY(rung_context_use(j->context, j->program));
  float *data[] = {j->x, j->c, j->d};
  static const char *const names[] = {"x", "c", "d"};
  for (int i = 0; i < 3; i++) {
    const rung_tensor t = rung_tensor_dense(RUNG_TYPE_F32, 1, (int64_t[]){WIDTH}, data[i]);
    RUNG_TRY(rung_context_bind_input(j->context, rung_program_find_input(j->program, names[i]), &t));
  }
  return RUNG_OK;
}

static bool run(void *self) { return rung_context_run(((job *)self)->context) == RUNG_OK; }

static const float *result(void *self, size_t *out_count) {
  const job *j = self;
  rung_tensor t = {.data = NULL};
  *out_count = rung_context_output(j->context, 0, &t) == RUNG_OK ? WIDTH : 0;
  return t.data;
}

static const char *message(void *self) { return rung_context_message(((const job *)self)->context); }

int main(int count, char **argument) {
  const int steps = count == 3 && strcmp(argument[1], "--steps") == 0 ? atoi(argument[2]) : count == 1 ? 1000 : 0;
  if (steps < 1) {
    fprintf(stderr, "usage: overhead [--steps N]\nexample: echo time 1 | overhead --steps 1000\n");
    return 2;
  }
  static job j;
  for (int i = 0; i < WIDTH; i++) {
    j.x[i] = 0.5f - 0.0625f * (float)i;
    j.c[i] = 0.125f + 0.015625f * (float)i;
    j.d[i] = -1;
  }
  const rung_status status = make(&j, steps);
  if (status)
    fprintf(stderr, "overhead: %s\n", j.context ? rung_context_message(j.context) : j.error.message);
  else
    serve(&(serve_work){&j, NULL, run, result, message});
  rung_context_destroy(j.context);
  rung_program_release(j.program);
  rung_template_release(j.chain);
  rung_graph_destroy(j.graph);
  rung_device_release(j.device);
  rung_host_release(j.host);
  return status ? 1 : 0;
}
