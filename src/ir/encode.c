/* SPDX-License-Identifier: MIT
 * The canonical encoding that stored keys are hashed from. Little-endian on every machine; dimensions by their
 * canonical text and symbols in the order of their names, so that neither the order of making nor ids show. Labels,
 * unused symbols and attributes that have their default are left out. */
#include <string.h>

#include "base/bytes.h"
#include "ir/graph.h"

/* The length stands before the text, which is printed in place. */
static void put_dim(rung_text *out, const rung_dims *dims, rung_dim dim) {
  const size_t at = out->length;
  rung_put(out, 0, 8);
  if (dim.id) rung_dims_print(dims, dim, out);
  if (out->failed) return;
  const uint64_t bytes = out->length - at - 8;
  for (int i = 0; i < 8; i++) out->data[at + (size_t)i] = (char)(bytes >> 8 * i & 0xFF);
}

static void put_type(rung_text *out, const rung_dims *dims, const rung_value_type *type) {
  rung_put(out, (uint64_t)type->type, 2);
  rung_put(out, type->kind, 1);
  rung_put(out, (uint8_t)type->rank, 1);
  rung_put(out, (uint8_t)type->place, 1);
  rung_put(out, type->layout, 2);
  for (int axis = 0; axis < type->rank; axis++) put_dim(out, dims, type->extent[axis]);
}

static void put_attr(rung_text *out, const rung_attr *attr, const rung_dims *dims, const void *value) {
  rung_put_string(out, attr->name);
  rung_put(out, attr->kind, 1);
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      rung_put(out, (uint64_t) * (const int64_t *)value, 8);
      break;
    case RUNG_ATTR_F64: {
      uint64_t bits;
      memcpy(&bits, value, sizeof bits);
      rung_put(out, bits, 8);
      break;
    }
    case RUNG_ATTR_BOOL:
      rung_put(out, *(const bool *)value, 1);
      break;
    case RUNG_ATTR_TEXT:
      rung_put_string(out, *(const char *const *)value);
      break;
    case RUNG_ATTR_TYPE:
      rung_put(out, (uint64_t) * (const rung_type *)value, 2);
      break;
    case RUNG_ATTR_ENUM:
      rung_put_string(out, attr->names[*(const int32_t *)value]);
      break;
    case RUNG_ATTR_DIM:
      put_dim(out, dims, *(const rung_dim *)value);
      break;
    case RUNG_ATTR_DIMS: {
      const rung_dim_list *list = (const rung_dim_list *)value;
      rung_put(out, (uint32_t)list->count, 1);
      for (int32_t i = 0; i < list->count; i++) put_dim(out, dims, list->dim[i]);
      break;
    }
    case RUNG_ATTR_I64S: {
      const rung_i64_list *list = (const rung_i64_list *)value;
      rung_put(out, (uint32_t)list->count, 1);
      for (int32_t i = 0; i < list->count; i++) rung_put(out, (uint64_t)list->value[i], 8);
      break;
    }
    case RUNG_ATTR_CONSTANT: {
      const rung_blob *blob = (const rung_blob *)value;
      rung_put_bytes(out, blob->data, blob->bytes);
      break;
    }
  }
}

static void put_graph(rung_text *out, const rung_graph *graph);

static void put_node(rung_text *out, const rung_graph *graph, const rung_node *node) {
  rung_put_string(out, node->op->name);
  rung_put(out, node->n_in, 4);
  for (uint32_t i = 0; i < node->n_in; i++) rung_put(out, node->in[i], 4);
  rung_put(out, node->results, 4);
  for (uint32_t i = 0; i < node->results; i++) {
    put_type(out, graph->dims, rung_graph_value_type(graph, node->first_value + i));
  }
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    if (rung_attr_is_default(attr, graph->dims, node->attrs)) continue;
    put_attr(out, attr, graph->dims, rung_attr_get(attr, node->attrs));
  }
  rung_put(out, 0, 8); /* an empty name: no more attributes */
  rung_put(out, node->bodies, 4);
  for (uint32_t i = 0; i < node->bodies; i++) put_graph(out, node->body[i]);
}

static void put_graph(rung_text *out, const rung_graph *graph) {
  rung_put(out, graph->nodes, 4);
  for (uint32_t i = 0; i < graph->nodes && !out->failed; i++) put_node(out, graph, &graph->node[i]);
  rung_put(out, graph->outputs, 4);
  for (uint32_t i = 0; i < graph->outputs; i++) {
    rung_put_string(out, graph->output[i].name);
    rung_put(out, graph->output[i].value, 4);
  }
}

static void put_symbols(rung_text *out, const rung_graph *graph) {
  const rung_dims *dims = graph->dims;
  const uint64_t used = rung_graph_symbols(graph);
  uint8_t order[RUNG_MAX_SYMBOLS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < dims->symbols; i++) {
    if (!(used >> i & 1)) continue;
    uint32_t at = count++;
    for (; at && strcmp(dims->symbol[order[at - 1]].name, dims->symbol[i].name) > 0; at--) order[at] = order[at - 1];
    order[at] = (uint8_t)i;
  }
  rung_put(out, count, 1);
  for (uint32_t i = 0; i < count; i++) {
    const rung_symbol *symbol = &dims->symbol[order[i]];
    rung_put_string(out, symbol->name);
    rung_put(out, symbol->made, 1);
    rung_put(out, (uint64_t)symbol->lo, 8);
    rung_put(out, (uint64_t)symbol->hi, 8);
    put_dim(out, dims, symbol->bound);
  }
}

rung_status rung_graph_encode(const rung_graph *graph, rung_text *out) {
  rung_text_puts(out, "rung-graph");
  rung_put(out, RUNG_GRAPH_ENCODING, 4);
  put_symbols(out, graph);
  put_graph(out, graph);
  return rung_text_status(out, NULL);
}

/* ---- what the key leaves out */

/* Texts are numbered by first use; most nodes in a row have the same one. */
typedef struct labels {
  const char **text;
  size_t count, capacity;
  const char *last;
  uint32_t last_number;
} labels;

static bool label_number(rung_host *host, labels *all, const char *label, uint32_t *out_number) {
  *out_number = 0;
  if (!label) return true;
  if (label != all->last) {
    size_t i = 0;
    while (i < all->count && strcmp(all->text[i], label) != 0) i++;
    if (i == all->count) {
      if (!rung_host_grow(host, (void **)&all->text, &all->capacity, all->count + 1, sizeof *all->text)) return false;
      all->text[all->count++] = label;
    }
    all->last = label;
    all->last_number = (uint32_t)i + 1;
  }
  *out_number = all->last_number;
  return true;
}

static bool put_labels(const rung_graph *graph, labels *all, rung_text *out) {
  for (uint32_t i = 0; i < graph->nodes; i++) {
    const rung_node *node = &graph->node[i];
    uint32_t number;
    if (!label_number(graph->host, all, node->label, &number)) return false;
    rung_put(out, number, 4);
    for (uint32_t b = 0; b < node->bodies; b++)
      if (!put_labels(node->body[b], all, out)) return false;
  }
  return true;
}

rung_status rung_graph_encode_notes(const rung_graph *graph, rung_text *out) {
  const rung_dims *dims = graph->dims;
  const uint64_t used = rung_graph_symbols(graph);
  rung_text_puts(out, "rung-notes");
  rung_put(out, RUNG_GRAPH_ENCODING, 4);
  uint32_t count = 0;
  for (uint32_t i = 0; i < dims->symbols; i++) count += !dims->symbol[i].made || (used >> i & 1);
  rung_put(out, count, 1);
  for (uint32_t i = 0; i < dims->symbols; i++) {
    const rung_symbol *symbol = &dims->symbol[i];
    if (symbol->made && !(used >> i & 1)) continue;
    rung_put_string(out, symbol->name);
    rung_put(out, symbol->made, 1);
    rung_put(out, (uint64_t)symbol->lo, 8);
    rung_put(out, (uint64_t)symbol->hi, 8);
  }
  labels all = {0};
  rung_text numbers;
  rung_text_init(&numbers, graph->host);
  if (!put_labels(graph, &all, &numbers)) numbers.failed = true;
  rung_put(out, all.count, 4);
  for (size_t i = 0; i < all.count; i++) rung_put_string(out, all.text[i]);
  rung_text_add(out, numbers.data, numbers.length);
  if (numbers.failed) out->failed = true;
  rung_text_finish(&numbers);
  rung_host_free(graph->host, RUNG_MEMORY_host, all.text, all.capacity * sizeof *all.text);
  return rung_text_status(out, NULL);
}

rung_status rung_graph_hash(const rung_graph *graph, struct rung_hash *out_hash, rung_error *error) {
  rung_text text;
  rung_text_init(&text, graph->host);
  rung_graph_encode(graph, &text);
  const rung_status status = rung_text_status(&text, error);
  if (!status) *out_hash = rung_hash_bytes(text.data, text.length);
  rung_text_finish(&text);
  return status;
}
