/* SPDX-License-Identifier: MIT
 * Rows for reductions, softmax, argmax and argmin, the k best and running sums along an axis. */
#include <stdio.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* ---- reductions */

static const rung_op *const kinds[] = {&rung_op_reduce_sum,        &rung_op_reduce_mean,       &rung_op_reduce_prod,
                                       &rung_op_reduce_max,        &rung_op_reduce_min,        &rung_op_reduce_l1,
                                       &rung_op_reduce_l2,         &rung_op_reduce_sum_square, &rung_op_reduce_log_sum,
                                       &rung_op_reduce_log_sum_exp};

static int32_t kind_of(const rung_op *op) {
  for (size_t i = 0; i < RUNG_COUNT(kinds); i++)
    if (kinds[i] == op) return (int32_t)i;
  return 0;
}

static bool fits_reduce(const rung_match *match, char *why) {
  const rung_value_type *x = match->in[0];
  return (x->type <= RUNG_TYPE_F64 && !x->layout && match->out[0].type <= RUNG_TYPE_F64) ||
         rung_cuda_unfit(why, "not of plain floats");
}

static rung_status prepare_reduce(const rung_cuda_prepare *in, rung_text *front) {
  rung_text_printf(front, "#define KIND %d\n", kind_of(in->step->op));
  return RUNG_OK;
}

static bool whole(rung_type type) { return type > RUNG_TYPE_F64 && type <= RUNG_TYPE_BOOL; }
static bool fits_whole(const rung_match *match, char *why) {
  return (whole(match->in[0]->type) && !match->in[0]->layout) || rung_cuda_unfit(why, "not of integers");
}

typedef struct reduce_params {
  rung_cuda_operand kept, reduced;
  uint64_t in, out;
  int64_t results;
  int32_t in_type, out_type; /* kernels of integers: the kind */
} reduce_params;

static rung_status launch_reduce(const rung_cuda_step *step) {
  const rung_reduce_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0];
  bool goes[RUNG_MAX_RANK] = {false};
  for (int a = 0; a < x->rank; a++) goes[a] = attrs->axes.count == 0;
  for (int i = 0; i < attrs->axes.count; i++) goes[rung_axis_of(attrs->axes.value[i], x->rank)] = true;
  reduce_params p = {.in = (uint64_t)(uintptr_t)x->base,
                     .out = (uint64_t)(uintptr_t)y->base,
                     .results = rung_operand_count(y),
                     .in_type = x->type,
                     .out_type = y->type};
  for (int a = 0; a < x->rank; a++) {
    rung_cuda_operand *o = goes[a] ? &p.reduced : &p.kept;
    o->extent[o->rank] = x->extent[a];
    o->stride[o->rank++] = x->stride[a];
  }
  const bool integers = whole((rung_type)x->type);
  if (integers) p.out_type = kind_of(step->prepared->step->op);
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.results, 1, 65536), 1, 1, integers ? 256 : 128, 0, &p, sizeof p);
}

/* ---- along one axis */

/* The operand without axis `along`. */
static rung_cuda_operand without(const rung_operand *o, int along) {
  rung_cuda_operand out = {.base = (uint64_t)(uintptr_t)o->base, .type = o->type};
  for (int a = 0; a < o->rank; a++) {
    if (a == along) continue;
    out.extent[out.rank] = o->extent[a];
    out.stride[out.rank++] = o->stride[a];
  }
  return out;
}
static int64_t lanes_of(const rung_operand *o, int along) {
  int64_t n = 1;
  for (int a = 0; a < o->rank; a++) n *= a == along ? 1 : o->extent[a];
  return n;
}

typedef struct softmax_params {
  rung_cuda_operand in, out;
  int64_t lanes, n, in_step, out_step;
  int32_t logarithm, pad;
} softmax_params;

static bool fits_softmax(const rung_match *match, char *why) {
  return (rung_cuda_is_float(match->in[0]->type) && rung_cuda_is_float(match->out[0].type)) ||
         rung_cuda_unfit(why, "not f32, f16 or bf16");
}

static rung_status launch_softmax(const rung_cuda_step *step) {
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0];
  const int along = rung_axis_of(((const rung_axis_attrs *)step->args->attrs)->axis, x->rank);
  const softmax_params p = {.in = without(x, along),
                            .out = without(y, along),
                            .lanes = lanes_of(x, along),
                            .n = x->extent[along],
                            .in_step = x->stride[along],
                            .out_step = y->stride[along],
                            .logarithm = step->prepared->step->op == &rung_op_log_softmax};
  if (!p.n) return RUNG_OK;
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.lanes, 1, 65536), 1, 1, p.n > 128 ? 256 : 32, 0, &p, sizeof p);
}

typedef struct choose_params {
  rung_cuda_operand in;
  uint64_t out;
  int64_t lanes, n, step;
  int32_t smallest, last;
} choose_params;

static bool fits_choose(const rung_match *match, char *why) {
  return match->in[0]->type <= RUNG_TYPE_F64 || rung_cuda_unfit(why, "not of floats");
}

static rung_status launch_choose(const rung_cuda_step *step) {
  const rung_arg_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0];
  const int along = rung_axis_of(attrs->axis, x->rank);
  const choose_params p = {.in = without(x, along),
                           .out = (uint64_t)(uintptr_t)step->args->out[0].base,
                           .lanes = lanes_of(x, along),
                           .n = x->extent[along],
                           .step = x->stride[along],
                           .smallest = step->prepared->step->op == &rung_op_argmin,
                           .last = attrs->last};
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.lanes, 1, 65536), 1, 1, 256, 0, &p, sizeof p);
}

/* ---- kernels/whole.cu */

typedef struct lane_params {
  rung_cuda_operand in, out, index;
  int64_t lanes, n, k, in_step, out_step, index_step;
  int32_t kind, flag;
} lane_params;

static rung_status emit_lanes(const rung_cuda_step *step, const lane_params *p) {
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p->lanes, 1, 65536), 1, 1, 256, 0, p, sizeof *p);
}
static lane_params lanes_along(const rung_operand *x, int along) {
  return (lane_params){
      .in = without(x, along), .lanes = lanes_of(x, along), .n = x->extent[along], .in_step = x->stride[along]};
}

static rung_status launch_choose_whole(const rung_cuda_step *step) {
  const rung_arg_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0];
  lane_params p = lanes_along(x, rung_axis_of(attrs->axis, x->rank));
  p.index.base = (uint64_t)(uintptr_t)step->args->out[0].base;
  p.kind = step->prepared->step->op == &rung_op_argmin;
  p.flag = attrs->last;
  return emit_lanes(step, &p);
}

static bool fits_numbers(const rung_match *match, char *why) {
  return (match->in[0]->type < RUNG_TYPE_BOOL && !match->in[0]->layout) || rung_cuda_unfit(why, "not of plain numbers");
}

static rung_status launch_top_k(const rung_cuda_step *step) {
  const rung_top_k_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0], *index = &step->args->out[1];
  const int along = rung_axis_of(attrs->axis, x->rank);
  lane_params p = lanes_along(x, along);
  p.out = without(y, along);
  p.index = without(index, along);
  p.k = y->extent[along];
  p.out_step = y->stride[along];
  p.index_step = index->stride[along];
  p.kind = !attrs->largest;
  if (p.k > p.n)
    return rung_fail(step->args->error, RUNG_OUT_OF_RANGE, "top_k: k is %lld but the axis has %lld elements",
                     (long long)p.k, (long long)p.n);
  return p.k ? emit_lanes(step, &p) : RUNG_OK;
}

static rung_status launch_run(const rung_cuda_step *step) {
  const rung_cumsum_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0];
  const int along = rung_axis_of(attrs->axis, x->rank);
  lane_params p = lanes_along(x, along);
  p.out = without(y, along);
  p.out_step = y->stride[along];
  p.kind = step->prepared->step->op == &rung_op_cumprod;
  p.flag = attrs->exclusive | attrs->reverse << 1;
  return emit_lanes(step, &p);
}

/* ---- rows. Results are written dense. */

#define ROW(name_, op_, fits_, prepare_, unit_, function_, launch_)                                             \
  {                                                                                                             \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_DENSE), .fits = fits_}, .unit = unit_, \
    .function = {function_, NULL}, .prepare = prepare_, .launch = launch_                                       \
  }
#define REDUCE(op) ROW("reduce_" #op, reduce_##op, fits_reduce, prepare_reduce, "reduce", "reduce", launch_reduce)
#define WHOLE(op) ROW("reduce_whole_" #op, reduce_##op, fits_whole, NULL, "whole", "reduce_whole", launch_reduce)

static const rung_cuda_kernel rows[] = {
    REDUCE(sum),
    REDUCE(mean),
    REDUCE(prod),
    REDUCE(max),
    REDUCE(min),
    REDUCE(l1),
    REDUCE(l2),
    REDUCE(sum_square),
    REDUCE(log_sum),
    REDUCE(log_sum_exp),
    ROW("softmax_lanes", softmax, fits_softmax, NULL, "reduce", "softmax", launch_softmax),
    ROW("log_softmax_lanes", log_softmax, fits_softmax, NULL, "reduce", "softmax", launch_softmax),
    ROW("choose_largest", argmax, fits_choose, NULL, "reduce", "choose", launch_choose),
    ROW("choose_smallest", argmin, fits_choose, NULL, "reduce", "choose", launch_choose),
    WHOLE(sum),
    WHOLE(mean),
    WHOLE(prod),
    WHOLE(max),
    WHOLE(min),
    WHOLE(l1),
    WHOLE(sum_square),
    ROW("choose_whole_largest", argmax, fits_whole, NULL, "whole", "choose_whole", launch_choose_whole),
    ROW("choose_whole_smallest", argmin, fits_whole, NULL, "whole", "choose_whole", launch_choose_whole),
    ROW("top_k_lanes", top_k, fits_numbers, NULL, "whole", "top_k", launch_top_k),
    ROW("cumsum_lanes", cumsum, fits_numbers, NULL, "whole", "run_along", launch_run),
    ROW("cumprod_lanes", cumprod, fits_numbers, NULL, "whole", "run_along", launch_run),
};
const rung_cuda_family rung_cuda_family_reduce = {"reduce", rows, RUNG_COUNT(rows)};
