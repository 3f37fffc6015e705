/* SPDX-License-Identifier: MIT
 * Rows for moving elements: everything that is a copy between two sets of strides, pad and gather. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* Whole bytes, one number each: no blocks, no narrow storage. */
static bool plain(const rung_value_type *type) {
  return type->type <= RUNG_TYPE_BOOL && !type->layout && type->kind != RUNG_VALUE_STATE_KV;
}
static bool fits_plain(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in; i++)
    if (!plain(match->in[i])) return rung_cuda_unfit(why, "an operand is not of plain numbers");
  for (uint32_t i = 0; i < match->n_out; i++)
    if (!plain(&match->out[i])) return rung_cuda_unfit(why, "a result is not of plain numbers");
  return true;
}

typedef struct copy_params {
  rung_cuda_operand in, out;
} copy_params;

/* Neighbouring axes that lie in a row become one: kernels divide less. */
static void collapse(rung_cuda_operand *o) {
  for (int a = o->rank - 2; a >= 0; a--) {
    if (o->stride[a] != o->stride[a + 1] * o->extent[a + 1]) continue;
    o->extent[a + 1] *= o->extent[a];
    for (int b = a; b + 1 < o->rank; b++) {
      o->extent[b] = o->extent[b + 1];
      o->stride[b] = o->stride[b + 1];
    }
    o->rank--;
  }
}

static rung_status emit_copy(const rung_cuda_step *step, const rung_cuda_operand *in, const rung_cuda_operand *out) {
  copy_params p = {*in, *out};
  int64_t count = 1;
  for (int a = 0; a < out->rank; a++) count *= out->extent[a];
  collapse(&p.in);
  collapse(&p.out);
  return rung_cuda_emit(step, 0, rung_cuda_blocks(count, 256, (int64_t)step->device->processors * 32), 1, 1, 256, 0, &p,
                        sizeof p);
}

static rung_status launch_copy(const rung_cuda_step *step) {
  const rung_cuda_operand in = rung_cuda_operand_of(&step->args->in[0]),
                          out = rung_cuda_operand_of(&step->args->out[0]);
  return emit_copy(step, &in, &out);
}

/* Blocks are copied byte by byte: one more axis. */
static bool fits_blocks(const rung_match *match, char *why) {
  const rung_value_type *x = match->in[0];
  return (x->type == match->out[0].type && rung_type_get(x->type)->class_ == RUNG_CLASS_BLOCK && !x->layout &&
          x->rank < RUNG_MAX_RANK) ||
         rung_cuda_unfit(why, "not a copy of blocks");
}

static rung_cuda_operand bytes_of(const rung_operand *o) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  rung_cuda_operand out = rung_cuda_operand_of(o);
  out.type = RUNG_TYPE_U8;
  for (int a = 0; a < o->rank; a++) out.stride[a] *= row->bytes;
  if (o->rank) out.extent[o->rank - 1] /= row->block;
  out.extent[out.rank] = row->bytes;
  out.stride[out.rank++] = 1;
  return out;
}

static rung_status launch_blocks(const rung_cuda_step *step) {
  const rung_cuda_operand in = bytes_of(&step->args->in[0]), out = bytes_of(&step->args->out[0]);
  return emit_copy(step, &in, &out);
}

static rung_status launch_assign(const rung_cuda_step *step) {
  const rung_cuda_operand in = rung_cuda_operand_of(&step->args->in[1]),
                          out = rung_cuda_operand_of(&step->args->out[0]);
  return emit_copy(step, &in, &out);
}

static rung_status launch_transpose(const rung_cuda_step *step) {
  const rung_i64_list *order = &((const rung_transpose_attrs *)step->args->attrs)->permutation;
  const rung_cuda_operand x = rung_cuda_operand_of(&step->args->in[0]), out = rung_cuda_operand_of(&step->args->out[0]);
  rung_cuda_operand turned = x;
  for (int a = 0; a < out.rank; a++) {
    turned.stride[a] = x.stride[order->value[a]];
    turned.extent[a] = x.extent[order->value[a]];
  }
  return emit_copy(step, &turned, &out);
}

static rung_status launch_expand(const rung_cuda_step *step) {
  const rung_cuda_operand x = rung_cuda_operand_of(&step->args->in[0]), out = rung_cuda_operand_of(&step->args->out[0]);
  rung_cuda_operand repeated = out;
  repeated.base = x.base;
  for (int a = 0; a < out.rank; a++) {
    const int from = a - (out.rank - x.rank);
    repeated.stride[a] = from < 0 || x.extent[from] == 1 ? 0 : x.stride[from];
  }
  return emit_copy(step, &repeated, &out);
}

static rung_status launch_slice(const rung_cuda_step *step) {
  const rung_slice_attrs *attrs = step->args->attrs;
  const rung_cuda_operand out = rung_cuda_operand_of(&step->args->out[0]);
  rung_cuda_operand cut = rung_cuda_operand_of(&step->args->in[0]);
  const int64_t bytes = rung_type_get((rung_type)cut.type)->bytes;
  int64_t offset = 0;
  for (int a = 0; a < cut.rank; a++) {
    offset += rung_args_dim(step->args, attrs->start.dim[a]) * cut.stride[a];
    cut.stride[a] *= attrs->step.value[a];
    cut.extent[a] = out.extent[a];
  }
  cut.base += (uint64_t)(offset * bytes);
  return emit_copy(step, &cut, &out);
}

static rung_status launch_concat(const rung_cuda_step *step) {
  const rung_operand *y = &step->args->out[0];
  const int axis = rung_axis_of(((const rung_concat_attrs *)step->args->attrs)->axis, y->rank);
  const int64_t bytes = rung_type_get((rung_type)y->type)->bytes;
  int64_t at = 0;
  for (uint32_t i = 0; i < step->args->n_in; i++) {
    const rung_cuda_operand in = rung_cuda_operand_of(&step->args->in[i]);
    rung_cuda_operand part = rung_cuda_operand_of(y);
    part.base += (uint64_t)(at * part.stride[axis] * bytes);
    part.extent[axis] = in.extent[axis];
    at += in.extent[axis];
    RUNG_TRY(emit_copy(step, &in, &part));
  }
  return RUNG_OK;
}

typedef struct pad_params {
  rung_cuda_operand in, out;
  int64_t before[RUNG_MAX_RANK];
  uint64_t filled;
  int32_t mode, pad;
} pad_params;

static rung_status launch_pad(const rung_cuda_step *step) {
  const rung_pad_attrs *attrs = step->args->attrs;
  const rung_operand *x = &step->args->in[0], *y = &step->args->out[0];
  const int64_t count = rung_operand_count(y);
  pad_params p = {.in = rung_cuda_operand_of(x), .out = rung_cuda_operand_of(y), .mode = attrs->mode};
  const rung_operand constant = {.base = (uint8_t *)&p.filled, .type = y->type};
  if (attrs->mode != RUNG_PAD_CONSTANT && count != 0 && rung_operand_count(x) == 0)
    return rung_fail(step->args->error, RUNG_OUT_OF_RANGE, "pad: nothing to repeat in an empty operand");
  for (int a = 0; a < y->rank; a++) p.before[a] = rung_args_dim(step->args, attrs->before.dim[a]);
  if (rung_operand_is_integer(y))
    rung_store_i64(&constant, 0, (int64_t)attrs->value);
  else
    rung_store_f64(&constant, 0, attrs->value);
  return rung_cuda_emit(step, 0, rung_cuda_blocks(count, 256, (int64_t)step->device->processors * 32), 1, 1, 256, 0, &p,
                        sizeof p);
}

/* ---- gather of plain numbers, x and indices dense */

typedef struct gather_params {
  uint64_t in, index, out, refused;
  int64_t before, rows, behind, limit, count, unit;
  int32_t index_type, pad;
} gather_params;

static rung_status launch_gather(const rung_cuda_step *step) {
  const rung_operand *x = &step->args->in[0], *index = &step->args->in[1], *y = &step->args->out[0];
  const int axis = rung_axis_of(((const rung_gather_attrs *)step->args->attrs)->axis, x->rank);
  gather_params p = {.in = (uint64_t)(uintptr_t)x->base,
                     .index = (uint64_t)(uintptr_t)index->base,
                     .out = (uint64_t)(uintptr_t)y->base,
                     .refused = step->refusal,
                     .before = 1,
                     .rows = rung_operand_count(index),
                     .behind = 1,
                     .limit = x->extent[axis],
                     .unit = rung_type_get((rung_type)x->type)->bytes,
                     .index_type = index->type};
  for (int a = 0; a < axis; a++) p.before *= x->extent[a];
  for (int a = axis + 1; a < x->rank; a++) p.behind *= x->extent[a];
  p.count = p.before * p.rows * p.behind;
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.before * p.rows, 1, 65536), 1, 1,
                        p.behind * p.unit >= 1024 ? 256 : 32, 0, &p, sizeof p);
}

/* ---- append_dense */

typedef struct append_params {
  rung_cuda_operand x, state;
  uint64_t position, refused;
  int64_t position_stride;
  int32_t position_type, pad;
} append_params;

static rung_status launch_append_dense(const rung_cuda_step *step) {
  const rung_operand *in = step->args->in, *position = &in[2], *out = &step->args->out[0];
  const append_params p = {.x = rung_cuda_operand_of(&in[1]),
                           .state = rung_cuda_operand_of(out),
                           .position = (uint64_t)(uintptr_t)position->base,
                           .refused = step->refusal,
                           .position_stride = position->stride[0],
                           .position_type = position->type};
  /* Positions are looked at even where there is nothing to write. */
  const int64_t count = rung_operand_count(&in[1]), least = in[1].extent[0] ? 1 : 0;
  const int64_t blocks = rung_cuda_blocks(count, 256, (int64_t)step->device->processors * 32);
  if (in[0].base != out->base) {
    const rung_cuda_operand before = rung_cuda_operand_of(&in[0]);
    RUNG_TRY(emit_copy(step, &before, &p.state));
  }
  return rung_cuda_emit(step, 1, blocks ? blocks : least, 1, 1, 256, 0, &p, sizeof p);
}

/* ---- positions, iota */

typedef struct positions_params {
  uint64_t offsets, past, out;
  int64_t rows, sequences;
  int32_t offsets_type, past_type;
} positions_params;

static rung_status launch_positions(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const positions_params p = {.offsets = (uint64_t)(uintptr_t)args->in[0].base,
                              .past = args->n_in > 1 ? (uint64_t)(uintptr_t)args->in[1].base : 0,
                              .out = (uint64_t)(uintptr_t)args->out[0].base,
                              .rows = args->out[0].extent[0],
                              .sequences = args->in[0].extent[0] - 1,
                              .offsets_type = args->in[0].type,
                              .past_type = args->n_in > 1 ? args->in[1].type : 0};
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.rows, 128, INT32_MAX), 1, 1, 128, 0, &p, sizeof p);
}

typedef struct iota_params {
  uint64_t out;
  int64_t count, extent, inner;
  int32_t type, pad;
} iota_params;

static rung_status launch_iota(const rung_cuda_step *step) {
  const rung_operand *y = &step->args->out[0];
  const int axis = rung_axis_of(((const rung_iota_attrs *)step->args->attrs)->axis, y->rank);
  iota_params p = {.out = (uint64_t)(uintptr_t)y->base,
                   .count = rung_operand_count(y),
                   .extent = y->extent[axis],
                   .inner = 1,
                   .type = y->type};
  for (int a = axis + 1; a < y->rank; a++) p.inner *= y->extent[a];
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.count, 256, 4096), 1, 1, 256, 0, &p, sizeof p);
}

/* ---- rows */

#define MOVE(name_, op_, function_, strides, launch_)                                                      \
  {                                                                                                        \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, strides, RUNG_STRIDES_ANY), .fits = fits_plain}, .unit = "move", \
    .function = {function_, NULL}, .launch = launch_                                                       \
  }

static const rung_cuda_kernel rows[] = {
    {.row = {.name = "copy_blocks",
             .op = &rung_op_cast,
             .in_type = {RUNG_ANY_TYPE},
             .n_in_type = 1,
             .out_type = {RUNG_ANY_TYPE},
             .n_out_type = 1,
             .in_strides = RUNG_STRIDES_ANY,
             .out_strides = RUNG_STRIDES_ANY,
             .guard_role = -1,
             .fits = fits_blocks},
     .unit = "move",
     .function = {"copy", NULL},
     .launch = launch_blocks},
    MOVE("copy_reshape", reshape, "copy", RUNG_STRIDES_ANY, launch_copy),
    MOVE("copy_transpose", transpose, "copy", RUNG_STRIDES_ANY, launch_transpose),
    MOVE("copy_expand", expand, "copy", RUNG_STRIDES_ANY, launch_expand),
    MOVE("copy_slice", slice, "copy", RUNG_STRIDES_ANY, launch_slice),
    MOVE("copy_concat", concat, "copy", RUNG_STRIDES_ANY, launch_concat),
    MOVE("pad_elements", pad, "pad", RUNG_STRIDES_ANY, launch_pad),
    MOVE("copy_assign", assign, "copy", RUNG_STRIDES_ANY, launch_assign),
    MOVE("gather_slices", gather, "gather", RUNG_STRIDES_DENSE, launch_gather),
    {.row = {RUNG_CUDA_ANY_ROW("append_dense_rows", append_dense, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY),
             .fits = fits_plain},
     .unit = "move",
     .function = {"copy", "append_dense", NULL},
     .launch = launch_append_dense},
    MOVE("positions", positions, "positions", RUNG_STRIDES_DENSE, launch_positions),
    MOVE("iota", iota, "iota", RUNG_STRIDES_DENSE, launch_iota),
};
const rung_cuda_family rung_cuda_family_move = {"move", rows, RUNG_COUNT(rows)};
