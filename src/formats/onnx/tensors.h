/* SPDX-License-Identifier: MIT
 * Tensors of the file as constants and weights. */
#ifndef RUNG_FORMATS_ONNX_TENSORS_H
#define RUNG_FORMATS_ONNX_TENSORS_H

#include "formats/onnx/import.h"
#include "formats/onnx/tensor.h"

/* Opens a file whose bytes the store refers to from now on. */
rung_status onnx_add_file(onnx_import *imp, const rung_source *source, int *out_source, const rung_map **out_map);

#endif
