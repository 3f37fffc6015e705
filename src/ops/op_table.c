/* SPDX-License-Identifier: MIT
 * The table of all ops. */
#include "ops/op_table.h"

#include <string.h>

typedef struct entry {
  const rung_op *op;
  size_t length; /* of the name */
} entry;

static const entry table[] = {
#define OP(name) {&rung_op_##name, sizeof #name - 1},
#include "ops/ops.def"
#undef OP
#define ROW(name) {&rung_op_##name, sizeof #name - 1},
#include "ops/rows.inc"
#undef ROW
};

/* A scan: comparing lengths first leaves a handful of names, which beats keeping a sorted copy of the lists. */
const rung_op *rung_op_find(const char *name, size_t length) {
  for (size_t i = 0; i < RUNG_COUNT(table); i++)
    if (table[i].length == length && memcmp(table[i].op->name, name, length) == 0) return table[i].op;
  return NULL;
}

size_t rung_op_count(void) { return RUNG_COUNT(table); }
const rung_op *rung_op_at(size_t index) { return index < RUNG_COUNT(table) ? table[index].op : NULL; }
