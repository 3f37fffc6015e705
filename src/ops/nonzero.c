/* SPDX-License-Identifier: MIT
 * Sizes found at run time: bind_symbol gives a symbol its value; count_nonzero and nonzero are the first that need it.
 */
#include <string.h>

#include "ops/attrs.h"
#include "ops/bodies.h"
#include "ops/structured.h"

/* ---- bind_symbol(value) */

static const rung_attr bind_attributes[] = {{.name = "symbol",
                                             .kind = RUNG_ATTR_TEXT,
                                             .offset = offsetof(rung_bind_symbol_attrs, symbol),
                                             .doc = "name of the symbol"},
                                            {.name = "bound",
                                             .kind = RUNG_ATTR_DIM,
                                             .offset = offsetof(rung_bind_symbol_attrs, bound),
                                             .text_default = "none",
                                             .doc = "the value is at most this, over earlier symbols"},
                                            {0}};

/* The symbol of that name, made here if there is none yet. */
static rung_status infer_bind(rung_infer *infer) {
  const rung_bind_symbol_attrs *attrs = infer->attrs;
  RUNG_TRY(rung_infer_scalar(infer, 0, RUNG_TYPE_I64));
  const int there = rung_dims_find_symbol(infer->dims, attrs->symbol, strlen(attrs->symbol));
  rung_dim symbol = there >= 0 ? infer->dims->symbol[there].dim : (rung_dim){0};
  if (there < 0) symbol = rung_dims_make_symbol(infer->dims, attrs->symbol, attrs->bound);
  if (!symbol.id) return rung_infer_refuse(infer, infer->dims->failure, "%s", infer->dims->reason);
  if (there >= 0 && !rung_dim_same(infer->dims->symbol[there].bound, attrs->bound)) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "symbol %s has another bound", attrs->symbol);
  }
  RUNG_TRY(rung_infer_bind(infer, symbol));
  rung_infer_result(infer, 0, RUNG_TYPE_I64, 0, NULL);
  return RUNG_OK;
}

static rung_status bind_reference(const rung_args *args) {
  rung_store_i64(&args->out[0], 0, rung_load_i64(&args->in[0], 0));
  return RUNG_OK;
}
static void bind_sizes(const rung_args *args, int64_t *out_symbol) { out_symbol[0] = rung_load_i64(&args->in[0], 0); }

const rung_op rung_op_bind_symbol = {
    .name = "bind_symbol",
    .doc = "gives a symbol its value; the result is the value",
    .operands = (const char *const[]){"value", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .flags = RUNG_OP_SIZES,
    .attrs = bind_attributes,
    .attrs_bytes = sizeof(rung_bind_symbol_attrs),
    .infer = infer_bind,
    .role_dims = rung_role_elements,
    .reference = bind_reference,
    .no_gradient = "integers",
    .sizes = bind_sizes,
};

/* ---- count_nonzero(x). NaN is not 0. */

static rung_status infer_count(rung_infer *infer) {
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  rung_infer_result(infer, 0, RUNG_TYPE_I64, 0, NULL);
  return RUNG_OK;
}

static void input_elements(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                           const void *attrs, rung_dim *out_role) {
  (void)n_in, (void)out, (void)attrs;
  out_role[0] = rung_dims_product(dims, in[0].extent, 0, in[0].rank);
}

static bool is_nonzero(const rung_operand *x, int64_t offset) {
  return rung_operand_is_integer(x) ? rung_load_i64(x, offset) != 0 : rung_load_f64(x, offset) != 0;
}

static rung_status count_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0];
  int64_t count = 0;
  rung_walk w;
  for (rung_walk_begin(&w, x->rank, x->extent, 1, &x); w.live; rung_walk_next(&w)) count += is_nonzero(x, w.offset[0]);
  rung_store_i64(&args->out[0], 0, count);
  return RUNG_OK;
}

static const rung_test_case count_cases[] = {
    {"i32[5,67]{-1,1}", ""}, {"bool[40]{0,1}", ""}, {"f32[3,0]", ""}, {"u8[]{0,1}", ""}, {0}};

const rung_op rung_op_count_nonzero = {
    .name = "count_nonzero",
    .doc = "how many elements are not 0",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .infer = infer_count,
    .role_dims = input_elements,
    .reference = count_reference,
    .no_gradient = "integers",
    .test_lo = -1,
    .test_hi = 1,
    .tests = count_cases,
};

/* ---- nonzero(x) */

static const rung_attr nonzero_attributes[] = {{.name = "count",
                                                .kind = RUNG_ATTR_DIM,
                                                .offset = offsetof(rung_count_attrs, count),
                                                .doc = "how many elements are not 0"},
                                               {0}};

static rung_status infer_nonzero(rung_infer *infer) {
  const rung_count_attrs *attrs = infer->attrs;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 1));
  if (!attrs->count.id) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "count must be given");
  const rung_dim extent[] = {rung_dims_constant(infer->dims, infer->in[0].rank), attrs->count};
  rung_infer_result(infer, 0, RUNG_TYPE_I64, 2, extent);
  return RUNG_OK;
}

static rung_status nonzero_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  int64_t found = 0;
  rung_walk w;
  for (rung_walk_begin(&w, x->rank, x->extent, 1, &x); w.live; rung_walk_next(&w)) {
    if (!is_nonzero(x, w.offset[0])) continue;
    for (int axis = 0; axis < x->rank && found < y->extent[1]; axis++) {
      rung_store_i64(y, axis * y->stride[0] + found * y->stride[1], w.index[axis]);
    }
    found++;
  }
  if (found == y->extent[1]) return RUNG_OK;
  return rung_fail(args->error, RUNG_OUT_OF_RANGE, "nonzero: %lld elements are not 0, but count is %lld",
                   (long long)found, (long long)y->extent[1]);
}

static const rung_test_case nonzero_cases[] = {
    {"i32[5,67]{1,9}", "count=335"}, {"f32[3,0,2]", "count=0"}, {"i64[4]{0,0}", "count=0"}, {0}};

const rung_op rung_op_nonzero = {
    .name = "nonzero",
    .doc = "indices of the elements that are not 0, one column each, in row-major order",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .attrs = nonzero_attributes,
    .attrs_bytes = sizeof(rung_count_attrs),
    .infer = infer_nonzero,
    .role_dims = input_elements,
    .reference = nonzero_reference,
    .no_gradient = "integers",
    .test_lo = 1,
    .test_hi = 2,
    .tests = nonzero_cases,
};
