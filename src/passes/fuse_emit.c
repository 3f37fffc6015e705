/* SPDX-License-Identifier: MIT
 * Fused nodes: their bodies, the question for a kernel, and the weights of grouped products, whose members must lie in
 * turn for an epilogue to see one value of each. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/fuse.h"

/* Panel by which the members of the grouped root can lie in turn; 0: they cannot, or already do. */
static int64_t panel_of(const rung_fuser *f, const rung_fuse_run *run) {
  const rung_graph *g = f->rw.from;
  const rung_node *root = &g->node[run->member[0]];
  if (root->op != &rung_op_grouped_matmul) return 0;
  const rung_grouped_matmul_attrs *attrs = (const rung_grouped_matmul_attrs *)root->attrs;
  const rung_value_type *b = rung_graph_value_type(g, root->in[1]);
  const rung_layout *layout = f->env->target->layout_of(b->type);
  if (attrs->interleave || !layout || f->uses[root->in[1]] != 1 ||
      rung_graph_producer(g, root->in[1])->op != &rung_op_form)
    return 0;
  for (int i = 0; i < attrs->sizes.count; i++)
    if (attrs->sizes.value[i] != attrs->sizes.value[0] || attrs->sizes.value[i] % layout->panel) return 0;
  return layout->panel;
}

static void copy_members(rung_fuser *f, const rung_fuse_run *run, rung_graph *body, int64_t panel) {
  rung_rewrite inner = {.from = f->rw.from, .to = body, .map = f->inner};
  for (uint32_t i = 0; i < run->count; i++) {
    const rung_node *node = &f->rw.from->node[run->member[i]];
    if (i || !panel) {
      if (rung_rewrite_copy(&inner, run->member[i])) return;
      continue;
    }
    rung_grouped_matmul_attrs attrs = *(const rung_grouped_matmul_attrs *)node->attrs;
    attrs.interleave = panel;
    const rung_value in[2] = {f->inner[node->in[0]], f->inner[node->in[1]]};
    rung_graph_label(body, node->label);
    const rung_node *root = rung_graph_append(body, node->op, in, 2, &attrs, NULL, 0);
    if (!root) return;
    for (uint32_t r = 0; r < node->results; r++) f->inner[node->first_value + r] = rung_node_result(body, root, r);
  }
}

/* Failed as rung_graph_body says where memory runs out. */
static rung_graph *build_body(rung_fuser *f, const rung_fuse_run *run, int64_t panel) {
  rung_graph *body = rung_graph_body(f->rw.to);
  for (uint32_t i = 0; i < run->n_in; i++)
    f->inner[run->in[i]] = rung_body_input(body, 'x', i, rung_graph_value_type(f->rw.to, f->rw.map[run->in[i]].id));
  copy_members(f, run, body, panel);
  for (uint32_t i = 0; i < run->n_out; i++) rung_body_output(body, i, f->inner[run->out[i]]);
  for (uint32_t i = 0; i < run->n_in; i++) f->inner[run->in[i]] = (rung_value){0, 0};
  for (uint32_t i = 0; i < run->count; i++) {
    const rung_node *node = &f->rw.from->node[run->member[i]];
    for (uint32_t r = 0; r < node->results; r++) f->inner[node->first_value + r] = (rung_value){0, 0};
  }
  return body;
}

/* Asked before anything is added to the graph. */
static bool has_kernel(rung_fuser *f, rung_graph *body, const rung_fuse_run *run, char *why, size_t why_bytes) {
  rung_value_type out[RUNG_KERNEL_OUT];
  const rung_node node = {.op = &rung_op_fused, .n_in = run->n_in, .results = run->n_out, .bodies = 1, .body = &body};
  rung_match match = {.graph = f->rw.to, .node = &node, .n_in = run->n_in, .out = out, .n_out = run->n_out};
  for (uint32_t i = 0; i < run->n_in; i++) match.in[i] = rung_graph_value_type(f->rw.to, f->rw.map[run->in[i]].id);
  for (uint32_t i = 0; i < run->n_out; i++) out[i] = *rung_graph_value_type(f->rw.from, run->out[i]);
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  return rung_target_match(f->env->target, &match, upper, rows, RUNG_MAX_VARIANTS, why, why_bytes) > 0;
}

static rung_status append(rung_fuser *f, const rung_fuse_run *run, rung_graph *body, int64_t panel) {
  const rung_graph *g = f->rw.from;
  rung_graph *to = f->rw.to;
  const rung_node *root = &g->node[run->member[0]];
  rung_value in[RUNG_KERNEL_IN];
  for (uint32_t i = 0; i < run->n_in; i++) {
    in[i] = f->rw.map[run->in[i]];
    if (!panel || run->in[i] != root->in[1]) continue;
    const uint32_t form = g->value[root->in[1]].node;
    in[i] = rung_group_interleave(f->env, &f->rw, form, root->results, panel);
    if (rung_graph_status(to)) return rung_pass_failed(f->env, to);
    if (!in[i].id)
      return rung_fail(f->env->error, RUNG_INTERNAL, "fuse: the weights of a grouped product cannot lie in turn");
  }
  rung_graph_label(to, root->label);
  const rung_node *node = rung_graph_append(to, &rung_op_fused, in, run->n_in, NULL, &body, 1);
  if (!node) return rung_pass_failed(f->env, to);
  for (uint32_t i = 0; i < run->n_out; i++) f->rw.map[run->out[i]] = rung_node_result(to, node, i);
  return RUNG_OK;
}

rung_status rung_fuse_emit(rung_fuser *f, const rung_fuse_run *run, char *why, size_t why_bytes, bool *out_is) {
  const int64_t panel = panel_of(f, run);
  rung_graph *body = build_body(f, run, panel);
  *out_is = false;
  if (rung_graph_status(body)) return rung_pass_failed(f->env, body);
  *out_is = has_kernel(f, body, run, why, why_bytes);
  if (*out_is) return append(f, run, body, panel);
  rung_body_discard(f->rw.to, body);
  return RUNG_OK;
}
