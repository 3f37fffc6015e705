/* SPDX-License-Identifier: MIT
 * What all levels' vocabularies and kernels share. */
#ifndef RUNG_CPU_SIMD_COMMON_H
#define RUNG_CPU_SIMD_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Before a loop over an array of vectors with a constant trip count: the array then lives in registers. */
#if defined(__clang__)
#define RUNG_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define RUNG_UNROLL _Pragma("GCC unroll 32")
#else
#define RUNG_UNROLL
#endif

#endif
