/* SPDX-License-Identifier: MIT
 * unique: indices along an axis that differ from all before them, as ONNX Unique. How many there will be is not known:
 * results have room for all of them, and `count` says how much is filled; the rest is 0. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/structured.h"

static const rung_attr attributes[] = {{.name = "axis",
                                        .kind = RUNG_ATTR_I64,
                                        .offset = offsetof(rung_unique_attrs, axis),
                                        .text_default = "0",
                                        .doc = "whose indices are compared"},
                                       {.name = "sorted",
                                        .kind = RUNG_ATTR_BOOL,
                                        .offset = offsetof(rung_unique_attrs, sorted),
                                        .text_default = "true",
                                        .doc = "in rising order; else as they come"},
                                       {0}};

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  int axis;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_axis(infer, ((const rung_unique_attrs *)infer->attrs)->axis, x->rank, &axis));
  infer->out[0] = rung_value_type_like(x, x->type);
  for (uint32_t r = 1; r < 4; r++) rung_infer_result(infer, r, RUNG_TYPE_I64, 1, &x->extent[axis]);
  rung_infer_result(infer, 4, RUNG_TYPE_I64, 0, NULL);
  return RUNG_OK;
}

typedef struct slices {
  const rung_operand *x;
  int axis;
} slices;

static int compare_elements(const rung_operand *x, int64_t a, int64_t b) {
  if (rung_operand_is_integer(x)) {
    const int64_t u = rung_load_i64(x, a), v = rung_load_i64(x, b);
    if (rung_type_is_unsigned((rung_type)x->type)) return ((uint64_t)u > (uint64_t)v) - ((uint64_t)u < (uint64_t)v);
    return (u > v) - (u < v);
  }
  const double u = rung_load_f64(x, a), v = rung_load_f64(x, b);
  if (u != u || v != v) return (u != u) - (v != v); /* NaN is one number, above all others */
  return (u > v) - (u < v);
}

/* The slices at two indices, element by element. */
static int compare(const slices *s, int64_t a, int64_t b) {
  const int64_t step = s->x->stride[s->axis];
  rung_lanes l;
  for (rung_lanes_begin(&l, s->axis, s->x, NULL); l.walk.live; rung_lanes_next(&l)) {
    const int order = compare_elements(s->x, l.walk.offset[0] + a * step, l.walk.offset[0] + b * step);
    if (order) return order;
  }
  return 0;
}

static int64_t get(const rung_operand *o, int64_t i) { return rung_load_i64(o, i * o->stride[0]); }
static void set(const rung_operand *o, int64_t i, int64_t value) { rung_store_i64(o, i * o->stride[0], value); }

/* In the order in which they come; gives how many. */
static int64_t find(const slices *s, int64_t n, const rung_operand *first, const rung_operand *inverse,
                    const rung_operand *counts) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t k = 0;
    while (k < found && compare(s, get(first, k), i) != 0) k++;
    if (k == found) {
      set(first, found, i);
      set(counts, found++, 0);
    }
    set(inverse, i, k);
    set(counts, k, get(counts, k) + 1);
  }
  return found;
}

static void sort(const slices *s, int64_t n, int64_t found, const rung_operand *first, const rung_operand *inverse,
                 const rung_operand *counts) {
  for (int64_t i = 0; i < n; i++) {
    int64_t below = 0;
    for (int64_t k = 0; k < found; k++) below += compare(s, get(first, k), i) < 0;
    set(inverse, i, below);
  }
  for (int64_t i = 0; i < found; i++) {
    int64_t least = i;
    for (int64_t k = i + 1; k < found; k++)
      if (compare(s, get(first, k), get(first, least)) < 0) least = k;
    const int64_t index = get(first, least), count = get(counts, least);
    set(first, least, get(first, i));
    set(counts, least, get(counts, i));
    set(first, i, index);
    set(counts, i, count);
  }
}

static rung_status reference(const rung_args *args) {
  const rung_unique_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const slices s = {x, rung_axis_of(attrs->axis, x->rank)};
  const int64_t n = x->extent[s.axis];
  const int64_t found = find(&s, n, &args->out[1], &args->out[2], &args->out[3]);
  if (attrs->sorted) sort(&s, n, found, &args->out[1], &args->out[2], &args->out[3]);
  for (int64_t i = found; i < n; i++) set(&args->out[1], i, 0), set(&args->out[3], i, 0);
  rung_store_i64(&args->out[4], 0, found);
  const int64_t bytes = rung_type_get((rung_type)x->type)->bytes;
  rung_lanes l;
  for (rung_lanes_begin(&l, s.axis, x, y); l.walk.live; rung_lanes_next(&l)) {
    for (int64_t i = 0; i < n; i++) {
      uint8_t *to = y->base + (l.walk.offset[1] + i * l.stride[1]) * bytes;
      if (i >= found) {
        memset(to, 0, (size_t)bytes);
      } else {
        memcpy(to, x->base + (l.walk.offset[0] + get(&args->out[1], i) * l.stride[0]) * bytes, (size_t)bytes);
      }
    }
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"i32[40]{0,9}", ""},
                                       {"i64[17]{-3,3}", "sorted=false"},
                                       {"u8[4,9,2]{0,1}", "axis=1"},
                                       {"f32[33]", ""},
                                       {"bool[9]", ""},
                                       {"i32[0,3]", ""},
                                       {"i32[3,0]", ""},
                                       {0}};

const rung_op rung_op_unique = {
    .name = "unique",
    .doc = "indices along an axis that differ, where each is first, what each index became, how often, how many",
    .operands = (const char *const[]){"x", NULL},
    .results_named = (const char *const[]){"y", "first", "inverse", "counts", "count", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 5,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_unique_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "indices",
    .test_lo = -4,
    .test_hi = 4,
    .tests = cases,
};
