/* SPDX-License-Identifier: MIT
 * Recorded strings of a tokeniser (tests/tokens/README.md): ids equal, text back equal, as a stream too and from several
 * threads. A record holds the ids themselves and its text comes back as it is, or digests of ids and of what the library
 * that made the record decodes. */
#ifndef RUNG_TESTS_TOKEN_RECORDS_H
#define RUNG_TESTS_TOKEN_RECORDS_H

#include <stdlib.h>

#include "base/clock.h"
#include "base/map_file.h"
#include "base/pool.h"
#include "test.h"
#include "text/tokenizer.h"

enum { PARSE_SPECIAL = 1, ADD_SPECIAL = 2, ROUND_TRIPS = 4 }; /* flags of a record */

typedef struct record {
  uint32_t flags, bytes, count;
  const char *text;
  const uint8_t *ids; /* u32 at any alignment; NULL: the digests below */
  uint64_t ids_digest, text_digest;
} record;

typedef struct records {
  rung_map map[2];
  record *record;
  uint32_t count;
} records;

static inline uint32_t read_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
static inline uint64_t read_u64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
/* FNV-1a of 64 bits, as scripts/oracle/record_tokens.py writes it. */
static inline uint64_t digest(const void *data, size_t bytes) {
  uint64_t value = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < bytes; i++) value = (value ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
  return value;
}

/* tests/tokens/NAME, with its first eight bytes. */
static inline bool map_records(rung_map *m, rung_host *host, const char *name, const char *magic) {
  char full[1024];
  snprintf(full, sizeof full, "%s/tests/tokens/%s", RUNG_SOURCE_DIR, name);
  const rung_source source = rung_source_path(full);
  return !rung_map_open(m, host, &source, NULL) && m->size >= 12 && memcmp(m->data, magic, 8) == 0;
}
static inline void close_records(records *f) {
  free(f->record);
  rung_map_close(&f->map[0]);
  rung_map_close(&f->map[1]);
}

static inline bool encodes(const rung_tokenizer *t, const record *r, rung_ids *ids) {
  const unsigned flags = (r->flags & PARSE_SPECIAL ? RUNG_ENCODE_PARSE_SPECIAL : 0u) |
                         (r->flags & ADD_SPECIAL ? RUNG_ENCODE_ADD_SPECIAL : 0u);
  ids->count = 0;
  if (rung_tokenizer_encode(t, r->text, r->bytes, flags, NULL, ids) || ids->count != r->count) return false;
  if (!r->ids) return digest(ids->data, 4 * ids->count) == r->ids_digest;
  return !r->count || memcmp(ids->data, r->ids, 4 * (size_t)r->count) == 0;
}

static inline bool comes_back(const record *r, const rung_text *text) {
  if (!r->ids) return digest(text->data, text->length) == r->text_digest;
  return text->length == r->bytes && (!r->bytes || memcmp(text->data, r->text, r->bytes) == 0);
}
/* Ids to text, all at once and one at a time. The text itself comes back without the token that was put before it, and
 * whole characters went in, so that nothing may be left over. */
static inline bool decodes(const rung_tokenizer *t, const record *r, const rung_ids *ids, rung_text *text) {
  const size_t skip = r->ids && (r->flags & ADD_SPECIAL) && rung_tokenizer_adds_bos(t);
  text->length = 0;
  if (rung_tokenizer_decode(t, ids->data + skip, ids->count - skip, RUNG_DECODE_SPECIAL, NULL, text)) return false;
  if (!comes_back(r, text)) return false;
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  text->length = 0;
  for (size_t i = skip; i < ids->count; i++)
    if (rung_decoder_push(&decoder, ids->data[i], NULL, text)) return false;
  if (r->ids ? decoder.held_count != 0 : rung_decoder_flush(&decoder, NULL, text) != RUNG_OK) return false;
  return comes_back(r, text);
}

typedef struct threads {
  const rung_tokenizer *tokenizer;
  const records *records;
  rung_host *host;
  int64_t wrong;
} threads;
static inline void one_thread(void *self, int64_t task, int thread) {
  threads *w = self;
  (void)thread;
  rung_ids ids;
  rung_ids_init(&ids, w->host);
  for (uint32_t i = (uint32_t)task; i < w->records->count; i += 8)
    if (!encodes(w->tokenizer, &w->records->record[i], &ids)) __atomic_add_fetch(&w->wrong, 1, __ATOMIC_RELAXED);
  rung_ids_finish(&ids);
}

/* least_back: how many of them must come back as text at least. */
static inline void check_records(const rung_tokenizer *t, rung_host *host, const char *name, const records *f,
                                 int64_t least_back) {
  rung_ids ids;
  rung_text text;
  rung_ids_init(&ids, host);
  rung_text_init(&text, host);
  int64_t different = 0, not_back = 0, back = 0;
  uint64_t bytes = 0, spent = 0;
  CHECK(f->count >= 10000);
  for (uint32_t i = 0; i < f->count; i++) {
    const record *r = &f->record[i];
    const uint64_t before = rung_clock_ns();
    const bool equal = encodes(t, r, &ids);
    spent += rung_clock_ns() - before;
    bytes += r->bytes;
    if (!equal && ++different <= 3) TEST_FAIL_("%s: record %u: \"%.*s\"", name, i, (int)r->bytes, r->text);
    if (r->ids ? !(r->flags & ROUND_TRIPS) : !equal) continue;
    back++;
    if (!decodes(t, r, &ids, &text) && ++not_back <= 3)
      TEST_FAIL_("%s: record %u: \"%.*s\" comes back as \"%.*s\"", name, i, (int)r->bytes, r->text, (int)text.length,
                 text.length ? text.data : "");
  }
  printf("%s: %u strings, %.1f MB/s, %lld round trips\n", name, f->count, (double)bytes / (double)spent * 1e3,
         (long long)back);
  CHECK_EQ_I64(different, 0);
  CHECK_EQ_I64(not_back, 0);
  CHECK(back >= least_back);
  threads w = {t, f, host, 0};
  rung_pool_run(rung_pool_shared(host), 4, 8, one_thread, &w);
  CHECK_EQ_I64(w.wrong, 0);
  rung_text_finish(&text);
  rung_ids_finish(&ids);
}

#endif
