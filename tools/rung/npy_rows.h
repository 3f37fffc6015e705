/* SPDX-License-Identifier: MIT
 * A .npy file of f32 rows that is written piece by piece. */
#ifndef RUNG_TOOLS_NPY_ROWS_H
#define RUNG_TOOLS_NPY_ROWS_H

#include "base/map_file.h"

/* Version 1.0 of the format; the data begins at a multiple of 64. */
rung_status cli_npy_header(rung_writer *file, int64_t rows, int64_t columns, rung_error *error);

#endif
