/* SPDX-License-Identifier: MIT
 * Functions of the model, and the list of operators that are missing. */
#ifndef RUNG_FORMATS_ONNX_FUNCTIONS_H
#define RUNG_FORMATS_ONNX_FUNCTIONS_H

#include "formats/onnx/import.h"

/* The model's function that a node calls; NULL: none. */
const onnx_function *onnx_function_find(const onnx_import *imp, const onnx_node *node);
/* Imports its nodes in the place of the call. */
void onnx_function_call(onnx_call *call, const onnx_function *function);
/* Looks at every node, in sub-graphs and functions too, before anything is built. */
rung_status onnx_check_missing(onnx_import *imp);

#endif
