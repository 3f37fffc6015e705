/* SPDX-License-Identifier: MIT
 * What a device can do, as data: kernel rows and weight layouts. Passes, plan and runtime know nothing else of a
 * backend.
 *
 * "Does the device support it" is the look-up that the planner does: there is no second list. */
#ifndef RUNG_TARGET_TARGET_H
#define RUNG_TARGET_TARGET_H

#include "ir/graph.h"

enum {
  RUNG_ANY_TYPE = 255,
  RUNG_ANY_LAYOUT = 0xffff,
  RUNG_KERNEL_IN = 8,
  RUNG_KERNEL_OUT = 4,
  RUNG_MAX_ROLES = 8,
  RUNG_MAX_VARIANTS = 6
};

/* What operands a row takes; the planner inserts a copy where an operand is less regular. */
typedef enum rung_strides {
  RUNG_STRIDES_DENSE, /* row-major without gaps */
  RUNG_STRIDES_ROWS,  /* last axis dense (stride 1), the others any multiple */
  RUNG_STRIDES_LINES, /* the same of the last axis that has more than one element */
  RUNG_STRIDES_ANY
} rung_strides;

/* A node that asks for a kernel. */
typedef struct rung_match {
  const rung_graph *graph;
  const rung_node *node;
  const rung_value_type *in[256];
  uint32_t n_in;
  const rung_value_type *out; /* the node's results in order */
  uint32_t n_out;
  rung_value_type out_type[64]; /* where rung_match_init puts them: a graph keeps them apart */
} rung_match;

/* Files put numbers at any byte. An operand that a row reads there without caring (it moves bytes, or loads numbers as
 * bytes) is marked in in_any_byte: weights are then read where they lie in the file. All other rows get operands at
 * multiples of their numbers' size, and a weight that lies elsewhere is copied when it is bound.
 *
 * One kernel. Rows are listed plain to shiniest; the last that fits wins, and for the sizes that its guard leaves out
 * the next one before it. Names: <op>_<types>_<tile>_<isa>. */
typedef struct rung_kernel {
  const char *name;
  const rung_op *op;
  const rung_op *root;             /* op fused: the structured op inside, NULL for a pure region */
  uint8_t in_type[RUNG_KERNEL_IN]; /* the last one given also holds for further operands */
  uint8_t n_in_type;
  uint8_t out_type[RUNG_KERNEL_OUT];
  uint8_t n_out_type;
  uint16_t in_layout[RUNG_KERNEL_IN]; /* 0: row-major */
  uint8_t in_strides, out_strides;    /* rung_strides */
  uint8_t in_any_byte;                /* bit i: operand i may lie at any byte, bit 7 those behind it too; see above */
  uint32_t isa;                       /* instruction set bits the device must have */
  int8_t guard_role;                  /* index of a role, -1 for none */
  int64_t guard_lo, guard_hi;         /* lo <= role < hi; hi 0: no end */
  bool in_place;                      /* out 0 may be the memory of an input of equal type and extents */
  /* Further conditions; why: a short text of at most 120 bytes for `inspect --fused` and refusals. NULL: none. */
  bool (*fits)(const rung_match *match, char *why);
  /* Bytes of scratch from roles; per thread when scratch_per_thread. NULL: none. */
  rung_dim (*scratch)(rung_dims *dims, const rung_match *match, const rung_dim *role);
  bool scratch_per_thread;
  /* How many tasks the step splits into at this size (0 or NULL: one). A split may never change bits. */
  int64_t (*tasks)(const rung_args *args);
  /* Computes task `task`; `thread` in [0, args->threads) selects scratch. A refusal (an index out of range) goes
   * through rung_args.error and the returned status. */
  rung_status (*run)(const rung_args *args, int64_t task, int thread);
} rung_kernel;

static inline bool rung_kernel_takes_any_byte(const rung_kernel *kernel, uint32_t operand) {
  return (kernel->in_any_byte >> (operand < RUNG_KERNEL_IN ? operand : RUNG_KERNEL_IN - 1) & 1) != 0;
}

/* A row that runs an op's reference: any types, strides, sizes and places. */
static inline rung_kernel rung_kernel_plain(const char *name, const rung_op *op,
                                            rung_status (*run)(const rung_args *args, int64_t task, int thread)) {
  return (rung_kernel){.name = name,
                       .op = op,
                       .in_type = {RUNG_ANY_TYPE},
                       .n_in_type = 1,
                       .out_type = {RUNG_ANY_TYPE},
                       .n_out_type = 1,
                       .in_strides = RUNG_STRIDES_ANY,
                       .out_strides = RUNG_STRIDES_ANY,
                       .in_any_byte = 0xff,
                       .guard_role = -1,
                       .run = run};
}

/* A packed form of a matrix [n, k] in panels of `panel` rows. One layout serves GEMM, GEMV, exact and fast arithmetic
 * and row gather. */
typedef struct rung_layout {
  uint16_t id;
  const char *name; /* block type, panel width, version: "q4_1x16.1" */
  rung_type source;
  uint16_t panel; /* rows of the source per panel */
  /* k a multiple of the source's block. */
  uint64_t (*panel_bytes)(int64_t k);
  /* Packs `rows` <= panel source rows (pointers to their blocks) into one panel; missing rows become zeros. */
  void (*pack)(const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel);
  /* The exact source blocks back. */
  void (*unpack)(const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row);
  /* Row n of a form as f32. */
  void (*row)(const uint8_t *form, int64_t n, int64_t k, float *out);
} rung_layout;
static inline uint64_t rung_layout_bytes(const rung_layout *layout, int64_t n, int64_t k) {
  return (uint64_t)((n + layout->panel - 1) / layout->panel) * layout->panel_bytes(k);
}

typedef struct rung_target {
  const char *name;
  const char *level; /* what of the device is used, for people: "avx512"; "" without */
  uint32_t isa;
  const rung_kernel *const *kernel; /* pointers, plainest first */
  size_t kernels;
  const rung_layout *layout;
  size_t layouts;
  /* The one layout that matrices of this type are packed to; NULL: used as they lie in the source. */
  const rung_layout *(*layout_of)(rung_type type);
  /* Fast policy: does a matmul of a8 with this weight type have a kernel? */
  bool (*multiplies_a8)(rung_type type);
  /* Fast policy: what meets a weight of f16 or bf16 is rounded to that type in front of the product. */
  bool narrows;
  /* Has this op, which multiplies, kernels for factors of a narrow type that are as good as those for f32? NULL: all
   * have. */
  bool (*multiplies_narrow)(const struct rung_target *target, const rung_op *op, rung_type type);
  /* Keys and values: bytes of one layer's 64 positions, and row access in the canonical order. */
  size_t (*kv_block_bytes)(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim);
  void (*kv_read_row)(const rung_kv_view *, int32_t slot, int64_t position, float *out);
  void (*kv_write_row)(const rung_kv_view *, int32_t slot, int64_t position, const float *row);
  size_t align;   /* of buffers; 64 */
  uint32_t slack; /* a step may be done up to so many steps later, with one behind it: buffers live so much longer */
  bool deterministic;  /* the kernels give a row the same bits whatever comes beside it */
  bool own_memory;     /* apart from the host's: ladders keep few large programs there */
  const rung_far *far; /* the memory that operands lie in; NULL: the host's */
} rung_target;

/* The rows that together cover every value of their guard role up to `upper[role]`, best first, at most `max`. 0: no
 * kernel, and `why` (of `why_bytes`) says what came nearest. All rows given read the same layouts. */
size_t rung_target_match(const rung_target *target, const rung_match *match, const int64_t *role_upper,
                         const rung_kernel **out_rows, size_t max, char *why, size_t why_bytes);
const rung_layout *rung_target_layout(const rung_target *target, uint16_t id); /* NULL for 0 */
/* Fills a match from a node. */
void rung_match_init(rung_match *match, const rung_graph *graph, const rung_node *node);

#endif
