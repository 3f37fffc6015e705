/* SPDX-License-Identifier: MIT
 * The canonical encoding that stored keys are hashed from. Little-endian on every machine; dimensions by their
 * canonical text and symbols in the order of their names, so that neither the order of making nor ids show. Labels,
 * unused symbols and attributes that have their default are left out. */
#include <string.h>

#include "base/hash.h"
#include "ir/graph.h"

enum { ENCODING_VERSION = 1 };

static void put(rung_text *out, uint64_t value, int bytes) {
  char little[8];
  for (int i = 0; i < bytes; i++) little[i] = (char)(value >> 8 * i & 0xFF);
  rung_text_add(out, little, (size_t)bytes);
}

static void put_bytes(rung_text *out, const void *data, uint64_t bytes) {
  put(out, bytes, 8);
  rung_text_add(out, (const char *)data, (size_t)bytes);
}
static void put_string(rung_text *out, const char *text) { put_bytes(out, text, strlen(text)); }

/* The length stands before the text, which is printed in place. */
static void put_dim(rung_text *out, const rung_dims *dims, rung_dim dim) {
  const size_t at = out->length;
  put(out, 0, 8);
  if (dim.id) rung_dims_print(dims, dim, out);
  if (out->failed) return;
  const uint64_t bytes = out->length - at - 8;
  for (int i = 0; i < 8; i++) out->data[at + (size_t)i] = (char)(bytes >> 8 * i & 0xFF);
}

static void put_type(rung_text *out, const rung_dims *dims, const rung_value_type *type) {
  put(out, (uint64_t)type->type, 2);
  put(out, type->kind, 1);
  put(out, (uint8_t)type->rank, 1);
  put(out, (uint8_t)type->place, 1);
  put(out, type->layout, 2);
  for (int axis = 0; axis < type->rank; axis++) put_dim(out, dims, type->extent[axis]);
}

static void put_attr(rung_text *out, const rung_attr *attr, const rung_dims *dims, const void *value) {
  put_string(out, attr->name);
  put(out, attr->kind, 1);
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      put(out, (uint64_t) * (const int64_t *)value, 8);
      break;
    case RUNG_ATTR_F64: {
      uint64_t bits;
      memcpy(&bits, value, sizeof bits);
      put(out, bits, 8);
      break;
    }
    case RUNG_ATTR_BOOL:
      put(out, *(const bool *)value, 1);
      break;
    case RUNG_ATTR_TEXT:
      put_string(out, *(const char *const *)value);
      break;
    case RUNG_ATTR_TYPE:
      put(out, (uint64_t) * (const rung_type *)value, 2);
      break;
    case RUNG_ATTR_ENUM:
      put_string(out, attr->names[*(const int32_t *)value]);
      break;
    case RUNG_ATTR_DIM:
      put_dim(out, dims, *(const rung_dim *)value);
      break;
    case RUNG_ATTR_DIMS: {
      const rung_dim_list *list = (const rung_dim_list *)value;
      put(out, (uint32_t)list->count, 1);
      for (int32_t i = 0; i < list->count; i++) put_dim(out, dims, list->dim[i]);
      break;
    }
    case RUNG_ATTR_I64S: {
      const rung_i64_list *list = (const rung_i64_list *)value;
      put(out, (uint32_t)list->count, 1);
      for (int32_t i = 0; i < list->count; i++) put(out, (uint64_t)list->value[i], 8);
      break;
    }
    case RUNG_ATTR_CONSTANT: {
      const rung_blob *blob = (const rung_blob *)value;
      put_bytes(out, blob->data, blob->bytes);
      break;
    }
  }
}

static void put_graph(rung_text *out, const rung_graph *graph);

static void put_node(rung_text *out, const rung_graph *graph, const rung_node *node) {
  put_string(out, node->op->name);
  put(out, node->n_in, 4);
  for (uint32_t i = 0; i < node->n_in; i++) put(out, node->in[i], 4);
  put(out, node->results, 4);
  for (uint32_t i = 0; i < node->results; i++) {
    put_type(out, graph->dims, rung_graph_value_type(graph, node->first_value + i));
  }
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    if (rung_attr_is_default(attr, graph->dims, node->attrs)) continue;
    put_attr(out, attr, graph->dims, rung_attr_get(attr, node->attrs));
  }
  put(out, 0, 8); /* an empty name: no more attributes */
  put(out, node->bodies, 4);
  for (uint32_t i = 0; i < node->bodies; i++) put_graph(out, node->body[i]);
}

static void put_graph(rung_text *out, const rung_graph *graph) {
  put(out, graph->nodes, 4);
  for (uint32_t i = 0; i < graph->nodes && !out->failed; i++) put_node(out, graph, &graph->node[i]);
  put(out, graph->outputs, 4);
  for (uint32_t i = 0; i < graph->outputs; i++) {
    put_string(out, graph->output[i].name);
    put(out, graph->output[i].value, 4);
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
  put(out, count, 1);
  for (uint32_t i = 0; i < count; i++) {
    const rung_symbol *symbol = &dims->symbol[order[i]];
    put_string(out, symbol->name);
    put(out, symbol->made, 1);
    put(out, (uint64_t)symbol->lo, 8);
    put(out, (uint64_t)symbol->hi, 8);
    put_dim(out, dims, symbol->bound);
  }
}

rung_status rung_graph_encode(const rung_graph *graph, rung_text *out) {
  rung_text_puts(out, "rung-graph");
  put(out, ENCODING_VERSION, 4);
  put_symbols(out, graph);
  put_graph(out, graph);
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
