/* SPDX-License-Identifier: MIT
 * Kernels over rows for level base: what the compiler assumes of the architecture. */
#define RUNG_CPU_UNIT base
#define RUNG_CPU_ISA RUNG_ISA_BASE
#define RUNG_CPU_ISA_NAME "base"
#define RUNG_GROUP_ROWS
#include "backends/cpu/simd/base.h"

#include "backends/cpu/isa_unit.inc"
