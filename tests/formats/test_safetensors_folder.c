/* SPDX-License-Identifier: MIT
 * Folders of safetensors: an index names files that must lie in the folder and hold what it says; every way out of the
 * folder, every disagreement and every failing call is a status that names file and tensor. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "formats/make_safetensors.h"

static rung_host *host;
static rung_error error;
static char folder[128], outside[128];

static const char *in(const char *where, const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", where, name);
  return path;
}

static void put(const char *path, const void *data, size_t bytes) {
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(data, 1, bytes, f) == bytes);
  if (f) fclose(f);
}

/* One f32 of the name. */
static void put_tensor(const char *path, const char *name) {
  char header[128];
  snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", name);
  const st_file f = st_make(header, 4);
  put(path, f.data, f.bytes);
  free(f.data);
}

static rung_status open_with(const char *index, rung_weights **out) {
  put(in(folder, "model.safetensors.index.json"), index, strlen(index));
  const rung_source source = rung_source_path(folder);
  error = (rung_error){0};
  *out = NULL;
  return rung_weights_open(host, &source, NULL, &error, out);
}

static const char good[] =
    "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"sub/2.st\"}}";

static void test_good(void) {
  static const char *const texts[] = {
      good, "{\"weight_map\":{\"b\":\"sub\\/2.st\",\"\\u0061\":\"1.safetensors\"},\"more\":[1,2,{}]}",
      "{\"weight_map\":{\"a\":\"./1.safetensors\",\"b\":\"sub/./2.st\"}}",
      "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"inner.st\"}}", /* a link that stays inside */
      "{\"weight_map\":{\"b\":\"sub/2.st\",\"a\":\"1.safetensors\"}}"};
  for (size_t i = 0; i < RUNG_COUNT(texts); i++) {
    rung_weights *weights;
    size_t a, b;
    CHECK_OK(open_with(texts[i], &weights));
    if (!weights) fprintf(stderr, "  %s\n", error.message);
    CHECK(weights && rung_weights_count(weights) == 2 && rung_weights_index(weights, "a", &a) &&
          rung_weights_index(weights, "b", &b) && a != b);
    if (weights) CHECK(rung_weights_entry(weights, a)->source != rung_weights_entry(weights, b)->source);
    rung_weights_release(weights);
  }
}

static void test_refused(void) {
  char absolute[512], far[512];
  snprintf(absolute, sizeof absolute, "{\"weight_map\":{\"a\":\"%s/1.safetensors\"}}", folder);
  snprintf(far, sizeof far, "{\"weight_map\":{\"x\":\"../%s/x.st\"}}", strrchr(outside, '/') + 1);
  const struct {
    const char *index;
    rung_status status;
    const char *says;
  } cases[] = {
      {absolute, RUNG_CORRUPT_FILE, "leads out of the folder"},
      {far, RUNG_CORRUPT_FILE, "x.st' of tensor 'x': a file name of"},
      {"{\"weight_map\":{\"a\":\"sub/../1.safetensors\"}}", RUNG_CORRUPT_FILE, "leads out of the folder"},
      {"{\"weight_map\":{\"a\":\"..\"}}", RUNG_CORRUPT_FILE, "leads out of the folder"},
      {"{\"weight_map\":{\"a\":\"sub/..\"}}", RUNG_CORRUPT_FILE, "leads out of the folder"},
      {"{\"weight_map\":{\"a\":\"sub\\\\2.st\"}}", RUNG_CORRUPT_FILE, "leads out of the folder"},
      {"{\"weight_map\":{\"a\":\"\"}}", RUNG_CORRUPT_FILE, "name at offset"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\\u0000\"}}", RUNG_CORRUPT_FILE, "name at offset"},
      {"{\"weight_map\":{\"x\":\"outer.st\"}}", RUNG_CORRUPT_FILE, "a symbolic link out of the folder"},
      {"{\"weight_map\":{\"x\":\"way/x.st\"}}", RUNG_CORRUPT_FILE, "a symbolic link out of the folder"},
      {"{\"weight_map\":{\"a\":\"none.st\"}}", RUNG_NOT_FOUND, "file 'none.st' of tensor 'a'"},
      {"{\"weight_map\":{\"a\":\"sub\"}}", RUNG_UNSUPPORTED, "not a regular file"},
      {"{\"weight_map\":{\"a\":\"sub/2.st\"}}", RUNG_CORRUPT_FILE,
       "tensor 'a' at offset 15 is not in the file 'sub/2.st'"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"1.safetensors\"}}", RUNG_CORRUPT_FILE,
       "tensor 'c' at offset 35"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"1.safetensors\"}}", RUNG_CORRUPT_FILE,
       "'a' at offset 35 comes twice"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"sub/2.st\"}}", RUNG_CORRUPT_FILE,
       "not in the file 'sub/2.st'"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"again.st\"}}", RUNG_CORRUPT_FILE,
       "tensor 'a' at offset 9 comes twice"},
      {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"cut.st\"}}", RUNG_CORRUPT_FILE, "file 'cut.st' of tensor 'b'"},
      {"{\"weight_map\":{\"a\":7}}", RUNG_CORRUPT_FILE, "a file name expected at offset 19"},
      {"{\"weight_map\":[]}", RUNG_CORRUPT_FILE, "there is no object \"weight_map\""},
      {"{\"weight_map\":{},\"weight_map\":{}}", RUNG_CORRUPT_FILE, "\"weight_map\" comes twice"},
      {"{}", RUNG_CORRUPT_FILE, "there is no object \"weight_map\""},
      {"[]", RUNG_CORRUPT_FILE, "there is no object \"weight_map\""},
      {"", RUNG_CORRUPT_FILE, "model.safetensors.index.json: JSON: a value expected at offset 0"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    rung_weights *weights;
    CHECK_STATUS(open_with(cases[i].index, &weights), cases[i].status);
    CHECK(strstr(error.message, cases[i].says) != NULL && strstr(error.message, folder) != NULL);
    if (!strstr(error.message, cases[i].says)) fprintf(stderr, "  %s: %s\n", cases[i].index, error.message);
    rung_weights_release(weights);
  }
}

static void test_damage(void) {
  char text[sizeof good];
  for (size_t n = 0; n < sizeof good - 1; n++) {
    rung_weights *weights;
    memcpy(text, good, n);
    text[n] = 0;
    CHECK(open_with(text, &weights) != RUNG_OK && !weights);
  }
  for (size_t at = 0; at < sizeof good - 1; at++) {
    for (int bit = 0; bit < 7; bit++) {
      rung_weights *weights;
      memcpy(text, good, sizeof good);
      text[at] ^= (char)(1 << bit);
      if (!open_with(text, &weights)) (void)st_walk(weights);
      rung_weights_release(weights);
    }
  }
}

static void test_faults(void) {
  for (int mode = 0; mode < 2; mode++) {
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      for (int64_t n = 1;; n++) {
        rung_weights *weights;
        CHECK_OK(open_with(good, &weights));
        rung_weights_release(weights);
        test_fault fault = {.kind = (rung_fault)kind, .at = n};
        rung_host_set_fault(host, test_fault_hit, &fault);
        rung_source source = rung_source_path(folder);
        source.mode = mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
        const rung_status status = rung_weights_open(host, &source, NULL, &error, &weights);
        rung_host_set_fault(host, NULL, NULL);
        CHECK((status == RUNG_OK) == !fault.hit);
        if (!status) rung_weights_release(weights);
        CHECK_EQ_I64(rung_host_memory(host).weights, 0);
        if (!fault.hit) break;
      }
    }
  }
}

/* One file is taken before an index; with neither the folder is refused; names that are no folder are files. */
static void test_choice(void) {
  rung_weights *weights;
  put_tensor(in(folder, "model.safetensors"), "single");
  CHECK_OK(open_with(good, &weights));
  CHECK(weights && rung_weights_count(weights) == 1 && rung_weights_find(weights, "single"));
  rung_weights_release(weights);
  unlink(in(folder, "model.safetensors"));
  unlink(in(folder, "model.safetensors.index.json"));
  rung_source source = rung_source_path(folder);
  CHECK_STATUS(rung_weights_open(host, &source, NULL, &error, &weights), RUNG_NOT_FOUND);
  CHECK(strstr(error.message, "there is neither model.safetensors nor model.safetensors.index.json") != NULL);
  static const char *const names[] = {"config.json", "model.safetensors.index.json"};
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    char path[RUNG_PATH_BYTES];
    source.path = in(folder, names[i]);
    CHECK(!rung_find_folder(&source, path));
    CHECK_STATUS(rung_weights_open(host, &source, NULL, &error, &weights), RUNG_NOT_FOUND);
  }
  const rung_source none = {.size = sizeof none, .kind = RUNG_SOURCE_PATH};
  CHECK_STATUS(rung_weights_open(host, &none, NULL, &error, &weights), RUNG_INVALID_ARGUMENT);
}

static void make_folders(void) {
  CHECK(mkdir(in(folder, "sub"), 0700) == 0);
  put_tensor(in(folder, "1.safetensors"), "a");
  put_tensor(in(folder, "sub/2.st"), "b");
  put_tensor(in(folder, "again.st"), "a");
  put_tensor(in(outside, "x.st"), "x");
  put(in(folder, "cut.st"), "\x10\0\0\0\0\0\0\0{", 9);
  char target[512];
  snprintf(target, sizeof target, "%s/x.st", outside);
  CHECK(symlink(target, in(folder, "outer.st")) == 0);
  CHECK(symlink(outside, in(folder, "way")) == 0);
  CHECK(symlink("sub/2.st", in(folder, "inner.st")) == 0);
}

static void remove_folders(void) {
  static const char *const names[] = {"1.safetensors", "sub/2.st", "again.st", "cut.st",
                                      "outer.st",      "way",      "inner.st", "model.safetensors.index.json"};
  for (size_t i = 0; i < RUNG_COUNT(names); i++) unlink(in(folder, names[i]));
  unlink(in(outside, "x.st"));
  rmdir(in(folder, "sub"));
  rmdir(folder);
  rmdir(outside);
}

int main(void) {
  const char *base = getenv("TMPDIR");
  if (!base || strlen(base) > 64) base = "/tmp";
  snprintf(folder, sizeof folder, "%s/rung-folder-XXXXXX", base);
  snprintf(outside, sizeof outside, "%s/rung-outside-XXXXXX", base);
  if (rung_host_create(NULL, NULL, &host) || !mkdtemp(folder) || !mkdtemp(outside)) return 1;
  make_folders();
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_good);
  RUN(test_refused);
  RUN(test_damage);
  RUN(test_faults);
  RUN(test_choice);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  remove_folders();
  return TEST_END();
}
