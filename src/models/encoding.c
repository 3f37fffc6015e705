/* SPDX-License-Identifier: MIT
 * modules.json, 1_Pooling/config.json and sentence_bert_config.json of a model folder (sentence-transformers: Reimers
 * and Gurevych 2019, "Sentence-BERT"). */
#include "models/encoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static rung_status wrong(const char *file, const char *key, rung_json value, const char *want, rung_error *error) {
  return rung_fail(error, RUNG_TYPE_MISMATCH, "%s: %s is %s, expected %s", file, key,
                   rung_json_kind_name(rung_json_kind_of(value)), want);
}

/* false where the key is missing. */
static rung_status flag(const char *file, rung_json object, const char *key, rung_error *error, bool *out) {
  const rung_json value = rung_json_find(object, key, NULL);
  *out = false;
  if (rung_json_kind_of(value) == RUNG_JSON_NONE || rung_json_kind_of(value) == RUNG_JSON_NULL) return RUNG_OK;
  if (rung_json_kind_of(value) != RUNG_JSON_BOOL) return wrong(file, key, value, "true or false", error);
  *out = value.text[0] == 't';
  return RUNG_OK;
}

/* Missing: *out stays. */
static rung_status count(const char *file, rung_json object, const char *key, rung_error *error, int64_t *out) {
  const rung_json value = rung_json_find(object, key, NULL);
  if (rung_json_kind_of(value) == RUNG_JSON_NONE || rung_json_kind_of(value) == RUNG_JSON_NULL) return RUNG_OK;
  int64_t n;
  if (!rung_json_i64(value, &n)) return wrong(file, key, value, "a whole number", error);
  if (n < 1 || n > INT32_MAX)
    return rung_fail(error, RUNG_CORRUPT_FILE, "%s: %s is %" PRId64 ", expected 1..%d", file, key, n, INT32_MAX);
  *out = n;
  return RUNG_OK;
}

/* ---- pooling */

static rung_status read_pooling(const char *file, rung_json object, int64_t width, rung_encoding *e,
                                rung_error *error) {
  static const struct {
    const char *key;
    rung_pooling pooling; /* RUNG_POOLING_MODEL: not supported */
  } modes[] = {{"pooling_mode_cls_token", RUNG_POOLING_FIRST},
               {"pooling_mode_mean_tokens", RUNG_POOLING_MEAN},
               {"pooling_mode_max_tokens", RUNG_POOLING_MAX},
               {"pooling_mode_lasttoken", RUNG_POOLING_LAST},
               {"pooling_mode_mean_sqrt_len_tokens", RUNG_POOLING_MODEL},
               {"pooling_mode_weightedmean_tokens", RUNG_POOLING_MODEL}};
  for (size_t i = 0; i < RUNG_COUNT(modes); i++) {
    bool on;
    RUNG_TRY(flag(file, object, modes[i].key, error, &on));
    if (!on) continue;
    if (modes[i].pooling == RUNG_POOLING_MODEL)
      return rung_fail(error, RUNG_UNSUPPORTED, "%s: %s is not supported", file, modes[i].key);
    if (e->pooling != RUNG_POOLING_MODEL)
      return rung_fail(error, RUNG_UNSUPPORTED, "%s: %s besides another mode is not supported", file, modes[i].key);
    e->pooling = modes[i].pooling;
  }
  if (e->pooling == RUNG_POOLING_MODEL)
    return rung_fail(error, RUNG_UNSUPPORTED, "%s: none of the modes that are supported is on", file);
  int64_t dims = width;
  RUNG_TRY(count(file, object, "word_embedding_dimension", error, &dims));
  if (dims != width)
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "%s: word_embedding_dimension is %" PRId64 ", the model has %" PRId64,
                     file, dims, width);
  return RUNG_OK;
}

/* A name that stays inside the folder. Links are followed: download caches keep folders of links. */
static bool stays_inside(const char *path) {
  if (!*path || *path == '/' || strchr(path, '\\')) return false;
  for (const char *at = path; *at;) {
    const size_t part = strcspn(at, "/");
    if (part == 2 && at[0] == '.' && at[1] == '.') return false;
    at += part + (at[part] == '/');
  }
  return true;
}

static rung_status open_pooling(const rung_folder *folder, rung_json path, int64_t width, rung_encoding *e,
                                rung_error *error) {
  char file[256];
  const size_t length = rung_json_string(path, file, sizeof file);
  const bool fits = rung_json_kind_of(path) == RUNG_JSON_STRING && length + sizeof "/config.json" <= sizeof file &&
                    !memchr(file, 0, length);
  if (fits) memcpy(file + length, "/config.json", sizeof "/config.json");
  if (!fits || !stays_inside(file))
    return rung_fail(error, RUNG_CORRUPT_FILE, "modules.json: the path of module 1 is no folder inside the model's");
  rung_folder_json json;
  RUNG_TRY(rung_folder_read(folder, file, RUNG_JSON_OBJECT, error, &json));
  const rung_status status = read_pooling(file, json.value, width, e, error);
  rung_folder_json_close(&json);
  return status;
}

/* ---- modules: a list of {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"} */

/* The class: what stands behind the last dot. */
static void kind_of(rung_json module, char out[64]) {
  char type[128];
  const size_t length = rung_json_string(rung_json_find(module, "type", NULL), type, sizeof type - 1);
  type[length < sizeof type ? length : sizeof type - 1] = 0;
  const char *dot = strrchr(type, '.');
  snprintf(out, 64, "%.63s", dot ? dot + 1 : type);
  for (char *p = out; *p; p++) *p = *p < 0x20 || *p > 0x7E ? '?' : *p;
}

static rung_status read_modules(const rung_folder *folder, rung_json list, int64_t width, rung_encoding *e,
                                rung_error *error) {
  rung_json_walk walk = rung_json_begin(list);
  rung_json module;
  for (int i = 0; rung_json_next(&walk, NULL, &module); i++) {
    char kind[64];
    if (rung_json_kind_of(module) != RUNG_JSON_OBJECT)
      return rung_fail(error, RUNG_CORRUPT_FILE, "modules.json: module %d is no object", i);
    kind_of(module, kind);
    if (i == 0 && strcmp(kind, "Transformer") == 0) continue;
    if (i == 1 && strcmp(kind, "Pooling") == 0)
      RUNG_TRY(open_pooling(folder, rung_json_find(module, "path", NULL), width, e, error));
    else if (i == 2 && strcmp(kind, "Normalize") == 0)
      e->normalize = true;
    else
      return rung_fail(error, RUNG_UNSUPPORTED, "modules.json: \"%s\" as module %d is not supported", kind, i);
  }
  if (e->pooling != RUNG_POOLING_MODEL) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "modules.json: without a pooling");
}

/* sentence_bert_config.json: how long texts may be. Lower case is the tokeniser's business, as tokenizer.json has it.
 */
static rung_status read_lengths(const char *file, rung_json object, rung_encoding *e, rung_error *error) {
  bool lower;
  RUNG_TRY(count(file, object, "max_seq_length", error, &e->longest));
  RUNG_TRY(flag(file, object, "do_lower_case", error, &lower));
  return lower ? rung_fail(error, RUNG_UNSUPPORTED, "%s: do_lower_case is not supported", file) : RUNG_OK;
}

rung_status rung_folder_encoding(const rung_folder *folder, int64_t width, rung_encoding *out, rung_error *error) {
  static const char lengths[] = "sentence_bert_config.json";
  *out = (rung_encoding){.pooling = RUNG_POOLING_MODEL};
  rung_folder_json json;
  rung_status status = rung_folder_read(folder, "modules.json", RUNG_JSON_ARRAY, error, &json);
  if (status == RUNG_OK) {
    status = read_modules(folder, json.value, width, out, error);
    rung_folder_json_close(&json);
    if (status) return status;
  }
  if (status && status != RUNG_NOT_FOUND) return status;
  status = rung_folder_read(folder, lengths, RUNG_JSON_OBJECT, error, &json);
  if (status == RUNG_OK) {
    status = read_lengths(lengths, json.value, out, error);
    rung_folder_json_close(&json);
  }
  return status == RUNG_NOT_FOUND ? RUNG_OK : status;
}
