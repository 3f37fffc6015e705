/* SPDX-License-Identifier: MIT
 * GGUF metadata: the pass that checks it once, and the typed getters that read it in place afterwards. */
#include <inttypes.h>

#include "formats/gguf_internal.h"

static const struct {
  const char *name;
  uint8_t bytes; /* 0: of no fixed size */
  int8_t class_; /* rung_gguf_class; -1: none */
} kinds[RUNG_GGUF_KINDS] = {
    [RUNG_GGUF_U8] = {"u8", 1, RUNG_GGUF_INTEGER},      [RUNG_GGUF_I8] = {"i8", 1, RUNG_GGUF_INTEGER},
    [RUNG_GGUF_U16] = {"u16", 2, RUNG_GGUF_INTEGER},    [RUNG_GGUF_I16] = {"i16", 2, RUNG_GGUF_INTEGER},
    [RUNG_GGUF_U32] = {"u32", 4, RUNG_GGUF_INTEGER},    [RUNG_GGUF_I32] = {"i32", 4, RUNG_GGUF_INTEGER},
    [RUNG_GGUF_F32] = {"f32", 4, RUNG_GGUF_FLOAT},      [RUNG_GGUF_BOOL] = {"bool", 1, RUNG_GGUF_BOOLEAN},
    [RUNG_GGUF_STRING] = {"string", 0, RUNG_GGUF_TEXT}, [RUNG_GGUF_ARRAY] = {"array", 0, -1},
    [RUNG_GGUF_U64] = {"u64", 8, RUNG_GGUF_INTEGER},    [RUNG_GGUF_I64] = {"i64", 8, RUNG_GGUF_INTEGER},
    [RUNG_GGUF_F64] = {"f64", 8, RUNG_GGUF_FLOAT},
};

static bool is_kind(uint32_t kind) { return kind < RUNG_GGUF_KINDS; }
const char *rung_gguf_kind_name(rung_gguf_kind kind) { return is_kind((uint32_t)kind) ? kinds[kind].name : "?"; }
size_t rung_gguf_kind_bytes(rung_gguf_kind kind) { return is_kind((uint32_t)kind) ? kinds[kind].bytes : 0; }

/* ---- the checking pass */

static rung_status check_bools(gguf_cursor *c, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (c->data[c->at + i] > 1) {
      return rung_fail(c->error, RUNG_CORRUPT_FILE, "bool at offset %" PRIu64 " is %d, not 0 or 1", c->at + i,
                       c->data[c->at + i]);
    }
  }
  return RUNG_OK;
}

/* `count` elements of a fixed size. */
static rung_status pass_numbers(gguf_cursor *c, rung_gguf_kind kind, uint64_t count) {
  if (count > gguf_left(c) / kinds[kind].bytes) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "%" PRIu64 " x %s at offset %" PRIu64 " do not fit the %" PRIu64 " bytes that are left", count,
                     kinds[kind].name, c->at, gguf_left(c));
  }
  if (kind == RUNG_GGUF_BOOL) RUNG_TRY(check_bools(c, count));
  c->at += count * kinds[kind].bytes;
  return RUNG_OK;
}

static rung_status pass_string(gguf_cursor *c) {
  uint64_t length;
  RUNG_TRY(rung_gguf_read_u64(c, "string length", &length));
  if (length > gguf_left(c)) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "string length at offset %" PRIu64 " is %" PRIu64 ", %" PRIu64 " bytes are left", c->at - 8,
                     length, gguf_left(c));
  }
  c->at += length;
  return RUNG_OK;
}

/* First all lengths are followed, then memory is taken: a count that lies costs nothing. */
static rung_status pass_strings(rung_gguf *gguf, gguf_cursor *c, uint64_t count, const uint32_t **out_starts) {
  const uint64_t first = c->at;
  if (count > gguf_left(c) / 8) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "%" PRIu64 " strings at offset %" PRIu64 " do not fit the %" PRIu64 " bytes that are left", count,
                     first, gguf_left(c));
  }
  for (uint64_t i = 0; i < count; i++) {
    const rung_status status = pass_string(c);
    if (status) return rung_fail_prefix(c->error, status, "string %" PRIu64, i);
  }
  if (c->at - first > UINT32_MAX) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "array of strings at offset %" PRIu64 " is larger than 4 GiB", first);
  }
  uint32_t *starts = (uint32_t *)rung_arena_array(&gguf->arena, (size_t)count, sizeof *starts);
  if (!starts) return rung_fail(c->error, RUNG_OUT_OF_MEMORY, "no memory for an index of %" PRIu64 " strings", count);
  uint64_t at = first;
  for (uint64_t i = 0; i < count; i++) {
    starts[i] = (uint32_t)(at - first);
    at += 8 + gguf_u64(c->data + at);
  }
  *out_starts = starts;
  return RUNG_OK;
}

static rung_status read_kind(gguf_cursor *c, const char *field, rung_gguf_kind *out) {
  uint32_t kind;
  RUNG_TRY(rung_gguf_read_u32(c, field, &kind));
  if (!is_kind(kind)) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "%s at offset %" PRIu64 " is %" PRIu32 ", which is no type", field,
                     c->at - 4, kind);
  }
  *out = (rung_gguf_kind)kind;
  return RUNG_OK;
}

static rung_status pass_value(rung_gguf *gguf, gguf_cursor *c, const uint32_t **out_starts) {
  rung_gguf_kind kind = RUNG_GGUF_U8;
  RUNG_TRY(read_kind(c, "value type", &kind));
  if (kind == RUNG_GGUF_STRING) return pass_string(c);
  if (kind != RUNG_GGUF_ARRAY) return pass_numbers(c, kind, 1);
  uint64_t count;
  RUNG_TRY(read_kind(c, "element type", &kind));
  if (kind == RUNG_GGUF_ARRAY) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "element type at offset %" PRIu64 ": arrays of arrays are not read",
                     c->at - 4);
  }
  RUNG_TRY(rung_gguf_read_u64(c, "element count", &count));
  return kind == RUNG_GGUF_STRING ? pass_strings(gguf, c, count, out_starts) : pass_numbers(c, kind, count);
}

static rung_gguf_text key_name(const rung_gguf *gguf, size_t index) {
  const uint8_t *p = gguf->map.data + gguf->keys[index].at;
  return (rung_gguf_text){(const char *)p + 8, gguf_u64(p)};
}

static rung_status pass_keys(rung_gguf *gguf, gguf_cursor *c, uint64_t count, gguf_key **keys, size_t *capacity) {
  for (uint64_t i = 0; i < count; i++) {
    gguf_key key = {c->at, NULL};
    rung_gguf_text name;
    rung_status status = rung_gguf_read_name(c, "key", &name);
    if (status) return rung_fail_prefix(c->error, status, "metadata key %" PRIu64, i);
    status = pass_value(gguf, c, &key.starts);
    if (status) return rung_fail_prefix(c->error, status, "metadata key '%s'", rung_gguf_show(name).text);
    if (!rung_host_grow(gguf->host, (void **)keys, capacity, (size_t)i + 1, sizeof **keys)) {
      return rung_fail(c->error, RUNG_OUT_OF_MEMORY, "no memory for metadata key %" PRIu64, i);
    }
    (*keys)[i] = key;
  }
  return RUNG_OK;
}

rung_status rung_gguf_parse_metadata(rung_gguf *gguf, gguf_cursor *c, uint64_t count) {
  gguf_key *keys = NULL; /* grows as keys are really found; the exact size goes to the arena */
  size_t capacity = 0;
  rung_status status = pass_keys(gguf, c, count, &keys, &capacity);
  if (!status) {
    gguf->keys = (gguf_key *)rung_arena_array(&gguf->arena, (size_t)count, sizeof *keys);
    if (!gguf->keys) status = rung_fail(c->error, RUNG_OUT_OF_MEMORY, "no memory for %" PRIu64 " metadata keys", count);
    if (gguf->keys && keys) memcpy(gguf->keys, keys, (size_t)count * sizeof *keys);
  }
  rung_host_free(gguf->host, RUNG_MEMORY_host, keys, capacity * sizeof *keys);
  if (status) return status;
  gguf->key_count = (size_t)count;
  return rung_gguf_names_build(gguf, &gguf->key_names, key_name, gguf->key_count, "metadata key", c->error);
}

/* ---- reading in place; everything was checked */

size_t rung_gguf_key_count(const rung_gguf *gguf) { return gguf->key_count; }

rung_gguf_entry rung_gguf_key_at(const rung_gguf *gguf, size_t index) {
  rung_gguf_entry entry = {.key = key_name(gguf, index), .count = 1, .starts = gguf->keys[index].starts};
  const uint8_t *p = (const uint8_t *)entry.key.data + entry.key.length;
  entry.kind = (rung_gguf_kind)gguf_u32(p);
  p += 4;
  if (entry.kind == RUNG_GGUF_ARRAY) {
    entry.array = true;
    entry.kind = (rung_gguf_kind)gguf_u32(p);
    entry.count = gguf_u64(p + 4);
    p += 12;
  }
  entry.data = p;
  entry.offset = (uint64_t)(p - gguf->map.data);
  return entry;
}

bool rung_gguf_find(const rung_gguf *gguf, const char *key, rung_gguf_entry *out_entry) {
  const size_t i = rung_gguf_names_find(gguf, &gguf->key_names, key_name, gguf->key_count, key, strlen(key));
  if (i == gguf->key_count) return false;
  *out_entry = rung_gguf_key_at(gguf, i);
  return true;
}

bool rung_gguf_has(const rung_gguf *gguf, const char *key) {
  return rung_gguf_names_find(gguf, &gguf->key_names, key_name, gguf->key_count, key, strlen(key)) != gguf->key_count;
}

int64_t rung_gguf_entry_i64(const rung_gguf_entry *entry, uint64_t i) {
  const uint8_t *p = entry->data + i * kinds[entry->kind].bytes;
  switch (entry->kind) {
    case RUNG_GGUF_U8:
    case RUNG_GGUF_BOOL:
      return p[0];
    case RUNG_GGUF_I8:
      return (int8_t)p[0];
    case RUNG_GGUF_U16:
      return p[0] | p[1] << 8;
    case RUNG_GGUF_I16:
      return (int16_t)(p[0] | p[1] << 8);
    case RUNG_GGUF_U32:
      return gguf_u32(p);
    case RUNG_GGUF_I32:
      return (int32_t)gguf_u32(p);
    case RUNG_GGUF_U64:
    case RUNG_GGUF_I64:
      return (int64_t)gguf_u64(p);
    default:
      return 0;
  }
}

double rung_gguf_entry_f64(const rung_gguf_entry *entry, uint64_t i) {
  const uint8_t *p = entry->data + i * kinds[entry->kind].bytes;
  if (entry->kind == RUNG_GGUF_F32) {
    const uint32_t bits = gguf_u32(p);
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  if (entry->kind == RUNG_GGUF_F64) {
    const uint64_t bits = gguf_u64(p);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
  }
  if (entry->kind == RUNG_GGUF_U64) return (double)gguf_u64(p);
  return (double)rung_gguf_entry_i64(entry, i);
}

rung_gguf_text rung_gguf_entry_text(const rung_gguf_entry *entry, uint64_t i) {
  if (entry->kind != RUNG_GGUF_STRING) return (rung_gguf_text){"", 0};
  const uint8_t *p = entry->data + (entry->starts ? entry->starts[i] : 0);
  return (rung_gguf_text){(const char *)p + 8, gguf_u64(p)};
}

/* ---- typed getters */

static rung_status get(const rung_gguf *gguf, const char *key, rung_gguf_class class_, bool array, rung_error *error,
                       rung_gguf_entry *out) {
  static const char *const words[] = {"integer", "float", "bool", "string"};
  *out = (rung_gguf_entry){.kind = RUNG_GGUF_U8}; /* for compilers that do not see that OK means found */
  if (!rung_gguf_find(gguf, key, out)) {
    (void)rung_fail(error, RUNG_NOT_FOUND, "metadata key '%s' is missing", key);
    return RUNG_NOT_FOUND;
  }
  if (out->array != array || kinds[out->kind].class_ != (int)class_) {
    return rung_fail(error, RUNG_TYPE_MISMATCH, "metadata key '%s' at offset %" PRIu64 " is %s%s, not %s%s", key,
                     out->offset, out->array ? "an array of " : "", kinds[out->kind].name, array ? "an array of " : "",
                     words[class_]);
  }
  return RUNG_OK;
}

rung_status rung_gguf_get_u64(const rung_gguf *gguf, const char *key, rung_error *error, uint64_t *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, RUNG_GGUF_INTEGER, false, error, &entry));
  const int64_t value = rung_gguf_entry_i64(&entry, 0);
  if (value < 0 && entry.kind != RUNG_GGUF_U64) {
    return rung_fail(error, RUNG_OUT_OF_RANGE, "metadata key '%s' at offset %" PRIu64 " is %" PRId64 ", below 0", key,
                     entry.offset, value);
  }
  *out = (uint64_t)value;
  return RUNG_OK;
}

rung_status rung_gguf_get_i64(const rung_gguf *gguf, const char *key, rung_error *error, int64_t *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, RUNG_GGUF_INTEGER, false, error, &entry));
  const int64_t value = rung_gguf_entry_i64(&entry, 0);
  if (value < 0 && entry.kind == RUNG_GGUF_U64) {
    return rung_fail(error, RUNG_OUT_OF_RANGE, "metadata key '%s' at offset %" PRIu64 " is %" PRIu64 ", too large", key,
                     entry.offset, (uint64_t)value);
  }
  *out = value;
  return RUNG_OK;
}

rung_status rung_gguf_get_f64(const rung_gguf *gguf, const char *key, rung_error *error, double *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, RUNG_GGUF_FLOAT, false, error, &entry));
  *out = rung_gguf_entry_f64(&entry, 0);
  return RUNG_OK;
}

rung_status rung_gguf_get_bool(const rung_gguf *gguf, const char *key, rung_error *error, bool *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, RUNG_GGUF_BOOLEAN, false, error, &entry));
  *out = rung_gguf_entry_i64(&entry, 0) != 0;
  return RUNG_OK;
}

rung_status rung_gguf_get_text(const rung_gguf *gguf, const char *key, rung_error *error, rung_gguf_text *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, RUNG_GGUF_TEXT, false, error, &entry));
  *out = rung_gguf_entry_text(&entry, 0);
  return RUNG_OK;
}

rung_status rung_gguf_get_array(const rung_gguf *gguf, const char *key, rung_gguf_class class_, rung_error *error,
                                rung_gguf_entry *out) {
  rung_gguf_entry entry;
  RUNG_TRY(get(gguf, key, class_, true, error, &entry));
  *out = entry;
  return RUNG_OK;
}

rung_status rung_gguf_maybe_u64(const rung_gguf *gguf, const char *key, rung_error *error, uint64_t *in_out) {
  return rung_gguf_has(gguf, key) ? rung_gguf_get_u64(gguf, key, error, in_out) : RUNG_OK;
}
rung_status rung_gguf_maybe_i64(const rung_gguf *gguf, const char *key, rung_error *error, int64_t *in_out) {
  return rung_gguf_has(gguf, key) ? rung_gguf_get_i64(gguf, key, error, in_out) : RUNG_OK;
}
rung_status rung_gguf_maybe_f64(const rung_gguf *gguf, const char *key, rung_error *error, double *in_out) {
  return rung_gguf_has(gguf, key) ? rung_gguf_get_f64(gguf, key, error, in_out) : RUNG_OK;
}
rung_status rung_gguf_maybe_bool(const rung_gguf *gguf, const char *key, rung_error *error, bool *in_out) {
  return rung_gguf_has(gguf, key) ? rung_gguf_get_bool(gguf, key, error, in_out) : RUNG_OK;
}
