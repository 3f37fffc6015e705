/* SPDX-License-Identifier: MIT
 * Which levels this machine has. */
#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* clang 14's builtin does not know this one. */
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* The builtin also asks the system whether it saves the wide registers. */
static uint32_t machine_levels(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2") ||
      !has_f16c())
    return RUNG_ISA_BASE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bf16"))
    return RUNG_ISA_AVX2;
  return RUNG_ISA_AVX2 | RUNG_ISA_AVX512;
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
static uint32_t machine_levels(void) {
  const unsigned long dot_product = 1ul << 20, half = 1ul << 10; /* HWCAP_ASIMDDP, HWCAP_ASIMDHP */
  const unsigned long have = getauxval(AT_HWCAP);
  return (have & dot_product) && (have & half) ? RUNG_ISA_NEON : RUNG_ISA_BASE;
}
#else
static uint32_t machine_levels(void) { return RUNG_ISA_BASE; }
#endif

uint32_t rung_isa_detect(void) {
  static const struct {
    const char *name;
    uint32_t levels;
  } caps[] = {{"base", RUNG_ISA_BASE},
              {"avx2", RUNG_ISA_AVX2},
              {"avx512", RUNG_ISA_AVX2 | RUNG_ISA_AVX512},
              {"neon", RUNG_ISA_NEON}};
  const uint32_t isa = machine_levels();
  const char *cap = getenv("RUNG_MAX_ISA");
  if (!cap) return isa;
  for (size_t i = 0; i < RUNG_COUNT(caps); i++)
    if (strcmp(cap, caps[i].name) == 0) return isa & caps[i].levels;
  return isa;
}

const char *rung_isa_name(uint32_t isa) {
  if (isa & RUNG_ISA_AVX512) return "avx512";
  if (isa & RUNG_ISA_AVX2) return "avx2";
  if (isa & RUNG_ISA_NEON) return "neon";
  return "base";
}
