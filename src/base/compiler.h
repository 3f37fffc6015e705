/* SPDX-License-Identifier: MIT
 * The only file with compiler attributes and builtins. */
#ifndef RUNG_BASE_COMPILER_H
#define RUNG_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define RUNG_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#if defined(__GNUC__)
#define RUNG_PRINTF(text, first) __attribute__((format(__printf__, text, first)))
#define RUNG_INLINE static inline __attribute__((always_inline))
#define RUNG_NOINLINE __attribute__((noinline))
#define RUNG_LIKELY(x) __builtin_expect(!!(x), 1)
#define RUNG_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RUNG_UNUSED __attribute__((unused))
#define RUNG_RESTRICT __restrict__
#define RUNG_FETCH_SECOND(p) __builtin_prefetch(p, 0, 2) /* into the second cache */
#else
#define RUNG_PRINTF(text, first)
#define RUNG_INLINE static inline
#define RUNG_NOINLINE
#define RUNG_LIKELY(x) (x)
#define RUNG_UNLIKELY(x) (x)
#define RUNG_UNUSED
#define RUNG_RESTRICT
#define RUNG_FETCH_SECOND(p) ((void)(p))
#endif
/* Leaves the function with the status of a failed call: the only control-flow macro of the project. */
#define RUNG_TRY(call)                              \
  do {                                              \
    const rung_status rung_try_ = (call);           \
    if (RUNG_UNLIKELY(rung_try_)) return rung_try_; \
  } while (0)

/* Checked arithmetic on sizes and extents: true if the result does not fit. */
#if defined(__GNUC__)
#define rung_add_overflows(a, b, out) __builtin_add_overflow(a, b, out)
#define rung_sub_overflows(a, b, out) __builtin_sub_overflow(a, b, out)
#define rung_mul_overflows(a, b, out) __builtin_mul_overflow(a, b, out)
/* The full product of two 64-bit numbers: returns the low word. */
RUNG_INLINE uint64_t rung_mul_wide(uint64_t a, uint64_t b, uint64_t *out_high) {
  __extension__ typedef unsigned __int128 wide;
  const wide product = (wide)a * b;
  *out_high = (uint64_t)(product >> 64);
  return (uint64_t)product;
}
RUNG_INLINE int rung_lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); } /* bits not 0 */
/* Tells the processor that this is a waiting loop. */
RUNG_INLINE void rung_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory"); /* yield does nothing on most cores */
#endif
}
/* Runs when the library is unloaded or the process ends. */
#define RUNG_AT_UNLOAD __attribute__((destructor))
#else
#error "base/compiler.h needs checked arithmetic for this compiler"
#endif

#endif
