/* SPDX-License-Identifier: MIT
 * Tensors of the file as constants and weights. */
#ifndef RUNG_FORMATS_ONNX_TENSORS_H
#define RUNG_FORMATS_ONNX_TENSORS_H

#include "formats/onnx/import.h"
#include "formats/onnx/tensor.h"

/* Opens a file whose bytes the store refers to from now on. */
rung_status onnx_add_file(onnx_import *imp, const rung_source *source, int *out_source, const rung_map **out_map);
/* Memory that goes with the weights, as another source of them. */
rung_status onnx_add_memory(onnx_import *imp, uint64_t bytes, int *out_source, uint8_t **out_data);

#endif
