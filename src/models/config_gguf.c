/* SPDX-License-Identifier: MIT
 * Metadata of a GGUF file: the family by its architecture, values by keys that the architecture prefixes. */
#include <stdio.h>
#include <string.h>

#include "models/model.h"

typedef struct full_key {
  char text[192];
} full_key;
static full_key full(const rung_gguf_config *config, const char *key) {
  full_key f;
  snprintf(f.text, sizeof f.text, "%s.%s", config->architecture, key);
  return f;
}

static rung_status get_i64(const void *self, const char *key, rung_error *error, int64_t *out) {
  const rung_gguf_config *config = self;
  return rung_gguf_get_i64(config->gguf, full(config, key).text, error, out);
}
static rung_status get_f64(const void *self, const char *key, rung_error *error, double *out) {
  const rung_gguf_config *config = self;
  return rung_gguf_get_f64(config->gguf, full(config, key).text, error, out);
}
static rung_status get_flag(const void *self, const char *key, rung_error *error, bool *out) {
  const rung_gguf_config *config = self;
  return rung_gguf_get_bool(config->gguf, full(config, key).text, error, out);
}
static rung_status get_number(const void *self, const char *key, int64_t index, rung_error *error, double *out) {
  const rung_gguf_config *config = self;
  const full_key name = full(config, key);
  rung_gguf_entry entry;
  if (!rung_gguf_find(config->gguf, name.text, &entry))
    return rung_fail(error, RUNG_NOT_FOUND, "there is no key %s", name.text);
  if (!entry.array || entry.kind == RUNG_GGUF_STRING)
    return rung_fail(error, RUNG_TYPE_MISMATCH, "%s is no list of numbers", name.text);
  if ((uint64_t)index >= entry.count)
    return rung_fail(error, RUNG_NOT_FOUND, "%s has %llu entries", name.text, (unsigned long long)entry.count);
  *out = rung_gguf_entry_f64(&entry, (uint64_t)index);
  return RUNG_OK;
}
static rung_status get_text(const void *self, const char *key, int64_t index, rung_error *error, char *out,
                            size_t bytes) {
  const rung_gguf_config *config = self;
  const full_key name = full(config, key);
  rung_gguf_text text;
  if (index < 0) {
    RUNG_TRY(rung_gguf_get_text(config->gguf, name.text, error, &text));
  } else {
    rung_gguf_entry entry;
    RUNG_TRY(rung_gguf_get_array(config->gguf, name.text, RUNG_GGUF_TEXT, error, &entry));
    if ((uint64_t)index >= entry.count)
      return rung_fail(error, RUNG_NOT_FOUND, "%s has %llu entries", name.text, (unsigned long long)entry.count);
    text = rung_gguf_entry_text(&entry, (uint64_t)index);
  }
  if (text.length >= bytes || (text.length && memchr(text.data, 0, (size_t)text.length)))
    return rung_fail(error, RUNG_CORRUPT_FILE, "%s is a text of %llu bytes", name.text,
                     (unsigned long long)text.length);
  if (text.length) memcpy(out, text.data, (size_t)text.length);
  out[text.length] = 0;
  return RUNG_OK;
}
static const char *spell(const void *self, const char *key) {
  (void)self;
  return key;
}

rung_metadata rung_gguf_metadata(const rung_gguf_config *config) {
  return (rung_metadata){.self = config,
                         .i64 = get_i64,
                         .f64 = get_f64,
                         .flag = get_flag,
                         .number = get_number,
                         .text = get_text,
                         .spell = spell};
}

rung_status rung_gguf_family(const rung_gguf *gguf, rung_error *error, const rung_family **out_family,
                             rung_gguf_config *out_config) {
  rung_gguf_text name;
  RUNG_TRY(rung_gguf_get_text(gguf, "general.architecture", error, &name));
  const rung_family *family = rung_family_find(name.data, (size_t)name.length);
  if (!family) {
    char known[256];
    rung_family_names(false, known, sizeof known);
    return rung_fail(error, RUNG_UNSUPPORTED, "architecture \"%.*s\" is not supported; there are: %s",
                     (int)(name.length < 64 ? name.length : 64), name.data, known);
  }
  *out_family = family;
  out_config->gguf = gguf;
  snprintf(out_config->architecture, sizeof out_config->architecture, "%s", family->architecture);
  return RUNG_OK;
}
