/* SPDX-License-Identifier: MIT
 * Kernels over rows for level neon: Armv8.2 with dot products. */
#define RUNG_CPU_UNIT neon
#define RUNG_CPU_ISA RUNG_ISA_NEON
#define RUNG_CPU_ISA_NAME "neon"
#define RUNG_GROUP_ROWS
#include "backends/cpu/simd/neon.h"

#include "backends/cpu/isa_unit.inc"
