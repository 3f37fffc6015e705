/* SPDX-License-Identifier: MIT
 * Compiled files as a table of sections: writing, opening, checking. */
#include "formats/sections.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { HEAD = 64, ROW = 64, HASH = 16, MOST_SECTIONS = 1 << 20 };
static const uint8_t magic[8] = {0x89, 'r', 'u', 'n', 'g', '\r', '\n', 0x1A};

struct rung_sections {
  rung_host *host;
  atomic_int references;
  rung_map map;
  rung_file_kind kind;
  rung_hash key;
  uint32_t count;
  rung_section *section;
  atomic_bool *checked;
};

static uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }
static bool is_large(uint32_t kind) { return kind == RUNG_SECTION_WEIGHT || kind == RUNG_SECTION_FORM; }
static uint64_t head_bytes(uint32_t count) { return align_up(HEAD + (uint64_t)ROW * count + HASH, RUNG_SECTION_ALIGN); }

/* ---- writing */

/* Weights are mapped apart from the rest: they have their pages to themselves. */
static uint64_t align_of(uint32_t before, uint32_t kind) {
  const bool edge = (before == RUNG_SECTION_WEIGHT) != (kind == RUNG_SECTION_WEIGHT);
  return edge ? RUNG_SECTION_PAGE : RUNG_SECTION_ALIGN;
}

static void put_head(rung_text *head, rung_file_kind kind, rung_hash key, const rung_section *section, uint32_t count,
                     uint64_t first, uint64_t total) {
  rung_text_add(head, (const char *)magic, sizeof magic);
  rung_put(head, RUNG_FILE_VERSION, 4);
  rung_put(head, kind, 4);
  rung_put(head, total, 8);
  rung_put(head, count, 4);
  rung_put(head, first, 4);
  rung_put_hash(head, key);
  rung_put(head, 0, 8);
  rung_put(head, 0, 8);
  for (uint32_t i = 0; i < count; i++) {
    rung_put(head, section[i].kind, 4);
    rung_put(head, section[i].index, 4);
    rung_put(head, section[i].offset, 8);
    rung_put(head, section[i].bytes, 8);
    rung_put(head, 0, 8);
    rung_put_hash(head, section[i].checksum);
    rung_put_hash(head, section[i].key);
  }
  while (!head->failed && head->length < first - HASH) rung_put(head, 0, 1);
  if (!head->failed) rung_put_hash(head, rung_hash_bytes(head->data, head->length));
}

static rung_status put_zeros(rung_writer *writer, uint64_t bytes, rung_error *error) {
  static const uint8_t zeros[RUNG_SECTION_PAGE];
  return bytes ? rung_writer_put(writer, zeros, (size_t)bytes, error) : RUNG_OK;
}

static rung_status put_all(rung_writer *writer, const rung_text *head, const rung_section *section, uint32_t count,
                           uint64_t total, rung_error *error) {
  RUNG_TRY(rung_writer_put(writer, head->data, head->length, error));
  uint64_t at = head->length;
  for (uint32_t i = 0; i < count; i++) {
    RUNG_TRY(put_zeros(writer, section[i].offset - at, error));
    if (section[i].bytes) RUNG_TRY(rung_writer_put(writer, section[i].data, (size_t)section[i].bytes, error));
    at = section[i].offset + section[i].bytes;
  }
  return put_zeros(writer, total - at, error);
}

rung_status rung_sections_write(rung_host *host, const char *path, rung_file_kind kind, rung_hash key,
                                rung_section *section, uint32_t count, rung_error *error) {
  if (count > MOST_SECTIONS) return rung_fail(error, RUNG_OUT_OF_RANGE, "%s: %u sections are too many", path, count);
  uint64_t first = head_bytes(count);
  if (count) first = align_up(first, align_of(0, section[0].kind));
  uint64_t at = first;
  for (uint32_t i = 0; i < count; i++) {
    at = align_up(at, align_of(i ? section[i - 1].kind : 0, section[i].kind));
    section[i].offset = at;
    section[i].checksum = rung_hash_bytes(section[i].data, (size_t)section[i].bytes);
    at += section[i].bytes;
  }
  const uint64_t total = align_up(at, count ? align_of(section[count - 1].kind, 0) : RUNG_SECTION_ALIGN);
  rung_text head;
  rung_text_init(&head, host);
  put_head(&head, kind, key, section, count, first, total);
  rung_status status = rung_text_status(&head, error);
  rung_writer *writer = NULL;
  if (!status) status = rung_writer_open(host, path, error, &writer);
  if (!status) {
    status = put_all(writer, &head, section, count, total, error);
    if (status)
      rung_writer_discard(writer);
    else
      status = rung_writer_commit(writer, error);
  }
  rung_text_finish(&head);
  return status;
}

/* ---- opening */

bool rung_sections_recognise(const void *data, size_t bytes) {
  return bytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

static rung_status damaged(rung_error *error, uint64_t offset, const char *what) {
  return rung_fail(error, RUNG_CORRUPT_FILE, "compiled file, offset %" PRIu64 ": %s", offset, what);
}

static rung_status check_zeros(const rung_map *map, uint64_t from, uint64_t to, rung_error *error) {
  for (uint64_t i = from; i < to; i++)
    if (map->data[i]) return damaged(error, i, "a byte between sections is not 0");
  return RUNG_OK;
}

static rung_status check_content(const rung_section *s, rung_error *error) {
  if (rung_hash_equal(rung_hash_bytes(s->data, (size_t)s->bytes), s->checksum)) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE,
                   "compiled file, offset %" PRIu64 ": the %" PRIu64 " bytes of section %u do not have their checksum",
                   s->offset, s->bytes, s->kind);
}

static rung_status read_row(const rung_sections *file, rung_bytes *in, uint64_t end, rung_section *out,
                            rung_error *error) {
  const uint64_t row = (uint64_t)(in->at - in->start);
  out->kind = (uint32_t)rung_get(in, 4);
  out->index = (uint32_t)rung_get(in, 4);
  out->offset = rung_get(in, 8);
  out->bytes = rung_get(in, 8);
  if (rung_get(in, 8)) return damaged(error, row, "a reserved field is not 0");
  out->checksum = rung_get_hash(in);
  out->key = rung_get_hash(in);
  if (out->kind == 0 || out->kind >= RUNG_SECTION_LIMIT) return damaged(error, row, "a section of no known kind");
  if (out->offset % RUNG_SECTION_ALIGN || out->offset < end || out->offset - end >= RUNG_SECTION_PAGE ||
      out->offset > file->map.size || out->bytes > file->map.size - out->offset)
    return damaged(error, row, "a section lies where it cannot");
  out->data = file->map.data + out->offset;
  RUNG_TRY(check_zeros(&file->map, end, out->offset, error));
  return is_large(out->kind) ? RUNG_OK : check_content(out, error);
}

static rung_status read_table(rung_sections *file, rung_bytes *in, uint64_t first, rung_error *error) {
  file->section = rung_host_array(file->host, file->count, sizeof *file->section);
  file->checked = rung_host_array(file->host, file->count, sizeof *file->checked);
  if (!file->section || !file->checked) return rung_fail(error, RUNG_OUT_OF_MEMORY, "compiled file: out of memory");
  uint64_t end = first;
  for (uint32_t i = 0; i < file->count; i++) {
    RUNG_TRY(read_row(file, in, end, &file->section[i], error));
    atomic_init(&file->checked[i], !is_large(file->section[i].kind));
    end = file->section[i].offset + file->section[i].bytes;
  }
  if (file->map.size - end >= RUNG_SECTION_PAGE) return damaged(error, end, "bytes follow the last section");
  return check_zeros(&file->map, end, file->map.size, error);
}

static rung_status read_head(rung_sections *file, rung_error *error) {
  const rung_map *map = &file->map;
  if (!rung_sections_recognise(map->data, map->size < 8 ? (size_t)map->size : 8))
    return damaged(error, 0, "these are not the first bytes of a compiled file");
  rung_bytes in = rung_bytes_of(map->data, map->size);
  in.at += sizeof magic;
  const uint64_t version = rung_get(&in, 4), kind = rung_get(&in, 4), total = rung_get(&in, 8);
  const uint64_t count = rung_get(&in, 4), first = rung_get(&in, 4);
  file->key = rung_get_hash(&in);
  const bool reserved = rung_get(&in, 8) | rung_get(&in, 8);
  if (in.failed) return damaged(error, map->size, "the file ends in its head");
  if (version != RUNG_FILE_VERSION)
    return rung_fail(error, RUNG_UNSUPPORTED, "compiled file of version %" PRIu64 "; this library reads version %d",
                     version, RUNG_FILE_VERSION);
  if (total != map->size)
    return rung_fail(error, RUNG_CORRUPT_FILE, "compiled file: has %" PRIu64 " bytes and says %" PRIu64, map->size,
                     total);
  if (count > MOST_SECTIONS || first > map->size || first % RUNG_SECTION_ALIGN || first < head_bytes((uint32_t)count))
    return damaged(error, 24, "the table does not fit");
  rung_bytes sum = rung_bytes_of(map->data + first - HASH, HASH);
  if (!rung_hash_equal(rung_get_hash(&sum), rung_hash_bytes(map->data, (size_t)(first - HASH))))
    return damaged(error, 0, "the head does not have its checksum");
  if (kind < RUNG_FILE_TEMPLATE || kind > RUNG_FILE_KNOWN || reserved)
    return damaged(error, 12, "a file of no known kind");
  file->kind = (rung_file_kind)kind;
  file->count = (uint32_t)count;
  RUNG_TRY(read_table(file, &in, first, error));
  return RUNG_OK;
}

rung_status rung_sections_open(rung_host *host, const rung_source *source, rung_error *error,
                               rung_sections **out_file) {
  rung_sections *file = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *file, 0);
  if (!file) return rung_fail(error, RUNG_OUT_OF_MEMORY, "compiled file: out of memory");
  rung_host_retain(host);
  file->host = host;
  atomic_init(&file->references, 1);
  rung_status status = rung_map_open(&file->map, host, source, error);
  if (!status) status = read_head(file, error);
  if (status) {
    rung_sections_release(file);
    return status;
  }
  *out_file = file;
  return RUNG_OK;
}

void rung_sections_retain(rung_sections *file) { atomic_fetch_add(&file->references, 1); }

void rung_sections_release(rung_sections *file) {
  if (!file || atomic_fetch_sub(&file->references, 1) != 1) return;
  rung_host *host = file->host;
  rung_host_free(host, RUNG_MEMORY_host, file->section, file->count * sizeof *file->section);
  rung_host_free(host, RUNG_MEMORY_host, file->checked, file->count * sizeof *file->checked);
  rung_map_close(&file->map);
  rung_host_free(host, RUNG_MEMORY_host, file, sizeof *file);
  rung_host_release(host);
}

/* ---- looking */

rung_file_kind rung_sections_kind(const rung_sections *file) { return file->kind; }
rung_hash rung_sections_key(const rung_sections *file) { return file->key; }
const rung_map *rung_sections_map(const rung_sections *file) { return &file->map; }
uint32_t rung_sections_count(const rung_sections *file) { return file->count; }
const rung_section *rung_sections_at(const rung_sections *file, uint32_t index) {
  return index < file->count ? &file->section[index] : NULL;
}

const rung_section *rung_sections_find(const rung_sections *file, rung_section_kind kind) {
  for (uint32_t i = 0; i < file->count; i++)
    if (file->section[i].kind == (uint32_t)kind) return &file->section[i];
  return NULL;
}

rung_status rung_sections_check(rung_sections *file, uint32_t index, rung_error *error) {
  if (atomic_load(&file->checked[index])) return RUNG_OK;
  RUNG_TRY(check_content(&file->section[index], error));
  atomic_store(&file->checked[index], true);
  return RUNG_OK;
}

void rung_sections_trust(rung_sections *file) {
  for (uint32_t i = 0; i < file->count; i++) atomic_store(&file->checked[i], true);
}

/* ---- sealing */

static void store_hash(uint8_t *at, rung_hash hash) {
  for (int i = 0; i < 8; i++) {
    at[i] = (uint8_t)(hash.low >> 8 * i);
    at[8 + i] = (uint8_t)(hash.high >> 8 * i);
  }
}

void rung_sections_seal(uint8_t *data, uint64_t bytes) {
  if (bytes < HEAD + HASH) return;
  rung_bytes in = rung_bytes_of(data, bytes);
  in.at += 24;
  const uint64_t count = rung_get(&in, 4), first = rung_get(&in, 4);
  if (first > bytes || first < HEAD + HASH) return;
  for (uint64_t i = 0; i < count && HEAD + (i + 1) * ROW + HASH <= first; i++) {
    uint8_t *row = data + HEAD + i * ROW;
    in = rung_bytes_of(row, ROW);
    in.at += 8;
    const uint64_t offset = rung_get(&in, 8), size = rung_get(&in, 8);
    if (offset <= bytes && size <= bytes - offset) store_hash(row + 32, rung_hash_bytes(data + offset, (size_t)size));
  }
  store_hash(data + first - HASH, rung_hash_bytes(data, (size_t)(first - HASH)));
}
