/* SPDX-License-Identifier: MIT
 * Sources of all kinds, letting pages go, and the writer that leaves a whole file or none. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map_file.h"
#include "test.h"

enum { BYTES = 300000 };
static rung_host *host;
static char folder[] = "/tmp/rung-test-XXXXXX";
static char path[200];
static uint8_t content[BYTES];

static int count_entries(void) {
  int n = 0;
  DIR *d = opendir(folder);
  if (!d) return -1;
  for (struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static rung_status write_file(const char *to, size_t bytes, rung_error *error) {
  rung_writer *writer = NULL;
  RUNG_TRY(rung_writer_open(host, to, error, &writer));
  size_t at = 0;
  for (size_t piece = 1; at < bytes; piece = piece * 3 + 1) {
    const size_t n = piece < bytes - at ? piece : bytes - at;
    const rung_status status = rung_writer_put(writer, content + at, n, error);
    if (status) {
      rung_writer_discard(writer);
      return status;
    }
    at += n;
  }
  return rung_writer_commit(writer, error);
}

static void test_writer(void) {
  rung_error error;
  CHECK_OK(write_file(path, BYTES, &error));
  CHECK_EQ_I64(count_entries(), 1);
  rung_writer *writer = NULL;
  CHECK_OK(rung_writer_open(host, path, &error, &writer));
  CHECK_OK(rung_writer_put(writer, "other", 5, &error));
  rung_writer_discard(writer);
  rung_writer_discard(NULL);
  CHECK_EQ_I64(count_entries(), 1);
  struct stat info;
  CHECK(stat(path, &info) == 0 && info.st_size == BYTES);
  CHECK_STATUS(rung_writer_open(host, "/nowhere/at/all", &error, &writer), RUNG_IO);
  CHECK(strstr(error.message, "/nowhere/at/all") != NULL);
  CHECK_STATUS(write_file(folder, 10, &error), RUNG_IO); /* a folder cannot be replaced */
}

static void check_source(const rung_source *source) {
  rung_map map;
  rung_error error = {0};
  CHECK_OK(rung_map_open(&map, host, source, &error));
  CHECK_EQ_I64(map.size, BYTES);
  CHECK(map.data && memcmp(map.data, content, BYTES) == 0);
  rung_map_close(&map);
  rung_map_close(&map);
}

typedef struct reader {
  size_t piece;
  uint64_t fail_at;
  bool lies;
} reader;
static int64_t read_content(void *self, uint64_t offset, void *buffer, size_t bytes) {
  reader *r = (reader *)self;
  if (r->fail_at && offset >= r->fail_at) return -1;
  if (r->lies) return (int64_t)bytes + 1;
  size_t n = bytes < r->piece ? bytes : r->piece;
  if (offset >= BYTES) return 0;
  if (n > BYTES - offset) n = (size_t)(BYTES - offset);
  memcpy(buffer, content + offset, n);
  return (int64_t)n;
}

static void test_kinds(void) {
  rung_source source = rung_source_path(path);
  check_source(&source);
  source.mode = RUNG_SOURCE_COPY;
  check_source(&source);
  source = rung_source_memory(content, BYTES);
  check_source(&source);
  const int file = open(path, O_RDONLY);
  source = (rung_source){.size = sizeof source, .kind = RUNG_SOURCE_DESCRIPTOR, .descriptor = file};
  check_source(&source);
  source.mode = RUNG_SOURCE_COPY;
  check_source(&source);
  rung_map map;
  source.mode = RUNG_SOURCE_MAP;
  CHECK_OK(rung_map_open(&map, host, &source, NULL));
  close(file);
  CHECK(memcmp(map.data, content, BYTES) == 0);
  rung_map_close(&map);
  reader r = {.piece = 777};
  source = (rung_source){
      .size = sizeof source, .kind = RUNG_SOURCE_READ, .bytes = BYTES, .read = read_content, .read_self = &r};
  check_source(&source);
  rung_error error;
  source.bytes = BYTES + 1;
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_IO);
  CHECK(strstr(error.message, "300000") != NULL);
  r.fail_at = 7770;
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_IO);
  CHECK(strstr(error.message, "7770") != NULL);
  r = (reader){.lies = true};
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_IO);
}

static void test_refused(void) {
  rung_map map;
  rung_error error;
  rung_source source = rung_source_path("/no/such/file.gguf");
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_NOT_FOUND);
  CHECK(strstr(error.message, "/no/such/file.gguf") != NULL);
  source = rung_source_path(folder);
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_UNSUPPORTED);
  char pipe_path[250];
  snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
  if (mkfifo(pipe_path, 0600) == 0) {
    source = rung_source_path(pipe_path);
    CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_UNSUPPORTED);
    unlink(pipe_path);
  }
  source = rung_source_path(NULL);
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_INVALID_ARGUMENT);
  source.size = 0;
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_map_open(&map, host, NULL, &error), RUNG_INVALID_ARGUMENT);
  source = rung_source_memory(NULL, 5);
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_INVALID_ARGUMENT);
  source.kind = (rung_source_kind)9;
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_INVALID_ARGUMENT);
  source = (rung_source){.size = sizeof source, .kind = RUNG_SOURCE_DESCRIPTOR, .descriptor = -1};
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_IO);
  source = (rung_source){.size = sizeof source, .kind = RUNG_SOURCE_READ};
  CHECK_STATUS(rung_map_open(&map, host, &source, &error), RUNG_INVALID_ARGUMENT);
}

static void test_empty(void) {
  char empty[250];
  snprintf(empty, sizeof empty, "%s/empty", folder);
  CHECK_OK(write_file(empty, 0, NULL));
  for (int mode = 0; mode < 2; mode++) {
    rung_source source = rung_source_path(empty);
    source.mode = mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
    rung_map map;
    CHECK_OK(rung_map_open(&map, host, &source, NULL));
    CHECK(map.size == 0 && map.data != NULL);
    CHECK_EQ_I64(rung_map_let_go(&map, 0, 100), 0);
    rung_map_close(&map);
  }
  rung_source source = rung_source_memory(NULL, 0);
  rung_map map;
  CHECK_OK(rung_map_open(&map, host, &source, NULL));
  CHECK(map.data != NULL);
  rung_map_close(&map);
  unlink(empty);
}

static void test_let_go(void) {
  rung_map map;
  const rung_source source = rung_source_path(path);
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  CHECK_OK(rung_map_open(&map, host, &source, NULL));
  rung_map_will_need(&map, 0, BYTES);
  CHECK_EQ_I64(rung_map_let_go(&map, 1, page - 1), 0);
  CHECK_EQ_I64(rung_map_let_go(&map, 1, 2 * page), page);
  CHECK_EQ_I64(rung_map_let_go(&map, 0, UINT64_MAX), (BYTES + page - 1) / page * page);
  CHECK_EQ_I64(rung_map_let_go(&map, BYTES, 1), 0);
  CHECK(memcmp(map.data, content, BYTES) == 0);
  rung_map_close(&map);
  const rung_source memory = rung_source_memory(content, BYTES);
  CHECK_OK(rung_map_open(&map, host, &memory, NULL));
  CHECK_EQ_I64(rung_map_let_go(&map, 0, BYTES), 0);
  rung_map_close(&map);
}

/* Every call that can fail does once: a status, nothing left behind, the same call passes next. */
static void test_faults(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_MAP, RUNG_FAULT_READ};
  const uint64_t start = rung_host_memory(host).host;
  char other[250];
  snprintf(other, sizeof other, "%s/other", folder);
  for (int step = 0; step < 3; step++) {
    int64_t failed = 0;
    for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
      test_fault fault = {.kind = kinds[k]};
      for (fault.at = 1;; fault.at++) {
        memset(fault.count, 0, sizeof fault.count);
        fault.hit = false;
        rung_host_set_fault(host, test_fault_hit, &fault);
        rung_map map = {0};
        rung_error error = {0};
        rung_source source = rung_source_path(path);
        source.mode = step == 1 ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
        const rung_status status =
            step == 2 ? write_file(other, BYTES, &error) : rung_map_open(&map, host, &source, &error);
        rung_host_set_fault(host, NULL, NULL);
        CHECK((status == RUNG_OK) == !fault.hit && (!status || error.message[0]));
        CHECK_EQ_I64(count_entries(), step == 2 && !status ? 2 : 1);
        rung_map_close(&map);
        unlink(other);
        CHECK(rung_host_memory(host).host == start && rung_host_memory(host).weights == 0);
        if (!fault.hit) break;
        failed++;
      }
    }
    CHECK(failed >= 2);
  }
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/file", folder);
  uint64_t seed = 11;
  for (size_t i = 0; i < BYTES; i++) content[i] = (uint8_t)test_random(&seed);
  RUN(test_writer);
  RUN(test_kinds);
  RUN(test_refused);
  RUN(test_empty);
  RUN(test_let_go);
  RUN(test_faults);
  unlink(path);
  CHECK(rmdir(folder) == 0);
  rung_host_release(host);
  return TEST_END();
}
