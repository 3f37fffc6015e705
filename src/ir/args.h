/* SPDX-License-Identifier: MIT
 * What reference functions and kernels see: resolved operands, attributes, scratch. Never a graph, so each can be
 * tested, timed and fuzzed alone. */
#ifndef RUNG_IR_ARGS_H
#define RUNG_IR_ARGS_H

#include "base/far.h"
#include "base/status.h"
#include "ir/type.h"
#include "ir/value_type.h"

/* Keys and values of one layer. Positions live in blocks of 64; a sequence (slot) has a block table per retention
 * class. The order inside a block belongs to the backend; read_row and write_row speak of one canonical order:
 * key[kv_heads][key_dim] then value[kv_heads][value_dim], as f32. */
enum { RUNG_KV_BLOCK = 64 };
typedef struct rung_kv_view {
  rung_type type; /* f32, f16, bf16 or q8_0 */
  int32_t kv_heads, key_dim, value_dim;
  int64_t window;        /* 0: all positions stay */
  int64_t capacity;      /* positions a sequence can reach */
  int32_t slots;         /* sequences */
  uint8_t *base;         /* blocks of this class */
  size_t block_bytes;    /* distance between blocks: all layers of the class */
  size_t layer_offset;   /* of this layer inside a block */
  const uint32_t *table; /* [slots][ring]: block index of position p of slot s: table[s * ring + (p / 64) % ring] */
  bool contiguous;       /* the table is the identity: entry e holds block e */
  uint32_t ring;         /* blocks per sequence: all of them, or the window's ring */
  const int64_t *length; /* [slots]: positions held before this run */
  const rung_far *far;   /* the memory that base is an address of; NULL: the host's. table and length are the host's */
  void (*read_row)(const struct rung_kv_view *, int32_t slot, int64_t position, float *out);
  void (*write_row)(const struct rung_kv_view *, int32_t slot, int64_t position, const float *row);
} rung_kv_view;
static inline uint8_t *rung_kv_block(const rung_kv_view *kv, int32_t slot, int64_t position) {
  const uint64_t entry = (uint64_t)slot * kv->ring + (uint64_t)(position / RUNG_KV_BLOCK) % kv->ring;
  return kv->base + kv->table[entry] * kv->block_bytes + kv->layer_offset;
}

/* Resolved operand. Strides count elements (blocks for block types); row-major extents, outermost first. */
typedef struct rung_operand {
  uint8_t *base;
  const int64_t *extent, *stride;
  uint8_t rank;
  uint8_t type; /* rung_type */
  uint16_t layout;
  const rung_kv_view *kv; /* of a kv state */
} rung_operand;

typedef struct rung_args {
  const rung_operand *in, *out;
  uint16_t n_in, n_out;
  const void *attrs;     /* the op's attribute struct */
  const int64_t *dim;    /* value of every dimension expression: dim[d.id] */
  const int64_t *role;   /* the op's roles, in its order */
  void *scratch;         /* as the kernel row asked; aligned to 64 */
  size_t scratch_stride; /* bytes per thread if the row's scratch is per thread, else 0 */
  const void *prepared;  /* what the backend made for this step at program creation */
  uint64_t *random;      /* Philox: [0] key, [1] counter of this run; steps take counter ranges fixed by the op */
  int threads;           /* most threads that may work on this step */
  rung_error *error;
  /* Runs body `index` of the node on operands; for references of ops with bodies. */
  rung_status (*run_body)(void *self, int index, const rung_operand *in, const rung_operand *out);
  void *self;
} rung_args;

static inline int64_t rung_args_dim(const rung_args *args, rung_dim dim) { return args->dim[dim.id]; }
static inline int64_t rung_operand_count(const rung_operand *o) {
  int64_t n = 1;
  for (int i = 0; i < o->rank; i++) n *= o->extent[i];
  return n;
}

/* One element as double or integer, any plain or storage type; offset in elements from base. Block types: read only. */
double rung_load_f64(const rung_operand *o, int64_t offset);
void rung_store_f64(const rung_operand *o, int64_t offset, double value); /* rounds to the operand's type */
int64_t rung_load_i64(const rung_operand *o, int64_t offset);
void rung_store_i64(const rung_operand *o, int64_t offset, int64_t value); /* wraps to the operand's width */
/* Row `row` (index over all but the last axis) as doubles, any type and layout 0. */
void rung_load_row_f64(const rung_operand *o, int64_t row, double *out);

#endif
