/* SPDX-License-Identifier: MIT
 * Attributes as text: `transpose_b=true, axes=[0,2], epsilon=1e-05, data=f32(1, 2.5)`. Every kind prints so that
 * reading gives the same bits; a double is its shortest decimal. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/args.h"
#include "ir/lex.h"
#include "ir/op.h"

static const rung_attr no_attrs[] = {{0}};
static const rung_attr *list_of(const rung_op *op) { return op->attrs ? op->attrs : no_attrs; }

/* ---- printing */

enum { MOST_NUMBERS = 16 };

static bool is_integer(rung_type_class c) {
  return c == RUNG_CLASS_INT || c == RUNG_CLASS_UINT || c == RUNG_CLASS_BOOL;
}

/* Does the element read back with the same bytes when shown as a number? NaN with a payload, a bool of 7 do not. */
static bool shows_exactly(const rung_operand *element, const rung_type_row *row) {
  uint8_t again[8];
  const rung_operand copy = {.base = again, .type = element->type};
  if (is_integer(row->class_)) {
    const int64_t value = rung_load_i64(element, 0);
    if (row->class_ != RUNG_CLASS_INT && value < 0) return false;
    rung_store_i64(&copy, 0, value);
  } else {
    const double value = rung_load_f64(element, 0);
    rung_store_f64(&copy, 0, isnan(value) ? (double)NAN : value);
  }
  return memcmp(again, element->base, row->bytes) == 0;
}

/* The shortest decimal that is stored with the same bytes. */
static void print_float(const rung_operand *element, const rung_type_row *row, rung_text *out) {
  const double value = rung_load_f64(element, 0);
  const size_t start = out->length;
  for (int digits = 1; digits < 17 && isfinite(value) && !out->failed; digits++) {
    uint8_t again[8];
    const rung_operand copy = {.base = again, .type = element->type};
    double back;
    const char *end;
    rung_text_printf(out, "%.*g", digits, value);
    if (out->failed) return;
    if (rung_parse_f64(out->data + start, out->data + out->length, &back, &end)) {
      rung_store_f64(&copy, 0, back);
      if (memcmp(again, element->base, row->bytes) == 0) return;
    }
    out->length = start;
    out->data[start] = 0;
  }
  rung_text_double(out, value);
}

/* Short constants of plain types as numbers; false for others. */
static bool print_numbers(const rung_blob *blob, rung_type type, rung_text *out) {
  const rung_type_row *row = rung_type_get(type);
  if (!row || row->class_ > RUNG_CLASS_BOOL || row->bytes > 8) return false;
  if (blob->bytes == 0 || blob->bytes % row->bytes || blob->bytes / row->bytes > MOST_NUMBERS) return false;
  const uint64_t count = blob->bytes / row->bytes;
  uint8_t bytes[MOST_NUMBERS * 8];
  memcpy(bytes, blob->data, (size_t)blob->bytes);
  for (uint64_t i = 0; i < count; i++) {
    const rung_operand element = {.base = bytes + i * row->bytes, .type = (uint8_t)type};
    if (!shows_exactly(&element, row)) return false;
  }
  rung_text_printf(out, "%s(", row->name);
  for (uint64_t i = 0; i < count; i++) {
    const rung_operand element = {.base = bytes + i * row->bytes, .type = (uint8_t)type};
    if (i) rung_text_puts(out, ", ");
    if (is_integer(row->class_)) {
      rung_text_printf(out, "%" PRId64, rung_load_i64(&element, 0));
    } else {
      print_float(&element, row, out);
    }
  }
  rung_text_puts(out, ")");
  return true;
}

static void print_dim(const rung_dims *dims, rung_dim dim, rung_text *out) {
  if (dim.id == 0) {
    rung_text_puts(out, "none");
  } else {
    rung_dims_print(dims, dim, out);
  }
}

void rung_attr_print(const rung_attr *attr, const rung_dims *dims, const void *attrs, const rung_value_type *type,
                     rung_text *out) {
  const void *value = rung_attr_get(attr, attrs);
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      rung_text_printf(out, "%" PRId64, *(const int64_t *)value);
      break;
    case RUNG_ATTR_F64:
      rung_text_double(out, *(const double *)value);
      break;
    case RUNG_ATTR_BOOL:
      rung_text_puts(out, *(const bool *)value ? "true" : "false");
      break;
    case RUNG_ATTR_TEXT: {
      const char *text = *(const char *const *)value;
      rung_text_quoted(out, text, strlen(text));
      break;
    }
    case RUNG_ATTR_TYPE:
      rung_text_puts(out, rung_type_name(*(const rung_type *)value));
      break;
    case RUNG_ATTR_ENUM:
      rung_text_puts(out, attr->names[*(const int32_t *)value]);
      break;
    case RUNG_ATTR_DIM:
      print_dim(dims, *(const rung_dim *)value, out);
      break;
    case RUNG_ATTR_DIMS: {
      const rung_dim_list *list = (const rung_dim_list *)value;
      for (int32_t i = 0; i < list->count; i++) {
        rung_text_puts(out, i ? "," : "[");
        print_dim(dims, list->dim[i], out);
      }
      rung_text_puts(out, list->count ? "]" : "[]");
      break;
    }
    case RUNG_ATTR_I64S: {
      const rung_i64_list *list = (const rung_i64_list *)value;
      for (int32_t i = 0; i < list->count; i++) rung_text_printf(out, "%s%" PRId64, i ? "," : "[", list->value[i]);
      rung_text_puts(out, list->count ? "]" : "[]");
      break;
    }
    case RUNG_ATTR_CONSTANT: {
      const rung_blob *blob = (const rung_blob *)value;
      if (!type || !print_numbers(blob, type->type, out)) rung_blob_print(blob->data, blob->bytes, out);
      break;
    }
  }
}

bool rung_attrs_print(const rung_op *op, const rung_dims *dims, const void *attrs, const rung_value_type *type,
                      rung_text *out) {
  bool any = false;
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    if (rung_attr_is_default(attr, dims, attrs)) continue;
    rung_text_printf(out, "%s%s=", any ? ", " : "", attr->name);
    rung_attr_print(attr, dims, attrs, type, out);
    any = true;
  }
  return any;
}

/* ---- reading */

static rung_status malformed(rung_error *error, const char *what) {
  return rung_fail(error, RUNG_CORRUPT_FILE, "expected %s", what);
}

static rung_status read_i64(rung_lex *lex, int64_t *out, rung_error *error) {
  rung_lex_spaces(lex);
  const char *end = lex->at;
  if (!rung_parse_i64(lex->at, lex->limit, out, &end)) return malformed(error, "a whole number of 64 bits");
  lex->at = end;
  return RUNG_OK;
}

static rung_status read_f64(rung_lex *lex, double *out, rung_error *error) {
  rung_lex_spaces(lex);
  const char *end = lex->at;
  if (!rung_parse_f64(lex->at, lex->limit, out, &end)) return malformed(error, "a number");
  lex->at = end;
  return RUNG_OK;
}

static rung_status read_dim(rung_lex *lex, rung_dims *dims, rung_dim *out, rung_error *error) {
  const char *end = lex->at;
  *out = rung_dims_parse(dims, lex->at, lex->limit, &end);
  lex->at = end;
  return out->id ? RUNG_OK : rung_fail(error, dims->failure, "%s", dims->reason);
}

static rung_status read_list(rung_lex *lex, rung_dims *dims, rung_dim_list *of_dims, rung_i64_list *of_numbers,
                             rung_error *error) {
  if (!rung_lex_accept(lex, '[')) return malformed(error, "'['");
  if (rung_lex_accept(lex, ']')) return RUNG_OK;
  for (int32_t i = 0; i < RUNG_MAX_RANK; i++) {
    if (of_dims) {
      RUNG_TRY(read_dim(lex, dims, &of_dims->dim[i], error));
      of_dims->count = i + 1;
    } else {
      RUNG_TRY(read_i64(lex, &of_numbers->value[i], error));
      of_numbers->count = i + 1;
    }
    if (rung_lex_accept(lex, ']')) return RUNG_OK;
    if (!rung_lex_accept(lex, ',')) return malformed(error, "',' or ']'");
  }
  return rung_fail(error, RUNG_CORRUPT_FILE, "a list has more than 8 entries");
}

static rung_status read_numbers(rung_lex *lex, rung_arena *arena, rung_type type, rung_blob *out, rung_error *error) {
  const rung_type_row *row = rung_type_get(type);
  if (row->class_ > RUNG_CLASS_BOOL) return malformed(error, "a plain type");
  if (!rung_lex_accept(lex, '(')) return malformed(error, "'('");
  uint8_t *data = NULL;
  uint32_t capacity = 0, bytes = 0;
  do {
    if (bytes > UINT32_MAX - 8 || !rung_arena_grow(arena, (void **)&data, &capacity, bytes + row->bytes, 1)) {
      return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
    }
    const rung_operand element = {.base = data + bytes, .type = (uint8_t)type};
    if (is_integer(row->class_)) {
      int64_t value;
      RUNG_TRY(read_i64(lex, &value, error));
      rung_store_i64(&element, 0, value);
    } else {
      double value;
      RUNG_TRY(read_f64(lex, &value, error));
      rung_store_f64(&element, 0, value);
    }
    bytes += row->bytes;
  } while (rung_lex_accept(lex, ','));
  if (!rung_lex_accept(lex, ')')) return malformed(error, "',' or ')'");
  *out = (rung_blob){data, bytes};
  return RUNG_OK;
}

static bool find_type(const char *name, size_t length, rung_type *out) {
  char copy[16];
  if (length == 0 || length >= sizeof copy) return false;
  memcpy(copy, name, length);
  copy[length] = 0;
  return rung_type_find(copy, out);
}

static rung_status read_blob(rung_lex *lex, rung_arena *arena, rung_blob *out, rung_error *error) {
  const char *name;
  const size_t length = rung_lex_name(lex, &name);
  uint8_t *data;
  rung_type type;
  if (find_type(name, length, &type)) return read_numbers(lex, arena, type, out, error);
  if (length == 3 && memcmp(name, "hex", 3) == 0) {
    RUNG_TRY(rung_lex_hex(lex, arena, &data, &out->bytes, error));
  } else if (length == 6 && memcmp(name, "base64", 6) == 0) {
    RUNG_TRY(rung_lex_base64(lex, arena, &data, &out->bytes, error));
  } else {
    return malformed(error, "hex\"...\", base64\"...\" or numbers as in f32(1, 2)");
  }
  out->data = data;
  return RUNG_OK;
}

static rung_status read_word(rung_lex *lex, const rung_attr *attr, void *value, rung_error *error) {
  const char *name;
  const size_t length = rung_lex_name(lex, &name);
  if (attr->kind == RUNG_ATTR_TYPE) {
    return find_type(name, length, (rung_type *)value) ? RUNG_OK : malformed(error, "the name of a type");
  }
  if (attr->kind == RUNG_ATTR_BOOL) {
    const bool yes = length == 4 && memcmp(name, "true", 4) == 0;
    if (!yes && !(length == 5 && memcmp(name, "false", 5) == 0)) return malformed(error, "true or false");
    *(bool *)value = yes;
    return RUNG_OK;
  }
  for (int32_t i = 0; attr->names[i]; i++) {
    if (strlen(attr->names[i]) != length || memcmp(attr->names[i], name, length) != 0) continue;
    *(int32_t *)value = i;
    return RUNG_OK;
  }
  return rung_fail(error, RUNG_CORRUPT_FILE, "'%.*s' is none of its values", (int)(length > 64 ? 64 : length), name);
}

static rung_status read_value(rung_lex *lex, const rung_attr *attr, rung_dims *dims, rung_arena *arena, void *value,
                              rung_error *error) {
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      return read_i64(lex, (int64_t *)value, error);
    case RUNG_ATTR_F64:
      return read_f64(lex, (double *)value, error);
    case RUNG_ATTR_BOOL:
    case RUNG_ATTR_TYPE:
    case RUNG_ATTR_ENUM:
      return read_word(lex, attr, value, error);
    case RUNG_ATTR_TEXT:
      return rung_lex_quoted(lex, arena, (const char **)value, error);
    case RUNG_ATTR_DIM:
      *(rung_dim *)value = (rung_dim){0};
      return rung_lex_word(lex, "none") ? RUNG_OK : read_dim(lex, dims, (rung_dim *)value, error);
    case RUNG_ATTR_DIMS:
      return read_list(lex, dims, (rung_dim_list *)value, NULL, error);
    case RUNG_ATTR_I64S:
      return read_list(lex, dims, NULL, (rung_i64_list *)value, error);
    case RUNG_ATTR_CONSTANT:
      return read_blob(lex, arena, (rung_blob *)value, error);
  }
  return malformed(error, "a known kind");
}

/* ---- defaults. Text may stand without quotes in the op's list. */

static void set_default(const rung_attr *attr, rung_dims *dims, void *value) {
  const char *text = attr->text_default;
  if (attr->kind == RUNG_ATTR_TEXT && text[0] != '"') {
    *(const char **)value = text;
    return;
  }
  rung_lex lex = {text, text + strlen(text)};
  if (read_value(&lex, attr, dims, &dims->arena, value, NULL)) memset(value, 0, rung_attr_bytes(attr->kind));
}

void rung_attrs_default(const rung_op *op, rung_dims *dims, void *attrs) {
  if (op->attrs_bytes) memset(attrs, 0, op->attrs_bytes);
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    if (attr->text_default) set_default(attr, dims, (uint8_t *)attrs + attr->offset);
  }
}

static bool is_constant(const rung_dims *dims, rung_dim dim, int64_t want) {
  int64_t value;
  return rung_dims_is_constant(dims, dim, &value) && value == want;
}

/* Kinds whose reading would take memory or grow the table of dimensions, which printing must not: their defaults are
 * plain text, `none`, whole numbers, lists of these, no bytes. Another one is never recognised, so always written. */
static bool is_plain_default(const rung_attr *attr, const rung_dims *dims, const void *attrs) {
  const char *want = attr->text_default, *limit = want + strlen(want);
  const void *value = rung_attr_get(attr, attrs);
  rung_lex lex = {want, limit};
  if (attr->kind == RUNG_ATTR_TEXT) {
    const char *text = *(const char *const *)value;
    if (want[0] != '"') return strcmp(text, want) == 0;
    const size_t length = strlen(text);
    return (size_t)(limit - want) == length + 2 && memcmp(text, want + 1, length) == 0 && !strchr(text, '\\');
  }
  if (attr->kind == RUNG_ATTR_CONSTANT) return ((const rung_blob *)value)->bytes == 0 && strcmp(want, "hex\"\"") == 0;
  if (attr->kind == RUNG_ATTR_DIM) {
    const rung_dim dim = *(const rung_dim *)value;
    int64_t number;
    if (dim.id == 0) return strcmp(want, "none") == 0;
    return rung_parse_i64(want, limit, &number, &want) && want == limit && is_constant(dims, dim, number);
  }
  const rung_dim_list *list = (const rung_dim_list *)value;
  rung_i64_list numbers = {0};
  if (read_list(&lex, NULL, NULL, &numbers, NULL) || numbers.count != list->count) return false;
  for (int32_t i = 0; i < list->count; i++) {
    if (!is_constant(dims, list->dim[i], numbers.value[i])) return false;
  }
  return true;
}

bool rung_attr_is_default(const rung_attr *attr, const rung_dims *dims, const void *attrs) {
  const char *want = attr->text_default;
  if (!want) return false;
  if (attr->kind == RUNG_ATTR_TEXT || attr->kind == RUNG_ATTR_DIM || attr->kind == RUNG_ATTR_DIMS ||
      attr->kind == RUNG_ATTR_CONSTANT) {
    return is_plain_default(attr, dims, attrs);
  }
  union {
    int64_t i64;
    double f64;
    bool truth;
    rung_type type;
    int32_t index;
    rung_i64_list list;
  } value;
  memset(&value, 0, sizeof value);
  rung_lex lex = {want, want + strlen(want)};
  rung_attr alone = *attr;
  alone.offset = 0;
  if (read_value(&lex, &alone, NULL, NULL, &value, NULL)) return false;
  const uint8_t *base = (const uint8_t *)rung_attr_get(attr, attrs);
  return rung_attr_equal(&alone, base, &value);
}

rung_status rung_attrs_parse(const rung_op *op, rung_dims *dims, rung_arena *arena, const char *text, const char *limit,
                             const char **end, void *attrs, rung_error *error) {
  rung_lex lex = {text, limit};
  uint64_t seen = 0; /* no op has as many as 64 */
  rung_attrs_default(op, dims, attrs);
  rung_status status = RUNG_OK;
  do {
    rung_lex ahead = lex;
    const char *name;
    const size_t length = rung_lex_name(&ahead, &name);
    if (length == 0) break;
    lex = ahead;
    const rung_attr *attr = rung_attr_find(op, name, length);
    const int shown = (int)(length > 64 ? 64 : length);
    if (!attr) {
      status = rung_fail(error, RUNG_CORRUPT_FILE, "%s has no attribute '%.*s'", op->name, shown, name);
      break;
    }
    const uint64_t bit = UINT64_C(1) << ((attr - op->attrs) & 63);
    void *value = (uint8_t *)attrs + attr->offset;
    if (seen & bit) {
      status = rung_fail(error, RUNG_CORRUPT_FILE, "attribute %s is given twice", attr->name);
    } else if (!rung_lex_accept(&lex, '=')) {
      status = rung_fail(error, RUNG_CORRUPT_FILE, "attribute %s: expected '='", attr->name);
    } else {
      memset(value, 0, rung_attr_bytes(attr->kind));
      status = read_value(&lex, attr, dims, arena, value, error);
      if (status) rung_fail_prefix(error, status, "attribute %s", attr->name);
    }
    seen |= bit;
  } while (!status && rung_lex_accept(&lex, ','));
  *end = lex.at;
  for (const rung_attr *attr = list_of(op); attr->name && !status; attr++) {
    if (attr->text_default || seen & UINT64_C(1) << ((attr - op->attrs) & 63)) continue;
    status = rung_fail(error, RUNG_CORRUPT_FILE, "%s needs attribute %s", op->name, attr->name);
  }
  return status;
}
