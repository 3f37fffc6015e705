/* SPDX-License-Identifier: MIT
 * GGUF writer: key records and tensor records are collected as bytes, and joined by a header at the end. */
#include "formats/gguf_write.h"

#include <inttypes.h>
#include <string.h>

#include "weights/store.h"

typedef struct piece {
  const void *data;
  uint64_t bytes;
} piece;

struct rung_gguf_writer {
  rung_host *host;
  uint64_t alignment, data_end; /* data_end: padded end of the tensors so far, from where data begins */
  uint64_t keys, tensors;
  rung_text key_bytes, tensor_bytes;
  piece *pieces;
  size_t piece_capacity;
  rung_error failed; /* the first refusal */
};

rung_status rung_gguf_writer_create(rung_host *host, uint32_t alignment, rung_error *error,
                                    rung_gguf_writer **out_writer) {
  rung_gguf_writer *writer = (rung_gguf_writer *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *writer, 0);
  if (!writer) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a GGUF writer");
  rung_host_retain(host);
  writer->host = host;
  writer->alignment = alignment ? alignment : 32;
  rung_text_init(&writer->key_bytes, host);
  rung_text_init(&writer->tensor_bytes, host);
  if (alignment && alignment != 32) rung_gguf_put_u32(writer, "general.alignment", alignment);
  *out_writer = writer;
  return RUNG_OK;
}

void rung_gguf_writer_destroy(rung_gguf_writer *writer) {
  if (!writer) return;
  rung_host *host = writer->host;
  rung_text_finish(&writer->key_bytes);
  rung_text_finish(&writer->tensor_bytes);
  rung_host_free(host, RUNG_MEMORY_host, writer->pieces, writer->piece_capacity * sizeof *writer->pieces);
  rung_host_free(host, RUNG_MEMORY_host, writer, sizeof *writer);
  rung_host_release(host);
}

static void add_u32(rung_text *out, uint32_t v) {
  const char bytes[4] = {(char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24)};
  rung_text_add(out, bytes, 4);
}
static void add_u64(rung_text *out, uint64_t v) {
  add_u32(out, (uint32_t)v);
  add_u32(out, (uint32_t)(v >> 32));
}
static void add_text(rung_text *out, const char *data, uint64_t length) {
  add_u64(out, length);
  if (length) rung_text_add(out, data, (size_t)length);
}

/* ---- metadata */

static rung_text *begin_key(rung_gguf_writer *writer, const char *key, size_t length) {
  writer->keys++;
  add_text(&writer->key_bytes, key, length);
  return &writer->key_bytes;
}

static bool refuse(rung_gguf_writer *writer, const char *key, rung_gguf_kind kind) {
  if (rung_gguf_kind_bytes(kind)) return false;
  if (!writer->failed.status) {
    (void)rung_fail(&writer->failed, RUNG_INVALID_ARGUMENT, "metadata key '%s': kind %d has no fixed size", key,
                    (int)kind);
  }
  return true;
}

void rung_gguf_put_value(rung_gguf_writer *writer, const char *key, rung_gguf_kind kind, const void *value) {
  if (refuse(writer, key, kind)) return;
  rung_text *out = begin_key(writer, key, strlen(key));
  add_u32(out, (uint32_t)kind);
  rung_text_add(out, (const char *)value, rung_gguf_kind_bytes(kind));
}

void rung_gguf_put_array(rung_gguf_writer *writer, const char *key, rung_gguf_kind kind, const void *values,
                         size_t count) {
  if (refuse(writer, key, kind)) return;
  rung_text *out = begin_key(writer, key, strlen(key));
  add_u32(out, RUNG_GGUF_ARRAY);
  add_u32(out, (uint32_t)kind);
  add_u64(out, count);
  if (count) rung_text_add(out, (const char *)values, count * rung_gguf_kind_bytes(kind));
}

void rung_gguf_put_u32(rung_gguf_writer *writer, const char *key, uint32_t value) {
  rung_gguf_put_value(writer, key, RUNG_GGUF_U32, &value);
}
void rung_gguf_put_f32(rung_gguf_writer *writer, const char *key, float value) {
  rung_gguf_put_value(writer, key, RUNG_GGUF_F32, &value);
}
void rung_gguf_put_bool(rung_gguf_writer *writer, const char *key, bool value) {
  const uint8_t byte = value;
  rung_gguf_put_value(writer, key, RUNG_GGUF_BOOL, &byte);
}

void rung_gguf_put_text(rung_gguf_writer *writer, const char *key, const char *text) {
  rung_text *out = begin_key(writer, key, strlen(key));
  add_u32(out, RUNG_GGUF_STRING);
  add_text(out, text, strlen(text));
}

void rung_gguf_put_texts(rung_gguf_writer *writer, const char *key, const rung_gguf_text *texts, size_t count) {
  rung_text *out = begin_key(writer, key, strlen(key));
  add_u32(out, RUNG_GGUF_ARRAY);
  add_u32(out, RUNG_GGUF_STRING);
  add_u64(out, count);
  for (size_t i = 0; i < count; i++) add_text(out, texts[i].data, texts[i].length);
}

void rung_gguf_put_entry(rung_gguf_writer *writer, const rung_gguf_entry *entry) {
  rung_text *out = begin_key(writer, entry->key.data, (size_t)entry->key.length);
  if (entry->array) add_u32(out, RUNG_GGUF_ARRAY);
  add_u32(out, (uint32_t)entry->kind);
  if (entry->array) add_u64(out, entry->count);
  if (entry->kind != RUNG_GGUF_STRING) {
    if (entry->count)
      rung_text_add(out, (const char *)entry->data, (size_t)entry->count * rung_gguf_kind_bytes(entry->kind));
    return;
  }
  for (uint64_t i = 0; i < entry->count; i++) {
    const rung_gguf_text text = rung_gguf_entry_text(entry, i);
    add_text(out, text.data, text.length);
  }
}

/* ---- tensors */

static rung_status put_tensor(rung_gguf_writer *writer, const char *name, rung_type type, int rank,
                              const int64_t *extent, const void *data) {
  rung_error *error = &writer->failed;
  const uint32_t code = rung_gguf_type_code(type);
  uint64_t bytes, end;
  if (code == UINT32_MAX) return rung_fail(error, RUNG_UNSUPPORTED, "GGUF has no type %s", rung_type_name(type));
  if (rank < 0 || rank > 4) return rung_fail(error, RUNG_UNSUPPORTED, "GGUF has no rank %d", rank);
  RUNG_TRY(rung_weights_size(type, rank, extent, error, &bytes));
  if (rung_add_overflows(writer->data_end, bytes, &end) || rung_add_overflows(end, writer->alignment - 1, &end)) {
    return rung_fail(error, RUNG_OVERFLOW, "the data does not fit 64 bits");
  }
  if (!rung_host_grow(writer->host, (void **)&writer->pieces, &writer->piece_capacity, (size_t)writer->tensors + 1,
                      sizeof *writer->pieces)) {
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for tensor %" PRIu64, writer->tensors);
  }
  add_text(&writer->tensor_bytes, name, strlen(name));
  add_u32(&writer->tensor_bytes, (uint32_t)rank);
  for (int i = rank - 1; i >= 0; i--) add_u64(&writer->tensor_bytes, (uint64_t)extent[i]);
  add_u32(&writer->tensor_bytes, code);
  add_u64(&writer->tensor_bytes, writer->data_end);
  writer->pieces[writer->tensors++] = (piece){data, bytes};
  writer->data_end = end - end % writer->alignment;
  return RUNG_OK;
}

void rung_gguf_put_tensor(rung_gguf_writer *writer, const char *name, rung_type type, int rank, const int64_t *extent,
                          const void *data) {
  if (writer->failed.status) return;
  const rung_status status = put_tensor(writer, name, type, rank, extent, data);
  if (status) (void)rung_fail_prefix(&writer->failed, status, "tensor '%s'", name);
}

/* ---- output */

static const char zeros[4096];

rung_status rung_gguf_write_header(rung_gguf_writer *writer, rung_text *out, rung_error *error) {
  if (writer->failed.status) return rung_fail(error, writer->failed.status, "%s", writer->failed.message);
  RUNG_TRY(rung_text_status(&writer->key_bytes, error));
  RUNG_TRY(rung_text_status(&writer->tensor_bytes, error));
  const size_t begin = out->length;
  rung_text_add(out, "GGUF", 4);
  add_u32(out, 3);
  add_u64(out, writer->tensors);
  add_u64(out, writer->keys);
  if (writer->keys) rung_text_add(out, writer->key_bytes.data, writer->key_bytes.length);
  if (writer->tensors) rung_text_add(out, writer->tensor_bytes.data, writer->tensor_bytes.length);
  while (!out->failed && (out->length - begin) % writer->alignment) rung_text_add(out, zeros, 1);
  return rung_text_status(out, error);
}

/* Where bytes go: both ways of writing are one walk. */
typedef rung_status put_fn(void *self, const void *data, size_t bytes, rung_error *error);

static rung_status put_text(void *self, const void *data, size_t bytes, rung_error *error) {
  rung_text_add((rung_text *)self, (const char *)data, bytes);
  return rung_text_status((rung_text *)self, error);
}
static rung_status put_file(void *self, const void *data, size_t bytes, rung_error *error) {
  return rung_writer_put((rung_writer *)self, data, bytes, error);
}

static rung_status put_zeros(put_fn *put, void *self, uint64_t bytes, rung_error *error) {
  for (uint64_t n; bytes > 0; bytes -= n) {
    n = bytes < sizeof zeros ? bytes : sizeof zeros;
    RUNG_TRY(put(self, zeros, (size_t)n, error));
  }
  return RUNG_OK;
}

static rung_status put_data(const rung_gguf_writer *writer, put_fn *put, void *self, rung_error *error) {
  for (uint64_t i = 0; i < writer->tensors; i++) {
    const piece *p = &writer->pieces[i];
    const uint64_t over = p->bytes % writer->alignment;
    if (p->data && p->bytes) RUNG_TRY(put(self, p->data, (size_t)p->bytes, error));
    if (!p->data) RUNG_TRY(put_zeros(put, self, p->bytes, error));
    if (over) RUNG_TRY(put_zeros(put, self, writer->alignment - over, error));
  }
  return RUNG_OK;
}

rung_status rung_gguf_write_memory(rung_gguf_writer *writer, rung_text *out, rung_error *error) {
  RUNG_TRY(rung_gguf_write_header(writer, out, error));
  return put_data(writer, put_text, out, error);
}

rung_status rung_gguf_write_file(rung_gguf_writer *writer, const char *path, rung_error *error) {
  rung_text header;
  rung_text_init(&header, writer->host);
  rung_writer *file = NULL;
  rung_status status = rung_gguf_write_header(writer, &header, error);
  if (!status) status = rung_writer_open(writer->host, path, error, &file);
  if (!status) status = rung_writer_put(file, header.data, header.length, error);
  rung_text_finish(&header);
  if (!status) status = put_data(writer, put_file, file, error);
  if (!status) return rung_writer_commit(file, error);
  if (file) rung_writer_discard(file);
  return status;
}
