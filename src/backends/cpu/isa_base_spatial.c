/* SPDX-License-Identifier: MIT
 * Convolution, pooling and what is like them for level base: what the compiler assumes of the architecture. */
#define RUNG_CPU_UNIT base_spatial
#define RUNG_CPU_ISA RUNG_ISA_BASE
#define RUNG_CPU_ISA_NAME "base"
#define RUNG_GROUP_SPATIAL
#include "backends/cpu/simd/base_tiles.h"

#include "backends/cpu/isa_unit.inc"
