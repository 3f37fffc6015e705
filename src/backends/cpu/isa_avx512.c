/* SPDX-License-Identifier: MIT
 * Kernels over rows for level avx512: AVX-512 with VNNI and BF16. */
#define RUNG_CPU_UNIT avx512
#define RUNG_CPU_ISA RUNG_ISA_AVX512
#define RUNG_CPU_ISA_NAME "avx512"
#define RUNG_GROUP_ROWS
#include "backends/cpu/simd/avx512.h"

#include "backends/cpu/isa_unit.inc"
