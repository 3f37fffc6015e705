/* SPDX-License-Identifier: MIT
 * GGUF reader: header, cursor, name tables, life of the object. Metadata and tensors have files of their own. */
#include "formats/gguf.h"

#include <inttypes.h>

#include "base/hash.h"
#include "formats/gguf_internal.h"

enum { LEAST_KEY = 14, LEAST_TENSOR = 25, LONGEST_NAME = 65535 };

/* ---- cursor */

static rung_status ends(const gguf_cursor *c, const char *field, uint64_t need) {
  return rung_fail(c->error, RUNG_CORRUPT_FILE,
                   "%s at offset %" PRIu64 " takes %" PRIu64 " bytes, but the file ends %" PRIu64 " bytes after that",
                   field, c->at, need, gguf_left(c));
}

rung_status rung_gguf_read_u32(gguf_cursor *c, const char *field, uint32_t *out) {
  if (gguf_left(c) < 4) return ends(c, field, 4);
  *out = gguf_u32(c->data + c->at);
  c->at += 4;
  return RUNG_OK;
}

rung_status rung_gguf_read_u64(gguf_cursor *c, const char *field, uint64_t *out) {
  if (gguf_left(c) < 8) return ends(c, field, 8);
  *out = gguf_u64(c->data + c->at);
  c->at += 8;
  return RUNG_OK;
}

rung_status rung_gguf_read_name(gguf_cursor *c, const char *field, rung_gguf_text *out) {
  uint64_t length = 0;
  RUNG_TRY(rung_gguf_read_u64(c, field, &length));
  if (length > gguf_left(c)) return ends(c, field, length);
  const char *data = (const char *)c->data + c->at;
  bool clean = length > 0 && length <= LONGEST_NAME;
  for (uint64_t i = 0; i < length && clean; i++) clean = (uint8_t)data[i] >= 0x20 && data[i] != 0x7F;
  if (!clean) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "%s at offset %" PRIu64 " has %" PRIu64 " bytes; 1 to %d without control characters are allowed",
                     field, c->at, length, LONGEST_NAME);
  }
  *out = (rung_gguf_text){data, length};
  c->at += length;
  return RUNG_OK;
}

gguf_shown rung_gguf_show(rung_gguf_text text) {
  gguf_shown shown = {""};
  size_t n = text.length < 64 ? (size_t)text.length : 64;
  for (size_t i = 0; i < n; i++) {
    const char c = text.data[i];
    if (c >= 0x20 && c < 0x7F) {
      shown.text[i] = c;
    } else {
      shown.text[i] = '?';
    }
  }
  if (n < text.length) memcpy(shown.text + n, "...", 3);
  return shown;
}

/* ---- name tables */

rung_status rung_gguf_names_build(rung_gguf *gguf, gguf_names *names, gguf_name_fn *name, size_t count,
                                  const char *what, rung_error *error) {
  size_t slots = 4;
  while (slots < count + count / 2) slots *= 2;
  names->slots = (uint32_t *)rung_arena_array(&gguf->arena, slots, sizeof *names->slots);
  if (!names->slots) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for the table of %zu %ss", count, what);
  names->mask = (uint32_t)(slots - 1);
  for (size_t i = 0; i < count; i++) {
    const rung_gguf_text text = name(gguf, i);
    uint32_t slot = (uint32_t)rung_hash64(text.data, (size_t)text.length) & names->mask;
    for (; names->slots[slot]; slot = (slot + 1) & names->mask) {
      const rung_gguf_text other = name(gguf, names->slots[slot] - 1);
      if (other.length == text.length && memcmp(other.data, text.data, (size_t)text.length) == 0) {
        return rung_fail(error, RUNG_CORRUPT_FILE, "%s '%s' comes twice, at offsets %" PRIu64 " and %" PRIu64, what,
                         rung_gguf_show(text).text, (uint64_t)((const uint8_t *)other.data - gguf->map.data),
                         (uint64_t)((const uint8_t *)text.data - gguf->map.data));
      }
    }
    names->slots[slot] = (uint32_t)(i + 1);
  }
  return RUNG_OK;
}

size_t rung_gguf_names_find(const rung_gguf *gguf, const gguf_names *names, gguf_name_fn *name, size_t count,
                            const char *text, size_t length) {
  uint32_t slot = (uint32_t)rung_hash64(text, length) & names->mask;
  for (; names->slots[slot]; slot = (slot + 1) & names->mask) {
    const size_t i = names->slots[slot] - 1;
    const rung_gguf_text other = name(gguf, i);
    if (other.length == length && memcmp(other.data, text, length) == 0) return i;
  }
  return count;
}

/* ---- header */

bool rung_gguf_recognise(const uint8_t *data, uint64_t bytes) { return bytes >= 4 && memcmp(data, "GGUF", 4) == 0; }

static rung_status check_version(const gguf_cursor *c, uint32_t version) {
  /* A small number in the high half is a small number read the wrong way round. */
  if ((version & 0xFFFF) == 0 && version != 0) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "version at offset 4: this is a big-endian GGUF file");
  }
  if (version == 0) return rung_fail(c->error, RUNG_CORRUPT_FILE, "version at offset 4 is 0");
  if (version != 2 && version != 3) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "version at offset 4 is %" PRIu32 "; 2 and 3 are read", version);
  }
  return RUNG_OK;
}

/* A count can't be larger than records of the least size in the bytes left: keeps a lie from costing memory or time. */
static rung_status read_count(gguf_cursor *c, const char *field, uint64_t least, uint64_t *out) {
  RUNG_TRY(rung_gguf_read_u64(c, field, out));
  if (*out > gguf_left(c) / least || *out > INT32_MAX) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "%s at offset %" PRIu64 " is %" PRIu64 ", more than %" PRIu64 " remaining bytes can hold", field,
                     c->at - 8, *out, gguf_left(c));
  }
  return RUNG_OK;
}

static rung_status read_alignment(rung_gguf *gguf, rung_error *error) {
  enum { LARGEST = 1 << 20 };
  gguf->alignment = 32;
  RUNG_TRY(rung_gguf_maybe_u64(gguf, "general.alignment", error, &gguf->alignment));
  const uint64_t a = gguf->alignment;
  if (a < 8 || a > LARGEST || (a & (a - 1)) != 0) {
    rung_gguf_entry entry;
    const uint64_t at = rung_gguf_find(gguf, "general.alignment", &entry) ? entry.offset : 0;
    return rung_fail(error, RUNG_CORRUPT_FILE,
                     "general.alignment at offset %" PRIu64 " is %" PRIu64 "; powers of two from 8 to %d are allowed",
                     at, a, LARGEST);
  }
  return RUNG_OK;
}

static rung_status parse(rung_gguf *gguf, rung_error *error) {
  gguf_cursor c = {gguf->map.data, gguf->map.size, 0, error};
  if (!rung_gguf_recognise(c.data, c.size)) {
    return rung_fail(error, RUNG_CORRUPT_FILE, "offset 0: a GGUF file begins with \"GGUF\"");
  }
  c.at = 4;
  RUNG_TRY(rung_gguf_read_u32(&c, "version", &gguf->version));
  RUNG_TRY(check_version(&c, gguf->version));
  uint64_t tensors = 0, keys = 0;
  RUNG_TRY(read_count(&c, "tensor count", LEAST_TENSOR, &tensors));
  RUNG_TRY(read_count(&c, "key count", LEAST_KEY, &keys));
  RUNG_TRY(rung_gguf_parse_metadata(gguf, &c, keys));
  RUNG_TRY(read_alignment(gguf, error));
  return rung_gguf_parse_tensors(gguf, &c, tensors);
}

/* ---- life */

rung_status rung_gguf_open_map(rung_host *host, rung_map *map, rung_error *error, rung_gguf **out_gguf) {
  rung_gguf *gguf = (rung_gguf *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *gguf, 0);
  if (!gguf) {
    rung_map_close(map);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory to open a GGUF file");
  }
  rung_host_retain(host);
  gguf->host = host;
  atomic_init(&gguf->references, 1);
  gguf->map = *map;
  *map = (rung_map){0};
  rung_arena_init(&gguf->arena, host);
  const rung_status status = parse(gguf, error);
  if (status) {
    rung_gguf_release(gguf);
    return status;
  }
  *out_gguf = gguf;
  return RUNG_OK;
}

rung_status rung_gguf_open(rung_host *host, const rung_source *source, rung_error *error, rung_gguf **out_gguf) {
  rung_map map = {0};
  RUNG_TRY(rung_map_open(&map, host, source, error));
  const rung_status status = rung_gguf_open_map(host, &map, error, out_gguf);
  if (status && source->kind == RUNG_SOURCE_PATH) return rung_fail_prefix(error, status, "%s", source->path);
  return status;
}

void rung_gguf_retain(rung_gguf *gguf) { atomic_fetch_add_explicit(&gguf->references, 1, memory_order_relaxed); }

void rung_gguf_release(rung_gguf *gguf) {
  if (!gguf || atomic_fetch_sub_explicit(&gguf->references, 1, memory_order_acq_rel) != 1) return;
  rung_host *host = gguf->host;
  rung_arena_finish(&gguf->arena);
  rung_map_close(&gguf->map);
  rung_host_free(host, RUNG_MEMORY_host, gguf, sizeof *gguf);
  rung_host_release(host);
}

uint64_t rung_gguf_release_metadata(const rung_gguf *gguf) { return rung_map_let_go(&gguf->map, 0, gguf->data_offset); }
rung_host *rung_gguf_host(const rung_gguf *gguf) { return gguf->host; }
uint32_t rung_gguf_version(const rung_gguf *gguf) { return gguf->version; }
uint64_t rung_gguf_alignment(const rung_gguf *gguf) { return gguf->alignment; }
uint64_t rung_gguf_data_offset(const rung_gguf *gguf) { return gguf->data_offset; }
const rung_map *rung_gguf_map(const rung_gguf *gguf) { return &gguf->map; }
