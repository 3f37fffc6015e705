/* SPDX-License-Identifier: MIT
 * What the files of the GGUF reader share; nobody else includes this. */
#ifndef RUNG_FORMATS_GGUF_INTERNAL_H
#define RUNG_FORMATS_GGUF_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "formats/gguf.h"

/* A key is found again from where its record begins, so that the index stays small beside tiny hostile keys. */
typedef struct gguf_key {
  uint64_t at;            /* of the key's length field in the file */
  const uint32_t *starts; /* arrays of strings only */
} gguf_key;

/* Open addressing over names in the file; a slot holds index + 1, 0 is free. */
typedef struct gguf_names {
  uint32_t *slots;
  uint32_t mask;
} gguf_names;

struct rung_gguf {
  rung_host *host;
  atomic_int references;
  rung_map map;
  uint32_t version;
  uint64_t alignment, data_offset;
  rung_arena arena;
  gguf_key *keys;
  size_t key_count;
  gguf_names key_names;
  rung_gguf_tensor *tensors;
  size_t tensor_count;
  gguf_names tensor_names;
};

/* A place in the file; `at` never passes `size`. */
typedef struct gguf_cursor {
  const uint8_t *data;
  uint64_t size, at;
  rung_error *error;
} gguf_cursor;

static inline uint64_t gguf_left(const gguf_cursor *c) { return c->size - c->at; }
/* Each names the field and its offset if the file ends before it. */
rung_status rung_gguf_read_u32(gguf_cursor *c, const char *field, uint32_t *out);
rung_status rung_gguf_read_u64(gguf_cursor *c, const char *field, uint64_t *out);
/* A name: 1..65535 bytes without control characters, so that it can be a C string and stand in a message. */
rung_status rung_gguf_read_name(gguf_cursor *c, const char *field, rung_gguf_text *out);

static inline uint32_t gguf_u32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t gguf_u64(const uint8_t *p) { return gguf_u32(p) | (uint64_t)gguf_u32(p + 4) << 32; }

/* Text of a file made fit for a message: cut, and what could upset a terminal replaced. */
typedef struct gguf_shown {
  char text[68];
} gguf_shown;
gguf_shown rung_gguf_show(rung_gguf_text text);

/* Builds the table over `count` names; CORRUPT_FILE if one comes twice. */
typedef rung_gguf_text gguf_name_fn(const rung_gguf *gguf, size_t index);
rung_status rung_gguf_names_build(rung_gguf *gguf, gguf_names *names, gguf_name_fn *name, size_t count,
                                  const char *what, rung_error *error);
/* count if there is none. */
size_t rung_gguf_names_find(const rung_gguf *gguf, const gguf_names *names, gguf_name_fn *name, size_t count,
                            const char *text, size_t length);

rung_status rung_gguf_parse_metadata(rung_gguf *gguf, gguf_cursor *c, uint64_t count);
/* Reads the directory; c stands at its first record. */
rung_status rung_gguf_parse_tensors(rung_gguf *gguf, gguf_cursor *c, uint64_t count);

#endif
