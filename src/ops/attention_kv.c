/* SPDX-License-Identifier: MIT
 * attention_kv: causal attention of ragged rows over a kv state, read after rounding, the current rows too.
 *
 * The meaning is plain softmax attention in double. Kernels follow the order of segments and groups of the design, so
 * that their bits depend on the slots alone; their values stay within the tolerance of this. */
#include <math.h>

#include "ops/attrs.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_attention_kv_attrs, field)
static const rung_attr attributes[] = {
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "multiplies scores; 0: 1 / sqrt(key_dim)"},
    {FIELD(soft_cap), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "c > 0: scores become c tanh(score / c)"},
    {FIELD(window), .kind = RUNG_ATTR_I64, .text_default = "0",
     .doc = "positions that a row sees, itself included; 0: all"},
    {FIELD(narrow), .kind = RUNG_ATTR_BOOL, .text_default = "false",
     .doc = "q, keys, values and weights may be rounded to bf16 before they are multiplied"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_attention_kv_attrs *attrs = infer->attrs;
  const rung_value_type *q = &infer->in[0], *state = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 0, 3));
  if (state->kind != RUNG_VALUE_STATE_KV) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "state must be a key/value state");
  }
  RUNG_TRY(rung_infer_extent(infer, 0, 2, state->extent[1]));
  RUNG_TRY(rung_infer_heads(infer, q->extent[1], state->extent[0]));
  RUNG_TRY(rung_infer_ragged(infer, 2));
  RUNG_TRY(rung_infer_scores(infer, attrs->scale, attrs->soft_cap, attrs->window));
  rung_infer_result(infer, 0, q->type, 3, (const rung_dim[]){q->extent[0], q->extent[1], state->extent[2]});
  return RUNG_OK;
}

/* How many keys there are is known to the state alone: the null dimension, which planners take as its capacity. */
static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[0].extent[0];
  out_role[1] = (rung_dim){0};
  out_role[2] = in[0].extent[1];
}

/* One row and head: q against the keys of positions [first, last] of a slot. */
typedef struct attending {
  const rung_args *args;
  const rung_kv_view *kv;
  int32_t slot;
  int64_t first, last, row, head, kv_head;
  float position[RUNG_REFERENCE_KV_ROW];
} attending;

static double score_at(attending *query, int64_t p) {
  const rung_attention_kv_attrs *attrs = query->args->attrs;
  const rung_operand *q = &query->args->in[0];
  const int64_t dim = query->kv->key_dim;
  query->kv->read_row(query->kv, query->slot, p, query->position);
  double score = 0;
  for (int64_t d = 0; d < dim; d++) {
    const double x = rung_load_f64(q, rung_element_offset(q, (const int64_t[]){query->row, query->head, d}));
    score += x * (double)query->position[query->kv_head * dim + d];
  }
  score *= attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)dim);
  return attrs->soft_cap > 0 ? attrs->soft_cap * tanh(score / attrs->soft_cap) : score;
}

static void attend(attending *query) {
  const rung_kv_view *kv = query->kv;
  const rung_operand *y = &query->args->out[0];
  double largest = -(double)INFINITY, total = 0, sum[RUNG_REFERENCE_KV_ROW];
  for (int64_t d = 0; d < kv->value_dim; d++) sum[d] = 0;
  for (int64_t p = query->first; p <= query->last; p++) largest = fmax(largest, score_at(query, p));
  for (int64_t p = query->first; p <= query->last; p++) {
    const double weight = exp(score_at(query, p) - largest);
    const float *value = query->position + kv->kv_heads * kv->key_dim + query->kv_head * kv->value_dim;
    total += weight;
    for (int64_t d = 0; d < kv->value_dim; d++) sum[d] += weight * (double)value[d];
  }
  for (int64_t d = 0; d < kv->value_dim; d++) {
    const int64_t at = rung_element_offset(y, (const int64_t[]){query->row, query->head, d});
    rung_store_f64(y, at, query->first > query->last ? 0 : sum[d] / total);
  }
}

static rung_status reference(const rung_args *args) {
  const rung_attention_kv_attrs *attrs = args->attrs;
  const rung_operand *q = &args->in[0], *ragged = &args->in[2];
  const rung_kv_view *kv = args->in[1].kv;
  RUNG_TRY(rung_check_sequences(args, "attention_kv", ragged, q->extent[0], kv));
  if (kv->window && (attrs->window == 0 || attrs->window > kv->window)) {
    return rung_fail(args->error, RUNG_INVALID_ARGUMENT,
                     "attention_kv: window %lld of a state that keeps %lld positions", (long long)attrs->window,
                     (long long)kv->window);
  }
  attending query = {.args = args, .kv = kv};
  for (int64_t s = 0; s < ragged[1].extent[0]; s++) {
    const rung_sequence sequence = rung_sequence_at(&ragged[0], &ragged[1], &ragged[2], s);
    query.slot = (int32_t)sequence.slot;
    for (query.row = sequence.first; query.row < sequence.end; query.row++) {
      query.last = sequence.past + query.row - sequence.first;
      query.first = attrs->window && query.last >= attrs->window ? query.last - attrs->window + 1 : 0;
      for (query.head = 0; query.head < q->extent[1]; query.head++) {
        query.kv_head = query.head * kv->kv_heads / q->extent[1];
        attend(&query);
      }
    }
  }
  return RUNG_OK;
}

/* The weights are rounded to f32 and so are partial sums: some ten roundings of terms that are all below max|v|. */
const rung_op rung_op_attention_kv = {
    .name = "attention_kv",
    .doc = "causal softmax attention of ragged rows over the keys and values that a state holds for their sequence",
    .operands = (const char *const[]){"q", "state", "offsets", "slot", "past", NULL},
    .in_lo = 5,
    .in_hi = 5,
    .results = 1,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_attention_kv_attrs),
    .inner_attrs = 1,
    .roles = (const char *const[]){"rows", "keys", "heads", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "reads a state; train through attention",
    .test_lo = -2,
    .test_hi = 2,
    .tolerance = {.relative = 2e-6, .absolute = 1e-30},
};
