/* SPDX-License-Identifier: MIT
 * What reference functions share. */
#include "ops/reference.h"

#include <string.h>

#include "ops/shape.h"

static int64_t block_of(rung_type type) {
  return rung_type_takes(type) == RUNG_TAKES_BLOCK ? rung_type_get(type)->block : 1;
}

void rung_element_strides(const rung_operand *operand, int64_t *out_stride) {
  const int64_t block = block_of((rung_type)operand->type);
  for (int axis = 0; axis < operand->rank; axis++)
    out_stride[axis] =
        block > 1 ? (axis == operand->rank - 1 ? 1 : operand->stride[axis] * block) : operand->stride[axis];
}

int64_t rung_element_offset(const rung_operand *operand, const int64_t *index) {
  int64_t stride[RUNG_MAX_RANK], offset = 0;
  rung_element_strides(operand, stride);
  for (int axis = 0; axis < operand->rank; axis++) offset += index[axis] * stride[axis];
  return offset;
}

static void begin(rung_walk *walk, int rank, const int64_t *extent, int n) {
  walk->live = true;
  walk->rank = rank;
  walk->n = n;
  for (int axis = 0; axis < rank; axis++) {
    walk->index[axis] = 0;
    walk->extent[axis] = extent[axis];
    if (extent[axis] <= 0) walk->live = false;
  }
  for (int i = 0; i < n; i++) walk->offset[i] = 0;
}

void rung_walk_begin(rung_walk *walk, int rank, const int64_t *extent, int n, const rung_operand *const *operand) {
  begin(walk, rank, extent, n);
  for (int i = 0; i < n; i++) {
    const rung_operand *o = operand[i];
    const int lead = rank - o->rank;
    int64_t stride[RUNG_MAX_RANK];
    rung_element_strides(o, stride);
    for (int axis = 0; axis < rank; axis++)
      walk->stride[i][axis] = axis < lead || o->extent[axis - lead] == 1 ? 0 : stride[axis - lead];
  }
}

void rung_walk_begin_strides(rung_walk *walk, int rank, const int64_t *extent, int n,
                             int64_t (*stride)[RUNG_MAX_RANK]) {
  begin(walk, rank, extent, n);
  for (int i = 0; i < n; i++)
    for (int axis = 0; axis < rank; axis++) walk->stride[i][axis] = stride[i][axis];
}

void rung_walk_next(rung_walk *walk) {
  for (int axis = walk->rank - 1; axis >= 0; axis--) {
    if (++walk->index[axis] < walk->extent[axis]) {
      for (int i = 0; i < walk->n; i++) walk->offset[i] += walk->stride[i][axis];
      return;
    }
    walk->index[axis] = 0;
    for (int i = 0; i < walk->n; i++) walk->offset[i] -= walk->stride[i][axis] * (walk->extent[axis] - 1);
  }
  walk->live = false;
}

rung_units rung_units_of(const rung_operand *operand) {
  const rung_type_row *row = rung_type_get((rung_type)operand->type);
  rung_units units = {.base = operand->base, .rank = operand->rank, .bytes = row ? row->bytes : 1, .per_byte = 1};
  units.block = block_of((rung_type)operand->type);
  if (row && units.block == 1) units.per_byte = row->block;
  for (int axis = 0; axis < operand->rank; axis++) {
    units.extent[axis] = operand->extent[axis];
    units.stride[axis] = operand->stride[axis];
  }
  const int last = operand->rank - 1;
  if (units.block > 1 && last >= 0) {
    units.extent[last] = (operand->extent[last] + units.block - 1) / units.block;
    units.stride[last] = 1;
  }
  return units;
}

void rung_unit_copy(const rung_units *to, int64_t to_offset, const rung_units *from, int64_t from_offset) {
  if (to->per_byte == 1) {
    memcpy(to->base + (int64_t)to->bytes * to_offset, from->base + (int64_t)from->bytes * from_offset, to->bytes);
    return;
  }
  const int64_t per = to->per_byte, bits = 8 / per;
  const unsigned mask = (1u << bits) - 1;
  const unsigned code = from->base[from_offset / per] >> bits * (from_offset % per) & mask;
  uint8_t *byte = &to->base[to_offset / per];
  const unsigned kept = *byte & ~(mask << bits * (to_offset % per));
  *byte = (uint8_t)(kept | code << bits * (to_offset % per));
}

void rung_units_copy(const rung_units *to, const rung_units *from) {
  int64_t stride[2][RUNG_MAX_RANK];
  memcpy(stride[0], to->stride, sizeof stride[0]);
  memcpy(stride[1], from->stride, sizeof stride[1]);
  rung_walk w;
  for (rung_walk_begin_strides(&w, to->rank, to->extent, 2, stride); w.live; rung_walk_next(&w))
    rung_unit_copy(to, w.offset[0], from, w.offset[1]);
}

bool rung_operand_is_integer(const rung_operand *operand) {
  return (rung_type_takes((rung_type)operand->type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
}

void rung_lanes_begin(rung_lanes *lanes, int axis, const rung_operand *a, const rung_operand *b) {
  const rung_operand *const operand[2] = {a, b};
  const int n = b ? 2 : 1;
  int64_t stride[2][RUNG_MAX_RANK] = {{0}}, extent[RUNG_MAX_RANK] = {0};
  memcpy(extent, a->extent, (size_t)a->rank * sizeof *extent);
  for (int i = 0; i < n; i++) {
    rung_element_strides(operand[i], stride[i]);
    lanes->extent[i] = operand[i]->extent[axis];
    lanes->stride[i] = stride[i][axis];
  }
  extent[axis] = 1;
  rung_walk_begin_strides(&lanes->walk, a->rank, extent, n, stride);
}
