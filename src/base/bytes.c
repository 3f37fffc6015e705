/* SPDX-License-Identifier: MIT
 * Little-endian numbers, whatever the machine; texts and blocks with their length before them. */
#include "base/bytes.h"

#include <inttypes.h>
#include <string.h>

void rung_put(rung_text *out, uint64_t value, int bytes) {
  char little[8];
  for (int i = 0; i < bytes; i++) little[i] = (char)(value >> 8 * i & 0xFF);
  rung_text_add(out, little, (size_t)bytes);
}

void rung_put_bytes(rung_text *out, const void *data, uint64_t bytes) {
  rung_put(out, bytes, 8);
  rung_text_add(out, (const char *)data, (size_t)bytes);
}

void rung_put_string(rung_text *out, const char *text) { rung_put_bytes(out, text, strlen(text)); }

void rung_put_hash(rung_text *out, rung_hash hash) {
  rung_put(out, hash.low, 8);
  rung_put(out, hash.high, 8);
}

void rung_put_front(rung_text *out, const rung_front *front, uint64_t head) {
  rung_text_add(out, front->letters, sizeof front->letters);
  rung_put(out, (uint64_t)front->version, 8);
  rung_put(out, head, 8);
}

rung_bytes rung_bytes_of(const void *data, uint64_t bytes) {
  const uint8_t *p = (const uint8_t *)data;
  return (rung_bytes){p, p, p + bytes, false};
}

static bool take(rung_bytes *in, uint64_t bytes, const uint8_t **out) {
  if (in->failed || bytes > rung_bytes_left(in)) {
    in->failed = true;
    return false;
  }
  *out = in->at;
  in->at += bytes;
  return true;
}

uint64_t rung_get(rung_bytes *in, int bytes) {
  const uint8_t *p;
  uint64_t value = 0;
  if (!take(in, (uint64_t)bytes, &p)) return 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)p[i] << 8 * i;
  return value;
}

const uint8_t *rung_get_bytes(rung_bytes *in, uint64_t *out_bytes) {
  const uint8_t *p = in->at;
  *out_bytes = rung_get(in, 8);
  if (!take(in, *out_bytes, &p)) *out_bytes = 0;
  return p;
}

const char *rung_get_string(rung_bytes *in, size_t most, size_t *out_length) {
  uint64_t bytes;
  const uint8_t *p = rung_get_bytes(in, &bytes);
  *out_length = 0;
  if (bytes > most || (bytes && memchr(p, 0, (size_t)bytes))) in->failed = true;
  if (!in->failed) *out_length = (size_t)bytes;
  return (const char *)p;
}

rung_hash rung_get_hash(rung_bytes *in) {
  rung_hash hash;
  hash.low = rung_get(in, 8);
  hash.high = rung_get(in, 8);
  return hash;
}

rung_status rung_get_front(rung_bytes *in, const rung_front *front, rung_error *error, uint64_t *out_head) {
  const uint8_t *letters;
  if (rung_bytes_left(in) < RUNG_FRONT_BYTES || !take(in, sizeof front->letters, &letters) ||
      memcmp(letters, front->letters, sizeof front->letters) != 0)
    return rung_fail(error, RUNG_CORRUPT_FILE, "this is no %s", front->what);
  const uint64_t version = rung_get(in, 8);
  *out_head = rung_get(in, 8);
  if (version == (uint64_t)front->version) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "%s: version %" PRIu64 ", this library reads %d", front->what, version,
                   front->version);
}
