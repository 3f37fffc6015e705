/* SPDX-License-Identifier: MIT
 * Fusing. epilogues: a product or convolution with the elementwise ops (and quantize_rows, cast) that follow it.
 * regions: runs of row-local ops (norm, activation, gating, residual, quantise) over the same rows. Both become a
 * `fused` node whose body means what the ops meant; the target says which of them it has a kernel for. Extents never
 * decide.
 *
 * A group grows along the node order while its values are read by its own members only; the first reader outside closes
 * it. So a fused node can stand where its last member stood, and no path leaves a group and comes back. Behind that an
 * epilogue still takes what needs nothing but the product and what stands before that reader (the bias of the second of
 * three products, when the first is already cut into heads): the fused node then stands before the reader. */
#include "passes/fuse.h"

#include <stdio.h>
#include <string.h>

#include "ops/op_table.h"

/* ---- groups */

static bool is_root(const rung_node *node) {
  return node->op == &rung_op_matmul || node->op == &rung_op_grouped_matmul || node->op == &rung_op_conv;
}

/* Readers of a state stay where they are: a later place may be behind a write. */
static bool reads_state(const rung_fuser *f, const rung_node *node) {
  for (uint32_t k = 0; k < node->n_in; k++)
    if (rung_value_in_state(f->rw.from, node->in[k])) return true;
  return false;
}

static bool may_join(const rung_fuser *f, const rung_node *node) {
  const bool local = (node->op->flags & RUNG_OP_ELEMENTWISE) ||
                     (f->roots ? node->op == &rung_op_quantize_rows || node->op == &rung_op_cast
                               : (node->op->flags & RUNG_OP_ROW_LOCAL) != 0);
  return local && rung_node_is_pure(node) && node->results == 1 && !reads_state(f, node);
}

static bool same_rows(const rung_fuser *f, const rung_node *a, const rung_node *b) {
  const rung_value_type *x = rung_graph_value_type(f->rw.from, a->first_value),
                        *y = rung_graph_value_type(f->rw.from, b->first_value);
  if (x->rank != y->rank || x->rank == 0) return false;
  for (int i = 0; i < x->rank; i++)
    if (!rung_dim_same(x->extent[i], y->extent[i])) return false;
  return true;
}

/* Two open groups that meet become one: nobody outside has read a value of either. */
static uint32_t unite(rung_fuser *f, uint32_t a, uint32_t b) {
  rung_fuse_group *to = &f->group[a], *from = &f->group[b];
  if (f->roots || to->count + from->count >= RUNG_FUSE_MEMBERS) return a > b ? a : b;
  uint32_t merged[RUNG_FUSE_MEMBERS], i = 0, j = 0, n = 0;
  while (i < to->count || j < from->count) {
    const bool left = j == from->count || (i < to->count && to->member[i] < from->member[j]);
    merged[n++] = left ? to->member[i++] : from->member[j++];
  }
  for (j = 0; j < from->count; j++) f->of[from->member[j]] = a;
  memcpy(to->member, merged, n * sizeof *merged);
  to->count = n;
  from->count = 0;
  return a;
}

/* The open group that the node's operands come from. */
static uint32_t open_group(rung_fuser *f, const rung_node *node) {
  uint32_t best = UINT32_MAX;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const uint32_t g = f->of[f->rw.from->value[node->in[k]].node];
    if (g == UINT32_MAX || g == best || f->group[g].closed || f->group[g].count == RUNG_FUSE_MEMBERS) continue;
    const rung_node *last = &f->rw.from->node[f->group[g].member[f->group[g].count - 1]];
    if (same_rows(f, node, last)) best = best == UINT32_MAX ? g : unite(f, best, g);
  }
  return best;
}

/* Weights and constants: they can come first. */
static bool is_leaf(const rung_node *node) { return node->op == &rung_op_weight || node->op == &rung_op_constant; }

/* The closed group that the node can still be part of. */
static uint32_t closed_group(const rung_fuser *f, const rung_node *node) {
  const rung_graph *g = f->rw.from;
  uint32_t at = UINT32_MAX;
  for (uint32_t k = 0; k < node->n_in && f->roots; k++) {
    const uint32_t producer = g->value[node->in[k]].node, of = f->of[producer];
    if (of != UINT32_MAX) {
      if (at != UINT32_MAX && at != of) return UINT32_MAX;
      at = of;
    }
  }
  if (at == UINT32_MAX || !f->group[at].closed || f->group[at].count == RUNG_FUSE_MEMBERS) return UINT32_MAX;
  const rung_fuse_group *to = &f->group[at];
  if (!same_rows(f, node, &g->node[to->member[to->count - 1]])) return UINT32_MAX;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const uint32_t producer = g->value[node->in[k]].node;
    if (f->of[producer] != at && producer >= to->closed_at && !is_leaf(&g->node[producer])) return UINT32_MAX;
  }
  return at;
}

static void collect(rung_fuser *f) {
  const rung_graph *g = f->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    uint32_t at = may_join(f, node) ? open_group(f, node) : UINT32_MAX;
    if (at == UINT32_MAX && may_join(f, node)) {
      at = closed_group(f, node);
      if (at != UINT32_MAX) f->group[at].early = true;
    }
    if (at == UINT32_MAX && (f->roots ? is_root(node) : may_join(f, node))) {
      at = f->groups++;
      f->group[at] = (rung_fuse_group){.count = 0};
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
      const uint32_t other = f->of[g->value[node->in[k]].node];
      if (other == UINT32_MAX || other == at || f->group[other].closed) continue;
      f->group[other].closed = true;
      f->group[other].closed_at = i;
    }
    f->of[i] = at;
    if (at != UINT32_MAX) f->group[at].member[f->group[at].count++] = i;
  }
}

/* ---- faces */

static bool inside(const rung_fuse_run *run, uint32_t node) {
  for (uint32_t i = 0; i < run->count; i++)
    if (run->member[i] == node) return true;
  return false;
}

static uint32_t reads_within(const rung_graph *g, const rung_fuse_run *run, uint32_t value) {
  uint32_t within = 0;
  for (uint32_t i = 0; i < run->count; i++)
    for (uint32_t k = 0; k < g->node[run->member[i]].n_in; k++) within += g->node[run->member[i]].in[k] == value;
  return within;
}

static bool add_input(rung_fuse_run *run, uint32_t value) {
  for (uint32_t i = 0; i < run->n_in; i++)
    if (run->in[i] == value) return true;
  if (run->n_in == RUNG_KERNEL_IN) return false;
  run->in[run->n_in++] = value;
  return true;
}

/* The values that cross; false with the reason where a kernel could not take them. */
static bool find_face(const rung_fuser *f, rung_fuse_run *run, const char **why) {
  const rung_graph *g = f->rw.from;
  run->n_in = run->n_out = 0;
  for (uint32_t i = 0; i < run->count; i++) {
    const rung_node *node = &g->node[run->member[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (inside(run, g->value[node->in[k]].node) || add_input(run, node->in[k])) continue;
      *why = "it has too many operands";
      return false;
    }
    for (uint32_t r = 0; r < node->results; r++) {
      const uint32_t value = node->first_value + r;
      if (reads_within(g, run, value) == f->uses[value]) continue;
      if (f->roots && i == 0) {
        *why = "the product itself is needed elsewhere";
        return false;
      }
      if (run->n_out == RUNG_KERNEL_OUT) {
        *why = "too many of its values are needed elsewhere";
        return false;
      }
      run->out[run->n_out++] = value;
    }
  }
  if (run->n_out == 0) *why = "nothing of it is needed";
  return run->n_out > 0;
}

/* ---- fused nodes */

static void report(const rung_fuser *f, const uint32_t *member, uint32_t count, const char *why) {
  char what[240];
  rung_note_ops(f->rw.from, member, count, what, sizeof what);
  rung_note(f->env, why ? RUNG_NOTE_NEARLY : RUNG_NOTE_FUSED, f->rw.from->node[member[0]].label, what, why);
}

/* The longest beginning of members[0, count) that has a kernel; *out_done: its length, 0 if there is none. `explain`:
 * why it is not all of them. */
static rung_status emit_fused(rung_fuser *f, const uint32_t *member, uint32_t count, bool explain, uint32_t *out_done) {
  char first_why[160] = "";
  *out_done = 0;
  for (uint32_t n = count; n >= 2; n--) {
    char kernel_why[160] = "";
    const char *why = kernel_why;
    rung_fuse_run run = {.member = member, .count = n};
    bool is = f->rw.to->depth < RUNG_MAX_NESTING;
    if (is)
      is = find_face(f, &run, &why);
    else
      why = "bodies are nested as deep as they may be";
    if (is) RUNG_TRY(rung_fuse_emit(f, &run, kernel_why, sizeof kernel_why, &is));
    if (!first_why[0]) snprintf(first_why, sizeof first_why, "%s", why[0] ? why : "no kernel");
    if (!is) continue;
    if (explain && n < count) report(f, member, count, first_why);
    report(f, member, n, NULL);
    *out_done = n;
    return RUNG_OK;
  }
  if (explain && count >= 2) report(f, member, count, first_why);
  return RUNG_OK;
}

static rung_status emit_group(rung_fuser *f, const rung_fuse_group *gr) {
  for (uint32_t at = 0; at < gr->count;) {
    uint32_t done = 0;
    if (!(f->roots && at)) RUNG_TRY(emit_fused(f, gr->member + at, gr->count - at, at == 0, &done));
    if (!done && rung_rewrite_copy(&f->rw, gr->member[at])) return rung_pass_failed(f->env, f->rw.to);
    at += done ? done : 1;
  }
  return RUNG_OK;
}

/* Groups that stand before node i, which reads them: with what they need and what stands behind it. */
static rung_status emit_early(rung_fuser *f, uint32_t i) {
  const rung_graph *g = f->rw.from;
  for (uint32_t k = 0; k < g->node[i].n_in; k++) {
    const uint32_t of = f->of[g->value[g->node[i].in[k]].node];
    if (of == UINT32_MAX || !f->group[of].early || f->group[of].closed_at != i) continue;
    const rung_fuse_group *gr = &f->group[of];
    for (uint32_t m = 0; m < gr->count; m++) {
      const rung_node *member = &g->node[gr->member[m]];
      for (uint32_t n = 0; n < member->n_in; n++) {
        const uint32_t producer = g->value[member->in[n]].node;
        if (f->of[producer] == UINT32_MAX && !f->rw.map[member->in[n]].id && rung_rewrite_copy(&f->rw, producer))
          return rung_pass_failed(f->env, f->rw.to);
      }
    }
    RUNG_TRY(emit_group(f, gr));
    f->group[of].closed_at = UINT32_MAX; /* done */
  }
  return RUNG_OK;
}

static rung_status fuse(rung_pass_env *env, const rung_graph *from, rung_graph *to, bool roots, rung_pass *self) {
  rung_fuser f = {.env = env, .roots = roots};
  RUNG_TRY(rung_rewrite_init(&f.rw, from, to, env->error));
  f.uses = rung_graph_uses(from, &to->arena);
  f.of = (uint32_t *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.of);
  f.group = (rung_fuse_group *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.group);
  f.inner = (rung_value *)rung_arena_array(&to->arena, from->values, sizeof *f.inner);
  if (!f.uses || !f.of || !f.group || !f.inner) return rung_pass_no_memory(env);
  memset(f.of, 0xff, (from->nodes + 1) * sizeof *f.of);
  collect(&f);
  for (uint32_t i = 0; i < from->nodes; i++) {
    RUNG_TRY(emit_early(&f, i));
    if (f.of[i] == UINT32_MAX) {
      const bool there = is_leaf(&from->node[i]) && f.rw.map[from->node[i].first_value].id; /* an early group's */
      if (!there) RUNG_TRY(rung_pass_copy(env, &f.rw, i, self));
      continue;
    }
    const rung_fuse_group *gr = &f.group[f.of[i]];
    if (!gr->early && gr->member[gr->count - 1] == i) RUNG_TRY(emit_group(&f, gr));
  }
  return rung_rewrite_finish(&f.rw, env->error);
}

rung_status rung_pass_epilogues(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  return fuse(env, from, to, true, rung_pass_epilogues);
}
rung_status rung_pass_regions(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  return fuse(env, from, to, false, rung_pass_regions);
}
