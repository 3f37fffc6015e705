/* SPDX-License-Identifier: MIT
 * Writing GGUF files, version 3: for tests and tools. Metadata and tensors are added in any order, then written whole.
 * Sticky: after the first failure (memory, a refused tensor) further calls do nothing and the write reports it. */
#ifndef RUNG_FORMATS_GGUF_WRITE_H
#define RUNG_FORMATS_GGUF_WRITE_H

#include "base/text.h"
#include "formats/gguf.h"

typedef struct rung_gguf_writer rung_gguf_writer;

/* alignment 0: 32, which is the format's default and needs no key. */
rung_status rung_gguf_writer_create(rung_host *host, uint32_t alignment, rung_error *error,
                                    rung_gguf_writer **out_writer);
void rung_gguf_writer_destroy(rung_gguf_writer *writer); /* NULL allowed */

/* Metadata. Keys are not checked for doubles here: the reader's tests need some. */
void rung_gguf_put_u32(rung_gguf_writer *writer, const char *key, uint32_t value);
void rung_gguf_put_f32(rung_gguf_writer *writer, const char *key, float value);
void rung_gguf_put_bool(rung_gguf_writer *writer, const char *key, bool value);
void rung_gguf_put_text(rung_gguf_writer *writer, const char *key, const char *text);
/* Any kind of fixed size; `value` is one number in memory. */
void rung_gguf_put_value(rung_gguf_writer *writer, const char *key, rung_gguf_kind kind, const void *value);
void rung_gguf_put_array(rung_gguf_writer *writer, const char *key, rung_gguf_kind kind, const void *values,
                         size_t count);
void rung_gguf_put_texts(rung_gguf_writer *writer, const char *key, const rung_gguf_text *texts, size_t count);
/* Takes a key as it stands in another file. */
void rung_gguf_put_entry(rung_gguf_writer *writer, const rung_gguf_entry *entry);

/* `data` is borrowed until the file is written, and dense; extents outermost first. */
void rung_gguf_put_tensor(rung_gguf_writer *writer, const char *name, rung_type type, int rank, const int64_t *extent,
                          const void *data);

/* Everything in front of the tensors' data, padding included; for tests that lay the data out themselves. Appends. */
rung_status rung_gguf_write_header(rung_gguf_writer *writer, rung_text *out, rung_error *error);
/* The whole file. A tensor without data reads as zeros. */
rung_status rung_gguf_write_memory(rung_gguf_writer *writer, rung_text *out, rung_error *error);
rung_status rung_gguf_write_file(rung_gguf_writer *writer, const char *path, rung_error *error);

#endif
