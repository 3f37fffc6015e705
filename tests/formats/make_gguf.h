/* SPDX-License-Identifier: MIT
 * A small valid GGUF file with every kind of value, as bytes. */
#ifndef RUNG_TESTS_FORMATS_MAKE_GGUF_H
#define RUNG_TESTS_FORMATS_MAKE_GGUF_H

#include <stdlib.h>

#include "formats/gguf_write.h"
#include "ir/type.h"
#include "test.h"

typedef struct made_file {
  uint8_t *data; /* from malloc, exactly `bytes`: a read past the end is seen by the sanitizer */
  size_t bytes;
} made_file;

static inline made_file made_copy(const void *data, size_t bytes) {
  made_file file = {(uint8_t *)malloc(bytes ? bytes : 1), bytes};
  if (bytes) memcpy(file.data, data, bytes);
  return file;
}

static inline void put_all_kinds(rung_gguf_writer *w) {
  const uint8_t u8 = 200;
  const int8_t i8 = -100;
  const uint16_t u16 = 60000;
  const int16_t i16 = -30000;
  const int32_t i32 = -2000000000;
  const uint64_t u64 = (UINT64_C(1) << 63) + 5;
  const int64_t i64 = -(INT64_C(1) << 62);
  const double f64 = 0.1;
  rung_gguf_put_text(w, "general.architecture", "llama");
  rung_gguf_put_u32(w, "llama.block_count", 2);
  rung_gguf_put_value(w, "t.u8", RUNG_GGUF_U8, &u8);
  rung_gguf_put_value(w, "t.i8", RUNG_GGUF_I8, &i8);
  rung_gguf_put_value(w, "t.u16", RUNG_GGUF_U16, &u16);
  rung_gguf_put_value(w, "t.i16", RUNG_GGUF_I16, &i16);
  rung_gguf_put_value(w, "t.i32", RUNG_GGUF_I32, &i32);
  rung_gguf_put_value(w, "t.u64", RUNG_GGUF_U64, &u64);
  rung_gguf_put_value(w, "t.i64", RUNG_GGUF_I64, &i64);
  rung_gguf_put_f32(w, "t.f32", 0.1f);
  rung_gguf_put_value(w, "t.f64", RUNG_GGUF_F64, &f64);
  rung_gguf_put_bool(w, "t.bool", true);
  const float scores[3] = {0, -1, -2.5f};
  const int32_t kinds[3] = {1, -3, 2};
  const uint8_t flags[2] = {1, 0};
  const rung_gguf_text texts[3] = {{"a", 1}, {"", 0}, {"ccc", 3}};
  rung_gguf_put_array(w, "t.floats", RUNG_GGUF_F32, scores, 3);
  rung_gguf_put_array(w, "t.ints", RUNG_GGUF_I32, kinds, 3);
  rung_gguf_put_array(w, "t.bools", RUNG_GGUF_BOOL, flags, 2);
  rung_gguf_put_array(w, "t.none", RUNG_GGUF_U64, NULL, 0);
  rung_gguf_put_texts(w, "t.texts", texts, 3);
}

static const float make_numbers[64] = {1, 2, 3, 4, 5, 6, -7, 8};

static inline rung_gguf_writer *make_writer(rung_host *host, uint32_t alignment) {
  rung_gguf_writer *w = NULL;
  CHECK_OK(rung_gguf_writer_create(host, alignment, NULL, &w));
  put_all_kinds(w);
  static uint8_t packed[2 * 18];
  rung_type_get(RUNG_TYPE_Q4_0)->from_f32(make_numbers, packed, 64);
  rung_gguf_put_tensor(w, "token_embd.weight", RUNG_TYPE_F32, 2, (const int64_t[]){2, 3}, make_numbers);
  rung_gguf_put_tensor(w, "blk.0.attn_q.weight", RUNG_TYPE_Q4_0, 2, (const int64_t[]){2, 32}, packed);
  rung_gguf_put_tensor(w, "scalar", RUNG_TYPE_F32, 0, NULL, make_numbers);
  rung_gguf_put_tensor(w, "deep", RUNG_TYPE_I8, 4, (const int64_t[]){1, 2, 3, 4}, make_numbers);
  rung_gguf_put_tensor(w, "zeros", RUNG_TYPE_F16, 1, (const int64_t[]){5}, NULL);
  return w;
}

static inline made_file make_small(rung_host *host, uint32_t alignment) {
  rung_gguf_writer *w = make_writer(host, alignment);
  rung_text out;
  rung_text_init(&out, host);
  CHECK_OK(rung_gguf_write_memory(w, &out, NULL));
  const made_file file = made_copy(out.data, out.length);
  rung_text_finish(&out);
  rung_gguf_writer_destroy(w);
  return file;
}

static inline rung_status open_bytes(rung_host *host, const void *data, size_t bytes, rung_error *error,
                                     rung_gguf **out) {
  const rung_source source = rung_source_memory(data, bytes);
  return rung_gguf_open(host, &source, error, out);
}

static inline uint64_t host_total(const rung_host *host) {
  const rung_memory m = rung_host_memory(host);
#define X(name, text) +m.name
  return 0 RUNG_MEMORY_MAP(X);
#undef X
}

#endif
