/* SPDX-License-Identifier: MIT
 * The tokenisers of the two real models against 10,000 recorded strings each (tests/tokens/README.md): ids equal, text
 * back the same, also as a stream and from several threads; what a tokeniser costs in time and memory. */
#include <time.h>

#include "fetched.h"
#include "models/model.h"
#include "token_records.h"

static bool load(records *f, rung_host *host, const char *name) {
  if (!map_records(&f->map[0], host, name, "RUNGTOK1")) return false;
  const uint8_t *at = f->map[0].data, *end = at + f->map[0].size;
  f->count = read_u32(at + 8);
  f->record = calloc(f->count, sizeof *f->record);
  at += 12;
  for (uint32_t i = 0; f->record && i < f->count; i++) {
    if (end - at < 12) return false;
    record *r = &f->record[i];
    *r = (record){.flags = read_u32(at), .bytes = read_u32(at + 4), .count = read_u32(at + 8)};
    r->text = (const char *)(at += 12);
    if ((uint64_t)(end - at) < (uint64_t)r->bytes + 4 * (uint64_t)r->count) return false;
    r->ids = at + r->bytes;
    at = r->ids + 4 * (size_t)r->count;
  }
  return f->record && at == end;
}

static void check_file(const rung_tokenizer *t, rung_host *host, const char *name) {
  records f = {0};
  const bool loaded = load(&f, host, name);
  CHECK(loaded);
  if (loaded) check_records(t, host, name, &f, 9001);
  close_records(&f);
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
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_gguf *gguf = NULL;
  rung_tokenizer *t = make(host, "smollm2", 48, &gguf);
  if (!t) return;
  if (RUNG_HAVE_PCRE2) check_file(t, host, "smollm2.bin");
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
  check_file(t, host, "gemma3.bin");
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
