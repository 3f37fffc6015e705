/* SPDX-License-Identifier: MIT
 * grouped_matmul: one product with several weights that lie in one form; a result per weight. */
#include "ops/build.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {
    {.name = "sizes",
     .kind = RUNG_ATTR_I64S,
     .offset = offsetof(rung_grouped_matmul_attrs, sizes),
     .doc = "rows of b that each result takes"},
    {.name = "interleave",
     .kind = RUNG_ATTR_I64,
     .offset = offsetof(rung_grouped_matmul_attrs, interleave),
     .text_default = "0",
     .doc = "0: the members' rows one after another; p > 0: panels of p rows in turn, all sizes equal"},
    {.name = "type",
     .kind = RUNG_ATTR_TYPE,
     .offset = offsetof(rung_grouped_matmul_attrs, type),
     .text_default = "f32",
     .doc = "of the results"},
    {0}};

static uint32_t result_count(const void *attrs, uint32_t n_in, uint32_t bodies, rung_graph *const *body) {
  (void)n_in, (void)bodies, (void)body;
  return (uint32_t)((const rung_grouped_matmul_attrs *)attrs)->sizes.count;
}

static rung_status check_sizes(rung_infer *infer, const rung_grouped_matmul_attrs *attrs) {
  const rung_i64_list *sizes = &attrs->sizes;
  int64_t sum = 0;
  if (sizes->count < 1) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "sizes is empty");
  if (attrs->interleave < 0) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "interleave is negative");
  for (int i = 0; i < sizes->count; i++) {
    if (sizes->value[i] < 0 || rung_add_overflows(sum, sizes->value[i], &sum)) {
      return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "sizes[%d] is %lld", i, (long long)sizes->value[i]);
    }
    if (attrs->interleave && (sizes->value[i] != sizes->value[0] || sizes->value[i] % attrs->interleave)) {
      return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "interleaved sizes must be equal and multiples of %lld",
                               (long long)attrs->interleave);
    }
  }
  return rung_infer_extent(infer, 1, 0, rung_dims_constant(infer->dims, sum));
}

static rung_status infer(rung_infer *infer) {
  const rung_grouped_matmul_attrs *attrs = infer->attrs;
  const rung_value_type *a = &infer->in[0], *b = &infer->in[1];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT | RUNG_TAKES_BLOCK));
  RUNG_TRY(rung_infer_weight_class(infer, 1, RUNG_TAKES_NUMBER | RUNG_TAKES_BLOCK));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 2));
  RUNG_TRY(rung_infer_rank(infer, 1, 2));
  const bool block = rung_type_takes(b->type) == RUNG_TAKES_BLOCK && b->type != RUNG_TYPE_A8;
  const bool fits = a->type == RUNG_TYPE_A8 ? block || b->type == RUNG_TYPE_I8
                                            : rung_type_is_float(a->type) && (block || rung_type_is_float(b->type));
  if (!fits || !rung_type_is_float(attrs->type)) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "no product of these types in %s", rung_type_name(attrs->type));
  }
  RUNG_TRY(rung_infer_agree(infer, a->extent[a->rank - 1], b->extent[1], "K of a and K of b"));
  RUNG_TRY(check_sizes(infer, attrs));
  rung_dim extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < a->rank; axis++) extent[axis] = a->extent[axis];
  for (uint32_t r = 0; r < infer->n_out; r++) {
    extent[a->rank - 1] = rung_dims_constant(infer->dims, attrs->sizes.value[r]);
    rung_infer_result(infer, r, attrs->type, a->rank, extent);
  }
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_product(dims, in[0].extent, 0, in[0].rank - 1);
  out_role[1] = in[1].extent[0];
  out_role[2] = in[1].extent[1];
}

/* The row of b that column n of a member multiplies. */
static int64_t row_of(const rung_grouped_matmul_attrs *attrs, int64_t member, int64_t n) {
  const int64_t p = attrs->interleave;
  if (p) return (n / p * attrs->sizes.count + member) * p + n % p;
  for (int64_t i = 0; i < member; i++) n += attrs->sizes.value[i];
  return n;
}

static rung_status reference(const rung_args *args) {
  const rung_grouped_matmul_attrs *attrs = args->attrs;
  const rung_operand *a = &args->in[0], *b = &args->in[1];
  for (uint32_t member = 0; member < args->n_out; member++) {
    const rung_operand *y = &args->out[member];
    rung_walk w;
    for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
      int64_t at[RUNG_MAX_RANK];
      for (int axis = 0; axis < y->rank; axis++) at[axis] = w.index[axis];
      at[y->rank - 1] = 0;
      const rung_span row = {a, rung_element_offset(a, at), rung_axis_step(a, a->rank - 1)};
      const int64_t n = row_of(attrs, member, w.index[y->rank - 1]);
      const rung_span column = {b, n * rung_axis_step(b, 0), rung_axis_step(b, 1)};
      rung_store_f64(y, w.offset[0], rung_dot_f64(row, column, b->extent[1]));
    }
  }
  return RUNG_OK;
}

/* One plain product whose columns are taken apart: each column is a sum of its own, so nothing changes but its place.
 */
static void decompose(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  const rung_grouped_matmul_attrs *attrs = node->attrs;
  const int64_t members = attrs->sizes.count, p = attrs->interleave;
  const rung_value product = rung_build_matmul(g, in[0], in[1], true, attrs->type);
  const rung_value_type type = *rung_build_type(g, product);
  const int last = type.rank - 1;
  rung_dim extent[RUNG_MAX_RANK];
  for (int axis = 0; axis < last; axis++) extent[axis] = type.extent[axis];
  int64_t first = 0;
  for (int64_t member = 0; member < members; member++) {
    const int64_t size = attrs->sizes.value[member];
    const rung_dim columns = rung_dims_constant(g->dims, size);
    if (p == 0) {
      out[member] = rung_build_slice(g, product, last, rung_dims_constant(g->dims, first), columns);
      first += size;
      continue;
    }
    const rung_dim rows = rung_dims_product(g->dims, type.extent, 0, last);
    const rung_dim panels[] = {rows, rung_dims_constant(g->dims, size / p), rung_dims_constant(g->dims, members),
                               rung_dims_constant(g->dims, p)};
    const rung_value taken = rung_build_slice(g, rung_build_reshape(g, product, 4, panels), 2,
                                              rung_dims_constant(g->dims, member), rung_one(g->dims));
    extent[last] = columns;
    out[member] = rung_build_reshape(g, taken, type.rank, extent);
  }
}

static const rung_test_case cases[] = {{"f32[5,64] f32[56,64]", "sizes=[24,16,16]"},
                                       {"f32[2,3,32] f32[32,32]", "sizes=[16,16], interleave=4"},
                                       {"f32[1,64] q4_1[96,64]", "sizes=[64,16,16]"},
                                       {"a8[7,64] q4_1[96,64]", "sizes=[64,16,16]"},
                                       {"a8[9,256] q4_k[64,256]", "sizes=[32,32], interleave=16"},
                                       {"a8[5,64] q8_0[64,64]", "sizes=[32,32], interleave=16"},
                                       {"f32[0,64] f32[8,64]", "sizes=[4,4]"},
                                       {0}};

const rung_op rung_op_grouped_matmul = {
    .name = "grouped_matmul",
    .doc = "matrix products of one a with several weights that lie in one transposed b",
    .operands = (const char *const[]){"a", "b", NULL},
    .results_named = (const char *const[]){"y...", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .flags = RUNG_OP_COLUMNS,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_grouped_matmul_attrs),
    .roles = (const char *const[]){"M", "N", "K", NULL},
    .result_count = result_count,
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "made by passes; differentiate before them",
    .decompose = decompose,
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
    .tolerance = {.relative = 2e-6, .absolute = 1e-35}, /* as matmul */
};
