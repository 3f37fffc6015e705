/* SPDX-License-Identifier: MIT
 * Instruction sets that the CPU backend has kernels for. */
#ifndef RUNG_CPU_ISA_H
#define RUNG_CPU_ISA_H

#include <stdint.h>

/* A level is what its kernels are compiled for, not a single feature. avx512 means F, BW, DQ, VL, VNNI and BF16
 * together: a machine that lacks one of them counts as avx2, so that there is one kind of 512-bit kernel to test. */
enum {
  RUNG_ISA_BASE = 0,        /* what the compiler assumes */
  RUNG_ISA_AVX2 = 1 << 0,   /* AVX2, FMA, F16C, BMI2 */
  RUNG_ISA_AVX512 = 1 << 1, /* AVX-512 F, BW, DQ, VL, VNNI, BF16; implies AVX2 */
  RUNG_ISA_NEON = 1 << 2    /* Armv8.2 with dot products and half-precision arithmetic */
};

/* The levels of this machine, less those above RUNG_MAX_ISA (base, avx2, avx512 or neon; anything else caps nothing).
 */
uint32_t rung_isa_detect(void);
/* "base", "avx2", ...: the name of the best level in `isa`. */
const char *rung_isa_name(uint32_t isa);

#endif
