/* SPDX-License-Identifier: MIT
 * Where resize reads along one axis: a number of neighbours and their weights for each place of the result. */
#ifndef RUNG_OPS_RESIZE_H
#define RUNG_OPS_RESIZE_H

#include "ir/args.h"
#include "ops/attrs.h"

typedef struct rung_resize_axis {
  const rung_resize_attrs *attrs;
  int64_t in, out;
  double scale, begin, end; /* begin and end of the region, as shares of the axis */
  bool still;               /* nothing to do along it */
} rung_resize_axis;
typedef struct rung_resize_line {
  int64_t first, count; /* neighbours, some of them perhaps outside of the axis: there its edge stands */
  double at, total;     /* place between them; sum of the weights */
  bool outside;         /* of the region: the result is attrs->extrapolation */
} rung_resize_line;

rung_resize_axis rung_resize_axis_of(const rung_args *args, int axis);
rung_resize_line rung_resize_line_at(const rung_resize_axis *axis, int64_t place);
double rung_resize_weight(const rung_resize_axis *axis, const rung_resize_line *line, int64_t index);
static inline int64_t rung_resize_index(const rung_resize_axis *axis, int64_t index) {
  return index < 0 ? 0 : index >= axis->in ? axis->in - 1 : index;
}

#endif
