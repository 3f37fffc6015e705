/* SPDX-License-Identifier: MIT
 * NumPy's .npy files (format versions 1.0 and 2.0; described in NumPy's documentation, "numpy.lib.format"): one array,
 * C order, little-endian f2 f4 f8 i1..i8 u1..u8 b1. Everything else is refused. */
#ifndef RUNG_FORMATS_NPY_H
#define RUNG_FORMATS_NPY_H

#include <rung/source.h>
#include <rung/tensor.h>

#include "base/map_file.h"

typedef struct rung_npy {
  rung_map map;
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  const void *data; /* in the map; aligned to 16 in files that NumPy wrote */
  uint64_t bytes;
} rung_npy;

/* On failure *npy holds nothing. */
rung_status rung_npy_open(rung_npy *npy, rung_host *host, const rung_source *source, rung_error *error);
void rung_npy_close(rung_npy *npy); /* zeroed allowed */

/* Writes a dense tensor (all strides 0, or row-major); version 1.0, data at a multiple of 64. */
rung_status rung_npy_write(rung_host *host, const char *path, const rung_tensor *tensor, rung_error *error);

#endif
