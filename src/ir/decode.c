/* SPDX-License-Identifier: MIT
 * Reading the canonical encoding back. Nodes are built by the calls that any graph is built with, so whatever the bytes
 * say, what comes out is a valid graph; sizes are checked against the bytes that are left before anything is taken. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "ir/graph.h"

enum { MOST_NAME = 4096, NODE_BYTES = 28, TYPE_BYTES = 7 };

typedef struct symbol {
  const char *name;
  char copy[64];
  bool made, there;
  int64_t lo, hi;
  const char *bound;
  size_t bound_bytes;
} symbol;

typedef struct decoder {
  rung_bytes in, notes;
  rung_dims *dims;
  rung_arena arena; /* what lives as long as the decoder */
  const char **label;
  uint32_t labels;
  symbol symbol[2 * RUNG_MAX_SYMBOLS]; /* those of the notes, then those of the encoding */
  uint32_t symbols;
  rung_error *error;
} decoder;

RUNG_PRINTF(3, 4)
static rung_status refuse(decoder *d, rung_status status, const char *format, ...) {
  rung_error why = {RUNG_OK, ""};
  va_list args;
  va_start(args, format);
  rung_fail_v(&why, status, format, args);
  va_end(args);
  return rung_fail(d->error, status, "encoded graph, offset %" PRIu64 ": %s", (uint64_t)(d->in.at - d->in.start),
                   why.message);
}

static rung_status cut(decoder *d) { return refuse(d, RUNG_CORRUPT_FILE, "a length passes what is left"); }
static rung_status no_memory(decoder *d) { return refuse(d, RUNG_OUT_OF_MEMORY, "out of memory"); }

/* What building says: anything but a lack of memory or room means that the bytes were never written by us. */
static rung_status refuse_graph(decoder *d, const rung_graph *graph) {
  const rung_status status = graph->error.status;
  const bool ours = status == RUNG_OUT_OF_MEMORY || status == RUNG_UNSUPPORTED;
  return refuse(d, ours ? status : RUNG_CORRUPT_FILE, "%s", graph->error.message);
}

static rung_status get_text(decoder *d, size_t most, const char **out) {
  size_t length;
  const char *text = rung_get_string(&d->in, most, &length);
  if (d->in.failed) return refuse(d, RUNG_CORRUPT_FILE, "a text is cut, longer than %zu, or has a byte 0", most);
  *out = rung_arena_text(&d->arena, text, length);
  return *out ? RUNG_OK : no_memory(d);
}

static rung_status parse_dim(decoder *d, const char *text, size_t length, rung_dim *out) {
  const char *end = text;
  d->dims->failure = RUNG_OK;
  *out = rung_dims_parse(d->dims, text, text + length, &end);
  if (out->id && end == text + length) return RUNG_OK;
  if (!out->id && d->dims->failure == RUNG_OUT_OF_MEMORY) return no_memory(d);
  return refuse(d, RUNG_CORRUPT_FILE, "\"%.*s\" is no dimension", (int)(length < 80 ? length : 80), text);
}

static rung_status get_dim(decoder *d, rung_dim *out) {
  size_t length;
  const char *text = rung_get_string(&d->in, SIZE_MAX, &length);
  if (d->in.failed) return cut(d);
  *out = (rung_dim){0};
  return length ? parse_dim(d, text, length, out) : RUNG_OK;
}

/* ---- symbols. Bounds of symbols that steps make speak of other symbols, which stand before them in the notes; without
 * notes the order is found by trying. */

static symbol *find_symbol(decoder *d, const char *name) {
  for (uint32_t i = 0; i < d->symbols; i++)
    if (strcmp(d->symbol[i].name, name) == 0) return &d->symbol[i];
  return NULL;
}

static rung_status read_symbols(decoder *d, rung_bytes *in, bool bounds) {
  const uint32_t count = (uint32_t)rung_get(in, 1);
  if (count > RUNG_MAX_SYMBOLS) return refuse(d, RUNG_CORRUPT_FILE, "%u symbols", count);
  for (uint32_t i = 0; i < count; i++) {
    size_t length;
    const char *name = rung_get_string(in, sizeof d->symbol->copy - 1, &length);
    if (in->failed) return refuse(d, RUNG_CORRUPT_FILE, "the name of symbol %u is no name", i);
    symbol fresh = {.copy = ""};
    memcpy(fresh.copy, name, length);
    fresh.name = fresh.copy;
    symbol *s = find_symbol(d, fresh.copy);
    if (s && (!bounds || s->bound)) return refuse(d, RUNG_CORRUPT_FILE, "symbol %s is there twice", fresh.copy);
    fresh.made = rung_get(in, 1) != 0;
    fresh.lo = (int64_t)rung_get(in, 8);
    fresh.hi = (int64_t)rung_get(in, 8);
    if (s && (s->made != fresh.made || s->lo != fresh.lo || s->hi != fresh.hi))
      return refuse(d, RUNG_CORRUPT_FILE, "symbol %s has another range in the notes", fresh.copy);
    if (!s) {
      s = &d->symbol[d->symbols++];
      *s = fresh;
      s->name = s->copy;
    }
    if (bounds) s->bound = rung_get_string(in, SIZE_MAX, &s->bound_bytes);
    if (in->failed) return cut(d);
  }
  return RUNG_OK;
}

/* Does the text speak of a symbol that is still to be made? */
static bool waits(const decoder *d, const symbol *s) {
  if (!s->bound) return false;
  const char *at = s->bound, *end = s->bound + s->bound_bytes;
  while (at < end) {
    size_t n = 0;
    while (at + n < end && (at[n] == '_' || at[n] == '.' || (at[n] >= '0' && at[n] <= '9') ||
                            (at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z')))
      n++;
    for (uint32_t i = 0; n && i < d->symbols; i++) {
      const symbol *other = &d->symbol[i];
      if (!other->there && strlen(other->name) == n && memcmp(other->name, at, n) == 0) return true;
    }
    at += n ? n : 1;
  }
  return false;
}

static rung_status make_symbol(decoder *d, symbol *s) {
  rung_dim dim, bound = {0};
  d->dims->failure = RUNG_OK;
  if (s->made) {
    if (s->bound_bytes) RUNG_TRY(parse_dim(d, s->bound, s->bound_bytes, &bound));
    dim = rung_dims_make_symbol(d->dims, s->name, bound);
  } else {
    if (s->bound_bytes) return refuse(d, RUNG_CORRUPT_FILE, "symbol %s: an input's symbol has no bound", s->name);
    dim = rung_dims_symbol(d->dims, s->name, s->lo, s->hi);
  }
  if (dim.id) {
    s->there = true;
    return RUNG_OK;
  }
  if (d->dims->failure == RUNG_OUT_OF_MEMORY) return no_memory(d);
  return refuse(d, RUNG_CORRUPT_FILE, "symbol %s: %s", s->name, d->dims->reason);
}

static rung_status make_symbols(decoder *d) {
  for (uint32_t left = d->symbols, before = left + 1; left && left < before;) {
    before = left;
    for (uint32_t i = 0; i < d->symbols; i++) {
      symbol *s = &d->symbol[i];
      if (s->there || waits(d, s)) continue;
      RUNG_TRY(make_symbol(d, s));
      left--;
    }
    if (left == before) return refuse(d, RUNG_CORRUPT_FILE, "bounds of symbols speak of each other");
  }
  return RUNG_OK;
}

/* ---- nodes */

static rung_status get_type(decoder *d, rung_value_type *out) {
  *out = (rung_value_type){.type = (rung_type)rung_get(&d->in, 2)};
  out->kind = (uint8_t)rung_get(&d->in, 1);
  const uint64_t rank = rung_get(&d->in, 1), place = rung_get(&d->in, 1);
  out->layout = (uint16_t)rung_get(&d->in, 2);
  if (d->in.failed) return cut(d);
  if (!rung_type_get(out->type) || out->kind > RUNG_VALUE_STATE_KV || rank > RUNG_MAX_RANK || place > INT8_MAX)
    return refuse(d, RUNG_CORRUPT_FILE, "type %d, kind %d, rank %d, place %d: no such type", (int)out->type, out->kind,
                  (int)rank, (int)place);
  out->rank = (int8_t)rank;
  out->place = (int8_t)place;
  for (int axis = 0; axis < out->rank; axis++) RUNG_TRY(get_dim(d, &out->extent[axis]));
  return RUNG_OK;
}

static rung_status get_enum(decoder *d, const rung_attr *attr, int32_t *out) {
  const char *name;
  RUNG_TRY(get_text(d, MOST_NAME, &name));
  for (*out = 0; attr->names[*out]; ++*out)
    if (strcmp(attr->names[*out], name) == 0) return RUNG_OK;
  return refuse(d, RUNG_CORRUPT_FILE, "attribute %s: there is no '%.80s'", attr->name, name);
}

static rung_status get_list_count(decoder *d, const rung_attr *attr, int32_t *out) {
  *out = (int32_t)rung_get(&d->in, 1);
  return *out <= RUNG_MAX_RANK ? RUNG_OK : refuse(d, RUNG_CORRUPT_FILE, "attribute %s: %d entries", attr->name, *out);
}

static rung_status get_value(decoder *d, const rung_attr *attr, void *value) {
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      *(int64_t *)value = (int64_t)rung_get(&d->in, 8);
      return RUNG_OK;
    case RUNG_ATTR_F64: {
      const uint64_t bits = rung_get(&d->in, 8);
      memcpy(value, &bits, sizeof bits);
      return RUNG_OK;
    }
    case RUNG_ATTR_BOOL:
      *(bool *)value = rung_get(&d->in, 1) != 0;
      return RUNG_OK;
    case RUNG_ATTR_TEXT:
      return get_text(d, SIZE_MAX, (const char **)value);
    case RUNG_ATTR_TYPE:
      *(rung_type *)value = (rung_type)rung_get(&d->in, 2);
      return RUNG_OK;
    case RUNG_ATTR_ENUM:
      return get_enum(d, attr, (int32_t *)value);
    case RUNG_ATTR_DIM:
      return get_dim(d, (rung_dim *)value);
    case RUNG_ATTR_DIMS: {
      rung_dim_list *list = (rung_dim_list *)value;
      RUNG_TRY(get_list_count(d, attr, &list->count));
      for (int32_t i = 0; i < list->count; i++) RUNG_TRY(get_dim(d, &list->dim[i]));
      return RUNG_OK;
    }
    case RUNG_ATTR_I64S: {
      rung_i64_list *list = (rung_i64_list *)value;
      RUNG_TRY(get_list_count(d, attr, &list->count));
      for (int32_t i = 0; i < list->count; i++) list->value[i] = (int64_t)rung_get(&d->in, 8);
      return RUNG_OK;
    }
    case RUNG_ATTR_CONSTANT: {
      rung_blob *blob = (rung_blob *)value;
      blob->data = rung_get_bytes(&d->in, &blob->bytes);
      return RUNG_OK;
    }
  }
  return refuse(d, RUNG_CORRUPT_FILE, "attribute %s is of no kind", attr->name);
}

static rung_status get_attrs(decoder *d, const rung_op *op, void **out) {
  uint8_t *attrs = op->attrs_bytes ? (uint8_t *)rung_arena_alloc(&d->arena, op->attrs_bytes) : NULL;
  if (op->attrs_bytes && !attrs) return no_memory(d);
  d->dims->failure = RUNG_OK;
  if (attrs) rung_attrs_default(op, d->dims, attrs);
  if (d->dims->failure == RUNG_OUT_OF_MEMORY) return no_memory(d);
  for (;;) {
    size_t length;
    const char *name = rung_get_string(&d->in, MOST_NAME, &length);
    if (d->in.failed) return cut(d);
    if (!length) break;
    const rung_attr *attr = attrs ? rung_attr_find(op, name, length) : NULL;
    if (!attr || rung_get(&d->in, 1) != attr->kind)
      return refuse(d, RUNG_CORRUPT_FILE, "%s has no attribute '%.*s' of this kind", op->name,
                    (int)(length < 80 ? length : 80), name);
    RUNG_TRY(get_value(d, attr, attrs + attr->offset));
    if (d->in.failed) return cut(d);
  }
  *out = attrs;
  return RUNG_OK;
}

static rung_status get_graph(decoder *d, rung_graph *graph);

static rung_status get_bodies(decoder *d, rung_graph *graph, rung_graph ***out_body, uint32_t *out_bodies) {
  const uint64_t bodies = rung_get(&d->in, 4);
  if (d->in.failed || bodies > rung_bytes_left(&d->in) / 8) return cut(d);
  rung_graph **body = bodies ? (rung_graph **)rung_arena_array(&d->arena, (size_t)bodies, sizeof *body) : NULL;
  if (bodies && !body) return no_memory(d);
  for (uint32_t i = 0; i < bodies; i++) {
    body[i] = rung_graph_body(graph);
    if (rung_graph_status(graph)) return refuse_graph(d, graph);
    RUNG_TRY(get_graph(d, body[i]));
  }
  *out_body = body;
  *out_bodies = (uint32_t)bodies;
  return RUNG_OK;
}

static rung_status get_operands(decoder *d, const rung_graph *graph, rung_value **out_in, uint32_t *out_count) {
  const uint64_t count = rung_get(&d->in, 4);
  if (d->in.failed || count > rung_bytes_left(&d->in) / 4) return cut(d);
  rung_value *in = count ? (rung_value *)rung_arena_array(&d->arena, (size_t)count, sizeof *in) : NULL;
  if (count && !in) return no_memory(d);
  for (uint64_t i = 0; i < count; i++) in[i] = (rung_value){graph->serial, (uint32_t)rung_get(&d->in, 4)};
  *out_in = in;
  *out_count = (uint32_t)count;
  return RUNG_OK;
}

static rung_status get_types(decoder *d, rung_value_type **out_type, uint32_t *out_count) {
  const uint64_t count = rung_get(&d->in, 4);
  if (d->in.failed || count > RUNG_MAX_OPERANDS || count > rung_bytes_left(&d->in) / TYPE_BYTES) return cut(d);
  rung_value_type *type = count ? (rung_value_type *)rung_arena_array(&d->arena, (size_t)count, sizeof *type) : NULL;
  if (count && !type) return no_memory(d);
  for (uint64_t i = 0; i < count; i++) RUNG_TRY(get_type(d, &type[i]));
  *out_type = type;
  *out_count = (uint32_t)count;
  return RUNG_OK;
}

static rung_status get_label(decoder *d, const char **out) {
  *out = NULL;
  if (!d->notes.start) return RUNG_OK;
  const uint64_t number = rung_get(&d->notes, 4);
  if (d->notes.failed || number > d->labels) return refuse(d, RUNG_CORRUPT_FILE, "the notes name no label here");
  if (number) *out = d->label[number - 1];
  return RUNG_OK;
}

static rung_status get_node(decoder *d, rung_graph *graph) {
  size_t length;
  const char *name = rung_get_string(&d->in, MOST_NAME, &length);
  if (d->in.failed) return cut(d);
  const rung_op *op = rung_op_find(name, length);
  if (!op) return refuse(d, RUNG_CORRUPT_FILE, "no op is called '%.*s'", (int)(length < 80 ? length : 80), name);
  const char *label;
  rung_value *in;
  rung_value_type *type;
  rung_graph **body;
  void *attrs;
  uint32_t n_in, types, bodies;
  RUNG_TRY(get_label(d, &label));
  RUNG_TRY(get_operands(d, graph, &in, &n_in));
  RUNG_TRY(get_types(d, &type, &types));
  RUNG_TRY(get_attrs(d, op, &attrs));
  RUNG_TRY(get_bodies(d, graph, &body, &bodies));
  rung_graph_label(graph, label);
  const rung_node *node = NULL;
  if (op->flags & RUNG_OP_DECLARES) {
    if (n_in || bodies || types != 1) return refuse(d, RUNG_CORRUPT_FILE, "%s takes one type and no more", op->name);
    node = rung_graph_declare(graph, op, attrs, &type[0]);
  } else {
    node = rung_graph_append_as(graph, op, in, n_in, attrs, body, bodies, type, types);
  }
  if (!node) return refuse_graph(d, graph);
  bool same = node->results == types;
  for (uint32_t i = 0; same && i < types; i++)
    same = rung_value_type_equal(&type[i], rung_graph_value_type(graph, node->first_value + i));
  return same ? RUNG_OK : refuse(d, RUNG_CORRUPT_FILE, "%s gives other types than are written", op->name);
}

static rung_status get_graph(decoder *d, rung_graph *graph) {
  const uint64_t nodes = rung_get(&d->in, 4);
  if (d->in.failed || nodes > rung_bytes_left(&d->in) / NODE_BYTES) return cut(d);
  for (uint64_t i = 0; i < nodes; i++) RUNG_TRY(get_node(d, graph));
  const uint64_t outputs = rung_get(&d->in, 4);
  if (d->in.failed || outputs > rung_bytes_left(&d->in) / 12) return cut(d);
  for (uint64_t i = 0; i < outputs; i++) {
    const char *name;
    RUNG_TRY(get_text(d, SIZE_MAX, &name));
    rung_graph_output(graph, name, (rung_value){graph->serial, (uint32_t)rung_get(&d->in, 4)});
    if (d->in.failed) return cut(d);
    if (rung_graph_status(graph)) return refuse_graph(d, graph);
  }
  return RUNG_OK;
}

/* ---- all of it */

static rung_status expect_head(decoder *d, rung_bytes *in, const char *word) {
  char head[10] = "";
  for (size_t i = 0; i < sizeof head; i++) head[i] = (char)rung_get(in, 1);
  if (in->failed || memcmp(head, word, sizeof head) != 0) return refuse(d, RUNG_CORRUPT_FILE, "not '%s'", word);
  const uint64_t version = rung_get(in, 4);
  if (!in->failed && version == RUNG_GRAPH_ENCODING) return RUNG_OK;
  return refuse(d, in->failed ? RUNG_CORRUPT_FILE : RUNG_UNSUPPORTED, "encoding %" PRIu64 "; this library reads %d",
                version, RUNG_GRAPH_ENCODING);
}

static rung_status read_notes(decoder *d) {
  if (!d->notes.start) return RUNG_OK;
  RUNG_TRY(expect_head(d, &d->notes, "rung-notes"));
  RUNG_TRY(read_symbols(d, &d->notes, false));
  const uint64_t labels = rung_get(&d->notes, 4);
  if (d->notes.failed || labels > rung_bytes_left(&d->notes) / 8) return cut(d);
  d->label = labels ? (const char **)rung_arena_array(&d->arena, (size_t)labels, sizeof *d->label) : NULL;
  if (labels && !d->label) return no_memory(d);
  for (; d->labels < labels; d->labels++) {
    size_t length;
    const char *text = rung_get_string(&d->notes, SIZE_MAX, &length);
    if (d->notes.failed) return cut(d);
    d->label[d->labels] = rung_arena_text(&d->arena, text, length);
    if (!d->label[d->labels]) return no_memory(d);
  }
  return RUNG_OK;
}

static rung_status decode(decoder *d, rung_graph *graph) {
  RUNG_TRY(expect_head(d, &d->in, "rung-graph"));
  RUNG_TRY(read_notes(d));
  RUNG_TRY(read_symbols(d, &d->in, true));
  RUNG_TRY(make_symbols(d));
  RUNG_TRY(get_graph(d, graph));
  if (d->in.at != d->in.limit || d->notes.at != d->notes.limit)
    return refuse(d, RUNG_CORRUPT_FILE, "bytes follow the graph");
  const rung_status status = rung_graph_verify(graph, d->error);
  if (!status || status == RUNG_OUT_OF_MEMORY || status == RUNG_UNSUPPORTED) return status;
  rung_error why = {RUNG_OK, ""};
  if (d->error) why = *d->error;
  return refuse(d, RUNG_CORRUPT_FILE, "%s", why.message);
}

rung_status rung_graph_decode(rung_host *host, const void *data, uint64_t bytes, const void *notes,
                              uint64_t notes_bytes, rung_error *error, rung_graph **out_graph) {
  if (!host || (!data && bytes) || !out_graph)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "decode: host, data and out_graph are required");
  decoder *d = (decoder *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *d, 0);
  if (!d) return rung_fail(error, RUNG_OUT_OF_MEMORY, "decode: out of memory");
  static const uint8_t nothing[1];
  d->in = rung_bytes_of(data ? data : nothing, bytes);
  if (notes) d->notes = rung_bytes_of(notes, notes_bytes);
  d->error = error;
  rung_graph *graph = NULL;
  rung_arena_init(&d->arena, host);
  rung_status status = rung_graph_create(host, error, &graph);
  if (!status) {
    d->dims = graph->dims;
    status = decode(d, graph);
    graph->label = NULL;
  }
  rung_arena_finish(&d->arena);
  rung_host_free(host, RUNG_MEMORY_host, d, sizeof *d);
  if (status) {
    rung_graph_destroy(graph);
    return status;
  }
  *out_graph = graph;
  return RUNG_OK;
}
