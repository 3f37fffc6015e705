/* SPDX-License-Identifier: MIT
 * fold: what is known now is computed now, in bodies too.
 *
 *   constants      nodes on constants alone become constants by the op's reference (constant.c)
 *   nothing done   nodes that give an operand back; only where that is exact for every value, -0 and NaN included:
 *                    x * 1, x / 1, x ^ 1, x + (-0), x - (+0), integers also x + 0
 *                    x + (+0) stays: it turns -0 into +0. x * 0 stays: it keeps NaN and infinity
 *                    casts to the own type, or to a wider type and back; movement that moves nothing
 *                    -(-x), not not x, x and true, x or false, a choice that is known
 *   chains         reshape of reshape, transpose of transpose, cast of a widening cast; a product with a transposed
 * matrix is a transposed product control        `if` with a known condition is its branch, a loop that never runs its
 * start values
 *
 * A value is replaced only by one of its very type, extents by id: what was verified for it holds for the other. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "ops/shape.h"
#include "passes/pass.h"

typedef struct folder {
  rung_pass_env *env;
  rung_rewrite rw;
} folder;

/* A rule sees the node with operands of `to`, and gives a value of `to` that has the result's value; null: does not
 * apply. New nodes may be made. */
typedef struct subject {
  folder *f;
  const rung_node *node;
  const rung_value *in;
} subject;
typedef rung_value rule(const subject *s);

static const rung_value nothing = {0, 0};

static const rung_node *producer(const subject *s, rung_value v) { return rung_graph_producer(s->f->rw.to, v.id); }
static const rung_value_type *type_of(const subject *s, rung_value v) {
  return rung_graph_value_type(s->f->rw.to, v.id);
}
static const rung_value_type *result_type(const subject *s) {
  return rung_graph_value_type(s->f->rw.from, s->node->first_value);
}
/* Operand k of the node that makes v. */
static rung_value operand(const subject *s, rung_value v, uint32_t k) {
  return (rung_value){v.graph, producer(s, v)->in[k]};
}

/* Operand k is `number`, in all elements, with its sign. */
static bool is(const subject *s, uint32_t k, double number) {
  double have;
  return rung_constant_number(s->f->rw.to, s->in[k].id, &have) && have == number && signbit(have) == signbit(number);
}
static rung_value beside(const subject *s, double number) {
  return is(s, 1, number) ? s->in[0] : is(s, 0, number) ? s->in[1] : nothing;
}
static bool integers(const subject *s) { return !rung_type_is_float(result_type(s)->type); }

/* ---- nothing done */

static rung_value first(const subject *s) { return s->in[0]; }
static rung_value of_mul(const subject *s) { return beside(s, 1); }
static rung_value by_one(const subject *s) { return is(s, 1, 1) ? s->in[0] : nothing; }
static rung_value of_add(const subject *s) { return beside(s, integers(s) ? 0.0 : -0.0); }
static rung_value of_sub(const subject *s) { return is(s, 1, 0.0) ? s->in[0] : nothing; }
static rung_value of_and(const subject *s) { return beside(s, 1); }
static rung_value of_or(const subject *s) { return beside(s, 0); }
static rung_value of_concat(const subject *s) { return s->node->n_in == 1 ? s->in[0] : nothing; }
static rung_value of_where(const subject *s) {
  if (s->in[1].id == s->in[2].id) return s->in[1];
  return is(s, 0, 1) ? s->in[1] : is(s, 0, 0) ? s->in[2] : nothing;
}
/* f(f(x)) is x. */
static rung_value twice(const subject *s) {
  return producer(s, s->in[0])->op == s->node->op ? operand(s, s->in[0], 0) : nothing;
}

static bool all_zero(const subject *s, const rung_dim_list *list) {
  for (int32_t i = 0; i < list->count; i++)
    if (!rung_dim_is(s->f->rw.to->dims, list->dim[i], 0)) return false;
  return true;
}
static rung_value of_slice(const subject *s) {
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)s->node->attrs;
  for (int32_t i = 0; i < attrs->step.count; i++)
    if (attrs->step.value[i] != 1) return nothing;
  return all_zero(s, &attrs->start) ? s->in[0] : nothing;
}
static rung_value of_pad(const subject *s) {
  const rung_pad_attrs *attrs = (const rung_pad_attrs *)s->node->attrs;
  return all_zero(s, &attrs->before) && all_zero(s, &attrs->after) ? s->in[0] : nothing;
}

/* ---- casts */

/* Does `wide` hold every value of `narrow`? */
static bool holds(rung_type wide, rung_type narrow) {
  const rung_type_row *w = rung_type_get(wide), *n = rung_type_get(narrow);
  if (wide == narrow) return true;
  if (rung_type_is_float(wide) && rung_type_is_float(narrow)) return w->bytes > n->bytes;
  const bool w_signed = rung_type_is_integer(wide) && !rung_type_is_unsigned(wide),
             n_signed = rung_type_is_integer(narrow) && !rung_type_is_unsigned(narrow);
  if (rung_type_is_integer(wide) && (rung_type_is_integer(narrow) || narrow == RUNG_TYPE_BOOL)) {
    if (narrow == RUNG_TYPE_BOOL) return true;
    return w->bytes > n->bytes && (w_signed || !n_signed);
  }
  return false;
}
static rung_value of_cast(const subject *s) {
  const rung_type to = ((const rung_cast_attrs *)s->node->attrs)->type;
  const rung_value x = s->in[0];
  if (type_of(s, x)->type == to) return x;
  if (producer(s, x)->op != &rung_op_cast) return nothing;
  const rung_value inner = operand(s, x, 0);
  const rung_type narrow = type_of(s, inner)->type;
  if (!holds(type_of(s, x)->type, narrow) || rung_value_in_state(s->f->rw.to, inner.id)) return nothing;
  return narrow == to ? inner : rung_build_cast(s->f->rw.to, inner, to);
}

/* ---- movement */

static rung_value of_reshape(const subject *s) {
  const rung_value x = s->in[0];
  if (rung_value_type_equal(type_of(s, x), result_type(s))) return x;
  if (producer(s, x)->op != &rung_op_reshape) return nothing;
  const rung_value inner = operand(s, x, 0);
  if (rung_value_in_state(s->f->rw.to, inner.id)) return nothing;
  if (rung_value_type_equal(type_of(s, inner), result_type(s))) return inner;
  return rung_build_reshape(s->f->rw.to, inner, result_type(s)->rank, result_type(s)->extent);
}

static bool in_order(const rung_i64_list *list) {
  for (int32_t i = 0; i < list->count; i++)
    if (list->value[i] != i) return false;
  return true;
}
static rung_i64_list permutation_of(const rung_node *node) {
  return ((const rung_transpose_attrs *)node->attrs)->permutation;
}

static rung_value of_transpose(const subject *s) {
  const rung_value x = s->in[0];
  rung_i64_list p = permutation_of(s->node);
  if (in_order(&p)) return x;
  const rung_node *before = producer(s, x);
  if (before->op != &rung_op_transpose) return nothing;
  const rung_value inner = operand(s, x, 0);
  if (rung_value_in_state(s->f->rw.to, inner.id)) return nothing;
  const rung_i64_list q = permutation_of(before);
  for (int32_t i = 0; i < p.count; i++) p.value[i] = q.value[p.value[i]];
  return in_order(&p) ? inner : rung_build_transpose(s->f->rw.to, inner, p.value);
}

/* a times the transpose of b, which is rows of b times rows of a: kernels and patterns see one form of it. */
static rung_value of_matmul(const subject *s) {
  const rung_node *b = producer(s, s->in[1]);
  if (b->op != &rung_op_transpose || rung_type_is_block(type_of(s, s->in[1])->type)) return nothing;
  const rung_value inner = operand(s, s->in[1], 0);
  const rung_i64_list p = permutation_of(b);
  if (p.count < 2 || rung_value_in_state(s->f->rw.to, inner.id)) return nothing;
  for (int32_t i = 0; i < p.count; i++)
    if (p.value[i] != (i < p.count - 2 ? i : p.count * 2 - 3 - i)) return nothing;
  rung_matmul_attrs attrs = *(const rung_matmul_attrs *)s->node->attrs;
  attrs.transpose_b = !attrs.transpose_b;
  return rung_graph_op(s->f->rw.to, &rung_op_matmul, (rung_value[]){s->in[0], inner}, 2, &attrs);
}

static const struct {
  const rung_op *op;
  rule *apply;
} rules[] = {
    {&rung_op_mul, of_mul},
    {&rung_op_div, by_one},
    {&rung_op_pow, by_one},
    {&rung_op_add, of_add},
    {&rung_op_sub, of_sub},
    {&rung_op_and, of_and},
    {&rung_op_or, of_or},
    {&rung_op_where, of_where},
    {&rung_op_neg, twice},
    {&rung_op_not, twice},
    {&rung_op_concat, of_concat},
    {&rung_op_slice, of_slice},
    {&rung_op_pad, of_pad},
    {&rung_op_cast, of_cast},
    {&rung_op_reshape, of_reshape},
    {&rung_op_expand, first},
    {&rung_op_transpose, of_transpose},
    {&rung_op_matmul, of_matmul},
};

/* *out_done: the node's result is mapped. */
static rung_status simplify(folder *f, const rung_node *node, bool *out_done) {
  rung_value in[8];
  rule *apply = NULL;
  for (size_t i = 0; i < RUNG_COUNT(rules); i++)
    if (rules[i].op == node->op) apply = rules[i].apply;
  if (!apply || node->n_in > RUNG_COUNT(in)) return RUNG_OK;
  for (uint32_t k = 0; k < node->n_in; k++) {
    in[k] = f->rw.map[node->in[k]];
    /* What copies out of a state must go on doing so at its place. */
    if (rung_value_in_state(f->rw.to, in[k].id)) return RUNG_OK;
  }
  rung_graph_label(f->rw.to, node->label);
  const subject s = {f, node, in};
  const rung_value value = apply(&s);
  if (rung_graph_status(f->rw.to)) return rung_pass_failed(f->env, f->rw.to);
  if (!value.id || !rung_value_type_equal(type_of(&s, value), result_type(&s))) return RUNG_OK;
  f->rw.map[node->first_value] = value;
  *out_done = true;
  return RUNG_OK;
}

/* ---- control */

static bool known_bool(const folder *f, uint32_t value, bool *out) {
  double number;
  if (!rung_constant_number(f->rw.to, f->rw.map[value].id, &number)) return false;
  *out = number != 0;
  return true;
}

static bool fits_results(const folder *f, const rung_node *node, const rung_graph *g, const uint32_t *value) {
  for (uint32_t r = 0; r < node->results; r++)
    if (!rung_value_type_equal(rung_graph_value_type(g, value[r]),
                               rung_graph_value_type(f->rw.from, node->first_value + r)))
      return false;
  return true;
}

/* What the body was made for is what it gets: extents that were only to be checked at run time must go on being so. */
static bool fits_operands(const folder *f, const rung_node *node, const rung_graph *body) {
  for (uint32_t i = 0; i < body->inputs; i++) {
    const rung_value_type *want = rung_graph_value_type(body, body->node[body->input[i]].first_value);
    const uint32_t operand = rung_node_operand_of_input(node, body, i);
    if (operand >= node->n_in ||
        !rung_value_type_equal(want, rung_graph_value_type(f->rw.to, f->rw.map[node->in[operand]].id)))
      return false;
  }
  return true;
}

/* The branch in the place of the `if`. Not where the result's extent is a symbol that the `if` binds: nobody else
 * would. */
static rung_status fold_if(folder *f, const rung_node *node, bool *out_done) {
  bool condition;
  rung_graph *to = f->rw.to;
  if (!known_bool(f, node->in[0], &condition)) return RUNG_OK;
  const rung_graph *body = node->body[condition ? 0 : 1];
  uint32_t *result = (uint32_t *)rung_arena_array(&to->arena, body->outputs, sizeof *result);
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  rung_value *out = (rung_value *)rung_arena_array(&to->arena, body->outputs, sizeof *out);
  if (!result || !in || !out) return rung_pass_no_memory(f->env);
  for (uint32_t r = 0; r < body->outputs; r++) result[r] = body->output[r].value;
  if (!fits_results(f, node, body, result) || !fits_operands(f, node, body)) return RUNG_OK;
  for (uint32_t k = 1; k < node->n_in; k++) in[k - 1] = f->rw.map[node->in[k]];
  if (rung_rewrite_inline(to, body, in, out)) return rung_pass_failed(f->env, to);
  for (uint32_t r = 0; r < node->results; r++) f->rw.map[node->first_value + r] = out[r];
  f->env->again = true; /* the branch may now know more */
  *out_done = true;
  return RUNG_OK;
}

/* A loop that runs no iteration hands its start values on. With scans it would also make empty results: left alone. */
static rung_status fold_loop(folder *f, const rung_node *node, bool *out_done) {
  const uint32_t carried = (uint32_t)((const rung_loop_attrs *)node->attrs)->carried;
  double trip;
  bool condition = true;
  const bool ends = (rung_constant_number(f->rw.to, f->rw.map[node->in[0]].id, &trip) && trip <= 0) ||
                    (known_bool(f, node->in[1], &condition) && !condition);
  if (!ends || node->results != carried || !fits_results(f, node, f->rw.from, node->in + 2)) return RUNG_OK;
  for (uint32_t r = 0; r < carried; r++) f->rw.map[node->first_value + r] = f->rw.map[node->in[2 + r]];
  *out_done = true;
  return RUNG_OK;
}

rung_status rung_pass_fold(rung_pass_env *env, const rung_graph *from, rung_graph *to);

static rung_status fold_node(folder *f, uint32_t index) {
  const rung_node *node = &f->rw.from->node[index];
  bool done = false;
  if (node->op->flags & RUNG_OP_DECLARES)
    return rung_rewrite_copy(&f->rw, index) ? rung_pass_failed(f->env, f->rw.to) : RUNG_OK;
  if (node->op == &rung_op_if) RUNG_TRY(fold_if(f, node, &done));
  if (node->op == &rung_op_loop) RUNG_TRY(fold_loop(f, node, &done));
  if (!done && node->results == 1 && !node->bodies) RUNG_TRY(simplify(f, node, &done));
  if (!done) RUNG_TRY(rung_constant_fold(f->env, &f->rw, index, &done));
  return done ? RUNG_OK : rung_pass_copy(f->env, &f->rw, index, rung_pass_fold);
}

rung_status rung_pass_fold(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  folder f = {.env = env};
  RUNG_TRY(rung_rewrite_init(&f.rw, from, to, env->error));
  for (uint32_t i = 0; i < from->nodes; i++) RUNG_TRY(fold_node(&f, i));
  return rung_rewrite_finish(&f.rw, env->error);
}
