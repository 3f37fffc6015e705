/* SPDX-License-Identifier: MIT
 * The planner's working state, shared by its files: planner.c walks the graph, refs.c makes references, control.c plans
 * bodies, lifetime.c places buffers. */
#ifndef RUNG_PLAN_PLANNER_H
#define RUNG_PLAN_PLANNER_H

#include "plan/plan.h"

typedef struct rung_planner {
  rung_plan *plan;
  rung_arena work; /* raw; goes when the plan is made. The plan's arrays grow here, until compact.c settles them */
  rung_host *host;
  const rung_target *target;
  rung_dims *dims; /* the plan's, still growing */
  rung_error *error;
  int64_t *lower, *upper; /* of every dim at the ceiling, as far as computed */
  uint32_t uppers, lower_capacity, upper_capacity;
  uint32_t *weight_table; /* by hash of the name: index of plan->weight plus 1 */
  uint32_t weight_places;
  uint32_t loops;     /* that are being planned around here */
  rung_status status; /* sticky */
} rung_planner;

/* One graph or body being planned. */
typedef struct rung_scope {
  const rung_graph *graph;
  uint32_t *ref; /* by value id: its reference, RUNG_NONE before it is made */
} rung_scope;

/* planner.c */
rung_status rung_planner_fail(rung_planner *p, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);
int64_t rung_planner_upper(rung_planner *p, rung_dim dim);
rung_status rung_planner_scope(rung_planner *p, const rung_graph *graph, rung_scope *out_scope);
/* The steps since `first`, with the checks of the graph that they were planned from. */
rung_status rung_planner_block(rung_planner *p, const rung_graph *graph, uint32_t first, rung_block *out_block);
rung_status rung_planner_nodes(rung_planner *p, rung_scope *scope);
/* A kernel step of `op` on references, for copies. */
rung_status rung_planner_copy(rung_planner *p, uint32_t from_ref, uint32_t to_ref, const char *label);
uint32_t rung_planner_step(rung_planner *p, rung_step_kind kind, const rung_op *op, const void *attrs,
                           const char *label);

/* refs.c: indices into the plan's arrays; RUNG_NONE after an error (sticky). */
uint32_t rung_planner_root(rung_planner *p, rung_root_kind kind, uint32_t index, rung_dim bytes);
uint32_t rung_planner_ref(rung_planner *p, const rung_ref *ref);
/* A dense reference to a root. */
uint32_t rung_planner_dense_ref(rung_planner *p, uint32_t root, const rung_value_type *type);
/* A new arena buffer for a value and a dense reference to it. */
uint32_t rung_planner_buffer_ref(rung_planner *p, const rung_value_type *type);
rung_dim rung_planner_bytes(rung_planner *p, const rung_value_type *type);
bool rung_ref_is(rung_planner *p, const rung_ref *ref, rung_strides strides);
bool rung_ref_covers_root(rung_planner *p, const rung_ref *ref);
/* What node's result 0 is when it can alias operand 0; RUNG_NONE without an error when it cannot. */
uint32_t rung_planner_view(rung_planner *p, const rung_graph *graph, const rung_node *node, uint32_t operand_ref);
void rung_ref_value_type(const rung_ref *ref, rung_value_type *out_type);

/* control.c */
rung_status rung_planner_if(rung_planner *p, rung_scope *scope, const rung_node *node);
rung_status rung_planner_loop(rung_planner *p, rung_scope *scope, const rung_node *node);

/* keep.c: a step that keeps what the dense state at `operand` holds, which the node is about to write; none for other
 * states. */
rung_status rung_planner_keep(rung_planner *p, const rung_scope *scope, const rung_node *node, uint32_t operand);

/* lifetime.c: in-place merging, lifetimes, bounds. */
rung_status rung_planner_lifetimes(rung_planner *p);

/* compact.c: moves the plan's arrays to its own arena, without what nothing names. */
rung_status rung_planner_compact(rung_planner *p);

/* Appends to an array of the plan: grows it, gives the new element's index. */
#define RUNG_PUSH(p, name)                                                                                     \
  (rung_arena_grow(&(p)->work, (void **)&(p)->plan->name, &(p)->plan->name##_capacity, (p)->plan->name##s + 1, \
                   sizeof *(p)->plan->name)                                                                    \
       ? (p)->plan->name##s++                                                                                  \
       : (rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory"), RUNG_NONE))

#endif
