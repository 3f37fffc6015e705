/* SPDX-License-Identifier: MIT
 * Vocabulary of level neon. */
#ifndef RUNG_CPU_SIMD_NEON_H
#define RUNG_CPU_SIMD_NEON_H

#include "base/compiler.h"

#endif
