/* SPDX-License-Identifier: MIT
 * GGUF in several parts: the first one opens all, and gives what one file gives, to the bit; parts that are missing,
 * foreign, named otherwise or not the first are refused by name. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <rung/model.h>
#include <unistd.h>

#include "../test.h"
#include "formats/gguf.h"
#include "formats/gguf_write.h"
#include "weights/store.h"

static rung_host *host;
static rung_error error;
static char scratch[64];
enum { PARTS = 3 };
static const char whole[] = RUNG_SOURCE_DIR "/tests/models/tiny/families/qwen2/model.gguf";

typedef struct change {
  int part;       /* whose keys are other ones, 1 .. */
  uint16_t no;    /* added to split.no */
  uint16_t count; /* added to split.count */
  int32_t tensors;
  bool twice; /* the part also has the first one's first tensor */
  const char *architecture;
} change;

static void part_name(int part, char *out, size_t bytes) {
  snprintf(out, bytes, "%s/model-%05d-of-%05d.gguf", scratch, part, PARTS);
}

/* The tensors dealt out in turn, as llama.cpp's gguf-split does with the keys: all in the first part. */
static void write_part(const rung_gguf *gguf, int part, const change *c) {
  rung_gguf_writer *writer;
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &writer));
  for (size_t i = 0; part == 1 && i < rung_gguf_key_count(gguf); i++) {
    const rung_gguf_entry entry = rung_gguf_key_at(gguf, i);
    rung_gguf_put_entry(writer, &entry);
  }
  const bool mine = c->part == part;
  const uint16_t no = (uint16_t)(part - 1 + (mine ? c->no : 0)), count = (uint16_t)(PARTS + (mine ? c->count : 0));
  const int32_t tensors = (int32_t)rung_gguf_tensor_count(gguf) + (mine ? c->tensors : 0);
  rung_gguf_put_value(writer, "split.no", RUNG_GGUF_U16, &no);
  rung_gguf_put_value(writer, "split.count", RUNG_GGUF_U16, &count);
  rung_gguf_put_value(writer, "split.tensors.count", RUNG_GGUF_I32, &tensors);
  if (mine && c->architecture) rung_gguf_put_text(writer, "general.architecture", c->architecture);
  for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
    if ((int)(i % PARTS) != part - 1 && !(mine && c->twice && i == 0)) continue;
    const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.length, t->name.data);
    rung_gguf_put_tensor(writer, name, t->type, t->rank, t->extent, rung_gguf_tensor_data(gguf, t));
  }
  char path[128];
  part_name(part, path, sizeof path);
  CHECK_OK(rung_gguf_write_file(writer, path, &error));
  rung_gguf_writer_destroy(writer);
}

static void write_parts(const change *c) {
  const rung_source source = rung_source_path(whole);
  rung_gguf *gguf = NULL;
  CHECK_OK(rung_gguf_open(host, &source, &error, &gguf));
  for (int part = 1; part <= PARTS; part++) write_part(gguf, part, c);
  rung_gguf_release(gguf);
}

static rung_status open_part(int part, rung_source_mode mode, rung_weights **out) {
  char path[128];
  part_name(part, path, sizeof path);
  rung_source source = rung_source_path(path);
  source.mode = mode;
  *out = NULL;
  return rung_weights_open(host, &source, NULL, &error, out);
}

static void test_same(void) {
  const change none = {0};
  write_parts(&none);
  const rung_source source = rung_source_path(whole);
  rung_weights *one = NULL;
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &one));
  for (int mode = 0; mode < 2; mode++) {
    rung_weights *parts = NULL;
    CHECK_OK(open_part(1, mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP, &parts));
    CHECK(one && parts && rung_weights_count(one) == rung_weights_count(parts));
    for (size_t i = 0; one && parts && i < rung_weights_count(one); i++) {
      const rung_tensor_entry *a = rung_weights_entry(one, i), *b = rung_weights_find(parts, a->name);
      CHECK(b && a->type == b->type && a->rank == b->rank && a->bytes == b->bytes);
      rung_tensor_value *x = rung_weights_value(one, a), *y = b ? rung_weights_value(parts, b) : NULL;
      CHECK(x && y && memcmp(x->data, y->data, (size_t)a->bytes) == 0);
      rung_tensor_value_release(one, x);
      rung_tensor_value_release(parts, y);
    }
    rung_weights_release(parts);
  }
  rung_weights_release(one);
}

/* Logits of a model of parts are the whole file's. */
static void logits_of(const char *path, float *out) {
  const rung_source source = rung_source_path(path);
  rung_device *device = NULL;
  rung_model *model = NULL;
  rung_generator *g = NULL;
  rung_status status = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!status) status = rung_model_open(device, &source, NULL, &error, &model);
  if (!status) status = rung_generator_create(model, NULL, &error, &g);
  CHECK_OK(status);
  const int32_t ids[] = {5, 6, 7}, wanted[] = {2};
  const rung_rows rows = {0, 3};
  const float *got = NULL;
  if (!status) CHECK_OK(rung_generator_run(g, &rows, 1, ids, wanted, 1, &got));
  if (got) memcpy(out, got, 61 * sizeof *out);
  rung_generator_destroy(g);
  rung_model_release(model);
  rung_device_release(device);
}

static void test_model(void) {
  float a[61] = {0}, b[61] = {1};
  char path[128];
  part_name(1, path, sizeof path);
  logits_of(path, a);
  logits_of(whole, b);
  CHECK(memcmp(a, b, sizeof a) == 0);
}

static void refused(int opened, rung_status status, const char *says) {
  rung_weights *weights;
  CHECK_STATUS(open_part(opened, RUNG_SOURCE_MAP, &weights), status);
  CHECK(!weights && strstr(error.message, says) != NULL);
  if (!strstr(error.message, says)) fprintf(stderr, "  %s\n", error.message);
}

static void test_refused(void) {
  static const struct {
    change change;
    rung_status status;
    const char *says;
  } cases[] = {
      {{.part = 2, .no = 1}, RUNG_CORRUPT_FILE, "model-00002-of-00003.gguf: it says that it is part 3 of 3"},
      {{.part = 3, .count = 2}, RUNG_CORRUPT_FILE, "model-00003-of-00003.gguf: it says that it is part 3 of 5"},
      {{.part = 1, .count = 1}, RUNG_UNSUPPORTED, "NAME-00001-of-00004.gguf"},
      {{.part = 1, .no = 1}, RUNG_UNSUPPORTED, "this is part 2 of 3 (split.no); name the first one"},
      {{.part = 1, .tensors = 4}, RUNG_CORRUPT_FILE, "split.tensors.count says "},
      {{.part = 3, .twice = true}, RUNG_INVALID_ARGUMENT, "model-00003-of-00003.gguf: tensor 'token_embd.weight'"},
      {{.part = 2, .architecture = "llama"}, RUNG_CORRUPT_FILE, "00002-of-00003.gguf: it is part of another model"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    write_parts(&cases[i].change);
    refused(1, cases[i].status, cases[i].says);
  }
  const change none = {0};
  write_parts(&none);
  refused(2, RUNG_UNSUPPORTED, "this is part 2 of 3");
  char path[128], other[128];
  part_name(3, path, sizeof path);
  unlink(path);
  refused(1, RUNG_NOT_FOUND, "part 3 of 3: ");
  CHECK(strstr(error.message, "model-00003-of-00003.gguf") != NULL);
  part_name(1, path, sizeof path);
  snprintf(other, sizeof other, "%s/other.gguf", scratch);
  CHECK(rename(path, other) == 0);
  const rung_source source = rung_source_path(other);
  rung_weights *weights = NULL;
  CHECK_STATUS(rung_weights_open(host, &source, NULL, &error, &weights), RUNG_UNSUPPORTED);
  CHECK(strstr(error.message, "NAME-00001-of-00003.gguf") != NULL);
  unlink(other);
}

static void test_faults(void) {
  const change none = {0};
  write_parts(&none);
  const uint64_t before = rung_host_memory(host).host;
  int64_t fired = 0;
  for (int kind = 0; kind < RUNG_FAULTS; kind++) {
    for (int64_t n = 1;; n++) {
      test_fault fault = {.kind = (rung_fault)kind, .at = n};
      rung_weights *weights;
      rung_host_set_fault(host, test_fault_hit, &fault);
      const rung_status status = open_part(1, RUNG_SOURCE_MAP, &weights);
      rung_host_set_fault(host, NULL, NULL);
      CHECK((status == RUNG_OK) == !fault.hit);
      rung_weights_release(weights);
      CHECK_EQ_I64(rung_host_memory(host).host, before);
      if (!fault.hit) break;
      fired++;
    }
  }
  CHECK(fired > 10);
  printf("%" PRId64 " calls, each failed once\n", fired);
}

int main(void) {
  const char *folder = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%s/rung-parts-XXXXXX", folder && strlen(folder) < 32 ? folder : "/tmp");
  if (!mkdtemp(scratch) || rung_host_create(NULL, NULL, &host)) return 1;
  RUN(test_same);
  RUN(test_model);
  RUN(test_refused);
  RUN(test_faults);
  for (int part = 1; part <= PARTS; part++) {
    char path[128];
    part_name(part, path, sizeof path);
    unlink(path);
  }
  rmdir(scratch);
  rung_host_release(host);
  return TEST_END();
}
