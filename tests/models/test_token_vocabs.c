/* SPDX-License-Identifier: MIT
 * Every vocabulary that llama.cpp ships: the texts with ids that lie beside it, then 10,000 recorded strings
 * (tests/tokens/README.md) and broken UTF-8; text back equal; each pre-tokeniser's cuts. */
#include "fetched.h"
#include "models/model.h"
#include "text/pretokenise.h"
#include "text/utf8.h"
#include "token_records.h"

enum { BROKEN = 500, LEAST = 10000 };

/* The strings that all vocabularies share. */
static bool load_texts(records *f, rung_host *host) {
  if (!map_records(&f->map[0], host, "vocab/texts.bin", "RUNGTOK1")) return false;
  const uint8_t *at = f->map[0].data, *end = at + f->map[0].size;
  f->count = read_u32(at + 8);
  f->record = calloc(f->count, sizeof *f->record);
  at += 12;
  for (uint32_t i = 0; f->record && i < f->count; i++) {
    if (end - at < 12 || (uint64_t)(end - at) - 12 < read_u32(at + 4)) return false;
    f->record[i] = (record){.flags = read_u32(at), .bytes = read_u32(at + 4), .text = (const char *)at + 12};
    at += 12 + read_u32(at + 4);
  }
  return f->record && at == end;
}

static uint32_t folded(const void *data, size_t bytes) {
  const uint64_t value = digest(data, bytes);
  const uint32_t small = (uint32_t)(value ^ value >> 32);
  return small ? small : 1;
}

typedef struct opened {
  rung_host *host;
  rung_gguf *gguf;
  rung_tokenizer *tokenizer;
  char path[1100];
} opened;

static bool open_vocabulary(opened *o, const char *name) {
  char folder[1024];
  *o = (opened){0};
  if (!fetched_model("llama-cpp-src", folder, sizeof folder)) {
    TEST_FAIL_("llama-cpp-src is not there (scripts/models.py fetches it)%s", "");
    return false;
  }
  snprintf(o->path, sizeof o->path, "%s/vendor/llama.cpp/models/ggml-vocab-%s.gguf", folder, name);
  CHECK_OK(rung_host_create(NULL, NULL, &o->host));
  const rung_source source = rung_source_path(o->path);
  rung_error error = {0};
  rung_status status = rung_gguf_open(o->host, &source, &error, &o->gguf);
  if (!status) status = rung_gguf_tokenizer(o->gguf, &error, &o->tokenizer);
  if (status) TEST_FAIL_("%s: %s", name, error.message);
  return status == RUNG_OK;
}
static void close_vocabulary(opened *o) {
  rung_tokenizer_release(o->tokenizer);
  rung_gguf_release(o->gguf);
  rung_host_release(o->host);
}

/* ---- the texts beside the vocabulary ---- */

static void check_block(const opened *o, const char *text, size_t length, const char *ids, size_t ids_length,
                        rung_ids *got) {
  size_t n = 0;
  bool equal = true;
  got->count = 0;
  CHECK_OK(rung_tokenizer_encode(o->tokenizer, text, length, 0, NULL, got));
  for (size_t at = 0; at < ids_length; n++) {
    while (at < ids_length && ids[at] == ' ') at++;
    if (at == ids_length) break;
    int32_t id = 0;
    for (; at < ids_length && ids[at] != ' '; at++) id = id * 10 + (ids[at] - '0');
    equal = equal && n < got->count && got->data[n] == id;
  }
  if (!equal || n != got->count) TEST_FAIL_("%s: \"%.*s\" has other ids", o->path, (int)length, text);
}

static void check_beside(const opened *o) {
  static const char separator[] = "\n__ggml_vocab_test__\n";
  char name[1200];
  rung_map text = {0}, ids = {0};
  snprintf(name, sizeof name, "%s.inp", o->path);
  const rung_source inp = rung_source_path(name);
  if (rung_map_open(&text, o->host, &inp, NULL)) return; /* some have none */
  snprintf(name, sizeof name, "%s.out", o->path);
  const rung_source out = rung_source_path(name);
  CHECK_OK(rung_map_open(&ids, o->host, &out, NULL));
  rung_ids got;
  rung_ids_init(&got, o->host);
  size_t from = 0, line = 0, blocks = 0;
  const char *data = (const char *)text.data, *numbers = (const char *)ids.data;
  while (from < text.size) {
    size_t end = from;
    while (end < text.size &&
           (text.size - end < sizeof separator - 1 || memcmp(data + end, separator, sizeof separator - 1) != 0))
      end++;
    size_t stop = line;
    while (stop < ids.size && numbers[stop] != '\n') stop++;
    if (end < text.size) { /* what follows the last separator is no test */
      check_block(o, data + from, end - from, numbers + line, stop - line, &got);
      blocks++;
    }
    from = end + sizeof separator - 1;
    line = stop + 1;
  }
  printf("%zu texts beside it\n", blocks);
  CHECK(blocks > 40);
  rung_ids_finish(&got);
  rung_map_close(&ids);
  rung_map_close(&text);
}

/* ---- recorded strings ---- */

/* The ids' text, all at once and as a stream of which every part is whole characters. */
static bool streams(const rung_tokenizer *t, const rung_ids *ids, rung_text *text, rung_text *other) {
  text->length = other->length = 0;
  if (rung_tokenizer_decode(t, ids->data, ids->count, RUNG_DECODE_SPECIAL, NULL, text)) return false;
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  for (size_t i = 0; i < ids->count; i++) {
    const size_t before = other->length;
    if (rung_decoder_push(&decoder, ids->data[i], NULL, other)) return false;
    const size_t added = other->length - before;
    if (added && rung_utf8_valid_prefix((const uint8_t *)other->data + before, added) != added) return false;
  }
  if (rung_decoder_flush(&decoder, NULL, other) || text->length != other->length) return false;
  return !text->length || memcmp(text->data, other->data, text->length) == 0;
}

static void check_strings(const opened *o, const char *name, bool lossless) {
  char file[64];
  records f = {0};
  snprintf(file, sizeof file, "vocab/%s.bin", name);
  const bool loaded = load_texts(&f, o->host) && map_records(&f.map[1], o->host, file, "RUNGTOK3") &&
                      f.map[1].size == 12 + 4 * (uint64_t)f.count;
  CHECK(loaded);
  rung_ids ids;
  rung_text text, other;
  rung_ids_init(&ids, o->host);
  rung_text_init(&text, o->host);
  rung_text_init(&other, o->host);
  int64_t compared = 0, different = 0, broken = 0, not_back = 0;
  for (uint32_t i = 0; loaded && i < f.count; i++) {
    const record *r = &f.record[i];
    const uint32_t want = read_u32(f.map[1].data + 12 + 4 * (size_t)i);
    const unsigned flags = (r->flags & PARSE_SPECIAL ? RUNG_ENCODE_PARSE_SPECIAL : 0u) |
                           (r->flags & ADD_SPECIAL ? RUNG_ENCODE_ADD_SPECIAL : 0u);
    if (!want) continue;
    const bool is_broken = i + BROKEN >= f.count;
    ids.count = 0;
    CHECK_OK(rung_tokenizer_encode(o->tokenizer, r->text, r->bytes, flags, NULL, &ids));
    is_broken ? broken++ : compared++;
    if (folded(ids.data, 4 * ids.count) != want && ++different <= 3) {
      TEST_FAIL_("%s: string %u, flags %u: \"%.*s\"", name, i, r->flags, (int)r->bytes, r->text);
      for (size_t k = 0; k < ids.count; k++) printf(" %d", (int)ids.data[k]);
      printf("\n");
    }
    bool back = streams(o->tokenizer, &ids, &text, &other);
    if (lossless && !is_broken && !(r->flags & ADD_SPECIAL))
      back = back && text.length == r->bytes && (!r->bytes || memcmp(text.data, r->text, r->bytes) == 0);
    if (!back && ++not_back <= 3)
      TEST_FAIL_("%s: string %u: \"%.*s\" comes back as \"%.*s\"", name, i, (int)r->bytes, r->text, (int)text.length,
                 text.length ? text.data : "");
  }
  printf("%s: %lld strings and %lld of broken UTF-8\n", name, (long long)compared, (long long)broken);
  CHECK(compared >= LEAST && broken >= BROKEN - 20);
  CHECK_EQ_I64(different, 0);
  CHECK_EQ_I64(not_back, 0);
  rung_ids_finish(&ids);
  rung_text_finish(&text);
  rung_text_finish(&other);
  close_records(&f);
}

/* `lossless`: the vocabulary can say every text. */
static void check_vocabulary(const char *name, bool lossless) {
  opened o;
  if (open_vocabulary(&o, name)) {
    check_beside(&o);
    check_strings(&o, name, lossless);
  }
  close_vocabulary(&o);
}

/* The n-th allocation fails, for each n, in models that are made of steps: OUT_OF_MEMORY, and nothing stays. */
static void check_failing(const char *name) {
  opened o;
  if (open_vocabulary(&o, name)) {
    rung_tokenizer_release(o.tokenizer);
    o.tokenizer = NULL;
    const uint64_t before = rung_host_memory(o.host).host;
    for (int64_t n = 1, hit = 1; hit; n++) {
      static const char text[] = "\xEF\xBC\xA1 na\xC3\xAFve <mask> text\n\xF0\x9F\x98\x80";
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      rung_ids ids;
      rung_text back;
      rung_ids_init(&ids, o.host);
      rung_text_init(&back, o.host);
      rung_tokenizer *t = NULL;
      rung_host_set_fault(o.host, test_fault_hit, &fault);
      rung_status status = rung_gguf_tokenizer(o.gguf, NULL, &t);
      if (!status) status = rung_tokenizer_encode(t, text, sizeof text - 1, 3, NULL, &ids);
      if (!status) status = rung_tokenizer_decode(t, ids.data, ids.count, 0, NULL, &back);
      rung_host_set_fault(o.host, NULL, NULL);
      CHECK_STATUS(status, fault.hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
      rung_ids_finish(&ids);
      rung_text_finish(&back);
      rung_tokenizer_release(t);
      CHECK_EQ_I64(rung_host_memory(o.host).host, before);
      hit = fault.hit;
      if (!hit) CHECK(n > 15);
    }
  }
  close_vocabulary(&o);
}
static void test_failing_wordpiece(void) {
  if (!RUNG_HAVE_UTF8PROC) SKIP("strip_accents needs utf8proc");
  check_failing("bert-bge");
}

#define VOCABULARY(function, name, lossless) \
  static void test_##function(void) { check_vocabulary(name, lossless); }
#define BY_PATTERN(function, name, lossless)                     \
  static void test_##function(void) {                            \
    if (!RUNG_HAVE_PCRE2) SKIP("its pre-tokeniser needs PCRE2"); \
    check_vocabulary(name, lossless);                            \
  }

BY_PATTERN(aquila, "aquila", true)
VOCABULARY(baichuan, "baichuan", false)
static void test_bert_bge(void) {
  if (!RUNG_HAVE_UTF8PROC) SKIP("strip_accents needs utf8proc");
  check_vocabulary("bert-bge", false);
}
BY_PATTERN(command_r, "command-r", true)
BY_PATTERN(deepseek_coder, "deepseek-coder", true)
BY_PATTERN(deepseek_llm, "deepseek-llm", true)
BY_PATTERN(falcon, "falcon", false)
VOCABULARY(gemma_4, "gemma-4", false)
BY_PATTERN(gpt_2, "gpt-2", true)
BY_PATTERN(gpt_neox, "gpt-neox", true)
BY_PATTERN(llama_bpe, "llama-bpe", true)
VOCABULARY(llama_spm, "llama-spm", false)
BY_PATTERN(mpt, "mpt", true)
VOCABULARY(nomic_bert_moe, "nomic-bert-moe", false)
VOCABULARY(phi_3, "phi-3", false)
BY_PATTERN(qwen2, "qwen2", true)
BY_PATTERN(qwen35, "qwen35", true)
BY_PATTERN(refact, "refact", false)
BY_PATTERN(starcoder, "starcoder", false)

/* ---- cuts ---- */

typedef struct pieces {
  uint32_t length[4096];
  size_t count;
} pieces;
static rung_status collect(void *self, const char *text, size_t length, rung_error *error) {
  pieces *p = self;
  (void)text, (void)error;
  if (p->count < RUNG_COUNT(p->length)) p->length[p->count++] = (uint32_t)length;
  return RUNG_OK;
}

static void check_cuts(const rung_cutter *cutter, const char *name, const records *f, const uint8_t *at,
                       uint32_t count) {
  int64_t different = 0;
  for (uint32_t i = 0; i < count; i++) {
    const record *r = &f->record[i];
    pieces p = {.count = 0};
    CHECK_OK(rung_cutter_run(cutter, r->text, r->bytes, true, collect, &p, NULL));
    const uint32_t want = at[2 * i] | (uint32_t)at[2 * i + 1] << 8;
    if ((folded(p.length, p.count * sizeof *p.length) & 0xFFFF) != want && ++different <= 3)
      TEST_FAIL_("%s cuts string %u otherwise: \"%.*s\"", name, i, (int)r->bytes, r->text);
  }
  CHECK_EQ_I64(different, 0);
}

static void test_cuts(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("pre-tokenisers need PCRE2");
  rung_host *host = NULL;
  records f = {0};
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  const bool loaded = load_texts(&f, host) && map_records(&f.map[1], host, "vocab/cuts.bin", "RUNGCUT1");
  CHECK(loaded);
  const uint32_t rows = loaded ? read_u32(f.map[1].data + 8) : 0, count = loaded ? read_u32(f.map[1].data + 12) : 0;
  CHECK(count >= LEAST && count <= f.count && f.map[1].size == 16 + (uint64_t)rows * (32 + 2 * (uint64_t)count));
  const uint8_t *at = loaded ? f.map[1].data + 16 : NULL;
  for (uint32_t i = 0; i < rows && count <= f.count; i++, at += 32 + 2 * (size_t)count) {
    char name[33] = {0};
    memcpy(name, at, 32);
    rung_cutter *cutter = NULL;
    CHECK_OK(rung_pretokeniser_create(host, name, NULL, &cutter));
    if (cutter) check_cuts(cutter, name, &f, at + 32, count);
    rung_cutter_destroy(cutter);
  }
  printf("%u pre-tokenisers, %u strings each\n", rows, count);
  close_records(&f);
  rung_error error = {0};
  rung_cutter *none = NULL;
  CHECK_STATUS(rung_pretokeniser_create(host, "kimi-k2", &error, &none), RUNG_UNSUPPORTED);
  CHECK(strstr(error.message, "kimi-k2") != NULL);
  rung_host_release(host);
}

int main(void) {
  RUN(test_cuts);
  RUN(test_failing_wordpiece);
  RUN(test_aquila);
  RUN(test_baichuan);
  RUN(test_bert_bge);
  RUN(test_command_r);
  RUN(test_deepseek_coder);
  RUN(test_deepseek_llm);
  RUN(test_falcon);
  RUN(test_gemma_4);
  RUN(test_gpt_2);
  RUN(test_gpt_neox);
  RUN(test_llama_bpe);
  RUN(test_llama_spm);
  RUN(test_mpt);
  RUN(test_nomic_bert_moe);
  RUN(test_phi_3);
  RUN(test_qwen2);
  RUN(test_qwen35);
  RUN(test_refact);
  RUN(test_starcoder);
  return TEST_END();
}
