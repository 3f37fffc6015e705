/* SPDX-License-Identifier: MIT
 * Matrix products for level neon: Armv8.2 with dot products. */
#define RUNG_CPU_UNIT neon_matmul
#define RUNG_CPU_ISA RUNG_ISA_NEON
#define RUNG_CPU_ISA_NAME "neon"
#define RUNG_GROUP_MATMUL
#include "backends/cpu/simd/neon_tiles.h"

#include "backends/cpu/isa_unit.inc"
