/* SPDX-License-Identifier: MIT
 * attention: softmax attention of tensors (Vaswani et al., "Attention is all you need", 2017), with masks, shared key
 * and value heads, windows and capped scores. */
#include <float.h>
#include <math.h>

#include "ops/build.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_attention_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "multiplies scores; 0: 1 / sqrt(dim)"},
    {FIELD(soft_cap), .kind = RUNG_ATTR_F64, .text_default = "0",
     .doc = "c > 0: scores become c tanh(score / c), before the mask"},
    {FIELD(window), .kind = RUNG_ATTR_I64, .text_default = "0", .doc = "w > 0: keys at most w - 1 places away; 0: all"},
    {FIELD(causal), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "query i stands at key i + keys - queries and sees none after it"},
    {FIELD(added), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "a float mask is added and hides nothing, also where it is -inf"},
    {0}};
#undef FIELD

static rung_status infer_mask(rung_infer *infer, const rung_dim *scores) {
  const rung_value_type *mask = &infer->in[3];
  RUNG_TRY(rung_infer_class(infer, 3, RUNG_TAKES_FLOAT | RUNG_TAKES_BOOL));
  RUNG_TRY(rung_infer_ranks(infer, 3, 0, 4));
  for (int axis = 0; axis < mask->rank; axis++) {
    if (rung_dim_is(infer->dims, mask->extent[axis], 1)) continue;
    RUNG_TRY(rung_infer_extent(infer, 3, axis, scores[4 - mask->rank + axis]));
  }
  return RUNG_OK;
}

static rung_status infer(rung_infer *infer) {
  const rung_attention_attrs *attrs = infer->attrs;
  const rung_value_type *q = &infer->in[0], *k = &infer->in[1], *v = &infer->in[2];
  for (uint32_t i = 0; i < 3; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
    RUNG_TRY(rung_infer_rank(infer, i, 4));
    RUNG_TRY(rung_infer_extent(infer, i, 0, q->extent[0]));
  }
  RUNG_TRY(rung_infer_extent(infer, 1, 3, q->extent[3]));
  RUNG_TRY(rung_infer_extent(infer, 2, 1, k->extent[1]));
  RUNG_TRY(rung_infer_extent(infer, 2, 2, k->extent[2]));
  RUNG_TRY(rung_infer_heads(infer, q->extent[1], k->extent[1]));
  RUNG_TRY(rung_infer_scores(infer, attrs->scale, attrs->soft_cap, attrs->window));
  const rung_dim scores[] = {q->extent[0], q->extent[1], q->extent[2], k->extent[2]};
  if (infer->n_in == 4) RUNG_TRY(infer_mask(infer, scores));
  rung_infer_result(infer, 0, q->type, 4, (const rung_dim[]){q->extent[0], q->extent[1], q->extent[2], v->extent[3]});
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_mul(dims, in[0].extent[0], in[0].extent[2]);
  out_role[1] = in[1].extent[2];
  out_role[2] = in[0].extent[1];
}

/* One query: batch, head and place; and the key head that it shares. */
typedef struct attending {
  const rung_args *args;
  int64_t batch, head, kv_head, query;
} attending;

/* The score of a key; false if the query does not see it: outside window or triangle, a mask of false, of -inf or of
 * the lowest f32, which exporters write for -inf. */
static bool score_of(const attending *a, int64_t key, double *out) {
  const rung_attention_attrs *attrs = a->args->attrs;
  const rung_operand *q = &a->args->in[0], *k = &a->args->in[1], *mask = a->args->n_in == 4 ? &a->args->in[3] : NULL;
  const int64_t distance = a->query + k->extent[2] - q->extent[2] - key, dim = q->extent[3];
  if (attrs->causal && distance < 0) return false;
  if (attrs->window && (distance >= attrs->window || -distance >= attrs->window)) return false;
  const rung_span row = {q, rung_element_offset(q, (const int64_t[]){a->batch, a->head, a->query, 0}),
                         rung_axis_step(q, 3)};
  const rung_span column = {k, rung_element_offset(k, (const int64_t[]){a->batch, a->kv_head, key, 0}),
                            rung_axis_step(k, 3)};
  double score = rung_dot_f64(row, column, dim) * (attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)dim));
  if (attrs->soft_cap > 0) score = attrs->soft_cap * tanh(score / attrs->soft_cap);
  *out = score;
  if (!mask) return true;
  const int64_t at = rung_broadcast_offset(mask, mask->rank, (const int64_t[]){a->batch, a->head, a->query, key}, 4);
  if (mask->type == RUNG_TYPE_BOOL) return rung_load_i64(mask, at) != 0;
  const double added = rung_load_f64(mask, at);
  *out = score + added;
  return attrs->added || !(added <= -(double)FLT_MAX);
}

static void attend(const attending *a) {
  enum { SPAN = 256 };
  const rung_operand *v = &a->args->in[2], *y = &a->args->out[0];
  const int64_t keys = v->extent[2], dim = v->extent[3];
  double score, largest = -(double)INFINITY;
  bool any = false;
  for (int64_t key = 0; key < keys; key++) {
    if (!score_of(a, key, &score)) continue;
    largest = fmax(largest, score);
    any = true;
  }
  for (int64_t first = 0; first < dim; first += SPAN) {
    const int64_t count = dim - first < SPAN ? dim - first : SPAN;
    double total = 0, sum[SPAN] = {0}, value[SPAN];
    for (int64_t key = 0; key < keys; key++) {
      if (!score_of(a, key, &score)) continue;
      const double weight = exp(score - largest);
      rung_load_span(v, rung_element_offset(v, (const int64_t[]){a->batch, a->kv_head, key, first}),
                     rung_axis_step(v, 3), count, value);
      for (int64_t d = 0; d < count; d++) sum[d] += weight * value[d];
      total += weight;
    }
    for (int64_t d = 0; d < count; d++) {
      const int64_t at = rung_element_offset(y, (const int64_t[]){a->batch, a->head, a->query, first + d});
      rung_store_f64(y, at, any ? sum[d] / total : 0);
    }
  }
}

static rung_status reference(const rung_args *args) {
  const rung_operand *q = &args->in[0], *k = &args->in[1];
  attending a = {.args = args};
  for (a.batch = 0; a.batch < q->extent[0]; a.batch++) {
    for (a.head = 0; a.head < q->extent[1]; a.head++) {
      a.kv_head = a.head * k->extent[1] / q->extent[1];
      for (a.query = 0; a.query < q->extent[2]; a.query++) attend(&a);
    }
  }
  return RUNG_OK;
}

/* ---- decomposition */

/* Places of queries [queries, 1] and of keys [1, keys] on one scale: i + keys and j + queries. */
static void places(rung_graph *g, rung_dim queries, rung_dim keys, rung_value *out_query, rung_value *out_key) {
  const rung_dim one = rung_one(g->dims);
  const rung_iota_attrs attrs = {
      .shape = {1, {rung_dims_add(g->dims, queries, keys)}}, .axis = 0, .type = RUNG_TYPE_I64};
  const rung_value numbers = rung_graph_op(g, &rung_op_iota, NULL, 0, &attrs);
  *out_query =
      rung_build_reshape(g, rung_build_slice(g, numbers, 0, keys, queries), 2, (const rung_dim[]){queries, one});
  *out_key = rung_build_reshape(g, rung_build_slice(g, numbers, 0, queries, keys), 2, (const rung_dim[]){one, keys});
}

/* What attributes and mask let a query see, as bool that broadcasts to the scores; null: everything. */
static rung_value visible(rung_graph *g, const rung_attention_attrs *attrs, const rung_value_type *scores,
                          rung_value mask) {
  rung_value seen = rung_build_null(), query, key;
  if (!rung_value_is_null(mask)) {
    const bool numbers = rung_build_type(g, mask)->type != RUNG_TYPE_BOOL;
    if (!numbers || !attrs->added) seen = mask;
    if (numbers && !attrs->added) {
      const rung_value added = rung_build_cast(g, mask, RUNG_TYPE_F32);
      seen = rung_build_not(g, rung_build_less_equal(g, added, rung_build_scalar(g, RUNG_TYPE_F32, -(double)FLT_MAX)));
    }
  }
  if (!attrs->causal && !attrs->window) return seen;
  places(g, scores->extent[2], scores->extent[3], &query, &key);
  rung_value near = rung_build_null();
  const rung_value distance = rung_build_sub(g, query, key);
  if (attrs->causal) near = rung_build_greater_equal(g, distance, rung_build_scalar(g, RUNG_TYPE_I64, 0));
  if (attrs->window) {
    const rung_value apart = rung_build_abs(g, distance);
    const rung_value inside = rung_build_less(g, apart, rung_build_scalar(g, RUNG_TYPE_I64, (double)attrs->window));
    near = attrs->causal ? rung_build_and(g, near, inside) : inside;
  }
  return rung_value_is_null(seen) ? near : rung_build_and(g, seen, near);
}

/* In double where the width of a head is open too, so that the number is the one that a known width gives. */
static rung_value scale_of(rung_graph *g, const rung_attention_attrs *attrs, rung_dim width, rung_type type) {
  int64_t known;
  if (attrs->scale > 0) return rung_build_scalar(g, type, attrs->scale);
  if (rung_dims_is_constant(g->dims, width, &known)) return rung_build_scalar(g, type, 1 / sqrt((double)known));
  const rung_value root = rung_build_sqrt(g, rung_build_extent(g, width, RUNG_TYPE_F64));
  return rung_build_cast(g, rung_build_div(g, rung_build_scalar(g, RUNG_TYPE_F64, 1), root), type);
}

static rung_value scores_of(rung_graph *g, const rung_attention_attrs *attrs, rung_value q, rung_value k,
                            rung_type type) {
  const rung_value_type qt = *rung_build_type(g, q), kt = *rung_build_type(g, k);
  /* Queries of the heads that share keys stand one below the other. */
  const rung_dim group = rung_dims_div(g->dims, qt.extent[1], kt.extent[1]);
  const rung_dim stacked[] = {qt.extent[0], kt.extent[1], rung_dims_mul(g->dims, group, qt.extent[2]), qt.extent[3]};
  rung_value s = rung_build_matmul(g, rung_build_reshape(g, q, 4, stacked), k, true, type);
  s = rung_build_reshape(g, s, 4, (const rung_dim[]){qt.extent[0], qt.extent[1], qt.extent[2], kt.extent[2]});
  s = rung_build_mul(g, s, scale_of(g, attrs, qt.extent[3], type));
  if (!(attrs->soft_cap > 0)) return s;
  const rung_value cap = rung_build_scalar(g, type, attrs->soft_cap);
  return rung_build_mul(g, cap, rung_build_tanh(g, rung_build_div(g, s, cap)));
}

static rung_value weighted(rung_graph *g, rung_value weight, rung_value v, const rung_value_type *q, rung_type type) {
  const rung_value_type vt = *rung_build_type(g, v);
  const rung_dim queries = rung_dims_mul(g->dims, rung_dims_div(g->dims, q->extent[1], vt.extent[1]), q->extent[2]);
  const rung_dim stacked[] = {q->extent[0], vt.extent[1], queries, vt.extent[2]};
  const rung_value y = rung_build_matmul(g, rung_build_reshape(g, weight, 4, stacked), v, false, type);
  return rung_build_reshape(g, y, 4, (const rung_dim[]){q->extent[0], q->extent[1], q->extent[2], vt.extent[3]});
}

/* Softmax spelled out, so that a row that sees no key has sum 0 and gives zeros. Unlike the op itself it lets a NaN or
 * an infinity in the value of a masked key through: 0 times it is NaN. */
static void decompose(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_attention_attrs *attrs = node->attrs;
  const rung_value_type qt = *rung_build_type(g, in[0]);
  const rung_type type = qt.type == RUNG_TYPE_F64 ? RUNG_TYPE_F64 : RUNG_TYPE_F32;
  const rung_value mask = node->n_in == 4 ? in[3] : rung_build_null();
  const rung_value zero = rung_build_scalar(g, type, 0), one = rung_build_scalar(g, type, 1);
  const int64_t last[] = {3};
  rung_value s = scores_of(g, attrs, in[0], in[1], type);
  const rung_value_type st = *rung_build_type(g, s);
  const rung_value seen = visible(g, attrs, &st, mask);
  if (!rung_value_is_null(mask) && rung_build_type(g, mask)->type != RUNG_TYPE_BOOL)
    s = rung_build_add(g, s, rung_build_cast(g, mask, type));
  if (rung_value_is_null(seen) && attrs->added) {
    const rung_axis_attrs axis = {3};
    out[0] =
        rung_build_cast(g, weighted(g, rung_graph_op(g, &rung_op_softmax, &s, 1, &axis), in[2], &qt, type), qt.type);
    return;
  }
  if (!rung_value_is_null(seen)) s = rung_build_where(g, seen, s, rung_build_scalar(g, type, -(double)INFINITY));
  const rung_value largest = rung_build_reduce(g, &rung_op_reduce_max, s, last, 1, true);
  rung_value weight = rung_build_exp(g, rung_build_sub(g, s, largest));
  if (!rung_value_is_null(seen)) weight = rung_build_where(g, seen, weight, zero);
  rung_value total = rung_build_reduce(g, &rung_op_reduce_sum, weight, last, 1, true);
  total = rung_build_where(g, rung_build_equal(g, total, zero), one, total);
  const rung_value y = weighted(g, weight, in[2], &qt, type);
  out[0] = rung_build_cast(g, rung_build_div(g, y, total), qt.type);
}

static const rung_test_case cases[] = {
    {"f32[2,3,5,16] f32[2,3,7,16] f32[2,3,7,16]", ""},
    {"f32[1,6,5,16] f32[1,2,9,16] f32[1,2,9,24]", "causal=true"},
    {"f32[1,2,9,8] f32[1,1,9,8] f32[1,1,9,8]", "causal=true, window=3, soft_cap=2.5"},
    {"f32[1,2,9,8] f32[1,1,9,8] f32[1,1,9,8]", "window=2, scale=0.5"},
    {"f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,8] bool[4,6]{0,1}", ""},
    {"f32[2,2,4,8] f32[2,2,6,8] f32[2,2,6,8] f32[2,1,4,6]", "causal=true"},
    {"f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,8] bool[1,6]{0,0}", ""},
    {"f32[1,2,5,8] f32[1,2,3,8] f32[1,2,3,8]", "causal=true"},
    {"f32[2,4,70,20] f32[2,2,150,20] f32[2,2,150,36] f32[2,1,1,150]", "added=true, scale=0.2"},
    {"f32[1,3,130,16] f32[1,3,130,16] f32[1,3,130,16] f32[3,130,130]", "causal=true, window=70, soft_cap=3"},
    {"f32[1,2,0,8] f32[1,2,3,8] f32[1,2,3,8]", ""},
    {"f32[1,2,3,8] f32[1,2,0,8] f32[1,2,0,8]", ""},
    {"f16[1,2,5,32] f16[1,1,8,32] f16[1,1,8,32]", "causal=true"},
    {0}};

/* Scores and weights round to f32; some ten roundings of terms that are all below max|v|. */
const rung_op rung_op_attention = {
    .name = "attention",
    .doc = "softmax attention of tensors; rows that see no key give zeros",
    .operands = (const char *const[]){"q", "k", "v", "mask", NULL},
    .in_lo = 3,
    .in_hi = 4,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_attention_attrs),
    .roles = (const char *const[]){"rows", "keys", "heads", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "differentiate its decomposition",
    .decompose = decompose,
    .test_lo = -2,
    .test_hi = 2,
    .tests = cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-6},
};
