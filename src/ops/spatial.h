/* SPDX-License-Identifier: MIT
 * What convolution and pooling share: the spatial axes of x[batch, channels, spatial...], one to three of them. */
#ifndef RUNG_OPS_SPATIAL_H
#define RUNG_OPS_SPATIAL_H

#include "ops/attrs.h"
#include "ops/structured.h"

enum { RUNG_SPATIAL = 3 };
/* Per spatial axis; filled from attribute lists, whose empty ones mean the default. */
typedef struct rung_spatial {
  int axes;
  int64_t kernel[RUNG_SPATIAL], stride[RUNG_SPATIAL], dilation[RUNG_SPATIAL], before[RUNG_SPATIAL], after[RUNG_SPATIAL];
} rung_spatial;

/* `list` as `axes` numbers, all `otherwise` where it is empty. */
void rung_spatial_fill(const rung_i64_list *list, int axes, int64_t otherwise, int64_t *out);
/* Refuses unless the list is empty or has one number an axis, none below `least`. */
rung_status rung_spatial_check(const rung_infer *infer, const char *name, const rung_i64_list *list, int axes,
                               int64_t least);
/* How many places a window of `kernel` takes along an axis: floor((extent + before + after - reach) / stride) + 1, or
 * ceil, and never less than 0; reach is dilation * (kernel - 1) + 1. With ceil the last window must begin inside the
 * axis or the padding before it, as in ONNX. */
rung_dim rung_spatial_windows(rung_dims *dims, const rung_spatial *s, int axis, rung_dim extent, rung_dim kernel,
                              bool ceil);
/* Of conv and conv_integer: the attribute list, the attributes with their defaults, the result's extents (checks what
 * the attributes and shapes of x and w must hold), the roles M, N, K. */
extern const rung_attr rung_conv_attributes[];
void rung_conv_fill(rung_spatial *s, const rung_conv_attrs *attrs, int axes);
rung_status rung_conv_extents(rung_infer *infer, rung_dim *out_extent);
void rung_conv_roles(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                     const void *attrs, rung_dim *out_role);
/* The gradient of w in y = conv(x, w) of these attributes, as a graph. */
rung_value rung_build_conv_weight_gradient(struct rung_graph *g, const rung_conv_attrs *attrs, rung_value x,
                                           rung_value w, rung_value gy);
/* gy summed over all axes but the channels: the gradient of a bias. */
rung_value rung_build_bias_gradient(struct rung_graph *g, rung_value gy);

/* The kernel positions of one window, as indices into x. */
typedef struct rung_window {
  rung_walk walk;           /* over the kernel */
  int64_t at[RUNG_SPATIAL]; /* where the current position lies in x */
  bool inside;              /* not in the padding */
} rung_window;
/* `place`: the window's index along each spatial axis; `x`: extents of the spatial axes. */
void rung_window_begin(rung_window *window, const rung_spatial *s, const int64_t *place, const int64_t *x);
void rung_window_next(rung_window *window, const rung_spatial *s, const int64_t *place, const int64_t *x);

#endif
