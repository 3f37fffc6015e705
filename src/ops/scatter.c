/* SPDX-License-Identifier: MIT
 * scatter_elements, scatter_nd: a copy of x with updates at indices, as in ONNX. Updates are taken in row-major order,
 * so what meets at one place has one result: the last of them, or their sum in that order. */
#include <math.h>

#include "ops/build.h"
#include "ops/structured.h"

static const char *const modes[] = {"set", "add", "mul", "min", "max", NULL};
static const char mode_doc[] = "what happens to the element: replaced, or combined with the update";

static double combine_f64(int32_t mode, double x, double u) {
  switch ((rung_scatter_mode)mode) {
    case RUNG_SCATTER_ADD:
      return x + u;
    case RUNG_SCATTER_MUL:
      return x * u;
    case RUNG_SCATTER_MIN:
      return isnan(x) || x < u ? x : u; /* NaN from either side stays */
    case RUNG_SCATTER_MAX:
      return isnan(x) || x > u ? x : u;
    case RUNG_SCATTER_SET:
      break;
  }
  return u;
}

/* Unsigned numbers of 64 bits compare as such. */
static int64_t combine_i64(int32_t mode, bool is_unsigned, int64_t x, int64_t u) {
  const bool less = is_unsigned ? (uint64_t)x < (uint64_t)u : x < u;
  switch ((rung_scatter_mode)mode) {
    case RUNG_SCATTER_ADD:
      return (int64_t)((uint64_t)x + (uint64_t)u);
    case RUNG_SCATTER_MUL:
      return (int64_t)((uint64_t)x * (uint64_t)u);
    case RUNG_SCATTER_MIN:
      return less ? x : u;
    case RUNG_SCATTER_MAX:
      return less ? u : x;
    case RUNG_SCATTER_SET:
      break;
  }
  return u;
}

/* y[to] joined with updates[from]. Each update rounds once to the result's type. */
static void update(int32_t mode, const rung_operand *y, int64_t to, const rung_operand *updates, int64_t from) {
  if (rung_operand_is_integer(y)) {
    const int64_t u = rung_load_i64(updates, from);
    rung_store_i64(y, to, combine_i64(mode, rung_type_is_unsigned((rung_type)y->type), rung_load_i64(y, to), u));
  } else {
    rung_store_f64(y, to, combine_f64(mode, rung_load_f64(y, to), rung_load_f64(updates, from)));
  }
}

/* bool takes no arithmetic. */
static rung_status infer_types(rung_infer *infer, int32_t mode) {
  RUNG_TRY(rung_infer_class(infer, 0, mode == RUNG_SCATTER_SET ? RUNG_TAKES_PLAIN : RUNG_TAKES_NUMBER));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_class(infer, 2, RUNG_TAKES_PLAIN));
  return rung_infer_same_type(infer, 2, 0);
}

/* min, max and mul would need to know which update won. */
static bool takes_gradient(rung_graph *g, const rung_node *node, rung_value x, int32_t mode) {
  if (!rung_type_is_float(rung_build_type(g, x)->type)) return false;
  if (mode == RUNG_SCATTER_SET || mode == RUNG_SCATTER_ADD) return true;
  rung_graph_fail(g, RUNG_UNSUPPORTED, "%s: no gradient with mode %s", node->op->name, modes[mode]);
  return false;
}

/* ---- scatter_elements(x, indices, updates) */

static const rung_attr elements_attributes[] = {{.name = "axis",
                                                 .kind = RUNG_ATTR_I64,
                                                 .offset = offsetof(rung_scatter_attrs, axis),
                                                 .text_default = "0",
                                                 .doc = "axis of x that the indices choose from"},
                                                {.name = "mode",
                                                 .kind = RUNG_ATTR_ENUM,
                                                 .offset = offsetof(rung_scatter_attrs, mode),
                                                 .text_default = "set",
                                                 .names = modes,
                                                 .doc = mode_doc},
                                                {0}};

static rung_status infer_elements(rung_infer *infer) {
  const rung_scatter_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  int axis;
  RUNG_TRY(infer_types(infer, attrs->mode));
  RUNG_TRY(rung_infer_axis(infer, attrs->axis, x->rank, &axis));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  RUNG_TRY(rung_infer_same_shape(infer, 2, 1));
  infer->out[0] = rung_value_type_like(x, x->type);
  return RUNG_OK;
}

static rung_status elements_reference(const rung_args *args) {
  const rung_scatter_attrs *attrs = args->attrs;
  const rung_operand *indices = &args->in[1], *updates = &args->in[2], *y = &args->out[0];
  const int axis = rung_axis_of(attrs->axis, y->rank);
  rung_copy_operand(&args->in[0], y);
  rung_walk w;
  for (rung_walk_begin(&w, indices->rank, indices->extent, 2, (const rung_operand *[]){indices, updates}); w.live;
       rung_walk_next(&w)) {
    int64_t at[RUNG_MAX_RANK];
    for (int i = 0; i < y->rank; i++) {
      const int64_t index = i == axis ? rung_load_i64(indices, w.offset[0]) : w.index[i];
      RUNG_TRY(rung_check_index(args, "scatter_elements", index, y->extent[i], &at[i]));
    }
    update(attrs->mode, y, rung_element_offset(y, at), updates, w.offset[1]);
  }
  return RUNG_OK;
}

/* set: what was replaced has no part in y; right where no two indices meet, as ONNX demands. */
static void elements_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                              const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_scatter_attrs *attrs = node->attrs;
  if (!takes_gradient(g, node, in[0], attrs->mode)) return;
  out_gx[0] = gy[0];
  if (attrs->mode == RUNG_SCATTER_SET) {
    const rung_value operands[] = {gy[0], in[1], rung_build_filled_like(g, in[2], 0)};
    out_gx[0] = rung_graph_op(g, &rung_op_scatter_elements, operands, 3, attrs);
  }
  const rung_gather_attrs read = {.axis = attrs->axis};
  out_gx[2] = rung_graph_op(g, &rung_op_gather_elements, (rung_value[]){gy[0], in[1]}, 2, &read);
}

static const rung_test_case elements_cases[] = {{"f32[5,7] i64[3,7]{-5,4} f32[3,7]", "mode=add"},
                                                {"f32[5,7] i32[5,1]{-7,6} f32[5,1]", "axis=1"},
                                                {"f32[3,1,7] i32[3,1,2]{0,6} f32[3,1,2]", "axis=-1, mode=max"},
                                                {"f32[6] i32[9]{0,5} f32[9]", "mode=min"},
                                                {"i32[6] i64[4]{0,5} i32[4]", "mode=mul"},
                                                {"f32[6] i64[0] f32[0]", ""},
                                                {0}};

/* Several updates of one element round one after another. */
const rung_op rung_op_scatter_elements = {
    .name = "scatter_elements",
    .doc = "x with single elements replaced by or combined with updates: the index replaces the position along an axis",
    .operands = (const char *const[]){"x", "indices", "updates", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .attrs = elements_attributes,
    .attrs_bytes = sizeof(rung_scatter_attrs),
    .infer = infer_elements,
    .role_dims = rung_role_elements,
    .reference = elements_reference,
    .gradient = elements_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = elements_cases,
    .tolerance = {.relative = 1e-6},
};

/* ---- scatter_nd(x, indices[.., depth], updates) */

static const rung_attr nd_attributes[] = {{.name = "mode",
                                           .kind = RUNG_ATTR_ENUM,
                                           .offset = offsetof(rung_scatter_nd_attrs, mode),
                                           .text_default = "set",
                                           .names = modes,
                                           .doc = mode_doc},
                                          {0}};

static rung_status infer_nd(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *indices = &infer->in[1];
  int64_t depth;
  RUNG_TRY(infer_types(infer, ((const rung_scatter_nd_attrs *)infer->attrs)->mode));
  RUNG_TRY(rung_infer_rank_at_least(infer, 1, 1));
  RUNG_TRY(rung_infer_constant(infer, indices->extent[indices->rank - 1], "the depth of indices", &depth));
  if (depth < 1 || depth > x->rank) {
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "tuples of %lld do not fit rank %d", (long long)depth,
                             x->rank);
  }
  const int outer = indices->rank - 1;
  RUNG_TRY(rung_infer_rank(infer, 2, outer + x->rank - (int)depth));
  for (int i = 0; i < outer; i++) RUNG_TRY(rung_infer_extent(infer, 2, i, indices->extent[i]));
  for (int i = (int)depth; i < x->rank; i++)
    RUNG_TRY(rung_infer_extent(infer, 2, outer + i - (int)depth, x->extent[i]));
  infer->out[0] = rung_value_type_like(x, x->type);
  return RUNG_OK;
}

static rung_status nd_reference(const rung_args *args) {
  const int32_t mode = ((const rung_scatter_nd_attrs *)args->attrs)->mode;
  const rung_operand *indices = &args->in[1], *updates = &args->in[2], *y = &args->out[0];
  const int outer = indices->rank - 1, depth = (int)indices->extent[outer];
  rung_copy_operand(&args->in[0], y);
  rung_walk w;
  for (rung_walk_begin(&w, updates->rank, updates->extent, 1, &updates); w.live; rung_walk_next(&w)) {
    int64_t at[RUNG_MAX_RANK], tuple[RUNG_MAX_RANK];
    for (int i = 0; i < outer; i++) tuple[i] = w.index[i];
    for (int i = depth; i < y->rank; i++) at[i] = w.index[outer + i - depth];
    for (int i = 0; i < depth; i++) {
      tuple[outer] = i;
      const int64_t index = rung_load_i64(indices, rung_element_offset(indices, tuple));
      RUNG_TRY(rung_check_index(args, "scatter_nd", index, y->extent[i], &at[i]));
    }
    update(mode, y, rung_element_offset(y, at), updates, w.offset[0]);
  }
  return RUNG_OK;
}

static void nd_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                        const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_scatter_nd_attrs *attrs = node->attrs;
  if (!takes_gradient(g, node, in[0], attrs->mode)) return;
  out_gx[0] = gy[0];
  if (attrs->mode == RUNG_SCATTER_SET) {
    const rung_value operands[] = {gy[0], in[1], rung_build_filled_like(g, in[2], 0)};
    out_gx[0] = rung_graph_op(g, &rung_op_scatter_nd, operands, 3, attrs);
  }
  out_gx[2] = rung_graph_op(g, &rung_op_gather_nd, (rung_value[]){gy[0], in[1]}, 2, NULL);
}

static const rung_test_case nd_cases[] = {{"f32[5,7] i64[4,1]{-5,4} f32[4,7]", "mode=add"},
                                          {"f32[5,7,3] i32[2,1,2]{0,4} f32[2,1,3]", "mode=add"},
                                          {"f32[1,7] i64[1,2]{0,0} f32[1]", ""},
                                          {"f32[4,4] i64[6,2]{-4,3} f32[6]", "mode=max"},
                                          {"i32[5] i64[0,1] i32[0]", ""},
                                          {0}};

const rung_op rung_op_scatter_nd = {
    .name = "scatter_nd",
    .doc = "x with slices at index tuples replaced by or combined with updates",
    .operands = (const char *const[]){"x", "indices", "updates", NULL},
    .in_lo = 3,
    .in_hi = 3,
    .results = 1,
    .attrs = nd_attributes,
    .attrs_bytes = sizeof(rung_scatter_nd_attrs),
    .infer = infer_nd,
    .role_dims = rung_role_elements,
    .reference = nd_reference,
    .gradient = nd_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = nd_cases,
    .tolerance = {.relative = 1e-6},
};
