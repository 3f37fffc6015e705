/* SPDX-License-Identifier: MIT
 * Tokenisers from tokenizer.json against Hugging Face's library: 10,000 recorded strings for each of nine files
 * (tests/tokens/README.md), ids equal, text back equal, as a stream too and from several threads. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/map_file.h"
#include "base/pool.h"
#include "fetched.h"
#include "formats/tokenizer_json.h"
#include "test.h"

enum { PARSE_SPECIAL = 1, ADD_SPECIAL = 2 }; /* flags of a text */

typedef struct record {
  uint32_t flags, bytes, count;
  const char *text;
  uint64_t ids, decoded; /* digests */
} record;

typedef struct fixture {
  rung_map texts, digests;
  record *records;
  uint32_t count;
} fixture;

static uint32_t read_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
static uint64_t read_u64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
static uint64_t digest(const void *data, size_t bytes) {
  uint64_t value = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < bytes; i++) value = (value ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
  return value;
}

static bool map(rung_map *m, rung_host *host, const char *name, const char *magic) {
  char full[1024];
  snprintf(full, sizeof full, "%s/tests/tokens/json/%s.bin", RUNG_SOURCE_DIR, name);
  const rung_source source = rung_source_path(full);
  return !rung_map_open(m, host, &source, NULL) && m->size >= 12 && memcmp(m->data, magic, 8) == 0;
}

static bool load(fixture *f, rung_host *host, const char *name) {
  if (!map(&f->texts, host, "texts", "RUNGTOK1") || !map(&f->digests, host, name, "RUNGTOK2")) return false;
  f->count = read_u32(f->texts.data + 8);
  if (read_u32(f->digests.data + 8) != f->count || f->digests.size != 12 + 20 * (uint64_t)f->count) return false;
  f->records = calloc(f->count, sizeof *f->records);
  const uint8_t *at = f->texts.data + 12, *end = f->texts.data + f->texts.size, *own = f->digests.data + 12;
  for (uint32_t i = 0; f->records && i < f->count; i++, own += 20) {
    if (end - at < 12 || (uint64_t)(end - at) - 12 < read_u32(at + 4)) return false;
    f->records[i] = (record){read_u32(at),          read_u32(at + 4),  read_u32(own),
                             (const char *)at + 12, read_u64(own + 4), read_u64(own + 12)};
    at += 12 + read_u32(at + 4);
  }
  return f->records && at == end;
}

static void unload(fixture *f) {
  free(f->records);
  rung_map_close(&f->texts);
  rung_map_close(&f->digests);
}

static bool encodes(const rung_tokenizer *t, const record *r, rung_ids *ids) {
  const unsigned flags = (r->flags & PARSE_SPECIAL ? RUNG_ENCODE_PARSE_SPECIAL : 0u) |
                         (r->flags & ADD_SPECIAL ? RUNG_ENCODE_ADD_SPECIAL : 0u);
  ids->count = 0;
  if (rung_tokenizer_encode(t, r->text, r->bytes, flags, NULL, ids)) return false;
  return ids->count == r->count && digest(ids->data, 4 * ids->count) == r->ids;
}

/* Ids to text, all at once and one at a time. */
static bool decodes(const rung_tokenizer *t, const record *r, const rung_ids *ids, rung_text *text) {
  text->length = 0;
  if (rung_tokenizer_decode(t, ids->data, ids->count, RUNG_DECODE_SPECIAL, NULL, text)) return false;
  if (digest(text->data, text->length) != r->decoded) return false;
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  text->length = 0;
  for (size_t i = 0; i < ids->count; i++)
    if (rung_decoder_push(&decoder, ids->data[i], NULL, text)) return false;
  return !rung_decoder_flush(&decoder, NULL, text) && digest(text->data, text->length) == r->decoded;
}

typedef struct threads {
  const rung_tokenizer *tokenizer;
  const fixture *fixture;
  rung_host *host;
  int64_t wrong;
} threads;
static void one_thread(void *self, int64_t task, int thread) {
  threads *w = self;
  (void)thread;
  rung_ids ids;
  rung_ids_init(&ids, w->host);
  for (uint32_t i = (uint32_t)task; i < w->fixture->count; i += 8)
    if (!encodes(w->tokenizer, &w->fixture->records[i], &ids)) __atomic_add_fetch(&w->wrong, 1, __ATOMIC_RELAXED);
  rung_ids_finish(&ids);
}

static void check_records(const rung_tokenizer *t, rung_host *host, const char *name) {
  fixture f = {0};
  CHECK(load(&f, host, name));
  CHECK(f.count >= 10000);
  rung_ids ids;
  rung_text text;
  rung_ids_init(&ids, host);
  rung_text_init(&text, host);
  int64_t different = 0, not_back = 0;
  uint64_t bytes = 0, spent = 0;
  for (uint32_t i = 0; f.records && i < f.count; i++) {
    const record *r = &f.records[i];
    const uint64_t before = rung_clock_ns();
    const bool equal = encodes(t, r, &ids);
    spent += rung_clock_ns() - before;
    bytes += r->bytes;
    if (!equal && ++different <= 3) TEST_FAIL_("%s: record %u: \"%.*s\"", name, i, (int)r->bytes, r->text);
    if (equal && !decodes(t, r, &ids, &text) && ++not_back <= 3)
      TEST_FAIL_("%s: record %u: \"%.*s\" comes back as \"%.*s\"", name, i, (int)r->bytes, r->text, (int)text.length,
                 text.length ? text.data : "");
  }
  printf("%s: %u strings, %.1f MB/s\n", name, f.count, (double)bytes / (double)spent * 1e3);
  CHECK_EQ_I64(different, 0);
  CHECK_EQ_I64(not_back, 0);
  threads w = {t, &f, host, 0};
  if (f.records) rung_pool_run(rung_pool_shared(host), 4, 8, one_thread, &w);
  CHECK_EQ_I64(w.wrong, 0);
  rung_text_finish(&text);
  rung_ids_finish(&ids);
  unload(&f);
}

/* Made twice, from files that are read and not kept: nothing is left over. */
static rung_tokenizer *make(rung_host *host, const char *path) {
  const rung_source source = rung_source_path(path);
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  const uint64_t before = rung_host_memory(host).host;
  for (int i = 0; i < 2; i++) {
    rung_tokenizer_release(t);
    t = NULL;
    CHECK_EQ_I64(rung_host_memory(host).host, before);
    const uint64_t start = rung_clock_ns();
    const rung_status status = rung_tokenizer_json(host, &source, NULL, &error, &t);
    if (status) TEST_FAIL_("%s: %s", path, error.message);
    if (i && t)
      printf("%d tokens in %.1f ms, %.1f bytes a token\n", (int)rung_tokenizer_count(t),
             (double)(rung_clock_ns() - start) / 1e6,
             (double)(rung_host_memory(host).host - before) / rung_tokenizer_count(t));
  }
  return t;
}

static void check_file(const char *path, const char *name) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_tokenizer *t = make(host, path);
  if (t) check_records(t, host, name);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void check_small(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/tests/tokens/json/%s.json", RUNG_SOURCE_DIR, name);
  check_file(path, name);
}

static void test_cased(void) { check_small("cased"); }
static void test_words(void) { check_small("words"); }
static void test_fallback(void) { check_small("fallback"); }
static void test_pairs(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("ByteLevel needs PCRE2");
  check_small("pairs");
}
static void test_digits(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("ByteLevel needs PCRE2");
  check_small("digits");
}
static void test_llama3(void) {
  if (!RUNG_HAVE_PCRE2 || !RUNG_HAVE_UTF8PROC) SKIP("Split needs PCRE2, NFC utf8proc");
  check_small("llama3");
}
static void test_unigram(void) {
  if (!RUNG_HAVE_PCRE2 || !RUNG_HAVE_UTF8PROC) SKIP("Replace needs PCRE2, NFKC utf8proc");
  check_small("unigram");
}
static void test_unknown(void) {
  if (!RUNG_HAVE_UTF8PROC) SKIP("NFKD needs utf8proc");
  check_small("unknown");
}

/* The folder as it is: roles come from tokenizer_config.json, the length from tokenizer.json. */
static void test_minilm(void) {
  if (!RUNG_HAVE_UTF8PROC) SKIP("strip_accents needs utf8proc");
  char path[1024], file[1100];
  if (!fetched_model("minilm", path, sizeof path)) {
    TEST_FAIL_("minilm is not there (scripts/models.py fetches it)");
    return;
  }
  snprintf(file, sizeof file, "%s/tokenizer.json", path);
  check_file(file, "minilm");
  rung_host *host = NULL;
  rung_tokenizer *t = NULL;
  rung_error error = {0};
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  CHECK_OK(rung_tokenizer_json_folder(host, path, &error, &t));
  if (t) {
    const rung_token_ids *ids = rung_tokenizer_ids(t);
    CHECK_EQ_I64(ids->pad, 0);
    CHECK_EQ_I64(ids->unknown, 100);
    CHECK_EQ_I64(ids->bos, 101);
    CHECK_EQ_I64(ids->separator, 102);
    CHECK_EQ_I64(ids->mask, 103);
    CHECK_EQ_I64(rung_tokenizer_count(t), 30522);
    CHECK_EQ_I64(rung_tokenizer_truncation(t), 128);
    size_t before = 0, after = 0;
    CHECK(rung_tokenizer_before(t, &before)[0] == 101 && before == 1);
    CHECK(rung_tokenizer_after(t, &after)[0] == 102 && after == 1);
  }
  rung_tokenizer_release(t);
  rung_host_release(host);
}

int main(void) {
  RUN(test_minilm);
  RUN(test_cased);
  RUN(test_words);
  RUN(test_pairs);
  RUN(test_llama3);
  RUN(test_digits);
  RUN(test_fallback);
  RUN(test_unknown);
  RUN(test_unigram);
  return TEST_END();
}
