/* SPDX-License-Identifier: MIT
 * Convolution, pooling and what is like them for level avx2: AVX2, FMA, F16C. */
#define RUNG_CPU_UNIT avx2_spatial
#define RUNG_CPU_ISA RUNG_ISA_AVX2
#define RUNG_CPU_ISA_NAME "avx2"
#define RUNG_GROUP_SPATIAL
#include "backends/cpu/simd/avx2_tiles.h"

#include "backends/cpu/isa_unit.inc"
