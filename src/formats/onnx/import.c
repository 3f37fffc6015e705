/* SPDX-License-Identifier: MIT
 * The importer: walks nodes in the file's order, finds each operator's row, and binds results to names. */
#include "formats/onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "formats/onnx/functions.h"
#include "formats/onnx/tensors.h"

/* ---- failing */

rung_status onnx_fail(onnx_import *imp, rung_status status, const char *format, ...) {
  if (imp->status) return imp->status;
  va_list args;
  va_start(args, format);
  rung_fail_v(imp->error, status, format, args);
  va_end(args);
  return imp->status = status;
}

static onnx_shown label_of(const onnx_node *node) {
  if (node->name.length) return onnx_show(node->name);
  return onnx_show(node->outputs ? node->output[0] : node->op);
}

void onnx_refuse(onnx_call *call, rung_status status, const char *format, ...) {
  if (onnx_failed(call)) return; /* what fails first is the reason */
  va_list args;
  va_start(args, format);
  rung_fail_v(call->imp->error, status, format, args);
  va_end(args);
  if (call->g->dims->failure == RUNG_OUT_OF_MEMORY) /* an extent is not there, and what was missed is only its want */
    status = rung_fail(call->imp->error, RUNG_OUT_OF_MEMORY, "no memory for an extent");
  call->imp->status = rung_fail_prefix(call->imp->error, status, "%s \"%s\"", onnx_show(call->node->op).text,
                                       label_of(call->node).text);
}

bool onnx_failed(const onnx_call *call) { return call->imp->status || rung_graph_status(call->g); }

const char *onnx_text(onnx_import *imp, onnx_name name) {
  char *text = rung_arena_text(&imp->arena, name.text, name.length);
  if (!text) (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a name");
  return text;
}

/* ---- names */

static uint32_t hash_of(onnx_name name) {
  uint32_t h = 2166136261u;
  for (uint32_t i = 0; i < name.length; i++) h = (h ^ (uint8_t)name.text[i]) * 16777619u;
  return h ^ h >> 15;
}
static onnx_binding *place_of(onnx_binding *table, uint32_t capacity, onnx_name name) {
  uint32_t at = hash_of(name) & (capacity - 1);
  while (table[at].name.length && !onnx_name_equal(table[at].name, name)) at = (at + 1) & (capacity - 1);
  return &table[at];
}

rung_status onnx_bind_name(onnx_scope *s, onnx_name name, rung_value value) {
  if (s->imp->status || !name.length) return s->imp->status;
  if (s->binding_capacity < 2 * (s->bindings + 1)) {
    const uint32_t capacity = s->binding_capacity ? 2 * s->binding_capacity : 64;
    onnx_binding *table = (onnx_binding *)rung_arena_array(&s->imp->arena, capacity, sizeof *table);
    if (!table) return onnx_fail(s->imp, RUNG_OUT_OF_MEMORY, "no memory for names");
    for (uint32_t i = 0; i < s->binding_capacity; i++)
      if (s->binding[i].name.length) *place_of(table, capacity, s->binding[i].name) = s->binding[i];
    s->binding = table;
    s->binding_capacity = capacity;
  }
  onnx_binding *place = place_of(s->binding, s->binding_capacity, name);
  if (place->name.length)
    return onnx_fail(s->imp, RUNG_CORRUPT_FILE, "the name \"%s\" is given to two values", onnx_show(name).text);
  *place = (onnx_binding){name, value};
  s->bindings++;
  return RUNG_OK;
}

static rung_value own_value(const onnx_scope *s, onnx_name name) {
  if (!s->binding_capacity) return rung_build_null();
  const onnx_binding *place = place_of(s->binding, s->binding_capacity, name);
  return place->name.length ? place->value : rung_build_null();
}

rung_value onnx_look_up(onnx_scope *s, onnx_name name) {
  rung_value v = own_value(s, name);
  if (v.id || !s->outer) return v;
  v = onnx_look_up(s->outer, name);
  if (!v.id || s->outer->body == s->body) return v;
  v = onnx_capture(s->imp, s->body, v);
  if (v.id) (void)onnx_bind_name(s, name, v);
  return v;
}

/* ---- bodies */

onnx_body *onnx_body_create(onnx_import *imp, onnx_body *outer, rung_graph *g) {
  onnx_body *body = (onnx_body *)rung_arena_alloc(&imp->arena, sizeof *body);
  if (!body) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a sub-graph");
    return NULL;
  }
  body->outer = outer;
  body->g = g;
  return body;
}

/* Small constants and what is known as dimensions is stated again inside; everything else becomes an input. */
static rung_value restate(onnx_import *imp, onnx_body *body, rung_value outside) {
  const rung_value_type *type = rung_build_type(body->outer->g, outside);
  const onnx_constant *constant = onnx_constant_of(imp, body->outer, outside);
  enum { SMALL = 4096 };
  if (constant && rung_type_bytes(constant->type, 1) && constant->elements <= SMALL)
    return rung_graph_constant(body->g, constant->type, constant->rank, constant->extent, constant->data);
  uint32_t count;
  if (type->type != RUNG_TYPE_I64 || type->rank > 1) return rung_build_null();
  const onnx_symbolic *known = onnx_symbolic_of(imp, body->outer, outside, &count);
  if (!known || count > RUNG_MAX_RANK || count == 0) return rung_build_null();
  rung_value part[RUNG_MAX_RANK];
  for (uint32_t i = 0; i < count; i++)
    if (!known[i].dim.id || known[i].divisor != 1) return rung_build_null();
  for (uint32_t i = 0; i < count; i++) {
    part[i] = rung_build_extent(body->g, known[i].dim, RUNG_TYPE_I64);
    if (type->rank) part[i] = rung_build_unsqueeze(body->g, part[i], 0);
  }
  return type->rank == 0 || count == 1 ? part[0] : rung_build_concat(body->g, part, count, 0);
}

static rung_value add_capture(onnx_import *imp, onnx_body *body, rung_value outside) {
  const rung_value_type *type = rung_build_type(body->outer->g, outside);
  char name[24];
  snprintf(name, sizeof name, "c%u", body->captures);
  const rung_value inside = rung_graph_input(body->g, name, type->type, type->rank, type->extent);
  if (!rung_arena_grow(&imp->arena, (void **)&body->outside, &body->outside_capacity, body->captures + 1,
                       sizeof outside) ||
      !rung_arena_grow(&imp->arena, (void **)&body->inside, &body->inside_capacity, body->captures + 1,
                       sizeof inside)) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a sub-graph");
    return rung_build_null();
  }
  body->outside[body->captures] = outside;
  body->inside[body->captures++] = inside;
  return inside;
}

rung_value onnx_capture(onnx_import *imp, onnx_body *body, rung_value outside) {
  for (uint32_t i = 0; i < body->captures; i++)
    if (body->outside[i].id == outside.id) return body->inside[i];
  const rung_value stated = restate(imp, body, outside);
  return stated.id || imp->status ? stated : add_capture(imp, body, outside);
}

onnx_scope *onnx_scope_create(onnx_import *imp, onnx_scope *outer, onnx_body *body, const onnx_graph *graph) {
  onnx_scope *s = (onnx_scope *)rung_arena_alloc(&imp->arena, sizeof *s);
  if (!s) {
    (void)onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a sub-graph");
    return NULL;
  }
  *s = (onnx_scope){.imp = imp, .outer = outer, .body = body, .graph = graph};
  if (outer) {
    s->opset = outer->opset;
    s->opsets = outer->opsets;
    s->function = outer->function;
    s->caller = outer->caller;
    s->caller_scope = outer->caller_scope;
    s->depth = outer->depth + 1;
  } else {
    s->opset = imp->model.opset;
    s->opsets = imp->model.opsets;
  }
  if (graph && graph->sparse) (void)onnx_fail(imp, RUNG_UNSUPPORTED, "sparse initializers are not supported");
  return s;
}

/* ---- nodes */

static int64_t version_of(const onnx_scope *s, onnx_name domain) {
  for (uint32_t i = 0; i < s->opsets; i++)
    if (onnx_name_equal(onnx_domain(s->opset[i].domain), onnx_domain(domain))) return s->opset[i].version;
  return 0;
}

static bool read_operands(onnx_call *c) {
  const onnx_node *node = c->node;
  for (uint32_t i = 0; i < node->inputs; i++) {
    if (!node->input[i].length) continue;
    c->in[i] = onnx_look_up(c->scope, node->input[i]);
    if (!c->in[i].id) {
      onnx_refuse(c, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": nothing before it gives its input \"%s\"", node->at,
                  onnx_show(node->input[i]).text);
      return false;
    }
  }
  return true;
}

static void bind_results(onnx_call *c) {
  for (uint32_t i = 0; i < c->node->outputs; i++) {
    if (!c->node->output[i].length) continue;
    if (!c->out[i].id) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "its output %u is not supported", i);
      return;
    }
    (void)onnx_bind_name(c->scope, c->node->output[i], c->out[i]);
  }
}

/* The graph's own refusal names a rung op; the ONNX node is put before it. */
static rung_status take_graph_error(onnx_call *c) {
  onnx_import *imp = c->imp;
  if (imp->status || !rung_graph_status(c->g)) return imp->status;
  return onnx_fail(imp, rung_graph_status(c->g), "%s \"%s\": %s", onnx_show(c->node->op).text, label_of(c->node).text,
                   rung_graph_message(c->g));
}

static rung_status import_node(onnx_scope *s, const onnx_node *node) {
  onnx_import *imp = s->imp;
  onnx_call c = {.imp = imp, .scope = s, .g = s->body->g, .node = node, .n_in = node->inputs, .n_out = node->outputs};
  if (node->inputs > ONNX_MAX_INPUTS || node->outputs > ONNX_MAX_INPUTS)
    return onnx_fail(imp, RUNG_UNSUPPORTED, "offset %" PRIu64 ": a node has more than %d inputs or outputs", node->at,
                     ONNX_MAX_INPUTS);
  if (++imp->nodes > ONNX_MAX_NODES)
    return onnx_fail(imp, RUNG_UNSUPPORTED, "the model has more than %d nodes once its functions are written out",
                     ONNX_MAX_NODES);
  c.version = version_of(s, node->domain);
  c.in = (rung_value *)rung_arena_array(&imp->arena, (size_t)node->inputs + ONNX_NAMED_INPUTS, sizeof *c.in);
  c.out = (rung_value *)rung_arena_array(&imp->arena, (size_t)node->outputs + 8, sizeof *c.out);
  char *label = rung_arena_text(&c.g->arena, label_of(node).text, strlen(label_of(node).text));
  if (!c.in || !c.out || !label) return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a node");
  rung_graph_set_label(c.g, label);
  if (!read_operands(&c)) return imp->status;
  const onnx_function *function = onnx_function_find(imp, node);
  if (function) {
    onnx_function_call(&c, function);
  } else {
    c.row = onnx_row_find(node->domain, node->op, c.version);
    if (!c.row)
      onnx_refuse(&c, RUNG_UNSUPPORTED, "version %" PRId64 " of the operator is not supported", c.version);
    else
      c.row->build(&c);
  }
  RUNG_TRY(take_graph_error(&c));
  bind_results(&c);
  return imp->status;
}

rung_status onnx_import_nodes(onnx_scope *s, const onnx_node *node, uint32_t nodes) {
  for (uint32_t i = 0; i < nodes; i++) RUNG_TRY(import_node(s, &node[i]));
  return RUNG_OK;
}

/* ---- inputs and outputs */

/* An identifier made of any name. */
static void identifier(onnx_name name, char out[64]) {
  size_t n = 0;
  for (uint32_t i = 0; i < name.length && n < 48; i++) {
    const char ch = name.text[i];
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
    const bool other = (ch >= '0' && ch <= '9') || ch == '.';
    if (n == 0 && !letter) out[n++] = '_';
    out[n++] = letter || other ? ch : '_';
  }
  if (n == 0) out[n++] = '_';
  out[n] = 0;
  if (strcmp(out, "min") == 0 || strcmp(out, "max") == 0 || strcmp(out, "none") == 0) strcat(out, "_");
}

static rung_dim open_extent(onnx_import *imp, const onnx_value *v, int axis) {
  const int64_t largest = imp->options->largest ? imp->options->largest : ONNX_LARGEST;
  char name[96], text[64];
  if (v->dim[axis].param.length && !onnx_name_is(v->dim[axis].param, "?")) {
    identifier(v->dim[axis].param, name);
  } else {
    identifier(v->name, text);
    snprintf(name, sizeof name, "%.40s_%d", text, axis);
  }
  for (size_t i = 0; i < imp->options->pins; i++) {
    const rung_onnx_pin *pin = &imp->options->pin[i];
    if (strcmp(pin->name, name) == 0 && pin->value.type == RUNG_TYPE_I64 && pin->value.rank == 0)
      return rung_graph_constant_dim(imp->graph, *(const int64_t *)pin->value.data);
  }
  return rung_graph_symbol(imp->graph, name, 1, largest);
}

static const rung_onnx_pin *pin_of(const onnx_import *imp, onnx_name name) {
  for (size_t i = 0; i < imp->options->pins; i++)
    if (onnx_name_is(name, imp->options->pin[i].name)) return &imp->options->pin[i];
  return NULL;
}

static rung_status import_input(onnx_scope *s, const onnx_value *v) {
  onnx_import *imp = s->imp;
  const char *name = onnx_text(imp, v->name);
  if (!name) return imp->status;
  rung_type type;
  if (!v->tensor || !onnx_element_type(NULL, v->data_type, &type))
    return onnx_fail(imp, RUNG_UNSUPPORTED, "input \"%s\": %s is not supported", onnx_show(v->name).text,
                     v->tensor ? onnx_type_name(v->data_type) : "what is no tensor");
  const rung_onnx_pin *pin = pin_of(imp, v->name);
  if (pin && (pin->value.type != type || (v->rank >= 0 && pin->value.rank != v->rank)))
    return onnx_fail(imp, RUNG_TYPE_MISMATCH, "input \"%s\" is %s of rank %d, the value for it %s of rank %d",
                     onnx_show(v->name).text, rung_type_name(type), v->rank, rung_type_name(pin->value.type),
                     pin->value.rank);
  if (pin)
    return onnx_bind_name(
        s, v->name,
        rung_graph_constant(imp->graph, pin->value.type, pin->value.rank, pin->value.extent, pin->value.data));
  if (v->rank < 0)
    return onnx_fail(imp, RUNG_UNSUPPORTED, "input \"%s\": the file does not say how many axes it has",
                     onnx_show(v->name).text);
  rung_dim extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < v->rank; axis++)
    extent[axis] =
        v->dim[axis].known ? rung_graph_constant_dim(imp->graph, v->dim[axis].value) : open_extent(imp, v, axis);
  const rung_value value = rung_graph_input(imp->graph, name, type, v->rank, extent);
  if (rung_graph_status(imp->graph))
    return onnx_fail(imp, rung_graph_status(imp->graph), "input \"%s\": %s", onnx_show(v->name).text,
                     rung_graph_message(imp->graph));
  return onnx_bind_name(s, v->name, value);
}

static rung_status import_graph(onnx_import *imp) {
  const onnx_graph *graph = imp->model.graph;
  imp->root = onnx_body_create(imp, NULL, imp->graph);
  onnx_scope *s = imp->root ? onnx_scope_create(imp, NULL, imp->root, graph) : NULL;
  if (!s) return imp->status;
  for (uint32_t i = 0; i < graph->tensors && !imp->status; i++)
    (void)onnx_bind_name(s, graph->tensor[i].name, onnx_tensor_value(s, &graph->tensor[i], graph->tensor[i].name));
  for (uint32_t i = 0; i < graph->inputs && !imp->status; i++) {
    const rung_value known = own_value(s, graph->input[i].name); /* an initializer is its input's value */
    if (!known.id)
      (void)import_input(s, &graph->input[i]);
    else if (rung_graph_producer(imp->graph, known.id)->op == &rung_op_input)
      return onnx_fail(imp, RUNG_CORRUPT_FILE, "two inputs are called \"%s\"", onnx_show(graph->input[i].name).text);
  }
  RUNG_TRY(imp->status);
  RUNG_TRY(onnx_import_nodes(s, graph->node, graph->nodes));
  for (uint32_t i = 0; i < graph->outputs; i++) {
    const rung_value v = onnx_look_up(s, graph->output[i].name);
    const char *name = onnx_text(imp, graph->output[i].name);
    if (!v.id || !name)
      return onnx_fail(imp, RUNG_CORRUPT_FILE, "nothing gives the output \"%s\"",
                       onnx_show(graph->output[i].name).text);
    rung_graph_output(imp->graph, name, v);
  }
  if (rung_graph_status(imp->graph))
    return onnx_fail(imp, rung_graph_status(imp->graph), "%s", rung_graph_message(imp->graph));
  return RUNG_OK;
}

/* ---- the file */

typedef struct held_map {
  rung_host *host;
  rung_map map;
  void *memory; /* that the map borrows; NULL: none */
  size_t bytes;
} held_map;

static void let_go(void *owner) {
  held_map *held = (held_map *)owner;
  rung_host *host = held->host;
  rung_map_close(&held->map);
  rung_host_free(host, RUNG_MEMORY_weights, held->memory, held->bytes);
  rung_host_free(host, RUNG_MEMORY_host, held, sizeof *held);
  rung_host_release(host);
}

static rung_status add_source(onnx_import *imp, const rung_source *source, void *memory, size_t bytes, int *out_source,
                              const rung_map **out_map) {
  held_map *held = (held_map *)rung_host_alloc(imp->host, RUNG_MEMORY_host, sizeof *held, 0);
  if (!held) {
    rung_host_free(imp->host, RUNG_MEMORY_weights, memory, bytes);
    return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a file");
  }
  *held = (held_map){.host = imp->host, .memory = memory, .bytes = bytes};
  rung_host_retain(imp->host);
  rung_status status = rung_map_open(&held->map, imp->host, source, imp->error);
  const rung_weights_source of = {&held->map, held, let_go};
  if (!status) status = rung_weights_add_source(imp->weights, &of, imp->error, out_source);
  if (status) {
    let_go(held);
    return imp->status = status;
  }
  *out_map = &held->map;
  return RUNG_OK;
}

rung_status onnx_add_file(onnx_import *imp, const rung_source *source, int *out_source, const rung_map **out_map) {
  return add_source(imp, source, NULL, 0, out_source, out_map);
}

rung_status onnx_add_memory(onnx_import *imp, uint64_t bytes, int *out_source, uint8_t **out_data) {
  enum { ALIGN = 64 };
  const rung_map *map;
  uint8_t *memory =
      bytes > SIZE_MAX ? NULL : (uint8_t *)rung_host_alloc(imp->host, RUNG_MEMORY_weights, (size_t)bytes, ALIGN);
  if (!memory) return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for the numbers of a tensor");
  const rung_source source = rung_source_memory(memory, bytes);
  RUNG_TRY(add_source(imp, &source, memory, (size_t)bytes, out_source, &map));
  *out_data = memory;
  return RUNG_OK;
}

static rung_status open_model(onnx_import *imp, const rung_source *source) {
  const rung_map *map;
  char folder[RUNG_PATH_BYTES];
  RUNG_TRY(rung_weights_create(imp->host, imp->error, &imp->weights));
  RUNG_TRY(onnx_add_file(imp, source, &imp->source, &map));
  if (source->kind == RUNG_SOURCE_PATH) {
    RUNG_TRY(rung_path_folder(source->path, imp->error, folder));
    imp->folder = rung_arena_text(&imp->arena, folder, strlen(folder));
  }
  RUNG_TRY(onnx_model_read(&imp->arena, map->data, map->size, imp->error, &imp->model));
  RUNG_TRY(rung_graph_create(imp->host, imp->error, &imp->graph));
  RUNG_TRY(onnx_check_missing(imp));
  return import_graph(imp);
}

bool rung_onnx_recognise(const uint8_t *data, uint64_t bytes) { return onnx_recognise(data, bytes); }

rung_status rung_onnx_open(rung_host *host, const rung_source *source, const rung_onnx_options *options,
                           rung_text *missing, rung_error *error, rung_onnx *out) {
  static const rung_onnx_options defaults = {0};
  rung_error local = {RUNG_OK, ""};
  onnx_import imp = {
      .host = host, .error = error ? error : &local, .options = options ? options : &defaults, .missing = missing};
  rung_arena_init(&imp.arena, host);
  rung_status status = open_model(&imp, source);
  if (!status) *out = (rung_onnx){imp.graph, imp.weights, imp.model.ir_version, 0};
  for (uint32_t i = 0; !status && i < imp.model.opsets; i++)
    if (!onnx_domain(imp.model.opset[i].domain).length) out->opset = imp.model.opset[i].version;
  if (status) {
    rung_graph_destroy(imp.graph);
    rung_weights_release(imp.weights);
  }
  rung_arena_finish(&imp.arena);
  return status;
}

rung_onnx_options rung_onnx_options_default(void) { return (rung_onnx_options){.size = sizeof(rung_onnx_options)}; }

rung_status rung_onnx_read(rung_host *host, const rung_source *source, const rung_onnx_options *options,
                           rung_error *error, rung_graph **out_graph, rung_weights **out_weights) {
  if (!host || !source || !out_graph || !out_weights)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "onnx: a host, a source and places for the results are wanted");
  if (options && options->size != sizeof *options)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "onnx: options.size is %zu, expected %zu", options->size,
                     sizeof *options);
  rung_onnx onnx;
  RUNG_TRY(rung_onnx_open(host, source, options, NULL, error, &onnx));
  *out_graph = onnx.graph;
  *out_weights = onnx.weights;
  return RUNG_OK;
}

void rung_onnx_close(rung_onnx *onnx) {
  rung_graph_destroy(onnx->graph);
  rung_weights_release(onnx->weights);
  *onnx = (rung_onnx){0};
}
