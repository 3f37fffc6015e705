/* SPDX-License-Identifier: MIT
 * The manifest of a compiled file: what it takes and gives, which weights it was made for, where, and what it needs. */
#include <inttypes.h>
#include <string.h>

#include "ops/op_table.h"
#include "passes/policy.h"
#include "runtime/cache/aot.h"

enum { MANIFEST_VERSION = 4, MOST_TEXT = 1 << 16 };

/* ---- writing */

static void put_memory(rung_text *out, const rung_memory *m) {
#define X(name, text) rung_put(out, m->name, 8);
  RUNG_MEMORY_MAP(X)
#undef X
}

static void put_tensor(rung_text *out, const rung_dims *dims, const char *name, const rung_value_type *type) {
  rung_text extents;
  rung_text_init(&extents, out->host);
  for (int i = 0; i < type->rank; i++) {
    if (i) rung_text_puts(&extents, ",");
    rung_dims_print(dims, type->extent[i], &extents);
  }
  rung_put_string(out, name);
  rung_put(out, (uint64_t)type->type, 2);
  rung_put(out, (uint8_t)type->rank, 1);
  rung_put_bytes(out, extents.data, extents.length);
  if (extents.failed) out->failed = true;
  rung_text_finish(&extents);
}

static rung_status put_weight(rung_text *out, const rung_graph *graph, const rung_node *node, rung_view *view,
                              rung_error *error) {
  const char *name = rung_attrs_name(node->op, node->attrs);
  const rung_value_type *type = rung_graph_value_type(graph, node->first_value);
  put_tensor(out, graph->dims, name, type);
  for (int i = 0; i < type->rank; i++) {
    int64_t extent = 0;
    rung_dims_is_constant(graph->dims, type->extent[i], &extent);
    rung_put(out, (uint64_t)extent, 8);
  }
  rung_hash identity = {0, 0};
  if (view) RUNG_TRY(rung_aot_identity(view, name, error, &identity));
  rung_put(out, view != NULL, 1);
  rung_put_hash(out, identity);
  return RUNG_OK;
}

/* A weight may be declared several times: the first one stands for all. */
static bool is_weight(const rung_graph *graph, uint32_t node) {
  return graph->node[node].op == &rung_op_weight &&
         rung_graph_find_name(graph, RUNG_NAME_WEIGHT,
                              rung_attrs_name(graph->node[node].op, graph->node[node].attrs)) == node;
}

uint32_t rung_manifest_weight(const rung_graph *graph, const char *name) {
  const uint32_t node = rung_graph_find_name(graph, RUNG_NAME_WEIGHT, name);
  uint32_t index = 0;
  for (uint32_t i = 0; i < node && i < graph->nodes; i++) index += is_weight(graph, i);
  return index;
}

static rung_status put_weights(rung_text *out, const rung_graph *graph, rung_view *view, rung_error *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->nodes; i++) count += is_weight(graph, i);
  rung_put(out, count, 4);
  for (uint32_t i = 0; i < graph->nodes; i++)
    if (is_weight(graph, i)) RUNG_TRY(put_weight(out, graph, &graph->node[i], view, error));
  return RUNG_OK;
}

static void put_boundary(rung_text *out, const rung_graph *graph) {
  rung_put(out, graph->inputs, 4);
  for (uint32_t i = 0; i < graph->inputs; i++) {
    const rung_node *node = &graph->node[graph->input[i]];
    put_tensor(out, graph->dims, rung_attrs_name(node->op, node->attrs),
               rung_graph_value_type(graph, node->first_value));
  }
  rung_put(out, graph->outputs, 4);
  for (uint32_t i = 0; i < graph->outputs; i++)
    put_tensor(out, graph->dims, graph->output[i].name, rung_graph_value_type(graph, graph->output[i].value));
}

static void put_ceiling(rung_text *out, const rung_plan *plan) {
  uint32_t count = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) rung_put(out, count, 4);
    for (uint32_t i = 0; i < plan->dims->symbols; i++) {
      const rung_symbol *symbol = &plan->dims->symbol[i];
      if (symbol->made || plan->ceiling[i] == symbol->hi) continue;
      count += !pass;
      if (!pass) continue;
      rung_put_string(out, symbol->name);
      rung_put(out, (uint64_t)plan->ceiling[i], 8);
    }
  }
}

rung_status rung_manifest_write(const rung_template *t, const rung_program *program, rung_view *view, uint64_t tag,
                                rung_error *error, rung_text *out) {
  rung_memory memory = {0};
  if (program) RUNG_TRY(rung_program_memory(program, NULL, 0, NULL, error, &memory));
  rung_put(out, MANIFEST_VERSION, 4);
  rung_put_string(out, RUNG_VERSION_TEXT);
  rung_put_string(out, t->device->name);
  rung_put_string(out, t->device->target->name);
  rung_put(out, tag, 8);
  rung_put(out, (uint64_t)t->options.quant, 1);
  rung_aot_put_precision(out, &t->options.precision);
  rung_put(out, t->options.fold, 1);
  rung_put(out, t->options.fuse, 1);
  rung_put(out, t->options.merge, 1);
  rung_put(out, t->options.deterministic, 1);
  if (program)
    put_ceiling(out, program->plan);
  else
    rung_put(out, 0, 4);
  put_boundary(out, t->graph);
  RUNG_TRY(put_weights(out, t->graph, view, error));
  memory.host = 0; /* counted, not predicted */
  put_memory(out, &memory);
  return rung_text_status(out, error);
}

/* ---- reading */

typedef struct reader {
  rung_bytes in;
  rung_manifest *m;
  rung_error *error;
} reader;

static rung_status damaged(reader *r, const char *what) {
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "manifest, offset %" PRIu64 ": %s", (uint64_t)(r->in.at - r->in.start),
                   what);
}

static rung_status get_text(reader *r, const char **out) {
  size_t length;
  const char *text = rung_get_string(&r->in, MOST_TEXT, &length);
  if (r->in.failed) return damaged(r, "a text is cut, too long, or has a byte 0");
  *out = rung_arena_text(&r->m->arena, text, length);
  return *out ? RUNG_OK : rung_fail(r->error, RUNG_OUT_OF_MEMORY, "manifest: out of memory");
}

/* So many things of at least `least` bytes each; the array is zeroed. */
static rung_status get_array(reader *r, uint64_t least, size_t element, void **out_array, uint32_t *out_count) {
  const uint64_t count = rung_get(&r->in, 4);
  if (r->in.failed || count > rung_bytes_left(&r->in) / least) return damaged(r, "a count passes what is left");
  *out_array = rung_arena_array(&r->m->arena, (size_t)count + 1, element);
  if (!*out_array) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "manifest: out of memory");
  *out_count = (uint32_t)count;
  return RUNG_OK;
}

static rung_status get_tensor(reader *r, bool weight, rung_aot_tensor *out) {
  RUNG_TRY(get_text(r, &out->name));
  const uint64_t type = rung_get(&r->in, 2), rank = rung_get(&r->in, 1);
  if (!rung_type_get((rung_type)type) || rank > RUNG_MAX_RANK) return damaged(r, "no such type");
  out->type = (rung_type)type;
  out->rank = (int)rank;
  RUNG_TRY(get_text(r, &out->extents));
  if (!weight) return RUNG_OK;
  for (int i = 0; i < out->rank; i++) out->extent[i] = (int64_t)rung_get(&r->in, 8);
  out->known = rung_get(&r->in, 1) != 0;
  out->identity = rung_get_hash(&r->in);
  return r->in.failed ? damaged(r, "it ends in a weight") : RUNG_OK;
}

static rung_status get_tensors(reader *r, int kind) {
  void *array;
  RUNG_TRY(get_array(r, 19, sizeof(rung_aot_tensor), &array, &r->m->tensors[kind]));
  r->m->tensor[kind] = array;
  for (uint32_t i = 0; i < r->m->tensors[kind]; i++)
    RUNG_TRY(get_tensor(r, kind == RUNG_COMPILED_WEIGHT, &r->m->tensor[kind][i]));
  return RUNG_OK;
}

static rung_status get_options(reader *r) {
  rung_compile_options *o = &r->m->options;
  *o = rung_compile_options_default();
  const uint64_t quant = rung_get(&r->in, 1);
  rung_type *const category[] = RUNG_PRECISION_TYPES(&o->precision);
  for (size_t i = 0; i < RUNG_COUNT(category); i++) *category[i] = (rung_type)rung_get(&r->in, 1);
  o->fold = rung_get(&r->in, 1) != 0;
  o->fuse = rung_get(&r->in, 1) != 0;
  o->merge = rung_get(&r->in, 1) != 0;
  o->deterministic = rung_get(&r->in, 1) != 0;
  if (r->in.failed || quant > RUNG_QUANT_EXACT || !rung_precision_valid(&o->precision))
    return damaged(r, "no such policy");
  o->quant = (rung_quant)quant;
  return RUNG_OK;
}

static rung_status get_ceiling(reader *r) {
  void *array;
  RUNG_TRY(get_array(r, 16, sizeof(rung_binding), &array, &r->m->ceilings));
  r->m->ceiling = array;
  for (uint32_t i = 0; i < r->m->ceilings; i++) {
    RUNG_TRY(get_text(r, &r->m->ceiling[i].symbol));
    r->m->ceiling[i].value = (int64_t)rung_get(&r->in, 8);
  }
  return RUNG_OK;
}

static rung_status get_all(reader *r) {
  rung_manifest *m = r->m;
  const uint64_t version = rung_get(&r->in, 4);
  if (!r->in.failed && version != MANIFEST_VERSION)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "manifest of version %" PRIu64 "; this library reads version %d",
                     version, MANIFEST_VERSION);
  RUNG_TRY(get_text(r, &m->version));
  RUNG_TRY(get_text(r, &m->device));
  RUNG_TRY(get_text(r, &m->target));
  m->tag = rung_get(&r->in, 8);
  RUNG_TRY(get_options(r));
  RUNG_TRY(get_ceiling(r));
  for (int kind = 0; kind < 3; kind++) RUNG_TRY(get_tensors(r, kind));
#define X(name, text) m->memory.name = rung_get(&r->in, 8);
  RUNG_MEMORY_MAP(X)
#undef X
  return r->in.failed || r->in.at != r->in.limit ? damaged(r, "it does not end where it should") : RUNG_OK;
}

rung_status rung_manifest_read(rung_host *host, const uint8_t *data, uint64_t bytes, rung_error *error,
                               rung_manifest *out) {
  *out = (rung_manifest){.tag = 0};
  rung_arena_init(&out->arena, host);
  reader r = {.in = rung_bytes_of(data, bytes), .m = out, .error = error};
  const rung_status status = get_all(&r);
  if (status) rung_manifest_finish(out);
  return status;
}

void rung_manifest_finish(rung_manifest *manifest) {
  if (manifest->arena.host) rung_arena_finish(&manifest->arena);
  *manifest = (rung_manifest){.tag = 0};
}
