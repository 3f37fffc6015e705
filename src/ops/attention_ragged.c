/* SPDX-License-Identifier: MIT
 * attention_ragged: softmax attention of ragged rows among themselves: every row sees rows of its own sequence. What
 * encoders use, and training; nothing is padded and nothing outlives the run.
 *
 * The meaning is plain softmax attention in double. Kernels follow the order of segments and groups of the design, so
 * that their bits depend on a row's own sequence alone; their values stay within the tolerance of this. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_attention_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "multiplies scores; 0: 1 / sqrt(dim)"},
    {FIELD(soft_cap), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "c > 0: scores become c tanh(score / c)"},
    {FIELD(window), .kind = RUNG_ATTR_I64, .text_default = "0",
     .doc = "w > 0: rows of the sequence at most w - 1 places away; 0: all"},
    {FIELD(causal), .kind = RUNG_ATTR_BOOL, .text_default = "false", .doc = "no row sees a later one"},
    {FIELD(narrow), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "q, k, v and weights may be rounded to bf16 before they are multiplied"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_attention_attrs *attrs = infer->attrs;
  const rung_value_type *q = &infer->in[0], *k = &infer->in[1], *v = &infer->in[2];
  for (uint32_t i = 0; i < 3; i++) {
    RUNG_TRY(rung_infer_class(infer, i, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
    RUNG_TRY(rung_infer_rank(infer, i, 3));
    RUNG_TRY(rung_infer_extent(infer, i, 0, q->extent[0]));
  }
  RUNG_TRY(rung_infer_extent(infer, 1, 2, q->extent[2]));
  RUNG_TRY(rung_infer_extent(infer, 2, 1, k->extent[1]));
  RUNG_TRY(rung_infer_index(infer, 3));
  RUNG_TRY(rung_infer_rank(infer, 3, 1));
  RUNG_TRY(rung_infer_heads(infer, q->extent[1], k->extent[1]));
  RUNG_TRY(rung_infer_scores(infer, attrs->scale, attrs->soft_cap, attrs->window));
  rung_infer_result(infer, 0, q->type, 3, (const rung_dim[]){q->extent[0], q->extent[1], v->extent[2]});
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[0].extent[0];
  out_role[1] = in[0].extent[1];
}

/* One row and head: q against the keys of rows [first, end). */
typedef struct attending {
  const rung_args *args;
  int64_t row, head, kv_head, first, end;
} attending;

static double score_of(const attending *a, int64_t key) {
  const rung_attention_attrs *attrs = a->args->attrs;
  const rung_operand *q = &a->args->in[0], *k = &a->args->in[1];
  const int64_t dim = q->extent[2];
  const rung_span row = {q, rung_element_offset(q, (const int64_t[]){a->row, a->head, 0}), rung_axis_step(q, 2)};
  const rung_span column = {k, rung_element_offset(k, (const int64_t[]){key, a->kv_head, 0}), rung_axis_step(k, 2)};
  const double score = rung_dot_f64(row, column, dim) * (attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)dim));
  return attrs->soft_cap > 0 ? attrs->soft_cap * tanh(score / attrs->soft_cap) : score;
}

static void attend(const attending *a) {
  enum { SPAN = 256 };
  const rung_operand *v = &a->args->in[2], *y = &a->args->out[0];
  const int64_t dim = v->extent[2];
  double largest = -(double)INFINITY;
  for (int64_t key = a->first; key < a->end; key++) largest = fmax(largest, score_of(a, key));
  for (int64_t from = 0; from < dim; from += SPAN) {
    const int64_t count = dim - from < SPAN ? dim - from : SPAN;
    double total = 0, sum[SPAN] = {0}, value[SPAN];
    for (int64_t key = a->first; key < a->end; key++) {
      const double weight = exp(score_of(a, key) - largest);
      rung_load_span(v, rung_element_offset(v, (const int64_t[]){key, a->kv_head, from}), rung_axis_step(v, 2), count,
                     value);
      for (int64_t d = 0; d < count; d++) sum[d] += weight * value[d];
      total += weight;
    }
    for (int64_t d = 0; d < count; d++)
      rung_store_f64(y, rung_element_offset(y, (const int64_t[]){a->row, a->head, from + d}), sum[d] / total);
  }
}

static rung_status reference(const rung_args *args) {
  const rung_attention_attrs *attrs = args->attrs;
  const rung_operand *q = &args->in[0], *k = &args->in[1], *offsets = &args->in[3];
  RUNG_TRY(rung_check_ragged(args, "attention_ragged", offsets, q->extent[0]));
  attending a = {.args = args};
  for (int64_t s = 0; s + 1 < offsets->extent[0]; s++) {
    const int64_t first = rung_vector_at(offsets, s), end = rung_vector_at(offsets, s + 1);
    for (a.row = first; a.row < end; a.row++) {
      const bool near = attrs->window && attrs->window < end - first;
      a.first = near && a.row - first >= attrs->window ? a.row - attrs->window + 1 : first;
      a.end = attrs->causal ? a.row + 1 : near && end - a.row > attrs->window ? a.row + attrs->window : end;
      for (a.head = 0; a.head < q->extent[1]; a.head++) {
        a.kv_head = a.head * k->extent[1] / q->extent[1];
        attend(&a);
      }
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[0,4,16] f32[0,2,16] f32[0,2,24] i32[1]{0,0}", ""},
    {"f16[0,2,8] f16[0,2,8] f16[0,2,8] i64[3]{0,0}", "causal=true, window=3, soft_cap=2.5, scale=0.5"},
    {0}};

/* Scores and weights round to f32; some ten roundings of terms that are all below max|v|. */
const rung_op rung_op_attention_ragged = {
    .name = "attention_ragged",
    .doc = "softmax attention of ragged rows: each sees rows of its own sequence, which offsets [n+1] delimit",
    .operands = (const char *const[]){"q", "k", "v", "offsets", NULL},
    .in_lo = 4,
    .in_hi = 4,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_attention_attrs),
    .roles = (const char *const[]){"rows", "heads", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "not yet: wants a product over ragged segments",
    .test_lo = -2,
    .test_hi = 2,
    .tests = cases,
    .tolerance = {.relative = 4e-6, .absolute = 1e-6},
};
