/* SPDX-License-Identifier: MIT
 * Inside the CPU backend: kernel rows, what they may prepare once per plan, and the tables that instruction sets
 * export.
 *
 * How a kernel gets here. A family is one file kernels/<family>.inc, listed by one line of kernels/families.inc. Units
 * isa_<level>.c and isa_<level>_<group>.c compile the list once per level, with flags of their own; what they define is
 * static except for one table each, so that no wide instruction can leak into code that runs everywhere. registry.c
 * names the tables. A family file starts with
 *
 *   #ifdef RUNG_CPU_LIST
 *   RUNG_CPU_LIST(<family>)
 *   #else
 *   ... static const rung_cpu_kernel <family>_rows[] = {...};
 *   #endif
 */
#ifndef RUNG_CPU_KERNEL_H
#define RUNG_CPU_KERNEL_H

#include "backends/cpu/isa.h"
#include "plan/plan.h"

typedef struct rung_cpu_kernel rung_cpu_kernel;

/* ---- strips: what follows a matrix product inside a fused step */

/* Takes n results of each of `rows` rows from `row` on (all leading axes counted as rows), columns [col, col + n), while
 * they are near, and writes the step's outputs for them. value[m]: the columns of result m of the root (one for matmul,
 * one per member of a grouped matmul), rows value_row floats apart; they may be overwritten. Where results are a8, col is
 * a multiple of 32, n too unless the row ends there. Of a program with one result, of f32, the values may lie where it
 * goes. */
typedef void rung_strip_fn(const void *program, const rung_args *args, int64_t row, int64_t rows, int64_t col,
                           int64_t n, float *const *value, int64_t value_row);
typedef struct rung_cpu_strip {
  rung_strip_fn *fn;
  const void *program;
} rung_cpu_strip;
/* Can the ops of `body` that follow node `root` be computed strip by strip, by any level? `why` as in rung_kernel.fits.
 * Operands of the fused node are the inputs of its body, in order. */
bool rung_cpu_strip_fits(const rung_graph *body, const rung_node *root, char *why);
/* Makes the program; memory from the arena. `body` has passed fits. */
typedef rung_status rung_strip_compile_fn(rung_arena *arena, const rung_graph *body, const rung_node *root,
                                          rung_error *error, rung_cpu_strip *out_strip);

/* ---- rows */

/* What prepare sees: a step of a plan that is being made, and the level's strip compiler. */
typedef struct rung_cpu_prepare {
  rung_arena *arena; /* lives as long as the plan's image */
  const rung_plan *plan;
  const rung_step *step;
  const rung_cpu_kernel *kernel;
  rung_strip_compile_fn *compile_strip; /* NULL if the tables have none */
  rung_error *error;
} rung_cpu_prepare;

struct rung_cpu_kernel {
  rung_kernel row; /* first: every rung_kernel of this target is one of these */
  /* Once per plan and variant: gives what run and tasks find in args->prepared. NULL: nothing to prepare. */
  rung_status (*prepare)(const rung_cpu_prepare *in, const void **out_prepared);
};

/* ---- tables */

typedef struct rung_cpu_family {
  const char *name; /* NULL ends a table */
  const rung_cpu_kernel *row;
  size_t rows;
} rung_cpu_family;
typedef struct rung_cpu_table {
  uint32_t isa;
  const rung_cpu_family *family;
  rung_strip_compile_fn *compile_strip; /* NULL where the unit has none */
} rung_cpu_table;
/* Plainest first; NULL past the end (registry.c). */
const rung_cpu_table *rung_cpu_table_at(size_t index);

/* ---- layouts (layouts.c): the same packed bytes for every level */
const rung_layout *rung_cpu_layouts(size_t *out_count);
const rung_layout *rung_cpu_layout_of(rung_type type);

/* ---- keys and values: the order inside a block of 64 positions */
size_t rung_cpu_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim);
void rung_cpu_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out);
void rung_cpu_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row);

#endif
