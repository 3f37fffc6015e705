/* SPDX-License-Identifier: MIT
 * Vocabulary of level base. */
#ifndef RUNG_CPU_SIMD_BASE_H
#define RUNG_CPU_SIMD_BASE_H

#include "base/compiler.h"

#endif
