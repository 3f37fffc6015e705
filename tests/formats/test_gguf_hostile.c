/* SPDX-License-Identifier: MIT
 * GGUF files that lie: each is refused with a message that names the field, or bears to be read whole. */
#define _GNU_SOURCE
#include <unistd.h>

#include "formats/make_gguf.h"
#include "formats/walk_gguf.h"

static rung_host *host;
static rung_error error;

/* ---- files put together by hand */

typedef struct raw {
  uint8_t data[8192];
  size_t n;
} raw;

static void u8(raw *r, uint8_t v) { r->data[r->n++] = v; }
static void u32(raw *r, uint32_t v) {
  for (int i = 0; i < 4; i++) u8(r, (uint8_t)(v >> 8 * i));
}
static void u64(raw *r, uint64_t v) {
  u32(r, (uint32_t)v);
  u32(r, (uint32_t)(v >> 32));
}
static void text(raw *r, const char *s) {
  u64(r, strlen(s));
  while (*s) u8(r, (uint8_t)*s++);
}
static void header(raw *r, uint64_t tensors, uint64_t keys) {
  r->n = 0;
  for (const char *p = "GGUF"; *p; p++) u8(r, (uint8_t)*p);
  u32(r, 3);
  u64(r, tensors);
  u64(r, keys);
}
static void pad(raw *r, size_t bytes) {
  while (bytes--) u8(r, 0);
}
static void align(raw *r, size_t to) {
  while (r->n % to) u8(r, 0);
}
static void key_u32(raw *r, const char *key, uint32_t v) {
  text(r, key);
  u32(r, RUNG_GGUF_U32);
  u32(r, v);
}
static void tensor(raw *r, const char *name, int rank, const uint64_t *ne, uint32_t type, uint64_t offset) {
  text(r, name);
  u32(r, (uint32_t)rank);
  for (int i = 0; i < rank; i++) u64(r, ne[i]);
  u32(r, type);
  u64(r, offset);
}
/* One tensor with enough data for any that is right. */
static void one_tensor(raw *r, int rank, const uint64_t *ne, uint32_t type, uint64_t offset) {
  header(r, 1, 0);
  tensor(r, "w", rank, ne, type, offset);
  align(r, 32);
  pad(r, 1024);
}

static void refused(const raw *r, rung_status want, const char *says) {
  const made_file file = made_copy(r->data, r->n);
  const uint64_t before = host_total(host);
  rung_gguf *g = NULL;
  error = (rung_error){RUNG_OK, ""};
  const rung_status status = open_bytes(host, file.data, file.bytes, &error, &g);
  CHECK_STATUS(status, want);
  CHECK(status == RUNG_OK || error.status == status);
  if (status != RUNG_OK) {
    CHECK(g == NULL);
    CHECK(strstr(error.message, says) != NULL);
    if (!strstr(error.message, says)) fprintf(stderr, "\"%s\" is not in \"%s\"\n", says, error.message);
  } else {
    walk_gguf(g);
  }
  rung_gguf_release(g);
  CHECK_EQ_I64(host_total(host), before);
  free(file.data);
}

static void test_header(void) {
  raw r;
  r.n = 0;
  refused(&r, RUNG_CORRUPT_FILE, "offset 0");
  header(&r, 0, 0);
  refused(&r, RUNG_OK, "");
  r.data[0] = 'g';
  refused(&r, RUNG_CORRUPT_FILE, "offset 0");
  static const struct {
    uint32_t version;
    rung_status status;
    const char *says;
  } versions[] = {{0, RUNG_CORRUPT_FILE, "version at offset 4"}, {1, RUNG_UNSUPPORTED, "2 and 3 are read"},
                  {4, RUNG_UNSUPPORTED, "2 and 3 are read"},     {0x02000000, RUNG_UNSUPPORTED, "big-endian"},
                  {0x03000000, RUNG_UNSUPPORTED, "big-endian"},  {UINT32_MAX, RUNG_UNSUPPORTED, "2 and 3 are read"}};
  for (size_t i = 0; i < RUNG_COUNT(versions); i++) {
    header(&r, 0, 0);
    for (int j = 0; j < 4; j++) r.data[4 + j] = (uint8_t)(versions[i].version >> 8 * j);
    refused(&r, versions[i].status, versions[i].says);
  }
  static const uint64_t counts[] = {1, 1000, INT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX / 14 + 2};
  for (size_t i = 0; i < RUNG_COUNT(counts); i++) {
    header(&r, counts[i], 0);
    refused(&r, RUNG_CORRUPT_FILE, "tensor count at offset 8");
    header(&r, 0, counts[i]);
    refused(&r, RUNG_CORRUPT_FILE, "key count at offset 16");
  }
}

static const uint64_t lengths[] = {9, 1000, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};

static void test_keys(void) {
  raw r;
  for (size_t i = 0; i < RUNG_COUNT(lengths); i++) {
    header(&r, 0, 1);
    u64(&r, lengths[i]); /* key longer than what is left */
    pad(&r, 8);
    refused(&r, RUNG_CORRUPT_FILE, "metadata key 0: key at offset 32");
    header(&r, 0, 1);
    text(&r, "k");
    u32(&r, RUNG_GGUF_STRING);
    u64(&r, lengths[i]);
    pad(&r, 8);
    refused(&r, RUNG_CORRUPT_FILE, "metadata key 'k': string length at offset 37");
  }
  header(&r, 0, 1);
  text(&r, "");
  pad(&r, 16);
  refused(&r, RUNG_CORRUPT_FILE, "key at offset 32 has 0 bytes");
  header(&r, 0, 1);
  text(&r, "a\nb");
  pad(&r, 16);
  refused(&r, RUNG_CORRUPT_FILE, "without control characters");
  for (uint32_t kind = 13; kind < 16; kind++) {
    header(&r, 0, 1);
    text(&r, "k");
    u32(&r, kind == 15 ? UINT32_MAX : kind);
    pad(&r, 16);
    refused(&r, RUNG_CORRUPT_FILE, "metadata key 'k': value type at offset 33");
  }
  header(&r, 0, 1);
  text(&r, "k");
  u32(&r, RUNG_GGUF_BOOL);
  u8(&r, 2);
  refused(&r, RUNG_CORRUPT_FILE, "bool at offset 37 is 2");
  header(&r, 0, 2);
  key_u32(&r, "twice", 1);
  key_u32(&r, "twice", 2);
  refused(&r, RUNG_CORRUPT_FILE, "metadata key 'twice' comes twice, at offsets 32 and 53");
  header(&r, 0, 1);
  text(&r, "k");
  u32(&r, RUNG_GGUF_F64);
  u32(&r, 0);
  refused(&r, RUNG_CORRUPT_FILE, "1 x f64 at offset 37");
}

static void test_arrays(void) {
  raw r;
  for (size_t i = 0; i < RUNG_COUNT(lengths); i++) {
    for (uint32_t kind = 0; kind < RUNG_GGUF_KINDS; kind++) {
      if (kind == RUNG_GGUF_ARRAY) continue;
      header(&r, 0, 1);
      text(&r, "k");
      u32(&r, RUNG_GGUF_ARRAY);
      u32(&r, kind);
      u64(&r, lengths[i]);
      pad(&r, 8);
      refused(&r, RUNG_CORRUPT_FILE, "at offset 49");
    }
    header(&r, 0, 1); /* the second string is longer than the file */
    text(&r, "k");
    u32(&r, RUNG_GGUF_ARRAY);
    u32(&r, RUNG_GGUF_STRING);
    u64(&r, 2);
    text(&r, "a");
    u64(&r, lengths[i]);
    pad(&r, 8);
    refused(&r, RUNG_CORRUPT_FILE, "metadata key 'k': string 1: string length at offset 58");
  }
  header(&r, 0, 1);
  text(&r, "k");
  u32(&r, RUNG_GGUF_ARRAY);
  u32(&r, RUNG_GGUF_ARRAY);
  u64(&r, 1);
  pad(&r, 64);
  refused(&r, RUNG_UNSUPPORTED, "metadata key 'k': element type at offset 37: arrays of arrays");
  header(&r, 0, 1);
  text(&r, "k");
  u32(&r, RUNG_GGUF_ARRAY);
  u32(&r, RUNG_GGUF_BOOL);
  u64(&r, 2);
  u8(&r, 1);
  u8(&r, 3);
  refused(&r, RUNG_CORRUPT_FILE, "bool at offset 50 is 3");
}

static void test_alignment(void) {
  raw r;
  static const uint32_t wrong[] = {0, 1, 4, 12, 33, 48, 1u << 21, 1u << 31, UINT32_MAX};
  for (size_t i = 0; i < RUNG_COUNT(wrong); i++) {
    header(&r, 0, 1);
    key_u32(&r, "general.alignment", wrong[i]);
    refused(&r, RUNG_CORRUPT_FILE, "general.alignment at offset 53 is");
  }
  header(&r, 0, 1);
  text(&r, "general.alignment");
  u32(&r, RUNG_GGUF_F32);
  u32(&r, 0);
  refused(&r, RUNG_TYPE_MISMATCH, "general.alignment");
  header(&r, 0, 1);
  key_u32(&r, "general.alignment", 1 << 20);
  refused(&r, RUNG_OK, "");
  header(&r, 1, 1); /* the padding goes past the end */
  key_u32(&r, "general.alignment", 1 << 20);
  tensor(&r, "w", 1, (const uint64_t[]){1}, 0, 0);
  refused(&r, RUNG_CORRUPT_FILE, "tensor 'w': 4 bytes at 1048576 + 0 pass the end");
}

static void test_shapes(void) {
  raw r;
  static const uint64_t wrap = (UINT64_C(1) << 42) + 1, large = UINT64_C(1) << 32;
  static const struct {
    int rank;
    uint64_t ne[5];
    uint32_t type;
    rung_status status;
    const char *says;
  } cases[] = {
      {1, {32}, 0, RUNG_OK, ""},
      {0, {0}, 0, RUNG_OK, ""},
      {4, {2, 2, 2, 2}, 0, RUNG_OK, ""},
      {0, {0}, 2, RUNG_CORRUPT_FILE, "rows of 1 are no multiple of the block of q4_0, 32"},
      {5, {1, 1, 1, 1, 1}, 0, RUNG_CORRUPT_FILE, "number of dimensions at offset 33 is 5"},
      {1, {0}, 0, RUNG_CORRUPT_FILE, "dimension 0 at offset 37 is 0"},
      {2, {4, 0}, 0, RUNG_CORRUPT_FILE, "dimension 1 at offset 45 is 0"},
      {1, {UINT64_MAX}, 0, RUNG_CORRUPT_FILE, "dimension 0 at offset 37 is -1"},
      {1, {UINT64_C(1) << 63}, 0, RUNG_CORRUPT_FILE, "dimension 0 at offset 37 is -"},
      {2, {UINT64_C(1) << 22, wrap}, 0, RUNG_CORRUPT_FILE, "product of the dimensions"},
      {2, {large, large}, 0, RUNG_CORRUPT_FILE, "product of the dimensions"},
      {4, {65536, 65536, 65536, 65536}, 24, RUNG_CORRUPT_FILE, "product of the dimensions"},
      {1, {INT64_MAX}, 0, RUNG_CORRUPT_FILE, "product of the dimensions"},
      {1, {INT64_MAX}, 24, RUNG_CORRUPT_FILE, "pass the end of the file"},
      {2, {UINT64_C(1) << 31, UINT64_C(1) << 31}, 2, RUNG_CORRUPT_FILE, "pass the end of the file"},
      {1, {48}, 2, RUNG_CORRUPT_FILE, "rows of 48"},
      {2, {128, 2}, 12, RUNG_CORRUPT_FILE, "rows of 128 are no multiple of the block of q4_k, 256"},
      {1, {257}, 0, RUNG_CORRUPT_FILE, "tensor 'w': 1028 bytes at 64 + 0 pass the end of the file at 1088"},
      {1, {256}, 0, RUNG_OK, ""},
      {1, {32}, 4, RUNG_UNSUPPORTED, "type at offset 45 is Q4_2"},
      {1, {32}, 15, RUNG_UNSUPPORTED, "type at offset 45 is Q8_K"},
      {1, {32}, 40, RUNG_UNSUPPORTED, "type at offset 45 is NVFP4"},
      {1, {32}, 99, RUNG_UNSUPPORTED, "type at offset 45 is 99"},
      {1, {32}, UINT32_MAX, RUNG_UNSUPPORTED, "type at offset 45 is -1"},
      {1, {32}, 0x80000000u, RUNG_UNSUPPORTED, "type at offset 45 is -2147483648"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    one_tensor(&r, cases[i].rank, cases[i].ne, cases[i].type, 0);
    refused(&r, cases[i].status, cases[i].says);
  }
  one_tensor(&r, 0, NULL, 0, 0);
  memset(r.data + 33, 0xFF, 4);
  refused(&r, RUNG_CORRUPT_FILE, "number of dimensions at offset 33 is 4294967295");
}

static void test_places(void) {
  raw r;
  static const uint64_t four[] = {4};
  one_tensor(&r, 1, four, 0, 8);
  refused(&r, RUNG_CORRUPT_FILE, "tensor 'w': data offset at offset 49 is 8, no multiple of the alignment 32");
  static const uint64_t past[] = {1024, UINT64_C(1) << 32, INT64_MAX - 31, UINT64_C(1) << 63, UINT64_MAX - 31};
  for (size_t i = 0; i < RUNG_COUNT(past); i++) {
    one_tensor(&r, 1, four, 0, past[i]);
    refused(&r, RUNG_CORRUPT_FILE, "pass the end of the file");
  }
  one_tensor(&r, 1, four, 0, 1024 - 32);
  refused(&r, RUNG_OK, "");
  static const struct {
    uint64_t at[3];
    bool right;
  } places[] = {{{0, 64, 128}, true},    {{128, 0, 64}, true},  {{64, 128, 0}, true},
                {{0, 32, 128}, false},   {{128, 32, 0}, false}, {{0, 0, 128}, false},
                {{128, 64, 128}, false}, {{64, 0, 32}, false},  {{32, 96, 160}, true}};
  for (size_t i = 0; i < RUNG_COUNT(places); i++) {
    static const char *const names[] = {"a", "b", "c"};
    header(&r, 3, 0);
    for (int j = 0; j < 3; j++) tensor(&r, names[j], 1, (const uint64_t[]){16}, 0, places[i].at[j]);
    align(&r, 32);
    pad(&r, 512);
    refused(&r, places[i].right ? RUNG_OK : RUNG_CORRUPT_FILE, "overlap: the first ends at offset");
  }
  header(&r, 2, 0);
  tensor(&r, "same", 1, four, 0, 0);
  tensor(&r, "same", 1, four, 0, 32);
  align(&r, 32);
  pad(&r, 512);
  refused(&r, RUNG_CORRUPT_FILE, "tensor 'same' comes twice, at offsets 32 and");
  header(&r, 1, 0);
  tensor(&r, "", 1, four, 0, 0);
  pad(&r, 512);
  refused(&r, RUNG_CORRUPT_FILE, "tensor 0: name at offset 32 has 0 bytes");
}

/* A name that fills the message with junk is cut and made harmless. */
static void test_long_name(void) {
  raw r;
  header(&r, 0, 1);
  u64(&r, 3000);
  for (int i = 0; i < 3000; i++) u8(&r, i % 2 ? 0xC3 : 'x');
  u32(&r, 77);
  refused(&r, RUNG_CORRUPT_FILE, "metadata key 'x?x?x?");
  CHECK(strstr(error.message, "...': value type at offset 3032 is 77") != NULL);
}

/* ---- every damage of a small valid file: a status or a file that can be read */

static void open_and_walk(const uint8_t *data, size_t bytes) {
  rung_gguf *g = NULL;
  if (open_bytes(host, data, bytes, &error, &g) == RUNG_OK) {
    walk_gguf(g);
    rung_weights *weights = NULL;
    if (rung_gguf_weights(g, NULL, &error, &weights) == RUNG_OK)
      CHECK(rung_weights_count(weights) == rung_gguf_tensor_count(g));
    rung_weights_release(weights);
  } else {
    CHECK(error.message[0] != 0 && error.status != RUNG_OK);
  }
  rung_gguf_release(g);
}

static void test_truncated(void) {
  const made_file file = make_small(host, 0);
  int opened = 0;
  for (size_t n = 0; n < file.bytes; n++) {
    const made_file cut = made_copy(file.data, n);
    rung_gguf *g = NULL;
    if (open_bytes(host, cut.data, cut.bytes, &error, &g) == RUNG_OK) opened++;
    rung_gguf_release(g);
    free(cut.data);
  }
  CHECK_EQ_I64(opened, 22); /* only the padding behind the last tensor may be missing */
  free(file.data);
}

static void test_flipped(void) {
  const made_file file = make_small(host, 0);
  const uint64_t before = host_total(host);
  for (size_t at = 0; at < file.bytes; at++) {
    for (int bit = 0; bit < 9; bit++) {
      const uint8_t flip = (uint8_t)(bit < 8 ? 1 << bit : 255);
      file.data[at] ^= flip;
      open_and_walk(file.data, file.bytes);
      file.data[at] ^= flip;
    }
  }
  CHECK_EQ_I64(host_total(host), before);
  free(file.data);
}

static void test_random_damage(void) {
  const made_file file = make_small(host, 0);
  uint64_t state = 1;
  static const uint64_t words[] = {0, 1, 2, 3, 31, 32, 33, 255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
  for (int round = 0; round < 20000; round++) {
    made_file copy = made_copy(file.data, file.bytes);
    const int64_t changes = 1 + test_below(&state, 4);
    for (int64_t i = 0; i < changes; i++) {
      const uint64_t word = words[test_below(&state, RUNG_COUNT(words))];
      const size_t n = (size_t)1 << test_below(&state, 4), at = (size_t)test_below(&state, (int64_t)(file.bytes - n));
      memcpy(copy.data + at, &word, n);
    }
    open_and_walk(copy.data, copy.bytes);
    free(copy.data);
  }
  free(file.data);
}

/* ---- size and failure */

static const char *scratch_path(void) {
  static char path[256];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/rung-test-gguf-hostile-%ld.gguf", folder ? folder : "/tmp", (long)getpid());
  return path;
}

/* A sparse file: 2^31 + 512 numbers of f32, and one tensor behind them. */
static void test_sparse(void) {
  const int64_t extent[2] = {(INT64_C(1) << 22) + 1, 512}, tail[1] = {4};
  rung_gguf_writer *w = NULL;
  rung_text out;
  rung_text_init(&out, host);
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &w));
  rung_gguf_put_tensor(w, "huge", RUNG_TYPE_F32, 2, extent, NULL);
  rung_gguf_put_tensor(w, "tail", RUNG_TYPE_F32, 1, tail, NULL);
  CHECK_OK(rung_gguf_write_header(w, &out, &error));
  const uint64_t bytes = out.length + (uint64_t)extent[0] * 512 * 4 + 32;
  FILE *f = fopen(scratch_path(), "wb");
  CHECK(f && fwrite(out.data, 1, out.length, f) == out.length && fflush(f) == 0);
  if (!f || ftruncate(fileno(f), (off_t)bytes)) SKIP("no sparse file of %" PRIu64 " bytes here", bytes);
  const float last = 5;
  CHECK(fseeko(f, (off_t)(bytes - 36), SEEK_SET) == 0 && fwrite(&last, 4, 1, f) == 1);
  fclose(f);
  const rung_source source = rung_source_path(scratch_path());
  rung_gguf *g = NULL;
  CHECK_OK(rung_gguf_open(host, &source, &error, &g));
  const rung_gguf_tensor *t = g ? rung_gguf_tensor_find(g, "huge") : NULL;
  CHECK(t && t->bytes == (uint64_t)extent[0] * 2048);
  if (t) CHECK(((const float *)rung_gguf_tensor_data(g, t))[extent[0] * 512 - 1] == 5);
  t = g ? rung_gguf_tensor_find(g, "tail") : NULL;
  CHECK(t && t->offset == bytes - 32);
  if (g) walk_gguf(g);
  rung_gguf_release(g);
  CHECK(truncate(scratch_path(), (off_t)(bytes - 17)) == 0);
  CHECK_STATUS(rung_gguf_open(host, &source, &error, &g), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "tensor 'tail'") && strstr(error.message, scratch_path()));
  unlink(scratch_path());
  rung_gguf_writer_destroy(w);
  rung_text_finish(&out);
}

/* Fails the n-th call of each kind over writing, opening and making a store. */
static rung_status scenario(rung_source_mode mode) {
  rung_gguf_writer *w = NULL;
  RUNG_TRY(rung_gguf_writer_create(host, 64, &error, &w));
  put_all_kinds(w);
  for (int i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof name, "t%d", i);
    rung_gguf_put_tensor(w, name, RUNG_TYPE_F32, 1, (const int64_t[]){8}, make_numbers);
  }
  rung_status status = rung_gguf_write_file(w, scratch_path(), &error);
  rung_gguf_writer_destroy(w);
  if (status) return status;
  rung_source source = rung_source_path(scratch_path());
  source.mode = mode;
  rung_weights *weights = NULL;
  status = rung_weights_open(host, &source, NULL, &error, &weights);
  rung_weights_release(weights);
  return status;
}

static void test_faults(void) {
  int64_t total = 0;
  for (int mode = 0; mode < 2; mode++) {
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      int64_t n = 1;
      for (;; n++) {
        test_fault fault = {.kind = (rung_fault)kind, .at = n};
        const uint64_t before = host_total(host);
        rung_host_set_fault(host, test_fault_hit, &fault);
        const rung_status status = scenario(mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP);
        rung_host_set_fault(host, NULL, NULL);
        CHECK_EQ_I64(host_total(host), before);
        if (!fault.hit) {
          CHECK_OK(status);
          break;
        }
        CHECK(status != RUNG_OK && error.message[0]);
        CHECK_OK(scenario(mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP));
      }
      total += n - 1;
    }
  }
  printf("%" PRId64 " injected failures\n", total);
  CHECK(total >= 50);
  unlink(scratch_path());
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  const uint64_t before = host_total(host);
  RUN(test_header);
  RUN(test_keys);
  RUN(test_arrays);
  RUN(test_alignment);
  RUN(test_shapes);
  RUN(test_places);
  RUN(test_long_name);
  RUN(test_truncated);
  RUN(test_flipped);
  RUN(test_random_damage);
  RUN(test_sparse);
  RUN(test_faults);
  CHECK_EQ_I64(host_total(host), before);
  rung_host_release(host);
  return TEST_END();
}
