/* SPDX-License-Identifier: MIT
 * The tables of kernels, plainest first: the only file that names units. */
#include "backends/cpu/kernel.h"

#if defined(__x86_64__)
#define UNITS(X) \
  X(base)        \
  X(base_matmul) X(base_spatial) X(avx2) X(avx2_matmul) X(avx2_spatial) X(avx512) X(avx512_matmul) X(avx512_spatial)
#elif defined(__aarch64__)
#define UNITS(X) X(base) X(base_matmul) X(base_spatial) X(neon) X(neon_matmul) X(neon_spatial)
#else
#define UNITS(X) X(base) X(base_matmul) X(base_spatial)
#endif

#define X(unit) extern const rung_cpu_table rung_cpu_table_##unit;
UNITS(X)
#undef X
static const rung_cpu_table *const tables[] = {
#define X(unit) &rung_cpu_table_##unit,
    UNITS(X)
#undef X
};
#undef UNITS

const rung_cpu_table *rung_cpu_table_at(size_t index) { return index < RUNG_COUNT(tables) ? tables[index] : NULL; }
