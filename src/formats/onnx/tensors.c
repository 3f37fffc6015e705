/* SPDX-License-Identifier: MIT
 * Tensors of the file: small ones become constants of the graph, the others weights, which refer to the file's bytes, or
 * to those of a file beside it. Only numbers that are stored as varints are decoded into memory of their own. */
#include "formats/onnx/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

/* Above these a tensor is a weight. Integers are kept as constants longer: shapes, axes and tables of indices are looked
 * at while importing. */
enum { SMALL_BYTES = 256, SMALL_INTEGERS = 16384 };

typedef struct onnx_external {
  onnx_name location;
  int source;
  const rung_map *map;
  struct onnx_external *next;
} onnx_external;

bool onnx_element_type(onnx_call *call, int64_t data_type, rung_type *out) {
  if (data_type >= 0 && data_type <= INT32_MAX && onnx_type_of((int32_t)data_type, out)) return true;
  if (call)
    onnx_refuse(call, RUNG_UNSUPPORTED, "element type %s is not supported",
                onnx_type_name(data_type >= 0 && data_type <= INT32_MAX ? (int32_t)data_type : -1));
  return false;
}

static rung_status find_external(onnx_import *imp, const onnx_tensor *t, onnx_external **out) {
  for (onnx_external *e = imp->externals; e; e = e->next)
    if (onnx_name_equal(e->location, t->location)) {
      *out = e;
      return RUNG_OK;
    }
  if (!imp->folder)
    return onnx_fail(imp, RUNG_UNSUPPORTED,
                     "tensor \"%s\" lies in the file \"%s\", but the model was not opened by a path",
                     onnx_show(t->name).text, onnx_show(t->location).text);
  char path[RUNG_PATH_BYTES];
  rung_status status = rung_path_inside(imp->host, imp->folder, t->location.text, t->location.length, imp->error, path);
  if (status)
    return imp->status =
               rung_fail_prefix(imp->error, status, "external data of tensor \"%s\"", onnx_show(t->name).text);
  onnx_external *e = (onnx_external *)rung_arena_alloc(&imp->arena, sizeof *e);
  if (!e) return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for a file");
  const rung_source source = rung_source_path(path);
  RUNG_TRY(onnx_add_file(imp, &source, &e->source, &e->map));
  e->location = t->location;
  e->next = imp->externals;
  imp->externals = e;
  *out = e;
  return RUNG_OK;
}

typedef struct placed {
  rung_type type;
  uint64_t elements, bytes;
  int source; /* -1: must be decoded */
  uint64_t offset;
  const uint8_t *data;
} placed;

static rung_status place_external(onnx_import *imp, const onnx_tensor *t, placed *p) {
  onnx_external *e = NULL;
  RUNG_TRY(find_external(imp, t, &e));
  if (t->offset > e->map->size || p->bytes > e->map->size - t->offset || (t->has_length && t->length != p->bytes))
    return onnx_fail(imp, RUNG_CORRUPT_FILE,
                     "tensor \"%s\": its %" PRIu64 " bytes are not %" PRIu64 " bytes at offset %" PRIu64
                     " of \"%s\", which has %" PRIu64,
                     onnx_show(t->name).text, p->bytes, t->has_length ? t->length : p->bytes, t->offset,
                     onnx_show(t->location).text, e->map->size);
  p->source = e->source;
  p->offset = t->offset;
  p->data = e->map->data + t->offset;
  return RUNG_OK;
}

static rung_status place(onnx_import *imp, const onnx_tensor *t, placed *p) {
  *p = (placed){.source = -1};
  if (!onnx_type_of(t->data_type, &p->type))
    return onnx_fail(imp, RUNG_UNSUPPORTED, "tensor \"%s\": element type %s is not supported", onnx_show(t->name).text,
                     onnx_type_name(t->data_type));
  p->elements = 1;
  for (int i = 0; i < t->rank; i++)
    if (rung_mul_overflows(p->elements, (uint64_t)t->extent[i], &p->elements) || p->elements > INT64_MAX)
      return onnx_fail(imp, RUNG_CORRUPT_FILE, "tensor \"%s\": its extents do not fit 63 bits",
                       onnx_show(t->name).text);
  const rung_type_row *row = rung_type_get(p->type);
  if (rung_mul_overflows((p->elements + row->block - 1) / row->block, (uint64_t)row->bytes, &p->bytes))
    return onnx_fail(imp, RUNG_CORRUPT_FILE, "tensor \"%s\": its bytes do not fit 64 bits", onnx_show(t->name).text);
  if (t->external) return place_external(imp, t, p);
  rung_span span;
  if (!onnx_tensor_in_place(imp->model.file, t, &span)) {
    if (p->bytes > imp->model.bytes * 8)
      return onnx_fail(imp, RUNG_CORRUPT_FILE, "tensor \"%s\": the file has no room for its %" PRIu64 " numbers",
                       onnx_show(t->name).text, p->elements);
    return RUNG_OK;
  }
  if (span.bytes != p->bytes)
    return onnx_fail(imp, RUNG_CORRUPT_FILE,
                     "offset %" PRIu64 ": tensor \"%s\" has %" PRIu64 " bytes, but its shape wants %" PRIu64, t->at,
                     onnx_show(t->name).text, span.bytes, p->bytes);
  p->source = imp->source;
  p->offset = (uint64_t)(span.data - imp->model.file);
  p->data = span.data;
  return RUNG_OK;
}

static bool is_small(const placed *p) {
  const bool integer = rung_type_is_integer(p->type) || p->type == RUNG_TYPE_BOOL;
  return p->bytes <= (integer ? SMALL_INTEGERS : SMALL_BYTES) ||
         (p->type != RUNG_TYPE_F32 && rung_type_takes(p->type) == RUNG_TAKES_STORAGE && p->bytes <= SMALL_BYTES);
}

static rung_status add_weight(onnx_import *imp, const onnx_tensor *t, const placed *p, const char *name) {
  rung_tensor_desc desc = {.name = name, .name_length = strlen(name), .type = p->type, .rank = t->rank};
  memcpy(desc.extent, t->extent, sizeof desc.extent);
  const rung_tensor_entry *entry;
  const rung_status status = rung_weights_add(imp->weights, &desc, p->source, p->offset, imp->error, &entry);
  if (status) imp->status = status;
  return status;
}

/* A weight lives in the model's graph; a sub-graph captures it. */
static rung_value weight_value(onnx_import *imp, onnx_scope *s, const onnx_tensor *t, const placed *p, onnx_name wish) {
  const char *name = onnx_text(imp, wish);
  char fresh[96];
  if (!name) return rung_build_null();
  if (!*name || rung_weights_find(imp->weights, name)) {
    snprintf(fresh, sizeof fresh, "%.64s#%u", name, ++imp->fresh);
    name = rung_arena_text(&imp->arena, fresh, strlen(fresh));
    if (!name) return rung_build_null();
  }
  if (add_weight(imp, t, p, name)) return rung_build_null();
  const rung_value v = rung_graph_weight(imp->graph, name, p->type, t->rank, t->extent);
  onnx_body *chain[ONNX_MAX_NESTING + 1];
  int depth = 0;
  for (onnx_body *b = s->body; b->outer && depth < ONNX_MAX_NESTING; b = b->outer) chain[depth++] = b;
  rung_value inside = v;
  while (depth > 0 && inside.id) inside = onnx_capture(imp, chain[--depth], inside);
  return inside;
}

/* Numbers that do not lie in the file as they are wanted: into memory of the graph's making, or of the weights'. */
static rung_status decode(onnx_import *imp, const onnx_tensor *t, placed *p) {
  uint8_t *data = NULL;
  if (is_small(p)) {
    data = (uint8_t *)rung_arena_alloc(&imp->arena, (size_t)p->bytes + 1);
    if (!data) return onnx_fail(imp, RUNG_OUT_OF_MEMORY, "no memory for tensor \"%s\"", onnx_show(t->name).text);
  } else {
    RUNG_TRY(onnx_add_memory(imp, p->bytes, &p->source, &data));
  }
  const rung_status status = onnx_tensor_decode(imp->model.file, t, p->type, p->elements, data, imp->error);
  if (status) return imp->status = status;
  p->data = data;
  return RUNG_OK;
}

rung_value onnx_tensor_value(onnx_scope *s, const onnx_tensor *t, onnx_name name) {
  onnx_import *imp = s->imp;
  placed p;
  if (imp->status || place(imp, t, &p) || (p.source < 0 && decode(imp, t, &p))) return rung_build_null();
  if (!is_small(&p)) return weight_value(imp, s, t, &p, name);
  return rung_graph_constant(s->body->g, p.type, t->rank, t->extent, p.data);
}
