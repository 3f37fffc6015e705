/* SPDX-License-Identifier: MIT
 * GGUF files (versions 2 and 3, little-endian), read in place: metadata and a directory of tensors over mapped bytes.
 * The format is described in the ggml repository, docs/gguf.md.
 *
 * rung_gguf_open checks everything that later calls rely on: counts and lengths against the bytes that are left, keys
 * and tensor names for doubles, alignment, sizes of tensors with all products checked, their place inside the file and
 * that no two overlap. What it refuses is a status whose message names the field, key or tensor and the file offset. A
 * file that was opened can be read without further checks, from any number of threads; it is counted.
 *
 * Of class host it holds an index only: 16 bytes a key, 4 bytes a string of an array, 72 bytes a tensor, and hash
 * tables. Texts point into the file and are not terminated. */
#ifndef RUNG_FORMATS_GGUF_H
#define RUNG_FORMATS_GGUF_H

#include <rung/source.h>
#include <rung/tensor.h>
#include <rung/weights.h>

#include "base/map_file.h"

typedef struct rung_gguf rung_gguf;

/* Numbers are the format's. Arrays of arrays are refused. */
typedef enum rung_gguf_kind {
  RUNG_GGUF_U8 = 0,
  RUNG_GGUF_I8 = 1,
  RUNG_GGUF_U16 = 2,
  RUNG_GGUF_I16 = 3,
  RUNG_GGUF_U32 = 4,
  RUNG_GGUF_I32 = 5,
  RUNG_GGUF_F32 = 6,
  RUNG_GGUF_BOOL = 7,
  RUNG_GGUF_STRING = 8,
  RUNG_GGUF_ARRAY = 9,
  RUNG_GGUF_U64 = 10,
  RUNG_GGUF_I64 = 11,
  RUNG_GGUF_F64 = 12,
  RUNG_GGUF_KINDS = 13
} rung_gguf_kind;

/* What a caller asks for: any width of it will do. */
typedef enum rung_gguf_class { RUNG_GGUF_INTEGER, RUNG_GGUF_FLOAT, RUNG_GGUF_BOOLEAN, RUNG_GGUF_TEXT } rung_gguf_class;

typedef struct rung_gguf_text {
  const char *data; /* in the file; not terminated */
  uint64_t length;
} rung_gguf_text;

/* One key with its value. Elements are read through rung_gguf_entry_*: the file does not align them. */
typedef struct rung_gguf_entry {
  rung_gguf_text key;
  rung_gguf_kind kind; /* of the value, or of the elements of an array; never ARRAY */
  bool array;
  uint64_t count;         /* elements; 1 for a single value */
  const uint8_t *data;    /* the first element */
  const uint32_t *starts; /* arrays of strings: where each begins (its length field), from data */
  uint64_t offset;        /* of the first element in the file, for messages */
} rung_gguf_entry;

typedef struct rung_gguf_tensor {
  rung_gguf_text name;
  rung_type type;
  int rank;          /* 0..4 */
  int64_t extent[4]; /* outermost first: the reverse of the order in the file. None is 0 */
  uint64_t offset;   /* of the first byte, in the file */
  uint64_t bytes;
} rung_gguf_tensor;

/* A path is mapped or read as source->mode says; memory is borrowed. Counted: made with one reference. */
rung_status rung_gguf_open(rung_host *host, const rung_source *source, rung_error *error, rung_gguf **out_gguf);
/* The same over a map that is already open. The map is taken, also on failure. */
rung_status rung_gguf_open_map(rung_host *host, rung_map *map, rung_error *error, rung_gguf **out_gguf);
void rung_gguf_retain(rung_gguf *gguf);
void rung_gguf_release(rung_gguf *gguf); /* NULL allowed */
/* Are these the first bytes of a GGUF file (4 will do)? */
bool rung_gguf_recognise(const uint8_t *data, uint64_t bytes);

/* Tells the system that the pages in front of the tensors are not needed for now. They stay readable: reading a key
 * brings its page back. Returns the bytes let go. */
uint64_t rung_gguf_release_metadata(const rung_gguf *gguf);

rung_host *rung_gguf_host(const rung_gguf *gguf);
uint32_t rung_gguf_version(const rung_gguf *gguf);
uint64_t rung_gguf_alignment(const rung_gguf *gguf);
uint64_t rung_gguf_data_offset(const rung_gguf *gguf); /* where tensors may begin */
const rung_map *rung_gguf_map(const rung_gguf *gguf);

/* ---- metadata */
size_t rung_gguf_key_count(const rung_gguf *gguf);
rung_gguf_entry rung_gguf_key_at(const rung_gguf *gguf, size_t index); /* index < count, in the file's order */
bool rung_gguf_find(const rung_gguf *gguf, const char *key, rung_gguf_entry *out_entry);
bool rung_gguf_has(const rung_gguf *gguf, const char *key);

/* Element i < count. i64 for integers and bool (u64 above 2^63 - 1 comes out negative), f64 for all numbers. */
int64_t rung_gguf_entry_i64(const rung_gguf_entry *entry, uint64_t i);
double rung_gguf_entry_f64(const rung_gguf_entry *entry, uint64_t i);
rung_gguf_text rung_gguf_entry_text(const rung_gguf_entry *entry, uint64_t i);
/* "u32", "string", ...; never NULL */
const char *rung_gguf_kind_name(rung_gguf_kind kind);
size_t rung_gguf_kind_bytes(rung_gguf_kind kind); /* of one element; 0 for strings and arrays */

/* Single values. NOT_FOUND: no such key; TYPE_MISMATCH: another kind, or an array; OUT_OF_RANGE: an integer that does
 * not fit. Integers of any width and sign are taken where an integer is asked for, f32 and f64 where a float is. */
rung_status rung_gguf_get_u64(const rung_gguf *gguf, const char *key, rung_error *error, uint64_t *out);
rung_status rung_gguf_get_i64(const rung_gguf *gguf, const char *key, rung_error *error, int64_t *out);
rung_status rung_gguf_get_f64(const rung_gguf *gguf, const char *key, rung_error *error, double *out);
rung_status rung_gguf_get_bool(const rung_gguf *gguf, const char *key, rung_error *error, bool *out);
rung_status rung_gguf_get_text(const rung_gguf *gguf, const char *key, rung_error *error, rung_gguf_text *out);
/* An array whose elements are of the class. */
rung_status rung_gguf_get_array(const rung_gguf *gguf, const char *key, rung_gguf_class class_, rung_error *error,
                                rung_gguf_entry *out);
/* As the above, but a missing key leaves *in_out as it is and is OK. */
rung_status rung_gguf_maybe_u64(const rung_gguf *gguf, const char *key, rung_error *error, uint64_t *in_out);
rung_status rung_gguf_maybe_i64(const rung_gguf *gguf, const char *key, rung_error *error, int64_t *in_out);
rung_status rung_gguf_maybe_f64(const rung_gguf *gguf, const char *key, rung_error *error, double *in_out);
rung_status rung_gguf_maybe_bool(const rung_gguf *gguf, const char *key, rung_error *error, bool *in_out);

/* ---- tensors */
size_t rung_gguf_tensor_count(const rung_gguf *gguf);
const rung_gguf_tensor *rung_gguf_tensor_at(const rung_gguf *gguf, size_t index);       /* in the file's order */
const rung_gguf_tensor *rung_gguf_tensor_find(const rung_gguf *gguf, const char *name); /* NULL: none */
const void *rung_gguf_tensor_data(const rung_gguf *gguf, const rung_gguf_tensor *tensor);

/* The format's number of a type; UINT32_MAX where it has none. */
uint32_t rung_gguf_type_code(rung_type type);

/* A store over this file's tensors; it keeps a reference, so that the caller may release its own. Of a model in several
 * parts (split.count above 1) this must be the first, and `source` the path that it was opened from: the others are
 * opened beside it, in the same way. NULL: no path. */
rung_status rung_gguf_weights(rung_gguf *gguf, const rung_source *source, rung_error *error,
                              rung_weights **out_weights);

#endif
