/* SPDX-License-Identifier: MIT
 * Model files that contradict themselves: what is refused names the key, or the tensor with both shapes; nothing leaks.
 * Made from the tiny models by changing one thing. */
#include <math.h>

#include "../held.h"
#include "formats/gguf_write.h"
#include "tiny_world.h"

typedef struct edit {
  const char *drop_key, *key; /* without; with this value instead (architecture's prefix included) */
  rung_gguf_kind kind;
  uint32_t u32;
  float f32;
  const char *drop_tensor, *extra_tensor, *reshape;
  int rank;
  int64_t extent[4];
} edit;

static char log_text[4096];
static void collect(void *self, rung_log_level level, const char *text) {
  (void)self, (void)level;
  const size_t used = strlen(log_text);
  snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

static rung_host *new_host(void) {
  rung_host_options o = rung_host_options_default();
  o.log = collect;
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(&o, NULL, &host));
  log_text[0] = 0;
  return host;
}

static bool is_text(const rung_gguf_text *a, const char *b) {
  return b && a->length == strlen(b) && memcmp(a->data, b, strlen(b)) == 0;
}

static void write_edited(rung_host *host, const rung_gguf *from, const edit *e, rung_text *out) {
  rung_gguf_writer *w = NULL;
  CHECK_OK(rung_gguf_writer_create(host, 0, NULL, &w));
  for (size_t i = 0; i < rung_gguf_key_count(from); i++) {
    const rung_gguf_entry entry = rung_gguf_key_at(from, i);
    if (!is_text(&entry.key, e->drop_key) && !is_text(&entry.key, e->key)) rung_gguf_put_entry(w, &entry);
  }
  if (e->key)
    rung_gguf_put_value(w, e->key, e->kind, e->kind == RUNG_GGUF_F32 ? (const void *)&e->f32 : (const void *)&e->u32);
  for (size_t i = 0; i < rung_gguf_tensor_count(from); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(from, i);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.length, t->name.data);
    if (is_text(&t->name, e->drop_tensor)) continue;
    const bool other = is_text(&t->name, e->reshape);
    rung_gguf_put_tensor(w, name, t->type, other ? e->rank : t->rank, other ? e->extent : t->extent,
                         rung_gguf_map(from)->data + t->offset);
  }
  if (e->extra_tensor) rung_gguf_put_tensor(w, e->extra_tensor, RUNG_TYPE_F32, 1, (const int64_t[]){8}, NULL);
  CHECK_OK(rung_gguf_write_memory(w, out, NULL));
  rung_gguf_writer_destroy(w);
}

/* Opens the edited file as a model and, if that goes, makes a generator and runs a token. */
static rung_status open_bytes(rung_host *host, const void *data, size_t bytes, bool run, rung_error *error) {
  rung_device *device = NULL;
  rung_model *model = NULL;
  rung_generator *g = NULL;
  const rung_source source = rung_source_memory(data, bytes);
  rung_status s = rung_device_create(host, "cpu", NULL, error, &device);
  if (!s) s = rung_model_open(device, &source, NULL, error, &model);
  const rung_generate_options o = tiny_options(1, 8, 4);
  if (!s && run) s = rung_generator_create(model, &o, error, &g);
  const int32_t id = 1, zero = 0;
  const float *logits;
  if (g && (s = rung_generator_run(g, &(rung_rows){0, 1}, 1, &id, &zero, 1, &logits)) != RUNG_OK)
    rung_fail(error, s, "%s", rung_generator_message(g));
  rung_generator_destroy(g);
  rung_model_release(model);
  rung_device_release(device);
  return s;
}

static rung_status try_edit(int family, const edit *e, rung_error *error) {
  rung_host *host = new_host();
  const rung_source source = rung_source_path(tiny_paths[family]);
  rung_gguf *gguf = NULL;
  *error = (rung_error){0};
  const uint64_t before = held(host);
  CHECK_OK(rung_gguf_open(host, &source, error, &gguf));
  rung_text text;
  rung_text_init(&text, host);
  write_edited(host, gguf, e, &text);
  uint8_t *copy = malloc(text.length);
  memcpy(copy, text.data, text.length);
  const rung_status status = open_bytes(host, copy, text.length, true, error);
  free(copy);
  rung_text_finish(&text);
  rung_gguf_release(gguf);
  CHECK_EQ_I64(held(host), before);
  rung_host_release(host);
  return status;
}

/* The message must have all of these. */
static void check_refused(int family, const edit *e, const char *a, const char *b) {
  rung_error error;
  const rung_status status = try_edit(family, e, &error);
  test_state.checks++;
  if (!status || status == RUNG_INTERNAL || !strstr(error.message, a) || (b && !strstr(error.message, b)))
    TEST_FAIL_("%s: \"%s\", expected \"%s\" and \"%s\"", rung_status_name(status), error.message, a, b ? b : "");
}

static const char *const prefix[] = {"llama", "gemma3"};
static const char *full_key(int family, const char *key) {
  static char full[128];
  snprintf(full, sizeof full, "%s.%s", prefix[family], key);
  return full;
}

static void test_unedited(void) {
  for (int f = 0; f < 2; f++) {
    rung_error error;
    CHECK_OK(try_edit(f, &(edit){0}, &error));
    CHECK_STR(log_text, "");
  }
}

static void test_counts(void) {
  static const struct {
    const char *key;
    uint32_t value;
    const char *named;
  } rows[] = {
      {"block_count", 0, "block_count is 0"},
      {"block_count", 513, "block_count is 513"},
      {"block_count", 0x80000000u, "block_count is 2147483648"},
      {"block_count", 7, "blk."}, /* more layers than there are tensors for: the first that is missing */
      {"attention.head_count", 0, "head_count is 0"},
      {"attention.head_count", 0xffffffffu, "head_count is 4294967295"},
      {"attention.head_count_kv", 0, "head_count_kv is 0"},
      {"attention.head_count_kv", 3, "head_count_kv, 3"},
      {"attention.head_count_kv", 4000, "head_count_kv is 4000"},
      {"embedding_length", 0, "embedding_length is 0"},
      {"embedding_length", 0x80000000u, "embedding_length is 2147483648"},
      {"embedding_length", 65, "token_embd.weight"},
      {"feed_forward_length", 0, "feed_forward_length is 0"},
      {"feed_forward_length", 100, "ffn_"},
      {"context_length", 0, "context_length is 0"},
      {"rope.dimension_count", 0, "rope.dimension_count is 0"},
      {"rope.dimension_count", 1024, "rope.dimension_count is 1024"},
      {"rope.dimension_count", 7, "rope.dimension_count is 7"},
      {"attention.key_length", 0, "key_length is 0"},
      {"attention.value_length", 8, "value_length is 8"},
  };
  for (int f = 0; f < 2; f++)
    for (size_t i = 0; i < RUNG_COUNT(rows); i++)
      check_refused(f, &(edit){.key = full_key(f, rows[i].key), .kind = RUNG_GGUF_U32, .u32 = rows[i].value},
                    rows[i].named, NULL);
  check_refused(0, &(edit){.key = "llama.attention.key_length", .kind = RUNG_GGUF_U32, .u32 = 24},
                "blk.0.attn_q.weight", "[96,64]");
  check_refused(1, &(edit){.key = "gemma3.attention.key_length", .kind = RUNG_GGUF_U32, .u32 = 24}, "key_length, 24",
                NULL);
  check_refused(1, &(edit){.key = "gemma3.attention.sliding_window", .kind = RUNG_GGUF_U32, .u32 = 0},
                "sliding_window is 0", NULL);
}

static void test_numbers(void) {
  static const float epsilons[] = {0, -1, NAN, INFINITY};
  for (int f = 0; f < 2; f++) {
    for (int i = 0; i < 4; i++) {
      check_refused(
          f, &(edit){.key = full_key(f, "attention.layer_norm_rms_epsilon"), .kind = RUNG_GGUF_F32, .f32 = epsilons[i]},
          "layer_norm_rms_epsilon", NULL);
      check_refused(f, &(edit){.key = full_key(f, "rope.freq_base"), .kind = RUNG_GGUF_F32, .f32 = epsilons[i]},
                    "rope.freq_base", NULL);
    }
    /* Of the wrong kind. */
    check_refused(f, &(edit){.key = full_key(f, "block_count"), .kind = RUNG_GGUF_F32, .f32 = 3}, "block_count", NULL);
  }
}

static void test_missing_keys(void) {
  static const char *const keys[] = {"block_count",          "embedding_length", "feed_forward_length",
                                     "attention.head_count", "context_length",   "attention.layer_norm_rms_epsilon"};
  for (int f = 0; f < 2; f++) {
    for (size_t i = 0; i < RUNG_COUNT(keys); i++)
      check_refused(f, &(edit){.drop_key = full_key(f, keys[i])}, keys[i], NULL);
    check_refused(f, &(edit){.drop_key = "general.architecture"}, "general.architecture", NULL);
  }
}

/* Each tensor missing, and each with another shape: named, with the shape it has and the one that the metadata wants.
 */
static void test_tensors(void) {
  for (int f = 0; f < 2; f++) {
    rung_host *host = new_host();
    const rung_source source = rung_source_path(tiny_paths[f]);
    rung_gguf *gguf = NULL;
    CHECK_OK(rung_gguf_open(host, &source, NULL, &gguf));
    for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
      if (test_slow() && i % 5) continue;
      const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
      char name[128], have[96], want[96];
      snprintf(name, sizeof name, "%.*s", (int)t->name.length, t->name.data);
      check_refused(f, &(edit){.drop_tensor = name}, name, NULL);
      edit e = {.reshape = name, .rank = t->rank};
      memcpy(e.extent, t->extent, sizeof t->extent);
      const bool table = strcmp(name, "token_embd.weight") == 0; /* its rows are the vocabulary: tokens do not fit */
      if (t->rank == 1)
        e.extent[0] -= 8;
      else
        e.extent[0] -= 1;
      snprintf(have, sizeof have, t->rank == 1 ? "[%" PRId64 "]" : "[%" PRId64 ",%" PRId64 "]", e.extent[0],
               e.extent[1]);
      snprintf(want, sizeof want, t->rank == 1 ? "[%" PRId64 "]" : "[%" PRId64 ",%" PRId64 "]", t->extent[0],
               t->extent[1]);
      check_refused(f, &e, name, table ? NULL : have);
      check_refused(f, &e, table ? "tokenizer.ggml.tokens" : want, NULL);
    }
    rung_gguf_release(gguf);
    rung_host_release(host);
  }
}

/* Tensors that nobody asked for are no error; the log names them. Fewer layers than tensors is the same case. */
static void test_extra_tensors(void) {
  for (int f = 0; f < 2; f++) {
    rung_error error;
    CHECK_OK(try_edit(f, &(edit){.extra_tensor = "blk.0.attn_q.bias"}, &error));
    CHECK(strstr(log_text, "\"blk.0.attn_q.bias\" is not used") != NULL);
    CHECK_OK(try_edit(f, &(edit){.key = full_key(f, "block_count"), .kind = RUNG_GGUF_U32, .u32 = 1}, &error));
    CHECK(strstr(log_text, "\"blk.1.attn_norm.weight\" is not used") != NULL);
    CHECK(strstr(log_text, "more tensors are not used") != NULL);
  }
}

/* ---- every byte */

static uint8_t *read_whole(const char *path, size_t *out_bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) abort();
  fseek(f, 0, SEEK_END);
  *out_bytes = (size_t)ftell(f);
  rewind(f);
  uint8_t *data = malloc(*out_bytes);
  if (!data || fread(data, 1, *out_bytes, f) != *out_bytes) abort();
  fclose(f);
  return data;
}

/* Cut at every byte of what stands before the tensors, then at some: never a model. */
static void test_truncated(void) {
  for (int f = 0; f < 2; f++) {
    size_t bytes;
    uint8_t *data = read_whole(tiny_paths[f], &bytes);
    rung_host *host = new_host();
    const uint64_t before = held(host);
    int64_t opened = 0, silent = 0;
    const size_t step = test_slow() ? 97 : 1;
    for (size_t n = 0; n < bytes; n += n < 9000 ? step : 4999) {
      uint8_t *copy = malloc(n + !n); /* of its size: a read past the end is seen */
      memcpy(copy, data, n);
      rung_error error = {0};
      opened += open_bytes(host, copy, n, false, &error) == RUNG_OK;
      silent += error.message[0] == 0;
      free(copy);
    }
    CHECK_EQ_I64(opened, 0);
    CHECK_EQ_I64(silent, 0);
    CHECK_EQ_I64(held(host), before);
    rung_host_release(host);
    free(data);
  }
}

/* Every byte of the metadata and tensor list flipped once: a status, or a model that runs. */
static void test_flipped(void) {
  for (int f = 0; f < 2; f++) {
    size_t bytes;
    uint8_t *data = read_whole(tiny_paths[f], &bytes);
    rung_host *host = new_host();
    const uint64_t before = held(host);
    int64_t refused = 0, internal = 0;
    const size_t step = test_slow() ? 61 : 3;
    for (size_t n = 0; n < 7900; n += step) {
      data[n] ^= (uint8_t)(1u << (n / step % 8));
      rung_error error = {0};
      const rung_status status = open_bytes(host, data, bytes, n / step % 16 == 0, &error);
      refused += status != RUNG_OK;
      internal += status == RUNG_INTERNAL || (status && !error.message[0]);
      data[n] ^= (uint8_t)(1u << (n / step % 8));
    }
    CHECK(refused > 0);
    CHECK_EQ_I64(internal, 0);
    CHECK_EQ_I64(held(host), before);
    rung_host_release(host);
    free(data);
  }
}

int main(void) {
  RUN(test_unedited);
  RUN(test_extra_tensors);
  RUN(test_numbers);
  RUN(test_missing_keys);
  RUN(test_counts);
  RUN(test_tensors);
  RUN(test_truncated);
  RUN(test_flipped);
  return TEST_END();
}
