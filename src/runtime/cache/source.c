/* SPDX-License-Identifier: MIT
 * Where programs come from: a graph that is given or built, a template that is given, found below or compiled. */
#include <string.h>

#include "base/clock.h"
#include "ir/graph.h"
#include "passes/policy.h"
#include "runtime/cache/entries.h"

rung_build rung_build_default(void) { return (rung_build){.size = sizeof(rung_build)}; }

rung_status rung_source_check(const rung_build *build, const rung_compile_options *options, rung_error *error) {
  if (build->size != sizeof *build)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: build.size is %zu, expected %zu", build->size,
                     sizeof *build);
  if ((build->fn != NULL) + (build->graph != NULL) + (build->template_ != NULL) != 1)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: build needs one of fn, graph and template_");
  const rung_compile_options *o = build->compile;
  if (o && o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: build.compile.size is %zu, expected %zu", o->size,
                     sizeof *o);
  const rung_compile_options *its = build->template_ ? &build->template_->options : o ? o : options;
  if (its->quant != options->quant || !rung_precision_same(&its->precision, &options->precision) ||
      its->deterministic != options->deterministic)
    return rung_fail(error, RUNG_INVALID_ARGUMENT,
                     "cache: a build has another %s policy than the cache, which has one for all",
                     its->quant != options->quant                                 ? "quant"
                     : !rung_precision_same(&its->precision, &options->precision) ? "precision"
                                                                                  : "deterministic");
  return RUNG_OK;
}

static rung_status build_graph(rung_cache *cache, uint64_t key, const rung_build *build, rung_error *error,
                               rung_graph **out_graph) {
  rung_graph *graph;
  RUNG_TRY(rung_graph_create(cache->host, error, &graph));
  rung_error said = {0};
  rung_status status = build->fn(build->self, key, graph, &said);
  if (status)
    status = rung_fail(error, status, "%s", said.message[0] ? said.message : "the builder of a graph failed");
  else if (rung_graph_status(graph))
    status = rung_fail(error, rung_graph_status(graph), "%s", rung_graph_message(graph));
  if (status) {
    rung_graph_destroy(graph);
    return status;
  }
  *out_graph = graph;
  return RUNG_OK;
}

static rung_status load(const rung_cache *cache, const rung_build *build, const rung_graph *graph,
                        const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  const rung_cache_level *below = &cache->below;
  if (!below->load || (!graph && !build->name)) return RUNG_NOT_FOUND;
  return below->load(below->self, cache->device, build->name, graph, options, error, out_template);
}

static rung_status compile(rung_cache *cache, const rung_build *build, const rung_graph *graph,
                           const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  const rung_status found = load(cache, build, graph, options, error, out_template);
  if (found != RUNG_NOT_FOUND) return found;
  RUNG_TRY(rung_template_create(cache->device, graph, options, error, out_template));
  if (cache->below.save) cache->below.save(cache->below.self, build->name, graph, *out_template);
  return RUNG_OK;
}

rung_status rung_source_template(rung_cache *cache, uint64_t key, const rung_build *build, rung_error *error,
                                 rung_template **out_template) {
  if (build->template_) {
    if (build->template_->device != cache->device)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "cache: the template was made for another device");
    rung_template_retain(build->template_);
    *out_template = build->template_;
    return RUNG_OK;
  }
  const uint64_t start = rung_clock_ns();
  const rung_compile_options *options = build->compile ? build->compile : &cache->options.compile;
  rung_status status = load(cache, build, NULL, options, error, out_template);
  if (status != RUNG_NOT_FOUND) return status;
  rung_graph *graph = NULL;
  if (!build->graph) RUNG_TRY(build_graph(cache, key, build, error, &graph));
  status = compile(cache, build, graph ? graph : build->graph, options, error, out_template);
  rung_graph_destroy(graph);
  if (status) return status;
  rung_mutex_lock(&cache->lock);
  cache->counters.builds++;
  cache->counters.build_ns += rung_clock_ns() - start;
  rung_mutex_unlock(&cache->lock);
  return RUNG_OK;
}

rung_status rung_source_bind(rung_entry *entry, rung_view *view, rung_error *error) {
  const rung_plan *plan = entry->program->plan;
  bool weights = false;
  for (uint32_t i = 0; i < plan->roots; i++)
    weights |= plan->root[i].kind == RUNG_ROOT_WEIGHT || plan->root[i].kind == RUNG_ROOT_FORM;
  if (!view || !weights) return RUNG_OK;
  RUNG_TRY(rung_view_use(view, entry->program, error, &entry->use));
  rung_view_retain(view);
  entry->view = view;
  return RUNG_OK;
}

void rung_source_unbind(rung_entry *entry) {
  if (!entry->view) return;
  rung_view_unuse(entry->view, entry->use);
  rung_view_release(entry->view);
  entry->view = NULL;
  entry->use = NULL;
}
