/* SPDX-License-Identifier: MIT
 * safetensors, one file: eight bytes with the header's length, a JSON header, the bytes of all tensors without a gap.
 */
#include "formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "formats/safetensors_internal.h"

enum { PREFIX = 8, LONGEST_NAME = 65535 };
static const uint64_t LARGEST_HEADER = UINT64_C(100000000);

static const struct {
  const char *name;
  rung_type type;
} dtypes[] = {{"F64", RUNG_TYPE_F64},   {"F32", RUNG_TYPE_F32},        {"F16", RUNG_TYPE_F16},
              {"BF16", RUNG_TYPE_BF16}, {"I64", RUNG_TYPE_I64},        {"I32", RUNG_TYPE_I32},
              {"I16", RUNG_TYPE_I16},   {"I8", RUNG_TYPE_I8},          {"U64", RUNG_TYPE_U64},
              {"U32", RUNG_TYPE_U32},   {"U16", RUNG_TYPE_U16},        {"U8", RUNG_TYPE_U8},
              {"BOOL", RUNG_TYPE_BOOL}, {"F8_E4M3", RUNG_TYPE_F8E4M3}, {"F8_E5M2", RUNG_TYPE_F8E5M2}};

/* A tensor of the header; begin and end count from the first byte behind it. */
typedef struct record {
  const char *name;
  size_t name_length;
  uint64_t at; /* of the name in the file */
  uint64_t begin, end;
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
} record;

typedef struct reader {
  const rung_map *map;
  uint64_t data; /* where the tensors begin */
  rung_arena arena;
  record *records;
  size_t count;
  rung_error *error;
} reader;

static uint64_t place_of(const reader *r, rung_json value) {
  return (uint64_t)((const uint8_t *)value.text - r->map->data);
}

rung_safetensors_shown rung_safetensors_show(const char *text, size_t length) {
  rung_safetensors_shown shown = {""};
  const size_t n = length < 64 ? length : 64;
  for (size_t i = 0; i < n; i++) {
    shown.text[i] = text[i];
    if (text[i] < 0x20 || text[i] > 0x7E) shown.text[i] = '?';
  }
  if (n < length) memcpy(shown.text + n, "...", 3);
  return shown;
}
static rung_safetensors_shown show(const record *t) { return rung_safetensors_show(t->name, t->name_length); }

rung_status rung_safetensors_name(rung_arena *arena, rung_json name, uint64_t at, rung_error *error,
                                  const char **out_text, size_t *out_length) {
  if (!rung_json_plain(name, out_text, out_length)) {
    char *copy = (char *)rung_arena_alloc(arena, name.length);
    if (!copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a name of %zu bytes", name.length);
    *out_length = rung_json_string(name, copy, name.length);
    *out_text = copy;
  }
  bool clean = *out_length > 0 && *out_length <= LONGEST_NAME;
  for (size_t i = 0; i < *out_length && clean; i++) clean = (uint8_t)(*out_text)[i] >= 0x20 && (*out_text)[i] != 0x7F;
  if (clean) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE,
                   "name at offset %" PRIu64 " has %zu bytes; 1 to %d without control characters are allowed", at,
                   *out_length, LONGEST_NAME);
}

/* ---- one tensor's fields */

static rung_status bad_field(const reader *r, const record *t, rung_json value, const char *what) {
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "tensor '%s': %s expected at offset %" PRIu64, show(t).text, what,
                   place_of(r, value));
}

static rung_status read_dtype(const reader *r, rung_json value, record *t) {
  if (rung_json_kind_of(value) != RUNG_JSON_STRING) return bad_field(r, t, value, "a dtype");
  for (size_t i = 0; i < RUNG_COUNT(dtypes); i++) {
    t->type = dtypes[i].type;
    if (rung_json_equals(value, dtypes[i].name)) return RUNG_OK;
  }
  return rung_fail(r->error, RUNG_UNSUPPORTED, "tensor '%s': dtype %s at offset %" PRIu64 " is not supported",
                   show(t).text, rung_safetensors_show(value.text, value.length).text, place_of(r, value));
}

/* A whole number that is not negative. */
static bool read_count(rung_json value, int64_t *out) { return rung_json_i64(value, out) && value.text[0] != '-'; }

static rung_status read_shape(const reader *r, rung_json value, record *t) {
  if (rung_json_kind_of(value) != RUNG_JSON_ARRAY) return bad_field(r, t, value, "a list of extents");
  rung_json_walk walk = rung_json_begin(value);
  rung_json extent;
  for (t->rank = 0; rung_json_next(&walk, NULL, &extent); t->rank++) {
    if (t->rank == RUNG_MAX_RANK)
      return rung_fail(r->error, RUNG_UNSUPPORTED, "tensor '%s': the shape at offset %" PRIu64 " has more than %d axes",
                       show(t).text, place_of(r, value), RUNG_MAX_RANK);
    if (!read_count(extent, &t->extent[t->rank])) return bad_field(r, t, extent, "an extent of at most 63 bits");
  }
  return RUNG_OK;
}

static rung_status read_offsets(const reader *r, rung_json value, record *t) {
  int64_t offset[2];
  int count = 0;
  if (rung_json_kind_of(value) != RUNG_JSON_ARRAY) return bad_field(r, t, value, "a list of two offsets");
  rung_json_walk walk = rung_json_begin(value);
  for (rung_json item; rung_json_next(&walk, NULL, &item); count++)
    if (count == 2 || !read_count(item, &offset[count])) return bad_field(r, t, item, "the first of two offsets");
  if (count != 2) return bad_field(r, t, value, "a list of two offsets");
  t->begin = (uint64_t)offset[0];
  t->end = (uint64_t)offset[1];
  const uint64_t left = r->map->size - r->data;
  if (t->begin <= t->end && t->end <= left) return RUNG_OK;
  return rung_fail(r->error, RUNG_CORRUPT_FILE,
                   "tensor '%s': bytes %" PRIu64 " to %" PRIu64 ", given at offset %" PRIu64
                   ", are not among the %" PRIu64 " behind the header",
                   show(t).text, t->begin, t->end, place_of(r, value), left);
}

static rung_status read_field(const reader *r, rung_json name, rung_json value, unsigned *seen, record *t) {
  static const struct {
    const char *name;
    rung_status (*read)(const reader *r, rung_json value, record *t);
  } fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
  for (unsigned i = 0; i < RUNG_COUNT(fields); i++) {
    if (!rung_json_equals(name, fields[i].name)) continue;
    if (*seen >> i & 1) return bad_field(r, t, name, "a field that was not there before");
    *seen |= 1u << i;
    return fields[i].read(r, value, t);
  }
  return bad_field(r, t, name, "dtype, shape or data_offsets");
}

static rung_status check_bytes(const reader *r, const record *t) {
  uint64_t bytes;
  const rung_status status = rung_weights_size(t->type, t->rank, t->extent, r->error, &bytes);
  if (status) return rung_fail_prefix(r->error, status, "tensor '%s' at offset %" PRIu64, show(t).text, t->at);
  if (bytes != t->end - t->begin)
    return rung_fail(r->error, RUNG_CORRUPT_FILE,
                     "tensor '%s' at offset %" PRIu64 ": shape and dtype take %" PRIu64 " bytes, the offsets %" PRIu64,
                     show(t).text, t->at, bytes, t->end - t->begin);
  if (t->type != RUNG_TYPE_BOOL) return RUNG_OK;
  const uint8_t *data = r->map->data + r->data + t->begin;
  for (uint64_t i = 0; i < bytes; i++)
    if (data[i] > 1)
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "tensor '%s': the truth value at offset %" PRIu64 " is %d",
                       show(t).text, r->data + t->begin + i, data[i]);
  return RUNG_OK;
}

static rung_status read_tensor(reader *r, rung_json name, rung_json value, record *t) {
  unsigned seen = 0;
  t->at = place_of(r, name);
  RUNG_TRY(rung_safetensors_name(&r->arena, name, t->at, r->error, &t->name, &t->name_length));
  if (rung_json_kind_of(value) != RUNG_JSON_OBJECT) return bad_field(r, t, value, "an object");
  rung_json_walk walk = rung_json_begin(value);
  for (rung_json key, field; rung_json_next(&walk, &key, &field);) RUNG_TRY(read_field(r, key, field, &seen, t));
  if (seen != 7) return bad_field(r, t, value, "an object with dtype, shape and data_offsets");
  return check_bytes(r, t);
}

/* ---- the header */

static rung_status check_metadata(const reader *r, rung_json value) {
  rung_json_walk walk = rung_json_begin(value);
  bool good = rung_json_kind_of(value) == RUNG_JSON_OBJECT;
  for (rung_json name, text; good && rung_json_next(&walk, &name, &text);)
    good = rung_json_kind_of(text) == RUNG_JSON_STRING;
  if (good) return RUNG_OK;
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "__metadata__ at offset %" PRIu64 " is no object of texts",
                   place_of(r, value));
}

static rung_status read_header(reader *r) {
  rung_json header;
  RUNG_TRY(rung_json_check((const char *)r->map->data + PREFIX, (size_t)(r->data - PREFIX), PREFIX, r->error, &header));
  if (r->map->data[PREFIX] != '{')
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "the header at offset %d is no object", PREFIX);
  const size_t most = rung_json_count(header);
  r->records = (record *)rung_arena_array(&r->arena, most, sizeof *r->records);
  if (!r->records) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "no memory for %zu tensors", most);
  rung_json_walk walk = rung_json_begin(header);
  bool metadata = false;
  for (rung_json name, value; rung_json_next(&walk, &name, &value);) {
    if (!rung_json_equals(name, "__metadata__")) {
      RUNG_TRY(read_tensor(r, name, value, &r->records[r->count++]));
      continue;
    }
    if (metadata)
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "__metadata__ comes twice, again at offset %" PRIu64,
                       place_of(r, name));
    metadata = true;
    RUNG_TRY(check_metadata(r, value));
  }
  return RUNG_OK;
}

static int by_place(const void *a, const void *b) {
  const record *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* In the order of the bytes, which must leave no hole. */
static rung_status check_order(reader *r) {
  if (r->count) qsort(r->records, r->count, sizeof *r->records, by_place);
  uint64_t end = 0;
  for (size_t i = 0; i < r->count; i++) {
    const record *t = &r->records[i];
    if (t->begin < end)
      return rung_fail(r->error, RUNG_CORRUPT_FILE,
                       "tensor '%s' at offset %" PRIu64 " begins at byte %" PRIu64 ", inside of '%s'", show(t).text,
                       t->at, t->begin, show(&r->records[i - 1]).text);
    if (t->begin > end)
      return rung_fail(r->error, RUNG_CORRUPT_FILE,
                       "tensor '%s' at offset %" PRIu64 " begins at byte %" PRIu64 ", %" PRIu64
                       " bytes before it belong to none",
                       show(t).text, t->at, t->begin, t->begin - end);
    end = t->end;
  }
  const uint64_t left = r->map->size - r->data - end;
  if (left)
    return rung_fail(r->error, RUNG_CORRUPT_FILE,
                     "the last %" PRIu64 " bytes, from offset %" PRIu64 ", belong to no tensor", left, r->data + end);
  return RUNG_OK;
}

static rung_status find_header(reader *r) {
  const rung_map *map = r->map;
  if (map->size < PREFIX)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "the file ends inside the header's length at offset 0");
  uint64_t length = 0;
  for (int i = 0; i < PREFIX; i++) length |= (uint64_t)map->data[i] << 8 * i;
  if (length > map->size - PREFIX || length > LARGEST_HEADER)
    return rung_fail(r->error, RUNG_CORRUPT_FILE,
                     "header length at offset 0 is %" PRIu64 "; %" PRIu64 " bytes are left, and at most %" PRIu64
                     " are allowed",
                     length, map->size - PREFIX, LARGEST_HEADER);
  r->data = PREFIX + length;
  return RUNG_OK;
}

static rung_status add_records(const reader *r, rung_weights *weights, int source) {
  for (size_t i = 0; i < r->count; i++) {
    const record *t = &r->records[i];
    rung_tensor_desc desc = {.name = t->name, .name_length = t->name_length, .type = t->type, .rank = t->rank};
    memcpy(desc.extent, t->extent, sizeof desc.extent);
    const rung_status status = rung_weights_add(weights, &desc, source, r->data + t->begin, r->error, NULL);
    if (status == RUNG_INVALID_ARGUMENT) /* everything else about it was checked */
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "tensor '%s' at offset %" PRIu64 " comes twice", show(t).text,
                       t->at);
    RUNG_TRY(status);
  }
  return RUNG_OK;
}

/* ---- files */

typedef struct owner {
  rung_host *host;
  rung_map map;
} owner;

static void release(void *self) {
  owner *o = self;
  rung_host *host = o->host;
  rung_map_close(&o->map);
  rung_host_free(host, RUNG_MEMORY_host, o, sizeof *o);
}

static rung_status read_file(const rung_map *map, rung_weights *weights, int source, rung_error *error) {
  reader r = {.map = map, .error = error};
  RUNG_TRY(find_header(&r));
  rung_arena_init(&r.arena, rung_weights_host(weights));
  rung_status status = read_header(&r);
  if (!status) status = check_order(&r);
  if (!status) status = add_records(&r, weights, source);
  rung_arena_finish(&r.arena);
  (void)rung_map_let_go(map, 0, r.data);
  return status;
}

rung_status rung_safetensors_add(rung_weights *weights, rung_map *map, rung_error *error, int *out_source) {
  rung_host *host = rung_weights_host(weights);
  owner *o = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *o, 0);
  if (!o) {
    rung_map_close(map);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory to open a safetensors file");
  }
  *o = (owner){host, *map};
  *map = (rung_map){0};
  const rung_weights_source source = {&o->map, o, release};
  const rung_status status = rung_weights_add_source(weights, &source, error, out_source);
  if (status) {
    release(o);
    return status;
  }
  return read_file(&o->map, weights, *out_source, error);
}

bool rung_safetensors_recognise(const uint8_t *data, uint64_t bytes) {
  uint64_t length = 0;
  for (int i = 0; i < PREFIX && bytes > PREFIX; i++) length |= (uint64_t)data[i] << 8 * i;
  return bytes > PREFIX && data[PREFIX] == '{' && length <= bytes - PREFIX;
}

rung_status rung_safetensors_open_map(rung_host *host, rung_map *map, rung_error *error, rung_weights **out_weights) {
  rung_weights *weights;
  int source;
  const rung_status made = rung_weights_create(host, error, &weights);
  if (made) {
    rung_map_close(map);
    return made;
  }
  const rung_status status = rung_safetensors_add(weights, map, error, &source);
  if (status) {
    rung_weights_release(weights);
    return status;
  }
  *out_weights = weights;
  return RUNG_OK;
}
