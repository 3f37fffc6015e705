/* SPDX-License-Identifier: MIT
 * Every rule of the form, checked from scratch: nothing that building recorded is believed. Runs after every pass. */
#include <string.h>

#include "ir/infer.h"

typedef struct verifier {
  rung_arena arena;
  rung_error *error;
  uint64_t made_symbols; /* all that steps bind, one bit each */
} verifier;

static rung_status bad_node(const verifier *v, const rung_graph *graph, const rung_node *node, rung_status status,
                            const char *what) {
  return rung_fail(v->error, status, "verify: %s %s%s%.200s%s: %s",
                   rung_graph_value_name(graph, node->results ? node->first_value : 0).text, node->op->name,
                   node->label ? " (" : "", node->label ? node->label : "", node->label ? ")" : "", what);
}

/* ---- structure: ids in range, operands before use, results numbered in order */

static rung_status verify_structure(const verifier *v, const rung_graph *graph) {
  uint32_t next = 1, inputs = 0;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    if (node->first_value != next || node->results > graph->values - next) {
      return bad_node(v, graph, node, RUNG_INTERNAL, "its results are not numbered in order");
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (node->in[k] == 0 || node->in[k] >= next) {
        return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "an operand is not defined before its use");
      }
    }
    for (uint32_t k = 0; k < node->results; k++) {
      if (graph->value[next + k].node != i || graph->value[next + k].result != k) {
        return bad_node(v, graph, node, RUNG_INTERNAL, "a result does not know its node");
      }
    }
    if (node->op->flags & RUNG_OP_INPUT && (inputs == graph->inputs || graph->input[inputs++] != i)) {
      return bad_node(v, graph, node, RUNG_INTERNAL, "an input is not listed");
    }
    if (node->op->attrs_bytes && !node->attrs) {
      return bad_node(v, graph, node, RUNG_INTERNAL, "it has no attributes");
    }
    next += node->results;
  }
  if (next != graph->values || inputs != graph->inputs) {
    return rung_fail(v->error, RUNG_INTERNAL, "verify: the graph lists %u values and %u inputs but has %u and %u",
                     graph->values, graph->inputs, next, inputs);
  }
  for (uint32_t i = 0; i < graph->outputs; i++) {
    if (graph->output[i].value == 0 || graph->output[i].value >= graph->values) {
      return rung_fail(v->error, RUNG_INVALID_ARGUMENT, "verify: output '%.200s' is no value", graph->output[i].name);
    }
  }
  return RUNG_OK;
}

/* ---- names */

static rung_status verify_names(const verifier *v, const rung_graph *graph) {
  for (uint32_t i = 0; i < graph->outputs; i++) {
    if (rung_graph_find_name(graph, RUNG_NAME_OUTPUT, graph->output[i].name) != i) {
      return rung_fail(v->error, RUNG_INVALID_ARGUMENT, "verify: output '%.200s' is named twice",
                       graph->output[i].name);
    }
  }
  for (uint32_t i = 0; i < graph->inputs; i++) {
    const rung_node *node = &graph->node[graph->input[i]];
    const char *name = rung_attrs_name(node->op, node->attrs);
    if (name && rung_graph_find_name(graph, RUNG_NAME_INPUT, name) != graph->input[i]) {
      return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "another input has its name");
    }
  }
  return RUNG_OK;
}

/* ---- types and symbols: infer again and compare */

static rung_status types_differ(const verifier *v, const rung_graph *graph, const rung_node *node, uint32_t result,
                                const rung_value_type *inferred) {
  rung_text text;
  rung_text_init(&text, graph->host);
  rung_text_puts(&text, "its type is ");
  rung_value_type_print(graph->dims, rung_graph_value_type(graph, node->first_value + result), &text);
  rung_text_puts(&text, " but its rule gives ");
  rung_value_type_print(graph->dims, inferred, &text);
  const rung_status status = text.failed ? bad_node(v, graph, node, RUNG_OUT_OF_MEMORY, "out of memory")
                                         : bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, text.data);
  rung_text_finish(&text);
  return status;
}

static uint64_t type_symbols(const rung_dims *dims, const rung_value_type *type) {
  uint64_t used = 0;
  for (int axis = 0; axis < type->rank; axis++) used |= dims->node[type->extent[axis].id].symbols;
  return used;
}

static uint64_t attr_symbols(const rung_dims *dims, const rung_node *node) {
  uint64_t used = 0;
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    const void *value = rung_attr_get(attr, node->attrs);
    if (attr->kind == RUNG_ATTR_DIM) used |= dims->node[((const rung_dim *)value)->id].symbols;
    if (attr->kind != RUNG_ATTR_DIMS) continue;
    const rung_dim_list *list = (const rung_dim_list *)value;
    for (int32_t i = 0; i < list->count; i++) used |= dims->node[list->dim[i].id].symbols;
  }
  return used;
}

typedef struct scratch {
  rung_value_type small[24];
  rung_value_type *in, *out, *given;
} scratch;

static bool take_scratch(verifier *v, const rung_graph *graph, const rung_node *node, scratch *s) {
  const size_t need = (size_t)node->n_in + 2 * (size_t)node->results;
  s->in = s->small;
  if (need > RUNG_COUNT(s->small)) s->in = (rung_value_type *)rung_arena_array(&v->arena, need, sizeof *s->in);
  if (!s->in) return false;
  s->out = s->in + node->n_in;
  s->given = s->out + node->results;
  for (uint32_t i = 0; i < node->n_in; i++) s->in[i] = graph->value[node->in[i]].type;
  for (uint32_t i = 0; i < node->results; i++) s->out[i] = s->given[i] = graph->value[node->first_value + i].type;
  return true;
}

/* `known` holds the symbols that are bound when the node runs. */
static rung_status infer_again(verifier *v, rung_graph *graph, const rung_node *node, uint64_t *known) {
  scratch s;
  if (!take_scratch(v, graph, node, &s)) return bad_node(v, graph, node, RUNG_OUT_OF_MEMORY, "out of memory");
  rung_error why = {RUNG_OK, ""};
  if (node->op->attrs_bytes) {
    const rung_status status = rung_attrs_check(node->op, graph->dims, node->attrs, &why);
    if (status) return bad_node(v, graph, node, status, why.message);
  }
  if (attr_symbols(graph->dims, node) & v->made_symbols & ~*known) {
    return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "an attribute needs a symbol that no step before it made");
  }
  rung_infer infer = {.graph = graph, .given = s.given, .silent = true, .error = &why};
  graph->dims->failure = RUNG_OK;
  rung_status status = rung_infer_node(&infer, node, s.in, s.out);
  if (status && graph->dims->failure == RUNG_OUT_OF_MEMORY) {
    status = rung_fail(&why, RUNG_OUT_OF_MEMORY, "out of memory");
  }
  if (status) return bad_node(v, graph, node, status, why.message);
  /* What a body's inputs speak of is bound by the node that has the body. */
  if (graph->parent && node->op->flags & RUNG_OP_INPUT) *known |= type_symbols(graph->dims, &s.out[0]);
  if (infer.made & *known) return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "it makes a symbol that is made");
  *known |= infer.made;
  for (uint32_t i = 0; i < node->results; i++) {
    if (!rung_value_type_equal(&s.out[i], &s.given[i])) return types_differ(v, graph, node, i, &s.out[i]);
    if (type_symbols(graph->dims, &s.out[i]) & v->made_symbols & ~*known) {
      return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "an extent needs a symbol that no step before it made");
    }
  }
  return RUNG_OK;
}

/* ---- states: each version has one writer, and who reads it comes before */

static bool is_state(const rung_graph *graph, uint32_t value) {
  return graph->value[value].type.kind != RUNG_VALUE_TENSOR;
}

static bool has_state_result(const rung_graph *graph, const rung_node *node) {
  for (uint32_t i = 0; i < node->results; i++) {
    if (is_state(graph, node->first_value + i)) return true;
  }
  return false;
}

/* For every state in a body the input that it comes from, through its versions; UINT32_MAX where it cannot be told. */
static uint32_t *state_origins(verifier *v, const rung_graph *body) {
  uint32_t *origin = (uint32_t *)rung_arena_array(&v->arena, body->values, sizeof *origin);
  uint32_t input = 0;
  for (uint32_t i = 0; origin && i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    for (uint32_t k = 0; k < node->results; k++) origin[node->first_value + k] = UINT32_MAX;
    if (node->op->flags & RUNG_OP_INPUT) {
      origin[node->first_value] = input++;
    } else if (node->op->flags & RUNG_OP_EFFECT && node->n_in && node->results) {
      origin[node->first_value] = origin[node->in[0]];
    }
  }
  return origin;
}

/* Marks the operands whose new versions a node with bodies gives back. */
static bool written_by_bodies(verifier *v, const rung_graph *graph, const rung_node *node, uint8_t *gone) {
  bool all = false;
  for (uint32_t b = 0; b < node->bodies; b++) {
    const rung_graph *body = node->body[b];
    const uint32_t *origin = state_origins(v, body);
    if (!origin) return false;
    for (uint32_t i = 0; i < body->outputs; i++) {
      if (!is_state(body, body->output[i].value)) continue;
      const uint32_t input = origin[body->output[i].value];
      const uint32_t operand = input == UINT32_MAX ? UINT32_MAX : rung_node_operand_of_input(node, body, input);
      if (operand < node->n_in && is_state(graph, node->in[operand])) {
        gone[node->in[operand]] = 1;
      } else {
        all = true;
      }
    }
  }
  for (uint32_t k = 0; all && k < node->n_in; k++) gone[node->in[k]] |= is_state(graph, node->in[k]);
  return true;
}

static rung_status verify_states(verifier *v, const rung_graph *graph) {
  uint8_t *gone = (uint8_t *)rung_arena_alloc(&v->arena, graph->values); /* versions that have been overwritten */
  if (!gone) return rung_fail(v->error, RUNG_OUT_OF_MEMORY, "verify: out of memory");
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (gone[node->in[k]]) {
        return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "it uses a version of a state that is overwritten");
      }
    }
    if (!has_state_result(graph, node)) continue;
    if (node->op->flags & RUNG_OP_EFFECT) {
      if (node->n_in && is_state(graph, node->in[0])) gone[node->in[0]] = 1;
    } else if (node->bodies) {
      if (!written_by_bodies(v, graph, node, gone)) {
        return rung_fail(v->error, RUNG_OUT_OF_MEMORY, "verify: out of memory");
      }
    }
  }
  for (uint32_t i = 0; i < graph->outputs; i++) {
    if (gone[graph->output[i].value]) {
      return rung_fail(v->error, RUNG_INVALID_ARGUMENT,
                       "verify: output '%.200s' is a version of a state that is overwritten", graph->output[i].name);
    }
  }
  return RUNG_OK;
}

/* ---- all of it */

static rung_status verify_graph(verifier *v, rung_graph *graph, uint64_t known);

static rung_status verify_bodies(verifier *v, const rung_graph *graph, const rung_node *node, uint64_t known) {
  if (node->op->bodies != 255 && node->bodies != node->op->bodies) {
    return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "it has not as many bodies as its op");
  }
  for (uint32_t i = 0; i < node->bodies; i++) {
    rung_graph *body = node->body[i];
    if (body->parent != graph || !body->closed || body->dims != graph->dims) {
      return bad_node(v, graph, node, RUNG_INVALID_ARGUMENT, "a body was not made for it");
    }
    if (body->depth != graph->depth + 1 || body->depth > RUNG_MAX_NESTING) {
      return bad_node(v, graph, node, RUNG_OUT_OF_RANGE, "bodies are nested too deep");
    }
    const rung_status status = verify_graph(v, body, known);
    if (status) {
      return rung_fail_prefix(v->error, status, "in body %u of %s", i,
                              rung_graph_value_name(graph, node->results ? node->first_value : 0).text);
    }
  }
  return RUNG_OK;
}

static rung_status verify_graph(verifier *v, rung_graph *graph, uint64_t known) {
  if (graph->error.status) return rung_fail(v->error, graph->error.status, "%s", graph->error.message);
  RUNG_TRY(verify_structure(v, graph));
  RUNG_TRY(verify_names(v, graph));
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    RUNG_TRY(verify_bodies(v, graph, node, known));
    RUNG_TRY(infer_again(v, graph, node, &known));
  }
  return verify_states(v, graph);
}

rung_status rung_graph_verify(const rung_graph *graph, rung_error *error) {
  if (!graph) return rung_fail(error, RUNG_INVALID_ARGUMENT, "verify: the graph is NULL");
  rung_error local = {RUNG_OK, ""};
  verifier v = {.error = error ? error : &local};
  rung_arena_init(&v.arena, graph->host);
  /* A body alone: which symbols its node knows is not known here, so these are not looked at. */
  for (uint32_t i = 0; i < graph->dims->symbols && !graph->parent; i++) {
    v.made_symbols |= (uint64_t)graph->dims->symbol[i].made << i;
  }
  /* The graph is not changed: silent inference records nothing, and the dimensions are shared anyway. */
  const rung_status status = verify_graph(&v, (rung_graph *)graph, 0);
  rung_arena_finish(&v.arena);
  return status;
}
