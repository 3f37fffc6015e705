/* SPDX-License-Identifier: MIT
 * Types as rows: size, class, and conversion to and from float. The rows' arithmetic meaning lives in type.c and
 * blocks.c; nothing else knows a block's layout (but kernels, which are checked against these). */
#ifndef RUNG_IR_TYPE_H
#define RUNG_IR_TYPE_H

#include <rung/tensor.h>

#include "base/compiler.h"

typedef enum rung_type_class {
  RUNG_CLASS_FLOAT,
  RUNG_CLASS_INT,
  RUNG_CLASS_UINT,
  RUNG_CLASS_BOOL,
  RUNG_CLASS_STORAGE,
  RUNG_CLASS_BLOCK
} rung_type_class;

typedef struct rung_type_row {
  const char *name;
  rung_type_class class_;
  uint16_t block; /* elements per block; 1 for plain types */
  uint16_t bytes; /* bytes per block */
  /* n elements (a multiple of the block), exact in f32 except f64 and wide integers, which are rounded. */
  void (*to_f32)(const void *source, float *out, size_t n);
  /* NULL where there is no encoder (grids). Ties to even; saturates for integers; NaN becomes 0 in integers. */
  void (*from_f32)(const float *source, void *out, size_t n);
  const char *doc;
} rung_type_row;

/* NULL for a value that is no type. */
const rung_type_row *rung_type_get(rung_type type);
/* Rows in the order of types.def, for walking. */
size_t rung_type_count(void);
rung_type rung_type_at(size_t index);
static inline bool rung_type_is_block(rung_type type) {
  const rung_type_row *row = rung_type_get(type);
  return row && row->block > 1;
}

/* The a8 block of quantize_rows (design: one layout for all variants). sum_low and sum_high are the sums of q[0..15]
 * and q[16..31]. scale = max|x| / 127 (0 for a block of zeros); q = round-to-nearest-even(x / scale). */
typedef struct rung_a8 {
  int8_t q[32];
  float scale;
  int16_t sum_low, sum_high;
} rung_a8;

#endif
