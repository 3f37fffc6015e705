/* SPDX-License-Identifier: MIT
 * integer_products: products and convolutions of dequantised levels, as files of quantised models have them, become
 * products of the integers themselves.
 *
 *   a = (x - x_zero) x_scale           i = matmul_integer x, w, x_zero, w_zero
 *   b = (w - w_zero) w_scale    -->    y = float(i) (x_scale w_scale)
 *   y = matmul a, b
 *
 * Levels are of 8 bits; x has one scale, w one or one for each result. The sum is exact, so that y is rounded three times:
 * the product of the scales, the sum as a float, their product. As written, each factor and each partial sum is rounded:
 * y differs by no more than that rounding, and a quantize_linear behind it only where a number lies that close to the
 * middle of two levels. Sums that 32 bits might not hold are left alone. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "ops/shape.h"
#include "passes/pass.h"

enum { MOST_K = INT32_MAX / (255 * 255) };

/* Values of a graph: (x - zero) scale, the latter two shaped to meet x. */
typedef struct levels {
  uint32_t x, zero, scale; /* zero: 0 without */
} levels;

static rung_type type_of(const rung_graph *g, uint32_t value) { return rung_graph_value_type(g, value)->type; }

static bool is_cast(const rung_graph *g, uint32_t value, rung_type to, uint32_t *out_from) {
  const rung_node *node = rung_graph_producer(g, value);
  if (node->op != &rung_op_cast || type_of(g, value) != to) return false;
  *out_from = node->in[0];
  return true;
}

static bool find_levels(const rung_graph *g, uint32_t value, levels *out) {
  const rung_node *node = rung_graph_producer(g, value);
  if (node->op != &rung_op_mul || type_of(g, value) != RUNG_TYPE_F32) return false;
  for (int k = 0; k < 2; k++) {
    uint32_t whole;
    if (!is_cast(g, node->in[k], RUNG_TYPE_F32, &whole) || type_of(g, whole) != RUNG_TYPE_I32) continue;
    levels l = {.scale = node->in[1 - k]};
    const rung_node *less = rung_graph_producer(g, whole);
    if (less->op == &rung_op_sub) {
      l.zero = less->in[1];
      whole = less->in[0];
    }
    if (!is_cast(g, whole, RUNG_TYPE_I32, &l.x)) continue;
    if (type_of(g, l.x) != RUNG_TYPE_I8 && type_of(g, l.x) != RUNG_TYPE_U8) continue;
    *out = l;
    return true;
  }
  return false;
}

/* How a scale or zero point lies over w: one number, one for each index of `axis`, or in another way. */
typedef enum spread { SINGLE, BY_RESULT, OTHERWISE } spread;

static spread spread_of(const rung_graph *g, uint32_t value, int w_rank, int axis, rung_dim results) {
  const rung_value_type *type = rung_graph_value_type(g, value);
  int64_t elements, n;
  if (!rung_type_is_fixed(g->dims, type, &elements)) return OTHERWISE;
  if (elements == 1) return SINGLE;
  const int at = axis - (w_rank - type->rank);
  return at >= 0 && rung_dims_is_constant(g->dims, results, &n) && elements == n &&
                 rung_dim_same(type->extent[at], results)
             ? BY_RESULT
             : OTHERWISE;
}

/* The zero point as the levels have it, behind what shapes and widens it; false if it is something else. */
static bool find_zero(const rung_graph *g, const levels *l, uint32_t *out_value, double *out_number) {
  uint32_t value = l->zero;
  *out_value = 0;
  *out_number = 0;
  if (!value) return true;
  if (rung_constant_number(g, value, out_number)) {
    const bool is_signed = type_of(g, l->x) == RUNG_TYPE_I8;
    return *out_number >= (is_signed ? -128 : 0) && *out_number <= (is_signed ? 127 : 255);
  }
  while (type_of(g, value) != type_of(g, l->x)) {
    const rung_node *node = rung_graph_producer(g, value);
    if (node->op != &rung_op_cast && node->op != &rung_op_reshape) return false;
    if (node->op == &rung_op_cast && type_of(g, node->in[0]) != type_of(g, l->x))
      return false; /* it may have wrapped */
    value = node->in[0];
  }
  *out_value = value;
  return true;
}

typedef struct place {
  const rung_op *op;
  const void *attrs;
  levels x, w;
  uint32_t zero[2]; /* values, 0: the number */
  double number[2];
  spread zero_lies, scale_lies; /* of w */
  rung_dim results;
} place;

static bool short_sums(const rung_graph *g, const rung_value_type *w, int from, int to) {
  int64_t k = 1;
  for (int a = from; a < to; a++) {
    int64_t extent;
    if (!rung_dims_is_constant(g->dims, w->extent[a], &extent) || rung_mul_overflows(k, extent, &k)) return false;
  }
  return k <= MOST_K;
}

static bool find_place(const rung_graph *g, const rung_node *node, place *out) {
  const bool conv = node->op == &rung_op_conv;
  if ((!conv && node->op != &rung_op_matmul) || type_of(g, node->first_value) != RUNG_TYPE_F32) return false;
  if (!conv && ((const rung_matmul_attrs *)node->attrs)->transpose_b) return false;
  place p = {.op = conv ? &rung_op_conv_integer : &rung_op_matmul_integer, .attrs = conv ? node->attrs : NULL};
  if (!find_levels(g, node->in[0], &p.x) || !find_levels(g, node->in[1], &p.w)) return false;
  const rung_value_type *w = rung_graph_value_type(g, p.w.x), *y = rung_graph_value_type(g, node->first_value);
  const int axis = conv ? 0 : w->rank - 1;
  for (int i = 0; i < 2; i++) { /* a scale of more axes than its levels would give y more */
    const int rank = rung_graph_value_type(g, i ? p.w.x : p.x.x)->rank;
    if (rank < 2 || rung_graph_value_type(g, node->in[i])->rank != rank) return false;
  }
  p.results = y->extent[conv ? 1 : y->rank - 1];
  if (!(conv ? short_sums(g, w, 1, w->rank) : short_sums(g, w, w->rank - 2, w->rank - 1))) return false;
  p.scale_lies = spread_of(g, p.w.scale, w->rank, axis, p.results);
  p.zero_lies = p.w.zero ? spread_of(g, p.w.zero, w->rank, axis, p.results) : SINGLE;
  if (p.scale_lies == OTHERWISE || p.zero_lies == OTHERWISE) return false;
  if (spread_of(g, p.x.scale, 0, 0, p.results) != SINGLE) return false;
  if (p.x.zero && spread_of(g, p.x.zero, 0, 0, p.results) != SINGLE) return false;
  if (type_of(g, p.x.scale) != RUNG_TYPE_F32 || type_of(g, p.w.scale) != RUNG_TYPE_F32) return false;
  if (!find_zero(g, &p.x, &p.zero[0], &p.number[0]) || !find_zero(g, &p.w, &p.zero[1], &p.number[1])) return false;
  *out = p;
  return true;
}

static rung_value shaped(rung_graph *to, rung_value v, spread lies, rung_dim results, int ones) {
  rung_dim extent[RUNG_MAX_RANK] = {results};
  for (int i = 0; i < ones; i++) extent[1 + i] = rung_dims_constant(to->dims, 1);
  return rung_build_reshape(to, v, lies == SINGLE ? 0 : 1 + ones, extent);
}

/* The integers' product; values of `from` stand in map. */
static rung_value build_sum(const rung_graph *from, const place *p, rung_graph *to, const rung_value *map) {
  rung_value in[4] = {map[p->x.x], map[p->w.x]};
  for (int i = 0; i < 2; i++) {
    const rung_type type = type_of(from, i ? p->w.x : p->x.x);
    in[2 + i] = p->zero[i] ? shaped(to, map[p->zero[i]], i ? p->zero_lies : SINGLE, p->results, 0)
                           : rung_build_scalar(to, type, p->number[i]);
  }
  return rung_graph_op(to, p->op, in, 4, p->attrs);
}

/* Asked in a graph of its own. */
static rung_status has_kernel(const rung_pass_env *env, const rung_graph *g, const place *p, bool *out_is) {
  rung_graph *trial;
  RUNG_TRY(rung_graph_create_like(g, env->error, &trial));
  const uint32_t used[4] = {p->x.x, p->w.x, p->zero[0], p->zero[1]};
  rung_value *map = (rung_value *)rung_arena_array(&trial->arena, g->values, sizeof *map);
  for (uint32_t i = 0; i < 4 && map; i++)
    if (used[i]) map[used[i]] = rung_body_input(trial, 'x', i, rung_graph_value_type(g, used[i]));
  const rung_value sum = map ? build_sum(g, p, trial, map) : rung_build_null();
  char why[160];
  *out_is =
      sum.id && rung_pass_has_kernel(env, trial, rung_graph_producer(trial, sum.id), UINT32_MAX, 0, why, sizeof why);
  const bool no_memory = !map || rung_graph_status(trial) == RUNG_OUT_OF_MEMORY;
  rung_graph_destroy(trial);
  return no_memory ? rung_pass_no_memory(env) : RUNG_OK;
}

static rung_status emit(rung_pass_env *env, rung_rewrite *rw, const rung_node *node, const place *p) {
  rung_graph *to = rw->to;
  const int rank = rung_graph_value_type(rw->from, node->first_value)->rank;
  const int ones = p->op == &rung_op_conv_integer ? rank - 2 : 0;
  rung_graph_label(to, node->label);
  const rung_value sum = build_sum(rw->from, p, to, rw->map);
  const rung_value scale = rung_build_mul(to, shaped(to, rw->map[p->x.scale], SINGLE, p->results, 0),
                                          shaped(to, rw->map[p->w.scale], p->scale_lies, p->results, ones));
  rung_value y = rung_build_mul(to, rung_build_cast(to, sum, RUNG_TYPE_F32), scale);
  if (node->n_in == 3) y = rung_build_add(to, y, shaped(to, rw->map[node->in[2]], BY_RESULT, p->results, ones));
  if (rung_graph_status(to)) return rung_pass_failed(env, to);
  rw->map[node->first_value] = y;
  rung_note(env, RUNG_NOTE_REPLACED, node->label, p->op->name, NULL);
  return RUNG_OK;
}

rung_status rung_pass_integer_products(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_integer_products(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  for (uint32_t i = 0; i < from->nodes; i++) {
    place p;
    bool is = find_place(from, &from->node[i], &p);
    if (is) RUNG_TRY(has_kernel(env, from, &p, &is));
    if (is)
      RUNG_TRY(emit(env, &rw, &from->node[i], &p));
    else
      RUNG_TRY(rung_pass_copy(env, &rw, i, rung_pass_integer_products));
  }
  return rung_rewrite_finish(&rw, env->error);
}
