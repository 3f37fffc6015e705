/* SPDX-License-Identifier: MIT
 * What a store remembers of other files by device, inode, size and modification time: the content of a model's tensors,
 * and which packed files were found whole. A start that finds both reads neither.
 *
 * A file that was changed within the clock's resolution of its last change cannot be told from what it was before; so
 * nothing is remembered of a file that is younger than two seconds. */
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "runtime/cache/aot.h"

enum { YOUNG_SECONDS = 2, ROW = 32 };

static bool may_remember(const rung_store *store, const rung_stamp *stamp) {
  return stamp->inode && !store->options.read_only &&
         rung_wall_clock_ns() - stamp->modified_ns > (int64_t)YOUNG_SECONDS * 1000000000;
}

static rung_hash known_name(const char *what, const rung_stamp *s, char out[RUNG_STORE_NAME]) {
  const uint64_t words[5] = {rung_hash64(what, strlen(what)), s->device, s->inode, s->bytes, (uint64_t)s->modified_ns};
  const rung_hash hash = rung_hash_bytes(words, sizeof words);
  char hex[33];
  rung_hash_hex(hash, hex);
  snprintf(out, RUNG_STORE_NAME, "%s.known", hex);
  return hash;
}

/* Opens what is remembered, if it is about this very file; rows of two hashes lie in *out_rows. */
static rung_sections *open_known(rung_store *store, const char *what, const rung_stamp *stamp, rung_bytes *out_rows) {
  char name[RUNG_STORE_NAME];
  rung_sections *file;
  if (!stamp->inode) return NULL;
  const rung_hash key = known_name(what, stamp, name);
  if (rung_store_entry_open(store, name, RUNG_FILE_KNOWN, NULL, &file)) return NULL;
  const rung_section *section = rung_sections_find(file, RUNG_SECTION_KNOWN);
  if (section && rung_hash_equal(rung_sections_key(file), key) && section->bytes % ROW == 0) {
    *out_rows = rung_bytes_of(section->data, section->bytes);
    return file;
  }
  rung_sections_release(file);
  return NULL;
}

static void keep_known(rung_store *store, const char *what, const rung_stamp *stamp, const rung_text *rows) {
  char name[RUNG_STORE_NAME];
  const rung_hash key = known_name(what, stamp, name);
  rung_section section = {.kind = RUNG_SECTION_KNOWN, .data = (const uint8_t *)rows->data, .bytes = rows->length};
  rung_store_entry_write(store, name, RUNG_FILE_KNOWN, key, &section, 1);
}

/* ---- files that were checked */

bool rung_known_checked(rung_store *store, const rung_stamp *stamp) {
  rung_bytes rows;
  rung_sections *file = open_known(store, "checked", stamp, &rows);
  rung_sections_release(file);
  return file != NULL;
}

void rung_known_keep_checked(rung_store *store, const rung_stamp *stamp) {
  if (!may_remember(store, stamp)) return;
  rung_text rows;
  rung_text_init(&rows, store->host);
  rung_put_hash(&rows, (rung_hash){stamp->inode, stamp->bytes});
  rung_put_hash(&rows, (rung_hash){stamp->device, (uint64_t)stamp->modified_ns});
  if (!rows.failed) keep_known(store, "checked", stamp, &rows);
  rung_text_finish(&rows);
}

/* ---- tensors of a source */

/* Where a tensor lies and as what it is read there. */
static rung_hash place_of(const rung_tensor_entry *entry) {
  uint64_t words[4 + RUNG_MAX_RANK] = {entry->offset, entry->bytes, (uint64_t)entry->type, (uint64_t)entry->rank};
  for (int i = 0; i < entry->rank; i++) words[4 + i] = (uint64_t)entry->extent[i];
  return rung_hash_bytes(words, sizeof words);
}

static const rung_map *map_of(const rung_derived *derived, int32_t source) {
  const rung_map *map = rung_weights_map(derived->weights, source);
  return map && map->stamp.inode ? map : NULL;
}

static rung_tensor_value *first_value(const rung_derived *derived, size_t index) {
  rung_tensor_value *value = rung_weights_now(derived->weights, rung_weights_entry(derived->weights, index));
  return value && !value->set ? value : NULL;
}

/* Tensors lie in the order of the rows, as a rule: the search begins where the last one ended. */
static void recall(rung_derived *derived, int32_t source, rung_bytes rows) {
  const uint64_t count = rung_bytes_left(&rows) / ROW;
  uint64_t at = 0;
  for (size_t i = 0; i < rung_weights_count(derived->weights); i++) {
    const rung_tensor_entry *entry = rung_weights_entry(derived->weights, i);
    rung_tensor_value *value = first_value(derived, i);
    if (entry->source != source || !value) continue;
    const rung_hash place = place_of(entry);
    for (uint64_t tried = 0; tried < count; tried++, at++) {
      rung_bytes row = rung_bytes_of(rows.start + at % count * ROW, ROW);
      if (!rung_hash_equal(rung_get_hash(&row), place)) continue;
      rung_tensor_value_identify(derived->weights, value, rung_get_hash(&row));
      value->kept = true;
      break;
    }
  }
}

void rung_known_sources(rung_derived *derived) {
  if (derived->remembered) return;
  derived->remembered = true;
  for (int32_t s = 0; rung_weights_map(derived->weights, s); s++) {
    const rung_map *map = map_of(derived, s);
    rung_bytes rows;
    rung_sections *file = map ? open_known(derived->store, "tensors", &map->stamp, &rows) : NULL;
    if (file) recall(derived, s, rows);
    rung_sections_release(file);
  }
}

void rung_known_keep_sources(rung_derived *derived) {
  rung_store *store = derived->store;
  for (int32_t s = 0; rung_weights_map(derived->weights, s); s++) {
    const rung_map *map = map_of(derived, s);
    rung_text rows;
    uint64_t fresh = 0;
    rung_text_init(&rows, derived->host);
    for (size_t i = 0; i < rung_weights_count(derived->weights); i++) {
      const rung_tensor_entry *entry = rung_weights_entry(derived->weights, i);
      rung_tensor_value *value = first_value(derived, i);
      rung_hash identity;
      if (entry->source != s || !value || !rung_tensor_value_identified(derived->weights, value, &identity)) continue;
      if (!value->kept) {
        value->kept = true;
        fresh += entry->bytes;
      }
      rung_put_hash(&rows, place_of(entry));
      rung_put_hash(&rows, identity);
    }
    rung_store_count(store, &store->counters.hashed_bytes, fresh);
    if (fresh && map && !rows.failed && may_remember(store, &map->stamp))
      keep_known(store, "tensors", &map->stamp, &rows);
    rung_text_finish(&rows);
  }
}
