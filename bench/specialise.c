/* SPDX-License-Identifier: MIT
 * Time of planning a template for another size, without packing and without a run.
 *
 *   specialise [MODEL.gguf] [--repeat N]
 *
 * An encoder of 6 and of 12 layers (384 wide), and the model's template where one is given: median and best. */
#include <stdlib.h>
#include <string.h>

#include <rung/model.h>

#include "../tests/cts/encoder_graph.h"
#include "base/clock.h"
#include "runtime/runtime.h"

static int up(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Sizes change from call to call, so that nothing is found made. */
static rung_status measure(const char *name, rung_template *t, const char *symbol, int64_t most, int repeat,
                           rung_error *error) {
  double *ms = calloc((size_t)repeat, sizeof *ms), first = 0;
  uint32_t steps = 0;
  uint64_t bytes = 0;
  rung_status status = ms ? RUNG_OK : RUNG_OUT_OF_MEMORY;
  for (int i = -1; !status && i < repeat; i++) {
    const rung_binding ceiling = {symbol, 1 + (int64_t)(i + 2) * 37 % most};
    rung_program *p = NULL;
    const uint64_t start = rung_clock_ns();
    status = rung_program_create(t, &ceiling, 1, error, &p);
    const double took = (double)(rung_clock_ns() - start) * 1e-6;
    if (i < 0)
      first = took;
    else
      ms[i] = took;
    if (p) steps = p->plan->steps, bytes = rung_program_bytes(p);
    rung_program_release(p);
  }
  if (!status) {
    qsort(ms, (size_t)repeat, sizeof *ms, up);
    printf("%-12s %4u steps, %4.0f KiB, median %.3f ms, best %.3f ms, the first %.3f ms\n", name, steps,
           (double)bytes / 1024, ms[repeat / 2], ms[0], first);
  }
  free(ms);
  return status;
}

static rung_status encoders(rung_device *device, int repeat, rung_error *error) {
  for (int layers = 6; layers <= 12; layers += 6) {
    encoder e = encoder_minilm;
    e.layers = layers;
    rung_graph *g = NULL;
    rung_template *t = NULL;
    char name[32];
    snprintf(name, sizeof name, "encoder %d", layers);
    RUNG_TRY(rung_graph_create(rung_device_host(device), error, &g));
    rung_status status = encoder_build(&e, 0, g, error);
    if (!status) status = rung_template_create(device, g, NULL, error, &t);
    if (!status) status = measure(name, t, RUNG_SYMBOL_SEQ, e.seq, repeat, error);
    rung_template_release(t);
    rung_graph_destroy(g);
    RUNG_TRY(status);
  }
  return RUNG_OK;
}

static rung_status model(rung_device *device, const char *path, int repeat, rung_error *error) {
  const rung_source source = rung_source_path(path);
  rung_model *m = NULL;
  rung_template *t = NULL;
  rung_program *p = NULL;
  RUNG_TRY(rung_model_open(device, &source, NULL, error, &m));
  rung_status status = rung_model_compile(m, NULL, error, &t, &p);
  if (!status) status = measure("model", t, RUNG_SYMBOL_ROWS, 512, repeat, error);
  rung_program_release(p);
  rung_template_release(t);
  rung_model_release(m);
  return status;
}

int main(int count, char **argument) {
  const char *path = NULL;
  int repeat = 31;
  for (int i = 1; i < count; i++) {
    if (strcmp(argument[i], "--repeat") == 0 && i + 1 < count)
      repeat = atoi(argument[++i]);
    else
      path = argument[i];
  }
  if (repeat < 1) return 2;
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {0};
  rung_status status = rung_host_create(NULL, &error, &host);
  if (!status) status = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!status) status = encoders(device, repeat, &error);
  if (!status && path) status = model(device, path, repeat, &error);
  if (status) fprintf(stderr, "specialise: %s\n", error.message);
  rung_device_release(device);
  rung_host_release(host);
  return status ? 1 : 0;
}
