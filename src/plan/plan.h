/* SPDX-License-Identifier: MIT
 * A plan: a graph scheduled for a ceiling. Immutable; offsets instead of pointers, dimension expressions instead of
 * numbers. A run resolves the expressions and walks the steps. */
#ifndef RUNG_PLAN_PLAN_H
#define RUNG_PLAN_PLAN_H

#include "target/target.h"

#define RUNG_NONE UINT32_MAX

/* What a reference starts from. Every root has one pointer in a context; references add an offset. */
typedef enum rung_root_kind {
  RUNG_ROOT_BUFFER, /* arena of the context */
  RUNG_ROOT_INPUT,  /* the caller's, or the buffer kept for it */
  RUNG_ROOT_OUTPUT,
  RUNG_ROOT_WEIGHT, /* a weight as it lies in the store */
  RUNG_ROOT_FORM,   /* a packed or derived form */
  RUNG_ROOT_STATE,
  RUNG_ROOT_CONSTANT, /* bytes of the plan */
  RUNG_ROOT_CARRIED   /* one of the pair of buffers that hold a value carried from iteration to iteration */
} rung_root_kind;
typedef struct rung_root {
  uint8_t kind;
  uint32_t index;  /* input, output slot; weight, form, state, constant index */
  uint32_t buffer; /* BUFFER, INPUT, OUTPUT, CARRIED: arena space, RUNG_NONE without */
  uint32_t twin;   /* CARRIED: the other root */
  bool read;       /* WEIGHT: a step reads it as it lies; else only forms are made from it, and it need not stay */
} rung_root;

/* An operand of a step. Extents, strides and offset are dims (elements; blocks for block types). */
typedef struct rung_ref {
  uint32_t root;
  uint8_t rank;
  uint8_t type;
  uint16_t layout;
  rung_dim offset;
  rung_dim extent[RUNG_MAX_RANK];
  rung_dim stride[RUNG_MAX_RANK];
} rung_ref;

/* Arena space. Live from step `first` to step `last` (indices of plan->step; bodies lie inside their control step). */
typedef struct rung_buffer {
  rung_dim bytes;
  uint64_t bound;  /* bytes at the ceiling */
  uint64_t offset; /* in the arena */
  uint32_t first, last;
  uint8_t place;
} rung_buffer;

/* KEEP: in[0] is a dense state that is about to be written, out[0] takes what a failed run puts back: all of it, or with
 * in[1] the rows from these positions on, out[0].extent[1] for each entry of the batch. Never inside a loop. */
typedef enum rung_step_kind {
  RUNG_STEP_KERNEL,
  RUNG_STEP_IF,
  RUNG_STEP_LOOP,
  RUNG_STEP_BIND,
  RUNG_STEP_KEEP
} rung_step_kind;

typedef struct rung_variant {
  const rung_kernel *kernel;
  rung_dim scratch; /* bytes, whole run (threads counted in); {0}: none */
} rung_variant;

typedef struct rung_step {
  uint8_t kind;
  uint8_t variants, roles;
  uint8_t place;
  uint16_t n_in, n_out;
  uint32_t variant; /* first of plan->variant, best first */
  uint32_t role;    /* first of plan->role */
  uint32_t in, out; /* first of plan->ref */
  uint32_t end;     /* control steps: one behind the last step of its bodies; else own index + 1 */
  uint32_t block;   /* IF: then-block, else-block follows; LOOP: body */
  uint32_t loop;    /* LOOP: of plan->loop */
  uint32_t symbol;  /* BIND: symbol index; its value is in[0], an i64 scalar, or `value` when n_in is 0 */
  rung_dim value;
  uint32_t label; /* of plan->label: RUNG_NONE without */
  const rung_op *op;
  const void *attrs;
  const rung_graph *body; /* fused: the region; owned by the template's graph */
} rung_step;

/* Steps of the top level or of a body: [first, end), control steps skip over their bodies through `end`. And what must
 * hold of extents wherever it runs: checks of plan->check. */
typedef struct rung_block {
  uint32_t first, end;
  uint32_t check, checks;
} rung_block;

/* The loop's own bookkeeping. Counters are kept by the runtime; iteration and condition have buffers. */
typedef struct rung_carried {
  uint32_t root_in, root_out; /* CARRIED pair: what the body reads and writes */
  uint32_t start_ref;         /* the value at entry, copied to root_in */
  uint32_t in_ref, out_ref;   /* the pair as the body sees it */
  uint32_t result_ref;        /* root_in as the rest of the program sees it after the loop */
  bool swaps; /* extents stay: the pair changes places after an iteration; else root_out is copied to root_in */
} rung_carried;
typedef struct rung_carry_symbol {
  uint32_t symbol;
  rung_dim start, next; /* value at entry and after an iteration */
} rung_carry_symbol;
typedef struct rung_scan_output {
  uint32_t body_ref; /* what an iteration makes */
  uint32_t ref;      /* the stacked result; iteration i writes slice i */
} rung_scan_output;
typedef struct rung_plan_loop {
  uint32_t iteration_ref, condition_in_ref; /* the body's first two inputs */
  uint32_t condition_ref;                   /* the body's condition result */
  uint32_t trip_ref, start_ref;             /* i64 trip count and bool start condition */
  uint32_t carried, n_carried;              /* of plan->carried */
  uint32_t symbol, n_symbols;               /* of plan->carry_symbol: extents of carried values that change */
  uint32_t scan, n_scan;                    /* of plan->scan */
  uint32_t trip_symbol;                     /* bound to the number of iterations afterwards, RUNG_NONE without */
} rung_plan_loop;

typedef struct rung_plan_input {
  const char *name;
  rung_value_type type;
  uint32_t root;
} rung_plan_input;
typedef struct rung_plan_output {
  const char *name;
  rung_value_type type;
  uint32_t root;
} rung_plan_output;
typedef struct rung_plan_state {
  const char *name;
  rung_value_type type; /* kv: extents {kv_heads, key_dim, value_dim} */
  int64_t window;
  uint32_t root;
} rung_plan_state;
typedef struct rung_plan_weight {
  const char *name;
  rung_value_type type;
  bool aligned; /* a step wants its numbers at multiples of their size; else they may lie at any byte */
} rung_plan_weight;
typedef struct rung_plan_form {
  const rung_node *node; /* of the template's graph: recipe, sources, body */
  const rung_graph *graph;
  rung_value_type type;
  uint32_t weight, weights; /* of plan->form_weight: indices into plan->weight, in operand order */
  uint64_t bytes;
} rung_plan_form;
typedef struct rung_plan_constant {
  const uint8_t *data; /* in the plan's arena, aligned to 64 */
  uint64_t bytes;
} rung_plan_constant;

typedef struct rung_plan {
  rung_arena arena;
  const rung_graph *graph; /* the template's; outlives the plan */
  const rung_target *target;
  rung_dims *dims; /* the template's, with the same ids, and what planning added: a template never changes */
  int threads;
/* clang-format off */
#define RUNG_PLAN_ARRAYS(X) \
  X(rung_step, step) X(rung_variant, variant) X(rung_dim, role) X(rung_ref, ref) X(rung_root, root) X(rung_buffer, buffer) \
  X(rung_block, block) X(rung_plan_loop, loop) X(rung_carried, carried) X(rung_carry_symbol, carry_symbol) X(rung_scan_output, scan) \
  X(rung_plan_input, input) X(rung_plan_output, output) X(rung_plan_state, state) X(rung_plan_weight, weight) \
  X(rung_plan_form, form) X(uint32_t, form_weight) X(rung_plan_constant, constant) X(const char *, label) X(rung_dim_check, check)
/* clang-format on */
#define X(type, name) \
  type *name;         \
  uint32_t name##s, name##_capacity;
  RUNG_PLAN_ARRAYS(X)
#undef X
  int64_t lo[RUNG_MAX_SYMBOLS], ceiling[RUNG_MAX_SYMBOLS]; /* accepted range of every symbol */
  uint32_t ragged[3];     /* input slots of offsets, slot and past where the graph has kv states, else RUNG_NONE */
  rung_dim ragged_rows;   /* the rows that they divide */
  rung_block whole;       /* the top level */
  uint64_t arena_bytes;   /* reserved at the ceiling */
  uint64_t scratch_bytes; /* largest step, at the ceiling */
} rung_plan;

/* Schedules, chooses kernels, places buffers. `graph` must be legal for the target. */
rung_status rung_plan_make(rung_host *host, const rung_graph *graph, const rung_target *target, const int64_t *lo,
                           const int64_t *ceiling, int threads, rung_error *error, rung_plan **out_plan);
void rung_plan_destroy(rung_plan *plan);
/* Offsets for the buffers' lifetimes and bounds; fills offset and returns the arena's size (plan/offsets.c). */
rung_status rung_plan_place(rung_host *host, rung_buffer *buffer, uint32_t buffers, uint64_t align, rung_error *error,
                            uint64_t *out_bytes);
/* Do any two buffers that live at once share a byte at the ceiling? Run after every plan is made. */
rung_status rung_plan_check_overlap(rung_host *host, const rung_buffer *buffer, uint32_t buffers, rung_error *error);

#endif
