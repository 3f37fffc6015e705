/* SPDX-License-Identifier: MIT
 * Folders of encoders with one file changed or missing: refused by naming file and key, or read as they are; and the
 * n-th call failing, for every n and every kind of call, from opening a folder to its vectors. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "../held.h"
#include "base/host.h"
#include "base/pool.h"
#include "embed_world.h"

static char scratch[64];
static const char *const files[] = {"config.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json",
                                    "model.safetensors"};

static void path_in(char out[256], const char *file) { snprintf(out, 256, "%s/%s", scratch, file); }

static char *read_text(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = calloc(1, 1 << 14);
  if (f && text && fread(text, 1, (1 << 14) - 1, f) == 0) CHECK(!"an empty file");
  if (f) fclose(f);
  return text;
}

/* The folder of the tiny bert; in `file` the first `from` is replaced by `to`. from NULL: the file is `to`, or missing.
 */
static void make_folder(const char *file, const char *from, const char *to) {
  char path[256], source[1200];
  for (size_t i = 0; i < RUNG_COUNT(files); i++) {
    path_in(path, files[i]);
    unlink(path);
    snprintf(source, sizeof source, TINY_MODELS "bert/%s", files[i]);
    if (strcmp(files[i], file) != 0) {
      CHECK(symlink(source, path) == 0);
      continue;
    }
    if (!from && !to) continue;
    FILE *f = fopen(path, "wb");
    char *text = from ? read_text(source) : NULL, *at = from ? strstr(text, from) : NULL;
    CHECK(f && (!from || at));
    if (f && at) fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    if (f && !from) fputs(to, f);
    if (f) fclose(f);
    free(text);
  }
}

static void test_folders(void) {
  static const struct {
    const char *file, *from, *to;
    rung_status status;
    const char *says;
  } cases[] = {
      {"config.json", "\"gelu\"", "\"tanh\"", RUNG_UNSUPPORTED, "hidden_act \"tanh\" is not supported"},
      {"config.json", "\"absolute\"", "\"relative_key\"", RUNG_UNSUPPORTED, "position_embedding_type \"relative_key\""},
      {"config.json", "{", "{\"is_decoder\": true,", RUNG_UNSUPPORTED, "is_decoder"},
      {"config.json", "{", "{\"add_cross_attention\": true,", RUNG_UNSUPPORTED, "add_cross_attention"},
      {"config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5", RUNG_CORRUPT_FILE,
       "hidden_size is 32, no multiple of num_attention_heads, 5"},
      {"config.json", "\"max_position_embeddings\": 140", "\"max_position_embeddings\": 141", RUNG_SHAPE_MISMATCH,
       "embeddings.position_embeddings.weight\" is [140,32], the metadata makes it [141,32]"},
      {"config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", RUNG_NOT_FOUND,
       "encoder.layer.2.attention.self.query.weight"},
      {"config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 47", RUNG_SHAPE_MISMATCH,
       "encoder.layer.0.intermediate.dense"},
      {"config.json", "\"type_vocab_size\": 2", "\"type_vocab_size\": 0", RUNG_CORRUPT_FILE, "type_vocab_size is 0"},
      {"config.json", "\"layer_norm_eps\": 1e-12,", "", RUNG_NOT_FOUND, "layer_norm_eps is missing"},
      {"modules.json", NULL, "{}", RUNG_CORRUPT_FILE, "modules.json: an object where a list is expected"},
      {"modules.json", NULL, "[1]", RUNG_CORRUPT_FILE, "module 0 is no object"},
      {"modules.json", NULL, "[]", RUNG_UNSUPPORTED, "without a pooling"},
      {"modules.json", "models.Normalize", "models.Dense", RUNG_UNSUPPORTED, "\"Dense\" as module 2 is not supported"},
      {"modules.json", "Transformer", "CLIPModel", RUNG_UNSUPPORTED, "\"CLIPModel\" as module 0"},
      {"modules.json", "models.Pooling", "models.Normalize", RUNG_UNSUPPORTED, "\"Normalize\" as module 1"},
      {"modules.json", "\"1_Pooling\"", "7", RUNG_CORRUPT_FILE, "the path of module 1"},
      {"modules.json", "\"1_Pooling\"", "\"../bert/1_Pooling\"", RUNG_CORRUPT_FILE, "no folder inside"},
      {"1_Pooling/config.json", NULL, NULL, RUNG_NOT_FOUND, "1_Pooling"},
      {"1_Pooling/config.json", NULL, "[]", RUNG_CORRUPT_FILE, "1_Pooling/config.json: a list where an object"},
      {"1_Pooling/config.json", "cls_token\": false", "cls_token\": true", RUNG_UNSUPPORTED, "besides another mode"},
      {"1_Pooling/config.json", "mean_tokens\": true", "mean_tokens\": 1", RUNG_TYPE_MISMATCH,
       "mean_tokens is a number"},
      {"1_Pooling/config.json", "mean_tokens\": true", "mean_tokens\": false", RUNG_UNSUPPORTED, "none of the modes"},
      {"1_Pooling/config.json", "sqrt_len_tokens\": false", "sqrt_len_tokens\": true", RUNG_UNSUPPORTED,
       "mean_sqrt_len_tokens is not supported"},
      {"1_Pooling/config.json", "32", "33", RUNG_SHAPE_MISMATCH, "word_embedding_dimension is 33, the model has 32"},
      {"sentence_bert_config.json", "false", "true", RUNG_UNSUPPORTED, "do_lower_case"},
      {"sentence_bert_config.json", "130", "0", RUNG_CORRUPT_FILE, "max_seq_length is 0"},
      {"sentence_bert_config.json", "130", "\"130\"", RUNG_TYPE_MISMATCH, "max_seq_length is a string"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    world w;
    make_folder(cases[i].file, cases[i].from, cases[i].to);
    const rung_status status = world_open(&w, "ref", 1, scratch);
    test_state.checks++;
    if (status != cases[i].status || !strstr(w.error.message, cases[i].says))
      TEST_FAIL_("%s, %s: %s \"%s\"", cases[i].file, cases[i].to ? cases[i].to : "missing", rung_status_name(status),
                 w.error.message);
    world_close(&w);
  }
}

/* Without sentence-transformers' files the model opens; a longest text beyond the positions is cut to them. */
static void test_read_as_they_are(void) {
  static const struct {
    const char *file, *from, *to;
    int64_t longest;
  } cases[] = {{"sentence_bert_config.json", NULL, NULL, 140},
               {"sentence_bert_config.json", "130", "512", 140},
               {"sentence_bert_config.json", "130", "null", 140},
               {"1_Pooling/config.json", "\"word_embedding_dimension\": 32,", "", 130},
               {"config.json", "\"type_vocab_size\": 2,", "", 130}};
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    world w;
    rung_encoder_info info = {0};
    make_folder(cases[i].file, cases[i].from, cases[i].to);
    CHECK_OK(world_open(&w, "ref", 1, scratch));
    rung_encoder *e = w.model ? world_encoder(&w, NULL) : NULL;
    if (e) rung_encoder_get_info(e, &info);
    CHECK_EQ_I64(info.longest, cases[i].longest);
    rung_encoder_destroy(e);
    world_close(&w);
  }
}

/* ---- failing calls */

static rung_status scenario(rung_host *host, rung_source_mode mode, const texts *t, world *w, rung_encoder **e,
                            float *out) {
  rung_device_options device = rung_device_options_default();
  device.threads = 3;
  RUNG_TRY(rung_device_create(host, "cpu", &device, &w->error, &w->device));
  rung_source source = rung_source_path(TINY_MODELS "bert");
  source.mode = mode;
  RUNG_TRY(rung_model_open(w->device, &source, NULL, &w->error, &w->model));
  RUNG_TRY(rung_encoder_create(w->model, NULL, &w->error, e));
  const rung_status status = rung_encoder_run(*e, t->text, 4, out);
  return status ? rung_fail(&w->error, status, "%s", rung_encoder_message(*e)) : RUNG_OK;
}

static int64_t every_nth(rung_source_mode mode, rung_fault kind, const texts *t) {
  float want[128], got[128];
  int64_t total = 0;
  for (int64_t n = 0;; n++) { /* n 0: nothing fails */
    world w = {0};
    rung_encoder *e = NULL;
    CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
    const uint64_t before = held(w.host);
    if (kind == RUNG_FAULT_THREAD) rung_pool_stop(rung_pool_shared(w.host));
    test_fault f = {.kind = kind, .at = n};
    rung_host_set_fault(w.host, test_fault_hit, &f);
    const rung_status status = scenario(w.host, mode, t, &w, &e, got);
    if (n && f.hit && kind != RUNG_FAULT_THREAD) {
      CHECK(status != RUNG_OK && status == w.error.status && w.error.message[0] != 0);
    } else {
      if (status) fprintf(stderr, "  %" PRId64 ": %s\n", n, w.error.message);
      CHECK_OK(status);
    }
    f.at = 0;
    if (status && e) CHECK_OK(rung_encoder_run(e, t->text, 4, got)); /* again, in the same objects */
    if (!n)
      memcpy(want, got, sizeof want), total = f.count[kind];
    else if (e)
      CHECK(memcmp(want, got, sizeof want) == 0);
    rung_encoder_destroy(e);
    rung_model_release(w.model);
    rung_device_release(w.device);
    CHECK_EQ_I64(held(w.host), before);
    rung_host_set_fault(w.host, NULL, NULL);
    rung_host_release(w.host);
    if (n >= total) return total;
  }
}

static void test_failures(void) {
  static const char *const kinds[] = {"allocation", "commit", "thread start", "map", "read"};
  texts t;
  texts_read(&t, TINY_MODELS "encoder.ids");
  for (int mode = 0; mode < 2; mode++)
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      if (test_slow() && kind == RUNG_FAULT_ALLOC && mode == 1) continue;
      const int64_t calls = every_nth(mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP, (rung_fault)kind, &t);
      printf("%s: %" PRId64 " calls of kind %s, each failed once\n", mode ? "copied" : "mapped", calls, kinds[kind]);
      if (kind == RUNG_FAULT_ALLOC) CHECK(calls >= 100);
    }
  texts_free(&t);
}

int main(void) {
  const char *folder = getenv("TMPDIR");
  char path[256];
  snprintf(scratch, sizeof scratch, "%s/rung-encoder-XXXXXX", folder && strlen(folder) < 32 ? folder : "/tmp");
  if (!mkdtemp(scratch)) return 1;
  path_in(path, "1_Pooling");
  if (mkdir(path, 0700)) return 1;
  RUN(test_folders);
  RUN(test_read_as_they_are);
  RUN(test_failures);
  for (size_t i = 0; i < RUNG_COUNT(files); i++) {
    path_in(path, files[i]);
    unlink(path);
  }
  path_in(path, "1_Pooling");
  rmdir(path);
  rmdir(scratch);
  return TEST_END();
}
