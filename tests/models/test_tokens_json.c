/* SPDX-License-Identifier: MIT
 * Tokenisers from tokenizer.json against Hugging Face's library: 10,000 recorded strings for each of nine files
 * (tests/tokens/README.md), ids equal, text back equal, as a stream too and from several threads. */
#include "fetched.h"
#include "formats/tokenizer_json.h"
#include "token_records.h"

static bool load(records *f, rung_host *host, const char *name) {
  char own_name[64];
  snprintf(own_name, sizeof own_name, "json/%s.bin", name);
  if (!map_records(&f->map[0], host, "json/texts.bin", "RUNGTOK1") ||
      !map_records(&f->map[1], host, own_name, "RUNGTOK2"))
    return false;
  const rung_map *texts = &f->map[0], *digests = &f->map[1];
  f->count = read_u32(texts->data + 8);
  if (read_u32(digests->data + 8) != f->count || digests->size != 12 + 20 * (uint64_t)f->count) return false;
  f->record = calloc(f->count, sizeof *f->record);
  const uint8_t *at = texts->data + 12, *end = texts->data + texts->size, *own = digests->data + 12;
  for (uint32_t i = 0; f->record && i < f->count; i++, own += 20) {
    if (end - at < 12 || (uint64_t)(end - at) - 12 < read_u32(at + 4)) return false;
    f->record[i] = (record){.flags = read_u32(at),
                            .bytes = read_u32(at + 4),
                            .count = read_u32(own),
                            .text = (const char *)at + 12,
                            .ids_digest = read_u64(own + 4),
                            .text_digest = read_u64(own + 12)};
    at += 12 + read_u32(at + 4);
  }
  return f->record && at == end;
}

static void check_recorded(const rung_tokenizer *t, rung_host *host, const char *name) {
  records f = {0};
  const bool loaded = load(&f, host, name);
  CHECK(loaded);
  if (loaded) check_records(t, host, name, &f, f.count);
  close_records(&f);
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
  if (t) check_recorded(t, host, name);
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
