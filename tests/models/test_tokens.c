/* SPDX-License-Identifier: MIT
 * The tokenisers of the two real models against 10,000 recorded strings each (tests/tokens/README.md): ids equal, text
 * back the same, also as a stream and from several threads; what a tokeniser costs in time and memory. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/map_file.h"
#include "base/pool.h"
#include "fetched.h"
#include "models/model.h"
#include "test.h"

enum { PARSE_SPECIAL = 1, ADD_SPECIAL = 2, ROUND_TRIPS = 4 }; /* flags of a record */

typedef struct record {
  uint32_t flags, bytes, count;
  const char *text;
  const uint8_t *ids; /* u32 at any alignment */
} record;

typedef struct fixture {
  rung_map map;
  record *records;
  uint32_t count;
} fixture;

static uint32_t read_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static bool load(fixture *f, rung_host *host, const char *name) {
  const char *path = RUNG_SOURCE_DIR "/tests/tokens/";
  char full[1024];
  snprintf(full, sizeof full, "%s%s", path, name);
  const rung_source source = rung_source_path(full);
  if (rung_map_open(&f->map, host, &source, NULL)) return false;
  const uint8_t *at = f->map.data, *end = at + f->map.size;
  if (f->map.size < 12 || memcmp(at, "RUNGTOK1", 8) != 0) return false;
  f->count = read_u32(at + 8);
  f->records = calloc(f->count, sizeof *f->records);
  at += 12;
  for (uint32_t i = 0; f->records && i < f->count; i++) {
    if (end - at < 12) return false;
    record *r = &f->records[i];
    *r = (record){read_u32(at), read_u32(at + 4), read_u32(at + 8), (const char *)at + 12, NULL};
    at += 12;
    if ((uint64_t)(end - at) < (uint64_t)r->bytes + 4 * (uint64_t)r->count) return false;
    r->ids = at + r->bytes;
    at = r->ids + 4 * (size_t)r->count;
  }
  return f->records && at == end;
}

static unsigned encode_flags(const record *r) {
  return (r->flags & PARSE_SPECIAL ? RUNG_ENCODE_PARSE_SPECIAL : 0u) |
         (r->flags & ADD_SPECIAL ? RUNG_ENCODE_ADD_SPECIAL : 0u);
}

static bool encodes(const rung_tokenizer *t, const record *r, rung_ids *ids) {
  ids->count = 0;
  if (rung_tokenizer_encode(t, r->text, r->bytes, encode_flags(r), NULL, ids)) return false;
  return ids->count == r->count && (!r->count || memcmp(ids->data, r->ids, 4 * (size_t)r->count) == 0);
}

/* Ids to text, all at once and one at a time. */
static bool decodes(const rung_tokenizer *t, const record *r, const rung_ids *ids, rung_text *text) {
  const size_t skip = (r->flags & ADD_SPECIAL) && rung_tokenizer_adds_bos(t);
  text->length = 0;
  if (rung_tokenizer_decode(t, ids->data + skip, ids->count - skip, RUNG_DECODE_SPECIAL, NULL, text)) return false;
  if (text->length != r->bytes || (r->bytes && memcmp(text->data, r->text, r->bytes) != 0)) return false;
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  text->length = 0;
  for (size_t i = skip; i < ids->count; i++)
    if (rung_decoder_push(&decoder, ids->data[i], NULL, text)) return false;
  if (decoder.held_count) return false; /* whole characters went in */
  return text->length == r->bytes && (!r->bytes || memcmp(text->data, r->text, r->bytes) == 0);
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
  int64_t different = 0, not_back = 0, back = 0;
  uint64_t bytes = 0, spent = 0;
  for (uint32_t i = 0; f.records && i < f.count; i++) {
    const record *r = &f.records[i];
    const uint64_t before = rung_clock_ns();
    const bool equal = encodes(t, r, &ids);
    spent += rung_clock_ns() - before;
    bytes += r->bytes;
    if (!equal && ++different <= 3) TEST_FAIL_("%s: record %u: \"%.*s\"", name, i, (int)r->bytes, r->text);
    if (!(r->flags & ROUND_TRIPS)) continue;
    back++;
    not_back += !decodes(t, r, &ids, &text);
  }
  printf("%s: %u strings, %.1f MB/s, %lld round trips\n", name, f.count, (double)bytes / (double)spent * 1e3,
         (long long)back);
  CHECK_EQ_I64(different, 0);
  CHECK_EQ_I64(not_back, 0);
  CHECK(back > 9000);
  threads w = {t, &f, host, 0};
  if (f.records) rung_pool_run(rung_pool_shared(host), 4, 8, one_thread, &w);
  CHECK_EQ_I64(w.wrong, 0);
  rung_text_finish(&text);
  rung_ids_finish(&ids);
  free(f.records);
  rung_map_close(&f.map);
}

/* Creation stands between a user and the first token: its time is printed. Beyond the texts in
 * the file a token may cost a few tens of bytes. */
static rung_tokenizer *make(rung_host *host, const char *model, uint64_t token_bytes, rung_gguf **out_gguf) {
  char path[1024];
  rung_gguf *gguf = NULL;
  rung_error error = {0};
  if (!fetched_model(model, path, sizeof path)) {
    TEST_FAIL_("%s is not there (scripts/models.py fetches it)", model);
    return NULL;
  }
  const rung_source source = rung_source_path(path);
  CHECK_OK(rung_gguf_open(host, &source, &error, &gguf));
  rung_tokenizer *t = NULL;
  double best = 1e9;
  const uint64_t before = rung_host_memory(host).host;
  for (int i = 0; i < 5; i++) {
    rung_tokenizer_release(t);
    t = NULL;
    CHECK_EQ_I64(rung_host_memory(host).host, before);
    const clock_t start = clock();
    CHECK_OK(rung_gguf_tokenizer(gguf, &error, &t));
    const double ms = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
    if (ms < best) best = ms;
  }
  if (t) {
    const uint64_t bytes = rung_host_memory(host).host - before;
    printf("%s: %d tokens, made in %.1f ms, %.1f bytes a token\n", model, (int)rung_tokenizer_count(t), best,
           (double)bytes / rung_tokenizer_count(t));
    CHECK(bytes < token_bytes * (uint64_t)rung_tokenizer_count(t));
  }
  *out_gguf = gguf; /* must stay: token texts lie in it */
  return t;
}

static void test_smollm2(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("its pre-tokeniser needs PCRE2");
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_gguf *gguf = NULL;
  rung_tokenizer *t = make(host, "smollm2", 48, &gguf);
  if (!t) return;
  check_records(t, host, "smollm2.bin");
  CHECK_EQ_I64(rung_tokenizer_find(t, "<|im_start|>", 12), 1);
  CHECK(rung_tokenizer_is_eog(t, 2) && rung_tokenizer_is_eog(t, 0) && !rung_tokenizer_is_eog(t, 1));
  CHECK(!rung_tokenizer_adds_bos(t) && !rung_tokenizer_adds_eos(t));
  rung_tokenizer_release(t);
  rung_gguf_release(gguf);
  rung_host_release(host);
}

static void test_gemma3(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_gguf *gguf = NULL;
  rung_tokenizer *t = make(host, "gemma3", 32, &gguf);
  if (!t) return;
  check_records(t, host, "gemma3.bin");
  CHECK_EQ_I64(rung_tokenizer_find(t, "<end_of_turn>", 13), 106);
  CHECK(rung_tokenizer_is_eog(t, 1) && rung_tokenizer_is_eog(t, 106) && !rung_tokenizer_is_eog(t, 2));
  CHECK(!rung_tokenizer_is_eog(t, rung_tokenizer_find(t, "</s>", 4))); /* HTML there */
  CHECK(rung_tokenizer_adds_bos(t) && !rung_tokenizer_adds_eos(t));
  rung_tokenizer_release(t);
  rung_gguf_release(gguf);
  rung_host_release(host);
}

int main(void) {
  RUN(test_smollm2);
  RUN(test_gemma3);
  return TEST_END();
}
