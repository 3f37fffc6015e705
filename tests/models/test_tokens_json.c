/* SPDX-License-Identifier: MIT
 * Tokenisers from tokenizer.json against Hugging Face's library: 10,000 recorded strings for each of twelve files
 * (tests/tokens/README.md), ids equal, text back equal, as a stream too and from several threads. */
#include "fetched.h"
#include "formats/gguf.h"
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

/* ---- the table that precompiled.json leaves out ---- */

static size_t put_base64(const uint8_t *data, size_t bytes, char *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t n = 0;
  for (size_t i = 0; i < bytes; i += 3) {
    const size_t left = bytes - i;
    const uint32_t three =
        (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0u);
    for (int k = 0; k < 4; k++) out[n++] = left + 1 > (size_t)k ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return n;
}

/* The file's text with the table of a vocabulary that llama.cpp ships; the caller frees it. */
static char *splice(rung_host *host, const char *path, size_t *out_length) {
  static const char mark[] = "\"precompiled_charsmap\":\"";
  char folder[1024], name[1100];
  if (!fetched_model("llama-cpp-src", folder, sizeof folder)) {
    TEST_FAIL_("llama-cpp-src is not there (scripts/models.py fetches %s)", "it");
    return NULL;
  }
  snprintf(name, sizeof name, "%s/vendor/llama.cpp/models/ggml-vocab-nomic-bert-moe.gguf", folder);
  const rung_source source = rung_source_path(path), other = rung_source_path(name);
  rung_map map = {0};
  rung_gguf *gguf = NULL;
  rung_gguf_entry table = {.count = 0};
  CHECK_OK(rung_map_open(&map, host, &source, NULL));
  CHECK_OK(rung_gguf_open(host, &other, NULL, &gguf));
  CHECK_OK(rung_gguf_get_array(gguf, "tokenizer.ggml.precompiled_charsmap", RUNG_GGUF_INTEGER, NULL, &table));
  char *text = malloc((size_t)(map.size + table.count / 3 * 4 + 4));
  const char *data = (const char *)map.data;
  size_t at = 0;
  while (at + sizeof mark < map.size && memcmp(data + at, mark, sizeof mark - 1) != 0) at++;
  at += sizeof mark - 1;
  size_t n = at;
  memcpy(text, data, at);
  n += put_base64(table.data, (size_t)table.count, text + n);
  memcpy(text + n, data + at, (size_t)map.size - at);
  *out_length = n + (size_t)map.size - at;
  rung_gguf_release(gguf);
  rung_map_close(&map);
  return text;
}

/* Made twice, from files that are read and not kept: nothing is left over. */
static rung_tokenizer *make(rung_host *host, const char *path, const char *text, size_t length) {
  const rung_source source = text ? rung_source_memory(text, length) : rung_source_path(path);
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
  const bool table = strcmp(name, "precompiled") == 0;
  size_t length = 0;
  char *text = table ? splice(host, path, &length) : NULL;
  rung_tokenizer *t = !table || text ? make(host, path, text, length) : NULL;
  free(text);
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
static void test_precompiled(void) {
  if (!RUNG_HAVE_PCRE2 || !RUNG_HAVE_UTF8PROC) SKIP("Replace needs PCRE2, graphemes utf8proc");
  check_small("precompiled");
}
static void test_suffix(void) {
  if (!RUNG_HAVE_PCRE2 || !RUNG_HAVE_UTF8PROC) SKIP("Split needs PCRE2, NFC utf8proc");
  check_small("suffix");
}
static void test_level(void) { check_small("level"); }
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
  RUN(test_precompiled);
  RUN(test_suffix);
  RUN(test_level);
  return TEST_END();
}
