/* SPDX-License-Identifier: MIT
 * Copying nodes from graph to graph. */
#include "ir/rewrite.h"

rung_status rung_rewrite_init(rung_rewrite *rewrite, const rung_graph *from, rung_graph *to, rung_error *error) {
  *rewrite = (rung_rewrite){.from = from, .to = to};
  if (from->dims != to->dims && from->dims != to->dims->cloned_from) {
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "rewrite: the graphs do not share their dimensions");
  }
  rewrite->map = (rung_value *)rung_arena_array(&to->arena, from->values, sizeof *rewrite->map);
  if (!rewrite->map) return rung_fail(error, RUNG_OUT_OF_MEMORY, "rewrite: out of memory");
  return RUNG_OK;
}

static rung_status start(rung_rewrite *rewrite, const rung_graph *from, rung_graph *to) {
  rung_error error = {RUNG_OK, ""};
  const rung_status status = rung_rewrite_init(rewrite, from, to, &error);
  if (status) rung_graph_fail(to, status, "%s", error.message);
  return status;
}

/* Recursion is as deep as bodies are nested, which rung_graph_body limits. */
rung_graph *rung_rewrite_body(rung_graph *to, const rung_graph *body) {
  rung_graph *copy = rung_graph_body(to);
  rung_rewrite inner;
  if (rung_graph_status(copy) || start(&inner, body, copy)) return copy;
  for (uint32_t i = 0; i < body->nodes; i++) {
    if (rung_rewrite_copy(&inner, i)) return copy;
  }
  for (uint32_t i = 0; i < body->outputs; i++) {
    rung_graph_output(copy, body->output[i].name, inner.map[body->output[i].value]);
  }
  return copy;
}

static void map_results(rung_rewrite *rewrite, const rung_node *node, const rung_node *copy) {
  for (uint32_t i = 0; copy && i < node->results; i++) {
    rewrite->map[node->first_value + i] = rung_node_result(rewrite->to, copy, i);
  }
}

static const rung_node *append_copy(rung_rewrite *rewrite, const rung_node *node, const rung_value *in, uint32_t n_in) {
  rung_graph *to = rewrite->to;
  rung_graph **body = NULL;
  if (node->bodies) {
    body = (rung_graph **)rung_arena_array(&to->arena, node->bodies, sizeof *body);
    if (!body) {
      rung_graph_fail(to, RUNG_OUT_OF_MEMORY, "rewrite: out of memory");
      return NULL;
    }
    for (uint32_t i = 0; i < node->bodies; i++) body[i] = rung_rewrite_body(to, node->body[i]);
  }
  rung_value_type small[8], *given = small;
  if (node->results > RUNG_COUNT(small)) {
    given = (rung_value_type *)rung_arena_array(&to->arena, node->results, sizeof *given);
    if (!given) {
      rung_graph_fail(to, RUNG_OUT_OF_MEMORY, "rewrite: out of memory");
      return NULL;
    }
  }
  for (uint32_t i = 0; i < node->results; i++) given[i] = rewrite->from->value[node->first_value + i].type;
  return rung_graph_append_as(to, node->op, in, n_in, node->attrs, body, node->bodies, given, node->results);
}

const rung_node *rung_rewrite_copy_with(rung_rewrite *rewrite, uint32_t index, const rung_value *in, uint32_t n_in) {
  const rung_node *node = &rewrite->from->node[index];
  if (rung_graph_status(rewrite->to)) return NULL;
  rung_graph_label(rewrite->to, node->label);
  const rung_node *copy = append_copy(rewrite, node, in, n_in);
  map_results(rewrite, node, copy);
  return copy;
}

rung_status rung_rewrite_copy(rung_rewrite *rewrite, uint32_t index) {
  const rung_node *node = &rewrite->from->node[index];
  rung_graph *to = rewrite->to;
  RUNG_TRY(rung_graph_status(to));
  if (node->op->flags & RUNG_OP_DECLARES) {
    rung_graph_label(to, node->label);
    const rung_value_type *type = rung_graph_value_type(rewrite->from, node->first_value);
    map_results(rewrite, node, rung_graph_declare(to, node->op, node->attrs, type));
    return rung_graph_status(to);
  }
  rung_value small[8], *in = small;
  if (node->n_in > RUNG_COUNT(small)) {
    in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
    if (!in) rung_graph_fail(to, RUNG_OUT_OF_MEMORY, "rewrite: out of memory");
  }
  for (uint32_t i = 0; in && i < node->n_in; i++) in[i] = rewrite->map[node->in[i]];
  if (in) rung_rewrite_copy_with(rewrite, index, in, node->n_in);
  return rung_graph_status(to);
}

rung_status rung_rewrite_finish(rung_rewrite *rewrite, rung_error *error) {
  const rung_graph *from = rewrite->from;
  for (uint32_t i = 0; i < from->outputs; i++) {
    rung_graph_output(rewrite->to, from->output[i].name, rewrite->map[from->output[i].value]);
  }
  const rung_status status = rung_graph_status(rewrite->to);
  return status ? rung_fail(error, status, "%s", rung_graph_message(rewrite->to)) : RUNG_OK;
}

rung_status rung_rewrite_inline(rung_graph *to, const rung_graph *body, const rung_value *in, rung_value *out_results) {
  RUNG_TRY(rung_graph_status(to));
  rung_rewrite rewrite;
  RUNG_TRY(start(&rewrite, body, to));
  uint32_t input = 0;
  for (uint32_t i = 0; i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    if (node->op->flags & RUNG_OP_INPUT) {
      rewrite.map[node->first_value] = in[input++];
    } else {
      RUNG_TRY(rung_rewrite_copy(&rewrite, i));
    }
  }
  for (uint32_t i = 0; i < body->outputs; i++) out_results[i] = rewrite.map[body->output[i].value];
  return rung_graph_status(to);
}

uint32_t *rung_graph_uses(const rung_graph *graph, rung_arena *arena) {
  uint32_t *uses = (uint32_t *)rung_arena_array(arena, graph->values, sizeof *uses);
  if (!uses) return NULL;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    for (uint32_t k = 0; k < node->n_in; k++) uses[node->in[k]]++;
  }
  for (uint32_t i = 0; i < graph->outputs; i++) uses[graph->output[i].value]++;
  return uses;
}
