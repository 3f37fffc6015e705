/* SPDX-License-Identifier: MIT
 * Templates: a graph made legal and fast for a device, once, with its dimensions left open. */
#include <string.h>

#include "passes/pass.h"
#include "passes/policy.h"
#include "runtime/runtime.h"

rung_compile_options rung_compile_options_default(void) {
  return (rung_compile_options){
      .size = sizeof(rung_compile_options), .quant = RUNG_QUANT_FAST, .fold = true, .fuse = true, .merge = true};
}

static rung_status optimise(rung_template *t, const rung_graph *graph, rung_error *error) {
  rung_pass_env env = {.host = t->device->host,
                       .target = rung_template_target(t),
                       .options = &t->options,
                       .report = &t->explain,
                       .ran = &t->device->passes,
                       .error = error};
  RUNG_TRY(rung_pipeline_run(&env, graph, &t->graph));
  return rung_text_status(&t->explain, error);
}

/* All but the graph. */
static rung_status create(rung_device *device, const rung_compile_options *o, rung_error *error,
                          rung_template **out_template) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "template: options.size is %zu, expected %zu", o->size, sizeof *o);
  if ((unsigned)o->quant > RUNG_QUANT_EXACT)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "template: no quant policy %d", (int)o->quant);
  const rung_type *const category[] = RUNG_PRECISION_TYPES(&o->precision);
  for (size_t i = 0; i < RUNG_COUNT(category); i++)
    if (!rung_precision_takes(*category[i]))
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "template: precision.%s cannot be %s", rung_precision_category(i),
                       rung_type_name(*category[i]));
  if (o->threads < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "template: %d threads", o->threads);
  rung_host *host = device->host;
  rung_template *t = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *t, 0);
  if (!t) return rung_fail(error, RUNG_OUT_OF_MEMORY, "template: out of memory");
  atomic_init(&t->references, 1);
  rung_device_retain(device);
  t->device = device;
  t->options = *o;
  t->threads = o->threads ? o->threads : device->threads;
  rung_text_init(&t->explain, host);
  if (t->threads > rung_pool_threads(device->pool)) rung_pool_ensure(device->pool, host, t->threads);
  *out_template = t;
  return RUNG_OK;
}

rung_status rung_template_create(rung_device *device, const rung_graph *graph, const rung_compile_options *options,
                                 rung_error *error, rung_template **out_template) {
  const rung_compile_options o = options ? *options : rung_compile_options_default();
  if (!device || !graph || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "template: device, graph and out_template are required");
  if (rung_graph_status(graph)) return rung_fail(error, rung_graph_status(graph), "%s", rung_graph_message(graph));
  rung_template *t;
  RUNG_TRY(create(device, &o, error, &t));
  const rung_status status = optimise(t, graph, error);
  if (status) {
    rung_template_release(t);
    return status;
  }
  *out_template = t;
  return RUNG_OK;
}

rung_status rung_template_take(rung_device *device, rung_graph *graph, const rung_compile_options *options,
                               const char *explain, size_t explain_bytes, rung_error *error,
                               rung_template **out_template) {
  rung_template *t;
  RUNG_TRY(create(device, options, error, &t));
  rung_text_add(&t->explain, explain, explain_bytes);
  const rung_status status = rung_text_status(&t->explain, error);
  if (status) {
    rung_template_release(t);
    return status;
  }
  t->graph = graph;
  *out_template = t;
  return RUNG_OK;
}

void rung_template_retain(rung_template *t) {
  if (t) atomic_fetch_add(&t->references, 1);
}

void rung_template_release(rung_template *t) {
  if (!t || atomic_fetch_sub(&t->references, 1) != 1) return;
  rung_host *host = t->device->host;
  rung_device *device = t->device;
  rung_graph_destroy(t->graph);
  rung_text_finish(&t->explain);
  rung_host_free(host, RUNG_MEMORY_host, t, sizeof *t);
  rung_device_release(device);
}

uint64_t rung_template_bytes(const rung_template *t) {
  return sizeof *t + sizeof *t->graph + rung_arena_bytes(&t->graph->arena) + sizeof *t->graph->dims +
         rung_arena_bytes(&t->graph->dims->arena) + t->explain.capacity;
}

rung_status rung_template_print(const rung_template *t, rung_error *error, char **out_text, size_t *out_bytes) {
  if (!t) return rung_fail(error, RUNG_INVALID_ARGUMENT, "template is required");
  return rung_graph_print(t->graph, error, out_text, out_bytes);
}

rung_status rung_template_explain(const rung_template *t, rung_error *error, char **out_text, size_t *out_bytes) {
  if (!t || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "explain: template, out_text and out_bytes are required");
  const size_t n = t->explain.length;
  char *text = rung_host_alloc(t->device->host, RUNG_MEMORY_host, n + 1, 0);
  if (!text) return rung_fail(error, RUNG_OUT_OF_MEMORY, "explain: out of memory");
  if (n) memcpy(text, t->explain.data, n);
  *out_text = text;
  *out_bytes = n;
  return RUNG_OK;
}
