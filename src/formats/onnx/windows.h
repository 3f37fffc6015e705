/* SPDX-License-Identifier: MIT
 * What convolutions and poolings share: kernels, strides, dilations, pads. */
#ifndef RUNG_FORMATS_ONNX_WINDOWS_H
#define RUNG_FORMATS_ONNX_WINDOWS_H

#include "formats/onnx/import.h"

typedef struct onnx_window {
  int axes;
  bool same_upper, same_lower;
  int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
} onnx_window;
/* The attributes of a node; kernel: of the weights where kernel_shape is not there. */
bool onnx_window_read(onnx_call *call, onnx_window *out, int axes, const rung_i64_list *kernel);
/* Carries out auto_pad; gives x, padded with `value` where amounts depend on open extents. */
rung_value onnx_window_same(onnx_call *call, rung_value x, onnx_window *window, double value);
void onnx_window_list(rung_i64_list *list, int axes, const int64_t *value);
/* As MatMul, whose operands may have one axis. */
rung_value onnx_matmul(onnx_call *call, rung_value a, rung_value b, rung_type type);

#endif
