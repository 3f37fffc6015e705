/* SPDX-License-Identifier: MIT
 * Fusing. epilogues: a matmul with the elementwise ops that follow it. regions: runs of row-local ops (norm, activation,
 * gating, residual, quantise) over the same rows. Both become a `fused` node whose body means what the ops meant; the
 * target says which of them it has a kernel for. Extents never decide.
 *
 * A group grows along the node order while its values are read by its own members only; the first reader outside closes
 * it. So a fused node can stand where its last member stood, and no path leaves a group and comes back. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"

enum { MAX_MEMBERS = 32, MAX_IN = RUNG_KERNEL_IN, MAX_OUT = RUNG_KERNEL_OUT };

typedef struct group {
  uint32_t member[MAX_MEMBERS];
  uint32_t count;
  bool closed;
} group;

typedef struct fuser {
  rung_pass_env *env;
  rung_rewrite rw;
  bool roots; /* epilogues of structured ops; else regions without a root */
  group *group;
  uint32_t groups;
  uint32_t *of; /* by node: its group, UINT32_MAX without */
  const uint32_t *uses;
} fuser;

static bool is_root(const rung_node *node) { return node->op == &rung_op_matmul || node->op == &rung_op_grouped_matmul; }

static bool may_join(const fuser *f, const rung_node *node) {
  const uint32_t wanted = f->roots ? RUNG_OP_ELEMENTWISE : (uint32_t)RUNG_OP_ELEMENTWISE | RUNG_OP_ROW_LOCAL;
  return (node->op->flags & wanted) && !(node->op->flags & (RUNG_OP_RANDOM | RUNG_OP_EFFECT)) && !node->bodies && node->results == 1;
}

static bool same_rows(const fuser *f, const rung_node *a, const rung_node *b) {
  const rung_value_type *x = rung_graph_value_type(f->rw.from, a->first_value), *y = rung_graph_value_type(f->rw.from, b->first_value);
  if (x->rank != y->rank || x->rank == 0) return false;
  for (int i = 0; i < x->rank; i++)
    if (!rung_dim_same(x->extent[i], y->extent[i])) return false;
  return true;
}

/* The open group that the node's operands come from; the last one if there are several. */
static uint32_t open_group(const fuser *f, const rung_node *node) {
  uint32_t best = UINT32_MAX;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const uint32_t g = f->of[f->rw.from->value[node->in[k]].node];
    if (g == UINT32_MAX || f->group[g].closed || f->group[g].count == MAX_MEMBERS) continue;
    const rung_node *last = &f->rw.from->node[f->group[g].member[f->group[g].count - 1]];
    if (same_rows(f, node, last) && (best == UINT32_MAX || g > best)) best = g;
  }
  return best;
}

static void collect(fuser *f) {
  const rung_graph *g = f->rw.from;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    uint32_t at = may_join(f, node) ? open_group(f, node) : UINT32_MAX;
    if (at == UINT32_MAX && (f->roots ? is_root(node) : may_join(f, node))) {
      at = f->groups++;
      f->group[at].count = 0;
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
      const uint32_t other = f->of[g->value[node->in[k]].node];
      if (other != UINT32_MAX && other != at) f->group[other].closed = true;
    }
    f->of[i] = at;
    if (at != UINT32_MAX) f->group[at].member[f->group[at].count++] = i;
  }
}

static bool inside(const group *gr, uint32_t count, uint32_t node) {
  for (uint32_t i = 0; i < count; i++)
    if (gr->member[i] == node) return true;
  return false;
}

/* Values that the first `count` members read from outside and give to the outside. */
typedef struct face {
  uint32_t in[MAX_IN], out[MAX_OUT], n_in, n_out;
} face;

static bool find_face(const fuser *f, const group *gr, uint32_t count, face *out) {
  const rung_graph *g = f->rw.from;
  *out = (face){0};
  for (uint32_t i = 0; i < count; i++) {
    const rung_node *node = &g->node[gr->member[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (inside(gr, count, g->value[node->in[k]].node)) continue;
      uint32_t at = 0;
      while (at < out->n_in && out->in[at] != node->in[k]) at++;
      if (at == MAX_IN) return false;
      if (at == out->n_in) out->in[out->n_in++] = node->in[k];
    }
    for (uint32_t r = 0; r < node->results; r++) {
      uint32_t within = 0;
      for (uint32_t j = i + 1; j < count; j++)
        for (uint32_t k = 0; k < g->node[gr->member[j]].n_in; k++) within += g->node[gr->member[j]].in[k] == node->first_value + r;
      if (within == f->uses[node->first_value + r]) continue;
      if (f->roots && i == 0) return false; /* the product itself must not be needed */
      if (out->n_out == MAX_OUT) return false;
      out->out[out->n_out++] = node->first_value + r;
    }
  }
  return out->n_out > 0;
}

static rung_graph *build_body(fuser *f, const group *gr, uint32_t count, const face *face) {
  rung_graph *body = rung_graph_body(f->rw.to);
  rung_rewrite inner;
  if (!body || rung_rewrite_init(&inner, f->rw.from, body, f->env->error)) return NULL;
  for (uint32_t i = 0; i < face->n_in; i++) {
    char name[16] = "x0";
    name[1] = (char)('0' + i);
    const rung_value_type *t = rung_graph_value_type(f->rw.to, f->rw.map[face->in[i]].id);
    const rung_input_attrs attrs = {.name = name};
    const rung_node *node = rung_graph_declare(body, &rung_op_input, &attrs, t);
    if (!node) return NULL;
    inner.map[face->in[i]] = rung_node_result(body, node, 0);
  }
  for (uint32_t i = 0; i < count; i++)
    if (rung_rewrite_copy(&inner, gr->member[i])) return NULL;
  for (uint32_t i = 0; i < face->n_out; i++) {
    char name[16] = "y0";
    name[1] = (char)('0' + i);
    rung_graph_output(body, name, inner.map[face->out[i]]);
  }
  return rung_graph_status(body) ? NULL : body;
}

/* The kernel question is asked before anything is added to the graph. */
static bool has_kernel(fuser *f, const rung_graph *body, const face *face, char *why, size_t why_bytes) {
  rung_value_type out[MAX_OUT];
  rung_graph *bodies[1] = {(rung_graph *)body};
  const rung_node node = {.op = &rung_op_fused, .n_in = face->n_in, .results = face->n_out, .bodies = 1, .body = bodies};
  rung_match match = {.graph = f->rw.to, .node = &node, .n_in = face->n_in, .out = out, .n_out = face->n_out};
  for (uint32_t i = 0; i < face->n_in; i++) match.in[i] = rung_graph_value_type(f->rw.to, f->rw.map[face->in[i]].id);
  for (uint32_t i = 0; i < face->n_out; i++) out[i] = *rung_graph_value_type(f->rw.from, face->out[i]);
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  return rung_target_match(f->env->target, &match, upper, rows, RUNG_MAX_VARIANTS, why, why_bytes) > 0;
}

static void report(fuser *f, const group *gr, uint32_t count, const char *why) {
  rung_text *out = f->env->report;
  if (!out) return;
  const rung_node *first = &f->rw.from->node[gr->member[0]];
  rung_text_printf(out, "%s %s:", why ? "not fused" : "fused", first->label ? first->label : "graph");
  for (uint32_t i = 0; i < count; i++) rung_text_printf(out, "%s%s", i ? " + " : " ", f->rw.from->node[gr->member[i]].op->name);
  if (why) rung_text_printf(out, ": %s", why);
  rung_text_puts(out, "\n");
}

/* The longest beginning of the group that the target has a kernel for; 0 if none. */
static rung_status emit_fused(fuser *f, const group *gr, uint32_t *out_count) {
  char why[160] = "", first_why[160] = "";
  *out_count = 0;
  for (uint32_t count = gr->count; count >= 2; count--) {
    face face;
    if (!find_face(f, gr, count, &face)) {
      if (!first_why[0]) strcpy(first_why, "its values are needed outside, or it has too many operands");
      continue;
    }
    rung_graph *body = build_body(f, gr, count, &face);
    if (!body) {
      if (rung_graph_status(f->rw.to)) return rung_graph_status(f->rw.to);
      return rung_fail(f->env->error, RUNG_OUT_OF_MEMORY, "fuse: out of memory for a body");
    }
    if (!has_kernel(f, body, &face, why, sizeof why)) {
      if (!first_why[0]) memcpy(first_why, why, sizeof first_why);
      continue;
    }
    rung_value in[MAX_IN];
    for (uint32_t i = 0; i < face.n_in; i++) in[i] = f->rw.map[face.in[i]];
    rung_graph_label(f->rw.to, f->rw.from->node[gr->member[0]].label);
    const rung_node *node = rung_graph_append(f->rw.to, &rung_op_fused, in, face.n_in, NULL, &body, 1);
    if (!node) return rung_graph_status(f->rw.to);
    for (uint32_t i = 0; i < face.n_out; i++) f->rw.map[face.out[i]] = rung_node_result(f->rw.to, node, i);
    if (count < gr->count) report(f, gr, gr->count, first_why[0] ? first_why : "no kernel");
    report(f, gr, count, NULL);
    *out_count = count;
    return RUNG_OK;
  }
  report(f, gr, gr->count, first_why[0] ? first_why : "no kernel");
  return RUNG_OK;
}

static rung_status emit_group(fuser *f, const group *gr) {
  uint32_t done = 0;
  if (gr->count >= 2) RUNG_TRY(emit_fused(f, gr, &done));
  for (uint32_t i = done; i < gr->count; i++) RUNG_TRY(rung_rewrite_copy(&f->rw, gr->member[i]));
  return RUNG_OK;
}

static rung_status fuse(rung_pass_env *env, const rung_graph *from, rung_graph *to, bool roots) {
  fuser f = {.env = env, .roots = roots};
  RUNG_TRY(rung_rewrite_init(&f.rw, from, to, env->error));
  f.uses = rung_graph_uses(from, &to->arena);
  f.of = rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.of);
  f.group = rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.group);
  if (!f.uses || !f.of || !f.group) return rung_fail(env->error, RUNG_OUT_OF_MEMORY, "fuse: out of memory");
  memset(f.of, 0xff, (from->nodes + 1) * sizeof *f.of);
  collect(&f);
  for (uint32_t i = 0; i < from->nodes; i++) {
    if (f.of[i] == UINT32_MAX) {
      RUNG_TRY(rung_rewrite_copy(&f.rw, i));
      continue;
    }
    const group *gr = &f.group[f.of[i]];
    if (gr->member[gr->count - 1] == i) RUNG_TRY(emit_group(&f, gr));
  }
  return rung_rewrite_finish(&f.rw, env->error);
}

rung_status rung_pass_epilogues(rung_pass_env *env, const rung_graph *from, rung_graph *to) { return fuse(env, from, to, true); }
rung_status rung_pass_regions(rung_pass_env *env, const rung_graph *from, rung_graph *to) { return fuse(env, from, to, false); }
