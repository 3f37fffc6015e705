/* SPDX-License-Identifier: MIT
 * ONNX windows and mel filters, and what else is made of sizes: affine grids, cumulative products. */
#include <math.h>

#include "formats/onnx/import.h"

/* a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N one less where not periodic; variant: Hann, Hamming, Blackman */
void onnx_build_window(onnx_call *c);
void onnx_build_window(onnx_call *c) {
  static const double factors[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 1 - 25.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const double *a = factors[c->row->variant];
  rung_type type;
  rung_dim_list size;
  const rung_dim bound = onnx_declared(c, 0, 0);
  if (!onnx_element_type(c, onnx_int(c, "output_datatype", 1), &type) || !onnx_dims_in(c, 0, &bound, &size)) return;
  rung_dim count = size.dim[0];
  if (!onnx_int(c, "periodic", 1)) count = rung_graph_dim(c->g, RUNG_DIM_SUB, count, onnx_dim(c, 1));
  if (onnx_failed(c)) return;
  const rung_type wide = RUNG_TYPE_F64;
  const rung_value n = onnx_arange(c, size.dim[0], wide);
  const rung_value turn = rung_build_div(c->g, rung_build_mul(c->g, n, onnx_scalar(c, n, 2 * 3.14159265358979323846)),
                                         rung_build_extent(c->g, count, wide));
  rung_value y = rung_build_sub(c->g, onnx_scalar(c, n, a[0]),
                                rung_build_mul(c->g, onnx_scalar(c, n, a[1]), rung_build_cos(c->g, turn)));
  if (a[2] != 0) {
    const rung_value twice = rung_build_cos(c->g, rung_build_add(c->g, turn, turn));
    y = rung_build_add(c->g, y, rung_build_mul(c->g, onnx_scalar(c, n, a[2]), twice));
  }
  c->out[0] = onnx_cast(c, y, type);
}

static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double hertz_of(double mel) { return 700 * (pow(10, mel / 2595) - 1); }

enum { MOST_WEIGHTS = 1 << 22 }; /* 32 MB while they are made, from a few bytes of a file */

/* Triangles over the bins of a spectrum; all sizes are known. */
void onnx_build_mel_weights(onnx_call *c);
void onnx_build_mel_weights(onnx_call *c) {
  int64_t bands, length, rate;
  double lowest, highest;
  rung_type type;
  if (!onnx_constant_integer_scalar(c, 0, &bands) || !onnx_constant_integer_scalar(c, 1, &length) ||
      !onnx_constant_integer_scalar(c, 2, &rate) || !onnx_constant_scalar(c, 3, &lowest) ||
      !onnx_constant_scalar(c, 4, &highest))
    return;
  if (!onnx_element_type(c, onnx_int(c, "output_datatype", 1), &type)) return;
  if (bands < 1 || length < 1 || rate < 1 || bands > MOST_WEIGHTS || length / 2 + 1 > MOST_WEIGHTS / bands) {
    onnx_refuse(c, RUNG_OUT_OF_RANGE, "%lld bands of %lld points", (long long)bands, (long long)length);
    return;
  }
  if (!(lowest >= 0 && lowest < highest && highest < 1e9)) {
    onnx_refuse(c, RUNG_OUT_OF_RANGE, "bands from %g to %g Hz", lowest, highest);
    return;
  }
  const int64_t bins = length / 2 + 1, extent[2] = {bins, bands};
  const size_t count = (size_t)(bins * bands);
  double *w = (double *)rung_arena_array(&c->imp->arena, count, sizeof *w);
  int64_t *edge = (int64_t *)rung_arena_array(&c->imp->arena, (size_t)bands + 2, sizeof *edge);
  if (!w || !edge) {
    onnx_refuse(c, RUNG_OUT_OF_MEMORY, "no memory for the filters");
    return;
  }
  const double low = mel_of(lowest), step = (mel_of(highest) - low) / (double)(bands + 2);
  for (int64_t i = 0; i < bands + 2; i++)
    edge[i] = (int64_t)floor((double)(length + 1) * hertz_of((double)i * step + low) / (double)rate);
  for (int64_t b = 0; b < bands; b++) {
    const int64_t from = edge[b], top = edge[b + 1], to = edge[b + 2];
    if (top == from && top < bins) w[top * bands + b] = 1;
    for (int64_t i = from; top != from && i <= top && i < bins; i++)
      w[i * bands + b] = (double)(i - from) / (double)(top - from);
    for (int64_t i = top; to != top && i < to && i < bins; i++)
      w[i * bands + b] = (double)(to - i) / (double)(to - top);
  }
  c->out[0] = onnx_cast(c, rung_graph_constant(c->g, RUNG_TYPE_F64, 2, extent, w), type);
}

/* Places -1 .. 1 along an axis: of corners, or of the middles of cells. */
static rung_value places(onnx_call *c, rung_dim size, bool corners, rung_type type) {
  const rung_value n = onnx_arange(c, size, type), count = rung_build_extent(c->g, size, type);
  const rung_value one = onnx_scalar(c, n, 1), two = onnx_scalar(c, n, 2);
  if (corners) {
    const rung_value steps = rung_build_max(c->g, rung_build_sub(c->g, count, one), one);
    return rung_build_sub(c->g, rung_build_div(c->g, rung_build_mul(c->g, n, two), steps), one);
  }
  const rung_value twice = rung_build_add(c->g, rung_build_mul(c->g, n, two), one);
  return rung_build_sub(c->g, rung_build_div(c->g, twice, count), one);
}

void onnx_build_affine_grid(onnx_call *c);
void onnx_build_affine_grid(onnx_call *c) {
  const rung_value theta = c->in[0];
  const rung_value_type t = *onnx_type(c, theta);
  rung_dim_list size;
  if (!onnx_dims_known(c, c->in[1], &size)) return;
  for (int i = 0; i < size.count; i++)
    if (!size.dim[i].id) {
      (void)onnx_constant_in(c, 1);
      return;
    }
  const int axes = size.count - 2;
  if (axes != 2 && axes != 3) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "a size of %d numbers", size.count);
    return;
  }
  const bool corners = onnx_int(c, "align_corners", 0) != 0;
  rung_value part[4];
  rung_dim grid[4];
  for (int i = 0; i < axes; i++) grid[i] = size.dim[2 + i];
  grid[axes] = onnx_dim(c, 1);
  for (int i = 0; i <= axes; i++) { /* x first, then y, z, 1 */
    const int axis = axes - 1 - i;
    if (i == axes) {
      part[i] = onnx_filled(c, t.type, 1, axes + 1, grid);
      continue;
    }
    rung_dim shape[4] = {onnx_dim(c, 1), onnx_dim(c, 1), onnx_dim(c, 1), onnx_dim(c, 1)};
    shape[axis] = size.dim[2 + axis];
    part[i] = rung_build_expand(c->g, onnx_reshape(c, places(c, shape[axis], corners, t.type), axes + 1, shape),
                                axes + 1, grid);
  }
  const rung_value all = rung_build_concat(c->g, part, (uint32_t)axes + 1, axes);
  const rung_dim flat[2] = {rung_dims_product(c->g->dims, grid, 0, axes), onnx_dim(c, axes + 1)};
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = t.type};
  const rung_value y = onnx_op2(c, &rung_op_matmul, onnx_reshape(c, all, 2, flat), theta, &attrs);
  rung_dim out[5] = {t.extent[0]};
  for (int i = 0; i < axes; i++) out[1 + i] = size.dim[2 + i];
  out[1 + axes] = onnx_dim(c, axes);
  c->out[0] = onnx_reshape(c, y, axes + 2, out);
}
