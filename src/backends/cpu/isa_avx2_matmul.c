/* SPDX-License-Identifier: MIT
 * Matrix products for level avx2: AVX2, FMA, F16C. */
#define RUNG_CPU_UNIT avx2_matmul
#define RUNG_CPU_ISA RUNG_ISA_AVX2
#define RUNG_CPU_ISA_NAME "avx2"
#define RUNG_GROUP_MATMUL
#include "backends/cpu/simd/avx2_tiles.h"

#include "backends/cpu/isa_unit.inc"
