/* SPDX-License-Identifier: MIT
 * ONNX element types, and the numbers of a TensorProto. */
#ifndef RUNG_FORMATS_ONNX_TENSOR_H
#define RUNG_FORMATS_ONNX_TENSOR_H

#include "formats/onnx/model.h"

/* The element type of a TensorProto.DataType; false for strings, complex numbers and what is not known. */
bool onnx_type_of(int32_t data_type, rung_type *out_type);
/* "string", "complex64", ... for messages. */
const char *onnx_type_name(int32_t data_type);

/* Where all numbers lie in the file one after another as Rung stores them: raw bytes, or one packed piece of floats or
 * doubles. False: they must be decoded. External tensors are not asked. */
bool onnx_tensor_in_place(const uint8_t *file, const onnx_tensor *tensor, rung_span *out);
/* Decodes typed data into `bytes` at out: exactly so many numbers as the extents say. */
rung_status onnx_tensor_decode(const uint8_t *file, const onnx_tensor *tensor, rung_type type, uint64_t elements,
                               void *out, rung_error *error);

#endif
