/* SPDX-License-Identifier: MIT
 * Looking at neighbouring steps of a plan: what rules that join them ask (join.c, decode.c). */
#ifndef RUNG_CUDA_JOIN_H
#define RUNG_CUDA_JOIN_H

#include "backends/cuda/kernel.h"

typedef struct rung_cuda_looking {
  rung_cuda *self;
  const rung_plan *plan;
  rung_arena *arena;
  rung_cuda_prepared *prepared;
  rung_error *error;
} rung_cuda_looking;

static inline const rung_ref *rung_cuda_in_ref(const rung_cuda_looking *l, const rung_step *step, uint32_t i) {
  return &l->plan->ref[step->in + i];
}
static inline const rung_ref *rung_cuda_out_ref(const rung_cuda_looking *l, const rung_step *step, uint32_t i) {
  return &l->plan->ref[step->out + i];
}
static inline const rung_buffer *rung_cuda_buffer_of(const rung_cuda_looking *l, const rung_ref *ref) {
  const uint32_t buffer = l->plan->root[ref->root].buffer;
  return buffer == RUNG_NONE ? NULL : &l->plan->buffer[buffer];
}
static inline bool rung_cuda_same_ref(const rung_ref *a, const rung_ref *b) {
  return a->root == b->root && rung_dim_same(a->offset, b->offset);
}
/* Does nothing behind step `last` read it? */
static inline bool rung_cuda_dies_in(const rung_cuda_looking *l, const rung_ref *ref, uint32_t last) {
  const rung_buffer *b = rung_cuda_buffer_of(l, ref);
  return b && l->plan->root[ref->root].kind == RUNG_ROOT_BUFFER && b->last <= last + RUNG_CUDA_SLACK;
}
static inline bool rung_cuda_lives_until(const rung_cuda_looking *l, const rung_ref *ref, uint32_t step) {
  const rung_buffer *b = rung_cuda_buffer_of(l, ref);
  return !b || b->last >= step;
}
/* Was it there before the run's kernels began, and does none of them write it? Such operands are read before the kernel in
 * front is done. */
static inline bool rung_cuda_is_early(const rung_cuda_looking *l, const rung_ref *ref) {
  const uint8_t kind = l->plan->root[ref->root].kind;
  return kind == RUNG_ROOT_WEIGHT || kind == RUNG_ROOT_FORM || kind == RUNG_ROOT_CONSTANT || kind == RUNG_ROOT_INPUT;
}
static inline bool rung_cuda_overlap(const rung_cuda_looking *l, const rung_ref *a, const rung_ref *b) {
  const rung_buffer *x = rung_cuda_buffer_of(l, a), *y = rung_cuda_buffer_of(l, b);
  return x && y && x->offset < y->offset + y->bound && y->offset < x->offset + x->bound;
}

#endif
