/* SPDX-License-Identifier: MIT
 * Convolution, pooling and what is like them for level neon: Armv8.2 with dot products. */
#define RUNG_CPU_UNIT neon_spatial
#define RUNG_CPU_ISA RUNG_ISA_NEON
#define RUNG_CPU_ISA_NAME "neon"
#define RUNG_GROUP_SPATIAL
#include "backends/cpu/simd/neon_tiles.h"

#include "backends/cpu/isa_unit.inc"
