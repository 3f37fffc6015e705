/* SPDX-License-Identifier: MIT
 * Windows over spatial axes. */
#include "ops/spatial.h"

void rung_spatial_fill(const rung_i64_list *list, int axes, int64_t otherwise, int64_t *out) {
  for (int axis = 0; axis < axes; axis++) out[axis] = list->count ? list->value[axis] : otherwise;
}

rung_status rung_spatial_check(const rung_infer *infer, const char *name, const rung_i64_list *list, int axes,
                               int64_t least) {
  const int64_t most = INT64_C(1) << 31; /* so that products of two stay within 64 bits */
  if (list->count && list->count != axes) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "%s has %d numbers for %d spatial axes", name, list->count,
                             axes);
  }
  for (int axis = 0; axis < list->count; axis++) {
    if (list->value[axis] < least || list->value[axis] >= most) {
      return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "%s is %lld along spatial axis %d", name,
                               (long long)list->value[axis], axis);
    }
  }
  return RUNG_OK;
}

rung_dim rung_spatial_windows(rung_dims *dims, const rung_spatial *s, int axis, rung_dim extent, rung_dim kernel,
                              bool ceil) {
  const rung_dim stride = rung_dims_constant(dims, s->stride[axis]);
  const rung_dim one = rung_one(dims), zero = rung_dims_constant(dims, 0);
  const rung_dim dilation = rung_dims_constant(dims, s->dilation[axis]);
  const rung_dim reach = rung_dims_add(dims, rung_dims_mul(dims, dilation, rung_dims_sub(dims, kernel, one)), one);
  const rung_dim padded = rung_dims_add(dims, extent, rung_dims_constant(dims, s->before[axis] + s->after[axis]));
  const rung_dim room = rung_dims_sub(dims, padded, reach);
  const rung_dim whole = rung_dims_add(dims, rung_dims_div(dims, room, stride), one);
  if (!ceil) return rung_dims_combine(dims, RUNG_DIM_MAX, whole, zero);
  const rung_dim more = rung_dims_add(dims, room, rung_dims_constant(dims, s->stride[axis] - 1));
  const rung_dim rounded = rung_dims_add(dims, rung_dims_div(dims, more, stride), one);
  /* Windows that begin before extent + before: ceil((extent + before) / stride). */
  const rung_dim begins = rung_dims_add(dims, extent, rung_dims_constant(dims, s->before[axis] + s->stride[axis] - 1));
  const rung_dim most = rung_dims_div(dims, begins, stride);
  return rung_dims_combine(dims, RUNG_DIM_MAX, rung_dims_combine(dims, RUNG_DIM_MIN, rounded, most), zero);
}

static void locate(rung_window *window, const rung_spatial *s, const int64_t *place, const int64_t *x) {
  window->inside = true;
  for (int axis = 0; axis < s->axes; axis++) {
    window->at[axis] = place[axis] * s->stride[axis] + window->walk.index[axis] * s->dilation[axis] - s->before[axis];
    if (window->at[axis] < 0 || window->at[axis] >= x[axis]) window->inside = false;
  }
}
void rung_window_begin(rung_window *window, const rung_spatial *s, const int64_t *place, const int64_t *x) {
  rung_walk_begin(&window->walk, s->axes, s->kernel, 0, NULL);
  locate(window, s, place, x);
}
void rung_window_next(rung_window *window, const rung_spatial *s, const int64_t *place, const int64_t *x) {
  rung_walk_next(&window->walk);
  locate(window, s, place, x);
}
