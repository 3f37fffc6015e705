/* SPDX-License-Identifier: MIT
 * affine: factors and addends of channels behind a convolution go into its weights and bias, as batch normalisation
 * leaves them. What is made of weights alone is computed once, so that nothing of it is left in a run.
 *
 *   c = conv x, w, b              c = conv x, w s, b s + t
 *   m = mul c, s          -->
 *   y = add m, t                  s, t [channels, 1, 1] or of one element, made of weights and constants
 *
 * Only where nobody else reads what lies between. Rows of patterns.def that begin with a factor or an addend read their
 * x twice (x clip(x + 3, 0, 6) / 6), so that nothing of an activation is taken here. Factors behind matrix products stay:
 * there they cost nothing, and that of attention is a part of what patterns.def looks for. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/pass.h"

typedef struct folder {
  rung_pass_env *env;
  rung_rewrite rw;
  const uint32_t *uses;
  uint8_t *origin; /* by value */
  uint32_t *next;  /* by node: the one that its convolution goes into, 0 for none */
  uint32_t *first; /* by node, the last of a chain: its convolution + 1 */
} folder;

static bool is_conv(const rung_node *node) { return node->op == &rung_op_conv || node->op == &rung_op_conv_transpose; }

static const rung_value_type *type_of(const folder *f, uint32_t value) {
  return rung_graph_value_type(f->rw.from, value);
}

static bool is_single(const folder *f, uint32_t value) {
  int64_t elements;
  return rung_type_is_fixed(f->rw.from->dims, type_of(f, value), &elements) && elements == 1;
}

/* One element, or [.., channels, 1, ..] of as many channels as y has. */
static bool by_channel(const folder *f, uint32_t value, const rung_value_type *y) {
  const rung_value_type *type = type_of(f, value);
  const rung_dims *dims = f->rw.from->dims;
  int64_t channels, elements;
  const int at = type->rank - (y->rank - 1);
  if (f->origin[value] == RUNG_FROM_ELSEWHERE || type->type != RUNG_TYPE_F32 || type->layout) return false;
  if (!rung_dims_is_constant(dims, y->extent[1], &channels) || type->rank > y->rank) return false;
  return is_single(f, value) || (at >= 0 && rung_dim_same(type->extent[at], y->extent[1]) &&
                                 rung_type_is_fixed(dims, type, &elements) && elements == channels);
}

/* Weights of a transpose have results within groups: one row of them serves several channels. */
static bool takes_factor(const folder *f, const rung_node *conv, uint32_t value) {
  return conv->op == &rung_op_conv || ((const rung_conv_transpose_attrs *)conv->attrs)->groups == 1 ||
         is_single(f, value);
}

/* Which operand of the node is the factor or addend, when the other one is `value`; -1: it is no such node. */
static int operand_of(const folder *f, const rung_node *node, uint32_t value, const rung_node *conv) {
  const bool factor = node->op == &rung_op_mul || node->op == &rung_op_div;
  if ((!factor && node->op != &rung_op_add && node->op != &rung_op_sub) || node->in[0] == node->in[1]) return -1;
  const int at = node->in[0] == value ? 1 : 0;
  if ((node->op == &rung_op_sub || node->op == &rung_op_div) && at == 0) return -1;
  if (factor && !takes_factor(f, conv, node->in[at])) return -1;
  return by_channel(f, node->in[at], type_of(f, value)) ? at : -1;
}

static bool may_change(const folder *f, const rung_node *conv) {
  if (rung_value_in_state(f->rw.from, conv->in[0]) || type_of(f, conv->first_value)->type != RUNG_TYPE_F32)
    return false;
  for (uint32_t i = 0; i < conv->n_in; i++)
    if (type_of(f, conv->in[i])->type != RUNG_TYPE_F32 || (i && f->origin[conv->in[i]] == RUNG_FROM_ELSEWHERE))
      return false;
  return true;
}

/* Chains, by the only reader of each value; of two that meet, the first one goes on. */
static rung_status find_chains(folder *f, rung_arena *arena) {
  const rung_graph *g = f->rw.from;
  uint32_t *reader = (uint32_t *)rung_arena_array(arena, g->values, sizeof *reader);
  uint32_t *conv = (uint32_t *)rung_arena_array(arena, g->nodes + 1, sizeof *conv); /* index + 1 */
  if (!reader || !conv) return rung_pass_no_memory(f->env);
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    f->origin[node->first_value] = rung_origin_of(g, node, f->origin);
    for (uint32_t k = 0; k < node->n_in; k++) reader[node->in[k]] = i;
  }
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (is_conv(node) && may_change(f, node)) conv[i] = i + 1;
    if (!conv[i]) continue;
    const uint32_t value = node->first_value, to = reader[value];
    if (f->uses[value] == 1 && to > i && !conv[to] && operand_of(f, &g->node[to], value, &g->node[conv[i] - 1]) >= 0) {
      f->next[i] = to;
      conv[to] = conv[i];
    } else if (conv[i] != i + 1) {
      f->first[i] = conv[i];
    }
  }
  return RUNG_OK;
}

/* Along one axis of `rank`; a single one stays single. */
static rung_value shaped(folder *f, rung_value v, bool single, int rank, int axis, rung_dim channels) {
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < rank; i++) extent[i] = i == axis && !single ? channels : rung_dims_constant(f->rw.to->dims, 1);
  return rung_build_reshape(f->rw.to, v, rank, extent);
}

/* The convolution with all of its chain, where the last member stood. */
static rung_status emit(folder *f, uint32_t conv, uint32_t last) {
  const rung_graph *g = f->rw.from;
  rung_graph *to = f->rw.to;
  const rung_node *node = &g->node[conv];
  const rung_dim channels = type_of(f, node->first_value)->extent[1];
  const int rank = type_of(f, node->in[1])->rank, axis = node->op == &rung_op_conv ? 0 : 1;
  rung_value in[3] = {{0, 0}};
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = f->rw.map[node->in[i]];
  rung_graph_label(to, node->label);
  for (uint32_t i = conv; i != last;) {
    const uint32_t value = g->node[i].first_value;
    i = f->next[i];
    const rung_node *member = &g->node[i];
    const uint32_t operand = member->in[member->in[0] == value ? 1 : 0];
    const bool single = is_single(f, operand);
    const rung_value flat = shaped(f, f->rw.map[operand], single, 1, 0, channels);
    if (member->op == &rung_op_mul || member->op == &rung_op_div) {
      rung_value (*op)(rung_graph *, rung_value, rung_value) =
          member->op == &rung_op_mul ? rung_build_mul : rung_build_div;
      in[1] = op(to, in[1], shaped(f, f->rw.map[operand], single, rank, axis, channels));
      if (in[2].id) in[2] = op(to, in[2], flat);
      continue;
    }
    /* Added to zeros: what only repeats a weight would be left to each run. */
    if (single && !in[2].id) in[2] = rung_build_expand(to, rung_build_scalar(to, RUNG_TYPE_F32, 0), 1, &channels);
    if (member->op == &rung_op_sub)
      in[2] = in[2].id ? rung_build_sub(to, in[2], flat) : rung_build_neg(to, flat);
    else
      in[2] = in[2].id ? rung_build_add(to, in[2], flat) : flat;
  }
  const rung_value y = rung_graph_op(to, node->op, in, in[2].id ? 3 : 2, node->attrs);
  if (rung_graph_status(to)) return rung_pass_failed(f->env, to);
  f->rw.map[g->node[last].first_value] = y;
  rung_note(f->env, RUNG_NOTE_REPLACED, node->label, "factors and addends of channels in a convolution", NULL);
  return RUNG_OK;
}

rung_status rung_pass_affine(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_affine(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  folder f = {.env = env};
  RUNG_TRY(rung_rewrite_init(&f.rw, from, to, env->error));
  f.uses = rung_graph_uses(from, &to->arena);
  f.origin = (uint8_t *)rung_arena_array(&to->arena, from->values, sizeof *f.origin);
  f.next = (uint32_t *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.next);
  f.first = (uint32_t *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *f.first);
  if (!f.uses || !f.origin || !f.next || !f.first) return rung_pass_no_memory(env);
  RUNG_TRY(find_chains(&f, &to->arena));
  for (uint32_t i = 0; i < from->nodes; i++) {
    if (f.next[i]) continue;
    if (f.first[i])
      RUNG_TRY(emit(&f, f.first[i] - 1, i));
    else if (rung_rewrite_copy(&f.rw, i)) /* bodies stay: nothing there is computed once */
      return rung_pass_failed(env, to);
  }
  return rung_rewrite_finish(&f.rw, env->error);
}
