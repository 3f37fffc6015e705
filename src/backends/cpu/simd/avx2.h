/* SPDX-License-Identifier: MIT
 * Vocabulary of level avx2. */
#ifndef RUNG_CPU_SIMD_AVX2_H
#define RUNG_CPU_SIMD_AVX2_H

#include "base/compiler.h"

#endif
