/* SPDX-License-Identifier: MIT
 * Values of templates: making them, and what Python says about equality, order, length and membership. */
#include "text/jinja/value.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "text/utf8.h"

/* ---- the run */

rung_status rung_j_refuse(rung_jrun *run, rung_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)rung_fail_v(run->error, status, format, args);
  va_end(args);
  return status;
}

rung_status rung_j_fail(rung_jrun *run, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)rung_fail_v(run->error, RUNG_INVALID_ARGUMENT, format, args);
  va_end(args);
  return RUNG_INVALID_ARGUMENT;
}

rung_status rung_j_steps(rung_jrun *run, size_t count) {
  if (count > run->steps) {
    run->steps = 0;
    return rung_j_refuse(run, RUNG_OUT_OF_RANGE, "the template takes more steps than it is allowed");
  }
  run->steps -= count;
  return RUNG_OK;
}

rung_status rung_j_enter(rung_jrun *run) {
  if (run->depth >= run->deepest)
    return rung_j_refuse(run, RUNG_OUT_OF_RANGE, "nested more than %d deep", run->deepest);
  run->depth++;
  return RUNG_OK;
}

rung_status rung_j_alloc(rung_jrun *run, size_t bytes, void *out_pointer) {
  if (bytes > run->bytes)
    return rung_j_refuse(run, RUNG_OVER_BUDGET, "the template takes more memory than it is allowed");
  RUNG_TRY(rung_j_work(run, bytes)); /* fresh memory is zeroed: that is work too */
  run->bytes -= bytes;
  void *p = rung_arena_alloc(&run->arena, bytes);
  if (!p) return rung_j_refuse(run, RUNG_OUT_OF_MEMORY, "out of memory");
  *(void **)out_pointer = p;
  return RUNG_OK;
}

/* ---- text */

static rung_status make_room(rung_jrun *run, rung_jtext *text, size_t more) {
  size_t need;
  if (rung_add_overflows(text->length, more, &need)) return rung_j_refuse(run, RUNG_OVERFLOW, "text: too long");
  if (need <= text->capacity) return RUNG_OK;
  size_t capacity = text->capacity < 32 ? 64 : text->capacity * 2;
  if (capacity < need) capacity = need;
  char *data;
  RUNG_TRY(rung_j_alloc(run, capacity, &data));
  if (text->length) memcpy(data, text->data, text->length);
  text->data = data;
  text->capacity = capacity;
  return RUNG_OK;
}

rung_status rung_j_put(rung_jrun *run, rung_jtext *text, const char *data, size_t length) {
  RUNG_TRY(rung_j_work(run, length));
  RUNG_TRY(make_room(run, text, length));
  if (length) memcpy(text->data + text->length, data, length);
  text->length += length;
  return RUNG_OK;
}

rung_status rung_j_put_character(rung_jrun *run, rung_jtext *text, uint32_t character) {
  uint8_t bytes[4];
  const int n = rung_utf8_write(character, bytes);
  return rung_j_put(run, text, (const char *)bytes, (size_t)n);
}

/* ---- making values */

rung_status rung_j_text(rung_jrun *run, const char *data, size_t length, rung_jvalue *out) {
  rung_jstring *s;
  RUNG_TRY(rung_j_alloc(run, sizeof *s, &s));
  *s = (rung_jstring){.data = data, .length = length, .characters = -1};
  *out = (rung_jvalue){.kind = RUNG_J_STRING, .as.string = s};
  return RUNG_OK;
}

rung_status rung_j_undefined(rung_jrun *run, rung_jvalue *out, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char *copy;
  const size_t length = n < 0 ? 0 : n < (int)sizeof text ? (size_t)n : sizeof text - 1;
  RUNG_TRY(rung_j_alloc(run, length + 1, &copy));
  memcpy(copy, text, length);
  RUNG_TRY(rung_j_text(run, copy, length, out));
  out->kind = RUNG_J_UNDEFINED;
  return RUNG_OK;
}

rung_status rung_j_join(rung_jrun *run, rung_jvalue left, const char *data, size_t length, rung_jvalue *out) {
  const rung_jstring *a = left.as.string;
  rung_jroom *room = a->room;
  size_t whole;
  if (rung_add_overflows(a->length, length, &whole)) return rung_j_refuse(run, RUNG_OVERFLOW, "text: too long");
  RUNG_TRY(rung_j_work(run, length));
  if (!room || a->data + a->length != room->data + room->used || room->capacity - room->used < length) {
    const size_t capacity = whole < 256 ? whole : whole + whole / 2;
    RUNG_TRY(rung_j_alloc(run, sizeof *room, &room));
    RUNG_TRY(rung_j_alloc(run, capacity, &room->data));
    if (a->length) memcpy(room->data, a->data, a->length);
    room->capacity = capacity;
    room->used = a->length;
  }
  char *start = room->data + room->used - a->length;
  if (length) memcpy(room->data + room->used, data, length);
  room->used += length;
  const bool safe = a->safe;
  RUNG_TRY(rung_j_text(run, start, whole, out));
  out->as.string->room = room;
  out->as.string->safe = safe;
  return RUNG_OK;
}

rung_status rung_j_list(rung_jrun *run, rung_jkind kind, size_t capacity, rung_jvalue *out) {
  rung_jlist *list;
  RUNG_TRY(rung_j_alloc(run, sizeof *list, &list));
  if (capacity) {
    size_t bytes;
    if (rung_mul_overflows(capacity, sizeof *list->item, &bytes))
      return rung_j_refuse(run, RUNG_OVERFLOW, "list: too long");
    RUNG_TRY(rung_j_alloc(run, bytes, &list->item));
    list->capacity = capacity;
  }
  *out = (rung_jvalue){.kind = kind, .as.list = list};
  return RUNG_OK;
}

rung_status rung_j_append(rung_jrun *run, rung_jlist *list, rung_jvalue value) {
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity ? list->capacity * 2 : 8;
    rung_jvalue *item;
    RUNG_TRY(rung_j_alloc(run, capacity * sizeof *item, &item));
    if (list->count) memcpy(item, list->item, list->count * sizeof *item);
    list->item = item;
    list->capacity = capacity;
  }
  list->item[list->count++] = value;
  return RUNG_OK;
}

rung_status rung_j_pair(rung_jrun *run, rung_jvalue a, rung_jvalue b, rung_jvalue *out) {
  RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, 2, out));
  RUNG_TRY(rung_j_append(run, out->as.list, a));
  return rung_j_append(run, out->as.list, b);
}

/* ---- dictionaries */

rung_status rung_j_dict(rung_jrun *run, rung_jkind kind, rung_jvalue *out) {
  rung_jdict *dict;
  RUNG_TRY(rung_j_alloc(run, sizeof *dict, &dict));
  *out = (rung_jvalue){.kind = kind, .as.dict = dict};
  return RUNG_OK;
}

static uint64_t hash_text(const char *data, size_t length) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)data[i]) * UINT64_C(0x100000001B3);
  return h;
}

/* Equal keys have equal hashes: 1, 1.0 and True are one key. */
static rung_status hash_of(rung_jrun *run, rung_jvalue key, uint64_t *out) {
  switch (key.kind) {
    case RUNG_J_STRING:
    case RUNG_J_BIG:
      RUNG_TRY(rung_j_work(run, key.as.string->length));
      *out = hash_text(key.as.string->data, key.as.string->length);
      return RUNG_OK;
    case RUNG_J_BOOL:
    case RUNG_J_INT:
    case RUNG_J_FLOAT: {
      const double number = rung_j_number(key);
      *out = hash_text((const char *)&number, sizeof number);
      return RUNG_OK;
    }
    case RUNG_J_TUPLE:
      *out = 7;
      RUNG_TRY(rung_j_enter(run));
      for (size_t i = 0; i < key.as.list->count; i++) {
        uint64_t one;
        const rung_status status = hash_of(run, key.as.list->item[i], &one);
        if (status) {
          rung_j_leave(run);
          return status;
        }
        *out = *out * 31 + one;
      }
      rung_j_leave(run);
      return RUNG_OK;
    case RUNG_J_LIST:
    case RUNG_J_DICT:
      return rung_j_fail(run, "unhashable type: '%s'", rung_j_type(key));
    default:
      *out = (uint64_t)key.kind;
      return RUNG_OK;
  }
}

static rung_status find(rung_jrun *run, const rung_jdict *dict, rung_jvalue key, uint64_t hash, uint32_t *out_index) {
  *out_index = UINT32_MAX;
  if (dict->slot) {
    for (uint32_t i = (uint32_t)hash & (dict->slots - 1); dict->slot[i]; i = (i + 1) & (dict->slots - 1)) {
      const rung_jentry *e = &dict->entry[dict->slot[i] - 1];
      bool same = false;
      RUNG_TRY(rung_j_steps(run, 1));
      if (e->hash == hash) RUNG_TRY(rung_j_equal(run, e->key, key, &same));
      if (!same) continue;
      *out_index = dict->slot[i] - 1;
      return RUNG_OK;
    }
    return RUNG_OK;
  }
  for (uint32_t i = 0; i < dict->count; i++) {
    bool same = false;
    if (dict->entry[i].hash == hash) RUNG_TRY(rung_j_equal(run, dict->entry[i].key, key, &same));
    if (!same) continue;
    *out_index = i;
    return RUNG_OK;
  }
  return RUNG_OK;
}

static rung_status rehash(rung_jrun *run, rung_jdict *dict) {
  enum { SMALL = 12 };
  if (dict->count <= SMALL || dict->count * 2 <= dict->slots) return RUNG_OK;
  dict->slots = dict->slots ? dict->slots * 2 : 64;
  RUNG_TRY(rung_j_alloc(run, dict->slots * sizeof *dict->slot, &dict->slot));
  for (uint32_t k = 0; k < dict->count; k++) {
    uint32_t i = (uint32_t)dict->entry[k].hash & (dict->slots - 1);
    while (dict->slot[i]) i = (i + 1) & (dict->slots - 1);
    dict->slot[i] = k + 1;
  }
  return RUNG_OK;
}

rung_status rung_j_set(rung_jrun *run, rung_jdict *dict, rung_jvalue key, rung_jvalue value) {
  uint64_t hash;
  uint32_t at;
  RUNG_TRY(hash_of(run, key, &hash));
  RUNG_TRY(find(run, dict, key, hash, &at));
  if (at != UINT32_MAX) {
    dict->entry[at].value = value;
    return RUNG_OK;
  }
  if (dict->count == dict->capacity) {
    const uint32_t capacity = dict->capacity ? dict->capacity * 2 : 4;
    rung_jentry *entry;
    RUNG_TRY(rung_j_alloc(run, capacity * sizeof *entry, &entry));
    if (dict->count) memcpy(entry, dict->entry, dict->count * sizeof *entry);
    dict->entry = entry;
    dict->capacity = capacity;
  }
  dict->entry[dict->count++] = (rung_jentry){key, value, hash};
  if (dict->slot && dict->count * 2 <= dict->slots) {
    uint32_t i = (uint32_t)hash & (dict->slots - 1);
    while (dict->slot[i]) i = (i + 1) & (dict->slots - 1);
    dict->slot[i] = dict->count;
    return RUNG_OK;
  }
  return rehash(run, dict);
}

rung_status rung_j_get(rung_jrun *run, const rung_jdict *dict, rung_jvalue key, const rung_jvalue **out) {
  uint64_t hash;
  uint32_t at;
  *out = NULL;
  RUNG_TRY(hash_of(run, key, &hash));
  RUNG_TRY(find(run, dict, key, hash, &at));
  if (at != UINT32_MAX) *out = &dict->entry[at].value;
  return RUNG_OK;
}

const rung_jvalue *rung_j_find(const rung_jdict *dict, const char *name, size_t length) {
  const uint64_t hash = hash_text(name, length);
  for (uint32_t i = 0; i < dict->count; i++) {
    const rung_jentry *e = &dict->entry[i];
    if (e->hash == hash && e->key.kind == RUNG_J_STRING && e->key.as.string->length == length &&
        (!length || memcmp(e->key.as.string->data, name, length) == 0))
      return &e->value;
  }
  return NULL;
}

/* ---- JSON */

static rung_status json_string(rung_jrun *run, rung_json json, rung_jvalue *out) {
  const char *plain;
  size_t length;
  if (rung_json_plain(json, &plain, &length)) return rung_j_text(run, plain, length, out);
  char *copy;
  RUNG_TRY(rung_j_alloc(run, json.length, &copy));
  return rung_j_text(run, copy, rung_json_string(json, copy, json.length), out);
}

static rung_status json_number(rung_jrun *run, rung_json json, rung_jvalue *out) {
  bool whole = true;
  for (size_t i = 0; i < json.length; i++) whole = whole && !strchr(".eE", json.text[i]);
  *out = rung_j_int(0);
  if (whole) {
    if (rung_json_i64(json, &out->as.integer)) return RUNG_OK;
    RUNG_TRY(rung_j_text(run, json.text, json.length, out));
    out->kind = RUNG_J_BIG;
    return RUNG_OK;
  }
  double number;
  if (!rung_json_f64(json, &number)) /* too large, or more digits than anyone needs: only the first was seen */
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "JSON: the number %.40s is too large or too long", json.text);
  *out = rung_j_float(number);
  return RUNG_OK;
}

static rung_status json_value(rung_jrun *run, rung_json json, rung_jvalue *out) {
  switch (rung_json_kind_of(json)) {
    case RUNG_JSON_STRING:
      return json_string(run, json, out);
    case RUNG_JSON_NUMBER:
      return json_number(run, json, out);
    case RUNG_JSON_BOOL:
      *out = rung_j_bool(json.text[0] == 't');
      return RUNG_OK;
    case RUNG_JSON_ARRAY:
    case RUNG_JSON_OBJECT:
      return rung_j_json(run, json, out);
    default:
      *out = rung_j_none();
      return RUNG_OK;
  }
}

rung_status rung_j_json(rung_jrun *run, rung_json json, rung_jvalue *out) {
  const rung_json_kind kind = rung_json_kind_of(json);
  if (kind != RUNG_JSON_ARRAY && kind != RUNG_JSON_OBJECT) return json_value(run, json, out);
  rung_json_walk walk = rung_json_begin(json);
  rung_json name, value;
  RUNG_TRY(rung_j_work(run, json.length)); /* a walk looks for the end of every value: depth is at most 64 */
  if (kind == RUNG_JSON_ARRAY)
    RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, out));
  else
    RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, out));
  while (rung_json_next(&walk, &name, &value)) {
    rung_jvalue key, made;
    RUNG_TRY(json_value(run, value, &made));
    if (kind == RUNG_JSON_ARRAY) {
      RUNG_TRY(rung_j_append(run, out->as.list, made));
      continue;
    }
    RUNG_TRY(json_string(run, name, &key));
    RUNG_TRY(rung_j_set(run, out->as.dict, key, made));
  }
  return RUNG_OK;
}
