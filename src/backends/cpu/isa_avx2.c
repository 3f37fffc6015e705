/* SPDX-License-Identifier: MIT
 * Kernels over rows for level avx2: AVX2, FMA, F16C. */
#define RUNG_CPU_UNIT avx2
#define RUNG_CPU_ISA RUNG_ISA_AVX2
#define RUNG_CPU_ISA_NAME "avx2"
#define RUNG_GROUP_ROWS
#include "backends/cpu/simd/avx2.h"

#include "backends/cpu/isa_unit.inc"
