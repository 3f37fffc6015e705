/* SPDX-License-Identifier: MIT
 * Vocabularies of model files that contradict themselves: an array of another element type, of another length, ids out of
 * range, merges of unknown tokens. Each is refused by its key's name, nothing leaks, and the model still runs on ids. */
#include "formats/gguf_write.h"
#include "tiny_world.h"

enum { GPT2, SPM, MOST_TOKENS = 1024 };

/* One key of a file, replaced. */
typedef struct change {
  const char *key;
  rung_gguf_kind kind; /* an array's elements, or the number */
  bool array;
  size_t count;
  const void *values;         /* numbers; NULL: zeros */
  const rung_gguf_text *text; /* texts */
} change;

static void write_changed(const rung_gguf *from, const change *c, rung_text *out) {
  static const uint64_t zeros[MOST_TOKENS];
  rung_gguf_writer *w = NULL;
  CHECK_OK(rung_gguf_writer_create(rung_gguf_host(from), 0, NULL, &w));
  for (size_t i = 0; i < rung_gguf_key_count(from); i++) {
    const rung_gguf_entry entry = rung_gguf_key_at(from, i);
    if (entry.key.length != strlen(c->key) || memcmp(entry.key.data, c->key, entry.key.length) != 0)
      rung_gguf_put_entry(w, &entry);
  }
  const void *values = c->values ? c->values : zeros;
  if (c->text)
    rung_gguf_put_texts(w, c->key, c->text, c->count);
  else if (c->array)
    rung_gguf_put_array(w, c->key, c->kind, values, c->count);
  else
    rung_gguf_put_value(w, c->key, c->kind, values);
  for (size_t i = 0; i < rung_gguf_tensor_count(from); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(from, i);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.length, t->name.data);
    rung_gguf_put_tensor(w, name, t->type, t->rank, t->extent, rung_gguf_map(from)->data + t->offset);
  }
  CHECK_OK(rung_gguf_write_memory(w, out, NULL));
  rung_gguf_writer_destroy(w);
}

/* Opened or, where the file says nothing wrong about its tensors, asked for ids: refused, and named. */
static void check_text(tiny *t, const void *data, size_t bytes, const char *named) {
  const rung_source source = rung_source_memory(data, bytes);
  rung_model *model = NULL;
  rung_generator *g = NULL;
  int32_t *ids = NULL;
  size_t count = 0;
  t->error = (rung_error){0};
  rung_status status = rung_model_open(t->device, &source, NULL, &t->error, &model);
  const bool opened = !status;
  if (opened) status = rung_model_encode(model, "the cat", 7, RUNG_TEXT_ADD_SPECIAL, &t->error, &ids, &count);
  test_state.checks++;
  if (!status || status == RUNG_INTERNAL || !strstr(t->error.message, named))
    TEST_FAIL_("%s: \"%s\", expected \"%s\"", rung_status_name(status), t->error.message, named);
  if (status == RUNG_OK) rung_ids_free(model, ids, count);
  if (opened) {
    const rung_generate_options o = tiny_options(1, 8, 4);
    const int32_t id = 1, zero = 0;
    const float *logits;
    CHECK_OK(rung_generator_create(model, &o, &t->error, &g));
    if (g) CHECK_OK(rung_generator_run(g, &(rung_rows){0, 1}, 1, &id, &zero, 1, &logits));
    rung_generator_destroy(g);
  }
  rung_model_release(model);
}

static void refused(int which, const change *c, const char *named) {
  tiny t;
  if (!tiny_open(&t, tiny_paths[which], 1)) return;
  const uint64_t before = tiny_held(&t);
  const rung_source source = rung_source_path(tiny_paths[which]);
  rung_gguf *gguf = NULL;
  rung_text text;
  CHECK_OK(rung_gguf_open(t.host, &source, &t.error, &gguf));
  rung_text_init(&text, t.host);
  write_changed(gguf, c, &text);
  check_text(&t, text.data, text.length, named);
  rung_text_finish(&text);
  rung_gguf_release(gguf);
  CHECK_EQ_I64(tiny_held(&t), before);
  tiny_close(&t);
}

/* The texts of an array of the file as it is. */
static size_t texts_of(int which, const char *key, char storage[MOST_TOKENS][64], rung_gguf_text out[MOST_TOKENS]) {
  rung_host *host = NULL;
  rung_gguf *gguf = NULL;
  rung_gguf_entry entry = {0};
  const rung_source source = rung_source_path(tiny_paths[which]);
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  CHECK_OK(rung_gguf_open(host, &source, NULL, &gguf));
  CHECK_OK(rung_gguf_get_array(gguf, key, RUNG_GGUF_TEXT, NULL, &entry));
  const size_t count = entry.count < MOST_TOKENS ? (size_t)entry.count : MOST_TOKENS - 1;
  for (size_t i = 0; i < count; i++) {
    const rung_gguf_text text = rung_gguf_entry_text(&entry, i);
    const size_t length = text.length < 64 ? (size_t)text.length : 64;
    memcpy(storage[i], text.data, length);
    out[i] = (rung_gguf_text){storage[i], length};
  }
  rung_gguf_release(gguf);
  rung_host_release(host);
  return count;
}

static char storage[MOST_TOKENS][64];
static rung_gguf_text tokens[MOST_TOKENS];

static void test_arrays_of_another_type(void) {
  const size_t n = texts_of(SPM, "tokenizer.ggml.tokens", storage, tokens);
  static const struct {
    const char *key;
    rung_gguf_kind kind;
  } rows[] = {{"tokenizer.ggml.scores", RUNG_GGUF_U8},      {"tokenizer.ggml.scores", RUNG_GGUF_F64},
              {"tokenizer.ggml.scores", RUNG_GGUF_I32},     {"tokenizer.ggml.token_type", RUNG_GGUF_U8},
              {"tokenizer.ggml.token_type", RUNG_GGUF_F32}, {"tokenizer.ggml.token_type", RUNG_GGUF_I64},
              {"tokenizer.ggml.tokens", RUNG_GGUF_U32}};
  for (size_t i = 0; i < RUNG_COUNT(rows); i++)
    refused(SPM, &(change){.key = rows[i].key, .kind = rows[i].kind, .array = true, .count = n}, rows[i].key);
  refused(SPM, &(change){.key = "tokenizer.ggml.scores", .text = tokens, .count = n}, "tokenizer.ggml.scores");
  refused(SPM, &(change){.key = "tokenizer.ggml.scores", .kind = RUNG_GGUF_F32}, "tokenizer.ggml.scores");
  refused(SPM, &(change){.key = "tokenizer.ggml.model", .kind = RUNG_GGUF_U32}, "tokenizer.ggml.model");
  refused(SPM, &(change){.key = "tokenizer.ggml.add_bos_token", .kind = RUNG_GGUF_U32}, "tokenizer.ggml.add_bos_token");
  refused(GPT2, &(change){.key = "tokenizer.ggml.merges", .kind = RUNG_GGUF_I32, .array = true, .count = 9},
          "tokenizer.ggml.merges");
}

static void test_lists_of_another_length(void) {
  const size_t n = texts_of(SPM, "tokenizer.ggml.tokens", storage, tokens);
  tokens[n] = (rung_gguf_text){"one more", 8};
  for (int more = -1; more <= 1; more += 2) {
    const size_t count = n + (size_t)more;
    refused(SPM, &(change){.key = "tokenizer.ggml.tokens", .text = tokens, .count = count},
            more < 0 ? "for a vocabulary of" : "tokenizer.ggml.tokens");
    refused(SPM, &(change){.key = "tokenizer.ggml.scores", .kind = RUNG_GGUF_F32, .array = true, .count = count},
            "scores");
    refused(SPM, &(change){.key = "tokenizer.ggml.token_type", .kind = RUNG_GGUF_I32, .array = true, .count = count},
            "token_type");
  }
  refused(SPM, &(change){.key = "tokenizer.ggml.tokens", .text = tokens, .count = 0}, "tokens");
}

static void test_byte_tokens_that_are_none(void) {
  static const char *const bad[] = {"<0x-1>", "<0xZZ>", "<0x100>"};
  const size_t n = texts_of(SPM, "tokenizer.ggml.tokens", storage, tokens);
  size_t byte = 0;
  while (byte < n && !(tokens[byte].length == 6 && memcmp(tokens[byte].data, "<0x41>", 6) == 0)) byte++;
  CHECK(byte < n);
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
    tokens[byte] = (rung_gguf_text){bad[i], strlen(bad[i])};
    refused(SPM, &(change){.key = "tokenizer.ggml.tokens", .text = tokens, .count = n}, bad[i]);
  }
}

static void test_special_ids_out_of_range(void) {
  static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                     "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id"};
  for (size_t i = 0; i < RUNG_COUNT(keys); i++) {
    const char *name = keys[i] + strlen("tokenizer.ggml.");
    refused(SPM, &(change){.key = keys[i], .kind = RUNG_GGUF_U32, .values = &(uint32_t){100000}}, name);
    refused(SPM, &(change){.key = keys[i], .kind = RUNG_GGUF_U32, .values = &(uint32_t){UINT32_MAX}}, name);
    refused(SPM, &(change){.key = keys[i], .kind = RUNG_GGUF_I32, .values = &(int32_t){-2}}, name);
    refused(SPM, &(change){.key = keys[i], .kind = RUNG_GGUF_F32, .values = &(float){1}}, name);
  }
}

static void test_merges_of_unknown_tokens(void) {
  static const char *const bad[] = {"zq zq", "a", "", "a  b"};
  const size_t n = texts_of(GPT2, "tokenizer.ggml.merges", storage, tokens);
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
    tokens[n / 2] = (rung_gguf_text){bad[i], strlen(bad[i])};
    char named[32];
    snprintf(named, sizeof named, "merges[%zu]", n / 2);
    refused(GPT2, &(change){.key = "tokenizer.ggml.merges", .text = tokens, .count = n}, named);
  }
}

int main(void) {
  RUN(test_arrays_of_another_type);
  RUN(test_lists_of_another_length);
  RUN(test_byte_tokens_that_are_none);
  RUN(test_special_ids_out_of_range);
  RUN(test_merges_of_unknown_tokens);
  return TEST_END();
}
