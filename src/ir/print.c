/* SPDX-License-Identifier: MIT
 * Graphs as text. One node a line; values are numbered in order, so the text depends on the graph alone. */
#include <inttypes.h>
#include <string.h>

#include "ir/graph.h"

void rung_value_type_print(const rung_dims *dims, const rung_value_type *type, rung_text *out) {
  static const char *const kind[] = {"", "state ", "kv "};
  rung_text_printf(out, "%s%s[", kind[type->kind], rung_type_name(type->type));
  for (int axis = 0; axis < type->rank; axis++) {
    if (axis) rung_text_puts(out, ",");
    rung_dims_print(dims, type->extent[axis], out);
  }
  rung_text_puts(out, "]");
  if (type->layout) rung_text_printf(out, " layout(%u)", type->layout);
  if (type->place) rung_text_printf(out, " place(%d)", type->place);
}

bool rung_value_type_equal(const rung_value_type *a, const rung_value_type *b) {
  if (a->type != b->type || a->kind != b->kind || a->rank != b->rank || a->place != b->place ||
      a->layout != b->layout) {
    return false;
  }
  for (int axis = 0; axis < a->rank; axis++) {
    if (!rung_dim_same(a->extent[axis], b->extent[axis])) return false;
  }
  return true;
}

/* ---- symbols: what inputs can bind, and those made by steps that the graph speaks of */

static uint64_t type_symbols(const rung_dims *dims, const rung_value_type *type) {
  uint64_t used = 0;
  for (int axis = 0; axis < type->rank; axis++) used |= dims->node[type->extent[axis].id].symbols;
  return used;
}

static uint64_t attr_symbols(const rung_dims *dims, const rung_op *op, const void *attrs) {
  uint64_t used = 0;
  for (const rung_attr *attr = op->attrs; attr && attr->name; attr++) {
    const void *value = rung_attr_get(attr, attrs);
    if (attr->kind == RUNG_ATTR_DIM) used |= dims->node[((const rung_dim *)value)->id].symbols;
    if (attr->kind != RUNG_ATTR_DIMS) continue;
    const rung_dim_list *list = (const rung_dim_list *)value;
    for (int32_t i = 0; i < list->count; i++) used |= dims->node[list->dim[i].id].symbols;
  }
  return used;
}

static uint64_t graph_symbols(const rung_graph *graph) {
  uint64_t used = 0;
  for (uint32_t i = 1; i < graph->values; i++) used |= type_symbols(graph->dims, &graph->value[i].type);
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    used |= attr_symbols(graph->dims, node->op, node->attrs);
    for (uint32_t k = 0; k < node->bodies; k++) used |= graph_symbols(node->body[k]);
  }
  return used;
}

uint64_t rung_graph_symbols(const rung_graph *graph) {
  const rung_dims *dims = graph->dims;
  uint64_t used = graph_symbols(graph);
  for (uint32_t i = dims->symbols; i-- > 0;) { /* bounds speak of earlier symbols */
    if (used >> i & 1) used |= dims->node[dims->symbol[i].bound.id].symbols;
  }
  return used;
}

static void print_symbols(const rung_graph *graph, rung_text *out) {
  const rung_dims *dims = graph->dims;
  const uint64_t used = rung_graph_symbols(graph);
  for (uint32_t i = 0; i < dims->symbols; i++) {
    const rung_symbol *symbol = &dims->symbol[i];
    if (symbol->made && !(used >> i & 1)) continue;
    rung_text_printf(out, "symbol %s", symbol->name);
    if (!symbol->made) {
      rung_text_printf(out, " %" PRId64 "..%" PRId64 "\n", symbol->lo, symbol->hi);
      continue;
    }
    if (symbol->bound.id) {
      rung_text_puts(out, " <= ");
      rung_dims_print(dims, symbol->bound, out);
    }
    rung_text_puts(out, " made\n");
  }
}

/* ---- nodes */

/* A label that reads back as it is needs no quotes. */
static bool label_is_plain(const char *label) {
  const size_t length = strlen(label);
  if (length == 0 || label[0] == '"' || label[0] == ' ' || label[length - 1] == ' ') return false;
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)label[i] < 0x20 || label[i] == 0x7F) return false;
  }
  return true;
}

static void print_label(const char *label, rung_text *out) {
  rung_text_puts(out, "  # ");
  if (label_is_plain(label)) {
    rung_text_puts(out, label);
  } else {
    rung_text_quoted(out, label, strlen(label));
  }
}

static void indent(int depth, rung_text *out) {
  for (int i = 0; i < depth; i++) rung_text_puts(out, "  ");
}

static void print_value(const rung_graph *graph, uint32_t value, rung_text *out) {
  rung_text_puts(out, rung_graph_value_name(graph, value).text);
}

static void print_block(const rung_graph *graph, int depth, rung_text *out);

static void print_node(const rung_graph *graph, const rung_node *node, int depth, rung_text *out) {
  indent(depth, out);
  for (uint32_t i = 0; i < node->results; i++) {
    print_value(graph, node->first_value + i, out);
    rung_text_puts(out, i + 1 < node->results ? ", " : " = ");
  }
  rung_text_puts(out, node->op->name);
  for (uint32_t i = 0; i < node->n_in; i++) {
    rung_text_puts(out, i ? ", " : " ");
    print_value(graph, node->in[i], out);
  }
  const size_t before = out->length;
  rung_text_puts(out, " {");
  const rung_value_type *first = node->results ? rung_graph_value_type(graph, node->first_value) : NULL;
  if (rung_attrs_print(node->op, graph->dims, node->attrs, first, out)) {
    rung_text_puts(out, "}");
  } else if (!out->failed) {
    out->length = before;
    out->data[before] = 0;
  }
  for (uint32_t i = 0; i < node->bodies; i++) {
    rung_text_puts(out, i ? " else {\n" : " {\n");
    print_block(node->body[i], depth + 1, out);
    indent(depth, out);
    rung_text_puts(out, "}");
  }
  for (uint32_t i = 0; i < node->results; i++) {
    rung_text_puts(out, i ? ", " : " : ");
    rung_value_type_print(graph->dims, rung_graph_value_type(graph, node->first_value + i), out);
  }
  if (node->label) print_label(node->label, out);
  rung_text_puts(out, "\n");
}

/* Nesting is limited by rung_graph_body. */
static void print_block(const rung_graph *graph, int depth, rung_text *out) {
  for (uint32_t i = 0; i < graph->nodes && !out->failed; i++) print_node(graph, &graph->node[i], depth, out);
  for (uint32_t i = 0; i < graph->outputs; i++) {
    indent(depth, out);
    rung_text_puts(out, "output ");
    rung_text_quoted(out, graph->output[i].name, strlen(graph->output[i].name));
    rung_text_puts(out, " ");
    print_value(graph, graph->output[i].value, out);
    rung_text_puts(out, "\n");
  }
}

void rung_graph_print_text(const rung_graph *graph, rung_text *out) {
  rung_text_puts(out, "rung 1\n");
  print_symbols(graph, out);
  print_block(graph, 0, out);
}

rung_status rung_graph_print(const rung_graph *graph, rung_error *error, char **out_text, size_t *out_bytes) {
  if (!graph) return rung_fail(error, RUNG_INVALID_ARGUMENT, "print: the graph is NULL");
  rung_text text;
  rung_text_init(&text, graph->host);
  rung_graph_print_text(graph, &text);
  const rung_status status = rung_text_status(&text, error);
  char *copy = NULL;
  if (!status) {
    copy = (char *)rung_host_alloc_raw(graph->host, RUNG_MEMORY_host, text.length + 1, 1);
    if (copy) memcpy(copy, text.data, text.length + 1);
  }
  const size_t length = text.length;
  rung_text_finish(&text);
  if (!copy) return status ? status : rung_fail(error, RUNG_OUT_OF_MEMORY, "print: no memory for %zu bytes", length);
  *out_text = copy;
  *out_bytes = length;
  return RUNG_OK;
}

void rung_text_free(rung_host *host, char *text, size_t bytes) {
  if (text) rung_host_free(host, RUNG_MEMORY_host, text, bytes + 1);
}
