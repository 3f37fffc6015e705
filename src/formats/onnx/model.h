/* SPDX-License-Identifier: MIT
 * An ONNX file taken apart: graphs, nodes, attributes and tensors as structs that point into the file's bytes. Names
 * and tensors stay where they are; only the lists are made, in an arena. Field numbers are those of onnx.proto3. */
#ifndef RUNG_FORMATS_ONNX_MODEL_H
#define RUNG_FORMATS_ONNX_MODEL_H

#include <rung/tensor.h>

#include "base/arena.h"
#include "formats/onnx/wire.h"

/* A name in the file: not terminated. */
typedef struct onnx_name {
  const char *text;
  uint32_t length;
} onnx_name;
bool onnx_name_is(onnx_name name, const char *text);
bool onnx_name_equal(onnx_name a, onnx_name b);
/* For messages: cut, with other than printable characters replaced. */
typedef struct onnx_shown {
  char text[80];
} onnx_shown;
onnx_shown onnx_show(onnx_name name);

typedef struct onnx_tensor {
  onnx_name name;
  uint64_t at;       /* of the message */
  rung_span message; /* for typed data, which may lie in several pieces */
  int32_t data_type; /* of TensorProto */
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  bool has_raw, external;
  rung_span raw;
  onnx_name location; /* external data */
  uint64_t offset, length;
  bool has_length;
} onnx_tensor;

typedef struct onnx_graph onnx_graph;
typedef enum onnx_attr_type {
  ONNX_ATTR_NONE = 0,
  ONNX_ATTR_FLOAT = 1,
  ONNX_ATTR_INT = 2,
  ONNX_ATTR_STRING = 3,
  ONNX_ATTR_TENSOR = 4,
  ONNX_ATTR_GRAPH = 5,
  ONNX_ATTR_FLOATS = 6,
  ONNX_ATTR_INTS = 7,
  ONNX_ATTR_STRINGS = 8,
  ONNX_ATTR_TENSORS = 9,
  ONNX_ATTR_GRAPHS = 10
} onnx_attr_type;
typedef struct onnx_attr {
  onnx_name name, ref; /* ref: the attribute of the function around it that it takes its value from */
  onnx_attr_type type;
  float f;
  int64_t i;
  onnx_name s;
  onnx_tensor *t;
  onnx_graph *g;
  uint32_t count; /* of a list */
  float *floats;
  int64_t *ints;
  onnx_name *strings;
} onnx_attr;

typedef struct onnx_node {
  onnx_name op, domain, name, overload;
  uint64_t at;
  uint32_t inputs, outputs, attrs;
  onnx_name *input, *output;
  onnx_attr *attr;
} onnx_node;

typedef struct onnx_axis_dim {
  bool known;
  int64_t value;
  onnx_name param; /* length 0: none */
} onnx_axis_dim;
typedef struct onnx_value {
  onnx_name name;
  bool tensor;       /* false: a sequence, a map, an optional, or not said */
  int32_t data_type; /* 0: not said */
  int rank;          /* -1: not said */
  onnx_axis_dim dim[RUNG_MAX_RANK];
} onnx_value;

struct onnx_graph {
  onnx_name name;
  uint64_t at;
  uint32_t nodes, tensors, inputs, outputs, values, sparse;
  onnx_node *node;
  onnx_tensor *tensor; /* initializers */
  onnx_value *input, *output, *value;
};

typedef struct onnx_opset {
  onnx_name domain;
  int64_t version;
} onnx_opset;
typedef struct onnx_function {
  onnx_name name, domain, overload;
  uint32_t inputs, outputs, attr_names, attrs, nodes, opsets;
  onnx_name *input, *output, *attr_name;
  onnx_attr *attr; /* with defaults */
  onnx_node *node;
  onnx_opset *opset;
} onnx_function;

typedef struct onnx_model {
  const uint8_t *file;
  uint64_t bytes;
  int64_t ir_version;
  onnx_name producer;
  uint32_t opsets, functions;
  onnx_opset *opset;
  onnx_function *function;
  onnx_graph *graph;
} onnx_model;

enum { ONNX_MAX_NESTING = 64 };

/* Does it look like a ModelProto: a small version, then a field that such a message has? */
bool onnx_recognise(const uint8_t *data, uint64_t bytes);
/* Reads all of it but the numbers of tensors. Refused, with the offset: what is cut off, wrong wire types, more than
 * RUNG_MAX_RANK axes, negative extents, graphs nested too deep, no graph. */
rung_status onnx_model_read(rung_arena *arena, const uint8_t *file, uint64_t bytes, rung_error *error,
                            onnx_model *out_model);

#endif
