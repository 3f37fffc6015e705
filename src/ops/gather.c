/* SPDX-License-Identifier: MIT
 * gather, gather_elements, gather_nd: reading at indices, as in ONNX. Negative indices count from the end; what is out
 * of range is refused when the op runs, before anything is read. */
#include <string.h>

#include "ops/build.h"
#include "ops/structured.h"

/* ---- gather(x, indices): y[.., indices.., ..] = x[.., i, ..] along one axis */

static const rung_attr gather_attributes[] = {{.name = "axis",
                                               .kind = RUNG_ATTR_I64,
                                               .offset = offsetof(rung_gather_attrs, axis),
                                               .text_default = "0",
                                               .doc = "axis of x that the indices choose from"},
                                              {0}};

/* Rows of a block type come out as f32: a tied embedding is read so. */
static rung_status infer_gather(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *indices = &infer->in[1];
  int axis;
  RUNG_TRY(rung_infer_weight_class(infer, 0, RUNG_TAKES_ALL));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_axis(infer, ((const rung_gather_attrs *)infer->attrs)->axis, x->rank, &axis));
  const bool block = rung_type_is_block(x->type);
  if (block && axis == x->rank - 1) {
    return rung_infer_refuse(infer, RUNG_UNSUPPORTED, "the last axis of %s lies in blocks", rung_type_name(x->type));
  }
  const int rank = x->rank + indices->rank - 1;
  if (rank > RUNG_MAX_RANK) return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "the result would have rank %d", rank);
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < axis; i++) extent[i] = x->extent[i];
  for (int i = 0; i < indices->rank; i++) extent[axis + i] = indices->extent[i];
  for (int i = axis + 1; i < x->rank; i++) extent[indices->rank + i - 1] = x->extent[i];
  rung_infer_result(infer, 0, block ? RUNG_TYPE_F32 : x->type, rank, extent);
  return RUNG_OK;
}

static void gather_role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                             const void *attrs, rung_dim *out_role) {
  rung_role_elements(dims, in, n_in, out, attrs, &out_role[0]);
  out_role[1] = rung_dims_product(dims, in[1].extent, 0, in[1].rank);
}

/* One element from x to y: bits where the types are one, else the value. */
static void move_element(const rung_operand *x, int64_t from, const rung_operand *y, int64_t to) {
  if (x->type == y->type) {
    const int64_t bytes = rung_type_get((rung_type)x->type)->bytes;
    memcpy(y->base + to * bytes, x->base + from * bytes, (size_t)bytes);
  } else {
    rung_store_f64(y, to, rung_load_f64(x, from));
  }
}

static rung_status gather_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *indices = &args->in[1], *y = &args->out[0];
  const int axis = rung_axis_of(((const rung_gather_attrs *)args->attrs)->axis, x->rank);
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    int64_t at[RUNG_MAX_RANK];
    const int64_t *index_of_index = w.index + axis;
    for (int i = 0; i < axis; i++) at[i] = w.index[i];
    for (int i = axis + 1; i < x->rank; i++) at[i] = w.index[i + indices->rank - 1];
    const int64_t chosen = rung_load_i64(indices, rung_element_offset(indices, index_of_index));
    RUNG_TRY(rung_check_index(args, "gather", chosen, x->extent[axis], &at[axis]));
    move_element(x, rung_element_offset(x, at), y, w.offset[0]);
  }
  return RUNG_OK;
}

/* Adds gy into zeros: with x as [before, extent, after], the indices as one list repeated over before and after. */
static void gather_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                            const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_value_type x = *rung_build_type(g, in[0]), indices = *rung_build_type(g, in[1]);
  if (!rung_type_is_float(x.type)) return;
  const int axis = rung_axis_of(((const rung_gather_attrs *)node->attrs)->axis, x.rank);
  const rung_dim one = rung_one(g->dims), n = rung_dims_product(g->dims, indices.extent, 0, indices.rank);
  const rung_dim before = rung_dims_product(g->dims, x.extent, 0, axis);
  const rung_dim after = rung_dims_product(g->dims, x.extent, axis + 1, x.rank);
  const rung_dim whole[] = {before, x.extent[axis], after}, part[] = {before, n, after};
  const rung_value zeros = rung_build_expand(g, rung_build_scalar(g, x.type, 0), 3, whole);
  const rung_value list =
      rung_build_expand(g, rung_build_reshape(g, in[1], 3, (const rung_dim[]){one, n, one}), 3, part);
  const rung_value operands[] = {zeros, list, rung_build_reshape(g, gy[0], 3, part)};
  const rung_scatter_attrs add = {.axis = 1, .mode = RUNG_SCATTER_ADD};
  out_gx[0] = rung_build_reshape(g, rung_graph_op(g, &rung_op_scatter_elements, operands, 3, &add), x.rank, x.extent);
}

static const rung_test_case gather_cases[] = {{"f32[9,4] i32[7]{0,8}", ""},
                                              {"f32[5,6,3] i64[2,3]{-6,5}", "axis=1"},
                                              {"f32[4,9] i32[]{0,8}", "axis=-1"},
                                              {"i64[6] i32[3,2]{-6,5}", ""},
                                              {"bf16[7,32] i32[4]{0,6}", ""},
                                              {"q8_0[9,64] i32[4]{0,8}", ""},
                                              {"q4_1[9,64] i32[4]{0,8}", ""},
                                              {"f32[3,0] i32[2]{0,2}", ""},
                                              {"f32[3,4] i32[0]", ""},
                                              {0}};

/* Exact: moves bits; a block's numbers are those of its type. */
const rung_op rung_op_gather = {
    .name = "gather",
    .doc = "slices of x along an axis, chosen by indices; rows of block types come out as f32",
    .operands = (const char *const[]){"x", "indices", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = gather_attributes,
    .attrs_bytes = sizeof(rung_gather_attrs),
    .roles = (const char *const[]){"elements", "rows", NULL},
    .infer = infer_gather,
    .role_dims = gather_role_dims,
    .reference = gather_reference,
    .gradient = gather_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = gather_cases,
};

/* ---- gather_elements(x, indices): y[.., i, ..] = x[.., indices[.., i, ..], ..] */

static rung_status infer_elements(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *indices = &infer->in[1];
  int axis;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_rank(infer, 1, x->rank));
  RUNG_TRY(rung_infer_axis(infer, ((const rung_gather_attrs *)infer->attrs)->axis, x->rank, &axis));
  rung_infer_result(infer, 0, x->type, x->rank, indices->extent);
  return RUNG_OK;
}

/* Indices may be shorter than x along the other axes; longer they read past it, which is refused. */
static rung_status elements_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *indices = &args->in[1], *y = &args->out[0];
  const int axis = rung_axis_of(((const rung_gather_attrs *)args->attrs)->axis, x->rank);
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 2, (const rung_operand *[]){y, indices}); w.live; rung_walk_next(&w)) {
    int64_t at[RUNG_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
      const int64_t index = i == axis ? rung_load_i64(indices, w.offset[1]) : w.index[i];
      RUNG_TRY(rung_check_index(args, "gather_elements", index, x->extent[i], &at[i]));
    }
    move_element(x, rung_element_offset(x, at), y, w.offset[0]);
  }
  return RUNG_OK;
}

static void elements_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                              const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_value_type x = *rung_build_type(g, in[0]);
  if (!rung_type_is_float(x.type)) return;
  const rung_scatter_attrs add = {.axis = ((const rung_gather_attrs *)node->attrs)->axis, .mode = RUNG_SCATTER_ADD};
  const rung_value operands[] = {rung_build_filled_like(g, in[0], 0), in[1], gy[0]};
  out_gx[0] = rung_graph_op(g, &rung_op_scatter_elements, operands, 3, &add);
}

static const rung_test_case elements_cases[] = {{"f32[5,7] i64[5,7]{-5,4}", ""},
                                                {"f32[5,7] i32[4,3]{-7,6}", "axis=1"},
                                                {"i32[2,3,4] i64[2,3,9]{-4,3}", "axis=-1"},
                                                {"f32[3,0] i32[2,0]", ""},
                                                {0}};

const rung_op rung_op_gather_elements = {
    .name = "gather_elements",
    .doc = "one element of x for every index: the index replaces the position along an axis",
    .operands = (const char *const[]){"x", "indices", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = gather_attributes,
    .attrs_bytes = sizeof(rung_gather_attrs),
    .infer = infer_elements,
    .role_dims = rung_role_elements,
    .reference = elements_reference,
    .gradient = elements_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = elements_cases,
};

/* ---- gather_nd(x, indices[.., depth]): each index tuple chooses along `depth` axes of x behind the batch axes */

static const rung_attr nd_attributes[] = {{.name = "batch_dims",
                                           .kind = RUNG_ATTR_I64,
                                           .offset = offsetof(rung_gather_nd_attrs, batch_dims),
                                           .text_default = "0",
                                           .doc = "leading axes that x and indices share"},
                                          {0}};

static rung_status infer_nd(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0], *indices = &infer->in[1];
  const int64_t batch = ((const rung_gather_nd_attrs *)infer->attrs)->batch_dims;
  int64_t depth;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_PLAIN));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_rank_at_least(infer, 1, 1));
  RUNG_TRY(rung_infer_constant(infer, indices->extent[indices->rank - 1], "the depth of indices", &depth));
  if (batch < 0 || batch >= indices->rank || depth < 1 || depth > x->rank - batch) {
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "batch_dims %lld and tuples of %lld do not fit",
                             (long long)batch, (long long)depth);
  }
  const int kept = x->rank - (int)batch - (int)depth, rank = indices->rank - 1 + kept;
  if (rank > RUNG_MAX_RANK) return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "the result would have rank %d", rank);
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < indices->rank - 1; i++) extent[i] = indices->extent[i];
  for (int i = 0; i < batch; i++) RUNG_TRY(rung_infer_extent(infer, 1, i, x->extent[i]));
  for (int i = 0; i < kept; i++) extent[indices->rank - 1 + i] = x->extent[(int)batch + (int)depth + i];
  rung_infer_result(infer, 0, x->type, rank, extent);
  return RUNG_OK;
}

static rung_status nd_reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *indices = &args->in[1], *y = &args->out[0];
  const int batch = (int)((const rung_gather_nd_attrs *)args->attrs)->batch_dims, last = indices->rank - 1;
  const int depth = (int)indices->extent[last];
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    int64_t at[RUNG_MAX_RANK], tuple[RUNG_MAX_RANK];
    for (int i = 0; i < last; i++) tuple[i] = w.index[i];
    for (int i = 0; i < batch; i++) at[i] = w.index[i];
    for (int i = batch + depth; i < x->rank; i++) at[i] = w.index[last + i - batch - depth];
    for (int i = 0; i < depth; i++) {
      tuple[last] = i;
      const int64_t index = rung_load_i64(indices, rung_element_offset(indices, tuple));
      RUNG_TRY(rung_check_index(args, "gather_nd", index, x->extent[batch + i], &at[batch + i]));
    }
    move_element(x, rung_element_offset(x, at), y, w.offset[0]);
  }
  return RUNG_OK;
}

static void nd_gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                        const rung_value *gy, rung_value *out_gx) {
  (void)y;
  const rung_value_type x = *rung_build_type(g, in[0]);
  if (!rung_type_is_float(x.type)) return;
  if (((const rung_gather_nd_attrs *)node->attrs)->batch_dims) {
    rung_graph_fail(g, RUNG_UNSUPPORTED, "gather_nd: no gradient with batch_dims");
    return;
  }
  const rung_value operands[] = {rung_build_filled_like(g, in[0], 0), in[1], gy[0]};
  out_gx[0] = rung_graph_op(g, &rung_op_scatter_nd, operands, 3, &(rung_scatter_nd_attrs){.mode = RUNG_SCATTER_ADD});
}

static const rung_test_case nd_cases[] = {{"f32[5,7] i64[4,2]{-5,4}", ""},
                                          {"f32[5,7,3] i32[4,2,1]{-5,4}", ""},
                                          {"f32[2,5,3] i64[2,4,1]{-5,4}", "batch_dims=1"},
                                          {"i32[5,4] i64[0,1]", ""},
                                          {0}};

const rung_op rung_op_gather_nd = {
    .name = "gather_nd",
    .doc = "slices of x at index tuples: the last axis of indices holds one index per leading axis of x",
    .operands = (const char *const[]){"x", "indices", NULL},
    .in_lo = 2,
    .in_hi = 2,
    .results = 1,
    .attrs = nd_attributes,
    .attrs_bytes = sizeof(rung_gather_nd_attrs),
    .infer = infer_nd,
    .role_dims = rung_role_elements,
    .reference = nd_reference,
    .gradient = nd_gradient,
    .test_lo = -4,
    .test_hi = 4,
    .tests = nd_cases,
};
