/* SPDX-License-Identifier: MIT
 * Attributes by their list: defaults, equality, hash, copies, checks. No op is named here. */
#include <math.h>
#include <string.h>

#include "ir/op.h"

static const rung_attr no_attrs[] = {{0}};
static const rung_attr *list_of(const rung_op *op) { return op->attrs ? op->attrs : no_attrs; }

size_t rung_attr_bytes(uint8_t kind) {
  switch ((rung_attr_kind)kind) {
    case RUNG_ATTR_I64:
      return sizeof(int64_t);
    case RUNG_ATTR_F64:
      return sizeof(double);
    case RUNG_ATTR_BOOL:
      return sizeof(bool);
    case RUNG_ATTR_TEXT:
      return sizeof(const char *);
    case RUNG_ATTR_TYPE:
      return sizeof(rung_type);
    case RUNG_ATTR_ENUM:
      return sizeof(int32_t);
    case RUNG_ATTR_DIM:
      return sizeof(rung_dim);
    case RUNG_ATTR_DIMS:
      return sizeof(rung_dim_list);
    case RUNG_ATTR_I64S:
      return sizeof(rung_i64_list);
    case RUNG_ATTR_CONSTANT:
      return sizeof(rung_blob);
  }
  return 0;
}

const rung_attr *rung_attr_find(const rung_op *op, const char *name, size_t length) {
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    if (strlen(attr->name) == length && memcmp(attr->name, name, length) == 0) return attr;
  }
  return NULL;
}

const char *rung_attrs_name(const rung_op *op, const void *attrs) {
  const rung_attr *attr = rung_attr_find(op, "name", 4);
  if (!attr || attr->kind != RUNG_ATTR_TEXT || !attrs) return NULL;
  return *(const char *const *)rung_attr_get(attr, attrs);
}

/* Lists are compared, hashed and copied up to their count: what lies behind it says nothing. */
static size_t list_bytes(int32_t count, size_t element) {
  return count > 0 && count <= RUNG_MAX_RANK ? (size_t)count * element : 0;
}

/* The bytes that say all of an attribute's value. */
static const void *content(const rung_attr *attr, const void *attrs, size_t *out_bytes) {
  const void *value = rung_attr_get(attr, attrs);
  *out_bytes = rung_attr_bytes(attr->kind);
  if (attr->kind == RUNG_ATTR_TEXT) {
    const char *text = *(const char *const *)value;
    *out_bytes = text ? strlen(text) : 0;
    return text;
  }
  if (attr->kind == RUNG_ATTR_DIMS) {
    const rung_dim_list *list = (const rung_dim_list *)value;
    *out_bytes = list_bytes(list->count, sizeof list->dim[0]);
    return list->dim;
  }
  if (attr->kind == RUNG_ATTR_I64S) {
    const rung_i64_list *list = (const rung_i64_list *)value;
    *out_bytes = list_bytes(list->count, sizeof list->value[0]);
    return list->value;
  }
  if (attr->kind == RUNG_ATTR_CONSTANT) {
    const rung_blob *blob = (const rung_blob *)value;
    *out_bytes = (size_t)blob->bytes;
    return blob->data;
  }
  return value;
}

bool rung_attr_equal(const rung_attr *attr, const void *a, const void *b) {
  size_t bytes_a, bytes_b;
  const void *content_a = content(attr, a, &bytes_a), *content_b = content(attr, b, &bytes_b);
  return bytes_a == bytes_b && (bytes_a == 0 || memcmp(content_a, content_b, bytes_a) == 0);
}

bool rung_attrs_equal(const rung_op *op, const void *a, const void *b) {
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    if (!rung_attr_equal(attr, a, b)) return false;
  }
  return true;
}

uint64_t rung_attrs_hash(const rung_op *op, const void *attrs) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    size_t bytes;
    const uint8_t *p = (const uint8_t *)content(attr, attrs, &bytes);
    h = (h ^ bytes) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    h ^= h >> 31;
  }
  return h;
}

void *rung_attrs_copy(const rung_op *op, rung_arena *arena, const void *attrs) {
  uint8_t *copy = (uint8_t *)rung_arena_copy(arena, attrs, op->attrs_bytes);
  if (!copy) return NULL;
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    if (attr->kind == RUNG_ATTR_F64) {
      double *value = (double *)(void *)(copy + attr->offset);
      if (isnan(*value)) *value = (double)NAN; /* one NaN: the text form knows no payloads */
    }
    if (attr->kind != RUNG_ATTR_TEXT && attr->kind != RUNG_ATTR_CONSTANT) continue;
    size_t bytes;
    const void *source = content(attr, attrs, &bytes);
    char *data = bytes || source ? rung_arena_text(arena, (const char *)source, bytes) : NULL;
    if (source && !data) return NULL;
    if (attr->kind == RUNG_ATTR_TEXT) {
      *(const char **)(void *)(copy + attr->offset) = data;
    } else {
      *(rung_blob *)(void *)(copy + attr->offset) = (rung_blob){(const uint8_t *)data, bytes};
    }
  }
  return copy;
}

void rung_attrs_remap(const rung_op *op, void *attrs, rung_dim (*map)(void *self, rung_dim), void *self) {
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    uint8_t *value = (uint8_t *)attrs + attr->offset;
    if (attr->kind == RUNG_ATTR_DIM) {
      rung_dim *dim = (rung_dim *)(void *)value;
      *dim = map(self, *dim);
    } else if (attr->kind == RUNG_ATTR_DIMS) {
      rung_dim_list *list = (rung_dim_list *)(void *)value;
      for (int32_t i = 0; i < list->count && i < RUNG_MAX_RANK; i++) list->dim[i] = map(self, list->dim[i]);
    }
  }
}

/* NULL if the value is allowed, else what is wrong with it. */
static const char *flaw(const rung_attr *attr, const rung_dims *dims, const void *value) {
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
    case RUNG_ATTR_F64:
      return NULL;
    case RUNG_ATTR_BOOL:
      return *(const uint8_t *)value > 1 ? "is no truth value" : NULL;
    case RUNG_ATTR_TEXT:
      return *(const char *const *)value ? NULL : "is NULL";
    case RUNG_ATTR_TYPE:
      return rung_type_get(*(const rung_type *)value) ? NULL : "is no type";
    case RUNG_ATTR_ENUM: {
      int32_t names = 0;
      while (attr->names[names]) names++;
      const int32_t given = *(const int32_t *)value;
      return given < 0 || given >= names ? "has a value without a name" : NULL;
    }
    case RUNG_ATTR_DIM:
      return ((const rung_dim *)value)->id < dims->count ? NULL : "is no dimension of this graph";
    case RUNG_ATTR_DIMS: {
      const rung_dim_list *list = (const rung_dim_list *)value;
      if (list->count < 0 || list->count > RUNG_MAX_RANK) return "has more than 8 entries";
      for (int32_t i = 0; i < list->count; i++) {
        if (list->dim[i].id == 0) return "holds the null dimension";
        if (list->dim[i].id >= dims->count) return "holds what is no dimension of this graph";
      }
      return NULL;
    }
    case RUNG_ATTR_I64S: {
      const int32_t count = ((const rung_i64_list *)value)->count;
      return count < 0 || count > RUNG_MAX_RANK ? "has more than 8 entries" : NULL;
    }
    case RUNG_ATTR_CONSTANT: {
      const rung_blob *blob = (const rung_blob *)value;
      return blob->bytes && !blob->data ? "is NULL" : NULL;
    }
  }
  return "is of no kind";
}

rung_status rung_attrs_check(const rung_op *op, const rung_dims *dims, const void *attrs, rung_error *error) {
  for (const rung_attr *attr = list_of(op); attr->name; attr++) {
    const char *what = flaw(attr, dims, rung_attr_get(attr, attrs));
    if (what) return rung_fail(error, RUNG_INVALID_ARGUMENT, "attribute %s %s", attr->name, what);
  }
  return RUNG_OK;
}
