/* SPDX-License-Identifier: MIT
 * Building graphs. Every call checks, allocates, and only then changes the graph, so that a failed call leaves a graph
 * that can still be read; the first error stays. */
#include "ir/graph.h"

#include <stdio.h>
#include <string.h>

#include "ir/infer.h"

/* ---- life */

/* Tells values of different graphs apart. An address is enough for graphs that live at the same time, and needs no
 * counter shared by threads. */
static uint32_t serial_of(const rung_graph *graph) {
  const uint32_t serial = (uint32_t)((uintptr_t)graph >> 6);
  return serial ? serial : 1;
}

/* Takes its own reference to dims. */
static rung_graph *create(rung_host *host, rung_dims *dims) {
  rung_graph *graph = (rung_graph *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *graph, 0);
  if (!graph) return NULL;
  graph->host = host;
  graph->serial = serial_of(graph);
  rung_arena_init(&graph->arena, host);
  if (!rung_arena_grow(&graph->arena, (void **)&graph->value, &graph->value_capacity, 16, sizeof *graph->value)) {
    rung_host_free(host, RUNG_MEMORY_host, graph, sizeof *graph);
    return NULL;
  }
  graph->values = 1; /* the null value */
  graph->dims = dims;
  rung_dims_retain(dims);
  rung_host_retain(host);
  return graph;
}

rung_status rung_graph_create(rung_host *host, rung_error *error, rung_graph **out_graph) {
  if (!host) return rung_fail(error, RUNG_INVALID_ARGUMENT, "graph: the host is NULL");
  rung_dims *dims = rung_dims_create(host);
  rung_graph *graph = dims ? create(host, dims) : NULL;
  rung_dims_release(dims);
  if (!graph) return rung_fail(error, RUNG_OUT_OF_MEMORY, "graph: out of memory");
  *out_graph = graph;
  return RUNG_OK;
}

rung_status rung_graph_create_like(const rung_graph *like, rung_error *error, rung_graph **out_graph) {
  rung_graph *graph = create(like->host, like->dims);
  if (!graph) return rung_fail(error, RUNG_OUT_OF_MEMORY, "graph: out of memory");
  *out_graph = graph;
  return RUNG_OK;
}

rung_status rung_graph_create_apart(const rung_graph *like, rung_error *error, rung_graph **out_graph) {
  rung_dims *dims = rung_dims_clone(like->dims);
  rung_graph *graph = dims ? create(like->host, dims) : NULL;
  rung_dims_release(dims);
  if (!graph) return rung_fail(error, RUNG_OUT_OF_MEMORY, "graph: out of memory");
  *out_graph = graph;
  return RUNG_OK;
}

void rung_graph_destroy(rung_graph *graph) {
  if (!graph) return;
  rung_host *host = graph->host;
  for (uint32_t i = 0; i < graph->owned_bodies; i++) rung_graph_destroy(graph->owned_body[i]);
  rung_dims_release(graph->dims);
  rung_arena_finish(&graph->arena);
  rung_host_free(host, RUNG_MEMORY_host, graph, sizeof *graph);
  rung_host_release(host);
}

/* After an error this gives the parent itself, whose calls do nothing: building code need not look. */
rung_graph *rung_graph_body(rung_graph *parent) {
  if (!parent || parent->error.status) return parent;
  if (parent->closed) {
    rung_graph_fail(parent, RUNG_INVALID_ARGUMENT, "a body that a node already has cannot be extended");
    return parent;
  }
  if (parent->depth >= RUNG_MAX_NESTING) {
    rung_graph_fail(parent, RUNG_OUT_OF_RANGE, "bodies are nested deeper than %d", RUNG_MAX_NESTING);
    return parent;
  }
  rung_graph *body = NULL;
  if (rung_arena_grow(&parent->arena, (void **)&parent->owned_body, &parent->owned_body_capacity,
                      parent->owned_bodies + 1, sizeof(rung_graph *))) {
    body = create(parent->host, parent->dims);
  }
  if (!body) {
    rung_graph_fail(parent, RUNG_OUT_OF_MEMORY, "body: out of memory");
    return parent;
  }
  body->parent = parent;
  body->depth = parent->depth + 1;
  body->label = parent->label;
  parent->owned_body[parent->owned_bodies++] = body;
  return body;
}

/* ---- errors */

void rung_graph_fail(rung_graph *graph, rung_status status, const char *format, ...) {
  if (!graph || graph->error.status) return;
  va_list args;
  va_start(args, format);
  rung_fail_v(&graph->error, status, format, args);
  va_end(args);
}

rung_status rung_graph_status(const rung_graph *graph) { return graph ? graph->error.status : RUNG_INVALID_ARGUMENT; }
const char *rung_graph_message(const rung_graph *graph) { return graph ? graph->error.message : "the graph is NULL"; }

rung_value_name rung_graph_value_name(const rung_graph *graph, uint32_t value) {
  rung_value_name name;
  if (value == 0) {
    snprintf(name.text, sizeof name.text, "%%null");
  } else {
    const bool state = value < graph->values && graph->value[value].type.kind != RUNG_VALUE_TENSOR;
    snprintf(name.text, sizeof name.text, "%%%s%u", state ? "s" : "", value - 1);
  }
  return name;
}

/* Names the node that failed: "%12 matmul (layers.3.ffn): ...". Shape rules begin with the op's name themselves. */
static void fail_node(rung_graph *graph, const rung_op *op, rung_error *why) {
  const size_t length = strlen(op->name);
  const char next = strncmp(why->message, op->name, length) == 0 ? why->message[length] : 0;
  const bool named = next == '(' || next == ':' || next == ' ';
  rung_fail_prefix(why, why->status, "%%%u%s%s%s%.200s%s", graph->values - 1, named ? "" : " ", named ? "" : op->name,
                   graph->label ? " (" : "", graph->label ? graph->label : "", graph->label ? ")" : "");
  if (!graph->error.status) graph->error = *why;
}

/* ---- dimensions */

static rung_dim checked(rung_graph *graph, rung_dim dim, const char *what) {
  if (!dim.id) rung_graph_fail(graph, graph->dims->failure, "dimension %s: %s", what, graph->dims->reason);
  return dim;
}

rung_dim rung_graph_constant_dim(rung_graph *graph, int64_t value) {
  if (rung_graph_status(graph)) return (rung_dim){0};
  graph->dims->failure = RUNG_OK;
  return checked(graph, rung_dims_constant(graph->dims, value), "constant");
}

rung_dim rung_graph_symbol(rung_graph *graph, const char *name, int64_t lo, int64_t hi) {
  if (rung_graph_status(graph)) return (rung_dim){0};
  graph->dims->failure = RUNG_OK;
  return checked(graph, rung_dims_symbol(graph->dims, name, lo, hi), name ? name : "symbol");
}

rung_dim rung_graph_dim(rung_graph *graph, rung_dim_op op, rung_dim a, rung_dim b) {
  if (rung_graph_status(graph)) return (rung_dim){0};
  graph->dims->failure = RUNG_OK;
  return checked(graph, rung_dims_combine(graph->dims, op, a, b), "expression");
}

/* ---- names */

static uint32_t hash_name(const char *name, uint32_t kind) {
  uint32_t h = 2166136261u ^ kind;
  for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
  return h ^ h >> 15;
}

static uint32_t find_place(const rung_name_entry *table, uint32_t capacity, uint32_t kind, const char *name) {
  uint32_t at = hash_name(name, kind) & (capacity - 1);
  while (table[at].name && (table[at].kind != kind || strcmp(table[at].name, name) != 0))
    at = (at + 1) & (capacity - 1);
  return at;
}

uint32_t rung_graph_find_name(const rung_graph *graph, rung_name_kind kind, const char *name) {
  if (!graph->name_capacity) return UINT32_MAX;
  const rung_name_entry *entry = &graph->name[find_place(graph->name, graph->name_capacity, kind, name)];
  return entry->name ? entry->index : UINT32_MAX;
}

/* Room for one more; at most half of the places are taken. */
static bool reserve_name(rung_graph *graph) {
  if (graph->name_capacity >= 2 * (graph->names + 1)) return true;
  if (graph->name_capacity > UINT32_MAX / 4) return false;
  const uint32_t capacity = graph->name_capacity ? graph->name_capacity * 2 : 16;
  rung_name_entry *table = (rung_name_entry *)rung_arena_array(&graph->arena, capacity, sizeof *table);
  if (!table) return false;
  for (uint32_t i = 0; i < graph->name_capacity; i++) {
    const rung_name_entry *entry = &graph->name[i];
    if (entry->name) table[find_place(table, capacity, entry->kind, entry->name)] = *entry;
  }
  graph->name = table;
  graph->name_capacity = capacity;
  return true;
}

static void add_name(rung_graph *graph, rung_name_kind kind, const char *name, uint32_t index) {
  const uint32_t at = find_place(graph->name, graph->name_capacity, kind, name);
  if (graph->name[at].name) return; /* a weight that is declared again */
  graph->name[at] = (rung_name_entry){name, kind, index};
  graph->names++;
}

/* ---- checks of a new node */

static rung_status no_memory(rung_error *error) { return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory"); }

static rung_status check_operands(const rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in,
                                  rung_error *error) {
  if (n_in < op->in_lo || (op->in_hi != 255 && n_in > op->in_hi) || n_in > RUNG_MAX_OPERANDS) {
    if (op->in_lo == op->in_hi) {
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "takes %u operands, not %u", op->in_lo, n_in);
    }
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "takes %u to %u operands, not %u", op->in_lo,
                     op->in_hi == 255 ? (uint32_t)RUNG_MAX_OPERANDS : op->in_hi, n_in);
  }
  for (uint32_t i = 0; i < n_in; i++) {
    if (in[i].id == 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "operand %u is the null value", i);
    if (in[i].graph != graph->serial || in[i].id >= graph->values) {
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "operand %u is a value of another graph", i);
    }
  }
  return RUNG_OK;
}

/* Takes the bodies: from here on nothing can be added to them. */
static rung_status check_bodies(const rung_graph *graph, const rung_op *op, rung_graph *const *body, uint32_t bodies,
                                rung_error *error) {
  if (op->bodies != 255 && bodies != op->bodies) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "has %u bodies, not %u", op->bodies, bodies);
  }
  if (bodies > RUNG_MAX_OPERANDS) return rung_fail(error, RUNG_OUT_OF_RANGE, "%u bodies are too many", bodies);
  for (uint32_t i = 0; i < bodies; i++) {
    if (!body[i] || body[i]->parent != graph) {
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "body %u was not made for this graph", i);
    }
    if (body[i]->error.status) {
      return rung_fail(error, body[i]->error.status, "body %u: %s", i, body[i]->error.message);
    }
    if (body[i]->closed) return rung_fail(error, RUNG_INVALID_ARGUMENT, "body %u belongs to a node already", i);
    body[i]->closed = true; /* a failure further on ends the graph anyway */
  }
  return RUNG_OK;
}

/* ---- adding */

/* Grows what one node needs; nothing of the graph has changed if this fails. */
static bool reserve(rung_graph *graph, uint32_t results) {
  rung_arena *arena = &graph->arena;
  return graph->nodes < UINT32_MAX - 1 && graph->values < UINT32_MAX / 2 &&
         rung_arena_grow(arena, (void **)&graph->node, &graph->node_capacity, graph->nodes + 1, sizeof *graph->node) &&
         rung_arena_grow(arena, (void **)&graph->value, &graph->value_capacity, graph->values + results,
                         sizeof *graph->value);
}

static const rung_node *add_node(rung_graph *graph, const rung_node *node, const rung_value_type *type) {
  const uint32_t index = graph->nodes++;
  rung_node *added = &graph->node[index];
  *added = *node;
  added->first_value = graph->values;
  added->label = graph->label;
  for (uint32_t i = 0; i < node->results; i++) {
    graph->value[graph->values++] = (rung_value_info){type[i], index, i};
  }
  return added;
}

/* The op's own attributes, copied and checked; *out stays NULL for ops without. */
static rung_status take_attrs(rung_graph *graph, const rung_op *op, const void *attrs, const void **out,
                              rung_error *error) {
  if (!op->attrs_bytes) return RUNG_OK;
  void *copy;
  if (attrs) {
    RUNG_TRY(rung_attrs_check(op, graph->dims, attrs, error));
    copy = rung_attrs_copy(op, &graph->arena, attrs);
    if (!copy) return no_memory(error);
  } else {
    copy = rung_arena_alloc(&graph->arena, op->attrs_bytes);
    if (!copy) return no_memory(error);
    rung_attrs_default(op, graph->dims, copy);
    RUNG_TRY(rung_attrs_check(op, graph->dims, copy, error));
  }
  *out = copy;
  return RUNG_OK;
}

typedef struct addition {
  rung_node node;
  rung_value_type small_in[8], small_out[4];
  rung_value_type *in, *out;
} addition;

/* Operands by id, their types, copies of the body list, room for the results' types. */
static rung_status gather(rung_graph *graph, addition *a, const rung_value *in, rung_graph *const *body,
                          rung_error *error) {
  rung_arena *arena = &graph->arena;
  const bool many_in = a->node.n_in > RUNG_COUNT(a->small_in), many_out = a->node.results > RUNG_COUNT(a->small_out);
  a->in = many_in ? (rung_value_type *)rung_arena_array(arena, a->node.n_in, sizeof *a->in) : a->small_in;
  a->out = many_out ? (rung_value_type *)rung_arena_array(arena, a->node.results, sizeof *a->out) : a->small_out;
  a->node.in = a->node.n_in ? (uint32_t *)rung_arena_array(arena, a->node.n_in, sizeof(uint32_t)) : NULL;
  if (!a->in || !a->out || (a->node.n_in && !a->node.in)) return no_memory(error);
  for (uint32_t i = 0; i < a->node.n_in; i++) {
    a->node.in[i] = in[i].id;
    a->in[i] = graph->value[in[i].id].type;
  }
  if (a->node.bodies) {
    a->node.body = (rung_graph **)rung_arena_copy(arena, body, a->node.bodies * sizeof *body);
    if (!a->node.body) return no_memory(error);
  }
  return RUNG_OK;
}

static rung_status make_node(rung_graph *graph, const rung_op *op, const rung_value *in, const void *attrs,
                             rung_graph *const *body, const rung_value_type *given, uint32_t n_given, addition *a,
                             rung_error *error) {
  if (op->flags & RUNG_OP_DECLARES) return rung_fail(error, RUNG_INVALID_ARGUMENT, "declares: its type must be given");
  RUNG_TRY(check_operands(graph, op, in, a->node.n_in, error));
  RUNG_TRY(check_bodies(graph, op, body, a->node.bodies, error));
  RUNG_TRY(take_attrs(graph, op, attrs, &a->node.attrs, error));
  a->node.results = op->results;
  if (!op->results && op->result_count) {
    a->node.results = op->result_count(a->node.attrs, a->node.n_in, a->node.bodies, body);
  }
  if (a->node.results > RUNG_MAX_OPERANDS) return rung_fail(error, RUNG_OUT_OF_RANGE, "has too many results");
  RUNG_TRY(gather(graph, a, in, body, error));
  rung_infer infer = {.graph = graph, .given = n_given == a->node.results ? given : NULL, .error = error};
  RUNG_TRY(rung_infer_node(&infer, &a->node, a->in, a->out));
  if (!reserve(graph, a->node.results)) return no_memory(error);
  graph->made |= infer.made;
  return RUNG_OK;
}

const rung_node *rung_graph_append_as(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in,
                                      const void *attrs, rung_graph *const *body, uint32_t bodies,
                                      const rung_value_type *given, uint32_t n_given) {
  if (rung_graph_status(graph)) return NULL;
  rung_error why = {RUNG_OK, ""};
  addition a = {.node = {.op = op, .n_in = n_in, .bodies = bodies}};
  graph->dims->failure = RUNG_OK;
  rung_status status = RUNG_OK;
  if (graph->closed) {
    status = rung_fail(&why, RUNG_INVALID_ARGUMENT, "a body that a node already has cannot be extended");
  } else {
    status = make_node(graph, op, in, attrs, body, given, n_given, &a, &why);
  }
  if (status) {
    /* Dimensions that could not be made look like extents that differ. */
    if (graph->dims->failure == RUNG_OUT_OF_MEMORY) status = no_memory(&why);
    why.status = status;
    fail_node(graph, op, &why);
    return NULL;
  }
  return add_node(graph, &a.node, a.out);
}

const rung_node *rung_graph_append(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in,
                                   const void *attrs, rung_graph *const *body, uint32_t bodies) {
  return rung_graph_append_as(graph, op, in, n_in, attrs, body, bodies, NULL, 0);
}

rung_value rung_node_result(const rung_graph *graph, const rung_node *node, uint32_t result) {
  if (!node || result >= node->results) return (rung_value){0, 0};
  return (rung_value){graph->serial, node->first_value + result};
}

rung_value rung_graph_op(rung_graph *graph, const rung_op *op, const rung_value *in, uint32_t n_in, const void *attrs) {
  return rung_node_result(graph, rung_graph_append(graph, op, in, n_in, attrs, NULL, 0), 0);
}

/* ---- declarations */

static rung_name_kind name_kind(const rung_op *op, const rung_value_type *type) {
  if (op->flags & RUNG_OP_INPUT) return RUNG_NAME_INPUT;
  return type->kind == RUNG_VALUE_TENSOR ? RUNG_NAME_WEIGHT : RUNG_NAME_STATE;
}

static rung_status check_declared_name(const rung_graph *graph, const rung_op *op, const char *name,
                                       const rung_value_type *type, rung_error *error) {
  if (!name) return RUNG_OK;
  const rung_name_kind kind = name_kind(op, type);
  if (graph->parent && kind != RUNG_NAME_INPUT) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "'%.200s': a body sees nothing but its inputs", name);
  }
  const uint32_t there = rung_graph_find_name(graph, kind, name);
  if (there == UINT32_MAX) return RUNG_OK;
  /* One weight may be declared twice if both mean the same; inputs and states are one thing each. */
  if (kind == RUNG_NAME_WEIGHT &&
      rung_value_type_equal(type, rung_graph_value_type(graph, graph->node[there].first_value))) {
    return RUNG_OK;
  }
  return rung_fail(error, RUNG_INVALID_ARGUMENT,
                   kind == RUNG_NAME_WEIGHT ? "'%.200s' is declared with another type" : "'%.200s' is declared twice",
                   name);
}

static rung_status declare_node(rung_graph *graph, const rung_op *op, const void *attrs, rung_value_type *type,
                                rung_node *node, rung_error *error) {
  if (!(op->flags & RUNG_OP_DECLARES)) return rung_fail(error, RUNG_INVALID_ARGUMENT, "is no declaration");
  if (graph->closed) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "a body that a node already has cannot be extended");
  }
  RUNG_TRY(take_attrs(graph, op, attrs, &node->attrs, error));
  const char *name = rung_attrs_name(op, node->attrs);
  RUNG_TRY(check_declared_name(graph, op, name, type, error));
  rung_infer infer = {.graph = graph, .error = error};
  RUNG_TRY(rung_infer_node(&infer, node, NULL, type));
  if (!reserve(graph, 1) || (name && !reserve_name(graph))) return no_memory(error);
  if ((op->flags & RUNG_OP_INPUT) && !rung_arena_grow(&graph->arena, (void **)&graph->input, &graph->input_capacity,
                                                      graph->inputs + 1, sizeof *graph->input)) {
    return no_memory(error);
  }
  if (name) add_name(graph, name_kind(op, type), name, graph->nodes);
  if (op->flags & RUNG_OP_INPUT) graph->input[graph->inputs++] = graph->nodes;
  return RUNG_OK;
}

const rung_node *rung_graph_declare(rung_graph *graph, const rung_op *op, const void *attrs,
                                    const rung_value_type *type) {
  if (rung_graph_status(graph)) return NULL;
  rung_error why = {RUNG_OK, ""};
  rung_value_type copy = *type;
  rung_node node = {.op = op, .results = 1};
  graph->dims->failure = RUNG_OK;
  const rung_status status = declare_node(graph, op, attrs, &copy, &node, &why);
  if (status) {
    why.status = graph->dims->failure == RUNG_OUT_OF_MEMORY ? no_memory(&why) : status;
    fail_node(graph, op, &why);
    return NULL;
  }
  return add_node(graph, &node, &copy);
}

void rung_graph_output(rung_graph *graph, const char *name, rung_value value) {
  if (rung_graph_status(graph)) return;
  if (!name) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "output: its name is NULL");
  } else if (graph->closed) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "output '%s': a node already has this body", name);
  } else if (value.id == 0 || value.id >= graph->values || value.graph != graph->serial) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "output '%s': %s", name,
                    value.id ? "a value of another graph" : "the null value");
  } else if (rung_graph_find_name(graph, RUNG_NAME_OUTPUT, name) != UINT32_MAX) {
    rung_graph_fail(graph, RUNG_INVALID_ARGUMENT, "output '%s' is named twice", name);
  } else {
    const char *copy = rung_arena_text(&graph->arena, name, strlen(name));
    if (!copy || !reserve_name(graph) ||
        !rung_arena_grow(&graph->arena, (void **)&graph->output, &graph->output_capacity, graph->outputs + 1,
                         sizeof *graph->output)) {
      rung_graph_fail(graph, RUNG_OUT_OF_MEMORY, "output '%s': out of memory", name);
      return;
    }
    add_name(graph, RUNG_NAME_OUTPUT, copy, graph->outputs);
    graph->output[graph->outputs++] = (rung_output){copy, value.id};
  }
}

void rung_graph_label(rung_graph *graph, const char *label) {
  if (rung_graph_status(graph)) return;
  if (!label || (graph->label && strcmp(label, graph->label) == 0)) {
    if (!label) graph->label = NULL;
    return;
  }
  const char *copy = rung_arena_text(&graph->arena, label, strlen(label));
  if (!copy) {
    rung_graph_fail(graph, RUNG_OUT_OF_MEMORY, "label: out of memory");
    return;
  }
  graph->label = copy;
}

/* ---- questions */

static const rung_value_type *look(const rung_graph *graph, rung_value value) {
  if (!graph || value.graph != graph->serial || value.id == 0 || value.id >= graph->values) return NULL;
  return &graph->value[value.id].type;
}

rung_type rung_graph_type_of(const rung_graph *graph, rung_value value) {
  const rung_value_type *type = look(graph, value);
  return type ? type->type : RUNG_TYPE_LIMIT;
}
int rung_graph_rank_of(const rung_graph *graph, rung_value value) {
  const rung_value_type *type = look(graph, value);
  return type ? type->rank : -1;
}
rung_dim rung_graph_extent_of(const rung_graph *graph, rung_value value, int axis) {
  const rung_value_type *type = look(graph, value);
  if (!type || axis < -type->rank || axis >= type->rank) return (rung_dim){0};
  return type->extent[axis < 0 ? axis + type->rank : axis];
}
