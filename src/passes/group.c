/* SPDX-License-Identifier: MIT
 * Forms that hold several weights: one after another, or in turn by panels. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "passes/pass.h"

/* A weight that stands later in `from` than where its form is made comes first now. */
static rung_status source(rung_pass_env *env, rung_rewrite *rw, uint32_t value, rung_value *out) {
  if (!rw->map[value].id && rung_rewrite_copy(rw, rw->from->value[value].node)) return rung_pass_failed(env, rw->to);
  *out = rw->map[value];
  return RUNG_OK;
}

static rung_value make(rung_rewrite *rw, const rung_value *in, uint32_t n, const rung_form_attrs *attrs,
                       rung_graph *body) {
  return rung_node_result(rw->to, rung_graph_append(rw->to, &rung_op_form, in, n, attrs, &body, body ? 1 : 0), 0);
}

typedef struct sources {
  rung_value *in;
  uint32_t n;
  bool plain; /* weights only, no forms */
} sources;

static rung_status take_sources(rung_pass_env *env, rung_rewrite *rw, const uint32_t *member, uint32_t count,
                                sources *out) {
  const rung_graph *g = rw->from;
  *out = (sources){.plain = true};
  for (uint32_t i = 0; i < count; i++) {
    const bool form = g->node[member[i]].op == &rung_op_form;
    out->n += form ? g->node[member[i]].n_in : 1;
    out->plain = out->plain && !form;
  }
  out->in = (rung_value *)rung_arena_array(&rw->to->arena, out->n, sizeof *out->in);
  if (!out->in) return rung_pass_no_memory(env);
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const rung_node *node = &g->node[member[i]];
    if (node->op != &rung_op_form) RUNG_TRY(source(env, rw, node->first_value, &out->in[at++]));
    for (uint32_t k = 0; node->op == &rung_op_form && k < node->n_in; k++)
      RUNG_TRY(source(env, rw, node->in[k], &out->in[at++]));
  }
  return RUNG_OK;
}

/* A body that puts what the members' bodies make one after another. */
static rung_graph *join(rung_rewrite *rw, const uint32_t *member, uint32_t count, const sources *s) {
  rung_graph *body = rung_graph_body(rw->to);
  if (rung_graph_status(body)) return body;
  rung_value *in = (rung_value *)rung_arena_array(&body->arena, s->n, sizeof *in);
  rung_value *part = (rung_value *)rung_arena_array(&body->arena, count, sizeof *part);
  if (!in || !part) {
    rung_graph_fail(body, RUNG_OUT_OF_MEMORY, "out of memory");
    return body;
  }
  for (uint32_t i = 0; i < s->n; i++) in[i] = rung_body_input(body, 'w', i, rung_graph_value_type(rw->to, s->in[i].id));
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const rung_node *node = &rw->from->node[member[i]];
    if (node->op != &rung_op_form) {
      part[i] = in[at++];
      continue;
    }
    if (rung_rewrite_inline(body, node->body[0], in + at, &part[i])) return body;
    at += node->n_in;
  }
  rung_body_output(body, 0, rung_build_concat(body, part, count, 0));
  return body;
}

rung_value rung_group_form(rung_pass_env *env, rung_rewrite *rw, const uint32_t *member, uint32_t count) {
  sources s;
  if (take_sources(env, rw, member, count, &s)) {
    rung_graph_fail(rw->to, RUNG_OUT_OF_MEMORY, "out of memory");
    return rung_build_null();
  }
  const rung_form_attrs attrs = {.recipe = s.plain ? RUNG_FORM_CONCAT : RUNG_FORM_BODY};
  return make(rw, s.in, s.n, &attrs, s.plain ? NULL : join(rw, member, count, &s));
}

/* ---- in turn by panels */

/* [n, k] each -> [n / panel, 1, panel, k] each -> side by side along axis 1 -> [members n, k]. */
static rung_value weave(rung_graph *body, const rung_value *part, uint32_t count, int64_t panel) {
  rung_value cut[RUNG_MAX_RANK];
  const rung_value_type type = *rung_build_type(body, part[0]);
  rung_dims *dims = body->dims;
  const rung_dim one = rung_dims_constant(dims, 1), rows = rung_dims_constant(dims, panel);
  const rung_dim extent[4] = {rung_dims_div(dims, type.extent[0], rows), one, rows, type.extent[1]};
  for (uint32_t i = 0; i < count; i++) cut[i] = rung_build_reshape(body, part[i], 4, extent);
  const rung_value woven = rung_build_concat(body, cut, count, 1);
  return rung_build_reshape(
      body, woven, 2,
      (rung_dim[]){rung_dims_mul(dims, type.extent[0], rung_dims_constant(dims, count)), type.extent[1]});
}

/* The body of `node`, whose last op joins the members, with that op replaced. NULL: it does not end so. */
static rung_graph *weave_body(rung_pass_env *env, rung_graph *to, const rung_node *node, uint32_t members,
                              int64_t panel) {
  const rung_graph *old = node->body[0];
  const uint32_t output = old->output[0].value;
  const rung_node *last = rung_graph_producer(old, output);
  if (last->op != &rung_op_concat || last->n_in != members || members > RUNG_MAX_RANK) return NULL;
  if (((const rung_concat_attrs *)last->attrs)->axis != 0 || rung_graph_value_type(old, output)->rank != 2) return NULL;
  rung_graph *body = rung_graph_body(to);
  rung_rewrite inner;
  if (rung_graph_status(body)) return body;
  if (rung_rewrite_init(&inner, old, body, env->error)) {
    rung_graph_fail(body, RUNG_OUT_OF_MEMORY, "out of memory");
    return body;
  }
  for (uint32_t i = 0; i < old->nodes; i++)
    if (&old->node[i] != last && rung_rewrite_copy(&inner, i)) return body;
  rung_value part[RUNG_MAX_RANK];
  for (uint32_t i = 0; i < members; i++) part[i] = inner.map[last->in[i]];
  rung_body_output(body, 0, weave(body, part, members, panel));
  return body;
}

rung_value rung_group_interleave(rung_pass_env *env, rung_rewrite *rw, uint32_t index, uint32_t members,
                                 int64_t panel) {
  const rung_node *node = &rw->from->node[index];
  rung_form_attrs attrs = *(const rung_form_attrs *)node->attrs;
  rung_graph *body = NULL;
  if (attrs.recipe == RUNG_FORM_BODY) {
    body = weave_body(env, rw->to, node, members, panel);
    if (!body) return rung_build_null();
  } else {
    if (attrs.recipe != RUNG_FORM_CONCAT || node->n_in != members) return rung_build_null();
    attrs.recipe = RUNG_FORM_INTERLEAVE;
    attrs.panel = panel;
  }
  rung_value *in = (rung_value *)rung_arena_array(&rw->to->arena, node->n_in, sizeof *in);
  if (!in) {
    rung_graph_fail(rw->to, RUNG_OUT_OF_MEMORY, "out of memory");
    return rung_build_null();
  }
  for (uint32_t k = 0; k < node->n_in; k++) in[k] = rw->map[node->in[k]];
  rung_graph_label(rw->to, node->label);
  return make(rw, in, node->n_in, &attrs, body);
}
