/* SPDX-License-Identifier: MIT
 * Inside the CUDA backend: kernel rows, what they prepare once per plan, and the launches that a step consists of.
 *
 * A row names a unit (kernels/<unit>.cu) and its functions. Once per plan and variant its unit is compiled, with lines
 * that the row writes in front of it (types and constants of the step), or with nothing but these lines where the text
 * is generated. At each run the row turns resolved operands into launches; a launch is a function, a grid and one
 * struct of parameters by value (graphs.c says why). */
#ifndef RUNG_CUDA_KERNEL_H
#define RUNG_CUDA_KERNEL_H

#include <stdio.h>

#include "backends/cuda/device.h"
#include "plan/backend.h"

enum { RUNG_CUDA_FUNCTIONS = 6, RUNG_CUDA_PARAMETERS = 1536, RUNG_CUDA_SLACK = 3 };

/* What a step of a plan has prepared; lives in the image's arena. */
typedef struct rung_cuda_prepared {
  const rung_cuda_kernel *kernel;
  const rung_step *step;
  void *function[RUNG_CUDA_FUNCTIONS];
  const void *own; /* the row's */
  bool absorbed;   /* a neighbour's kernel does this step, too (join.c) */
  /* A kernel for runs of one row, which does the `before` steps in front of this one as well; NULL: none. Each of those
   * says in `ahead` how far behind it that kernel is. */
  const struct rung_cuda_prepared *one;
  uint8_t before, ahead;
} rung_cuda_prepared;

typedef struct rung_cuda_prepare {
  rung_cuda *device;
  rung_arena *arena; /* lives as long as the plan's image */
  const rung_plan *plan;
  const rung_step *step;
  rung_cuda_prepared *prepared;
  rung_error *error;
} rung_cuda_prepare;

/* One launch in a list; its parameters follow, rounded up to 8 bytes. Without a function: a rung_cuda_product. */
typedef struct rung_cuda_launch {
  void *function;
  uint32_t grid[3], threads, shared, bytes;
} rung_cuda_launch;

/* What a row sees when its step runs. */
typedef struct rung_cuda_step {
  const rung_cuda *device;
  const rung_args *args;
  const rung_run *run;
  uint32_t index; /* of the step */
  const rung_cuda_prepared *prepared;
  uint64_t refusal;                                      /* device address of the run's rung_cuda_refusal */
  uint64_t (*table)(void *kept, const rung_kv_view *kv); /* the block table of a state on the device; 0: identity */
  /* What a row chooses depends on lengths of sequences: it does so alike while the state's longest is within [from, to].
   * NULL: nobody asks. */
  void (*lengths)(void *kept, const rung_kv_view *kv, int64_t from, int64_t to);
  void *kept;
  uint64_t counters; /* RUNG_CUDA_COUNTERS words, 0 between launches */
  struct rung_cuda_list *list;
} rung_cuda_step;

/* Appends a launch of prepared->function[which]. A grid of 0 is nothing. */
rung_status rung_cuda_emit(const rung_cuda_step *step, int which, int64_t x, int64_t y, int64_t z, uint32_t threads,
                           uint32_t shared, const void *parameters, size_t bytes);

rung_status rung_cuda_emit_product(const rung_cuda_step *step, const rung_cuda_product *product);

/* Which programs take a row: those of one profile, or (0) all. */
typedef enum rung_cuda_profile { RUNG_CUDA_FAST = 1, RUNG_CUDA_DETERMINISTIC } rung_cuda_profile;

struct rung_cuda_kernel {
  rung_kernel row;                               /* first: every rung_kernel of this target is one of these */
  const char *unit;                              /* NULL: the step runs on the host, by the op's reference */
  const char *function[RUNG_CUDA_FUNCTIONS + 1]; /* terminated by NULL */
  /* Lines in front of the unit's text, and prepared->own. NULL: none. */
  rung_status (*prepare)(const rung_cuda_prepare *in, rung_text *front);
  rung_status (*launch)(const rung_cuda_step *step);
  /* A kernel of one row: is this run one? `index` is the step that it stands at. */
  bool (*applies)(const rung_cuda_prepared *prepared, const rung_run *run, uint32_t index);
  rung_cuda_profile profile;
};

/* What most rows say: one operand's type and strides stand for all. */
#define RUNG_CUDA_ANY_ROW(name_, op_, in_, out_)                                                                \
  .name = name_, .op = &rung_op_##op_, .in_type = {RUNG_ANY_TYPE}, .n_in_type = 1, .out_type = {RUNG_ANY_TYPE}, \
  .n_out_type = 1, .in_strides = in_, .out_strides = out_, .guard_role = -1

typedef struct rung_cuda_family {
  const char *name;
  const rung_cuda_kernel *row;
  size_t rows;
} rung_cuda_family;
/* Plainest first; NULL past the end (registry.c). */
const rung_cuda_family *rung_cuda_family_at(size_t index);

/* ---- operands as kernels get them (kernels/common.cu has the same structs) */
typedef struct rung_cuda_operand {
  uint64_t base;
  int64_t extent[RUNG_MAX_RANK], stride[RUNG_MAX_RANK];
  int32_t rank, type;
} rung_cuda_operand;
rung_cuda_operand rung_cuda_operand_of(const rung_operand *o);
typedef struct rung_cuda_kv {
  uint64_t base, table; /* table 0: block b of slot s is s * ring + b % ring */
  int64_t block_bytes, layer_offset, window, capacity;
  int32_t type, kv_heads, key_dim, value_dim, ring, slots;
} rung_cuda_kv;
rung_cuda_kv rung_cuda_kv_of(const rung_cuda_step *step, const rung_kv_view *kv);

static inline uint64_t rung_cuda_address(const rung_operand *o) { return (uint64_t)(uintptr_t)o->base; }

/* Why a row does not fit (rung_kernel.fits): false, with the reason where somebody asks. */
enum { RUNG_CUDA_WHY_BYTES = 120 };
static inline bool rung_cuda_unfit(char *why, const char *text) {
  if (why) snprintf(why, RUNG_CUDA_WHY_BYTES, "%s", text);
  return false;
}

static inline bool rung_cuda_is_integer(int type) { return type > RUNG_TYPE_F64 && type < RUNG_TYPE_BOOL; }
/* The type of floating-point numbers that kernels compute in: f32, f16, bf16. */
static inline bool rung_cuda_is_float(int type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}
/* Its name in kernels; of what is no plain number, u8 (region_text.c). */
const char *rung_cuda_number(int type);
static inline int64_t rung_cuda_blocks(int64_t n, int64_t per, int64_t most) {
  const int64_t blocks = (n + per - 1) / per;
  return blocks < most ? blocks : most;
}

/* ---- kv.c, for join.c */
typedef struct rung_cuda_append_params {
  rung_cuda_kv kv;
  rung_cuda_operand k, v;
  uint64_t offsets, slot, past, refused;
  int64_t rows, sequences;
  int32_t offsets_type, slot_type, past_type, pad;
} rung_cuda_append_params;
rung_cuda_append_params rung_cuda_append_params_of(const rung_cuda_step *step);
rung_status rung_cuda_prepare_rope(const rung_cuda_prepare *in, rung_text *front);
rung_status rung_cuda_prepare_attend(const rung_cuda_prepare *in, rung_text *front); /* what all its kernels share */
rung_status rung_cuda_prepare_attend_rows(const rung_cuda_prepare *in, rung_text *front);
/* Refuses a window that the state does not keep. */
rung_status rung_cuda_check_window(const rung_cuda_step *step);
rung_status rung_cuda_launch_attend_to(const rung_cuda_step *step, const rung_operand *out);

/* ---- kernels with candidates (tune.c) */
typedef struct rung_cuda_attend_shape {
  int64_t key_dim, value_dim, heads, kv_heads;
} rung_cuda_attend_shape;
/* False: extents are open. */
bool rung_cuda_attend_shape_of(const rung_plan *plan, const rung_step *step, rung_cuda_attend_shape *out);
typedef enum rung_cuda_ways { RUNG_CUDA_ONE, RUNG_CUDA_ROWS } rung_cuda_ways; /* attend_one.c, kv.c */
/* What heads the tables of winners of an attention step's kernel, and its candidates. */
void rung_cuda_signature(rung_cuda_ways ways, const rung_plan *plan, const rung_step *step, char out[RUNG_TUNE_TEXT]);
rung_candidate_space rung_cuda_space(rung_cuda_ways ways, const rung_plan *plan, const rung_step *step);
/* A winner that the kernel can do. */
rung_status rung_cuda_find_winner(const rung_cuda_prepare *in, rung_cuda_ways ways, int64_t rows, bool *out_found,
                                  rung_candidate *out);
rung_candidate rung_cuda_standard(rung_cuda_ways ways, const rung_candidate_space *space, int64_t rows, int64_t keys);
/* Prepares a step so that its launches do one candidate for any number of rows, and give plain numbers. */
rung_status rung_cuda_try_one(const rung_cuda_prepare *in, const rung_candidate *candidate);
rung_status rung_cuda_try_rows(const rung_cuda_prepare *in, const rung_candidate *candidate);
enum { RUNG_CUDA_FEW_ROWS = 33 }; /* from so many rows on other kernels attend */
extern const rung_tuning rung_cuda_tuning;

/* ---- join.c: neighbouring steps that one kernel does. Asked for every step once all are prepared. */
rung_status rung_cuda_join(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                           uint32_t step, rung_error *error);
/* decode.c: products of one row with the region in front of them; asked like join. */
rung_status rung_cuda_join_row(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                               uint32_t step, rung_error *error);
/* attend_one.c: attention of one row with what is in front of it; asked like join, and behind it. */
rung_status rung_cuda_join_one(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                               uint32_t step, rung_error *error);
rung_dim rung_cuda_attend_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role);
/* cuda.c: false for kernels that are left out by hand. */
bool rung_cuda_is_wanted(const char *name);
/* cuda.c: fills prepared->function, after kernel and step are set. */
rung_status rung_cuda_prepare_kernel(const rung_cuda_prepare *in);

/* ---- host.c: steps without a kernel */
rung_status rung_cuda_run_host(rung_cuda *self, const rung_op *op, const rung_args *args);

/* ---- keys and values: [kv_heads][64][key_dim], then [kv_heads][64][value_dim], in the state's type */
size_t rung_cuda_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim);
void rung_cuda_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out);
void rung_cuda_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row);

#endif
