/* SPDX-License-Identifier: MIT
 * Convolution, pooling and what is like them for level avx512: AVX-512 with VNNI and BF16. */
#define RUNG_CPU_UNIT avx512_spatial
#define RUNG_CPU_ISA RUNG_ISA_AVX512
#define RUNG_CPU_ISA_NAME "avx512"
#define RUNG_GROUP_SPATIAL
#include "backends/cpu/simd/avx512_tiles.h"

#include "backends/cpu/isa_unit.inc"
