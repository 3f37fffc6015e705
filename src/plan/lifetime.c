/* SPDX-License-Identifier: MIT
 * When buffers live, which results take over an operand's memory, how large they can get. */
#include <string.h>

#include "plan/planner.h"

typedef struct uses {
  uint32_t *first, *last; /* by root */
} uses;

static void touch(uses *u, uint32_t root, uint32_t step) {
  if (u->first[root] == RUNG_NONE || step < u->first[root]) u->first[root] = step;
  if (u->last[root] == RUNG_NONE || step > u->last[root]) u->last[root] = step;
}

/* A value from outside a loop that is touched inside stays until the loop has ended: the next iteration reads it again.
 * What the loop itself reads of an iteration (condition, carried values, slices of scans) it reads behind the body's
 * last step. Both therefore live up to the step behind the loop, so that no step of the body may take over their
 * memory. Loops are visited inner first: what an inner loop touches is seen by the outer one. */
static void extend_over_loops(const rung_plan *plan, uses *u) {
  for (uint32_t i = plan->steps; i-- > 0;) {
    const rung_step *loop = &plan->step[i];
    if (loop->kind != RUNG_STEP_LOOP) continue;
    const rung_plan_loop *info = &plan->loop[loop->loop];
    const uint32_t held[] = {info->iteration_ref, info->condition_in_ref, info->condition_ref, info->trip_ref,
                             info->start_ref};
    for (size_t h = 0; h < RUNG_COUNT(held); h++)
      touch(u, plan->ref[held[h]].root, i), touch(u, plan->ref[held[h]].root, loop->end);
    for (uint32_t c = info->carried; c < info->carried + info->n_carried; c++) {
      const rung_carried *carried = &plan->carried[c];
      touch(u, plan->ref[carried->start_ref].root, i);
      touch(u, carried->root_in, i), touch(u, carried->root_in, loop->end);
      touch(u, carried->root_out, i), touch(u, carried->root_out, loop->end);
    }
    for (uint32_t c = info->scan; c < info->scan + info->n_scan; c++) {
      touch(u, plan->ref[plan->scan[c].ref].root, i), touch(u, plan->ref[plan->scan[c].ref].root, loop->end);
      touch(u, plan->ref[plan->scan[c].body_ref].root, loop->end);
    }
    for (uint32_t r = 0; r < plan->roots; r++)
      if (u->first[r] <= i && u->last[r] != RUNG_NONE && u->last[r] > i && u->last[r] < loop->end)
        u->last[r] = loop->end;
  }
  /* The pair changes places, so whichever buffer holds the final value must last as long as either. */
  for (uint32_t c = 0; c < plan->carrieds; c++) {
    const uint32_t a = plan->carried[c].root_in, b = plan->carried[c].root_out;
    if (u->last[a] > u->last[b])
      u->last[b] = u->last[a];
    else
      u->last[a] = u->last[b];
  }
}

static void collect(const rung_plan *plan, uses *u) {
  for (uint32_t i = 0; i < plan->roots; i++) u->first[i] = u->last[i] = RUNG_NONE;
  for (uint32_t s = 0; s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    for (uint32_t r = step->in; r < step->in + step->n_in; r++) touch(u, plan->ref[r].root, s);
    for (uint32_t r = step->out; r < step->out + step->n_out; r++) touch(u, plan->ref[r].root, s);
    /* What is kept, and where it belongs, is needed until nothing can fail any more. */
    if (step->kind != RUNG_STEP_KEEP) continue;
    for (uint32_t r = step->in; r < step->in + step->n_in; r++) touch(u, plan->ref[r].root, plan->steps);
    touch(u, plan->ref[step->out].root, plan->steps);
  }
  for (uint32_t i = 0; i < plan->inputs; i++)
    touch(u, plan->input[i].root, 0), touch(u, plan->input[i].root, plan->steps);
  for (uint32_t i = 0; i < plan->outputs; i++) touch(u, plan->output[i].root, plan->steps);
  extend_over_loops(plan, u);
}

/* ---- where weights may lie */

static void want_aligned(rung_plan *plan, uint32_t ref) {
  const rung_root *root = &plan->root[plan->ref[ref].root];
  if (root->kind == RUNG_ROOT_WEIGHT) plan->weight[root->index].aligned = true;
}

/* Kernel rows say what they take at any byte; steps of the runtime read numbers. */
static void find_aligned(rung_plan *plan) {
  for (uint32_t s = 0; s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    for (uint32_t i = 0; i < step->n_in; i++) {
      bool any_byte = step->variants > 0;
      for (uint32_t v = step->variant; v < step->variant + step->variants; v++)
        any_byte = any_byte && rung_kernel_takes_any_byte(plan->variant[v].kernel, i);
      if (!any_byte) want_aligned(plan, step->in + i);
    }
  }
  for (uint32_t i = 0; i < plan->loops; i++) {
    const rung_plan_loop *l = &plan->loop[i];
    want_aligned(plan, l->trip_ref);
    want_aligned(plan, l->start_ref);
    want_aligned(plan, l->condition_ref);
  }
  for (uint32_t i = 0; i < plan->carrieds; i++) want_aligned(plan, plan->carried[i].start_ref);
  for (uint32_t i = 0; i < plan->scans; i++) want_aligned(plan, plan->scan[i].body_ref);
}

static bool all_in_place(const rung_plan *plan, const rung_step *step) {
  if (step->kind != RUNG_STEP_KERNEL || step->n_out != 1) return false;
  for (uint32_t v = 0; v < step->variants; v++)
    if (!plan->variant[step->variant + v].kernel->in_place) return false;
  return true;
}

/* Operand `in` dies in this step and has the result's shape: the result takes its memory. */
static bool can_take(rung_planner *p, const uses *u, uint32_t s, const rung_ref *in, const rung_ref *out) {
  const rung_plan *plan = p->plan;
  const rung_root *from = &plan->root[in->root], *to = &plan->root[out->root];
  if (from->kind != RUNG_ROOT_BUFFER || to->kind != RUNG_ROOT_BUFFER || in->root == out->root) return false;
  if (u->last[in->root] != s || u->first[out->root] != s || in->type != out->type || in->rank != out->rank)
    return false;
  for (int i = 0; i < in->rank; i++)
    if (!rung_dim_same(in->extent[i], out->extent[i])) return false;
  return rung_ref_covers_root(p, in) && rung_ref_covers_root(p, out);
}

static void replace_root(rung_plan *plan, uint32_t old, uint32_t new_root) {
  for (uint32_t r = 0; r < plan->refs; r++)
    if (plan->ref[r].root == old) plan->ref[r].root = new_root;
}

static void merge_in_place(rung_planner *p, uses *u) {
  rung_plan *plan = p->plan;
  for (uint32_t s = 0; s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    if (!all_in_place(plan, step)) continue;
    const rung_ref out = plan->ref[step->out];
    for (uint32_t i = 0; i < step->n_in; i++) {
      const rung_ref in = plan->ref[step->in + i];
      if (!can_take(p, u, s, &in, &out)) continue;
      u->last[in.root] = u->last[out.root];
      u->first[out.root] = u->last[out.root] = RUNG_NONE;
      plan->buffer[plan->root[out.root].buffer].first = RUNG_NONE;
      replace_root(plan, out.root, in.root);
      break;
    }
  }
}

static rung_status too_large(rung_planner *p, rung_dim bytes) {
  rung_text text;
  rung_text_init(&text, p->host);
  rung_dims_print(p->dims, bytes, &text);
  const rung_status status =
      rung_planner_fail(p, RUNG_OVERFLOW,
                        "plan: a buffer of %.*s bytes passes the address space at the ceiling; lower the ceiling of "
                        "its symbols or declare a bound",
                        text.length < 160 ? (int)text.length : 160, text.length ? text.data : "");
  rung_text_finish(&text);
  return status;
}

rung_status rung_planner_lifetimes(rung_planner *p) {
  rung_plan *plan = p->plan;
  uses u = {rung_arena_array(&p->work, plan->roots + 1, sizeof(uint32_t)),
            rung_arena_array(&p->work, plan->roots + 1, sizeof(uint32_t))};
  if (!u.first || !u.last) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  collect(plan, &u);
  find_aligned(plan);
  merge_in_place(p, &u);
  for (uint32_t i = 0; i < plan->roots; i++) {
    plan->root[i].read = u.first[i] != RUNG_NONE;
    if (plan->root[i].buffer == RUNG_NONE) continue;
    rung_buffer *buffer = &plan->buffer[plan->root[i].buffer];
    if (u.first[i] == RUNG_NONE) { /* never used, or its memory was taken over */
      *buffer = (rung_buffer){.bytes = rung_dims_constant(p->dims, 0), .first = 0, .last = 0};
      continue;
    }
    buffer->first = u.first[i];
    buffer->last = u.last[i] + p->target->slack;
    if (buffer->last > plan->steps) buffer->last = u.last[i] > plan->steps ? u.last[i] : plan->steps;
    const int64_t bound = rung_planner_upper(p, buffer->bytes);
    if (p->status) return p->status;
    if (bound == INT64_MAX || bound < 0) return too_large(p, buffer->bytes);
    buffer->bound = (uint64_t)bound;
  }
  return RUNG_OK;
}
