/* SPDX-License-Identifier: MIT
 * Element types, and tensors at the boundary of the library. */
#ifndef RUNG_TENSOR_H
#define RUNG_TENSOR_H

#include <rung/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_type {
#define TYPE(NAME, text, value, class_, elements, bytes, doc) RUNG_TYPE_##NAME = value,
#include <rung/types.def>
#undef TYPE
  RUNG_TYPE_LIMIT = 65 /* one more than the largest value */
} rung_type;

enum { RUNG_MAX_RANK = 8, RUNG_MAX_SYMBOLS = 64 };

/* "f32", "q4_k", ...; "?" for a value that is no type. */
RUNG_API const char *rung_type_name(rung_type type);
/* false if no type has this name. */
RUNG_API bool rung_type_find(const char *name, rung_type *out_type);
/* Bytes of `elements` numbers in a dense row: a multiple of the block of block types, rounded up to whole bytes for
 * 4- and 2-bit types. 0 for a value that is no type. */
RUNG_API uint64_t rung_type_bytes(rung_type type, uint64_t elements);

/* A view of memory that the caller owns. Strides count elements (blocks for block types, whose last axis is dense) and
 * may be 0 or negative; all-zero strides with rank > 0 mean dense row-major. `data` should be aligned to 64 bytes and
 * dense to be used in place; anything else is copied, and the context's report says so. */
typedef struct rung_tensor {
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  int64_t stride[RUNG_MAX_RANK];
  void *data;
  int place; /* 0: the host */
} rung_tensor;
/* A dense tensor over `data`; the extents are read from `extent`. */
RUNG_API rung_tensor rung_tensor_dense(rung_type type, int rank, const int64_t *extent, void *data);

/* A symbol and its value, e.g. {"rows", 37}. */
typedef struct rung_binding {
  const char *symbol;
  int64_t value;
} rung_binding;

#ifdef __cplusplus
}
#endif
#endif
