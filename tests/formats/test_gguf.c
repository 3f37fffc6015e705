/* SPDX-License-Identifier: MIT
 * GGUF: what is written is read back, typed getters, files of another writer, memory, pages. */
#define _GNU_SOURCE
#include <unistd.h>

#include "formats/make_gguf.h"
#include "formats/walk_gguf.h"
#include "weights/store.h"

#ifndef RUNG_SOURCE_DIR
#define RUNG_SOURCE_DIR "."
#endif

static rung_host *host;
static rung_error error;

static bool text_is(rung_gguf_text text, const char *want) {
  return text.length == strlen(want) && memcmp(text.data, want, strlen(want)) == 0;
}

static void check_single_values(const rung_gguf *g, const char *prefix) {
  static const struct {
    const char *key;
    int64_t value;
  } integers[] = {{"u8", 200},     {"i8", -100},         {"u16", 60000},
                  {"i16", -30000}, {"i32", -2000000000}, {"i64", -(INT64_C(1) << 62)}};
  char key[64];
  for (size_t i = 0; i < RUNG_COUNT(integers); i++) {
    int64_t s = 0;
    uint64_t u = 0;
    snprintf(key, sizeof key, "%s.%s", prefix, integers[i].key);
    CHECK_OK(rung_gguf_get_i64(g, key, &error, &s));
    CHECK_EQ_I64(s, integers[i].value);
    CHECK_STATUS(rung_gguf_get_u64(g, key, &error, &u), s < 0 ? RUNG_OUT_OF_RANGE : RUNG_OK);
    CHECK(s < 0 || u == (uint64_t)s);
  }
  uint64_t u = 0;
  int64_t s = 0;
  double d = 0;
  bool b = false;
  rung_gguf_text text;
  snprintf(key, sizeof key, "%s.u64", prefix);
  CHECK_OK(rung_gguf_get_u64(g, key, &error, &u));
  CHECK(u == (UINT64_C(1) << 63) + 5);
  CHECK_STATUS(rung_gguf_get_i64(g, key, &error, &s), RUNG_OUT_OF_RANGE);
  snprintf(key, sizeof key, "%s.f32", prefix);
  CHECK_OK(rung_gguf_get_f64(g, key, &error, &d));
  CHECK(d == (double)0.1f);
  snprintf(key, sizeof key, "%s.f64", prefix);
  CHECK_OK(rung_gguf_get_f64(g, key, &error, &d));
  CHECK(d == 0.1);
  snprintf(key, sizeof key, "%s.bool", prefix);
  CHECK_OK(rung_gguf_get_bool(g, key, &error, &b));
  CHECK(b);
  CHECK_OK(rung_gguf_get_text(g, "general.architecture", &error, &text));
  CHECK(text_is(text, "llama"));
}

static void check_arrays(const rung_gguf *g, const char *prefix) {
  char key[64];
  rung_gguf_entry a;
  snprintf(key, sizeof key, "%s.ints", prefix);
  CHECK_OK(rung_gguf_get_array(g, key, RUNG_GGUF_INTEGER, &error, &a));
  CHECK(a.count == 3 && a.array);
  snprintf(key, sizeof key, "%s.floats", prefix);
  CHECK_OK(rung_gguf_get_array(g, key, RUNG_GGUF_FLOAT, &error, &a));
  CHECK(a.count >= 2);
  snprintf(key, sizeof key, "%s.texts", prefix);
  CHECK_OK(rung_gguf_get_array(g, key, RUNG_GGUF_TEXT, &error, &a));
  CHECK_EQ_I64(a.count, 3);
  CHECK(text_is(rung_gguf_entry_text(&a, 0), "a") && text_is(rung_gguf_entry_text(&a, 1), "") &&
        text_is(rung_gguf_entry_text(&a, 2), "ccc"));
}

static void check_tensors(const rung_gguf *g) {
  CHECK_EQ_I64(rung_gguf_tensor_count(g), 5);
  const rung_gguf_tensor *t = rung_gguf_tensor_find(g, "token_embd.weight");
  CHECK(t && t->type == RUNG_TYPE_F32 && t->rank == 2 && t->extent[0] == 2 && t->extent[1] == 3 && t->bytes == 24);
  CHECK(t && memcmp(rung_gguf_tensor_data(g, t), make_numbers, 24) == 0);
  t = rung_gguf_tensor_find(g, "blk.0.attn_q.weight");
  CHECK(t && t->type == RUNG_TYPE_Q4_0 && t->extent[1] == 32 && t->bytes == 36);
  t = rung_gguf_tensor_find(g, "scalar");
  CHECK(t && t->rank == 0 && t->bytes == 4);
  t = rung_gguf_tensor_find(g, "deep");
  CHECK(t && t->rank == 4 && t->extent[0] == 1 && t->extent[3] == 4 && t->bytes == 24);
  t = rung_gguf_tensor_find(g, "zeros");
  CHECK(t && t->bytes == 10 && ((const uint8_t *)rung_gguf_tensor_data(g, t))[9] == 0);
  CHECK(!rung_gguf_tensor_find(g, "token_embd.weigh") && !rung_gguf_tensor_find(g, ""));
}

static void test_round_trip(void) {
  static const uint32_t alignments[] = {0, 8, 64, 4096};
  for (size_t i = 0; i < RUNG_COUNT(alignments); i++) {
    const made_file file = make_small(host, alignments[i]);
    rung_gguf *g = NULL;
    CHECK_OK(open_bytes(host, file.data, file.bytes, &error, &g));
    if (!g) return;
    CHECK_EQ_I64(rung_gguf_version(g), 3);
    CHECK_EQ_I64(rung_gguf_alignment(g), alignments[i] ? alignments[i] : 32);
    check_single_values(g, "t");
    check_arrays(g, "t");
    check_tensors(g);
    walk_gguf(g);
    CHECK_EQ_I64(rung_gguf_release_metadata(g), 0); /* not ours to let go */
    rung_gguf_retain(g);
    rung_gguf_release(g);
    rung_gguf_release(g);
    free(file.data);
  }
  rung_gguf_release(NULL);
}

static void test_getters_refuse(void) {
  const made_file file = make_small(host, 0);
  rung_gguf *g = NULL;
  CHECK_OK(open_bytes(host, file.data, file.bytes, &error, &g));
  uint64_t u = 7;
  int64_t s = 7;
  double d = 7;
  bool b = true;
  rung_gguf_text text = {"x", 1};
  rung_gguf_entry a;
  CHECK_STATUS(rung_gguf_get_u64(g, "nowhere", &error, &u), RUNG_NOT_FOUND);
  CHECK(strstr(error.message, "nowhere") != NULL);
  CHECK_STATUS(rung_gguf_get_u64(g, "t.f32", &error, &u), RUNG_TYPE_MISMATCH);
  CHECK(strstr(error.message, "t.f32") && strstr(error.message, "offset") && strstr(error.message, "f32, not integer"));
  CHECK_STATUS(rung_gguf_get_i64(g, "t.ints", &error, &s), RUNG_TYPE_MISMATCH);
  CHECK(strstr(error.message, "an array of i32, not integer") != NULL);
  CHECK_STATUS(rung_gguf_get_f64(g, "t.u8", &error, &d), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_gguf_get_bool(g, "t.u8", &error, &b), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_gguf_get_text(g, "t.texts", &error, &text), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_gguf_get_array(g, "t.ints", RUNG_GGUF_FLOAT, &error, &a), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_gguf_get_array(g, "t.u8", RUNG_GGUF_INTEGER, &error, &a), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_gguf_get_array(g, "nowhere", RUNG_GGUF_INTEGER, NULL, &a), RUNG_NOT_FOUND);
  CHECK(u == 7 && s == 7 && d == 7 && b && text.length == 1); /* nothing was written */
  CHECK_OK(rung_gguf_maybe_u64(g, "nowhere", &error, &u));
  CHECK_OK(rung_gguf_maybe_i64(g, "nowhere", &error, &s));
  CHECK_OK(rung_gguf_maybe_f64(g, "nowhere", &error, &d));
  CHECK_OK(rung_gguf_maybe_bool(g, "nowhere", &error, &b));
  CHECK(u == 7 && s == 7 && d == 7 && b);
  CHECK_OK(rung_gguf_maybe_u64(g, "t.u8", &error, &u));
  CHECK_OK(rung_gguf_maybe_i64(g, "t.i8", &error, &s));
  CHECK_OK(rung_gguf_maybe_f64(g, "t.f64", &error, &d));
  CHECK_OK(rung_gguf_maybe_bool(g, "t.bool", &error, &b));
  CHECK(u == 200 && s == -100 && d == 0.1);
  CHECK_STATUS(rung_gguf_maybe_u64(g, "t.f32", &error, &u), RUNG_TYPE_MISMATCH);
  CHECK_OK(rung_gguf_get_array(g, "t.none", RUNG_GGUF_INTEGER, &error, &a));
  CHECK_EQ_I64(a.count, 0);
  CHECK_STR(rung_gguf_kind_name((rung_gguf_kind)99), "?");
  CHECK(rung_gguf_kind_bytes((rung_gguf_kind)99) == 0 && rung_gguf_kind_bytes(RUNG_GGUF_STRING) == 0);
  rung_gguf_release(g);
  free(file.data);
}

static void test_version_2(void) {
  const made_file file = make_small(host, 0);
  file.data[4] = 2;
  rung_gguf *g = NULL;
  CHECK_OK(open_bytes(host, file.data, file.bytes, &error, &g));
  CHECK_EQ_I64(rung_gguf_version(g), 2);
  check_tensors(g);
  rung_gguf_release(g);
  free(file.data);
}

static void test_foreign(void) {
  const rung_source source = rung_source_path(RUNG_SOURCE_DIR "/tests/formats/data/foreign.gguf");
  rung_gguf *g = NULL;
  CHECK_OK(rung_gguf_open(host, &source, &error, &g));
  if (!g) return;
  check_single_values(g, "test");
  check_arrays(g, "test");
  rung_gguf_text text;
  CHECK_OK(rung_gguf_get_text(g, "test.text", &error, &text));
  CHECK(text_is(text, "gr\xC3\xBC\xC3\x9F Gott"));
  const rung_gguf_tensor *t = rung_gguf_tensor_find(g, "token_embd.weight");
  CHECK(t && t->extent[0] == 3 && t->extent[1] == 64);
  for (int i = 0; t && i < 192; i++) CHECK(((const float *)rung_gguf_tensor_data(g, t))[i] == (float)i);
  t = rung_gguf_tensor_find(g, "blk.0.attn_q.weight");
  CHECK(t && t->type == RUNG_TYPE_Q8_0 && t->extent[0] == 2 && t->extent[1] == 32);
  float x[64];
  if (t) rung_type_get(RUNG_TYPE_Q8_0)->to_f32(rung_gguf_tensor_data(g, t), x, 64);
  for (int i = 0; t && i < 64; i++) CHECK(x[i] > (float)i - 0.3f && x[i] < (float)i + 0.3f);
  t = rung_gguf_tensor_find(g, "output_norm.weight");
  CHECK(t && t->type == RUNG_TYPE_F16 && t->rank == 1 && t->bytes == 6);
  walk_gguf(g);
  rung_gguf_release(g);
}

/* A file rewritten key by key and tensor by tensor is the same file. */
static void test_copy(void) {
  const made_file file = make_small(host, 0);
  rung_gguf *g = NULL;
  CHECK_OK(open_bytes(host, file.data, file.bytes, &error, &g));
  rung_gguf_writer *w = NULL;
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &w));
  for (size_t i = 0; i < rung_gguf_key_count(g); i++) {
    const rung_gguf_entry entry = rung_gguf_key_at(g, i);
    rung_gguf_put_entry(w, &entry);
  }
  for (size_t i = 0; i < rung_gguf_tensor_count(g); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(g, i);
    char *name = walk_terminated(t->name);
    rung_gguf_put_tensor(w, name, t->type, t->rank, t->extent, rung_gguf_tensor_data(g, t));
    free(name);
  }
  rung_text out;
  rung_text_init(&out, host);
  CHECK_OK(rung_gguf_write_memory(w, &out, &error));
  CHECK(out.length == file.bytes && memcmp(out.data, file.data, file.bytes) == 0);
  rung_text_finish(&out);
  rung_gguf_writer_destroy(w);
  rung_gguf_release(g);
  free(file.data);
}

static void test_writer_refuses(void) {
  rung_gguf_writer *w = NULL;
  rung_text out;
  const int64_t extent[5] = {1, 1, 1, 1, 33}, wide[2] = {INT64_C(1) << 62, INT64_C(1) << 62};
  for (int kind = 0; kind < 6; kind++) {
    static const rung_status want[] = {RUNG_UNSUPPORTED,      RUNG_UNSUPPORTED, RUNG_SHAPE_MISMATCH,
                                       RUNG_INVALID_ARGUMENT, RUNG_OVERFLOW,    RUNG_INVALID_ARGUMENT};
    CHECK_OK(rung_gguf_writer_create(host, 0, &error, &w));
    if (kind == 0) rung_gguf_put_tensor(w, "w", RUNG_TYPE_U8, 1, extent, NULL);
    if (kind == 1) rung_gguf_put_tensor(w, "w", RUNG_TYPE_F32, 5, extent, NULL);
    if (kind == 2) rung_gguf_put_tensor(w, "w", RUNG_TYPE_Q4_0, 1, extent + 4, NULL);
    if (kind == 3) rung_gguf_put_value(w, "k", RUNG_GGUF_STRING, NULL);
    if (kind == 4) rung_gguf_put_tensor(w, "w", RUNG_TYPE_F32, 2, wide, NULL);
    if (kind == 5) rung_gguf_put_array(w, "k", RUNG_GGUF_ARRAY, NULL, 0);
    rung_gguf_put_tensor(w, "later", RUNG_TYPE_F32, 1, extent, NULL);
    rung_text_init(&out, host);
    CHECK_STATUS(rung_gguf_write_memory(w, &out, &error), want[kind]);
    CHECK(strstr(error.message, kind == 3 || kind == 5 ? "'k'" : "'w'") != NULL);
    CHECK_STATUS(rung_gguf_write_file(w, "/nonexistent/x.gguf", NULL), want[kind]);
    rung_text_finish(&out);
    rung_gguf_writer_destroy(w);
  }
  w = make_writer(host, 0);
  CHECK_STATUS(rung_gguf_write_file(w, "/nonexistent/x.gguf", &error), RUNG_IO);
  rung_gguf_writer_destroy(w);
  rung_gguf_writer_destroy(NULL);
}

/* ---- files on disk */

static const char *scratch_path(void) {
  static char path[256];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-test-gguf-%ld.gguf", folder ? folder : "/tmp", (long)getpid());
  return path;
}

static void test_mapped_and_read(void) {
  rung_gguf_writer *w = make_writer(host, 4096);
  CHECK_OK(rung_gguf_write_file(w, scratch_path(), &error));
  rung_gguf_writer_destroy(w);
  for (int mode = 0; mode < 2; mode++) {
    rung_source source = rung_source_path(scratch_path());
    source.mode = mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
    rung_gguf *g = NULL;
    CHECK_OK(rung_gguf_open(host, &source, &error, &g));
    if (!g) continue;
    const uint64_t sum = walk_gguf(g);
    const uint64_t gone = rung_gguf_release_metadata(g);
    CHECK_EQ_I64(gone, mode ? 0 : rung_gguf_data_offset(g));
    CHECK(walk_gguf(g) == sum); /* comes back */
    check_tensors(g);
    CHECK_EQ_I64(rung_host_memory(host).weights, mode ? (int64_t)rung_gguf_map(g)->size : 0);
    rung_gguf_release(g);
  }
  unlink(scratch_path());
  const rung_source gone = rung_source_path(scratch_path());
  rung_gguf *g = NULL;
  CHECK_STATUS(rung_gguf_open(host, &gone, &error, &g), RUNG_NOT_FOUND);
  CHECK(g == NULL);
}

/* A vocabulary of 100,000 words: the index stays below 3 times the metadata and 2 MiB. */
static void test_memory(void) {
  enum { WORDS = 100000 };
  rung_gguf_text *texts = calloc(WORDS, sizeof *texts);
  char *letters = malloc(WORDS * 8);
  for (int i = 0; i < WORDS; i++) {
    const int n = snprintf(letters + 8 * i, 8, "%d", i);
    texts[i] = (rung_gguf_text){letters + 8 * i, (uint64_t)(n % 7)};
  }
  rung_gguf_writer *w = NULL;
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &w));
  rung_gguf_put_texts(w, "tokenizer.ggml.tokens", texts, WORDS);
  for (int i = 0; i < 50000; i++) rung_gguf_put_value(w, letters + 8 * i, RUNG_GGUF_U8, letters);
  rung_text out;
  rung_text_init(&out, host);
  CHECK_OK(rung_gguf_write_memory(w, &out, &error));
  rung_gguf_writer_destroy(w);
  const uint64_t before = rung_host_memory(host).host;
  rung_gguf *g = NULL;
  CHECK_OK(open_bytes(host, out.data, out.length, &error, &g));
  const uint64_t used = rung_host_memory(host).host - before;
  CHECK(used <= 3 * out.length);
  printf("metadata of %zu bytes takes %" PRIu64 " of class host\n", out.length, used);
  rung_gguf_entry a;
  CHECK_OK(rung_gguf_get_array(g, "tokenizer.ggml.tokens", RUNG_GGUF_TEXT, &error, &a));
  for (int i = 0; i < WORDS; i++) {
    const rung_gguf_text text = rung_gguf_entry_text(&a, (uint64_t)i);
    CHECK(text.length == texts[i].length && memcmp(text.data, texts[i].data, (size_t)text.length) == 0);
  }
  CHECK(rung_gguf_has(g, "49999") && !rung_gguf_has(g, "50000"));
  rung_gguf_release(g);
  rung_text_finish(&out);
  free(texts);
  free(letters);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  const uint64_t before = host_total(host);
  RUN(test_round_trip);
  RUN(test_getters_refuse);
  RUN(test_version_2);
  RUN(test_foreign);
  RUN(test_copy);
  RUN(test_writer_refuses);
  RUN(test_mapped_and_read);
  RUN(test_memory);
  CHECK_EQ_I64(host_total(host), before);
  rung_host_release(host);
  return TEST_END();
}
