/* SPDX-License-Identifier: MIT
 * The type of a value: element type, layout, extents, place. */
#ifndef RUNG_IR_VALUE_TYPE_H
#define RUNG_IR_VALUE_TYPE_H

#include <rung/graph.h>

typedef enum rung_value_kind { RUNG_VALUE_TENSOR, RUNG_VALUE_STATE_DENSE, RUNG_VALUE_STATE_KV } rung_value_kind;

typedef struct rung_value_type {
  rung_type type;
  uint8_t kind; /* rung_value_kind */
  int8_t rank;
  int8_t place;    /* device; 0 is the default */
  uint16_t layout; /* 0: row-major; else a layout id of the target */
  rung_dim extent[RUNG_MAX_RANK];
} rung_value_type;

#endif
