/* SPDX-License-Identifier: MIT
 * Little-endian bytes of stored files: written to a growing buffer, read with every length checked. */
#ifndef RUNG_BASE_BYTES_H
#define RUNG_BASE_BYTES_H

#include "base/hash.h"
#include "base/text.h"

/* Sticky on failure, as rung_text is. */
void rung_put(rung_text *out, uint64_t value, int bytes);
void rung_put_bytes(rung_text *out, const void *data, uint64_t bytes); /* 8 bytes of length stand before them */
void rung_put_string(rung_text *out, const char *text);
void rung_put_hash(rung_text *out, rung_hash hash);
/* The front of a saved file: eight letters, a version, the bytes of the head behind it. */
enum { RUNG_FRONT_BYTES = 24 };
typedef struct rung_front {
  char letters[8];
  const char *what; /* in messages: "saved state" */
  int version;
} rung_front;
void rung_put_front(rung_text *out, const rung_front *front, uint64_t head);

/* Reading stops for good at the first thing that is not there: numbers are 0 then, texts empty. */
typedef struct rung_bytes {
  const uint8_t *start, *at, *limit;
  bool failed;
} rung_bytes;
rung_bytes rung_bytes_of(const void *data, uint64_t bytes);
static inline uint64_t rung_bytes_left(const rung_bytes *in) { return (uint64_t)(in->limit - in->at); }
uint64_t rung_get(rung_bytes *in, int bytes);
/* Bytes with their length before them, where they lie. */
const uint8_t *rung_get_bytes(rung_bytes *in, uint64_t *out_bytes);
/* Text without a byte 0, at most `most` bytes, not terminated. */
const char *rung_get_string(rung_bytes *in, size_t most, size_t *out_length);
rung_hash rung_get_hash(rung_bytes *in);
/* CORRUPT_FILE for what does not begin with these letters, UNSUPPORTED for another version. */
RUNG_CHECKED rung_status rung_get_front(rung_bytes *in, const rung_front *front, rung_error *error, uint64_t *out_head);

#endif
