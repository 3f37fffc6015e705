/* SPDX-License-Identifier: MIT
 * Rows for reading and writing at indices, and for finding what is not 0. */
#include <stdio.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

static bool fits_plain(const rung_match *match, char *why) {
  const rung_value_type *x = match->in[0];
  if (x->type <= RUNG_TYPE_BOOL && !x->layout && x->kind == RUNG_VALUE_TENSOR) return true;
  return rung_cuda_unfit(why, "x is not of plain numbers");
}

static int64_t some_blocks(const rung_cuda_step *step, int64_t n) {
  return rung_cuda_blocks(n, 256, (int64_t)step->device->processors * 32);
}

/* ---- gather_elements, gather_nd */

typedef struct elements_params {
  rung_cuda_operand in, index, out;
  uint64_t refused;
  int32_t axis, pad;
} elements_params;

static rung_status launch_gather_elements(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const elements_params p = {
      .in = rung_cuda_operand_of(&args->in[0]),
      .index = rung_cuda_operand_of(&args->in[1]),
      .out = rung_cuda_operand_of(&args->out[0]),
      .refused = step->refusal,
      .axis = rung_axis_of(((const rung_gather_attrs *)args->attrs)->axis, args->in[0].rank),
  };
  return rung_cuda_emit(step, 0, some_blocks(step, rung_operand_count(&args->out[0])), 1, 1, 256, 0, &p, sizeof p);
}

typedef struct tuples_params {
  rung_cuda_operand in, index, out;
  uint64_t refused;
  int32_t outer, batch, depth, pad;
} tuples_params;

static rung_status launch_gather_nd(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const rung_operand *index = &args->in[1];
  const tuples_params p = {
      .in = rung_cuda_operand_of(&args->in[0]),
      .index = rung_cuda_operand_of(index),
      .out = rung_cuda_operand_of(&args->out[0]),
      .refused = step->refusal,
      .outer = index->rank - 1,
      .batch = (int32_t)((const rung_gather_nd_attrs *)args->attrs)->batch_dims,
      .depth = (int32_t)index->extent[index->rank - 1],
  };
  return rung_cuda_emit(step, 0, some_blocks(step, rung_operand_count(&args->out[0])), 1, 1, 256, 0, &p, sizeof p);
}

/* ---- scatter: a copy of x, then the updates */

enum { SCATTER, COPY, S_WIDTH = 256, S_SHARE = 16, MOST_Y = 65535 };

static rung_status prepare_scatter(const rung_cuda_prepare *in, rung_text *front) {
  static const char *const copy[] = {"copy", NULL};
  (void)front;
  return rung_cuda_compile(in->device, "move", NULL, copy, 1, &in->prepared->function[COPY], in->error);
}

typedef struct copy_params {
  rung_cuda_operand in, out;
} copy_params;
typedef struct scatter_params {
  rung_cuda_operand index, out, slice, updated;
  int64_t updates_stride[RUNG_MAX_RANK];
  uint64_t updates, refused;
  int64_t count, columns, width, tuple_stride;
  int32_t axis, depth, mode, pad;
} scatter_params;

static rung_status emit_scatter(const rung_cuda_step *step, scatter_params *p) {
  const rung_operand *x = &step->args->in[0], *updates = &step->args->in[2], *y = &step->args->out[0];
  const copy_params copied = {rung_cuda_operand_of(x), rung_cuda_operand_of(y)};
  const int64_t elements = rung_operand_count(y);
  RUNG_TRY(rung_cuda_emit(step, COPY, some_blocks(step, elements), 1, 1, 256, 0, &copied, sizeof copied));
  p->out = rung_cuda_operand_of(y);
  p->updates = (uint64_t)(uintptr_t)updates->base;
  p->refused = step->refusal;
  p->count = p->columns = 1;
  for (int a = 0; a < p->index.rank; a++) p->count *= p->index.extent[a];
  for (int a = 0; a < p->slice.rank; a++) p->columns *= p->slice.extent[a];
  /* An index may be refused though its slice has no number. */
  const int64_t columns = p->columns > 0 ? p->columns : 1, fewest = (columns + MOST_Y - 1) / MOST_Y;
  p->width = fewest > S_WIDTH ? fewest : S_WIDTH;
  const int64_t shares = rung_cuda_blocks(p->count, S_SHARE, step->device->processors);
  return rung_cuda_emit(step, SCATTER, shares, (columns + p->width - 1) / p->width, 1, 256, 0, p, sizeof *p);
}

static rung_status launch_scatter_elements(const rung_cuda_step *step) {
  const rung_scatter_attrs *attrs = step->args->attrs;
  const rung_operand *index = &step->args->in[1], *updates = &step->args->in[2];
  scatter_params p = {
      .index = rung_cuda_operand_of(index), .axis = rung_axis_of(attrs->axis, index->rank), .mode = attrs->mode};
  for (int a = 0; a < index->rank; a++) p.updates_stride[a] = updates->stride[a];
  return emit_scatter(step, &p);
}

static rung_status launch_scatter_nd(const rung_cuda_step *step) {
  const rung_operand *index = &step->args->in[1], *updates = &step->args->in[2], *y = &step->args->out[0];
  const int outer = index->rank - 1, depth = (int)index->extent[outer];
  scatter_params p = {.index = rung_cuda_operand_of(index),
                      .tuple_stride = index->stride[outer],
                      .depth = depth,
                      .mode = ((const rung_scatter_nd_attrs *)step->args->attrs)->mode};
  p.index.rank = outer;
  for (int a = 0; a < outer; a++) p.updates_stride[a] = updates->stride[a];
  p.slice.rank = p.updated.rank = y->rank - depth;
  for (int a = 0; a < p.slice.rank; a++) {
    p.slice.extent[a] = p.updated.extent[a] = y->extent[depth + a];
    p.slice.stride[a] = y->stride[depth + a];
    p.updated.stride[a] = updates->stride[outer + a];
  }
  return emit_scatter(step, &p);
}

/* ---- count_nonzero, nonzero */

enum { COUNT, FINISH, N_TILE = 2048 };

typedef struct nonzero_params {
  rung_cuda_operand in;
  uint64_t counts, out, refused;
  int64_t count, tiles, found, axis_stride, column_stride;
} nonzero_params;

static rung_dim count_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)match;
  const rung_dim more = rung_dims_add(dims, role[0], rung_dims_constant(dims, N_TILE - 1));
  return rung_dims_mul(dims, rung_dims_div(dims, more, rung_dims_constant(dims, N_TILE)),
                       rung_dims_constant(dims, sizeof(int64_t)));
}

static nonzero_params emit_counts(const rung_cuda_step *step, rung_status *out_status) {
  const rung_operand *x = &step->args->in[0];
  nonzero_params p = {.in = rung_cuda_operand_of(x),
                      .counts = (uint64_t)(uintptr_t)step->args->scratch,
                      .out = (uint64_t)(uintptr_t)step->args->out[0].base,
                      .refused = step->refusal,
                      .count = rung_operand_count(x)};
  p.tiles = (p.count + N_TILE - 1) / N_TILE;
  *out_status = rung_cuda_emit(step, COUNT, rung_cuda_blocks(p.tiles, 1, 65536), 1, 1, 256, 0, &p, sizeof p);
  return p;
}

static rung_status launch_count_nonzero(const rung_cuda_step *step) {
  rung_status status;
  const nonzero_params p = emit_counts(step, &status);
  return status ? status : rung_cuda_emit(step, FINISH, 1, 1, 1, 256, 0, &p, sizeof p);
}

static rung_status launch_nonzero(const rung_cuda_step *step) {
  const rung_operand *y = &step->args->out[0];
  rung_status status;
  nonzero_params p = emit_counts(step, &status);
  RUNG_TRY(status);
  p.found = y->extent[1];
  p.axis_stride = y->stride[0];
  p.column_stride = y->stride[1];
  if (p.count == 0 && p.found)
    return rung_fail(step->args->error, RUNG_OUT_OF_RANGE, "nonzero: 0 elements are not 0, but count is %lld",
                     (long long)p.found);
  return rung_cuda_emit(step, FINISH, rung_cuda_blocks(p.tiles, 1, 65536), 1, 1, 256, 0, &p, sizeof p);
}

/* ---- rows */

#define ROW(name_, op_, scratch_, prepare_, launch_, ...)                                          \
  {                                                                                                \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_plain, \
            .scratch = scratch_},                                                                  \
    .unit = "index", .function = {__VA_ARGS__, NULL}, .prepare = prepare_, .launch = launch_       \
  }

static const rung_cuda_kernel rows[] = {
    ROW("gather_elements_any", gather_elements, NULL, NULL, launch_gather_elements, "gather_elements"),
    ROW("gather_nd_any", gather_nd, NULL, NULL, launch_gather_nd, "gather_nd"),
    ROW("scatter_elements_shares", scatter_elements, NULL, prepare_scatter, launch_scatter_elements, "scatter"),
    ROW("scatter_nd_shares", scatter_nd, NULL, prepare_scatter, launch_scatter_nd, "scatter"),
    ROW("count_nonzero_tiles", count_nonzero, count_scratch, NULL, launch_count_nonzero, "count_tiles", "sum_tiles"),
    ROW("nonzero_tiles", nonzero, count_scratch, NULL, launch_nonzero, "count_tiles", "write_tiles"),
};
const rung_cuda_family rung_cuda_family_index = {"index", rows, RUNG_COUNT(rows)};
