/* SPDX-License-Identifier: MIT
 * What all levels' vocabularies and kernels share. */
#ifndef RUNG_CPU_SIMD_COMMON_H
#define RUNG_CPU_SIMD_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* RUNG_EACH(i, n) { ... }: a loop i = 0 .. n - 1 over arrays of vectors, n constant where it is used: unrolled whole,
 * so that the arrays live in registers. */
#if defined(__clang__)
#define RUNG_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define RUNG_UNROLL _Pragma("GCC unroll 32")
#else
#define RUNG_UNROLL
#endif
#define RUNG_EACH(i, n) RUNG_UNROLL for (int i = 0; i < (n); i++)

#endif
