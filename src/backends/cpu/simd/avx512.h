/* SPDX-License-Identifier: MIT
 * Vocabulary of level avx512. */
#ifndef RUNG_CPU_SIMD_AVX512_H
#define RUNG_CPU_SIMD_AVX512_H

#include "base/compiler.h"

#endif
