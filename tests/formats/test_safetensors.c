/* SPDX-License-Identifier: MIT
 * safetensors: files in place, every dtype; what the format forbids is refused and names the tensor and the offset; cut
 * and flipped anywhere a file is refused or harmless; every failing call ends in a status. Folders:
 * test_safetensors_folder.c.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "formats/make_safetensors.h"

static rung_host *host;
static rung_error error;

static rung_status open_bytes(const st_file *f, rung_weights **out) {
  const rung_source source = rung_source_memory(f->data, f->bytes);
  *out = NULL;
  error = (rung_error){0};
  return rung_weights_open(host, &source, NULL, &error, out);
}

/* ---- reading */

static void test_dtypes(void) {
  static const struct {
    const char *dtype;
    rung_type type;
    int bytes;
  } rows[] = {{"F64", RUNG_TYPE_F64, 8},   {"F32", RUNG_TYPE_F32, 4},        {"F16", RUNG_TYPE_F16, 2},
              {"BF16", RUNG_TYPE_BF16, 2}, {"I64", RUNG_TYPE_I64, 8},        {"I32", RUNG_TYPE_I32, 4},
              {"I16", RUNG_TYPE_I16, 2},   {"I8", RUNG_TYPE_I8, 1},          {"U64", RUNG_TYPE_U64, 8},
              {"U32", RUNG_TYPE_U32, 4},   {"U16", RUNG_TYPE_U16, 2},        {"U8", RUNG_TYPE_U8, 1},
              {"BOOL", RUNG_TYPE_BOOL, 1}, {"F8_E4M3", RUNG_TYPE_F8E4M3, 1}, {"F8_E5M2", RUNG_TYPE_F8E5M2, 1}};
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    char header[256];
    snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%d]}}", rows[i].dtype,
             6 * rows[i].bytes);
    const st_file f = st_make(header, (size_t)(6 * rows[i].bytes));
    rung_weights *weights;
    rung_weights_info info = {0};
    CHECK_OK(open_bytes(&f, &weights));
    CHECK(weights && rung_weights_count(weights) == 1 && rung_weights_at(weights, 0, &info));
    CHECK(info.type == rows[i].type && info.rank == 2 && info.extent[0] == 2 && info.extent[1] == 3 && info.loaded);
    CHECK_EQ_I64(info.bytes, 6 * rows[i].bytes);
    const rung_tensor_entry *entry = weights ? rung_weights_find(weights, "w") : NULL;
    CHECK(entry && (const uint8_t *)entry->data == f.data + f.bytes - info.bytes); /* in place */
    rung_weights_release(weights);
    free(f.data);
  }
}

/* Names with escapes, blanks, any order of members and tensors, shapes of rank 0 and 8 and without elements. */
static void test_forms(void) {
  static const char header[] =
      "{ \"b\" : { \"data_offsets\" : [ 4 , 8 ] , \"shape\" : [ ] , \"dtype\" : \"F32\" } ,\n"
      "\"__metadata__\":{\"format\":\"pt\",\"\":\"\"},"
      "\"n\\u00e4m\\u0065\":{\"dtype\":\"\\u00558\",\"shape\":[1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]},"
      "\"e\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[4,4]}}    ";
  const st_file f = st_make(header, 8);
  rung_weights *weights;
  CHECK_OK(open_bytes(&f, &weights));
  if (!weights) return;
  static const char *const names[] = {"n\xC3\xA4me", "e", "b"}; /* in the order of the bytes */
  static const int ranks[] = {8, 2, 0};
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    rung_weights_info info = {0};
    CHECK(rung_weights_at(weights, i, &info));
    CHECK_STR(info.name, names[i]);
    CHECK_EQ_I64(info.rank, ranks[i]);
    CHECK_EQ_I64(info.bytes, i == 1 ? 0 : 4);
  }
  rung_weights_release(weights);
  free(f.data);
  const st_file none = st_make("{}", 0);
  CHECK_OK(open_bytes(&none, &weights));
  CHECK(weights && rung_weights_count(weights) == 0);
  rung_weights_release(weights);
  free(none.data);
}

/* ---- refusals */

#define T(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
static const struct {
  const char *header;
  size_t bytes;
  rung_status status;
  const char *says;
} refusals[] = {
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}", 12, RUNG_CORRUPT_FILE,
     "tensor 'b' at offset 62 begins at byte 4, inside of 'a'"},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[0,8]") "}", 8, RUNG_CORRUPT_FILE, "inside of 'a'"},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[12,20]") "}", 20, RUNG_CORRUPT_FILE,
     "tensor 'b' at offset 62 begins at byte 12, 4 bytes before it belong to none"},
    {"{" T("a", "F32", "[2]", "[4,12]") "}", 12, RUNG_CORRUPT_FILE, "4 bytes before it"},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", 12, RUNG_CORRUPT_FILE, "the last 4 bytes, from offset 70"},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", 7, RUNG_CORRUPT_FILE, "tensor 'a': bytes 0 to 8"},
    {"{" T("a", "F32", "[2]", "[8,0]") "}", 8, RUNG_CORRUPT_FILE, "tensor 'a': bytes 8 to 0"},
    {"{" T("a", "F32", "[2]", "[0,9223372036854775807]") "}", 8, RUNG_CORRUPT_FILE, "9223372036854775807"},
    {"{" T("a", "F32", "[2]", "[0,9223372036854775808]") "}", 8, RUNG_CORRUPT_FILE,
     "two offsets expected at offset 58"},
    {"{" T("a", "F32", "[2]", "[-8,0]") "}", 8, RUNG_CORRUPT_FILE, "two offsets"},
    {"{" T("a", "F32", "[2]", "[0,8.0]") "}", 8, RUNG_CORRUPT_FILE, "two offsets"},
    {"{" T("a", "F32", "[2]", "[0]") "}", 8, RUNG_CORRUPT_FILE, "a list of two offsets"},
    {"{" T("a", "F32", "[2]", "[0,8,8]") "}", 8, RUNG_CORRUPT_FILE, "two offsets"},
    {"{" T("a", "F32", "[2]", "8") "}", 8, RUNG_CORRUPT_FILE, "a list of two offsets"},
    {"{" T("a", "F32", "[2]", "{\"0\":0,\"8\":8}") "}", 8, RUNG_CORRUPT_FILE, "a list of two offsets"},
    {"{" T("a", "F32", "[3]", "[0,8]") "}", 8, RUNG_CORRUPT_FILE, "shape and dtype take 12 bytes, the offsets 8"},
    {"{" T("a", "F64", "[2]", "[0,8]") "}", 8, RUNG_CORRUPT_FILE, "shape and dtype take 16 bytes, the offsets 8"},
    {"{" T("a", "F32", "[]", "[0,0]") "}", 0, RUNG_CORRUPT_FILE, "shape and dtype take 4 bytes, the offsets 0"},
    {"{" T("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, RUNG_OVERFLOW, "tensor 'a' at offset 9"},
    {"{" T("a", "F32", "[4611686018427387905]", "[0,4]") "}", 4, RUNG_OVERFLOW, "tensor 'a' at offset 9"},
    {"{" T("a", "U8", "[0,4294967296,4294967296]", "[0,0]") "}", 0, RUNG_OVERFLOW, "tensor 'a' at offset 9"},
    {"{" T("a", "F32", "[18446744073709551617]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "an extent of at most 63 bits"},
    {"{" T("a", "F32", "[-1]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "an extent"},
    {"{" T("a", "F32", "[1e0]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "an extent"},
    {"{" T("a", "F32", "[\"1\"]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "an extent"},
    {"{" T("a", "F32", "1", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "a list of extents"},
    {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, RUNG_UNSUPPORTED, "more than 8 axes"},
    {"{" T("a", "F33", "[1]", "[0,4]") "}", 4, RUNG_UNSUPPORTED, "dtype \"F33\" at offset 22"},
    {"{" T("a", "f32", "[1]", "[0,4]") "}", 4, RUNG_UNSUPPORTED, "dtype \"f32\""},
    {"{" T("a", "C64", "[1]", "[0,8]") "}", 8, RUNG_UNSUPPORTED, "tensor 'a': dtype \"C64\""},
    {"{" T("a", "F4", "[2]", "[0,1]") "}", 1, RUNG_UNSUPPORTED, "dtype \"F4\""},
    {"{" T("a", "\\n", "[2]", "[0,1]") "}", 1, RUNG_UNSUPPORTED, "dtype"},
    {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RUNG_CORRUPT_FILE, "a dtype expected"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RUNG_CORRUPT_FILE,
     "an object with dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, RUNG_CORRUPT_FILE, "an object with dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, RUNG_CORRUPT_FILE, "an object with dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, RUNG_CORRUPT_FILE,
     "dtype, shape or data_offsets expected at offset 61"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RUNG_CORRUPT_FILE,
     "not there before"},
    {"{\"a\":7}", 0, RUNG_CORRUPT_FILE, "tensor 'a': an object expected"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", 8, RUNG_CORRUPT_FILE,
     "tensor 'a' at offset 62 comes twice"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("\\u0061", "F32", "[1]", "[4,8]") "}", 8, RUNG_CORRUPT_FILE,
     "comes twice"},
    {"{" T("", "F32", "[1]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "name at offset 9 has 0 bytes"},
    {"{" T("a\\u0000b", "F32", "[1]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "name at offset 9"},
    {"{" T("a\\n", "F32", "[1]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "name at offset 9"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, RUNG_CORRUPT_FILE, "__metadata__ comes twice"},
    {"{\"__metadata__\":7}", 0, RUNG_CORRUPT_FILE, "__metadata__ at offset 24 is no object of texts"},
    {"{\"__metadata__\":{\"a\":7}}", 0, RUNG_CORRUPT_FILE, "no object of texts"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, RUNG_CORRUPT_FILE, "no object of texts"},
    {"{" T("a", "BOOL", "[4]", "[0,4]") "}", 4, RUNG_CORRUPT_FILE, "tensor 'a': the truth value at offset"},
    {"{\"a\":1,}", 0, RUNG_CORRUPT_FILE, "JSON: a string expected at offset 15"},
    {"{\"\xC3\":1}", 0, RUNG_CORRUPT_FILE, "JSON: no UTF-8 at offset 10"},
    {"{} x", 0, RUNG_CORRUPT_FILE, "the end expected"},
};

static void test_refused(void) {
  for (size_t i = 0; i < RUNG_COUNT(refusals); i++) {
    st_file f = st_make(refusals[i].header, refusals[i].bytes);
    if (strstr(refusals[i].header, "BOOL")) f.data[f.bytes - 1] = 2;
    rung_weights *weights;
    CHECK_STATUS(open_bytes(&f, &weights), refusals[i].status);
    CHECK(strstr(error.message, refusals[i].says) != NULL);
    if (!strstr(error.message, refusals[i].says)) fprintf(stderr, "  %s: %s\n", refusals[i].header, error.message);
    rung_weights_release(weights);
    free(f.data);
  }
}

/* The length in front: larger than the file, than 2^63, than 100 MB; a header that is no object; eight bytes and less.
 */
static void test_lengths(void) {
  static const uint64_t lengths[] = {3, 1 << 20, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
  for (size_t i = 0; i < RUNG_COUNT(lengths); i++) {
    st_file f = st_make("{}", 0);
    st_length(&f, lengths[i]);
    rung_map map = {.data = f.data, .size = f.bytes, .kind = RUNG_MAP_BORROWED};
    rung_weights *weights = NULL;
    CHECK_STATUS(rung_safetensors_open_map(host, &map, &error, &weights), RUNG_CORRUPT_FILE);
    CHECK(strstr(error.message, "header length at offset 0 is ") != NULL);
    CHECK(!rung_safetensors_recognise(f.data, f.bytes));
    free(f.data);
  }
  static const char *const texts[] = {"[]", "7 ", "\"\"", " {}"};
  for (size_t i = 0; i < RUNG_COUNT(texts); i++) {
    st_file f = st_make(texts[i], 0);
    rung_map map = {.data = f.data, .size = f.bytes, .kind = RUNG_MAP_BORROWED};
    rung_weights *weights = NULL;
    CHECK_STATUS(rung_safetensors_open_map(host, &map, &error, &weights), RUNG_CORRUPT_FILE);
    CHECK(strstr(error.message, "the header at offset 8 is no object") != NULL);
    free(f.data);
  }
}

/* A header of more than 100 MB that the file does hold: refused before it is looked at. */
static void test_large_header(void) {
  char path[128];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-safetensors-XXXXXX", folder && strlen(folder) < 64 ? folder : "/tmp");
  const int file = mkstemp(path);
  CHECK(file >= 0);
  if (file < 0) return;
  const uint64_t length = 100000001;
  uint8_t start[9] = {0, 0, 0, 0, 0, 0, 0, 0, '{'};
  for (int i = 0; i < 8; i++) start[i] = (uint8_t)(length >> 8 * i);
  CHECK(write(file, start, sizeof start) == sizeof start && ftruncate(file, 110000000) == 0);
  close(file);
  const rung_source source = rung_source_path(path);
  rung_weights *weights = NULL;
  CHECK_STATUS(rung_weights_open(host, &source, NULL, &error, &weights), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "100000001") != NULL && strstr(error.message, path) != NULL);
  unlink(path);
}

/* ---- damage */

static const char small[] = "{\"__metadata__\":{\"k\":\"v\"}," T("a.weight", "F32", "[2,1]", "[0,8]") "," T(
    "b", "BOOL", "[3]", "[8,11]") "," T("c\\u0063", "I16", "[]", "[11,13]") "} ";

static void test_cut(void) {
  const st_file f = st_make(small, 13);
  rung_weights *weights;
  CHECK_OK(open_bytes(&f, &weights));
  rung_weights_release(weights);
  for (size_t n = 0; n < f.bytes; n++) {
    const st_file cut = st_copy(&f, n);
    CHECK(open_bytes(&cut, &weights) != RUNG_OK);
    CHECK(!weights && error.message[0]);
    free(cut.data);
  }
  free(f.data);
}

static void test_flipped(void) {
  const st_file f = st_make(small, 13);
  int64_t opened = 0;
  for (size_t at = 0; at < f.bytes; at++) {
    for (int bit = 0; bit < 8; bit++) {
      const st_file other = st_copy(&f, f.bytes);
      other.data[at] ^= (uint8_t)(1 << bit);
      rung_weights *weights;
      if (!open_bytes(&other, &weights)) {
        (void)st_walk(weights);
        opened++;
      }
      rung_weights_release(weights);
      free(other.data);
    }
  }
  CHECK(opened > 8 * 8); /* names, metadata and numbers may be anything */
  free(f.data);
}

static void test_faults(void) {
  const st_file f = st_make(small, 13);
  char path[128];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-safetensors-XXXXXX", folder && strlen(folder) < 64 ? folder : "/tmp");
  const int file = mkstemp(path);
  CHECK(file >= 0 && write(file, f.data, f.bytes) == (ssize_t)f.bytes);
  close(file);
  for (int mode = 0; mode < 2; mode++) {
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      for (int64_t n = 1;; n++) {
        test_fault fault = {.kind = (rung_fault)kind, .at = n};
        rung_host_set_fault(host, test_fault_hit, &fault);
        rung_source source = rung_source_path(path);
        source.mode = mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
        rung_weights *weights = NULL;
        const rung_status status = rung_weights_open(host, &source, NULL, &error, &weights);
        rung_host_set_fault(host, NULL, NULL);
        CHECK((status == RUNG_OK) == !fault.hit);
        rung_weights_release(weights);
        CHECK_EQ_I64(rung_host_memory(host).weights, 0);
        if (!fault.hit) break;
      }
    }
  }
  unlink(path);
  free(f.data);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_dtypes);
  RUN(test_forms);
  RUN(test_refused);
  RUN(test_lengths);
  RUN(test_large_header);
  RUN(test_cut);
  RUN(test_flipped);
  RUN(test_faults);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  return TEST_END();
}
