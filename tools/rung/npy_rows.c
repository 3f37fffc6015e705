/* SPDX-License-Identifier: MIT
 * A .npy file of f32 rows that is written piece by piece. */
#include "npy_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

rung_status cli_npy_header(rung_writer *file, int64_t rows, int64_t columns, rung_error *error) {
  char header[129];
  memset(header, ' ', sizeof header);
  const int n =
      snprintf(header + 10, sizeof header - 10,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }", rows, columns);
  header[10 + n] = ' ';
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes follow */
  header[127] = '\n';
  return rung_writer_put(file, header, 128, error);
}
