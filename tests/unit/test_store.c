/* SPDX-License-Identifier: MIT
 * The weights store: names, sources and who lets them go, identities, pages, account, the check for what is no number.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/half.h"
#include "base/pool.h"
#include "formats/gguf_write.h"
#include "ir/type.h"
#include "test.h"
#include "weights/store.h"

static rung_host *host;
static rung_error error;

static uint64_t total(void) {
  const rung_memory m = rung_host_memory(host);
#define X(name, text) +m.name
  return 0 RUNG_MEMORY_MAP(X);
#undef X
}

static rung_tensor_desc desc_of(const char *name, rung_type type, int rank, int64_t a, int64_t b) {
  return (rung_tensor_desc){.name = name, .name_length = strlen(name), .type = type, .rank = rank, .extent = {a, b}};
}

typedef struct owner {
  rung_map map;
  int released;
} owner;
static void let_owner_go(void *p) {
  owner *o = (owner *)p;
  rung_map_close(&o->map);
  o->released++;
}
/* A source over memory, owned by `o`. */
static int add_memory(rung_weights *w, owner *o, const void *data, size_t bytes) {
  const rung_source source = rung_source_memory(data, bytes);
  int index = -1;
  *o = (owner){.released = 0};
  CHECK_OK(rung_map_open(&o->map, host, &source, &error));
  const rung_weights_source s = {&o->map, o, let_owner_go};
  CHECK_OK(rung_weights_add_source(w, &s, &error, &index));
  return index;
}

static const char *scratch_path(void) {
  static char path[256];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-test-store-%ld.gguf", folder ? folder : "/tmp", (long)getpid());
  return path;
}

static void test_names(void) {
  rung_weights *w = NULL;
  CHECK_OK(rung_weights_create(host, &error, &w));
  CHECK(!rung_weights_find(w, "w") && rung_weights_count(w) == 0 && !rung_weights_entry(w, 0));
  enum { MANY = 2000 };
  const rung_tensor_entry *entries[MANY];
  char name[32];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "blk.%d.weight and more", i);
    rung_tensor_desc desc = desc_of(name, RUNG_TYPE_F32, 2, i, 3);
    desc.name_length = strlen(name) - 9; /* need not be terminated */
    CHECK_OK(rung_weights_declare_desc(w, &desc, &error, &entries[i]));
  }
  CHECK_EQ_I64(rung_weights_count(w), MANY);
  for (int i = 0; i < MANY; i++) {
    size_t index = 0;
    snprintf(name, sizeof name, "blk.%d.weight", i);
    CHECK(rung_weights_find(w, name) == entries[i] && rung_weights_entry(w, (size_t)i) == entries[i]);
    CHECK(rung_weights_index(w, name, &index) && index == (size_t)i);
    CHECK_STR(entries[i]->name, name);
    CHECK_EQ_I64(entries[i]->bytes, i * 12);
  }
  CHECK(!rung_weights_find(w, "blk.2000.weight") && !rung_weights_find(w, "") && !rung_weights_find(w, NULL));
  const rung_tensor_desc again = desc_of("blk.7.weight", RUNG_TYPE_F32, 1, 1, 0);
  CHECK_STATUS(rung_weights_declare_desc(w, &again, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "blk.7.weight") != NULL);
  rung_weights_info info;
  CHECK(rung_weights_at(w, 5, &info) && !rung_weights_at(w, MANY, &info));
  CHECK(info.type == RUNG_TYPE_F32 && info.rank == 2 && info.extent[0] == 5 && info.extent[1] == 3 && !info.loaded);
  CHECK_STR(info.name, "blk.5.weight");
  rung_weights_release(w);
  rung_weights_release(NULL);
}

static void test_sizes(void) {
  uint64_t bytes = 77;
  const int64_t wrap[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 4}, zero[3] = {INT64_C(1) << 62, 0, INT64_C(1) << 62};
  CHECK_STATUS(rung_weights_size((rung_type)63, 1, wrap, &error, &bytes), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_F32, 9, wrap, &error, &bytes), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_F32, -1, wrap, &error, &bytes), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_F32, 3, wrap, &error, &bytes), RUNG_OVERFLOW);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_F32, 3, zero, &error, &bytes), RUNG_OVERFLOW);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_F32, 1, (const int64_t[]){-1}, &error, &bytes), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_size(RUNG_TYPE_Q4_K, 2, (const int64_t[]){3, 128}, &error, &bytes), RUNG_SHAPE_MISMATCH);
  CHECK_EQ_I64(bytes, 77);
  CHECK_OK(rung_weights_size(RUNG_TYPE_I4, 2, (const int64_t[]){3, 3}, &error, &bytes));
  CHECK_EQ_I64(bytes, 5); /* nine numbers, two a byte, row behind row */
  CHECK_OK(rung_weights_size(RUNG_TYPE_Q4_K, 2, (const int64_t[]){3, 512}, &error, &bytes));
  CHECK_EQ_I64(bytes, 3 * 2 * 144);
  CHECK_OK(rung_weights_size(RUNG_TYPE_F64, 0, NULL, &error, &bytes));
  CHECK_EQ_I64(bytes, 8);
  CHECK_OK(rung_weights_size(RUNG_TYPE_Q8_0, 2, (const int64_t[]){4, 0}, &error, &bytes));
  CHECK_EQ_I64(bytes, 0);
  CHECK_OK(rung_weights_size(RUNG_TYPE_I8, 2, wrap, &error, &bytes));
  CHECK_EQ_I64(bytes, INT64_C(1) << 62);
}

static void test_sources(void) {
  static const float numbers[16] = {1, 2, 3};
  rung_weights *w = NULL;
  owner o[10];
  CHECK_OK(rung_weights_create(host, &error, &w));
  for (int i = 0; i < 10; i++) CHECK_EQ_I64(add_memory(w, &o[i], numbers, sizeof numbers), i);
  const rung_tensor_entry *e = NULL, *late = NULL;
  rung_tensor_desc desc = desc_of("w", RUNG_TYPE_F32, 2, 2, 3);
  CHECK_OK(rung_weights_add(w, &desc, 3, 8, &error, &e));
  CHECK(e && e->data == numbers + 2 && e->bytes == 24 && e->source == 3 && e->offset == 8 && e->index == 0);
  desc.name = "x";
  CHECK_STATUS(rung_weights_add(w, &desc, 10, 0, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_add(w, &desc, -1, 0, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_add(w, &desc, 0, 48, &error, NULL), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_weights_add(w, &desc, 0, UINT64_MAX - 3, &error, NULL), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_weights_add(w, &desc, 0, 65, &error, NULL), RUNG_OUT_OF_RANGE);
  desc.extent[1] = -3;
  CHECK_STATUS(rung_weights_add(w, &desc, 0, 0, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_declare_desc(w, &desc, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "'x'") && rung_weights_count(w) == 1); /* nothing half-done */
  desc.extent[1] = 3;
  CHECK_OK(rung_weights_declare_desc(w, &desc, &error, &late));
  CHECK(late && !late->data && late->source == -1);
  rung_hash hash;
  CHECK_STATUS(rung_weights_identity(w, late, &error, &hash), RUNG_NOT_LOADED);
  CHECK_STATUS(rung_weights_check_tensor(w, 1, &error, NULL), RUNG_NOT_LOADED);
  CHECK_OK(rung_weights_check(w, &error)); /* what is loaded */
  CHECK(rung_weights_let_go(w, late, 0, 24) == 0 && !rung_weights_can_let_go(w, late));
  CHECK_OK(rung_weights_account(w, late, &error));
  CHECK_STATUS(rung_weights_fill(w, late, 0, 60, &error), RUNG_OUT_OF_RANGE);
  CHECK_OK(rung_weights_fill(w, late, 9, 0, &error));
  CHECK(late->data == numbers && late->source == 9);
  CHECK_STATUS(rung_weights_fill(w, late, 9, 0, &error), RUNG_INVALID_ARGUMENT);
  /* memory of the caller's: not counted, not let go */
  CHECK_OK(rung_weights_account(w, e, &error));
  CHECK(rung_host_memory(host).weights == 0 && rung_weights_let_go(w, e, 0, 24) == 0);
  rung_weights_unaccount(w, e);
  rung_weights_will_need(w, e);
  rung_weights_retain(w);
  rung_weights_release(w);
  CHECK_EQ_I64(o[0].released, 0);
  rung_weights_release(w);
  for (int i = 0; i < 10; i++) CHECK_EQ_I64(o[i].released, 1);
}

static void test_identity(void) {
  static const float numbers[8] = {1, 2, 3, 4, 1, 2, 3, 4};
  rung_weights *w = NULL;
  owner o;
  CHECK_OK(rung_weights_create(host, &error, &w));
  const int source = add_memory(w, &o, numbers, sizeof numbers);
  const struct {
    const char *name;
    rung_type type;
    int rank;
    int64_t a, b;
    uint64_t offset;
  } rows[] = {{"a", RUNG_TYPE_F32, 2, 2, 2, 0},     {"same", RUNG_TYPE_F32, 2, 2, 2, 16},
              {"shape", RUNG_TYPE_F32, 1, 4, 0, 0}, {"type", RUNG_TYPE_I32, 2, 2, 2, 0},
              {"bytes", RUNG_TYPE_F32, 2, 2, 2, 4}, {"turned", RUNG_TYPE_F32, 2, 4, 1, 0}};
  rung_hash hash[6], again;
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    const rung_tensor_desc desc = desc_of(rows[i].name, rows[i].type, rows[i].rank, rows[i].a, rows[i].b);
    const rung_tensor_entry *e = NULL;
    CHECK_OK(rung_weights_add(w, &desc, source, rows[i].offset, &error, &e));
    CHECK_OK(rung_weights_identity(w, e, &error, &hash[i]));
    CHECK_OK(rung_weights_identity(w, e, &error, &again));
    CHECK(rung_hash_equal(hash[i], again));
    CHECK(rung_hash_equal(hash[i], hash[0]) == (i <= 1));
  }
  rung_weights_release(w);
}

/* ---- a mapped file */

enum { ROWS = 4096, COLUMNS = 1024 }; /* 4 MiB of i8 */

static void write_file(void) {
  rung_gguf_writer *writer = NULL;
  uint8_t *bytes = malloc((size_t)ROWS * COLUMNS);
  for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) bytes[i] = (uint8_t)(i * 7);
  const int64_t large[2] = {ROWS, COLUMNS}, small[1] = {5};
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &writer));
  rung_gguf_put_text(writer, "general.architecture", "none");
  rung_gguf_put_tensor(writer, "small", RUNG_TYPE_F32, 1, small, NULL);
  rung_gguf_put_tensor(writer, "large", RUNG_TYPE_I8, 2, large, bytes);
  CHECK_OK(rung_gguf_write_file(writer, scratch_path(), &error));
  rung_gguf_writer_destroy(writer);
  free(bytes);
}

/* Resident kilobytes of file pages in this process: field 3 of statm. */
static int64_t shared_pages(void) {
  long size = 0, resident = 0, shared = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f) return -1;
  if (fscanf(f, "%ld %ld %ld", &size, &resident, &shared) != 3) shared = -1;
  fclose(f);
  return shared;
}

static uint64_t sum_bytes(const rung_tensor_entry *e, uint64_t from, uint64_t to) {
  uint64_t sum = 0;
  for (uint64_t i = from; i < to; i++) sum += ((const uint8_t *)e->data)[i];
  return sum;
}

static void test_mapped(void) {
  write_file();
  const uint64_t before = total();
  const rung_source source = rung_source_path(scratch_path());
  rung_weights *w = NULL;
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &w));
  if (!w) return;
  const rung_tensor_entry *e = rung_weights_find(w, "large");
  CHECK(e && rung_weights_can_let_go(w, e) && e->bytes == (uint64_t)ROWS * COLUMNS);
  /* the account counts once, however often asked */
  CHECK_OK(rung_weights_account(w, e, &error));
  CHECK_OK(rung_weights_account(w, e, &error));
  CHECK_EQ_I64(rung_host_memory(host).weights, e->bytes);
  rung_weights_unaccount(w, e);
  CHECK_EQ_I64(rung_host_memory(host).weights, e->bytes);
  rung_weights_unaccount(w, e);
  rung_weights_unaccount(w, e); /* one too many does nothing */
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
  /* slices in order: the whole tensor goes, however they cut pages */
  const int64_t resting = shared_pages();
  rung_weights_will_need(w, e);
  const uint64_t slice = 1000003, sum = sum_bytes(e, 0, e->bytes);
  for (int round = 0; round < 2; round++) {
    uint64_t gone = 0;
    for (uint64_t at = 0; at < e->bytes; at += slice) {
      CHECK(sum_bytes(e, at, at + slice < e->bytes ? at + slice : e->bytes) > 0);
      gone += rung_weights_let_go(w, e, at, slice);
    }
    CHECK(gone <= e->bytes + 4096 && gone >= e->bytes - 2 * 4096);
    if (resting >= 0) CHECK(shared_pages() - resting <= 40); /* neighbours that the system maps along */
    CHECK(sum_bytes(e, 0, e->bytes) == sum);
  }
  CHECK(rung_weights_let_go(w, e, e->bytes, 1) == 0 && rung_weights_let_go(w, e, UINT64_MAX, UINT64_MAX) == 0);
  CHECK_OK(rung_weights_account(w, e, &error)); /* left counted: release takes it back */
  rung_weights_release(w);
  CHECK_EQ_I64(total(), before);
}

static void test_copied(void) {
  write_file();
  rung_source source = rung_source_path(scratch_path());
  source.mode = RUNG_SOURCE_COPY;
  rung_weights *w = NULL;
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &w));
  const rung_tensor_entry *e = w ? rung_weights_find(w, "large") : NULL;
  CHECK(e && !rung_weights_can_let_go(w, e));
  const uint64_t counted = rung_host_memory(host).weights;
  CHECK(counted > (uint64_t)ROWS * COLUMNS);
  if (e) CHECK_OK(rung_weights_account(w, e, &error));
  CHECK_EQ_I64(rung_host_memory(host).weights, counted);
  rung_weights_release(w);
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
}

static void test_budget(void) {
  write_file();
  rung_host_options options = rung_host_options_default();
  options.memory_budget = 3 << 20;
  rung_host *tight = NULL;
  CHECK_OK(rung_host_create(&options, &error, &tight));
  rung_source source = rung_source_path(scratch_path());
  rung_weights *w = NULL;
  CHECK_OK(rung_weights_open(tight, &source, NULL, &error, &w));
  const rung_tensor_entry *e = w ? rung_weights_find(w, "large") : NULL;
  if (e) CHECK_STATUS(rung_weights_account(w, e, &error), RUNG_OVER_BUDGET);
  CHECK(strstr(error.message, "large") != NULL);
  CHECK_EQ_I64(rung_host_memory(tight).weights, 0);
  if (e) CHECK_OK(rung_weights_account(w, rung_weights_find(w, "small"), &error));
  rung_weights_release(w);
  source.mode = RUNG_SOURCE_COPY;
  w = NULL;
  CHECK_STATUS(rung_weights_open(tight, &source, NULL, &error, &w), RUNG_OVER_BUDGET);
  CHECK(w == NULL);
  rung_host_release(tight);
}

/* Many threads account and identify at once. */
static rung_weights *shared;
static void use_shared(void *self, int64_t task, int thread) {
  (void)self;
  (void)thread;
  const rung_tensor_entry *e = rung_weights_entry(shared, (size_t)(task % 2));
  rung_hash a;
  if (rung_weights_account(shared, e, NULL) || rung_weights_identity(shared, e, NULL, &a)) return;
  rung_weights_retain(shared);
  (void)rung_weights_let_go(shared, e, 0, 1 << 16);
  rung_weights_release(shared);
  rung_weights_unaccount(shared, e);
}
static void test_threads(void) {
  write_file();
  const rung_source source = rung_source_path(scratch_path());
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &shared));
  if (!shared) return;
  rung_pool_run(rung_pool_shared(host), 4, 64, use_shared, NULL);
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
  rung_weights_release(shared);
}

/* ---- numbers that are none */

static void test_check_formats(void) {
  for (size_t i = 0; i < rung_type_count(); i++) {
    const rung_type type = rung_type_at(i);
    const rung_type_row *row = rung_type_get(type);
    const int64_t columns = 256, rows = 9000; /* more than one slice */
    uint64_t bytes = 0;
    CHECK_OK(rung_weights_size(type, 2, (const int64_t[]){rows, columns}, &error, &bytes));
    uint8_t *data = calloc(1, bytes);
    rung_weights *w = NULL;
    owner o;
    CHECK_OK(rung_weights_create(host, &error, &w));
    const int source = add_memory(w, &o, data, bytes);
    const rung_tensor_desc desc = desc_of("blk.3.w", type, 2, rows, columns);
    CHECK_OK(rung_weights_add(w, &desc, source, 0, &error, NULL));
    CHECK_OK(rung_weights_check(w, &error));
    const bool numbers = row->class_ == RUNG_CLASS_FLOAT || row->class_ == RUNG_CLASS_BLOCK ||
                         type == RUNG_TYPE_F8E4M3 || type == RUNG_TYPE_F8E5M2 || type == RUNG_TYPE_F8E8M0;
    /* All ones in row 8765, column 0 and the rest of its block: a NaN in any format that has one. */
    memset(data + bytes / rows * 8765, 0xFF, row->bytes);
    uint64_t element = 0;
    const rung_status status = rung_weights_check_tensor(w, 0, &error, &element);
    CHECK_STATUS(status, numbers ? RUNG_CORRUPT_FILE : RUNG_OK);
    if (numbers) {
      CHECK_EQ_I64(element, 8765 * columns);
      CHECK(strstr(error.message, "'blk.3.w'") && strstr(error.message, row->name) &&
            strstr(error.message, "[8765, 0]"));
    }
    rung_weights_release(w);
    free(data);
  }
}

static void test_check_values(void) {
  static const double good[3] = {1e300, -1e300, 0};
  double bad[3] = {1, 2, -(double)INFINITY};
  static const float scalar[1] = {NAN};
  rung_weights *w = NULL;
  owner o[3];
  CHECK_OK(rung_weights_create(host, &error, &w));
  rung_tensor_desc desc = desc_of("good", RUNG_TYPE_F64, 1, 3, 0);
  CHECK_OK(rung_weights_add(w, &desc, add_memory(w, &o[0], good, sizeof good), 0, &error, NULL));
  desc = desc_of("empty", RUNG_TYPE_F32, 2, 0, 3);
  CHECK_OK(rung_weights_add(w, &desc, 0, 24, &error, NULL));
  CHECK_OK(rung_weights_check(w, &error));
  desc = desc_of("bad", RUNG_TYPE_F64, 1, 3, 0);
  CHECK_OK(rung_weights_add(w, &desc, add_memory(w, &o[1], bad, sizeof bad), 0, &error, NULL));
  CHECK_STATUS(rung_weights_check(w, &error), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "'bad' (f64): element [2] is not finite; offset 16") != NULL);
  desc = desc_of("scalar", RUNG_TYPE_F32, 0, 0, 0);
  CHECK_OK(rung_weights_add(w, &desc, add_memory(w, &o[2], scalar, sizeof scalar), 0, &error, NULL));
  uint64_t element = 9;
  CHECK_STATUS(rung_weights_check_tensor(w, 3, &error, &element), RUNG_CORRUPT_FILE);
  CHECK(element == 0 && strstr(error.message, "element []") != NULL);
  CHECK_STATUS(rung_weights_check_tensor(w, 4, &error, &element), RUNG_OUT_OF_RANGE);
  CHECK_OK(rung_weights_check_tensor(w, 0, NULL, NULL));
  rung_weights_release(w);
}

/* A NaN in one scale of packed weights in a file: found on request, named, and the file is refused where it was asked.
 */
static void test_check_file(void) {
  uint8_t packed[4 * 18] = {0};
  const uint16_t nan = 0x7E01;
  memcpy(packed + 2 * 18, &nan, 2);
  rung_gguf_writer *writer = NULL;
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &writer));
  rung_gguf_put_tensor(writer, "blk.0.ffn_up.weight", RUNG_TYPE_Q4_0, 2, (const int64_t[]){2, 64}, packed);
  CHECK_OK(rung_gguf_write_file(writer, scratch_path(), &error));
  rung_gguf_writer_destroy(writer);
  const rung_source source = rung_source_path(scratch_path());
  rung_weights *w = NULL;
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &w));
  CHECK_STATUS(rung_weights_check(w, &error), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "'blk.0.ffn_up.weight' (q4_0): element [1, 0]") != NULL);
  rung_weights_release(w);
  rung_weights_options options = rung_weights_options_default();
  options.check = true;
  w = NULL;
  CHECK_STATUS(rung_weights_open(host, &source, &options, &error, &w), RUNG_CORRUPT_FILE);
  CHECK(w == NULL && strstr(error.message, scratch_path()) && strstr(error.message, "ffn_up"));
}

static void test_open_refuses(void) {
  rung_weights *w = NULL;
  const rung_source junk = rung_source_memory("not a model", 11), none = rung_source_memory(NULL, 0);
  rung_weights_options options = {.size = 0};
  CHECK_STATUS(rung_weights_open(host, &junk, NULL, &error, &w), RUNG_UNSUPPORTED);
  CHECK_STATUS(rung_weights_open(host, &none, NULL, &error, &w), RUNG_UNSUPPORTED);
  CHECK_STATUS(rung_weights_open(host, &junk, &options, &error, &w), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_open(NULL, &junk, NULL, &error, &w), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_open(host, NULL, NULL, &error, &w), RUNG_INVALID_ARGUMENT);
  rung_gguf_writer *writer = NULL;
  rung_text out;
  rung_text_init(&out, host);
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &writer));
  const uint16_t parts = 3;
  rung_gguf_put_value(writer, "split.count", RUNG_GGUF_U16, &parts);
  CHECK_OK(rung_gguf_write_memory(writer, &out, &error));
  const rung_source split = rung_source_memory(out.data, out.length);
  CHECK_STATUS(rung_weights_open(host, &split, NULL, &error, &w), RUNG_UNSUPPORTED);
  CHECK(w == NULL && strstr(error.message, "one of 3 parts") != NULL);
  rung_gguf_writer_destroy(writer);
  rung_text_finish(&out);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  (void)rung_pool_shared(host); /* what it holds stays */
  const uint64_t before = total();
  RUN(test_names);
  RUN(test_sizes);
  RUN(test_sources);
  RUN(test_identity);
  RUN(test_mapped);
  RUN(test_copied);
  RUN(test_budget);
  RUN(test_threads);
  RUN(test_check_formats);
  RUN(test_check_values);
  RUN(test_check_file);
  RUN(test_open_refuses);
  unlink(scratch_path());
  CHECK_EQ_I64(total(), before);
  rung_host_release(host);
  return TEST_END();
}
