/* SPDX-License-Identifier: MIT
 * States from inside: block tables, what each sequence holds, shifts that wait. */
#ifndef RUNG_RUNTIME_STATE_H
#define RUNG_RUNTIME_STATE_H

#include <rung/program.h>
#include <stdatomic.h>

#include "ir/args.h"
#include "ir/graph.h"

enum { RUNG_MAX_KV_CLASSES = 4 };
#define RUNG_NO_BLOCK UINT32_MAX

/* What keeps positions for equally long: all of them, or a window. A block holds 64 positions of all its layers. */
typedef struct rung_kv_class {
  int64_t window;
  uint32_t ring;      /* blocks per sequence */
  uint32_t blocks;    /* that there are */
  size_t block_bytes; /* all layers of the class */
  rung_region region;
  uint32_t *table; /* [sequences][ring]; paged: RUNG_NO_BLOCK where a sequence has none yet */
  uint32_t *spare; /* paged: blocks that nobody has, the next one last; [blocks] */
  uint32_t spares;
  /* [sequences]: the first position that is held. Moves as soon as a run may go over the ring's oldest block, whether
   * or not the run succeeds. */
  int64_t *from;
} rung_kv_class;

/* How keys of a state were turned by their positions, found in the graph: what a shift turns them back by. */
typedef struct rung_turn {
  const char *unknown; /* why it is not known; NULL: it is */
  int64_t dims;
  double base, scale;
  bool half;            /* pairs (i, i + dims/2), else (2i, 2i + 1) */
  rung_operand factors; /* base NULL: none */
} rung_turn;

typedef struct rung_state_item {
  const char *name;
  rung_value_type type;
  uint32_t class_; /* of a kv state */
  rung_kv_view kv;
  rung_turn turn;
  rung_region region; /* of a dense state */
  uint64_t bytes;
} rung_state_item;

/* Positions from `keep` on wait to move down by `by` places; 0: nothing waits. */
typedef struct rung_slot_shift {
  int64_t keep, by;
} rung_slot_shift;

struct rung_state {
  atomic_int references;
  rung_host *host;
  rung_template *template_;
  int32_t sequences;
  int64_t capacity, chunk;
  int64_t pool; /* blocks that sequences share in each class; 0: contiguous */
  rung_kv_class class_[RUNG_MAX_KV_CLASSES];
  uint32_t classes;
  rung_state_item *item; /* in the order of the plan's states */
  uint32_t items;
  int64_t *length;        /* [sequences] */
  rung_slot_shift *shift; /* [sequences] */
  uint64_t *mark;         /* [sequences]: the last check that saw the slot, so that doubles are found in one pass */
  uint64_t mark_stamp;
  rung_context *submitter; /* whose submitted runs may be pending; NULL: nobody's */
  uint64_t moved;          /* bytes that calls moved between places of states */
  float *row; /* two rows of the widest item, then sines and cosines: runs settle shifts without an allocation */
  size_t row_floats, scratch_floats;
};

rung_state_item *rung_state_find(rung_state *state, const char *name);
static inline bool rung_state_is_kv(const rung_state_item *item) { return item->type.kind == RUNG_VALUE_STATE_KV; }
/* Numbers of one position of a kv state. */
static inline size_t rung_kv_row(const rung_kv_view *kv) {
  return (size_t)kv->kv_heads * ((size_t)kv->key_dim + (size_t)kv->value_dim);
}
/* The first position that a class holds of a sequence, as positions are counted once a waiting shift is done. */
int64_t rung_state_first(const rung_state *state, const rung_kv_class *class_, int32_t slot);
/* The first position that a row behind `length` positions sees. */
static inline int64_t rung_class_needs(const rung_kv_class *class_, int64_t length) {
  return class_->window && length > class_->window ? length - class_->window : 0;
}
/* Memory for positions [past, past + count) of a sequence in every class; refused beyond the capacity. */
rung_status rung_state_grow(rung_state *state, int32_t slot, int64_t past, int64_t count, rung_error *error);
/* A run or call is about to write up to `end`: what rings lose by it is held no longer. */
void rung_state_overwrite(rung_state *state, int32_t slot, int64_t end);
/* Only the memory, without a limit to what one run may add. */
rung_status rung_state_reserve(rung_state *state, int32_t slot, int64_t past, int64_t count, rung_error *error);
/* Paged: blocks that hold nothing of the sequence are nobody's again. */
void rung_state_give_back(rung_state *state, int32_t slot);
/* Does shifts that wait, before rows of the sequence are read (shift.c). */
void rung_state_settle(rung_state *state, int32_t slot);
/* Fills item->turn of every kv state (shift.c). */
void rung_state_find_turns(rung_state *state);
uint64_t rung_state_predict(const rung_program *program, const rung_lengths *lengths, size_t page);

#endif
