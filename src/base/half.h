/* SPDX-License-Identifier: MIT
 * Narrow floating-point formats as bit patterns: IEEE 754 binary16, bfloat16, OCP FP8 E4M3FN and E5M2, E8M0 scales, FP4
 * E2M1. Rounding is to nearest, ties to even; NaN stays NaN; f16 and bf16 overflow to infinity, float8 saturates as
 * ONNX's Cast does by default. */
#ifndef RUNG_BASE_HALF_H
#define RUNG_BASE_HALF_H

#include <stdint.h>

float rung_f16_to_f32(uint16_t h);
uint16_t rung_f16_from_f32(float f);
uint16_t rung_f16_from_f64(double d); /* one rounding */
float rung_bf16_to_f32(uint16_t h);
uint16_t rung_bf16_from_f32(float f);
uint16_t rung_bf16_from_f64(double d);
float rung_f8e4m3_to_f32(uint8_t h);
uint8_t rung_f8e4m3_from_f32(float f);
float rung_f8e5m2_to_f32(uint8_t h);
uint8_t rung_f8e5m2_from_f32(float f);
/* Without infinities and -0: the pattern of -0 is NaN. */
float rung_f8e4m3fnuz_to_f32(uint8_t h);
uint8_t rung_f8e4m3fnuz_from_f32(float f);
float rung_f8e5m2fnuz_to_f32(uint8_t h);
uint8_t rung_f8e5m2fnuz_from_f32(float f);
float rung_e8m0_to_f32(uint8_t e);
/* The smallest power of two that is not below |f|, within 2^-127 .. 2^127; NaN stays. */
uint8_t rung_e8m0_from_f32(float f);
/* The low four bits; no infinity and no NaN: both become the largest, 6. */
float rung_f4e2m1_to_f32(uint8_t h);
uint8_t rung_f4e2m1_from_f32(float f);

#endif
