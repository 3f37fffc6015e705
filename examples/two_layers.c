/* SPDX-License-Identifier: MIT
 * A network of two layers, built by hand, compiled once, run at three sizes: y = relu(x W1 + b1) W2 + b2 with any
 * number of rows. Nothing is padded and nothing is compiled again; every row has the same bits at every size. */
#include <rung/rung.h>
#include <stdio.h>

enum { IN = 3, HIDDEN = 4, OUT = 2 };

static const float w1[IN][HIDDEN] = {{1, -1, 2, 0}, {0, 1, -1, 1}, {2, 0, 1, -2}}, b1[HIDDEN] = {0, 1, 0, -1};
static const float w2[HIDDEN][OUT] = {{1, 0}, {-1, 1}, {0, 2}, {1, 1}}, b2[OUT] = {0.5f, -0.5f};

static void build(rung_graph *g) {
  const rung_dim shape[2] = {rung_graph_symbol(g, "rows", 1, 1000), rung_graph_constant_dim(g, IN)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, shape);
  const rung_value m1 = rung_graph_constant(g, RUNG_TYPE_F32, 2, (int64_t[]){IN, HIDDEN}, w1);
  const rung_value c1 = rung_graph_constant(g, RUNG_TYPE_F32, 1, (int64_t[]){HIDDEN}, b1);
  const rung_value m2 = rung_graph_constant(g, RUNG_TYPE_F32, 2, (int64_t[]){HIDDEN, OUT}, w2);
  const rung_value c2 = rung_graph_constant(g, RUNG_TYPE_F32, 1, (int64_t[]){OUT}, b2);
  const rung_value h = rung_relu(g, rung_add(g, rung_matmul(g, x, m1, false, RUNG_TYPE_F32), c1));
  rung_graph_output(g, "y", rung_add(g, rung_matmul(g, h, m2, false, RUNG_TYPE_F32), c2));
}

int main(void) {
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_graph *graph = NULL;
  rung_template *template_ = NULL;
  rung_program *program = NULL;
  rung_context *context = NULL;
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = rung_graph_create(host, &error, &graph);
  if (!s) build(graph); /* errors wait in the graph until it is compiled */
  if (!s) s = rung_template_create(device, graph, NULL, &error, &template_);
  if (!s) s = rung_program_create(template_, NULL, 0, &error, &program);
  if (!s) s = rung_context_create(template_, NULL, NULL, NULL, &error, &context);
  if (!s) s = rung_context_use(context, program);
  for (int64_t rows = 1; rows <= 100 && !s; rows *= 10) {
    void *x;
    rung_tensor y;
    s = rung_context_input(context, 0, (int64_t[]){rows, IN}, &x);
    for (int64_t i = 0; i < rows * IN && !s; i++) ((float *)x)[i] = (float)(i % 7) - 3;
    if (!s) s = rung_context_run(context);
    if (!s) s = rung_context_output(context, 0, &y);
    if (s) break;
    const float *last = (const float *)y.data + (rows - 1) * OUT;
    printf("%3lld rows: the last is %g %g\n", (long long)y.extent[0], (double)last[0], (double)last[1]);
  }
  if (s)
    fprintf(stderr, "%s: %s%s\n", rung_status_text(s), error.message, context ? rung_context_message(context) : "");
  rung_context_destroy(context);
  rung_program_release(program);
  rung_template_release(template_);
  rung_graph_destroy(graph);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
