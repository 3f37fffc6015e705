/* SPDX-License-Identifier: MIT
 * What the attention operators of both domains share. */
#ifndef RUNG_FORMATS_ONNX_ATTENTION_H
#define RUNG_FORMATS_ONNX_ATTENTION_H

#include "formats/onnx/import.h"

/* x[batch, rows, heads * size] as [batch, heads, rows, size], and back. */
rung_value onnx_split_heads(onnx_call *call, rung_value x, int64_t heads);
rung_value onnx_join_heads(onnx_call *call, rung_value x);
/* Each head of axis 1 `times` times, one behind the other. */
rung_value onnx_repeat_heads(onnx_call *call, rung_value x, int64_t times);

/* The attention op; of other types than f32 as the smaller ops that have kernels. */
rung_value onnx_attention(onnx_call *call, const rung_value *in, uint32_t n_in, const rung_attention_attrs *attrs);

#endif
