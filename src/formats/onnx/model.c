/* SPDX-License-Identifier: MIT
 * Reading an ONNX file's structure. Each message is walked twice: to count the entries of its lists, and to fill them. */
#include "formats/onnx/model.h"

#include <inttypes.h>
#include <string.h>

typedef struct reader {
  rung_arena *arena;
  const uint8_t *file;
  rung_error *error;
} reader;

bool onnx_name_is(onnx_name name, const char *text) {
  return name.length == strlen(text) && (name.length == 0 || memcmp(name.text, text, name.length) == 0);
}
bool onnx_name_equal(onnx_name a, onnx_name b) {
  return a.length == b.length && (a.length == 0 || memcmp(a.text, b.text, a.length) == 0);
}
onnx_shown onnx_show(onnx_name name) {
  onnx_shown shown = {""};
  const size_t most = sizeof shown.text - 4, n = name.length < most ? name.length : most;
  for (size_t i = 0; i < n; i++) shown.text[i] = name.text[i] < 0x20 || name.text[i] > 0x7E ? '?' : name.text[i];
  if (n < name.length) memcpy(shown.text + n, "...", 4);
  return shown;
}

/* ---- fields */

static rung_status no_memory(const reader *r) {
  return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "no memory for the structure of the model");
}
static rung_status wrong(const reader *r, const rung_field *f, const char *what) {
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": field %u is no %s", f->at, f->number, what);
}
static rung_status want(const reader *r, const rung_field *f, rung_wire wire, const char *what) {
  return f->wire == wire ? RUNG_OK : wrong(r, f, what);
}
static rung_status text_of(const reader *r, const rung_field *f, onnx_name *out) {
  RUNG_TRY(want(r, f, RUNG_WIRE_BYTES, "text"));
  if (f->span.bytes > 65535)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": a name of %" PRIu64 " bytes", f->at,
                     f->span.bytes);
  *out = (onnx_name){(const char *)f->span.data, (uint32_t)f->span.bytes};
  return RUNG_OK;
}
static rung_status number_of(const reader *r, const rung_field *f, int64_t *out) {
  RUNG_TRY(want(r, f, RUNG_WIRE_VARINT, "whole number"));
  *out = (int64_t)f->value;
  return RUNG_OK;
}
static float float_of(uint64_t bits) {
  const uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

enum { FIELDS = 32 };
/* How often each field below FIELDS stands in a message. */
static rung_status count_fields(const reader *r, rung_span message, uint32_t count[FIELDS]) {
  memset(count, 0, FIELDS * sizeof *count);
  rung_cursor c = rung_cursor_of(r->file, message, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number < FIELDS) count[f.number]++;
  }
}
static rung_status array_of(const reader *r, uint32_t count, size_t element, void *out) {
  if (!count) return RUNG_OK;
  void *array = rung_arena_array(r->arena, count, element);
  if (!array) return no_memory(r);
  memcpy(out, &array, sizeof array);
  return RUNG_OK;
}

/* ---- tensors */

static rung_status read_extent(const reader *r, uint64_t at, uint64_t value, onnx_tensor *t) {
  if (t->rank == RUNG_MAX_RANK)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": a tensor has more than %d axes", at,
                     RUNG_MAX_RANK);
  if ((int64_t)value < 0)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": an extent of a tensor is negative", at);
  t->extent[t->rank++] = (int64_t)value;
  return RUNG_OK;
}
static rung_status read_extents(const reader *r, const rung_field *f, onnx_tensor *t) {
  if (f->wire == RUNG_WIRE_VARINT) return read_extent(r, f->at, f->value, t);
  RUNG_TRY(want(r, f, RUNG_WIRE_BYTES, "list of extents"));
  rung_cursor c = rung_cursor_of(r->file, f->span, r->error);
  while (c.next != c.end) {
    uint64_t value;
    RUNG_TRY(rung_wire_varint(&c, &value));
    RUNG_TRY(read_extent(r, f->at, value, t));
  }
  return RUNG_OK;
}

static bool decimal(onnx_name text, uint64_t *out) {
  uint64_t value = 0;
  if (!text.length) return false;
  for (uint32_t i = 0; i < text.length; i++) {
    const unsigned digit = (unsigned)(uint8_t)text.text[i] - '0';
    if (digit > 9 || value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

/* One key and value of external_data. */
static rung_status read_external(const reader *r, const rung_field *entry, onnx_tensor *t) {
  RUNG_TRY(want(r, entry, RUNG_WIRE_BYTES, "message"));
  onnx_name key = {0}, value = {0};
  rung_cursor c = rung_cursor_of(r->file, entry->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) break;
    if (f.number == 1) RUNG_TRY(text_of(r, &f, &key));
    if (f.number == 2) RUNG_TRY(text_of(r, &f, &value));
  }
  if (onnx_name_is(key, "location")) {
    t->location = value;
  } else if (onnx_name_is(key, "offset") || onnx_name_is(key, "length")) {
    const bool offset = onnx_name_is(key, "offset");
    if (!decimal(value, offset ? &t->offset : &t->length))
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": external data: %s is \"%s\"", entry->at,
                       onnx_show(key).text, onnx_show(value).text);
    if (!offset) t->has_length = true;
  } else if (!onnx_name_is(key, "checksum")) {
    return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": external data: the key \"%s\" is not known",
                     entry->at, onnx_show(key).text);
  }
  return RUNG_OK;
}

static rung_status read_tensor(const reader *r, const rung_field *field, onnx_tensor *t) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "tensor"));
  *t = (onnx_tensor){.at = field->at, .message = field->span};
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    int64_t number = 0;
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    switch (f.number) {
      case 1:
        RUNG_TRY(read_extents(r, &f, t));
        break;
      case 2:
        RUNG_TRY(number_of(r, &f, &number));
        t->data_type = (int32_t)number;
        break;
      case 3:
        return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": a tensor in segments", f.at);
      case 8:
        RUNG_TRY(text_of(r, &f, &t->name));
        break;
      case 9:
        RUNG_TRY(want(r, &f, RUNG_WIRE_BYTES, "raw data"));
        t->has_raw = true;
        t->raw = f.span;
        break;
      case 13:
        RUNG_TRY(read_external(r, &f, t));
        break;
      case 14:
        RUNG_TRY(number_of(r, &f, &number));
        t->external = number == 1;
        break;
      default:
        break;
    }
  }
}

/* ---- attributes */

static rung_status read_graph(const reader *r, const rung_field *field, int depth, onnx_graph *g);

/* Numbers of a list that may be packed or not: counted, then filled. */
static rung_status count_numbers(const reader *r, const rung_field *f, rung_wire wire, uint32_t *count) {
  if (f->wire == wire) {
    (*count)++;
    return RUNG_OK;
  }
  RUNG_TRY(want(r, f, RUNG_WIRE_BYTES, "list of numbers"));
  if (wire == RUNG_WIRE_32) {
    if (f->span.bytes % 4) return wrong(r, f, "list of floats");
    *count += (uint32_t)(f->span.bytes / 4);
    return RUNG_OK;
  }
  for (uint64_t i = 0; i < f->span.bytes; i++) *count += f->span.data[i] < 0x80;
  return RUNG_OK;
}
static rung_status take_floats(const reader *r, const rung_field *f, onnx_attr *a) {
  if (f->wire == RUNG_WIRE_32) {
    a->floats[a->count++] = float_of(f->value);
    return RUNG_OK;
  }
  (void)r;
  if (f->span.bytes) memcpy(a->floats + a->count, f->span.data, f->span.bytes);
  a->count += (uint32_t)(f->span.bytes / 4);
  return RUNG_OK;
}
static rung_status take_ints(const reader *r, const rung_field *f, uint32_t most, onnx_attr *a) {
  if (f->wire == RUNG_WIRE_VARINT) {
    a->ints[a->count++] = (int64_t)f->value;
    return RUNG_OK;
  }
  rung_cursor c = rung_cursor_of(r->file, f->span, r->error);
  while (c.next != c.end) {
    uint64_t value;
    RUNG_TRY(rung_wire_varint(&c, &value));
    if (a->count == most) return wrong(r, f, "list of whole numbers");
    a->ints[a->count++] = (int64_t)value;
  }
  return RUNG_OK;
}

static rung_status read_one(const reader *r, const rung_field *f, int depth, onnx_attr *a) {
  int64_t number;
  switch (f->number) {
    case 1:
      return text_of(r, f, &a->name);
    case 2:
      RUNG_TRY(want(r, f, RUNG_WIRE_32, "float"));
      a->f = float_of(f->value);
      return RUNG_OK;
    case 3:
      return number_of(r, f, &a->i);
    case 4:
      return text_of(r, f, &a->s);
    case 5:
      a->t = (onnx_tensor *)rung_arena_alloc(r->arena, sizeof *a->t);
      return a->t ? read_tensor(r, f, a->t) : no_memory(r);
    case 6:
      a->g = (onnx_graph *)rung_arena_alloc(r->arena, sizeof *a->g);
      return a->g ? read_graph(r, f, depth + 1, a->g) : no_memory(r);
    case 20:
      RUNG_TRY(number_of(r, f, &number));
      a->type = (onnx_attr_type)number;
      return RUNG_OK;
    case 21:
      return text_of(r, f, &a->ref);
    default:
      return RUNG_OK;
  }
}

typedef struct list_sizes {
  uint32_t floats, ints, strings;
} list_sizes;

static rung_status read_lists(const reader *r, rung_span message, const list_sizes *sizes, onnx_attr *a) {
  RUNG_TRY(array_of(r, sizes->floats, sizeof *a->floats, &a->floats));
  RUNG_TRY(array_of(r, sizes->ints, sizeof *a->ints, &a->ints));
  RUNG_TRY(array_of(r, sizes->strings, sizeof *a->strings, &a->strings));
  rung_cursor c = rung_cursor_of(r->file, message, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 7) RUNG_TRY(take_floats(r, &f, a));
    if (f.number == 8) RUNG_TRY(take_ints(r, &f, sizes->ints, a));
    if (f.number == 9) RUNG_TRY(text_of(r, &f, &a->strings[a->count++]));
  }
}

static rung_status read_attr(const reader *r, const rung_field *field, int depth, onnx_attr *a) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "attribute"));
  *a = (onnx_attr){0};
  list_sizes sizes = {0};
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  uint32_t seen[FIELDS] = {0};
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) break;
    if (f.number < FIELDS) seen[f.number]++;
    RUNG_TRY(read_one(r, &f, depth, a));
    if (f.number == 7) RUNG_TRY(count_numbers(r, &f, RUNG_WIRE_32, &sizes.floats));
    if (f.number == 8) RUNG_TRY(count_numbers(r, &f, RUNG_WIRE_VARINT, &sizes.ints));
    if (f.number == 9) RUNG_TRY(want(r, &f, RUNG_WIRE_BYTES, "text"));
    sizes.strings += f.number == 9;
  }
  if ((sizes.floats != 0) + (sizes.ints != 0) + (sizes.strings != 0) > 1)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": attribute \"%s\" has lists of two kinds",
                     field->at, onnx_show(a->name).text);
  /* Files of the first versions do not say the type. */
  static const struct {
    uint32_t field;
    onnx_attr_type type;
  } implied[] = {{2, ONNX_ATTR_FLOAT}, {3, ONNX_ATTR_INT},    {4, ONNX_ATTR_STRING}, {5, ONNX_ATTR_TENSOR},
                 {6, ONNX_ATTR_GRAPH}, {7, ONNX_ATTR_FLOATS}, {8, ONNX_ATTR_INTS},   {9, ONNX_ATTR_STRINGS}};
  for (size_t i = 0; i < RUNG_COUNT(implied) && a->type == ONNX_ATTR_NONE; i++)
    if (seen[implied[i].field]) a->type = implied[i].type;
  if (!a->ref.length && ((a->type == ONNX_ATTR_TENSOR && !a->t) || (a->type == ONNX_ATTR_GRAPH && !a->g)))
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": attribute \"%s\" has no value", field->at,
                     onnx_show(a->name).text);
  return read_lists(r, field->span, &sizes, a);
}

/* ---- nodes */

static rung_status read_node(const reader *r, const rung_field *field, int depth, onnx_node *n) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "node"));
  *n = (onnx_node){.at = field->at};
  uint32_t count[FIELDS];
  RUNG_TRY(count_fields(r, field->span, count));
  RUNG_TRY(array_of(r, count[1], sizeof *n->input, &n->input));
  RUNG_TRY(array_of(r, count[2], sizeof *n->output, &n->output));
  RUNG_TRY(array_of(r, count[5], sizeof *n->attr, &n->attr));
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) RUNG_TRY(text_of(r, &f, &n->input[n->inputs++]));
    if (f.number == 2) RUNG_TRY(text_of(r, &f, &n->output[n->outputs++]));
    if (f.number == 3) RUNG_TRY(text_of(r, &f, &n->name));
    if (f.number == 4) RUNG_TRY(text_of(r, &f, &n->op));
    if (f.number == 5) RUNG_TRY(read_attr(r, &f, depth, &n->attr[n->attrs++]));
    if (f.number == 7) RUNG_TRY(text_of(r, &f, &n->domain));
    if (f.number == 8) RUNG_TRY(text_of(r, &f, &n->overload));
  }
}

/* ---- values */

static rung_status read_dim(const reader *r, const rung_field *field, onnx_value *v) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "dimension"));
  if (v->rank == RUNG_MAX_RANK)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": value \"%s\" has more than %d axes", field->at,
                     onnx_show(v->name).text, RUNG_MAX_RANK);
  onnx_axis_dim *dim = &v->dim[v->rank++];
  *dim = (onnx_axis_dim){0};
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) {
      RUNG_TRY(number_of(r, &f, &dim->value));
      dim->known = dim->value >= 0; /* some exporters write -1 for an open one */
    }
    if (f.number == 2) RUNG_TRY(text_of(r, &f, &dim->param));
  }
}
static rung_status read_shape(const reader *r, const rung_field *field, onnx_value *v) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "shape"));
  v->rank = 0;
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) RUNG_TRY(read_dim(r, &f, v));
  }
}
static rung_status read_tensor_type(const reader *r, const rung_field *field, onnx_value *v) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "type"));
  v->tensor = true;
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    int64_t number;
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) {
      RUNG_TRY(number_of(r, &f, &number));
      v->data_type = (int32_t)number;
    }
    if (f.number == 2) RUNG_TRY(read_shape(r, &f, v));
  }
}
static rung_status read_type(const reader *r, const rung_field *field, onnx_value *v) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "type"));
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) RUNG_TRY(read_tensor_type(r, &f, v));
  }
}
static rung_status read_value(const reader *r, const rung_field *field, onnx_value *v) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "value"));
  *v = (onnx_value){.rank = -1};
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) RUNG_TRY(text_of(r, &f, &v->name));
    if (f.number == 2) RUNG_TRY(read_type(r, &f, v));
  }
}

/* ---- graphs */

static rung_status read_graph_field(const reader *r, const rung_field *f, int depth, onnx_graph *g) {
  switch (f->number) {
    case 1:
      return read_node(r, f, depth, &g->node[g->nodes++]);
    case 2:
      return text_of(r, f, &g->name);
    case 5:
      return read_tensor(r, f, &g->tensor[g->tensors++]);
    case 11:
      return read_value(r, f, &g->input[g->inputs++]);
    case 12:
      return read_value(r, f, &g->output[g->outputs++]);
    case 13:
      return read_value(r, f, &g->value[g->values++]);
    case 15:
      g->sparse++;
      return RUNG_OK;
    default:
      return RUNG_OK;
  }
}

static rung_status read_graph(const reader *r, const rung_field *field, int depth, onnx_graph *g) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "graph"));
  if (depth > ONNX_MAX_NESTING)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "offset %" PRIu64 ": graphs are nested deeper than %d", field->at,
                     ONNX_MAX_NESTING);
  *g = (onnx_graph){.at = field->at};
  uint32_t count[FIELDS];
  RUNG_TRY(count_fields(r, field->span, count));
  RUNG_TRY(array_of(r, count[1], sizeof *g->node, &g->node));
  RUNG_TRY(array_of(r, count[5], sizeof *g->tensor, &g->tensor));
  RUNG_TRY(array_of(r, count[11], sizeof *g->input, &g->input));
  RUNG_TRY(array_of(r, count[12], sizeof *g->output, &g->output));
  RUNG_TRY(array_of(r, count[13], sizeof *g->value, &g->value));
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    RUNG_TRY(read_graph_field(r, &f, depth, g));
  }
}

/* ---- functions and the model */

static rung_status read_opset(const reader *r, const rung_field *field, onnx_opset *o) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "opset"));
  *o = (onnx_opset){0};
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    if (f.number == 1) RUNG_TRY(text_of(r, &f, &o->domain));
    if (f.number == 2) RUNG_TRY(number_of(r, &f, &o->version));
  }
}

static rung_status read_function_field(const reader *r, const rung_field *f, onnx_function *n) {
  switch (f->number) {
    case 1:
      return text_of(r, f, &n->name);
    case 4:
      return text_of(r, f, &n->input[n->inputs++]);
    case 5:
      return text_of(r, f, &n->output[n->outputs++]);
    case 6:
      return text_of(r, f, &n->attr_name[n->attr_names++]);
    case 7:
      return read_node(r, f, 0, &n->node[n->nodes++]);
    case 9:
      return read_opset(r, f, &n->opset[n->opsets++]);
    case 10:
      return text_of(r, f, &n->domain);
    case 11:
      return read_attr(r, f, 0, &n->attr[n->attrs++]);
    case 13:
      return text_of(r, f, &n->overload);
    default:
      return RUNG_OK;
  }
}
static rung_status read_function(const reader *r, const rung_field *field, onnx_function *n) {
  RUNG_TRY(want(r, field, RUNG_WIRE_BYTES, "function"));
  *n = (onnx_function){0};
  uint32_t count[FIELDS];
  RUNG_TRY(count_fields(r, field->span, count));
  RUNG_TRY(array_of(r, count[4], sizeof *n->input, &n->input));
  RUNG_TRY(array_of(r, count[5], sizeof *n->output, &n->output));
  RUNG_TRY(array_of(r, count[6], sizeof *n->attr_name, &n->attr_name));
  RUNG_TRY(array_of(r, count[7], sizeof *n->node, &n->node));
  RUNG_TRY(array_of(r, count[9], sizeof *n->opset, &n->opset));
  RUNG_TRY(array_of(r, count[11], sizeof *n->attr, &n->attr));
  rung_cursor c = rung_cursor_of(r->file, field->span, r->error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return RUNG_OK;
    RUNG_TRY(read_function_field(r, &f, n));
  }
}

static rung_status read_model_field(const reader *r, const rung_field *f, onnx_model *m) {
  switch (f->number) {
    case 1:
      return number_of(r, f, &m->ir_version);
    case 2:
      return text_of(r, f, &m->producer);
    case 7:
      if (m->graph) return rung_fail(r->error, RUNG_CORRUPT_FILE, "offset %" PRIu64 ": a second graph", f->at);
      m->graph = (onnx_graph *)rung_arena_alloc(r->arena, sizeof *m->graph);
      return m->graph ? read_graph(r, f, 1, m->graph) : no_memory(r);
    case 8:
      return read_opset(r, f, &m->opset[m->opsets++]);
    case 25:
      return read_function(r, f, &m->function[m->functions++]);
    default:
      return RUNG_OK;
  }
}

rung_status onnx_model_read(rung_arena *arena, const uint8_t *file, uint64_t bytes, rung_error *error,
                            onnx_model *out) {
  const reader r = {arena, file, error};
  const rung_span all = {file, bytes};
  onnx_model m = {.file = file, .bytes = bytes};
  uint32_t count[FIELDS];
  RUNG_TRY(count_fields(&r, all, count));
  RUNG_TRY(array_of(&r, count[8], sizeof *m.opset, &m.opset));
  RUNG_TRY(array_of(&r, count[25], sizeof *m.function, &m.function));
  rung_cursor c = rung_cursor_of(file, all, error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) break;
    RUNG_TRY(read_model_field(&r, &f, &m));
  }
  if (!m.graph) return rung_fail(error, RUNG_CORRUPT_FILE, "the file holds no graph");
  *out = m;
  return RUNG_OK;
}

bool onnx_recognise(const uint8_t *data, uint64_t bytes) {
  /* ir_version first, as every known writer has it; then the key of a field that a model has. */
  if (bytes < 4 || data[0] != 0x08 || data[1] == 0 || data[1] > 64) return false;
  const unsigned field = data[2] >> 3, wire = data[2] & 7;
  return data[2] < 0x80 && field >= 2 && field <= 14 && (wire == RUNG_WIRE_BYTES || (field == 5 && wire == 0));
}
