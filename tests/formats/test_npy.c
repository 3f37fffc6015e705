/* SPDX-License-Identifier: MIT
 * .npy: headers as NumPy writes them, everything else refused, round trips of each type. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "formats/npy.h"
#include "ir/type.h"
#include "test.h"

static rung_host *host;
static rung_error error;

/* A file in memory: version, header text, data bytes. */
typedef struct file {
  uint8_t *data;
  size_t bytes;
} file;

static file make(int version, const char *header, const void *data, size_t bytes) {
  const size_t length = strlen(header), begin = version == 1 ? 10 : 12;
  file f = {malloc(begin + length + bytes + 1), begin + length + bytes};
  memcpy(f.data, "\x93NUMPY", 6);
  f.data[6] = (uint8_t)version;
  f.data[7] = 0;
  for (size_t i = 8; i < begin; i++) f.data[i] = (uint8_t)(length >> 8 * (i - 8));
  memcpy(f.data + begin, header, length);
  if (bytes) memcpy(f.data + begin + length, data, bytes);
  f.data = realloc(f.data, f.bytes);
  return f;
}

static rung_status open_file(const file *f, rung_npy *npy) {
  const rung_source source = rung_source_memory(f->data, f->bytes);
  return rung_npy_open(npy, host, &source, &error);
}

static const float numbers[6] = {1, 2, 3, 4, 5, 6};

static void test_read(void) {
  static const char *const headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n",
      "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}",
  };
  for (size_t i = 0; i < RUNG_COUNT(headers); i++) {
    for (int version = 1; version <= 2; version++) {
      const file f = make(version, headers[i], numbers, sizeof numbers);
      rung_npy npy;
      CHECK_OK(open_file(&f, &npy));
      CHECK(npy.type == RUNG_TYPE_F32 && npy.rank == 2 && npy.extent[0] == 2 && npy.extent[1] == 3);
      CHECK(npy.bytes == 24 && npy.data && memcmp(npy.data, numbers, 24) == 0);
      rung_npy_close(&npy);
      free(f.data);
    }
  }
  static const struct {
    const char *header;
    int rank;
    size_t bytes;
  } shapes[] = {{"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0, 4},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", 2, 0},
                {"{'descr': '|i1', 'fortran_order': True, 'shape': (3,), }", 1, 3},
                {"{'descr': '<u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 2)}", 8, 2},
                {"{'descr': '|b1', 'fortran_order': False, 'shape': (0,)}", 1, 0}};
  for (size_t i = 0; i < RUNG_COUNT(shapes); i++) {
    const file f = make(1, shapes[i].header, numbers, shapes[i].bytes);
    rung_npy npy;
    CHECK_OK(open_file(&f, &npy));
    CHECK(npy.rank == shapes[i].rank && npy.bytes == shapes[i].bytes);
    rung_npy_close(&npy);
    free(f.data);
  }
  rung_npy none = {.type = RUNG_TYPE_F32};
  rung_npy_close(&none);
  rung_npy_close(NULL);
}

static void test_refused(void) {
#define GOOD "'fortran_order': False, 'shape': (2, 3)"
  static const struct {
    const char *header;
    rung_status status;
    const char *says;
  } cases[] = {
      {"", RUNG_CORRUPT_FILE, "'{' expected at offset 10"},
      {"{", RUNG_CORRUPT_FILE, "a quoted word expected at offset 11"},
      {"{}", RUNG_CORRUPT_FILE, "all of descr"},
      {"{'descr': '<f4', " GOOD "} x", RUNG_CORRUPT_FILE, "the end expected"},
      {"{'descr': '>f4', " GOOD "}", RUNG_UNSUPPORTED, "descr '>f4'"},
      {"{'descr': '=f4', " GOOD "}", RUNG_UNSUPPORTED, "descr '=f4'"},
      {"{'descr': '<c8', " GOOD "}", RUNG_UNSUPPORTED, "descr '<c8'"},
      {"{'descr': '|O', " GOOD "}", RUNG_UNSUPPORTED, "descr '|O'"},
      {"{'descr': '', " GOOD "}", RUNG_UNSUPPORTED, "descr ''"},
      {"{'descr': [('a', '<f4')], " GOOD "}", RUNG_CORRUPT_FILE, "a quoted word"},
      {"{'descr': '<f4<f4<f4<f4<f4<f4', " GOOD "}", RUNG_CORRUPT_FILE, "the end of a short word"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", RUNG_UNSUPPORTED, "fortran_order"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}", RUNG_CORRUPT_FILE, "True or False"},
      {"{'descr': '<f4', 'descr': '<f4', " GOOD "}", RUNG_CORRUPT_FILE, "each once"},
      {"{'other': '<f4', " GOOD "}", RUNG_CORRUPT_FILE, "one of descr"},
      {"{'descr' '<f4', " GOOD "}", RUNG_CORRUPT_FILE, "':' expected"},
      {"{'descr': '<f4' " GOOD "}", RUNG_CORRUPT_FILE, "'}' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 6}", RUNG_CORRUPT_FILE, "'(' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", RUNG_CORRUPT_FILE, "',' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", RUNG_CORRUPT_FILE, "',' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3 4)}", RUNG_CORRUPT_FILE, "')' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}", RUNG_CORRUPT_FILE, "an extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", RUNG_CORRUPT_FILE, "an extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2)}", RUNG_OVERFLOW, "npy shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", RUNG_UNSUPPORTED, "rank above 8"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", RUNG_CORRUPT_FILE, "the shape asks for 32"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", RUNG_CORRUPT_FILE, "the shape asks for 20"},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (24,)}", RUNG_CORRUPT_FILE, "npy bool at offset"},
  };
#undef GOOD
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    const file f = make(1, cases[i].header, numbers, sizeof numbers);
    rung_npy npy;
    CHECK_STATUS(open_file(&f, &npy), cases[i].status);
    CHECK(strstr(error.message, cases[i].says) != NULL);
    if (!strstr(error.message, cases[i].says)) fprintf(stderr, "%s\n", error.message);
    CHECK(npy.data == NULL && npy.map.data == NULL);
    free(f.data);
  }
}

static void test_damage(void) {
  const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  for (int version = 1; version <= 2; version++) {
    const file f = make(version, header, numbers, sizeof numbers);
    rung_npy npy;
    for (size_t n = 0; n < f.bytes; n++) {
      file cut = {malloc(n + 1), n};
      memcpy(cut.data, f.data, n);
      cut.data = realloc(cut.data, n ? n : 1);
      CHECK(open_file(&cut, &npy) != RUNG_OK);
      free(cut.data);
    }
    for (size_t at = 0; at < f.bytes; at++) {
      for (int bit = 0; bit < 8; bit++) {
        f.data[at] ^= (uint8_t)(1 << bit);
        if (open_file(&f, &npy) == RUNG_OK) {
          CHECK(npy.bytes <= f.bytes);
          rung_npy_close(&npy);
        }
        f.data[at] ^= (uint8_t)(1 << bit);
      }
    }
    f.data[6] = 3;
    CHECK_STATUS(open_file(&f, &npy), RUNG_UNSUPPORTED);
    free(f.data);
  }
}

static const char *scratch_path(void) {
  static char path[256];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-test-npy-%ld.npy", folder ? folder : "/tmp", (long)getpid());
  return path;
}

static void test_write(void) {
  static const rung_type types[] = {RUNG_TYPE_F16, RUNG_TYPE_F32, RUNG_TYPE_F64, RUNG_TYPE_I8,
                                    RUNG_TYPE_I16, RUNG_TYPE_I32, RUNG_TYPE_I64, RUNG_TYPE_U8,
                                    RUNG_TYPE_U16, RUNG_TYPE_U32, RUNG_TYPE_U64, RUNG_TYPE_BOOL};
  uint8_t bytes[6 * 8];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 2;
  for (size_t t = 0; t < RUNG_COUNT(types); t++) {
    for (int rank = 0; rank <= 3; rank++) {
      const int64_t extent[3] = {rank == 1 ? 6 : 1, 2, 3};
      const rung_tensor tensor = rung_tensor_dense(types[t], rank, extent, bytes);
      CHECK_OK(rung_npy_write(host, scratch_path(), &tensor, &error));
      const rung_source source = rung_source_path(scratch_path());
      rung_npy npy;
      CHECK_OK(rung_npy_open(&npy, host, &source, &error));
      CHECK(npy.type == types[t] && npy.rank == rank);
      for (int i = 0; i < rank; i++) CHECK_EQ_I64(npy.extent[i], extent[i]);
      CHECK(npy.data && memcmp(npy.data, bytes, (size_t)npy.bytes) == 0 && (uintptr_t)npy.data % 64 == 0);
      rung_npy_close(&npy);
    }
  }
  const int64_t extent[2] = {2, 3}, empty[1] = {0};
  rung_tensor tensor = rung_tensor_dense(RUNG_TYPE_BF16, 2, extent, bytes);
  CHECK_STATUS(rung_npy_write(host, scratch_path(), &tensor, &error), RUNG_UNSUPPORTED);
  tensor = rung_tensor_dense(RUNG_TYPE_U8, 2, extent, bytes);
  tensor.stride[0] = 3;
  tensor.stride[1] = 1;
  CHECK_OK(rung_npy_write(host, scratch_path(), &tensor, &error));
  tensor.stride[0] = 4;
  CHECK_STATUS(rung_npy_write(host, scratch_path(), &tensor, &error), RUNG_UNSUPPORTED);
  tensor = rung_tensor_dense(RUNG_TYPE_F32, 1, empty, NULL);
  CHECK_OK(rung_npy_write(host, scratch_path(), &tensor, &error));
  CHECK_STATUS(rung_npy_write(host, "/nonexistent/x.npy", &tensor, &error), RUNG_IO);
  FILE *f = fopen(scratch_path(), "wb");
  CHECK(f && fwrite("not npy at all", 1, 14, f) == 14);
  if (f) fclose(f);
  const rung_source source = rung_source_path(scratch_path());
  rung_npy npy;
  CHECK_STATUS(rung_npy_open(&npy, host, &source, &error), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, scratch_path()) != NULL);
  unlink(scratch_path());
  CHECK_STATUS(rung_npy_open(&npy, host, &source, &error), RUNG_NOT_FOUND);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  RUN(test_read);
  RUN(test_refused);
  RUN(test_damage);
  RUN(test_write);
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
  rung_host_release(host);
  return TEST_END();
}
