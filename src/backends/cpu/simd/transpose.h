/* SPDX-License-Identifier: MIT
 * Four by four floats turned, with the vectors that every machine has. */
#ifndef RUNG_CPU_SIMD_TRANSPOSE_H
#define RUNG_CPU_SIMD_TRANSPOSE_H

#include "backends/cpu/simd/common.h"

typedef float rung_four __attribute__((vector_size(16)));

/* out[i * step + r] = row r [i]. */
RUNG_INLINE void rung_transpose_4x4(const float *row0, const float *row1, const float *row2, const float *row3,
                                    float *out, int64_t step) {
  rung_four a, b, c, d;
  memcpy(&a, row0, sizeof a);
  memcpy(&b, row1, sizeof b);
  memcpy(&c, row2, sizeof c);
  memcpy(&d, row3, sizeof d);
  const rung_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const rung_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const rung_four column0 = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  const rung_four column1 = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  const rung_four column2 = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  const rung_four column3 = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  memcpy(out, &column0, sizeof column0);
  memcpy(out + step, &column1, sizeof column1);
  memcpy(out + 2 * step, &column2, sizeof column2);
  memcpy(out + 3 * step, &column3, sizeof column3);
}

#endif
