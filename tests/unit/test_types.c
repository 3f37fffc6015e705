/* SPDX-License-Identifier: MIT
 * Types: every row against the `gguf` package's numbers (tests/formats/data/blocks.bin, made by
 * scripts/oracle/record_blocks.py, which describes the file), and the plain ones against their definition. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/type.h"
#include "test.h"

#ifndef RUNG_SOURCE_DIR
#define RUNG_SOURCE_DIR "."
#endif
enum { STREAM_BLOCKS = 512, ENCODE_BLOCKS = 512 };

static uint64_t fnv(const void *data, size_t bytes) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < bytes; i++) h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
  return h;
}
static void stream_bytes(uint64_t *state, uint8_t *out, size_t n) {
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t word = test_random(state);
    memcpy(out + i, &word, n - i < 8 ? n - i : 8);
  }
}
static void canonical(float *x, size_t n) {
  const uint32_t nan_bits = 0x7FC00000;
  for (size_t i = 0; i < n; i++) {
    if (x[i] != x[i]) memcpy(&x[i], &nan_bits, 4);
  }
}

/* ---- recorded blocks */

typedef struct record {
  char name[16];
  uint32_t elements, bytes, blocks, encoded;
  uint64_t decode_hash, encode_hash;
} record;

static uint8_t *read_file(const char *path, size_t *out_bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  uint8_t *data = malloc((size_t)size);
  *out_bytes = fread(data, 1, (size_t)size, f);
  fclose(f);
  return data;
}

static void check_decode_stream(const rung_type_row *row, const record *r, int place) {
  const size_t bytes = (size_t)STREAM_BLOCKS * row->bytes, n = (size_t)STREAM_BLOCKS * row->block;
  uint8_t *raw = malloc(bytes);
  float *values = malloc(n * sizeof *values);
  uint64_t state = (uint64_t)(1 + place);
  stream_bytes(&state, raw, bytes);
  row->to_f32(raw, values, n);
  canonical(values, n);
  CHECK(fnv(values, n * sizeof *values) == r->decode_hash);
  if (fnv(values, n * sizeof *values) != r->decode_hash) fprintf(stderr, "decode hash of %s\n", row->name);
  free(raw);
  free(values);
}

static void check_encode_stream(const rung_type_row *row, const record *r, int place) {
  const size_t n = (size_t)ENCODE_BLOCKS * row->block, bytes = (size_t)ENCODE_BLOCKS * row->bytes;
  uint8_t *raw = malloc(bytes);
  float *values = malloc(n * sizeof *values);
  uint64_t state = (uint64_t)(100 + place);
  for (int b = 0; b < ENCODE_BLOCKS; b++) {
    const int shift = b % 2 ? 58 : 40;
    for (int j = 0; j < row->block; j++) {
      const int64_t v = (int64_t)(test_random(&state) >> shift) - (INT64_C(1) << (63 - shift));
      values[b * row->block + j] = (float)ldexp((double)v, b % 23 - 32);
    }
  }
  row->from_f32(values, raw, n);
  CHECK(fnv(raw, bytes) == r->encode_hash);
  if (fnv(raw, bytes) != r->encode_hash) fprintf(stderr, "encode hash of %s\n", row->name);
  free(raw);
  free(values);
}

static void test_recorded_blocks(void) {
  size_t bytes = 0, at = 0;
  uint8_t *data = read_file(RUNG_SOURCE_DIR "/tests/formats/data/blocks.bin", &bytes);
  CHECK(data != NULL);
  if (!data) return;
  int place = 0;
  for (; at + sizeof(record) <= bytes; place++) {
    record r;
    memcpy(&r, data + at, sizeof r);
    at += sizeof r;
    rung_type type = RUNG_TYPE_LIMIT;
    CHECK(rung_type_find(r.name, &type));
    const rung_type_row *row = rung_type_get(type);
    CHECK(row != NULL);
    if (!row) break;
    CHECK_EQ_I64(row->block, r.elements);
    CHECK_EQ_I64(row->bytes, r.bytes);
    const size_t n = (size_t)r.blocks * r.elements;
    float *values = malloc(n * sizeof *values);
    row->to_f32(data + at, values, n);
    canonical(values, n);
    at += (size_t)r.blocks * r.bytes;
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += memcmp(&values[i], data + at + 4 * i, 4) != 0;
    CHECK_EQ_I64(wrong, 0);
    if (wrong) fprintf(stderr, "values of %s\n", row->name);
    at += 4 * n;
    free(values);
    check_decode_stream(row, &r, place);
    if (r.encoded) check_encode_stream(row, &r, place);
  }
  CHECK_EQ_I64(at, bytes);
  CHECK_EQ_I64(place, 24);
  free(data);
}

/* ---- the table */

static void test_rows(void) {
  CHECK_EQ_I64(rung_type_count(), 47);
  for (size_t i = 0; i < rung_type_count(); i++) {
    const rung_type type = rung_type_at(i);
    const rung_type_row *row = rung_type_get(type);
    CHECK(row && row->to_f32 && row->doc && row->block > 0 && row->bytes > 0);
    rung_type found = RUNG_TYPE_LIMIT;
    CHECK(rung_type_find(row->name, &found) && found == type);
    CHECK_STR(rung_type_name(type), row->name);
    CHECK_EQ_I64(rung_type_bytes(type, 5 * (uint64_t)row->block), 5 * row->bytes);
    CHECK((row->class_ == RUNG_CLASS_BLOCK) == (type >= 32));
  }
  rung_type found;
  CHECK(!rung_type_find("q4_2", &found) && !rung_type_find(NULL, &found) && !rung_type_find("", &found));
  CHECK(!rung_type_get((rung_type)23) && !rung_type_get((rung_type)-1) && !rung_type_get(RUNG_TYPE_LIMIT));
  CHECK_STR(rung_type_name((rung_type)63), "?");
  CHECK_EQ_I64(rung_type_bytes((rung_type)63, 8), 0);
  CHECK_EQ_I64(rung_type_bytes(RUNG_TYPE_F64, UINT64_MAX), 0);
  CHECK(rung_type_at(1000) == RUNG_TYPE_LIMIT);
  CHECK(rung_type_is_block(RUNG_TYPE_Q4_K) && !rung_type_is_block(RUNG_TYPE_F32));
  const int64_t extent[] = {2, 3};
  const rung_tensor t = rung_tensor_dense(RUNG_TYPE_F32, 2, extent, &found);
  CHECK(t.rank == 2 && t.extent[0] == 2 && t.extent[1] == 3 && t.stride[0] == 0 && t.data == &found && t.place == 0);
}

/* ---- plain types */

static float through(rung_type type, float x) {
  uint8_t bytes[8] = {0};
  float in[4] = {x, x, x, x}, out[4];
  const rung_type_row *row = rung_type_get(type);
  row->from_f32(in, bytes, row->block);
  row->to_f32(bytes, out, row->block);
  return out[0];
}

static void test_integers(void) {
  static const struct {
    rung_type type;
    float low, high;
  } rows[] = {
      {RUNG_TYPE_I8, -128, 127},
      {RUNG_TYPE_I16, -32768, 32767},
      {RUNG_TYPE_I32, -0x1p31f, 0x1p31f},
      {RUNG_TYPE_I64, -0x1p63f, 0x1p63f},
      {RUNG_TYPE_U8, 0, 255},
      {RUNG_TYPE_U16, 0, 65535},
      {RUNG_TYPE_U32, 0, 0x1p32f},
      {RUNG_TYPE_U64, 0, 0x1p64f},
      {RUNG_TYPE_I4, -8, 7},
      {RUNG_TYPE_U4, 0, 15},
      {RUNG_TYPE_I2, -2, 1},
      {RUNG_TYPE_U2, 0, 3},
  };
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    const rung_type type = rows[i].type;
    CHECK(through(type, NAN) == 0);
    CHECK(through(type, INFINITY) == rows[i].high && through(type, FLT_MAX) == rows[i].high);
    CHECK(through(type, -INFINITY) == rows[i].low && through(type, -FLT_MAX) == rows[i].low);
    CHECK(through(type, rows[i].high) == rows[i].high && through(type, rows[i].low) == rows[i].low);
    CHECK(through(type, 0.5f) == 0 && through(type, 1.49f) == 1 && through(type, -0.5f) == 0);
    CHECK(through(type, 1.5f) == (rows[i].high < 2 ? 1 : 2));
    CHECK(through(type, 2.5f) == (rows[i].high < 2 ? 1 : 2)); /* to even */
    CHECK(through(type, -1.5f) == (rows[i].low < 0 ? -2 : 0));
  }
  int32_t whole;
  const float large = 2147483520.0f; /* the largest float below 2^31 */
  rung_type_get(RUNG_TYPE_I32)->from_f32(&large, &whole, 1);
  CHECK_EQ_I64(whole, 2147483520);
  const int64_t wide = INT64_MIN;
  float back;
  rung_type_get(RUNG_TYPE_I64)->to_f32(&wide, &back, 1);
  CHECK(back == -0x1p63f);
  CHECK(through(RUNG_TYPE_BOOL, 0) == 0 && through(RUNG_TYPE_BOOL, -0.0f) == 0 && through(RUNG_TYPE_BOOL, 1e-30f) == 1);
}

static void test_packing(void) {
  static const float x[8] = {1, -2, 3, -4, 0, 1, -1, 7};
  uint8_t bytes[4];
  float out[8];
  rung_type_get(RUNG_TYPE_I4)->from_f32(x, bytes, 8);
  CHECK(bytes[0] == 0xE1 && bytes[1] == 0xC3 && bytes[2] == 0x10 && bytes[3] == 0x7F);
  rung_type_get(RUNG_TYPE_I4)->to_f32(bytes, out, 8);
  CHECK(memcmp(x, out, sizeof x) == 0);
  static const float two[8] = {1, -2, 0, -1, 1, 1, -1, -2};
  rung_type_get(RUNG_TYPE_I2)->from_f32(two, bytes, 8);
  CHECK(bytes[0] == 0xC9 && bytes[1] == 0xB5);
  rung_type_get(RUNG_TYPE_I2)->to_f32(bytes, out, 8);
  CHECK(memcmp(two, out, sizeof two) == 0);
  static const float f4[8] = {0.5f, -6, 4, 3, 1.5f, -0.0f, -1, 2};
  rung_type_get(RUNG_TYPE_F4E2M1)->from_f32(f4, bytes, 8);
  CHECK(bytes[0] == 0xF1 && bytes[1] == 0x56 && bytes[2] == 0x83 && bytes[3] == 0x4A);
  rung_type_get(RUNG_TYPE_F4E2M1)->to_f32(bytes, out, 8);
  CHECK(memcmp(f4, out, sizeof f4) == 0);
  CHECK(through(RUNG_TYPE_F4E2M1, 2.5f) == 2 && through(RUNG_TYPE_F4E2M1, 3.5f) == 4 &&
        through(RUNG_TYPE_F4E2M1, 99) == 6);
}

/* Every pattern of a narrow float comes back from float as itself (NaN as a NaN). */
static void test_narrow_floats(void) {
  static const rung_type types[] = {RUNG_TYPE_F16,        RUNG_TYPE_BF16,       RUNG_TYPE_F8E4M3, RUNG_TYPE_F8E5M2,
                                    RUNG_TYPE_F8E4M3FNUZ, RUNG_TYPE_F8E5M2FNUZ, RUNG_TYPE_F8E8M0};
  for (size_t t = 0; t < RUNG_COUNT(types); t++) {
    const rung_type_row *row = rung_type_get(types[t]);
    for (uint32_t bits = 0; bits < (row->bytes == 2 ? 65536u : 256u); bits++) {
      uint8_t in[2] = {(uint8_t)bits, (uint8_t)(bits >> 8)}, out[2] = {0};
      float x;
      row->to_f32(in, &x, 1);
      row->from_f32(&x, out, 1);
      const float want = types[t] == RUNG_TYPE_F16    ? rung_f16_to_f32((uint16_t)bits)
                         : types[t] == RUNG_TYPE_BF16 ? rung_bf16_to_f32((uint16_t)bits)
                                                      : x;
      CHECK(memcmp(&x, &want, sizeof x) == 0);
      if (x != x) {
        row->to_f32(out, &x, 1);
        CHECK(x != x);
      } else if (types[t] == RUNG_TYPE_F8E5M2 && isinf(x)) {
        CHECK(out[0] == (in[0] & 0x80 ? 0xFB : 0x7B)); /* saturates */
      } else {
        CHECK(memcmp(in, out, row->bytes) == 0);
      }
    }
  }
  const float x[2] = {1.1f, -FLT_MAX};
  double wide[2];
  float back[2];
  rung_type_get(RUNG_TYPE_F64)->from_f32(x, wide, 2);
  rung_type_get(RUNG_TYPE_F64)->to_f32(wide, back, 2);
  CHECK(wide[0] == (double)1.1f && memcmp(x, back, sizeof x) == 0);
}

/* ---- encoders of blocks */

/* Largest error allowed, as a share of the block's largest magnitude. */
static const struct {
  rung_type type;
  float share;
} encoders[] = {
    {RUNG_TYPE_Q4_0, 1 / 8.f * 1.01f},
    {RUNG_TYPE_Q4_1, 2 / 15.f * 0.51f},
    {RUNG_TYPE_Q5_0, 1 / 16.f * 1.01f},
    {RUNG_TYPE_Q5_1, 2 / 31.f * 0.51f},
    {RUNG_TYPE_Q8_0, 0.6f / 127},
    {RUNG_TYPE_Q8_1, 0.6f / 127},
    {RUNG_TYPE_Q4_K, 0.13f},
    {RUNG_TYPE_Q5_K, 0.09f},
    {RUNG_TYPE_Q6_K, 0.05f},
    {RUNG_TYPE_MXFP4, 0.26f},
    {RUNG_TYPE_A8, 0.501f / 127},
};

static void test_encoder_errors(void) {
  uint64_t state = 7;
  for (size_t t = 0; t < RUNG_COUNT(encoders); t++) {
    const rung_type_row *row = rung_type_get(encoders[t].type);
    for (int round = 0; round < 400; round++) {
      float x[256], y[256], most = 0, worst = 0;
      uint8_t bytes[320];
      const float size = ldexpf(1, (int)test_below(&state, 16) - 6);
      for (int j = 0; j < 256; j++) {
        x[j] = test_uniform(&state, -size, size);
        most = fmaxf(most, fabsf(x[j]));
      }
      row->from_f32(x, bytes, 256);
      row->to_f32(bytes, y, 256);
      for (int j = 0; j < 256; j++) worst = fmaxf(worst, fabsf(x[j] - y[j]));
      CHECK(worst <= most * encoders[t].share);
    }
  }
}

/* Zeros stay zeros; huge numbers stay finite; a NaN or an infinity is not lost. */
static void test_encoder_extremes(void) {
  for (size_t i = 0; i < rung_type_count(); i++) {
    const rung_type_row *row = rung_type_get(rung_type_at(i));
    if (row->class_ != RUNG_CLASS_BLOCK || !row->from_f32) continue;
    float x[256] = {0}, y[256];
    uint8_t bytes[320];
    row->from_f32(x, bytes, 256);
    row->to_f32(bytes, y, 256);
    for (int j = 0; j < 256; j++) CHECK(y[j] == 0);
    for (int kind = 0; kind < 4; kind++) {
      static const float values[] = {3.3e38f, 3000, 1e-44f, FLT_MIN};
      for (int j = 0; j < 256; j++) x[j] = j % 3 ? values[kind] : -values[kind];
      row->from_f32(x, bytes, 256);
      row->to_f32(bytes, y, 256);
      for (int j = 0; j < 256; j++) CHECK(isfinite(y[j]));
      for (int j = 0; kind == 1 && j < 256; j++) CHECK(fabsf(x[j] - y[j]) <= 3000 * 0.3f);
    }
    for (int kind = 0; kind < 3; kind++) {
      static const float values[] = {NAN, INFINITY, -INFINITY};
      for (int at = 0; at < 256; at += 51) {
        for (int j = 0; j < 256; j++) x[j] = (float)j;
        x[at] = values[kind];
        row->from_f32(x, bytes, 256);
        row->to_f32(bytes, y, 256);
        /* mxfp4 says it by its exponent, which this format's readers take as a number. */
        if (rung_type_at(i) == RUNG_TYPE_MXFP4)
          CHECK(bytes[at / 32 * 17] == 255);
        else
          CHECK(!isfinite(y[at]));
      }
    }
  }
}

static void test_a8(void) {
  float x[32];
  rung_a8 block;
  for (int j = 0; j < 32; j++) x[j] = (float)(j - 16) * 2;
  rung_type_get(RUNG_TYPE_A8)->from_f32(x, &block, 32);
  CHECK(block.scale == 32.0f / 127.0f);
  int low = 0, high = 0;
  for (int j = 0; j < 32; j++) {
    CHECK_EQ_I64(block.q[j], (int)nearbyintf(x[j] / block.scale));
    *(j < 16 ? &low : &high) += block.q[j];
  }
  CHECK_EQ_I64(block.sum_low, low);
  CHECK_EQ_I64(block.sum_high, high);
  for (int j = 0; j < 32; j++) x[j] = 3000;
  rung_type_get(RUNG_TYPE_A8)->from_f32(x, &block, 32);
  CHECK(block.sum_low == 16 * 127 && block.sum_high == 16 * 127 && block.q[31] == 127);
}

/* q8_1 and a8 have no decoder in the package: their definition. */
static void test_q8_1(void) {
  uint8_t block[36] = {0x00, 0x40, 0, 0}; /* 2.0 */
  float y[32], x[32];
  for (int j = 0; j < 32; j++) block[4 + j] = (uint8_t)(int8_t)(j * 8 - 128);
  rung_type_get(RUNG_TYPE_Q8_1)->to_f32(block, y, 32);
  for (int j = 0; j < 32; j++) CHECK(y[j] == 2.0f * (float)(j * 8 - 128));
  for (int j = 0; j < 32; j++) x[j] = j % 2 ? 127 : -126;
  rung_type_get(RUNG_TYPE_Q8_1)->from_f32(x, block, 32);
  CHECK(rung_f16_to_f32((uint16_t)(block[0] | block[1] << 8)) == 1);
  CHECK(rung_f16_to_f32((uint16_t)(block[2] | block[3] << 8)) == 16);
}

int main(void) {
  RUN(test_rows);
  RUN(test_recorded_blocks);
  RUN(test_integers);
  RUN(test_packing);
  RUN(test_narrow_floats);
  RUN(test_encoder_errors);
  RUN(test_encoder_extremes);
  RUN(test_a8);
  RUN(test_q8_1);
  return TEST_END();
}
