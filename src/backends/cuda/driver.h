/* SPDX-License-Identifier: MIT
 * NVIDIA's driver (libcuda), run-time compiler (libnvrtc) and library of products (libcublasLt) as tables of functions, found at run time. The few
 * structs and numbers of their interfaces that are used are stated here; no header of theirs is needed to build. */
#ifndef RUNG_CUDA_DRIVER_H
#define RUNG_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* CUmemAllocationProp: memory of one device, pinned there. */
typedef struct rung_cu_page_kind {
  int type;         /* 1: pinned */
  int handle_types; /* 0 */
  int location;     /* 1: a device */
  int device;
  void *unused;
  uint8_t flags[8];
} rung_cu_page_kind;
/* CUmemAccessDesc */
typedef struct rung_cu_access {
  int location, device;
  int flags; /* 3: read and write */
} rung_cu_access;
/* CUlaunchAttribute: only programmatic stream serialisation (id 6) is used. */
typedef struct rung_cu_launch_attribute {
  int id, pad;
  union {
    int programmatic;
    uint8_t room[64];
  } value;
} rung_cu_launch_attribute;
/* CUlaunchConfig */
typedef struct rung_cu_launch {
  unsigned grid[3], block[3], shared;
  void *stream;
  const rung_cu_launch_attribute *attribute;
  unsigned attributes;
} rung_cu_launch;

/* cublasLtMatmulHeuristicResult_t; begins with the algorithm itself, which is all that cublasLtMatmul reads. */
typedef struct rung_cu_way {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
} rung_cu_way;

enum {
  RUNG_CU_OUT_OF_MEMORY = 2,
  RUNG_CU_UNKNOWN = 999,
  RUNG_CU_PROGRAMMATIC = 6, /* launch attribute */
  RUNG_CU_HOST_MAPPED = 2,  /* of cuMemHostAlloc */
  RUNG_CU_NO_TIMES = 2,     /* of cuEventCreate */
  RUNG_CU_CAPTURE_THREAD = 1,
  RUNG_CU_SHARED_BYTES = 8, /* function attribute: dynamic shared memory */
  RUNG_CU_SHARED_SHARE = 9, /* of a processor's memory, in percent; the rest is cache */
  /* device attributes */
  RUNG_CU_PROCESSORS = 16,
  RUNG_CU_MAJOR = 75,
  RUNG_CU_MINOR = 76,
  RUNG_CU_SHARED_LIMIT = 97
};

#define DRIVER(name, symbol, parameters)
#define COMPILER(name, symbol, parameters)
#define PRODUCTS(name, symbol, parameters)
#undef DRIVER
#define DRIVER(name, symbol, parameters) int(*name) parameters;
typedef struct rung_cu_driver {
  void *library;
#include "backends/cuda/symbols.def"
} rung_cu_driver;
#undef DRIVER
#define DRIVER(name, symbol, parameters)
#undef COMPILER
#define COMPILER(name, symbol, parameters) int(*name) parameters;
typedef struct rung_cu_compiler {
  void *library;
#include "backends/cuda/symbols.def"
} rung_cu_compiler;
#undef COMPILER
#define COMPILER(name, symbol, parameters)
#undef PRODUCTS
#define PRODUCTS(name, symbol, parameters) int(*name) parameters;
typedef struct rung_cu_products {
  void *library;
#include "backends/cuda/symbols.def"
} rung_cu_products;
#undef DRIVER
#undef COMPILER
#undef PRODUCTS

/* Refused where the library or one of the functions is missing. */
rung_status rung_cu_driver_open(rung_cu_driver *driver, rung_error *error);
rung_status rung_cu_compiler_open(rung_cu_compiler *compiler, rung_error *error);
/* False where it is missing: products then go through the device's own kernels. */
bool rung_cu_products_open(rung_cu_products *products);

#endif
