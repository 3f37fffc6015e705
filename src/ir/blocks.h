/* SPDX-License-Identifier: MIT
 * Conversion functions of the block formats, one pair per row of types.def. type.c lists them; everybody else goes
 * through rung_type_get. n is a multiple of the block; memory needs no alignment. */
#ifndef RUNG_IR_BLOCKS_H
#define RUNG_IR_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/half.h"

/* clang-format off */
#define BLOCK_LIST(X)                                                                                          \
  X(Q4_0)                                                                                                      \
  X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q8_1) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ1_S) X(IQ1_M) X(IQ2_XXS) \
      X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S) X(IQ4_NL) X(IQ4_XS) X(TQ1_0) X(TQ2_0) X(MXFP4) X(A8)
/* clang-format on */
/* clang-format off */
#define ENCODER_LIST(X) \
  X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q8_1) X(Q4_K) X(Q5_K) X(Q6_K) X(TQ1_0) X(TQ2_0) X(MXFP4) X(A8)
/* clang-format on */

#define X(NAME) void rung_decode_##NAME(const void *source, float *out, size_t n);
BLOCK_LIST(X)
#undef X
#define X(NAME) void rung_encode_##NAME(const float *source, void *out, size_t n);
ENCODER_LIST(X)
#undef X
#undef BLOCK_LIST
#undef ENCODER_LIST

/* No encoder: these need a search over a grid, or are written by other tools only. */
#define rung_encode_Q2_K NULL
#define rung_encode_Q3_K NULL
#define rung_encode_IQ1_S NULL
#define rung_encode_IQ1_M NULL
#define rung_encode_IQ2_XXS NULL
#define rung_encode_IQ2_XS NULL
#define rung_encode_IQ2_S NULL
#define rung_encode_IQ3_XXS NULL
#define rung_encode_IQ3_S NULL
#define rung_encode_IQ4_NL NULL
#define rung_encode_IQ4_XS NULL

/* Little-endian loads without alignment; compilers make one instruction of them. */
static inline uint16_t rung_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t rung_load_u32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline float rung_load_f16(const uint8_t *p) { return rung_f16_to_f32(rung_load_u16(p)); }
static inline void rung_store_u16(uint8_t *p, uint16_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}

#endif
