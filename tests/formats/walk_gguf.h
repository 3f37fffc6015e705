/* SPDX-License-Identifier: MIT
 * Reads everything that an opened GGUF file gives access to: what open let through must bear this. */
#ifndef RUNG_TESTS_FORMATS_WALK_GGUF_H
#define RUNG_TESTS_FORMATS_WALK_GGUF_H

#include <stdlib.h>
#include <string.h>

#include "formats/gguf.h"

static inline char *walk_terminated(rung_gguf_text text) {
  char *copy = (char *)malloc((size_t)text.length + 1);
  if (!copy) abort();
  memcpy(copy, text.data, (size_t)text.length);
  copy[text.length] = 0;
  return copy;
}

static inline uint64_t walk_entry(const rung_gguf *gguf, const rung_gguf_entry *entry) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < entry->count; i++) {
    if (entry->kind == RUNG_GGUF_STRING) {
      const rung_gguf_text text = rung_gguf_entry_text(entry, i);
      for (uint64_t j = 0; j < text.length; j++) sum = sum * 31 + (uint8_t)text.data[j];
    } else {
      const double value = rung_gguf_entry_f64(entry, i);
      sum = sum * 31 + (uint64_t)rung_gguf_entry_i64(entry, i) + (value > 0);
    }
  }
  char *key = walk_terminated(entry->key);
  rung_gguf_entry found;
  if (!rung_gguf_find(gguf, key, &found) || found.data != entry->data || !rung_gguf_has(gguf, key)) abort();
  uint64_t u = 0;
  int64_t s = 0;
  double f = 0;
  bool b = false;
  rung_gguf_text text = {"", 0};
  rung_error error;
  sum += rung_gguf_get_u64(gguf, key, &error, &u) == RUNG_OK;
  sum += rung_gguf_get_i64(gguf, key, &error, &s) == RUNG_OK;
  sum += rung_gguf_get_f64(gguf, key, &error, &f) == RUNG_OK;
  sum += rung_gguf_get_bool(gguf, key, &error, &b) == RUNG_OK;
  sum += rung_gguf_get_text(gguf, key, &error, &text) == RUNG_OK;
  for (int class_ = RUNG_GGUF_INTEGER; class_ <= RUNG_GGUF_TEXT; class_++) {
    sum += rung_gguf_get_array(gguf, key, (rung_gguf_class)class_, &error, &found) == RUNG_OK;
  }
  free(key);
  return sum + u + (uint64_t)s + (f > 0) + b + text.length + strlen(rung_gguf_kind_name(entry->kind));
}

static inline uint64_t walk_gguf(const rung_gguf *gguf) {
  uint64_t sum = rung_gguf_version(gguf) + rung_gguf_alignment(gguf);
  for (size_t i = 0; i < rung_gguf_key_count(gguf); i++) {
    const rung_gguf_entry entry = rung_gguf_key_at(gguf, i);
    sum = sum * 31 + walk_entry(gguf, &entry);
  }
  for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
    const uint8_t *data = (const uint8_t *)rung_gguf_tensor_data(gguf, t);
    char *name = walk_terminated(t->name);
    if (rung_gguf_tensor_find(gguf, name) != t || t->bytes == 0) abort();
    if (t->offset % rung_gguf_alignment(gguf) || t->offset < rung_gguf_data_offset(gguf)) abort();
    free(name);
    sum = sum * 31 + data[0] + data[t->bytes - 1] + (uint64_t)t->rank;
  }
  return sum;
}

#endif
